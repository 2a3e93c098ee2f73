"""The JSON schema of model files, for editors that check and complete while one types, and for the documentation.

It is built from the lists the reader itself goes by, so a key that the reader learns is in it. What a schema cannot say (an antecedent
that exists, an inertia that is possible) the reader says when the file is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veridyn.files.native import BASES, ELEMENT, FORMAT, NUMBERS, PLACE, TOP
from veridyn.files.native_bodies import ANGLES_AND_LENGTHS, CENTRAL, KEYS, ROTATIONS
from veridyn.files.native_loops import END
from veridyn.files.native_loops import KEYS as LOOP
from veridyn.files.native_parameters import SECTIONS
from veridyn.model.element_kinds import CONSTANT_KEYS, KINDS
from veridyn.model.joint import SIGMA
from veridyn.model.loop import CUTS
from veridyn.spatial.inertia import INERTIAL

Schema = dict[str, Any]

TEXT: Schema = {"type": ["string", "number"]}  # a body may be called 1
NUMBER: Schema = {
    "type": ["number", "string"],
    "description": "A number, or a formula of numbers and constants: pi/2, L - 0.1.",
}
UNKNOWN: Schema = {
    "anyOf": [NUMBER, {"type": "null"}],
    "description": "A number, a formula, or null where nobody knows.",
}
TRUTH: Schema = {"enum": [True, False, 0, 1]}


def _of_constant(key: str) -> str:
    """What a constant of an element is for, and whose."""
    owners = {name: kind.constant(key) for name, kind in KINDS.items()}
    docs = dict.fromkeys(c.doc for c in owners.values() if c is not None)
    return f"Of {', '.join(name for name, c in owners.items() if c is not None)}: {'; or '.join(docs)}."


SAID = {
    "veridyn": "Version of the format.",
    "name": "What it is called.",
    "base": "fixed: on the ground; free: the first body moves freely; six_joints: it moves on six virtual joints.",
    "gravity": "Acceleration of gravity in the frame of the ground, m/s².",
    "constants": "Names for numbers that formulas use.",
    "bodies": "The bodies, each behind its antecedent.",
    "elements": "Springs, dampers, friction, motor inertias: what acts on a coordinate or on a combination of coordinates.",
    "parameters": "What is known or tied, and other priors and typical sizes.",
    "transmission": "Motors that drive several joints: joints = matrix · motors.",
    "loops": "Joints at which a closed machine was cut open.",
    "assembly": "Where the machine is put together: coordinates to hold, and guesses of the others.",
    "prescribed": "Coordinates that move as they are told; the forces they need are results.",
    "antecedent": "The body that carries this one; left out, or 0: the ground.",
    "joint": "Kind of joint, along or about the body's own z axis.",
    "sigma": "The same as a number: 0 turning, 1 sliding, 2 fixed.",
    "actuated": "Whether a motor acts here.",
    "mu": "The same as a number.",
    "mdh": "Modified Denavit-Hartenberg parameters, rad and m; θ or r is where the coordinate is zero.",
    "placement": "A frame instead of a table: position, and rotation, rpy or axis.",
    "coordinate": "Name of the coordinate; bodies may share one.",
    "ratio": "How much of a shared coordinate this joint turns.",
    "virtual": "A body without matter, that only carries a joint.",
    "label": "What its parameters are called after.",
    "inertia": "Ten parameters about the frame's origin, or mass, centre and about_centre; what is left out is zero.",
    "kind": "What it is.",
    "on": "A coordinate, a combination {z1: 1, z2: -1}, or body.fx for a force on a body.",
    "signal": "The measured signal that a drive gain multiplies.",
    "unit": "Where it is not the usual one.",
    "value": "What is believed of its parameter.",
    "typical": "Its typical size, where the machine's own is not right.",
    "between": "In place of on: the two places, on bodies or the ground, whose distance it acts on.",
    **{key: _of_constant(key) for key in CONSTANT_KEYS},
    "first": "The end on one body.",
    "second": "The end on the other.",
    "length": "Of a distance: how far apart the ends are, m.",
}


def model_schema() -> Schema:
    """The schema, as JSON has it."""
    inertia = _object({**dict.fromkeys(INERTIAL, UNKNOWN), **_central()})
    frame = {"position": _array(3), "rotation": _matrix(), "rpy": _array(3), "axis": _array(3)}
    bodies = {
        "name": TEXT,
        "antecedent": TEXT,
        "joint": {"enum": list(SIGMA)},
        "sigma": {"enum": sorted(SIGMA.values())},
        "actuated": TRUTH,
        "mu": TRUTH,
        "mdh": _object(dict.fromkeys(ANGLES_AND_LENGTHS, NUMBER)),
        "placement": _object({"position": frame["position"], **{key: frame[key] for key in ROTATIONS}}),
        "coordinate": TEXT,
        "ratio": NUMBER,
        "virtual": TRUTH,
        "label": TEXT,
        "inertia": inertia,
    }
    elements = {"kind": {"enum": list(KINDS)}, "on": {"anyOf": [TEXT, _free(NUMBER)]}}
    place = _object({key: {"body": TEXT, "at": _array(3)}[key] for key in PLACE}, ("body",))
    elements["between"] = {"type": "array", "items": place, "minItems": 2, "maxItems": 2}
    elements |= dict.fromkeys(("name", "signal", "unit"), TEXT)
    elements |= {key: UNKNOWN if key == "value" else NUMBER for key in NUMBERS}
    acts: Schema = {"oneOf": [{"required": ["on"]}, {"required": ["between"]}]}
    element = {**_told(elements, ELEMENT, ("kind",)), **acts}
    ends = _object({"body": TEXT, **{key: frame[key] for key in END if key != "body"}}, ("body",))
    loops = {"name": TEXT, "joint": {"enum": list(CUTS)}, "first": ends, "second": ends, "length": NUMBER}
    tie = {"anyOf": [TEXT, _object({"to": TEXT, "factor": NUMBER}, ("to",))]}
    sections = {
        "known": {"anyOf": [_free(NUMBER), {"type": "array", "items": TEXT}]},
        "tied": _free(tie),
        "typical": _free(NUMBER),
        "values": _free(UNKNOWN),
    }
    top = {
        "veridyn": {"const": FORMAT},
        "name": TEXT,
        "base": {"enum": list(BASES)},
        "gravity": _array(3),
        "constants": _free(NUMBER),
        "bodies": {"type": "array", "items": _told(bodies, KEYS, ("name",)), "minItems": 1},
        "elements": {
            "type": "array",
            "items": element,
        },
        "parameters": _object({key: sections[key] for key in SECTIONS}),
        "transmission": _object(
            {
                "motors": {"type": "array", "items": TEXT},
                "joints": {"type": "array", "items": TEXT},
                "matrix": _matrix(),
            },
            ("motors", "joints", "matrix"),
        ),
        "loops": {"type": "array", "items": _told(loops, LOOP, ("name", "joint", "first", "second"))},
        "assembly": _object({"hold": _free(NUMBER), "guess": _free(NUMBER)}),
        "prescribed": {"type": "array", "items": TEXT},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A model file of veridyn",
        **_told(top, TOP, ("bodies",)),
    }


def _told(properties: Mapping[str, Schema], keys: Sequence[str], required: Sequence[str]) -> Schema:
    """An object with exactly these keys, each with what it is for."""
    return _object({key: {**properties[key], "description": SAID[key]} for key in keys}, required)


def _object(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    out: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**out, "required": list(required)} if required else out


def _free(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _array(length: int) -> Schema:
    return {"type": "array", "items": NUMBER, "minItems": length, "maxItems": length}


def _matrix() -> Schema:
    return {"type": "array", "items": {"type": "array", "items": NUMBER}}


def _central() -> dict[str, Schema]:
    six = {"anyOf": [_array(6), _object(dict.fromkeys(INERTIAL[:6], NUMBER))]}
    return {key: {"mass": NUMBER, "centre": _array(3), "about_centre": six}[key] for key in CENTRAL}
