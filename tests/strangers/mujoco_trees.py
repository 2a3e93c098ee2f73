"""MuJoCo as a stranger: a machine on a fixed base, with loops as its `connect` constraints, integrated by its own Runge-Kutta rule.

Only data are read from its tree: antecedents, placements, joint kinds, ten parameters per body, gravity, dampers and springs of single
joints and between two places (spatial tendons). Cut joints that hold a point (spherical, turning, universal) become `connect`, which
MuJoCo holds softly: `stiff` is the time in which it closes an opening.
"""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine

Array = NDArray[np.float64]


def text(values: ArrayLike) -> str:
    return " ".join(repr(float(v)) for v in np.asarray(values, dtype=np.float64).ravel())


class MujocoTree:
    """The engine's model of a machine, and its integration."""

    def __init__(self, machine: Machine | Tree, step: float, stiff: float = 0.0) -> None:
        self.tree = tree = tree_of(machine)
        root = ElementTree.Element("mujoco")
        ElementTree.SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="false")
        ElementTree.SubElement(
            root,
            "option",
            timestep=repr(step),
            gravity=text(tree.gravity),
            integrator="RK4",
            tolerance="1e-14",
            iterations="200",
        )
        world = ElementTree.SubElement(root, "worldbody")
        ElementTree.SubElement(world, "site", name="ground")
        nodes: dict[str, ElementTree.Element] = {"ground": world}
        law = {(e.kind, next(iter(e.on))): e.value for e in tree.elements if len(e.on) == 1}
        for b in tree.bodies:
            x, y, z, w = Rotation.from_matrix(np.array(b.placement.rotation)).as_quat()
            place = {"pos": text(b.placement.position), "quat": text([w, x, y, z])}
            here = ElementTree.SubElement(nodes[b.antecedent], "body", name=b.name, **place)
            nodes[b.name] = here
            if b.joint != "fixed":
                kind = "hinge" if b.joint == "turning" else "slide"
                damping = repr(float(law.get(("damper", b.coordinate_name), 0.0)))
                spring = repr(float(law.get(("spring", b.coordinate_name), 0.0)))
                more = {"damping": damping, "stiffness": spring}
                ElementTree.SubElement(here, "joint", name=b.coordinate_name, type=kind, axis="0 0 1", **more)
            if b.real:
                self._inertial(here, [tree.parameters[b.parameter(s)] for s in SYMBOLS])
            else:
                ElementTree.SubElement(here, "inertial", pos="0 0 0", mass="1e-9", diaginertia="1e-12 1e-12 1e-12")
        equality = ElementTree.SubElement(root, "equality")
        for loop in tree.loops:
            for side in ("first", "second"):
                end = getattr(loop, side)
                at = text(end.placement.position)
                ElementTree.SubElement(nodes[end.body], "site", name=f"{loop.name} {side}", pos=at)
            ends = {"site1": f"{loop.name} first", "site2": f"{loop.name} second"}
            held = {"solref": f"{stiff!r} 1", "solimp": "0.9999 0.9999 0.001 0.5 2"}
            ElementTree.SubElement(equality, "connect", **ends, **held)
        tendons = ElementTree.SubElement(root, "tendon")
        for e in tree.elements:
            if e.between is not None:
                self._tendon(tendons, nodes, e)
        self.model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
        self.data = mujoco.MjData(self.model)
        ids = [mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, c) for c in tree.coordinates]
        self.at = np.array([self.model.jnt_qposadr[k] for k in ids])
        self.dof = np.array([self.model.jnt_dofadr[k] for k in ids])

    @staticmethod
    def _tendon(tendons: ElementTree.Element, nodes: dict[str, ElementTree.Element], e: Element) -> None:
        """A spring or damper between two places as a spatial tendon."""
        name = e.parameter_name
        spring = {"stiffness": repr(float(e.value)), "springlength": repr(e.constants.get("rest", 0.0))}
        law = spring if e.kind == "spring" else {"damping": repr(float(e.value))}
        line = ElementTree.SubElement(tendons, "spatial", name=name, **law)
        for k, place in enumerate(e.between or ()):
            ElementTree.SubElement(nodes[place.body], "site", name=f"{name} {k}", pos=text(place.at))
            ElementTree.SubElement(line, "site", site=f"{name} {k}")

    @staticmethod
    def _inertial(here: ElementTree.Element, ten: ArrayLike) -> None:
        xx, xy, xz, yy, yz, zz, *moment, mass = np.asarray(ten, dtype=np.float64)
        c = np.array(moment) / mass
        J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - mass * (c @ c * np.eye(3) - np.outer(c, c))
        full = text([J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]])
        ElementTree.SubElement(here, "inertial", pos=text(c), mass=repr(float(mass)), fullinertia=full)

    def run(
        self, t: Array, q: ArrayLike, qd: ArrayLike, forces: Callable[[float], ArrayLike] | None = None
    ) -> tuple[Array, Array]:
        """q and q̇ (N, n) at the times t, which are whole steps apart. Forces are held over a step, as taken at its middle."""
        d, h = self.data, self.model.opt.timestep
        mujoco.mj_resetData(self.model, d)
        d.qpos[self.at], d.qvel[self.dof] = q, qd
        out = []
        for time in np.asarray(t, dtype=np.float64):
            while d.time < time - 0.5 * h:
                if forces is not None:
                    d.qfrc_applied[self.dof] = forces(d.time + 0.5 * h)
                mujoco.mj_step(self.model, d)
            out.append((d.qpos[self.at].copy(), d.qvel[self.dof].copy()))
        return tuple(np.array(x) for x in zip(*out))


SYMBOLS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
