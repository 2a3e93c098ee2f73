"""Simulated outputs of the runs of a log, and exact sensitivities of these.

Each run is simulated from its own initial state under the measured forces, or under a control law. Elements may have states of their own,
ż = r(q, q̇, z). Along a simulated run, with S_q = ∂q/∂x, S_v = ∂q̇/∂x and S_z = ∂z/∂x of parameters, constants and initial states x,

    Ṡ_q = S_v,   M Ṡ_v = (F_q − Γ_q) S_q + (F_v − Γ_v) S_v − Γ_z S_z − Γ_x,   Ṡ_z = r_q S_q + r_v S_v + r_z S_z + r_x

where Γ_x are columns of the regressor, and for constants inside the laws of elements derivatives like Γ_q, Γ_v and Γ_z of inverse
dynamics, all at the simulated state; F_q and F_v are those of the control law. The equations are linear; they are solved by the
trapezoidal rule on the steps of the simulation. Without a speed below which it is rounded off, dry friction holds and lets go
(:mod:`veridyn.mechanics.system.dry_friction`). Over a part of a step the shares s of friction are constant: the columns of its parameters
are those of s, not of the signs of speeds. Where friction holds at the end of a part, C v = 0 whatever x is, and its force is what makes C
S_v zero. Where a combination c comes to rest at the instant t*, with accelerations a⁻ before and a⁺ after it, ∂t*/∂x = −C S_v/c̈⁻ and

    S_v⁺ = S_v⁻ + (a⁺ − a⁻) C S_v⁻/c̈⁻
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.identify.output_error.log_runs import Runs
from veridyn.mechanics.system.dry_friction import KINDS, DryFriction, dry_friction
from veridyn.mechanics.system.runs import Simulated, StepParts, simulate_runs
from veridyn.mechanics.tree.dynamics.engine import compiled, filled
from veridyn.mechanics.tree.dynamics.forward import mass_matrix
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.settings import Rule

Array = NDArray[np.float64]
Law = Callable[[float, Array, Array], ArrayLike]
LAW = Rule(lambda law: law is None or callable(law), "a control law (t, q, qd) -> forces, or None")
Hold = Literal["linear", "zero"]
DIFFERENCE_STEP = 1e-6  # by which a state is moved to differentiate a control law


class _Drive:
    """Forces and signals between samples: of the log, or forces of a law. Two stages of a step of order four are at one time."""

    def __init__(self, runs: Runs, law: Law | None, hold: Hold) -> None:
        self.runs, self.law, self.hold = runs, law, hold
        self._last: tuple[float, tuple[Array, Mapping[str, Array]]] | None = None

    def __call__(self, time: float, q: Array, qd: Array) -> tuple[Array, Mapping[str, Array]]:
        if self.law is not None:
            return self._at(time, q, qd)
        if self._last is None or self._last[0] != time:
            self._last = (time, self._at(time, q, qd))
        return self._last[1]

    def _at(self, time: float, q: Array, qd: Array) -> tuple[Array, Mapping[str, Array]]:
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Shooting:
    """How runs of a tree are simulated."""

    machine: Machine
    law: Law | None = None
    hold: Hold = "linear"
    friction_speed: float = 0.0
    substeps: int = 1
    constants: tuple[str, ...] = ()  # inside the laws of elements, by which sensitivities are computed too
    chosen: tuple[str, ...] = ()  # coordinates that are compared; all of them where none is named
    compare: Literal["coordinates", "forces"] = "coordinates"  # forces: those of the control law

    def at(self, constants: Array) -> Shooting:
        """The same with other values of :attr:`constants`; refused where a law has no meaning there."""
        if not self.constants:
            return self
        machine = self.machine.with_constants(dict(zip(self.constants, constants.tolist(), strict=True)))
        return replace(self, machine=machine)

    def refined(self) -> Shooting:
        """The same with half the step."""
        return replace(self, substeps=2 * self.substeps)

    @property
    def size(self) -> int:
        """The length of a state (q, q̇, z)."""
        return 2 * self.machine.n + len(self.machine.states)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The coordinates whose values or forces are compared."""
        return self.chosen or self.machine.coordinates

    @property
    def kinked(self) -> bool:
        """Whether dry friction holds."""
        return self.friction_speed == 0.0 and any(e.kind in KINDS and e.on for e in self.machine.elements)

    @property
    def units(self) -> tuple[str, ...]:
        """Of the outputs."""
        kinds = [self.machine.coordinate_kinds[k] == "turning" for k in self._places]
        turning, sliding = ("rad", "m") if self.compare == "coordinates" else ("N*m", "N")
        return tuple(turning if turns else sliding for turns in kinds)

    @cached_property
    def _places(self) -> list[int]:
        return [self.machine.coordinates.index(name) for name in self.outputs]

    def initial(self, runs: Runs) -> Array:
        """(R, size): the measured start of each run."""
        return runs.initial

    def measured(self, runs: Runs) -> Array:
        """(R, K, m): what was measured of the outputs."""
        return (runs.q if self.compare == "coordinates" else runs.forces)[..., self._places]

    def residuals(self, runs: Runs, state: Array, values: Array) -> Array:
        """y − ŷ (R, K, m) of runs from initial states (R, size) with all parameters `values`."""
        found = self.simulate(runs, state, values)
        return self.measured(runs) - self._simulated(found)

    def columns(self, runs: Runs, state: Array, values: Array, spread: Array) -> tuple[Array, Array]:
        """Residuals (R, K, m), and the derivatives of the outputs (R, K, m, p + c + size), as of :meth:`sensitivities`."""
        found, S_q, S_v, slopes = self.sensitivities(runs, state, values, spread)
        S = S_q
        if self.compare == "forces":
            assert slopes is not None  # forces that are simulated are those of a law
            S = slopes[0] @ S_q + slopes[1] @ S_v
        return self.measured(runs) - self._simulated(found), S[..., self._places, :]

    def _simulated(self, found: Simulated) -> Array:
        return (found.q if self.compare == "coordinates" else found.forces)[..., self._places]

    def simulate(self, runs: Runs, initial: Array, values: Array, every: bool = False) -> Simulated:
        """The runs from initial states (R, size) with all parameters `values`, at the samples or at `every` substep."""
        n, m = self.machine.n, self.substeps if every else 1
        return simulate_runs(
            self.machine,
            runs.step / m,
            (runs.samples - 1) * m + 1,
            initial[:, :n],
            initial[:, n : 2 * n],
            _Drive(runs, self.law, self.hold),
            parameters=values,
            friction_speed=self.friction_speed,
            substeps=self.substeps // m,
            inner=initial[:, 2 * n :],
            parts=every,
        )

    def sensitivities(
        self, runs: Runs, initial: Array, values: Array, spread: Array
    ) -> tuple[Simulated, Array, Array, tuple[Array, Array] | None]:
        """The runs, S_q and S_v (R, K, n, p + c + size), and F_q, F_v of a control law.

        By p parameters, whose effect on all is `spread`, by the c constants, and by the initial state.
        """
        machine, n, m = self.machine, self.machine.n, self.substeps
        size, p = self.size, spread.shape[1] + len(self.constants)
        simulated = self.simulate(runs, initial, values, every=True)
        parts = simulated.parts
        found = simulated if parts is None else parts.whole
        R, K = found.q.shape[:2]
        times = runs.step / m * np.arange(K) if parts is None else parts.t
        samples = np.arange(0, K, m) if parts is None else parts.samples[::m]
        q, qd, qdd = (x.reshape(R * K, n) for x in (found.q, found.qd, found.qdd))
        heard = {name: x.ravel() for name, x in found.signals.items()}
        motion = Motion(np.arange(R * K, dtype=np.float64), q, qd, qdd, signals=heard)
        slopes, by_law = None, None
        if self.law is not None:
            by_law = np.concatenate(self.law_derivatives(runs, found, times), axis=2)
            F = by_law.reshape(R, K, n, 2 * n)[:, samples]
            slopes = (F[..., :n], F[..., n:])
        A, B = self._linearised(motion, values, spread, by_law)
        A, B = A.reshape(R, K, size, size), B.reshape(R, K, size, p)
        ends = A[:, 1:], B[:, 1:]
        dry = None if parts is None else dry_friction(machine, values)
        if parts is not None and (at := np.flatnonzero(parts.stopped.any(axis=2))).size:
            # A part ends with the accelerations before what comes to rest at its end.
            ends = A[:, 1:].copy(), B[:, 1:].copy()
            place, before = np.unravel_index(at, (R, K)), parts.arriving.reshape(R * K, n)[at]
            signals = {name: x[at] for name, x in heard.items()}
            arrived = Motion(np.arange(len(at), dtype=np.float64), motion.q[at], motion.qd[at], before, signals=signals)
            A_at, B_at = self._linearised(arrived, values, spread, None if by_law is None else by_law[at])
            ends[0][place[0], place[1] - 1], ends[1][place[0], place[1] - 1] = A_at, B_at
        S = np.zeros((R, K, size, p + size))
        S[:, 0, :, p:] = np.eye(size)
        half, eye = 0.5 * np.diff(times)[:, None, None], np.eye(size)
        right = np.concatenate([eye + half * A[:, :-1], half * (B[:, :-1] + ends[1])], axis=3)
        left = eye - half * ends[0]
        M = None
        if dry is not None and parts is not None:
            M = mass_matrix(machine, motion.q, values, engine="compiled").reshape(R, K, n, n)
            right[:, :, n : 2 * n, size : size + spread.shape[1]] += half * dry_columns(dry, parts, M, spread)
        steps = np.asarray(np.linalg.solve(left, right), dtype=np.float64)
        if dry is not None and parts is not None and M is not None:
            hold(dry, parts, M, left, steps)
        for k in range(K - 1):
            if dry is not None and parts is not None:
                pass_stops(dry, parts, k, S[:, k])
            S[:, k + 1] = steps[:, k, :, :size] @ S[:, k]
            S[:, k + 1, :, :p] += steps[:, k, :, size:]
        return simulated.at(slice(None, None, m)), S[:, samples, :n], S[:, samples, n : 2 * n], slopes

    def _linearised(self, motion: Motion, values: Array, spread: Array, by_law: Array | None) -> tuple[Array, Array]:
        """∂ẏ/∂y (N, size, size) and ∂ẏ/∂x (N, size, p + c) of states y = (q, q̇, z); `by_law` (N, n, 2n): F_q and F_v of a control law."""
        machine, n, size, N = self.machine, self.machine.n, self.size, len(motion)
        by_state, by_x = self._slopes(motion, values, spread)
        if by_law is not None:
            by_state[:, :n, : 2 * n] -= by_law
        M = mass_matrix(machine, motion.q, values, engine="compiled")
        solved = np.linalg.solve(M, -np.concatenate([by_state[:, :n], by_x[:, :n]], axis=2))
        A, B = np.zeros((N, size, size)), np.zeros((N, size, by_x.shape[2]))
        A[:, :n, n : 2 * n] = np.eye(n)
        A[:, n : 2 * n], B[:, n : 2 * n] = solved[..., :size], solved[..., size:]
        A[:, 2 * n :], B[:, 2 * n :] = by_state[:, n:], by_x[:, n:]
        return A, B

    def _slopes(self, motion: Motion, values: Array, spread: Array) -> tuple[Array, Array]:
        """Of Γ and the rates of elements' own states: by the state (N, n + states, size), and by parameters and constants."""
        machine, n, size = self.machine, self.machine.n, self.size
        held = dry_friction(machine, values) if self.friction_speed == 0.0 else None
        skipped = [] if held is None else held.columns
        moved = [int(c) for c in np.flatnonzero(spread.any(axis=1))]
        rows, columns = tuple(range(n)), tuple(c for c in moved if c not in skipped)
        numbers = tuple(next(k for k, c in enumerate(machine.constants) if c.name == name) for name in self.constants)
        request = Request("run_derivatives", rows, numbers, friction_speed=self.friction_speed)
        shape = (n + len(machine.states), size + len(numbers))
        both = filled(compiled(machine, request, few=True), machine, motion, shape, values=values)
        by_x = np.zeros((len(motion), shape[0], spread.shape[1] + len(numbers)))
        if columns:
            place = {(r, c): (r, k) for r in rows for k, c in enumerate(columns)}
            regressor = compiled(machine, Request("regressor", rows, columns, friction_speed=self.friction_speed))
            by_x[:, :n, : spread.shape[1]] = (
                filled(regressor, machine, motion, (n, len(columns)), place) @ spread[list(columns)]
            )
        by_x[:, :, spread.shape[1] :] = both[:, :, size:]
        return both[:, :, :size].copy(), by_x

    def law_derivatives(self, runs: Runs, found: Simulated, since: Array) -> tuple[Array, Array]:
        """∂F/∂q and ∂F/∂q̇ (R·K, n, n) of the law, by differences: a law is smooth, and most are linear; `since` (K,) the start of a run."""
        law, n = self.law, self.machine.n
        assert law is not None
        times = runs.start[:, None] + since
        slopes = np.empty((2, times.size, n, n))
        nudges = DIFFERENCE_STEP * np.eye(n)
        for s, (t, q, v) in enumerate(zip(times.ravel(), found.q.reshape(-1, n), found.qd.reshape(-1, n), strict=True)):
            for k, d in enumerate(nudges):
                slopes[0, s, :, k] = np.subtract(law(t, q + d, v), law(t, q - d, v)) / (2.0 * DIFFERENCE_STEP)
                slopes[1, s, :, k] = np.subtract(law(t, q, v + d), law(t, q, v - d)) / (2.0 * DIFFERENCE_STEP)
        return slopes[0], slopes[1]


