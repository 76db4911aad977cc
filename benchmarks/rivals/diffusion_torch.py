"""torch: a loop over steps, a coordinate an array, score and adjoint by hand, no gradient tape; the path is kept.

Eight steps are compiled as one (torch.compile), forward and back; noise is drawn outside of them, for each eight at once.
"""

import diffusion as d
import numpy as np
import torch

BLOCK = 8
SIX = range(d.COMPONENTS)


def responsibilities(level, x, y):
    k, bx, by, p = level
    q = -(x * x + y * y) / 2
    weights = [torch.exp(k[i] + bx[i] * x + by[i] * y + p[i] * q) for i in SIX]
    scale = 1 / sum(weights)
    return [w * scale for w in weights], q


def dot(weights, numbers):
    return sum(w * numbers[i] for i, w in enumerate(weights))


def some_steps(levels, y, noise):
    """levels (BLOCK, 4, 6), y (2, n), noise (BLOCK, 2, n): the states before each step, and the last."""
    path = [y]
    for level, z in zip(levels, noise):
        x, y = path[-1]
        r, _ = responsibilities(level, x, y)
        p = dot(r, level[3])
        path.append(
            torch.stack([
                d.GROWTH * x + d.PULL * (dot(r, level[1]) - p * x) + d.NOISE * z[0],
                d.GROWTH * y + d.PULL * (dot(r, level[2]) - p * y) + d.NOISE * z[1],
            ])
        )
    return path


def only_steps(levels, y, noise):
    return some_steps(levels, y, noise)[-1]


def kept_steps(levels, y, noise):
    *path, y = some_steps(levels, y, noise)
    return torch.stack(path), y


def steps_back(levels, path, adjoint):
    """The adjoint before the steps, and the sums (BLOCK, 4, 6) by the levels."""
    sums = []
    for level, (x, y) in zip(reversed(levels.unbind()), reversed(path.unbind())):
        _, bx, by, p = level
        r, q = responsibilities(level, x, y)
        cx, cy = d.PULL * adjoint[0], d.PULL * adjoint[1]
        along = cx * x + cy * y
        pulls = [cx * bx[i] + cy * by[i] - p[i] * along for i in SIX]
        mean = sum(r[i] * pulls[i] for i in SIX)
        rd = [r[i] * (pulls[i] - mean) for i in SIX]
        terms = rd + [rd[i] * x + r[i] * cx for i in SIX] + [rd[i] * y + r[i] * cy for i in SIX] + [rd[i] * q - r[i] * along for i in SIX]
        sums.append(torch.stack([t.sum() for t in terms]).reshape(4, 6))
        spread, mean_p = dot(rd, p), dot(r, p)
        adjoint = torch.stack([
            d.GROWTH * adjoint[0] + dot(rd, bx) - spread * x - mean_p * cx,
            d.GROWTH * adjoint[1] + dot(rd, by) - spread * y - mean_p * cy,
        ])
    return adjoint, torch.stack(sums[::-1])


def prepare(samples, variant):
    compiled = (lambda f: f) if variant == "eager" else (lambda f: torch.compile(f, dynamic=False))
    only, kept, back = compiled(only_steps), compiled(kept_steps), compiled(steps_back)
    theta = torch.tensor(d.THETA, dtype=torch.float32)
    scales = torch.tensor(np.exp(-d.TAUS), dtype=torch.float32)[:, None]

    def table_of(theta):
        return torch.stack(d.levels(theta, scales, torch), dim=1).split(BLOCK)

    def draw():
        torch.manual_seed(0)
        return torch.randn(2, samples)

    def block_noise():
        return torch.randn(BLOCK, 2, samples)

    @torch.no_grad()
    def forward():
        y = draw()
        for levels in table_of(theta):
            y = only(levels, y, block_noise())
        return y.T.numpy()

    def gradient():
        leaf = theta.clone().requires_grad_()
        with torch.enable_grad():
            table = table_of(leaf)
        with torch.no_grad():
            path, y = [], draw()
            for levels in table:
                states, y = kept(levels.detach(), y, block_noise())
                path.append(states)
            adjoint, sums = torch.zeros_like(y), []
            adjoint[0] = -1 / samples
            for levels in reversed(table):
                adjoint, s = back(levels.detach(), path.pop(), adjoint)
                sums.append(s)
        torch.autograd.backward(torch.cat(table), torch.cat(sums[::-1]))
        return leaf.grad.numpy()

    def noise():
        start = draw()
        normals = torch.cat([block_noise() for _ in range(d.STEPS // BLOCK)])
        return start.T.numpy(), normals.transpose(1, 2).numpy()

    return d.Rival(forward, gradient, noise)


d.main(prepare)
