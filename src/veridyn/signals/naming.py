"""Which channels of a log make which quantity of a machine, found by name, their units checked.

The table of names stands in :mod:`veridyn.signals.motion`. Everything that is missing, wrong or unusable is collected and
raised at once. Floors below the files know no conversion of units: here an SI unit is only compared with another.

Channels of a machine's own sensors and drives are read as the quantities that a motion is made of:

=============================================================== ==========================
on the machine                                                  is
=============================================================== ==========================
a sensor of kind coordinate or rate on coordinate c             q.c, qd.c
a drive on coordinate c                                         force.c
a gyroscope on a free base, with all three axes                 base.omega.x …
an accelerometer at the origin of a free base, three axes       base.acceleration.x …
a velocity sensor there, along axes of its own                  base.velocity.x …
=============================================================== ==========================

Channels that have these names already stay as they are. Of two sensors of one quantity the one with less noise is taken.

Where a log does not use veridyn's own names, those that most logs use are looked for, such as q1 [rad] and tau1 [N*m] for six joints:

    positions  q1, q_1, pos1, position_1, theta1, or the coordinate's own name, alone or with such a word before or behind it
    forces     tau1, torque_1, effort1, force_1, or such a word before or behind the coordinate's name
    rates      qd1, dq1, vel1, velocity_1, or such a word before or behind the coordinate's name

A name counts only with the unit of what it would measure, and only where one way of naming fits every coordinate (of forces: every actuated
one that has any). Where two ways fit, none is taken, and both are named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ALIKE, DataError, DataWarning, Fault, Faults, did_you_mean, warn
from veridyn.model.check import MachineParts
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive
from veridyn.model.place import Marker, frame
from veridyn.model.sensor import Sensor
from veridyn.signals.findings import Findings
from veridyn.signals.quality import inspect, inspect_clocks

AXES = ("x", "y", "z")
BASE_UNITS = {"omega": "rad/s", "acceleration": "m/s^2", "omega_dot": "rad/s^2", "velocity": "m/s"}
RATES = {"qd": "/s", "qdd": "/s^2"}
OF_COORDINATES = ("q.", "qd.", "qdd.", "force.")
OF_MOTORS = ("q_motor.", "force_motor.")
_DERIVED: Mapping[str, Mapping[str, float]] = {"N": {"kg": 1, "m": 1, "s": -2}, "J": {"kg": 1, "m": 2, "s": -2}}
_FACTOR = r"[A-Za-z]+(?:\^-?[\d.]+)?"
OF_BASE = {"gyroscope": "omega", "accelerometer": "acceleration", "velocity": "velocity"}
WORDS = {
    "q": ("q", "pos", "position", "theta", "joint", "angle"),
    "force": ("tau", "torque", "effort", "force"),
    "qd": ("qd", "dq", "vel", "velocity", "speed"),
}
WHAT = {"q": "positions", "force": "forces", "qd": "rates"}


@dataclass
class Naming:
    """The channels of `log` that `tree` uses, by name, each with the units it may have (none: any will do).

    `rates` False leaves measured q̇, q̈ and ω̇ aside. `bodies` are those that wrenches act on. `posed`: the base's motion comes from a
    pose and not from channels. `positions`: the coordinates whose positions are measured, all unless they are named; of the others only
    forces are looked for.
    """

    tree: MachineParts
    log: Experiment
    rates: bool = True
    posed: bool = False
    positions: Collection[str] | None = None

    def __post_init__(self) -> None:
        self.used: dict[str, tuple[str, ...]] = {}
        self.faults = Faults()
        self.missing: list[str] = []
        for c, kind in zip(self.tree.coordinates, self.tree.coordinate_kinds, strict=True):
            self._coordinate(c, turning=kind == "turning")
        if self.tree.base == "free" and not self.posed:
            self._base()
        self.bodies = self._wrenches()
        for name in self._starting("signal."):
            self.used[name] = ()
        driving = {f"signal.{name}" for e in self.tree.elements for name in e.signals}
        self.missing += sorted(driving.difference(self.log))

    @property
    def experiment(self) -> Experiment:
        """The log reduced to the channels that are used."""
        return Experiment({n: self.log.channels[n] for n in self.used}, self.log.name, self.log.notes)

    def motors(self, c: str, quantity: str) -> dict[str, float]:
        """Motor channel → its share in a coordinate."""
        return motor_channels(self.tree, c, quantity)

    def check(self, gaps: bool = True, whole: bool = True) -> Findings:
        """Missing channels, wrong units, clocks and values that cannot be used, and gaps, all in one DataError; else what was found.

        `whole`: whether values are looked at beyond what makes them unusable.
        """
        standing = self._standing()
        for name in dict.fromkeys(name for name in self.missing if name not in standing):
            hint = did_you_mean(name.split(" ")[0], self.log.names)
            self.faults.add(f"there is no channel '{name}'.", where=self.log.name, hint=hint)
        for name, units in self.used.items():
            self.faults.extend(unit_faults(self.log.channels[name], units))
        found = (inspect if whole else inspect_clocks)(self.experiment)
        for finding in found:
            if finding.severity == "fatal" or (finding.kind == "gap" and gaps):
                self.faults.extend([finding.fault])
        self.faults.raise_if_any(DataError)
        self._warn_of_strangers()
        return found

    def _standing(self) -> list[str]:
        """Positions of joints of which the log tells nothing, where they are many and others move: one fault for all of them."""
        found = [name for name in self.missing if name.startswith("q.") and f"force.{name[2:]}" not in self.log]
        if len(found) < ALIKE or len(found) == self.tree.n or self.tree.closed:
            return []
        listed = ", ".join(found[:ALIKE]) + (", …" if len(found) > ALIKE else "")
        self.faults.add(
            f"{len(found)} of {self.tree.n} joints have no channel: {listed}.",
            where=self.log.name,
            expected="a position of every joint that moves",
            hint="Lock those that stand still: lock: [names or patterns] under model of a study, or "
            "veridyn.model.welded(machine, {name: 0.0}, unknown='keep') in Python.",
        )
        return found

    def _starting(self, prefix: str) -> list[str]:
        return [name for name in self.log if name.startswith(prefix)]

    def _take(self, name: str, *units: str) -> bool:
        if name in self.log:
            self.used[name] = units
        return name in self.log

    def _together(self, channels: Mapping[str, Sequence[str]], wanted: bool) -> None:
        """Channels that are of use only together: all of them, or, unless they are wanted, none."""
        here = [self._take(name, *units) for name, units in channels.items()]
        if wanted or any(here):
            self.missing += [name for name, found in zip(channels, here, strict=True) if not found]

    def _coordinate(self, c: str, *, turning: bool) -> None:
        length, force = ("rad", "N*m") if turning else ("m", "N")
        here = self.positions is None or c in self.positions
        if here and not self._take(f"q.{c}", length):
            motors = self.motors(c, "q")
            if any(name in self.log for name in motors):
                self._together(dict.fromkeys(motors, ("rad", "m")), wanted=True)
            else:
                self.missing.append(f"q.{c}" + (f" (or {' and '.join(motors)})" if motors else ""))
        for prefix, per in RATES.items() if self.rates and here else ():
            self._take(f"{prefix}.{c}", length + per)
        if not self._take(f"force.{c}", force):
            self._together(dict.fromkeys(self.motors(c, "force"), ("N*m", "N")), wanted=False)

    def _base(self) -> None:
        needed = {"omega", "acceleration"} | {"velocity" for e in self.tree.elements if e.kind == "drag"}
        for name, unit in BASE_UNITS.items():
            if name != "omega_dot" or self.rates:
                self._together({f"base.{name}.{a}": (unit,) for a in AXES}, wanted=name in needed)

    def _wrenches(self) -> tuple[str, ...]:
        known = list(self.tree.body_names)
        named = dict.fromkeys(n.removeprefix("wrench.").rpartition(".")[0] for n in self._starting("wrench."))
        for body in named:
            if body in known:
                self._together(
                    {f"wrench.{body}.{r}": ("N" if r[0] == "f" else "N*m",) for r in WRENCH_ROWS}, wanted=True
                )
            else:
                self.faults.add(
                    f"a wrench acts on '{body}', which is no body.", where=self.log.name, hint=did_you_mean(body, known)
                )
        return tuple(named)

    def _warn_of_strangers(self) -> None:
        """A channel that looks meant for this machine may be a slip of the pen, and a force unseen is a wrong model."""
        t = self.tree.transmission
        own = {p + c for p in OF_COORDINATES for c in self.tree.coordinates}
        own |= {p + m for p in OF_MOTORS for m in (t.motors if t is not None else ())}
        odd = [n for n in self.log if n.startswith(OF_COORDINATES + OF_MOTORS) and n not in own]
        if odd:
            listed = ", ".join(odd[:8]) + (", …" if len(odd) > 8 else "")
            fault = Fault(
                f"{len(odd)} channel(s) name no coordinate or motor of '{self.tree.name}' and are not used: {listed}.",
                self.log.name,
                hint=did_you_mean(odd[0], sorted(own)),
            )
            warn(DataWarning, fault)


def motor_channels(tree: MachineParts, c: str, quantity: str) -> dict[str, float]:
    """Motor channel → its share in a coordinate: q = T q_m, Γ = T⁻ᵀ Γ_m; empty where no transmission drives it."""
    t = tree.transmission
    if t is None or c not in t.joints:
        return {}
    row = (t.matrix if quantity == "q" else np.linalg.inv(t.matrix).T)[t.joints.index(c)]
    size = np.abs(row).max()
    return {f"{quantity}_motor.{m}": float(a) for m, a in zip(t.motors, row, strict=True) if abs(a) > 1e-12 * size}


def measured_positions(tree: MachineParts, log: Experiment) -> tuple[str, ...]:
    """The coordinates whose position, or that of one of whose motors, is a channel of the log."""
    return tuple(
        c for c in tree.coordinates if f"q.{c}" in log or any(name in log for name in motor_channels(tree, c, "q"))
    )


def unit_faults(channel: Channel, wanted: Sequence[str]) -> list[Fault]:
    """A fault where the unit of a channel is none of those wanted; none where any will do."""
    if not wanted or any(_powers(channel.unit) == _powers(unit) for unit in wanted):
        return []
    what = "its unit is not that of what it should measure."
    hint = "Name the column's own unit where the log is loaded, so that it is converted to SI."
    return [Fault(what, f"channel '{channel.name}'", " or ".join(wanted), f"'{channel.unit}'", hint)]


def _powers(unit: str) -> Mapping[str, float] | str:
    """Powers of SI symbols, N and J written out, so that kg*m^2/s^2 is N*m; the text itself where it is something else."""
    plain = unit.replace(" ", "")
    if not re.fullmatch(rf"(?:1|{_FACTOR})(?:[*/]{_FACTOR})*", plain):
        return plain
    out: dict[str, float] = {}
    for sign, symbol, power in re.findall(r"([*/]?)([A-Za-z]+)(?:\^(-?[\d.]+))?", plain):
        exponent = (-1.0 if sign == "/" else 1.0) * float(power or 1)
        for base, e in _DERIVED.get(symbol, {symbol: 1.0}).items():
            out[base] = out.get(base, 0.0) + e * exponent
    return {base: e for base, e in out.items() if e != 0.0}


def with_sensor_channels(tree: MachineParts, log: Experiment) -> Experiment:
    """The same log with what the sensors and drives of the machine recorded under the names that a motion is made from."""
    found: dict[str, Channel] = {}
    for sensor in sorted(tree.sensors, key=lambda s: s.variance):
        names = sensor.channels(3)
        if all(name in log for name in names):
            for channel in _readings(tree, sensor, names, log):
                found.setdefault(channel.name, channel)
    for load in tree.loads:
        if isinstance(load, Drive) and load.name in log:
            given = log[load.name]
            name = f"force.{load.coordinate}"
            before = found.get(name)
            values = given.values if before is None else before.values + given.values  # several drives act together
            found[name] = Channel(name, given.t, values, given.unit)
    return log.replacing(*(channel for name, channel in found.items() if name not in log))


def _readings(tree: MachineParts, sensor: Sensor, names: Sequence[str], log: Experiment) -> Iterator[Channel]:
    """What a sensor measures of the motion itself in its channels; nothing where it measures something else."""
    t = log[names[0]].t - sensor.delay
    if sensor.kind in ("coordinate", "rate"):
        values = log[names[0]].values - sensor.bias
        symbol = "q" if sensor.kind == "coordinate" else "qd"
        yield Channel(f"{symbol}.{sensor.on}", t, np.unwrap(values) if sensor.turns else values, log[names[0]].unit)
        return
    axes = _axes_on_base(tree, sensor)
    if axes is None or sensor.components(3) != ("x", "y", "z") or any(len(log[n]) != len(t) for n in names):
        return
    values = (np.column_stack([log[n].values for n in names]) - sensor.bias) @ axes
    for k, axis in enumerate("xyz"):
        yield Channel(f"base.{OF_BASE[sensor.kind]}.{axis}", t, values[:, k], log[names[k]].unit)


def _axes_on_base(tree: MachineParts, sensor: Sensor) -> Array | None:
    """The sensor's axes as rows, in the frame of a free base whose own motion it measures; None where it does not."""
    if tree.base != "free" or sensor.kind not in OF_BASE:
        return None
    place = sensor.on if isinstance(sensor.on, Marker) else Marker(sensor.on, (0.0, 0.0, 0.0))
    away = sensor.kind != "gyroscope" and any(place.at)
    if place.body != tree.root or away or not sensor.has_own_axes:
        return None
    return np.array(frame(place)) if place.axis else np.eye(3)


