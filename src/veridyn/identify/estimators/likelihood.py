"""Maximum likelihood from a log of whole periods: averaged, filtered at the most likely cut-off, weighted by the noise between periods.

The periods are averaged, the number of harmonics of the motion is chosen by :func:`scan`, and the one period that is left is estimated by
Gauss and Markov with the noise that the differences of the periods show. Where a speed is slow, harmonics turn its sign some samples
early or late, and weights of coloured noise, which are those of differences, make much of that: where there is dry friction, such
samples are left out as by ``Sampling(dead_zone="auto")``, unless a sampling is given.

Positions and forces both have noise, and the cut-off of the filter is an unknown of the cost

    ½ Σ_t [ δᵀ Σ_δδ⁻¹ δ + ηᵀ Σ_ηη⁻¹ η ]                                                  (24) of paper 002

δ is what was measured of positions less the filtered motion, η the forces less A(x, ẋ, ẍ) p. With the explicit DFT filter the cut-off
counts only through the bin it falls into, so the cost is a staircase and every step of it is looked at. More bins always lower it; what
they buy is weighed against the 2n coefficients each adds, by AIC (+2n a bin) or BIC (+n ln of the number of measurements). Beside it,
the Fourier coefficients themselves may be the unknowns, all at once with the parameters (Swevers et al. 1997), by Gauss-Newton with
exact slopes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults
from veridyn.identify.estimator import Estimator, FitProblem
from veridyn.identify.estimators.gauss_markov import (
    MODELLED,
    MODELLED_HINT,
    ArrayEstimate,
    GaussMarkov,
    NoiseModel,
    estimated,
)
from veridyn.identify.excitation.plant import Plant, closed_samples, plant_of
from veridyn.identify.regression.sampling import Sampling, with_dead_zones
from veridyn.identify.result import Fit
from veridyn.identify.settings import Auto, Hac
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.settings import above, at_least
from veridyn.signals.frequency import Periods, averaged, dft_filter, fourier_fit
from veridyn.signals.resample import uniform_rate
from veridyn.signals.trajectory import FourierTrajectory, fourier_basis

Criterion = Literal["bic", "aic", "cost"]


@dataclass(frozen=True, repr=False)
class Likelihood(Estimator):
    """Maximum likelihood from one periodic motion: positions and forces are both noisy, and the cut-off is estimated too.

    Parameters
    ----------
    frequency : float above 0
        Frequency of the periods in Hz; it has no default. The motion holds whole periods, with positions as they were measured.
    highest : int of at least 1
        The largest number of harmonics that is tried; 30 by default.
    criterion : {"bic", "aic", "cost"}
        What chooses the number of harmonics: BIC (the default), AIC, or the cost alone, which always prefers more.
    order : int of at least 0
        Samples over which the noise of the forces may be correlated, at most; 8 by default, of which BIC chooses the order. 0: white noise.
    skip : int of at least 0
        Samples before the first period; 0 by default.

    Examples
    --------
    >>> method = vd.estimators.Likelihood(frequency=0.5, highest=6)
    >>> fit = vd.identify(robot, motion, method)  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'maximum likelihood'
    """

    name: ClassVar[str] = "likelihood"
    title: ClassVar[str] = "maximum likelihood"

    frequency: Annotated[float, above(0.0)]
    highest: Annotated[int, at_least(1)] = 30
    criterion: Criterion = "bic"
    order: Annotated[int, at_least(0)] = 8
    skip: Annotated[int, at_least(0)] = 0

    @property
    def every_sample(self) -> bool:
        return True

    def check(self, machine: Machine, rows: Rows, covariance: Hac | Auto | None) -> None:
        super().check(machine, rows, covariance)
        self.refuse_hac(covariance, MODELLED, MODELLED_HINT)

    def fit(self, problem: FitProblem) -> Fit:
        """Gauss-Markov on one averaged period with the chosen number of harmonics; noise of positions is part of the deviations."""
        motion, weights, notes, data, harmonics = self.select_harmonics(problem)
        weights.check(problem.machine, problem.rows, None)
        how = problem.settings.sampling or Sampling(dead_zone="auto")
        how = with_dead_zones(how, problem.machine, [motion], problem.rows)
        if how.zones:  # samples are left out, so that the last is not followed by the first
            weights = replace(weights, periodic=False)
        fit = weights.fit(replace(problem, motion=motion, settings=replace(problem.settings, sampling=how)))
        *others, noise = fit.notes
        names = list(data.plant.base.names)
        if set(fit.names) <= set(names):
            values = np.zeros(len(names))
            at = [names.index(n) for n in fit.names]
            values[at] = fit.values
            whole, share = trajectory_noise(data, harmonics, values)
            forces, added = fit.covariance / fit.residual_sigma**2, whole[np.ix_(at, at)]
            grown = float(np.sqrt((1.0 + np.diag(added) / np.diag(forces)).max()))
            # What is left beyond both noises is the model's, and scales the deviations as by least squares.
            lack = fit.residual_sigma**2 / (1.0 + share)
            notes = (
                *notes,
                f"noise of positions makes deviations up to {grown:.3g} times as large as noise of forces alone",
            )
            fit = replace(fit, covariance=lack * (forces + added), residual_sigma=float(np.sqrt(lack)))
        else:
            notes = (
                *notes,
                "noise of positions is not in the deviations: the data separate other groups of parameters",
            )
        return replace(fit, estimator=self.title, notes=(*others, *notes, noise))

    def select_harmonics(self, problem: FitProblem) -> tuple[Motion, GaussMarkov, tuple[str, ...], PeriodicData, int]:
        """One averaged period with the number of harmonics of the least criterion, the noise of its forces, notes on the choice; and the
        data and number it was made of."""
        machine, motion = problem.machine, problem.motion
        if not isinstance(motion, Motion) and len(motion) == 1:
            motion = motion[0]
        if not isinstance(motion, Motion):
            what = "maximum likelihood takes one periodic motion."
            raise DataError(what, where="motion", found=f"{len(motion)}")
        data, kept = averaged_data(machine, motion, problem.rows, self)
        found = scan(data, self.highest, self.criterion, problem.progress)
        X = data.filtered(found.chosen)
        one = closed_samples(data.plant, np.arange(X.shape[1]) / data.rate, X)
        forces = np.full(one.q.shape, np.nan)
        forces[:, [machine.coordinates.index(row) for row in data.plant.rows]] = data.forces
        notes = (
            f"{kept.periods} periods of {kept.samples} samples averaged; {found.chosen} harmonics by {self.criterion.upper()}",
            f"least by cost, AIC and BIC: {found.least('cost')}, {found.least('aic')} and {found.least('bic')} harmonics",
        )
        whole = Motion(one.t, one.q, one.qd, one.qdd, forces=forces)
        return whole, GaussMarkov(data.force_noise, periodic=True), notes, data, found.chosen


def force_noise(forces: Periods, order: int = 0) -> NoiseModel:
    """The noise of one period's forces, from the differences of the periods; it may be correlated over up to `order` samples."""
    return NoiseModel.from_runs(forces.deviations, order, forces.samples * (forces.periods - 1))


