"""A leg of two joints with known drives, simulated by MuJoCo: sampled PD on a delayed command, encoders with zeros, dry friction."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

import veridyn as vd

Array = NDArray[np.float64]
JOINTS = ("thigh", "calf")
LEG = """<mujoco model="leg"><compiler angle="radian"/>
<option timestep="0.0002" integrator="implicitfast"/>
<worldbody><body name="thigh" pos="0 0 1"><joint name="thigh" axis="0 1 0" damping="{h0}" armature="{i0}" frictionloss="{f0}"/>
<inertial pos="0 0.02 -0.05" mass="1.1" diaginertia="0.006 0.006 0.001"/>
<body name="calf" pos="0 0 -0.2"><joint name="calf" axis="0 1 0" damping="{h1}" armature="{i1}" frictionloss="{f1}"/>
<inertial pos="0.01 0 -0.12" mass="{mass}" diaginertia="0.002 0.002 0.0001"/></body></body></worldbody>
<actuator><motor joint="thigh"/><motor joint="calf"/></actuator></mujoco>"""
SHEET = {"h0": 0.3, "i0": 0.01, "f0": 0.2, "h1": 0.3, "i1": 0.01, "f1": 0.2}  # what a data sheet says
TRUTH = {"h0": 0.15, "i0": 0.018, "f0": 0.3, "h1": 0.4, "i1": 0.006, "f1": 0.12}
KP, KD, TRUE_KP = 20.0, 1.0, (21.0, 18.5)
ZERO, DELAY = (0.01, -0.015), 0.004
RATE, TICKS = 200.0, 1000.0  # Hz, of the log and of the drives
NOISE = 1e-4  # rad
MASS = 0.4  # kg, of the calf


def commands(t: Array) -> Array:
    """A chirp of each joint, with a pause at the start, (…, 2)."""
    s = np.maximum(t - 0.2, 0.0)
    phase = 2.0 * np.pi * (0.3 * s + 0.5 * 0.35 * s**2)
    return np.stack([0.5 * np.sin(phase), -1.2 + 0.6 * np.sin(1.3 * phase)], axis=-1)


def leg(folder: Path, mass: float = MASS, values: Mapping[str, float] = SHEET) -> vd.Machine:
    """The leg with the values of its data sheet, or others, its calf as heavy as stated."""
    file = folder / "leg.xml"
    file.write_text(LEG.format(**values, mass=mass))
    return vd.load_model(file, base="fixed")


def recorded(
    seconds: float, seed: int = 0, *, kd: float = KD, mass: float = MASS, limit: float = np.inf
) -> vd.Experiment:
    """What encoders of the true leg read, by MuJoCo; drives hold each command until the next, DELAY later, and give `limit` N·m at most."""
    model = mujoco.MjModel.from_xml_string(LEG.format(**TRUTH, mass=mass))
    data = mujoco.MjData(model)
    t = np.arange(int(seconds * RATE) + 1) / RATE
    asked, read = commands(t), np.zeros((len(t), 2))
    data.qpos[:] = asked[0] - ZERO
    per_tick, per_sample = round(1.0 / TICKS / model.opt.timestep), round(1.0 / RATE / model.opt.timestep)
    for step in range((len(t) - 1) * per_sample + 1):
        if step % per_sample == 0:
            read[step // per_sample] = data.qpos + ZERO
        if step % per_tick == 0:
            at = int(np.floor((step * model.opt.timestep - DELAY) * RATE + 1e-9))
            torque = np.array(TRUE_KP) * (asked[max(at, 0)] - data.qpos - ZERO) - kd * data.qvel
            data.ctrl[:] = np.clip(torque, -limit, limit)
        mujoco.mj_step(model, data)
    read += NOISE * np.random.default_rng(seed).normal(size=read.shape)
    channels = {f"command.{j}": asked[:, k] for k, j in enumerate(JOINTS)}
    channels |= {f"position.{j}": read[:, k] for k, j in enumerate(JOINTS)}
    return vd.Experiment.from_arrays(t, channels, dict.fromkeys(channels, "rad"), "leg")
