"""Equations of closed machines against Pinocchio's projected ones, on four machines of different build."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_loops import PinLoops
from veridyn.errors import DataError, ModelError
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.machines.described import delta, linkage, palletizer
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.mechanics.tree.loops.closure import closed_home, closed_motion
from veridyn.mechanics.tree.loops.projection import loop_jacobian
from veridyn.mechanics.tree.of_machine import machine_of_tree, tree_of
from veridyn.mechanics.tree.recursion.kinematics import energy, jacobian
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import LEGS, hexapod

MACHINES = {"hexapod": lambda: hexapod("none"), "linkage": linkage, "delta": delta, "palletizer": palletizer}
# Base parameters without friction. Hexapod: legs with nothing in common, derived twice elsewhere. The others: rank of Pinocchio's
# projected regressor, singular values dropping by more than eleven orders behind the last.
RIGID = {"hexapod": 88, "linkage": 8, "delta": 34, "palletizer": 18}


def bare(tree: Tree) -> Tree:
    """The machine without its elements."""
    plain = Tree.build(tree.bodies, name=tree.name, gravity=tree.gravity, loops=tree.loops, assembly=tree.assembly)
    values = dict(zip(tree.parameters.names, tree.parameters.values, strict=True))
    return plain.with_parameters({name: values[name] for name in plain.parameters.names})


def some(tree: Tree, samples: int = 40) -> Motion:
    return generic_motion(tree, samples)


@pytest.mark.parametrize("name", MACHINES)
def test_jacobian_and_accelerations(name: str) -> None:
    tree = tree_of(MACHINES[name]())
    stranger, m = PinLoops(tree), some(tree, 12)
    G = loop_jacobian(tree, m.q)
    theirs = np.array([stranger.projection(q) for q in m.q])
    assert np.abs(G - theirs).max() < 1e-8 * np.abs(theirs).max()
    assert max(stranger.opening(q) for q in m.q) < 1e-10
    # rates and accelerations: the ends of every cut joint stay together
    assert max(np.abs(stranger.constraint(q) @ qd).max() for q, qd in zip(m.q, m.qd, strict=True)) < 1e-8
    largest = np.abs(m.qdd).max()
    assert max(stranger.accelerations(*x) for x in zip(m.q, m.qd, m.qdd, strict=True)) < 1e-9 * largest


@pytest.mark.parametrize("name", MACHINES)
def test_regressor_and_forces(name: str) -> None:
    tree = tree_of(MACHINES[name]())
    plain = bare(tree)
    m = some(plain, 12)
    theirs = PinLoops(plain).regressor(m)
    for engine in ("numpy", "compiled"):
        D = regressor(plain, m, engine=engine)
        assert np.abs(D - theirs).max() < 1e-9 * np.abs(theirs).max()
        gamma = inverse_dynamics(plain, m, engine=engine)
        assert np.abs(gamma - theirs @ plain.parameters.values).max() < 1e-8 * np.abs(gamma).max()
    assert D.shape[1] == len(tree.actuated_coordinates)
    assert plain.select_rows("all") == plain.select_rows("actuated") == plain.select_rows("joints")


@pytest.mark.parametrize("name", MACHINES)
def test_base_parameters(name: str) -> None:
    """The count is the numerical rank of a stranger's regressor; the groups reproduce it."""
    plain = bare(tree_of(MACHINES[name]()))
    base = base_parameters(machine_of_tree(plain))
    m = some(plain)
    W = PinLoops(plain).regressor(m).reshape(-1, len(plain.parameters))
    s = np.linalg.svd(W * plain.parameters.typical, compute_uv=False)
    assert base.count == RIGID[name] == int((s > 1e-9 * s[0]).sum())
    assert np.abs(W - W[:, list(base.columns)] @ base.matrix).max() < 1e-8 * np.abs(W).max()
    assert base.relations()


def test_energy_balance() -> None:
    """Power of the drives is the change of energy where nothing rubs: along a smooth motion, by differences of energy alone."""
    for name in ("hexapod", "palletizer"):
        tree = bare(tree_of(MACHINES[name]()))
        n_a = len(tree.independent)
        step, N = 1e-3, 41
        t = step * np.arange(N)
        k = np.arange(1, n_a + 1)
        size = 0.05 if name == "hexapod" else 0.5
        w = 3.0 + k
        home = closed_home(tree)[list(tree.independent)]
        phase = np.outer(t, w) + k
        q = home + size * (np.sin(phase) - np.sin(k))
        m = closed_motion(tree, t, q, size * w * np.cos(phase), -size * w**2 * np.sin(phase))
        gamma = inverse_dynamics(tree, m)
        power = (gamma * m.qd[:, list(tree.independent)]).sum(axis=1)
        E = energy(tree, m).total
        # the eighth-order central difference of the energy
        weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280]) / step
        change = np.array([weights @ E[i - 4 : i + 5] for i in range(4, N - 4)])
        assert np.abs(change - power[4:-4]).max() < 1e-8 * np.abs(power).max()


def test_friction_of_passive_joints_and_wrenches() -> None:
    """By virtual work: Gᵀ of what the open tree asks, here with Coulomb friction in the legs' universal joints and a load on the tool."""
    tree = tree_of(hexapod())
    names = tree.parameters.names
    m = some(tree, 9)
    D = regressor(tree, m, wanted=[names.index("ra"), names.index("r2")])
    G = loop_jacobian(tree, m.q)
    a1, l2 = tree.coordinates.index("a1"), tree.coordinates.index("l2")
    assert np.abs(D[..., 0] - G[:, a1] * np.sign(m.qd[:, [a1]])).max() < 1e-12
    assert np.abs(D[..., 1] - np.eye(6)[1] * np.sign(m.qd[:, [l2]])).max() < 1e-12
    load = np.random.default_rng(2).normal(size=(9, 6))
    loaded = replace(m, wrenches={"platform": load})
    asked = external_rows(tree, loaded)[:, list(tree.select_rows("all"))]
    # a unit rate of each leg moves the platform; the drives must do the work that the load does not
    J = jacobian(tree, m.q, "platform", frame="body")
    assert np.abs(asked + np.einsum("nij,ni->nj", J @ G, load)).max() < 1e-10


def test_a_motion_that_opens_loops_is_refused() -> None:
    tree = tree_of(hexapod())
    m = some(tree, 5)
    moved = m.q.copy()
    moved[3, tree.coordinates.index("a4")] += 0.01
    with pytest.raises(
        DataError, match=r"sample 3: this motion does not keep its loops closed.\nFound loop 'foot4' open by 0.0"
    ):
        regressor(tree, replace(m, q=moved))
    with pytest.raises(DataError, match="the rates of this motion open its loops"):
        regressor(tree, replace(m, qd=m.qd + 0.1))
    with pytest.raises(DataError, match="the accelerations of this motion open its loops"):
        regressor(tree, replace(m, qdd=m.qdd + 1.0))
    with pytest.raises(DataError, match="wrong shape"):
        loop_jacobian(tree, np.zeros((3, 5)))


def test_rows_of_passive_joints_are_refused() -> None:
    tree = tree_of(hexapod())
    with pytest.raises(ModelError, match="'a1' is a passive joint of a closed loop and has no equation of its own"):
        regressor(tree, some(tree, 3), rows=["l1", "a1"])
    assert regressor(tree, some(tree, 3), rows=["l3", "l1"]).shape[1] == 2
    assert tree.actuated_coordinates == LEGS
