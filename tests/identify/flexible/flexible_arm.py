"""A bar on a flexible joint, simulated by MuJoCo: motor and link are two hinges, the shaft a tendon between them."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

import veridyn as vd

STIFFNESS, DAMPING, ROTOR = 6000.0, 3.0, 1.6
MASS, REACH, ZZ = 12.0, 0.4, 2.6  # kg, m, kg*m^2 about the axis
RATE = 1000.0

MODEL = f"""
<mujoco><option gravity="0 -9.81 0" timestep="{0.25 / RATE}" integrator="RK4"><flag contact="disable"/></option><worldbody>
<body><joint name="theta" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 {ROTOR}"/></body>
<body><joint name="q" axis="0 0 1"/><inertial pos="{REACH} 0 0" mass="{MASS}" diaginertia="2 2 {ZZ - MASS * REACH**2}"/></body>
</worldbody><tendon><fixed stiffness="{STIFFNESS}" damping="{DAMPING}" springlength="0 0">
<joint joint="theta" coef="1"/><joint joint="q" coef="-1"/></fixed></tendon>
<actuator><motor joint="theta"/></actuator></mujoco>
"""


def simulated(command, duration: float, friction: float = 0.0) -> tuple[NDArray[np.float64], ...]:
    """Time, motor angle, link angle and torque of the motor at RATE Hz; command(t, θ, θ̇) is the torque before smooth dry friction."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    data.qpos[:] = -np.pi / 2  # hanging
    steps = round(duration * RATE)
    out = np.zeros((steps, 4))
    for k in range(steps):
        for step in range(4):
            torque = command(data.time, data.qpos[0], data.qvel[0])
            if step == 0:
                out[k] = data.time, data.qpos[0], data.qpos[1], torque
            data.ctrl[0] = torque - friction * np.tanh(data.qvel[0] / 0.005)
            mujoco.mj_step(model, data)
    return tuple(out.T)


IMU = (0.5, 0.05, 0.02)  # m, on the bar


def with_imu(command, duration: float, friction: float = 0.0) -> NDArray[np.float64]:
    """Time, motor angle, torque, accelerometer (3) and rate about the axis (7, samples), at RATE Hz, as :func:`simulated` moves them.

    MuJoCo holds the torque for a step, and so is half a step late, which the recorded torque is as well.
    """
    body = f'<inertial pos="{REACH} 0 0"'
    text = MODEL.replace(body, f'<site name="imu" pos="{IMU[0]} {IMU[1]} {IMU[2]}"/>{body}')
    sensors = '<sensor><accelerometer site="imu"/><gyro site="imu"/></sensor></mujoco>'
    model = mujoco.MjModel.from_xml_string(text.replace("</mujoco>", sensors))
    data = mujoco.MjData(model)
    data.qpos[:] = -np.pi / 2  # hanging
    out = np.zeros((round(duration * RATE), 7))
    for k in range(len(out)):
        for step in range(4):
            torque = command(data.time, data.qpos[0], data.qvel[0])
            data.ctrl[0] = torque - friction * np.tanh(data.qvel[0] / 0.005)
            if step == 0:
                mujoco.mj_forward(model, data)
                out[k] = data.time, data.qpos[0], torque, *data.sensordata[:3], data.sensordata[5]
            mujoco.mj_step(model, data)
    out[:, 2] = CubicSpline(out[:, 0], out[:, 2])(out[:, 0] - 0.5 * model.opt.timestep)
    return out.T


def log(
    t, theta, q, torque, *, delay: float = 0.0, noise: float = 0.0, seed: int = 0, name: str = "run"
) -> vd.Experiment:
    """The log of both encoders; the link's is late by `delay` s. A line between samples would be off by as much as its noise."""
    rng = np.random.default_rng(seed)
    late = CubicSpline(t, q)(np.maximum(t - delay, t[0]))
    values = {
        "q.hip": late + noise * rng.normal(size=len(t)),
        "q.hip_motor": theta + noise * rng.normal(size=len(t)),
        "force.hip_motor": torque,
    }
    return vd.Experiment.from_arrays(t, values, {"q.hip": "rad", "q.hip_motor": "rad", "force.hip_motor": "N*m"}, name)


def machine(stiffness: float = 4000.0, inertia: float = ROTOR) -> vd.Machine:
    """The model of it, with a stiffness that is a guess."""
    bar = vd.Link(name="bar", inertia=[0.1, 0, 0, ZZ, 0, ZZ, MASS * REACH, 0, 0, MASS])
    joint = vd.Joint(name="hip", a="ground", b="bar", actuated=True)
    rigid = vd.Machine.build([bar], [joint], gravity=(0.0, -9.81, 0.0), name="arm")
    own = vd.model.Flexible(stiffness=stiffness, inertia=inertia)
    return vd.model.with_flexible_joints(rigid, {"hip": own})


def swing(t: float, theta: float, speed: float) -> float:
    """A position controller that follows three sines, which begin gently so that the shaft does not ring."""
    wave = 0.5 * np.sin(2.1 * t) + 0.2 * np.sin(5.3 * t) + 0.05 * np.sin(13.0 * t)
    rate = 1.05 * np.cos(2.1 * t) + 1.06 * np.cos(5.3 * t) + 0.65 * np.cos(13.0 * t)
    begun = 1.0 - np.exp(-(t**2))
    return 800.0 * (-np.pi / 2 + begun * wave - theta) + 90.0 * (
        begun * rate + 2.0 * t * np.exp(-(t**2)) * wave - speed
    )