def averaged_data(machine: Machine, motion: Motion, rows: Rows, how: Likelihood) -> tuple[PeriodicData, Periods]:
    """The averages of a motion's actuator positions and forces, and the periods they come from."""
    plant = plant_of(machine, rows, None)
    rate = uniform_rate(motion.t, where="motion.t")
    if motion.forces is None:
        raise DataError("no forces are measured.", where="motion.forces")
    places = [machine.coordinates.index(name) for name in plant.bounded]
    pulls = [machine.coordinates.index(name) for name in plant.rows]
    table = np.column_stack([motion.q[:, places], motion.forces[:, pulls]])
    names = (*(f"position {n}" for n in plant.bounded), *(f"force {n}" for n in plant.rows))
    kept = averaged(table, rate, how.frequency, skip=how.skip, names=names)
    positions, forces = kept.part(names[: len(places)]), kept.part(names[len(places) :])
    return periodic_data(plant, positions, forces, force_noise(forces, how.order)), kept


@dataclass(frozen=True, eq=False, kw_only=True)
class PeriodicData:
    """One averaged period of a plant: `coordinates` x̂ (N, n) as they follow from the `positions` (N, m) of its actuators, `forces` (N, r).

    `position_noise` (m, m) and `force_noise` are those of the averages, not of one period.
    """

    plant: Plant
    rate: float
    coordinates: Array
    positions: Array
    forces: Array
    position_noise: Array
    force_noise: NoiseModel

    @property
    def measurements(self) -> int:
        return self.positions.size + self.forces.size

    def filtered(self, harmonics: int) -> Array:
        """X (3, N, n) by the explicit DFT filter."""
        return np.stack(dft_filter(self.coordinates, self.rate, harmonics))


