"""Is it the machine or the laboratory? Faults of a force plate and of clocks by base rows, and encoder offsets by geometry.

The six base equations y = D(q) φ hold for every motion, and a belief about φ (a drawing) is there from the start. A fault of the
laboratory bends them in a way of its own: a late plate by −τ ẏ, a plate whose origin is off by d by −d × f in the moments, swapped
axes by a signed permutation. The fault
that explains most of what neither noise nor the belief explains is named, mended, and the rest is looked at again. Each comes with
its size and standard deviation.

An encoder offset is not identifiable from base rows: turning the frame of a link turns its parameters, and the equations fit as well.
Geometry gives it. A sole flat on the ground has a known height and level, and stays where it is while the body above it moves; what the
chain from the measured base pose to the sole says otherwise is, to first order, J δ, with δ the offsets. Where a sole stands (x, y,
yaw) need not be known, nor how far all soles together sink into the ground.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline

from veridyn.arrays import Array
from veridyn.errors import Faults, IdentificationError, did_you_mean
from veridyn.identify.estimators.prior import Prior, prior_moments
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.mechanics.tree.recursion.kinematics import body_pose, jacobian
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Pose
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.resample import uniform_rate
from veridyn.spatial.rotations import MDH, Placement

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


TURN_ARM_M = 0.3  # m: a turn counts as much as the shift it makes at this distance
UNOBSERVABLE = 1e-6  # of the largest singular value: what moves the soles less is not identifiable
CLEAR, SMALLEST = 5.0, 0.005  # deviations, rad or m: less is not called a fault
ROUNDS = 4
CORRELATED_SAMPLES = 10.0  # samples that share their noise behind a low-pass: variance is that much larger


@dataclass(frozen=True, eq=False)
class Offsets:
    """For each coordinate on the way to a sole: how much its encoder reads too much, in rad or m, with σ (infinite if not identifiable).

    `rms`: what is left of the soles' pose, in m (turns at 0.3 m), before and after.
    """

    names: tuple[str, ...]
    values: Array
    sigma: Array
    rms_before: float
    rms_after: float

    @property
    def faulty(self) -> tuple[str, ...]:
        """Encoders whose offset is clear and large enough to matter."""
        large = (np.abs(self.values) > CLEAR * self.sigma) & (np.abs(self.values) > SMALLEST)
        return tuple(n for n, bad in zip(self.names, large, strict=True) if bad)

    def summary(self) -> str:
        by = dict(zip(self.names, zip(self.values, self.sigma, strict=True), strict=True))
        lines = [
            f"the encoder of '{n}' reads {1e3 * by[n][0]:+.1f} ± {1e3 * by[n][1]:.1f} mrad too much"
            for n in self.faulty
        ]
        tail = (
            f"soles stray by {1e3 * self.rms_before:.2g} mm, {1e3 * self.rms_after:.2g} mm with all offsets taken off"
        )
        return "\n".join([*(lines or ["no encoder is off"]), tail])


@takes_machine
def encoder_offsets(
    machine: Machine, trials: Sequence[tuple[Motion, Pose]], soles: Mapping[str, Placement | MDH], *, every: int = 10
) -> Offsets:
    """Offsets from recordings in which all `soles` stand still on the ground, z = 0, while the body moves.

    `soles`: body → where its sole's frame is in the body's frame, origin on the ground, z up. `pose`: the base's in the world, at the
    times of the motion.
    """
    _check_soles(machine, trials, soles)
    six = 6
    coordinates = _on_the_way(machine, soles)
    q_off = np.zeros(machine.n)
    before = after = 0.0
    sigma = np.full(len(coordinates), np.inf)
    for k in range(ROUNDS):
        blocks, right, stands = [], [], len(trials) * len(soles)
        for i, (motion, pose) in enumerate(trials):
            thin = slice(None, None, every)
            q = motion.q[thin] - q_off
            for j, (body, sole) in enumerate(soles.items()):
                R, p, J = _sole(machine, q, body, sole, pose.rotation[thin], pose.position[thin])
                where = np.zeros((len(q), six, 3 * stands + 1))
                where[:, [0, 1, 5], 3 * (i * len(soles) + j) + np.arange(3)] = 1.0
                where[:, 2, -1] = 1.0
                error = _error(R, p)
                scale = np.array([1.0, 1.0, 1.0, TURN_ARM_M, TURN_ARM_M, TURN_ARM_M])
                A = np.concatenate([J[:, :, six:][:, :, coordinates], where], axis=2)
                blocks.append((A * scale[:, None]).reshape(-1, A.shape[2]))
                right.append((error * scale).ravel())
        A, y = np.concatenate(blocks), np.concatenate(right)
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        identifiable = s > UNOBSERVABLE * s[0]
        x = Vt[identifiable].T @ ((U.T @ y)[identifiable] / s[identifiable])
        left = y - A @ x
        if k == 0:
            nothing = A[:, len(coordinates) :]
            before = float(np.sqrt(np.mean((y - nothing @ np.linalg.lstsq(nothing, y, rcond=None)[0]) ** 2)))
        after = float(np.sqrt(np.mean(left**2)))
        spread = (Vt[identifiable].T / s[identifiable]) @ (Vt[identifiable].T / s[identifiable]).T
        hidden = (Vt[~identifiable] ** 2).sum(axis=0)[: len(coordinates)] > UNOBSERVABLE
        sigma = after * np.sqrt(max(CORRELATED_SAMPLES / every, 1.0) * np.diag(spread)[: len(coordinates)])
        sigma = np.where(hidden, np.inf, sigma)
        q_off[coordinates] += np.where(hidden, 0.0, x[: len(coordinates)])
    names = tuple(machine.coordinates[c] for c in coordinates)
    return Offsets(names, q_off[coordinates], sigma, before, after)


def _on_the_way(machine: Machine, soles: Mapping[str, Placement | MDH]) -> list[int]:
    on = {c for body in soles for c in machine.described.moving(machine.body(body).name)}
    return sorted(machine.coordinates.index(c) for c in on)


def _sole(
    machine: Machine, q: Array, body: str, sole: Placement | MDH, Rb: Array, pb: Array
) -> tuple[Array, Array, Array]:
    """Pose of the sole in the world, and J (N, 6, 6 + n) of its origin in the world's axes."""
    R, p = body_pose(machine, q, body)
    J = jacobian(machine, q, body)  # of the body's origin, in the base's axes
    arm = R @ sole.position
    J = np.concatenate([J[:, :3] - np.cross(arm[:, :, None], J[:, 3:], axisa=1, axisb=1, axisc=1), J[:, 3:]], axis=1)
    J = np.concatenate([Rb @ J[:, :3], Rb @ J[:, 3:]], axis=1)
    return Rb @ R @ sole.rotation, pb + np.einsum("nij,nj->ni", Rb, p + arm), J


