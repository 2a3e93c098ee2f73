"""Logs of serial arms made with Pinocchio: a motion in closed form, torques by its inverse dynamics, friction and rotors, noise on both.

τ = rnea(q, q̇, q̈) + Ia q̈ + h q̇ + fs sign(q̇), and what is recorded is q and τ with white noise. Nothing here calls the mechanics, the
signals or the simulators of veridyn; its types alone are used to hand over a machine without friction values and a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from strangers.pinocchio_oracle import TEN
from veridyn.model.elements.element import Element
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.rotations import Placement

Array = NDArray[np.float64]
GRAVITY = 9.81


@dataclass(frozen=True, kw_only=True)
class ArmLink:
    """A link that turns about z of its frame, which stands in the link before at `xyz` (m) and `rpy` (rad, fixed axes x, y, z).

    `mass` in kg, `centre` of mass in m, `moments` (xx, yy, zz) and `products` (xy, xz, yz) of inertia about that in kg*m^2; `viscous` and
    `coulomb` friction of its joint in N*m*s/rad and N*m, `rotor` inertia in kg*m^2; an element whose value is zero is not there.
    """

    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    mass: float
    centre: tuple[float, float, float]
    moments: tuple[float, float, float]
    products: tuple[float, float, float] = (0.0, 0.0, 0.0)
    viscous: float = 0.0
    coulomb: float = 0.0
    rotor: float = 0.0

    @property
    def inertia(self) -> pin.Inertia:
        xy, xz, yz = self.products
        xx, yy, zz = self.moments
        return pin.Inertia(self.mass, np.array(self.centre), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))

    @property
    def placement(self) -> pin.SE3:
        return pin.SE3(pin.rpy.rpyToMatrix(*self.rpy), np.array(self.xyz))


Arm = Sequence[ArmLink]
FRICTION = (("damper", "h", "viscous"), ("coulomb", "fs", "coulomb"), ("inertia", "Ia", "rotor"))


def pin_model(arm: Arm) -> pin.Model:
    """Joints q1, q2 … turn about z; gravity along −z of the ground."""
    model = pin.Model()
    model.gravity.linear = np.array([0.0, 0.0, -GRAVITY])
    for k, link in enumerate(arm):
        joint = model.addJoint(k, pin.JointModelRZ(), link.placement, f"q{k + 1}")
        model.appendBodyToJoint(joint, link.inertia, pin.SE3.Identity())
    return model


def machine(arm: Arm) -> Machine:
    """The arm for veridyn, bodies link1, link2 … and joints q1, q2 …; its parameters have no values."""
    bodies = []
    for k, link in enumerate(arm):
        at = Placement(link.placement.rotation, link.placement.translation)
        bodies.append(Body(f"link{k + 1}", f"link{k}" if k else "ground", placement=at, coordinate=f"q{k + 1}"))
    return Machine.of_bodies(bodies, name="arm", gravity=(0.0, 0.0, -GRAVITY), elements=elements(arm))


def elements(arm: Arm) -> list[Element]:
    """Friction and rotors of the joints q1, q2 …, without values."""
    return [
        Element(kind=kind, on={f"q{k + 1}": 1.0})
        for k, link in enumerate(arm)
        for kind, _, name in FRICTION
        if getattr(link, name) != 0.0
    ]


def truth(arm: Arm) -> dict[str, float]:
    """Parameters of :func:`machine` by name: ten of each body about its frame's origin by Pinocchio, and those of its elements."""
    out: dict[str, float] = {}
    for k, link in enumerate(arm):
        ten = link.inertia.toDynamicParameters()[list(TEN)]
        names = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
        out |= {f"{symbol}_link{k + 1}": float(x) for symbol, x in zip(names, ten, strict=True)}
    for _, symbol, name in FRICTION:
        out |= {f"{symbol}_q{k + 1}": getattr(link, name) for k, link in enumerate(arm) if getattr(link, name) != 0.0}
    return out


def urdf(arm: Arm, digits: int | None = None, name: str = "arm") -> str:
    """The arm as a URDF file: links link1, link2 …, joints q1, q2 …; angles with so many `digits` behind the point, all of them if None.

    A URDF has no place for rotors, and friction is left out too: add :func:`elements` to the machine that is read.
    """
    parts = ["<link name='world'/>"]
    for k, link in enumerate(arm, 1):
        (xx, yy, zz), (xy, xz, yz) = link.moments, link.products
        angles = " ".join(f"{a!r}" if digits is None else f"{a:.{digits}f}" for a in link.rpy)
        parts.append(
            f"<link name='link{k}'><inertial><origin xyz='{_numbers(link.centre)}'/><mass value='{link.mass!r}'/>"
            f"<inertia ixx='{xx!r}' ixy='{xy!r}' ixz='{xz!r}' iyy='{yy!r}' iyz='{yz!r}' izz='{zz!r}'/></inertial></link>"
            f"<joint name='q{k}' type='continuous'><parent link='{f'link{k - 1}' if k > 1 else 'world'}'/>"
            f"<child link='link{k}'/><origin rpy='{angles}' xyz='{_numbers(link.xyz)}'/><axis xyz='0 0 1'/></joint>"
        )
    return f"<robot name='{name}'>{''.join(parts)}</robot>"


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{x!r}" for x in values)


