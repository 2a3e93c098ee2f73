"""A buggy with double wishbones in front and trailing arms with two links behind: 18 bodies, 15 degrees of freedom.

The observer of paper 003 runs on such a vehicle, whose data the paper does not print. The data here are public ones of a measured
utility vehicle (Polaris MRZR, Project Chrono, BSD-3), rounded, with a steering rack: x forward, y left, z up, in m, kg and N, in the
pose of the drawing, where all coordinates are zero. The chassis' frame has its origin in the chassis' centre of gravity; every other
body's frame is parallel to it in that pose. Corners are fl, fr, rl and rr; the right side is the mirror image of the left.

Coordinates of a corner: `lower_fl` (and so on) lifts a front wheel, `lower_link_rl_lift` a rear one, `spin_fl` turns a wheel forward. The
rack's place `rack` is prescribed (steer by wire); it lies behind the axle, so that a left turn moves it to −y. A joint that is marked
actuated is one whose coordinate is independent; forces act on spins and the rack alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.model.elements.element import Element, strut, tyre
from veridyn.model.link import Joint, JointKind, Link
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.model.place import Attachment, Marker, numbers
from veridyn.model.sensor import Sensor
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement, rot_x, rot_z, rotation_to_axis

Tyres = Literal["magic", "linear", "none"]
CORNERS = ("fl", "fr", "rl", "rr")
CHASSIS_CG = np.array([-1.6375, 0.0, 0.7634])
FRONT, REAR = np.array([0.0, 0.0, 0.397]), np.array([0.0, 0.0, 0.07])  # what the places of each axle are relative to
WHEEL = {"f": np.array([0.0, 0.616, 0.0]), "r": np.array([-2.715, 0.616, 0.335])}
UPRIGHT_CG, ARM_CG = np.array([0.0, 0.572, 0.0]), np.array([-2.264, 0.542, 0.196])
RACK = np.array([-0.137, 0.0, 0.452])
ROTOR = 0.4  # kg m², on each spin axis
BAR_LEVER, BAR_STIFFNESS, BAR_DAMPING = 0.0233, 135.0, 13.5  # m, N*m/rad, N*m*s/rad
INERTIAL_UNIT, ANTENNA = np.array([-1.55, 0.0, 0.80]), np.array([-1.60, 0.0, 1.60])
ROLLING_RESISTANCE = 0.015
MISALIGNED: Mapping[str, float] = MappingProxyType({"fl": 0.0406, "fr": 0.0412, "rl": 0.0048, "rr": 0.0048})
INDEPENDENT = (
    *("lower_fl", "lower_fr", "lower_link_rl_lift", "lower_link_rr_lift"),
    *(f"spin_{corner}" for corner in CORNERS),
)

CONTACT: Mapping[str, float] = MappingProxyType(
    {
        "UNLOADED_RADIUS": 0.3683, "VERTICAL_STIFFNESS": 82.7e3, "VERTICAL_DAMPING": 500.0, "FNOMIN": 4000.0,
        "BREFF": 6.1, "DREFF": 0.45, "FREFF": 0.01,
    }
)  # fmt: skip
MAGIC: Mapping[str, float] = MappingProxyType(
    {
        "PCX1": 1.839, "PDX1": 1.1387, "PDX2": -0.12, "PEX1": 0.627, "PKX1": 18.886, "PKX2": -3.988, "PKX3": 0.215,
        "PCY1": 1.3223, "PDY1": 1.0141, "PDY2": -0.1227, "PEY1": -0.638, "PKY1": -19.797, "PKY2": 1.7999,
        "RBX1": 5.99, "RBX2": -8.26, "RCX1": 1.078, "RBY1": 6.22, "RBY2": 3.07, "RBY3": 0.016, "RCY1": 1.005,
        "PTX1": 1.85, "PTY1": 1.9, "PTY2": 2.25, "LMUX": 0.8, "LMUY": 0.8,
    }
)  # fmt: skip
LINEAR: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "f": {"C_ALPHA": 55.5e3, "C_KAPPA": 55.4e3, "SIGMA_KAPPA": 0.50, "SIGMA_ALPHA": 0.41},
        "r": {"C_ALPHA": 65.6e3, "C_KAPPA": 72.1e3, "SIGMA_KAPPA": 0.64, "SIGMA_ALPHA": 0.50},
    }
)


@dataclass(frozen=True)
class _Part:
    """A body: mass, centre of gravity, moments of inertia about it along the axes of `turned`, and the origin of its frame."""

    mass: float
    centre: Array
    moments: tuple[float, float, float]
    origin: Array
    turned: Array

    def scaled(self, factor: float) -> _Part:
        """The same body with so many times the mass."""
        x, y, z = self.moments
        return replace(self, mass=factor * self.mass, moments=(factor * x, factor * y, factor * z))


def buggy(
    *,
    tyres: Tyres = "magic",
    rolling_resistance: float = ROLLING_RESISTANCE,
    toe: Mapping[str, float] | None = None,
    anti_roll_bar: bool = True,
    tyre_factors: Mapping[str, float] | None = None,
    chassis_factor: float = 1.0,
) -> Machine:
    """The buggy.

    Parameters
    ----------
    tyres : "magic" for the Magic Formula with relaxation, "linear", or "none".
    rolling_resistance : force over load.
    toe : corner → angle (rad) by which its hub is turned about z; `MISALIGNED` goes straight with the rack at +4 mm.
    anti_roll_bar : whether the rear axle has one.
    tyre_factors : constant of one tyre ("tyre_fl.PKX1") → factor on the value that the drawing has.
    chassis_factor : factor on the mass of the chassis and its moments of inertia.

    Returns
    -------
    Machine : on a free base, "chassis"; its tyres stand on a flat road at z = 0.

    Examples
    --------
    >>> from veridyn.papers.buggy.machine import buggy
    >>> machine = buggy()
    >>> len(machine.links), machine.n - 20, machine.base  # 20 equations of loops; with the base 15 degrees of freedom
    (18, 9, 'free')
    """
    turned = {corner: rot_z((toe or {}).get(corner, 0.0)) for corner in CORNERS}
    parts = dict(_parts(turned))
    parts["chassis"] = parts["chassis"].scaled(chassis_factor)
    joints = [Joint(name="base", kind="floating", a="ground", b="chassis"), *_joints(parts, turned)]
    return Machine.build(
        [Link(name=name, inertia=_ten(part)) for name, part in parts.items()],
        joints,
        name="buggy",
        elements=[
            *_suspension(parts),
            *_tyres(tyres, rolling_resistance, turned, tyre_factors or {}),
            *(_bar() if anti_roll_bar else ()),
        ],
        loads=_drives(),
        sensors=_sensors(),
        prescribed=["rack"],
    )


def mirrored(at: ArrayLike, corner: str) -> Array:
    """A place or direction of the left side as it is on a corner's side."""
    return np.asarray(at, dtype=np.float64) * ([1.0, -1.0, 1.0] if corner.endswith("r") else [1.0, 1.0, 1.0])