@dataclass(frozen=True)
class _Way:
    """One way of naming: coordinate → the channel it would be."""

    text: str
    channels: Mapping[str, str]


def with_usual_names(tree: MachineParts, log: Experiment) -> Experiment:
    """The log with channels renamed to ``q.c``, ``qd.c`` and ``force.c`` where they have usual names; as it is where nothing is missing."""
    renamed: dict[str, str] = {}
    faults = Faults()
    for symbol in WORDS:
        if any(name in log for c in tree.coordinates for name in _own(tree, c, symbol)):
            continue
        ways = list(_ways(tree, log, symbol))
        distinct = {tuple(w.channels.items()): w for w in ways}
        if len(distinct) > 1:
            shown = "; ".join(", ".join(w.channels.values()) for w in distinct.values())
            first = next(iter(tree.coordinates))
            what = f"several channels may be the {WHAT[symbol]}."
            expected = f"one channel '{symbol}.{first}' for the coordinate '{first}', and so on"
            hint = f"Name the right ones where the log is loaded: columns={{'{symbol}.{first}': …}}."
            faults.add(what, where=log.name, expected=expected, found=shown, hint=hint)
        elif distinct:
            (way,) = distinct.values()
            renamed |= {channel: f"{symbol}.{c}" for c, channel in way.channels.items()}
    faults.raise_if_any(DataError)
    if not renamed:
        return log
    channels = {renamed.get(n, n): replace(x, name=renamed.get(n, n)) for n, x in log.channels.items()}
    return Experiment(channels, log.name, log.notes)


