"""veridyn's own model file, written: what is read back is the same machine, to the last bit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, Faults, ModelError
from veridyn.files.atomic import write_atomic
from veridyn.files.expressions import MAX_NUMBER
from veridyn.model.elements import Element
from veridyn.model.joint import Body
from veridyn.model.loop import Assembly, Attachment, Loop
from veridyn.model.parameters import ParameterSet
from veridyn.model.tree import Tree
from veridyn.spatial.inertia import INERTIAL, broken_law
from veridyn.spatial.transforms import MDH

Array = NDArray[np.float64]

FORMAT = 1
WIDTH = 110

_PLAIN = re.compile(r"[A-Za-z_](?:[\w .-]*[\w])?|[1-9][0-9]*", re.ASCII)
_RESERVED = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n", "unknown"))
_ANGLES = {k * math.pi / 4: text for k, text in ((1, "pi/4"), (2, "pi/2"), (4, "pi"))}
_ANGLES |= {-angle: f"-{text}" for angle, text in _ANGLES.items()}


def save_model(tree: Tree, path: str | Path, overwrite: bool = False) -> None:
    """Write a model file that :func:`~veridyn.files.native.load_model` reads back as an equal machine.

    What a tree does not hold cannot come back: constants, formulas and comments of the file it was read from; a base of six joints is
    written as the virtual bodies it is made of. See :func:`model_text` for what is refused.

    Parameters
    ----------
    tree : Tree
        The machine.
    path : str or path
        The file, which appears whole or not at all.
    overwrite : bool
        Replace a file that exists; it is left alone by default.

    Returns
    -------
    None

    Raises
    ------
    FileError
        The file exists, or cannot be written.

    Examples
    --------
    >>> import veridyn as vd
    >>> from veridyn.machines.shipped import shipped
    >>> arm = vd.load_model(shipped("veridyn:linkage.yaml"))
    >>> vd.save_model(arm, "copy.yaml")
    >>> vd.load_model("copy.yaml").parameters.names == arm.parameters.names
    True
    """
    write_atomic(path, model_text(tree).encode("utf-8"), overwrite)


def model_text(tree: Tree) -> str:
    """The text of a model file of this tree.

    Priors stand with the bodies and elements; those that differ from an element's own, or that no body can have
    (estimates of grouped parameters may be such), stand under ``parameters: values``. Refused: numbers beyond 1e50,
    and parameters whose names or units are not those of the tree's bodies and elements.
    """
    ten = {
        b.name: np.array([tree.parameters[b.parameter(s)] for s in INERTIAL]) for b in tree.bodies if _has_ten(tree, b)
    }
    stated = {
        name: x for name, x in ten.items() if not np.isnan(x).all() and not (np.isfinite(x).all() and broken_law(x))
    }
    plain = _built_again(tree, stated)
    lines = [
        f"veridyn: {FORMAT}",
        f"name: {_text(tree.name)}",
        f"base: {tree.base}",
        f"gravity: {_listed(tree.gravity)}  # m/s^2",
        "bodies:",
    ]
    for b in tree.bodies:
        lines += _body(b, stated.get(b.name))
    if tree.elements:
        lines.append("elements:")
        lines += [_flow("  - ", _element(e)) for e in tree.elements]
    lines += _parameters(tree.parameters, plain.parameters)
    if (t := tree.transmission) is not None:
        names = {
            key: f"[{', '.join(_text(n) for n in value)}]"
            for key, value in (("motors", t.motors), ("joints", t.joints))
        }
        rows = f"[{', '.join(_listed(row) for row in t.matrix)}]"
        lines += ["transmission:", *(f"  {key}: {value}" for key, value in names.items()), f"  matrix: {rows}"]
    if tree.loops:
        lines += ["loops:", *(_loop(loop) for loop in tree.loops)]
    lines += _assembly(tree.assembly)
    if tree.prescribed:
        lines.append(f"prescribed: [{', '.join(_text(c) for c in tree.prescribed)}]")
    return "\n".join(lines) + "\n"


def _has_ten(tree: Tree, body: Body) -> bool:
    return body.real and all(body.parameter(symbol) in tree.parameters.names for symbol in INERTIAL)


def _built_again(tree: Tree, inertia: Mapping[str, Array]) -> Tree:
    """The tree as its bodies and elements alone make it: what differs from it must be said under ``parameters``."""
    faults = Faults()
    p = tree.parameters
    for name, value, size in zip(p.names, p.values, p.typical, strict=True):
        if abs(value) > MAX_NUMBER or not 0.0 < size <= MAX_NUMBER:
            faults.add(
                "it cannot be written.",
                where=f"parameter '{name}'",
                expected=f"a value, or NaN, and a typical size above zero, both at most {MAX_NUMBER:g}",
                found=f"{value:g} and {size:g}",
            )
    for e in tree.elements:
        if e.typical > MAX_NUMBER or e.typical <= 0.0:
            faults.add(
                "its typical size cannot be written.", where=f"element '{e.parameter_name}'", found=f"{e.typical:g}"
            )
    for name, state in zip(p.names, p.states, strict=True):
        if (state == "tied") != (name in p.ties):
            faults.add("its state and its tie contradict each other.", where=f"parameter '{name}'", found=state)
        if state == "known" and not math.isfinite(p[name]):
            faults.add("it is known, but has no value.", where=f"parameter '{name}'")
    faults.raise_if_any(ModelError, tree.name)
    plain = Tree.build(
        tree.bodies, name=tree.name, base=tree.base, gravity=tree.gravity, inertia=inertia, elements=tree.elements
    )
    if plain.bodies != tree.bodies or (plain.parameters.names, plain.parameters.units) != (p.names, p.units):
        fault = Fault(
            "its parameters or their units are not those of its bodies and elements, so a file cannot hold them.",
            where=tree.name,
            hint="Make it with Tree.build and change its parameters with with_parameters.",
        )
        raise ModelError(fault)
    return plain


def _body(b: Body, inertia: Array | None) -> list[str]:
    lines = [f"  - name: {_text(b.name)}"]
    if b.antecedent is not None:
        lines.append(f"    antecedent: {_text(b.antecedent)}")
    lines.append(f"    joint: {b.joint}")
    if not b.actuated:
        lines.append("    actuated: false")
    if isinstance(b.placement, MDH):
        given = {key: getattr(b.placement, key) for key in ("gamma", "b", "alpha", "d", "theta", "r")}
        angles = ("gamma", "alpha", "theta")
        mdh = {
            k: _ANGLES.get(float(v), _number(v)) if k in angles else _number(v)
            for k, v in given.items()
            if not _zero(v)
        }
        if mdh:
            lines.append(_flow("    mdh: ", mdh))
    else:
        lines += ["    placement:", f"      position: {_listed(b.placement.position)}"]
        lines.append(f"      rotation: [{', '.join(_listed(row) for row in b.placement.rotation)}]")
    if b.coordinate:
        lines.append(f"    coordinate: {_text(b.coordinate)}")
    if b.ratio != 1.0:
        lines.append(f"    ratio: {_number(b.ratio)}")
    if not b.real:
        lines.append("    virtual: true")
    if b.label:
        lines.append(f"    label: {_text(b.label)}")
    if inertia is not None:
        entries = {s: _number(x) for s, x in zip(INERTIAL, inertia, strict=True) if not _zero(x)}
        lines.append(_flow("    inertia: ", entries))
    return lines


def _element(e: Element) -> dict[str, str]:
    out = {"kind": _text(e.kind), **_acts(e)}
    numbers = {"value": e.value, "typical": e.typical, **e.constants}
    out |= {key: _number(x) for key, x in numbers.items() if not math.isnan(x)}
    return out | {key: _text(x) for key, x in (("name", e.name), ("signal", e.signal), ("unit", e.unit)) if x}


def _acts(e: Element) -> dict[str, str]:
    """What an element acts on: a coordinate, a combination, or two places."""
    if e.between is not None:
        places = [f"{{body: {_text(m.body)}, at: {_listed(m.at)}}}" for m in e.between]
        return {"between": f"[{', '.join(places)}]"}
    (first, coefficient), *others = e.on.items()
    alone = not others and coefficient == 1.0
    return {
        "on": _text(first) if alone else "{" + ", ".join(f"{_text(c)}: {_number(a)}" for c, a in e.on.items()) + "}"
    }


def _loop(loop: Loop) -> str:
    parts = {"name": _text(loop.name), "joint": loop.joint, "first": _end(loop.first), "second": _end(loop.second)}
    return _flow("  - ", parts | ({"length": _number(loop.length)} if loop.joint == "distance" else {}))


def _end(at: Attachment) -> str:
    R, p = at.placement.rotation, at.placement.position
    parts = [f"body: {_text(at.body)}"]
    parts += [f"position: {_listed(p)}"] if np.any(p != 0.0) else []
    parts += [f"rotation: [{', '.join(_listed(row) for row in R)}]"] if not np.array_equal(R, np.eye(3)) else []
    return "{" + ", ".join(parts) + "}"


def _assembly(home: Assembly) -> list[str]:
    parts = {key: values for key, values in (("hold", home.hold), ("guess", home.guess)) if values}
    lines = [_flow(f"  {key}: ", {_text(c): _number(x) for c, x in values.items()}) for key, values in parts.items()]
    return ["assembly:", *lines] if lines else []


def _parameters(p: ParameterSet, plain: ParameterSet) -> list[str]:
    new = [i for i in range(len(p)) if not _same(p.values[i], plain.values[i])]
    values = {p.names[i]: _number(p.values[i]) for i in new}
    known = [_text(name) for name, state in zip(p.names, p.states, strict=True) if state == "known"]
    ties = {
        name: _text(tie.to) if tie.factor == 1.0 else f"{{to: {_text(tie.to)}, factor: {_number(tie.factor)}}}"
        for name, tie in p.ties.items()
    }
    sizes = {p.names[i]: _number(p.typical[i]) for i in range(len(p)) if p.typical[i] != plain.typical[i]}
    lines = [] if not known else [_wrapped("  known: ", known, "[]")]
    for key, entries in (("tied", ties), ("typical", sizes), ("values", values)):
        if entries:
            lines.append(_flow(f"  {key}: ", {_text(name): value for name, value in entries.items()}))
    return ["parameters:", *lines] if lines else []


def _same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))


def _zero(x: float) -> bool:
    """Zero as an entry that is left out is zero; −0 is written."""
    return _same(float(x), 0.0)


def _number(x: float) -> str:
    return "unknown" if math.isnan(x) else repr(float(x))


def _listed(numbers: Iterable[float]) -> str:
    return f"[{', '.join(_number(x) for x in numbers)}]"


def _flow(head: str, entries: Mapping[str, str]) -> str:
    return _wrapped(head, [f"{key}: {value}" for key, value in entries.items()], "{}")


def _wrapped(head: str, parts: list[str], brackets: str) -> str:
    """``head[a, b, c]`` over as many lines as it takes; YAML does not mind where the lines of a bracket break."""
    lines = [head + brackets[0]]
    for k, part in enumerate(parts):
        piece = part + ("," if k < len(parts) - 1 else brackets[1])
        gap = "" if k == 0 else " "
        if k and len(lines[-1]) + len(gap) + len(piece) > WIDTH:
            lines.append(" " * (len(head) + 1) + piece)
        else:
            lines[-1] += gap + piece
    return "\n".join(lines) if parts else head + brackets


def _text(text: str) -> str:
    """A YAML scalar that is this text and nothing else: plain where that is safe, in quotes otherwise."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
