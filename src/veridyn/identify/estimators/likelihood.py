"""Maximum likelihood from a log of whole periods: averaged, filtered at the most likely cut-off, weighted by the noise between periods.

The periods are averaged, the number of harmonics of the motion is chosen by :func:`~veridyn.identify.estimators.harmonics.scan`, and the
one period that is left is estimated by Gauss and Markov with the noise that the differences of the periods show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.identify.estimator import Estimator, FitProblem
from veridyn.identify.estimators.coloured import Hac
from veridyn.identify.estimators.gauss_markov import MODELLED, MODELLED_HINT, GaussMarkov
from veridyn.identify.estimators.harmonics import Criterion, PeriodicData, periodic_data, scan, trajectory_noise
from veridyn.identify.estimators.noise_model import NoiseModel
from veridyn.identify.excitation.closed import closed_samples, plant_of
from veridyn.identify.result import Fit
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.settings import above, at_least
from veridyn.signals.frequency import Periods, averaged
from veridyn.signals.resample import uniform_rate

Array = NDArray[np.float64]


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
        Samples over which the noise of the forces may be correlated, at most; the order is chosen by BIC. 0, the default: white noise.
    skip : int of at least 0
        Samples before the first period; 0 by default.

    Examples
    --------
    >>> fit = vd.identify(robot, motion, vd.Likelihood(frequency=0.5, highest=6))  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'maximum likelihood'
    """

    name: ClassVar[str] = "likelihood"
    title: ClassVar[str] = "maximum likelihood"

    frequency: Annotated[float, above(0.0)]
    highest: Annotated[int, at_least(1)] = 30
    criterion: Criterion = "bic"
    order: Annotated[int, at_least(0)] = 0
    skip: Annotated[int, at_least(0)] = 0

    def check(self, machine: Machine, rows: Rows, covariance: Hac | None) -> None:
        super().check(machine, rows, covariance)
        self.refuse_hac(covariance, MODELLED, MODELLED_HINT)

    def fit(self, problem: FitProblem) -> Fit:
        """Gauss-Markov on one averaged period with the chosen number of harmonics; noise of positions is part of the deviations."""
        motion, weights, notes, data, harmonics = self.select_harmonics(problem)
        weights.check(problem.machine, problem.rows, None)
        fit = weights.fit(replace(problem, motion=motion))
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
            raise DataError(Fault(what, where="motion", found=f"{len(motion)}"))
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
        raise DataError(Fault("no forces are measured.", where="motion.forces"))
    places = [machine.coordinates.index(name) for name in plant.bounded]
    pulls = [machine.coordinates.index(name) for name in plant.rows]
    table = np.column_stack([motion.q[:, places], motion.forces[:, pulls]])
    names = (*(f"position {n}" for n in plant.bounded), *(f"force {n}" for n in plant.rows))
    kept = averaged(table, rate, how.frequency, skip=how.skip, names=names)
    positions, forces = kept.part(names[: len(places)]), kept.part(names[len(places) :])
    return periodic_data(plant, positions, forces, force_noise(forces, how.order)), kept
