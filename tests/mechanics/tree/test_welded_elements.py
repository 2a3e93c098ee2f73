"""Elements of welded machines: rows of the remaining joints are those of the original at rest in the locked ones.

The original's inverse dynamics with elements is checked elsewhere (Pinocchio, MuJoCo); rigid parts here are Pinocchio's again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import ModelError
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.mechanics.tree.tree import Tree
from veridyn.mechanics.tree.weld import welded
from veridyn.model.elements.element import (
    Element,
    Marker,
    coulomb,
    damper,
    drag,
    law,
    motor_inertia,
    offset,
    spring,
    stribeck,
    strut,
    table,
    tyre,
)

TYRE = {"UNLOADED_RADIUS": 0.3, "VERTICAL_STIFFNESS": 2e5, "FNOMIN": 2000.0, "ROAD": -0.2}
TYRE |= {"C_KAPPA": 1e4, "C_ALPHA": 8e3, "SIGMA_KAPPA": 0.4, "SIGMA_ALPHA": 0.5}


def locked_of(rng: np.random.Generator, tree: Tree) -> dict[str, float]:
    return {c: float(v) for c, v in zip(tree.coordinates[1::2], rng.normal(size=tree.n), strict=False)}


def acting(rng: np.random.Generator, tree: Tree) -> list[Element]:
    """Elements of most kinds: on free, locked and mixed coordinates, between bodies, and on a body."""
    q, last, first = tree.coordinates, tree.bodies[-1].name, tree.bodies[1].name
    ends = Marker(first, tuple(rng.normal(size=3))), Marker(last, tuple(rng.normal(size=3)))
    mixed = {q[0]: 1.0, q[1]: -0.7, q[2]: 0.4}
    return [
        *(damper(c, 0.3 + k) for k, c in enumerate(q)),
        spring(mixed, 7.0, "bar"),
        coulomb(mixed, 0.4, "rub"),
        offset(q[2], 1.5, "push"),
        motor_inertia(q[0], 0.2, "motor"),
        stribeck(q[2], 0.5, 0.3, "stick"),
        Element(kind="cubic", on=mixed, value=2.0, name="third"),
        Element(kind="bump_stop", on=mixed, value=50.0, name="stop", constants={"gap": -0.2}),
        law(mixed, f"(c + 0.3)**2*{q[1]} - v*rate({q[3]}) + {q[2]}", 1.5, "own"),
        table(mixed, [-2.0, 0.0, 0.7, 2.0], [1.0, -1.0, 0.5, 3.0], 2.0, "points", of=f"c + {q[3]}"),
        strut("spring", *ends, 30.0, "strut", rest=0.4),
        strut("damper", *ends, 4.0, "shock"),
        drag(f"{tree.bodies[0].name}.fx", 0.8, "wind"),
    ]


@pytest.mark.parametrize("seed", range(8))
def test_forces_of_elements_are_those_of_the_original_with_the_locked_joints_at_rest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain = random_tree(rng, bodies=7, base="free", kinds=("turning" if seed % 2 else "sliding",))  # one unit for sums
    locked, tree = locked_of(rng, plain), plain.with_elements(acting(rng, plain))
    motion = random_motion(rng, tree, 5, wrenches=False)
    for name, value in locked.items():
        k = tree.coordinates.index(name)
        motion.q[:, k], motion.qd[:, k], motion.qdd[:, k] = value, 0.0, 0.0
    less = welded(tree, locked)
    stay = [k for k, c in enumerate(tree.coordinates) if c not in locked]
    fewer = replace(motion, q=motion.q[:, stay], qd=motion.qd[:, stay], qdd=motion.qdd[:, stay])
    rows = [*range(6), *(6 + k for k in stay)]
    of_elements = (inverse_dynamics(tree, motion) - inverse_dynamics(plain, motion))[:, rows]
    expected = PinModel(plain).inverse_dynamics(motion)[:, rows] + of_elements
    assert inverse_dynamics(less, fewer) == pytest.approx(expected, rel=1e-10, abs=1e-8)
    named = {e.parameter_name for e in less.elements}
    assert f"h_{tree.coordinates[1]}" not in named and {"bar", "rub", "third", "stop", "wind", "own", "points"} <= named


def test_a_tyre_goes_with_its_wheel() -> None:
    """A wheel whose spin is locked skids; its tyre acts on what carries it."""
    rng = np.random.default_rng(5)
    plain = random_tree(rng, bodies=4, base="free", kinds=("turning",))
    wheel = Marker(plain.bodies[-1].name, (0.01, 0.02, 0.0), (0.0, 0.0, 1.0))
    tree = plain.with_elements([tyre(wheel, TYRE, kind="linear_tyre", name="rubber")])
    last = plain.bodies[-1].coordinate_name
    less = welded(tree, {last: 0.4})
    motion = random_motion(rng, tree, 6, wrenches=False)
    k = tree.coordinates.index(last)
    motion.q[:, k], motion.qd[:, k], motion.qdd[:, k] = 0.4, 0.0, 0.0
    base = replace(
        motion.base,
        velocity=rng.normal(size=(6, 3)),
        position=np.array([0.0, 0.0, 0.2]) + 0.1 * rng.normal(size=(6, 3)),
        quaternion=_quaternions(rng, 6),
    )
    slips = {"rubber.kappa": 0.1 * rng.normal(size=6), "rubber.tan_alpha": 0.1 * rng.normal(size=6)}
    motion = replace(motion, base=base, signals=slips)
    keep = [i for i in range(tree.n) if i != k]
    fewer = replace(motion, q=motion.q[:, keep], qd=motion.qd[:, keep], qdd=motion.qdd[:, keep])
    rows = [*range(6), *(6 + i for i in keep)]
    assert inverse_dynamics(less, fewer) == pytest.approx(inverse_dynamics(tree, motion)[:, rows], rel=1e-9, abs=1e-6)


def _quaternions(rng: np.random.Generator, n: int) -> np.ndarray:
    e = np.array([1.0, 0.0, 0.0, 0.0]) + 0.2 * rng.normal(size=(n, 4))
    return e / np.linalg.norm(e, axis=1, keepdims=True)


def test_states_and_values_of_parameters_stay() -> None:
    rng = np.random.default_rng(2)
    plain = random_tree(rng, bodies=5, base="free", kinds=("turning",))
    q = plain.coordinates
    tree = plain.with_elements([damper(q[0], 0.5), coulomb(q[0], 0.2)])
    tree = tree.with_parameters(tree.parameters.known([f"fs_{q[0]}", plain.bodies[0].parameter("M")]))
    less = welded(machine_of_tree(tree), {q[1]: 0.3})
    p = less.parameters
    assert p[f"h_{q[0]}"] == 0.5 and p.states[p.index(f"h_{q[0]}")] == "estimated"
    assert p.states[p.index(f"fs_{q[0]}")] == "known"
    assert p.typical[p.index(f"h_{q[0]}")] == tree.parameters.typical[tree.parameters.index(f"h_{q[0]}")]


def test_what_cannot_be_moved_is_named() -> None:
    rng = np.random.default_rng(4)
    plain = random_tree(rng, bodies=4, base="free", kinds=("turning",))
    q = plain.coordinates
    on_body = plain.with_elements([drag(f"{plain.bodies[-1].name}.fx", 0.8, "wind")])
    with pytest.raises(ModelError, match=r"'wind': what acts on a body that is welded to another cannot be moved"):
        welded(on_body, {plain.bodies[-1].coordinate_name: 0.1})
    loose = Element(kind="dead_zone", on={q[0]: 1.0, q[1]: 1.0}, value=3.0, name="play", constants={"gap": 0.1})
    with pytest.raises(ModelError, match=r"'play': an element of kind dead_zone cannot be moved by the 0.2"):
        welded(plain.with_elements([loose]), {q[1]: 0.2})
    assert welded(plain.with_elements([loose]), {q[1]: 0.0}).elements[0].on == {q[0]: 1.0}
