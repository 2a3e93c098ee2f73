"""Machine code made ahead: what identifying, predicting and simulating a tree needs, compiled once into the cache on disk."""

from __future__ import annotations

import numpy as np

from veridyn.identify.observation import observation
from veridyn.mechanics.forward import forward_dynamics
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.loops.assembly import assembled
from veridyn.mechanics.loops.closure import closed_motion
from veridyn.mechanics.regressor import regressor
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import BaseMotion, Motion
from veridyn.progress import Progress, silent

SAMPLES = 64  # one block: what counts is that the code is made


def warm(tree: Tree, progress: Progress = silent) -> None:
    """Compile the equations of a tree: its rows for identification, the regressor, inverse dynamics and, of open trees, forward dynamics.

    Values of parameters do not enter the code. Elements do: a study that adds some to its model has code of its own.
    """
    values = np.where(np.isfinite(tree.parameters.values), tree.parameters.values, tree.parameters.typical)
    known = tree.with_parameters(values)
    m = some_motion(tree)
    steps = [
        ("equations of the rows", lambda: observation(tree, m, engine="compiled")),
        ("regressor", lambda: regressor(tree, m, engine="compiled")),
        ("inverse dynamics", lambda: inverse_dynamics(known, m, engine="compiled")),
    ]
    if not tree.loops and tree.base == "fixed":
        steps.append(("forward dynamics", lambda: forward_dynamics(known, m, engine="compiled")))
    for k, (name, make) in enumerate(steps):
        progress(f"compiling: {name}", float(k), float(len(steps)))
        make()
    progress("compiling", float(len(steps)), float(len(steps)))


def some_motion(tree: Tree) -> Motion:
    """A few samples that a tree can take: near where it is assembled, where it has loops, and anywhere otherwise."""
    t, rng = 0.01 * np.arange(float(SAMPLES)), np.random.default_rng(0)
    wave = 1e-3 * np.sin(3.0 * t)[:, None]
    if tree.loops:
        own = list(tree.independent)
        x = assembled(tree).home[own] + wave
        rates = 3e-3 * np.cos(3.0 * t)[:, None] + 0.0 * x, -9.0 * wave + 0.0 * x
        m = closed_motion(tree, t, x, *rates, at=[tree.coordinates[k] for k in own])
        return Motion(t, m.q, m.qd, m.qdd, forces=_forces(tree, rng), signals=_signals(tree))
    q, qd, qdd = rng.normal(size=(3, SAMPLES, tree.n))
    base = None if tree.base == "fixed" else BaseMotion(*rng.normal(size=(4, SAMPLES, 3)))
    return Motion(t, q, qd, qdd, base, forces=_forces(tree, rng), signals=_signals(tree))


def _forces(tree: Tree, rng: np.random.Generator) -> np.ndarray:
    return np.where(tree.actuated, rng.normal(size=(SAMPLES, tree.n)), 0.0)


def _signals(tree: Tree) -> dict[str, np.ndarray]:
    return {signal: np.ones(SAMPLES) for e in tree.elements for signal in e.signals}