@dataclass(frozen=True, eq=False, kw_only=True)
class Scan:
    """The staircase: for each number of `harmonics`, the cost (24), AIC and BIC; and the estimate at the chosen one."""

    harmonics: NDArray[np.intp]
    cost: Array
    aic: Array
    bic: Array
    criterion: str
    chosen: int
    estimate: ArrayEstimate

    def least(self, criterion: str) -> int:
        """The number of harmonics that one of the three criteria prefers."""
        return int(self.harmonics[int(np.argmin(getattr(self, criterion)))])

    def summary(self) -> str:
        lines = [f"{'harmonics':>9}{'cost':>14}{'AIC':>14}{'BIC':>14}"]
        lines += [
            f"{h:9d}{c:14.1f}{a:14.1f}{b:14.1f}" + ("  <" if h == self.chosen else "")
            for h, c, a, b in zip(self.harmonics, self.cost, self.aic, self.bic, strict=True)
        ]
        return "\n".join(lines)


def periodic_data(
    plant: Plant, positions: Periods, forces: Periods, force_noise: NoiseModel | None = None
) -> PeriodicData:
    """Averages of the actuators' positions and forces, in the plant's order, with the covariance of their noise over the periods."""
    faults = Faults()
    if positions.mean.shape[1] != len(plant.bounded) or forces.mean.shape[1] != len(plant.rows):
        faults.add(
            "the channels are not those of this machine.",
            where=plant.name,
            expected=f"{len(plant.bounded)} positions and {len(plant.rows)} forces",
            found=f"{positions.mean.shape[1]} and {forces.mean.shape[1]}",
        )
    elif (positions.samples, positions.periods) != (forces.samples, forces.periods):
        faults.add(
            "positions and forces have other periods.",
            where=plant.name,
            found=f"{positions.periods} of {positions.samples} samples and {forces.periods} of {forces.samples}",
        )
    faults.raise_if_any(DataError)
    share = 1.0 / positions.periods
    noise = (force_noise or NoiseModel.white(forces.covariance)).scaled(share)
    return PeriodicData(
        plant=plant,
        rate=positions.rate,
        coordinates=plant.located(positions.mean),
        positions=positions.mean,
        forces=forces.mean,
        position_noise=share * positions.covariance,
        force_noise=noise,
    )


