"""What acts on a machine and what measures it in a model file, and where: places, elements, loads, sensors, transmission, assembly,
and the control laws of its own drives, which are written here too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from veridyn.errors import At, DataError, Faults, at_line, part_at, within
from veridyn.files.machine.write_parts import (
    ASSEMBLY,
    CONTROLLER,
    ELEMENT,
    LOAD,
    LOADS,
    NUMBERS,
    SENSOR,
    SENSOR_NUMBERS,
    TABLE,
    TRANSMISSION,
    mapping_text,
    name_text,
    number_text,
)
from veridyn.files.yaml_nodes import line_of, name_in
from veridyn.files.yaml_reader import Reader
from veridyn.model.controller import (
    ANTI_WINDUPS,
    CONTROLLER_CONSTANTS,
    CONTROLLER_KINDS,
    FEEDFORWARDS,
    AntiWindup,
    Controller,
    ControllerKind,
    Feedforward,
)
from veridyn.model.elements.element import Element, LawTable, own_law_faults
from veridyn.model.elements.kinds import CONSTANT_KEYS, NAN
from veridyn.model.elements.own_law import OWN, with_numbers
from veridyn.model.load import Drive, Force, Load, Torque, Transmission
from veridyn.model.place import GROUND, Assembly, Marker, PointRef
from veridyn.model.point_parts import Damper, DirectionRef, Spring
from veridyn.model.sensor import KINDS as SENSORS
from veridyn.model.sensor import Sensor, SensorKind

MARKER = ("body", "at", "axis", "side")


@dataclass
class Places:
    """Reads places in two or three dimensions; the names of the points decide what [A, B] means."""

    read: Reader
    dimension: int = 3
    points: list[str] = field(default_factory=list)

    def number(self, at: Mapping[str, Node], where: str, key: str, default: float = float("nan")) -> float:
        return self.read.number(at[key], where, key) if key in at else default

    def text(self, at: Mapping[str, Node], where: str, key: str) -> str:
        return self.read.optional_text(at, where, key)

    def truth(self, at: Mapping[str, Node], where: str, key: str, default: bool = False) -> bool:
        return self.read.truth(at[key], where, key, default) if key in at else default

    def vector(self, node: Node, where: str, name: str) -> list[float]:
        return self.read.numbers(node, where, name, self.dimension)

    def place(self, node: Node, where: str) -> PointRef:
        """The name of a point or body, or a marker {body, at, axis, side}; without `at` it sits in the origin of the body's frame."""
        if not isinstance(node, MappingNode):
            return self.read.text(node, where, "a place") or ""
        at = self.read.mapping(node, within(where, "marker"), MARKER, ("body",))
        body = self.text(at, where, "body")
        parts = {key: self.vector(at[key], where, key) for key in MARKER[1:] if key in at}
        return Marker(body, parts.get("at", [0.0] * self.dimension), parts.get("axis", ()), parts.get("side", ()))

    def pair(self, node: Node, where: str) -> tuple[PointRef, PointRef] | None:
        """Two places; None, and a fault, where there are not two."""
        ends = [self.place(item, where) for item in self.read.sequence(node, where, "its two places")]
        if len(ends) != 2:
            expected = "[{body: NAME, at: [x, y, z]}, {body: NAME, at: [x, y, z]}], or names of points"
            self.read.fault(node, "it acts between two places.", where, expected, f"{len(ends)}")
            return None
        return ends[0], ends[1]

    def direction(self, node: Node, where: str) -> DirectionRef:
        """A vector's name, two points, a marker, or components."""
        if isinstance(node, SequenceNode):
            names = [str(item.value) for item in node.value if isinstance(item, ScalarNode)]
            if len(names) == 2 and all(name in self.points for name in names):
                return names[0], names[1]
            return self.vector(node, where, "a direction")
        return self.place(node, where)


