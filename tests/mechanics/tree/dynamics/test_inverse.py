"""Inverse dynamics and its regressor: Γ = D φ of a motion, equal to Pinocchio on random trees of every kind.

And the adjoint of the regressor, against finite differences and Pinocchio.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.machines.arm import arm
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor, regressor_adjoint
from veridyn.mechanics.tree.recursion.equations import columns, structure
from veridyn.mechanics.tree.recursion.inputs import state_of
from veridyn.mechanics.tree.recursion.newton_euler import outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, drag, motor_inertia, offset, spring
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import hexapod
from veridyn.spatial.algebra import ARRAYS

ROUNDING = 1e-12  # of the largest value of a case
SEEDS = range(72)  # fixed and free base, with and without shared coordinates, MDH and general placements


def case(seed: int, samples: int = 6) -> tuple[Tree, Motion]:
    rng = np.random.default_rng(seed)
    base = "free" if seed % 2 else "fixed"
    mdh = (None, True, False)[seed % 3]
    tree = random_tree(rng, base=base, shared=seed % 4 >= 2, mdh=mdh, virtual=0.2 * (seed % 5 == 0))
    return tree, random_motion(rng, tree, samples)


def relative(a: np.ndarray, b: np.ndarray) -> float:
    assert a.shape == b.shape
    return float(np.abs(a - b).max(initial=0.0) / max(np.abs(b).max(initial=0.0), 1e-300))


def test_the_cases_hold_everything() -> None:
    """Turning, sliding, fixed, branched, chains, both bases, both placements, shared coordinates: none is missing."""
    trees = [case(seed)[0] for seed in SEEDS]
    joints = {b.joint for t in trees for b in t.bodies}
    placements = {type(b.placement).__name__ for t in trees for b in t.bodies}
    assert joints == {"turning", "sliding", "fixed"} and placements == {"MDH", "Placement"}
    assert {t.base for t in trees} == {"fixed", "free"}
    assert sum(t.shares_coordinates for t in trees) >= 15
    assert sum(len(set(t.antecedent)) < len(t.bodies) for t in trees) >= 40  # some body carries two
    assert sum(not b.real for t in trees for b in t.bodies) >= 5


@pytest.mark.parametrize("seed", SEEDS)
def test_equals_pinocchio_with_wrenches(seed: int) -> None:
    tree, motion = case(seed)
    assert motion.wrenches
    assert relative(inverse_dynamics(tree, motion), PinModel(tree).inverse_dynamics(motion)) < ROUNDING


@pytest.mark.parametrize("seed", range(0, 72, 6))
def test_wrenches_alone_ask_minus_their_image(seed: int) -> None:
    """Γ = D φ + Γ_ext: the wrenches' part is separate and does not know the parameters (paper 001, equation 4)."""
    tree, motion = case(seed)
    rigid = regressor(tree, motion) @ tree.parameters.values
    total = inverse_dynamics(tree, motion)
    assert relative(rigid + external_rows(tree, motion), total) < 1e-12
    assert not external_rows(tree, replace(motion, wrenches={})).any()


def test_rows_of_a_free_base_vanish_when_all_forces_are_in_the_wrenches() -> None:
    """What the base rows ask for, given as a wrench on the base, leaves nothing: paper 000, equation (19)."""
    tree, motion = case(1)
    asked = inverse_dynamics(tree, motion)
    root = tree.bodies[0].name
    before = motion.wrenches.get(root, np.zeros((len(motion), 6)))
    held = replace(motion, wrenches={**motion.wrenches, root: before + asked[:, :6]})
    left = inverse_dynamics(tree, held)
    assert np.abs(left[:, :6]).max() < 1e-12 * np.abs(asked).max()
    assert relative(left[:, 6:], asked[:, 6:]) < 1e-12


def test_rows_are_those_asked_for_in_their_order() -> None:
    tree, motion = case(3)
    every = inverse_dynamics(tree, motion)
    assert np.array_equal(inverse_dynamics(tree, motion, "base"), every[:, :6])
    assert np.array_equal(inverse_dynamics(tree, motion, "joints"), every[:, 6:])
    last, first = tree.rows[-1], tree.rows[0]
    assert np.array_equal(inverse_dynamics(tree, motion, [last, first]), every[:, [-1, 0]])


