"""URDF written of a machine that came from no URDF: links, joints and what acts on single joints.

The ground is a root link called "ground" without inertia; a free base hangs on it by a floating joint. Meshes there are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import Faults, ModelError, part_at
from veridyn.files.machine.mjcf_write import JointRange
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.body import Body
from veridyn.model.machine import Machine
from veridyn.model.names import GROUND
from veridyn.spatial.inertia import INERTIAL, cross_matrix, inertia_matrix, six
from veridyn.spatial.rotations import angles_of

Array = NDArray[np.float64]
KEYS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def urdf_text(machine: Machine, dynamics: Mapping[str, Mapping[str, float]], limits: Mapping[str, JointRange]) -> str:
    """The text of a URDF of an open machine. `dynamics`: joint → damping and friction. Joints are called as their coordinates.

    Joints that share a coordinate mimic the first of them. A sliding joint without limits has ±1e9 m, as the format wants some.
    """
    _check(machine)
    root = ElementTree.Element("robot", name=machine.name)
    ElementTree.SubElement(root, "link", name=GROUND)
    leaders: dict[str, Body] = {}
    bodies = tree_of(machine).bodies
    for b in bodies:
        _link(root, machine, b)
    for j, b in enumerate(bodies):
        free = machine.base == "free" and j == 0
        leader = leaders.setdefault(b.coordinate_name, b) if b.coordinate_name else b
        name = b.coordinate_name if b.coordinate_name and leader is b else f"{b.name}_joint"
        kind = "floating" if free else "fixed" if b.joint == "fixed" else "prismatic"
        limit = limits.get(name)
        if b.joint == "turning":
            kind = "revolute" if limit is not None and np.isfinite([limit.lower, limit.upper]).all() else "continuous"
        joint = ElementTree.SubElement(root, "joint", name=name, type=kind)
        R, p = b.placement.rotation, b.placement.position
        ElementTree.SubElement(joint, "origin", xyz=_text(p), rpy=_text(angles_of(R)))
        ElementTree.SubElement(joint, "parent", link=b.antecedent or GROUND)
        ElementTree.SubElement(joint, "child", link=b.name)
        if b.joint == "fixed":
            continue
        ElementTree.SubElement(joint, "axis", xyz="0 0 1")
        if leader is not b:
            ElementTree.SubElement(joint, "mimic", joint=b.coordinate_name, multiplier=repr(b.ratio), offset="0")
        if kind != "continuous":
            low, high = (limit.lower, limit.upper) if limit is not None else (-1e9, 1e9)
            effort = limit.effort if limit is not None and np.isfinite(limit.effort) else 1e9
            made = {
                "lower": repr(float(low)),
                "upper": repr(float(high)),
                "effort": repr(float(effort)),
                "velocity": "1e9",
            }
            ElementTree.SubElement(joint, "limit", made)
        if words := {word: repr(float(v)) for word, v in dynamics.get(name, {}).items() if v != 0.0}:
            ElementTree.SubElement(joint, "dynamics", words)
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _link(root: ElementTree.Element, machine: Machine, b: Body) -> None:
    link = ElementTree.SubElement(root, "link", name=b.name)
    if not b.real:
        return
    x = np.array([machine.parameters[b.parameter(symbol)] for symbol in INERTIAL])
    centre = x[6:9] / x[9] if x[9] != 0.0 else np.zeros(3)
    C = cross_matrix(centre)
    moments = six(np.array(inertia_matrix(x)) - x[9] * C.T @ C)
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=_text(centre), rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=repr(float(x[9])))
    ElementTree.SubElement(inertial, "inertia", {k: repr(float(v)) for k, v in zip(KEYS, moments, strict=True)})


def _check(machine: Machine) -> None:
    faults = Faults()
    if machine.closed:
        what = f"a URDF is a tree and cannot hold its {len(machine.cut_joints)} closed loops."
        faults.add(what, where=machine.name, hint="yaml keeps them.")
    leaders: dict[str, Body] = {}
    for b in tree_of(machine).bodies:
        if b.name == GROUND:
            faults.add("a body cannot be called as the ground is.", where=part_at("body", b.name))
        if b.joint != "fixed" and leaders.setdefault(b.coordinate_name, b) is b and b.ratio != 1.0:
            what = "a joint that moves by a ratio of its own coordinate has no counterpart in URDF."
            faults.add(what, where=part_at("body", b.name), found=f"ratio {b.ratio:g}")
    faults.raise_if_any(ModelError, machine.name)


def _text(values: ArrayLike) -> str:
    return " ".join(repr(float(v) + 0.0) for v in np.asarray(values, dtype=np.float64))
