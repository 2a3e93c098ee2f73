"""The buggy against the check values of its data set, against Pinocchio with the same data typed again, and in both formulations."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import null_space

from mechanics.ground.wheel_readings import wheel_readings
from strangers.pinocchio_buggy import PinBuggy
from veridyn.files.access import shipped
from veridyn.files.machine.load import load_model
from veridyn.files.machine.write_parts import differences
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.dynamics import natural_energy, solve_accelerations
from veridyn.mechanics.natural.equations.freedoms import freedoms_of, mobility, pose_of_tree
from veridyn.mechanics.natural.equations.geometry import compact
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, open_mass_matrix
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.loops.assembly import assembled
from veridyn.mechanics.tree.loops.closure import close
from veridyn.mechanics.tree.loops.dynamics import onto_closure
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import body_pose, energy
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.papers.buggy.drive import Standing, settle
from veridyn.papers.buggy.machine import (
    CHASSIS_CG,
    CORNERS,
    INDEPENDENT,
    MISALIGNED,
    buggy,
    mirrored,
    point,
    wheel_centre,
)
from veridyn.spatial.inertia import inertia_matrix
from veridyn.spatial.rotations import matrix_of, rotation_of

Array = NDArray[np.float64]


@cache
def machine() -> Machine:
    return buggy()


@cache
def standing() -> Standing:
    return settle(machine())


def number(name: str) -> int:
    return machine().coordinates.index(name)


def moved(**changed: Array) -> Array:
    """Closed positions (N, n) about where it stands, with some independent coordinates as given (N,)."""
    N = len(next(iter(changed.values())))
    given = {c: np.full(N, standing().q[number(c)]) for c in (*INDEPENDENT, "rack")} | changed
    return close(machine(), given, path=False, engine="numpy").q


def place(q: Array, body: str, at: Array) -> Array:
    """A place of the drawing on a body, in the chassis' frame (N, 3)."""
    home, _ = body_pose(machine(), np.zeros((1, machine().n)), body)
    assert home[0] == pytest.approx(np.eye(3), abs=1e-12)  # every frame is parallel to the chassis' in the drawing
    R, p = body_pose(machine(), q, body)
    origin = body_pose(machine(), np.zeros((1, machine().n)), body)[1][0]
    return p + R @ (at - CHASSIS_CG - origin)


def at_rest() -> Motion:
    at, n = standing(), machine().n
    zero, still = np.zeros((1, 3)), np.zeros((1, n))
    base = BaseMotion(
        zero,
        zero,
        zero,
        zero,
        position=np.asarray(at.base.position)[None],
        quaternion=np.asarray(at.base.quaternion)[None],
    )
    signals = {s.name: np.zeros(1) for s in machine().states}
    return Motion(np.zeros(1), at.q[None], still, still, base, still, signals=signals)


def test_bodies_freedoms_and_equations() -> None:
    m = machine()
    equations = {"turning": 5, "sliding": 5, "spherical": 3, "universal": 4, "distance": 1, "floating": 0}
    assert len(m.links) == 18
    assert sum(equations[j.kind] for j in m.joints) == 93  # independent: 108 − 93 = 15
    home = assembled(tree_of(m))
    assert 6 + home.freedom == 15 and len(home.rows) == 20 and m.n == 29
    assert np.abs(home.home).max() == 0.0  # it closes in the drawing
    assert [c for c in m.coordinates if c in {*INDEPENDENT, "rack"}] == list(m.actuated_coordinates)
    ball, upper = point("fl", "lower_ball"), point("fl", "upper_ball")
    axis = upper - ball
    assert np.degrees(np.arctan2(-axis[0], axis[2])) == pytest.approx(8.04, abs=0.01)  # caster
    assert np.degrees(np.arctan2(-axis[1], axis[2])) == pytest.approx(1.01, abs=0.01)  # kingpin
    foot = ball + axis * (0.064 - ball[2]) / axis[2]  # where the kingpin meets the road
    assert foot[0] == pytest.approx(0.051, abs=5e-4) and 0.616 - foot[1] == pytest.approx(0.038, abs=5e-4)
    assert wheel_centre("fl")[0] - wheel_centre("rl")[0] == pytest.approx(2.715)
    assert wheel_centre("fl")[1] - wheel_centre("fr")[1] == pytest.approx(1.232)
    assert mirrored(point("rl", "arm"), "rr") == pytest.approx(point("rr", "arm"))


