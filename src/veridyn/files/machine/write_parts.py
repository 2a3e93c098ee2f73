"""Bodies, joints, elements, loads, sensors and parameters as a model file of version 2 has them.

The keys are those that the reader accepts and the schema is made of. Numbers, names, lists and mappings are written as YAML that reads
back as the same values, to the last bit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from veridyn.errors import ModelError
from veridyn.model.controller import CONTROLLER_CONSTANTS
from veridyn.model.elements.element import Element, LawTable
from veridyn.model.elements.kinds import CONSTANT_KEYS
from veridyn.model.flexible import Flexible
from veridyn.model.graph import Body, PointDescription, point_at
from veridyn.model.link import End, Joint, Link, LinkCapsule
from veridyn.model.load import Drive, Force, Load, Transmission
from veridyn.model.machine import Machine
from veridyn.model.parameters import Drift, ParameterSet, Uncertainty
from veridyn.model.place import GROUND, Attachment, Marker, PointRef, numbers
from veridyn.model.sensor import Sensor
from veridyn.spatial.inertia import INERTIAL
from veridyn.spatial.rotations import MDH, Placement

FORMAT = 2
TOP = (
    *("veridyn", "name", "formulation", "dimension", "base", "gravity", "constants", "bodies", "joints"),
    *("points", "vectors", "coordinates", "racks"),
    *("elements", "loads", "sensors", "controllers", "parameters", "transmission", "assembly", "prescribed"),
    "car",
)
CAR_TOP = ("veridyn", "name", "formulation", "constants", "car", "sensors", "parameters")  # of a car of a few numbers
POINT_TOP = ("vectors", "coordinates", "racks")  # sections that need points
# Of a joint within its body.
SHORT = ("antecedent", "joint", "sigma", "actuated", "mu", "mdh", "placement", "coordinate", "ratio", "flexible")
BODY = ("name", *SHORT, "virtual", "label", "inertia", "frames", "capsules")
ANGLES_AND_LENGTHS = ("gamma", "b", "alpha", "d", "theta", "r")
ANGLES = ("gamma", "alpha", "theta")
ROTATIONS = ("rotation", "rpy", "axis")
CENTRAL = ("mass", "centre", "about_centre")
CAPSULE = ("start", "end", "radius")
FRAME = ("position", *ROTATIONS, "mdh")
END = ("body", *FRAME)
FLEXIBLE = ("stiffness", "damping", "inertia", "backlash", "hysteresis", "hysteresis_deflection")
JOINT = ("kind", "a", "b", "coordinates", "ratio", "actuated", "flexible", "cut", "length")
NUMBERS = ("value", "typical", *CONSTANT_KEYS)
ELEMENT = ("kind", "on", "between", "wheel", "name", "signal", "unit", "formula", "table", *NUMBERS)
TABLE = ("at", "values", "of", "shape", "outside")
LOADS = ("drive", "force", "torque")
LOAD = ("kind", "on", "value", "against")
SENSOR_NUMBERS = ("quantum", "rate", "delay", "bias", "bias_sigma", "bias_walk")
SENSOR = ("kind", "on", "to", "sigma", "axes", *SENSOR_NUMBERS, "turns")
CONTROLLER_WORDS = ("feedforward", "anti_windup", "motor")
CONTROLLER = ("kind", "on", "rate", *CONTROLLER_CONSTANTS, *CONTROLLER_WORDS, "current_rate", "sigma")
TRANSMISSION = ("motors", "joints", "matrix")
ASSEMBLY = ("hold", "guess")
PARAMETERS = ("known", "tied", "typical", "values", "sigma", "covariance", "drifts")
DRIFT = ("by", "within")
COVARIANCE = ("names", "matrix")
BASES = ("fixed", "free", "six_joints")
SIX_PREFIX = "base_"  # of the joints of a base on six joints

WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z_](?:[\w .-]*[\w])?|[1-9][0-9]*", re.ASCII)
_RESERVED = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n", "unknown"))
_ANGLES = {k * math.pi / 4: text for k, text in ((1, "pi/4"), (2, "pi/2"), (4, "pi"))}
_ANGLES |= {-angle: f"-{text}" for angle, text in _ANGLES.items()}


def is_zero(x: float) -> bool:
    """Zero as an entry that is left out is zero; −0 is written."""
    return same_number(float(x), 0.0)


def same_number(a: float, b: float) -> bool:
    """The same bits, or both NaN."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))


def number_text(x: float) -> str:
    return "unknown" if math.isnan(x) else repr(float(x))


