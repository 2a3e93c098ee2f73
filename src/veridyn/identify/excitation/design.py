"""Design of experiments: a machine, its limits and a family of motions in; a motion to run and its predicted accuracy out.

The motion is a finite Fourier series (12)–(15) of paper 002 or a periodic B-spline, in the joints of a tree or in any independent
coordinates of a machine with loops, such as the pose of its platform. It minimises a criterion of the information ΨᵀΣ⁻¹Ψ with exact
gradients, from many starts, never leaving the limits. Machine, limits and family are checked first, and faults reported by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, IdentificationError
from veridyn.identify.excitation.interior import Barrier, InteriorSolution, minimise
from veridyn.identify.excitation.limits import Bounds, Limits, check_limits
from veridyn.identify.excitation.plan import ExcitationPlan, Noise, noise_of
from veridyn.identify.excitation.plant import Plant, plant_of
from veridyn.identify.excitation.problem import (
    Criterion,
    ExcitationProblem,
    check_criterion,
    drawn,
    excess,
    inside,
    reach_of,
    shares,
    standing,
)
from veridyn.identify.excitation.shape import SHAPES, Shape
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.settings import method_of, verb_with_method
from veridyn.signals.trajectory import JointLimits

LEAST, STEP = 0.97, 0.0005  # how far, and in what steps, a motion may be drawn together for that
METHOD_IS_THIRD = (
    "The family of motions is the third argument: design_excitation(tree, limits, Fourier(harmonics=5, frequency=0.1))."
)
TASK = "designing the excitation"
LIMIT_MARGINS = (0.01, 0.03)  # shares of the limits kept free where drawing together does not help
PHASES_PER_WAVE = 24  # phases per shortest wave in the search; between two of them a peak is missed by at most 0.9 %
FRICTION_SPEED_SHARE = 0.02  # of the speed limit, below which the search rounds dry friction off


@checked
@verb_with_method(DataError, dict.fromkeys(("kind", "harmonics", "points", "frequency"), METHOD_IS_THIRD))
def design_excitation(
    machine: Machine | Plant,
    limits: Limits | JointLimits,
    method: Shape | str = "fourier",
    *,
    rows: Rows = "all",
    at: Sequence[str] | None = None,
    criterion: Criterion = "d",
    noise: Noise | Mapping[str, float] | ArrayLike | None = None,
    rate: float = 100.0,
    periods: int = 10,
    starts: int = 8,
    barrier: Barrier | None = None,
    centre: ArrayLike | None = None,
    start: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> ExcitationPlan:
    """Design a periodic motion that determines the base parameters as well as possible and stays within all limits.

    Parameters
    ----------
    machine : Machine or Plant
        The machine.
    limits : Limits or JointLimits
        All limits of the experiment, or those of the joints alone.
    method : Fourier, Spline or str
        The family of motions: ``Fourier(harmonics=5, frequency=0.1)``, ``Spline(points=16, frequency=0.1)``, or "fourier" (the default)
        or "spline" for one with default settings. Information is counted per second, so a slower motion gains nothing by lasting longer.
    rows : "all" or names
        The equations that will be measured; all of them by default.
    at : sequence of str, optional
        The coordinates that are designed, for a machine with loops; the actuated ones by default.
    criterion : {"d", "a", "e", "condition"}
        What is minimised: D- (the default), A- or E-optimality, or the condition number of the regressor.
    noise : Noise, mapping of row names to numbers, or array, optional
        Standard deviation of each row in N or N*m, (rows,), or their covariance (rows, rows). Without any it is 1 for every row, the
        plan's noise is marked as assumed, and only ratios of predicted deviations count.
    rate : float
        Sampling rate in Hz, 100 by default. The period of the plan is a whole number of samples.
    periods : int
        Periods that will be recorded; 10 by default.
    starts : int
        Random motions to start from, 8 by default; the best result is kept.
    barrier : Barrier, optional
        Settings of the interior-point search.
    centre : array (n,), optional
        The place about which starts are made; NaN, or without any, the middle of a coordinate's range, or its home where it has none.
    start : array (n,), optional
        Where the machine stands: it is led from there to the motion within all limits, from rest to rest. By default it is at the
        motion's first place.
    rng : numpy.random.Generator, optional
        The same generator gives the same plan; seed 0 by default.
    executor : concurrent.futures.Executor, optional
        Shares out the starts.
    progress : callable (task, done, total), optional
        Called after every step of the search and after every start; with an executor after every start.

    Returns
    -------
    ExcitationPlan
        The trajectory, the share of each limit that it uses, and the predicted standard deviation of each base parameter.

    Examples
    --------
    >>> import veridyn as vd
    >>> arm = vd.Machine.of_bodies([vd.model.Body("upper"), vd.model.Body("lower", "upper", placement=vd.spatial.MDH(d=0.5))])
    >>> limits = vd.signals.JointLimits([-1.5] * 2, [1.5] * 2, [2.0] * 2, [8.0] * 2)  # low, high, speed, acceleration
    >>> plan = vd.design_excitation(arm, limits, vd.Fourier(harmonics=2, frequency=0.2), starts=1)
    >>> plan.frequency, plan.trajectory.period, bool(max(plan.used.values()) <= 1.0)
    (0.2, 5.0, True)
    """
    shape = method_of(method, Shape, SHAPES, "design_excitation", ("all", "actuated"))
    if periods < 1 or starts < 1:
        raise DataError("at least one period and one start are needed.", where="design_excitation")
    random = rng or np.random.default_rng(0)
    with one_blas_thread():
        problem, place, noisy = problem_of(
            machine,
            limits,
            shape,
            rng=random,
            at=at,
            rows=rows,
            criterion=criterion,
            noise=noise,
            rate=rate,
            centre=centre,
        )
        begin = _start(problem, start)
        how = barrier or Barrier()
        found: list[InteriorSolution] = []
        generators = random.spawn(starts)
        progress(TASK, 0.0, float(starts))
        if executor is None:

            def report(share: float) -> None:
                progress(TASK, len(found) + share, float(starts))

            results = (_searched(problem, place, how, g, report) for g in generators)
        else:
            results = executor.map(partial(_searched, problem, place, how), generators)
        for one in results:
            found.append(one)
            progress(TASK, float(len(found)), float(starts))
        best = int(np.argmin([one.goal for one in found]))
        u = _fitted(problem, found[best].u, rate)
        for closer in _closer(problem):
            if u is None:
                # What lies between the phases, or friction that jumps, is too much: search again further inside.
                u = _fitted(problem, _searched(closer, place, how, random.spawn(1)[0]).u, rate)
        if u is None:
            raise IdentificationError(
                "no motion was found that keeps the limits between samples too.",
                where=f"limits, {_worst(problem, found[best].u)}",
                hint="Widen this limit.",
                source=problem.plant.name,
            )
        return ExcitationPlan.of(problem, u, noisy, rate, periods, tuple(one.goal for one in found), begin)


def _start(problem: ExcitationProblem, start: ArrayLike | None) -> Array | None:
    """Where the machine stands, refused where it violates a limit."""
    if start is None:
        return None
    names, x = problem.plant.coordinates, np.array(start, dtype=np.float64)
    if x.shape != (len(names),) or not np.isfinite(x).all():
        raise DataError(
            "the start is not a place of this machine.",
            where="design_excitation, start",
            expected=f"{len(names)} numbers ({', '.join(names)})",
            found=f"{x.tolist()}",
        )
    used, name = excess(problem.bounds, x)
    if used >= 1.0:
        raise IdentificationError(
            "the machine does not stand within its limits.",
            where=f"start, {name}",
            found=f"{100.0 * used:.0f} % of this limit used",
            hint="Correct the start or the limit; a pair of bodies that touch only as capsules may be ignored by name.",
            source=problem.plant.name,
        )
    return x


def _closer(problem: ExcitationProblem) -> Iterator[ExcitationProblem]:
    """The same problem with more and more room left to its limits; in the end with all that friction may add to a force."""
    for margin in LIMIT_MARGINS:
        yield replace(problem, margin=margin)
    below = problem.bounds.below_friction()
    if below is not None:
        yield replace(problem, bounds=below, margin=LIMIT_MARGINS[0])


def _searched(
    problem: ExcitationProblem,
    place: Array,
    how: Barrier,
    rng: np.random.Generator,
    report: Callable[[float], None] | None = None,
) -> InteriorSolution:
    return minimise(problem.limited(), drawn(problem, place, rng), how, report)


def _worst(problem: ExcitationProblem, u: Array) -> str:
    """The limit that a motion violates most on a fine grid."""
    C, f = problem.motion_of(u)
    fine = replace(problem.with_dry_friction(), phases=problem.fine_phases, frequency=(f, f), margin=0.0)
    used = shares(fine.bounds, fine.bounds(fine.samples(fine.unknowns(C, f)), slopes=False)[0])
    return f"{fine.bounds.names[int(np.argmax(used))]} ({100.0 * used.max():.1f} % used)"


def _fitted(problem: ExcitationProblem, u: Array, rate: float) -> Array | None:
    """The motion with a period of whole samples, drawn together a little about its centre until the limits hold on a fine grid."""
    C, f = problem.motion_of(u)
    count = np.ceil(rate / f - 1e-6)  # slower, if anything, so that speeds stay inside
    f = rate / (count if rate / count >= problem.frequency[0] * (1.0 - 1e-9) else count - 1.0)
    fine = replace(problem.with_dry_friction(), phases=problem.fine_phases, frequency=(f, f), margin=0.0)
    still = problem.shape.still(problem.shape.trajectory(C, f).centre)
    for size in np.arange(1.0, LEAST, -STEP):
        final = fine.unknowns(still + size * (C - still), f)
        if inside(fine, final):
            return np.append(final, np.log(f)) if problem.free_frequency else final
    return None


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
    place, reach = _place_and_reach(bounds, middle, own, rng)
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
            "the centre is not a place of this machine.",
            where="design_excitation, centre",
            expected=f"{len(plant.coordinates)} numbers ({', '.join(plant.coordinates)}), NaN where the default will do",
            found=f"shape {given.shape}",
        )
    return np.where(np.isnan(given), middle, given)


def _place_and_reach(
    bounds: Bounds, middle: Array, own: JointLimits | None, rng: np.random.Generator
) -> tuple[Array, Array]:
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
    if not 4.0 * shape.fastest * high < rate < np.inf:
        raise DataError(
            "the sampling is too slow for this motion.",
            where="design_excitation, rate",
            expected=f"more than {4.0 * shape.fastest * high:g} Hz, four samples for its shortest wave",
            found=f"{rate:g} Hz",
        )
    count = rate / low
    if low == high and abs(count - round(count)) > 1e-6 * count:
        below, above = rate / np.ceil(count), rate / np.floor(count)
        raise DataError(
            "the period does not fit the sampling, so periods could not be averaged.",
            where=f"{type(shape).__name__}.frequency",
            expected=f"a whole number of samples at {rate:g} Hz",
            found=f"{count:.6g} at {low:g} Hz",
            hint=f"The nearest frequencies that fit are {below:.9g} and {above:.9g} Hz.",
        )
    return low, high


def _values(plant: Plant) -> Array:
    values = plant.base.reduce(plant.base.parameters.values)
    if not np.isfinite(values).all():
        raise IdentificationError(
            "limits on forces need a model whose parameters all have a value.",
            where="limits.force",
            hint="Give prior values in the model file, or leave the force out of the limits.",
            source=plant.name,
        )
    return values