def test_its_file_is_the_machine() -> None:
    """Bodies, joints, springs, tyres with their constants, drives, sensors and the prescribed rack, to the last bit."""
    assert differences(load_model(shipped("veridyn:buggy.yaml")), machine()) == ()


def test_mass_and_inertia_where_it_stands() -> None:
    m, at = machine(), standing()
    base, origin = rotation_of(np.asarray(at.base.quaternion)), np.asarray(at.base.position)
    parts = []
    for link in m.links:
        R, p = body_pose(m, at.q[None], link.name)
        x, turned = link.ten, base @ R[0]
        r = x[6:9] / x[9]
        J = np.array(inertia_matrix(x), dtype=np.float64) - x[9] * (r @ r * np.eye(3) - np.outer(r, r))
        parts.append((x[9], origin + base @ p[0] + turned @ r, turned @ J @ turned.T))
    mass = sum(p[0] for p in parts)
    centre = sum(p[0] * p[1] for p in parts) / mass
    total = sum(
        J + k * ((c - centre) @ (c - centre) * np.eye(3) - np.outer(c - centre, c - centre)) for k, c, J in parts
    )
    front = origin + base @ body_pose(m, at.q[None], "wheel_fl")[1][0]
    assert mass == pytest.approx(1378.3, abs=0.05)
    assert front[0] - centre[0] == pytest.approx(1.533, abs=3e-3)
    assert centre[2] == pytest.approx(0.618, abs=5e-4)
    assert np.diag(total) == pytest.approx([394.0, 1379.0, 1677.0], abs=0.6)


def test_loads_springs_and_rates_where_it_stands() -> None:
    found = wheel_readings(machine(), at_rest())
    loads = [found[f"tyre_{c}"].load[0] for c in CORNERS]
    assert loads == pytest.approx([2937.0, 2937.0, 3823.0, 3823.0], rel=1e-3)
    assert sum(loads) == pytest.approx(1378.32 * 9.81, rel=1e-9)
    h = 1e-4
    for c, arm, coordinate, stiffness, length, ratio, rate, steer in (
        ("fl", "lower_fl", "lower_fl", 38.8e3, 0.4732, 0.706, 19.3e3, 11.5),
        ("rl", "arm_rl", "lower_link_rl_lift", 150e3, 0.5111, 0.538, 43.5e3, -11.2),
    ):
        q = moved(**{coordinate: standing().q[number(coordinate)] + np.array([-h, 0.0, h])})
        ends = place(q, "chassis", point(c, "spring_chassis")), place(q, arm, point(c, "spring_arm"))
        along = np.linalg.norm(ends[0] - ends[1], axis=1)
        up = place(q, f"wheel_{c}", wheel_centre(c))[:, 2]
        slope = (along[0] - along[2]) / (up[2] - up[0])
        axis = body_pose(machine(), q, f"wheel_{c}")[0][:, :, 1]
        heading = np.degrees(np.arctan2(-axis[:, 0], axis[:, 1]))
        assert along[1] == pytest.approx(length, abs=1e-4)
        assert slope == pytest.approx(ratio, abs=1e-3)
        assert stiffness * slope**2 == pytest.approx(rate, rel=3e-3)
        assert (heading[2] - heading[0]) / (up[2] - up[0]) == pytest.approx(steer, abs=0.2)  # bump steer, deg/m
        if c == "rl":
            drop = place(q, arm, point(c, "bar"))[:, 2]
            assert 135.0 / 0.0233**2 * ((drop[2] - drop[0]) / (up[2] - up[0])) ** 2 == pytest.approx(8.0e3, rel=5e-3)
            twist = (q[2] - q[0])[[number("arm_rl_pitch"), number("arm_rl_roll")]] @ [0.165, 0.015]
            assert twist == pytest.approx(drop[2] - drop[0], rel=2e-3)  # what the element takes for the drop link's way
    q = moved(rack=np.array([-0.01, 0.01]))
    axis = body_pose(machine(), q, "wheel_fl")[0][:, :, 1]
    assert np.degrees(np.arctan2(-axis[:, 0], axis[:, 1])) == pytest.approx([5.28, -5.07], abs=0.02)
    stiff = [_cornering_stiffness(load) for load in (loads[0], loads[2])]
    assert 2.0 * (loads[0] / stiff[0] - loads[2] / stiff[1]) / 2.0 == pytest.approx(-0.0052, abs=3e-4)


