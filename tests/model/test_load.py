"""Loads as data: what a tree refuses by name, and where they are when bodies get other frames."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.load import Drive, Force, Load, Torque, check_loads, components, moved_load
from veridyn.model.place import Marker
from veridyn.spatial.rotations import rot_z


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (Drive("m", "arn"), "load 'm': there is no coordinate 'arn'.*Did you mean 'arm'"),
        (Drive("m", "arm", float("nan")), "load 'm': its value is not finite"),
        (Force("f", "tool", (0, 0, 1)), "load 'f': there is no body 'tool'"),
        (Force("f", Marker("tool", (0, 0, 0)), (0, 0, 1)), "load 'f': there is no body 'tool'"),
        (Force("f", Marker("arm", (0, 0)), (0, 0, 1)), "this is no place or direction here"),
        (Force("f", "arm", (0, 1)), "load 'f', value: this is no place or direction here.*3 finite numbers"),
        (Force("f", "ground", (0, 0, 1)), "load 'f': it acts on the ground"),
        (Torque("t", "arm", 1.0), "load 't', value"),
        (Torque("t", "arm", (0, 0, 1), "arm"), "load 't': it acts on 'arm' against itself"),
        (Torque("t", "arm", (0, 0, 1), "leg"), "load 't': there is no body 'leg'"),
        (Drive("", "arm"), "it has no name"),
    ],
)
def test_faults_are_named(load: Load, message: str) -> None:
    with pytest.raises(ModelError, match=f"(?s){message}"):
        Tree.build([Body("arm")], loads=[load])


def test_good_loads_and_names_used_twice() -> None:
    loads = [Drive("a", "arm"), Force("b", "arm", (1, 2, 3)), Torque("c", "arm", (1, 2, 3))]
    assert not check_loads(loads, ["arm"], ["arm"]) and [components(x) for x in loads] == [1, 3, 3]
    assert Tree.build([Body("arm")], loads=loads).loads == tuple(loads)
    with pytest.raises(ModelError, match="load 'a': the name is used 2 times"):
        Tree.build([Body("arm")], loads=[*loads, Drive("a", "arm")])


def test_loads_follow_their_bodies() -> None:
    homes = {"hand": ("arm", rot_z(np.pi / 2), np.array([1.0, 0.0, 0.0]))}
    assert moved_load(Force("f", "hand", (0, 0, 1)), homes) == Force("f", Marker("arm", (1, 0, 0)), (0, 0, 1))
    assert moved_load(Force("f", Marker("hand", (2, 0, 0)), (0, 0, 1)), homes).at.at == pytest.approx((1, 2, 0))
    assert moved_load(Torque("t", "leg", (0, 0, 1), "hand"), homes) == Torque("t", "leg", (0, 0, 1), "arm")
    assert moved_load(Drive("m", "arm"), homes) == Drive("m", "arm")