def dry_columns(dry: DryFriction, parts: StepParts, M: Array, spread: Array) -> Array:
    """(R, K' − 1, n, p): q̈ by base parameters through dry friction, at the start of each part plus at its end, by its shares."""
    R, K, n = parts.whole.q.shape
    shares = parts.shares.reshape(R * (K - 1), -1)
    ends = []
    for place in (slice(None, -1), slice(1, None)):
        D = dry.regressor(parts.whole.qd[:, place].reshape(-1, n), shares) @ spread[dry.columns]
        ends.append(np.linalg.solve(M[:, place], D.reshape(R, K - 1, n, -1)))
    return -(ends[0] + ends[1])


def hold(dry: DryFriction, parts: StepParts, M: Array, left: Array, steps: Array) -> None:
    """Make steps (R, K' − 1, size, ·) leave speeds along combinations that friction holds as they are, whatever changes.

    With E = ∂(end of the part)/∂f of the friction forces f: steps − E (C E)⁺ C steps. `left`: the matrix of the trapezoidal rule.
    """
    n, size = parts.whole.q.shape[2], steps.shape[2]
    held = np.abs(parts.shares) < 1.0
    for r, k in zip(*np.nonzero(held.any(axis=2)), strict=True):
        C = dry.C[held[r, k]]
        pushed = np.zeros((size, len(C)))
        pushed[n : 2 * n] = np.linalg.solve(M[r, k], C.T)
        E = np.linalg.solve(left[r, k], pushed)
        steps[r, k] -= E @ np.linalg.lstsq(C @ E[n : 2 * n], C @ steps[r, k, n : 2 * n], rcond=None)[0]


def pass_stops(dry: DryFriction, parts: StepParts, k: int, S: Array) -> None:
    """Take sensitivities S (R, size, ·) over what comes to rest at time k."""
    n = parts.whole.q.shape[2]
    for r, i in zip(*np.nonzero(parts.stopped[:, k]), strict=True):
        before, after = parts.arriving[r, k], parts.whole.qdd[r, k]
        slope = dry.C[i] @ before
        if slope != 0.0:
            S[r, n : 2 * n] += np.outer(after - before, dry.C[i] @ S[r, n : 2 * n]) / slope