def wheel_centre(corner: str) -> Array:
    """The centre of a wheel in the axes of the drawing."""
    place = FRONT + WHEEL["f"] if corner[0] == "f" else REAR + WHEEL["r"]
    return mirrored(place, corner)


FRONT_POINTS: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "upper_front": (0.161, 0.136, 0.271), "upper_back": (-0.087, 0.131, 0.227), "upper_ball": (-0.008, 0.571, 0.088),
        "lower_front": (0.047, 0.112, 0.088), "lower_back": (-0.246, 0.108, 0.053), "lower_ball": (0.016, 0.574, -0.082),
        "rod_inner": (-0.137, 0.113, 0.055), "rod_outer": (-0.097, 0.533, -0.088),
        "spring_chassis": (-0.053, 0.166, 0.574), "spring_arm": (-0.002, 0.432, 0.186),
    }
)  # fmt: skip
REAR_POINTS: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "arm": (-1.811, 0.413, 0.338), "bar": (-1.976, 0.428, 0.265),
        "upper_inner": (-2.780, 0.121, 0.488), "upper_outer": (-2.761, 0.612, 0.404),
        "lower_inner": (-2.781, 0.058, 0.356), "lower_outer": (-2.781, 0.615, 0.251),
        "spring_chassis": (-2.195, 0.353, 0.831), "spring_arm": (-2.367, 0.486, 0.368),
    }
)  # fmt: skip


def point(corner: str, name: str) -> Array:
    """A place of a corner by name, in the axes of the drawing."""
    own = FRONT + FRONT_POINTS[name] if corner[0] == "f" else REAR + REAR_POINTS[name]
    return mirrored(own, corner)


