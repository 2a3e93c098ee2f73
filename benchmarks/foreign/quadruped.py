"""A quadruped that hangs in the air, with known drives, simulated by MuJoCo: four legs of three joints, commands in and encoders out.

Each drive holds the command that it read last and works at its own ticks, a PD law on what its encoder reads. A tick lies `delay` after a
sample of the log, so that every command acts exactly `delay` after its time in the log. Truth is drawn from the priors that
``Drives`` assumes without deviations in the file, redrawn where it is more than LARGEST_DRAW deviations away:

    armature, viscous, Coulomb   file's value × e^(ln 4 · z)     gains   × e^(0.1 z)     encoder zero   0.02 z     delay   5 ms |z|

Kinds of dry friction, the same in all joints:

    coulomb   f sign(q̇), and it holds: it creeps by less than 1 mrad/s
    uneven    f (1 + a sin(w (q − c))) sign(q̇), which no term of the friction ladder is
    soft      MuJoCo's own by default, which creeps by up to some 0.2 rad/s where links are light
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

import veridyn as vd

Array = NDArray[np.float64]
Friction = Literal["coulomb", "uneven", "soft"]
LEGS, PARTS = ("FL", "FR", "RL", "RR"), ("hip", "thigh", "calf")
JOINTS = tuple(f"{leg}_{part}" for leg in LEGS for part in PARTS)
STEP = 2.5e-4  # s, of MuJoCo: by RK4, as symplectic steps act half a step early
RATE, TICKS = 200.0, 1000.0  # Hz, of the log and of the drives
KP, KD = 20.0, 1.5
FILE = {"damping": 0.3, "armature": 0.01, "frictionloss": 0.2}  # of every joint, as the model file states them
LARGEST_DRAW = 2.0  # standard deviations of the prior
NOISE = 2e-4  # rad, of an encoder
QUANTUM = 2.0 * np.pi / 2**14  # rad
REST_S = 0.3  # before the motion starts
CENTRE, REACH = (0.0, 0.8, -1.6), (0.35, 0.6, 0.6)  # rad, of commands of hip, thigh and calf
LOWEST_HZ, HIGHEST_HZ, TERMS = 0.2, 3.0, 6
UNEVEN = (0.4, 0.8)  # share of dry friction by which it varies along the way
# Pose, mass and inertia of the links of a small quadruped: place, centre, mass, principal moments.
LINKS = {
    "hip": ("{x} {y} 0", "-0.005 0 0", 0.68, "0.0009 0.0006 0.0005"),
    "thigh": ("0 {side} 0", "-0.004 -0.022 -0.033", 1.15, "0.0059 0.0058 0.0009"),
    "calf": ("0 0 -0.213", "0.006 -0.0006 -0.141", 0.24, "0.0015 0.0015 0.00005"),
}
# A held joint creeps with R f/b, b = 2/(d T), R = A (1 − d)/d: with T = 1 ms, d = 0.99 and A = 1/(0.01 kg·m²) by 0.5 mrad/s for 1 N·m.
HOLDING = 'solreffriction="0.001 1" solimpfriction="0.99 0.999"'
AXES = {"hip": "1 0 0", "thigh": "0 1 0", "calf": "0 1 0"}


@dataclass(frozen=True, eq=False)
class TrueDrives:
    """Of every joint in the order of JOINTS (12,), except `delay` of each leg (4,), s."""

    damping: Array
    armature: Array
    frictionloss: Array
    kp: Array
    kd: Array
    zero: Array
    delay: Array
    kind: Friction
    uneven: Array  # share a, 0 where friction is one number
    wave: Array  # w, 1/rad
    centre: Array  # c, rad

    def friction(self, q: Array) -> Array:
        """Dry friction at positions (12,)."""
        return self.frictionloss * (1.0 + self.uneven * np.sin(self.wave * (q - self.centre)))

    @property
    def named(self) -> dict[str, float]:
        """By the names that a fit has; dry friction only where it is Coulomb's."""
        found: dict[str, float] = {}
        for k, joint in enumerate(JOINTS):
            found |= {f"h_{joint}": self.damping[k], f"Ia_{joint}": self.armature[k]}
            if self.kind == "coulomb":
                found[f"fs_{joint}"] = self.frictionloss[k]
            found |= {f"{joint}_drive.{key}": getattr(self, key)[k] for key in ("kp", "kd", "zero")}
        return found | {f"{leg}.command_delay": float(x) for leg, x in zip(LEGS, self.delay, strict=True)}


def mjcf(values: Mapping[str, Array | float], friction: str = "", legs: Sequence[str] = LEGS) -> str:
    """The model file, with damping, armature and frictionloss of every joint or of all; `legs`: those that it has."""
    own = {key: np.broadcast_to(np.asarray(values[key], dtype=np.float64), len(JOINTS)) for key in FILE}
    text = [f'<mujoco model="quadruped"><compiler angle="radian"/><option timestep="{STEP}" integrator="RK4"/>']
    text.append("<worldbody>")
    for n, leg in enumerate(LEGS):
        if leg not in legs:
            continue
        side = 1.0 if leg[1] == "L" else -1.0
        for k, part in enumerate(PARTS):
            place, centre, mass, inertia = LINKS[part]
            at = place.format(x=0.19 if leg[0] == "F" else -0.19, y=0.047 * side, side=0.096 * side)
            constants = " ".join(f'{key}="{float(x[3 * n + k])!r}"' for key, x in own.items())
            text.append(f'<body name="{leg}_{part}_link" pos="{at}">')
            text.append(f'<joint name="{leg}_{part}" axis="{AXES[part]}" {constants} {friction}/>')
            text.append(f'<inertial pos="{centre}" mass="{mass}" diaginertia="{inertia}"/>')
        text.append("</body>" * len(PARTS))
    text.append("</worldbody><actuator>")
    text += [f'<motor joint="{leg}_{part}"/>' for leg in legs for part in PARTS]
    return "\n".join([*text, "</actuator></mujoco>"])


