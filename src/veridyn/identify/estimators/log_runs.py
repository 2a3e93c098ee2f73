"""Runs of a log: what was measured, cut into pieces of equal length, each to be simulated from its own initial state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Faults
from veridyn.mechanics.element_states import element_states
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree
from veridyn.progress import Progress, silent
from veridyn.signals.resample import uniform_rate

Array = NDArray[np.float64]
MAX_SENSITIVITIES = 4_000_000  # of sensitivities that are held at once
SAME_CLOCK = 1e-6  # of a step: clocks that differ by less are one


@dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """R runs of K samples every `step` seconds from the times `start`: measured q, q̇ and forces (R, K, n), signals (R, K).

    `inner` (R, states): elements' own states at the start of each run, along the measured motion.
    """

    start: Array
    step: float
    q: Array
    qd: Array
    forces: Array
    inner: Array
    signals: Mapping[str, Array]

    @property
    def initial(self) -> Array:
        """(R, 2n + states): the measured q and q̇ at the start of each run, and the states of elements' own."""
        return np.concatenate([self.q[:, 0], self.qd[:, 0], self.inner], axis=1)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def samples(self) -> int:
        return self.q.shape[1]

    def joined(self, other: Runs) -> Runs:
        """Both, which are of one length and step."""
        names = ("start", "q", "qd", "forces", "inner")
        both = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names}
        signals = {name: np.concatenate([x, other.signals[name]]) for name, x in self.signals.items()}
        return Runs(step=self.step, signals=signals, **both)

    def __getitem__(self, part: slice) -> Runs:
        signals = {name: x[part] for name, x in self.signals.items()}
        return Runs(
            start=self.start[part],
            step=self.step,
            q=self.q[part],
            qd=self.qd[part],
            forces=self.forces[part],
            inner=self.inner[part],
            signals=signals,
        )


def cut(tree: Tree, motions: Sequence[Motion], horizon: float) -> list[Runs]:
    """Each motion in runs of about `horizon` seconds (infinite: one run); a rest shorter than a run's share is left out."""
    found: list[Runs] = []
    own = [s.name for s in tree.states]
    for motion in motions:
        needed = [n for n in tree.signals if n not in own and (n in motion.signals or n not in tree.road_signals)]
        inner = np.stack([motion.signals[n] for n in own], axis=1) if own else np.zeros((len(motion), 0))
        step = 1.0 / uniform_rate(motion.t, where="motion.t")
        duration = step * (len(motion) - 1)
        count = 1 if math.isinf(horizon) else max(1, round(duration / horizon))
        K = len(motion) // count

        def shaped(x: Array, count: int = count, K: int = K) -> Array:
            return x[: count * K].reshape(count, K, *x.shape[1:])

        forces = np.zeros_like(motion.q) if motion.forces is None else motion.forces
        forces = np.where(np.isnan(forces), 0.0, forces)
        signals = {name: shaped(motion.signals[name]) for name in needed}
        new = Runs(
            start=shaped(motion.t)[:, 0],
            step=step,
            q=shaped(motion.q),
            qd=shaped(motion.qd),
            forces=shaped(forces),
            inner=shaped(inner)[:, 0],
            signals=signals,
        )
        alike = found and found[-1].samples == K and set(found[-1].signals) == set(signals)
        if alike and abs(found[-1].step / step - 1.0) < SAME_CLOCK:
            new = found.pop().joined(new)
        found.append(new)
    return found


def check_tree(tree: Tree, where: str) -> Faults:
    """What of a machine cannot be simulated from its log, whatever the motion."""
    faults = Faults()
    if tree.base == "free":
        faults.add("simulating a machine on a free base from its log is not supported.", where=where)
    if tree.loops:
        faults.add("simulating a machine with closed loops from its log is not supported.", where=where)
    if tree.prescribed:
        faults.add(
            "prescribed coordinates are not simulated from a log.",
            where=where,
            found=", ".join(tree.prescribed),
            hint="Fit by inverse dynamics, or release them with with_prescribed(()).",
        )
    return faults


def check_motions(tree: Tree, motions: Sequence[Motion], closed_loop: bool, where: str) -> None:
    """Refuse what cannot be simulated: every fault at once. `closed_loop`: forces come from a control law, not from the log."""
    faults = check_tree(tree, where)
    driven = {c for e in tree.elements if e.kind == "drive_gain" for c in e.on}
    for motion in motions:
        if motion.wrenches:
            faults.add(
                "wrenches act during the motion, and they are not simulated.",
                where=where,
                found=", ".join(motion.wrenches),
            )
        for k, name in enumerate(tree.coordinates):
            given = None if motion.forces is None else motion.forces[:, k]
            if tree.actuated[k] and name not in driven and not closed_loop and (given is None or np.isnan(given).any()):
                faults.add(
                    "its force is not measured throughout, so it cannot be simulated.", where=f"coordinate '{name}'"
                )
    faults.raise_if_any(DataError, tree.name)


def with_element_states(tree: Tree, motion: Motion, progress: Progress = silent) -> Motion:
    """The motion with the states that elements have of their own among its signals: those it has, or those computed along it."""
    missing = [s.name for s in tree.states if s.name not in motion.signals]
    if not missing:
        return motion
    progress(f"states of elements along the motion: {', '.join(missing)}", 0.0, None)
    given = {s.name: motion.signals[s.name] for s in tree.states if s.name in motion.signals}
    found = element_states(tree, motion)
    return replace(found, signals={**found.signals, **given})


def chunks(runs: Runs, columns: int) -> Iterator[slice]:
    """Parts of the runs whose sensitivities fit into memory at once."""
    size = max(1, int(MAX_SENSITIVITIES / (runs.samples * runs.q.shape[2] * 2 * columns)))
    for start in range(0, len(runs), size):
        yield slice(start, min(start + size, len(runs)))
