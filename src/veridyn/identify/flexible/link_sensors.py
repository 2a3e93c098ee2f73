"""Inertial sensors on the link of a flexible joint: what they read, beside what they would read were the joint rigid.

A sensor on the link reads h(q, q̇, q̈), and q is the motor's angle θ less the deflection δ. Where δ̂ is near δ,

    h(q, q̇, q̈) = h(θ − δ̂, …) − H₀ (δ − δ̂) − H₁ (δ̇ − δ̂̇) − H₂ (δ̈ − δ̂̈),        H₀, H₁, H₂ = ∂h/∂q, ∂h/∂q̇, ∂h/∂q̈

An accelerometer at r on the link reads, in the plane of the motion, g turned by q, r q̈ across and −r q̇² along its lever; H₀ is the turning
of gravity, H₂ the lever. A gyroscope has H₁ alone. What is added to that are numbers of the sensor itself, in which readings are linear:

    bias        of each output and log
    turn        H₀ ε of each log: how the sensor is turned about the joint's axis, beside the zero of the motor's encoder
    gain        b h_j of each output and each axis j of the sensor: its own, 1 + b, and those across
    place       ∂h/∂r Δr of an accelerometer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.signal import correlate

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, part_at
from veridyn.identify.flexible.recording import (
    LONGEST_DELAY_S,
    ORDER,
    JointRecording,
    JointSamples,
    dahl_state,
    on_motor_clock,
)
from veridyn.mechanics.tree.of_machine import bodies_of, tree_of
from veridyn.mechanics.tree.readout import TreeReadout, tree_readout
from veridyn.model.experiment import Experiment
from veridyn.model.flexible import motor_side
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND, Marker
from veridyn.model.sensor import Sensor
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.derivative import derivative

KINDS = ("accelerometer", "gyroscope")
DRAWS, LARGEST_DRAW = 3, 1.0  # states, in rad or m and their rates, at which it is seen which coordinates move a sensor
SEEN = 1e-9  # of readings: smaller derivatives are none
STANDARD_GRAVITY = 9.80665  # m/s²
# A joint that gives way changes readings, where gravity and acceleration nearly cancel by much; units, signs and axes change them by more
LARGEST_SLOPE = 2.0
ONLY_LATE = 0.9  # correlation of readings that another clock alone keeps from what they should be
SPREAD_SEEN = 0.05  # of the readings, rms: an output that varies less is not asked for its slope
TURN_SIGMA = (
    1.0  # rad: how a sensor is turned about the axis, and the zero of the motor's encoder, are as good as unknown
)
WIDE_BIAS = 1e3  # standard deviations of a reading: a bias of which nothing is stated


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkSensor:
    """A sensor on the link of `joint`, which `others` of all `coordinates` move as well.

    `readout`: all its axes, of an accelerometer then those at places 1 m farther along each axis of its body; `rows`: its outputs.
    """

    sensor: Sensor
    joint: str
    coordinates: tuple[str, ...]
    readout: TreeReadout
    axes: int
    rows: tuple[int, ...]
    others: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of its outputs."""
        return self.sensor.channels(3)

    @property
    def unit(self) -> str:
        return self.readout.units[0]

    def readings(self, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
        """All axes (axes, N), their slopes by the joint's q, q̇, q̈ (3, axes, N) and by the place (3 or 0, axes, N); no bias."""
        made, n = self.readout.read(q, qd, qdd).T - self.readout.bias[:, None], self.axes
        k = self.coordinates.index(self.joint)
        slopes = np.stack([x[:, :n, k].T for x in self.readout.derivatives(q, qd, qdd)])
        places = [made[at : at + n] - made[:n] for at in range(n, len(made), n)]
        return made[:n], slopes, np.stack(places) if places else np.zeros((0, *made[:n].shape))


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkReadings:
    """What one sensor read in one log, on the clock of the motor: `values` (m, N); `others` (c, N): coordinates that move it as well."""

    recording: JointRecording
    values: Array
    others: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class SensorSamples:
    """Readings of one sensor in one log at the samples kept, low-passed as the equations are, in which δ − δ̂ is small.

    `rigid` (4, m, K): h(θ − δ̂) and its first three derivatives by time; `measured` (m, K): the readings `ahead` s later, less that.
    `slopes` (3, m, K) and `slope_rates`: H₀, H₁, H₂; `bent` (4, K): δ̂ and its derivatives; `columns` (c, m, K): those of the sensor itself.
    `force`, `speed` (6, K): Γ − J θ̈ and θ̇, with five derivatives each.
    """

    t: Array
    measured: Array
    rigid: Array
    slopes: Array
    slope_rates: Array
    bent: Array
    columns: Array
    force: Array
    speed: Array
    ahead: float
    joint: JointSamples

    def dry_friction(self, distance: float) -> Array:
        """The share of dry friction that acts and of its start (2, 6, K), with five derivatives each."""
        made = [self.joint.passed(x) for x in dahl_state(self.joint.path, distance)]
        return np.stack([rates_of(x, self.joint.rate, 5)[:, self.joint.kept] for x in made])

    def reading(self, flex: Array, delay: float) -> Array:
        """What the sensor reads less `rigid` (m, K), but for its own numbers; `flex` (4, K): δ and its derivatives, read `delay` s late."""
        d, off = delay - self.ahead, flex - self.bent
        bent = np.einsum("jmk,jk->mk", self.slopes, off[:3])
        moved = np.einsum("jmk,jk->mk", self.slopes, off[1:]) + np.einsum("jmk,jk->mk", self.slope_rates, off[:3])
        late = -d * self.rigid[1] + d**2 / 2.0 * self.rigid[2] - d**3 / 6.0 * self.rigid[3]
        return late - bent + d * moved


def rates_of(x: Array, rate: float, order: int) -> Array:
    """Values at equal times along the last axis and their derivatives up to `order` (order + 1, …)."""
    out = [x]
    for k in range(1, order + 1):
        once = derivative(np.moveaxis(out[k - 1 if k % 2 else k - 2], -1, 0), rate, 1 if k % 2 else 2)
        out.append(np.moveaxis(once, 0, -1))
    return np.stack(out)


def link_sensors(machine: Machine, joint: str, logs: Sequence[Experiment]) -> list[LinkSensor]:
    """The gyroscopes and accelerometers on the link of a joint that every log has, and the channel ``qd.NAME`` as a gyroscope."""
    tree = tree_of(machine)
    if tree.base == "free":
        hint = "Give the machine a fixed base: base: fixed."
        raise DataError("sensors on a link of a free base are not used.", where=part_at("joint", joint), hint=hint)
    own = [s for s in tree.sensors if s.kind in KINDS and _carrier(machine, s) == joint]
    found = [s for s in own if all(c in log.channels for log in logs for c in s.channels(3))]
    rate = f"qd.{joint}"
    if not any(s.kind == "gyroscope" for s in found) and all(rate in log.channels for log in logs):
        found.append(Sensor(rate, "rate", joint, 1.0))
    return [_link_sensor(machine, s, joint) for s in found]


def _link_sensor(machine: Machine, s: Sensor, joint: str) -> LinkSensor:
    """The sensor with all its axes, and the coordinates that move it beside the joint's."""
    tree = tree_of(machine)
    if s.kind == "rate":
        readout = tree_readout(tree, [s], "numpy")
        return LinkSensor(
            sensor=s, joint=joint, coordinates=tree.coordinates, readout=readout, axes=1, rows=(0,), others=()
        )
    full = [replace(s, axes="xyz")]
    if s.kind == "accelerometer":
        on = s.on if isinstance(s.on, Marker) else Marker(s.on, (0.0, 0.0, 0.0))
        full += [
            replace(s, name=f"{s.name}+{k}", axes="xyz", on=replace(on, at=np.array(on.at) + np.eye(3)[k]))
            for k in range(3)
        ]
    readout, rng = tree_readout(tree, full, "numpy"), np.random.default_rng(0)
    states = rng.uniform(-LARGEST_DRAW, LARGEST_DRAW, (3, DRAWS, tree.n))
    moves = np.max([np.abs(x[:, :3]) for x in readout.derivatives(*states)], axis=(0, 1, 2)) > SEEN
    others = tuple(c for c, own in zip(tree.coordinates, moves, strict=True) if own and c != joint)
    rows = tuple("xyz".index(a) for a in s.components(3))
    return LinkSensor(
        sensor=s, joint=joint, coordinates=tree.coordinates, readout=readout, axes=3, rows=rows, others=others
    )


def _carrier(machine: Machine, s: Sensor) -> str:
    """The coordinate of the joint that moves the body on which a sensor sits; nothing on the ground."""
    bodies = {b.name: b for b in bodies_of(machine)}
    at = s.on.body if isinstance(s.on, Marker) else s.on
    while at in bodies and bodies[at].joint == "fixed":
        at = bodies[at].antecedent or GROUND
    return bodies[at].coordinate_name if at in bodies else ""


def refuse_blind(one: LinkSensor) -> None:
    """Refuse an accelerometer that does not move with the joint: on a vertical axis, or on one that nothing turns gravity about."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-LARGEST_DRAW, LARGEST_DRAW, (3, DRAWS, len(one.coordinates)))
    _, slopes, _ = one.readings(*states)
    if np.abs(slopes[:, list(one.rows)]).max() > SEEN:
        return
    what = f"'{one.sensor.name}' reads the same however this joint bends: it sits on its axis, which is vertical."
    hint = "Place it away from the axis, and give its place (on: {body: …, at: […]}), or use a gyroscope."
    raise DataError(what, where=part_at("joint", one.joint), hint=hint)


def recorded(sensors: Sequence[LinkSensor], joint: str, log: Experiment) -> tuple[JointRecording, list[LinkReadings]]:
    """Motor encoder and torque of a joint, what sensors on its link read, and coordinates that move them as well, on one clock."""
    faults, others = Faults(), dict.fromkeys(c for one in sensors for c in one.others)
    for c in others:
        if f"q.{c}" not in log.channels:
            what = "a sensor on the link moves with it as well, so that it is needed."
            hint = "Its motor side does not tell where its link is." if f"q.{motor_side(c)}" in log.channels else ""
            faults.add(what, where=part_at("channel", f"q.{c}"), hint=hint)
    faults.raise_if_any(DataError, log.name)
    own = [f"q.{motor_side(joint)}", f"force.{motor_side(joint)}"]
    read = [name for one in sensors for name in one.names]
    names = [*own, *read, *(f"q.{c}" for c in others)]
    rate, values = on_motor_clock(log, names, method="cubic")
    by_name = dict(zip(names, values, strict=True))
    motor, torque = (by_name[name] for name in own)
    if float(np.ptp(motor)) == 0.0 or not np.isfinite(motor).all():
        raise DataError(
            "its motor encoder stands still.", where=part_at("joint", joint), found=f"{own[0]} {motor[0]:g}"
        )
    recording = JointRecording(log.name, rate, motor, motor, torque)
    out = []
    for one in sensors:
        moved = np.stack([by_name[f"q.{c}"] for c in one.others]) if one.others else np.zeros((0, len(motor)))
        values = np.stack([by_name[name] for name in one.names])
        out.append(LinkReadings(recording=recording, values=values, others=moved))
        _check(one, out[-1])
    return recording, out


def _states(one: LinkSensor, readings: LinkReadings, bent: Array) -> tuple[Array, Array, Array]:
    """q, q̇ and q̈ of the whole tree (N, n), the joint's link `bent` (3, N) behind the motor."""
    r = readings.recording
    out = np.zeros((3, len(r.motor), len(one.coordinates)))
    k = one.coordinates.index(one.joint)
    out[:, :, k] = rates_of(r.motor, r.rate, 2) - bent
    for c, x in zip(one.others, readings.others, strict=True):
        out[:, :, one.coordinates.index(c)] = rates_of(x, r.rate, 2)
    return out[0], out[1], out[2]


def first_delay(one: LinkSensor, readings: LinkReadings, passed: JointSamples) -> float:
    """s: of the sensor's readings, were the joint rigid, by least squares on readings, their slopes over time and a bias."""
    rigid, read = (passed.passed(np.ascontiguousarray(x.T)).T for x in (_rigid(one, readings), readings.values))
    late = rates_of(rigid, readings.recording.rate, 1)[1]
    gram, cross = np.zeros((2, 2)), np.zeros(2)
    for x, slope, y in zip(rigid, late, read, strict=True):
        X = np.stack([x - x.mean(), slope - slope.mean()], axis=1)
        gram, cross = gram + X.T @ X, cross + X.T @ (y - y.mean())
    gain, less = np.linalg.solve(gram, cross)
    return float(-less / gain)


def _rigid(one: LinkSensor, readings: LinkReadings) -> Array:
    """Its outputs were the joint rigid (m, N)."""
    made, _, _ = one.readings(*_states(one, readings, np.zeros((3, len(readings.recording.motor)))))
    return made[list(one.rows)]


def _check(one: LinkSensor, readings: LinkReadings) -> None:
    """Refuse a frozen sensor, other units and signs, and readings without gravity, by their slopes over those of a rigid joint."""
    where = part_at("channel", one.sensor.name)
    if not np.isfinite(readings.values).all() or float(np.ptp(readings.values, axis=1).max()) == 0.0:
        raise DataError("it stands still, or is no number, while the motor moves.", where=where)
    r = readings.recording
    low = Butterworth(r.band, ORDER)
    rigid, read = (
        zero_phase(np.ascontiguousarray(x.T), r.rate, low).T for x in (_rigid(one, readings), readings.values)
    )
    x, y = rigid - rigid.mean(axis=1)[:, None], read - read.mean(axis=1)[:, None]
    asked = np.std(x, axis=1) > SPREAD_SEEN * float(np.sqrt(np.mean(rigid**2)))
    if not asked.any():
        return
    x, y = x[asked], y[asked]
    together = np.sum([correlate(b, a, method="fft") for a, b in zip(x, y, strict=True)], axis=0)
    lags = np.arange(1 - x.shape[1], x.shape[1])
    near = np.abs(lags) <= LONGEST_DELAY_S * r.rate
    if together.max() > max(ONLY_LATE * float(np.sqrt((x * x).sum() * (y * y).sum())), float(together[near].max())):
        delay_fault(one.joint, one.sensor.name, lags[np.argmax(together)] / r.rate)
    y = np.roll(y, -lags[near][np.argmax(together[near])], axis=1)
    slopes = (y * x).sum(axis=1) / (x * x).sum(axis=1)
    for name, slope in zip(np.array(one.names)[asked], slopes.tolist(), strict=True):
        if 1.0 / LARGEST_SLOPE < slope < LARGEST_SLOPE:
            continue
        what = f"'{name}' does not read what the motion makes of its place and axes."
        expected = f"a slope of {1.0 / LARGEST_SLOPE:g} to {LARGEST_SLOPE:g} over what a rigid joint would make it read"
        raise DataError(what, where=where, expected=expected, found=f"{slope:.4g}", hint=_hint(one, slope))


def _hint(one: LinkSensor, slope: float) -> str:
    if 1.0 / LARGEST_SLOPE < -slope < LARGEST_SLOPE:
        return "It has the other sign: turn the axes of its marker, or use times: -1 in its column."
    for factor, text in ((1.0 / STANDARD_GRAVITY, "g"), (np.degrees(1.0), "degrees/s")):
        if 1.0 / LARGEST_SLOPE < slope / factor < LARGEST_SLOPE:
            return f"It seems to be in {text}: give its unit."
    if one.sensor.kind == "accelerometer":
        return "An accelerometer reads r̈ − g, gravity included: are its place, its axes and the zero of the motor those of the model?"
    return "Are its axes and units those of the model?"


def sensor_samples(
    one: LinkSensor,
    readings: LinkReadings,
    joint: JointSamples,
    log: int,
    logs: int,
    bent: Array,
    delay: float,
) -> SensorSamples:
    """The readings of log number `log` of `logs` around δ̂ = `bent` (N,), read about `delay` s late."""
    r = readings.recording
    ahead = round(delay * r.rate)
    flex = rates_of(bent, r.rate, 3)
    made, slopes, places = one.readings(*_states(one, readings, flex[:3]))
    rows, kept = list(one.rows), joint.kept

    def passed(x: Array) -> Array:
        flat = np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T)
        return np.ascontiguousarray(joint.passed(flat).T).reshape(x.shape)

    shifted = readings.values[:, np.clip(np.arange(len(r.motor)) + ahead, 0, len(r.motor) - 1)]
    every, by_place = passed(made), passed(places[:, rows]) if len(places) else np.zeros((0, len(rows), len(r.motor)))
    rigid = rates_of(every[rows], r.rate, 3)
    H = passed(slopes[:, rows])
    m = len(rows)
    columns = np.zeros((logs * m + logs + m * one.axes + len(by_place), m, int(kept.sum())))
    for i in range(m):
        columns[log * m + i, i] = 1.0
        for j in range(one.axes):
            columns[logs * m + logs + i * one.axes + j, i] = every[j][kept]
    columns[logs * m + log] = H[0][:, kept]
    columns[len(columns) - len(by_place) :] = by_place[:, :, kept]
    motion = rates_of(derivative(passed(r.motor[None])[0], r.rate), r.rate, 5)[:, kept]
    return SensorSamples(
        t=joint.t,
        measured=passed(shifted - made[rows])[:, kept],
        rigid=rigid[:, :, kept],
        slopes=H[:, :, kept],
        slope_rates=np.stack([rates_of(x, r.rate, 1)[1] for x in H])[:, :, kept],
        bent=rates_of(joint.passed(bent), r.rate, 3)[:, kept],
        columns=columns,
        force=rates_of(joint.all_force, r.rate, 5)[:, kept],
        speed=motion,
        ahead=ahead / r.rate,
        joint=joint,
    )


