"""Whole machines from model files against Newton and Euler in maximal coordinates, MuJoCo, and closed forms."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from strangers import machine_files as files
from strangers.newton_euler import NewtonEuler
from veridyn.files.machine.load import parse_machine
from veridyn.mechanics.natural.channels import readout
from veridyn.mechanics.natural.equations.dynamics import NaturalState, energies, solve_accelerations
from veridyn.mechanics.natural.equations.freedoms import mobility
from veridyn.mechanics.natural.equations.position import start_of
from veridyn.mechanics.natural.equations.system import NaturalSystem, natural_system
from veridyn.mechanics.natural.steps.integrate import (
    NaturalMethod,
    NaturalMotion,
    constraint_errors,
    integrate_natural,
)

MACHINES = {  # model file, degrees of freedom, rates at the start
    "slider-crank": (files.SLIDER_CRANK, 1, {"phi": 3.0}),
    "rssr": (files.RSSR, 1, {"phi": 2.0}),
    "cardan": (files.CARDAN, 1, {"alpha": 6.0}),
    "steering": (files.STEERING, 1, {"y": 0.1}),
    "three-rrr": (files.THREE_RRR, 3, {"q1": 1.0, "q2": -0.5, "q3": 0.3}),
    "watt": (files.WATT, 1, {"h": 0.3}),
    "top": (files.TOP, 3, {"precession": 3.0, "nutation": 0.5, "spin": 80.0}),
    "slides": (files.SLIDES, 3, {"x": 0.3, "h": 0.2, "r": 1.0}),
    "hinge": (files.HINGE, 2, {"E.z": 0.7, "m.x": -0.4}),
    "chain": (files.CHAIN, 3, {"u.y": 0.5}),
    "string": (files.STRING, 4, {"P.x": 0.5, "P.y": 0.3}),
    "vane": (files.VANE, 3, {"B.y": 0.4, "B.z": -0.3, "v.z": 0.6}),
    "stewart": (files.stewart(), 6, {"L0": 0.1, "L3": -0.2, "L5": 0.15}),
}


def started(text: str, rates: dict[str, float]) -> tuple[NaturalSystem, np.ndarray, np.ndarray]:
    system = natural_system(parse_machine(text))
    return system, *start_of(system, None, rates)


def moved(system: NaturalSystem, q: np.ndarray, qd: np.ndarray, t: np.ndarray, step: float) -> NaturalMotion:
    qdd, multipliers = solve_accelerations(system, q, qd)
    method = NaturalMethod("explicit", step=step, rule="DOP853")
    return integrate_natural(system, t, NaturalState(0.0, q, qd, qdd, multipliers), method=method)


@pytest.mark.parametrize("name", MACHINES)
def test_against_newton_and_euler(name: str) -> None:
    """Degrees of freedom, every acceleration and every reading, at the start and after 0.2 s of motion."""
    text, freedoms, rates = MACHINES[name]
    system, q, qd = started(text, rates)
    later = moved(system, q, qd, np.array([0.0, 0.2]), 0.005 if name != "top" else 0.002)
    assert constraint_errors(system, later).max() < 1e-9
    table = readout(system)
    for pose, speed in ((q, qd), (later.q[-1], later.qd[-1])):
        stranger = NewtonEuler(system.mechanism, pose, speed)
        assert mobility(system, pose).degrees_of_freedom == stranger.degrees_of_freedom == freedoms
        qdd = solve_accelerations(system, pose, speed)[0]
        size = max(1.0, float(np.abs(qdd).max()))
        assert qdd == pytest.approx(stranger.accelerations(), abs=1e-9 * size)
        read = np.concatenate([np.zeros(0), *(stranger.reading(i) for i in system.mechanism.sensors)])
        assert table.read(pose, speed, qdd) == pytest.approx(read, abs=1e-9 * size)


def test_cardan_shaft_turns_by_the_known_ratio() -> None:
    """ω_out / ω_in = cos β / (1 − sin² β cos² φ), through more than a turn; two rows of the bearing are known to follow from the others."""
    system, q, qd = started(files.CARDAN, {"alpha": 6.0})
    assert mobility(system, q).redundant == ("bearing: axis beside", "bearing: axis above")
    motion = moved(system, q, qd, np.linspace(0.0, 1.0, 21), 0.01)
    phi = motion.column("alpha")
    rates = (motion.qd[:, system.mechanism.index(name)] for name in ("gamma", "alpha"))
    ratio = np.divide(*rates)
    beta = np.pi / 6.0
    assert phi[-1] > 2.0 * np.pi
    assert ratio == pytest.approx(np.cos(beta) / (1.0 - (np.sin(beta) * np.cos(phi)) ** 2), abs=1e-8)
    assert np.tan(motion.column("gamma")) == pytest.approx(np.tan(phi) / np.cos(beta), rel=1e-6)


def test_steady_precession_of_a_top() -> None:
    """C (ω_s + Ω cos θ) Ω = A Ω² cos θ + m g l: with the slower root the top neither rises nor sinks."""
    theta, spin = np.pi / 6.0, 300.0
    A, C, weight = 0.0006 + 0.5 * 0.1**2, 0.0005, 0.5 * 9.81 * 0.1
    slow = float(min(np.roots([(A - C) * np.cos(theta), -C * spin, weight])))
    system, q, qd = started(files.TOP, {"precession": slow, "nutation": 0.0, "spin": spin})
    motion = moved(system, q, qd, np.array([0.0, 0.25, 0.5]), 0.002)
    assert motion.column("nutation") == pytest.approx([theta] * 3, abs=1e-7)
    assert motion.column("precession") == pytest.approx(slow * motion.t, abs=1e-6)
    assert motion.column("spin") == pytest.approx(spin * motion.t, abs=1e-5)
    total = energies(system, motion.q, motion.qd).sum(axis=1)
    assert np.ptp(total) < 1e-6 * total[0]


SLIDES = """
<mujoco><option gravity="0 -3 -9.81"/><worldbody>
 <body><joint type="slide" axis="1 0 0" stiffness="20"/>
  <inertial pos="0.1 0.1 0" mass="2" diaginertia="0.1 0.2 0.25"/>
  <body pos="0 0.3 0"><joint type="slide" axis="0 0 1" stiffness="50" springref="0.5"/><joint name="turn" type="hinge" axis="0 0 1"/>
   <inertial pos="0.1 0.1 0.2" mass="1" diaginertia="0.1 0.1 0.1"/>
   <site name="imu" pos="0.1 0.2 0.1" xyaxes="{0} {1}"/></body></body></worldbody>
 <sensor><gyro site="imu"/><accelerometer site="imu"/></sensor></mujoco>