def _own(tree: MachineParts, c: str, symbol: str) -> Sequence[str]:
    return (f"{symbol}.{c}", *(motor_channels(tree, c, symbol) if symbol != "qd" else ()))


def _ways(tree: MachineParts, log: Experiment, symbol: str) -> Iterator[_Way]:
    """Every way of naming under which each coordinate, or of forces each that can have one, has a channel of the right unit."""
    kinds = dict(zip(tree.coordinates, tree.coordinate_kinds, strict=True))
    lower = {name.lower(): name for name in log.names}
    if len(lower) < len(log.names):  # names that differ by capitals only are left alone
        return
    for pattern in _patterns(symbol):
        found: dict[str, str] = {}
        for k, c in enumerate(tree.coordinates, 1):
            name = lower.get(pattern.format(c=c, i=k).lower())
            if name is not None and _fits(log.channels[name], symbol, kinds[c] == "turning"):
                found[c] = name
        needed = [c for c, driven in zip(tree.coordinates, tree.actuated, strict=True) if driven or symbol != "force"]
        if found and set(needed) <= set(found) and len(set(found.values())) == len(found):
            yield _Way(pattern, found)


def _patterns(symbol: str) -> Iterator[str]:
    for word in WORDS[symbol]:
        for join in ("", "_", ".", " "):
            yield word + join + "{i}"
            yield word + join + "{c}"
            if join:
                yield "{c}" + join + word
    if symbol == "q":
        yield "{c}"


def _fits(channel: Channel, symbol: str, turning: bool) -> bool:
    unit = {"q": ("rad", "m"), "qd": ("rad/s", "m/s"), "force": ("N*m", "N")}[symbol][0 if turning else 1]
    return not unit_faults(channel, (unit,))