@dataclass(frozen=True, kw_only=True)
class OwnNumber:
    """One number of a sensor itself, with its prior; `kind`: bias, turn, gain or place."""

    name: str
    kind: str
    unit: str
    mean: float
    sigma: float


def own_numbers(
    one: LinkSensor, samples: Sequence[SensorSamples], logs: Sequence[str], gain: float, place: float
) -> list[OwnNumber]:
    """The numbers of `columns` in their order; `gain`, and `place` in m: prior standard deviations."""
    s, out = one.sensor, list[OwnNumber]()
    size = max(float(np.std(x.measured + x.rigid[0])) for x in samples)
    wide = s.bias_sigma if s.bias_sigma > 0.0 else WIDE_BIAS * size
    tail = (lambda log: f" in {log}") if len(logs) > 1 else (lambda log: "")
    out += [
        OwnNumber(name=f"bias of {n}{tail(log)}", kind="bias", unit=one.unit, mean=s.bias, sigma=wide)
        for log in logs
        for n in one.names
    ]
    out += [
        OwnNumber(name=f"turn of {s.name}{tail(log)}", kind="turn", unit="rad", mean=0.0, sigma=TURN_SIGMA)
        for log in logs
    ]
    axes = "xyz" if one.axes > 1 else " "
    for n in one.names:
        out += [OwnNumber(name=f"gain of {n} along {a}", kind="gain", unit="1", mean=0.0, sigma=gain) for a in axes]
    if s.kind == "accelerometer":
        out += [
            OwnNumber(name=f"place of {s.name} along {a}", kind="place", unit="m", mean=0.0, sigma=place) for a in "xyz"
        ]
    return out


def delay_fault(joint: str, name: str, delay: float) -> None:
    """Refuse a clock that is not that of the motor."""
    if abs(delay) > LONGEST_DELAY_S:
        what = f"'{name}' and the motor's encoder have different clocks."
        hint = "Bring both to one clock, or shift one by this delay."
        raise DataError(what, where=part_at("joint", joint), found=f"it is {1e3 * delay:.0f} ms later", hint=hint)
