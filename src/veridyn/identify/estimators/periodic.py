"""From a log of whole periods to the one period an estimator sees: averaged, filtered at the likeliest cut-off, with its noise known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.identify.estimators.gauss_markov import GaussMarkov
from veridyn.identify.estimators.likelihood import Likelihood, PeriodicData, periodic_data, scan
from veridyn.identify.estimators.noise_model import NoiseModel
from veridyn.identify.excitation.closed import closed_samples, plant_of
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent
from veridyn.signals.frequency import Periods, averaged
from veridyn.signals.resample import uniform_rate

Array = NDArray[np.float64]


def force_noise(forces: Periods, order: int = 0) -> NoiseModel:
    """The noise of one period's forces, from how periods differ; it may remember up to `order` samples."""
    return NoiseModel.from_runs(forces.deviations, order, forces.samples * (forces.periods - 1))


def likeliest(
    tree: Tree, motion: Motion | Sequence[Motion], rows: Rows, how: object, progress: Progress = silent
) -> tuple[Motion, GaussMarkov, tuple[str, ...]]:
    """One averaged period of a motion at the cut-off of the least criterion, the noise of its forces, and what was decided."""
    if not isinstance(how, Likelihood):
        raise DataError(
            Fault(
                "maximum likelihood needs to know the period of the motion.",
                where="settings",
                expected="Likelihood(frequency=…)",
            )
        )
    if not isinstance(motion, Motion) and len(motion) == 1:
        motion = motion[0]
    if not isinstance(motion, Motion):
        raise DataError(Fault("maximum likelihood takes one periodic motion.", where="motion", found=f"{len(motion)}"))
    how.check()
    data, kept = averaged_data(tree, motion, rows, how)
    found = scan(data, how, progress)
    X = data.filtered(found.chosen)
    one = closed_samples(data.plant, np.arange(X.shape[1]) / data.rate, X)
    forces = np.full(one.q.shape, np.nan)
    forces[:, [tree.coordinates.index(row) for row in data.plant.rows]] = data.forces
    said = (
        f"{kept.periods} periods of {kept.samples} samples averaged; {found.chosen} harmonics by {how.criterion.upper()}",
        f"least by cost, AIC and BIC: {found.least('cost')}, {found.least('aic')} and {found.least('bic')} harmonics",
    )
    whole = Motion(one.t, one.q, one.qd, one.qdd, forces=forces)
    return whole, GaussMarkov(data.force_noise, periodic=True), said


def averaged_data(tree: Tree, motion: Motion, rows: Rows, how: Likelihood) -> tuple[PeriodicData, Periods]:
    """The averages of a motion's actuator positions and forces, and the periods they come from."""
    plant = plant_of(tree, rows, None)
    rate = uniform_rate(motion.t, where="motion.t")
    if motion.forces is None:
        raise DataError(Fault("no forces are measured.", where="motion.forces"))
    places = [tree.coordinates.index(name) for name in plant.bounded]
    pulls = [tree.coordinates.index(name) for name in plant.rows]
    table = np.column_stack([motion.q[:, places], motion.forces[:, pulls]])
    names = (*(f"position {n}" for n in plant.bounded), *(f"force {n}" for n in plant.rows))
    kept = averaged(table, rate, how.frequency, skip=how.skip, names=names)
    positions, forces = kept.part(names[: len(places)]), kept.part(names[len(places) :])
    return periodic_data(plant, positions, forces, force_noise(forces, how.order)), kept
