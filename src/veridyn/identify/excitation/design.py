"""Design of experiments: a machine, its limits and a family of motions in; a motion to run and its predicted accuracy out.

The motion is a finite Fourier series (12)–(15) of paper 002 or a periodic B-spline, in the joints of a tree or in any independent
coordinates of a machine with loops, such as the pose of its platform. It minimises a criterion of the information ΨᵀΣ⁻¹Ψ with exact
gradients, from many starts, never leaving the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault, IdentificationError
from veridyn.identify.excitation.criteria import Criterion
from veridyn.identify.excitation.limits import Limits
from veridyn.identify.excitation.plan import ExcitationPlan, Noise
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.excitation.problem import ExcitationProblem
from veridyn.identify.excitation.setup import problem_of
from veridyn.identify.excitation.shape import SHAPES, Shape
from veridyn.identify.excitation.start import drawn, excess, inside, shares
from veridyn.identify.interior import Barrier, InteriorSolution, minimise
from veridyn.identify.threads import one_blas_thread
from veridyn.method import method_of, verb_with_method
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.signals.trajectory import JointLimits

Array = NDArray[np.float64]

FINAL_GRID_FACTOR = 4  # times as many phases on which limits are enforced in the end
LEAST, STEP = 0.97, 0.0005  # how far, and in what steps, a motion may be drawn together for that
METHOD_IS_THIRD = (
    "The family of motions is the third argument: design_excitation(tree, limits, Fourier(harmonics=5, frequency=0.1))."
)
TASK = "designing the excitation"
LIMIT_MARGINS = (0.01, 0.03)  # shares of the limits kept free where drawing together does not help


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
    shape = method_of(method, Shape, SHAPES, "design_excitation", ("all", "actuated", *machine.rows))
    if periods < 1 or starts < 1:
        raise DataError(Fault("at least one period and one start are needed.", where="design_excitation"))
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
            if (
                u is None
            ):  # what lies between the phases, or friction that jumps, is too much: search again further inside
                u = _fitted(problem, _searched(closer, place, how, random.spawn(1)[0]).u, rate)
        if u is None:
            raise IdentificationError(
                Fault(
                    "no motion was found that keeps the limits between samples too.",
                    where=f"limits, {_worst(problem, found[best].u)}",
                    hint="Widen this limit.",
                ),
                problem.plant.name,
            )
        return ExcitationPlan.of(problem, u, noisy, rate, periods, tuple(one.goal for one in found), begin)


def _start(problem: ExcitationProblem, start: ArrayLike | None) -> Array | None:
    """Where the machine stands, refused where it violates a limit."""
    if start is None:
        return None
    names, x = problem.plant.coordinates, np.array(start, dtype=np.float64)
    if x.shape != (len(names),) or not np.isfinite(x).all():
        raise DataError(
            Fault(
                "the start is not a place of this machine.",
                where="design_excitation, start",
                expected=f"{len(names)} numbers ({', '.join(names)})",
                found=f"{x.tolist()}",
            )
        )
    used, name = excess(problem.bounds, x)
    if used >= 1.0:
        raise IdentificationError(
            Fault(
                "the machine does not stand within its limits.",
                where=f"start, {name}",
                found=f"{100.0 * used:.0f} % of this limit used",
                hint="Correct the start or the limit; a pair of bodies that touch only as capsules may be ignored by name.",
            ),
            problem.plant.name,
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
    fine = replace(problem.with_dry_friction(), phases=_fine(problem), frequency=(f, f), margin=0.0)
    used = shares(fine.bounds, fine.bounds(fine.samples(fine.unknowns(C, f)), slopes=False)[0])
    return f"{fine.bounds.names[int(np.argmax(used))]} ({100.0 * used.max():.1f} % used)"


def _fine(problem: ExcitationProblem) -> Array:
    return np.arange(FINAL_GRID_FACTOR * len(problem.phases)) / (FINAL_GRID_FACTOR * len(problem.phases))


def _fitted(problem: ExcitationProblem, u: Array, rate: float) -> Array | None:
    """The motion with a period of whole samples, drawn together a little about its centre until the limits hold on a fine grid."""
    C, f = problem.motion_of(u)
    count = np.ceil(rate / f - 1e-6)  # slower, if anything, so that speeds stay inside
    f = rate / (count if rate / count >= problem.frequency[0] * (1.0 - 1e-9) else count - 1.0)
    fine = replace(problem.with_dry_friction(), phases=_fine(problem), frequency=(f, f), margin=0.0)
    still = problem.shape.still(problem.shape.trajectory(C, f).centre)
    for size in np.arange(1.0, LEAST, -STEP):
        final = fine.unknowns(still + size * (C - still), f)
        if inside(fine, final):
            return np.append(final, np.log(f)) if problem.free_frequency else final
    return None
