"""torchsde: sdeint forward, sdeint_adjoint for the gradient. Two variants:

    euler             Euler-Maruyama both ways. The adjoint retraces the path by the continuous equation, not by the steps that were made
    reversible_heun   the pair made for exact gradients: another discretisation, with its own reference

Its state is (batch, dimension); here a coordinate is a row, which diagonal noise allows, since small rows are slow in torch. The increments of
the Brownian motion are drawn at once and looked up: with its BrownianInterval, which makes them on demand in any order, forward takes twice as
long. The drift is compiled (torch.compile), which saves a tenth to a third.
"""

import diffusion as d
import numpy as np
import torch
import torchsde


def drift(y, theta, a):
    """y + 2 s, y (2, n)."""
    k, *forms = d.levels(theta, a, torch)  # each (6,)
    bx, by, p = forms
    q = y.square().sum(dim=0, keepdim=True) / -2
    r = torch.softmax(torch.addmm(k[:, None], torch.stack(forms, dim=1), torch.cat([y, q])), dim=0)
    pull = torch.stack(forms) @ r
    return y + 2 * (pull[:2] - pull[2:] * y)


compiled_drift = torch.compile(drift, dynamic=False)


class Reverse(torch.nn.Module):
    noise_type = "diagonal"

    def __init__(self, samples, sde_type):
        super().__init__()
        self.sde_type = sde_type
        self.theta = torch.nn.Parameter(torch.tensor(d.THETA, dtype=torch.float32))
        self.diffusion = torch.full((2, samples), 2.0).sqrt()

    def f(self, t, y):
        return compiled_drift(y, self.theta, torch.exp(t - d.HORIZON))

    def g(self, t, y):
        return self.diffusion


class Increments(torchsde.BaseBrownian):
    """Of the T steps, (T, 2, n)."""

    def __init__(self, values):
        self.values = values

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        return self.values[round(float(ta) / d.H)]

    def __repr__(self):
        return "Increments()"

    dtype = property(lambda self: self.values.dtype)
    device = property(lambda self: self.values.device)
    shape = property(lambda self: self.values.shape[1:])
    levy_area_approximation = "none"


def heun_reference(start, normals):
    """Samples and gradient of the reversible Heun steps in double precision, differentiated as they are."""
    theta = torch.tensor(d.THETA, requires_grad=True)
    times = torch.tensor(np.exp(np.append(-d.TAUS, 0.0)))
    increments = torch.tensor(normals.transpose(0, 2, 1), dtype=torch.float64) * d.NOISE
    y = z = torch.tensor(start.T, dtype=torch.float64)
    f = drift(z, theta, times[0])
    for m in range(d.STEPS):
        z = 2 * y - z + d.H * f + increments[m]
        last, f = f, drift(z, theta, times[m + 1])
        y = y + d.H / 2 * (last + f) + increments[m]
    (-y[0].mean()).backward()
    return y.detach().T.numpy(), theta.grad.numpy()


def prepare(samples, variant):
    sde = Reverse(samples, "ito" if variant == "euler" else "stratonovich")
    ends = torch.tensor([0.0, d.HORIZON])
    adjoint_method = {"euler": "euler", "reversible_heun": "adjoint_reversible_heun"}[variant]

    def draw():
        torch.manual_seed(0)
        return torch.randn(2, samples), Increments(torch.randn(d.STEPS, 2, samples).mul_(d.H**0.5))

    @torch.no_grad()
    def forward():
        start, increments = draw()
        return torchsde.sdeint(sde, start, ends, bm=increments, method=variant, dt=d.H)[-1].T.numpy()

    def gradient():
        start, increments = draw()
        sde.zero_grad()
        y = torchsde.sdeint_adjoint(sde, start, ends, bm=increments, method=variant, adjoint_method=adjoint_method, dt=d.H)[-1]
        (-y[0].mean()).backward()
        return sde.theta.grad.numpy()

    def noise():
        start, increments = draw()
        return start.T.numpy(), (increments.values / d.H**0.5).transpose(1, 2).numpy()

    return d.Rival(forward, gradient, noise, d.reference if variant == "euler" else heun_reference)


d.main(prepare)
