"""Is it the machine or the laboratory? Faults of a force plate and of clocks, found and measured by base rows.

The six base equations y = D(q) φ hold for every motion, and a belief about φ (a drawing) is there from the start. A fault of the
laboratory bends them in a way of its own: a late plate by −τ ẏ, a plate whose origin is off by d by −d × f in the moments, swapped
axes by a signed permutation. An encoder offset does not show here, only in the geometry: :mod:`veridyn.identify.encoders`. The fault
that explains most of what neither noise nor the belief explains is named, mended, and the rest is looked at again. Each comes with
its size and standard deviation.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline

from veridyn.arrays import Array
from veridyn.errors import Faults, IdentificationError
from veridyn.identify.estimators.prior import Prior, prior_moments
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Pose
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.resample import uniform_rate

LATEST, LATE_STEP = 0.060, 0.002  # s: how far clocks are tried against each other, and in which steps
SMALLEST_FAULT = {"late": 0.003, "origin": 0.003}  # s, m: less is not called a fault
CLEAR_CHI_SQUARE = 120.0  # of χ² in units of the residual variance: neighbours behind a low-pass and the steps of a plate make 40 by chance
AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class Trial:
    """One recording: a motion without wrenches, the base's pose at its times, the plate's wrench (N, 6) about the world's origin."""

    motion: Motion
    pose: Pose
    plate: Array


@dataclass(frozen=True)
class LaboratoryFault:
    """One fault: `kind` "late", "origin" or "axes", its size with deviation, and what it explains.

    `size` and `sigma`: s, or m (3 numbers); for axes the rows of the permutation. `drop`: χ² explained, in units of the residual
    variance.
    """

    kind: str
    size: tuple[float, ...]
    sigma: tuple[float, ...]
    drop: float
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """Faults found, gravest first; `residual` before any was mended and after all were, in units of the stated deviations."""

    faults: tuple[LaboratoryFault, ...]
    residual_before: float
    residual_after: float

    def summary(self) -> str:
        tail = f"residual {self.residual_before:.2f} of what the sensors should leave"
        if not self.faults:
            return f"nothing wrong was found; {tail}"
        return "\n".join([*(s.text for s in self.faults), f"{tail}, {self.residual_after:.2f} when mended"])


@takes_machine
def diagnose(
    machine: Machine,
    trials: Sequence[Trial],
    sigma: Mapping[str, float],
    *,
    prior: Prior | None = None,
    low: Butterworth | None = None,
    decimate: int = 10,
    trim: int = 40,
    most: int = 4,
    progress: Progress = silent,
) -> Diagnosis:
    """Faults of the laboratory in these recordings of a free tree. `sigma`: deviation of each base row's equations, N and N m.

    `prior` is the belief about the tree's parameters, by default its own values within 30 %. `low`: filter of the equations; then one in
    `decimate` is used and `trim` samples at each end are not. At most `most` faults are looked for.
    """
    _check(machine, trials, sigma)
    bench = _Bench(machine, prior or Prior(), np.array([sigma[r] for r in WRENCH_ROWS]), low, decimate, trim)
    now, found = list(trials), []
    with one_blas_thread():
        state = bench.state(now)
        before = state.rms
        for k in range(most):
            progress("looking for faults", float(k), float(most))
            best = max(bench.faults(state, now), key=lambda s: s.drop, default=None)
            if best is None or best.drop < CLEAR_CHI_SQUARE:
                break
            found.append(best)
            now = [mended(trial, best) for trial in now]
            state = bench.state(now)
        progress("looking for faults", float(most), float(most))
    return Diagnosis(tuple(found), before, state.rms)


def mended(trial: Trial, fault: LaboratoryFault) -> Trial:
    """The recording as it would be without this fault."""
    if fault.kind == "late":
        return replace(trial, plate=_shifted(trial.motion.t, trial.plate, fault.size[0]))
    f, m = trial.plate[:, :3], trial.plate[:, 3:]
    if fault.kind == "axes":
        P = np.array(fault.size).reshape(3, 3)
        return replace(trial, plate=np.concatenate([f @ P.T, m @ P.T], axis=1))
    return replace(trial, plate=np.concatenate([f, m + np.cross(np.array(fault.size), f)], axis=1))


