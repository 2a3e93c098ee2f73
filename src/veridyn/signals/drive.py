"""A drive: the channels of a car on one clock, as they were logged together or apart, straight lines in it, and mistakes its log shows.

Straight lines give scales of wheel speeds, roll gradients of the axles, and drag:

    wheel speed = s · V            travel_l − travel_r = g · track · a_y + c            −a_x = c₀ + c₂ V²  (coasting)

Each line is fitted robustly (Huber's weights), and its deviations allow for residuals that are correlated over `memory` seconds (Newey and
West), because a drive repeats itself: neighbouring samples are no news.

Mistakes that a log shows by itself are which angle the steering is, the format of positions, clocks that differ and swapped sides. Each
check compares two ways to the same quantity and needs no parameters but lengths. It returns what is to be said, or nothing.
:func:`log_faults` is what verbs ask, :func:`drive_faults` what a study asks of channels that it has put on one clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import GRAVITY
from veridyn.model.machine import Machine
from veridyn.signals.clock_offset import ClockOffset, estimate_clock_offset
from veridyn.signals.command_checks import LONGEST_LAG_S

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
SLOWEST = 4.0  # m/s: slower samples say little about directions
STEERING_WHEEL = 4.0  # times the road wheel angle: more is a steering wheel's
MOST_DIFFERENT_SCALE = 1.3  # of distances by satellite and by speed
NOTICED_OFFSET_S = 0.03
COURSE_SPAN_S = 0.5  # over which a course is taken from positions
USUAL_STIFFNESS, VAGUE_STIFFNESS = 15.0, 0.35  # of a rear axle per load, 1/rad, and its relative deviation


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


def log_faults(log: Experiment, car: Machine) -> tuple[Fault, ...]:
    """What the checks say of a log of this car; `log` has its channels in SI, each on its own clock.

    Channels are those of :data:`CHANNELS`, and what a sensor of the car reads stands under the name of its sensor.
    Others, and channels with another unit, are left out.
    """
    called = {n: n for n in log.names if n in CHANNELS} | {s.name: str(s.on) for s in car.sensors if s.name in log}
    read = {
        now: Channel(now, log[name].t, log[name].values, log[name].unit)
        for name, now in called.items()
        if now in CHANNELS and CHANNELS[now] in ("", log[name].unit) and len(log[name].t) > 1
    }
    places = [read.pop(n, None) for n in ("latitude", "longitude")]
    found: list[Fault] = []
    if places[0] is not None and places[1] is not None:
        fault = position_format_fault(*(np.degrees(c.values) for c in places if c is not None))
        found += [] if fault is None else [fault]
    if not read:
        return tuple(found)
    t, rate, channels = common_clock(read, None, -np.inf, np.inf)
    return (*found, *drive_faults(DriveLog(t=t, channels=channels, rate=rate), car)[0])


def drive_faults(drive: DriveLog, car: Machine) -> tuple[list[Fault], ClockOffset | None]:
    """What the checks of a drive have found, and the offset of the positions' clock where it can be estimated."""
    c, found = drive.channels, list[Fault | None]()
    offset = None
    if drive.has("speed", "steer", "yaw_rate"):
        rows = np.isfinite(c["speed"]) & np.isfinite(c["steer"]) & np.isfinite(c["yaw_rate"])
        L = car.parameters["front"] + car.parameters["rear"]
        given = (c["speed"][rows], c["steer"][rows], c["yaw_rate"][rows])
        found.append(steering_fault(*given, L, car.parameters["steering_ratio"], drive.rate))
    wheels = {w: c[f"wheel_{w}"] for w in WHEELS if f"wheel_{w}" in c}
    if drive.has("speed", "yaw_rate") and wheels:
        found.append(swapped_sides_fault(wheels, c["speed"], c["yaw_rate"], drive.rate))
    if drive.has("speed", "east", "north"):
        speed = np.nan_to_num(c["speed"])
        scale = position_scale_fault(drive.t, c["east"], c["north"], speed)
        found.append(scale)
        if scale is None and drive.has("yaw_rate"):
            ay = np.nan_to_num(c["ay"]) if "ay" in c else None
            offset = position_delay(
                drive.t, c["east"], c["north"], speed, np.nan_to_num(c["yaw_rate"]), ay, car.parameters["rear"]
            )
            found.append(clock_fault(offset))
    return [f for f in found if f is not None], offset


