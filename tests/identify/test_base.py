"""Base parameters: counts and relations of the papers, and the identity D φ = D[:, columns] χ."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from strangers.cars import TEN_ROWS, all_real, car_20, car_38, car_2002, estimated_33, round_wheels_2002
from strangers.random_trees import random_motion, random_open_machine
from veridyn.errors import DataError
from veridyn.identify.base import BaseParameters, base_parameters, generic_motion, group
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.elsewhere import on_six_joints
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import body_motion, body_pose, jacobian
from veridyn.model.elements.element import damper, offset, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion

RNG_SHAPE = (40, 6)


def matrix(seed: int = 0, shape: tuple[int, int] = RNG_SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_independent_columns_all_stay() -> None:
    g = group(matrix(), np.ones(6))
    assert g.kept == tuple(range(6)) and g.rank == 6 and g.dead == () and g.gap == np.inf
    assert np.array_equal(g.matrix, np.eye(6))


def test_of_dependent_columns_the_earlier_stay() -> None:
    """Column 4 is 2 c0 − c3 and column 5 is c1/2: both go, to the columns before them, with exact coefficients."""
    A = matrix()
    A[:, 4] = 2.0 * A[:, 0] - A[:, 3]
    A[:, 5] = 0.5 * A[:, 1]
    g = group(A, np.ones(6))
    assert g.kept == (0, 1, 2, 3)
    expected = np.zeros((4, 6))
    expected[:, :4] = np.eye(4)
    expected[[0, 3], 4] = 2.0, -1.0
    expected[1, 5] = 0.5
    assert np.array_equal(g.matrix, expected)


@pytest.mark.parametrize("seed", range(10))
def test_the_identity_of_groups(seed: int) -> None:
    """A φ = A[:, kept] K φ for a matrix of any rank and columns of any size."""
    rng = np.random.default_rng(seed)
    rank, p = int(rng.integers(1, 8)), 10
    A = rng.normal(size=(50, rank)) @ rng.normal(size=(rank, p))
    sizes = 10.0 ** rng.uniform(-3, 3, p)
    A = A / sizes
    g = group(A, sizes)
    assert g.rank == len(g.kept) == rank and g.gap > 1e6
    assert A[:, list(g.kept)] @ g.matrix == pytest.approx(A, abs=1e-10 * np.abs(A).max())
    # No earlier column depends on the kept ones before it: the kept set is the greedy one.
    first = [
        c
        for c in range(p)
        if np.linalg.matrix_rank(A[:, : c + 1] * sizes[: c + 1], tol=1e-8) == len([k for k in g.kept if k <= c])
    ]
    assert first == list(range(p))


def test_a_column_of_rounding_is_dead_not_a_direction() -> None:
    """FACTS: scaling by column norms would turn a 1e-17 column into a unit one; typical sizes do not."""
    A = matrix()
    A[:, 2] *= 1e-17
    g = group(A, np.ones(6))
    assert g.dead == (2,) and g.kept == (0, 1, 3, 4, 5) and not g.matrix[:, 2].any()


def test_typical_sizes_decide_what_is_small() -> None:
    """The same small column is a parameter where its typical size is large."""
    A = matrix()
    A[:, 2] *= 1e-11
    assert 2 not in group(A, np.ones(6)).kept
    typical = np.ones(6)
    typical[2] = 1e11
    assert 2 in group(A, typical).kept


def test_gap_is_the_ratio_across_the_cut() -> None:
    A = np.diag([4.0, 2.0, 2e-11])
    g = group(A, np.ones(3))
    assert g.rank == 2 and g.gap == pytest.approx(1e11)
    assert group(A, np.ones(3), tolerance=1e-12).rank == 3


def test_exact_zero_singular_values_give_an_infinite_gap() -> None:
    A = 100.0 * np.array([[1.0, 1.0], [0.0, 0.0]])
    A[1, 0] = A[1, 1] = 100.0
    g = group(A, np.ones(2))
    assert g.rank == 1 and g.gap > 1e12


def test_nothing_at_all() -> None:
    g = group(np.zeros((5, 3)), np.ones(3))
    assert (g.kept, g.dead, g.rank) == ((), (0, 1, 2), 0) and g.matrix.shape == (0, 3)
    assert group(np.zeros((0, 2)), np.ones(2)).dead == (0, 1)


def test_fewer_rows_than_columns() -> None:
    A = matrix(1, (3, 6))
    g = group(A, np.ones(6))
    assert g.rank == 3 and g.kept == (0, 1, 2) and len(g.singular_values) == 6


def test_the_triangle_of_a_factor_says_the_same() -> None:
    A = matrix()
    A[:, 3] = A[:, 0] + A[:, 1]
    a, b = group(A, np.ones(6)), group(np.linalg.qr(A, mode="r"), np.ones(6))
    assert a.kept == b.kept and a.matrix == pytest.approx(b.matrix, abs=1e-12)
    assert a.singular_values[:5] == pytest.approx(b.singular_values[:5])


def test_coefficients_are_as_clean_as_they_are_known() -> None:
    """Columns 3 and 4 are nearly parallel, so that rounding makes of the relation of the last a small share of both: it is none."""
    A = matrix()
    A[:, 4] = A[:, 3] + 1e-8 * A[:, 4]
    A[:, 5] = A[:, 0] + 0.4 * A[:, 1]
    A[:, 5] *= 1.0 + 1e-15 * np.random.default_rng(3).normal(size=len(A))
    g = group(A, np.ones(6))
    assert g.kept == (0, 1, 2, 3, 4)
    assert g.matrix[:, 5].tolist() == [1.0, pytest.approx(0.4, abs=1e-14), 0.0, 0.0, 0.0]


def test_what_is_hidden_need_not_be_in_a_relation() -> None:
    """A column that is another one but for 1e-6 of a third, which nobody sees below 1e-5 of the largest."""
    A = matrix()
    A[:, 5] = A[:, 1] + 1e-6 * A[:, 2]
    size = float(np.linalg.norm(A, 2))
    assert group(A, np.ones(6)).matrix[2, 5] == pytest.approx(1e-6)
    g = group(A, np.ones(6), tolerance=1e-5, hidden=1e-5 * size)
    assert g.matrix[:, 5].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]


SEEDS = range(60)


def random_case(seed: int) -> Machine:
    rng = np.random.default_rng(300 + seed)
    return random_open_machine(rng, bodies=2 + seed % 8, base="free" if seed % 2 else "fixed", shared=seed % 6 == 5)


def evaluated(base: BaseParameters, phi: np.ndarray) -> np.ndarray:
    """χ from the printed relations alone: their text read back and evaluated."""
    values = dict(zip(base.parameters.names, phi, strict=True))
    told = {}
    for line in base.relations():
        name, _, right = line.partition(" = ")
        total = 0.0
        for sign, term in re.findall(r"(?:^|\s)([+-]?)\s*([^\s+-][^\s]*)", right):
            factor, _, own = term.rpartition("*")
            total += (-1.0 if sign == "-" else 1.0) * (float(factor) if factor else 1.0) * values[own]
        told[name] = total
    return np.array([told[n] if n in told else values[n] for n in base.names])


@pytest.mark.parametrize("seed", SEEDS)
def test_base_parameters_reproduce_the_dynamics(seed: int) -> None:
    """D φ = D[:, columns] χ to 1e-12 of the largest, on a motion the grouping has not seen."""
    machine = random_case(seed)
    motion = random_motion(np.random.default_rng(seed), machine, 8, wrenches=False)
    D = regressor(machine, motion)
    phi = np.random.default_rng(seed).normal(size=len(machine.parameters))
    for base in (base_parameters(machine), base_parameters(machine, generic_motion(machine, 300))):
        whole = D @ phi
        reduced = D[:, :, list(base.columns)] @ base.reduce(phi)
        assert np.abs(whole - reduced).max() <= 1e-12 * np.abs(whole).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_printed_relations_say_the_same(seed: int) -> None:
    base = base_parameters(random_case(seed))
    phi = np.random.default_rng(seed).normal(size=len(base.parameters))
    assert evaluated(base, phi) == pytest.approx(base.reduce(phi), rel=1e-9, abs=1e-9)
    assert len(base.relations()) == sum(n.endswith("R") for n in base.names)


def test_a_relation_with_a_factor_is_read_as_printed() -> None:
    machine = Machine.of_bodies(
        [
            Body("1"),
            Body(
                "2",
                "1",
                placement=tree_of(random_open_machine(np.random.default_rng(1), 2, mdh=False)).bodies[1].placement,
            ),
        ]
    )
    base = base_parameters(machine)
    assert any("*M2" in line for line in base.relations())


# The car of paper 001.


def test_car_of_2002_has_twenty() -> None:
    """FACTS 1.4: 20, not the 23 of Table 3, with exactly two groups."""
    base = base_parameters(round_wheels_2002(car_2002()))
    assert base.count == 20
    assert base.relations() == ["YY6R = YY6 + XX9 + XX12", "ZZ6R = ZZ6 + XX9 + XX12"]
    chassis = ["XX6", "XY6", "XZ6", "YY6R", "YZ6", "ZZ6R", "MX6", "MY6", "MZ6", "M6"]
    wheels = ["ZZ9", "M9", "ZZ12", "M12", "XX16", "ZZ16", "M16", "XX20", "ZZ20", "M20"]
    assert list(base.names) == chassis + wheels
    assert base_parameters(round_wheels_2002(car_2002()), generic_motion(car_2002(), 200)).count == 20


def test_car_of_2002_without_symmetry_has_forty_eight() -> None:
    base = base_parameters(car_2002())
    assert base.count == 48
    assert base.relations() == [
        "YY6R = YY6 + YY9 + YY12",
        "ZZ6R = ZZ6 + YY9 + YY12",
        "XX9R = XX9 - YY9",
        "XX12R = XX12 - YY12",
    ]
    assert base_parameters(car_2002("all")).count == 78


def test_car_of_2002_with_one_steering_angle_has_nineteen() -> None:
    """FACTS 1.8: two torque rows still 20, one shared coordinate 19 and 47; the six chassis rows alone the same."""
    shared = car_2002(shared_steering=True)
    assert shared.n == 15
    base = base_parameters(round_wheels_2002(shared))
    assert base.count == 19 and "XX16R = XX16 + XX20" in base.relations()
    assert base_parameters(shared).count == 47
    six = shared.coordinates[:6]
    assert base_parameters(round_wheels_2002(shared), rows=six).count == 19
    assert base_parameters(shared, rows=six).count == 47


def test_car_of_2002_with_equal_angles_in_two_rows_has_twenty() -> None:
    machine = round_wheels_2002(car_2002())
    motion = equal_steering(machine, generic_motion(machine, 200), ("q14", "q18"))
    assert base_parameters(machine, motion).count == 20


def test_frames_of_the_car_of_2002() -> None:
    """FACTS 1.2: x6 right, y6 down, z6 forward; the suspension frames x forward, y left, z up; wheel axes to the left."""
    machine = car_2002()
    still = np.zeros((1, machine.n))
    assert body_pose(machine, still, "6")[0][0] == pytest.approx(np.array([[0, 0, 1], [-1, 0, 0], [0, -1, 0]]))
    centres = {b: body_pose(machine, still, b)[1][0] for b in ("7", "10", "13", "17")}
    assert centres["7"][1] > 0 > centres["10"][1] and centres["13"][0] > 2 and centres["17"][0] > 2
    assert body_pose(machine, still, "9")[0][0][:, 2] == pytest.approx([0, 1, 0])


# The cars of paper 000.


def equal_steering(machine: Machine, motion: Motion, pair: tuple[str, str]) -> Motion:
    a, b = (machine.coordinates.index(c) for c in pair)
    copies = {}
    for name in ("q", "qd", "qdd"):
        x = getattr(motion, name).copy()
        x[:, b] = x[:, a]
        copies[name] = x
    return replace(motion, **copies)


@pytest.mark.parametrize(
    ("make", "counts"),
    [(car_20, {"all": 84, "unsprung": 36, "wheels": 64}), (car_38, {"all": 186, "unsprung": 50, "wheels": 78})],
)
def test_cars_of_2006(make: type, counts: dict[str, int]) -> None:
    """FACTS 2.7 and 2.8: by the rules; and by rank with all rows, the ten, and the six chassis rows."""
    for which, count in counts.items():
        machine = make(which)
        assert base_parameters(machine).count == count
        if which != "all" or make is car_20:
            motion = generic_motion(machine, 120)
            assert [base_parameters(machine, motion, rows=r).count for r in ("all", TEN_ROWS, "base")] == [count] * 3
    assert (car_20().n, len(car_20().rows)) == (14, 20)
    assert (car_38().n, len(car_38().rows)) == (32, 38)


@pytest.mark.parametrize(("make", "count"), [(car_20, 94), (car_38, 196)])
def test_inertia_on_virtual_bodies_adds_ten_that_mean_nothing(make: type, count: int) -> None:
    assert base_parameters(all_real(on_six_joints(make()))).count == count


def test_relations_of_the_twenty_dof_car() -> None:
    """FACTS 2.8: rear unsprung inertias go to the chassis whole, of the front ones YY, twice."""
    lines = base_parameters(car_20()).relations()
    assert "XX_cR = XX_c + XX3 + XX4 + YY1 + YY2" in lines
    assert "YY_cR = YY_c + YY3 + YY4 + YY1 + YY2" in lines
    assert "ZZ_cR = ZZ_c + ZZ3 + ZZ4" in lines
    assert "XX1R = XX1 - YY1" in lines and "XX2R = XX2 - YY2" in lines


@pytest.mark.parametrize(("which", "every", "few"), [("unsprung", 36, 31), ("wheels", 64, 59)])
def test_equal_steering_hides_five_from_the_ten_rows(which: str, every: int, few: int) -> None:
    """FACTS 2.8: with β1 = β2 all rows still separate everything, the ten (or six) do not."""
    machine = car_20(which)
    motion = equal_steering(machine, generic_motion(machine, 200), ("beta1", "beta2"))
    assert [base_parameters(machine, motion, rows=r).count for r in ("all", TEN_ROWS, "base")] == [every, few, few]


@pytest.mark.parametrize("make", [car_20, car_38])
def test_the_identification_model_has_thirty_three(make: type) -> None:
    """FACTS 2.9: 10 + 4 M + 2 k_ar + 16 + Cx."""
    base = base_parameters(estimated_33(make(elements=True)), rows=TEN_ROWS)
    assert base.count == 33 and not base.relations()


def drive(kind: str, N: int = 200) -> tuple[Machine, Motion]:
    """The 20-dof car with its 33 estimated parameters in a motion with one thing missing (FACTS 2.13)."""
    machine = estimated_33(car_20(elements=True))
    rng = np.random.default_rng(5)
    q, qd, qdd = 0.05 * rng.normal(size=(3, N, machine.n))
    omega, omega_dot, acceleration = rng.normal(size=(3, N, 3))
    acceleration[:, 2] += 9.81
    velocity = np.column_stack([rng.uniform(20.0, 30.0, N), np.zeros((N, 2))])
    z = [machine.coordinates.index(f"z{w}") for w in "1234"]
    q[:, z] -= 0.3
    if kind == "pure roll":
        for x, mean in ((q, -0.3), (qd, 0.0), (qdd, 0.0)):
            x[:, z[1]], x[:, z[3]] = 2 * mean - x[:, z[0]], 2 * mean - x[:, z[2]]
    if kind in ("suspension locked", "planar and locked", "standstill"):
        q[:, z], qd[:, z], qdd[:, z] = (-0.30, -0.29, -0.31, -0.28), 0.0, 0.0
    if kind in ("heave and push", "heave", "standstill"):
        omega[:], omega_dot[:], acceleration[:, 1] = 0.0, 0.0, 0.0
    if kind in ("heave", "standstill"):
        acceleration[:, 0] = 0.0
        velocity[:, 0] = 25.0
    if kind == "planar and locked":
        omega[:, :2], omega_dot[:, :2] = 0.0, 0.0
        acceleration[:, 0], acceleration[:, 2] = 0.0, 9.81
    if kind == "standstill":
        qd[:], qdd[:], acceleration[:, 2], velocity[:] = 0.0, 0.0, 9.81, 0.0
    return machine, Motion(0.01 * np.arange(N), q, qd, qdd, BaseMotion(omega, omega_dot, acceleration, velocity))


RANKS = {
    "rich": 33,
    "pure roll": 31,
    "suspension locked": 19,
    "planar and locked": 12,
    "heave and push": 27,
    "heave": 26,
    "standstill": 7,
}


@pytest.mark.parametrize("kind", RANKS)
def test_ranks_of_poor_motions(kind: str) -> None:
    """FACTS 2.13, from the ten rows."""
    machine, motion = drive(kind)
    assert base_parameters(machine, motion, rows=TEN_ROWS).count == RANKS[kind]


def test_standstill_weighs_the_wheels_with_their_offsets() -> None:
    """FACTS 2.13: M_j and off_j/g are one; M_c, MX_c and MY_c are all that is left of the chassis."""
    machine, motion = drive("standstill")
    base = base_parameters(machine, motion, rows=TEN_ROWS)
    names = set(base.names)
    assert {n.rstrip("R") for n in names} >= {"M_c", "MX_c", "MY_c", "M1", "M2", "M3", "M4"}
    row = base.matrix[base.names.index("M1R")]
    p = machine.parameters
    assert row[p.index("off_1")] / row[p.index("M1")] == pytest.approx(1.0 / 9.81, rel=1e-9)


@pytest.mark.parametrize("make", [car_20, car_38])
def test_wheels_sit_at_the_corners(make: type) -> None:
    """FACTS 2.1, 2.2: wheel frames parallel to the chassis at (0, ±l) and (L, ±l); wheel axes to the left."""
    machine = make("wheels")
    still = np.zeros((1, machine.n))
    bodies = ("3", "7", "13", "18") if make is car_20 else ("8", "17", "26", "35")
    for b, (x, side) in zip(bodies, ((0.0, 1), (0.0, -1), (2.7, 1), (2.7, -1)), strict=True):
        R, p = body_pose(machine, still, b)
        assert R[0] == pytest.approx(np.eye(3), abs=1e-15)
        assert (
            p[0, 0] == pytest.approx(x, abs=1e-15) and side * p[0, 1] > 0.7 and p[0, 2] == pytest.approx(0.0, abs=1e-15)
        )


@pytest.mark.parametrize("make", [car_20, car_38])
def test_mixed_and_lagrange_are_the_same_equations(make: type) -> None:
    """FACTS 2.6: joint rows equal, base rows L = J_cᵀ [f; m], with random wheel wrenches and every element, to 1e-10."""
    mixed = make("wheels", elements=True)
    lagrange = on_six_joints(mixed)
    rng = np.random.default_rng(0)
    motion = random_motion(rng, lagrange, 20, wrenches=False)
    wheels = [b.name for b in tree_of(mixed).bodies if b.label.startswith("w")]
    motion = replace(motion, wrenches={b: 100.0 * rng.normal(size=(20, 6)) for b in wheels})
    base = body_motion(lagrange, motion, "1")
    newton = Motion(motion.t, motion.q[:, 6:], motion.qd[:, 6:], motion.qdd[:, 6:], base, wrenches=motion.wrenches)
    L, rows = inverse_dynamics(lagrange, motion), inverse_dynamics(mixed, newton)
    Jc = jacobian(lagrange, motion.q, "1", frame="body")[:, :, :6]
    scale = np.abs(L).max()
    assert np.abs(L[:, 6:] - rows[:, 6:]).max() < 1e-10 * scale
    assert np.abs(L[:, :6] - np.einsum("nij,ni->nj", Jc, rows[:, :6])).max() < 1e-10 * scale


# The object itself.


def small() -> Machine:
    return Machine.of_bodies(
        [
            Body("1"),
            Body("2", "1", placement=tree_of(random_open_machine(np.random.default_rng(1), 2)).bodies[1].placement),
        ]
    )


def test_only_estimated_parameters_are_grouped() -> None:
    machine = car_2002()
    p = machine.parameters.known({"YY9": 0.5})
    base = base_parameters(machine.with_parameters(p))
    assert "YY9" not in " ".join(base.relations())
    assert "YY6R = YY6 + YY12" in base.relations()
    k = p.index("YY9")
    assert not base.matrix[:, k].any() and k not in base.dead and k not in base.columns


def test_tied_parameters_count_with_what_they_are_tied_to() -> None:
    machine = car_2002()
    base = base_parameters(machine.with_parameters(machine.parameters.tied({"YY9": "XX9"})))
    assert "YY6R = YY6 + XX9 + YY12" in base.relations()
    assert base.fate("XX9") == "grouped"


def test_elements_are_columns_among_others() -> None:
    bodies = [Body("1", joint="sliding")]
    machine = Machine.of_bodies(bodies, elements=[spring("q1"), damper("q1"), offset("q1")], gravity=(0, 0, -9.81))
    base = base_parameters(machine)
    assert base.source == "by rank on generic states"
    assert base.count == 4 and not base.relations()
    flat = Motion(np.arange(50.0), np.ones((50, 1)), np.zeros((50, 1)), np.zeros((50, 1)))
    standing = base_parameters(machine, flat)
    assert standing.count == 1 and standing.fate("h_q1") == "dead" and standing.fate("k_q1") == "grouped"


def test_several_motions_count_together() -> None:
    """One joint moves in one motion, the other in another: together they excite more than either."""
    machine = small()
    rng = np.random.default_rng(0)
    parts = []
    for moving in range(2):
        x = np.zeros((3, 40, 2))
        x[:, :, moving] = rng.normal(size=(3, 40))
        parts.append(Motion(np.arange(40.0), *x))
    alone = [base_parameters(machine, m).count for m in parts]
    both = base_parameters(machine, parts)
    assert both.count > max(alone) and "80 samples" in both.source


def test_gap_names_and_summary() -> None:
    base = base_parameters(small(), generic_motion(small(), 100))
    assert base.gap > 1e6
    text = base.summary()
    assert text.startswith(f"{base.count} base parameters of 20 standard ones (numerically, on 100 samples)")
    assert all(line in text for line in base.relations()) and "without effect: XX1" in text
    assert len(base.units) == base.count


def test_fate_and_groups_of_a_parameter() -> None:
    base = base_parameters(car_2002())
    assert (base.fate("MX6"), base.fate("YY9"), base.fate("YY6")) == ("alone", "grouped", "grouped")
    assert base.groups_of("XX12") == ["XX12R = XX12 - YY12"]
    assert set(base.groups_of("YY12")) == {"YY6R = YY6 + YY9 + YY12", "ZZ6R = ZZ6 + YY9 + YY12", "XX12R = XX12 - YY12"}


def test_reduce_wants_all_parameters_but_not_unused_ones() -> None:
    base = base_parameters(small())
    with pytest.raises(DataError, match=r"wrong number of parameters\.\nExpected \(20,\), found \(3,\)"):
        base.reduce(np.zeros(3))
    phi = np.ones(20)
    phi[list(base.dead)] = np.nan
    assert np.isfinite(base.reduce(phi)).all()


def test_a_motion_of_another_machine_is_refused() -> None:
    with pytest.raises(DataError, match="another number of coordinates"):
        base_parameters(small(), Motion(np.arange(2.0), *np.zeros((3, 2, 5))))