def _parts(turned: Mapping[str, Array]) -> Iterator[tuple[str, _Part]]:
    straight = np.eye(3)
    yield "chassis", _Part(1117.8, CHASSIS_CG, (275.7, 853.4, 1100.0), CHASSIS_CG, straight)
    yield "rack", _Part(6.0, RACK, (0.08, 0.006, 0.08), RACK, straight)
    for c in ("fl", "fr"):
        for arm, mass, at, moments in (
            ("upper", 3.69, (0.015, 0.301, 0.262), (0.018, 0.018, 0.033)),
            ("lower", 4.67, (-0.073, 0.287, 0.0), (0.15, 0.15, 0.294)),
        ):
            front, back, ball = (point(c, f"{arm}_{end}") for end in ("front", "back", "ball"))
            flat = rotation_to_axis(np.cross(front - back, ball - back))
            yield f"{arm}_{c}", _Part(mass, mirrored(FRONT + at, c), moments, back, flat)
        ball = point(c, "lower_ball")
        yield f"upright_{c}", _Part(30.2, mirrored(FRONT + UPRIGHT_CG, c), (0.326, 0.383, 0.084), ball, straight)
        yield f"wheel_{c}", _Part(34.0, wheel_centre(c), (0.753, 1.453, 0.753), wheel_centre(c), turned[c])
    for c in ("rl", "rr"):
        arm, hub = point(c, "arm"), wheel_centre(c)
        along = _along_x(hub - arm)
        yield f"arm_{c}", _Part(17.4, mirrored(REAR + ARM_CG, c), (0.02, 0.6, 0.6), arm, along)
        for link, mass in (("upper", 1.08), ("lower", 1.22)):
            inner, outer = point(c, f"{link}_inner"), point(c, f"{link}_outer")
            middle = (inner + outer) / 2.0
            yield f"{link}_link_{c}", _Part(mass, middle, (0.005, 0.05, 0.05), inner, _along_x(outer - inner))
        yield f"wheel_{c}", _Part(35.0, hub, (0.753, 1.453, 0.753), hub, turned[c])


def _along_x(axis: Array) -> Array:
    """A rotation whose x axis is `axis`."""
    R = rotation_to_axis(axis)
    return np.column_stack([R[:, 2], R[:, 0], R[:, 1]])


def _ten(part: _Part) -> Array:
    about = part.turned @ np.diag(part.moments) @ part.turned.T
    return from_centre(part.mass, part.centre - part.origin, about)


def _joints(parts: Mapping[str, _Part], turned: Mapping[str, Array]) -> Iterator[Joint]:
    def end(body: str, at: Array, R: Array | None = None) -> Attachment:
        return Attachment(body, Placement(np.eye(3) if R is None else R, at - parts[body].origin))

    def joint(
        name: str,
        kind: JointKind,
        a: str,
        b: str,
        at: Array,
        R: Array | None = None,
        *,
        cut: bool = False,
        own: bool = False,
    ) -> Joint:
        ends = end(a, at, R), end(b, at, R)
        return Joint(name=name, kind=kind, a=ends[0], b=ends[1], cut="yes" if cut else "auto", actuated=own)

    across = rotation_to_axis([0.0, 1.0, 0.0])
    yield joint("rack", "sliding", "chassis", "rack", RACK, across, own=True)
    for c in ("fl", "fr"):
        for arm in ("upper", "lower"):
            front, back = point(c, f"{arm}_front"), point(c, f"{arm}_back")
            lifting = front - back if c == "fl" else back - front
            axis = rotation_to_axis(lifting)
            yield joint(f"{arm}_{c}", "turning", "chassis", f"{arm}_{c}", back, axis, own=arm == "lower")
        yield joint(f"knuckle_{c}", "spherical", f"lower_{c}", f"upright_{c}", point(c, "lower_ball"))
        yield joint(f"ball_{c}", "spherical", f"upper_{c}", f"upright_{c}", point(c, "upper_ball"), cut=True)
        yield joint(f"spin_{c}", "turning", f"upright_{c}", f"wheel_{c}", wheel_centre(c), turned[c] @ across, own=True)
        inner, outer = point(c, "rod_inner"), point(c, "rod_outer")
        length = float(np.linalg.norm(outer - inner))
        ends = end("rack", inner), end(f"upright_{c}", outer)
        yield Joint(name=f"rod_{c}", kind="distance", a=ends[0], b=ends[1], length=length)
    for c in ("rl", "rr"):
        yield joint(f"arm_{c}", "spherical", "chassis", f"arm_{c}", point(c, "arm"))
        yield joint(f"spin_{c}", "turning", f"arm_{c}", f"wheel_{c}", wheel_centre(c), turned[c] @ across, own=True)
        for link in ("upper", "lower"):
            inner, outer = point(c, f"{link}_inner"), point(c, f"{link}_outer")
            R = _crossed(outer - inner, c)
            name = f"{link}_link_{c}"
            a, b = end("chassis", inner, R), end(name, inner, R @ rot_x(np.pi / 2))
            names = (f"{name}_lift", f"{name}_sweep")
            own = names[:1] if link == "lower" else ()
            yield Joint(name=f"{name}_cross", kind="universal", a=a, b=b, coordinates=names, actuated=own)
            yield joint(f"{name}_ball", "spherical", name, f"arm_{c}", outer, cut=True)


