"""A model file of version 2, written: what is read back is the same machine, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from veridyn.arguments import checked
from veridyn.errors import Faults, ModelError
from veridyn.files.access import refuse_format, write_atomic
from veridyn.files.expressions import MAX_NUMBER
from veridyn.files.machine.bodies import collapsed
from veridyn.files.machine.formulations import car_lines, parse_car, point_lines
from veridyn.files.machine.load import MJCF_ENDINGS, parse_root
from veridyn.files.machine.parts import controller_text
from veridyn.files.machine.write_parts import (
    FORMAT,
    body_lines,
    differences,
    element_text,
    equal_parts,
    flexible_text,
    flow,
    joint_text,
    load_text,
    name_text,
    names_text,
    number_text,
    numbers_text,
    parameter_lines,
    sensor_text,
    transmission_lines,
)
from veridyn.files.yaml_nodes import compose
from veridyn.model.flexible import Flexible, flexible_joints
from veridyn.model.graph import SIGMA, Body, joints_of_bodies
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.parameters import ParameterSet
from veridyn.model.place import GROUND, Assembly, Attachment
from veridyn.model.point_parts import ten_of
from veridyn.spatial.inertia import broken_law

YAML_ENDINGS = (".yaml", ".yml")


@checked
def save_model(machine: Machine, path: str | Path, overwrite: bool = False) -> None:
    """Write a model file that :func:`~veridyn.files.machine.load.load_model` reads back as an equal machine.

    The suffix chooses the format; URDF and MJCF are as :func:`~veridyn.files.machine.urdf_write.save_urdf` and
    :func:`~veridyn.files.machine.mjcf_write.save_mjcf` write them.

    Parameters
    ----------
    machine : Machine
        What is written, in its own formulation.
    path : str or path
        The file, which appears whole or not at all: ``.urdf`` is a URDF, ``.xml`` and ``.mjcf`` are MJCF, ``.yaml`` and ``.yml`` a model
        file; those of other programs and of data are refused.
    overwrite : bool
        Replace a file that exists; it is left alone by default.

    Returns
    -------
    None

    Raises
    ------
    FileError
        Where the file exists or cannot be written, or its suffix is that of another format.
    ModelError
        Where a file cannot hold the machine; see :func:`model_text`.

    Examples
    --------
    >>> import veridyn as vd
    >>> from veridyn.files.access import shipped
    >>> crane = vd.load_model(shipped("veridyn:crane.yaml"))
    >>> vd.save_model(crane, "copy.yaml")
    >>> vd.load_model("copy.yaml").coordinates
    ('x', 'swing')
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".urdf":
        from veridyn.files.machine.urdf_write import save_urdf

        save_urdf(machine, path, overwrite=overwrite)
    elif suffix in MJCF_ENDINGS:
        from veridyn.files.machine.mjcf_write import save_mjcf

        save_mjcf(machine, path, overwrite=overwrite)
    else:
        refuse_format(
            path, YAML_ENDINGS, "a model file", "veridyn export writes MJCF, URDF and actuators of Isaac Lab."
        )
        write_atomic(path, model_text(machine).encode("utf-8"), overwrite)


def model_text(machine: Machine) -> str:
    """The text of a model file of this machine.

    Values stand with the bodies and elements; those that no physical body has (estimates of grouped parameters may be such) stand under
    ``parameters: values``. Refused: numbers beyond 1e50, and machines that a file cannot hold, by the part that would be lost. Constants,
    formulas and comments of the file that a machine was read from are not kept.
    """
    _check(machine)
    if machine.car is not None:
        text = "\n".join([*_head(machine), *car_lines(machine)]) + "\n"
        _refuse_lost(machine, differences(machine, parse_car(compose(text, machine.name), machine.name)))
        return text
    start = machine.description is None
    text = _text(machine, start)
    lost = differences(machine, _read(text, machine.name))
    if lost and flexible_joints(machine):  # its motor sides are not behind all others: written out
        text = _text(machine, start, written_out=True)
        lost = differences(machine, _read(text, machine.name))
    if not start and lost:  # the pose at the start is not the one that its points give
        text = _text(machine, True)
        lost = differences(machine, _read(text, machine.name))
    _refuse_lost(machine, lost)
    return text


def _refuse_lost(machine: Machine, lost: Sequence[str]) -> None:
    if lost:
        hint = "Make it with Machine.build, and change its parameters with with_parameters."
        raise ModelError(f"a model file cannot hold its {', '.join(lost)}.", where=machine.name, hint=hint)


def _head(machine: Machine) -> list[str]:
    return [f"veridyn: {FORMAT}", f"name: {name_text(machine.name)}", f"formulation: {machine.formulation}"]


def _read(text: str, name: str) -> Machine:
    return parse_root(compose(text, name), name)


