"""torchebm: its LangevinDynamics, sampling alone, at theta_opt. The model gives its derivative by hand, which the sampler then uses.
Wells are rows there: a row for each sample, with softmax, takes two to five times as long."""

import experiment as e
import numpy as np
import torch
from torchebm.core import BaseModel
from torchebm.samplers import LangevinDynamics

CENTRES = torch.tensor(e.CENTRES)
OFFSETS = torch.tensor(e.THETA_OPT) + torch.tensor(e.OFFSETS)


class Wells(BaseModel):
    def forward(self, x):
        return x.square().sum(dim=1) / 2 - torch.logsumexp(torch.addmm(OFFSETS, x, CENTRES.T), dim=1)

    def gradient(self, x, model_kwargs=None):
        r = torch.addmm(OFFSETS[:, None], CENTRES, x.T).exp_()
        r /= r.sum(dim=0)
        return torch.addmm(x.T, CENTRES.T, r, alpha=-1).T


def prepare(particles, steps):
    sampler = LangevinDynamics(Wells(), step_size=e.STEP_SIZE, noise_scale=1.0, device="cpu")

    def run():
        torch.manual_seed(0)
        return np.array(e.THETA_OPT), sampler.sample(torch.randn(particles, 2), n_steps=steps).numpy()

    return run


e.main(prepare)
