"""Where a search for an excitation begins: a place the machine may stand at, and random motions about it inside all limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from veridyn.errors import Fault, IdentificationError, VeridynError
from veridyn.identify.excitation.limits import Bounds
from veridyn.identify.excitation.problem import ExcitationProblem

Array = NDArray[np.float64]

MAX_PLACES = 256  # places looked at before limits count as infeasible
STANDING_LIMIT_SHARE = 0.9  # of each limit that a place to stand at may use
START_LIMIT_SHARE = 0.9  # of the tightest limit that a start uses
SMALLEST_MOTION = 1e-6  # of the reach: motions below it are none


def standing(bounds: Bounds, centre: Array, reach: Array, rng: np.random.Generator) -> Array:
    """A place (n,) with room on all sides: `centre` where that has it, else the best of places about it; refused where there is none."""
    places = centre + reach * np.vstack([np.zeros(len(centre)), rng.uniform(-1.0, 1.0, (MAX_PLACES, len(centre)))])
    if excess(bounds, centre)[0] < STANDING_LIMIT_SHARE:
        return centre
    worst = np.array([excess(bounds, x)[0] for x in places])
    best = places[int(np.argmin(worst))]
    used, name = excess(bounds, best)
    if used >= STANDING_LIMIT_SHARE:
        nearer = _nearer(bounds, best, centre, reach)
        if excess(bounds, nearer)[0] < used:
            best = nearer
            used, name = excess(bounds, best)
    if used >= 1.0:
        raise IdentificationError(
            Fault(
                "the limits leave the machine no place to stand at.",
                where=f"limits, {name}",
                expected="a place within all limits",
                found=f"{100.0 * used:.0f} % of this one used at the best of {MAX_PLACES + 1} places",
                hint="Widen this limit, or move centre= to a place that is allowed.",
            ),
            bounds.plant.name,
        )
    return best


def _nearer(bounds: Bounds, x: Array, centre: Array, reach: Array) -> Array:
    """Downhill on what is beyond the room of each limit, within the reach of the centre."""

    def cost(v: Array) -> tuple[float, Array]:
        g, dg = bounds(_still(reach * v))
        assert dg is not None
        two_sided = np.isfinite(bounds.sides[1])
        over = np.maximum(
            np.where(two_sided, np.abs(g[0]) - STANDING_LIMIT_SHARE, 1.0 - STANDING_LIMIT_SHARE - g[0]), 0.0
        )
        sign = np.where(two_sided, np.sign(g[0]), -1.0)
        return float((over**2).sum()), reach * ((2.0 * over * sign) @ dg[0, :, 0])

    box = list(zip(centre / reach - 1.0, centre / reach + 1.0))
    found = minimize(cost, x / reach, jac=True, bounds=box, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(found.x) * reach


def excess(bounds: Bounds, x: Array) -> tuple[float, str]:
    """The largest share of a limit that standing at x uses, and which; infinite where the machine cannot be there at all."""
    try:
        g = bounds(_still(x), slopes=False)[0][0]
    except VeridynError as error:
        return np.inf, error.faults[0].what
    used = shares(bounds, g[None])
    k = int(np.argmax(used))
    return float(used[k]), bounds.names[k]


def shares(bounds: Bounds, g: Array) -> Array:
    """For each limit (k,), the largest share of it used over samples g (N, k): 1 at the limit."""
    two_sided = np.isfinite(bounds.sides[1])
    return np.where(two_sided, np.abs(g).max(axis=0), (1.0 / np.sqrt(1.0 + np.maximum(g, -1.0 + 1e-12))).max(axis=0))


def _still(x: Array) -> Array:
    X = np.zeros((3, 1, len(x)))
    X[0, 0] = x
    return X


def inside(problem: ExcitationProblem, u: Array) -> bool:
    """Whether all limits hold on the problem's phases; a motion the machine cannot make does not hold them."""
    g = problem.bounded(u)
    low, high = problem.sides()
    return bool((g > low).all() and (g < high).all())


def drawn(problem: ExcitationProblem, centre: Array, rng: np.random.Generator) -> Array:
    """Unknowns of a random motion about `centre` that uses START_LIMIT_SHARE of the amplitude at which it would meet the first limit."""
    low, high = problem.frequency
    f = float(np.exp(rng.uniform(np.log(low), np.log(high)))) if problem.free_frequency else low
    if problem.free_frequency:
        f = float(np.clip(f, low * (high / low) ** 0.05, high * (low / high) ** 0.05))
    shape = problem.shape.drawn(rng, len(centre)) * problem.reach
    still = problem.shape.still(centre)

    def u(size: float) -> Array:
        return problem.unknowns(still + size * shape, f)

    least, most = 0.0, 1.0
    while inside(problem, u(most)) and most < 1e3:
        least, most = most, 2.0 * most
    while most - least > 0.02 * most:
        middle = 0.5 * (least + most)
        least, most = (middle, most) if inside(problem, u(middle)) else (least, middle)
        if most < SMALLEST_MOTION:
            raise IdentificationError(
                Fault(
                    "no motion about this place keeps the limits.",
                    where="limits",
                    found=f"not even one of {SMALLEST_MOTION:g} of the reach",
                    hint="Widen the limits, or move centre=.",
                ),
                problem.plant.name,
            )
    return u(START_LIMIT_SHARE * least)


def reach_of(bounds: Bounds, centre: Array) -> Array:
    """How far each coordinate can go from `centre` alone, either way, until the first limit: (n,)."""
    out = np.ones(len(centre))
    for k in range(len(centre)):
        far = [_until(bounds, centre, k, sign) for sign in (-1.0, 1.0)]
        out[k] = max(far)
    return out


def _until(bounds: Bounds, centre: Array, k: int, sign: float) -> float:
    step = np.zeros(len(centre))
    step[k] = sign
    least, most = 0.0, np.pi
    while most - least > 0.01 * most and most > SMALLEST_MOTION:
        middle = 0.5 * (least + most)
        good = excess(bounds, centre + middle * step)[0] < 1.0
        least, most = (middle, most) if good else (least, middle)
    return max(least, SMALLEST_MOTION)