def fourier(
    rng: np.random.Generator, n: int, t: Array, *, frequency: float = 0.15, harmonics: int = 5, reach: float = 1.2
) -> tuple[Array, Array, Array]:
    """q, q̇ and q̈ (N, n) of random Fourier series about random centres: each joint sweeps `reach` rad to either side, slopes exact."""
    w = 2.0 * np.pi * frequency * np.arange(1, harmonics + 1)
    wt = np.outer(t, w)
    a, b = (rng.normal(size=(harmonics, n)) / np.arange(1, harmonics + 1)[:, None] for _ in range(2))
    q = np.sin(wt) @ a + np.cos(wt) @ b
    size = reach / np.abs(q).max(axis=0)
    qd = (np.cos(wt) * w) @ a - (np.sin(wt) * w) @ b
    qdd = -(np.sin(wt) * w**2) @ a - (np.cos(wt) * w**2) @ b
    return rng.uniform(-0.5, 0.5, n) + size * q, size * qd, size * qdd


def torques(arm: Arm, q: Array, qd: Array, qdd: Array) -> Array:
    """τ (N, n) of states (N, n), by Pinocchio and the closed laws of friction and rotors."""
    model = pin_model(arm)
    data = model.createData()
    rigid = np.array([pin.rnea(model, data, *state) for state in zip(q, qd, qdd, strict=True)]).reshape(q.shape)
    rotor, viscous, coulomb = (np.array([getattr(k, x) for k in arm]) for x in ("rotor", "viscous", "coulomb"))
    return rigid + rotor * qdd + viscous * qd + coulomb * np.sign(qd)


@dataclass(frozen=True, eq=False)
class Recording:
    """Times (N,), true states and torques (N, n), and what was `measured` of positions and torques."""

    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    measured_q: Array
    measured_tau: Array

    @property
    def log(self) -> Experiment:
        """The measured channels q.q1 … in rad and force.q1 … in N*m."""
        pairs = [("q", "rad", self.measured_q), ("force", "N*m", self.measured_tau)]
        values = {f"{word}.q{k + 1}": x for word, _, table in pairs for k, x in enumerate(table.T)}
        units = {f"{word}.q{k + 1}": unit for word, unit, table in pairs for k in range(table.shape[1])}
        return Experiment.from_arrays(self.t, values, units, "made with Pinocchio")


def recording(
    arm: Arm,
    rng: np.random.Generator,
    *,
    seconds: float = 20.0,
    rate: float = 200.0,
    encoder_noise: float = 2e-5,
    torque_noise: float = 0.1,
    frequency: float = 0.15,
    harmonics: int = 5,
    reach: float = 1.2,
) -> Recording:
    """A Fourier motion of the arm, recorded for `seconds` at `rate` Hz with white noise (rad, N*m)."""
    t = np.arange(round(seconds * rate)) / rate
    q, qd, qdd = fourier(rng, len(arm), t, frequency=frequency, harmonics=harmonics, reach=reach)
    tau = torques(arm, q, qd, qdd)
    noisy = (x + s * rng.normal(size=x.shape) for x, s in ((q, encoder_noise), (tau, torque_noise)))
    return Recording(t, q, qd, qdd, tau, *noisy)


def three_joints() -> list[ArmLink]:
    """A vertical joint and two parallel horizontal ones, friction in each: the arm of a first try."""
    right = np.pi / 2
    return [
        ArmLink(
            xyz=(0.0, 0.0, 0.3),
            mass=6.0,
            centre=(0.02, 0.01, -0.05),
            moments=(0.06, 0.05, 0.03),
            viscous=1.2,
            coulomb=1.5,
        ),
        ArmLink(
            rpy=(right, 0.0, 0.0),
            xyz=(0.1, 0.0, 0.1),
            mass=4.0,
            centre=(0.18, 0.01, 0.03),
            moments=(0.02, 0.07, 0.06),
            viscous=1.0,
            coulomb=1.2,
        ),
        ArmLink(
            xyz=(0.4, 0.0, 0.0),
            mass=2.5,
            centre=(0.15, -0.02, 0.02),
            moments=(0.01, 0.03, 0.03),
            viscous=0.6,
            coulomb=0.7,
        ),
    ]
