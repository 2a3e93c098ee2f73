"""The poses that a log holds, for a live view: columns matched to coordinates by name, brought to one clock.

For the eye only: values are interpolated linearly, also across gaps, and nothing is filtered.

The ghost beside the recording is where a model says that the machine goes under the measured forces.
From the recorded state at the beginning of every `horizon`, forward dynamics under the recorded forces is integrated to its end by the
classical Runge-Kutta method; then it begins again. All horizons are integrated at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, FileError, VeridynError
from veridyn.files.log.load import Survey, survey
from veridyn.files.units import convert
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.studies.config.guessing import Guess, position_guesses, time_column, time_unit
from veridyn.view.live import LiveRecording, Posable

RATE = 60.0  # poses a second
HORIZON_S = 0.5
STEPS = 4  # of the integration from one pose to the next
FARTHEST = 50.0  # rad or m from the recording: beyond it a prediction is no longer shown


def recorded(machine: Posable, model: Machine, file: Path) -> tuple[LiveRecording, tuple[Guess, ...]]:
    """The poses of a machine in a log, and which columns they were taken from."""
    seen = survey(file)
    natural = model.formulation == "natural"
    guesses = _by_name(machine, model, seen) if natural else position_guesses(model, seen)
    found = {g.channel.removeprefix("q."): g for g in guesses}
    missing = [c for c in machine.coordinates if c not in found]
    if missing:
        what = "these coordinates have no column."
        hint = f"Call it q.{missing[0]}, or {missing[0]}. Columns: {', '.join(list(seen.columns)[:20])}."
        raise FileError(Fault(what, f"machine '{machine.name}'", found=", ".join(missing), hint=hint), str(file))
    used = [found[c] for c in machine.coordinates]
    clocks = [_clock(seen, g.column) for g in used]
    values = [convert(seen.columns[g.column], g.unit, _unit(model, c)) for c, g in zip(machine.coordinates, used)]
    poses = _together(file, machine.coordinates, clocks, values)
    if natural:
        return poses, tuple(used)
    forces = [
        g for g in position_guesses(model, seen, "force") if g.channel.removeprefix("force.") in model.coordinates
    ]
    acting = _forces(model, seen, forces, poses.t)
    ghost = None if acting is None or model.closed else predicted_poses(model, poses.t, poses.poses, acting)
    return replace(poses, forces=acting, ghost=ghost), (*used, *forces)


def _forces(machine: Machine, seen: Survey, used: Sequence[Guess], clock: Array) -> Array | None:
    """Forces (N, n) on the clock of the poses, NaN for coordinates that have none; None where no coordinate has."""
    found = np.full((len(clock), machine.n), np.nan)
    for g in used:
        k = machine.coordinates.index(g.channel.removeprefix("force."))
        unit = "N*m" if machine.coordinate_kinds[k] == "turning" else "N"
        t, x = _clock(seen, g.column), np.asarray(convert(seen.columns[g.column], g.unit, unit), dtype=np.float64)
        there = np.isfinite(t) & np.isfinite(x)
        if there.sum() > 1:
            order = np.argsort(t[there], kind="stable")
            found[:, k] = np.interp(clock, t[there][order], x[there][order])
    return found if np.isfinite(found).any() else None


def _by_name(machine: Posable, model: Machine, seen: Survey) -> list[Guess]:
    named = {c: n for c in machine.coordinates for n in (f"q.{c}", c) if n in seen.columns}
    return [Guess(f"q.{c}", n, seen.units.get(n) or _unit(model, c), "") for c, n in named.items()]


def _unit(model: Machine, coordinate: str) -> str:
    if model.formulation == "natural":
        return mechanism_of(model).unit_of(coordinate)
    return "rad" if model.coordinate_kinds[model.coordinates.index(coordinate)] == "turning" else "m"


def _clock(seen: Survey, column: str) -> Array:
    """Times of a column in s."""
    if seen.clocks:
        return seen.clocks[column]
    time = time_column(seen.columns)
    if time not in seen.columns:
        raise FileError(
            "it has no column of times.", hint=f"Columns: {', '.join(seen.columns)}.", source=str(seen.file)
        )
    return convert(seen.columns[time], time_unit(time, seen.columns, seen.units)[0], "s")


def _together(file: Path, names: Sequence[str], clocks: Sequence[Array], values: Sequence[Array]) -> LiveRecording:
    kept = []
    for name, t, x in zip(names, clocks, values):
        whole = np.isfinite(t) & np.isfinite(x)
        if whole.sum() < 2:
            raise FileError("it holds less than two samples.", where=f"coordinate '{name}'", source=str(file))
        order = np.argsort(t[whole], kind="stable")
        kept.append((t[whole][order], x[whole][order]))
    start, end = max(t[0] for t, _ in kept), min(t[-1] for t, _ in kept)
    if end <= start:
        raise FileError("its channels have no time in common.", found=f"{start:.6g} s to {end:.6g} s", source=str(file))
    clock = np.linspace(start, end, max(2, round((end - start) * RATE) + 1))
    return LiveRecording(clock, np.column_stack([np.interp(clock, t, x) for t, x in kept]))


def predicted_poses(machine: Machine, t: Array, q: Array, forces: Array) -> Array | None:
    """Poses (N, n) on the clock `t` (N,), evenly spaced; None where the model cannot predict: loops, a free base, forces not known.

    `q` and `forces` (N, n). Forces of joints without a motor are zero.
    """
    passive = ~np.array(machine.actuated, dtype=bool)
    acting = np.where(passive, 0.0, forces)
    if (
        machine.closed
        or machine.base == "free"
        or machine.prescribed
        or machine.states
        or not np.isfinite(acting).all()
    ):
        return None
    h = float(np.median(np.diff(t)))
    size = max(2, round(HORIZON_S / h))
    starts = np.arange(0, len(t), size)
    qd = np.gradient(q, t, axis=0, edge_order=2)
    found = q.copy()
    x, v = q[starts].copy(), qd[starts].copy()
    try:
        for k in range(1, size):
            before, after = np.minimum(starts + k - 1, len(t) - 1), np.minimum(starts + k, len(t) - 1)
            x, v = _moved(machine, x, v, acting[before], acting[after], h)
            inside = starts + k < len(t)
            found[(starts + k)[inside]] = x[inside]
    except VeridynError:
        return None
    off = ~np.isfinite(found) | (np.abs(found - q) > FARTHEST)
    return np.where(off, q, found)


def _moved(machine: Machine, q: Array, qd: Array, f0: Array, f1: Array, h: float) -> tuple[Array, Array]:
    """The states (W, n) a time h later under forces that go straight from f0 to f1."""
    step = h / STEPS

    def accelerations(share: float, x: Array, v: Array) -> Array:
        m = Motion(np.arange(len(x), dtype=np.float64), x, v, np.zeros_like(x), forces=f0 + share * (f1 - f0))
        return np.asarray(forward_dynamics(machine, m).qdd)

    for k in range(STEPS):
        now, half, then = k / STEPS, (k + 0.5) / STEPS, (k + 1) / STEPS
        a1 = accelerations(now, q, qd)
        a2 = accelerations(half, q + step / 2 * qd, qd + step / 2 * a1)
        a3 = accelerations(half, q + step / 2 * qd + step**2 / 4 * a1, qd + step / 2 * a2)
        a4 = accelerations(then, q + step * qd + step**2 / 2 * a2, qd + step * a3)
        q, qd = q + step * qd + step**2 / 6 * (a1 + a2 + a3), qd + step / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return q, qd
