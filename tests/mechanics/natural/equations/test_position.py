"""Position, velocity and acceleration problems against closed forms and finite differences; poses that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.graph_machines import seven_joint_arm
from strangers.natural_mechanisms import fourbar, random_mechanism
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.dynamics import solve_accelerations
from veridyn.mechanics.natural.equations.position import acceleration, independent, position, r_matrix, r_rate, velocity
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.motion import Motion
from veridyn.model.point_parts import MechanismJoint, Point, RigidBody, uniform_bar


def upper(phi: float) -> np.ndarray:
    """The four-bar of FACTS 6 by circles: where the rod's and the rocker's meet, above the line between their centres."""
    p = 2 * np.array([np.cos(phi), np.sin(phi)])
    d = np.array([10.0, 0.0]) - p
    L = np.linalg.norm(d)
    a = (64 - 25 + L**2) / (2 * L)
    up = np.array([-d[1], d[0]]) / L
    return np.concatenate([p, p + a * d / L + np.sqrt(64 - a**2) * up, [phi]])


@pytest.mark.parametrize("phi", np.linspace(-3.0, 3.0, 13))
def test_four_bar_in_closed_form(phi: float) -> None:
    system = system_of(fourbar())
    q = position(system, {"phi": phi}, upper(phi) + np.array([0.1, -0.1, 0.05, 0.2, 0.0]))
    assert q == pytest.approx(upper(phi), abs=1e-11)
    h = 1e-5
    qd = velocity(system, q, {"phi": 1.7})
    assert qd == pytest.approx(1.7 * (upper(phi + h) - upper(phi - h)) / (2 * h), abs=1e-8)
    qdd = acceleration(system, q, qd, {"phi": 0.0})
    bend = (upper(phi + 1e-3) - 2 * upper(phi) + upper(phi - 1e-3)) / 1e-6
    assert qdd == pytest.approx(1.7**2 * bend, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_an_arm_far_from_home_has_its_own_angles(seed: int) -> None:
    """Up to 3 rad from where it is drawn each body is where the tree has it, and not half a turn about its joint from there."""
    machine = seven_joint_arm()
    tree, system = tree_of(machine), system_of(mechanism_of(machine))
    angles = np.random.default_rng(seed).uniform(-3.0, 3.0, tree.n)
    q = position(system, dict(zip(tree.coordinates, angles.tolist(), strict=True)))
    at = [system.mechanism.index(c) for c in tree.coordinates]
    assert q[at] == pytest.approx(angles, abs=1e-12)
    still = np.zeros((1, tree.n))
    falling = forward_dynamics(tree, Motion(np.zeros(1), angles[None], still, still, forces=still), engine="numpy").qdd[
        0
    ]
    found = solve_accelerations(system, q, np.zeros(system.n))[0][at]
    assert found == pytest.approx(falling, abs=1e-9 * np.abs(falling).max())


def test_half_a_turn_from_an_angle_is_refused() -> None:
    """sin(φ − θ) = 0 holds there too, and nothing but the sign of cos(φ − θ) tells."""
    system = system_of(fourbar())
    guess = position(system, {"phi": 1.0})
    guess[system.mechanism.index("phi")] += np.pi
    assert np.abs(system.constraints.values(guess)).max() < 1e-9
    with pytest.raises(DataError, match="coordinate 'phi': no pose near the guess has this angle"):
        position(system, None, guess)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_r_matrix_and_its_rate(seed: int, dim: int) -> None:
    """Φ_q R = 0 and, along q̇ = R ż, R(q + h q̇ + …) − R(q − h q̇ + …) = 2 h Ṙ on the constraint manifold."""
    rng = np.random.default_rng(600 + seed)
    system = system_of(random_mechanism(rng, dim).mechanism)
    q = position(system)
    names = independent(system, q)
    if not names:
        pytest.skip("a structure does not move")
    z = system.select(names)
    R = r_matrix(system, q, names)
    assert np.array_equal(R[z], np.eye(len(names)))
    assert np.abs(system.constraints.jacobian(q) @ R).max() <= 1e-9 * max(1.0, np.abs(R).max()) * _size(system, q)
    zd = rng.normal(size=len(names))
    qd = R @ zd / max(1.0, np.abs(R @ zd).max())
    zd = qd[z]
    rate = r_rate(system, q, qd, names)
    h = 1e-5
    ahead, behind = (
        position(system, dict(zip(names, q[z] + s * h * zd, strict=True)), q + s * h * qd) for s in (1.0, -1.0)
    )
    slope = (r_matrix(system, ahead, names) - r_matrix(system, behind, names)) / (2 * h)
    scale = max(1.0, np.abs(rate).max()) * max(1.0, np.abs(R).max()) ** 2
    assert np.abs(rate - slope).max() <= 1e-6 * scale
    qdd = acceleration(system, q, qd, dict.fromkeys(names, 0.0))
    assert qdd == pytest.approx(rate @ zd, abs=1e-8 * scale)


def _size(system: NaturalSystem, q: np.ndarray) -> float:
    return max(1.0, float(np.abs(system.constraints.jacobian(q)).max()))


def test_preferred_coordinates_come_first() -> None:
    system = system_of(fourbar())
    q = position(system, {"phi": 1.0})
    assert independent(system, q) == ("phi",)
    assert independent(system, q, ["2.x"]) == ("2.x",)


def test_a_coordinate_that_locks_is_not_independent() -> None:
    """At φ = 0 the crank's x stands still, so it cannot drive."""
    system = system_of(fourbar())
    q = position(system, {"phi": 0.0}, upper(0.0))
    assert independent(system, q, ["1.x"]) == ("phi",)
    with pytest.raises(DataError, match=r"do not determine '1.y' at this pose|do not determine 'phi' at this pose"):
        velocity(system, q, {"1.x": 1.0})


