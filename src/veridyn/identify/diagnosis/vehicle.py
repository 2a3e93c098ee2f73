"""Mistakes that a log of a drive shows by itself: which angle the steering is, the format of positions, clocks that differ, swapped sides.

Each check compares two ways to the same quantity and needs no parameters but lengths. It returns what is to be said, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.identify.vehicle_regressions import robust_line

Array = NDArray[np.float64]
SLOWEST = 4.0  # m/s: slower samples say little about directions
STEERING_WHEEL = 4.0  # times the road wheel angle: more is a steering wheel's
MOST_DIFFERENT_SCALE = 1.3  # of distances by satellite and by speed
LARGEST_OFFSET_S = 1.0
GRID_S = 0.02
NOTICED_OFFSET_S = 0.03
COURSE_SPAN_S = 0.5  # over which a course is taken from positions
GRAVITY = 9.81
USUAL_STIFFNESS, VAGUE_STIFFNESS = 15.0, 0.35  # of a rear axle per load, 1/rad, and its relative deviation


@dataclass(frozen=True)
class PositionDelay:
    """How much later the positions are stamped than the inertial unit, s, with its deviation."""

    seconds: float
    sigma: float


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
            f"Give steering_ratio: {{value: {scale:.3g}, sigma: {max(3.0 * sigma, 0.1 * scale):.2g}}} in the vehicle.",
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
            return Fault(
                "this is written in degrees and minutes, ddmm.mmmm, and is read as degrees.",
                f"channel '{name}'",
                f"at most {most:g} deg",
                f"{v.max():.6g}",
                "Convert it: degrees = dd + mm.mmmm/60.",
            )
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
    return Fault(
        "positions by satellite and the speed do not tell of the same way.",
        "channels 'latitude' and 'longitude'" if minutes else "positions",
        "as many metres by both",
        f"{scale:.3g} times as many by satellite",
        "Are these degrees and minutes (dd.mmmm), read as degrees?" if minutes else "Look at their units.",
    )


def position_delay(
    t: Array, east: Array, north: Array, speed: Array, yaw_rate: Array, ay: Array | None = None, rear: float = 1.4
) -> PositionDelay | None:
    """How late the positions are against the inertial unit: course(t) = χ(t − τ) + c + b t.

    χ is the integral of a_y/V, which is the turning of the course itself. Without a_y it is that of the yaw rate plus the sideslip
    (rear/V − V/(g C)) r of a car with the usual tyre stiffness C, whose uncertainty enters the deviation. All on the clock `t` (N,), NaN
    where there is no position. None where the drive has too few turns to say.
    """
    ok = np.flatnonzero(np.isfinite(east) & np.isfinite(north))
    if len(ok) < 20:
        return None
    step = max(1, round(COURSE_SPAN_S / max(float(np.median(np.diff(t[ok]))), 1e-6)))
    a, b = ok[:-step], ok[step:]
    middle = 0.5 * (t[a] + t[b])
    v = np.interp(middle, t, speed)
    use = (v > SLOWEST) & (t[b] - t[a] < 2.0 * COURSE_SPAN_S)
    if use.sum() < 50:
        return None
    course = np.unwrap(np.arctan2(north[b] - north[a], east[b] - east[a])[use])
    middle = middle[use]
    V = np.maximum(speed, SLOWEST)
    turning = yaw_rate if ay is None else ay / V
    psi = np.concatenate([[0.0], np.cumsum(0.5 * (turning[1:] + turning[:-1]) * np.diff(t))])
    vague = 0.0
    if ay is None:
        lag = V / (GRAVITY * USUAL_STIFFNESS)
        psi = psi + (rear / V - lag) * yaw_rate
        vague = VAGUE_STIFFNESS * float(np.median(lag))
    grid = np.arange(-LARGEST_OFFSET_S, LARGEST_OFFSET_S + 0.5 * GRID_S, GRID_S)
    inside = (middle > t[0] + LARGEST_OFFSET_S) & (middle < t[-1] - LARGEST_OFFSET_S)
    if inside.sum() < 50:
        return None
    m, c = middle[inside], course[inside]
    A = np.column_stack([np.ones(len(m)), m - m.mean()])

    def left(tau: float) -> Array:
        d = c - np.interp(m - tau, t, psi)
        return d - A @ np.linalg.lstsq(A, d, rcond=None)[0]

    costs = np.array([np.median(np.abs(left(tau))) for tau in grid])
    best = float(grid[int(np.argmin(costs))])
    # One Gauss-Newton step on the course's residuals, with their outliers set aside, and the deviation that they leave.
    keep, power = np.ones(len(m), dtype=np.bool_), 0.0
    for _ in range(4):
        r = left(best)
        rate = np.interp(m - best, t, turning)
        rate = rate - A @ np.linalg.lstsq(A, rate, rcond=None)[0]
        keep = np.abs(r) < 4.0 * 1.4826 * max(float(np.median(np.abs(r))), 1e-9)
        power = float(rate[keep] @ rate[keep])
        if power <= 0.0:
            return None
        best = float(np.clip(best - (rate[keep] @ r[keep]) / power, -LARGEST_OFFSET_S, LARGEST_OFFSET_S))
    r = left(best)[keep]
    lag = np.mean(r[1:] * r[:-1]) / np.mean(r**2)  # neighbours share their positions and their errors
    inflate = max(1.0, (1.0 + lag) / max(1.0 - lag, 1e-3))
    sigma = float(np.hypot(np.sqrt(np.mean(r**2) * inflate / power), vague))
    return PositionDelay(best, sigma) if sigma < 0.2 * LARGEST_OFFSET_S else None


def clock_fault(offset: PositionDelay | None) -> Fault | None:
    """Positions and inertial unit on clocks that differ."""
    if offset is None or abs(offset.seconds) < max(NOTICED_OFFSET_S, 3.0 * offset.sigma):
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
            return Fault(
                f"the left and the right wheel of the {axle} axle seem to be exchanged.",
                f"channels 'wheel_{left}' and 'wheel_{right}'",
                "the outer wheel the faster one",
                f"a track of {line.value['track']:.2f} ± {line.sigma['track']:.2f} m",
            )
    return None