def test_symmetric_modes() -> None:
    """1.33, 1.55, 5.84 and 8.95 Hz within 3 %, undamped, where the front wheels are braked and the rear ones roll without slip.

    Wheels that all roll leave the vehicle free along x: heave and pitch are then at 1.35 and 1.92 Hz. Stiffness is the slope of the
    accelerations, mass that of the tree on the ways that the loops leave.
    """
    m, at, h = machine(), standing(), 1e-5
    ways = np.eye(4) * h  # height, pitch, front and rear deflection, both sides alike
    q, position, e = _symmetric(np.concatenate([ways, -ways]))
    T = np.zeros((6 + m.n, 7))  # along x, these four, spins in front and behind
    pitch = _pitch(at)
    T[[0, 2], 0] = np.cos(pitch), np.sin(pitch)
    T[[0, 2], 1] = -np.sin(pitch), np.cos(pitch)
    T[4, 2] = 1.0
    T[6:, 1:5] = (q[:4] - q[4:]).T / (2.0 * h)
    for c in CORNERS:
        T[6 + number(f"spin_{c}"), 5 if c[0] == "f" else 6] = 1.0
    M = T.T @ open_mass_matrix(tree_of(m), at.q[None], engine="numpy")[0] @ T
    zero, still = np.zeros((8, 3)), np.zeros_like(q)
    base = BaseMotion(zero, zero, zero, zero, position=position, quaternion=e)
    slips = {s.name: np.zeros(8) for s in m.states}
    found = forward_dynamics(m, Motion(np.arange(8.0), q, still, still, base, still, signals=slips), engine="numpy")
    assert found.base is not None
    a = np.zeros((8, 7))
    a[:, :2] = (np.einsum("nij,nj->ni", matrix_of(e), found.base.acceleration) + m.gravity)[:, [0, 2]]
    a[:, 2] = found.base.omega_dot[:, 1]
    a[:, 3:] = found.qdd[:, [number(c) for c in ("lower_fl", "lower_link_rl_lift", "spin_fl", "spin_rl")]]
    K = np.zeros((7, 7))
    K[:, 1:5] = -M @ (a[:4] - a[4:]).T / (2.0 * h)
    assert np.abs(K - K.T).max() < 1e-6 * np.abs(K).max()  # of springs and weight, and none along x
    rolling = [
        np.concatenate([[1.0], _foot_way(q, position, e, wheel, radius) / (2.0 * h), spins])
        for wheel, radius, spins in (("wheel_fl", 0.333, [-0.333, 0.0]), ("wheel_rl", 0.322, [0.0, -0.322]))
    ]
    for held, expected, within in (
        ([*rolling, np.eye(7)[5]], [1.33, 1.55, 5.84, 8.95], 0.03),
        (rolling, [0.0, 1.352, 1.919, 5.807, 8.756], 1e-3),
    ):
        P = null_space(np.array(held))
        squares = np.linalg.eigvals(np.linalg.solve(P.T @ M @ P, P.T @ K @ P)).real
        assert np.sort(np.sqrt(np.abs(squares))) / (2.0 * np.pi) == pytest.approx(expected, rel=within, abs=1e-2)