def steering_scale(speed: Array, steer: Array, yaw_rate: Array, wheelbase: float, rate: float) -> tuple[float, float]:
    """Measured steering over the road wheel angle that the motion needs, and its deviation: steer = s (L r/V + K V r) + offset."""
    moving = speed > SLOWEST
    v, r = speed[moving], yaw_rate[moving]
    line = robust_line(
        {"scale": wheelbase * r / v, "understeer": v * r, "offset": np.ones(len(v))},
        steer[moving],
        rate,
        2.0,
        "steering",
    )
    return line.value["scale"], line.sigma["scale"]


def steering_fault(
    speed: Array, steer: Array, yaw_rate: Array, wheelbase: float, ratio: float, rate: float
) -> Fault | None:
    """A steering wheel angle that is taken for a road wheel angle."""
    try:
        scale, sigma = steering_scale(speed, steer, yaw_rate, wheelbase, rate)
    except DataError:
        return None  # a drive that does not turn says nothing about it
    if scale - 3.0 * sigma > STEERING_WHEEL * ratio:
        return Fault(
            "this looks like the angle of the steering wheel, and it is taken for that of the road wheels.",
            "channel 'steer'",
            f"about {ratio:g} times the road wheel angle that the car's turning needs (steering_ratio)",
            f"{scale:.3g} ± {sigma:.2g} times",
            f"Give steering_ratio: {{value: {scale:.3g}, sigma: {max(3.0 * sigma, 0.1 * scale):.2g}}} in the model file.",
        )
    if scale + 3.0 * sigma < 0.0:
        what = "it turns the other way than the car does."
        return Fault(
            what, "channel 'steer'", "positive to the left, as the yaw rate", hint="Give times: -1 with its column."
        )
    return None


