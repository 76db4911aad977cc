"""The experiment that all rivals run, in NumPy alone: constants, the exact reward, and what is timed.

Six wells c_i, samples x in the plane, theta the logarithms of their weights, s = softmax(theta), r_i the responsibilities of the wells for x:

    V(x, theta) = -log sum_i s_i exp(-|x - c_i|^2 / 2)       r_i = s_i exp(-|x - c_i|^2 / 2) / sum
    R(x)        = 1[x_1 >= 0] exp(-|x - m|^2 / 20) / 2.5

Both lines of a step read the samples and the theta that it begins with:

    x_k    <- x_k - g (x_k - sum_i r_i c_i) + sqrt(2 g) z_k
    theta  <- theta + eta Cov[R, r]          = eta / (n - 1) (sum_k R_k r_k - sum_k R_k sum_k r_k / n)

since grad_theta V = s - r and s is the same for all samples. |x|^2 is common to all wells and cancels in r, which leaves linear forms:
r_i proportional to exp(theta_i + x . c_i - |c_i|^2 / 2).

Under pi*(theta), a mixture of N(c_i, I), with w = 20: the product of N(c, 1) and exp(-(u - m)^2 / w) is sqrt(w / (w + 2))
exp(-(c - m)^2 / (w + 2)) times the density of N((w c + 2 m) / (w + 2), w / (w + 2)), and so

    E R = sum_i s_i / 2.5  w / (w + 2)  exp(-|c_i - m|^2 / (w + 2))  Phi((w c_i1 + 2 m_1) / sqrt(w (w + 2))).
"""

import math
import os
import statistics
import sys
import time

import numpy as np

PARTICLES, STEPS = 1000, 5000
STEP_SIZE, LEARNING_RATE = 0.2, 0.1
NOISE = math.sqrt(2 * STEP_SIZE)
ROOT = 2 * math.sqrt(3)
CENTRES = [(4.0, 0.0), (2.0, ROOT), (-2.0, ROOT), (-4.0, 0.0), (-2.0, -ROOT), (2.0, -ROOT)]
OFFSETS = [-(a * a + b * b) / 2 for a, b in CENTRES]
REWARD_CENTRE, REWARD_WIDTH, REWARD_DENOMINATOR = (4.0, 3.8), 20.0, 2.5
THETA_START = [1.5, 0.0, 1.5, 0.0, 1.5, 0.0]
THETA_OPT = [1.828, 5.821, -0.602, -1.014, -0.665, -0.869]  # for rivals that only sample


def exact_reward(theta):
    s = np.exp(theta - np.max(theta))
    s /= s.sum()
    w, m = REWARD_WIDTH, REWARD_CENTRE
    total = 0.0
    for weight, (a, b) in zip(s, CENTRES):
        right = 0.5 * math.erfc(-(w * a + 2 * m[0]) / math.sqrt(2 * w * (w + 2)))
        total += weight * math.exp(-((a - m[0]) ** 2 + (b - m[1]) ** 2) / (w + 2)) * right
    return float(total * w / (w + 2) / REWARD_DENOMINATOR)


def mean_reward(x):
    """Of samples, a row each."""
    d = ((x - REWARD_CENTRE) ** 2).sum(axis=1)
    return float(np.mean((x[:, 0] >= 0) * np.exp(-d / REWARD_WIDTH)) / REWARD_DENOMINATOR)


def main(prepare):
    """prepare(particles, steps) gives a function that makes so many steps from the start and returns (theta, samples, ...) as NumPy arrays: of
    theta the last or a row for each step, and whatever else the rival logs.

    ns PARTICLES   prints nanoseconds for each particle and step: the median of 7, after two calls that do not count
    run FOLDER     the whole experiment; saves theta.npy, samples.npy, and log-0.npy, ... for the rest
    """
    if sys.argv[1] == "ns":
        particles = int(sys.argv[2])
        steps = 1000 if particles <= 10_000 else 50
        go = prepare(particles, steps)
        times = []
        for _ in range(2 + 7):
            begin = time.perf_counter()
            go()
            times.append(time.perf_counter() - begin)
        print(f"{statistics.median(times[2:]) / particles / steps * 1e9:.3f}")
    else:
        theta, samples, *logs = prepare(PARTICLES, STEPS)()
        os.makedirs(sys.argv[2], exist_ok=True)
        names = ["theta", "samples"] + [f"log-{i}" for i in range(len(logs))]
        for name, values in zip(names, [theta, samples, *logs]):
            np.save(os.path.join(sys.argv[2], f"{name}.npy"), values)
