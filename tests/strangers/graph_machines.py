"""Machines as graphs of links and joints, which no file of the package has. Every number is chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from strangers.random_trees import random_inertia, random_rotation
from veridyn.model.elements.element import damper, motor_inertia, spring
from veridyn.model.link import KINDS, Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.place import Assembly, Attachment
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement, rotation_to_axis

OPEN_KINDS = tuple(kind for kind in KINDS if kind != "distance")


def _place(rng: np.random.Generator, size: float = 0.4) -> Placement:
    return Placement(random_rotation(rng), size * rng.standard_normal(3))


def random_machine(seed: int, kinds: tuple[str, ...], frames: bool = True) -> Machine:
    """An open machine with one joint of each of these kinds, in a chain with one branch; ends of joints anywhere on their bodies."""
    rng = np.random.default_rng(seed)
    links, joints = [], []
    for k, kind in enumerate(kinds):
        name = f"body{k}"
        before = "ground" if k == 0 else f"body{k - 1 if k % 3 else max(0, k - 2)}"
        end = _place(rng) if frames else Placement()
        links.append(Link(name=name, inertia=random_inertia(rng), frames={"joint": end}))
        far = f"{name}.joint" if frames else name
        joints.append(Joint(name=f"{kind}{k}", kind=kind, a=Attachment(before, _place(rng)), b=far))
    down = rng.standard_normal(3)
    return Machine.build(links, joints, name="random graph", gravity=9.81 * down / np.linalg.norm(down))


def backwards(machine: Machine, which: int) -> Machine:
    """The same machine with one joint written from its other end: its coordinate counts the other way."""
    joints = list(machine.joints)
    j = joints[which]
    joints[which] = replace(j, a=j.b, b=j.a)
    return replace(machine, joints=tuple(joints))


def seven_joint_arm() -> Machine:
    """An arm of seven turning joints with the proportions of a collaborative robot, motors with inertia and viscous friction."""
    turns = [0.0, -1, 1, 1, -1, 1, 1]
    way = [(0, 0, 0.333), (0, 0, 0), (0, -0.316, 0), (0.0825, 0, 0), (-0.0825, 0.384, 0), (0, 0, 0), (0.088, 0, 0)]
    masses = [4.9, 0.65, 3.2, 3.6, 1.2, 1.7, 0.74]
    rng = np.random.default_rng(7)
    links, joints, elements = [], [], []
    for k in range(7):
        c, s = (1.0, 0.0) if turns[k] == 0 else (0.0, turns[k])
        R = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        centre = 0.05 * rng.standard_normal(3)
        inertia = from_centre(masses[k], centre, 0.01 * masses[k] * np.diag([1.0, 1.1, 0.7]))
        links.append(Link(name=f"link{k + 1}", inertia=inertia))
        carrier = "ground" if k == 0 else f"link{k}"
        end = Attachment(carrier, Placement(R, way[k]))
        joints.append(Joint(name=f"q{k + 1}", a=end, b=f"link{k + 1}", actuated=True))
        elements += [damper(f"q{k + 1}", 0.5 + 0.1 * k), motor_inertia(f"q{k + 1}", 0.1)]
    home = Assembly(hold={f"q{k + 1}": v for k, v in enumerate([0.1, -0.5, 0.2, -1.8, 0.3, 1.4, 0.6])})
    return Machine.build(links, joints, name="seven-joint arm", elements=elements, assembly=home)


def rssr() -> Machine:
    """A spatial four-bar: two cranks on skew axes and a rod with mass, turning, universal, spherical, turning."""
    crank = Link(name="crank", inertia=from_centre(1.5, (0.17, 0.02, 0.01), np.diag([0.002, 0.02, 0.02])))
    rod = Link(name="rod", inertia=from_centre(0.9, (0.5, 0.0, 0.02), np.diag([0.001, 0.08, 0.08])))
    rocker = Link(name="rocker", inertia=from_centre(2.0, (0.3, 0.05, -0.02), np.diag([0.01, 0.09, 0.09])))
    tilted = rotation_to_axis((0.3, 0.5, 0.8))
    across = Placement([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]], (0.35, 0.0, 0.0))
    joints = [
        Joint(name="phi", a="ground", b="crank", actuated=True),
        Joint(name="hook", kind="universal", a=Attachment("crank", across), b="rod"),
        Joint(
            name="ball",
            kind="spherical",
            a=Attachment("rod", Placement(position=(1.0, 0, 0))),
            b=Attachment("rocker", Placement(position=(0.65, 0, 0))),
        ),
        Joint(name="psi", a=Attachment("ground", Placement(tilted, (1.1, 0.6, 0.2))), b="rocker"),
    ]
    elements = [spring("psi", 8.0), damper("phi", 0.2)]
    home = Assembly(hold={"phi": 0.4}, guess={"hook_1": 0.1, "hook_2": 0.2, "psi": 1.0})
    return Machine.build([crank, rod, rocker], joints, name="rssr", elements=elements, assembly=home)


def slider_crank() -> Machine:
    """A planar slider-crank: crank, rod with its centre aside, piston; the loop is left to be cut."""
    links = [
        Link(name="crank", inertia=from_centre(1.0, (0.15, 0.0, 0.0), np.diag([0.0, 0.0075, 0.0075]))),
        Link(name="rod", inertia=from_centre(2.0, (0.5, 0.04, 0.0), np.diag([0.01, 0.16, 0.17]))),
        Link(name="piston", inertia=from_centre(3.0, (0.05, 0.02, 0.0), np.diag([0.01, 0.03, 0.04]))),
    ]
    along = rotation_to_axis((1.0, 0.0, 0.0))
    joints = [
        Joint(name="phi", a="ground", b="crank", actuated=True),
        Joint(name="A", a=Attachment("crank", Placement(position=(0.3, 0, 0))), b="rod"),
        Joint(name="B", a=Attachment("rod", Placement(position=(1.0, 0, 0))), b="piston"),
        Joint(
            name="x", kind="sliding", a=Attachment("ground", Placement(along)), b=Attachment("piston", Placement(along))
        ),
    ]
    elements = [spring("x", 20.0), damper("x", 3.0)]
    home = Assembly(hold={"phi": 0.7}, guess={"A": -0.9, "x": 1.2})
    return Machine.build(links, joints, name="slider-crank", elements=elements, assembly=home, dimension=2)
