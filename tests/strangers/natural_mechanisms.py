"""Mechanisms in natural coordinates for tests: the four-bar linkage of FACTS 6 and random ones that are closed by construction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.place import Marker
from veridyn.model.point_parts import (
    Angle,
    Damper,
    Distance,
    MechanismJoint,
    Point,
    Rack,
    RigidBody,
    Spring,
    UnitVector,
    uniform_bar,
)

Array = NDArray[np.float64]
SPACE_BASES = ((1, 3), (2, 2), (3, 1), (4, 0), (4, 2))
PLANE_BASES = ((2, 0), (1, 1), (3, 1), (2, 2))
SPACE_JOINTS = ("spherical", "turning", "sliding", "cylindrical", "universal", "distance")
PLANE_JOINTS = ("spherical", "turning", "sliding", "cylindrical", "distance")


def fourbar(gravity: float = 9.806, rod_mass: float = 8.0, torque: float = -10.0) -> Mechanism:
    """Bars 2/8/5 m between fixed points 10 m apart, masses 2/8/5 kg, a motor on the crank."""
    return Mechanism.build(
        [Point("A", (0, 0), True), Point("B", (10, 0), True), Point("1", (1, 1.7)), Point("2", (8, 4))],
        [
            uniform_bar("crank", "A", "1", 2.0, 2.0),
            uniform_bar("rod", "1", "2", 8.0, rod_mass),
            uniform_bar("rocker", "2", "B", 5.0, 5.0),
        ],
        added=[Angle("phi", ("A", "1"), (1.0, 0.0))],
        loads=[Drive("motor", "phi", torque)],
        gravity=(0.0, -gravity),
        name="fourbar",
    )


def rotation(rng: np.random.Generator, dim: int) -> Array:
    if dim == 2:
        a = rng.uniform(-np.pi, np.pi)
        return np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q if np.linalg.det(Q) > 0 else Q[:, ::-1]


def unit(rng: np.random.Generator, dim: int) -> Array:
    v = rng.normal(size=dim)
    return v / np.linalg.norm(v)


def inertia(rng: np.random.Generator, dim: int) -> tuple[float, Array | float]:
    mass = rng.uniform(0.5, 3.0)
    if dim == 2:
        return mass, rng.uniform(0.05, 0.5)
    R, second = rotation(rng, 3), np.diag(rng.uniform(0.02, 0.2, 3))
    return mass, R @ (np.trace(second) * np.eye(3) - second) @ R.T


@dataclass(frozen=True)
class Posed:
    """A mechanism that is closed at its own guess, with the true pose of each body."""

    mechanism: Mechanism
    rotations: dict[str, Array]
    places: dict[str, Array]


def random_body(
    rng: np.random.Generator, name: str, dim: int, basis: tuple[int, int]
) -> tuple[RigidBody, list[Point], list[UnitVector], Array, Array]:
    """A body of so many points and vectors at a random pose; its centre of mass is anywhere."""
    R, p = rotation(rng, dim), rng.normal(size=dim)
    while True:  # until its directions are well apart
        points = {f"{name}p{k}": rng.normal(size=dim) for k in range(basis[0])}
        vectors = {f"{name}v{k}": unit(rng, dim) for k in range(basis[1])}
        x = np.array(list(points.values()))
        directions = np.vstack([x[1:] - x[0], *vectors.values()])
        if np.linalg.svd(directions, compute_uv=False)[min(dim, len(directions)) - 1] > 0.4:
            break
    mass, J = inertia(rng, dim)
    body = RigidBody(name, points, vectors, mass, rng.normal(size=dim), J)
    return (
        body,
        [Point(k, p + R @ x) for k, x in points.items()],
        [UnitVector(k, R @ x) for k, x in vectors.items()],
        R,
        p,
    )


def random_mechanism(rng: np.random.Generator, dim: int, bodies: int = 3, acting: bool = True) -> Posed:
    """A chain of random bodies and joints from the ground, with added coordinates and everything that can act."""
    bases, kinds = (SPACE_BASES, SPACE_JOINTS) if dim == 3 else (PLANE_BASES, PLANE_JOINTS)
    rotations, places = {"ground": np.eye(dim)}, {"ground": np.zeros(dim)}
    made: list[RigidBody] = []
    points: list[Point] = [Point("O", rng.normal(size=dim), True)]
    vectors: list[UnitVector] = []
    joints: list[MechanismJoint] = []

    def marker(body: str, at: Array, axis: Array, side: Array | None) -> Marker:
        R, p = rotations[body], places[body]
        return Marker(body, R.T @ (at - p), R.T @ axis, () if side is None else R.T @ side)

    for k in range(bodies):
        name, before = f"b{k}", f"b{k - 1}" if k else "ground"
        body, at, along, R, p = random_body(rng, name, dim, bases[rng.integers(len(bases))])
        rotations[name], places[name] = R, p
        made.append(body)
        points += at
        vectors += along
        kind = kinds[rng.integers(len(kinds))]
        axis, place = unit(rng, dim), rng.normal(size=dim)
        end, end_axis, length = place, axis, float("nan")
        side = None
        if kind in ("sliding", "cylindrical"):
            end = place + rng.normal() * axis
        if kind == "sliding" and dim == 3:
            side = np.cross(axis, unit(rng, 3))
            side /= np.linalg.norm(side)
        if kind == "universal":
            end_axis = np.cross(axis, unit(rng, 3))
        if kind == "distance":
            end = place + rng.normal(size=dim)
            length = float(np.linalg.norm(end - place))
        joints.append(
            MechanismJoint(f"j{k}", kind, marker(before, place, axis, side), marker(name, end, end_axis, side), length)
        )

    last = made[-1].name
    grounded = marker("ground", rng.normal(size=dim), unit(rng, dim), None)
    tip = marker(last, rng.normal(size=dim), unit(rng, dim), None)
    e = unit(rng, dim)
    towards = None if dim == 2 else np.cross(e, unit(rng, 3))
    if towards is not None:
        towards = towards / np.linalg.norm(towards)
    angle = Angle("theta", tip, e, towards, start=7.0)
    relative = Angle("psi", Marker("b0", (0.0,) * dim, unit(rng, dim)), tip, None if dim == 2 else _beside(rng, tip))
    added = [angle, relative, Distance("s", grounded, tip), Distance("d", "O", tip, unit(rng, dim))]
    added.append(Distance("e", grounded, tip, marker(last, rng.normal(size=dim), unit(rng, dim), None)))
    acts = {}
    if acting:
        acts = {
            "springs": [
                Spring("k1", (grounded, tip), 30.0, 0.4),
                Spring("k2", "theta", 5.0, 0.3),
                Spring("k3", "s", 9.0, 1.0),
            ],
            "dampers": [Damper("c1", ("O", tip), 3.0), Damper("c2", "theta", 0.4), Damper("c3", (grounded, tip), 1.0)],
            "loads": [
                Drive("motor", "theta", 2.0),
                Force("push", tip, rng.normal(size=dim)),
                Torque("twist", last, rng.normal(size=1 if dim == 2 else 3)),
                Torque("pair", last, rng.normal(size=1 if dim == 2 else 3), "b0" if bodies > 1 else "ground"),
            ],
        }
    mechanism = Mechanism.build(
        points,
        made,
        vectors=vectors,
        joints=joints,
        added=added,
        gravity=rng.normal(size=dim),
        name=f"random{dim}",
        **acts,
    )
    return Posed(mechanism, rotations, places)


def _beside(rng: np.random.Generator, of: Marker) -> Marker:
    side = np.cross(np.array(of.axis), unit(rng, 3))
    return Marker(of.body, of.at, side)


def rack_and_pinion() -> Mechanism:
    """A slider on the x axis geared to a crank by a rack, a spring on the slider: one degree of freedom, in closed form."""
    return Mechanism.build(
        [Point("O", (0, 0), True), Point("P", (0.5, 0.1)), Point("S", (0.3, 1.0))],
        [uniform_bar("pinion", "O", "P", 0.5, 1.2), RigidBody("slide", {"S": (0, 0)}, mass=2.0)],
        joints=[MechanismJoint("guide", "cylindrical", Marker("ground", (0, 1), (1, 0)), "S")],
        added=[Angle("theta", ("O", "P"), (1.0, 0.0)), Distance("x", Marker("ground", (0, 1)), "S", (1.0, 0.0))],
        racks=[Rack("rack", "x", "theta", 0.4, 0.2)],
        springs=[Spring("k", "x", 50.0, 0.1)],
        name="rack",
    )


def turning_fourbar(tilt: Array | None = None) -> Mechanism:
    """The four-bar of FACTS 6 in space, each bar a body with its own points and vectors, all four joints turning.

    Twenty rows on eighteen freedoms, and it moves: three rows are redundant. `tilt` (3, 3) turns the whole machine with its gravity.
    """
    turn = np.eye(3) if tilt is None else tilt
    lengths, masses = {"crank": 2.0, "rod": 8.0, "rocker": 5.0}, {"crank": 2.0, "rod": 8.0, "rocker": 5.0}
    starts = {"crank": (0.0, 0.0), "rod": (1.0, 3.0**0.5), "rocker": (10.0, 0.0)}
    p1 = np.array(starts["rod"])
    away = np.array(starts["rocker"]) - p1  # pin 2 is on two circles, above
    d = float(np.linalg.norm(away))
    along = (8.0**2 - 5.0**2 + d**2) / (2.0 * d)
    p2 = p1 + (along * away + np.sqrt(8.0**2 - along**2) * np.array([-away[1], away[0]])) / d
    ends = {"crank": p1, "rod": p2, "rocker": p2}
    points: list[Point] = [Point("O", (0.0, 0.0, 0.0), True)]
    vectors: list[UnitVector] = []
    bodies: list[RigidBody] = []
    for name, L in lengths.items():
        a = np.array(starts[name])
        u = (ends[name] - a) / L
        u, n = np.array([*u, 0.0]), np.array([-u[1], u[0], 0.0])
        points.append(Point(f"{name}0", turn @ np.array([*a, 0.0])))
        vectors += [UnitVector(f"{name}{k}", turn @ x) for k, x in (("u", u), ("n", n), ("k", np.array([0, 0, 1.0])))]
        about = masses[name] * L**2 / 12.0
        bodies.append(
            RigidBody(
                name,
                {f"{name}0": (0, 0, 0)},
                {f"{name}u": (1, 0, 0), f"{name}n": (0, 1, 0), f"{name}k": (0, 0, 1)},
                masses[name],
                (L / 2.0, 0, 0),
                np.diag([0.0, about, about]),
            )
        )

    def pin(name: str, a: Marker, b: Marker) -> MechanismJoint:
        return MechanismJoint(name, "turning", a, b)

    k = (0.0, 0.0, 1.0)
    return Mechanism.build(
        points,
        bodies,
        vectors=vectors,
        joints=[
            pin("A", Marker("ground", (0, 0, 0), turn @ np.array(k)), Marker("crank", (0, 0, 0), k)),
            pin("pin1", Marker("crank", (2, 0, 0), k), Marker("rod", (0, 0, 0), k)),
            pin("pin2", Marker("rod", (8, 0, 0), k), Marker("rocker", (5, 0, 0), k)),
            pin(
                "B", Marker("ground", turn @ np.array([10.0, 0, 0]), turn @ np.array(k)), Marker("rocker", (0, 0, 0), k)
            ),
        ],
        added=[Angle("phi", "cranku", turn[:, 0], turn[:, 1])],
        loads=[Drive("motor", "phi", -10.0)],
        gravity=turn @ np.array([0.0, -9.806, 0.0]),
        name="four-bar in space",
    )


def parallelogram() -> Mechanism:
    """A double parallelogram: a coupler on three equal cranks moves, though a count of rows says that it is a structure."""
    ground = [Point(k, (x, 0), True) for k, x in zip("ABC", (0.0, 1.0, 2.0), strict=True)]
    moving = [Point(k, (x + 0.6, 0.8)) for k, x in zip("PQR", (0.0, 1.0, 2.0), strict=True)]
    bars = [uniform_bar(f"crank{a}", a, p, 1.0, 1.0) for a, p in zip("ABC", "PQR", strict=True)]
    coupler = RigidBody("coupler", {"P": (0, 0), "Q": (1, 0), "R": (2, 0)}, mass=1.0, centre=(1, 0), inertia=0.3)
    return Mechanism.build([*ground, *moving], [*bars, coupler], gravity=(0, -9.81), name="parallelogram")
