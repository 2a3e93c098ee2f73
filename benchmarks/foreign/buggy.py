"""The buggy of paper 003 by MuJoCo: bodies, loops, springs and sensors of that engine, tyres by published formulas. Nothing calls veridyn.

The vehicle is typed again from its drawing, in frames that are parallel to the ground's there. Loops are `connect` and tendon equalities
of MuJoCo, springs and dampers its tendons, the rack is carried along by an armature too heavy to be pushed back. What another workshop
would do otherwise is done otherwise:

- the lateral slip of a tyre is that of the wheel's centre, not of the contact, so that rolling does not drag the tyre sideways;
- the load's rate is that of the centre's height alone;
- the drop links of the anti-roll bar push along the chassis' z at their own places, whatever the arms' angles are;
- loops are soft, as MuJoCo has them, and the step is half implicit, at a millisecond.

Sensors are MuJoCo's own (accelerometer and gyroscope at a site, `framepos` and `framelinvel` at the antenna, wheel angles as joint angles).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as Xml

import mujoco
import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
STEP = 1e-3  # s
EVERY = 2  # steps from one sample to the next: 500 Hz
RATE = 1.0 / (STEP * EVERY)
GPS_EVERY = 10  # samples from one fix to the next: 50 Hz
SETTLING_S = (
    4.0  # s, after which the slowest mode, 1.33 Hz at a damping ratio near .35, has decayed to 1e-5 of its size
)
RACK_ARMATURE = 1e6  # kg, by which the rack keeps to its course whatever pushes it
CORNERS = ("fl", "fr", "rl", "rr")
CG = np.array([-1.6375, 0.0, 0.7634])
FRONT, REAR = np.array([0.0, 0.0, 0.397]), np.array([0.0, 0.0, 0.07])
RACK = np.array([-0.137, 0.0, 0.452])
UNIT, ANTENNA = np.array([-1.55, 0.0, 0.80]), np.array([-1.60, 0.0, 1.60])
ROAD = 0.083 - 0.0097  # m: between the contacts of the two axles as drawn, from which the vehicle is let down
R0, KZ, CZ, FZ0, MU = 0.3683, 82.7e3, 500.0, 4000.0, 0.8
BAR_STIFFNESS, BAR_DAMPING, BAR_LEVER = 135.0, 13.5, 0.0233  # N*m/rad, N*m*s/rad, m
NOISE = {"gps": 0.02, "gps_velocity": 0.1, "gyro": 2e-4, "accelerometer": 0.5}  # m, m/s, rad/s, m/s^2
HOLE = 2.0 * np.pi / 40  # rad, from one hole of a wheel to the next


@dataclass(frozen=True)
class Vehicle:
    """One vehicle: rolling resistance, factors on the longitudinal and lateral stiffness of each tyre, and on the mass of the chassis.

    `toe` (rad): by which the hubs are turned about z, in the order of CORNERS.
    """

    resistance: float = 0.015
    along: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    across: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    chassis: float = 1.0
    toe: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Vehicle:
        """Stiffness of every tyre within 10 %, mass within 2 %, rolling resistance between .010 and .020, all uniform."""
        stiff = 1.0 + 0.1 * rng.uniform(-1.0, 1.0, (2, 4))
        along, across = (tuple(row) for row in stiff.tolist())
        return cls(float(rng.uniform(0.010, 0.020)), along, across, 1.0 + 0.02 * float(rng.uniform(-1.0, 1.0)))


@dataclass(frozen=True)
class Manoeuvre:
    """Seconds, torque on each rear wheel (N*m) at a time, and where the rack goes: times (s), at least a ramp apart, and places (m).

    `muted`: between which times (s) the receiver is silent.
    """

    duration: float
    turns: tuple[tuple[float, float], ...] = ()
    ramp: float = 0.2
    torque: Callable[[float], float] = field(default=lambda t: 100.0)
    muted: tuple[float, float] | None = None

    def rack(self, t: float) -> tuple[float, float, float]:
        """Place, speed and acceleration of the rack: 10 s³ − 15 s⁴ + 6 s⁵ from one place to the next."""
        before, began, after = 0.0, 0.0, 0.0
        for time, place in self.turns:
            if t >= time:
                before, began, after = after, time, place
        way, s, T = after - before, min((t - began) / self.ramp, 1.0), self.ramp
        return (
            before + way * s**3 * (10.0 - 15.0 * s + 6.0 * s * s),
            way * 30.0 * s * s * (1.0 - s) ** 2 / T,
            way * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / T**2,
        )


@dataclass(frozen=True, eq=False)
class Drive:
    """What happened at times t (N,): place and velocity (N, 3) of the chassis' centre of gravity, yaw and yaw rate (N,), exact readings.

    `exact`: name → (N, 3) of the inertial unit and the receiver, (N,) of the wheels' angles; `loads` (N, 4) of the tyres in N; `inputs`:
    name → (N,) of torques and rack.
    """

    manoeuvre: Manoeuvre
    t: Array
    place: Array
    velocity: Array
    yaw: Array
    yaw_rate: Array
    loads: Array
    exact: Mapping[str, Array]
    inputs: Mapping[str, Array]

    def readings(self, rng: np.random.Generator) -> dict[str, tuple[Array, Array]]:
        """Times and values by channel, with the noise of paper 003; angles of the wheels are rounded to their holes."""
        out: dict[str, tuple[Array, Array]] = {}
        gone = self.manoeuvre.muted
        for name, values in self.exact.items():
            if name.startswith("angle"):
                out[name] = self.t, np.round(values / HOLE) * HOLE
                continue
            noisy = values + NOISE[name] * rng.standard_normal(values.shape)
            heard = np.ones(len(self.t), dtype=bool)
            if name.startswith("gps"):
                heard = np.arange(len(self.t)) % GPS_EVERY == 0
                if gone is not None:
                    heard &= (self.t < gone[0]) | (self.t >= gone[1])
            out |= {f"{name}.{axis}": (self.t[heard], noisy[heard, k]) for k, axis in enumerate("xyz")}
        return out


@njit(cache=False)
def tyre_forces(
    wheels: Array, spin: Array, slips: Array, along: Array, across: Array, resistance: float, road: float, out: Array
) -> Array:
    """Forces and moments about the wheels' centres (4, 6) into `out`; returns the loads (4,).

    `wheels` (4, 12): centre, velocity, angular rate and axis of each; PAC2002 without shifts and camber (Pacejka, 4.E9 to 4.E67). The
    lagging `slips` (4, 2) are moved on by a step first, and the forces are those of the slips after it: of two coupled rates, wheel and
    slip, one is taken forwards and one backwards, which keeps their oscillation (13 Hz) from growing.
    """
    loads = np.zeros(4)
    for k in range(4):
        ax, ay, az = wheels[k, 9], wheels[k, 10], wheels[k, 11]
        level = np.hypot(ax, ay)
        ux, uy = ay / level, -ax / level  # ahead, in the road
        lx, ly = ax / level, ay / level  # to the left
        # From the centre to the ground within the wheel's plane: down is the axis crossed with ahead.
        dx, dy, dz = -az * uy, az * ux, ax * uy - ay * ux
        radius = -(wheels[k, 2] - road) / dz
        pressed = R0 - radius
        if pressed <= 0.0:
            out[k, :] = 0.0
            continue
        fz = max(0.0, KZ * pressed - CZ * wheels[k, 5])
        r = KZ * pressed / FZ0
        rolling = R0 - FZ0 / KZ * (0.45 * np.arctan(6.1 * r) + 0.01 * r)
        vx = wheels[k, 3] * ux + wheels[k, 4] * uy
        vy = wheels[k, 3] * lx + wheels[k, 4] * ly
        speed = max(abs(vx), 1.0)
        df = (fz - FZ0) / FZ0
        relaxed_x = max(1.85 * R0 * fz / FZ0, 0.05)
        relaxed_y = max(1.9 * R0 * np.sin(2.0 * np.arctan(fz / (2.25 * FZ0))), 0.05)
        slips[k, 0] += STEP * (spin[k] * rolling - vx - speed * slips[k, 0]) / relaxed_x
        slips[k, 1] += STEP * (vy - speed * slips[k, 1]) / relaxed_y
        loads[k] = fz
        kappa, alpha = slips[k, 0], np.arctan(slips[k, 1])
        fx, fy = 0.0, 0.0
        if fz > 0.0:
            mux, muy = MU * (1.1387 - 0.12 * df), MU * (1.0141 - 0.1227 * df)
            kx = fz * (18.886 * along[k] - 3.988 * df) * np.exp(0.215 * df)
            ky = -19.797 * across[k] * FZ0 * np.sin(2.0 * np.arctan(fz / (1.7999 * FZ0)))
            bx, by = kx / (1.839 * mux * fz) * kappa, ky / (1.3223 * muy * fz) * alpha
            fx = mux * fz * np.sin(1.839 * np.arctan(bx - 0.627 * (bx - np.arctan(bx))))
            fy = muy * fz * np.sin(1.3223 * np.arctan(by + 0.638 * (by - np.arctan(by))))
            fx *= np.cos(1.078 * np.arctan(5.99 * np.cos(np.arctan(-8.26 * kappa)) * alpha))
            fy *= np.cos(1.005 * np.arctan(6.22 * np.cos(np.arctan(3.07 * (alpha - 0.016))) * kappa))
        gx, gy = fx * ux + fy * lx, fx * uy + fy * ly
        px, py, pz = radius * dx, radius * dy, radius * dz
        roll = -resistance * fz * R0 * np.tanh(spin[k] * R0 / 0.1)
        out[k, 0], out[k, 1], out[k, 2] = gx, gy, fz
        out[k, 3] = py * fz - pz * gy + roll * ax
        out[k, 4] = pz * gx - px * fz + roll * ay
        out[k, 5] = px * gy - py * gx + roll * az
    return loads


@njit(cache=False)
def bar_forces(z: Array, zd: Array, up: Array, points: Array, centres: Array) -> Array:
    """Forces and moments (3, 6) on the rear arms and the chassis: drop links push the arms along the chassis' z, and the chassis back.

    z, ż (2,): heights of the links' `points` (2, 3) in the chassis' frame; `centres` (3, 3) of mass of the arms and the chassis.
    """
    out = np.zeros((3, 6))
    push = (BAR_STIFFNESS * (z[0] - z[1]) + BAR_DAMPING * (zd[0] - zd[1])) / BAR_LEVER**2
    for k in range(2):
        force = (-push if k == 0 else push) * up
        for body, sign in ((k, 1.0), (2, -1.0)):
            p, F = points[k] - centres[body], sign * force
            out[body, :3] += F
            out[body, 3] += p[1] * F[2] - p[2] * F[1]
            out[body, 4] += p[2] * F[0] - p[0] * F[2]
            out[body, 5] += p[0] * F[1] - p[1] * F[0]
    return out


class MujocoBuggy:
    """One vehicle in MuJoCo, standing still on its wheels at the origin and facing along x."""

    def __init__(self, vehicle: Vehicle) -> None:
        self.vehicle = vehicle
        self.model: Any = mujoco.MjModel.from_xml_string(mjcf(vehicle))
        self.data: Any = mujoco.MjData(self.model)
        named, kind = mujoco.mj_name2id, mujoco.mjtObj
        self.bodies = [named(self.model, kind.mjOBJ_BODY, f"wheel_{c}") for c in CORNERS]
        self.held = [named(self.model, kind.mjOBJ_BODY, name) for name in ("arm_rl", "arm_rr", "chassis")]
        self.chassis = self.held[2]
        joints = [named(self.model, kind.mjOBJ_JOINT, f"spin_{c}") for c in CORNERS]
        rack = named(self.model, kind.mjOBJ_JOINT, "rack")
        self.spin_q, self.spin_v = self.model.jnt_qposadr[joints], self.model.jnt_dofadr[joints]
        self.rack_q, self.rack_v = int(self.model.jnt_qposadr[rack]), int(self.model.jnt_dofadr[rack])
        self.sites = [named(self.model, kind.mjOBJ_SITE, f"bar_{c}") for c in ("rl", "rr")]
        self.at = {
            named_sensor: slice(int(self.model.sensor_adr[k]), int(self.model.sensor_adr[k] + self.model.sensor_dim[k]))
            for k in range(self.model.nsensor)
            if (named_sensor := mujoco.mj_id2name(self.model, kind.mjOBJ_SENSOR, k))
        }
        self.at["bar"] = slice(self.at["bar_rl"].start, self.at["bar_rate_rr"].stop)
        self.slips, self.forces = np.zeros((4, 2)), np.zeros((4, 6))
        self.stiffness = np.array(vehicle.along), np.array(vehicle.across)
        self.loads = np.zeros(4)
        still = Manoeuvre(SETTLING_S, torque=lambda t: 0.0)
        for k in range(round(SETTLING_S / STEP)):
            self.prepare(still, k * STEP)
            mujoco.mj_step2(self.model, self.data)
        self.data.qpos[:2], self.data.qvel[:], self.slips[:] = 0.0, 0.0, 0.0
        self.data.qpos[self.spin_q], self.data.time = 0.0, 0.0

    def prepare(self, how: Manoeuvre, t: float) -> None:
        """Positions and velocities of this moment, and what acts from now on."""
        d = self.data
        place, rate, acceleration = how.rack(t)
        d.qpos[self.rack_q], d.qvel[self.rack_v] = place, rate
        mujoco.mj_step1(self.model, d)
        d.qfrc_applied[self.rack_v] = RACK_ARMATURE * acceleration
        d.ctrl[:] = how.torque(t)
        wheels = d.sensordata[:48].reshape(4, 12)
        self.loads = tyre_forces(
            wheels, d.qvel[self.spin_v], self.slips, *self.stiffness, self.vehicle.resistance, ROAD, self.forces
        )
        d.xfrc_applied[self.bodies] = self.forces
        bar = d.sensordata[self.at["bar"]].reshape(2, 6)
        up, points = d.xmat[self.chassis, 2::3], d.site_xpos[self.sites]
        d.xfrc_applied[self.held] = bar_forces(bar[:, 2], bar[:, 5], up, points, d.xipos[self.held])

    def drive(self, how: Manoeuvre) -> Drive:
        """The manoeuvre from where it stands."""
        count = round(how.duration * RATE) + 1
        place, velocity, angles, loads = (np.empty((count, n)) for n in (3, 3, 4, 4))
        yaw, yaw_rate, torque, rack = np.empty(count), np.empty(count), np.empty(count), np.empty((count, 3))
        exact = {name: np.empty((count, 3)) for name in NOISE}
        d = self.data
        for k in range(count):
            for j in range(EVERY):
                t = (k * EVERY + j) * STEP
                self.prepare(how, t)
                if j == 0:
                    place[k], velocity[k], angles[k], loads[k] = d.qpos[:3], d.qvel[:3], d.qpos[self.spin_q], self.loads
                    R = d.xmat[self.chassis].reshape(3, 3)
                    yaw[k], yaw_rate[k] = np.arctan2(R[1, 0], R[0, 0]), (R @ d.qvel[3:6])[2]
                    torque[k], rack[k] = how.torque(t), how.rack(t)
                mujoco.mj_step2(self.model, d)
                if j == 0:  # accelerations belong to the state before the step
                    for name, values in exact.items():
                        values[k] = d.sensordata[self.at[name]]
        exact["gps"] = exact["gps"] - np.array([0.0, 0.0, ROAD])
        place[:, 2] -= ROAD
        exact |= {f"angle_{c}": angles[:, k] for k, c in enumerate(CORNERS)}
        inputs = {f"drive_{c}": torque for c in ("rl", "rr")}
        inputs |= {f"{symbol}.rack": rack[:, k] for k, symbol in enumerate(("q", "qd", "qdd"))}
        return Drive(how, np.arange(count) / RATE, place, velocity, np.unwrap(yaw), yaw_rate, loads, exact, inputs)


def mjcf(vehicle: Vehicle) -> str:
    """The vehicle as a model of MuJoCo, in the pose of the drawing."""
    root = Xml.Element("mujoco")
    Xml.SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="false")
    Xml.SubElement(
        root, "option", timestep=repr(STEP), integrator="implicitfast", gravity="0 0 -9.81", tolerance="1e-12"
    )
    default = Xml.SubElement(root, "default")
    Xml.SubElement(default, "equality", solref=f"{2.0 * STEP!r} 1", solimp="0.9999 0.9999 0.001")
    world = Xml.SubElement(root, "worldbody")
    tendons, equal, motors, sensors = (
        Xml.SubElement(root, name) for name in ("tendon", "equality", "actuator", "sensor")
    )

    def body(parent: Any, name: str, at: Array, above: Array, mass: float, centre: Array, J: Array) -> Any:
        made = Xml.SubElement(parent, "body", name=name, pos=_text(at - above))
        six = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
        Xml.SubElement(made, "inertial", pos=_text(centre - at), mass=repr(mass), fullinertia=_text(six))
        return made

    def hinge(of: Any, axis: ArrayLike, **more: str) -> None:
        Xml.SubElement(of, "joint", {"type": "hinge", "axis": _text(axis), **more})

    def site(of: Any, name: str, at: Array, above: Array) -> None:
        Xml.SubElement(of, "site", name=name, pos=_text(at - above))

    def wheel(parent: Any, corner: str, at: Array, above: Array, mass: float) -> None:
        made = body(parent, f"wheel_{corner}", at, above, mass, at, np.diag([0.753, 1.453, 0.753]))
        made.set("euler", _text([0.0, 0.0, vehicle.toe[CORNERS.index(corner)]]))
        hinge(made, [0.0, 1.0, 0.0], name=f"spin_{corner}", armature="0.4")

    def strut(corner: str, ends: tuple[Array, Array], arm: Any, own: Array, law: tuple[float, float, float]) -> None:
        site(chassis, f"spring_chassis_{corner}", ends[0], CG)
        site(arm, f"spring_arm_{corner}", ends[1], own)
        stiffness, free, damping = (repr(x) for x in law)
        made = Xml.SubElement(tendons, "spatial", stiffness=stiffness, springlength=free, damping=damping)
        for end in ("spring_chassis", "spring_arm"):
            Xml.SubElement(made, "site", site=f"{end}_{corner}")

    for c in CORNERS:
        for kind, name in (
            ("framepos", "place"),
            ("framelinvel", "velocity"),
            ("frameangvel", "rate"),
            ("frameyaxis", "axis"),
        ):
            Xml.SubElement(sensors, kind, name=f"{name}_{c}", objtype="xbody", objname=f"wheel_{c}")
    for kind, name, place in (
        ("framepos", "gps", "antenna"),
        ("framelinvel", "gps_velocity", "antenna"),
        ("gyro", "gyro", "unit"),
        ("accelerometer", "accelerometer", "unit"),
    ):
        own = {"site": place} if kind in ("gyro", "accelerometer") else {"objtype": "site", "objname": place}
        Xml.SubElement(sensors, kind, {"name": name, **own})
    for c in ("rl", "rr"):
        where = {"objtype": "site", "objname": f"bar_{c}", "reftype": "xbody", "refname": "chassis"}
        Xml.SubElement(sensors, "framepos", {"name": f"bar_{c}", **where})
        Xml.SubElement(sensors, "framelinvel", {"name": f"bar_rate_{c}", **where})

    heavy = vehicle.chassis
    chassis = body(world, "chassis", CG, np.zeros(3), 1117.8 * heavy, CG, np.diag([275.7, 853.4, 1100.0]) * heavy)
    Xml.SubElement(chassis, "freejoint")
    site(chassis, "unit", UNIT, CG)
    site(chassis, "antenna", ANTENNA, CG)
    rack = body(chassis, "rack", RACK, CG, 6.0, RACK, np.diag([0.08, 0.006, 0.08]))
    Xml.SubElement(rack, "joint", name="rack", type="slide", axis="0 1 0", armature=repr(RACK_ARMATURE))
    for c, sign in (("fl", 1.0), ("fr", -1.0)):
        mirror = np.array([1.0, sign, 1.0])

        def p(x: float, y: float, z: float, mirror: Array = mirror, axle: Array = FRONT) -> Array:
            return mirror * np.array([x, y, z]) + axle

        made = {}
        for name, front, back, ball, mass, centre, moments in (
            ("upper", p(0.161, 0.136, 0.271), p(-0.087, 0.131, 0.227), p(-0.008, 0.571, 0.088), 3.69,
             p(0.015, 0.301, 0.262), (0.018, 0.033)),
            ("lower", p(0.047, 0.112, 0.088), p(-0.246, 0.108, 0.053), p(0.016, 0.574, -0.082), 4.67,
             p(-0.073, 0.287, 0.0), (0.15, 0.294)),
        ):  # fmt: skip
            normal = np.cross(front - back, ball - back)
            J = _about(normal, moments[1], moments[0])
            made[name] = body(chassis, f"{name}_{c}", back, CG, mass, centre, J)
            hinge(made[name], front - back)
        ball, back, upper = p(0.016, 0.574, -0.082), p(-0.246, 0.108, 0.053), p(-0.008, 0.571, 0.088)
        J = np.diag([0.326, 0.383, 0.084])
        upright = body(made["lower"], f"upright_{c}", ball, back, 30.2, p(0.0, 0.572, 0.0), J)
        Xml.SubElement(upright, "joint", type="ball")
        wheel(upright, c, p(0.0, 0.616, 0.0), ball, 34.0)
        ends = p(-0.053, 0.166, 0.574), p(-0.002, 0.432, 0.186)
        strut(c, ends, made["lower"], back, (38.8e3, 0.5562, 2970.0))
        anchor = _text(upper - p(-0.087, 0.131, 0.227))
        Xml.SubElement(equal, "connect", body1=f"upper_{c}", body2=f"upright_{c}", anchor=anchor)
        site(rack, f"rod_inner_{c}", p(-0.137, 0.113, 0.055), RACK)
        site(upright, f"rod_outer_{c}", p(-0.097, 0.533, -0.088), ball)
        rod = Xml.SubElement(tendons, "spatial", name=f"rod_{c}")
        for end in ("rod_inner", "rod_outer"):
            Xml.SubElement(rod, "site", site=f"{end}_{c}")
        Xml.SubElement(equal, "tendon", tendon1=f"rod_{c}")
    for c, sign in (("rl", 1.0), ("rr", -1.0)):
        mirror = np.array([1.0, sign, 1.0])

        def p(x: float, y: float, z: float, mirror: Array = mirror, axle: Array = REAR) -> Array:
            return mirror * np.array([x, y, z]) + axle

        at, hub = p(-1.811, 0.413, 0.338), p(-2.715, 0.616, 0.335)
        arm = body(chassis, f"arm_{c}", at, CG, 17.4, p(-2.264, 0.542, 0.196), _about(hub - at, 0.02, 0.6))
        Xml.SubElement(arm, "joint", type="ball")
        wheel(arm, c, hub, at, 35.0)
        site(arm, f"bar_{c}", p(-1.976, 0.428, 0.265), at)
        strut(c, (p(-2.195, 0.353, 0.831), p(-2.367, 0.486, 0.368)), arm, at, (150e3, 0.5530, 9340.0))
        Xml.SubElement(motors, "motor", joint=f"spin_{c}")
        for link, inner, outer, mass in (
            ("upper", p(-2.780, 0.121, 0.488), p(-2.761, 0.612, 0.404), 1.08),
            ("lower", p(-2.781, 0.058, 0.356), p(-2.781, 0.615, 0.251), 1.22),
        ):
            J = _about(outer - inner, 0.005, 0.05)
            made_link = body(chassis, f"{link}_link_{c}", inner, CG, mass, (inner + outer) / 2.0, J)
            hinge(made_link, [1.0, 0.0, 0.0])
            hinge(made_link, [0.0, 0.0, 1.0])
            Xml.SubElement(equal, "connect", body1=f"{link}_link_{c}", body2=f"arm_{c}", anchor=_text(outer - inner))
    return Xml.tostring(root, encoding="unicode")


def _about(axis: Array, own: float, across: float) -> Array:
    """The inertia of a body of revolution: `own` about its axis, `across` about all others."""
    u = axis / np.linalg.norm(axis)
    return across * np.eye(3) + (own - across) * np.outer(u, u)


def _text(values: ArrayLike) -> str:
    return " ".join(repr(x) for x in np.asarray(values, dtype=np.float64).tolist())
