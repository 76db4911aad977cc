"""JAX: the whole chain in lax.scan, a coordinate an array, the score by hand. Two variants of the gradient:

    checkpoint   automatic, each step checkpointed: the path alone is kept
    adjoint      by hand: the path is kept, and a scan back along it makes the sums of all 24 derivatives in one reduction

Noise is drawn for 16 steps at a time, which stays in the cache, and never in the way back: a step is linear in it. The adjoint is run with
XLA's fast mathematics (--xla_cpu_enable_fast_math), which lets it add up with vectors and halves the time; without it 24 separate sums are
faster. Tried and left out, as slower: blocks of 4 or 16 steps checkpointed as one, chunks of 1,000 samples that fit the cache (lax.map), sums as a
product of matrices, unrolled steps.
"""

import os
import sys

if sys.argv[1:] == ["adjoint"]:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_enable_fast_math=true"

import diffusion as d
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_threefry_partitionable", False)  # faster than the default
BLOCK = 16
SCALES = jnp.array(np.exp(-d.TAUS), dtype=jnp.float32)[:, None]
SIX = range(d.COMPONENTS)


def table_of(theta):
    return d.levels(theta, SCALES, jnp)


def responsibilities(level, x, y):
    k, bx, by, p = level
    q = -(x * x + y * y) / 2
    weights = [jnp.exp(k[i] + bx[i] * x + by[i] * y + p[i] * q) for i in SIX]
    return weights, 1 / sum(weights), q


def dot(weights, numbers):
    return sum(w * numbers[i] for i, w in enumerate(weights))


def step(state, inputs):
    (x, y), (level, noise) = state, inputs
    weights, scale, _ = responsibilities(level, x, y)
    bx, by, p = (dot(weights, v) for v in level[1:])
    scale = d.PULL * scale
    return d.GROWTH * x + scale * (bx - p * x) + d.NOISE * noise[0], d.GROWTH * y + scale * (by - p * y) + d.NOISE * noise[1]


def step_back(adjoint, inputs):
    level, (x, y) = inputs
    _, bx, by, p = level
    weights, scale, q = responsibilities(level, x, y)
    r = [w * scale for w in weights]
    cx, cy = d.PULL * adjoint[0], d.PULL * adjoint[1]
    along = cx * x + cy * y
    pulls = [cx * bx[i] + cy * by[i] - p[i] * along for i in SIX]  # g_i . c
    mean = sum(r[i] * pulls[i] for i in SIX)
    rd = [r[i] * (pulls[i] - mean) for i in SIX]
    terms = rd + [rd[i] * x + r[i] * cx for i in SIX] + [rd[i] * y + r[i] * cy for i in SIX] + [rd[i] * q - r[i] * along for i in SIX]
    add = lambda a, b: tuple(u + v for u, v in zip(a, b))
    sums = jax.lax.reduce(tuple(terms), (np.float32(0),) * len(terms), add, (0,))
    spread, mean_p = dot(rd, p), dot(r, p)
    adjoint = (
        d.GROWTH * adjoint[0] + dot(rd, bx) - spread * x - mean_p * cx,
        d.GROWTH * adjoint[1] + dot(rd, by) - spread * y - mean_p * cy,
    )
    return adjoint, tuple(jnp.stack(sums).reshape(4, 6))


def draw(key, samples):
    """The start, and a key for each block of steps."""
    start, later = jax.random.split(key)
    x, y = jax.random.normal(start, (2, samples))
    return (x, y), jax.random.split(later, d.STEPS // BLOCK)


def block_noise(key, samples):
    return jax.random.normal(key, (BLOCK, 2, samples))


def chain(table, key, samples, one_step, keep):
    """The end of the chain, and its path (T, samples) by coordinate if it is kept."""

    def some_steps(state, inputs):
        key, levels = inputs
        return jax.lax.scan(lambda y, i: (one_step(y, i), y if keep else None), state, (levels, block_noise(key, samples)))

    state, keys = draw(key, samples)
    blocks = jax.tree.map(lambda v: v.reshape(-1, BLOCK, 6), table)
    end, path = jax.lax.scan(some_steps, state, (keys, blocks))
    return end, jax.tree.map(lambda v: v.reshape(d.STEPS, samples), path)


def prepare(samples, variant):
    @jax.jit
    def forward(theta, key):
        return jnp.stack(chain(table_of(theta), key, samples, step, False)[0], axis=1)

    @jax.jit
    def checkpoint(theta, key):
        return jax.grad(lambda theta: -chain(table_of(theta), key, samples, jax.checkpoint(step), False)[0][0].mean())(theta)

    @jax.jit
    def adjoint(theta, key):
        table, to_theta = jax.vjp(table_of, theta)
        _, path = chain(table, key, samples, step, True)
        last = jnp.full(samples, -1 / samples), jnp.zeros(samples)
        return to_theta(jax.lax.scan(step_back, last, (table, path), reverse=True)[1])[0]

    def noise():
        state, keys = draw(key, samples)
        normals = jnp.concatenate([block_noise(k, samples) for k in keys])
        return np.stack(state, axis=1), np.asarray(normals).transpose(0, 2, 1)

    theta, key = jnp.array(d.THETA, dtype=jnp.float32), jax.random.key(0)
    gradient = {"checkpoint": checkpoint, "adjoint": adjoint}[variant]
    return d.Rival(lambda: np.asarray(forward(theta, key)), lambda: np.asarray(gradient(theta, key)), noise)


d.main(prepare)