def _error(R: Array, p: Array) -> Array:
    """(N, 6): position from its mean on the ground, and the small turn that would level the sole and bring it to its mean heading."""
    heading = np.arctan2(R[:, 1, 0].mean(), R[:, 0, 0].mean())
    c, s = np.cos(heading), np.sin(heading)
    level = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    E = R @ level.T
    turn = 0.5 * np.stack([E[:, 2, 1] - E[:, 1, 2], E[:, 0, 2] - E[:, 2, 0], E[:, 1, 0] - E[:, 0, 1]], axis=1)
    mean = np.array([p[:, 0].mean(), p[:, 1].mean(), 0.0])
    return np.concatenate([p - mean, turn], axis=1)


def _check_soles(machine: Machine, trials: Sequence[tuple[Motion, Pose]], soles: Mapping[str, Placement | MDH]) -> None:
    faults = Faults()
    names = machine.body_names
    if machine.base != "free":
        faults.add("only a free base has a pose to compare with.", where=machine.name, found=f"base: {machine.base}")
    if not trials or not soles:
        faults.add("a recording and a sole are needed.", where="encoder offsets")
    for body in soles:
        if body not in names:
            faults.add(f"'{body}' is no body.", where="soles", hint=did_you_mean(body, names))
    for k, (motion, pose) in enumerate(trials):
        if len(pose) != len(motion):
            faults.add(
                "pose and motion are not of the same samples.",
                where=f"trial {k}",
                expected=f"{len(motion)}",
                found=f"{len(pose)}",
            )
    faults.raise_if_any(IdentificationError)
