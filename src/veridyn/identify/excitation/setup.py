"""From a machine, its limits and a family of motions to the problem that a search solves: everything checked, faults by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault, Faults, IdentificationError
from veridyn.identify.excitation.closed import plant_of
from veridyn.identify.excitation.criteria import Criterion, check_criterion
from veridyn.identify.excitation.limits import Bounds, Limits, check_limits
from veridyn.identify.excitation.plan import Noise, noise_of
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.excitation.problem import ExcitationProblem
from veridyn.identify.excitation.shape import Shape
from veridyn.identify.excitation.start import reach_of, standing
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.signals.trajectory import JointLimits

Array = NDArray[np.float64]

PHASES_PER_WAVE = 24  # phases per shortest wave in the search; between two of them a peak is missed by at most 0.9 %
FRICTION_SPEED_SHARE = 0.02  # of the speed limit, below which the search rounds dry friction off


def problem_of(
    machine: Machine | Plant,
    limits: Limits | JointLimits,
    shape: Shape,
    *,
    rng: np.random.Generator,
    at: Sequence[str] | None = None,
    rows: Rows = "all",
    criterion: Criterion = "d",
    noise: Noise | Mapping[str, float] | ArrayLike | None = None,
    rate: float = 100.0,
    centre: ArrayLike | None = None,
) -> tuple[ExcitationProblem, Array, Noise]:
    """The problem, a place (n,) about which to start, and the noise; arguments as for `design_excitation`."""
    check_criterion(criterion)
    plant = plant_of(machine, rows, at) if isinstance(machine, Machine) else machine
    whole = Limits(actuators=limits) if isinstance(limits, JointLimits) else limits
    check_limits(plant, whole)
    ends = _frequencies(rate, shape)
    noisy = noise_of(plant, noise)
    actuators, own = whole.actuators, whole.coordinates
    if own is None and plant.bounded == plant.coordinates:
        own = actuators
    speeds = [x.speed[np.isfinite(x.speed)] for x in (actuators, own) if x is not None]
    slow = FRICTION_SPEED_SHARE * float(min((s.min(initial=np.inf) for s in speeds), default=np.inf))
    values = _values(plant) if whole.force is not None else np.zeros(plant.base.count)
    bounds = Bounds(plant, whole, values, slow if np.isfinite(slow) else 1e-3)
    _check_friction(bounds)
    middle = _centre(plant, centre, own)
    place, reach = _room(bounds, middle, own, rng)
    phases = np.arange(count := int(np.ceil(PHASES_PER_WAVE * shape.fastest))) / count
    whitener = np.asarray(np.linalg.inv(np.linalg.cholesky(noisy.covariance)), dtype=np.float64)
    problem = ExcitationProblem(
        plant=plant,
        shape=shape,
        bounds=bounds,
        goal=criterion,
        phases=phases,
        reach=reach,
        whitener=whitener,
        frequency=ends,
        friction_speed=bounds.friction_speed,
    )
    return problem, place, noisy


def _check_friction(bounds: Bounds) -> None:
    """Refuse limits on forces that the friction of a joint uses up by itself."""
    if bounds.limits.force is None:
        return
    allowed, faults = np.asarray(bounds.limits.force, dtype=np.float64), Faults()
    for row, most, friction in zip(bounds.plant.rows, allowed, bounds.friction, strict=True):
        if friction >= most:
            faults.add(
                "the dry friction of the model alone uses up what this joint may give.",
                where=f"limits, force of {row}",
                expected=f"more than {friction:g}",
                found=f"{most:g}",
                hint="Correct the limit or the friction; a joint that does not take part may be fixed in the model.",
            )
    faults.raise_if_any(IdentificationError, bounds.plant.name)


def _centre(plant: Plant, centre: ArrayLike | None, own: JointLimits | None) -> Array:
    """What is given, by coordinate: else the middle of its range, or home where it has none."""
    middle = plant.home.copy()
    if own is not None:
        ranged = np.isfinite(own.high - own.low)
        middle[ranged] = (own.low[ranged] + own.high[ranged]) / 2.0
    if centre is None:
        return middle
    given = np.array(centre, dtype=np.float64)
    if given.shape != middle.shape:
        raise DataError(
            Fault(
                "the centre is not a place of this machine.",
                where="design_excitation, centre",
                expected=f"{len(plant.coordinates)} numbers ({', '.join(plant.coordinates)}), NaN where the default will do",
                found=f"shape {given.shape}",
            )
        )
    return np.where(np.isnan(given), middle, given)


def _room(bounds: Bounds, middle: Array, own: JointLimits | None, rng: np.random.Generator) -> tuple[Array, Array]:
    """A place to stand at, and how far each coordinate can go: half its range, or until the first limit where it has none."""
    half = (
        np.full(len(middle), np.nan) if own is None else np.where(own.high < np.inf, (own.high - own.low) / 2.0, np.nan)
    )
    open_ended = ~np.isfinite(half)
    if not open_ended.any():
        return standing(bounds, middle, half, rng), half
    if open_ended.all():
        reach = reach_of(bounds, middle)
        return standing(bounds, middle, reach, rng), reach
    place = standing(bounds, middle, np.where(open_ended, np.pi, half), rng)
    return place, np.where(open_ended, reach_of(bounds, place), half)


def _frequencies(rate: float, shape: Shape) -> tuple[float, float]:
    """The ends of the frequency; a fixed one must fit the sampling."""
    low, high = shape.ends
    if not rate > 4.0 * shape.fastest * high:
        raise DataError(
            Fault(
                "the sampling is too slow for this motion.",
                where="design_excitation, rate",
                expected=f"more than {4.0 * shape.fastest * high:g} Hz, four samples for its shortest wave",
                found=f"{rate:g} Hz",
            )
        )
    count = rate / low
    if low == high and abs(count - round(count)) > 1e-6 * count:
        below, above = rate / np.ceil(count), rate / np.floor(count)
        raise DataError(
            Fault(
                "the period does not fit the sampling, so periods could not be averaged.",
                where=f"{type(shape).__name__}.frequency",
                expected=f"a whole number of samples at {rate:g} Hz",
                found=f"{count:.6g} at {low:g} Hz",
                hint=f"The nearest frequencies that fit are {below:.9g} and {above:.9g} Hz.",
            )
        )
    return low, high


def _values(plant: Plant) -> Array:
    values = plant.base.reduce(plant.base.parameters.values)
    if not np.isfinite(values).all():
        raise IdentificationError(
            Fault(
                "limits on forces need a model whose parameters all have a value.",
                where="limits.force",
                hint="Give prior values in the model file, or leave the force out of the limits.",
            ),
            plant.name,
        )
    return values