@dataclass(frozen=True, eq=False)
class _State:
    """The whitened equations of all trials, solved: `Q` spans what the belief and the parameters explain, `rest` is what is left."""

    Q: Array
    y: Array
    rest: Array
    phi: Array
    freedom: float

    @property
    def rms(self) -> float:
        return float(np.sqrt(self.rest @ self.rest / self.freedom))

    def left(self, y: Array) -> Array:
        return y - self.Q @ (self.Q.T @ y)


@dataclass(frozen=True, eq=False)
class _Bench:
    machine: Machine
    prior: Prior
    sigma: Array
    low: Butterworth | None
    decimate: int
    trim: int

    def state(self, trials: Sequence[Trial]) -> _State:
        mean, deviation = prior_moments(self.machine, self.prior)
        estimated = list(self.machine.parameters.select("estimated"))
        values = np.where(np.isfinite(self.machine.parameters.values), self.machine.parameters.values, 0.0)
        values[estimated] = mean
        D = np.concatenate([self.equations(t, regressor(self.machine, t.motion, "base")) for t in trials])
        y = np.concatenate([self.side(t) for t in trials]) - D @ values
        A = np.vstack([D[:, estimated] * deviation, np.eye(len(estimated))])
        Q, R = np.linalg.qr(A)
        whole = np.concatenate([y, np.zeros(len(estimated))])
        step = np.linalg.solve(R, Q.T @ whole)
        phi = values.copy()
        phi[estimated] += deviation * step
        # Neighbouring equations behind a low-pass are no news: only so many count.
        return _State(Q, whole, whole - Q @ (Q.T @ whole), phi, max(float(len(y)), 1.0))

    def side(self, trial: Trial) -> Array:
        """The plate's wrench as base rows see it, whitened."""
        return self.equations(trial, at_base(trial.pose, trial.plate)[:, :, None])[:, 0]

    def equations(self, trial: Trial, block: Array) -> Array:
        """(N, 6, k) filtered, thinned, divided by the deviations and stacked: (rows, k)."""
        x = block.reshape(len(block), -1)
        if self.low is not None:
            x = zero_phase(x, uniform_rate(trial.motion.t, where="motion.t"), self.low, "base rows")
        x = x.reshape(block.shape)[self.trim : len(block) - self.trim : self.decimate]
        return (x / self.sigma[:, None]).reshape(-1, block.shape[2])

    def faults(self, state: _State, trials: Sequence[Trial]) -> list[LaboratoryFault]:
        pad = np.zeros(len(self.machine.parameters.select("estimated")))

        def drop_of(y: Array) -> float:
            left = state.left(y)
            return float((state.rest @ state.rest - left @ left) / max(left @ left / state.freedom, 1e-300))

        def recomputed(changed: Sequence[Trial]) -> Array:
            y = np.concatenate([self.side(t) for t in changed]) - np.concatenate([self.side(t) for t in trials])
            return state.y + np.concatenate([y, pad])

        def fitted(columns: Array) -> tuple[Array, Array, float]:
            """Sizes, deviations and χ² of faults that act linearly, beside what parameters can explain."""
            C = np.column_stack([state.left(np.concatenate([c, pad])) for c in columns])
            size = np.linalg.lstsq(C, state.rest, rcond=None)[0]
            left = state.rest - C @ size
            variance = left @ left / state.freedom
            spread = np.sqrt(variance * np.diag(np.linalg.pinv(C.T @ C)))
            return (
                np.asarray(size, dtype=np.float64),
                spread,
                float((state.rest @ state.rest - left @ left) / max(variance, 1e-300)),
            )

        return [
            *self._late(trials, state, recomputed),
            *self._origin(trials, fitted),
            *self._axes(trials, recomputed, drop_of),
        ]

    def _late(self, trials, state, recomputed) -> list[LaboratoryFault]:  # pyright: ignore[reportMissingParameterType]
        lags = np.arange(-LATEST, LATEST + LATE_STEP / 2, LATE_STEP)
        cost = np.empty(len(lags))
        for k, lag in enumerate(lags):
            left = state.left(recomputed([replace(t, plate=_shifted(t.motion.t, t.plate, lag)) for t in trials]))
            cost[k] = left @ left
        k = int(np.argmin(cost))
        if k in (0, len(lags) - 1):
            return []
        a = (cost[k - 1] - 2 * cost[k] + cost[k + 1]) / (2 * LATE_STEP**2)
        lag = lags[k] - (cost[k + 1] - cost[k - 1]) / (4 * a * LATE_STEP)
        least = cost[k] - (cost[k + 1] - cost[k - 1]) ** 2 / (16 * a * LATE_STEP**2)
        spread = float(np.sqrt(least / state.freedom / a))
        if abs(lag) < SMALLEST_FAULT["late"]:
            return []
        word = "late" if lag > 0 else "early"
        text = f"plate and motion are out of step: the plate is {1e3 * abs(lag):.1f} ± {1e3 * spread:.1f} ms {word}"
        drop = (state.rest @ state.rest - least) / (least / state.freedom)
        return [LaboratoryFault("late", (float(lag),), (spread,), float(drop), text)]

    def _origin(self, trials, fitted) -> list[LaboratoryFault]:  # pyright: ignore[reportMissingParameterType]
        columns = []
        for axis in np.eye(3):
            parts = []
            for t in trials:
                effect = np.concatenate([np.zeros_like(t.plate[:, :3]), -np.cross(axis, t.plate[:, :3])], axis=1)
                parts.append(self.side(replace(t, plate=effect)))
            columns.append(np.concatenate(parts))
        size, spread, drop = fitted(np.array(columns))
        if np.linalg.norm(size) < SMALLEST_FAULT["origin"]:
            return []
        listed = ", ".join(f"{a} {1e3 * v:+.1f} ± {1e3 * s:.1f} mm" for a, v, s in zip(AXES, size, spread, strict=True))
        text = f"the plate's origin is not where the set-up has it, but off by {listed}"
        return [LaboratoryFault("origin", tuple(size.tolist()), tuple(spread.tolist()), drop, text)]

    def _axes(self, trials, recomputed, drop_of) -> list[LaboratoryFault]:  # pyright: ignore[reportMissingParameterType]
        best: LaboratoryFault | None = None
        for order, signs in itertools.product(
            itertools.permutations(range(3)), itertools.product((1.0, -1.0), repeat=3)
        ):
            P = np.zeros((3, 3))
            P[range(3), order] = signs
            if np.array_equal(P, np.eye(3)):
                continue
            size = tuple(P.ravel().tolist())
            fault = LaboratoryFault("axes", size, (0.0,) * 9, 0.0, "")
            drop = drop_of(recomputed([mended(t, fault) for t in trials]))
            if best is None or drop > best.drop:
                listed = ", ".join(
                    f"what is called {AXES[c]} is {'-' if s < 0 else ''}{AXES[r]}"
                    for r, (c, s) in enumerate(zip(order, signs, strict=True))
                    if c != r or s < 0
                )
                best = replace(fault, drop=drop, text=f"the plate's axes are swapped: {listed}")
        return [] if best is None else [best]


