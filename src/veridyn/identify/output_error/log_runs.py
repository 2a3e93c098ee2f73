"""Runs of a log: what was measured, cut into pieces of equal length, each to be simulated from its own initial state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.signals.resample import uniform_rate
from veridyn.spatial.rotations import matrix_of

Hold = Literal["linear", "zero"]  # how measured forces go on between two samples
MAX_SENSITIVITIES = 4_000_000  # of sensitivities that are held at once
SAME_CLOCK = 1e-6  # of a step: clocks that differ by less are one
ARRAYS = ("start", "q", "qd", "qdd", "forces", "inner", "base")  # of runs, over the runs first


@dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """R runs of K samples every `step` seconds from the times `start`: measured q, q̇, q̈ and forces (R, K, n), signals (R, K).

    `inner` (R, states): elements' own states at the start of each run, along the measured motion. `base` (R, K, 13): position, quaternion,
    velocity in the ground's axes and turning rate in its own of a free base, (R, K, 0) on a fixed one. `wrenches` (R, K, 6) by body.
    """

    start: Array
    step: float
    q: Array
    qd: Array
    qdd: Array
    forces: Array
    inner: Array
    base: Array
    signals: Mapping[str, Array]
    wrenches: Mapping[str, Array]

    @property
    def initial(self) -> Array:
        """(R, 2n + states): the measured q and q̇ at the start of each run, and the states of elements' own."""
        return np.concatenate([self.q[:, 0], self.qd[:, 0], self.inner], axis=1)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def samples(self) -> int:
        return self.q.shape[1]

    def alike(self, other: Runs) -> bool:
        """Whether both can be one set of runs: the same length, step, signals and wrenches."""
        named = set(self.signals) == set(other.signals) and set(self.wrenches) == set(other.wrenches)
        return named and self.samples == other.samples and abs(self.step / other.step - 1.0) < SAME_CLOCK

    def joined(self, other: Runs) -> Runs:
        """Both, which are :meth:`alike`."""
        both = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in ARRAYS}
        signals = {name: np.concatenate([x, other.signals[name]]) for name, x in self.signals.items()}
        wrenches = {name: np.concatenate([x, other.wrenches[name]]) for name, x in self.wrenches.items()}
        return replace(self, signals=signals, wrenches=wrenches, **both)

    def __getitem__(self, part: slice) -> Runs:
        signals = {name: x[part] for name, x in self.signals.items()}
        wrenches = {name: x[part] for name, x in self.wrenches.items()}
        arrays = {name: getattr(self, name)[part] for name in ARRAYS}
        return replace(self, signals=signals, wrenches=wrenches, **arrays)


def cut(machine: Machine, motions: Sequence[Motion], horizon: float) -> list[Runs]:
    """Each motion in runs of about `horizon` seconds (infinite: one run); a rest shorter than a run's share is left out."""
    found: list[Runs] = []
    own = [s.name for s in machine.states]
    for motion in motions:
        needed = [n for n in machine.signals if n not in own and (n in motion.signals or n not in machine.road_signals)]
        inner = np.stack([motion.signals[n] for n in own], axis=1) if own else np.zeros((len(motion), 0))
        step = 1.0 / uniform_rate(motion.t, where="motion.t")
        duration = step * (len(motion) - 1)
        count = 1 if math.isinf(horizon) else max(1, round(duration / horizon))
        K = len(motion) // count

        def shaped(x: Array, count: int = count, K: int = K) -> Array:
            return x[: count * K].reshape(count, K, *x.shape[1:])

        forces = np.zeros_like(motion.q) if motion.forces is None else motion.forces
        forces = np.where(np.isnan(forces), 0.0, forces)
        new = Runs(
            start=shaped(motion.t)[:, 0],
            step=step,
            q=shaped(motion.q),
            qd=shaped(motion.qd),
            qdd=shaped(motion.qdd),
            forces=shaped(forces),
            inner=shaped(inner)[:, 0],
            base=shaped(_base_states(machine, motion)),
            signals={name: shaped(motion.signals[name]) for name in needed},
            wrenches={name: shaped(x) for name, x in motion.wrenches.items()},
        )
        if found and found[-1].alike(new):
            new = found.pop().joined(new)
        found.append(new)
    return found


def _base_states(machine: Machine, motion: Motion) -> Array:
    """(N, 13) of a free base whose pose and velocity are measured, else (N, 0)."""
    b = motion.base
    if machine.base == "fixed" or b is None or b.position is None or b.quaternion is None or b.velocity is None:
        return np.zeros((len(motion), 0))
    velocity = np.einsum("nij,nj->ni", matrix_of(b.quaternion), b.velocity)
    return np.concatenate([b.position, b.quaternion, velocity, b.omega], axis=1)


def check_open_tree(machine: Machine, where: str) -> Faults:
    """What of a machine keeps it from being simulated in closed loop with a control law, whatever the motion."""
    faults, only = Faults(), "Only open machines on a fixed base are simulated with a control law."
    if machine.base == "free":
        faults.add("simulating a machine on a free base with a control law is not supported.", where=where, hint=only)
    if machine.closed:
        faults.add("simulating a machine with loops with a control law is not supported.", where=where, hint=only)
    if machine.prescribed:
        faults.add(
            "prescribed coordinates are not simulated with a control law.",
            where=where,
            found=", ".join(machine.prescribed),
            hint="Release them with with_prescribed(()).",
        )
    return faults


def check_motions(machine: Machine, motions: Sequence[Motion], closed_loop: bool, where: str) -> None:
    """Refuse what cannot be simulated: every fault at once. `closed_loop`: forces come from a control law, not from the log."""
    faults = check_open_tree(machine, where) if closed_loop else Faults()
    driven = {c for e in machine.elements if e.kind == "drive_gain" for c in e.on}
    for motion in motions:
        if motion.wrenches and closed_loop:
            faults.add(
                "wrenches act during the motion, and they are not simulated with a control law.",
                where=where,
                found=", ".join(motion.wrenches),
            )
        if machine.base == "free" and not _base_states(machine, motion).size:
            faults.add(
                "the pose and velocity of the free base are not known, so it cannot be simulated.",
                where=where,
                expected="position, quaternion and velocity in motion.base",
                hint="Identify by inverse dynamics, which needs the base's accelerations only.",
            )
        for k, name in enumerate(machine.coordinates):
            given = None if motion.forces is None else motion.forces[:, k]
            moved = machine.actuated[k] and name not in driven and name not in machine.prescribed
            if moved and not closed_loop and (given is None or np.isnan(given).any()):
                faults.add(
                    "its force is not measured throughout, so it cannot be simulated.", where=f"coordinate '{name}'"
                )
    faults.raise_if_any(DataError, machine.name)


def with_element_states(machine: Machine, motion: Motion, progress: Progress = silent) -> Motion:
    """The motion with the states that elements have of their own among its signals: those it has, or those computed along it."""
    missing = [s.name for s in machine.states if s.name not in motion.signals]
    if not missing:
        return motion
    progress(f"states of elements along the motion: {', '.join(missing)}", 0.0, None)
    given = {s.name: motion.signals[s.name] for s in machine.states if s.name in motion.signals}
    from veridyn.mechanics.system.integrate import element_states

    found = element_states(machine, motion)
    return replace(found, signals={**found.signals, **given})


def chunks(runs: Runs, columns: int) -> Iterator[slice]:
    """Parts of the runs whose sensitivities fit into memory at once."""
    size = max(1, int(MAX_SENSITIVITIES / (runs.samples * runs.q.shape[2] * 2 * columns)))
    for start in range(0, len(runs), size):
        yield slice(start, min(start + size, len(runs)))
