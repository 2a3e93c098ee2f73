"""Trees as lines: where the points are, against Pinocchio and the machine's own loops."""

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_oracle import PinModel
from studies.arm_simulation import ARM
from veridyn.files.machine.load import load_model
from veridyn.files.shipped import shipped
from veridyn.machines.parallel import linkage
from veridyn.mechanics.tree.loops.closure import closed_positions
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.body import Body
from veridyn.model.machine import Machine
from veridyn.view.machine import body_poses, tree_layer


def test_the_points_are_those_of_pinocchio() -> None:
    machine = load_model(ARM)
    q = np.random.default_rng(0).standard_normal((4, 3))
    layer = tree_layer(machine, q, "arm")
    oracle = PinModel(machine)
    for k, x in enumerate(q):
        pin.forwardKinematics(oracle.model, oracle.data, x)
        for j in (1, 2, 3):
            assert layer.points[k, j] == pytest.approx(oracle.data.oMi[j].translation, abs=1e-12)
        tip = oracle.data.oMi[3].act(np.array([0.16, 0.0, 0.01]))
        assert layer.points[k, layer.trails[0]] == pytest.approx(tip, abs=1e-12)
    assert (0, 1) in layer.segments and (2, 3) in layer.segments
    assert (1, 2) not in layer.segments  # the two first joints meet in a point


def test_loops_are_closed_in_the_picture() -> None:
    machine = linkage()
    q = closed_positions(machine, 5, np.random.default_rng(1))
    layer = tree_layer(machine, q, "linkage")
    first, second = layer.points.shape[1] - 2, layer.points.shape[1] - 1
    assert layer.points[:, first] == pytest.approx(layer.points[:, second], abs=1e-9)
    assert not layer.trails


def test_a_free_base_goes_where_it_is_put() -> None:
    machine = Machine.of_bodies(
        [Body("hull", None, "fixed"), Body("mast", "hull", "turning")], base="free", name="ship"
    )
    p, R = np.array([[1.0, 2.0, 3.0]]), np.eye(3)[None]
    layer = tree_layer(machine, np.zeros((1, 1)), "ship", p, R)
    assert layer.points[0] == pytest.approx(np.tile(p, (3, 1))) and not layer.segments


def test_poses_of_all_bodies_are_those_of_each():
    machine = load_model(shipped("veridyn:car_38.yaml"))
    q = np.random.default_rng(3).uniform(-0.5, 0.5, (4, machine.n))
    for name, (R, p) in body_poses(machine, q).items():
        own = body_pose(machine, q, name)
        assert pytest.approx(own[0], abs=1e-12) == R and p == pytest.approx(own[1], abs=1e-12)
