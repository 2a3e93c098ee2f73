"""What sensors make of the truth: y_k = quantised( lowpassed x(t_k − delay) + bias_k + noise_k ), on a clock of their own.

What the sensors of a machine read without any error (`exact_readings`) is such a truth. It is read, never changed. What no sensor is
named for is not measured. Noise is white and normal from the `rng` that is passed in, channel by channel in the order of the truth, so
one seed gives one log.

The pulse sensor of a wheel records a count, the times of edges, or the intervals between them:

    n(t) = ⌊(φ(t) − φ₀)/p⌋,   p = 2π/holes        edge n at φ(t) = n p + φ₀

An unsigned count goes up by one at every edge, whichever way the wheel turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from veridyn.arguments import checked, checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.mechanics.formulated import in_joints
from veridyn.mechanics.natural.channels import exact_readings as natural_readings
from veridyn.mechanics.natural.steps.integrate import MechanismRun
from veridyn.mechanics.system.simulation import Trajectory
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.signals.butterworth import Butterworth, as_rate, zero_phase
from veridyn.signals.conditioning import Band, within
from veridyn.signals.pulses import PulseWheel
from veridyn.signals.resample import uniform_rate

BISECTIONS = 60  # halvings of a sample interval: below the rounding of a time


@checked_record
@dataclass(frozen=True, kw_only=True)
class Imperfection:
    """What one sensor adds to the truth, in the unit of what it measures. Where a sensor sits and what it reads is a
    :class:`~veridyn.model.sensor.Sensor` of the machine.

    `noise` is a standard deviation, `bias` is added and walks by √(`walk` · t), `quantum` is the step between two readings (0: none).
    `rate` in Hz is its own clock (None: that of the truth). A reading stamped t is the truth at t − `delay` (s). `cutoff` in Hz is the band
    of the sensor and its conditioning (0: all that the truth holds): a Butterworth low-pass of `order`, its own delay compensated, or, with
    `causal`, coming late as it does where nobody compensates (:class:`veridyn.signals.conditioning.Band`).
    """

    noise: float = 0.0
    bias: float = 0.0
    quantum: float = 0.0
    rate: float | None = None
    delay: float = 0.0
    cutoff: float = 0.0
    order: int = 2
    causal: bool = False
    walk: float = 0.0

    def __post_init__(self) -> None:
        faults = Faults()
        for name in ("noise", "quantum", "delay", "cutoff", "walk"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                faults.add(f"its {name} is not usable.", where="sensor", expected="zero or more", found=f"{value}")
        if not np.isfinite(self.bias):
            faults.add("its bias is not usable.", where="sensor", expected="a finite number", found=f"{self.bias}")
        if self.rate is not None and not (np.isfinite(self.rate) and self.rate > 0.0):
            faults.add("its rate is not usable.", where="sensor", expected="Hz above zero", found=f"{self.rate}")
        faults.raise_if_any(DataError)

    def read(self, truth: Channel, rng: np.random.Generator | None) -> Channel:
        """The channel that this sensor records."""
        t, x = self._clocked(self._within_band(truth))
        x = x + self.bias
        if self.noise > 0.0 or self.walk > 0.0:
            if rng is None:
                what = "a noisy sensor needs random numbers."
                expected = "rng, such as numpy.random.default_rng(seed)"
                raise DataError(what, where=f"channel '{truth.name}'", expected=expected, found="none")
            if self.walk > 0.0:
                steps = np.sqrt(self.walk * np.diff(t)) * rng.standard_normal(len(x) - 1)
                x = x + np.concatenate([[0.0], np.cumsum(steps)])
            x = x + self.noise * rng.standard_normal(len(x))
        if self.quantum > 0.0:
            x = self.quantum * np.round(x / self.quantum)
        return Channel(truth.name, t, x, truth.unit)

    def _within_band(self, truth: Channel) -> Channel:
        if self.cutoff == 0.0:
            return truth
        where = f"channel '{truth.name}'"
        rate = uniform_rate(truth.t, where=where)
        if self.causal:
            return replace(truth, values=within(truth.values, rate, Band(self.cutoff, self.order), where))
        band = Butterworth(self.cutoff, self.order, cutoff_is="double")
        return replace(truth, values=zero_phase(truth.values, rate, band, where=where))

    def _clocked(self, truth: Channel) -> tuple[Array, Array]:
        """The times of the readings and the truth that each of them sees."""
        first, last = float(truth.t[0]) + self.delay, float(truth.t[-1])
        if self.rate is None:
            t = truth.t[truth.t >= first - 1e-12]
        else:
            count = int(np.floor((last - first) * self.rate + 1e-9)) + 1
            t = first + np.arange(max(count, 0)) / self.rate
        if len(t) < 2:
            what = "the truth is too short for this sensor."
            found = f"{len(t)} in {last - float(truth.t[0]):g} s"
            raise DataError(what, where=f"channel '{truth.name}'", expected="at least two readings", found=found)
        if self.rate is None and self.delay == 0.0:
            return truth.t, truth.values
        seen = np.clip(t - self.delay, truth.t[0], truth.t[-1])
        return t, CubicSpline(truth.t, truth.values)(seen)


@checked_record
@dataclass(frozen=True)
class Imperfections:
    """Imperfections of sensors by pattern of channel names: ``{"q.*": Imperfection(quantum=1e-5), "force.*": Imperfection(noise=0.1)}``.

    `*` stands for any text. The first pattern that fits a channel decides. A channel that none fits is not measured.
    """

    by_pattern: Mapping[str, Imperfection]

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_pattern", MappingProxyType(dict(self.by_pattern)))

    def of(self, name: str) -> Imperfection | None:
        """The imperfection of a channel, None where it is not measured."""
        return next((s for pattern, s in self.by_pattern.items() if fnmatchcase(name, pattern)), None)

    def read(self, truth: Experiment, rng: np.random.Generator | None) -> Experiment:
        """The log that these sensors record; a pattern that fits no channel is refused."""
        faults = Faults()
        for pattern in self.by_pattern:
            if not any(fnmatchcase(name, pattern) for name in truth):
                what = f"the sensor '{pattern}' measures nothing of this machine."
                faults.add(what, where=truth.name, hint=did_you_mean(pattern, truth.names))
        faults.raise_if_any(DataError)
        read = {}
        for name, channel in truth.channels.items():
            imperfection = self.of(name)
            if imperfection is not None:
                read[name] = imperfection.read(channel, rng)
        return Experiment(read, truth.name, truth.notes)


@checked
def wheel_count(angle: Channel, wheel: PulseWheel, name: str, rate: float | None = None) -> Channel:
    """The count of a wheel at `rate` (Hz), or on the clock of its exact angle (rad).

    Examples
    --------
    >>> import numpy as np
    >>> from veridyn.model import Channel
    >>> from veridyn.signals import PulseWheel
    >>> from veridyn.manoeuvres import wheel_count
    >>> turning = Channel("spin", np.arange(5) * 0.01, np.arange(5) * 0.1, "rad")
    >>> wheel_count(turning, PulseWheel(holes=40), "count").values
    array([0., 0., 1., 1., 2.])
    """
    _check(angle)
    if rate is not None:
        as_rate(rate, "wheel_count, rate")
    t = angle.t if rate is None else angle.t[0] + np.arange(int((angle.t[-1] - angle.t[0]) * rate + 1e-9) + 1) / rate
    at = angle.values if rate is None else CubicSpline(angle.t, angle.values)(t)
    n = np.floor((at - wheel.phase) / wheel.pitch)
    if not wheel.signed:
        n = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(n)))])
    return Channel(name, t, n, "1")


@checked
def edge_times(angle: Channel, wheel: PulseWheel) -> Array:
    """The times (s) at which edges pass, by a cubic spline through the exact angle; it turns one way from sample to sample."""
    _check(angle)
    places = (angle.values - wheel.phase) / wheel.pitch
    first, last = np.floor(places[:-1]), np.floor(places[1:])
    rows = np.repeat(np.arange(len(first)), np.abs(last - first).astype(np.intp))
    if len(rows) == 0:
        return np.zeros(0)
    nth = np.concatenate([np.arange(k) for k in np.abs(last - first).astype(int).tolist()])
    up = last[rows] > first[rows]
    aim = np.where(up, first[rows] + 1.0 + nth, first[rows] - nth)
    spline = CubicSpline(angle.t, places)
    low, high, sign = angle.t[rows], angle.t[rows + 1], np.where(up, 1.0, -1.0)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        before = sign * (spline(middle) - aim) < 0.0
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return 0.5 * (low + high)


@checked
def edge_intervals(angle: Channel, wheel: PulseWheel, clock: float = 0.0) -> tuple[float, Array]:
    """The time of the first edge and the intervals (s) to the next ones, as a timer that ticks every `clock` seconds counts them."""
    t = edge_times(angle, wheel)
    if len(t) == 0:
        raise DataError("the wheel passes no edge.", where=f"channel '{angle.name}'")
    read = np.floor(t / clock) * clock if clock > 0.0 else t
    return float(read[0]), np.diff(read)


def _check(angle: Channel) -> None:
    if angle.unit != "rad" or not np.isfinite(angle.values).all() or len(angle) < 2:
        expected = "finite values in rad, two or more"
        raise DataError(
            "it is no angle of a wheel.", where=f"channel '{angle.name}'", expected=expected, found=angle.unit
        )


def exact_readings(machine: Machine, trajectory: Trajectory, sensors: Sequence[Sensor]) -> dict[str, Channel]:
    """The outputs of `sensors` by name, their known bias included."""
    if not sensors:
        return {}
    table = in_joints(machine).readout(sensors)
    values, t = table.read(*configurations(machine, trajectory)), trajectory.motion.t
    return {name: Channel(name, t, values[:, k], unit) for k, (name, unit) in enumerate(zip(table.names, table.units))}


def configurations(machine: Machine, trajectory: Trajectory) -> tuple[Array, Array, Array]:
    """Configurations (N, nq), rates and accelerations (N, nv) as :mod:`veridyn.mechanics.tree.recursion.sensing` orders them."""
    m, R = trajectory.motion, trajectory.base_rotation
    if machine.base != "free":
        return m.q, m.qd, m.qdd
    base = m.base
    place = trajectory.base_position
    assert base is not None and base.velocity is not None  # a simulated motion of a free base has them,
    assert R is not None and place is not None  # and its pose
    x, y, z, w = Rotation.from_matrix(R).as_quat().T
    e = np.column_stack([w, x, y, z])
    e *= _continued(e)
    V = np.einsum("nij,nj->ni", R, base.velocity)
    Vd = np.einsum("nij,nj->ni", R, base.acceleration) + machine.gravity
    q = np.hstack([place, e, m.q])
    return q, np.hstack([V, base.omega, m.qd]), np.hstack([Vd, base.omega_dot, m.qdd])


def _continued(e: Array) -> Array:
    """Signs (N, 1) that make quaternions (N, 4) follow each other without a jump."""
    turned = (e[1:] * e[:-1]).sum(axis=1) < 0.0
    return np.concatenate([[1.0], np.cumprod(np.where(turned, -1.0, 1.0))])[:, None]


def imperfections_of(sensors: Sequence[Sensor], rng: np.random.Generator | None) -> dict[str, Imperfection]:
    """The sensors of a machine, output by output, each with a bias drawn as the sensor has it."""
    found = {}
    for sensor in sensors:
        for channel in sensor.channels(3):
            drawn = 0.0 if rng is None or sensor.bias_sigma == 0.0 else float(rng.standard_normal())
            found[channel] = imperfection_of(sensor, sensor.bias_sigma * drawn)
    return found


def imperfection_of(sensor: Sensor, bias: float) -> Imperfection:
    """What a sensor of a machine adds to the truth, with the bias it has this time."""
    return Imperfection(
        noise=sensor.sigma,
        bias=bias,
        quantum=sensor.quantum,
        rate=sensor.rate,
        delay=sensor.delay,
        walk=sensor.bias_walk,
    )


def wrapped(sensors: Sequence[Sensor], log: Experiment) -> Experiment:
    """The same log with readings between −π and π where a sensor reads an angle modulo a full turn."""
    turning = [s.name for s in sensors if s.wraps and s.name in log]
    return log.replacing(
        *(Channel(c, log[c].t, (log[c].values + np.pi) % (2.0 * np.pi) - np.pi, log[c].unit) for c in turning)
    )


def mechanism_truth(run: MechanismRun) -> Experiment:
    """Everything about a run without error: its sensors' outputs by name, then q.C, qd.C and qdd.C of coordinates, and load.L."""
    m, motion = run.system.mechanism, run.motion
    found = dict(natural_readings(run.system, motion).channels)
    for prefix, values, per in (("q", motion.q, ""), ("qd", motion.qd, "/s"), ("qdd", motion.qdd, "/s^2")):
        for k, name in enumerate(m.coordinates):
            channel = f"{prefix}.{name}"
            found[channel] = Channel(channel, motion.t, values[:, k], m.unit_of(name) + per)
    for load in m.loads:
        for k, name in enumerate(load.channels):
            channel, unit = f"load.{name}", m.force_unit(load.name)
            found[channel] = Channel(channel, motion.t, run.loads[load.name][:, k], unit)
    return Experiment(found, f"simulation of {m.name}", {"source": "simulated", "machine": m.name})


def own_sensors(machine: Machine, rng: np.random.Generator) -> dict[str, Imperfection]:
    """The sensors of a machine's file, output by output, each with a bias drawn as its file says."""
    return {
        channel: imperfection_of(i, float(i.bias_sigma * rng.standard_normal()))
        for i in machine.sensors
        for channel in i.channels(machine.dimension)
    }
