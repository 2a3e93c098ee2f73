"""Logs of an arm made with Pinocchio that has structure, or sensors with damage, of which its model knows nothing.

Each law is written down here in closed form: load friction μ |τ_j| sign(q̇_j), τ the torques of the rigid bodies; a flexible joint whose
motor stands at q + τ/k; friction that is larger while the gear is cold; a load on the last link from half of the log on; gravity that
leans; an encoder whose zero drifts; a force that lags or is late; friction whose bristles yield before they slide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.signal import lfilter

from strangers.pinocchio_logs import GRAVITY, Arm, ArmLink, Recording, fourier, pin_model, three_joints, torques

Array = NDArray[np.float64]
LOAD_CENTRE = (0.05, 0.02, 0.15)  # m, in the frame of the last link


def four_joints() -> list[ArmLink]:
    """The arm of three joints with a wrist across them."""
    wrist = ArmLink(
        rpy=(-np.pi / 2, 0.0, 0.0),
        xyz=(0.3, 0.0, 0.0),
        mass=1.2,
        centre=(0.03, 0.02, 0.08),
        moments=(0.006, 0.006, 0.004),
        viscous=0.2,
        coulomb=0.3,
    )
    return [*three_joints(), wrist]


class Machinery:
    """The true states and torques of a motion, which a change of the machine or its sensors may write over."""

    def __init__(self, arm: Arm, rng: np.random.Generator, seconds: float, rate: float) -> None:
        self.arm, self.t = arm, np.arange(round(seconds * rate)) / rate
        self.q, self.qd, self.qdd = fourier(rng, len(arm), self.t)
        self.tau = torques(arm, self.q, self.qd, self.qdd)
        self.measured_q = self.q.copy()

    @property
    def rigid(self) -> Array:
        """Torques of the rigid bodies alone."""
        bare = [replace(link, viscous=0.0, coulomb=0.0, rotor=0.0) for link in self.arm]
        return torques(bare, self.q, self.qd, self.qdd)

    def by(self, model: pin.Model) -> Array:
        data = model.createData()
        return np.array([pin.rnea(model, data, *x) for x in zip(self.q, self.qd, self.qdd, strict=True)])


Change = Callable[[Machinery, int, float], None]


def rotor(x: Machinery, j: int, size: float) -> None:
    x.tau[:, j] += size * x.qdd[:, j]


def load_friction(x: Machinery, j: int, size: float) -> None:
    x.tau[:, j] += size * np.abs(x.rigid[:, j]) * np.sign(x.qd[:, j])


def flexible(x: Machinery, j: int, size: float) -> None:
    """The motor, whose friction and encoder it is, stands before the joint's spring."""
    rigid, link = x.rigid[:, j], x.arm[j]
    x.measured_q[:, j] += size * rigid
    speed = np.gradient(x.measured_q[:, j], x.t)
    x.tau[:, j] = rigid + link.viscous * speed + link.coulomb * np.sign(speed)


def warm_up(x: Machinery, j: int, size: float) -> None:
    cold, link = np.exp(-x.t / (0.4 * x.t[-1])), x.arm[j]
    x.tau[:, j] += size * cold * (link.coulomb * np.sign(x.qd[:, j]) + link.viscous * x.qd[:, j])


def stribeck(x: Machinery, j: int, size: float) -> None:
    x.tau[:, j] += size * np.sign(x.qd[:, j]) / (1.0 + (x.qd[:, j] / 0.1) ** 2)


def leaning(x: Machinery, _j: int, size: float) -> None:
    upright, other = pin_model(x.arm), pin_model(x.arm)
    other.gravity.linear = GRAVITY * np.array([np.sin(size), 0.0, -np.cos(size)])
    x.tau += x.by(other) - x.by(upright)


def load(x: Machinery, _j: int, size: float) -> None:
    empty, loaded = pin_model(x.arm), pin_model(x.arm)
    more = pin.Inertia(size, np.array(LOAD_CENTRE), 1e-3 * size * np.eye(3))
    loaded.inertias[len(x.arm)] = loaded.inertias[len(x.arm)] + more
    x.tau += np.where(x.t[:, None] > 0.5 * x.t[-1], x.by(loaded) - x.by(empty), 0.0)


def drifting_encoder(x: Machinery, j: int, size: float) -> None:
    x.measured_q[:, j] += size * x.t / x.t[-1]


def scaled_force(x: Machinery, j: int, size: float) -> None:
    x.tau[:, j] *= 1.0 + size


def offset_force(x: Machinery, j: int, size: float) -> None:
    x.tau[:, j] += size


def asymmetric(x: Machinery, j: int, size: float) -> None:
    """Dry and viscous friction of 1 ± size times their values in the two directions."""
    x.tau[:, j] += size * (x.arm[j].coulomb + x.arm[j].viscous * np.abs(x.qd[:, j]))


def low_passed_force(x: Machinery, j: int, size: float) -> None:
    """A force behind a filter of first order, by its difference equation."""
    a = np.exp(-(x.t[1] - x.t[0]) / size)
    x.tau[:, j], _ = lfilter([1.0 - a], [1.0, -a], x.tau[:, j], zi=[a * x.tau[0, j]])


def late_force(x: Machinery, j: int, size: float) -> None:
    """A force that is `size` seconds late, friction and all."""
    x.tau[:, j] = np.interp(x.t - size, x.t, x.tau[:, j])


def bristles(x: Machinery, j: int, size: float) -> None:
    """Dry friction of the LuGre model (Canudas de Wit, Olsson, Åström, Lischinsky, IEEE TAC 40(3), 1995), integrated along the motion.

    ż = v − |v| z/ζ, F = F_c (z + τ ż)/ζ, with bristles that slide at the deflection ζ = `size` and a damping of τ = 1 ms.
    """

    def rate(t: float, z: Array) -> Array:
        v = float(np.interp(t, x.t, x.qd[:, j]))
        return v - abs(v) * z / size

    step, begin = float(x.t[1] - x.t[0]), [size * np.sign(x.qd[0, j])]
    # While it slides ż is zero: without a limit the steps would reach over reversals.
    z = solve_ivp(rate, (x.t[0], x.t[-1]), begin, "LSODA", x.t, rtol=1e-8, atol=1e-8 * size, max_step=step).y[0]
    v = x.qd[:, j]
    force = (z + 1e-3 * (v - np.abs(v) * z / size)) / size
    x.tau[:, j] += x.arm[j].coulomb * (force - np.sign(v))


def unchanged(_x: Machinery, _j: int, _size: float) -> None:
    """Nothing is otherwise."""


def untold(
    change: Change,
    j: int,
    size: float,
    seed: int,
    *,
    memory: float = 0.0,
    encoder_noise: float = 2e-5,
    torque_noise: float = 0.1,
    seconds: float = 20.0,
    rate: float = 200.0,
) -> Recording:
    """A log with one change; the noise of the torques is first-order autoregressive with `memory`."""
    rng = np.random.default_rng(seed)
    x = Machinery(four_joints(), rng, seconds, rate)
    change(x, j, size)
    noise = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], rng.normal(size=x.tau.shape), axis=0)
    measured = x.measured_q + encoder_noise * rng.normal(size=x.q.shape)
    return Recording(x.t, x.q, x.qd, x.qdd, x.tau, measured, x.tau + torque_noise * noise)
