"""The humanoid of paper 004 as drawn (CAD, 6.7 kg) and as it stands there (8.0 kg), and its motions as a controller plans them.

It is a robot like the UT-mu2:magnum. The drawing is ``humanoid.yaml``. What a drawing forgets (battery, electronics, gears and cables) is
listed here: chosen, 1.3 kg in all, so that the drawing is 16.25 % light as in the paper. With the arms locked there are 13 links and 18
degrees of freedom, else 21 and 26.

A motion is walking by the zero-moment point, bending, or swinging a free leg. A plan is the pose of the torso and the angles of the legs
over time. Walking: footsteps give a path of the zero-moment point (ZMP), a linear inverted pendulum x − (h/g) ẍ = p gives the path of the
centre of mass (Kajita et al. 2003), the ZMP of the whole drawing, by inverse dynamics, corrects it, and the legs follow by closed inverse
kinematics. All numbers of the gait are chosen. Units: SI, rad.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_banded

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.machines import described
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.mechanics.tree.weld import welded
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion, Pose
from veridyn.signals.conditioning import derivative
from veridyn.spatial.inertia import from_centre

BASE = "torso"
FEET = ("right_foot", "left_foot")
LEG = ("hip_yaw", "hip_roll", "thigh", "shank", "ankle", "foot")
ARM = ("shoulder_pitch", "shoulder_roll", "upper_arm", "forearm")
SIDES = ("right", "left")
THIGH, SHANK, HIP = 0.12, 0.12, 0.035  # m, as in the file
SOLE = 0.04  # m, from the ankle down to the sole (chosen)
FOOT = ((-0.045, 0.075), (-0.027, 0.027))  # m: heel and toe, inner and outer edge, seen from the ankle (chosen)
HEIGHT = 0.540  # m, paper 004, Fig. 1
MASS, CAD_MASS = 8.0, 6.7  # kg, paper 004
# What the drawing forgets: link → mass in kg, centre in m in the link's frame, edges of its box in m. All chosen.
FORGOTTEN = {
    "torso": ((0.50, (-0.035, 0.006, 0.060), (0.04, 0.10, 0.07)), (0.30, (0.010, -0.008, 0.170), (0.05, 0.08, 0.04))),
    **{
        f"{side}_{part}": ((mass, centre, (0.03, 0.03, 0.03)),)
        for side in SIDES
        for part, mass, centre in (
            ("hip_yaw", 0.02, (0.010, 0.0, 0.020)),
            ("hip_roll", 0.03, (0.015, 0.0, -0.020)),
            ("thigh", 0.04, (0.040, 0.020, 0.0)),
            ("shank", 0.04, (0.070, 0.020, 0.0)),
            ("ankle", 0.02, (0.010, 0.015, 0.0)),
            ("foot", 0.03, (0.030, 0.0, -0.010)),
            ("shoulder_pitch", 0.015, (0.010, 0.0, 0.0)),
            ("shoulder_roll", 0.020, (0.010, 0.005, 0.0)),
            ("upper_arm", 0.020, (0.005, 0.0, 0.040)),
            ("forearm", 0.015, (0.050, 0.005, 0.0)),
        )
    },
}
# What is called typical: the size by which deviations of this robot's parameters are compared (chosen: a link of 0.3 kg and 0.1 m).
TYPICAL = {"J": 1e-3, "MS": 0.03, "M": 0.3}
STEP = 0.003  # s, one sample (paper 004, section 4)
STANCE = 0.262  # m, of the hips above the ground: knees slightly bent (chosen)
PEDESTAL = 0.05  # m, of the block a foot is strapped to, so that the other can swing below it (chosen)
EDGE = 12  # samples at each end of a plan whose derivatives know less: cut


def cad(arms: bool = False) -> Machine:
    """The robot as drawn: 13 links with the arms locked hanging, or all 21."""
    drawn = described("humanoid.yaml")
    sizes = np.array([TYPICAL["J"]] * 6 + [TYPICAL["MS"]] * 3 + [TYPICAL["M"]])
    sized = replace(drawn.parameters, typical=np.tile(sizes, len(drawn.links)))
    whole = drawn.with_parameters(sized)
    return whole if arms else welded(whole, {f"{side}_{part}": 0.0 for side in SIDES for part in ARM})


def machine(arms: bool = False) -> Machine:
    """The robot itself: the drawing and what it forgets."""
    drawn = cad(arms=True)
    X = drawn.parameters.values.reshape(-1, 10).copy()
    for link, parts in FORGOTTEN.items():
        for mass, centre, edges in parts:
            X[drawn.described.links.index(link)] += from_centre(mass, centre, box(mass, edges))
    whole = drawn.with_parameters(X.ravel())
    return whole if arms else welded(whole, {f"{side}_{part}": 0.0 for side in SIDES for part in ARM})


def box(mass: float, edges: tuple[float, float, float]) -> Array:
    """The inertia (3, 3) of an even box about its centre."""
    a, b, c = np.square(edges)
    return mass / 12.0 * np.diag([b + c, a + c, a + b])


def total_mass(machine: Machine) -> float:
    """kg, of all links together."""
    p = machine.parameters
    return float(sum(p.values[k] for k, (body, number) in enumerate(machine.columns) if body and number == 9))


@dataclass(frozen=True, eq=False)
class GaitPlan:
    """A motion as planned: poses of the torso and angles (N, n) in the machine's order, with rates by differences of high order.

    `velocity` and `acceleration` (N, 6) of the torso: of its origin in the world's axes, then angular in its own frame.
    """

    name: str
    pose: Pose
    velocity: Array
    acceleration: Array
    q: Array
    qd: Array
    qdd: Array

    def __len__(self) -> int:
        return len(self.pose)

    def motion(self, machine: Machine) -> Motion:
        """The plan as a motion without wrenches."""
        back = np.swapaxes(self.pose.rotation, 1, 2)
        specific = np.einsum("nij,nj->ni", back, self.acceleration[:, :3] - machine.gravity)
        base = BaseMotion(self.velocity[:, 3:], self.acceleration[:, 3:], specific)
        return Motion(self.pose.t, self.q, self.qd, self.qdd, base)


def clock(samples: int) -> Array:
    """Times of so many samples."""
    return np.arange(samples, dtype=np.float64) * STEP


def planned(name: str, t: Array, R: Array, p: Array, q: Array) -> GaitPlan:
    """A plan from poses and angles at a uniform clock; the ends are cut."""
    rate = 1.0 / float(t[1] - t[0])
    turned = np.swapaxes(R, 1, 2) @ derivative(R.reshape(len(t), 9), rate).reshape(-1, 3, 3)
    omega = np.stack([turned[:, 2, 1], turned[:, 0, 2], turned[:, 1, 0]], axis=1)
    velocity = np.concatenate([derivative(p, rate), omega], axis=1)
    acceleration = np.concatenate([derivative(p, rate, 2), derivative(omega, rate)], axis=1)
    cut = slice(EDGE, len(t) - EDGE)
    qd, qdd = derivative(q, rate), derivative(q, rate, 2)
    pose = Pose(t[cut] - t[EDGE], R[cut], p[cut])
    return GaitPlan(name, pose, velocity[cut], acceleration[cut], q[cut], qd[cut], qdd[cut])


def about(axis: int, angle: Array) -> Array:
    """Rotations (N, 3, 3) about x, y or z (0, 1, 2)."""
    c, s = np.cos(angle), np.sin(angle)
    i, k = (axis + 1) % 3, (axis + 2) % 3
    R = np.zeros((len(angle), 3, 3))
    R[:, axis, axis] = 1.0
    R[:, i, i] = R[:, k, k] = c
    R[:, k, i], R[:, i, k] = s, -s
    return R


def leg_angles(side: str, torso: tuple[Array, Array], foot: tuple[Array, Array]) -> Array:
    """The six angles (N, 6) that bring the ankle to `foot` = (R, p), axes forward, left, up: closed form (Kajita et al. 2014, section 2.5).

    `torso` and `foot`: rotations (N, 3, 3) and positions (N, 3) in the world.
    """
    R, p = torso
    Rf, pf = foot
    back = np.swapaxes(Rf, 1, 2)
    hip = p + R @ np.array([0.0, HIP if side == "left" else -HIP, 0.0])
    r = np.einsum("nij,nj->ni", back, hip - pf)
    C = np.linalg.norm(r, axis=1)
    if C.max() >= THIGH + SHANK:
        expected = f"less than {THIGH + SHANK:.3f} m from the hip"
        found = f"{C.max():.3f} m at sample {int(C.argmax())}"
        raise DataError("the foot is out of reach.", where=f"{side} leg", expected=expected, found=found)
    knee = np.arccos(np.clip((C**2 - THIGH**2 - SHANK**2) / (2 * THIGH * SHANK), -1.0, 1.0))
    lean = np.arcsin(np.clip(THIGH / C * np.sin(np.pi - knee), -1.0, 1.0))
    roll = np.arctan2(r[:, 1], r[:, 2])
    pitch = -np.arctan2(r[:, 0], np.hypot(r[:, 1], r[:, 2])) - lean
    H = np.swapaxes(R, 1, 2) @ Rf @ about(0, -roll) @ about(1, -knee - pitch)
    yaw = np.arctan2(-H[:, 0, 1], H[:, 1, 1])
    hip_roll = np.arctan2(H[:, 2, 1], -H[:, 0, 1] * np.sin(yaw) + H[:, 1, 1] * np.cos(yaw))
    hip_pitch = np.arctan2(-H[:, 2, 0], H[:, 2, 2])
    return np.stack([yaw, hip_roll, hip_pitch, knee, pitch, roll], axis=1)


def angles(machine: Machine, R: Array, p: Array, feet: dict[str, tuple[Array, Array]]) -> Array:
    """(N, n) for torso poses and the poses of the feet given; all other joints stay at zero."""
    q = np.zeros((len(p), machine.n))
    for side, foot in feet.items():
        q[:, [machine.coordinates.index(f"{side}_{part}") for part in LEG]] = leg_angles(side, (R, p), foot)
    return q


def smooth(s: Array) -> Array:
    """From 0 to 1 with two derivatives zero at both ends: 10 s³ − 15 s⁴ + 6 s⁵."""
    s = np.clip(s, 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def walk(
    model: Machine,
    steps: int = 10,
    step_time: float = 0.5,
    length: float = 0.03,
    lift: float = 0.025,
    foot_turn: float = 0.17,
    sway: float = 0.06,
    double: float = 0.1,
    rest: float = 0.8,
) -> GaitPlan:
    """So many steps forward of `step_time` s each, after standing and before standing, `rest` s each.

    `foot_turn` (rad): by how much the swinging foot pitches, and by half of it rolls and yaws; a foot that stays flat never turns, and
    its inertia then has no effect. `sway` (rad): by how much the torso yaws with the legs, and by half of it pitches and rolls; a torso
    that only shifts leaves parameters of its own in the dark. With both, walking excites all 94.
    """
    N = round((2 * rest + steps * step_time) / STEP) + 2 * EDGE
    t = clock(N)
    places, orientations, support = _footsteps(t, steps, step_time, length, lift, foot_turn, double, rest)
    now = (t - EDGE * STEP - rest) / step_time
    window = smooth(now) * smooth(steps - now)
    beat = np.pi * now  # one turn of the torso for two steps
    yaw, roll, pitch = (sway * window * w for w in (np.sin(beat), 0.5 * np.cos(beat), 0.5 * np.sin(2.0 * beat)))
    R = about(2, yaw) @ about(1, pitch) @ about(0, roll)
    offset = _centre(model, np.zeros((1, model.n)), np.eye(3)[None], np.zeros((1, 3)))[0]
    p = np.zeros((N, 3))
    p[:, 2] = STANCE
    feet = {side: (orientations[side], places[side]) for side in SIDES}
    height = STANCE + offset[2]
    aim, plan = support.copy(), None
    for _ in range(3):
        p[:, :2] = pendulum(aim, height) - offset[:2]
        plan = planned(f"{steps} steps", t, R, p.copy(), angles(model, R, p, feet))
        aim[EDGE : N - EDGE] += support[EDGE : N - EDGE] - centre_of_pressure(model, plan)
    assert plan is not None
    return plan


def bend(model: Machine, angle: float = 0.25, period: float = 4.0) -> GaitPlan:
    """Slow bending of the trunk about x, y and z, one after the other, both feet on the ground."""
    N = round(3 * period / STEP) + 2 * EDGE
    t = clock(N)
    start = EDGE * STEP
    p = np.tile([0.0, 0.0, STANCE - 0.012], (N, 1))
    R = np.tile(np.eye(3), (N, 1, 1))
    for axis in range(3):
        s = np.clip((t - start - axis * period) / period, 0.0, 1.0)
        R = R @ about(axis, angle * np.sin(2 * np.pi * s) * smooth(4 * s) * smooth(4 * (1 - s)))
    feet = {side: standing(N, side) for side in SIDES}
    return planned("bend", t, R, p, angles(model, R, p, feet))


def swing(
    model: Machine,
    clamped: str,
    rng: np.random.Generator,
    duration: float = 10.0,
    amplitude: float = 0.5,
    highest: float = 2.0,
    tones: int = 6,
) -> GaitPlan:
    """One foot strapped to a pedestal on the plate, all else free: every joint of both legs a sum of `tones` sines up to `highest` Hz.

    `amplitude` (rad) is the largest angle of each joint about its stance, half of it for the leg that carries the robot. Starts and
    ends at rest. The torso goes where the strapped foot's leg takes it.
    """
    N = round(duration / STEP) + 2 * EDGE
    t = clock(N)
    inside = np.clip((t - EDGE * STEP) / duration, 0.0, 1.0)
    window = smooth(5.0 * inside) * smooth(5.0 * (1.0 - inside))
    q = np.zeros((N, model.n))
    for side in SIDES:
        knee, share = (0.5, 0.5) if side == clamped else (0.9, 1.0)
        home = np.array([0.0, 0.0, -knee / 2, knee, -knee / 2, 0.0])
        for k, part in enumerate(LEG):
            frequency = rng.uniform(0.15, highest, tones)
            phase = rng.uniform(0.0, 2.0 * np.pi, tones)
            wave = np.sin(2.0 * np.pi * frequency * t[:, None] + phase).sum(axis=1)
            q[:, model.coordinates.index(f"{side}_{part}")] = (
                home[k] + share * amplitude * window * wave / np.abs(wave).max()
            )
    Rf, pf = _foot_in_torso(model, q, clamped)
    place = np.array([0.0, HIP if clamped == "left" else -HIP, SOLE + PEDESTAL])
    R = np.swapaxes(Rf, 1, 2)
    return planned(f"swing on the {clamped} foot", t, R, place - np.einsum("nij,nj->ni", R, pf), q)


def lowest(model: Machine, plan: GaitPlan, corners: Array) -> dict[str, float]:
    """For each foot, the height of the lowest of its `corners` (K, 3), axes forward, left, up from the ankle, over the plan."""
    out = {}
    for side in SIDES:
        R, p = _foot_in_torso(model, plan.q, side)
        R, p = plan.pose.rotation @ R, plan.pose.position + np.einsum("nij,nj->ni", plan.pose.rotation, p)
        out[side] = float((p[:, None] + np.einsum("nij,kj->nki", R, corners))[:, :, 2].min())
    return out


def _foot_in_torso(model: Machine, q: Array, side: str) -> tuple[Array, Array]:
    """Pose of a foot in axes forward, left, up (the foot's frame has x down, y left, z forward)."""
    R, p = body_pose(model, q, f"{side}_foot")
    return R @ np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), p