def at_base(pose: Pose, wrench: Array) -> Array:
    """(N, 6) at the base's origin, in its frame, of a wrench about the world's origin."""
    back = np.swapaxes(pose.rotation, 1, 2)
    about = wrench[:, 3:] - np.cross(pose.position, wrench[:, :3])
    return np.concatenate([np.einsum("nij,nj->ni", back, x) for x in (wrench[:, :3], about)], axis=1)


def _shifted(t: Array, wrench: Array, late: float) -> Array:
    """What a plate that is `late` s behind should have shown at the times t."""
    return CubicSpline(t, wrench)(np.clip(t + late, t[0], t[-1]))


def _check(machine: Machine, trials: Sequence[Trial], sigma: Mapping[str, float]) -> None:
    faults = Faults()
    if machine.base != "free":
        faults.add("only a free base has base rows.", where=machine.name, found=f"base: {machine.base}")
    if not trials:
        faults.add("there is no recording to look at.", where="trials")
    for row in WRENCH_ROWS:
        if not (row in sigma and np.isfinite(sigma[row]) and sigma[row] > 0.0):
            faults.add("it needs a positive deviation.", where=f"sigma['{row}']", found=f"{sigma.get(row)}")
    for k, t in enumerate(trials):
        if t.plate.shape != (len(t.motion), 6) or len(t.pose) != len(t.motion):
            faults.add(
                "motion, pose and plate are not of the same samples.",
                where=f"trial {k}",
                expected=f"{len(t.motion)} each",
                found=f"{len(t.pose)} poses and a plate of shape {t.plate.shape}",
            )
        if t.motion.wrenches:
            faults.add("its motion has wrenches already; the plate's are given beside it.", where=f"trial {k}")
    faults.raise_if_any(IdentificationError)
