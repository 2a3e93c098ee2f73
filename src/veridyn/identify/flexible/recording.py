"""What a log has of one flexible joint: both encoders and the motor's torque on one clock, checked for the usual mistakes.

The channels of the joint NAME are ``q.NAME`` (link encoder), ``q.NAME_motor`` (motor encoder) and ``force.NAME_motor`` (its torque),
the last two in the units of the joint: the motor's angle divided by the gear ratio u, its torque times u. In place of a link encoder a
gyroscope on the link will do, turned so that it reads the rate about the joint's axis (of a link that only this joint moves): ``qd.NAME``.
Its integral is the angle of the link but for an unknown start and the drift of its zero, which is the slope of motor less link over time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean, part_at
from veridyn.model.experiment import Experiment
from veridyn.model.flexible import Flexible, motor_side
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.conditioning import derivative
from veridyn.signals.resample import resample, uniform_rate

ORDER = 4  # of the low-pass, one pass
BAND_FACTOR = 5.0  # the band of the fit ends at so many times the frequency below which the motion lies
MOTION_POWER_SHARE = 0.999  # of the power of the speed that lies below it
ABOVE_NOISE = 30.0  # times the median power of noise: its power is beyond at one frequency in 10⁹
EDGE_PERIODS = 2.0  # of the cut-off, which the low-pass takes to settle at either end
SAMPLES_PER_BAND = 5.0  # samples a second that are kept for each Hz of the band: 2 carry all of it
SLOPE_TOLERANCE = (
    0.2  # of the slope of link over motor angle, which is 1: larger deviations are another unit, sign or channel
)
MOTION_SHARE = 0.1  # of the rate: what lies above is noise of an encoder
NOISE_SIGMAS = 3.0  # of that noise, which is no turn of a motor
PASSED_NOISE = (2.0 * MOTION_SHARE / (1.0 - 2.0 * MOTION_SHARE)) ** 0.5  # white noise that passes, over what does not
LONGEST_DELAY_S = 0.1  # between the encoders: more is another clock
STILL_SHARE = 1e-3  # of the motor's range: a link that moves less is frozen; gears have ratios below a thousand


@dataclass(frozen=True, eq=False)
class JointRecording:
    """Both encoders and the torque of a joint on one clock of `rate` Hz; `log` is its name."""

    log: str
    rate: float
    motor: Array
    link: Array
    torque: Array

    @property
    def delay(self) -> float:
        """s: of the link's readings, were nothing but a delay between the encoders."""
        speed = derivative(zero_phase(self.motor, self.rate, Butterworth(MOTION_SHARE * self.rate, ORDER)), self.rate)
        design = np.stack([speed, np.ones_like(speed)], axis=1)
        return float(np.linalg.lstsq(design, self.motor - self.link, rcond=None)[0][0])

    @property
    def band(self) -> float:
        """Hz: how far the motion reaches above the noise of the motor encoder, with a margin, and at most 0.4 of the rate."""
        n = len(self.motor)
        line = np.linspace(self.motor[0], self.motor[-1], n)  # without it the ends would be a jump
        power = np.abs(np.fft.rfft((self.motor - line) * np.hanning(n), 8 * n)) ** 2
        frequency = np.fft.rfftfreq(8 * n, 1.0 / self.rate)
        noise = float(np.median(power[len(power) // 2 :]))
        speed = np.where(power > ABOVE_NOISE * noise, frequency**2 * power, 0.0)
        end = frequency[np.searchsorted(np.cumsum(speed) / speed.sum(), MOTION_POWER_SHARE)]
        return float(min(BAND_FACTOR * max(end, 1.0 / n * self.rate), 0.4 * self.rate))


@dataclass(frozen=True, eq=False, kw_only=True)
class JointSamples:
    """What the equations of a joint need, low-passed alike, at the times `t`, which are the samples `kept` of `path`.

    `path` is the angle of the motor at all samples, not low-passed but without the noise of its encoder: friction turns with the speed.

    `deflection` is motor less link as measured, `force` what the motor exerts beyond the acceleration of its rotor, Γ − J θ̈.
    `all_force` and `all_speed` are the same at all samples; `motor` and `apart`, motor less link, are so without most of their noise;
    that of `apart` is `noise`.
    The link is read `ahead` s later than the motor.
    """

    t: Array
    deflection: Array
    force: Array
    speed: Array
    acceleration: Array
    jerk: Array
    path: Array
    motor: Array
    apart: Array
    noise: float
    kept: NDArray[np.bool_]
    passed: Callable[[Array], Array]
    rate: float
    all_force: Array
    all_speed: Array
    ahead: float = 0.0

    def __len__(self) -> int:
        return len(self.t)

    def dry_friction(self, distance: float) -> Array:
        """Share of dry friction that acts, its slopes over time, and the same of how far its start is remembered (6, samples)."""
        return self.shares(self.path, distance)

    def twist(self, delay: float) -> Array:
        """The path of the deflection at all samples, each `delay` s ago, where the link's encoder is late by that."""
        t = np.arange(len(self.motor)) / self.rate
        since = self.motor - np.interp(t - (delay - self.ahead), t, self.motor)
        return steady(self.apart - since, NOISE_SIGMAS * self.noise)

    def shares(self, path: Array, distance: float) -> Array:
        """The same of friction that builds up over a distance along any path at all samples."""
        made = [self.passed(x) for x in dahl_state(path, distance)]
        return np.concatenate([with_slopes(x, self.rate)[:, self.kept] for x in made])


def dahl_state(path: Array, distance: float) -> tuple[Array, Array]:
    """z of dz/dx = (1 − sign(ẋ) z)/δ along a path (K,) from z = 0, and what is left of a start elsewhere, e^(−∫|dx|/δ).

    On its way from sample to sample, which is monotonous, z comes nearer to ±1 by that factor. Values are means over the steps on either
    side, as a reversal may lie anywhere within a step.
    """
    way = np.diff(path)
    share, forward = np.abs(way) / distance, np.sign(way)
    kept = np.exp(-share)
    z, out = 0.0, []
    for factor, side in zip(kept.tolist(), forward.tolist(), strict=True):
        out.append(z)
        z = side + (z - side) * factor
    begun, left = np.array(out), np.concatenate([[1.0], np.cumprod(kept)])[:-1]
    mean = np.where(share > 1e-9, -np.expm1(-share) / np.maximum(share, 1e-9), 1.0)
    turn = turns(path)
    return _at_samples(forward + (begun - forward) * mean, turn), _at_samples(left * mean, 0.0 * turn)


def turns(path: Array) -> Array:
    """Where between −½ and ½ a sample (K − 2,) that lies beyond both neighbours the path turns, by a parabola; 0 elsewhere."""
    before, after = np.diff(path[:-1]), np.diff(path[1:])
    own = before * after < 0.0
    return np.where(own, 0.5 * (before + after) / np.where(own, before - after, 1.0), 0.0)


def _at_samples(steps: Array, turn: Array) -> Array:
    """Values at samples (K,) whose means over steps (K − 1,) are given: that of either side, for as long as it lasts around the sample."""
    before, after = np.append(steps[0], steps), np.append(steps, steps[-1])
    return 0.5 * (before + after) + np.pad(turn, 1) * (before - after)


def with_slopes(x: Array, rate: float) -> Array:
    """Values at equal times, their first and their second derivative (3, N)."""
    return np.stack([x, derivative(x, rate), derivative(x, rate, 2)])


def steady(path: Array, noise: float) -> Array:
    """A path that turns where the given one does, but only where that comes back by more than twice the `noise`, and else stands still.

    One way along it such turns are seen late, the other way early; the path is the mean of both.
    """

    def one_way(path: Array) -> Array:
        at, out = float(path[0]), []
        for x in path.tolist():
            if x - at > noise:
                at = x - noise
            elif at - x > noise:
                at = x + noise
            out.append(at)
        return np.array(out)

    return 0.5 * (one_way(path) + one_way(path[::-1])[::-1])


def joint_recording(log: Experiment, joint: str) -> JointRecording:
    """The channels of a flexible joint on the clock of its motor encoder; what is wrong with them is refused by name."""
    by_rate = f"q.{joint}" not in log.channels and f"qd.{joint}" in log.channels
    names = (f"q.{motor_side(joint)}", f"{'qd' if by_rate else 'q'}.{joint}", f"force.{motor_side(joint)}")
    hint = f"A gyroscope will do: qd.{joint}, or a sensor of the model on this link, as an accelerometer does, with all its channels."
    rate, (motor_angle, link_angle, force) = on_motor_clock(log, names, {names[1]: hint})
    if by_rate:
        link_angle = _integrated(link_angle, motor_angle, rate)
    made = JointRecording(log.name, rate, motor_angle, link_angle, force)
    _check(made, joint)
    return made


def on_motor_clock(
    log: Experiment,
    names: Sequence[str],
    hints: Mapping[str, str] | None = None,
    method: Literal["linear", "cubic"] = "linear",
) -> tuple[float, list[Array]]:
    """The rate of the first channel, a motor's encoder, and all channels at its samples that every one of them covers."""
    faults = Faults()
    for name in names:
        if name not in log.channels:
            hint = (hints or {}).get(name) or did_you_mean(name, [*log.channels])
            faults.add("it is needed, and missing.", where=part_at("channel", name), hint=hint)
    faults.raise_if_any(DataError, log.name)
    given = [log.channels[name] for name in names]
    start, end = max(c.t[0] for c in given), min(c.t[-1] for c in given)
    rate = uniform_rate(given[0].t, where=names[0])
    clock = given[0].t[(given[0].t >= start) & (given[0].t <= end)]
    if len(clock) < rate:
        what = f"{', '.join(names[:-1])} and {names[-1]} have less than a second in common."
        found = ", ".join(f"{c.name} {c.t[0]:g} to {c.t[-1]:g} s" for c in given)
        raise DataError(what, where=log.name, found=found, hint="Bring them to one clock.")
    one = resample(Experiment({c.name: c for c in given}, log.name), clock, method)
    return rate, [one.channels[name].values for name in names]


def _integrated(speed: Array, motor: Array, rate: float) -> Array:
    """The angle of a link from its rate, without the drift against the motor that the zero of a gyroscope makes.

    Trapezoids would shorten fast motion by (ωh)²/12, which beside a small deflection is not small: a cubic spline is integrated.
    """
    t = np.arange(len(speed)) / rate
    angle = np.asarray(CubicSpline(t, speed).antiderivative()(t), dtype=np.float64)
    return angle + np.polyval(np.polyfit(t, motor - angle, 1), t)


def refuse_play(joint: str, own: Flexible) -> None:
    """Refuse a joint with backlash or hysteresis, which the equations do not have."""
    words = [word for word in ("backlash", "hysteresis") if getattr(own, word) != 0.0]
    if words:
        hint = "Leave them out: what they do is then part of the stiffness."
        what = f"a stiffness beside {' and '.join(words)} is not identified."
        raise DataError(what, where=part_at("joint", joint), hint=hint)


def _check(r: JointRecording, joint: str) -> None:
    """Refuse a frozen encoder, other units, swapped signs, a motor angle before the gear, and other clocks."""
    where, motor, link = part_at("joint", joint), f"q.{motor_side(joint)}", f"q.{joint}"
    span = np.ptp(r.motor)
    if span == 0.0 or not np.isfinite(r.motor).all() or not np.isfinite(r.link).all():
        raise DataError("its motor encoder stands still.", where=where, found=f"{motor} {r.motor[0]:g}")
    if np.ptp(r.link) < STILL_SHARE * span:
        found = f"{motor} moves by {span:.3g}, {link} by {np.ptp(r.link):.3g}"
        hint = "A link encoder that is not connected reads a constant."
        raise DataError("its link encoder stands still while the motor moves.", where=where, found=found, hint=hint)
    slope = float(np.polyfit(r.motor - r.motor.mean(), r.link - r.link.mean(), 1)[0])
    if abs(slope - 1.0) > SLOPE_TOLERANCE:
        what = "motor and link encoder do not measure the same angle."
        raise DataError(what, where=where, expected="a slope of 1", found=f"{slope:.4g}", hint=_slope_hint(slope))
    delay = r.delay
    if abs(delay) > LONGEST_DELAY_S:
        found = f"{link} is {1e3 * delay:.0f} ms later than {motor}"
        hint = "Bring both to one clock, or shift one by this delay."
        raise DataError("its encoders have different clocks.", where=where, found=found, hint=hint)


def _slope_hint(slope: float) -> str:
    for factor, text in ((np.degrees(1.0), "degrees, the motor's rad"), (np.radians(1.0), "rad, the motor's degrees")):
        if abs(slope / factor - 1.0) < SLOPE_TOLERANCE:
            return f"The link's readings seem to be {text}: give both their units."
    if abs(slope + 1.0) < SLOPE_TOLERANCE:
        return "One of them has the other sign: use times: -1 in its column."
    if 0.0 < slope < 0.1:
        return f"Is the motor's angle before the gear, of ratio {1.0 / slope:.4g}? Divide it by the gear ratio."
    return "Are the columns those of one joint?"


def samples_of(
    r: JointRecording,
    inertia: float,
    band: float,
    *,
    step: int = 0,
    dead_zone: float = 0.0,
    ahead: int = 0,
    edge: float = EDGE_PERIODS,
) -> JointSamples:
    """A recording low-passed to `band` Hz; the ends, where the filter knows less, and speeds below `dead_zone` (rad/s) are left out.

    `step`: one sample in so many is kept; by default as many as carry the band.
    `ahead`: samples by which the link is read later than the motor. `edge`: periods of the band at either end.
    """
    link = r.link[np.clip(np.arange(len(r.link)) + ahead, 0, len(r.link) - 1)]
    low = Butterworth(band, ORDER)

    def passed(x: Array) -> Array:
        return zero_phase(x, r.rate, low)

    theta = passed(r.motor)
    acceleration = derivative(theta, r.rate, 2)
    force = passed(r.torque) - inertia * acceleration
    columns = {
        "t": np.arange(len(theta)) / r.rate,
        "deflection": passed(r.motor - link),
        "force": with_slopes(force, r.rate),
        "speed": derivative(theta, r.rate),
        "acceleration": acceleration,
        "jerk": derivative(acceleration, r.rate),
    }
    ends = round(edge * r.rate / band)
    every = step or max(1, round(r.rate / (SAMPLES_PER_BAND * band)))
    kept = np.zeros(len(theta), dtype=bool)
    kept[ends : len(theta) - ends : every] = True
    kept &= np.abs(columns["speed"]) >= dead_zone
    own = {name: x[..., kept] for name, x in columns.items()}
    motion = Butterworth(MOTION_SHARE * r.rate, ORDER)
    motor, apart = (zero_phase(x, r.rate, motion) for x in (r.motor, r.motor - link))
    path = steady(r.motor, NOISE_SIGMAS * float(np.std(r.motor - motor)))
    noise = PASSED_NOISE * float(np.std(r.motor - link - apart))
    return JointSamples(
        **own,
        path=path,
        motor=motor,
        apart=apart,
        noise=noise,
        kept=kept,
        passed=passed,
        rate=r.rate,
        all_force=force,
        all_speed=columns["speed"],
        ahead=ahead / r.rate,
    )


def largest_speed(recordings: Sequence[JointRecording]) -> float:
    """The largest speed of the motor over all recordings, rad/s or m/s."""
    if not recordings:
        raise DataError("there is no log.", where="logs", expected="one or more", found="none")
    found = [derivative(zero_phase(r.motor, r.rate, Butterworth(r.band, ORDER)), r.rate) for r in recordings]
    return max(float(np.abs(x).max()) for x in found)