def scan(data: PeriodicData, highest: int = 30, criterion: Criterion = "bic", progress: Progress = silent) -> Scan:
    """Every number of harmonics up to the highest, or to what the samples hold."""
    n = data.coordinates.shape[1]
    top = min(highest, (len(data.coordinates) - 1) // 2)
    numbers = np.arange(1, top + 1)
    costs = np.zeros(top)
    found: dict[int, ArrayEstimate] = {}
    for k, harmonics in enumerate(numbers):
        X = data.filtered(int(harmonics))
        found[int(harmonics)], costs[k] = _fitted(data, X)
        progress("cut-offs", float(k + 1), float(top))
    aic = costs + 2.0 * n * numbers
    bic = costs + n * numbers * np.log(data.measurements)
    by = {"cost": costs, "aic": aic, "bic": bic}
    chosen = int(numbers[int(np.argmin(by[criterion]))])
    return Scan(
        harmonics=numbers, cost=costs, aic=aic, bic=bic, criterion=criterion, chosen=chosen, estimate=found[chosen]
    )


def _fitted(data: PeriodicData, X: Array) -> tuple[ArrayEstimate, float]:
    """The parameters that are best for a filtered motion, and the cost with them."""
    A = data.plant.regressor(X)
    best = estimated(A, data.forces, data.force_noise)
    eta = data.force_noise.whitened((data.forces - A @ best.values)[..., None])
    return best, 0.5 * (float((eta**2).sum()) + float((_delta(data, X) ** 2).sum()))


def _delta(data: PeriodicData, X: Array) -> Array:
    """Errors of positions in units of their noise (N, m)."""
    delta = data.positions - data.plant.actuators(X)[0][:, 0]
    return np.asarray(np.linalg.solve(np.linalg.cholesky(data.position_noise), delta.T)).T.astype(np.float64)


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """Parameters and trajectory estimated together: `estimate` of the parameters, `trajectory`, the cost and the steps it took."""

    estimate: ArrayEstimate
    trajectory: FourierTrajectory
    cost: float
    steps: int


def jointly(data: PeriodicData, harmonics: int, steps: int = 10, tolerance: float = 1e-4) -> JointEstimate:
    """(24) with the Fourier coefficients as unknowns, from the fit (18) on; done when a step moves nothing by more than `tolerance` σ.

    The covariance of the parameters allows for that of the trajectory.
    """
    N = len(data.coordinates)
    t = np.arange(N) / data.rate
    f = data.rate / N
    B = fourier_basis(t * f, harmonics) * np.array([1.0, f, f * f])[:, None, None]
    C = _coefficients(fourier_fit(data.coordinates, t, f, harmonics))
    p = estimated(data.plant.regressor(B @ C), data.forces, data.force_noise).values
    whole, cost, done = np.eye(1), np.inf, 0
    while done < steps:
        done += 1
        X = B @ C
        J, r = _linearised(data, B, X, p)
        Q, R = np.linalg.qr(J)
        step = np.linalg.solve(R, Q.T @ r)
        cost = 0.5 * float(r @ r)
        inverse = np.linalg.inv(R)
        whole = inverse @ inverse.T
        C, p = C + step[: C.size].reshape(C.shape), p + step[C.size :]
        if np.abs(step / np.sqrt(np.diag(whole))).max() < tolerance:
            break
    covariance = whole[C.size :, C.size :]
    k_over = np.arange(1, harmonics + 1)[:, None]
    H = harmonics
    trajectory = FourierTrajectory(C[0], (C[1 : H + 1] / k_over).T, (C[H + 1 :] / k_over).T, f)
    return JointEstimate(ArrayEstimate(p, covariance), trajectory, cost, done)


def trajectory_noise(data: PeriodicData, harmonics: int, p: Array) -> tuple[Array, float]:
    """What noise of positions, as the filter lets it through, adds to the covariance of estimates from forces, K V Kᵀ (p, p), and to the
    mean square of whitened residuals, tr((1 − A K) V)/n, which is 1 without it; V = F (PᵀP)⁻¹ Fᵀ.

    P and F are the slopes of whitened positions and forces by the Fourier coefficients of the motion, K = (AᵀA)⁻¹Aᵀ of the whitened
    columns A.
    """
    N = len(data.coordinates)
    t, f = np.arange(N) / data.rate, data.rate / N
    B = fourier_basis(t * f, harmonics) * np.array([1.0, f, f * f])[:, None, None]
    C = _coefficients(fourier_fit(data.coordinates, t, f, harmonics))
    J, _ = _linearised(data, B, B @ C, p)
    places = data.positions.size
    P, F, A = J[:places, : C.size], J[places:, : C.size], J[places:, C.size :]
    Q, R = np.linalg.qr(A)
    _, known = np.linalg.qr(P)
    half = np.linalg.solve(known.T, F.T)
    seen = Q.T @ half.T
    moved = np.linalg.solve(R, seen)
    return moved @ moved.T, float((half**2).sum() - (seen**2).sum()) / len(F)


def _coefficients(trajectory: FourierTrajectory) -> Array:
    """The coefficients of :func:`~veridyn.signals.trajectory.fourier_basis` (2H + 1, n)."""
    k = np.arange(1, trajectory.sine.shape[1] + 1)
    return np.vstack([trajectory.centre, (k * trajectory.sine).T, (k * trajectory.cosine).T])


def _linearised(data: PeriodicData, B: Array, X: Array, p: Array) -> tuple[Array, Array]:
    """Slopes of all whitened predictions by coefficients and parameters, and the whitened residuals."""
    plant, N, n = data.plant, X.shape[1], X.shape[2]
    A = plant.regressor(X)
    r = A.shape[1]
    by_C = np.zeros((N, r, B.shape[2], n))
    for row in range(r):
        G = np.zeros(A.shape)
        G[:, row] = p
        slope = plant.adjoint(X, G)  # (3, N, n) of this row's force
        by_C[:, row] = np.einsum("onb,oni->nbi", B, slope)
    forces = np.concatenate([by_C.reshape(N, r, -1), A], axis=2)
    residual = (data.forces - A @ p)[..., None]
    white = data.force_noise.whitened(np.concatenate([forces, residual], axis=2)).reshape(N * r, -1)
    Q, dQ = plant.actuators(X)
    m = Q.shape[2]
    places = np.zeros((N, m, B.shape[2], n))
    if dQ is None:
        places[:, np.arange(m), :, np.arange(m)] = B[0]
    else:
        places = B[0][:, None, :, None] * dQ[:, 0, :, 0][:, :, None, :]
    L = np.linalg.inv(np.linalg.cholesky(data.position_noise))
    moved = (L @ places.reshape(N, m, -1)).reshape(N * m, -1)
    top = np.concatenate([moved, np.zeros((N * m, A.shape[2]))], axis=1)
    return np.vstack([top, white[:, :-1]]), np.concatenate([_delta(data, X).ravel(), white[:, -1]])
