"""The description of a machine by points and bars, written as a model file of version 2 has it."""

from __future__ import annotations

import math

import numpy as np

from veridyn.errors import ModelError
from veridyn.files.machine.write_parts import place_text
from veridyn.files.yaml_write import flow, mapping_text, matrix_text, name_text, names_text, number_text, numbers_text
from veridyn.model.check.differences import equal_parts
from veridyn.model.graph import PointDescription
from veridyn.model.place import Marker
from veridyn.model.point_parts import Added, Angle, DirectionRef, Elevation, MechanismJoint, RigidBody, uniform_bar


def point_lines(d: PointDescription, dimension: int) -> list[str]:
    """Points, vectors, bodies, joints, added coordinates and racks."""
    fixed = {"fixed": "true"}
    sections = {
        "points": {p.name: {"at": numbers_text(p.at)} | (fixed if p.fixed else {}) for p in d.points},
        "vectors": {v.name: {"along": numbers_text(v.along)} | (fixed if v.fixed else {}) for v in d.vectors},
        "bodies": {b.name: _body(b, dimension) for b in d.bodies},
        "joints": {j.name: _joint(j) for j in d.joints},
        "coordinates": {a.name: _added(a) for a in d.added},
        "racks": {
            r.name: {
                "distance": name_text(r.distance),
                "angle": name_text(r.angle),
                "radius": number_text(r.radius),
                "offset": number_text(r.offset),
            }
            for r in d.racks
        },
    }
    lines = []
    for section, items in sections.items():
        if items:
            lines += [f"{section}:", *(flow(f"  {name_text(name)}: ", keys) for name, keys in items.items())]
    return lines


def _body(b: RigidBody, dimension: int) -> dict[str, str]:
    bar = _bar(b, dimension)
    if bar:
        return bar
    out: dict[str, str] = {}
    for key, places in (("points", b.points), ("vectors", b.vectors)):
        if places:
            out[key] = mapping_text({name_text(n): numbers_text(np.asarray(x)) for n, x in places.items()})
    if b.mass != 0.0:
        out["mass"] = number_text(b.mass)
    if b.centre:
        out["centre"] = numbers_text(b.centre)
    J = np.asarray(b.inertia, dtype=np.float64)
    if np.any(J) or J.ndim:
        texts = {0: lambda: number_text(float(J)), 1: lambda: numbers_text(J), 2: lambda: matrix_text(J)}
        out["inertia"] = texts[J.ndim]()
    return out


def _bar(b: RigidBody, dimension: int) -> dict[str, str]:
    """A uniform bar by its points, length and mass; nothing where the body is anything else."""
    if len(b.points) != 2 or b.vectors:
        return {}
    (start, end), length = b.points, float(np.asarray([*b.points.values()][1])[0])
    if not length > 0.0 or not equal_parts(uniform_bar(b.name, start, end, length, b.mass, dimension), b):
        return {}
    return {"bar": names_text([start, end]), "length": number_text(length), "mass": number_text(b.mass)}


def _joint(j: MechanismJoint) -> dict[str, str]:
    out = {"kind": j.kind, "a": place_text(j.a), "b": place_text(j.b)}
    return out | ({} if math.isnan(j.length) else {"length": number_text(j.length)})


def _added(a: Added) -> dict[str, str]:
    if isinstance(a, Angle):
        out = {"of": _direction(a.of), "from": _direction(a.reference)}
        out |= {} if a.towards is None else {"towards": _direction(a.towards)}
        return out | ({} if math.isnan(a.start) else {"start": number_text(a.start)})
    if isinstance(a, Elevation):
        raise ModelError(
            "the pitch of a ball joint has no words in a description by points.",
            where=f"added coordinate '{a.name}'",
            hint="Save the machine with the joints it was described by.",
        )
    out = {"a": place_text(a.a), "b": place_text(a.b)}
    return out | ({} if a.along is None else {"along": _direction(a.along)})


def _direction(ref: DirectionRef) -> str:
    if isinstance(ref, str | Marker):
        return place_text(ref)
    if all(isinstance(part, str) for part in ref):
        return names_text([str(part) for part in ref])
    return numbers_text([float(part) for part in ref])
