"""Closed positions: against closed-form geometry, along paths, and what is refused by name."""

from __future__ import annotations

import re

import numpy as np
import pytest

from veridyn.errors import DataError, ModelError
from veridyn.machines import delta, linkage, palletizer
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.loops.closure import close, closed_home, closed_motion, closed_positions, loop_jacobian
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.place import Assembly
from veridyn.papers.hexapod.machine import LEGS, POSE, hexapod

CRANK, COUPLER, ROCKER, FRAME = 0.20, 0.50, 0.40, 0.45


def rocker_angle(q1: np.ndarray) -> np.ndarray:
    """The four-bar linkage by the law of cosines, assembled with the rocker above."""
    x, y = FRAME - CRANK * np.cos(q1), -CRANK * np.sin(q1)  # from the crank's pin to the rocker's
    d = np.hypot(x, y)
    at_rocker = np.arccos((ROCKER**2 + d**2 - COUPLER**2) / (2 * ROCKER * d))
    return np.arctan2(-y, -x) - at_rocker


def test_four_bar_by_the_law_of_cosines() -> None:
    """Over several turns of the crank, whose coupler turns back as far: a path, not single positions."""
    tree = tree_of(linkage())
    q1 = np.linspace(1.0, 1.0 + 6 * np.pi, 500)
    found = close(tree, q1[:, None])
    assert np.abs(np.sin(found.q[:, 2] - rocker_angle(q1))).max() < 1e-9
    assert np.abs(np.diff(found.q, axis=0)).max() < 0.12
    assert found.q[-1, 1] - found.q[0, 1] == pytest.approx(-6 * np.pi, abs=1e-9)
    assert found.residual.max() <= 1e-8
    single = close(tree, q1[250:251, None])
    assert np.sin(single.q[0, 2] - found.q[250, 2]) == pytest.approx(0.0, abs=1e-9)


def test_rates_and_accelerations_of_the_four_bar() -> None:
    """Differences of the closed form: q3(t) for a crank that speeds up."""
    tree = tree_of(linkage())
    t = np.linspace(0.0, 1.0, 40)
    q, qd, qdd = 1.0 + 2.0 * t + 1.5 * t**2, 2.0 + 3.0 * t, 3.0 + 0.0 * t
    m = closed_motion(tree, t, q[:, None], qd[:, None], qdd[:, None])
    h = 1e-4

    def angle(s: np.ndarray) -> np.ndarray:
        return np.unwrap(rocker_angle(1.0 + 2.0 * s + 1.5 * s**2))

    first = (angle(t + h) - angle(t - h)) / (2 * h)
    second = (angle(t + h) - 2 * angle(t) + angle(t - h)) / h**2
    assert np.abs(m.qd[:, 2] - first).max() < 1e-6 * np.abs(first).max()
    assert np.abs(m.qdd[:, 2] - second).max() < 1e-5 * np.abs(second).max()


def test_parallelogram_keeps_the_direction_of_the_forearm() -> None:
    """The forearm stands as the crank does, whatever the upper arm does."""
    tree = tree_of(palletizer())
    t = np.linspace(0.0, 1.0, 30)
    q = np.column_stack([0.5 * t, -1.2 + 0.6 * np.sin(3 * t), 2.8 + 0.4 * np.sin(2 * t)])
    found = close(tree, q).q
    forearm = found[:, 1] + found[:, 2]
    assert np.abs(forearm + np.pi - found[:, 3]).max() < 1e-9


def test_delta_platform_does_not_turn() -> None:
    tree = tree_of(delta())
    q = np.random.default_rng(1).uniform(-0.3, 0.3, (50, 3)) + 0.43
    found = close(tree, q, path=False)
    turned = [tree.coordinates.index(c) for c in ("psi", "theta", "phi")]
    assert np.abs(found.q[:, turned]).max() < 1e-9
    # and back: given where the platform is, the arms
    three = close(tree, found.q[:, :3], at=("x", "y", "z"), path=False)
    own = [tree.coordinates.index(c) for c in ("q1", "q2", "q3")]
    assert np.abs(three.q[:, own] - q).max() < 1e-9


def test_warm_start() -> None:
    tree = tree_of(hexapod())
    lengths = np.full((1, 6), 0.95)
    far, near = close(tree, lengths), close(tree, lengths + 1e-4, start=close(tree, lengths).q)
    assert near.iterations[0] < far.iterations[0]
    assert closed_home(tree)[2] == -0.95


def test_mappings() -> None:
    tree = tree_of(hexapod())
    rng = np.random.default_rng(2)
    given = {name: 0.98 + 0.01 * rng.normal(size=20) for name in LEGS}
    assert np.array_equal(close(tree, given).q, close(tree, np.column_stack(list(given.values()))).q)
    force = {name: rng.normal(size=20) for name in LEGS}
    zero = np.zeros((20, 6))
    m = closed_motion(tree, np.arange(20.0), given, zero, zero, forces=force)
    assert m.forces is not None
    assert np.array_equal(m.forces[:, tree.coordinates.index("l3")], force["l3"])
    assert np.isnan(m.forces[:, tree.coordinates.index("a1")]).all()


def test_positions_about_home() -> None:
    q = closed_positions(tree_of(linkage()), 30, np.random.default_rng(0))
    assert q.shape == (30, 3)
    assert np.abs(np.sin(q[:, 2] - rocker_angle(q[:, 0]))).max() < 1e-9


