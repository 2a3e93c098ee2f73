"""The machine itself: what it hands out, other parameters and elements in both formulations."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import veridyn as vd
from strangers.graph_machines import rssr, seven_joint_arm, slider_crank
from strangers.natural_mechanisms import rack_and_pinion
from veridyn.errors import ModelError
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import coulomb, damper, maxwell, stribeck
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.model.sensor import Sensor


def test_what_users_look_at_comes_from_the_tree() -> None:
    arm = seven_joint_arm()
    assert arm.coordinates == arm.rows == tuple(f"q{k}" for k in range(1, 8))
    assert (arm.n, arm.base, arm.actuated) == (7, "fixed", (True,) * 7)
    assert arm.actuated_coordinates == arm.coordinates
    assert arm.select_rows(["q3", "q1"]) == (2, 0)
    assert tree_of(arm) is tree_of(arm)
    assert mechanism_of(arm) is mechanism_of(arm)
    assert len(arm.parameters) == 7 * 10 + 14


def test_other_parameters_reach_both_formulations() -> None:
    machine = rssr()
    other = machine.with_parameters({"M_rod": 1.4, "h_phi": 0.9})
    assert other.by_name["rod"].ten[9] == 1.4
    assert tree_of(other).parameters["M_rod"] == 1.4
    assert next(b for b in mechanism_of(other).bodies if b.name == "rod").mass == 1.4
    assert {d.name: d.coefficient for d in mechanism_of(other).dampers} == {"h_phi": 0.9}
    assert machine.parameters["M_rod"] == 0.9
    asked = machine.with_parameters(machine.parameters.known(["M_rod"]))
    assert tree_of(asked).parameters.states[asked.parameters.index("M_rod")] == "known"


def test_elements_besides_its_own() -> None:
    machine = slider_crank().with_elements([maxwell("phi", 1.0, 0.3), damper("phi", 0.1)])
    assert machine.parameters.names[-2:] == ("km_phi", "h_phi")
    assert machine.parameters["km_phi"] == 0.3
    with pytest.raises(ModelError, match=r"element 'km_phi': natural coordinates have no element of kind maxwell"):
        _ = mechanism_of(machine)
    with pytest.raises(ModelError, match="formulation: tree"):
        machine.with_formulation("natural")


def test_an_unknown_inertia_has_a_tree_and_no_mechanism() -> None:
    machine = Machine.build([Link(name="arm")], [Joint(name="q", a="ground", b="arm")])
    assert np.isnan(machine.parameters.values).all()
    with pytest.raises(ModelError, match=r"body 'arm': its inertia is unknown, and natural coordinates need"):
        _ = mechanism_of(machine)


def test_a_machine_travels_between_processes() -> None:
    machine = pickle.loads(pickle.dumps(rssr()))
    assert machine.coordinates == rssr().coordinates
    assert np.array_equal(machine.parameters.values, rssr().parameters.values)


def test_names_of_its_parts() -> None:
    machine = slider_crank()
    assert machine.body_names == tuple(link.name for link in machine.links)
    assert machine.joint_names == tuple(joint.name for joint in machine.joints)
    assert len(machine.coordinate_kinds) == machine.n
    more = machine.with_elements([stribeck("phi", 0.2, 1.0, "fst"), coulomb("phi", 0.3)])
    assert more.element_names[-2:] == ("fst", "fs_phi")
    assert [c.name for c in more.constants] == ["fst.speed"] and more.signals == () and more.states == ()


def test_elements_constants_and_prescribed_coordinates_are_changed_as_those_of_a_tree() -> None:
    machine = slider_crank().with_elements([stribeck("phi", 0.2, 1.0, "fst"), coulomb("phi", 0.3, "fs")])
    known = machine.with_uncertainty(Uncertainty(("fst", "fs"), np.diag([1.0, 4.0])))
    fewer = known.without_elements("fst")
    assert "fst" not in fewer.parameters.names and fewer.uncertainty is not None
    assert fewer.uncertainty.names == tree_of(fewer).uncertainty.names == ("fs",)  # pyright: ignore[reportOptionalMemberAccess]
    assert tree_of(known).without_elements("fst").uncertainty.names == ("fs",)  # pyright: ignore[reportOptionalMemberAccess]
    assert tree_of(machine.with_constants({"fst.speed": 0.5})).constants[0].value == 0.5
    with pytest.raises(ModelError, match=r"there is no element 'fx'"):
        machine.without_elements(["fx"])
    driven = seven_joint_arm().with_prescribed("q1")
    assert driven.prescribed == tree_of(driven).prescribed == ("q1",)
    with pytest.raises(ModelError, match=r"prescribed 'q9': there is no such coordinate"):
        seven_joint_arm().with_prescribed(["q9"])


def test_other_sensors_are_checked() -> None:
    arm = seven_joint_arm().with_sensors([Sensor("encoder", "coordinate", "q1", 0.01)])
    assert [s.name for s in tree_of(arm).sensors] == ["encoder"]
    with pytest.raises(ModelError, match="there is no coordinate 'q9'"):
        arm.with_sensors([Sensor("encoder", "coordinate", "q9", 0.01)])


def test_an_uncertainty_belongs_to_the_values() -> None:
    machine = rssr().with_uncertainty(Uncertainty(("M_rod",), np.eye(1)))
    assert tree_of(machine).uncertainty is machine.uncertainty
    assert machine.with_parameters({"M_rod": 1.0}).uncertainty is None
    assert tree_of(machine.with_uncertainty(None)).uncertainty is None
    with pytest.raises(ModelError, match="there is no parameter 'M_nut'"):
        machine.with_uncertainty(Uncertainty(("M_nut",), np.eye(1)))


def test_parameters_that_no_physical_body_has_are_carried() -> None:
    """A fit of grouped parameters may give them; the tree has them, and only what needs a mass refuses them."""
    machine = rssr().with_parameters({"ZZ_rod": -0.5})
    assert tree_of(machine).parameters["ZZ_rod"] == -0.5


def test_a_formulation_that_does_not_exist_is_refused_where_it_is_set() -> None:
    machine = seven_joint_arm()
    with pytest.raises(ModelError, match=r"(?s)there is no formulation 'foo'.*Known: tree, natural") as caught:
        machine.with_formulation("foo")  # pyright: ignore[reportArgumentType]
    assert caught.value.faults[0].at == ("formulation",)
    with pytest.raises(ModelError, match="Did you mean 'natural'"):
        machine.with_formulation("natual")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match="there is no formulation None"):
        machine.with_formulation(None)  # pyright: ignore[reportArgumentType]


def test_a_machine_without_a_tree_says_what_needs_one() -> None:
    machine = machine_of_mechanism(rack_and_pinion())
    with pytest.raises(ModelError, match=r"(?s)a tree has no racks.*identification.*observed in natural coordinates"):
        vd.base_parameters(machine)
