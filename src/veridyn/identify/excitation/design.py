"""The door of experiment design: a machine and its limits in; a motion to run, and what it will tell, out.

The motion is a finite Fourier series (12)–(15) of paper 002 or a periodic B-spline, in the joints of a tree or in any independent
coordinates of a machine with loops, such as the pose of its platform. It minimises a criterion of the information ΨᵀΣ⁻¹Ψ with exact
gradients, from many starts, never leaving the limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault, IdentificationError
from veridyn.identify.excitation.criteria import Criterion
from veridyn.identify.excitation.limits import Limits
from veridyn.identify.excitation.plan import ExcitationPlan, Noise
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.excitation.problem import Problem
from veridyn.identify.excitation.setup import problem_of
from veridyn.identify.excitation.start import drawn, inside
from veridyn.identify.interior import Barrier, Found, minimise
from veridyn.identify.threads import one_blas_thread
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent
from veridyn.signals.trajectory import JointLimits

Array = NDArray[np.float64]

FINER = 4  # times as many phases on which limits are enforced in the end
LEAST, STEP = 0.97, 0.0005  # how far, and in what steps, a motion may be drawn together for that
MARGINS = (0.01, 0.03)  # shares of the limits kept free where drawing together does not help


def design_excitation(
    tree: Tree | Plant,
    limits: Limits | JointLimits,
    *,
    at: Sequence[str] | None = None,
    rows: Rows = "all",
    kind: Literal["fourier", "spline"] = "fourier",
    harmonics: int = 5,
    points: int = 16,
    frequency: float | tuple[float, float] = 0.1,
    criterion: Criterion = "d",
    noise: Noise | Mapping[str, float] | ArrayLike | None = None,
    rate: float = 100.0,
    periods: int = 10,
    starts: int = 8,
    barrier: Barrier | None = None,
    centre: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> ExcitationPlan:
    """A periodic motion that tells as much as it can about the base parameters, inside all limits.

    `limits`: a :class:`~veridyn.identify.excitation.limits.Limits`, or the joints' own alone. `at`: the coordinates that are designed, for
    a machine with loops. `frequency` in Hz, or the two ends between which it is chosen; information is counted per second, so a slower
    motion is not favoured for lasting longer. `noise`: deviation of each row, or the full covariance (rows, rows) across them, N or N*m;
    1 where not given. The plan is for `periods` periods sampled at `rate` Hz, whose period is a whole number of samples. `starts` random
    motions are improved and the best is kept. `rng`: the same generator gives the same plan (seed 0 where not given).
    """
    if periods < 1 or starts < 1:
        raise DataError(Fault("at least one period and one start are needed.", where="design_excitation"))
    random = rng or np.random.default_rng(0)
    with one_blas_thread():
        problem, place, noisy = problem_of(
            tree,
            limits,
            rng=random,
            at=at,
            rows=rows,
            kind=kind,
            harmonics=harmonics,
            points=points,
            frequency=frequency,
            criterion=criterion,
            noise=noise,
            rate=rate,
            centre=centre,
        )
        how = barrier or Barrier()
        found: list[Found] = []
        work = partial(_searched, problem, place, how)
        generators = random.spawn(starts)
        results = map(work, generators) if executor is None else executor.map(work, generators)
        progress("designing the excitation", 0.0, float(starts))
        for k, one in enumerate(results, 1):
            found.append(one)
            progress("designing the excitation", float(k), float(starts))
        best = int(np.argmin([one.goal for one in found]))
        u = _fitted(problem, found[best].u, rate)
        for margin in MARGINS:
            if u is None:  # what lies between the phases is too much: search again further inside
                closer = replace(problem, margin=margin)
                u = _fitted(closer, _searched(closer, place, how, random.spawn(1)[0]).u, rate)
        if u is None:
            raise IdentificationError(
                Fault(
                    "no motion was found that keeps the limits between samples too.", where="limits", hint="Widen them."
                ),
                problem.plant.name,
            )
        return ExcitationPlan.of(problem, u, noisy, rate, periods, tuple(one.goal for one in found))


def _searched(problem: Problem, place: Array, how: Barrier, rng: np.random.Generator) -> Found:
    return minimise(problem.limited(), drawn(problem, place, rng), how)


def _fitted(problem: Problem, u: Array, rate: float) -> Array | None:
    """The motion with a period of whole samples, drawn together a little about its centre until the limits hold on a fine grid."""
    C, f = problem.motion_of(u)
    count = np.ceil(rate / f - 1e-6)  # slower, if anything, so that speeds stay inside
    f = rate / (count if rate / count >= problem.frequency[0] * (1.0 - 1e-9) else count - 1.0)
    phases = np.arange(FINER * len(problem.phases)) / (FINER * len(problem.phases))
    fine = replace(problem, phases=phases, frequency=(f, f), margin=0.0)
    still = problem.shape.still(problem.shape.trajectory(C, f).centre)
    for size in np.arange(1.0, LEAST, -STEP):
        final = fine.unknowns(still + size * (C - still), f)
        if inside(fine, final):
            return np.append(final, np.log(f)) if problem.free_frequency else final
    return None
