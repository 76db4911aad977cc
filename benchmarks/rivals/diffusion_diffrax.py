"""diffrax: diffeqsolve with its Euler solver, the gradient by RecursiveCheckpointAdjoint. A coordinate is an array, the score by hand.

The Brownian motion is a path of our own: the increment of a step is drawn from a key made of its number. diffrax's UnsafeBrownianPath does much
the same, but cannot be differentiated backwards, and its VirtualBrownianTree takes several times as long.
"""

import diffrax
import diffusion as d
import jax
import jax.numpy as jnp
import lineax
import numpy as np

jax.config.update("jax_threefry_partitionable", False)  # faster than the default
CHECKPOINTS = d.STEPS  # of all steps: fewer take less memory and more time


class Increments(diffrax.AbstractPath):
    """Increments of sqrt(2) B over the steps."""

    key: jax.Array
    samples: int
    t0 = 0.0
    t1 = d.HORIZON

    def evaluate(self, t0, t1=None, left=True):
        x, y = d.NOISE * self.normals(jnp.round(t0 / d.H).astype(int))
        return x, y

    def normals(self, step):
        return jax.random.normal(jax.random.fold_in(self.key, step), (2, self.samples))


def drift(t, state, theta):
    x, y = state
    k, bx, by, p = d.levels(theta, jnp.exp(t - d.HORIZON), jnp)
    q = -(x * x + y * y) / 2
    weights = [jnp.exp(k[i] + bx[i] * x + by[i] * y + p[i] * q) for i in range(d.COMPONENTS)]
    dot = lambda numbers: sum(w * numbers[i] for i, w in enumerate(weights))
    scale, pull = 2 / sum(weights), dot(p)
    return x + scale * (dot(bx) - pull * x), y + scale * (dot(by) - pull * y)


def prepare(samples, variant):
    theta, key = jnp.array(d.THETA, dtype=jnp.float32), jax.random.key(0)
    increments = Increments(jax.random.fold_in(key, 1), samples)
    identity = lineax.IdentityLinearOperator((jax.ShapeDtypeStruct((samples,), jnp.float32),) * 2)
    terms = diffrax.MultiTerm(diffrax.ODETerm(drift), diffrax.ControlTerm(lambda t, y, theta: identity, increments))

    def draw():
        x, y = jax.random.normal(key, (2, samples))
        return x, y

    def end(theta, adjoint):
        return diffrax.diffeqsolve(
            terms, diffrax.Euler(), 0.0, d.HORIZON, d.H, draw(), theta, max_steps=d.STEPS, adjoint=adjoint, throw=False
        ).ys

    @jax.jit
    def forward(theta):
        x, y = end(theta, diffrax.ForwardMode())
        return jnp.stack([x[-1], y[-1]], axis=1)

    @jax.jit
    @jax.grad
    def gradient(theta):
        return -end(theta, diffrax.RecursiveCheckpointAdjoint(CHECKPOINTS))[0][-1].mean()

    def noise():
        normals = np.stack([increments.normals(m) for m in range(d.STEPS)])
        return np.stack(draw(), axis=1), normals.transpose(0, 2, 1)

    return d.Rival(lambda: np.asarray(forward(theta)), lambda: np.asarray(gradient(theta)), noise)


d.main(prepare)
