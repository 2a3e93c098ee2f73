"""Runs of a log and what they are made of: inputs between samples, simulated outputs, and exact sensitivities of these.

A log is cut into runs of equal length, each simulated from its own initial state under the measured forces, or under a control law.
Along a simulated run, with S_q = ∂q/∂x and S_v = ∂q̇/∂x of parameters and initial states x,

    Ṡ_q = S_v,   M Ṡ_v = (F_q − Γ_q) S_q + (F_v − Γ_v) S_v − Γ_x,

where Γ_x are columns of the regressor and Γ_q, Γ_v the derivatives of inverse dynamics, all at the simulated state, and F_q, F_v
those of the control law. The equations are linear; they are solved by the trapezoidal rule on the steps of the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Faults
from veridyn.mechanics.engine import compiled, filled
from veridyn.mechanics.forward import mass_matrix
from veridyn.mechanics.runs import Simulated, simulate_runs
from veridyn.mechanics.symbols import Request
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree
from veridyn.settings import Rule
from veridyn.signals.resample import uniform_rate

Array = NDArray[np.float64]
Law = Callable[[float, Array, Array], ArrayLike]
LAW = Rule(lambda law: law is None or callable(law), "a control law (t, q, qd) -> forces, or None")
Hold = Literal["linear", "zero"]
MAX_SENSITIVITIES = 4_000_000  # of sensitivities that are held at once
SAME_CLOCK = 1e-6  # of a step: clocks that differ by less are one
DIFFERENCE_STEP = 1e-6  # by which a state is moved to differentiate a control law


@dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """R runs of K samples every `step` seconds from the times `start`: measured q, q̇ and forces (R, K, n), signals (R, K)."""

    start: Array
    step: float
    q: Array
    qd: Array
    forces: Array
    signals: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def samples(self) -> int:
        return self.q.shape[1]

    def joined(self, other: Runs) -> Runs:
        """Both, which are of one length and step."""
        q, qd, forces = (np.concatenate([getattr(self, s), getattr(other, s)]) for s in ("q", "qd", "forces"))
        signals = {name: np.concatenate([x, other.signals[name]]) for name, x in self.signals.items()}
        return Runs(
            start=np.concatenate([self.start, other.start]), step=self.step, q=q, qd=qd, forces=forces, signals=signals
        )

    def __getitem__(self, part: slice) -> Runs:
        signals = {name: x[part] for name, x in self.signals.items()}
        return Runs(
            start=self.start[part],
            step=self.step,
            q=self.q[part],
            qd=self.qd[part],
            forces=self.forces[part],
            signals=signals,
        )


def cut(tree: Tree, motions: Sequence[Motion], horizon: float) -> list[Runs]:
    """Each motion in runs of about `horizon` seconds (infinite: one run); a rest shorter than a run's share is left out."""
    found: list[Runs] = []
    needed = {e.signal for e in tree.elements if e.kind == "drive_gain"}
    for motion in motions:
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
            signals=signals,
        )
        if found and found[-1].samples == K and abs(found[-1].step / step - 1.0) < SAME_CLOCK:
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
    if tree.states or tree.prescribed:
        faults.add(
            "elements with a state of their own and prescribed coordinates are not simulated from a log.",
            where=where,
            found=", ".join([*(s.name for s in tree.states), *tree.prescribed]),
            hint="Compute the states with element_states and fit by inverse dynamics.",
        )
    return faults


def check_motions(tree: Tree, motions: Sequence[Motion], law: Law | None, where: str) -> None:
    """Refuse what cannot be simulated: every fault at once."""
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
            if tree.actuated[k] and name not in driven and law is None and (given is None or np.isnan(given).any()):
                faults.add(
                    "its force is not measured throughout, so it cannot be simulated.", where=f"coordinate '{name}'"
                )
    faults.raise_if_any(DataError, tree.name)


@dataclass(frozen=True, eq=False)
class _Drive:
    """Forces and signals between samples: of the log, or forces of a law."""

    runs: Runs
    law: Law | None
    hold: Hold

    def __call__(self, time: float, q: Array, qd: Array) -> tuple[Array, Mapping[str, Array]]:
        runs = self.runs
        place = time / runs.step
        k = min(int(place + 1e-9), runs.samples - 1)
        share = min(max(place - k, 0.0), 1.0) if self.hold == "linear" and k + 1 < runs.samples else 0.0

        def between(x: Array) -> Array:
            return x[:, k] if share == 0.0 else (1.0 - share) * x[:, k] + share * x[:, k + 1]

        signals = {name: between(x) for name, x in runs.signals.items()}
        if self.law is None:
            return between(runs.forces), signals
        return np.array([self.law(s + time, *x) for s, *x in zip(runs.start, q, qd, strict=True)]), signals


