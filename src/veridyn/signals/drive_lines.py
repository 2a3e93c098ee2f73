"""What ordinary drives show of a car by straight lines: scales of wheel speeds, roll gradients of the axles, and drag.

    wheel speed = s · V            travel_l − travel_r = g · track · a_y + c            −a_x = c₀ + c₂ V²  (coasting)

Each line is fitted robustly (Huber's weights), and its deviations allow for residuals that are correlated over `memory` seconds (Newey and
West), because a drive repeats itself: neighbouring samples are no news.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError

Array = NDArray[np.float64]
HUBER = 1.345  # of the residuals' deviation
ITERATIONS = 30
LEAST_SAMPLES = 50
WHEELS = ("fl", "fr", "rl", "rr")
AXLES = {"front": ("fl", "fr"), "rear": ("rl", "rr")}


@dataclass(frozen=True, eq=False)
class Line:
    """Coefficients `value` with deviations `sigma` by the names of the columns, the residuals' rms, and how many samples there were."""

    value: Mapping[str, float]
    sigma: Mapping[str, float]
    rms: float
    samples: int


def robust_line(columns: Mapping[str, ArrayLike], y: ArrayLike, rate: float, memory: float, where: str) -> Line:
    """y = Σ columns · coefficients by Huber's weights, with deviations for residuals correlated over `memory` s at `rate` Hz."""
    names = tuple(columns)
    A = np.column_stack([np.asarray(c, dtype=np.float64) for c in columns.values()])
    b = np.asarray(y, dtype=np.float64)
    finite = np.isfinite(A).all(axis=1) & np.isfinite(b)
    A, b = A[finite], b[finite]
    if len(b) < LEAST_SAMPLES:
        raise DataError(
            "there are too few samples.", where=where, expected=f"at least {LEAST_SAMPLES}", found=f"{len(b)}"
        )
    scale = np.linalg.norm(A, axis=0)
    if not (scale > 0.0).all() or np.linalg.cond(A / scale) > 1e10:
        raise DataError("the drive does not excite it.", where=where, hint="Drive so that its inputs change.")
    w, spread = np.ones(len(b)), 0.0
    x = np.zeros(len(names))
    for _ in range(ITERATIONS):
        x = np.linalg.lstsq(A * np.sqrt(w)[:, None], b * np.sqrt(w), rcond=None)[0]
        r = b - A @ x
        spread = max(1.4826 * float(np.median(np.abs(r - np.median(r)))), 1e-12)
        new = np.minimum(1.0, HUBER * spread / np.maximum(np.abs(r), 1e-300))
        if np.abs(new - w).max() < 1e-6:
            break
        w = new
    r = b - A @ x
    G = A * (w * r)[:, None]
    lags = max(0, min(len(b) // 3, round(memory * rate)))
    M = G.T @ G
    for lag in range(1, lags + 1):
        C = G[lag:].T @ G[:-lag]
        M += (1.0 - lag / (lags + 1.0)) * (C + C.T)
    inside = np.abs(r) <= HUBER * spread  # where Huber's function has a slope
    bread = np.linalg.inv(A[inside].T @ A[inside])
    sigma = np.sqrt(np.maximum((bread @ M @ bread).diagonal(), 0.0))
    found = (dict(zip(names, v.tolist(), strict=True)) for v in (x, sigma))
    return Line(next(found), next(found), float(np.sqrt(np.mean(r**2))), len(b))


def wheel_scales(wheels: Mapping[str, Array], speed: Array, rate: float, slowest: float = 5.0) -> dict[str, Line]:
    """Wheel → its speed over that of the car, from samples faster than `slowest` (m/s)."""
    moving = speed > slowest
    return {
        name: robust_line({"scale": speed[moving]}, values[moving], rate, 5.0, f"speed of wheel '{name}'")
        for name, values in wheels.items()
    }


def roll_gradients(travel: Mapping[str, Array], ay: Array, track: float, rate: float) -> dict[str, Line]:
    """Axle → roll of the body against it for a lateral acceleration of 1 m/s² (`gradient`, rad/(m/s²)), and what stands there at rest.

    `travel`: fl, fr, rl, rr → compression of the suspension at the wheel, m. Positive for a body that leans outwards.
    """
    if not track > 0.0:
        raise DataError(
            "roll needs the distance between left and right wheels.", where="track", expected="a positive length"
        )
    found = {}
    for axle, (left, right) in AXLES.items():
        if left in travel and right in travel:
            roll = (travel[right] - travel[left]) / track
            columns = {"gradient": ay, "rest": np.ones(len(ay))}
            found[axle] = robust_line(columns, roll, rate, 2.0, f"roll gradient, {axle} axle")
    return found


def roll_distribution(gradients: Mapping[str, Line], rates: Mapping[str, float]) -> tuple[float, float]:
    """The share of the front axle in the roll moment that springs take, and its deviation, from axle rates (N·m/rad)."""
    moments = {axle: rates[axle] * gradients[axle].value["gradient"] for axle in ("front", "rear")}
    spread = {axle: rates[axle] * gradients[axle].sigma["gradient"] for axle in moments}
    whole = sum(moments.values())
    share = moments["front"] / whole
    return share, float(np.hypot((1.0 - share) * spread["front"], share * spread["rear"]) / abs(whole))


def coast_down(speed: Array, ax: Array, coasting: Sequence[bool] | NDArray[np.bool_], rate: float) -> Line:
    """`rolling` (m/s²) and `drag` (1/m, divide by nothing: times the mass it is N/(m/s)²) of a car that rolls freely."""
    free = np.asarray(coasting, dtype=np.bool_) & (speed > 2.0)
    if free.sum() < LEAST_SAMPLES:
        raise DataError(
            "the car hardly ever coasts.",
            where="drag",
            expected=f"at least {LEAST_SAMPLES} samples",
            found=f"{free.sum()}",
        )
    v = speed[free]
    return robust_line({"rolling": np.ones(len(v)), "drag": v**2}, -ax[free], rate, 2.0, "drag")
