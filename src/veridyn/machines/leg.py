"""A leg of a quadruped in the air, its drives unknown but for their data sheet: the machine of ``veridyn demo drives``.

What happens is simulated by equations written by hand here, which share nothing with those that identify it: two links in a plane by
Lagrange, half a step of drift before and after each impulse, dry friction as impulses between bounds. A tick of a drive reads its own
encoder and a command that is some milliseconds old; a log has what was commanded and what encoders read, 200 times a second, and no
torques. Units: rad, N*m, s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.machines import described
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent

JOINTS = ("thigh", "calf")
RATE, TICK, STEP = 200.0, 1e-3, 5e-4  # Hz of the log; s of a drive and of the simulation
NOISE, QUANTUM = 5e-5, 2.0 * math.pi / 16384.0  # rad, of an encoder
GRAVITY, SHANK = 9.81, 0.21
THIGH = (1.15, -0.004, -0.035, 0.0060)  # kg, m, m, kg*m^2 about the centre, as leg.yaml has them
CALF = (0.28, 0.006, -0.125, 0.0022)
ROUNDS = 4  # of the impulses of friction, which two joints settle in


@dataclass(frozen=True)
class TrueDrive:
    """One drive as it is. Its dry friction is `dry` + `slope` (q − `middle`)."""

    kp: float
    kd: float
    armature: float
    viscous: float
    dry: float
    zero: float
    slope: float = 0.0
    middle: float = 0.0


DRIVES = (
    TrueDrive(kp=21.0, kd=0.95, armature=0.019, viscous=0.16, dry=0.31, zero=0.009),
    TrueDrive(kp=18.7, kd=1.04, armature=0.0145, viscous=0.06, dry=0.62, zero=-0.012, slope=0.35, middle=-1.6),
)
DELAY = 0.004  # s, of commands: a whole number of ticks


@dataclass(frozen=True, eq=False)
class LegDemo:
    """One demonstration: the machine of the data sheet, a log of `fitted` seconds and more, one of another motion, and what is true."""

    model: Machine
    training: Experiment
    validation: Experiment
    fitted: float
    truth: dict[str, float]


def leg() -> Machine:
    """The leg of leg.yaml, with the drives of its data sheet."""
    return described("leg.yaml")


def demonstration(rng: np.random.Generator, quick: bool = False, progress: Progress = silent) -> LegDemo:
    """Two recordings of the true leg. What lies behind `fitted` seconds of the first is faster motion than what lies before."""
    fitted, end = (6.0, 9.0) if quick else (12.0, 20.0)
    logs = {}
    for k, (name, seconds) in enumerate((("training", end), ("validation", 4.0 if quick else 8.0))):
        progress("moving the leg", float(k), 2.0)
        t = np.arange(round(seconds * RATE) + 1) / RATE
        logs[name] = _recorded(name, t, _motion(t, fitted if name == "training" else 0.0, rng), rng)
    read = logs["training"]
    return LegDemo(leg(), read, logs["validation"], fitted, _truth(read, fitted))


def _motion(t: Array, slow: float, rng: np.random.Generator) -> Array:
    """(K, 2): sweeps up to 2.5 Hz with pauses for `slow` seconds, then sines of random phases, from and to rest."""
    s = np.clip(t - 0.3, 0.0, None)
    rise = np.clip(s / 0.5, 0.0, 1.0) * np.clip((slow - 0.5 - t) / 0.5, 0.0, 1.0)
    phase = 2.0 * math.pi * (0.15 * s + 0.5 * 2.35 / max(slow, 1.0) * s**2)
    out = np.stack([0.9 + 0.45 * rise * np.sin(phase), -1.6 + 0.5 * rise * np.sin(1.31 * phase)], axis=1)
    later = np.clip(t - slow - 0.2, 0.0, None)
    ramp = np.clip(later / 0.5, 0.0, 1.0)[:, None]
    f = np.array([0.4, 0.9, 1.7, 2.9])
    phases = rng.uniform(0.0, 2.0 * math.pi, (2, 4))
    waves = np.sin(2.0 * math.pi * later[:, None, None] * f + phases) / np.sqrt(f)
    return out + ramp * waves.sum(axis=2) * np.array([0.16, 0.2])


def _recorded(name: str, t: Array, asked: Array, rng: np.random.Generator) -> Experiment:
    zeros = np.array([d.zero for d in DRIVES])
    read = _simulated(asked) + zeros + NOISE * rng.standard_normal(asked.shape)
    read = QUANTUM * np.round(read / QUANTUM)
    channels = {f"command.{j}": asked[:, k] for k, j in enumerate(JOINTS)}
    channels |= {f"position.{j}": read[:, k] for k, j in enumerate(JOINTS)}
    return Experiment.from_arrays(t, channels, dict.fromkeys(channels, "rad"), name)


def _simulated(asked: Array) -> Array:
    """Angles (K, 2) of the true leg at the samples of its commands, from rest where the first command is."""
    a, b = DRIVES
    q1, q2 = asked[0, 0] - a.zero, asked[0, 1] - b.zero
    v1 = v2 = u1 = u2 = 0.0
    per_tick, per_sample = round(TICK / STEP), round(1.0 / RATE / STEP)
    out = np.empty_like(asked)
    for step in range((len(asked) - 1) * per_sample + 1):
        if step % per_sample == 0:
            out[step // per_sample] = q1, q2
        if step % per_tick == 0:
            old = max(int((step * STEP - DELAY) * RATE + 1e-9), 0)
            u1 = a.kp * (asked[old, 0] - q1 - a.zero) - a.kd * v1
            u2 = b.kp * (asked[old, 1] - q2 - b.zero) - b.kd * v2
        q1, q2 = q1 + 0.5 * STEP * v1, q2 + 0.5 * STEP * v2
        M11, M12, M22, h1, h2 = _equations(q1, q2, v1, v2)
        p1, p2 = STEP * (u1 - h1 - a.viscous * v1), STEP * (u2 - h2 - b.viscous * v2)
        M11, M22 = M11 + a.armature, M22 + b.armature
        r1 = STEP * (a.dry + a.slope * (q1 - a.middle))
        r2 = STEP * (b.dry + b.slope * (q2 - b.middle))
        # Impulses of friction within ±r that stop a joint where they can: projected Gauss and Seidel.
        P1, P2 = M11 * v1 + M12 * v2 + p1, M12 * v1 + M22 * v2 + p2
        det = M11 * M22 - M12 * M12
        f1 = f2 = 0.0
        for _ in range(ROUNDS):
            f1 = min(max(M12 / M22 * (P2 + f2) - P1, -r1), r1)
            f2 = min(max(M12 / M11 * (P1 + f1) - P2, -r2), r2)
        v1 = (M22 * (P1 + f1) - M12 * (P2 + f2)) / det
        v2 = (M11 * (P2 + f2) - M12 * (P1 + f1)) / det
        q1, q2 = q1 + 0.5 * STEP * v1, q2 + 0.5 * STEP * v2
    return out


def _equations(q1: float, q2: float, v1: float, v2: float) -> tuple[float, float, float, float, float]:
    """Mass matrix and bias of two links in a plane, without drives: T and V of the angles q1 and q1 + q2 from the ground."""
    (m1, x1, y1, i1), (m2, x2, y2, i2) = THIGH, CALF
    A = i1 + m1 * (x1 * x1 + y1 * y1) + m2 * SHANK * SHANK
    B = i2 + m2 * (x2 * x2 + y2 * y2)
    s, c = math.sin(q2), math.cos(q2)
    C, slope = -m2 * SHANK * (x2 * s + y2 * c), -m2 * SHANK * (x2 * c - y2 * s)
    w = v1 + v2
    high = GRAVITY * ((m1 * x1) * math.cos(q1) - (m1 * y1 - m2 * SHANK) * math.sin(q1))
    low = GRAVITY * m2 * (x2 * math.cos(q1 + q2) - y2 * math.sin(q1 + q2))
    h1, h2 = slope * w * w + high, low - slope * v1 * v1
    return A + 2.0 * C + B, C + B, B, h1 + h2, h2


def _truth(log: Experiment, fitted: float) -> dict[str, float]:
    """The same numbers as an identification names them.

    Friction that changes along the way is dry + slope (q − middle) of the true angle q, about the middle of what the encoder read over
    the fitted samples: the zero of the encoder is not known when that law is written down.
    """
    out = {"thigh.command_delay": DELAY}
    for joint, d in zip(JOINTS, DRIVES, strict=True):
        read = log[f"position.{joint}"]
        q = read.values[read.t < fitted]
        middle, half = 0.5 * (q.max() + q.min()), 0.5 * (q.max() - q.min())
        out |= {
            f"Ia_{joint}": d.armature,
            f"h_{joint}": d.viscous,
            f"fs_{joint}": d.dry + d.slope * (middle - d.middle),
        }
        out |= {f"{joint}_drive.kp": d.kp, f"{joint}_drive.kd": d.kd, f"{joint}_drive.zero": d.zero}
        out |= {f"fq_{joint}": d.slope * half}
    return out