@dataclass
class Parts:
    """Reads what acts and what measures; `lines` gives the line of each part, `odd_names` the elements that could not be read."""

    places: Places
    lines: dict[At, int] = field(default_factory=dict)
    odd_names: list[str] = field(default_factory=list)

    def elements(self, node: Node) -> list[Element | Spring | Damper]:
        made = [self._element(item, k) for k, item in enumerate(self.places.read.sequence(node, "", "elements"), 1)]
        return [e for e in made if e is not None]

    def loads(self, node: Node) -> list[Load]:
        made = []
        for name, key, item, inside in self.places.read.named(node, "loads", "load"):
            self._note(key, ("load", name), ("force", name))
            made.append(self._load(item, name, inside))
        return [load for load in made if load is not None]

    def sensors(self, node: Node) -> list[Sensor]:
        made = []
        for name, key, item, inside in self.places.read.named(node, "sensors", "sensor"):
            self._note(key, ("sensor", name))
            made.append(self._sensor(item, name, inside))
        return [sensor for sensor in made if sensor is not None]

    def _note(self, node: Node, *places: At) -> None:
        self.lines |= dict.fromkeys(places, line_of(node))

    def _element(self, node: Node, k: int) -> Element | Spring | Damper | None:
        places, read, given = self.places, self.places.read, name_in(node)
        where = f"element number {k}" if given is None else part_at("element", given)
        at = read.mapping(node, where, ELEMENT, required=("kind",))
        kind = read.optional_text(at, where, "kind")
        if at and not {"on", "between", "wheel"} & {*at}:
            expected = "on: a coordinate or a combination, between: two places, or wheel: a body with centre and axis"
            read.fault(node, "it does not say what it acts on.", where, expected)
        between = places.pair(at["between"], where) if "between" in at else None
        on = self._on(at["on"], where) if "on" in at else {}
        wheel = places.place(at["wheel"], where) if "wheel" in at else None
        if isinstance(wheel, str):
            read.fault(at["wheel"], "it needs a wheel.", where, "{body: NAME, at: [x, y, z], axis: [x, y, z]}", wheel)
            wheel = None
        numbers = {key: read.number(at[key], where, key, unknown=key == "value") for key in NUMBERS if key in at}
        name, signal, unit = (read.optional_text(at, where, key) for key in ("name", "signal", "unit"))
        acts = bool(on) or between is not None or wheel is not None
        own = self._own_law(at, kind, where) if kind and acts else None
        if own is None:
            self.odd_names += [given] if given else []
            return None
        value, typical = numbers.get("value", NAN), numbers.get("typical", NAN)
        constants = {key: numbers[key] for key in CONSTANT_KEYS if key in numbers}
        plain = not signal and not unit and "typical" not in numbers and math.isfinite(value)
        element = Element(
            kind=kind,
            on=on or {},
            value=value,
            name=name,
            signal=signal,
            typical=typical,
            unit=unit,
            between=None if between is None else self._markers(between),
            constants=constants,
            wheel=wheel,
            formula=own[0],
            table=own[1],
        )
        name = element.parameter_name
        self._note(node, ("element", name), ("force", name))
        if places.points and plain and kind in ("spring", "damper"):
            made = _of_points(element, between)
            if made is not None:
                return made
        if between is not None and any(not isinstance(end, Marker) and end in places.points for end in between):
            what = f"an element of kind {kind} does not act between points."
            read.fault(node, what, where, "a spring or damper with a value, or places {body: NAME, at: [x, y, z]}")
            self.odd_names.append(name)
            return None
        return element

    def _own_law(self, at: Mapping[str, Node], kind: str, where: str) -> tuple[str, LawTable | None] | None:
        """The formula and table of a law of one's own, with the numbers of the file's constants; None where they are faulty."""
        read, before = self.places.read, len(self.places.read.faults.found)
        constants = {k: x for k, x in read.constants.items() if k not in OWN}
        table = None
        if "table" in at:
            rows = read.mapping(at["table"], where, TABLE, required=("at", "values"))
            lists = {key: read.sequence(rows[key], where, key) for key in ("at", "values") if key in rows}
            numbers = {
                key: tuple(read.number(item, where, f"entry {k} of {key}") for k, item in enumerate(items, 1))
                for key, items in lists.items()
            }
            words = {key: read.optional_text(rows, where, key) for key in ("of", "shape", "outside") if key in rows}
            table = LawTable(numbers.get("at", ()), numbers.get("values", ()), **words)
        formula = read.optional_text(at, where, "formula")
        if len(read.faults.found) > before:
            return None
        found = Faults()
        own_law_faults(kind, formula, table, where, found)
        if not found.found:
            formula = with_numbers(formula, constants) if formula else ""
            table = None if table is None else replace(table, of=with_numbers(table.of, constants))
            own_law_faults(kind, formula, table, where, found)  # numbers may divide by zero where names did not
        for fault in found.found:
            node = at.get("table" if table is not None else "formula", at["kind"])
            read.fault(node, fault.what, where, fault.expected, fault.found, fault.hint)
        return None if found.found else (formula, table)

    def _markers(self, between: tuple[PointRef, PointRef]) -> tuple[Marker, Marker]:
        a, b = (end if isinstance(end, Marker) else Marker(end, [0.0] * self.places.dimension) for end in between)
        return a, b

    def _on(self, node: Node, where: str) -> dict[str, float] | None:
        read = self.places.read
        if isinstance(node, MappingNode):
            found = read.items(node, where)
            return {name: read.number(value, where, f"the coefficient of {name}", 1.0) for name, _, value in found}
        name = read.text(node, where, "on")
        return None if name is None else {name: 1.0}

    def _load(self, node: Node, name: str, inside: bool) -> Load | None:
        places, read, where = self.places, self.places.read, part_at("load", name)
        at = read.mapping(node, where, ("name", *LOAD) if inside else LOAD, required=("kind", "on"))
        kind = read.choice(at["kind"], where, "kind of load", LOADS) if "kind" in at else None
        if kind is None or "on" not in at:
            return None
        if "against" in at and kind != "torque":
            read.fault(at["against"], "only a torque acts against a body.", where, found=f"kind: {kind}")
        if kind == "drive":
            return Drive(name, places.text(at, where, "on"), places.number(at, where, "value", 0.0))
        zero = [0.0] * (1 if kind == "torque" and places.dimension == 2 else places.dimension)
        if kind == "force":
            value = places.vector(at["value"], where, "value") if "value" in at else zero
            return Force(name, places.place(at["on"], where), value)
        torque: float | list[float] = zero
        if "value" in at:
            plane = places.dimension == 2
            torque = places.number(at, where, "value") if plane else places.vector(at["value"], where, "value")
        return Torque(name, places.text(at, where, "on"), torque, places.text(at, where, "against") or GROUND)

    def _sensor(self, node: Node, name: str, inside: bool) -> Sensor | None:
        places, read, where = self.places, self.places.read, part_at("sensor", name)
        at = read.mapping(node, where, ("name", *SENSOR) if inside else SENSOR, required=("kind", "on", "sigma"))
        kind = read.choice(at["kind"], where, "kind of sensor", SENSORS) if "kind" in at else None
        if kind is None or "on" not in at or "sigma" not in at:
            return None
        numbers = {key: places.number(at, where, key) for key in SENSOR_NUMBERS if key in at}
        return Sensor(
            name,
            cast(SensorKind, kind),
            places.place(at["on"], where),
            places.number(at, where, "sigma"),
            to=places.place(at["to"], where) if "to" in at else None,
            axes=places.text(at, where, "axes"),
            turns=places.truth(at, where, "turns"),
            **numbers,
        )

    def transmission(self, node: Node) -> Transmission | None:
        read, where = self.places.read, "transmission"
        at = read.mapping(node, where, TRANSMISSION, required=TRANSMISSION)
        if len(at) < 3:
            return None
        motors, joints = read.texts(at["motors"], where, "motors"), read.texts(at["joints"], where, "joints")
        rows = read.matrix(at["matrix"], where, "matrix", (len(joints), len(motors)))
        if rows is None:
            return None
        try:
            return Transmission(tuple(motors), tuple(joints), np.array(rows))
        except DataError as error:
            read.faults.extend(at_line(fault, line_of(at["matrix"])) for fault in error.faults)
            return None


