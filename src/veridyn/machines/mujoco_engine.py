"""MuJoCo as the world: any open machine rebuilt in an engine that shares no equations with veridyn.

Two uses. :class:`PrescribedJoints` lets the engine compute, by its own inverse dynamics, the wrench that the ground must apply to a free
machine that moves in a given way. :func:`mjcf` writes the model for simulations with contact. Only data are read from it. MuJoCo
comes with the extra `mujoco`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import Fault, ModelError
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion, Pose
from veridyn.spatial.inertia import inertia_matrix
from veridyn.spatial.quaternions import quaternion

Array = NDArray[np.float64]


def mujoco() -> Any:
    """The engine, or a refusal that names what to install."""
    try:
        import mujoco as engine
    except ImportError as error:
        raise ModelError(
            Fault(
                "this simulation needs MuJoCo, which is not installed.",
                where="mujoco",
                found=str(error),
                hint="pip install 'veridyn[mujoco]'",
            )
        ) from error
    return engine


def mjcf(
    machine: Machine, soles: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]] | None = None, step: float = 1e-3
) -> Any:
    """The model of a machine on a free base as an XML element `mujoco`; joints are called as their coordinates, bodies as bodies.

    `soles`: body → (centre, rotation, half edges) of a box that may touch the ground, in the body's frame. Where there are none,
    contact is off. Centre of mass and inertia about it are exact to rounding; joints have neither friction nor armature.
    """
    if machine.base != "free" or machine.shares_coordinates or machine.elements:
        raise ModelError(
            Fault("only a free tree without elements and shared coordinates goes into the engine.", where=machine.name)
        )
    root = ElementTree.Element("mujoco", model=machine.name)
    ElementTree.SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="false")
    gravity = _text(machine.gravity)
    option = ElementTree.SubElement(root, "option", timestep=repr(step), gravity=gravity, cone="elliptic")
    if not soles:
        ElementTree.SubElement(option, "flag", contact="disable", constraint="disable")
    world = ElementTree.SubElement(root, "worldbody")
    if soles:
        ElementTree.SubElement(world, "geom", name="ground", type="plane", size="5 5 1")
    elements: list[ElementTree.Element] = []
    columns = {body: k for k, (body, number) in enumerate(machine.columns) if body and number == 0}
    tree = tree_of(machine)
    for b, i in zip(tree.bodies, tree.antecedent, strict=True):
        here = ElementTree.SubElement(world if i < 0 else elements[i], "body", name=b.name)
        elements.append(here)
        if i >= 0:
            here.set("pos", _text(b.placement.position))
            here.set("quat", _text(quaternion(b.placement.rotation)))
        _inertial(here, machine.parameters.values[columns[b.name] :][:10] if b.name in columns else None, b.name)
        if i < 0:
            ElementTree.SubElement(here, "freejoint", name="free")
        elif b.joint != "fixed":
            kind = "hinge" if b.joint == "turning" else "slide"
            ElementTree.SubElement(here, "joint", name=b.coordinate_name, type=kind, axis="0 0 1")
        if soles and b.name in soles:
            centre, rotation, half = soles[b.name]
            ElementTree.SubElement(
                here,
                "geom",
                name=f"sole {b.name}",
                type="box",
                pos=_text(centre),
                quat=_text(quaternion(np.asarray(rotation, dtype=np.float64))),
                size=_text(half),
                mass="0",
            )
    return root


class PrescribedJoints:
    """The engine's answer to prescribed motion: what the ground must do to a free machine so that it moves so."""

    def __init__(self, machine: Machine) -> None:
        engine = mujoco()
        self.machine = machine
        self._engine = engine
        self.model = engine.MjModel.from_xml_string(ElementTree.tostring(mjcf(machine), encoding="unicode"))
        self.data = engine.MjData(self.model)
        ids = [engine.mj_name2id(self.model, engine.mjtObj.mjOBJ_JOINT, c) for c in machine.coordinates]
        self.at = np.array([self.model.jnt_qposadr[k] for k in ids], dtype=int)
        self.dof = np.array([self.model.jnt_dofadr[k] for k in ids], dtype=int)

    def ground_wrench(self, pose: Pose, velocity: Array, acceleration: Array, q: Array, qd: Array, qdd: Array) -> Array:
        """(N, 6) force and moment about the world's origin, in the world's axes, that act on the machine from outside.

        `velocity` and `acceleration` (N, 6) of the base: of its origin in the world's axes, then angular in its own frame.
        """
        out = np.empty((len(pose), 6))
        for k in range(len(pose)):
            d = self.data
            d.qpos[:3], d.qpos[3:7], d.qpos[self.at] = pose.position[k], quaternion(pose.rotation[k]), q[k]
            d.qvel[:6], d.qvel[self.dof] = velocity[k], qd[k]
            d.qacc[:6], d.qacc[self.dof] = acceleration[k], qdd[k]
            self._engine.mj_inverse(self.model, d)
            force, moment = d.qfrc_inverse[:3], pose.rotation[k] @ d.qfrc_inverse[3:6]
            out[k] = np.concatenate([force, moment + np.cross(pose.position[k], force)])
        return out


def base_motion(machine: Machine, pose: Pose, velocity: Array, acceleration: Array) -> BaseMotion:
    """What an ideal inertial unit at the base's origin reads, from the engine's own velocities and accelerations."""
    back = np.swapaxes(pose.rotation, 1, 2)
    specific = np.einsum("nij,nj->ni", back, acceleration[:, :3] - machine.gravity)
    return BaseMotion(velocity[:, 3:], acceleration[:, 3:], specific, np.einsum("nij,nj->ni", back, velocity[:, :3]))


def engine_motion(
    machine: Machine, pose: Pose, velocity: Array, acceleration: Array, q: Array, qd: Array, qdd: Array, wrench: Array
) -> Motion:
    """Exact data of the engine as a motion: the ground's `wrench` about the world's origin acts on the base."""
    base = machine.root
    back = np.swapaxes(pose.rotation, 1, 2)
    about = wrench[:, 3:] - np.cross(pose.position, wrench[:, :3])
    at_base = np.concatenate([np.einsum("nij,nj->ni", back, x) for x in (wrench[:, :3], about)], axis=1)
    return Motion(pose.t, q, qd, qdd, base_motion(machine, pose, velocity, acceleration), wrenches={base: at_base})


def _inertial(here: ElementTree.Element, X: Array | None, name: str) -> None:
    if X is None:
        return
    if not np.isfinite(X).all() or X[9] <= 0.0:
        raise ModelError(Fault("the engine needs its mass and inertia.", where=f"body '{name}'"))
    centre = X[6:9] / X[9]
    J = np.array(inertia_matrix(X)) - X[9] * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    full = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
    ElementTree.SubElement(here, "inertial", pos=_text(centre), mass=repr(float(X[9])), fullinertia=_text(full))


def _text(values: ArrayLike) -> str:
    return " ".join(repr(float(v)) for v in np.asarray(values, dtype=np.float64))