def _pitch(at: Standing) -> float:
    e = np.asarray(at.base.quaternion)
    return 2.0 * float(np.arctan2(e[2], e[0]))


def _symmetric(ways: Array) -> tuple[Array, Array, Array]:
    """Coordinates, positions and quaternions (N, …) of ways (N, 4) from where it stands."""
    at = standing()
    q = moved(
        lower_fl=at.q[number("lower_fl")] + ways[:, 2],
        lower_fr=at.q[number("lower_fr")] + ways[:, 2],
        lower_link_rl_lift=at.q[number("lower_link_rl_lift")] + ways[:, 3],
        lower_link_rr_lift=at.q[number("lower_link_rr_lift")] + ways[:, 3],
    )
    half = (_pitch(at) + ways[:, 1]) / 2.0
    zero = np.zeros(len(ways))
    position = np.asarray(at.base.position) + np.column_stack([zero, zero, ways[:, 0]])
    return q, position, np.column_stack([np.cos(half), zero, np.sin(half), zero])


def _foot_way(q: Array, position: Array, e: Array, wheel: str, radius: float) -> Array:
    """By how much x of the point of a wheel that touches the road differs between the two ends of each way."""
    at = standing()
    home = rotation_of(np.asarray(at.base.quaternion)) @ body_pose(machine(), at.q[None], wheel)[0][0]
    foot = home.T @ np.array([0.0, 0.0, -radius])
    R, p = body_pose(machine(), q, wheel)
    x = np.array([(position[k] + rotation_of(e[k]) @ (p[k] + R[k] @ foot))[0] for k in range(len(q))])
    return x[:4] - x[4:]


def _cornering_stiffness(load: float) -> float:
    return 19.797 * 4000.0 * np.sin(2.0 * np.arctan(load / (1.7999 * 4000.0)))


def random_states(m: Machine, count: int) -> Motion:
    """Closed states of the buggy near where it stands, rolling ahead; the base anywhere, with its tyres pressed in and slipping."""
    machine, rng = m, np.random.default_rng(7)
    given = {c: 0.01 * rng.normal(size=count) for c in INDEPENDENT[:4]}
    given |= {c: rng.uniform(-3.0, 3.0, count) for c in INDEPENDENT[4:]} | {"rack": 0.005 * rng.normal(size=count)}
    q = close(machine, given, path=False, engine="numpy").q
    rates = 0.1 * rng.normal(size=q.shape)
    rates[:, [number(f"spin_{c}") for c in CORNERS]] += 20.0
    q, qd = onto_closure(tree_of(machine), q, rates, "numpy")
    tilted = np.column_stack([np.ones(count), 0.002 * rng.normal(size=(count, 2)), np.zeros(count)])
    yaw = rng.uniform(-3.0, 3.0, count)
    e = np.array(
        [_times(np.array([np.cos(a / 2), 0.0, 0.0, np.sin(a / 2)]), x) for a, x in zip(yaw, tilted, strict=True)]
    )
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    position = np.column_stack([10.0 * rng.normal(size=(count, 2)), 0.68 + 0.003 * rng.normal(size=count)])
    speed = np.array([7.0, 0.3, 0.0]) + 0.1 * rng.normal(size=(count, 3))
    zero = np.zeros((count, 3))
    base = BaseMotion(0.1 * rng.normal(size=(count, 3)), zero, zero, speed, position=position, quaternion=e)
    qdd, forces = np.zeros_like(q), np.zeros_like(q)
    qdd[:, number("rack")] = 0.1 * rng.normal(size=count)
    forces[:, [number(f"spin_{c}") for c in CORNERS]] = 100.0 * rng.normal(size=(count, 4))
    signals = {s.name: 0.03 * rng.normal(size=count) for s in machine.states}
    return Motion(np.arange(count) * 1.0, q, qd, qdd, base, forces, signals=signals)


