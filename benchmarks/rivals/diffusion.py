"""The denoising diffusion that the rivals of the second table run, in NumPy alone: constants, reference, verification, and what is timed.

Data in the plane from six Gaussians, w_i N(m_i, e^(2 rho_i) I); theta = (logits of w, means, rho), 24 numbers. At noise time tau, a = e^-tau,
their law is a mixture of N(a m_i, I / P_i) with 1 / P_i = a^2 e^(2 rho_i) + 1 - a^2. With b_i = a P_i m_i and k_i = log w_i + log P_i -
|b_i|^2 / (2 P_i), its responsibilities and its score are

    r_i proportional to exp(k_i + b_i . y - P_i |y|^2 / 2)         g_i = b_i - P_i y         s = sum_i r_i g_i

The chain is Euler-Maruyama for the reverse SDE dY = (Y + 2 s) dt + sqrt(2) dB, T equal steps h from tau = 3 to 0, and the objective is -E of the
first coordinate at its end:

    y_0 ~ N(0, I)         y <- (1 + h) y + 2 h s(y, tau) + sqrt(2 h) xi,     xi ~ N(0, I)

Its exact gradient along a path, from A = (-1, 0) at the end back to the start: c = 2 h A, d_i = g_i . c - s . c, and

    by k_i   r_i d_i          by b_i   r_i (d_i y + c)          by P_i   -r_i (d_i |y|^2 / 2 + c . y)
    A <- (1 + h) A + sum_i r_i (d_i g_i - P_i c)

where the sums over samples and the chain rule from (k, b, P) of each step to theta remain.
"""

import ctypes
import gc
import math
import statistics
import sys
import time

import numpy as np

HORIZON, STEPS, COMPONENTS = 3.0, 256, 6
H = HORIZON / STEPS
GROWTH, PULL, NOISE = 1 + H, 2 * H, math.sqrt(2 * H)
TAUS = HORIZON - H * np.arange(STEPS)
LOGITS = np.zeros(COMPONENTS)
MEANS = np.array([(4 * math.cos(i), 4 * math.sin(i)) for i in range(COMPONENTS)])
RHO = np.full(COMPONENTS, -0.3)
THETA = np.concatenate([LOGITS, MEANS.ravel(), RHO])


def split(theta):
    return theta[:6], theta[6:18].reshape(6, 2), theta[18:]


def levels(theta, a=np.exp(-TAUS)[:, None], xp=np):
    """(k, b_x, b_y, P) of every step, a row each: (T, 6). xp is numpy or what has its functions."""
    logits, means, rho = split(theta)
    p = 1 / (a * a * xp.exp(2 * rho) + 1 - a * a)
    x, y = a * p * means[:, 0], a * p * means[:, 1]
    return logits - xp.log(xp.exp(logits).sum()) + xp.log(p) - (x * x + y * y) / (2 * p), x, y, p


# --- The reference -------------------------------------------------------------------------------------------------------------------


def mixture(level, y):
    """r, g and s at samples y (n, 2)."""
    k, bx, by, p = level
    exponents = k + y @ np.stack([bx, by]) - p * (y * y).sum(axis=1, keepdims=True) / 2
    r = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    r /= r.sum(axis=1, keepdims=True)
    g = np.stack([bx, by], axis=1) - p[:, None] * y[:, None]  # (n, 6, 2)
    return r, g, np.einsum("ni,nij->nj", r, g)


def reference(start, normals):
    """Samples and gradient in double precision for the noise of a rival: start (n, 2), normals (T, n, 2)."""
    a, n = np.exp(-TAUS), len(start)
    table = levels(THETA)
    path = [start.astype(np.float64)]
    for m in range(STEPS):
        _, _, s = mixture([v[m] for v in table], path[-1])
        path.append(GROWTH * path[-1] + PULL * s + NOISE * normals[m])
    adjoint = np.tile([-1.0, 0.0], (n, 1))
    gradient = np.zeros((COMPONENTS, 4))
    for m in reversed(range(STEPS)):
        y = path[m]
        r, g, s = mixture([v[m] for v in table], y)
        c = PULL * adjoint
        d = np.einsum("nij,nj->ni", g, c) - (s * c).sum(axis=1, keepdims=True)
        p, scaled = table[3][m], a[m] * MEANS
        by_k = (r * d).sum(axis=0)
        by_b = np.einsum("ni,nj->ij", r * d, y) + np.einsum("ni,nj->ij", r, c)
        by_p = -(r * (d * (y * y).sum(axis=1, keepdims=True) / 2 + (c * y).sum(axis=1, keepdims=True))).sum(axis=0)
        by_b -= by_k[:, None] * scaled
        by_p += by_k * (1 / p + (scaled * scaled).sum(axis=1) / 2) + (by_b * scaled).sum(axis=1)
        gradient[:, 0] += by_k
        gradient[:, 1:3] += by_b * (a[m] * p)[:, None]
        gradient[:, 3] += by_p * -2 * a[m] ** 2 * np.exp(2 * RHO) * p * p
        adjoint = GROWTH * adjoint + np.einsum("ni,nij->nj", r * d, g) - (r @ p)[:, None] * c
    gradient /= n
    return path[-1], np.concatenate([gradient[:, 0], gradient[:, 1:3].ravel(), gradient[:, 3]])


