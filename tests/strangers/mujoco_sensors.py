"""What sensors on a machine read by MuJoCo's own sensors: framepos, framelinvel, velocimeter, gyro and accelerometer at sites.

Only data are read from its tree and its sensors. Its free joint has p, quaternion (w, x, y, z), velocity in the world's axes and ω in its
own, which are veridyn's conventions too. Inverse dynamics takes accelerations as given and evaluates every sensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from strangers.mujoco_trees import text
from strangers.pinocchio_sensors import axes_of
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]


def pose(R: Array, p: Array) -> dict[str, str]:
    x, y, z, w = Rotation.from_matrix(np.array(R)).as_quat()
    return {"pos": text(p), "quat": text([w, x, y, z])}


class MujocoSensors:
    """The engine's model of a machine with its sensors; those of coordinates and distances are not asked of it."""

    def __init__(self, machine: Machine | Tree, sensors: Sequence[Sensor]) -> None:
        self.tree = tree = tree_of(machine)
        self.free = tree.base == "free"
        self.sensors = [s for s in sensors if s.kind not in ("coordinate", "rate", "distance")]
        root = ElementTree.Element("mujoco")
        ElementTree.SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="false")
        ElementTree.SubElement(root, "option", gravity=text(tree.gravity))
        nodes = {"ground": ElementTree.SubElement(root, "worldbody")}
        for b in tree.bodies:
            place = pose(b.placement.rotation, b.placement.position) if b.antecedent else {}
            here = ElementTree.SubElement(nodes[b.antecedent or "ground"], "body", name=b.name, **place)
            nodes[b.name] = here
            if self.free and b.antecedent is None:
                ElementTree.SubElement(here, "freejoint", name="free")
            elif b.joint != "fixed":
                kind = "hinge" if b.joint == "turning" else "slide"
                ElementTree.SubElement(here, "joint", name=b.name, type=kind, axis="0 0 1")
            ElementTree.SubElement(here, "inertial", pos="0 0 0", mass="1", diaginertia="1 1 1")
        listed = ElementTree.SubElement(root, "sensor")
        for s in self.sensors:
            marker = s.on if isinstance(s.on, Marker) else Marker(s.on, (0.0, 0.0, 0.0))
            R = axes_of(marker) if marker.axis else np.eye(3)
            ElementTree.SubElement(nodes[marker.body], "site", name=s.name, **pose(R, np.array(marker.at)))
            if s.kind in ("gyroscope", "accelerometer") or marker.axis:
                kind = {"gyroscope": "gyro", "velocity": "velocimeter"}.get(s.kind, s.kind)
                ElementTree.SubElement(listed, kind, name=s.name, site=s.name)
            else:
                kind = {"position": "framepos", "velocity": "framelinvel"}[s.kind]
                ElementTree.SubElement(listed, kind, name=s.name, objtype="site", objname=s.name)
        self.model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
        self.data = mujoco.MjData(self.model)

    def readings(self, q: Array, qd: Array, qdd: Array) -> dict[str, float]:
        """Channel → reading, bias included."""
        d, m, n = self.data, self.model, self.tree.n
        joints = [x[len(x) - n :] for x in (q, qd, qdd)]
        if self.free:
            d.qpos[:7], d.qvel[:6], d.qacc[:6] = q[:7], qd[:6], qdd[:6]
        for b, k in zip(self.tree.bodies, self.tree.coordinate, strict=True):
            if k >= 0:
                j = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_JOINT, b.name)
                d.qpos[m.jnt_qposadr[j]] = b.ratio * joints[0][k]
                d.qvel[m.jnt_dofadr[j]] = b.ratio * joints[1][k]
                d.qacc[m.jnt_dofadr[j]] = b.ratio * joints[2][k]
        mujoco.mj_inverse(m, d)
        out = {}
        for s in self.sensors:
            value = d.sensor(s.name).data
            out |= {f"{s.name}.{c}": float(value["xyz".index(c)]) + s.bias for c in (s.axes or "xyz")}
        return out