def test_an_actuator_log_that_is_shorter_is_named() -> None:
    tree = tree_of(hexapod())
    given = {name: np.full(100, 0.98) for name in LEGS} | {"l4": np.full(97, 0.98)}
    with pytest.raises(DataError, match=r"the log of 'l4' is shorter than the others.\nExpected 100 samples, found 97"):
        close(tree, given)
    with pytest.raises(DataError, match="nothing is given for l2, l5"):
        close(tree, {name: np.ones(3) for name in LEGS if name not in ("l2", "l5")})
    with pytest.raises(DataError, match="'m1' is not one of the given coordinates"):
        close(tree, {name: np.ones(3) for name in (*LEGS, "m1")})
    with pytest.raises(DataError, match="l3 holds NaN"):
        close(tree, {name: np.full(3, np.nan if name == "l3" else 0.98) for name in LEGS})
    ones = np.full((4, 6), 0.98)
    with pytest.raises(DataError, match="forces has another number of samples than the positions"):
        closed_motion(tree, np.arange(4.0), ones, ones, ones, forces=np.ones((3, 6)))


def test_an_unreachable_pose_is_refused() -> None:
    tree = tree_of(hexapod())
    lengths = np.full((5, 6), 0.98)
    lengths[3] = [0.4, 1.4, 0.4, 1.4, 0.4, 1.4]
    for path in (True, False):
        with pytest.raises(DataError, match=r"sample 3: this position is out of reach(.|\n)*loop 'foot\d' open by"):
            close(tree, lengths, path=path)


def test_a_singular_pose_on_the_way_is_refused() -> None:
    """The rocker given, the linkage folds out at the ends of its swing; and the hexapod turned by 90° about the vertical."""
    tree = tree_of(linkage())
    high = rocker_angle(np.linspace(0, 2 * np.pi, 400))
    swing = np.unwrap(high)
    q3 = np.linspace(swing.mean(), swing.max() + 0.05, 60)[:, None]
    with pytest.raises(DataError, match=r"singular position|out of reach"):
        close(tree, q3, at=["q3"])
    robot = tree_of(hexapod())
    pose = np.tile(closed_home(robot)[:6], (60, 1))
    pose[:, 5] = np.linspace(0.0, 2.2, 60)
    q = close(robot, pose, at=POSE).q
    with pytest.raises(DataError, match="sample 43: a singular position lies on the way here"):
        close(robot, q[:, [robot.coordinates.index(name) for name in LEGS]], start=q)
    still = np.zeros_like(pose)
    motion = closed_motion(robot, np.arange(60.0), pose, still, still, at=POSE)
    with pytest.raises(DataError, match="singular position"):
        regressor(robot, motion)
    pose[:, 5] = np.pi / 2
    with pytest.raises(DataError, match="a singular position: there l1, l2, l3, l4, l5, l6 do not decide"):
        loop_jacobian(robot, close(robot, pose[:1], at=POSE).q)


def test_what_does_not_determine_a_machine_is_refused() -> None:
    tree = tree_of(hexapod())
    with pytest.raises(ModelError, match=r"2 coordinates \(l1, l2\) cannot determine this machine.\nExpected 6"):
        close(tree, np.ones((1, 2)), at=("l1", "l2"))
    with pytest.raises(DataError, match="there is no coordinate 'l7'"):
        close(tree, np.ones((1, 1)), at=("l7",))
    with pytest.raises(DataError, match="wrong shape"):
        close(tree, np.ones((4, 5)))
    with pytest.raises(DataError, match="the start has the wrong shape"):
        close(tree, np.ones((4, 6)), start=np.ones(7))
    with pytest.raises(DataError, match="no tolerance to close loops to"):
        close(tree, np.ones((4, 6)), tolerance=1e-3)


def test_loops_that_cannot_be_closed() -> None:
    tree = tree_of(linkage())
    far = Assembly({"q1": 1.0, "q2": 2.0, "q3": 0.0})
    stuck = Tree.build(tree.bodies, name="stuck", loops=tree.loops, assembly=far)
    with pytest.raises(ModelError, match="its loops cannot be closed from where 'assembly' puts it"):
        closed_home(stuck)
    with pytest.raises(ModelError, match="has no loops to close"):
        closed_home(Tree.build(tree.bodies))


def test_what_is_not_found_at_once_is_refused_without_patience() -> None:
    """A turn and a half of the crank away Newton's method alone loses its way, or its side; in steps it does not."""
    tree = tree_of(linkage())
    far = np.linspace(1.0, 7.0, 40)[:, None]
    assert len(close(tree, far, path=False).q) == 40
    with pytest.raises(DataError):
        close(tree, far, path=False, patient=False)


def test_the_time_of_a_sample_is_named() -> None:
    tree = tree_of(palletizer())
    t = 10.0 + np.arange(40.0)
    q = np.column_stack(
        [0.0 * t, 0.0 * t - 1.2, np.linspace(2.8, -1.2 + np.pi - 0.3, 40)]
    )  # behind the flat parallelogram
    with pytest.raises(DataError, match=r"sample (\d+) \(t = \d+ s\)") as raised:
        closed_motion(tree, t, q, 0.0 * q, 0.0 * q)
    sample, time = (float(x) for x in re.findall(r"sample (\d+) \(t = (\d+) s\)", str(raised.value))[0])
    assert time == 10.0 + sample
