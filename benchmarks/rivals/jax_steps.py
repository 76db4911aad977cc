"""JAX as the paper's authors write it: a sample a row, automatic derivatives of the potential for each sample (vmap of grad), and a jitted
step that Python calls 5,000 times."""

import experiment as e
import jax
import jax.numpy as jnp
import numpy as np

CENTRES, REWARD_CENTRE = jnp.array(e.CENTRES), jnp.array(e.REWARD_CENTRE)


def potential(x, theta):
    squares = jnp.sum((x - CENTRES) ** 2, axis=1)
    return -jax.nn.logsumexp(jax.nn.log_softmax(theta) - squares / 2)


def reward(x):
    near = jnp.exp(-jnp.sum((x - REWARD_CENTRE) ** 2) / e.REWARD_WIDTH) / e.REWARD_DENOMINATOR
    return jnp.where(x[0] >= 0, near, 0.0)


@jax.jit
def step(theta, x, key):
    key, noise = jax.random.split(key)
    grad_x = jax.vmap(jax.grad(potential, 0), (0, None))(x, theta)
    grad_theta = jax.vmap(jax.grad(potential, 1), (0, None))(x, theta)
    rewards = jax.vmap(reward)(x)
    gradient = (rewards - rewards.mean()) @ grad_theta / (len(x) - 1)  # of -E R
    x = x - e.STEP_SIZE * grad_x + e.NOISE * jax.random.normal(noise, x.shape)
    return theta - e.LEARNING_RATE * gradient, x, key


def prepare(particles, steps):
    def run():
        key, start = jax.random.split(jax.random.key(0))
        theta, x = jnp.array(e.THETA_START), jax.random.normal(start, (particles, 2))
        for _ in range(steps):
            theta, x, key = step(theta, x, key)
        return np.asarray(theta), np.asarray(x)

    return run


e.main(prepare)