def angle_text(x: float) -> str:
    """Quarter and half turns as pi/4, pi/2 and pi, other angles as numbers."""
    return _ANGLES.get(float(x), number_text(x))


def numbers_text(numbers: Iterable[float]) -> str:
    return f"[{', '.join(number_text(x) for x in numbers)}]"


def matrix_text(rows: ArrayLike) -> str:
    return f"[{', '.join(numbers_text(row) for row in np.asarray(rows, dtype=np.float64))}]"


def names_text(names: Iterable[str]) -> str:
    return f"[{', '.join(name_text(name) for name in names)}]"


def mapping_text(entries: Mapping[str, str]) -> str:
    """``{a: 1, b: 2}`` on one line; keys are written as they are."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"


def flow(head: str, entries: Mapping[str, str]) -> str:
    """A mapping behind `head`, over as many lines as it takes."""
    return wrapped(head, [f"{key}: {value}" for key, value in entries.items()], "{}")


def wrapped(head: str, parts: list[str], brackets: str) -> str:
    """``head[a, b, c]`` over as many lines as it takes; YAML allows a line break anywhere within brackets."""
    lines = [head + brackets[0]]
    for k, part in enumerate(parts):
        piece = part + ("," if k < len(parts) - 1 else brackets[1])
        gap = "" if k == 0 else " "
        if k and len(lines[-1]) + len(gap) + len(piece) > WIDTH:
            lines.append(" " * (len(head) + 1) + piece)
        else:
            lines[-1] += gap + piece
    return "\n".join(lines) if parts else head + brackets


def name_text(text: str) -> str:
    """A YAML scalar that is this text and nothing else: plain where that is safe, in quotes otherwise."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'


def mdh_text(placement: MDH) -> dict[str, str]:
    given = {key: getattr(placement, key) for key in ("gamma", "b", "alpha", "d", "theta", "r")}
    return {k: angle_text(v) if k in ANGLES else number_text(v) for k, v in given.items() if not is_zero(v)}


def frame_text(placement: MDH | Placement) -> dict[str, str]:
    """The keys of a frame; nothing for one that coincides with its body's."""
    if isinstance(placement, MDH):
        return {"mdh": mapping_text(mdh_text(placement))}
    R, p = placement.rotation, placement.position
    out = {"position": numbers_text(p)} if not all(is_zero(x) for x in p) else {}
    plain = all(same_number(float(x), float(y)) for x, y in zip(R.ravel(), np.eye(3).ravel(), strict=True))
    return out if plain else out | {"rotation": matrix_text(R)}


def flexible_text(own: Flexible) -> str:
    """The value of the key ``flexible``; what has its default is left out."""
    given = {key: getattr(own, key) for key in FLEXIBLE if not is_zero(getattr(own, key))}
    if math.isnan(own.inertia):
        del given["inertia"]
    return mapping_text({key: number_text(x) for key, x in given.items()})


def body_lines(link: Link, carried: Body | None, flexible: Flexible | None = None) -> list[str]:
    """A body; `carried` where the joint that carries it stands within, `flexible` where that is so."""
    lines = [f"  - name: {name_text(link.name)}"]
    if carried is not None:
        lines += _carried_lines(carried)
        lines += [f"    flexible: {flexible_text(flexible)}"] if flexible is not None else []
    if not link.real:
        lines.append("    virtual: true")
    if link.label:
        lines.append(f"    label: {name_text(link.label)}")
    if link.frames:
        frames = {name_text(name): mapping_text(frame_text(at)) for name, at in link.frames.items()}
        lines.append(flow("    frames: ", frames))
    if link.capsules:
        lines.append(wrapped("    capsules: ", [_capsule_text(c) for c in link.capsules], "[]"))
    if link.real and link.inertia is not None:
        ten = {s: number_text(x) for s, x in zip(INERTIAL, link.ten, strict=True) if not is_zero(x)}
        lines.append(flow("    inertia: ", ten))
    return lines


def _capsule_text(c: LinkCapsule) -> str:
    ends = {"start": numbers_text(c.start)} | (
        {} if all(map(same_number, c.start, c.end)) else {"end": numbers_text(c.end)}
    )
    return mapping_text(ends | {"radius": number_text(c.radius)})