"""


def test_an_inertial_unit_against_mujoco() -> None:
    """Gyroscope and accelerometer with axes of their own on a body that slides, turns and is pushed: MuJoCo's sensors, to rounding."""
    on = "{body: roll, at: [0.1, 0.2, 0.1], axis: [1, 1, 1], side: [0, 1, -1]}"
    head, _, _ = files.SLIDES.partition("sensors:")
    text = (
        head
        + f"sensors: {{g: {{kind: gyroscope, on: {on}, sigma: 1}}, a: {{kind: accelerometer, on: {on}, sigma: 1}}}}\n"
    )
    system, q, _ = started(text, {})
    rng = np.random.default_rng(2)
    model = mujoco.MjModel.from_xml_string(SLIDES.format("1 1 1", "0 1 -1"))
    for _ in range(3):
        at, speed = rng.normal(size=3), rng.normal(size=3)
        names = ("x", "h", "r")
        q, qd = start_of(system, dict(zip(names, at, strict=True)), dict(zip(names, speed, strict=True)))
        data = mujoco.MjData(model)
        data.qpos, data.qvel = at, speed
        data.qfrc_applied[2] = 0.3
        mujoco.mj_forward(model, data)
        qdd = solve_accelerations(system, q, qd)[0]
        assert qdd[system.select(names)] == pytest.approx(data.qacc, abs=1e-10)
        assert readout(system).read(q, qd, qdd) == pytest.approx(data.sensordata, abs=1e-9)
