"""The JSON schema of model files, for editors that check and complete while one types, and for the documentation.

It is built from the lists of keys the reader itself goes by (:mod:`veridyn.files.machine.write_parts`). What a schema cannot say (an
antecedent that exists, an inertia that is physically consistent) the reader says when the file is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veridyn.files.machine.formulations import ANGLE, DISTANCE, POINT_SECTIONS, PRIOR
from veridyn.files.machine.formulations import BODY as POINT_BODY
from veridyn.files.machine.formulations import KINDS as POINT_JOINTS
from veridyn.files.machine.parts import MARKER
from veridyn.files.machine.write_parts import (
    ANGLES_AND_LENGTHS,
    ASSEMBLY,
    BASES,
    BODY,
    CAPSULE,
    CENTRAL,
    CONTROLLER,
    COVARIANCE,
    DRIFT,
    ELEMENT,
    END,
    FLEXIBLE,
    FORMAT,
    FRAME,
    JOINT,
    LOAD,
    LOADS,
    NUMBERS,
    PARAMETERS,
    ROTATIONS,
    SENSOR,
    SENSOR_NUMBERS,
    TOP,
    TRANSMISSION,
)
from veridyn.model.car import TABLE as CAR_TABLE
from veridyn.model.car import TYRE_LAWS
from veridyn.model.controller import ANTI_WINDUPS, CONTROLLER_CONSTANTS, CONTROLLER_KINDS, CURRENT, FEEDFORWARDS
from veridyn.model.elements.element import MOST_POINTS, OUTSIDE, SHAPES
from veridyn.model.elements.kinds import CONSTANT_KEYS, KINDS
from veridyn.model.graph import FORMULATIONS, SIGMA
from veridyn.model.link import CUT_CHOICES
from veridyn.model.link import KINDS as JOINTS
from veridyn.model.sensor import KINDS as SENSORS
from veridyn.spatial.inertia import INERTIAL

Schema = dict[str, Any]


def _object(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    out: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**out, "required": list(required)} if required else out


def _free(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _array(items: Schema, least: int, most: int | None = None) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": least if most is None else most}


TEXT: Schema = {"type": ["string", "number"]}  # a body may be called 1
NUMBER: Schema = {
    "type": ["number", "string"],
    "description": "A number, or a formula of numbers and constants: pi/2, L - 0.1.",
}
UNKNOWN: Schema = {"anyOf": [NUMBER, {"type": "null"}], "description": "A number, a formula, or unknown."}
TRUTH: Schema = {"enum": [True, False, 0, 1]}
NAMES: Schema = {"type": "array", "items": TEXT}
THREE, SIX, VECTOR = _array(NUMBER, 3), _array(NUMBER, 6), _array(NUMBER, 2, 3)
MATRIX: Schema = {"type": "array", "items": {"type": "array", "items": NUMBER}}
PLACED: Schema = _object({key: TEXT if key == "body" else VECTOR for key in MARKER}, ("body",))
PLACE: Schema = {"anyOf": [TEXT, PLACED]}
DIRECTION: Schema = {"anyOf": [TEXT, PLACED, {"type": "array"}]}
MOMENTS: Schema = {"anyOf": [SIX, _object(dict.fromkeys(INERTIAL[:6], NUMBER))]}
COMMON: dict[str, Schema] = {  # what a key holds, where a part does not say otherwise
    **dict.fromkeys(("name", "body", "antecedent", "coordinate", "label", "signal", "unit", "formula"), TEXT),
    **dict.fromkeys(("against", "distance", "angle", "motor"), TEXT),
    **dict.fromkeys(("ratio", "length", "radius", "offset", "mass", "sigma", *NUMBERS, *SENSOR_NUMBERS), NUMBER),
    **dict.fromkeys((*CONTROLLER_CONSTANTS, "current_rate"), NUMBER),
    **dict.fromkeys(("actuated", "mu", "virtual", "fixed", "turns"), TRUTH),
    **dict.fromkeys(("position", "rpy", "axis"), THREE),
    **dict.fromkeys(("at", "along", "centre"), VECTOR),
    **dict.fromkeys(("on", "to", "a", "b"), PLACE),
    **dict.fromkeys(("of", "from", "towards"), DIRECTION),
    **dict.fromkeys(("rotation", "matrix"), MATRIX),
    **dict.fromkeys(("motors", "joints", "names", "prescribed"), NAMES),
    "mdh": _object(dict.fromkeys(ANGLES_AND_LENGTHS, NUMBER)),
}


def _keys(names: Sequence[str], **own: Schema) -> dict[str, Schema]:
    """What each key holds: as `own` has it, else as every part has it."""
    return {key: own[key] if key in own else COMMON[key] for key in names}


def _of_constant(key: str) -> str:
    """What a constant of an element is for, and whose."""
    owners = {name: kind.constant(key) for name, kind in KINDS.items()}
    docs = dict.fromkeys(c.doc for c in owners.values() if c is not None)
    return f"Of {', '.join(name for name, c in owners.items() if c is not None)}: {'; or '.join(docs)}."


def _of_law(key: str) -> str:
    """What a constant of a controller is, and of which kinds."""
    owners = {k: c.doc for k, own in {**CONTROLLER_KINDS, "a motor": CURRENT}.items() for c in own if c.key == key}
    return f"Of {', '.join(owners)}: {'; or '.join(dict.fromkeys(owners.values()))}."


DESCRIPTIONS = {
    "veridyn": "Version of the format.",
    "name": "Its name.",
    "formulation": "tree: joint coordinates; natural: points and unit vectors. Tree by default, natural where points are given.",
    "dimension": "2 for a machine that moves in the x-y plane of the ground; 3 by default.",
    "base": "fixed: on the ground; free: the first body moves freely; six_joints: it moves on six virtual joints.",
    "gravity": "Acceleration of gravity in the frame of the ground, m/s².",
    "constants": "Names for numbers that formulas use.",
    "bodies": "The bodies, each with its frames and inertia; the joint that carries it may stand within (antecedent).",
    "joints": "Joints between two frames; of a description by points, those that shared points and vectors do not make.",
    "points": "Points of a description by points and bars: fixed, or about where they start, m.",
    "vectors": "Unit vectors of a description by points and bars.",
    "coordinates": "Added angles and distances, by name; of a joint, the names of its coordinates.",
    "racks": "Racks on pinions: distance = radius * angle + offset.",
    "elements": "Springs, dampers, friction, motor inertias: what acts on coordinates or between two places.",
    "loads": "Forces and torques that act besides those of the joints.",
    "sensors": "What measures the machine.",
    "controllers": "Control laws of its own drives, which follow commands; see docs/controllers.md.",
    "parameters": "What is known or tied, other values and typical sizes, and how well values are known.",
    "transmission": "Motors that drive several joints: joints = matrix · motors.",
    "assembly": "Where the machine is put together: coordinates to hold, and guesses of the others.",
    "car": "A car of a few numbers, in place of bodies: a number is known, {value, sigma, lower, upper} is estimated.",
    "prescribed": "Coordinates whose motion is an input; the forces they need are results.",
    "antecedent": "The body that carries this one; left out, or 0: the ground.",
    "joint": "Kind of the joint that carries it, along or about the body's own z axis.",
    "sigma": "Standard deviation of the noise, in the sensor's unit; of a body, its kind of joint: 0 turning, 1 sliding, 2 fixed.",
    "actuated": "Whether a motor acts here, or the names of the coordinates on which one does.",
    "flexible": "Stiffness, damping, backlash, hysteresis and rotor inertia, seen from the joint NAME; its motor side is NAME_motor.",
    "mu": "The same as actuated, as a number.",
    "mdh": "Modified Denavit-Hartenberg parameters, rad and m; θ or r is where the coordinate is zero.",
    "placement": "A frame instead of a table: position, and rotation, rpy or axis.",
    "coordinate": "Name of the coordinate; bodies may share one.",
    "ratio": "How much of a shared coordinate this joint moves.",
    "virtual": "A body without mass, that only carries a joint.",
    "label": "What follows XX in the names of its parameters.",
    "inertia": "Ten parameters about the frame's origin, or mass, centre and about_centre; what is left out is zero.",
    "frames": "Name → frame on the body; joints name it body.frame.",
    "capsules": "The space that it takes: all within a radius of segments in its frame, m; an end left out makes a sphere.",
    "kind": "What it is.",
    "a": "One end: body, body.frame, or {body, position, rotation}; of a description by points a place.",
    "b": "The other end, which moves against a.",
    "cut": "Whether a loop is cut open here; auto lets veridyn choose.",
    "on": "A coordinate, a combination {z1: 1, z2: -1}, a place, a body, or body.fx for a force on a body.",
    "signal": "The measured signal that a drive gain multiplies.",
    "unit": "Where it is not the usual one.",
    "formula": "Of a law: what its value multiplies, of c, v, coordinates, rate(NAME) and signal(NAME).",
    "table": "Of a table: values at places of a formula (of, c by default); smooth or linear between; outside hold or extend.",
    "value": "Its value; of a parameter, the prior.",
    "typical": "Its typical size, where the machine's own is not right.",
    "between": "In place of on: the two places, on bodies or the ground, whose distance it acts on.",
    "wheel": "Of a tyre, in place of on: the body that rolls, its centre (at) and its axis.",
    **{key: _of_constant(key) for key in CONSTANT_KEYS},
    "length": "Of a distance: how far apart the ends are, m.",
    "against": "Of a torque: the body that takes the reaction; the ground by default.",
    "to": "Of a distance: the other end.",
    "axes": "Which of x, y and z it reads; all by default.",
    "quantum": "The step between two readings.",
    "rate": "Its own clock, Hz; that of the log by default.",
    "delay": "s: a reading stamped t is the truth at t - delay.",
    "bias": "A known offset of its readings, which is taken off.",
    "bias_sigma": "Standard deviation of an unknown offset at the start, which is estimated.",
    "bias_walk": "Its drift: variance per second.",
    "turns": "Whether it reads an angle modulo a full turn.",
    **{key: _of_law(key) for key in CONTROLLER_CONSTANTS},
    "feedforward": "What a model adds to the force: none, gravity (at the measured position), or model (along the command).",
    "anti_windup": "What the integral does while the force is limited.",
    "motor": "The element of kind dc_motor whose voltage it sets, by a current loop.",
    "current_rate": "The clock of the current loop, Hz: a whole multiple of rate, and rate by default.",
}


def model_schema() -> Schema:
    """The JSON schema (draft 2020-12) of model files."""
    sections = {
        "veridyn": {"const": FORMAT},
        "name": TEXT,
        "formulation": {"enum": list(FORMULATIONS)},
        "dimension": {"enum": [2, 3]},
        "base": {"enum": list(BASES)},
        "gravity": {"anyOf": [THREE, _array(NUMBER, 2)]},
        "constants": _free(NUMBER),
        "bodies": {"anyOf": [_named(_body()), _named(_point_body())]},
        "joints": {"anyOf": [_named(_joint()), _named(_section("joints", kind={"enum": list(POINT_JOINTS)}))]},
        "points": _named(_section("points")),
        "vectors": _named(_section("vectors")),
        "coordinates": _named(_coordinate()),
        "racks": _named(_section("racks")),
        "elements": {"type": "array", "items": _element()},
        "loads": _named(_load()),
        "sensors": _named(_sensor()),
        "controllers": _named(_controller()),
        "parameters": _parameters(),
        "transmission": _object(_keys(TRANSMISSION), TRANSMISSION),
        "assembly": _object(dict.fromkeys(ASSEMBLY, _free(NUMBER))),
        "prescribed": NAMES,
        "car": _car(),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A model file of veridyn",
        **_described(sections, TOP, ("veridyn",)),
        "oneOf": [{"required": ["bodies"]}, {"required": ["car"]}],
    }


def _car() -> Schema:
    prior = _object(dict.fromkeys(PRIOR, NUMBER), ("value",))
    keys: dict[str, Schema] = {"tyre": {"enum": list(TYRE_LAWS), "description": "The curve of the tyres."}}
    for name, kind in CAR_TABLE.items():
        keys[name] = {"anyOf": [NUMBER, prior], "description": f"{kind.what[0].upper()}{kind.what[1:]}, {kind.unit}."}
    return _object(keys, tuple(name for name, kind in CAR_TABLE.items() if kind.default is None))


def _body() -> Schema:
    about = _object(_keys(CENTRAL, centre=THREE, about_centre=MOMENTS), ("mass",))
    capsule = _object(_keys(CAPSULE, start=THREE, end=THREE), ("start", "radius"))
    own = {
        "joint": {"enum": list(SIGMA)},
        "sigma": {"enum": sorted(SIGMA.values())},
        "placement": _object(_keys(("position", *ROTATIONS))),
        "inertia": {"anyOf": [_object(dict.fromkeys(INERTIAL, UNKNOWN)), about]},
        "frames": _free(_object(_keys(FRAME))),
        "capsules": {"type": "array", "items": capsule},
        "flexible": _flexible(),
    }
    return _described(_keys(BODY, **own), BODY, ())


def _point_body() -> Schema:
    local = _free(VECTOR)
    inertia = {"anyOf": [NUMBER, SIX, MATRIX]}
    keys = _keys(POINT_BODY, points=local, vectors=local, bar=_array(TEXT, 2), inertia=inertia)
    return _object({"name": TEXT, **keys})


def _joint() -> Schema:
    end = {"anyOf": [TEXT, _object(_keys(END), ("body",))]}
    own = {
        "kind": {"enum": list(JOINTS)},
        "a": end,
        "b": end,
        "coordinates": {"anyOf": [TEXT, NAMES]},
        "actuated": {"anyOf": [TRUTH, NAMES]},
        "cut": {"enum": [*CUT_CHOICES, True, False]},
        "flexible": _flexible(),
    }
    return _described(_keys(("name", *JOINT), **own), ("name", *JOINT), ("a", "b"))


def _flexible() -> Schema:
    return _object(dict.fromkeys(FLEXIBLE, UNKNOWN), ("stiffness",))


def _coordinate() -> Schema:
    angle = {"name": TEXT, **_keys(ANGLE, start=NUMBER)}
    distance = {"name": TEXT, **_keys(DISTANCE, along=DIRECTION)}
    return {"anyOf": [_object(angle, ("of", "from")), _object(distance, ("a", "b"))]}


def _element() -> Schema:
    points = _array(NUMBER, 2, MOST_POINTS)
    words = {"of": TEXT, "shape": {"enum": list(SHAPES)}, "outside": {"enum": list(OUTSIDE)}}
    own = {
        "kind": {"enum": list(KINDS)},
        "on": {"anyOf": [TEXT, _free(NUMBER)]},
        "between": _array(PLACE, 2),
        "wheel": PLACED,
        "table": _object({"at": points, "values": points, **words}, ("at", "values")),
        "value": UNKNOWN,
    }
    return {
        **_described(_keys(ELEMENT, **own), ELEMENT, ("kind",)),
        "oneOf": [{"required": [key]} for key in ("on", "between", "wheel")],
    }


def _load() -> Schema:
    keys = _keys(("name", *LOAD), kind={"enum": list(LOADS)}, value={"anyOf": [NUMBER, VECTOR]})
    return _described(keys, ("name", *LOAD), ("kind", "on"))


def _sensor() -> Schema:
    axes = {"type": "string", "pattern": "^[xyz]*$"}
    keys = _keys(("name", *SENSOR), kind={"enum": list(SENSORS)}, axes=axes)
    return _described(keys, ("name", *SENSOR), ("kind", "on", "sigma"))


def _controller() -> Schema:
    own = {
        "kind": {"enum": list(CONTROLLER_KINDS)},
        "on": TEXT,
        "feedforward": {"enum": list(FEEDFORWARDS)},
        "anti_windup": {"enum": list(ANTI_WINDUPS)},
        "sigma": _free(NUMBER),
    }
    keys = _described(_keys(("name", *CONTROLLER), **own), ("name", *CONTROLLER), ("kind", "on", "rate"))
    words = {"on": "The coordinate that it moves.", "sigma": "Prior standard deviations of its constants, by key."}
    words["rate"] = "Its own clock, Hz."
    for key, text in words.items():
        keys["properties"][key]["description"] = text
    return keys


def _parameters() -> Schema:
    tie = {"anyOf": [TEXT, _object({"to": TEXT, "factor": NUMBER}, ("to",))]}
    sections = {
        "known": {"anyOf": [_free(NUMBER), NAMES]},
        "tied": _free(tie),
        "typical": _free(NUMBER),
        "values": _free(UNKNOWN),
        "sigma": _free(NUMBER),
        "covariance": _object(_keys(COVARIANCE), COVARIANCE),
        "drifts": _free(_object(dict.fromkeys(DRIFT, NUMBER), DRIFT)),
    }
    return _object({key: sections[key] for key in PARAMETERS})


def _section(name: str, **own: Schema) -> Schema:
    """An item of a section of the description by points, which requires what the reader requires."""
    _, allowed, required = POINT_SECTIONS[name]
    return _object({"name": TEXT, **_keys(allowed, **own)}, required)


def _named(item: Schema) -> Schema:
    """A list of items that each have a name, or a mapping from names to items."""
    listed = {"allOf": [item, {"required": ["name"]}]}
    return {"anyOf": [{"type": "array", "items": listed, "minItems": 1}, _free(item)]}


def _described(properties: Mapping[str, Schema], keys: Sequence[str], required: Sequence[str]) -> Schema:
    """An object with exactly these keys, each with what it is for."""
    return _object({key: {**properties[key], "description": DESCRIPTIONS[key]} for key in keys}, required)