def test_accelerations_are_those_of_pinocchios_bordered_system() -> None:
    """To 1e-8 of their size, springs, dampers, tyres, bar, rotors and reactions of the drives included."""
    m = machine()
    motion, stranger = random_states(m, 3), PinBuggy()
    found = forward_dynamics(m, motion, engine="numpy")
    assert found.base is not None and motion.base is not None and motion.forces is not None
    b = motion.base
    assert b.velocity is not None and b.position is not None and b.quaternion is not None
    instant = StateAccelerations(tree_of(m), m.parameters.values, engine="numpy")
    for k in range(len(motion)):
        R = rotation_of(b.quaternion[k])
        slips = {c: tuple(float(motion.signals[f"tyre_{c}.{s}"][k]) for s in ("kappa", "tan_alpha")) for c in CORNERS}
        expected = stranger.accelerations(
            b.position[k],
            R,
            R @ b.velocity[k],
            b.omega[k],
            dict(zip(m.coordinates, motion.q[k], strict=True)),
            dict(zip(m.coordinates, motion.qd[k], strict=True)),
            slips,  # pyright: ignore[reportArgumentType]
            {c: motion.forces[k, number(f"spin_{c}")] for c in CORNERS},
            motion.qdd[k, number("rack")],
        )
        assert min(expected.loads.values()) > 500.0
        assert R @ found.base.acceleration[k] + m.gravity == pytest.approx(expected.linear, rel=1e-8, abs=1e-9)
        assert found.base.omega_dot[k] == pytest.approx(expected.angular, rel=1e-8, abs=1e-9)
        joints = [expected.joints[c] for c in m.coordinates]
        assert found.qdd[k] == pytest.approx(joints, rel=1e-8, abs=1e-8)
        signals = {name: float(x[k]) for name, x in motion.signals.items()}
        pose = np.concatenate([b.position[k], b.quaternion[k]])
        rates = instant.state_rates(motion.q[k], motion.qd[k], signals, b.omega[k], b.velocity[k], pose)
        assert rates == pytest.approx([x for c in CORNERS for x in expected.slip_rates[c]], rel=1e-9)