def test_a_pose_out_of_reach_is_refused_by_name() -> None:
    system = system_of(fourbar())
    with pytest.raises(
        DataError, match=r"(?s)fourbar: the mechanism cannot reach this pose.*1.x = 2.5.*'crank: \|A-1\|'.*open"
    ):
        position(system, {"1.x": 2.5})


def test_contradictory_constraints_are_refused_by_name() -> None:
    """A triangle whose sides break the triangle inequality."""
    points = [Point("A", (0, 0), True), Point("B", (5, 0), True), Point("P", (1, 1))]
    bars = [uniform_bar("left", "A", "P", 1.0, 1.0), uniform_bar("right", "B", "P", 1.0, 1.0)]
    with pytest.raises(ModelError, match=r"(?s)contradict each other.*'(left: \|A-P\||right: \|B-P\|)'.*open by"):
        position(system_of(Mechanism.build(points, bars)))


def test_contradictory_joints_are_refused_even_with_a_coordinate_held() -> None:
    points = [Point("A", (0, 0), True), Point("P", (1, 0))]
    mechanism = Mechanism.build(
        points,
        [RigidBody("bar", {"A": (0, 0), "P": (1, 0)}, mass=1.0)],
        joints=[MechanismJoint("rope", "distance", "A", "P", 1.3)],
    )
    with pytest.raises(ModelError, match=r"(?s)contradict each other.*'rope' \(joint 'rope'\) open by"):
        position(system_of(mechanism), {"P.x": 0.2})


def test_rates_must_be_independent_and_complete() -> None:
    system = system_of(fourbar())
    q = position(system, {"phi": 1.0})
    with pytest.raises(DataError, match=r"(?s)do not determine.*Expected 1 independent coordinates, found 0"):
        velocity(system, q, {})
    with pytest.raises(DataError, match="contradict the constraints"):
        velocity(system, q, {"phi": 1.0, "1.x": 3.0})
    with pytest.raises(ModelError, match="there is no coordinate 'psi'"):
        velocity(system, q, {"psi": 1.0})
    with pytest.raises(DataError, match=r"(?s)no pose of this mechanism.*\(5,\) finite"):
        position(system, guess=np.zeros(4))
    with pytest.raises(DataError, match="not finite"):
        position(system, {"phi": np.nan})