def _crossed(along: Array, corner: str) -> Array:
    """The frame of a universal joint on the chassis: x along the link, z lifts it and is as near to the vehicle's x as possible."""
    x = along / np.linalg.norm(along)
    z = np.array([1.0, 0.0, 0.0]) - x[0] * x
    z = (1.0 if corner == "rl" else -1.0) * z / np.linalg.norm(z)
    return np.column_stack([x, np.cross(z, x), z]).astype(np.float64)


def _suspension(parts: Mapping[str, _Part]) -> Iterator[Element]:
    for c in CORNERS:
        arm = f"lower_{c}" if c[0] == "f" else f"arm_{c}"
        stiffness, rest, damping = (38.8e3, 0.5562, 2970.0) if c[0] == "f" else (150e3, 0.5530, 9340.0)
        ends = (
            Marker("chassis", numbers(point(c, "spring_chassis") - CHASSIS_CG)),
            Marker(arm, numbers(point(c, "spring_arm") - parts[arm].origin)),
        )
        yield strut("spring", *ends, stiffness, f"spring_{c}", rest=rest)
        yield strut("damper", *ends, damping, f"damper_{c}")
        yield Element(kind="inertia", on={f"spin_{c}": 1.0}, value=ROTOR, name=f"rotor_{c}")


def _bar() -> Iterator[Element]:
    """The rear anti-roll bar: its twist is the difference of the drop links' heights over the lever, to first order in the arms' angles."""
    on: dict[str, float] = {}
    for c, sign in (("rl", 1.0), ("rr", -1.0)):
        x, y, _ = point(c, "bar") - point(c, "arm")
        on |= {f"arm_{c}_pitch": -sign * x / BAR_LEVER, f"arm_{c}_roll": sign * y / BAR_LEVER}
    yield Element(kind="spring", on=on, value=BAR_STIFFNESS, name="bar_stiffness")
    yield Element(kind="damper", on=on, value=BAR_DAMPING, name="bar_damping")


def _tyres(
    kind: Tyres, rolling_resistance: float, turned: Mapping[str, Array], factors: Mapping[str, float]
) -> Iterator[Element]:
    for c in CORNERS if kind != "none" else ():
        law = MAGIC if kind == "magic" else LINEAR[c[0]]
        constants = {**CONTACT, **law, "QSY1": rolling_resistance, "ROAD": 0.0}
        constants = {key: value * factors.get(f"tyre_{c}.{key}", 1.0) for key, value in constants.items()}
        wheel = Marker(f"wheel_{c}", (0.0, 0.0, 0.0), axis=numbers(turned[c][:, 1]))
        yield tyre(wheel, constants, kind="tyre" if kind == "magic" else "linear_tyre", name=f"tyre_{c}")


def _drives() -> list[Drive]:
    """Torques on wheels about their axes, with their reactions on what carries the wheel: drives behind, brakes on all (negative ahead)."""
    drives = [Drive(f"drive_{c}", f"spin_{c}") for c in ("rl", "rr")]
    return [*drives, *(Drive(f"brake_{c}", f"spin_{c}") for c in CORNERS)]


def _sensors() -> list[Sensor]:
    """Those of paper 003: inertial unit and wheel angles at 500 Hz, GPS at 50 Hz; 40 holes a wheel quantise its angle at 9°."""
    unit, antenna = (Marker("chassis", numbers(at - CHASSIS_CG)) for at in (INERTIAL_UNIT, ANTENNA))
    return [
        Sensor("gps", "position", antenna, 0.02, rate=50.0),
        Sensor("gps_velocity", "velocity", antenna, 0.1, rate=50.0),
        Sensor("gyro", "gyroscope", unit, 2e-4, rate=500.0),
        Sensor("accelerometer", "accelerometer", unit, 0.5, rate=500.0),
        *(Sensor(f"angle_{c}", "coordinate", f"spin_{c}", 0.0, quantum=np.pi / 20.0, rate=500.0) for c in CORNERS),
    ]
