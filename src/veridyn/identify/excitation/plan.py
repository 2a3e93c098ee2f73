"""A designed experiment: the motion to run, what it uses of each limit, and how well each parameter will be known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError, did_you_mean
from veridyn.identify.base import BaseParameters
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.excitation.problem import ExcitationProblem, criterion, shares
from veridyn.identify.excitation.shape import Trajectory
from veridyn.signals.trajectory import Approach, FourierTrajectory, RunUp

NOISE_ASSUMED = "no noise was given: deviations are those for 1 N or N*m on every row, and only their ratios count"
LONGEST_APPROACH = 60.0  # s, from the machine's pose to the motion
APPROACH_STEPS = 200  # samples of the approach on which limits are checked
ENTRY_PERIODS = (0.5, 1.0, 2.0, 4.0)  # periods in which a motion is entered from rest


@dataclass(frozen=True, eq=False)
class Noise:
    """`covariance` (rows, rows) of one sample's forces, in N² or (N m)²; `memory` ρ of noise that remembers: e_t = ρ e_{t−1} + news.

    `assumed`: nobody gave it, so that predicted deviations say only how parameters compare.
    """

    covariance: Array
    memory: float = 0.0
    assumed: bool = False


def noise_of(plant: Plant, noise: Noise | Mapping[str, float] | ArrayLike | None) -> Noise:
    """Deviations by row name, (rows,) or a covariance (rows, rows) as a :class:`Noise`; one unit on every row by default."""
    rows, where = plant.rows, "design_excitation, noise"
    if isinstance(noise, Noise):
        made = noise
    elif noise is None:
        made = Noise(np.eye(len(rows)), assumed=True)
    elif isinstance(noise, Mapping):
        unknown = [name for name in noise if name not in rows]
        missing = [name for name in rows if name not in noise]
        if unknown or missing:
            raise DataError(
                "the noise is not that of this machine's rows.",
                where=where,
                expected=", ".join(rows),
                found=", ".join(str(name) for name in noise),
                hint=did_you_mean(str((unknown or missing)[0]), rows),
            )
        made = Noise(np.diag([float(noise[name]) ** 2 for name in rows]))
    else:
        given = np.asarray(noise, dtype=np.float64)
        made = Noise(np.diag(given**2) if given.ndim == 1 else given)
    C = np.asarray(made.covariance, dtype=np.float64)
    right = C.shape == (len(rows), len(rows)) and np.isfinite(C).all() and np.allclose(C, C.T)
    if not right or not rows or np.linalg.eigvalsh(C)[0] <= 0.0 or not -1.0 < made.memory < 1.0:
        raise DataError(
            "this is no covariance of the rows' noise.",
            where=where,
            expected=f"{len(rows)} deviations above zero, or a positive definite ({len(rows)}, {len(rows)}); a memory within ±1",
            found=f"shape {C.shape}, memory {made.memory:g}",
        )
    return made


@dataclass(frozen=True, eq=False, kw_only=True)
class ExcitationPlan:
    """The designed motion and the deviations predicted for it.

    `trajectory` of the designed `coordinates`, periodic; `reference` is what a controller follows, which enters it from rest in `lead`
    seconds, from the machine's own pose where that is given. `sigma`: predicted deviation of each base parameter from `periods` periods
    at `rate` Hz under `noise` by the best linear estimator; noise of positions is not counted. `used`: limit → the largest share of it
    that the periodic motion uses, on a fine grid. `unchecked`: limits that nobody gave, in words, so that the motion may violate them.
    `goals`: what each start reached; `value` what the plan has (natural logarithms, see
    :mod:`~veridyn.identify.excitation.problem`). `condition` is that of the regressor as it is (21).
    """

    name: str
    coordinates: tuple[str, ...]
    rows: tuple[str, ...]
    base: BaseParameters
    trajectory: Trajectory
    reference: RunUp | Approach
    criterion: str
    value: float
    goals: tuple[float, ...]
    information: Array
    condition: float
    noise: Noise
    rate: float
    periods: int
    used: Mapping[str, float]
    unchecked: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        problem: ExcitationProblem,
        u: Array,
        noise: Noise,
        rate: float,
        periods: int,
        goals: tuple[float, ...],
        start: Array | None = None,
    ) -> ExcitationPlan:
        """The plan of some unknowns, evaluated sample by sample as it will be run, with dry friction as it is."""
        C, f = problem.motion_of(u)
        problem = problem.with_dry_friction()
        count = round(rate / f)
        X = problem.samples(u, problem.shape.basis(np.arange(count) / count))
        A = problem.plant.regressor(X)
        flat = A.reshape(-1, A.shape[2])
        fine = problem.samples(u, problem.shape.basis(problem.fine_phases))
        used = shares(problem.bounds, problem.bounds(fine, slopes=False)[0])
        goal_information = (
            flat.T @ flat / count if problem.goal == "condition" else information_of(A, noise, 0.0) / count
        )
        scale = np.linalg.norm(flat, axis=0)
        trajectory = problem.shape.trajectory(C, f)
        return cls(
            name=problem.plant.name,
            coordinates=problem.plant.coordinates,
            rows=problem.plant.rows,
            base=problem.plant.base,
            trajectory=trajectory,
            reference=_entered(problem, trajectory, start, rate),
            criterion=problem.goal,
            value=criterion(problem.goal, goal_information, problem.typical)[0],
            goals=goals,
            information=periods * information_of(A, noise, noise.memory),
            condition=float(np.linalg.cond(flat)) if scale.all() else np.inf,
            noise=noise,
            rate=rate,
            periods=periods,
            used=dict(zip(problem.bounds.names, used.tolist(), strict=True)),
            unchecked=problem.bounds.unchecked,
        )

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    @property
    def units(self) -> tuple[str, ...]:
        return self.base.units

    @property
    def covariance(self) -> Array:
        """Predicted covariance of the base parameters, (ΨᵀΣ⁻¹Ψ)⁻¹ (10)."""
        scale = 1.0 / np.sqrt(np.diag(self.information))
        return np.linalg.inv(self.information * scale * scale[:, None]) * scale * scale[:, None]

    @property
    def sigma(self) -> Array:
        return np.sqrt(np.diag(self.covariance))

    @property
    def priors(self) -> Array:
        """What the model says of each base parameter; NaN where it says nothing."""
        phi, out = self.base.parameters.values, np.full(len(self.base.columns), np.nan)
        for k, row in enumerate(self.base.matrix):
            members = np.flatnonzero(row)
            out[k] = row[members] @ phi[members]
        return out

    @property
    def relative_sigma(self) -> Array:
        """Predicted σ % of the prior value; infinite where that is zero, NaN where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 100.0 * self.sigma / np.abs(self.priors)

    @property
    def frequency(self) -> float:
        return self.trajectory.frequency

    def efficiency(self, other: ExcitationPlan) -> float:
        """The D-efficiency against another plan of the same machine: (det M/det M')^(1/p) of information per sample."""
        own, its = (p.information / (p.periods * p.rate * p.trajectory.period) for p in (self, other))
        return float(np.exp((np.linalg.slogdet(own)[1] - np.linalg.slogdet(its)[1]) / len(own)))

    @property
    def lead(self) -> float:
        """Seconds of running up."""
        return self.reference.lead

    @property
    def skipped(self) -> int:
        """Samples of the running up."""
        return int(np.ceil(self.lead * self.rate))

    def samples(self, periods: int | None = None) -> tuple[Array, Array, Array, Array]:
        """What a controller runs: t (N,), x, ẋ and ẍ (N, n), the running up first and then whole periods, at `rate` Hz.

        The first `skipped` samples are to be left out of what is averaged.
        """
        count = round(self.rate * self.trajectory.period)
        t = np.arange(self.skipped + count * (periods or self.periods)) / self.rate
        return (t, *self.reference.at(t))

    def summary(self) -> str:
        """The motion, the limits and the predicted deviations as plain text."""
        form = "Fourier series" if isinstance(self.trajectory, FourierTrajectory) else "B-spline"
        lines = [
            f"{self.name}: {form} of {self.frequency:.6g} Hz, {self.periods} periods of {self.trajectory.period:.6g} s "
            f"at {self.rate:g} Hz, entered from rest in {self.lead:.3g} s",
            f"criterion '{self.criterion}' {self.value:.4f}, best of {len(self.goals)} starts; condition {self.condition:.4g}",
            f"{'parameter':<14}{'prior':>14}{'sigma':>12}{'sigma%':>9}  unit",
        ]
        for name, prior, s, r, unit in zip(
            self.names, self.priors, self.sigma, self.relative_sigma, self.units, strict=True
        ):
            shown = f"{prior:14.6g}" if np.isfinite(prior) else f"{'–':>14}"
            lines.append(f"{name:<14}{shown}{s:12.4g}{min(r, 9999.9) if np.isfinite(r) else np.nan:9.1f}  {unit}")
        tight = sorted(self.used.items(), key=lambda item: -item[1])
        lines.append("limits used most: " + ", ".join(f"{name} {100 * share:.1f} %" for name, share in tight[:6]))
        lines += ["not checked: " + "; ".join(self.unchecked)] if self.unchecked else []
        lines += [NOISE_ASSUMED] if self.noise.assumed else []
        return "\n".join(lines)


