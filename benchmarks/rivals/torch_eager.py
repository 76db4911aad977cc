"""torch without its compiler: few calls on large arrays, one row for each well or coordinate; derivatives by hand, no gradient tape."""

import experiment as e
import torch

CENTRES = torch.tensor(e.CENTRES)
OFFSETS = torch.tensor(e.OFFSETS)
REWARD_CENTRE = torch.tensor(e.REWARD_CENTRE)[:, None]
SCALE = -1 / e.REWARD_WIDTH
HEIGHT = e.LEARNING_RATE / e.REWARD_DENOMINATOR


def step(theta, x, noise):
    r = torch.addmm((theta + OFFSETS)[:, None], CENTRES, x).exp_()
    r /= r.sum(dim=0)
    reward = (x - REWARD_CENTRE).square_().sum(dim=0).mul_(SCALE).exp_().mul_(x[0] >= 0)
    reward -= reward.mean()
    theta = torch.addmv(theta, r, reward, alpha=HEIGHT / (x.shape[1] - 1))
    x = torch.addmm(noise.normal_(), CENTRES.T, r, beta=e.NOISE, alpha=e.STEP_SIZE).add_(x, alpha=1 - e.STEP_SIZE)
    return theta, x


def prepare(particles, steps):
    @torch.inference_mode()
    def run():
        torch.manual_seed(0)
        theta, x, noise = torch.tensor(e.THETA_START), torch.randn(2, particles), torch.empty(2, particles)
        for _ in range(steps):
            theta, x = step(theta, x, noise)
        return theta.numpy(), x.T.numpy()

    return run


e.main(prepare)
