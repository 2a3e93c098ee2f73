"""The recursion itself: one law over floats, arrays and anything with + − *, checked against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.random_trees import random_inertia, random_motion, random_placement, random_tree
from veridyn.mechanics.tree.recursion.inputs import acting_of, complete_values, split, state_of
from veridyn.mechanics.tree.recursion.kinematics import jacobian
from veridyn.mechanics.tree.recursion.newton_euler import (
    State,
    body_wrench,
    carry,
    inward,
    joint_force,
    joint_forces,
    outward,
    pose,
    project,
    rate_matrix,
    rigid_rows,
    row_of,
    to_antecedent,
)
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.spatial.algebra import ARRAYS, FLOATS
from veridyn.spatial.rotations import MDH


def mdh_transform(p: MDH) -> np.ndarray:
    """iTj = Rz(γ) Tz(b) Rx(α) Tx(d) Rz(θ) Tz(r), as a product of six elementary transforms."""

    def turn(axis: int, angle: float) -> np.ndarray:
        T = np.eye(4)
        i, k = (axis + 1) % 3, (axis + 2) % 3
        T[i, i] = T[k, k] = np.cos(angle)
        T[k, i], T[i, k] = np.sin(angle), -np.sin(angle)
        return T

    def shift(axis: int, length: float) -> np.ndarray:
        T = np.eye(4)
        T[axis, 3] = length
        return T

    return turn(2, p.gamma) @ shift(2, p.b) @ turn(0, p.alpha) @ shift(0, p.d) @ turn(2, p.theta) @ shift(2, p.r)


@pytest.mark.parametrize("seed", range(20))
def test_pose_adds_the_coordinate_to_theta_or_r(seed: int) -> None:
    """(1) of paper 000 with θ + q for a turning joint and r + q for a sliding one."""
    rng = np.random.default_rng(seed)
    place, q = random_placement(rng, mdh=True), float(rng.normal())
    for joint in ("turning", "sliding", "fixed"):
        tree = Tree.build([Body("1", "ground", joint, place)])
        A, P = pose(tree, 0, q, FLOATS)
        theta = place.theta + (q if joint == "turning" else 0.0)
        r = place.r + (q if joint == "sliding" else 0.0)
        T = mdh_transform(MDH(place.gamma, place.b, place.alpha, place.d, theta, r))
        assert np.array(A) == pytest.approx(T[:3, :3], abs=1e-14)
        assert np.array(P) == pytest.approx(T[:3, 3], abs=1e-14)


def test_rate_matrix_is_the_derivative_of_omega_cross() -> None:
    w, wd = np.random.default_rng(0).normal(size=(2, 3))
    U = np.array(rate_matrix(tuple(w), tuple(wd)))
    for x in np.eye(3):
        assert U @ x == pytest.approx(np.cross(wd, x) + np.cross(w, np.cross(w, x)), abs=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_body_wrench_is_that_of_its_mass_points(seed: int) -> None:
    """(11) and (12) against Σ mᵢ aᵢ and Σ rᵢ × mᵢ aᵢ of a cloud of points that has the same ten parameters."""
    rng = np.random.default_rng(seed)
    m, r = rng.uniform(0.1, 1.0, 7), rng.normal(size=(7, 3))
    J = sum(mi * ((ri @ ri) * np.eye(3) - np.outer(ri, ri)) for mi, ri in zip(m, r, strict=True))
    X = [*J[np.triu_indices(3)], *(m @ r), m.sum()]
    w, wd, vd = (tuple(x) for x in rng.normal(size=(3, 3)))
    a = np.array(vd) + np.cross(wd, r) + np.cross(w, np.cross(w, r))
    F, N = body_wrench(w, wd, rate_matrix(w, wd), vd, X)
    assert np.array(F) == pytest.approx(m @ a, abs=1e-12)
    assert np.array(N) == pytest.approx(np.cross(r, m[:, None] * a).sum(axis=0), abs=1e-12)


def test_to_antecedent_moves_the_moment() -> None:
    rng = np.random.default_rng(1)
    place = random_placement(rng, mdh=False)
    f, m = rng.normal(size=(2, 3))
    A, P = place.rotation, place.position
    F, M = to_antecedent(tuple(map(tuple, A)), tuple(P), (tuple(f), tuple(m)))
    assert np.array(F) == pytest.approx(A @ f, abs=1e-14)
    assert np.array(M) == pytest.approx(A @ m + np.cross(P, A @ f), abs=1e-14)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(6))
def test_one_law_for_floats_and_for_arrays(seed: int, base: str) -> None:
    """A sample by Python floats is the same sample by arrays, to the last bit of what NumPy and math round alike."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, base=base, shared=bool(seed % 2))
    motion = random_motion(rng, tree, 4)
    X, _ = split(tree, complete_values(tree))
    batch = rigid_rows(tree, outward(tree, state_of(tree, motion), ARRAYS), X, acting_of(tree, motion))
    for k in range(len(motion)):
        s = state_of(tree, motion)
        one = State(
            *([float(x[k]) for x in group] for group in (s.q, s.qd, s.qdd)),
            *(tuple(float(np.broadcast_to(x, 4)[k]) for x in v) for v in (s.w, s.wd, s.vd, s.v)),
        )
        acting = {
            j: tuple(tuple(float(x[k]) for x in part) for part in wrench)
            for j, wrench in acting_of(tree, motion).items()
        }
        alone = rigid_rows(tree, outward(tree, one, FLOATS), X, acting)
        scale = max(abs(x) for x in alone)
        for a, b in zip(alone, batch, strict=True):
            assert a == pytest.approx(np.broadcast_to(b, 4)[k], abs=1e-13 * scale)


