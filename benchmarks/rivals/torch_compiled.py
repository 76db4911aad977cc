"""torch.compile: a coordinate an array, derivatives by hand, no gradient tape.

Compiled with its own generator (fallback_random): the default one inside compiled code is several times slower. For few particles the calls
count, so ten steps are compiled as one and their noise is drawn at once, and the covariance is one product of a matrix and a vector; for many
it is faster as sums within the one pass. A whole run compiles a single step: ten take longer to compile than they save.
"""

import sys

import experiment as e
import torch
import torch._inductor.config

torch._inductor.config.fallback_random = True


def covariance(r, reward):
    n = reward.numel()
    if n <= 10_000:
        return torch.stack(r) @ (reward - reward.mean()) / (n - 1)
    total = reward.sum()
    return torch.stack([(p * reward).sum() - total * p.sum() / n for p in r]) / (n - 1)


def step(theta, x, y, noise):
    weights = [torch.exp(theta[i] + e.OFFSETS[i] + x * a + y * b) for i, (a, b) in enumerate(e.CENTRES)]
    scale = 1 / sum(weights)
    r = [w * scale for w in weights]
    mean_x = sum(p * a for p, (a, _) in zip(r, e.CENTRES))
    mean_y = sum(p * b for p, (_, b) in zip(r, e.CENTRES))
    a, b = e.REWARD_CENTRE
    near = torch.exp(-((x - a) ** 2 + (y - b) ** 2) / e.REWARD_WIDTH) / e.REWARD_DENOMINATOR
    theta = theta + e.LEARNING_RATE * covariance(r, torch.where(x >= 0, near, 0.0))
    return theta, x - e.STEP_SIZE * (x - mean_x) + e.NOISE * noise[0], y - e.STEP_SIZE * (y - mean_y) + e.NOISE * noise[1]


def prepare(particles, steps):
    block = 10 if particles <= 10_000 and sys.argv[1] == "ns" else 1

    def some_steps(theta, x, y):
        for noise in torch.randn(block, 2, particles):
            theta, x, y = step(theta, x, y, noise)
        return theta, x, y

    go = torch.compile(some_steps, dynamic=False)

    @torch.no_grad()
    def run():
        torch.manual_seed(0)
        theta = torch.tensor(e.THETA_START)
        x, y = torch.randn(2, particles)
        for _ in range(steps // block):
            theta, x, y = go(theta, x, y)
        return theta.numpy(), torch.stack([x, y], dim=1).numpy()

    return run


e.main(prepare)
