"""Machines as Pinocchio has them, and their torques. Nothing here calls veridyn.

A machine is described twice: by hand in a model file (modified Denavit-Hartenberg frames, standard parameters about their origins, each
body's z along its joint), and here in frames that are parallel to the ground's at zero, with joint axes along any of theirs, as drawings
have them. ``Joint.turned`` is the rotation between the two: a vector x in the file's frame of a body is R x here.

With motors θ = G q (G = 1 where joints are driven directly) and torques τ of the rigid bodies at the joints, those of the motors are

    τ_m = G⁻ᵀ (τ + Aᵀ (Ia A q̈ + h A q̇ + fs sign(A q̇)))

where A q are the motor angles in units of their joints (θ without its ratios), so that rotors and friction have the units of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

Array = NDArray[np.float64]
HERE = Path(__file__).resolve().parent
GRAVITY = 9.81
SYMBOLS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")  # of the file, in its order
LAWS = ("Ia", "h", "fs")  # rotor inertia, viscous and dry friction


@dataclass(frozen=True)
class Joint:
    """A joint at `at` (m) in the frame of the body before, about or along `axis`; `quarters`: turns of 90° about x to the file's frame."""

    at: tuple[float, float, float]
    axis: tuple[float, float, float]
    quarters: int
    slides: bool = False

    @property
    def turned(self) -> Array:
        c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[self.quarters % 4]
        return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


@dataclass(frozen=True, eq=False)
class Subject:
    """A machine: its model `file`, `joints`, the `names` of rotors and friction in the file, `combined` A (n, n) and gear `ratios` (n,).

    `noise`: standard deviation of the torque sensors in N*m at the joints, or at the motors where there are gears; `reach`: half-width of
    the motion of each joint (rad or m).
    """

    file: Path
    joints: tuple[Joint, ...]
    names: Mapping[str, tuple[str, ...]]
    noise: Array
    reach: Array
    combined: Array
    ratios: Array | None = None

    @property
    def gears(self) -> Array:
        """G of θ = G q."""
        return self.combined if self.ratios is None else self.ratios[:, None] * self.combined

    def ten(self, values: Mapping[str, float]) -> list[Array]:
        """Each body's parameters in the frames of this module and the order m, m c, xx xy yy xz yz zz of Pinocchio: linear in `values`."""
        out = []
        for k, joint in enumerate(self.joints, 1):
            xx, xy, xz, yy, yz, zz, mx, my, mz, m = (values[f"{s}{k}"] for s in SYMBOLS)
            R = joint.turned
            J = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
            h = R @ np.array([mx, my, mz])
            out.append(np.array([m, *h, J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2]]))
        return out

    def inertias(self, values: Mapping[str, float]) -> list[pin.Inertia]:
        """Each body's inertia in the frames of this module, from standard parameters by name."""
        return [pin.Inertia.FromDynamicParameters(ten) for ten in self.ten(values)]

    def pin_model(self, values: Mapping[str, float]) -> pin.Model:
        """The rigid bodies in Pinocchio."""
        model = pin.Model()
        model.gravity.linear = np.array([0.0, 0.0, -GRAVITY])
        kinds = {False: pin.JointModelRevoluteUnaligned, True: pin.JointModelPrismaticUnaligned}
        for k, (joint, inertia) in enumerate(zip(self.joints, self.inertias(values), strict=True)):
            place = pin.SE3(np.eye(3), np.array(joint.at))
            number = model.addJoint(k, kinds[joint.slides](np.array(joint.axis)), place, f"q{k + 1}")
            model.appendBodyToJoint(number, inertia, pin.SE3.Identity())
        return model

    def torques(self, values: Mapping[str, float], q: Array, qd: Array, qdd: Array) -> Array:
        """τ_m (N, n) of states (N, n), the rigid bodies by Pinocchio."""
        model = self.pin_model(values)
        data = model.createData()
        rigid = np.array([pin.rnea(model, data, *state) for state in zip(q, qd, qdd, strict=True)]).reshape(q.shape)
        Ia, h, fs = (np.array([values[name] for name in self.names[law]]) for law in LAWS)
        A = self.combined
        at_motors = Ia * (qdd @ A.T) + h * (qd @ A.T) + fs * np.sign(qd @ A.T)
        return np.asarray(np.linalg.solve(self.gears.T, (rigid + at_motors @ A).T).T, dtype=np.float64)


def physical(ten: Array) -> bool:
    """Whether some distribution of mass has these parameters, in the order of the file: a positive definite pseudo-inertia."""
    xx, xy, xz, yy, yz, zz, *h, m = (float(x) for x in ten)
    J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    P = np.block([[0.5 * np.trace(J) * np.eye(3) - J, np.array(h)[:, None]], [np.array([*h, m])]])
    return bool(np.linalg.eigvalsh(P)[0] > 0.0)


def drawn(subject: Subject, drawing: Mapping[str, float], spread: float, rng: np.random.Generator) -> dict[str, float]:
    """True parameters by name: those of the file, and normal errors with `spread` times the size of each as standard deviation.

    The size of a mass or an element is its value, of a body's moments the largest J of them, of its first moments √(M J). Errors e
    of a body are drawn until those of both e and −e are physical, so that machines are centred on their drawing.
    """
    out = dict(drawing)
    for k in range(1, len(subject.joints) + 1):
        mean = np.array([drawing[f"{s}{k}"] for s in SYMBOLS])
        J, M = np.abs(mean[:6]).max(), mean[9]
        size = spread * np.array([J] * 6 + [np.sqrt(J * M)] * 3 + [M])
        error = size * rng.standard_normal(10)
        while not (physical(mean + error) and physical(mean - error)):
            error = size * rng.standard_normal(10)
        out |= {f"{s}{k}": float(x) for s, x in zip(SYMBOLS, mean + error, strict=True)}
    for name in (name for law in LAWS for name in subject.names[law]):
        out[name] = drawing[name] * (1.0 + spread * float(rng.standard_normal()))
    return out


Z, Y, DOWN = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0)
ARM = Subject(
    file=HERE / "arm.yaml",
    joints=(
        Joint((0.0, 0.0, 0.35), Z, 0),
        Joint((0.1, 0.0, 0.0), Y, -1),
        Joint((0.45, 0.0, 0.0), Y, -1),
        Joint((0.05, 0.0, -0.4), DOWN, -2),
    ),
    names={law: tuple(f"{law}_q{k}" for k in range(1, 5)) for law in LAWS},
    noise=np.array([0.5, 0.6, 0.3, 0.06]),
    reach=np.array([1.5, 1.0, 1.2, 2.0]),
    combined=np.eye(4),
)
GEARED = Subject(
    file=HERE / "geared.yaml",
    joints=(
        Joint((0.0, 0.0, 0.0), Y, -1, slides=True),
        Joint((0.2, 0.0, 0.0), Z, 0),
        Joint((0.15, 0.0, 0.0), Y, -1),
    ),
    names={law: tuple(f"{law}{k}" for k in range(1, 4)) for law in LAWS},
    noise=np.array([0.05, 0.004, 0.003]),
    reach=np.array([0.6, 1.5, 1.2]),
    combined=np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]),
    ratios=np.array([40.0, 80.0, 60.0]),
)
SUBJECTS = {"arm": ARM, "geared": GEARED}