@pytest.mark.parametrize("small", [False, True])
def test_natural_coordinates_have_the_same_accelerations(small: bool) -> None:
    """Accelerations of the tree to 1e-9 of their size, with tyres, bar, rotors, drives and the prescribed rack, and Pinocchio's to 1e-8.

    The force that leads the rack, slip rates and energies too. 181 coordinates and 167 equations, none twice; 136 and 122 where points that
    follow from a body are substituted.
    """
    m = machine()
    tree, motion, stranger = tree_of(m), random_states(m, 3), PinBuggy()
    found = forward_dynamics(m, motion, engine="numpy")
    b = motion.base
    assert found.base is not None and found.forces is not None and motion.forces is not None and b is not None
    assert b.velocity is not None and b.position is not None and b.quaternion is not None
    mechanism = mechanism_of(m.with_formulation("natural"))
    system = system_of(compact(mechanism) if small else mechanism)
    assert (system.n, system.constraints.m) == ((136, 122) if small else (181, 167))
    freedoms = freedoms_of(system, tree, INDEPENDENT)
    own = [number(c) for c in INDEPENDENT]
    instant = StateAccelerations(tree, m.parameters.values, engine="numpy")
    store = energy(
        m, motion, base_rotation=matrix_of(b.quaternion), base_position=b.position, parameters=m.parameters.values
    )
    for k in range(len(motion)):
        R, rack = rotation_of(b.quaternion[k]), number("rack")
        q = pose_of_tree(system, tree, motion.q[k], b.position[k], R)
        at = system.holding({"rack": [motion.q[k, rack], motion.qd[k, rack], motion.qdd[k, rack]]})
        qd = freedoms.rates(at, q, np.concatenate([R @ b.velocity[k], b.omega[k], motion.qd[k, own]]))
        assert mobility(at, q).degrees_of_freedom == 14 and mobility(at, q).redundant == ()
        slips = np.array([motion.signals[name][k] for name in system.wheels.states])
        loads = {f"brake_{c}": motion.forces[k, number(f"spin_{c}")] for c in CORNERS}
        qdd, lam = solve_accelerations(at, q, qd, loads, slips)
        zdd = freedoms.rows(q) @ qdd + freedoms.bend(qd, qd)
        expected = np.concatenate(
            [R @ found.base.acceleration[k] + m.gravity, found.base.omega_dot[k], found.qdd[k, own]]
        )
        assert np.abs(zdd - expected).max() <= 1e-9 * np.abs(expected).max()
        assert -lam[system.constraints.held[0]] == pytest.approx(found.forces[k, rack], rel=1e-8)
        signals = {name: float(x[k]) for name, x in motion.signals.items()}
        pose = np.concatenate([b.position[k], b.quaternion[k]])
        rates = instant.state_rates(motion.q[k], motion.qd[k], signals, b.omega[k], b.velocity[k], pose)
        # differences of speeds of 7 m/s over half a metre
        assert system.wheels.evaluate(q, qd, slips).rates == pytest.approx(rates, rel=1e-9, abs=1e-8)
        both = natural_energy(system, q, qd)
        assert both.kinetic == pytest.approx(store.kinetic[k], rel=1e-10)
        assert both.gravity == pytest.approx(store.gravity[k], rel=1e-10)
        assert both.elastic == pytest.approx(store.elastic[k], rel=1e-9)
        stranger_finds = stranger.accelerations(
            b.position[k],
            R,
            R @ b.velocity[k],
            b.omega[k],
            dict(zip(m.coordinates, motion.q[k], strict=True)),
            dict(zip(m.coordinates, motion.qd[k], strict=True)),
            {c: (slips[2 * i], slips[2 * i + 1]) for i, c in enumerate(CORNERS)},
            {c: motion.forces[k, number(f"spin_{c}")] for c in CORNERS},
            motion.qdd[k, rack],
        )
        joints = [stranger_finds.joints[c] for c in INDEPENDENT]
        other = np.concatenate([stranger_finds.linear, stranger_finds.angular, joints])
        assert np.abs(zdd - other).max() <= 1e-8 * np.abs(other).max()


def test_the_way_it_faces_does_not_matter() -> None:
    """The same state seen at other headings, π/2 and beyond a half turn among them: the same accelerations in the chassis' axes."""
    m = machine()
    motion = random_states(m, 1)
    b = motion.base
    assert b is not None and b.quaternion is not None and b.position is not None
    found = []
    for yaw in (0.0, np.pi / 2, 3.0, 40.0):
        half = np.array([np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)])
        turn = matrix_of(half[None])[0]
        e = _times(half, b.quaternion[0])
        there = replace(b, quaternion=e[None], position=(turn @ b.position[0])[None])
        found.append(forward_dynamics(m, replace(motion, base=there), engine="numpy").qdd[0])
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-9, abs=1e-8)


def _times(a: Array, b: Array) -> Array:
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate([[w], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def test_toe_turns_hubs_and_linear_tyres_carry_the_same_weight() -> None:
    turned = buggy(toe=MISALIGNED, tyres="linear")
    q = np.zeros((1, turned.n))
    moment = turned
    for c in CORNERS:
        element = next(e for e in moment.wheels if e.parameter_name == f"tyre_{c}")
        assert element.wheel is not None
        axis = body_pose(moment, q, f"wheel_{c}")[0][0] @ np.array(element.wheel.axis)
        assert np.arctan2(-axis[0], axis[1]) == pytest.approx(MISALIGNED[c], abs=1e-12)
    assert moment.with_constants({"tyre_fl.C_ALPHA": 5e4}).constants != moment.constants
