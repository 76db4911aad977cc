"""blackjax: its unadjusted Langevin kernel (sgld with the full gradient) in lax.scan, sampling alone, at theta_opt.

The whole population is one position, a coordinate an array, with the derivative by hand, instead of vmap over single chains.
"""

import blackjax
import experiment as e
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_threefry_partitionable", False)
THETA = np.array(e.THETA_OPT)


def log_density_gradient(position, _):
    x, y = position
    weights = [jnp.exp(THETA[i] + e.OFFSETS[i] + x * a + y * b) for i, (a, b) in enumerate(e.CENTRES)]
    scale = 1 / sum(weights)
    mean_x = scale * sum(w * a for w, (a, _) in zip(weights, e.CENTRES))
    mean_y = scale * sum(w * b for w, (_, b) in zip(weights, e.CENTRES))
    return mean_x - x, mean_y - y


def prepare(particles, steps):
    sampler = blackjax.sgld(log_density_gradient)

    @jax.jit
    def run(key):
        start, later = jax.random.split(key)
        x, y = jax.random.normal(start, (2, particles))
        move = lambda position, key: (sampler.step(key, position, (), e.STEP_SIZE), None)
        (x, y), _ = jax.lax.scan(move, sampler.init((x, y)), jax.random.split(later, steps))
        return jnp.stack([x, y], axis=1)

    return lambda: (THETA, np.asarray(run(jax.random.key(0))))


e.main(prepare)