@dataclass(frozen=True, eq=False)
class Shooting:
    """How runs of a tree are simulated."""

    tree: Tree
    law: Law | None = None
    hold: Hold = "linear"
    friction_speed: float = 0.0
    substeps: int = 1

    def simulate(self, runs: Runs, initial: Array, values: Array, every: bool = False) -> Simulated:
        """The runs from initial states (R, 2n) with all parameters `values`, at the samples or at `every` substep."""
        n, m = self.tree.n, self.substeps if every else 1
        return simulate_runs(
            self.tree,
            runs.step / m,
            (runs.samples - 1) * m + 1,
            initial[:, :n],
            initial[:, n:],
            _Drive(runs, self.law, self.hold),
            parameters=values,
            friction_speed=self.friction_speed,
            substeps=self.substeps // m,
        )

    def sensitivities(
        self, runs: Runs, initial: Array, values: Array, spread: Array
    ) -> tuple[Simulated, Array, Array, tuple[Array, Array] | None]:
        """The runs, S_q and S_v (R, K, n, p + 2n) by p parameters, whose effect on all is `spread`, and by the initial state; F_q, F_v."""
        tree, n, p, m = self.tree, self.tree.n, spread.shape[1], self.substeps
        found = self.simulate(runs, initial, values, every=True)
        R, K = found.q.shape[:2]
        q, qd, qdd = (x.reshape(R * K, n) for x in (found.q, found.qd, found.qdd))
        heard = {name: x.ravel() for name, x in found.signals.items()}
        motion = Motion(np.arange(R * K, dtype=np.float64), q, qd, qdd, signals=heard)
        rows, columns = tuple(range(n)), tuple(int(c) for c in np.flatnonzero(spread.any(axis=1)))
        place = {(r, c): (r, k) for r in rows for k, c in enumerate(columns)}
        regressor = compiled(tree, Request("regressor", rows, columns, friction_speed=self.friction_speed))
        by_x = filled(regressor, tree, motion, (n, len(columns)), place) @ spread[list(columns)]
        request = Request("inverse_derivatives", rows, friction_speed=self.friction_speed)
        both = filled(compiled(tree, request), tree, motion, (2, n, n), values=values)
        by_q, by_v = -both[:, 0], -both[:, 1]
        slopes = None
        if self.law is not None:
            F_q, F_v = self.law_derivatives(runs, found, runs.step / m)
            by_q, by_v = by_q + F_q, by_v + F_v
            slopes = (F_q.reshape(R, K, n, n)[:, ::m], F_v.reshape(R, K, n, n)[:, ::m])
        M = mass_matrix(tree, motion.q, values, engine="compiled")
        solved = np.linalg.solve(M, np.concatenate([by_q, by_v, -by_x], axis=2)).reshape(R, K, n, 2 * n + p)
        A = np.zeros((R, K, 2 * n, 2 * n))
        A[:, :, :n, n:] = np.eye(n)
        A[:, :, n:] = solved[..., : 2 * n]
        B = np.zeros((R, K, 2 * n, p))
        B[:, :, n:] = solved[..., 2 * n :]
        S = np.zeros((R, K, 2 * n, p + 2 * n))
        S[:, 0, :, p:] = np.eye(2 * n)
        half, eye = 0.5 * runs.step / m, np.eye(2 * n)
        right = np.concatenate([eye + half * A[:, :-1], half * (B[:, :-1] + B[:, 1:])], axis=3)
        steps = np.linalg.solve(eye - half * A[:, 1:], right)
        for k in range(K - 1):
            S[:, k + 1] = steps[:, k, :, : 2 * n] @ S[:, k]
            S[:, k + 1, :, :p] += steps[:, k, :, 2 * n :]
        return found.at(slice(None, None, m)), S[:, ::m, :n], S[:, ::m, n:], slopes

    def law_derivatives(self, runs: Runs, found: Simulated, step: float) -> tuple[Array, Array]:
        """∂F/∂q and ∂F/∂q̇ (R·K, n, n) of the law, by differences: a law is smooth, and most are linear."""
        law, n = self.law, self.tree.n
        assert law is not None
        times = runs.start[:, None] + step * np.arange(found.q.shape[1])
        slopes = np.empty((2, times.size, n, n))
        nudges = DIFFERENCE_STEP * np.eye(n)
        for s, (t, q, v) in enumerate(zip(times.ravel(), found.q.reshape(-1, n), found.qd.reshape(-1, n), strict=True)):
            for k, d in enumerate(nudges):
                slopes[0, s, :, k] = np.subtract(law(t, q + d, v), law(t, q - d, v)) / (2.0 * DIFFERENCE_STEP)
                slopes[1, s, :, k] = np.subtract(law(t, q, v + d), law(t, q, v - d)) / (2.0 * DIFFERENCE_STEP)
        return slopes[0], slopes[1]


def chunks(runs: Runs, columns: int) -> Iterator[slice]:
    """Parts of the runs whose sensitivities fit into memory at once."""
    size = max(1, int(MAX_SENSITIVITIES / (runs.samples * runs.q.shape[2] * 2 * columns)))
    for start in range(0, len(runs), size):
        yield slice(start, min(start + size, len(runs)))
