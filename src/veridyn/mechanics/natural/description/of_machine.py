"""A machine in natural coordinates: points and unit vectors, as the kernels of ``mechanics/natural/`` take them.

Where the user wrote points and vectors, these are taken as they are, with the inertias of the links. Otherwise they are laid out from the
graph (:mod:`~veridyn.mechanics.natural.description.layout`), and joint coordinates that something uses are added angles and distances with
their own names (:mod:`~veridyn.mechanics.natural.description.joint_layout`). What natural coordinates cannot carry is refused by name.
Inertias that no physical body has, as a fit may give them, are kept, as on trees.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np

from veridyn.errors import CapabilityError, Faults, Limit, ModelError, did_you_mean, part_at
from veridyn.mechanics.natural.description.joint_layout import added_coordinates, layout_of
from veridyn.mechanics.natural.description.layout import PointsLayout
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.model.coordinates import spanning_of
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import KINDS
from veridyn.model.graph import MachineGraph, point_at, unique
from veridyn.model.load import Drive, Force, Load, Torque
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND, Marker, PointRef
from veridyn.model.point_parts import (
    ActsOn,
    Combination,
    Damper,
    Distance,
    RigidBody,
    Rotor,
    Spring,
    rigid_body,
    ten_of,
)
from veridyn.model.sensor import Sensor

Coordinates = Literal["needed", "all"] | Iterable[str]
ON_COORDINATE = ("coordinate", "rate")
TREE_ONLY = "Use formulation: tree."
FORM = "natural"  # its name among the forms of a machine
HOLDING = Limit(
    "not built: its steps are solved by derivatives, which a jump has not",
    "Give a friction_speed above zero, below which it is rounded off, or use formulation: tree.",
)
SIGNAL_LAWS = Limit("not built: laws over its coordinates read these and their rates only", TREE_ONLY)
OWN_STATES = Limit("not built: its steps carry no states of elements but slips of tyres", TREE_ONLY)
BODY_LAWS = Limit(
    "not built: its laws are functions of coordinates and their rates, and this is one of a whole body's motion",
    TREE_ONLY,
)
LAWS = (
    "law",
    "table",
    "cubic",
    "coulomb",
    "coulomb_forward",
    "coulomb_backward",
    "stribeck",
    "tanh_friction",
    "bump_stop",
    "dead_zone",
    "damper_forward",
    "damper_backward",
)


def mechanism_of(machine: Machine) -> Mechanism:
    """The machine in natural coordinates, made when it is first asked for and kept with the machine."""
    machine.need_joints("form as natural coordinates")
    kept = machine.forms.get(FORM)
    if not isinstance(kept, Mechanism):
        kept = machine.forms[FORM] = mechanism_with(machine)
    return kept


def mechanism_with(graph: MachineGraph, coordinates: Coordinates = "needed", oriented: Iterable[str] = ()) -> Mechanism:
    """The machine in natural coordinates, with chosen joint coordinates.

    `coordinates`: which joint coordinates become added angles and distances: "needed" for those with a name of their own, a motor,
    an element, a load, a sensor or a prescribed motion; "all"; or names. A machine whose points a user wrote has those written there.
    `oriented`: bodies that get vectors enough for directions in their frames.
    """
    faults = Faults()
    _refuse_unknown(graph, faults)
    acting = _Acting(graph, faults)
    if acting.lacking and len(acting.lacking) == len(faults.found):  # nothing else is wrong
        asked, limit = acting.lacking[0]
        raise CapabilityError("natural", asked, *limit, faults.found, graph.name)
    faults.raise_if_any(ModelError, graph.name)
    if graph.description is not None:
        return _described(graph, acting)
    names = _chosen(graph, coordinates, faults)
    layout = layout_of(graph, [c for joint in graph.joints for c in joint.coordinate_names])
    sensors = [_sensor(layout, s) for s in graph.sensors]
    loads = [_load(layout, load) for load in (*graph.loads, *acting.drives, *_motors(graph, names, acting))]
    for tyre in acting.tyres:
        assert tyre.wheel is not None  # the machine has been checked
        layout.complete(tyre.wheel.body)
    for body in oriented:
        layout.complete(body)
    springs = [replace(s, on=_acts_on(layout, s.on)) for s in acting.springs]
    dampers = [replace(d, on=_acts_on(layout, d.on)) for d in acting.dampers]
    lengths = [Distance(d.name, _on(layout, d.a), _on(layout, d.b)) for d in acting.lengths]
    added = [*added_coordinates(layout, names, faults), *lengths]
    faults.raise_if_any(ModelError, graph.name)
    return Mechanism.build(
        layout.points(),
        layout.bodies(),
        name=graph.name,
        vectors=layout.unit_vectors(),
        joints=layout.joints,
        added=added,
        springs=springs,
        dampers=dampers,
        loads=loads,
        gravity=graph.gravity[: graph.dimension].tolist(),
        sensors=sensors,
        rotors=acting.rotors,
        tyres=acting.tyres,
        laws=acting.laws,
        gains=acting.gains,
        prescribed=graph.prescribed,
        physical=graph.stated is None,
    )


def rounded(mechanism: Mechanism, friction_speed: float) -> Mechanism:
    """The mechanism for steps, with dry friction rounded off below a speed (rad/s, m/s); one that jumps cannot be stepped without."""
    if friction_speed > 0.0:
        signed = any(e.has_sign for e in mechanism.laws)
        return replace(mechanism, friction_speed=friction_speed) if signed else mechanism
    jumping = [e.parameter_name for e in mechanism.laws if e.jumps]
    if jumping:
        raise CapabilityError(
            "natural",
            "dry friction that holds",
            *HOLDING,
            where=mechanism.name,
            found=", ".join(jumping),
        )
    return mechanism


def _described(graph: MachineGraph, acting: _Acting) -> Mechanism:
    """The points and vectors as they were written; a body keeps its numbers to the bit where its link has them still."""
    description = graph.description
    assert description is not None
    bodies: list[RigidBody] = []
    for b in description.bodies:
        link = graph.by_name[b.name]
        same = np.array_equal(link.ten, ten_of(b, graph.dimension))
        points = {name: np.asarray(at) for name, at in b.points.items()}
        vectors = {name: np.asarray(along) for name, along in b.vectors.items()}
        bodies.append(b if same else rigid_body(b.name, points, vectors, link.ten, graph.dimension))
    return Mechanism.build(
        description.points,
        bodies,
        name=graph.name,
        vectors=description.vectors,
        joints=description.joints,
        added=(*description.added, *acting.lengths),
        racks=description.racks,
        springs=acting.springs,
        dampers=acting.dampers,
        loads=(*graph.loads, *acting.drives),
        gravity=graph.gravity[: graph.dimension].tolist(),
        sensors=graph.sensors,
        rotors=acting.rotors,
        tyres=acting.tyres,
        laws=acting.laws,
        gains=acting.gains,
        prescribed=graph.prescribed,
        physical=graph.stated is None,
    )


def _refuse_unknown(graph: MachineGraph, faults: Faults) -> None:
    for link in graph.links:
        if not np.isfinite(link.ten).all():
            faults.add(
                "its inertia is unknown, and natural coordinates need all ten numbers.",
                where=part_at("body", link.name),
                hint="Give its inertia, or identify it in formulation: tree.",
            )


def _chosen(graph: MachineGraph, coordinates: Coordinates, faults: Faults) -> set[str]:
    known = [c for joint in graph.joints for c in joint.coordinate_names]
    if coordinates == "all":
        return {c for carrier in spanning_of(graph).carriers.values() for c in carrier.joint.coordinate_names}
    explicit = {c for joint in graph.joints for c in joint.coordinates}
    names = set(graph.needed) | explicit
    if not isinstance(coordinates, str):
        wanted = set(coordinates)
        for name in wanted - set(known):
            faults.add(f"there is no coordinate '{name}'.", where=graph.name, hint=did_you_mean(name, known))
        names |= wanted
    return names & set(known)


class _Acting:
    """Springs, dampers, constant forces, motor inertias and laws of the elements; what has no place in natural coordinates is refused.

    `lengths`: added distances of the places between which laws act.
    """

    def __init__(self, graph: MachineGraph, faults: Faults) -> None:
        self.springs: list[Spring] = []
        self.dampers: list[Damper] = []
        self.rotors: list[Rotor] = []
        self.drives: list[Drive] = []
        self.tyres: list[Element] = []
        self.laws: list[Element] = []
        self.gains: list[Element] = []
        self.lengths: list[Distance] = []
        self.lacking: list[tuple[str, Limit]] = []  # what has no place, and why
        for e in graph.elements:
            self._element(graph, e, faults)

    def _element(self, graph: MachineGraph, e: Element, faults: Faults) -> None:
        name, where = e.parameter_name, part_at("element", e.parameter_name)
        if e.kind in ("spring", "damper") and e.between is not None and np.isfinite(e.value):
            a, b = (point_at(graph, end) for end in e.between)
            if e.kind == "spring":
                self.springs.append(Spring(name, (a, b), e.value, e.constant("rest")))
            else:
                self.dampers.append(Damper(name, (a, b), e.value))
        elif e.wheel is not None and np.isfinite(e.value) and graph.dimension == 3:
            self.tyres.append(e)
        elif e.kind == "drive_gain" and np.isfinite(e.value):
            self.gains.append(e)
        elif e.kind in LAWS or (e.kind == "offset" and (e.between is not None or len(e.on) > 1)):
            self._law(graph, e, faults)
        elif e.kind not in ("spring", "damper", "offset", "inertia", "drive_gain") or e.on_body is not None:
            why = OWN_STATES if KINDS[e.kind].states and e.wheel is None else BODY_LAWS
            what = f"natural coordinates have no element of kind {e.kind}."
            self._lack(faults, f"element of kind {e.kind}", why, what, where)
        elif not np.isfinite(e.value):
            faults.add("its value is unknown, and natural coordinates need it.", where=where, hint="Give its value.")
        elif len(e.on) != 1:
            on = Combination(tuple(e.on.items()))
            if e.kind == "spring":
                self.springs.append(Spring(name, on, e.value, e.constant("rest")))
            elif e.kind == "damper":
                self.dampers.append(Damper(name, on, e.value))
            else:
                self.rotors.append(Rotor(name, on, e.value))
        else:
            on, a = next(iter(e.on.items()))
            if e.kind == "spring":
                self.springs.append(Spring(name, on, e.value * a**2, e.constant("rest") / a))
            elif e.kind == "damper":
                self.dampers.append(Damper(name, on, e.value * a**2))
            elif e.kind == "inertia":
                self.rotors.append(Rotor(name, on, e.value * a**2))
            else:  # Γ = … + offset: what acts on the coordinate is the opposite
                self.drives.append(Drive(name, on, -e.value * a))

    def _lack(self, faults: Faults, asked: str, limit: Limit, what: str, where: str) -> None:
        """Note what has no place in natural coordinates, and why."""
        self.lacking.append((asked, limit))
        faults.add(what, where=where, hint=f"{limit.reason[0].upper()}{limit.reason[1:]}. {limit.instead}")

    def _law(self, graph: MachineGraph, e: Element, faults: Faults) -> None:
        where = part_at("element", e.parameter_name)
        if e.signals:
            what = f"it reads the measured signal '{e.signals[0]}', and natural coordinates have none."
            self._lack(faults, "laws of measured signals", SIGNAL_LAWS, what, where)
        elif not np.isfinite(e.value):
            faults.add("its value is unknown, and natural coordinates need it.", where=where, hint="Give its value.")
        elif e.between is None:
            self.laws.append(e)
        else:
            given = graph.description
            taken = {c for joint in graph.joints for c in joint.coordinate_names} | {d.name for d in self.lengths}
            taken |= {a.name for a in given.added} if given is not None else set()
            name = unique(e.parameter_name, taken, "length")
            self.lengths.append(Distance(name, *e.between))
            self.laws.append(replace(e, on={name: 1.0}, between=None, name=e.parameter_name))


def _motors(graph: MachineGraph, names: set[str], acting: _Acting) -> list[Drive]:
    """A drive for each motor that no load of the machine stands for, with the name of its coordinate."""
    driven = {load.coordinate for load in graph.loads if isinstance(load, Drive)}
    taken = {x.name for x in (*graph.loads, *acting.drives, *acting.springs, *acting.dampers, *acting.rotors)}
    return [
        Drive(unique(c, taken, "motor"), c)
        for joint in graph.joints
        for c, on in zip(joint.coordinate_names, joint.motors, strict=True)
        if on and c in names and c not in driven
    ]


def _on(layout: PointsLayout, ref: PointRef) -> PointRef:
    """A place on a body, which then has vectors enough; a body's name stands for the origin of its frame."""
    body = ref.body if isinstance(ref, Marker) else ref
    if body in layout.graph.by_name:
        layout.complete(body)
        return ref if isinstance(ref, Marker) else Marker(body, (0.0,) * layout.graph.dimension)
    return ref


def _acts_on(layout: PointsLayout, on: ActsOn) -> ActsOn:
    return on if isinstance(on, str | Combination) else (_on(layout, on[0]), _on(layout, on[1]))


def _sensor(layout: PointsLayout, sensor: Sensor) -> Sensor:
    if sensor.kind in ON_COORDINATE:
        return sensor
    if sensor.kind == "gyroscope" and not isinstance(sensor.on, Marker):
        layout.complete(sensor.on)
        return sensor
    return replace(sensor, on=_on(layout, sensor.on))


def _load(layout: PointsLayout, load: Load) -> Load:
    if isinstance(load, Force):
        return Force(load.name, _on(layout, load.at), load.value)
    if isinstance(load, Torque):
        for body in (load.body, load.against):
            if body != GROUND:
                layout.complete(body)
    return load