def test_other_parameters_may_be_given() -> None:
    tree, motion = case(0)
    rigid = replace(motion, wrenches={})
    double = inverse_dynamics(tree, rigid, parameters=2.0 * tree.parameters.values)
    assert relative(double, 2.0 * inverse_dynamics(tree, rigid)) < 1e-14


def test_blocks_do_not_show() -> None:
    """More samples than one block holds give the same as each sample alone."""
    rng = np.random.default_rng(5)
    tree = random_tree(rng, bodies=4)
    motion = random_motion(rng, tree, 4500)
    some = [0, 2047, 2048, 4095, 4096, 4499]
    assert np.array_equal(inverse_dynamics(tree, motion)[some], inverse_dynamics(tree, motion[np.array(some)]))


def test_a_pendulum_by_hand() -> None:
    """Point mass m at distance l on a horizontal axis: Γ = m l² q̈ + m g l sin q, q from hanging down."""
    m, l = 1.3, 0.7
    X = [0, 0, 0, m * l**2, 0, m * l**2, m * l, 0, 0, m]
    tree = Tree.build([Body("arm")], gravity=(9.81, 0.0, 0.0), inertia={"arm": X})
    q, qd, qdd = np.random.default_rng(6).normal(size=(3, 10, 1))
    motion = Motion(np.arange(10.0), q, qd, qdd)
    assert inverse_dynamics(tree, motion) == pytest.approx(m * l**2 * qdd + m * 9.81 * l * np.sin(q), abs=1e-13)


def test_unknown_inertia_is_named() -> None:
    tree = random_tree(np.random.default_rng(7), bodies=2, inertia=False)
    with pytest.raises(ModelError, match=r"these parameters have no value: XX1, XY1.* and 12 more"):
        inverse_dynamics(tree, random_motion(np.random.default_rng(7), tree, 2))


def test_a_free_base_without_its_motion_is_refused() -> None:
    tree, motion = case(1)
    with pytest.raises(DataError, match="the base is free, and the motion does not say how it moves"):
        inverse_dynamics(tree, replace(motion, base=None))


def test_a_fixed_base_that_moves_is_refused() -> None:
    tree, motion = case(0)
    free = case(1)[1]
    with pytest.raises(DataError, match="the base is fixed, but the motion moves it"):
        inverse_dynamics(tree, replace(motion, base=free.base))


def test_a_wrench_on_an_unknown_body_is_refused() -> None:
    tree, motion = case(0)
    with pytest.raises(DataError, match="a wrench acts on 'elbow', which is no body"):
        inverse_dynamics(tree, replace(motion, wrenches={"elbow": np.zeros((len(motion), 6))}))


def test_an_unknown_row_is_refused() -> None:
    tree, motion = case(0)
    with pytest.raises(ModelError, match=r"there is no row 'fx'[\s\S]*'all', 'joints', 'base', 'actuated' or names"):
        inverse_dynamics(tree, motion, ["fx"])


def test_base_rows_of_a_fixed_tree_are_refused() -> None:
    tree, motion = case(0)
    with pytest.raises(ModelError, match="base rows exist only for a free base"):
        inverse_dynamics(tree, motion, "base")


def test_a_motion_of_another_machine_is_refused() -> None:
    tree, _ = case(0)
    other = Motion(np.zeros(1), *np.zeros((3, 1, tree.n + 1)))
    with pytest.raises(DataError, match=rf"another number of coordinates[\s\S]*Expected {tree.n} .*found {tree.n + 1}"):
        inverse_dynamics(tree, other)


def test_nan_in_a_motion_is_refused() -> None:
    _, motion = case(0)
    qd = motion.qd.copy()
    qd[3, 0] = np.nan
    with pytest.raises(DataError, match=r"motion\.qd: it holds NaN or infinite values[\s\S]*the first at sample 3"):
        replace(motion, qd=qd)


def test_a_wrong_shape_is_refused() -> None:
    _, motion = case(0)
    with pytest.raises(DataError, match=r"motion\.qdd: wrong shape\.\nExpected \(6, \d+\), found \(5, \d+\)"):
        replace(motion, qdd=motion.qdd[:-1])


def regressor_case(seed: int, samples: int = 5) -> tuple[Tree, Motion]:
    rng = np.random.default_rng(1000 + seed)
    tree = random_tree(
        rng,
        base="free" if seed % 2 else "fixed",
        shared=seed % 4 >= 2,
        mdh=(None, True, False)[seed % 3],
        virtual=0.2 * (seed % 5 == 0),
    )
    return tree, random_motion(rng, tree, samples, wrenches=False)