def _carried_lines(b: Body) -> list[str]:
    lines = [] if b.antecedent is None else [f"    antecedent: {name_text(b.antecedent)}"]
    lines.append(f"    joint: {b.joint}")
    if not b.actuated:
        lines.append("    actuated: false")
    if isinstance(b.placement, MDH):
        if given := mdh_text(b.placement):
            lines.append(flow("    mdh: ", given))
    else:
        lines.append(flow("    placement: ", frame_text(b.placement)))
    if b.coordinate:
        lines.append(f"    coordinate: {name_text(b.coordinate)}")
    if b.ratio != 1.0:
        lines.append(f"    ratio: {number_text(b.ratio)}")
    return lines


def joint_text(j: Joint) -> dict[str, str]:
    out = {"name": name_text(j.name), "kind": j.kind, "a": _end(j.a), "b": _end(j.b)}
    if j.coordinates:
        out["coordinates"] = names_text(j.coordinates)
    if j.ratio != 1.0:
        out["ratio"] = number_text(j.ratio)
    if isinstance(j.actuated, tuple):
        out["actuated"] = names_text(j.actuated)
    elif j.actuated:
        out["actuated"] = "true"
    if j.cut != "auto":
        out["cut"] = f'"{j.cut}"'  # in quotes: older rules of YAML take a bare yes for true
    return out | ({"length": number_text(j.length)} if not is_zero(j.length) else {})


def _end(end: End) -> str:
    if isinstance(end, Attachment):
        return mapping_text({"body": name_text(end.body), **frame_text(end.placement)})
    return name_text(end)


def place_text(ref: PointRef) -> str:
    """A name, or a marker."""
    if not isinstance(ref, Marker):
        return name_text(ref)
    parts = {key: getattr(ref, key) for key in ("at", "axis", "side")}
    return mapping_text(
        {"body": name_text(ref.body), **{k: numbers_text(x) for k, x in parts.items() if k == "at" or x}}
    )


def element_text(machine: Machine, e: Element) -> dict[str, str]:
    out = {"kind": name_text(e.kind), **_acts(machine, e)}
    given = {"value": e.value, "typical": e.typical, **e.constants}
    out |= {key: number_text(x) for key, x in given.items() if not math.isnan(x)}
    out |= {} if e.table is None else {"table": _table_text(e.table)}
    texts = (("name", e.name), ("signal", e.signal), ("unit", e.unit), ("formula", e.formula))
    return out | {key: name_text(x) for key, x in texts if x}


def _table_text(table: LawTable) -> str:
    words = {key: name_text(getattr(table, key)) for key in ("of", "shape", "outside")}
    return mapping_text({"at": numbers_text(table.at), "values": numbers_text(table.values), **words})


def _acts(machine: Machine, e: Element) -> dict[str, str]:
    """What an element acts on: a coordinate, a combination, two places, or a wheel."""
    if e.wheel is not None:
        return {"wheel": place_text(e.wheel)}
    if e.between is not None:
        return {"between": f"[{', '.join(place_text(point_at(machine, m)) for m in e.between)}]"}
    (first, coefficient), *others = e.on.items()
    if not others and coefficient == 1.0:
        return {"on": name_text(first)}
    return {"on": mapping_text({name_text(c): number_text(a) for c, a in e.on.items()})}


def load_text(load: Load) -> dict[str, str]:
    out = {"name": name_text(load.name)}
    if isinstance(load, Drive):
        out |= {"kind": "drive", "on": name_text(load.coordinate)}
        return out | ({"value": number_text(load.value)} if not is_zero(load.value) else {})
    value = numbers(load.value)
    written = number_text(value[0]) if len(value) == 1 else numbers_text(value)
    if isinstance(load, Force):
        return out | {"kind": "force", "on": place_text(load.at), "value": written}
    out |= {"kind": "torque", "on": name_text(load.body), "value": written}
    return out | ({"against": name_text(load.against)} if load.against != GROUND else {})


def sensor_text(s: Sensor) -> dict[str, str]:
    out = {"name": name_text(s.name), "kind": s.kind, "on": place_text(s.on)}
    out |= {"to": place_text(s.to)} if s.to is not None else {}
    out["sigma"] = number_text(s.sigma)
    out |= {"axes": name_text(s.axes)} if s.axes else {}
    given = {key: getattr(s, key) for key in SENSOR_NUMBERS}
    out |= {key: number_text(x) for key, x in given.items() if x is not None and not is_zero(x)}
    return out | ({"turns": "true"} if s.turns else {})


def transmission_lines(t: Transmission) -> list[str]:
    names = [f"  motors: {names_text(t.motors)}", f"  joints: {names_text(t.joints)}"]
    return ["transmission:", *names, f"  matrix: {matrix_text(t.matrix)}"]


