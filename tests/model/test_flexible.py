"""Flexible joints as bodies and elements: equations of motion, frequencies and the independence of other bodies."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import veridyn as vd
from veridyn.errors import ModelError
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import motor_inertia
from veridyn.model.flexible import Flexible, flexible_joints, with_flexible_joints
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

STIFFNESS, DAMPING, ROTOR = 900.0, 0.8, 0.25
M, R, ZZ = 2.0, 0.3, 0.28  # kg, m, kg*m^2 about the axis

TWO_MASS = f"""
<mujoco><option gravity="0 0 0" timestep="1e-4" integrator="RK4"><flag contact="disable"/></option><worldbody>
<body><joint name="theta" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 {ROTOR}"/></body>
<body><joint name="q" axis="0 0 1"/><inertial pos="{R} 0 0" mass="{M}" diaginertia="1 1 {ZZ - M * R * R}"/></body>
</worldbody><tendon><fixed name="shaft" stiffness="{STIFFNESS}" damping="{DAMPING}" springlength="0 0">
<joint joint="theta" coef="1"/><joint joint="q" coef="-1"/></fixed></tendon>
<actuator><motor joint="theta"/></actuator></mujoco>
"""


def bar(**own: object) -> Machine:
    inertia = [0.01, 0, 0, ZZ, 0, ZZ, M * R, 0, 0, M]
    joint = Joint(name="hip", a="ground", b="bar", actuated=True)
    return Machine.build([Link(name="bar", inertia=inertia)], [joint], gravity=(0.0, 0.0, 0.0), **own)  # pyright: ignore


def flexible_bar() -> Machine:
    return with_flexible_joints(bar(), {"hip": Flexible(stiffness=STIFFNESS, damping=DAMPING, inertia=ROTOR)})


def test_equations_of_two_masses():
    """J θ̈ + K (θ − q) + D (θ̇ − q̇) = Γ and ZZ q̈ = K (θ − q) + D (θ̇ − q̇)."""
    machine = flexible_bar()
    rng = np.random.default_rng(1)
    (q, th), (qd, thd), (qdd, thdd) = (rng.normal(size=(2, 50)) for _ in range(3))
    motion = Motion(np.arange(50.0), np.stack([q, th], 1), np.stack([qd, thd], 1), np.stack([qdd, thdd], 1))
    shaft = STIFFNESS * (th - q) + DAMPING * (thd - qd)
    expected = np.stack([ZZ * qdd - shaft, ROTOR * thdd + shaft], 1)
    np.testing.assert_allclose(vd.inverse_dynamics(machine, motion), expected, rtol=1e-12, atol=1e-10)
    assert machine.coordinates == ("hip", "hip_motor")
    assert machine.actuated == (False, True)


@pytest.mark.parametrize("formulation", ["tree", "natural"])
def test_free_vibration(formulation: str):
    """Released with a twist, θ − q is a damped oscillation of two masses, whose reduced inertia is J ZZ / (J + ZZ)."""
    machine = flexible_bar().with_formulation(formulation)  # pyright: ignore[reportArgumentType]
    method = Method(rtol=1e-10, atol=1e-12)
    found = vd.manoeuvres.Driven(0.5, 1000.0, [0.0, 0.02], [0.0, 0.0], method=method).run(machine).motion
    reduced = ROTOR * ZZ / (ROTOR + ZZ)
    decay = DAMPING / (2.0 * reduced)
    w = np.sqrt(STIFFNESS / reduced - decay**2)
    twist = 0.02 * np.exp(-decay * found.t) * (np.cos(w * found.t) + decay / w * np.sin(w * found.t))
    np.testing.assert_allclose(found.q[:, 1] - found.q[:, 0], twist, atol=1e-7)


def test_accelerations_are_those_of_mujoco():
    """MuJoCo has the same shaft as a tendon between two hinges."""
    machine = flexible_bar()
    model = mujoco.MjModel.from_xml_string(TWO_MASS)
    data = mujoco.MjData(model)
    for state in np.random.default_rng(2).normal(size=(5, 5)):
        data.qpos[:], data.qvel[:], data.ctrl[:] = state[1::-1], state[3:1:-1], state[4]
        mujoco.mj_forward(model, data)
        forces = np.array([[0.0, state[4]]])
        motion = Motion(np.zeros(1), state[None, :2], state[None, 2:4], np.zeros((1, 2)), forces=forces)
        found = vd.dynamics.forward_dynamics(machine, motion).qdd
        np.testing.assert_allclose(np.ravel(found), data.qacc[::-1], rtol=1e-9)


def test_a_rotor_does_not_load_the_other_joints():
    """The body of a motor side has no mass: with equal motion of both sides the link's equation is the rigid one."""
    machine = flexible_bar()
    assert [b.real for b in tree_of(machine).bodies] == [True, False]
    assert machine.parameters.names[-3:] == ("stiffness_hip", "damping_hip", "Ia_hip_motor")
    assert flexible_joints(machine) == {"hip": Flexible(stiffness=STIFFNESS, damping=DAMPING, inertia=ROTOR)}
    assert flexible_joints(bar()) == {}


