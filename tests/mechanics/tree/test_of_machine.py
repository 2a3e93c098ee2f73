"""The tree of a machine: cut joints, chains of joints, frames of bodies, dynamics against Pinocchio from the graph; and the way back."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from strangers.graph_machines import OPEN_KINDS, backwards, random_machine, rssr, slider_crank
from strangers.machines import MACHINES
from strangers.pinocchio_machine import PinMachine
from strangers.random_trees import random_tree
from veridyn.errors import ModelError
from veridyn.files.access import shipped
from veridyn.files.machine.load import parse_machine
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.of_machine import machine_of_tree, takes_machine, tree_of
from veridyn.mechanics.tree.recursion.kinematics import body_pose, energy
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.coordinates import spanning_of
from veridyn.model.elements.element import Element, damper, strut
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import Uncertainty
from veridyn.model.place import Attachment, Marker
from veridyn.model.point_parts import Damper, Spring
from veridyn.spatial.rotations import Placement

CHAINS = [
    ("turning", "sliding", "cylindrical", "universal", "planar", "spherical", "fixed"),
    ("spherical", "universal", "planar"),
    ("turning", "floating", "fixed", "sliding"),
    ("planar", "cylindrical", "turning"),
]
BOX = [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.0]
SHIPPED = ("linkage", "palletizer", "hexapod", "delta", "arm", "humanoid", "car_20", "car_38", "car_2002")


def _motion(machine: Machine, seed: int) -> Motion:
    rng = np.random.default_rng(seed)
    q, qd, forces = 0.6 * rng.standard_normal((3, 1, machine.n))
    return Motion(np.zeros(1), q, qd, 0 * q, forces=forces)


@pytest.mark.parametrize("frames", [True, False], ids=["frames anywhere", "frames at joints"])
@pytest.mark.parametrize("kinds", CHAINS, ids=" ".join)
def test_accelerations_and_energies_are_those_of_pinocchio(kinds: tuple[str, ...], frames: bool) -> None:
    for seed in range(3):
        machine = random_machine(seed, kinds, frames)
        stranger, tree = PinMachine(machine), tree_of(machine)
        there = [tree.coordinates.index(c) for c in stranger.names]
        back = [stranger.names.index(c) for c in tree.coordinates]
        motion = _motion(machine, seed)
        q, qd, forces = motion.q[0, there], motion.qd[0, there], motion.forces[0, there]
        found = forward_dynamics(tree, motion, engine="numpy")
        expected = stranger.accelerations(q, qd, forces)[back]
        assert np.abs(found.qdd[0] - expected).max() <= 1e-11 * max(1.0, np.abs(expected).max())
        kinetic, potential = stranger.energies(q, qd)
        own = energy(tree, found)
        assert own.kinetic[0] == pytest.approx(kinetic, rel=1e-12)
        assert own.gravity[0] == pytest.approx(potential, rel=1e-11, abs=1e-11)
        for link in machine.links:  # every body keeps its own frame
            R, p = body_pose(tree, motion.q, link.name)
            assert np.abs(R[0] - stranger.pose(q, link.name)[0]).max() <= 1e-13
            assert np.abs(p[0] - stranger.pose(q, link.name)[1]).max() <= 1e-13


@pytest.mark.parametrize("kinds", CHAINS, ids=" ".join)
def test_a_joint_written_from_its_other_end_moves_the_same_body_by_the_inverse(kinds: tuple[str, ...]) -> None:
    """M(q) takes b to a; written from b to a, the body at a goes by the inverse of that. So both ends have one relative pose."""
    machine = random_machine(5, kinds)
    for which in range(len(kinds)):
        turned = backwards(machine, which)
        tree, joint = tree_of(turned), turned.joints[which]
        q = 0.4 * np.random.default_rng(which).standard_normal((1, tree.n))
        ends = []
        for end in turned.ends(joint):
            R, p = (np.eye(3)[None], np.zeros((1, 3))) if end.body == "ground" else body_pose(tree, q, end.body)
            ends.append((R[0] @ end.placement.rotation, p[0] + R[0] @ end.placement.position))
        own = PinMachine(Machine.build([Link(name="b", inertia=BOX)], [replace(joint, a="ground", b="b")]))
        values = np.array([q[0, tree.coordinates.index(c)] for c in own.names])
        R, p = own.pose(values, "b")
        (A, a), (B, b) = ends
        assert np.abs(A.T @ B - R).max() <= 1e-13
        assert np.abs(A.T @ (b - a) - p).max() <= 1e-13


def test_a_floating_joint_at_the_root_is_a_free_base_unless_its_coordinates_have_names() -> None:
    free = random_machine(1, ("floating", "turning"))
    assert free.base == "free"
    assert free.coordinates == ("turning1",)
    names = ("x", "y", "z", "yaw", "pitch", "roll")
    joints = (replace(free.joints[0], coordinates=names), free.joints[1])
    six = Machine.build(free.links, joints)
    assert six.base == "fixed"
    assert six.coordinates == (*names, "turning1")


def test_the_loop_is_cut_where_the_best_tree_is_left() -> None:
    assert [j.name for j in spanning_of(rssr()).cut] == ["ball"]
    assert [j.name for j in spanning_of(slider_crank()).cut] == ["B"]
    assert [loop.name for loop in tree_of(slider_crank()).loops] == ["B"]


def _ring(**more: dict) -> Machine:
    links = [Link(name=name, inertia=BOX) for name in "abc"]
    ends = [("ground", "a"), ("a", "b"), ("b", "c"), ("c", "ground")]
    joints = []
    for k, (x, y) in enumerate(ends):
        name = f"j{k}"
        joints.append(Joint(name=name, a=Attachment(x, Placement(position=(1.0, 0, 0))), b=y, **more.get(name, {})))
    return Machine.build(links, joints)


def test_of_equal_joints_the_farthest_from_the_ground_and_then_the_last_is_cut() -> None:
    assert [j.name for j in spanning_of(_ring()).cut] == ["j2"]
    assert [j.name for j in spanning_of(_ring(j2={"actuated": True})).cut] == ["j1"]
    assert [j.name for j in spanning_of(_ring(j0={"cut": "yes"})).cut] == ["j0"]
    kept = {name: {"cut": "no"} for name in ("j1", "j2")}
    assert [j.name for j in spanning_of(_ring(**kept)).cut] == ["j3"]


def test_a_loop_of_joints_that_must_not_be_cut_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"joint 'j\d': it closes a loop of joints that must not be cut"):
        _ring(**{f"j{k}": {"cut": "no"} for k in range(4)})
    with pytest.raises(ModelError, match=r"its coordinate 'j\d' is used by a motor, element, load, sensor or drive"):
        _ring(**{f"j{k}": {"actuated": True} for k in range(4)})


def test_springs_and_dampers_are_those_of_both_formulations() -> None:
    link, joint = Link(name="a", inertia=BOX), Joint(name="q", a="ground", b="a")
    far = (Marker("ground", (0, 0, 1.0)), Marker("a", (0.5, 0, 0)))
    own = Element(kind="spring", on={"q": 1.0}, value=3.0, name="k", constants={"rest": 0.5})
    acting = [own, damper("q", 0.2, "d"), strut("spring", *far, 9.0, "s", rest=0.4)]
    machine = Machine.build([link], [joint], elements=acting)
    assert machine.parameters.names[10:] == ("k", "d", "s")
    assert machine.parameters.values[10:] == pytest.approx([3.0, 0.2, 9.0])
    assert tree_of(machine).elements == tuple(acting)
    assert machine.with_parameters({"k": 6.0}).elements[0].value == 6.0
    assert mechanism_of(machine).springs == (Spring("k", "q", 3.0, 0.5), Spring("s", far, 9.0, 0.4))
    assert mechanism_of(machine).dampers == (Damper("d", "q", 0.2),)


def test_every_kind_of_joint_but_a_distance_is_tried_above() -> None:
    assert {kind for chain in CHAINS for kind in chain} == set(OPEN_KINDS)


def _shipped(name: str) -> Tree:
    text = shipped(f"veridyn:{name}.yaml").read_text(encoding="utf-8")
    return tree_of(parse_machine(text, f"{name}.yaml"))


def _same(tree: Tree) -> None:
    back = tree_of(machine_of_tree(tree))
    assert (back.name, back.base, back.coordinates, back.rows) == (tree.name, tree.base, tree.coordinates, tree.rows)
    assert np.array_equal(back.gravity, tree.gravity)
    one, two = tree.parameters, back.parameters
    assert (one.names, one.units, one.states, one.ties) == (two.names, two.units, two.states, two.ties)
    assert np.array_equal(one.values, two.values, equal_nan=True)
    assert np.array_equal(one.typical, two.typical)
    assert (back.elements, back.loops) == (tree.elements, tree.loops)
    assert (back.antecedent, back.actuated, back.independent) == (tree.antecedent, tree.actuated, tree.independent)
    assert back.placements == tree.placements
    assert [(b.name, b.joint, b.ratio, b.real, b.label) for b in back.bodies] == [
        (b.name, b.joint, b.ratio, b.real, b.label) for b in tree.bodies
    ]
    assert (back.assembly.hold, back.assembly.guess) == (tree.assembly.hold, tree.assembly.guess)
    assert back.transmission is tree.transmission


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_trees(name: str) -> None:
    _same(_shipped(name))


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_trees_with_every_kind_of_element(machine) -> None:
    _same(tree_of(machine()))


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(6))
def test_random_trees(seed: int, base: str) -> None:
    rng = np.random.default_rng(seed)
    _same(random_tree(rng, base=base, virtual=0.2, shared=seed % 2 == 1, inertia=seed % 3 != 0))


def test_an_uncertainty_goes_both_ways() -> None:
    tree = _shipped("linkage")
    known = replace(tree, uncertainty=Uncertainty(("fs1", "M1"), np.array([[1.0, 0.5], [0.5, 2.0]])))
    machine = machine_of_tree(known)
    assert machine.uncertainty is known.uncertainty and tree_of(machine).uncertainty is known.uncertainty


def test_estimates_that_no_physical_body_has_go_both_ways() -> None:
    tree = _shipped("linkage").with_parameters({"ZZ1": -0.5, "fs1": 3.0})
    back = tree_of(machine_of_tree(tree))
    assert np.array_equal(back.parameters.values, tree.parameters.values)
    assert {e.name: e.value for e in back.elements}["fs1"] == 3.0


def test_parameters_that_are_not_those_of_the_bodies_are_refused() -> None:
    tree = _shipped("linkage")
    with pytest.raises(ModelError, match="not those of its bodies and elements"):
        machine_of_tree(replace(tree, parameters=replace(tree.parameters, units=("x",) * len(tree.parameters))))


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
