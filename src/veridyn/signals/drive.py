"""A drive: the channels of a car on one clock, as they were logged together or apart, its course over ground, and straight lines in it.

The course comes from two components of a velocity: where the machine goes, which is not where it points.

    χ = atan2(v_y, v_x),    σ_χ = σ_v/v,    available where v = √(v_x² + v_y²) ≥ v_min        (003 prints atan2 in place of the speed)

Yaw is course minus sideslip: taken as yaw, course biases it by the sideslip. At rest a course is the direction of noise.

Straight lines give scales of wheel speeds, roll gradients of the axles, and drag:

    wheel speed = s · V            travel_l − travel_r = g · track · a_y + c            −a_x = c₀ + c₂ V²  (coasting)

Each line is fitted robustly (Huber's weights), and its deviations allow for residuals that are correlated over `memory` seconds (Newey and
West), because a drive repeats itself: neighbouring samples are no news.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults
from veridyn.model.experiment import Channel

HELD = ("speed", "steer", "ax", "throttle", "brake")  # channels that are carried over empty samples
LONGEST_HOLD_S = 0.5
FASTEST_HZ = 50.0  # of samples that are made of channels with clocks of their own, unless a rate is asked for
CHANNELS: Mapping[str, str] = MappingProxyType(  # of a drive, and their units; "": any
    {
        "speed": "m/s",
        "steer": "rad",
        "ax": "m/s^2",
        "ay": "m/s^2",
        "yaw_rate": "rad/s",
        "roll": "rad",
        "sideslip": "rad",
        "east": "m",
        "north": "m",
        "latitude": "rad",
        "longitude": "rad",
        "heading": "rad",
        "throttle": "",
        "brake": "",
        **{f"wheel_{w}": "m/s" for w in ("fl", "fr", "rl", "rr")},
        **{f"travel_{w}": "m" for w in ("fl", "fr", "rl", "rr")},
    }
)
D = TypeVar("D", bound="DriveLog")
HUBER_LIMIT = 1.345  # of the residuals' deviation
ROBUST_ITERATIONS = 30
MIN_LINE_SAMPLES = 50
WHEELS = ("fl", "fr", "rl", "rr")
AXLES = {"front": ("fl", "fr"), "rear": ("rl", "rr")}


@dataclass(frozen=True, eq=False, kw_only=True)
class DriveLog:
    """Channels (N,) on the clock `t` (N,), NaN where one has no sample."""

    t: Array
    channels: Mapping[str, Array]
    rate: float

    def between(self: D, low: float, high: float) -> D:
        """The samples from `low` up to `high` seconds."""
        inside = (self.t >= low) & (self.t < high)
        kept = {name: values[inside] for name, values in self.channels.items()}
        return replace(self, t=self.t[inside], channels=kept)

    def has(self, *names: str) -> bool:
        return all(name in self.channels for name in names)


def common_clock(
    channels: Mapping[str, Channel], rate: float | None, low: float, high: float
) -> tuple[Array, float, dict[str, Array]]:
    """One clock for all: the channels' own where they share one and no rate is asked for, otherwise equal steps of means.

    A sample at t is the mean over the step that is centred on it; what has no sample there is NaN, and inputs are carried over.
    """
    first = next(iter(channels.values()))
    shared = all(np.array_equal(c.t, first.t) for c in channels.values())
    own = 1.0 / float(np.median(np.diff(first.t)))
    if shared and (rate is None or rate >= 0.99 * own):
        inside = (first.t >= low) & (first.t < high)
        return first.t[inside], own, {n: _carried(first.t[inside], c.values[inside], n) for n, c in channels.items()}
    fastest = max(1.0 / float(np.median(np.diff(c.t))) for c in channels.values())
    rate = min(fastest, FASTEST_HZ) if rate is None else rate
    start = max(low, max(float(c.t[0]) for n, c in channels.items() if n in HELD or n not in ("latitude", "longitude")))
    end = min(high, min(float(c.t[-1]) for c in channels.values()))
    count = int(np.floor((end - start) * rate))
    t: Array = start + (np.arange(count, dtype=np.float64) + 0.5) / float(rate)
    return t, rate, {n: _carried(t, binned(c.t, c.values, t, rate), n) for n, c in channels.items()}


def binned(t: Array, values: Array, clock: Array, rate: float) -> Array:
    """Means of the samples within half a step of each time of the clock; NaN where there are none."""
    if len(t) == len(clock) and np.allclose(t, clock, atol=1e-6):
        return values
    at = np.floor((t - clock[0]) * rate + 0.5).astype(np.int64)
    use = (at >= 0) & (at < len(clock)) & np.isfinite(values)
    sums = np.bincount(at[use], weights=values[use], minlength=len(clock))
    counts = np.bincount(at[use], minlength=len(clock))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _carried(t: Array, values: Array, name: str) -> Array:
    """Inputs without a hole: short ones are bridged, long ones stay, and are refused later."""
    finite = np.isfinite(values)
    if name not in HELD or finite.all() or finite.sum() < 2:
        return values
    last = np.maximum.accumulate(np.where(finite, np.arange(len(t)), -1))
    close = (last >= 0) & (t - t[np.maximum(last, 0)] <= LONGEST_HOLD_S)
    return np.where(finite, values, np.where(close, np.interp(t, t[finite], values[finite]), np.nan))


@checked
def course_over_ground(
    x: Channel, y: Channel, name: str = "course", *, above: float, sigma: float | None = None
) -> tuple[Channel, ...]:
    """Channels `name` (rad, −π to π, from x towards y) and `name.available` (1 from the speed `above` on, 0 below).

    Parameters
    ----------
    x, y : components of the velocity in a plane (m/s), on one clock: east and north for a course from east.
    above : m/s; several times the noise of the velocity.
    sigma : noise of each component (m/s); with it there is also `name.sigma`, σ/v, at most π/√3, that of no direction at all.

    Returns
    -------
    channels : ``log.replacing(*channels)`` puts them into a log, where an observer takes availability and noise from them.

    Examples
    --------
    >>> import numpy as np
    >>> from veridyn.model import Channel
    >>> from veridyn.signals import course_over_ground
    >>> t = np.arange(3) * 0.02
    >>> east, north = Channel("v.x", t, np.array([0.01, 2.0, 0.0]), "m/s"), Channel("v.y", t, np.array([0.02, 2.0, -3.0]), "m/s")
    >>> course, available = course_over_ground(east, north, above=0.5)
    >>> np.round(course.values, 4).tolist(), available.values.tolist()
    ([1.1071, 0.7854, -1.5708], [0.0, 1.0, 1.0])
    """
    faults = Faults()
    for c in (x, y):
        if c.unit != "m/s":
            faults.add("it is no velocity.", where=f"channel '{c.name}'", expected="m/s", found=c.unit)
    if not np.array_equal(x.t, y.t):
        faults.add("it has another clock.", where=f"channel '{y.name}'", expected=f"the clock of '{x.name}'")
    if not above > 0.0:
        faults.add("there is no course at rest.", where="above", expected="a positive speed (m/s)", found=f"{above:g}")
    faults.raise_if_any(DataError)
    speed = np.hypot(x.values, y.values)
    available = np.where(speed >= above, 1.0, 0.0)  # not where it is not a number
    out = (Channel(name, x.t, np.arctan2(y.values, x.values), "rad"), Channel(f"{name}.available", x.t, available, "1"))
    if sigma is None:
        return out
    if not sigma > 0.0:
        raise DataError("it is no deviation.", where="sigma", expected="a positive number (m/s)", found=f"{sigma:g}")
    worst = np.pi / np.sqrt(3.0)
    with np.errstate(divide="ignore"):
        own = np.minimum(sigma / speed, worst)
    return (*out, Channel(f"{name}.sigma", x.t, np.where(np.isfinite(own), own, worst), "rad"))


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
    if len(b) < MIN_LINE_SAMPLES:
        raise DataError(
            "there are too few samples.", where=where, expected=f"at least {MIN_LINE_SAMPLES}", found=f"{len(b)}"
        )
    scale = np.linalg.norm(A, axis=0)
    if not (scale > 0.0).all() or np.linalg.cond(A / scale) > 1e10:
        raise DataError("the drive does not excite it.", where=where, hint="Drive so that its inputs change.")
    w, spread = np.ones(len(b)), 0.0
    x = np.zeros(len(names))
    for _ in range(ROBUST_ITERATIONS):
        x = np.linalg.lstsq(A * np.sqrt(w)[:, None], b * np.sqrt(w), rcond=None)[0]
        r = b - A @ x
        spread = max(1.4826 * float(np.median(np.abs(r - np.median(r)))), 1e-12)
        new = np.minimum(1.0, HUBER_LIMIT * spread / np.maximum(np.abs(r), 1e-300))
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
    inside = np.abs(r) <= HUBER_LIMIT * spread  # where Huber's function has a slope
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
    if free.sum() < MIN_LINE_SAMPLES:
        expected = f"at least {MIN_LINE_SAMPLES} samples"
        raise DataError("the car hardly ever coasts.", where="drag", expected=expected, found=f"{free.sum()}")
    v = speed[free]
    return robust_line({"rolling": np.ones(len(v)), "drag": v**2}, -ax[free], rate, 2.0, "drag")