def standing(N: int, side: str) -> tuple[Array, Array]:
    place = np.array([0.0, HIP if side == "left" else -HIP, SOLE])
    return np.tile(np.eye(3), (N, 1, 1)), np.tile(place, (N, 1))


def _footsteps(
    t: Array, steps: int, T: float, length: float, lift: float, turn: float, double: float, rest: float
) -> tuple[dict[str, Array], dict[str, Array], Array]:
    """Ankles (N, 3) and orientations of both feet, and the wanted ZMP (N, 2)."""
    N, start = len(t), EDGE * STEP + rest
    places = {side: np.tile([0.0, HIP if side == "left" else -HIP, SOLE], (N, 1)) for side in SIDES}
    turns = {side: np.tile(np.eye(3), (N, 1, 1)) for side in SIDES}
    x = dict.fromkeys(SIDES, 0.0)
    via_t, via = [0.0, start - 0.3], [np.zeros(2), np.zeros(2)]
    for k in range(steps):
        side, other = ("right", "left") if k % 2 == 0 else ("left", "right")
        goal = x[other] + (length if 0 < k < steps - 1 else length / 2 if k == 0 else 0.0)
        begin = start + k * T + double / 2
        s = (t - begin) / (T - double)
        moving = (s > 0.0) & (s < 1.0)
        places[side][:, 0] += (goal - x[side]) * smooth(s)
        bump = np.where(moving, np.sin(np.pi * smooth(s)) ** 2, 0.0)
        places[side][:, 2] += lift * bump
        wave = np.where(moving, np.sin(2 * np.pi * smooth(s)) * bump, 0.0)
        turns[side] = (
            turns[side] @ about(2, 0.5 * turn * bump) @ about(1, 1.5 * turn * wave) @ about(0, -0.5 * turn * bump)
        )
        on = np.array([x[other], HIP if other == "left" else -HIP])
        via_t += [begin, begin + T - double]
        via += [on, on]
        x[side] = goal
    last = np.array([(x["left"] + x["right"]) / 2, 0.0])
    via_t += [start + steps * T + 0.3, t[-1]]
    via += [last, last]
    aim = np.array(via)
    return places, turns, np.stack([np.interp(t, via_t, aim[:, c]) for c in range(2)], axis=1)


