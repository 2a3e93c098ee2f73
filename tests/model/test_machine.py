"""The machine itself: what it hands out, other parameters and elements in both formulations."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from strangers.graph_machines import rssr, seven_joint_arm, slider_crank
from veridyn.errors import ModelError
from veridyn.model.elements import coulomb, damper
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine


def test_what_users_look_at_comes_from_the_tree() -> None:
    arm = seven_joint_arm()
    assert arm.coordinates == arm.rows == tuple(f"q{k}" for k in range(1, 8))
    assert (arm.n, arm.base, arm.actuated) == (7, "fixed", (True,) * 7)
    assert arm.actuated_coordinates == arm.coordinates
    assert arm.select_rows(["q3", "q1"]) == (2, 0)
    assert arm.tree is arm.tree
    assert arm.mechanism is arm.mechanism
    assert len(arm.parameters) == 7 * 10 + 14


def test_other_parameters_reach_both_formulations() -> None:
    machine = rssr()
    other = machine.with_parameters({"M_rod": 1.4, "h_phi": 0.9})
    assert other.by_name["rod"].ten[9] == 1.4
    assert other.tree.parameters["M_rod"] == 1.4
    assert next(b for b in other.mechanism.bodies if b.name == "rod").mass == 1.4
    assert {d.name: d.coefficient for d in other.mechanism.dampers} == {"h_phi": 0.9}
    assert machine.parameters["M_rod"] == 0.9
    asked = machine.with_parameters(machine.parameters.known(["M_rod"]))
    assert asked.tree.parameters.states[asked.parameters.index("M_rod")] == "known"


def test_elements_besides_its_own() -> None:
    machine = slider_crank().with_elements([coulomb("phi", 0.3), damper("phi", 0.1)])
    assert machine.parameters.names[-2:] == ("fs_phi", "h_phi")
    assert machine.parameters["fs_phi"] == 0.3
    with pytest.raises(ModelError, match=r"element 'fs_phi': natural coordinates have no element of kind coulomb"):
        _ = machine.mechanism
    with pytest.raises(ModelError, match="formulation: tree"):
        machine.with_formulation("natural")


def test_an_unknown_inertia_has_a_tree_and_no_mechanism() -> None:
    machine = Machine.build([Link(name="arm")], [Joint(name="q", a="ground", b="arm")])
    assert np.isnan(machine.parameters.values).all()
    with pytest.raises(ModelError, match=r"body 'arm': its inertia is unknown, and natural coordinates need"):
        _ = machine.mechanism


def test_a_machine_travels_between_processes() -> None:
    machine = pickle.loads(pickle.dumps(rssr()))
    assert machine.coordinates == rssr().coordinates
    assert np.array_equal(machine.parameters.values, rssr().parameters.values)
