"""The buggy by Pinocchio: joints, inertias and places typed again, loops as a KKT system of its own M, h and Jacobians.

Of veridyn only the names of coordinates are used, to compare. Springs, dampers, tyres and the anti-roll bar push at points and coordinates
through Pinocchio's Jacobians.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from strangers.tyre_formulas import on_flat_road

Array = NDArray[np.float64]
WORLD = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
TYRE = {
    "UNLOADED_RADIUS": 0.3683, "VERTICAL_STIFFNESS": 82700.0, "VERTICAL_DAMPING": 500.0, "FNOMIN": 4000.0,
    "BREFF": 6.1, "DREFF": 0.45, "FREFF": 0.01, "LMUX": 0.8, "LMUY": 0.8,
    "PCX1": 1.839, "PDX1": 1.1387, "PDX2": -0.12, "PEX1": 0.627, "PKX1": 18.886, "PKX2": -3.988, "PKX3": 0.215,
    "PCY1": 1.3223, "PDY1": 1.0141, "PDY2": -0.1227, "PEY1": -0.638, "PKY1": -19.797, "PKY2": 1.7999,
    "RBX1": 5.99, "RBX2": -8.26, "RCX1": 1.078, "RBY1": 6.22, "RBY2": 3.07, "RBY3": 0.016, "RCY1": 1.005,
    "PTX1": 1.85, "PTY1": 1.9, "PTY2": 2.25,
}  # fmt: skip
CG = np.array([-1.6375, 0.0, 0.7634])


@dataclass(frozen=True)
class Accelerations:
    """p̈ of the chassis' centre of gravity in the ground's axes, ω̇ in the chassis', q̈ by name, and the loads of the tyres."""

    linear: Array
    angular: Array
    joints: dict[str, float]
    loads: dict[str, float]
    slip_rates: dict[str, tuple[float, float]]