def pendulum(zmp: Array, height: float) -> Array:
    """x with x − (h/g) ẍ = zmp and no speed at either end: one tridiagonal system."""
    a = height / 9.81 / STEP**2
    N = len(zmp)
    bands = np.zeros((3, N))
    bands[0, 1:] = bands[2, :-1] = -a
    bands[1] = 1.0 + 2.0 * a
    bands[1, 0] = bands[1, -1] = 1.0 + a
    return solve_banded((1, 1), bands, zmp)


def _centre(model: Machine, q: Array, R: Array, p: Array) -> Array:
    """(N, 3): the centre of mass in the world."""
    total, weight = np.zeros((len(q), 3)), 0.0
    X = model.parameters.values.reshape(-1, 10)
    for body, ten in zip(model.described.links, X, strict=True):
        Rb, pb = (
            body_pose(model, q, body) if body != BASE else (np.tile(np.eye(3), (len(q), 1, 1)), np.zeros((len(q), 3)))
        )
        total += ten[9] * pb + Rb @ ten[6:9]
        weight += ten[9]
    return p + np.einsum("nij,nj->ni", R, total / weight)


def centre_of_pressure(model: Machine, plan: GaitPlan) -> Array:
    """(N, 2): where on the ground a single force would hold the model along the plan."""
    wrench = inverse_dynamics(model, plan.motion(model), "base")
    force = np.einsum("nij,nj->ni", plan.pose.rotation, wrench[:, :3])
    moment = np.einsum("nij,nj->ni", plan.pose.rotation, wrench[:, 3:]) + np.cross(plan.pose.position, force)
    return np.stack([-moment[:, 1], moment[:, 0]], axis=1) / force[:, 2:3]
