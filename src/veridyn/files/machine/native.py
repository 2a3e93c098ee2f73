"""Model files of version 1, a table of bodies: YAML with formulas, every fault reported at once, by name and line.

Files are written in version 2 (:mod:`veridyn.files.machine.write`), and :mod:`veridyn.files.machine.load` reads both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from veridyn.errors import At, DataError, Fault, FileError, ModelError, at_line, did_you_mean, part_at, with_line
from veridyn.files.expressions import is_constant_name
from veridyn.files.machine.native_bodies import read_body
from veridyn.files.machine.native_loops import read_assembly, read_loop
from veridyn.files.machine.native_parameters import ParameterSection, priors_of, read_parameters
from veridyn.files.machine.quarter_turns import warn_of_rounded_angles
from veridyn.files.yaml_nodes import compose, line_of, name_in
from veridyn.files.yaml_reader import Reader
from veridyn.mechanics.tree.check import check_tree
from veridyn.mechanics.tree.loop import check_loops
from veridyn.mechanics.tree.virtual_base import SIX, on_six_joints
from veridyn.model.assembly import Assembly
from veridyn.model.body import Body, Loop
from veridyn.model.element_kinds import CONSTANT_KEYS, NAN
from veridyn.model.elements import OWN_KINDS, Element, Marker
from veridyn.model.graph import GRAVITY
from veridyn.model.machine import Machine
from veridyn.model.transmission import Transmission

Array = NDArray[np.float64]

TOP = (
    *("veridyn", "name", "base", "gravity", "constants", "bodies", "elements", "parameters", "transmission"),
    *("loops", "assembly", "prescribed"),
)
FORMAT = 1
SIX_PREFIX = "base_"
BASES = ("fixed", "free", "six_joints")
NUMBERS = ("value", "typical", *CONSTANT_KEYS)
ELEMENT = ("kind", "on", "between", "name", "signal", "unit", *NUMBERS)
PLACE = ("body", "at")


def parse_model(text: str, source: str = "model") -> Machine:
    """The machine that the text of a model file of version 1 describes. `source` stands in messages and names a nameless machine."""
    root = compose(text, source)
    _check_version(root, source)
    read = Reader()
    top = read.mapping(root, "", TOP, required=("veridyn", "bodies"))
    name = read.text(top["name"], "", "name") if "name" in top else Path(source).stem
    draft = _Draft(read)
    if "constants" in top:
        read_constants(read, top["constants"])
    draft.read_machine(top)
    if draft.bodies or not read.faults:
        read.faults.extend(with_line(fault, draft.lines) for fault in draft.check())
    priors = priors_of(draft.bodies, draft.inertia, draft.elements) | dict.fromkeys(draft.odd_names, 0.0)
    section = read_parameters(read, top.get("parameters"), priors)
    if read.faults or name is None:
        raise ModelError(sorted(read.faults.found, key=lambda fault: fault.line or 0), source)
    machine = draft.build(name, section, source)
    warn_of_rounded_angles(read.notes.found, source)
    return machine


def _check_version(root: MappingNode, source: str) -> None:
    """Refuse a file of another kind or version alone: its other keys would only be noise."""
    keys = {key.value: value for key, value in root.value if isinstance(key, ScalarNode)}
    if "mechanism" in keys:
        raise FileError(
            Fault(
                "this is the file of a mechanism in natural coordinates.",
                expected="the file of a tree, with name: and a list of bodies",
                found="the key 'mechanism'",
                hint="load_model reads it.",
                line=line_of(keys["mechanism"]),
            ),
            source,
        )
    if "veridyn" not in keys and "bodies" not in keys:
        hint = f"A model file begins with veridyn: {FORMAT} and lists bodies."
        raise FileError(
            Fault("this is not a model file.", found=f"the keys {', '.join(list(keys)[:8]) or '(none)'}", hint=hint),
            source,
        )
    version = keys.get("veridyn")
    if version is not None and (not isinstance(version, ScalarNode) or version.value != str(FORMAT)):
        found = f"'{version.value}'" if isinstance(version, ScalarNode) else "something else"
        fault = Fault(
            "this version of the format is unknown.",
            where="veridyn",
            expected=str(FORMAT),
            found=found,
            hint="A newer veridyn may know it.",
            line=line_of(version),
        )
        raise FileError(fault, source)


def read_constants(read: Reader, node: Node) -> None:
    """Names for numbers, which later formulas of the file may use."""
    for name, key, value in read.items(node, "constants"):
        if is_constant_name(name):
            # 1 stands for a value that cannot be read, so that what uses it is not reported as well.
            read.constants[name] = read.number(value, "constants", name, fallback=1.0)
        else:
            read.fault(
                key,
                f"a constant cannot be called '{name}'.",
                "constants",
                "letters, digits and _, and no word of formulas",
            )


@dataclass
class _Draft:
    """What has been read so far, fit to be checked whole even where parts of it could not be read."""

    read: Reader
    base: str = "fixed"
    gravity: Array = field(default_factory=lambda: np.array(GRAVITY))
    bodies: list[Body] = field(default_factory=list)
    inertia: dict[str, Array] = field(default_factory=dict)
    elements: list[Element] = field(default_factory=list)
    odd_names: list[str] = field(default_factory=list)  # of elements that could not be read
    transmission: Transmission | None = None
    loops: list[Loop] = field(default_factory=list)
    assembly: Assembly = Assembly()
    prescribed: list[str] = field(default_factory=list)
    lines: dict[At, int] = field(default_factory=dict)

    def read_machine(self, top: Mapping[str, Node]) -> None:
        self.lines |= {(key,): line_of(node) for key, node in top.items()}
        if "base" in top:
            self.base = self.read.choice(top["base"], "base", "kind of base", BASES) or "fixed"
        if "gravity" in top:
            self.gravity = np.array(self.read.numbers(top["gravity"], "gravity", "gravity", 3, fallback=0.0))
        if "bodies" in top:
            for k, node in enumerate(self.read.sequence(top["bodies"], "", "bodies"), 1):
                self._read_body(node, k)
        if "elements" in top:
            for k, node in enumerate(self.read.sequence(top["elements"], "", "elements"), 1):
                self._read_element(node, k)
        if "transmission" in top:
            self._read_transmission(top["transmission"])
        if "loops" in top:
            for k, node in enumerate(self.read.sequence(top["loops"], "", "loops"), 1):
                loop = read_loop(self.read, node, k)
                if loop is not None:
                    self.loops.append(loop)
                    self.lines["loop", loop.name] = line_of(node)
        if "assembly" in top:
            self.assembly = read_assembly(self.read, top["assembly"])
        if "prescribed" in top:
            self.prescribed = self.read.texts(top["prescribed"], "prescribed", "prescribed")
            self.lines |= {("prescribed", name): line_of(top["prescribed"]) for name in self.prescribed}

    def check(self) -> list[Fault]:
        base = "fixed" if self.base == "fixed" else "free"
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                faults = check_tree(self.bodies, self.elements, self.inertia, base, self.gravity)
        except np.linalg.LinAlgError:
            return [Fault("an inertia has numbers of sizes that cannot be computed with.", where=part_at("bodies"))]
        taken = {SIX_PREFIX + name for name in SIX} if self.base == "six_joints" else set()
        for b in self.bodies:
            if b.name in taken or b.coordinate_name in taken:
                what = "its name or coordinate is taken by one of the six joints of the base."
                faults.append(Fault(what, where=part_at("body", b.name), hint="Call it otherwise."))
        return faults + (check_loops(self.bodies, self.loops, self.assembly, base) if not faults else [])

    def build(self, name: str, section: ParameterSection, source: str) -> Machine:
        base = cast(Literal["fixed", "free"], "fixed" if self.base == "fixed" else "free")
        try:
            machine = Machine.of_bodies(
                self.bodies,
                name=name,
                base=base,
                gravity=self.gravity,
                inertia=self.inertia,
                elements=self.elements,
                transmission=self.transmission,
                loops=self.loops,
                assembly=self.assembly,
                prescribed=self.prescribed,
            )
            machine = machine.with_parameters(section.applied(machine.parameters))
            return on_six_joints(machine, SIX_PREFIX) if self.base == "six_joints" else machine
        except ModelError as error:
            raise ModelError([with_line(fault, self.lines) for fault in error.faults], source) from error

    def _read_body(self, node: Node, k: int) -> None:
        found = read_body(self.read, node, k, free=self.base != "fixed")
        if found is None:
            return
        body, inertia = found
        self.bodies.append(body)
        self.lines["body", body.name] = line_of(node)
        if inertia is not None:
            self.inertia[body.name] = inertia

    def _read_element(self, node: Node, k: int) -> None:
        read, given = self.read, name_in(node)
        where = f"element number {k}" if given is None else part_at("element", given)
        at = read.mapping(node, where, (*ELEMENT, "formula", "table"), required=("kind",))
        kind = read.optional_text(at, where, "kind")
        if kind in OWN_KINDS or {"formula", "table"} & {*at}:
            what = "laws of one's own, with a formula or a table, are part of model files of version 2."
            read.fault(
                node,
                what,
                where,
                hint="Write veridyn: 2; what stands in the file is read alike, loops as joints with cut: yes.",
            )
            self.odd_names += [given] if given else []
            return
        between = self._between(at["between"], where) if "between" in at else None
        on = self._acts_on(at["on"], where) if "on" in at else {} if between is not None else None
        if at and "on" not in at and "between" not in at:
            read.fault(
                node,
                "it does not say what it acts on.",
                where,
                "on: a coordinate or a combination, or between: two places",
            )
        numbers = {key: read.number(at[key], where, key, unknown=key == "value") for key in NUMBERS if key in at}
        texts = {key: read.optional_text(at, where, key) for key in ("name", "signal", "unit")}
        if not kind or on is None or ("between" in at and between is None):
            self.odd_names += [given] if given else []
            return
        element = Element(
            kind=kind,
            on=on,
            value=numbers.get("value", NAN),
            name=texts["name"],
            signal=texts["signal"],
            typical=numbers.get("typical", NAN),
            unit=texts["unit"],
            between=between,
            constants={key: numbers[key] for key in CONSTANT_KEYS if key in numbers},
        )
        self.elements.append(element)
        self.lines["element", element.parameter_name] = line_of(node)

    def _acts_on(self, node: Node, where: str) -> dict[str, float] | None:
        if isinstance(node, MappingNode):
            found = self.read.items(node, where)
            return {name: self.read.number(value, where, f"the coefficient of {name}", 1.0) for name, _, value in found}
        name = self.read.text(node, where, "on")
        return None if name is None else {name: 1.0}

    def _between(self, node: Node, where: str) -> tuple[Marker, Marker] | None:
        read, found = self.read, []
        for one in read.sequence(node, where, "between"):
            at = read.mapping(one, where, PLACE, required=("body",))
            body = read.optional_text(at, where, "body")
            place = read.numbers(at["at"], where, "at", 3, fallback=0.0) if "at" in at else (0.0, 0.0, 0.0)
            if body:
                found.append(Marker(body, place))
        if len(found) != 2:
            read.fault(
                node, "it acts between two places.", where, "[{body: NAME, at: [x, y, z]}, {body: NAME, at: [x, y, z]}]"
            )
            return None
        return found[0], found[1]

    def _read_transmission(self, node: Node) -> None:
        read, where = self.read, "transmission"
        at = read.mapping(node, where, ("motors", "joints", "matrix"), required=("motors", "joints", "matrix"))
        if len(at) < 3:
            return
        motors, joints = read.texts(at["motors"], where, "motors"), read.texts(at["joints"], where, "joints")
        known = list(dict.fromkeys(b.coordinate_name for b in self.bodies if b.coordinate_name))
        for name in joints:
            if name not in known:
                read.fault(
                    at["joints"], f"it drives '{name}', which is no coordinate.", where, hint=did_you_mean(name, known)
                )
        rows = read.matrix(at["matrix"], where, "matrix", (len(joints), len(motors)))
        if rows is None:
            return
        try:
            self.transmission = Transmission(tuple(motors), tuple(joints), np.array(rows))
        except DataError as error:
            read.faults.extend(at_line(fault, line_of(at["matrix"])) for fault in error.faults)