def with_elements(rng: np.random.Generator, tree: Tree) -> Tree:
    """One of each kind that needs no signal, on a coordinate, on a combination of two of a kind, and on a body."""
    kinds = {}
    for c, kind in zip(tree.coordinates, tree.coordinate_kinds, strict=True):
        kinds.setdefault(kind, []).append(c)
    two = max(kinds.values(), key=len)[:2]
    mixed = {c: float(rng.normal()) for c in two}
    one = tree.coordinates[0]
    elements = [
        spring(mixed, 2.0, "k"),
        offset(one, 3.0, "o"),
        damper(mixed, 4.0, "h"),
        coulomb(one, 5.0, "f"),
        motor_inertia(mixed, 6.0, "Ia"),
        drag(f"{tree.bodies[-1].name}.fy", 7.0, "Cy"),
        drag(f"{tree.bodies[0].name}.mz", 8.0, "Cn"),
    ]
    return Tree.build(
        tree.bodies,
        base=tree.base,
        gravity=tree.gravity,
        inertia={
            b.name: tree.parameters.values[10 * k : 10 * k + 10] for k, b in enumerate(b for b in tree.bodies if b.real)
        },
        elements=elements,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_equals_pinocchio(seed: int) -> None:
    tree, motion = regressor_case(seed)
    D, expected = regressor(tree, motion), PinModel(tree).regressor(motion)
    assert D.shape == expected.shape
    assert np.abs(D - expected).max() <= ROUNDING * np.abs(expected).max()


@pytest.mark.parametrize("seed", range(0, 72, 4))
def test_regressor_times_parameters_is_inverse_dynamics(seed: int) -> None:
    tree, motion = regressor_case(seed)
    tree = with_elements(np.random.default_rng(seed), tree)
    gamma = inverse_dynamics(tree, motion)
    assert np.abs(regressor(tree, motion) @ tree.parameters.values - gamma).max() < ROUNDING * np.abs(gamma).max()


def test_columns_asked_for_come_in_their_order() -> None:
    tree, motion = regressor_case(2)
    D = regressor(tree, motion)
    wanted = [7, 0, 3]
    assert np.array_equal(regressor(tree, motion, wanted=wanted), D[:, :, wanted])
    row = tree.rows[-1]
    assert np.array_equal(regressor(tree, motion, [row], wanted), D[:, -1:, wanted])


@pytest.mark.parametrize("seed", range(12))
def test_structure_is_where_columns_can_be(seed: int) -> None:
    """Every entry that is not zero is foretold; and what is foretold of a body is some column of it, not always each of its ten."""
    tree, motion = regressor_case(seed)
    tree = with_elements(np.random.default_rng(seed), tree)
    D = regressor(tree, motion)
    told = structure(tree)
    for r, foretold in enumerate(told):
        seen = set(np.flatnonzero(np.abs(D[:, r]).max(axis=0) > 0))
        assert seen <= set(foretold)
        bodies = {tree.columns[c][0] for c in foretold}
        assert bodies - {-1} == {j for j in range(len(tree.bodies)) if tree.bodies[j].real and _carries(tree, r, j)}


def _carries(tree: Tree, row: int, body: int) -> bool:
    first = len(tree.rows) - tree.n
    return row < first or any(tree.coordinate[i] == row - first for i in tree.path(body))


def test_structural_zeros_are_absent() -> None:
    """A body that only turns about its own vertical axis: the recursion never computes what folds to zero."""
    tree, motion = regressor_case(0)
    state = state_of(tree, motion)
    entries = dict(columns(tree, state, outward(tree, state, ARRAYS), {}, ARRAYS, range(len(tree.columns))))
    D = regressor(tree, motion)
    for c, rows in entries.items():
        absent = [r for r in range(len(tree.rows)) if r not in rows]
        assert not D[:, absent, c].any()


def test_wrenches_and_velocity_do_not_enter() -> None:
    """D is of the motion alone; and Galileo: the base's velocity does not matter where nothing drags."""
    tree, motion = regressor_case(1)
    still = replace(motion, base=replace(motion.base, velocity=None))
    pushed = replace(motion, wrenches={tree.bodies[0].name: np.ones((len(motion), 6))})
    assert np.array_equal(regressor(tree, motion), regressor(tree, still))
    assert np.array_equal(regressor(tree, motion), regressor(tree, pushed))


def gradient_by_differences(tree: Tree, motion: Motion, G: np.ndarray, step: float = 1e-6) -> np.ndarray:
    out = np.zeros((len(motion), 3, tree.n))
    for order, name in enumerate(("q", "qd", "qdd")):
        for k in range(tree.n):
            sides = []
            for sign in (1.0, -1.0):
                moved = {n: getattr(motion, n).copy() for n in ("q", "qd", "qdd")}
                moved[name][:, k] += sign * step
                sides.append((regressor(tree, Motion(motion.t, **moved)) * G).sum(axis=(1, 2)))
            out[:, order, k] = (sides[0] - sides[1]) / (2.0 * step)
    return out


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_the_adjoint_is_the_gradient(engine: str) -> None:
    """Central differences of step 1e-6 are good to about 1e-9 of the largest entry of D'' times 1e-12: 1e-6 of the gradient is safe."""
    tree = arm()
    rng = np.random.default_rng(0)
    motion = Motion(np.arange(9.0), *(rng.normal(size=(9, tree.n)) for _ in range(3)))
    G = rng.normal(size=(9, len(tree.rows), len(tree.parameters)))
    found = regressor_adjoint(tree, motion, G, engine=engine)
    expected = gradient_by_differences(tree, motion, G)
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


def test_the_adjoint_is_the_gradient_of_pinocchios_regressor() -> None:
    tree = random_tree(np.random.default_rng(3), 4, base="fixed")
    motion = random_motion(np.random.default_rng(4), tree, 5, wrenches=False)
    pin = PinModel(tree)
    G = np.random.default_rng(5).normal(size=(5, len(tree.rows), len(tree.parameters)))
    found = regressor_adjoint(tree, motion, G, engine="numpy")
    step = 1e-6
    for k in range(tree.n):
        sides = []
        for sign in (1.0, -1.0):
            q = motion.q.copy()
            q[:, k] += sign * step
            moved = Motion(motion.t, q, motion.qd, motion.qdd)
            sides.append((pin.regressor(moved) * G).sum(axis=(1, 2)))
        assert found[:, 0, k] == pytest.approx((sides[0] - sides[1]) / (2.0 * step), rel=1e-5, abs=1e-5)


def test_the_adjoint_of_some_rows_and_columns() -> None:
    tree = arm()
    rng = np.random.default_rng(1)
    motion = Motion(np.arange(4.0), *(rng.normal(size=(4, tree.n)) for _ in range(3)))
    rows, columns = [tree.rows[4], tree.rows[1]], [7, 3, 40]
    G = rng.normal(size=(4, 2, 3))
    whole = np.zeros((4, len(tree.rows), len(tree.parameters)))
    whole[np.ix_(range(4), [4, 1], columns)] = G
    assert regressor_adjoint(tree, motion, G, rows, columns) == pytest.approx(regressor_adjoint(tree, motion, whole))


def test_rounded_friction_has_a_slope() -> None:
    """With a friction speed the derivative of friction at standstill is that of the rounded one: 1/speed for a unit coefficient."""
    tree = arm()
    column = tree.parameters.index("fs2")
    motion = Motion(np.arange(1.0), *(np.zeros((1, tree.n)) for _ in range(3)))
    G = np.zeros((1, len(tree.rows), 1))
    G[0, :, 0] = 1.0
    found = regressor_adjoint(tree, motion, G, wanted=[column], friction_speed=0.1, engine="numpy")
    assert found[0, 1].max() == pytest.approx(10.0)
    assert not regressor_adjoint(tree, motion, G, wanted=[column], engine="numpy").any()


def test_an_adjoint_of_loops_and_odd_weights_is_refused() -> None:
    tree = arm()
    motion = Motion(np.arange(1.0), *(np.zeros((1, tree.n)) for _ in range(3)))
    with pytest.raises(DataError, match="weights have the wrong shape"):
        regressor_adjoint(tree, motion, np.zeros((1, 2, 3)))
    closed = hexapod()
    still = Motion(np.arange(1.0), *(np.zeros((1, closed.n)) for _ in range(3)))
    with pytest.raises(ModelError, match="open tree"):
        regressor_adjoint(closed, still, np.zeros((1, 6, 1)))
