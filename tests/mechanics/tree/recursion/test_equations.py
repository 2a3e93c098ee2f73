"""Elements: each kind's column against a formula written down here, on coordinates, on combinations and on bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, inverse_derivatives
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.recursion.equations import combination
from veridyn.mechanics.tree.recursion.inputs import needs_velocity
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import (
    Element,
    coulomb,
    damper,
    drag,
    drive_gain,
    motor_inertia,
    offset,
    spring,
)
from veridyn.model.graph import Body
from veridyn.model.motion import BaseMotion, Motion

N = 12
COMBINATION = {"a": 1.5, "c": -0.5}


def arm(elements: list[Element], base: str = "fixed") -> Tree:
    """Three turning joints a, b, c and a slide d in a chain; a free base before them where asked."""
    root = [Body("base", None, "fixed")] if base == "free" else []
    names, before = ("a", "b", "c", "d"), "base" if base == "free" else "ground"
    shape = random_tree(np.random.default_rng(1), bodies=4, branched=False, kinds=("turning",))
    bodies = []
    for name, model in zip(names, shape.bodies, strict=True):
        kind = "sliding" if name == "d" else "turning"
        bodies.append(Body(name, before, kind, model.placement))
        before = name
    inertia = {b.name: shape.parameters.values[:10] for b in (*root, *bodies)}
    return Tree.build([*root, *bodies], base=base, inertia=inertia, elements=elements)


def moving(tree: Tree, seed: int = 0) -> Motion:
    rng = np.random.default_rng(seed)
    motion = random_motion(rng, tree, N, wrenches=False)
    return replace(motion, signals={"current": rng.normal(size=N)})


BASIS = {
    "spring": lambda c, cd, cdd, s: c,
    "offset": lambda c, cd, cdd, s: np.ones_like(c),
    "damper": lambda c, cd, cdd, s: cd,
    "coulomb": lambda c, cd, cdd, s: (cd > 0) * 1.0 - (cd < 0) * 1.0,
    "damper_forward": lambda c, cd, cdd, s: np.maximum(cd, 0.0),
    "damper_backward": lambda c, cd, cdd, s: np.minimum(cd, 0.0),
    "coulomb_forward": lambda c, cd, cdd, s: (cd > 0) * 1.0,
    "coulomb_backward": lambda c, cd, cdd, s: (cd < 0) * -1.0,
    "coulomb_along": lambda c, cd, cdd, s: np.sign(cd) * (c - 0.2) / 0.7,
    "coulomb_along4": lambda c, cd, cdd, s: np.sign(cd) * ((c - 0.2) / 0.7) ** 4,
    "stribeck": lambda c, cd, cdd, s: np.sign(cd) / (1.0 + (cd / 0.3) ** 2),
    "tanh_friction": lambda c, cd, cdd, s: np.tanh(cd / 0.3),
    "cubic": lambda c, cd, cdd, s: (c - 0.2) ** 3,
    "bump_stop": lambda c, cd, cdd, s: np.maximum(c - 0.4, 0.0),
    "dead_zone": lambda c, cd, cdd, s: np.sign(c) * np.maximum(np.abs(c) - 0.4, 0.0),
    "inertia": lambda c, cd, cdd, s: cdd,
    "drive_gain": lambda c, cd, cdd, s: -s,
}


@pytest.mark.parametrize("kind", BASIS)
def test_column_of_each_kind(kind: str) -> None:
    """aᵢ times the basis of c = Σ aᵢ qᵢ, in the rows of the coordinates it acts on and nowhere else; four such elements on one machine."""
    special = {"drive_gain": {"signal": "current"}, "stribeck": {"constants": {"speed": 0.3}}}
    special["tanh_friction"] = special["stribeck"]
    special["coulomb_along"] = special["coulomb_along4"] = {"constants": {"middle": 0.2, "half": 0.7}}
    special["cubic"] = {"constants": {"rest": 0.2}}
    special["bump_stop"] = special["dead_zone"] = {"constants": {"gap": 0.4}}
    places = ({"b": 1.0}, {"d": -2.0}, COMBINATION, {"a": 1.0, "b": 1.0, "c": 1.0})
    more = special.get(kind, {})
    tree = arm([Element(kind=kind, on=on, value=1.0, name=f"e{k}", **more) for k, on in enumerate(places)])
    motion = moving(tree)
    columns = [tree.parameters.index(f"e{k}") for k in range(len(places))]
    plain, code = (
        regressor(tree, motion, engine=engine)[:, len(tree.rows) - tree.n :, columns]
        for engine in ("numpy", "compiled")
    )
    for k, on in enumerate(places):
        weights = np.array([on.get(c, 0.0) for c in tree.coordinates])
        c, cd, cdd = (x @ weights for x in (motion.q, motion.qd, motion.qdd))
        expected = np.outer(BASIS[kind](c, cd, cdd, motion.signals["current"]), weights)
        assert plain[:, :, k] == pytest.approx(expected, rel=1e-13, abs=1e-15), on
        assert code[:, :, k] == pytest.approx(expected, rel=1e-13, abs=1e-15), on


def test_anti_roll_bar_is_a_spring_on_a_difference() -> None:
    """(31) of paper 000: k_ar (q_i − q_op) on one side, the opposite on the other."""
    bodies = [Body("chassis", None, "fixed"), *(Body(w, "chassis", "sliding") for w in ("z1", "z2"))]
    tree = Tree.build(bodies, base="free", elements=[spring({"z1": 1.0, "z2": -1.0}, name="k_ar")])
    motion = random_motion(np.random.default_rng(0), tree, N)
    D = regressor(tree, motion)[:, :, -1]
    difference = motion.q[:, 0] - motion.q[:, 1]
    assert D[:, 6] == pytest.approx(difference, abs=1e-15)
    assert D[:, 7] == pytest.approx(-difference, abs=1e-15)
    assert not D[:, :6].any()


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("component", range(6))
@pytest.mark.parametrize("body", ["b", "d"])
def test_drag_on_a_body_is_a_wrench_of_squared_speed(body: str, component: int, base: str) -> None:
    """A body exerts C V² on the air, so the rows are what a wrench −C V² acting on it asks for; V and rows by Pinocchio."""
    name = ("fx", "fy", "fz", "mx", "my", "mz")[component]
    tree = arm([drag(f"{body}.{name}", 1.0, "C")], base)
    motion = moving(tree)
    oracle = PinModel(arm([], base))
    J = oracle.jacobian(motion.q, body, local=True)
    rates = motion.qd
    if base == "free":
        rates = np.hstack([motion.base.velocity, motion.base.omega, motion.qd])
    V = np.einsum("nij,nj->ni", J[:, :3], rates)
    wrench = np.zeros((N, 6))
    wrench[:, component] = (V**2).sum(axis=1)
    expected = np.einsum("nir,ni->nr", J, wrench)
    D = regressor(tree, motion)[:, :, -1]
    assert pytest.approx(expected, abs=1e-12 * np.abs(expected).max()) == D


def test_drag_on_the_base_enters_its_own_row_with_a_plus() -> None:
    """(32): Cx > 0 is drag, + Cx V² in row fx of the chassis, and nothing in the joints."""
    tree = arm([drag("base.fx", 1.2, "Cx")], "free")
    motion = moving(tree)
    D = regressor(tree, motion)[:, :, -1]
    assert motion.base is not None and motion.base.velocity is not None
    assert D[:, 0] == pytest.approx((motion.base.velocity**2).sum(axis=1), rel=1e-14)
    assert not D[:, 1:].any()


def every_kind(base: str) -> Tree:
    body = "base.fx" if base == "free" else "c.my"
    return arm(
        [
            spring(COMBINATION, 12.0),
            offset("b", 0.7),
            damper({"b": 1.0, "c": 1.0}, 0.9),
            coulomb("a", 0.4),
            motor_inertia(COMBINATION, 0.3),
            drive_gain("d", "current", 2.1),
            drag(body, 0.5),
            drag("d.fz", 0.2),
        ],
        base,
    )


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(5))
def test_forces_in_simulation_are_the_columns(seed: int, base: str) -> None:
    """forward ∘ inverse = identity with every kind at once: the accelerations that come from Γ = D φ are those that went in."""
    tree = every_kind(base)
    motion = moving(tree, seed)
    gamma = regressor(tree, motion) @ tree.parameters.values
    if base == "free":
        motion = replace(motion, wrenches={"base": gamma[:, :6]})
    got = forward_dynamics(tree, replace(motion, forces=gamma[:, -tree.n :], qdd=np.zeros_like(motion.qdd)))
    assert got.qdd == pytest.approx(motion.qdd, abs=1e-10 * np.abs(motion.qdd).max())
    if base == "free":
        assert got.base.acceleration == pytest.approx(motion.base.acceleration, abs=1e-10)
        assert got.base.omega_dot == pytest.approx(motion.base.omega_dot, abs=1e-10)


def test_elements_add_to_what_the_bodies_ask() -> None:
    tree, bare = every_kind("fixed"), arm([])
    motion = moving(tree)
    D = regressor(tree, motion)[:, :, 40:]
    rigid = inverse_dynamics(bare, motion)
    assert inverse_dynamics(tree, motion) == pytest.approx(rigid + D @ tree.parameters.values[40:], abs=1e-11)


def test_combination_is_a_sum_with_coefficients() -> None:
    tree = arm([spring(COMBINATION)])
    assert combination(tree, tree.elements[0], [1.0, 10.0, 100.0, 1000.0]) == 1.5 - 50.0


def test_only_drag_needs_velocities() -> None:
    assert not needs_velocity(arm([spring("a"), damper("b")]))
    assert needs_velocity(arm([drag("a.fx")]))


def test_drag_needs_the_velocity_of_a_free_base() -> None:
    tree = arm([drag("base.fx", 1.0, "Cx")], "free")
    motion = moving(tree)
    slow = replace(motion, base=BaseMotion(motion.base.omega, motion.base.omega_dot, motion.base.acceleration))
    with pytest.raises(DataError, match=r"drag 'Cx' needs the velocity of the base\.\nExpected motion\.base\.velocity"):
        regressor(tree, slow)


def test_an_offset_on_a_body_is_a_wrench_on_it() -> None:
    """The zero of a sensor: what the body exerts is the opposite of a wrench that acts on it."""
    tree = arm([offset("a.fy", 3.0, "zero"), offset("b.mz", 2.0)], "free")
    motion = moving(tree)
    pushed = {name: np.zeros((len(motion), 6)) for name in ("a", "b")}
    pushed["a"][:, 1], pushed["b"][:, 5] = -3.0, -2.0
    bare = inverse_dynamics(arm([], "free"), replace(motion, wrenches=pushed))
    assert inverse_dynamics(tree, motion) == pytest.approx(bare, abs=1e-11)
    assert tree.parameters.units[-2:] == ("N", "N*m") and not needs_velocity(tree)


def test_a_missing_signal_is_named() -> None:
    tree = arm([drive_gain("a", "current", name="K")])
    with pytest.raises(DataError, match="element 'K' needs the signal 'current', which the motion has not"):
        regressor(tree, replace(moving(tree), signals={}))


def uneven() -> Tree:
    """Friction that differs with the direction, and a Stribeck curve."""
    ways = ("coulomb_forward", "coulomb_backward", "damper_forward", "damper_backward")
    elements = [Element(kind=kind, on={"b": 1.0}, value=v) for kind, v in zip(ways, (0.9, 0.5, 0.3, 0.2), strict=True)]
    return arm([*elements, Element(kind="stribeck", on=COMBINATION, value=0.7, constants={"speed": 0.4})])


def test_both_ways_alike_are_the_friction_without_direction() -> None:
    """fsp = fsn = fs and hp = hn = h give fs sign(v) + h v, rounded off or not."""
    ways = {"coulomb": ("coulomb_forward", "coulomb_backward"), "damper": ("damper_forward", "damper_backward")}
    one = arm([Element(kind=kind, on=COMBINATION, value=0.6) for kind in ways])
    two = arm([Element(kind=kind, on=COMBINATION, value=0.6) for both in ways.values() for kind in both])
    motion = moving(one)
    assert inverse_dynamics(two, motion) == pytest.approx(inverse_dynamics(one, motion), rel=1e-13)
    zero = replace(motion, qd=np.zeros_like(motion.qd))
    assert inverse_dynamics(two, zero) == pytest.approx(inverse_dynamics(one, zero), rel=1e-13)
    for speed in (0.0, 0.5):
        a, b = (StateAccelerations(t, t.parameters.values, speed, engine="compiled") for t in (one, two))
        for k in range(N):
            given = (motion.q[k], motion.qd[k], np.ones(4), np.zeros(3), np.zeros(3), {}, {})
            assert b(*given) == pytest.approx(a(*given), rel=1e-11)


def test_forward_dynamics_undoes_uneven_friction() -> None:
    tree = uneven()
    motion = replace(moving(tree), forces=None)
    forces = inverse_dynamics(tree, motion)
    for engine in ("numpy", "compiled"):
        again = forward_dynamics(tree, replace(motion, forces=forces), engine=engine)
        assert again.qdd == pytest.approx(motion.qdd, rel=1e-9, abs=1e-10)


def test_derivatives_of_uneven_friction_are_those_of_finite_differences() -> None:
    tree, step = uneven(), 1e-6
    motion = moving(tree)
    exact = inverse_derivatives(tree, motion, engine="compiled").by_qd
    for k in range(tree.n):
        moved = [replace(motion, qd=motion.qd + way * step * np.eye(tree.n)[k]) for way in (1.0, -1.0)]
        slope = (inverse_dynamics(tree, moved[0]) - inverse_dynamics(tree, moved[1])) / (2 * step)
        assert exact[:, :, k] == pytest.approx(slope, rel=1e-6, abs=1e-7)