def relative(value, exact):
    return float(np.linalg.norm(value - exact) / np.linalg.norm(exact))


# --- What is verified and timed ------------------------------------------------------------------------------------------------------


def verify_law(x):
    """Means and second moments of samples against those of the data, within 5 standard errors: what 256 steps and the start from N(0, I) bias
    is well below one of them for 10,000 samples."""
    data = np.concatenate([MEANS.mean(axis=0), (MEANS**2).mean(axis=0) + np.mean(np.exp(2 * RHO)), [np.mean(MEANS[:, 0] * MEANS[:, 1])]])
    seen = np.concatenate([x, x * x, x[:, :1] * x[:, 1:]], axis=1)
    off = np.abs(seen.mean(axis=0) - data) / (seen.std(axis=0) / math.sqrt(len(x)))
    if not off.max() < 5:
        sys.exit(f"the law of the samples is wrong: moments are off by {off} standard errors")


def gradient_error(rival):
    """Of a rival's gradient to the exact one of the same noise, relative to its norm; its samples must be those of that noise."""
    x, gradient = rival.reference(*rival.noise())
    off = float(np.abs(rival.forward() - x).mean())
    if not off < 1e-3:
        sys.exit(f"samples differ from those of the same noise in double precision by {off}")
    error = relative(rival.gradient(), gradient)
    if not error < 0.5:
        sys.exit(f"the gradient is wrong: {error}")
    return error


class Rival:
    """forward() gives samples (n, 2) and gradient() the 24 derivatives, as NumPy arrays and each time for the same noise, which noise() tells:
    the start (n, 2) and the normals (T, n, 2). reference(start, normals) has the exact samples and gradient of what it computes."""

    def __init__(self, forward, gradient, noise, reference=reference):
        self.forward, self.gradient, self.noise, self.reference = forward, gradient, noise, reference


def nanoseconds(go, samples):
    """For each sample and step: the median of 7, after two calls that do not count."""
    times = []
    for _ in range(2 + 7):
        begin = time.perf_counter()
        go()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[2:]) / samples / STEPS * 1e9


def extra_megabytes(go):
    """Peak of the resident memory in a call beyond what there is before it; what was freed before is given back first, so that it cannot serve
    unseen. The kernel sets its counter of the peak back on request (proc(5), clear_refs)."""

    def kilobytes(name):
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(name))

    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = kilobytes("VmRSS")
    go()
    return (kilobytes("VmHWM") - before) / 1024


def main(prepare):
    """prepare(samples, variant) gives a Rival. Its file is called with a variant, or nothing where there is one way only, and prints, once it is
    verified: ns forward for 1,000 and 10,000 samples, ns of the gradient for both, extra memory for 10,000 in MB, error of the gradient."""
    variant = sys.argv[1] if len(sys.argv) > 1 else ""
    small, large = prepare(1000, variant), prepare(10_000, variant)
    error = gradient_error(small)
    verify_law(large.forward())
    large.gradient()
    memory = extra_megabytes(large.gradient)  # before anything is repeated: allocators learn to keep what they are given
    forward = [nanoseconds(rival.forward, n) for rival, n in ((small, 1000), (large, 10_000))]
    gradient = [nanoseconds(rival.gradient, n) for rival, n in ((small, 1000), (large, 10_000))]
    print(*(f"{v:.2f}" for v in forward + gradient), f"{memory:.1f}", f"{error:.1e}")
