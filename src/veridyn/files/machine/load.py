"""The machine that a model file describes: YAML, URDF, or MJCF.

A model file (YAML) has bodies with frames, joints between them, and everything that acts and measures; ``docs/model-file.md`` describes
the format. A machine may also be described by points and bars (the section ``points``), or as a car of a few numbers (the section
``car``), and a joint may stand within the body that it carries (``antecedent``). Every fault is reported at once, by name and line.
The readers of other formats are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import At, Fault, Faults, FileError, ModelError, did_you_mean, part_at, with_line
from veridyn.files.access import resolved
from veridyn.files.expressions import warn_of_rounded_angles
from veridyn.files.machine.bodies import ReadBody, expand, read_body, read_joint
from veridyn.files.machine.formulations import PointSections
from veridyn.files.machine.parameters import (
    ParameterSection,
    constants_in,
    priors_of,
    read_constants,
    read_parameters,
)
from veridyn.files.machine.parts import Parts, Places, read_assembly, read_controllers
from veridyn.files.machine.write_parts import BASES, FORMAT, POINT_TOP, SIX_PREFIX, TOP
from veridyn.files.yaml_nodes import compose, line_of, text_of
from veridyn.files.yaml_reader import Reader
from veridyn.mechanics.tree.check import check_elements, check_tree
from veridyn.mechanics.tree.elsewhere import SIX, on_six_joints
from veridyn.model.check import check_graph
from veridyn.model.controller import Controller, check_controllers
from veridyn.model.elements.element import Element
from veridyn.model.flexible import Flexible, check_flexible
from veridyn.model.graph import FORMULATIONS, GRAVITY, Body, Formulation, MachineGraph, joints_of_bodies
from veridyn.model.link import Joint, Link
from veridyn.model.load import Load, Transmission, check_loads
from veridyn.model.machine import Machine
from veridyn.model.place import Assembly
from veridyn.model.point_parts import Damper, Spring, ten_of
from veridyn.model.sensor import Sensor, check_sensors

MJCF_ENDINGS = (".xml", ".mjcf")


@checked
def load_model(path: str | Path, *, base: Literal["auto", "fixed", "free"] = "auto", strict: bool = False) -> Machine:
    """The machine that a model file describes.

    Parameters
    ----------
    path : str or path
        A model file (YAML), whatever the formulation; or .urdf; or .xml and .mjcf, a model of MuJoCo
        (:func:`~veridyn.files.machine.mjcf.load_mjcf`); or "veridyn:NAME", a file that comes with veridyn.
    base : {"auto", "fixed", "free"}
        Of a URDF or MJCF: whether its root stands on the ground or moves freely. "auto" is free where the file says so, by a floating
        joint alone on a root without inertia or by a free joint, else fixed. A model file (YAML) has a key for it, and takes "auto" only.
    strict : bool
        Of a URDF or MJCF: refuse inertias that no physical body has. Otherwise they are unknown, to be identified, and a warning gives
        their count.
        A model file (YAML) with such an inertia is always refused.

    Returns
    -------
    Machine

    Raises
    ------
    FileError, ModelError
        With every fault of the file, by name and line.

    Examples
    --------
    >>> import veridyn as vd
    >>> linkage = vd.load_model("veridyn:linkage.yaml")  # a file that comes with veridyn
    >>> linkage.coordinates
    ('q1', 'q2', 'q3')
    """
    file = resolved(Path(path))
    if file.suffix.lower() == ".urdf":
        from veridyn.files.machine.urdf import load_urdf

        return load_urdf(file, base, impossible="refuse" if strict else "unknown")
    if file.suffix.lower() in MJCF_ENDINGS:
        from veridyn.files.machine.mjcf import load_mjcf

        return load_mjcf(file, base, strict=strict)
    if base != "auto":
        hint = f"Write base: {base} in the file."
        what = "a model file says itself what its base is."
        raise ModelError(what, where="base", expected="'auto'", found=f"'{base}'", hint=hint, source=file.name)
    return parse_machine(text_of(file), source=file.name)


def parse_machine(text: str, source: str = "model") -> Machine:
    """The machine that the text of a model file describes. `source` stands in messages and names a nameless machine."""
    root = compose(text, source)
    keys = {key.value: value for key, value in root.value if isinstance(key, ScalarNode)}
    _check_version(keys, source)
    word = keys.get("formulation")
    if "car" in keys or (isinstance(word, ScalarNode) and word.value == "single_track"):
        from veridyn.files.machine.formulations import parse_car

        return parse_car(root, source)
    return parse_root(root, source)


def _check_version(keys: Mapping[str, Node], source: str) -> None:
    """Refuse a file of another kind or version; where none is given, the reader reports the missing key."""
    if "veridyn" not in keys and "bodies" not in keys:
        found = f"the keys {', '.join(list(keys)[:8]) or '(none)'}"
        hint = f"A model file begins with veridyn: {FORMAT} and lists bodies."
        raise FileError("this is not a model file.", found=found, hint=hint, source=source)
    version = keys.get("veridyn")
    if version is None:
        return
    word = version.value if isinstance(version, ScalarNode) else ""
    if word == str(FORMAT):
        return
    if word == "1":
        what = "model files of version 1 are no longer read."
        hint = (
            f"Write veridyn: {FORMAT} and the keys of version {FORMAT}, which docs/model-file.md lists: loops are joints with cut: yes; "
            "mechanism is name, angles and distances are coordinates, springs and dampers elements, drives, forces and torques loads."
        )
    else:
        what, hint = "this version of the format is unknown.", "A newer veridyn may know it."
    found = f"'{word}'" if word else "something else"
    raise FileError(Fault(what, "veridyn", str(FORMAT), found, hint, line_of(version)), source)


def parse_root(root: MappingNode, source: str) -> Machine:
    """The machine that the top mapping of a model file of version 2 describes."""
    read = Reader()
    top = read.mapping(root, "", TOP, required=("veridyn", "bodies"))
    draft = _Draft(read, top, read.optional_text(top, "", "name") or Path(source).stem)
    draft.read_all()
    laws = constants_in([e for e in draft.elements if isinstance(e, Element)])
    section = read_parameters(read, top.get("parameters"), draft.priors(), laws)
    draft.check()
    if read.faults:
        found = dict.fromkeys(sorted(read.faults.found, key=lambda fault: fault.line or 0))
        raise ModelError(found, source)
    try:
        machine = _with_section(draft.build(), section)
    except ModelError as error:
        raise ModelError([draft.placed(fault) for fault in error.faults], source) from error
    warn_of_rounded_angles(read.notes.found, source)
    return machine


def _with_section(machine: Machine, section: ParameterSection) -> Machine:
    if section.changes:
        machine = machine.with_parameters(section.applied(machine.parameters))
    return machine if section.uncertainty is None else machine.with_uncertainty(section.uncertainty)


@dataclass
class _Draft:
    """What has been read so far, fit to be checked whole even where parts of it could not be read."""

    read: Reader
    top: Mapping[str, Node]
    name: str
    formulation: Formulation = "tree"
    dimension: int = 3
    base: str = "fixed"
    gravity: Array = field(default_factory=lambda: np.array(GRAVITY))
    bodies: list[ReadBody] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    described: dict[str, Any] | None = None
    elements: list[Element | Spring | Damper] = field(default_factory=list)
    flexible: dict[str, Flexible] = field(default_factory=dict)
    odd_names: list[str] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    sensors: list[Sensor] = field(default_factory=list)
    controllers: list[Controller] = field(default_factory=list)
    transmission: Transmission | None = None
    assembly: Assembly | None = None
    prescribed: list[str] = field(default_factory=list)
    lines: dict[At, int] = field(default_factory=dict)

    def read_all(self) -> None:
        read, top = self.read, self.top
        self.lines |= {(key,): line_of(node) for key, node in top.items()}
        if "constants" in top:
            read_constants(read, top["constants"])
        self._read_head()
        places = self._read_points() if "points" in top else self._read_graph()
        parts = Parts(places)
        own = parts.elements(top["elements"]) if "elements" in top else []
        check_flexible(self.all_joints(), [e for e in own if isinstance(e, Element)], self.flexible, read.faults)
        self.elements = [*self.elements, *own]
        self.loads = parts.loads(top["loads"]) if "loads" in top else []
        self.sensors = parts.sensors(top["sensors"]) if "sensors" in top else []
        self.transmission = parts.transmission(top["transmission"]) if "transmission" in top else None
        self.odd_names, self.lines = parts.odd_names, self.lines | parts.lines
        if "controllers" in top:
            self.controllers = read_controllers(read, top["controllers"], self.lines)
        if "assembly" in top:
            self.assembly = read_assembly(read, top["assembly"])
        if "prescribed" in top:
            self.prescribed = read.texts(top["prescribed"], "prescribed", "prescribed")
            self.lines |= {("prescribed", name): line_of(top["prescribed"]) for name in self.prescribed}

    def _read_head(self) -> None:
        read, top = self.read, self.top
        self.formulation = "natural" if "points" in top else "tree"
        if "formulation" in top:
            chosen = read.choice(top["formulation"], "formulation", "formulation", FORMULATIONS)
            self.formulation = cast(Formulation, chosen or self.formulation)
        if "dimension" in top:
            self.dimension = 2 if read.choice(top["dimension"], "dimension", "dimension", ("2", "3")) == "2" else 3
        if "base" in top:
            self.base = read.choice(top["base"], "base", "kind of base", BASES) or "fixed"
        for key in POINT_TOP:
            if key in top and "points" not in top:
                hint = "Describe the machine by points, or leave this section out."
                read.fault(top[key], f"'{key}' belongs to a description by points.", key, hint=hint)

    def _read_gravity(self) -> None:
        self.gravity = np.array((0.0, -9.81, 0.0) if self.dimension == 2 else GRAVITY)
        if "gravity" in self.top:
            node = self.top["gravity"]
            short = self.dimension == 2 and isinstance(node, SequenceNode) and len(node.value) == 2
            given = self.read.numbers(node, "gravity", "gravity", 2 if short else 3, fallback=0.0)
            self.gravity = np.array([*given, 0.0] if short else given)

    def _read_points(self) -> Places:
        """The description by points and bars."""
        sections = PointSections(self.read, self.top)
        self.described = sections.described()
        if "dimension" in self.top and self.dimension != sections.dimension:
            what = "the points have another dimension."
            self.read.fault(self.top["dimension"], what, "dimension", f"{sections.dimension}", f"{self.dimension}")
        self.dimension = sections.dimension
        self.lines |= sections.lines
        if "base" in self.top:
            self.read.fault(self.top["base"], "a machine described by points has no key 'base'.", "base")
        self._read_gravity()
        return sections

    def _read_graph(self) -> Places:
        read, top = self.read, self.top
        self._read_gravity()
        first, joints = True, list[tuple[Joint, Flexible | None]]()
        if "bodies" in top:
            for name, key, node, inside in read.named(top["bodies"], "bodies", "body"):
                where = part_at("body", name)
                self.lines["body", name] = line_of(key)
                floats, alone = first and self.base != "fixed", "joints" not in top
                found = read_body(read, node, name, where, inside=inside, floats=floats, needs_joint=alone)
                self.bodies.append(found)
                first = False
        if "joints" in top:
            for name, key, node, inside in read.named(top["joints"], "joints", "joint"):
                where = part_at("joint", name)
                self.lines |= {("joint", name): line_of(key), ("loop", name): line_of(key)}
                joint, flexible = read_joint(read, node, name, where, inside)
                joints += [] if joint is None else [(joint, flexible)]
        self._expand_flexible(joints)
        return Places(read, self.dimension)

    def _expand_flexible(self, joints: list[tuple[Joint, Flexible | None]]) -> None:
        """Take the joints, and put the motor sides of flexible ones behind all others."""
        found = {b.carried.coordinate_name: b.flexible for b in self.bodies if b.carried is not None}
        found |= {j.coordinate_names[0]: flexible for j, flexible in joints if flexible is not None}
        self.flexible = {c: own for c, own in found.items() if own is not None}
        made = expand([(b.link, b.carried, b.flexible) for b in self.bodies], joints, self.lines)
        self.bodies = [ReadBody(link, carried) for link, carried in zip(made.links, made.carried, strict=True)]
        self.joints = made.joints
        self.elements = [*made.elements]
        self.lines |= made.lines

    @property
    def links(self) -> list[Link]:
        return [b.link for b in self.bodies]

    def all_joints(self) -> list[Joint]:
        """Joints within bodies first, in the order of the bodies, then those between frames."""
        carried = [b.carried for b in self.bodies if b.carried is not None]
        base = "fixed" if self.base == "fixed" else "free"
        return [*joints_of_bodies(carried, base, [j.name for j in self.joints]), *self.joints]

    def priors(self) -> dict[str, float]:
        """Names and values of the parameters without the section ``parameters``."""
        if self.described is not None:
            tens = {b.name: ten_of(b, self.dimension) for b in self._sound_bodies()}
            bodies = [Body(name, real=bool(np.any(ten))) for name, ten in tens.items()]
        else:
            tens = {link.name: link.ten for link in self.links}
            bodies = [Body(link.name, real=link.real, label=link.label) for link in self.links]
        elements = [e for e in self.elements if isinstance(e, Element)]
        out = priors_of(bodies, tens, elements) | dict.fromkeys(self.odd_names, 0.0)
        for e in self.elements:
            if not isinstance(e, Element):
                out[e.name] = e.stiffness if isinstance(e, Spring) else e.coefficient
        return out

    def _sound_bodies(self) -> list[Any]:
        """Bodies whose numbers can be computed with."""
        assert self.described is not None
        inertias = [(b, np.asarray(b.inertia)) for b in self.described["bodies"]]
        return [b for b, J in inertias if np.isfinite(J).all() and (self.dimension == 3 or J.shape == ())]

    def check(self) -> None:
        """Add the faults of the description to those of reading, with their lines."""
        if self.described is not None or (self.read.faults and not self.bodies):
            return  # points are checked whole when the machine is built
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found = self._faults()
        except np.linalg.LinAlgError:
            found = [Fault("an inertia has numbers of sizes that cannot be computed with.", where=part_at("bodies"))]
        self.read.faults.extend(self.placed(fault) for fault in found)

    def _faults(self) -> list[Fault]:
        elements = [e for e in self.elements if isinstance(e, Element)]
        base = "fixed" if self.base == "fixed" else "free"
        carried = [b.carried for b in self.bodies if b.carried is not None]
        names = [link.name for link in self.links]
        if "joints" not in self.top and self.dimension == 3:
            inertia = {link.name: link.ten for link in self.links if link.inertia is not None}
            found = check_tree(carried, elements, inertia, base, self.gravity)
            kinds: dict[str, str] = {b.coordinate_name: b.joint for b in carried if b.coordinate_name}
            driven = [b.coordinate_name for b in carried if b.coordinate_name and b.actuated]
        else:
            joints = self.all_joints()
            graph = MachineGraph(
                name=self.name,
                links=tuple(self.links),
                joints=tuple(joints),
                prescribed=tuple(self.prescribed),
                gravity=self.gravity,
                dimension=self.dimension,
                formulation=self.formulation,
            )
            found = check_graph(graph)
            kinds = {c: s.motion for j in joints for c, s in zip(j.coordinate_names, j.course.steps, strict=False)}
            driven = [c for j in joints for c, on in zip(j.coordinate_names, j.motors, strict=False) if on]
            stand_ins = [Body(name, joint="fixed") for name in names]
            stand_ins += [Body(c, joint=cast(Any, kind), real=False, coordinate=c) for c, kind in kinds.items()]
            check_elements(stand_ins, [e for e in elements if e.between is None], base, faults := Faults())
            found += faults.found
        taken = {SIX_PREFIX + name for name in SIX} if self.base == "six_joints" else set()
        for b in carried:
            if b.name in taken or b.coordinate_name in taken:
                what = "its name or coordinate is taken by one of the six joints of the base."
                found.append(Fault(what, where=part_at("body", b.name), hint="Choose another name."))
        for name in self.transmission.joints if self.transmission is not None else ():
            if name not in kinds:
                what = f"it drives '{name}', which is no coordinate."
                found.append(Fault(what, where=part_at("transmission"), hint=did_you_mean(name, [*kinds])))
        found += check_controllers(self.controllers, kinds, driven, elements, self.prescribed)
        if self.dimension == 3:
            found += [*check_sensors(self.sensors, names, kinds), *check_loads(self.loads, names, [*kinds])]
        return found

    def placed(self, fault: Fault) -> Fault:
        """The same fault with its line."""
        return with_line(fault, self.lines)

    def build(self) -> Machine:
        if self.described is not None:
            return self._build_described(self.described)
        machine = Machine.build(
            self.links,
            self.all_joints(),
            name=self.name,
            elements=[e for e in self.elements if isinstance(e, Element)],  # only points have others
            loads=self.loads,
            sensors=self.sensors,
            controllers=self.controllers,
            prescribed=self.prescribed,
            transmission=self.transmission,
            assembly=self.assembly,
            gravity=self.gravity,
            dimension=self.dimension,
            formulation=self.formulation,
        )
        if self.base != "six_joints":
            return machine
        moved = on_six_joints(machine, SIX_PREFIX)
        own = {link.name: link.capsules for link in machine.links}
        return replace(moved, links=tuple(replace(k, capsules=own.get(k.name, ())) for k in moved.links))

    def _build_described(self, described: dict[str, Any]) -> Machine:
        from veridyn.mechanics.natural.description.to_machine import (
            machine_of_points,  # here: few machines are described by points
        )

        return machine_of_points(
            name=self.name,
            elements=self.elements,
            loads=self.loads,
            sensors=self.sensors,
            prescribed=self.prescribed,
            gravity=self.gravity[: self.dimension].tolist(),
            transmission=self.transmission,
            assembly=self.assembly,
            formulation=self.formulation,
            **described,
        ).with_controllers(self.controllers)
