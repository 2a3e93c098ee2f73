"""Verbs take machines; the laws of motion take the inner tree as well, and give the same."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from veridyn.files.access import shipped
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree


def loaded(name: str) -> vd.Machine:
    return vd.load_model(Path(shipped(f"veridyn:{name}")))


def test_a_machine_is_taken_for_its_tree() -> None:
    machine = loaded("arm.yaml")
    tree = tree_of(vd.load_model(shipped("veridyn:arm.yaml")))
    assert tree_of(machine).coordinates == tree.coordinates and tree_of(tree) is tree
    rng = np.random.default_rng(0)
    motion = vd.Motion(0.01 * np.arange(5), *(rng.normal(size=(5, tree.n)) for _ in range(3)))
    np.testing.assert_allclose(vd.inverse_dynamics(machine, motion), vd.inverse_dynamics(tree, motion), rtol=1e-12)


def test_verbs_above_the_laws_of_motion_refuse_inner_forms() -> None:
    tree: Any = tree_of(loaded("arm.yaml"))
    for verb in (vd.base_parameters, lambda t: vd.estimators.explain(t, "XX1")):
        with pytest.raises(vd.errors.ModelError, match=r"it is no machine\.\sExpected a Machine, found a Tree"):
            verb(tree)


def test_the_signature_and_the_text_are_those_of_the_verb() -> None:
    def verb(machine: vd.Machine, times: int = 1) -> int:
        """How many coordinates, so many times."""
        return times * machine.n

    taken = takes_machine(verb)
    assert taken(loaded("linkage.yaml"), times=2) == 6
    assert inspect.signature(taken) == inspect.signature(verb) and taken.__doc__ == verb.__doc__


def test_mechanisms_have_a_tree_and_trees_a_mechanism() -> None:
    """The four-bar linkage of points and bars has a crank to identify; the arm has points to observe."""
    linkage = loaded("fourbar.yaml")
    assert linkage.formulation == "natural" and "phi" in linkage.coordinates
    assert vd.base_parameters(linkage).count > 0


def test_what_changes_a_tree_changes_a_machine() -> None:
    machine = loaded("arm.yaml")
    bare = machine.without_elements(machine.element_names)
    locked = vd.model.welded(bare, {machine.coordinates[-1]: 0.2})
    assert isinstance(locked, vd.Machine) and locked.n == machine.n - 1
    assert isinstance(vd.model.welded(tree_of(bare), {machine.coordinates[-1]: 0.2}), Tree)
    assert isinstance(vd.dynamics.actuators(loaded("linkage.yaml")), vd.Machine)


def test_tools_take_a_machine_for_its_tree(tmp_path: Path) -> None:
    """Geometry, loops, code and validation: what takes a tree takes the machine, and gives the same."""
    arm, linkage = loaded("arm.yaml"), loaded("linkage.yaml")
    q, body = np.full((1, arm.n), 0.1), arm.body_names[-1]
    for f in (vd.dynamics.body_pose, vd.dynamics.jacobian):
        for one, two in zip(f(arm, q, body), f(tree_of(arm), q, body), strict=True):
            np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(vd.dynamics.closed_home(linkage), vd.dynamics.closed_home(tree_of(linkage)))
    assert vd.dynamics.c_source(arm).code == vd.dynamics.c_source(tree_of(arm)).code
    motion = vd.Motion(np.zeros(1), q, 0 * q, 0 * q)
    measured = vd.Motion(np.zeros(1), q, 0 * q, 0 * q, forces=vd.inverse_dynamics(arm, motion))
    assert vd.validate(arm, measured).rows[0].rms < 1e-9


def test_the_first_argument_may_be_named() -> None:
    """By position or as `machine`; twice or never is refused as Python does it."""
    machine = loaded("linkage.yaml")
    q = np.zeros((2, machine.n))
    motion = vd.Motion(0.01 * np.arange(2), q, q, q)
    closed = vd.dynamics.closed_home(machine)
    assert np.array_equal(vd.dynamics.closed_home(machine=machine), closed)
    assert np.array_equal(vd.dynamics.closed_home(machine=tree_of(machine)), closed)
    bare = loaded("arm.yaml")
    assert vd.model.welded(machine=bare, locked={}).n == bare.n
    pushed = vd.Motion(0.01 * np.arange(300), *(np.random.default_rng(k).normal(size=(300, 6)) for k in range(3)))
    pushed = vd.Motion(pushed.t, pushed.q, pushed.qd, pushed.qdd, forces=vd.inverse_dynamics(bare, pushed))
    assert vd.identify(machine=bare, data=pushed, method="ols").described is bare
    with pytest.raises(TypeError, match=r"closed_home\(\) got multiple values for argument 'machine'"):
        vd.dynamics.closed_home(machine, machine=machine)
    with pytest.raises(TypeError, match=r"inverse_dynamics\(\) is missing 1 required positional argument: 'machine'"):
        vd.inverse_dynamics(motion=motion)