class PinBuggy:
    """Every body has its frame in the pose of the drawing: a place is given where it is there."""

    def __init__(self) -> None:
        m = self.model = pin.Model()
        self.joint: dict[str, int] = {}
        self.home: dict[int, Array] = {
            0: np.zeros(3)
        }  # where each joint's frame is in the drawing; all are parallel there
        self.coordinate: dict[str, int] = {}
        base = m.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
        self.home[base], self.joint["chassis"] = CG, base
        self.inertia(base, 1117.8, CG, np.diag([275.7, 853.4, 1100.0]))
        rack = self.add("rack", "chassis", pin.JointModelPY(), np.array([-0.137, 0.0, 0.452]), ["rack"])
        self.inertia(rack, 6.0, np.array([-0.137, 0.0, 0.452]), np.diag([0.08, 0.006, 0.08]))
        self.springs: list[tuple[int, int, float, float, float]] = []
        self.balls: list[tuple[int, int]] = []
        self.rods: list[tuple[int, int]] = []
        self.wheels: dict[str, int] = {}
        for side, sign in (("l", 1.0), ("r", -1.0)):
            self.front(f"f{side}", sign)
            self.rear(f"r{side}", sign)
        self.data = m.createData()

    def add(self, name: str, parent: str, kind: object, at: Array, coordinates: list[str]) -> int:
        before = self.joint[parent]
        place = pin.SE3(np.eye(3), at - self.home[before])
        j = self.joint[name] = self.model.addJoint(before, kind, place, name)
        self.home[j] = at
        first = self.model.joints[j].idx_v
        self.coordinate |= {c: first + k for k, c in enumerate(coordinates)}
        return j

    def inertia(self, j: int, mass: float, at: Array, about: Array) -> None:
        self.model.appendBodyToJoint(j, pin.Inertia(mass, at - self.home[j], about), pin.SE3.Identity())

    def point(self, body: str, at: Array) -> int:
        j = self.joint[body]
        frame = pin.Frame(f"{body} {at}", j, 0, pin.SE3(np.eye(3), at - self.home[j]), pin.FrameType.OP_FRAME)
        return self.model.addFrame(frame)

    def strut(self, a: str, pa: Array, b: str, pb: Array, k: float, free: float, c: float) -> None:
        self.springs.append((self.point(a, pa), self.point(b, pb), k, free, c))

    def wheel(self, c: str, carrier: str, at: Array, mass: float) -> None:
        j = self.add(f"wheel_{c}", carrier, pin.JointModelRY(), at, [f"spin_{c}"])
        self.inertia(j, mass, at, np.diag([0.753, 1.453, 0.753]))
        self.wheels[c] = self.point(f"wheel_{c}", at)

    def front(self, c: str, sign: float) -> None:
        def p(*x: float) -> Array:
            return np.array([x[0], sign * x[1], x[2] + 0.397])

        for name, front, back, ball, mass, at, moments in (
            ("upper", p(0.161, 0.136, 0.271), p(-0.087, 0.131, 0.227), p(-0.008, 0.571, 0.088), 3.69, p(0.015, 0.301, 0.262),
             (0.018, 0.018, 0.033)),
            ("lower", p(0.047, 0.112, 0.088), p(-0.246, 0.108, 0.053), p(0.016, 0.574, -0.082), 4.67, p(-0.073, 0.287, 0.0),
             (0.15, 0.15, 0.294)),
        ):  # fmt: skip
            axis = sign * (front - back) / np.linalg.norm(front - back)
            normal = np.cross(front - back, ball - back)
            normal /= np.linalg.norm(normal)
            about = moments[0] * np.eye(3) + (moments[2] - moments[0]) * np.outer(normal, normal)
            j = self.add(f"{name}_{c}", "chassis", pin.JointModelRevoluteUnaligned(axis), back, [f"{name}_{c}"])
            self.inertia(j, mass, at, about)
        ball = p(0.016, 0.574, -0.082)
        names = [f"knuckle_{c}_{word}" for word in ("yaw", "pitch", "roll")]
        j = self.add(f"upright_{c}", f"lower_{c}", pin.JointModelSphericalZYX(), ball, names)
        self.inertia(j, 30.2, p(0.0, 0.572, 0.0), np.diag([0.326, 0.383, 0.084]))
        self.wheel(c, f"upright_{c}", p(0.0, 0.616, 0.0), 34.0)
        upper = p(-0.008, 0.571, 0.088)
        self.balls.append((self.point(f"upper_{c}", upper), self.point(f"upright_{c}", upper)))
        self.rods.append(
            (self.point("rack", p(-0.137, 0.113, 0.055)), self.point(f"upright_{c}", p(-0.097, 0.533, -0.088)))
        )
        ends = p(-0.053, 0.166, 0.574), p(-0.002, 0.432, 0.186)
        self.strut("chassis", ends[0], f"lower_{c}", ends[1], 38800.0, 0.5562, 2970.0)

    def rear(self, c: str, sign: float) -> None:
        def p(*x: float) -> Array:
            return np.array([x[0], sign * x[1], x[2] + 0.07])

        hub, pivot = p(-2.715, 0.616, 0.335), p(-1.811, 0.413, 0.338)
        names = [f"arm_{c}_{word}" for word in ("yaw", "pitch", "roll")]
        j = self.add(f"arm_{c}", "chassis", pin.JointModelSphericalZYX(), pivot, names)
        self.inertia(j, 17.4, p(-2.264, 0.542, 0.196), slender(hub - pivot, 0.02, 0.6))
        self.wheel(c, f"arm_{c}", hub, 35.0)
        for link, inner, outer, mass in (
            ("upper", p(-2.780, 0.121, 0.488), p(-2.761, 0.612, 0.404), 1.08),
            ("lower", p(-2.781, 0.058, 0.356), p(-2.781, 0.615, 0.251), 1.22),
        ):
            u = (outer - inner) / np.linalg.norm(outer - inner)
            one = np.array([1.0, 0.0, 0.0]) - u[0] * u
            one *= sign / np.linalg.norm(one)
            two = np.cross(u, one)  # the second axis of the cross, normal to the link and to the first
            name = f"{link}_link_{c}"
            self.add(f"{name} cross", "chassis", pin.JointModelRevoluteUnaligned(one), inner, [f"{name}_lift"])
            j = self.add(name, f"{name} cross", pin.JointModelRevoluteUnaligned(two), inner, [f"{name}_sweep"])
            self.inertia(j, mass, (inner + outer) / 2.0, slender(outer - inner, 0.005, 0.05))
            self.balls.append((self.point(name, outer), self.point(f"arm_{c}", outer)))
        ends = p(-2.195, 0.353, 0.831), p(-2.367, 0.486, 0.368)
        self.strut("chassis", ends[0], f"arm_{c}", ends[1], 150000.0, 0.5530, 9340.0)

    def accelerations(
        self,
        position: Array,
        R: Array,
        velocity: Array,
        omega: Array,
        q: Mapping[str, float],
        qd: Mapping[str, float],
        slips: Mapping[str, tuple[float, float]],
        torques: Mapping[str, float],
        rack: float,
        f: float = 0.015,
    ) -> Accelerations:
        """With the chassis' `velocity` in the ground's axes, its `omega` in its own, and the acceleration of the rack."""
        m, d = self.model, self.data
        x, v = pin.neutral(m), np.zeros(m.nv)
        turn = pin.Quaternion(R)
        x[:7] = [*position, turn.x, turn.y, turn.z, turn.w]
        v[:6] = [*(R.T @ velocity), *omega]
        for name, k in self.coordinate.items():
            x[k + 1], v[k] = q[name], qd[name]
        M = pin.crba(m, d, x).copy()
        M = np.triu(M) + np.triu(M, 1).T
        right = -pin.nonLinearEffects(m, d, x, v)
        pin.forwardKinematics(m, d, x, v, np.zeros(m.nv))
        pin.computeJointJacobians(m, d, x)
        pin.updateFramePlacements(m, d)
        for c in self.wheels:
            k = self.coordinate[f"spin_{c}"]
            M[k, k] += 0.4
            right[k] += torques.get(c, 0.0)
        for a, b, stiffness, free, damping in self.springs:
            apart = d.oMf[a].translation - d.oMf[b].translation
            length = np.linalg.norm(apart)
            J = (apart / length) @ (self.jacobian(a)[:3] - self.jacobian(b)[:3])
            right -= J * (stiffness * (length - free) + damping * (J @ v))
        twist = np.zeros(m.nv)  # of the anti-roll bar: heights of the drop links over the lever
        for c, sign in (("rl", 1.0), ("rr", -1.0)):
            side = 1.0 if c == "rl" else -1.0
            twist[self.coordinate[f"arm_{c}_pitch"]] = sign * (1.976 - 1.811) / 0.0233
            twist[self.coordinate[f"arm_{c}_roll"]] = sign * side * (0.428 - 0.413) / 0.0233
        angles = np.concatenate([np.zeros(6), x[7:]])
        right -= twist * (135.0 * (twist @ angles) + 13.5 * (twist @ v))
        loads, rates = {}, {}
        for c, frame in self.wheels.items():
            J = self.jacobian(frame)
            moving = J @ v
            pose = d.oMf[frame]
            r = on_flat_road(pose.translation, pose.rotation[:, 1], moving[:3], moving[3:], slips[c], TYRE, f)
            right += J[:3].T @ r.force + J[3:].T @ (np.cross(r.foot - pose.translation, r.force) + r.moment)
            loads[c], rates[c] = r.load, r.rates
        rows, bias = [], []
        for a, b in self.balls:
            rows += list(self.jacobian(a)[:3] - self.jacobian(b)[:3])
            bias += list(self.drift(a) - self.drift(b))
        for a, b in self.rods:
            apart = d.oMf[a].translation - d.oMf[b].translation
            J = self.jacobian(a)[:3] - self.jacobian(b)[:3]
            rows.append(apart @ J)
            bias.append(apart @ (self.drift(a) - self.drift(b)) + (J @ v) @ (J @ v))
        rows.append(np.eye(m.nv)[self.coordinate["rack"]])
        bias.append(-rack)
        Jc = np.array(rows)
        K = np.block([[M, Jc.T], [Jc, np.zeros((len(Jc), len(Jc)))]])
        a = np.linalg.solve(K, np.concatenate([right, -np.array(bias)]))[: m.nv]
        linear = R @ (a[:3] + np.cross(omega, R.T @ velocity))
        return Accelerations(linear, a[3:6], {n: float(a[k]) for n, k in self.coordinate.items()}, loads, rates)

    def jacobian(self, frame: int) -> Array:
        return pin.getFrameJacobian(self.model, self.data, frame, WORLD)

    def drift(self, frame: int) -> Array:
        return pin.getFrameClassicalAcceleration(self.model, self.data, frame, WORLD).linear


def slender(along: Array, small: float, large: float) -> Array:
    """The inertia of a member: `small` about its own direction, `large` across."""
    u = along / np.linalg.norm(along)
    return large * np.eye(3) + (small - large) * np.outer(u, u)
