"""What must hold of a machine's graph, and of a motion that is said to be its own; every fault is found before any is raised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, Faults, did_you_mean, part_at, within
from veridyn.model.elements.element import Element
from veridyn.model.elements.own_law import LawInputs
from veridyn.model.graph import FORMULATIONS, MachineGraph
from veridyn.model.link import CUT_CHOICES, KINDS, End, Joint, check_capsule
from veridyn.model.load import Load, Transmission
from veridyn.model.motion import Motion
from veridyn.model.parameter_set import ElementState
from veridyn.model.parameters import ParameterSet
from veridyn.model.place import GROUND, Attachment
from veridyn.model.sensor import Sensor
from veridyn.spatial.algebra import ARRAYS
from veridyn.spatial.inertia import broken_law
from veridyn.spatial.rotations import is_rotation

OUT_OF_PLANE_ERROR = 1e-9  # by how much a placement may leave the plane of a planar machine


def check_graph(graph: MachineGraph) -> list[Fault]:
    """Every fault of a description. `where` begins with "body 'name'", "joint 'name'" and so on, so that a loader can add the line."""
    faults = Faults()
    if not graph.links:
        faults.add("there is no body.", where=part_at("bodies"), hint="A machine needs at least one.")
    _names(graph, faults)
    _links(graph, faults)
    for joint in graph.joints:
        _joint(graph, joint, faults)
    unknown = formulation_fault(graph.formulation)
    if unknown is not None:
        faults.found.append(unknown)
    if graph.dimension not in (2, 3):
        faults.add("a machine has two or three dimensions.", where=part_at("dimension"), found=f"{graph.dimension}")
    if graph.gravity.shape != (3,) or not np.isfinite(graph.gravity).all():
        faults.add("gravity is not a vector.", where=part_at("gravity"), expected="three finite numbers, m/s^2")
    if faults:
        return faults.found
    _connected(graph, faults)
    if graph.dimension == 2:
        _planar(graph, faults)
    _prescribed(graph, faults)
    return faults.found


def formulation_fault(formulation: object) -> Fault | None:
    """What is wrong with the name of a formulation: None for a known one."""
    if isinstance(formulation, str) and formulation in FORMULATIONS:
        return None
    return Fault(
        f"there is no formulation {formulation!r}.",
        where=part_at("formulation"),
        hint=did_you_mean(str(formulation), FORMULATIONS),
    )


def _names(graph: MachineGraph, faults: Faults) -> None:
    groups = {
        "body": [link.name for link in graph.links],
        "joint": [joint.name for joint in graph.joints],
        "load": [load.name for load in graph.loads],
        "sensor": [sensor.name for sensor in graph.sensors],
    }
    for kind, names in groups.items():
        for name, times in Counter(names).items():
            if times > 1:
                hint = f"Give each {kind} a name of its own."
                faults.add(f"the name is used {times} times.", where=f"{kind} '{name}'", hint=hint)
            if name == "" or (kind == "body" and name == GROUND):
                faults.add("this name is taken by the ground.", where=f"{kind} '{name}'", hint="Choose another one.")


def _links(graph: MachineGraph, faults: Faults) -> None:
    for link in graph.links:
        where = part_at("body", link.name)
        for name, placement in link.frames.items():
            _placement(placement, within(where, f"frame '{name}'"), faults)
        for k, capsule in enumerate(link.capsules, 1):
            check_capsule(capsule, within(where, f"capsule {k}"), faults)
        x = link.ten
        if x.shape != (10,):
            expected = "XX XY XZ YY YZ ZZ MX MY MZ M"
            faults.add("its inertia is not ten numbers.", where=where, expected=expected, found=f"{x.shape}")
        elif not link.real and np.any(x != 0.0):
            faults.add("a body that is not real has no inertia, but some is given.", where=where, hint="Make it real.")
        elif np.isinf(x).any():
            faults.add("its inertia holds infinite numbers.", where=where)
        elif np.isfinite(x).all() and (law := broken_law(x)):
            faults.add(f"no physical body has this inertia: {law}.", where=where)


def _placement(placement: object, where: str, faults: Faults) -> None:
    R, p = np.asarray(getattr(placement, "rotation", None)), np.asarray(getattr(placement, "position", None))
    good = R.shape == (3, 3) and p.shape == (3,) and bool(np.isfinite(R).all() and np.isfinite(p).all())
    if not good or not is_rotation(R):
        faults.add("its placement is not a rotation and a position.", where=where)


def _end(graph: MachineGraph, end: End, where: str, faults: Faults) -> str | None:
    """The body of an end, or None where it does not exist."""
    if isinstance(end, Attachment):
        if end.body not in graph.by_name and end.body != GROUND:
            hint = did_you_mean(end.body, [*graph.by_name, GROUND])
            faults.add(f"there is no body '{end.body}'.", where=where, hint=hint)
            return None
        _placement(end.placement, within(where, f"frame on '{end.body}'"), faults)
        return end.body
    if end in graph.by_name or end == GROUND:
        return end
    body, dot, frame = end.rpartition(".")
    if dot and body in graph.by_name:
        if frame not in graph.by_name[body].frames:
            hint = did_you_mean(frame, [*graph.by_name[body].frames])
            faults.add(f"the body '{body}' has no frame '{frame}'.", where=where, hint=hint)
            return None
        return body
    hint = did_you_mean(body or end, [*graph.by_name, GROUND])
    faults.add(f"there is no body '{body or end}'.", where=where, hint=hint)
    return None


def _joint(graph: MachineGraph, joint: Joint, faults: Faults) -> None:
    where = part_at("joint", joint.name)
    if joint.kind not in KINDS:
        faults.add(f"'{joint.kind}' is no kind of joint.", where=where, hint=did_you_mean(joint.kind, KINDS))
        return
    if joint.cut not in CUT_CHOICES:
        faults.add(f"cut cannot be '{joint.cut}'.", where=where, expected=", ".join(CUT_CHOICES))
    ends = [_end(graph, end, where, faults) for end in (joint.a, joint.b)]
    if ends[0] is not None and ends[0] == ends[1]:
        faults.add(f"both ends are on '{ends[0]}'.", where=where)
    steps = joint.course.steps
    if joint.coordinates and len(joint.coordinates) != len(steps):
        faults.add(
            f"a {joint.kind} joint has {len(steps)} coordinates.",
            where=where,
            expected=", ".join(step.word or "one name" for step in steps) or "none",
            found=", ".join(joint.coordinates),
        )
    elif "" in joint.coordinates or len(set(joint.coordinates)) < len(joint.coordinates):
        faults.add("each coordinate needs a name of its own.", where=where, found=", ".join(joint.coordinates))
    if isinstance(joint.actuated, tuple):
        for name in joint.actuated:
            if name not in joint.coordinate_names:
                hint = did_you_mean(name, joint.coordinate_names)
                faults.add(f"it has no coordinate '{name}' to drive.", where=where, hint=hint)
    if joint.ratio != 1.0 and len(steps) != 1:
        faults.add("only a joint of one coordinate has a ratio.", where=where, found=f"{joint.ratio:g}")
    elif not np.isfinite(joint.ratio) or joint.ratio == 0.0:
        faults.add("its ratio must be a number other than zero.", where=where, found=f"{joint.ratio}")
    if joint.kind == "distance" and not 0.0 < joint.length < np.inf:
        faults.add("a distance needs a length above zero.", where=where, found=f"{joint.length:g}")
    if joint.kind != "distance" and joint.length != 0.0:
        faults.add("only a distance has a length.", where=where, found=f"kind: {joint.kind}")
    if joint.kind == "distance" and joint.cut == "no":
        faults.add("a distance is always cut: it is one equation.", where=where, found="cut: no")


def _connected(graph: MachineGraph, faults: Faults) -> None:
    """Every body must be joined to the ground by joints that are not cut; a body that moves freely has a floating joint."""
    reached, grown = {GROUND}, True
    ways = [tuple(end.body for end in graph.ends(j)) for j in graph.joints if j.cut != "yes" and j.kind != "distance"]
    while grown:
        grown = False
        for a, b in ways:
            if (a in reached) != (b in reached):
                reached |= {a, b}
                grown = True
    for link in graph.links:
        if link.name not in reached:
            faults.add(
                "no joint that is not cut leads from the ground to it.",
                where=part_at("body", link.name),
                hint="Add a joint; one of kind floating where it moves freely.",
            )


def _planar(graph: MachineGraph, faults: Faults) -> None:
    for joint in graph.joints:
        where = part_at("joint", joint.name)
        if joint.kind in ("universal", "cylindrical", "spherical"):
            hint = "In the plane a pin is a turning joint."
            faults.add(f"a {joint.kind} joint exists in space only.", where=where, found="dimension: 2", hint=hint)
            continue
        for end in graph.ends(joint):
            normal = abs(end.placement.rotation[2, 2])
            sliding = joint.kind == "sliding"
            if joint.kind in ("distance", "floating"):
                continue
            if (sliding and normal > OUT_OF_PLANE_ERROR) or (not sliding and abs(normal - 1.0) > OUT_OF_PLANE_ERROR):
                faults.add(
                    "it does not move in the plane.",
                    where=within(where, f"frame on '{end.body}'"),
                    expected="z in the plane" if sliding else "z normal to the plane",
                )
    if abs(graph.gravity[2]) > 0.0:
        faults.add(
            "gravity leaves the plane of a planar machine.", where=part_at("gravity"), found=f"{graph.gravity[2]:g}"
        )


def check_prescribed(names: Sequence[str], coordinates: Sequence[str], actuated: Sequence[str]) -> list[Fault]:
    """Every fault of a list of prescribed coordinates: each exists, has a motor, and stands there once."""
    faults = Faults()
    for name in names:
        where = part_at("prescribed", name)
        if name not in coordinates:
            faults.add("there is no such coordinate.", where=where, hint=did_you_mean(name, coordinates))
        elif name not in actuated:
            faults.add(
                "a force is needed to move it as prescribed, and its joint is passive.",
                where=where,
                hint="Mark the joint actuated.",
            )
    if len(set(names)) < len(names):
        faults.add("a coordinate is prescribed twice.", where=part_at("prescribed"), found=", ".join(names))
    return faults.found


def _prescribed(graph: MachineGraph, faults: Faults) -> None:
    known = _listed(c for joint in graph.joints for c in joint.coordinate_names)
    known += [a.name for a in graph.description.added] if graph.description else []
    for name in graph.prescribed:
        if name not in known:
            hint = did_you_mean(name, known)
            faults.add(f"there is no coordinate '{name}' to prescribe.", where=part_at("prescribed"), hint=hint)


def _listed(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


class MachineParts(Protocol):
    """A machine, or the form of it that a formulation computes with.

    `root`: the body of a free base, or ""; `closed`: whether joints form loops.
    Everything else is that of :class:`~veridyn.model.machine.Machine`.
    """

    @property
    def name(self) -> str: ...
    @property
    def coordinates(self) -> tuple[str, ...]: ...
    @property
    def coordinate_kinds(self) -> tuple[str, ...]: ...
    @property
    def actuated(self) -> tuple[bool, ...]: ...
    @property
    def n(self) -> int: ...
    @property
    def base(self) -> Literal["fixed", "free"]: ...
    @property
    def root(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    @property
    def body_names(self) -> tuple[str, ...]: ...
    @property
    def gravity(self) -> NDArray[np.float64]: ...
    @property
    def elements(self) -> Sequence[Element]: ...
    @property
    def loads(self) -> Sequence[Load]: ...
    @property
    def sensors(self) -> Sequence[Sensor]: ...
    @property
    def transmission(self) -> Transmission | None: ...
    @property
    def states(self) -> Sequence[ElementState]: ...
    @property
    def parameters(self) -> ParameterSet: ...


def check_motion(machine: MachineParts, motion: Motion) -> None:
    """Refuse a motion that is not one of this machine: every fault at once."""
    faults = Faults()
    if motion.n != machine.n:
        faults.add(
            "the motion has another number of coordinates.",
            where=machine.name,
            expected=f"{machine.n} ({', '.join(machine.coordinates)})",
            found=f"{motion.n}",
        )
    if machine.base == "free" and motion.base is None:
        faults.add(
            "the base is free, and the motion does not say how it moves.", where=machine.name, expected="motion.base"
        )
    if machine.base == "fixed" and motion.base is not None:
        faults.add(
            "the base is fixed, but the motion moves it.",
            where=machine.name,
            hint="Build the machine with base='free'.",
        )
    for body in motion.wrenches:
        if body not in machine.body_names:
            faults.add(
                f"a wrench acts on '{body}', which is no body.",
                where=machine.name,
                hint=did_you_mean(body, machine.body_names),
            )
    needed = {name: e.parameter_name for e in machine.elements for name in e.signals}
    for signal, element in needed.items():
        if signal not in motion.signals:
            faults.add(
                f"element '{element}' needs the signal '{signal}', which the motion has not.", where=machine.name
            )
    for state in machine.states:
        if state.name not in motion.signals:
            faults.add(
                f"the force of element '{state.element}' follows a state of its own, '{state.name}', which the motion has not.",
                where=machine.name,
                hint="Log the force it exerts, give it as a force or wrench, and leave the element out (without_elements); or let "
                "element_states compute the state from the motion; or simulate, which carries it.",
            )
    wheels = [e for e in machine.elements if e.wheel is not None]
    if machine.base == "free" and motion.base is not None and wheels:
        for part in ("velocity", "position", "quaternion"):
            if getattr(motion.base, part) is None:
                faults.add(
                    f"tyre '{wheels[0].parameter_name}' needs the {part} of the base.",
                    where=machine.name,
                    expected=f"motion.base.{part}",
                    hint="Or leave the tyres out (without_elements) and give the wrenches on the wheels.",
                )
    elif machine.base == "free" and motion.base is not None and motion.base.velocity is None:
        drags = [e.parameter_name for e in machine.elements if e.kind == "drag"]
        if drags:
            faults.add(
                f"drag '{drags[0]}' needs the velocity of the base.",
                where=machine.name,
                expected="motion.base.velocity",
            )
    faults.raise_if_any(DataError)
    _check_own_laws(machine, motion, faults)
    faults.raise_if_any(DataError)


def _check_own_laws(machine: MachineParts, motion: Motion, faults: Faults) -> None:
    """Laws of one's own that have no value somewhere on the motion: a logarithm of what is negative, a division by zero."""
    number = {name: k for k, name in enumerate(machine.coordinates)}
    for e in machine.elements:
        law = e.own_law
        if law is None or e.between is not None or law.everywhere:
            continue
        on = np.array([e.on.get(c, 0.0) for c in machine.coordinates])
        x = LawInputs(
            position=lambda on=on: motion.q @ on,
            rate=lambda on=on: motion.qd @ on,
            coordinate=lambda name: motion.q[:, number[name]],
            speed=lambda name: motion.qd[:, number[name]],
            signal=lambda name: motion.signals[name],
            algebra=ARRAYS,
        )
        with np.errstate(all="ignore"):
            bad = ~np.isfinite(np.broadcast_to(law.value(x), (len(motion),)))
        if bad.any():
            k = int(np.argmax(bad))
            faults.add(
                f"'{law.text}' is not a number on this motion.",
                where=f"{machine.name}, element '{e.parameter_name}'",
                found=f"{int(bad.sum())} of {len(motion)} samples, the first at {motion.t[k]:.6g} s",
                hint="Keep roots, logarithms and divisions away from where they have no value: sqrt(abs(x)), 1/max(x, 0.01).",
            )
