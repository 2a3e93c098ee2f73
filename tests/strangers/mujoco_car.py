"""The simulated car rebuilt in MuJoCo, from its settings alone: bodies, joints and inertias; no equation of the simulator is used.

Each wheel carrier hangs on slides along y, x, z and hinges about z, x, y (half track, wheelbase, clearance, toe, camber, kingpin), each
wheel on a hinge about its axle. MuJoCo gives mass matrix, bias forces and Jacobians. The simulator's tables tie five of six coordinates
of a carrier to its clearance, q̈ = S u̇ + s₀, so the accelerations u̇ are those of  Sᵀ M S u̇ = Sᵀ (f − c − M s₀).
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as Xml

import mujoco
import numpy as np

from veridyn.papers.car.simulator import description as st
from veridyn.papers.car.simulator.description import Vehicle

SLIDES = (("dl", "slide", "0 1 0"), ("dL", "slide", "1 0 0"), ("z", "slide", "0 0 1"))
HINGES = (("toe", "hinge", "0 0 1"), ("camber", "hinge", "1 0 0"), ("kingpin", "hinge", "0 1 0"))


def _inertial(parent: Any, ten: np.ndarray) -> None:
    """An inertial element from XX XY XZ YY YZ ZZ MX MY MZ M about the frame's origin."""
    XX, XY, XZ, YY, YZ, ZZ, *first, m = (float(v) for v in ten)
    c = np.array(first) / m
    J = np.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]) - m * (c @ c * np.eye(3) - np.outer(c, c))
    six = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
    Xml.SubElement(parent, "inertial", pos=_text(c), mass=repr(m), fullinertia=_text(six))


def _text(values: Any) -> str:
    return " ".join(repr(float(v)) for v in values)


def model(vehicle: Vehicle) -> Any:
    """The car as a MuJoCo model: chassis on a free joint, four carriers, four wheels."""
    root = Xml.Element("mujoco")
    Xml.SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false", boundmass="0")
    Xml.SubElement(root, "option", gravity=f"0 0 {-vehicle.gravity}", jacobian="dense")
    chassis = Xml.SubElement(Xml.SubElement(root, "worldbody"), "body", name="chassis")
    Xml.SubElement(chassis, "freejoint", name="free")
    _inertial(chassis, np.array(vehicle.chassis))
    for i, (x, y) in enumerate(vehicle.places()):
        carrier = Xml.SubElement(chassis, "body", name=f"carrier{i}", pos=_text((x, y, 0.0)))
        for name, kind, axis in SLIDES + HINGES:
            Xml.SubElement(carrier, "joint", name=f"{name}{i}", type=kind, axis=axis)
        _inertial(carrier, np.array(vehicle.carriers[i // 2].ten(right=bool(i % 2))))
        wheel = Xml.SubElement(carrier, "body", name=f"wheel{i}")
        Xml.SubElement(wheel, "joint", name=f"spin{i}", type="hinge", axis="0 1 0")
        w = vehicle.wheels[i // 2]
        _inertial(wheel, np.array([w.across, 0.0, 0.0, w.about, 0.0, w.across, 0.0, 0.0, 0.0, w.mass]))
    return mujoco.MjModel.from_xml_string(Xml.tostring(root, encoding="unicode"))


def accelerations(
    m: Any, x: np.ndarray, out: np.ndarray, slope: np.ndarray, tyre: np.ndarray, resists: np.ndarray
) -> dict[str, np.ndarray]:
    """What MuJoCo says: specific acceleration and ω̇ of the chassis in its frame, z̈ and Ω̇ of the wheels.

    `x` the simulator's state; of `out` only tables, their rates, torques and the air's wrench are read; `slope` (4, 5) of tables with z;
    `tyre` (4, 6) wrench of the road at the wheel centre in the chassis frame; `resists` (4,) what springs and dampers hold each z with.
    """
    d = mujoco.MjData(m)
    at = {m.joint(k).name: int(m.jnt_dofadr[k]) for k in range(m.njnt)}
    names = [n for n, *_ in SLIDES + HINGES]
    place = out[st.WHEEL : st.WHEEL + 20].reshape(4, 5)
    speed = out[st.WHEELD : st.WHEELD + 20].reshape(4, 5)
    second = out[st.WHEELDD : st.WHEELDD + 20].reshape(4, 5) - slope * out[st.ZDD : st.ZDD + 4, None]
    column = {"dl": 0, "dL": 1, "toe": 2, "camber": 3, "kingpin": 4}
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, x[3:7])
    R = R.reshape(3, 3)
    d.qpos[:7] = x[:7]
    d.qvel[:3], d.qvel[3:6] = R @ x[7:10], x[10:13]
    free = [*range(6), *(at[f"z{i}"] for i in range(4)), *(at[f"spin{i}"] for i in range(4))]
    S, s0 = np.zeros((m.nv, len(free))), np.zeros(m.nv)
    S[free, np.arange(len(free))] = 1.0
    for i in range(4):
        for n in names:
            dof = at[f"{n}{i}"]
            known = n in column
            d.qpos[dof + 1] = place[i, column[n]] if known else x[st.Z + i]
            d.qvel[dof] = speed[i, column[n]] if known else x[st.ZD + i]
            if known:
                s0[dof] = second[i, column[n]]
                S[dof, 6 + i] = slope[i, column[n]]
        d.qpos[at[f"spin{i}"] + 1], d.qvel[at[f"spin{i}"]] = x[st.ANGLE + i], x[st.SPIN + i]
    mujoco.mj_forward(m, d)
    M = np.zeros((m.nv, m.nv))
    for k, unit in enumerate(np.eye(m.nv)):
        mujoco.mj_mulM(m, d, M[k], unit)
    f = np.zeros(m.nv)

    def push(force: np.ndarray, torque: np.ndarray, body: str) -> None:
        """A wrench at a body's origin, given in the chassis frame."""
        b = m.body(body).id
        mujoco.mj_applyFT(m, d, R @ force, R @ torque, d.xpos[b], b, f)

    air = out[st.AIR : st.AIR + 6]
    push(air[:3], air[3:], "chassis")
    for i in range(4):
        push(tyre[i, :3], tyre[i, 3:], f"wheel{i}")
        drive, brake = out[st.DRIVE + i], out[st.BRAKING + i]
        axle = R.T @ d.xmat[m.body(f"carrier{i}").id].reshape(3, 3)[:, 1]
        f[at[f"spin{i}"]] += drive + brake
        # A shaft turns the wheel against the chassis, not against the carrier.
        push(np.zeros(3), drive * axle, f"carrier{i}")
        push(np.zeros(3), -drive * axle, "chassis")
        f[at[f"z{i}"]] -= resists[i]
    u = np.linalg.solve(S.T @ M @ S, S.T @ (f - d.qfrc_bias - M @ s0))
    return {"a": R.T @ (u[:3] - m.opt.gravity), "omega_dot": u[3:6], "zdd": u[6:10], "spin_dot": u[10:14]}