def parameter_lines(p: ParameterSet | None, plain: ParameterSet | None, uncertainty: Uncertainty | None) -> list[str]:
    """What `p` says beyond what bodies and elements alone say (`plain`), and the uncertainty."""
    if p is None or plain is None or plain.names != p.names:
        return []
    new = [i for i in range(len(p)) if not same_number(p.values[i], plain.values[i])]
    values = {p.names[i]: number_text(p.values[i]) for i in new}
    known = [name_text(name) for name, state in zip(p.names, p.states, strict=True) if state == "known"]
    ties = {}
    for name, tie in p.ties.items():
        to = name_text(tie.to)
        ties[name] = to if tie.factor == 1.0 else mapping_text({"to": to, "factor": number_text(tie.factor)})
    sizes = {p.names[i]: number_text(p.typical[i]) for i in range(len(p)) if p.typical[i] != plain.typical[i]}
    drifts = drift_texts(p.drifts)
    lines = [] if not known else [wrapped("  known: ", known, "[]")]
    for key, entries in (("tied", ties), ("typical", sizes), ("values", values), ("drifts", drifts)):
        if entries:
            lines.append(flow(f"  {key}: ", {name_text(name): value for name, value in entries.items()}))
    lines += uncertainty_lines(uncertainty) if uncertainty is not None else []
    return ["parameters:", *lines] if lines else []


def drift_texts(drifts: Mapping[str, Drift]) -> dict[str, str]:
    """Each parameter that drifts with how far."""
    return {
        name: mapping_text({"by": number_text(d.by), "within": number_text(d.within)}) for name, d in drifts.items()
    }


def uncertainty_lines(u: Uncertainty) -> list[str]:
    """Standard deviations where the parameters are independent and squares bring back the variances; else the covariance."""
    sigma = np.sqrt(np.diag(u.covariance))
    if np.array_equal(np.diag(sigma**2), u.covariance):
        return [flow("  sigma: ", {name_text(n): number_text(s) for n, s in zip(u.names, sigma, strict=True)})]
    rows = [f"      - {numbers_text(row)}" for row in u.covariance]
    names = wrapped("    names: ", [name_text(n) for n in u.names], "[]")
    return ["  covariance:", names, "    matrix:", *rows]


PARTS = (
    *("name", "formulation", "dimension", "gravity", "joints", "loads", "sensors", "prescribed"),
    *("controllers", "transmission", "assembly", "uncertainty", "car"),
)


def differences(one: Machine, other: Machine) -> tuple[str, ...]:
    """The parts in which two machines differ, by name: "joints", "elements", "parameters" and so on; nothing where they are equal.

    Parameters are compared where the joints of the machine can be spanned by a tree.
    """
    found = [part for part in PARTS if _plain(getattr(one, part)) != _plain(getattr(other, part))]
    if [_link(link) for link in one.links] != [_link(link) for link in other.links]:
        found.append("bodies")
    if [_element(e) for e in one.elements] != [_element(e) for e in other.elements]:
        found.append("elements")
    if _description(one.description) != _description(other.description):
        found.append("points")
    if _parameters(one) != _parameters(other):
        found.append("parameters")
    return tuple(found)


def equal_parts(one: object, other: object) -> bool:
    """Whether two parts of machines, or sequences of them, are the same to the last bit."""
    return _plain(one) == _plain(other)


def _link(link: Link) -> object:
    return link.name, link.real, link.label, _plain(link.ten), _plain(link.frames), _plain(link.capsules)


def _element(element: Element) -> object:
    return _plain(replace(element, name=element.parameter_name))


def _description(description: PointDescription | None) -> object:
    return None if description is None else _plain(replace(description, without_tree=()))


def _parameters(machine: Machine) -> object:
    try:
        return _plain(machine.parameters)
    except ModelError:
        if machine.description is None:
            raise
        return None  # no tree has this machine, so it has no parameters


def _plain(value: object) -> object:
    """Nested tuples that are equal where the values have the same bits; NaN is equal to itself, and −0 is not 0."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, *((f.name, _plain(getattr(value, f.name))) for f in fields(value))
    if isinstance(value, Mapping):
        return tuple((str(key), _plain(item)) for key, item in value.items())
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):  # either stands for a sequence
        return tuple(_plain(item) for item in value)
    if isinstance(value, float | np.number) or (isinstance(value, int) and not isinstance(value, bool)):
        value = float(value)
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    return value