def test_the_recursion_runs_on_any_algebra() -> None:
    """Numbers that count: a 6-body planar chain along x needs few multiplications once zeros and ones fold."""

    class Counted:
        made = 0

        def __init__(self, value: float) -> None:
            self.value = value

        def _of(self, other: object) -> float:
            return other.value if isinstance(other, Counted) else float(other)  # type: ignore[arg-type]

        def __mul__(self, other: object) -> Counted:
            Counted.made += 1
            return Counted(self.value * self._of(other))

        def __add__(self, other: object) -> Counted:
            return Counted(self.value + self._of(other))

        def __sub__(self, other: object) -> Counted:
            return Counted(self.value - self._of(other))

        def __rsub__(self, other: object) -> Counted:
            return Counted(self._of(other) - self.value)

        def __neg__(self) -> Counted:
            return Counted(-self.value)

        __rmul__, __radd__ = __mul__, __add__

    class Algebra:
        def sin(self, x: Counted) -> Counted:
            return Counted(np.sin(x.value))

        def cos(self, x: Counted) -> Counted:
            return Counted(np.cos(x.value))

        def sign(self, x: Counted) -> Counted:
            return Counted(np.sign(x.value))

    rng = np.random.default_rng(2)
    bodies = [
        Body(str(j), "ground" if j == 1 else str(j - 1), placement=MDH(d=0.3 if j > 1 else 0.0)) for j in range(1, 7)
    ]
    tree = Tree.build(bodies, gravity=(0.0, -9.81, 0.0), inertia={b.name: random_inertia(rng) for b in bodies})
    X, _ = split(tree, complete_values(tree))
    values = rng.normal(size=(3, 6))
    symbols = State(*([Counted(v) for v in row] for row in values), vd=(0.0, 9.81, 0.0))
    floats = State(*(row.tolist() for row in values), vd=(0.0, 9.81, 0.0))
    rows = rigid_rows(tree, outward(tree, symbols, Algebra()), X)
    expected = rigid_rows(tree, outward(tree, floats, FLOATS), X)
    assert [r.value for r in rows] == pytest.approx(expected, rel=1e-12)
    # In the plane ω and ω̇ have one component and the frames turn about z only; 65 multiplications a body are plenty.
    assert 0 < Counted.made < 6 * 65


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_carry_is_the_transposed_jacobian(base: str) -> None:
    """Gⱼᵀ w: what rows feel of a wrench is Jᵀ of the body's own Jacobian, by virtual work."""
    rng = np.random.default_rng(3)
    tree = random_tree(rng, bodies=9, base=base, shared=True)
    motion = random_motion(rng, tree, 5, wrenches=False)
    o = outward(tree, state_of(tree, motion), ARRAYS)
    for j, b in enumerate(tree.bodies):
        f, m = rng.normal(size=(2, 3))
        J = jacobian(tree, motion.q, b.name, frame="body")
        expected = np.einsum("nir,i->nr", J, [*f, *m])
        got = np.zeros_like(expected)
        for r, value in carry(tree, o, j, (tuple(f), tuple(m))).items():
            got[:, r] = value
        assert got == pytest.approx(expected, abs=1e-12)
        assert sum(1 for _ in joint_forces(tree, o, j, (tuple(f), tuple(m)))) >= len(
            carry(tree, o, j, (tuple(f), tuple(m)))
        )


def test_rows_of_the_inward_pass() -> None:
    """Fixed joints have no row; a free base has six; a sliding joint feels the force along z, a turning one the moment."""
    bodies = [
        Body("c", None, "fixed"),
        Body("a", "c", "sliding"),
        Body("b", "a", "fixed"),
        Body("d", "b", "turning", ratio=2.0),
    ]
    tree = Tree.build(bodies, base="free")
    assert [row_of(tree, j) for j in range(4)] == [None, 6, None, 7]
    wrench = ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    assert joint_force(tree, 1, wrench) == 3.0
    assert joint_force(tree, 3, wrench) == 12.0
    o = outward(tree, State([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]), FLOATS)
    none = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    total = inward(tree, o, [none, none, none, wrench])
    assert project(tree, total) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 3.0, 12.0]


def test_velocity_is_computed_only_where_asked() -> None:
    rng = np.random.default_rng(4)
    tree = random_tree(rng, bodies=5)
    state = state_of(tree, random_motion(rng, tree, 3, wrenches=False))
    assert all(v == (0.0, 0.0, 0.0) for v in outward(tree, state, ARRAYS).v)
    assert any(not isinstance(x, float) for v in outward(tree, state, ARRAYS, velocity=True).v for x in v)
