"""Messages of robots as numbers with names: fields joined by dots, arrays by their names or numbers, units by message type.

    plan_of("sensor_msgs/msg/JointState", definitions).parts(message)  →  [(("position.elbow", "position.wrist"), values), …]

ROS messages are SI by agreement (REP 103), and those listed here say of what; others have no unit until somebody gives one. A joint's
position may be an angle or a length, so it has none either. JSON messages are walked as they come.
Reference: ROS, common_interfaces, the comments of the message definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from veridyn.errors import Fault

LONGEST = 64  # numbers in one array of a message that become channels
BASE, NAME = 1, 2  # kinds of fields, as rosbags numbers them; others are arrays
TIME = "builtin_interfaces/msg/Time"
HEADER = "std_msgs/msg/Header"
NAMES = ("name", "names", "joint_names")  # fields that name the numbers beside them
UNITS: Mapping[str, Mapping[str, str]] = {
    TIME: {"sec": "s", "nanosec": "ns"},
    "builtin_interfaces/msg/Duration": {"sec": "s", "nanosec": "ns"},
    "geometry_msgs/msg/Accel": {"linear": "m/s^2", "angular": "rad/s^2"},
    "geometry_msgs/msg/Point": {"x": "m", "y": "m", "z": "m"},
    "geometry_msgs/msg/Quaternion": {"x": "1", "y": "1", "z": "1", "w": "1"},
    "geometry_msgs/msg/Transform": {"translation": "m"},
    "geometry_msgs/msg/Twist": {"linear": "m/s", "angular": "rad/s"},
    "geometry_msgs/msg/Wrench": {"force": "N", "torque": "N*m"},
    "sensor_msgs/msg/BatteryState": {"voltage": "V", "current": "A", "temperature": "degC", "percentage": "1"},
    "sensor_msgs/msg/FluidPressure": {"fluid_pressure": "Pa", "variance": "Pa^2"},
    "sensor_msgs/msg/Imu": {
        "orientation_covariance": "rad^2",
        "angular_velocity": "rad/s",
        "angular_velocity_covariance": "rad^2/s^2",
        "linear_acceleration": "m/s^2",
        "linear_acceleration_covariance": "m^2/s^4",
    },
    "sensor_msgs/msg/MagneticField": {"magnetic_field": "T", "magnetic_field_covariance": "T^2"},
    "sensor_msgs/msg/NavSatFix": {
        "latitude": "deg",
        "longitude": "deg",
        "altitude": "m",
        "position_covariance": "m^2",
        "position_covariance_type": "1",
    },
    "sensor_msgs/msg/NavSatStatus": {"status": "1", "service": "1"},
    "sensor_msgs/msg/Range": {"field_of_view": "rad", "min_range": "m", "max_range": "m", "range": "m"},
    "sensor_msgs/msg/Temperature": {"temperature": "degC", "variance": "K^2"},
    "std_msgs/msg/Bool": {"data": "1"},
}

Part = tuple[tuple[str, ...], Sequence[float]]  # names, and as many numbers


@dataclass(frozen=True)
class _List:
    """A field that holds several numbers, its unit, and the field with their names, where there is one."""

    path: str
    unit: str
    names: str = ""


@dataclass
class DecodingPlan:
    """Which fields of one type of message are numbers. `refused` are the others."""

    scalars: list[str] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)
    lists: list[_List] = field(default_factory=list)
    refused: dict[str, Fault] = field(default_factory=dict)
    stamp: str = ""
    _keys: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)

    def parts(self, message: object) -> Iterator[Part]:
        """The numbers of one message."""
        if self.scalars:
            found: Any = attrgetter(*self.scalars)(message)
            yield tuple(self.scalars), found if len(self.scalars) > 1 else (found,)
        for one in self.lists:
            values = attrgetter(one.path)(message)
            if not len(values):
                continue
            names = tuple(attrgetter(one.names)(message)) if one.names else ()
            keys = self._named(one, names, len(values))
            if keys is not None:
                yield keys, values

    def _named(self, one: _List, names: tuple[str, ...], count: int) -> tuple[str, ...] | None:
        if count > LONGEST:
            self.refused[one.path] = too_long(count)
            return None
        if one.names and len(names) != count:
            fault = Fault(f"it has {count} numbers for {len(names)} names.", found=", ".join(names[:12]))
            self.refused[one.path] = fault
            return None
        names = names or tuple(map(str, range(count)))
        key = (one.path, names)
        if key not in self._keys:
            self._keys[key] = tuple(f"{one.path}.{n}" for n in names)
            self.units |= dict.fromkeys(self._keys[key], one.unit)
        return self._keys[key]

    def time(self, message: object) -> int:
        """The stamp of a message, ns; 0 where it has none."""
        if not self.stamp:
            return 0
        stamp = attrgetter(self.stamp)(message)
        return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def plan_of(kind: str, definitions: Mapping[str, Any]) -> DecodingPlan:
    """How a type of message is read, by the definitions of it and of what it is made of. A KeyError names a type that is not there."""
    plan = DecodingPlan()
    for name, (what, detail) in definitions[kind][1]:
        if what == NAME and detail == HEADER:
            plan.stamp = plan.stamp or f"{name}.stamp"
        elif what == NAME and detail == TIME and name == "stamp":
            plan.stamp = plan.stamp or name
    _walk(plan, kind, definitions, "", "", "")
    return plan


def _walk(plan: DecodingPlan, kind: str, definitions: Mapping[str, Any], path: str, unit: str, names: str) -> None:
    fields = definitions[kind][1]
    own = next((n for n, (what, detail) in fields if n in NAMES and _is_words(what, detail)), "")
    names = f"{path}{own}" if own else names
    for name, (what, detail) in fields:
        at, its = f"{path}{name}", UNITS.get(kind, {}).get(name, unit)
        if what == NAME:
            if detail != HEADER and at != plan.stamp:
                _walk(plan, detail, definitions, f"{at}.", its, names)
        elif what == BASE:
            if detail[0] in ("string", "wstring"):
                plan.refused[at] = Fault("it holds words.", expected="numbers")
            else:
                plan.scalars.append(at)
                plan.units[at] = its
        else:
            (inner, deeper), _ = detail
            if inner == BASE and deeper[0] not in ("string", "wstring", "byte", "char", "octet", "uint8"):
                plan.lists.append(_List(at, its, names))
            elif at != names:
                what = "a list of messages" if inner == NAME else "words" if _is_words(4, detail) else "raw bytes"
                plan.refused[at] = Fault(f"it holds {what}.", expected="numbers")


def _is_words(what: int, detail: Any) -> bool:
    return what not in (BASE, NAME) and detail[0][0] == BASE and detail[0][1][0] in ("string", "wstring")


def too_long(count: int) -> Fault:
    """Why an image is no channel."""
    return Fault(f"it holds {count} numbers in one message.", expected=f"{LONGEST} at most, each a channel")


def json_parts(message: Any, refused: dict[str, Fault], path: str = "") -> Iterator[Part]:
    """The numbers of a JSON message, by the same rules."""
    if not isinstance(message, Mapping):
        refused[path or "message"] = Fault("it is no object with named fields.", found=f"{message!r}"[:40])
        return
    names = next((tuple(message[n]) for n in NAMES if _all(message.get(n), str)), ())
    keys, values = [], []
    for name, value in message.items():
        at = f"{path}{name}"
        if not path and name in ("header", "stamp", "timestamp") and _stamp(value) is not None:
            continue
        if isinstance(value, int | float):
            keys.append(at)
            values.append(float(value))
        elif isinstance(value, Mapping):
            yield from json_parts(value, refused, f"{at}.")
        elif _all(value, int | float) and len(value) <= LONGEST:
            labels = names if len(names) == len(value) else tuple(map(str, range(len(value))))
            if value:
                yield tuple(f"{at}.{n}" for n in labels), [float(x) for x in value]
        elif value is not None and name not in NAMES:
            long = too_long(len(value)) if _all(value, int | float) else None
            refused[at] = long or Fault("it holds no numbers.", found=f"{value!r}"[:40])
    if keys:
        yield tuple(keys), values


def json_time(message: Any) -> int:
    """The stamp of a JSON message, ns: header.stamp, stamp or timestamp; 0 where it has none."""
    if not isinstance(message, Mapping):
        return 0
    return next((t for n in ("header", "stamp", "timestamp") if (t := _stamp(message.get(n))) is not None), 0)


def _stamp(value: Any) -> int | None:
    if not isinstance(value, Mapping):
        return None
    if "stamp" in value:
        return _stamp(value["stamp"])
    small = next((value[n] for n in ("nanosec", "nsec", "nsecs") if isinstance(value.get(n), int)), None)
    big = next((value[n] for n in ("sec", "secs") if isinstance(value.get(n), int)), None)
    return None if small is None or big is None else big * 10**9 + small


def _all(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, kind) for x in value)


def stacked(rows: Sequence[Sequence[float]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers of many messages, (N, k)."""
    return np.array([tuple(r) for r in rows], dtype=np.float64)