def _text(machine: Machine, start: bool, written_out: bool = False) -> str:
    """`start`: whether the pose at the start is written; `written_out`: flexible joints by the bodies and elements that they are."""
    described = machine.description
    lines = _head(machine)
    short, flexible = (machine, dict[str, Flexible]()) if written_out else collapsed(machine)
    if described is not None:
        lines.append(f"gravity: {numbers_text(machine.gravity[: machine.dimension])}  # m/s^2")
        lines += point_lines(described, machine.dimension)
        tens = {b.name: ten_of(b, machine.dimension) for b in described.bodies}
        bare = replace(machine, links=tuple(replace(k, inertia=tens[k.name]) if k.real else k for k in machine.links))
    else:
        lines += [f"dimension: {machine.dimension}"] if machine.dimension == 2 else []
        bare = replace(machine, links=tuple(_stated(link) for link in machine.links))
        lines += _graph_lines(replace(short, links=tuple(_stated(link) for link in short.links)), flexible)
    if short.elements:
        lines += ["elements:", *(flow("  - ", element_text(machine, e)) for e in short.elements)]
    if machine.loads:
        lines += ["loads:", *(flow("  - ", load_text(load)) for load in machine.loads)]
    if machine.sensors:
        lines += ["sensors:", *(flow("  - ", sensor_text(s)) for s in machine.sensors)]
    if machine.controllers:
        lines += ["controllers:", *(flow("  - ", controller_text(c)) for c in machine.controllers)]
    lines += parameter_lines(_parameters(machine), _plain(bare), machine.uncertainty)
    if machine.transmission is not None:
        lines += transmission_lines(machine.transmission)
    if start:
        lines += _assembly_lines(machine.assembly)
    if machine.prescribed:
        lines.append(f"prescribed: {names_text(machine.prescribed)}")
    return "\n".join(lines) + "\n"


def _stated(link: Link) -> Link:
    """The link with the inertia that its entry of the file has: none where no physical body has it."""
    ten = link.ten
    unfit = np.isnan(ten).all() or (np.isfinite(ten).all() and broken_law(ten))
    return replace(link, inertia=None) if link.real and unfit else link


def _graph_lines(machine: Machine, flexible: Mapping[str, Flexible]) -> list[str]:
    lines, bodies = [], _carried(machine)
    short = {b.name: b for b in bodies or ()}
    rest = machine.joints[len(short) :]
    if machine.joints and short and machine.joints[0].kind == "floating":
        lines.append("base: free")
    lines += [f"gravity: {numbers_text(machine.gravity)}  # m/s^2", "bodies:"]
    for link in machine.links:
        carried = short.get(link.name)
        lines += body_lines(link, carried, flexible.get(carried.coordinate_name) if carried is not None else None)
    if rest:
        lines += ["joints:", *(flow("  - ", _joint_text(j, flexible)) for j in rest)]
    return lines


def _joint_text(joint: Joint, flexible: Mapping[str, Flexible]) -> dict[str, str]:
    own = next((flexible[c] for c in joint.coordinate_names if c in flexible), None)
    return joint_text(joint) | ({} if own is None else {"flexible": flexible_text(own)})


def _carried(machine: Machine) -> list[Body] | None:
    """The bodies with the joints that carry them, where these can be written within the bodies; None where they cannot."""
    joints = machine.joints[: len(machine.links)]
    if len(joints) < len(machine.links):
        return None
    bodies = []
    for k, (link, joint) in enumerate(zip(machine.links, joints, strict=True)):
        floats = k == 0 and joint.kind == "floating"
        if joint.b != link.name or not isinstance(joint.a, Attachment) or not (floats or joint.kind in SIGMA):
            return None
        bodies.append(_body(link, joint, joint.a, floats))
    base = "free" if joints[0].kind == "floating" else "fixed"
    again = joints_of_bodies(bodies, base, [j.name for j in machine.joints[len(joints) :]])
    return bodies if equal_parts(again, joints) else None


def _body(link: Link, joint: Joint, a: Attachment, floats: bool) -> Body:
    common = {"placement": a.placement, "real": link.real, "label": link.label}
    if floats:
        return Body(link.name, None, "fixed", **common)
    return Body(
        link.name,
        a.body if a.body else GROUND,
        joint.kind,  # pyright: ignore[reportArgumentType]
        actuated=bool(joint.actuated),
        coordinate=joint.coordinates[0] if joint.coordinates else "",
        ratio=joint.ratio,
        **common,
    )


def _assembly_lines(home: Assembly) -> list[str]:
    parts = {key: values for key, values in (("hold", home.hold), ("guess", home.guess)) if values}
    return ["assembly:"] * bool(parts) + [
        flow(f"  {key}: ", {name_text(c): number_text(x) for c, x in values.items()}) for key, values in parts.items()
    ]


def _parameters(machine: Machine) -> ParameterSet | None:
    try:
        return machine.parameters
    except ModelError:
        if machine.description is None:
            raise
        return None  # no tree has this machine, so it has no parameters


def _plain(bare: Machine) -> ParameterSet | None:
    """The parameters as bodies and elements alone make them: what differs is written under ``parameters``."""
    return _parameters(replace(bare, stated=None, uncertainty=None))


def _check(machine: Machine) -> None:
    """Refuse numbers that a file cannot hold, and states that contradict each other."""
    faults = Faults()
    p, own = _parameters(machine), _plain(machine)
    if p is not None and own is not None and (p.names, p.units) != (own.names, own.units):
        what = "its parameters or their units are not those of its bodies and elements."
        faults.add(what, where=machine.name, hint="Change its parameters with with_parameters.")
    rows: Sequence[tuple[str, float, float, str]] = ()
    if p is not None:
        rows = list(zip(p.names, p.values.tolist(), p.typical.tolist(), p.states, strict=True))
    for name, value, size, state in rows:
        where = f"parameter '{name}'"
        if abs(value) > MAX_NUMBER or not 0.0 < size <= MAX_NUMBER:
            expected = f"a value, or NaN, and a typical size above zero, both at most {MAX_NUMBER:g}"
            faults.add("it cannot be written.", where=where, expected=expected, found=f"{value:g} and {size:g}")
        if (state == "tied") != (p is not None and name in p.ties):
            faults.add("its state and its tie contradict each other.", where=where, found=state)
        if state == "known" and not math.isfinite(value):
            faults.add("it is known, but has no value.", where=where)
    faults.raise_if_any(ModelError, machine.name)
