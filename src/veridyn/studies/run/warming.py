"""Machine code made ahead: what identifying, predicting and simulating a machine needs, compiled once into the cache on disk."""

from __future__ import annotations

import numpy as np

from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.dynamics.regressor import regressor
from veridyn.mechanics.tree.loops.assembly import assembled
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.progress import Progress, silent

SAMPLES = 64  # one block: what counts is that the code is made


def warm(machine: Machine, progress: Progress = silent) -> None:
    """Compile the equations of a machine: its rows for identification, the regressor, inverse dynamics and, of open ones, forward dynamics.

    Values of parameters do not enter the code. Elements do: a study that adds some to its model has code of its own.
    """
    values = np.where(np.isfinite(machine.parameters.values), machine.parameters.values, machine.parameters.typical)
    known = machine.with_parameters(values)
    m = some_motion(machine)
    steps = [
        ("equations of the rows", lambda: observation(machine, m, settings=IdentifySettings(engine="compiled"))),
        ("regressor", lambda: regressor(machine, m, engine="compiled")),
        ("inverse dynamics", lambda: inverse_dynamics(known, m, engine="compiled")),
    ]
    if not machine.closed and machine.base == "fixed":
        steps.append(("forward dynamics", lambda: forward_dynamics(known, m, engine="compiled")))
    for k, (name, make) in enumerate(steps):
        progress(f"compiling: {name}", float(k), float(len(steps)))
        make()
    progress("compiling", float(len(steps)), float(len(steps)))


def some_motion(machine: Machine) -> Motion:
    """A few samples that a machine can take: near where it is assembled, where it has loops, and anywhere otherwise."""
    t, rng = 0.01 * np.arange(float(SAMPLES)), np.random.default_rng(0)
    wave = 1e-3 * np.sin(3.0 * t)[:, None]
    if machine.closed:
        own = list(machine.independent)
        x = assembled(machine).home[own] + wave
        rates = 3e-3 * np.cos(3.0 * t)[:, None] + 0.0 * x, -9.0 * wave + 0.0 * x
        m = closed_motion(machine, t, x, *rates, at=[machine.coordinates[k] for k in own])
        return Motion(t, m.q, m.qd, m.qdd, forces=_forces(machine, rng), signals=_signals(machine))
    q, qd, qdd = rng.normal(size=(3, SAMPLES, machine.n))
    base = None if machine.base == "fixed" else BaseMotion(*rng.normal(size=(4, SAMPLES, 3)))
    return Motion(t, q, qd, qdd, base, forces=_forces(machine, rng), signals=_signals(machine))


def _forces(machine: Machine, rng: np.random.Generator) -> np.ndarray:
    return np.where(machine.actuated, rng.normal(size=(SAMPLES, machine.n)), 0.0)


def _signals(machine: Machine) -> dict[str, np.ndarray]:
    return {signal: np.ones(SAMPLES) for e in machine.elements for signal in e.signals}