def read_assembly(read: Reader, node: Node) -> Assembly:
    """Where the machine is put together."""
    at = read.mapping(node, "assembly", ASSEMBLY)
    found: dict[str, dict[str, float]] = {key: {} for key in ASSEMBLY}
    for key, values in found.items():
        if key in at:
            for name, _, value in read.items(at[key], f"assembly, {key}"):
                values[name] = read.number(value, f"assembly, {key}", name, 0.0)
    return Assembly(found["hold"], found["guess"])


def _of_points(e: Element, between: tuple[PointRef, PointRef] | None) -> Spring | Damper | None:
    """A spring or damper of natural coordinates; None for what only elements can say."""
    alone = len(e.on) == 1 and next(iter(e.on.values())) == 1.0
    if (between is None and not alone) or {*e.constants} - {"rest"} or e.constants.get("rest") == 0.0:
        return None
    on = next(iter(e.on)) if between is None else between
    if e.kind == "spring":
        return Spring(e.parameter_name, on, e.value, e.constants.get("rest", 0.0))
    return None if e.constants else Damper(e.parameter_name, on, e.value)


def read_controllers(read: Reader, node: Node, lines: dict[At, int]) -> list[Controller]:
    """The controllers of a file; `lines` gets the line of each."""
    found = []
    for name, key, item, inside in read.named(node, "controllers", "controller"):
        lines["controller", name] = line_of(key)
        found.append(_controller(read, item, name, inside))
    return [c for c in found if c is not None]


