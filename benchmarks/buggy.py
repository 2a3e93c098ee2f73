"""The errorEKF of the buggy beside MuJoCo stepping the same vehicle, on one core at a step of 2 ms, as multiples of real time.

MuJoCo has the 35 coordinates of the tree with its loops as soft equalities, springs and dampers as tendons, and contacts of its own in
place of Magic Formula tyres; the anti-roll bar is left out. It only steps; the errorEKF steps, computes derivatives and takes in 16
readings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as Xml

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.clock import best_of
from veridyn.model.machine import Machine
from veridyn.papers.buggy.drive import BuggyDrive, driven
from veridyn.papers.buggy.machine import CHASSIS_CG, CONTACT, RACK, ROTOR, buggy, point, wheel_centre
from veridyn.papers.buggy.study import real_time_factors

Array = NDArray[np.float64]
STEP, SECONDS = 2e-3, 20.0
TORQUE, RACK_PLACE = 100.0, -0.010
SPRINGS = {"f": (38.8e3, 0.5562, 2970.0), "r": (150e3, 0.5530, 9340.0)}  # stiffness, free length, damping


def lines() -> Iterator[str]:
    """Of the report."""
    truth = driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=SECONDS, rack=RACK_PLACE))
    model = buggy(rolling_resistance=0.030)
    factors = real_time_factors({"tree": model, "natural": model.with_formulation("natural")}, truth, 0)
    ours = ", ".join(
        f"{value:.1f} times real time in formulation {name.rsplit('_', 1)[1]}" for name, value in factors.items()
    )
    yield (
        f"- Buggy (18 bodies, 15 degrees of freedom) on a circle at a step of {1e3 * STEP:g} ms, one core: the errorEKF with 20 states and "
        f"16 readings runs {ours}; MuJoCo alone steps the same bodies, with soft loops and contacts in place of tyres, "
        f"{mujoco_factor(buggy()):.0f} times faster than real time."
    )


def mujoco_factor(machine: Machine) -> float:
    """Simulated seconds for each second of the processor."""
    model = mujoco.MjModel.from_xml_string(buggy_xml(machine))  # pyright: ignore[reportAttributeAccessIssue]
    data = mujoco.MjData(model)  # pyright: ignore[reportAttributeAccessIssue]
    data.ctrl[:] = TORQUE
    step, count = mujoco.mj_step, round(SECONDS / STEP)  # pyright: ignore[reportAttributeAccessIssue]
    spent = best_of(lambda: step(model, data, nstep=count), repeat=1)
    if not (np.isfinite(data.qpos).all() and data.qpos[0] > 1.0):
        raise RuntimeError("MuJoCo's buggy does not drive; its time says nothing.")
    return SECONDS / spent.cpu


def buggy_xml(machine: Machine) -> str:
    """The vehicle for MuJoCo, in the pose of the drawing."""
    inertia = {link.name: link.inertia for link in machine.links}
    root = Xml.Element("mujoco")
    Xml.SubElement(root, "option", timestep=f"{STEP}", integrator="implicitfast", gravity="0 0 -9.80665")
    world = Xml.SubElement(root, "worldbody")
    road = wheel_centre("rl")[2] - CONTACT["UNLOADED_RADIUS"] + 0.045
    Xml.SubElement(world, "geom", type="plane", size="0 0 1", pos=f"0 0 {road}", friction="0.8 0.005 0.0001")
    tendons, equal, motors = (Xml.SubElement(root, name) for name in ("tendon", "equality", "actuator"))

    def body(parent: Any, name: str, at: Array, above: Array) -> Any:
        made = Xml.SubElement(parent, "body", name=name, pos=_text(at - above))
        XX, XY, XZ, YY, YZ, ZZ, *first, m = np.asarray(inertia[name], dtype=np.float64).tolist()
        c = np.array(first) / m
        J = np.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]) - m * (c @ c * np.eye(3) - np.outer(c, c))
        six = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
        Xml.SubElement(made, "inertial", pos=_text(c), mass=f"{m}", fullinertia=_text(six))
        return made

    def turning(of: Any, axis: ArrayLike, **more: str) -> None:
        Xml.SubElement(of, "joint", {"type": "hinge", "axis": _text(axis), **more})

    def wheel(parent: Any, corner: str, above: Array) -> None:
        made = body(parent, f"wheel_{corner}", wheel_centre(corner), above)
        turning(made, [0.0, 1.0, 0.0], name=f"spin_{corner}", armature=f"{ROTOR}")
        Xml.SubElement(made, "geom", type="sphere", size=f"{CONTACT['UNLOADED_RADIUS']}", friction="0.8 0.005 0.0001")

    def strut(corner: str, arm: Any, own: Array) -> None:
        stiffness, rest, damping = SPRINGS[corner[0]]
        for parent, end, above in ((chassis, "spring_chassis", CHASSIS_CG), (arm, "spring_arm", own)):
            Xml.SubElement(parent, "site", name=f"{end}_{corner}", pos=_text(point(corner, end) - above))
        made = Xml.SubElement(
            tendons,
            "spatial",
            stiffness=f"{stiffness}",
            springlength=f"{rest}",
            damping=f"{damping}",
            name=f"strut_{corner}",
        )
        for end in ("spring_chassis", "spring_arm"):
            Xml.SubElement(made, "site", site=f"{end}_{corner}")

    chassis = body(world, "chassis", CHASSIS_CG, np.zeros(3))
    Xml.SubElement(chassis, "freejoint")
    rack = body(chassis, "rack", RACK, CHASSIS_CG)
    Xml.SubElement(rack, "joint", name="rack", type="slide", axis="0 1 0")
    Xml.SubElement(equal, "joint", joint1="rack", polycoef=f"{RACK_PLACE} 0 0 0 0")
    for c in ("fl", "fr"):
        made = {}
        for arm in ("upper", "lower"):
            back = point(c, f"{arm}_back")
            made[arm] = body(chassis, f"{arm}_{c}", back, CHASSIS_CG)
            turning(made[arm], point(c, f"{arm}_front") - back)
        ball, back = point(c, "lower_ball"), point(c, "lower_back")
        upright = body(made["lower"], f"upright_{c}", ball, back)
        Xml.SubElement(upright, "joint", type="ball")
        wheel(upright, c, ball)
        strut(c, made["lower"], back)
        anchor = _text(point(c, "upper_ball") - point(c, "upper_back"))
        Xml.SubElement(equal, "connect", body1=f"upper_{c}", body2=f"upright_{c}", anchor=anchor)
        for parent, end, above in ((rack, "rod_inner", RACK), (upright, "rod_outer", ball)):
            Xml.SubElement(parent, "site", name=f"{end}_{c}", pos=_text(point(c, end) - above))
        rod = Xml.SubElement(tendons, "spatial", name=f"rod_{c}")
        for end in ("rod_inner", "rod_outer"):
            Xml.SubElement(rod, "site", site=f"{end}_{c}")
        Xml.SubElement(equal, "tendon", tendon1=f"rod_{c}")
    for c in ("rl", "rr"):
        at = point(c, "arm")
        arm = body(chassis, f"arm_{c}", at, CHASSIS_CG)
        Xml.SubElement(arm, "joint", type="ball")
        wheel(arm, c, at)
        strut(c, arm, at)
        Xml.SubElement(motors, "motor", joint=f"spin_{c}")
        for link in ("upper", "lower"):
            inner, outer = point(c, f"{link}_inner"), point(c, f"{link}_outer")
            made_link = body(chassis, f"{link}_link_{c}", inner, CHASSIS_CG)
            turning(made_link, [1.0, 0.0, 0.0])
            turning(made_link, [0.0, 0.0, 1.0])
            anchor = _text(outer - inner)
            Xml.SubElement(equal, "connect", body1=f"{link}_link_{c}", body2=f"arm_{c}", anchor=anchor)
    return Xml.tostring(root, encoding="unicode")


def _text(values: ArrayLike) -> str:
    return " ".join(f"{x:.12g}" for x in np.asarray(values, dtype=np.float64).tolist())


if __name__ == "__main__":
    for line in lines():
        print(line)
