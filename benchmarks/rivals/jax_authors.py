"""JAX as the paper's authors structure their public program, google-deepmind/implicit_diffusion, in its default settings; written anew.

A sample a row, automatic derivatives of the potential for each (vmap of grad), the logarithm of a plain sum. Each step is a call from Python for
each of: the keys, the samples, a reference batch of one sample, the learning rate, theta, and three entries of the log. theta is moved by
the new samples, and the covariance divided by n. The gradient to the reference batch has weight 0 in that experiment, and is computed and
logged all the same.
"""

import sys

import experiment as e
import jax
import jax.numpy as jnp
import numpy as np

REFERENCE_BATCH, REFERENCE_WEIGHT, PRINT_EVERY = 1, 0.0, 500


def potential(x, theta):
    s = jax.nn.softmax(theta)
    return -jnp.log(sum(s[i] * jnp.exp(-jnp.sum((x - jnp.array(c)) ** 2) / 2) for i, c in enumerate(e.CENTRES)))


def reward(x):
    (a, b), w = e.REWARD_CENTRE, e.REWARD_WIDTH
    return (x[0] >= 0).astype(float) * jnp.exp(-((x[0] - a) ** 2) / w - (x[1] - b) ** 2 / w) / e.REWARD_DENOMINATOR


by_x = jax.vmap(jax.grad(potential, 0), (0, None))
by_theta = jax.vmap(jax.grad(potential, 1), (0, None))
rewards = jax.jit(jax.vmap(reward))


@jax.jit
def move_samples(key, x, theta):
    return x - e.STEP_SIZE * by_x(x, theta) + e.NOISE * jax.random.normal(key, x.shape)


@jax.jit
def draw_reference(key):
    which, noise = jax.random.split(key)
    well = jax.random.choice(which, len(e.CENTRES), (REFERENCE_BATCH,), p=jax.nn.softmax(jnp.array(e.THETA_START)))
    return jnp.array(e.CENTRES)[well] + jax.random.normal(noise, (REFERENCE_BATCH, 2))


@jax.jit
def learning_rate(step):
    return e.LEARNING_RATE + 0 * step


@jax.jit
def move_theta(x, theta, reference, rate):
    mean = jnp.mean(by_theta(x, theta), axis=0)
    to_reference = mean - jnp.mean(by_theta(reference, theta), axis=0)  # descent of KL(reference || law)
    covariance = rewards(x) @ by_theta(x, theta) / len(x) - jnp.mean(rewards(x)) * mean
    return theta + rate * (REFERENCE_WEIGHT * to_reference - covariance), to_reference


def prepare(particles, steps):
    def run():
        keys = jax.random.split(jax.random.PRNGKey(0), 3)
        theta, x = jnp.array(e.THETA_START), jax.random.normal(keys[1], (particles, 2))
        log_reward, log_gradient, log_theta = [], [], []
        for step in range(steps):
            keys = jax.random.split(keys[0], 3)
            x = move_samples(keys[1], x, theta)
            reference = draw_reference(keys[2])
            theta, to_reference = move_theta(x, theta, reference, learning_rate(step))
            log_reward.append(jnp.mean(rewards(x)))
            log_gradient.append(jnp.linalg.norm(to_reference))
            log_theta.append(theta)
            if step % PRINT_EVERY == 0:
                print(f"{step} of {steps}: reward {log_reward[-1]:.3f}, gradient to the reference {log_gradient[-1]:.3f}", file=sys.stderr)
        return np.array(log_theta), np.asarray(x), np.array(log_reward), np.array(log_gradient)

    return run


e.main(prepare)