def position_format_fault(latitude: Array, longitude: Array) -> Fault | None:
    """Positions (degrees as numbers) that are degrees and minutes in one number, ddmm.mmmm."""
    for name, values, most in (("latitude", latitude, 90.0), ("longitude", longitude, 180.0)):
        v = np.abs(values[np.isfinite(values)])
        if len(v) and v.max() > most and (v % 100.0 < 60.0).all() and (v // 100.0 <= most).all():
            what = "this is written in degrees and minutes, ddmm.mmmm, and is read as degrees."
            hint = "Convert it: degrees = dd + mm.mmmm/60."
            return Fault(what, f"channel '{name}'", f"at most {most:g} deg", f"{v.max():.6g}", hint)
    return None


def position_scale_fault(t: Array, east: Array, north: Array, speed: Array) -> Fault | None:
    """Distances between positions that are not those driven: another unit or format of the positions."""
    ok = np.flatnonzero(np.isfinite(east) & np.isfinite(north))
    if len(ok) < 10:
        return None
    ok = ok[
        :: max(1, int(np.ceil(1.0 / max(float(np.median(np.diff(t[ok]))), 1e-6))))
    ]  # a second apart: less noise in the length
    gone = float(np.hypot(np.diff(east[ok]), np.diff(north[ok])).sum())
    driven = float(np.trapezoid(speed[ok[0] : ok[-1] + 1], t[ok[0] : ok[-1] + 1]))
    if not driven > 50.0:
        return None
    scale = gone / driven
    if 1.0 / MOST_DIFFERENT_SCALE <= scale <= MOST_DIFFERENT_SCALE:
        return None
    minutes = abs(scale - 0.6) < 0.12 or abs(scale - 5.0 / 3.0) < 0.3
    what = "positions by satellite and the speed do not tell of the same way."
    where = "channels 'latitude' and 'longitude'" if minutes else "positions"
    hint = "Are these degrees and minutes (dd.mmmm), read as degrees?" if minutes else "Look at their units."
    return Fault(what, where, "as many metres by both", f"{scale:.3g} times as many by satellite", hint)


def position_delay(
    t: Array, east: Array, north: Array, speed: Array, yaw_rate: Array, ay: Array | None = None, rear: float = 1.4
) -> ClockOffset | None:
    """How late the positions are against the inertial unit, by :func:`~veridyn.signals.clock_offset.estimate_clock_offset`.

    The course between positions is compared with the integral of a_y/V, which is the turning of the course itself. Without a_y it is that
    of the yaw rate plus the sideslip (rear/V − V/(g C)) r of a car with the usual tyre stiffness C, whose uncertainty enters the deviation.
    All on the clock `t` (N,), NaN where there is no position. None where the drive has too few turns to say.
    """
    ok = np.flatnonzero(np.isfinite(east) & np.isfinite(north))
    if len(ok) < 20:
        return None
    step = max(1, round(COURSE_SPAN_S / max(float(np.median(np.diff(t[ok]))), 1e-6)))
    a, b = ok[:-step], ok[step:]
    middle = 0.5 * (t[a] + t[b])
    usable = (np.interp(middle, t, speed) > SLOWEST) & (t[b] - t[a] < 2.0 * COURSE_SPAN_S)
    if usable.sum() < 50:
        return None
    course = np.full(len(middle), np.nan)
    course[usable] = np.unwrap(np.arctan2(north[b] - north[a], east[b] - east[a])[usable])
    V, vague = np.maximum(speed, SLOWEST), 0.0
    turning = yaw_rate if ay is None else ay / V
    if ay is None:
        lag = V / (np.linalg.norm(GRAVITY) * USUAL_STIFFNESS)
        turning = turning + np.gradient((rear / V - lag) * yaw_rate, t)
        vague = VAGUE_STIFFNESS * float(np.median(lag))
    found = estimate_clock_offset(
        Channel("inertial unit", t, turning, "rad/s"),
        Channel("positions", middle, course, "rad"),
        longest=LONGEST_LAG_S,
        usable=usable,
    )
    sigma = float(np.hypot(found.sigma, vague))
    return replace(found, sigma=sigma) if found.determined and sigma < 0.2 * LONGEST_LAG_S else None


def clock_fault(offset: ClockOffset | None) -> Fault | None:
    """Positions and inertial unit on clocks that differ."""
    if offset is None or not offset.beyond(NOTICED_OFFSET_S, 3.0):
        return None
    word = "later" if offset.seconds > 0.0 else "earlier"
    return Fault(
        "the clocks of the positions and of the inertial unit differ.",
        "log",
        f"less than {NOTICED_OFFSET_S:g} s between them",
        f"positions {abs(offset.seconds):.3f} ± {offset.sigma:.3f} s {word}",
        f"Give delays: {{east: {offset.seconds:.3f}, north: {offset.seconds:.3f}}} in the log section, or those of latitude and longitude.",
    )


def swapped_sides_fault(wheels: Mapping[str, Array], speed: Array, yaw_rate: Array, rate: float) -> Fault | None:
    """Wheel speeds of left and right exchanged: in a left turn the right wheels are the faster ones."""
    for left, right, axle in (("fl", "fr", "front"), ("rl", "rr", "rear")):
        if left not in wheels or right not in wheels:
            continue
        moving = speed > SLOWEST
        columns = {"track": yaw_rate[moving], "scale": speed[moving]}
        try:
            line = robust_line(columns, (wheels[right] - wheels[left])[moving], rate, 2.0, f"{axle} axle")
        except DataError:
            continue
        if line.value["track"] + 4.0 * line.sigma["track"] < 0.0:
            what = f"the left and the right wheel of the {axle} axle seem to be exchanged."
            found = f"a track of {line.value['track']:.2f} ± {line.sigma['track']:.2f} m"
            return Fault(what, f"channels 'wheel_{left}' and 'wheel_{right}'", "the outer wheel the faster one", found)
    return None
