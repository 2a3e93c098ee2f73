"""A run of a directly driven machine in MuJoCo: integrated forwards under a controller, torques as they were applied.

The engine has rotors (armature) and viscous friction of its own; dry friction fs sign(q̇) acts against the motors. The law

    τ = J (ω² (q_d − q) + 2 ω (q̇_d − q̇)) + fs sign(q̇)

follows the motion wanted, J the machine's own inertia at zero on the diagonal, and compensates dry friction: without that a joint would
jerk as it turns round, which is no matter of deviations but of the band of the filter. It is held over a step, so the torque of a moment
is the mean of those before and after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import mujoco
import numpy as np
from numpy.typing import NDArray

from benchmarks.foreign.machines import GRAVITY, LAWS, Subject

Array = NDArray[np.float64]
STEP = 1e-3  # s
BANDWIDTH = 60.0  # rad/s, of the controller


def mjcf(subject: Subject, values: Mapping[str, float]) -> str:
    """The machine as a model file of MuJoCo, its inertias about their centres."""
    root = ElementTree.Element("mujoco")
    ElementTree.SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="false")
    ElementTree.SubElement(root, "option", gravity=f"0 0 {-GRAVITY!r}", timestep=repr(STEP), integrator="RK4")
    here = ElementTree.SubElement(root, "worldbody")
    for k, (joint, inertia) in enumerate(zip(subject.joints, subject.inertias(values), strict=True)):
        here = ElementTree.SubElement(here, "body", name=str(k + 1), pos=_text(joint.at))
        laws = {"armature": "Ia", "damping": "h"}
        own = {word: repr(values[subject.names[law][k]]) for word, law in laws.items()}
        kind = "slide" if joint.slides else "hinge"
        ElementTree.SubElement(here, "joint", {"name": f"q{k + 1}", "type": kind, "axis": _text(joint.axis), **own})
        J = inertia.inertia
        six = _text([J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]])
        centre, mass = _text(inertia.lever), repr(float(inertia.mass))
        ElementTree.SubElement(here, "inertial", pos=centre, mass=mass, fullinertia=six)
    return ElementTree.tostring(root, encoding="unicode")


def _text(numbers: Sequence[float] | Array) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def controlled(
    subject: Subject, values: Mapping[str, float], wanted: tuple[Array, Array], every: int
) -> tuple[Array, Array]:
    """Positions and torques (N, n) at every `every`-th step, the first left out, of a motion wanted: q and q̇ at all steps."""
    if subject.ratios is not None:
        raise ValueError("a machine with gears between motors and joints is not simulated here")
    model = mujoco.MjModel.from_xml_string(mjcf(subject, values))
    data = mujoco.MjData(model)
    n, dry = model.nv, np.array([values[name] for name in subject.names[LAWS[2]]])
    data.qpos[:], data.qvel[:] = 0.0, 0.0
    mujoco.mj_forward(model, data)
    mass = np.zeros((n, n))
    mujoco.mj_fullM(model, data, mass)
    stiff, damp = BANDWIDTH**2 * np.diag(mass), 2.0 * BANDWIDTH * np.diag(mass)
    data.qpos[:], data.qvel[:] = wanted[0][0], wanted[1][0]
    q, tau = (np.empty((len(wanted[0]), n)) for _ in range(2))
    for k, (there, rate) in enumerate(zip(*wanted, strict=True)):
        q[k] = data.qpos
        smooth = stiff * (there - q[k]) + damp * (rate - data.qvel)
        tau[k] = smooth + dry * np.sign(data.qvel)
        data.qfrc_applied[:] = smooth  # what the compensation adds, dry friction takes
        mujoco.mj_step(model, data)
    return q[every::every], 0.5 * (tau[every - 1 : -1] + tau[every:])[::every]