def _controller(read: Reader, node: Node, name: str, inside: bool) -> Controller | None:
    where = part_at("controller", name)
    at = read.mapping(node, where, ("name", *CONTROLLER) if inside else CONTROLLER, required=("kind", "on", "rate"))
    chosen = {
        key: read.choice(at[key], where, key, allowed) if key in at else default
        for key, allowed, default in (
            ("kind", tuple(CONTROLLER_KINDS), None),
            ("feedforward", FEEDFORWARDS, "none"),
            ("anti_windup", ANTI_WINDUPS, "clamp"),
        )
    }
    numbers = {
        key: read.number(at[key], where, key) for key in (*CONTROLLER_CONSTANTS, "rate", "current_rate") if key in at
    }
    sigma: dict[str, float] = {}
    if "sigma" in at:
        for key, _, value in read.items(at["sigma"], where, "{kp: 2}"):
            sigma[key] = read.number(value, where, f"the standard deviation of {key}", fallback=1.0)
    if None in chosen.values() or "on" not in at or "rate" not in at or any(map(math.isnan, numbers.values())):
        return None  # the fault is noted
    return Controller(
        name=name,
        kind=cast(ControllerKind, chosen["kind"]),
        on=read.optional_text(at, where, "on"),
        rate=numbers.pop("rate"),
        current_rate=numbers.pop("current_rate", None),
        constants=numbers,
        feedforward=cast(Feedforward, chosen["feedforward"]),
        anti_windup=cast(AntiWindup, chosen["anti_windup"]),
        motor=read.optional_text(at, where, "motor"),
        sigma=sigma,
    )


def controller_text(c: Controller) -> dict[str, str]:
    """A controller as a model file has it."""
    out = {"name": name_text(c.name), "kind": c.kind, "on": name_text(c.on), "rate": number_text(c.rate)}
    out |= {key: number_text(x) for key, x in c.constants.items()}
    words = (("feedforward", c.feedforward, "none"), ("anti_windup", c.anti_windup, "clamp"))
    out |= {key: f'"{word}"' if word == "none" else word for key, word, usual in words if word != usual}
    out |= {"motor": name_text(c.motor)} if c.motor else {}
    out |= {} if c.current_rate is None else {"current_rate": number_text(c.current_rate)}
    return out | ({"sigma": mapping_text({k: number_text(s) for k, s in c.sigma.items()})} if c.sigma else {})
