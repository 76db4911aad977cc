"""JAX at its best: the whole loop in lax.scan, a coordinate an array, derivatives by hand.

Tried and left out, as slower on CPU: Box-Muller instead of the inverse of erf, the generators rbg and unsafe_rbg, sums in one pass (plain or
as one variadic reduction) instead of the reward centred first and one product of a matrix and a vector. Noise for ten steps at a time helps
as long as it stays in the cache.
"""

import experiment as e
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_threefry_partitionable", False)  # faster than the default for many particles


def step(state, noise):
    theta, x, y = state
    weights = [jnp.exp(theta[i] + e.OFFSETS[i] + x * a + y * b) for i, (a, b) in enumerate(e.CENTRES)]
    scale = 1 / sum(weights)
    r = [w * scale for w in weights]
    mean_x = sum(p * a for p, (a, _) in zip(r, e.CENTRES))
    mean_y = sum(p * b for p, (_, b) in zip(r, e.CENTRES))
    (a, b), n = e.REWARD_CENTRE, x.size
    reward = jnp.where(x >= 0, jnp.exp(-((x - a) ** 2 + (y - b) ** 2) / e.REWARD_WIDTH) / e.REWARD_DENOMINATOR, 0)
    covariance = jnp.stack(r) @ (reward - reward.mean()) / (n - 1)
    x = x - e.STEP_SIZE * (x - mean_x) + e.NOISE * noise[0]
    y = y - e.STEP_SIZE * (y - mean_y) + e.NOISE * noise[1]
    return (theta + e.LEARNING_RATE * covariance, x, y), None


def prepare(particles, steps):
    block = 10 if particles <= 10_000 else 1

    def some_steps(state, key):
        return jax.lax.scan(step, state, jax.random.normal(key, (block, 2, particles)))

    @jax.jit
    def run(key):
        start, later = jax.random.split(key)
        x, y = jax.random.normal(start, (2, particles))
        state = jnp.array(e.THETA_START), x, y
        (theta, x, y), _ = jax.lax.scan(some_steps, state, jax.random.split(later, steps // block))
        return theta, jnp.stack([x, y], axis=1)

    return lambda: tuple(np.asarray(v) for v in run(jax.random.key(0)))


e.main(prepare)