def machine(folder: Path, legs: Sequence[str] = LEGS) -> vd.Machine:
    """The quadruped with the values of its file: what an estimator is given. Its legs do not move each other."""
    file = folder / "quadruped.xml"
    file.write_text(mjcf(FILE, legs=legs))
    return vd.load_model(file, base="fixed")


def drawn(rng: np.random.Generator, kind: Friction) -> TrueDrives:
    """True drives about their priors; delays are whole steps of MuJoCo."""

    def z(count: int) -> Array:
        x = rng.standard_normal(count)
        while (far := np.abs(x) > LARGEST_DRAW).any():
            x[far] = rng.standard_normal(int(far.sum()))
        return x

    n = len(JOINTS)
    factors = {key: value * 4.0 ** z(n) for key, value in FILE.items()}
    return TrueDrives(
        **factors,
        kp=KP * np.exp(0.1 * z(n)),
        kd=KD * np.exp(0.1 * z(n)),
        zero=0.02 * z(n),
        delay=STEP * np.round(0.005 * np.abs(z(len(LEGS))) / STEP),
        kind=kind,
        uneven=rng.uniform(*UNEVEN, n) * float(kind == "uneven"),
        wave=rng.uniform(3.0, 6.0, n),
        centre=np.tile(CENTRE, len(LEGS)) + rng.uniform(-0.5, 0.5, n),
    )


def commands(rng: np.random.Generator, t: Array) -> Array:
    """Sums of sines (N, 12) with frequencies of their own about the middle pose, starting at rest."""
    shape = (TERMS, len(JOINTS))
    frequency = np.exp(rng.uniform(np.log(LOWEST_HZ), np.log(HIGHEST_HZ), shape))
    size = rng.uniform(0.5, 1.0, shape) / np.sqrt(frequency)
    size *= np.tile(REACH, len(LEGS)) / size.sum(axis=0)
    phase = rng.uniform(0.0, 2.0 * np.pi, shape)
    s = np.maximum(t - REST_S, 0.0)
    begin = np.minimum(s / REST_S, 1.0)[:, None]  # the motion grows from nothing
    waves = (size * np.sin(2.0 * np.pi * frequency * s[:, None, None] + phase)).sum(axis=1)
    return np.tile(CENTRE, len(LEGS)) + begin * waves


def recorded(
    truth: TrueDrives, seconds: float, rng: np.random.Generator, limit: Array | float = np.inf
) -> vd.Experiment:
    """What the encoders read while the drives follow commands with torques of at most `limit`, N*m, of each joint or all."""
    t = np.arange(int(seconds * RATE) + 1) / RATE
    asked = commands(rng, t)
    read, _ = driven(truth, asked, limit)
    read += NOISE * rng.standard_normal(read.shape)
    read = QUANTUM * np.round(read / QUANTUM)
    channels = {f"command.{j}": asked[:, k] for k, j in enumerate(JOINTS)}
    channels |= {f"position.{j}": read[:, k] for k, j in enumerate(JOINTS)}
    return vd.Experiment.from_arrays(t, channels, dict.fromkeys(channels, "rad"), "quadruped")


def driven(truth: TrueDrives, asked: Array, limit: Array | float = np.inf) -> tuple[Array, Array]:
    """Encoders (N, 12) at the samples of commands `asked` (N, 12), without noise, and what the laws of the drives ask for there, N*m."""
    model = mujoco.MjModel.from_xml_string(
        mjcf({key: getattr(truth, key) for key in FILE}, "" if truth.kind == "soft" else HOLDING)
    )
    data = mujoco.MjData(model)
    read, torques = np.zeros_like(asked), np.zeros_like(asked)
    data.qpos[:] = asked[0] - truth.zero
    per_tick, per_sample = round(1.0 / TICKS / STEP), round(1.0 / RATE / STEP)
    late = np.repeat(np.round(truth.delay / STEP).astype(int), len(PARTS))
    held, wanted = asked[0].copy(), np.zeros(len(JOINTS))
    for step in range((len(asked) - 1) * per_sample + 1):
        if step % per_sample == 0:
            read[step // per_sample] = data.qpos + truth.zero
            torques[step // per_sample] = wanted
            if step == (len(asked) - 1) * per_sample:
                break
        tick = (step - late) % per_tick == 0
        if tick.any():
            at = np.maximum((step - late) // per_sample, 0)
            held = np.where(tick, asked[at, np.arange(len(JOINTS))], held)
            torque = truth.kp * (held - data.qpos - truth.zero) - truth.kd * data.qvel
            wanted = np.where(tick, torque, wanted)
            data.ctrl[:] = np.clip(wanted, -limit, limit)
        if truth.kind == "uneven":
            model.dof_frictionloss[:] = truth.friction(data.qpos)
        mujoco.mj_step(model, data)
    return read, torques