def test_what_is_wrong_is_named():
    with pytest.raises(ModelError, match="no coordinate of a turning or sliding joint"):
        with_flexible_joints(bar(), {"hpi": Flexible(stiffness=1.0)})
    with pytest.raises(ModelError, match=r"its stiffness is not above zero"):
        with_flexible_joints(bar(), {"hip": Flexible(stiffness=-1.0)})
    with pytest.raises(ModelError, match=r"Write on: hip_motor"):
        with_flexible_joints(bar(elements=[motor_inertia("hip", 0.1)]), {"hip": Flexible(stiffness=1.0)})


def test_backlash_and_hysteresis_move_as_their_equations() -> None:
    """Pushed to and fro: a spring with play, and Dahl's law beside it, written here and integrated by SciPy."""
    play, width, over = 0.02, 1.5, 0.004  # rad, N*m, rad
    own = Flexible(
        stiffness=STIFFNESS,
        damping=DAMPING,
        inertia=ROTOR,
        backlash=play,
        hysteresis=width,
        hysteresis_deflection=over,
    )
    machine = with_flexible_joints(bar(), {"hip": own})
    assert flexible_joints(machine) == {"hip": own}

    def push(t: float) -> float:
        return 12.0 * np.sin(9.0 * t) + 6.0 * np.sin(23.0 * t)

    def rate(t: float, y: np.ndarray) -> list[float]:
        twist, speed = y[1] - y[0], y[3] - y[2]
        shaft = STIFFNESS * (max(twist - 0.5 * play, 0.0) + min(twist + 0.5 * play, 0.0)) + DAMPING * speed
        shaft += width * y[4] / over
        return [y[2], y[3], shaft / ZZ, (push(t) - shaft) / ROTOR, speed - abs(speed) * y[4] / over]

    t = np.linspace(0.0, 1.0, 201)
    exact = solve_ivp(rate, (0.0, 1.0), np.zeros(5), "LSODA", t, rtol=1e-9, atol=1e-11).y
    assert np.abs(exact[1] - exact[0]).max() > play  # it goes through the play and beyond
    method = Method("LSODA", rtol=1e-9, atol=1e-11)
    found = integrate(machine, t, [0.0, 0.0], [0.0, 0.0], Inputs(lambda t, q, qd: [0.0, push(t)]), method=method).motion
    np.testing.assert_allclose(found.q.T, exact[:2], atol=2e-5)  # bristles are damped by 1e-5 s here


def test_backlash_alone_and_what_no_gear_has() -> None:
    only = with_flexible_joints(bar(), {"hip": Flexible(stiffness=STIFFNESS, inertia=ROTOR, backlash=0.01)})
    assert [e.kind for e in only.elements] == ["dead_zone", "damper", "inertia"]
    with pytest.raises(ModelError, match="its backlash is not zero or more"):
        with_flexible_joints(bar(), {"hip": Flexible(stiffness=STIFFNESS, inertia=ROTOR, backlash=-0.01)})
    with pytest.raises(ModelError, match="its hysteresis_deflection is not above zero"):
        with_flexible_joints(bar(), {"hip": Flexible(stiffness=STIFFNESS, inertia=ROTOR, hysteresis=2.0)})