def information_of(A: Array, noise: Noise, memory: float) -> Array:
    """ΨᵀΣ⁻¹Ψ of one period of a periodic motion (N, rows, p), with noise that remembers by `memory` from sample to sample."""
    L = np.linalg.cholesky(noise.covariance)
    Aw = np.linalg.solve(L, A)
    if memory:
        Aw = (Aw - memory * np.roll(Aw, 1, axis=0)) / np.sqrt(1.0 - memory**2)
    flat = np.ascontiguousarray(Aw).reshape(-1, A.shape[2])
    return flat.T @ flat


def _entered(problem: ExcitationProblem, trajectory: Trajectory, start: Array | None, rate: float) -> RunUp | Approach:
    """The first way of entering the motion from rest that keeps every limit: soon rather than late, at one of eight points of it.

    With a `start`, also the first that a straight line from there reaches within all limits.
    """
    best, name, blocked = np.inf, "", ""
    for lead in ENTRY_PERIODS:
        for offset in np.arange(8) / 8.0:
            entry = RunUp(trajectory, lead * trajectory.period, offset * trajectory.period)
            X = np.stack(entry.at(np.linspace(0.0, entry.lead, max(64, int(lead * len(problem.phases))))))
            used = shares(problem.bounds, problem.bounds(X, slopes=False)[0])
            if not (used < 1.0).all():
                if used.max() < best:
                    best, name = float(used.max()), problem.bounds.names[int(np.argmax(used))]
            elif start is None:
                return entry
            else:
                approach, why = _approached(problem, entry, start, rate)
                if approach is not None:
                    return approach
                blocked = why
    if blocked:
        raise IdentificationError(
            "no straight way leads from the start to the motion within the limits.",
            where=f"{problem.plant.name}, {blocked}",
            hint="Move the machine to a freer pose and give that as the start, or leave the start out.",
        )
    raise IdentificationError(
        "the motion cannot be entered from rest within the limits.",
        where=f"{problem.plant.name}, {name}",
        found=f"{100.0 * best:.1f} % of it used at best",
        hint="Widen this limit, or lower the frequency.",
    )


def _approached(problem: ExcitationProblem, entry: RunUp, start: Array, rate: float) -> tuple[Approach | None, str]:
    """The fastest approach, to a factor of 1.2, that keeps the limits; or the limit that the slowest one violates."""

    def worst(seconds: float) -> tuple[float, str]:
        made = Approach(entry, start, seconds)
        X = np.stack(made.at(np.linspace(0.0, seconds, APPROACH_STEPS)))
        used = shares(problem.bounds, problem.bounds(X, slopes=False)[0])
        return float(used.max()), problem.bounds.names[int(np.argmax(used))]

    whole = np.unique(np.ceil(rate * LONGEST_APPROACH / 1.2 ** np.arange(24))) / rate
    share, name = worst(float(whole[-1]))
    if share >= 1.0:
        return None, name
    low, high = 0, len(whole) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if worst(float(whole[middle]))[0] < 1.0 else (middle + 1, high)
    return Approach(entry, start, float(whole[high])), ""
