"""Verbs take a machine where they take its tree, and give the same."""

import inspect
from pathlib import Path

import numpy as np

import veridyn as vd
from veridyn.machines.shipped import shipped
from veridyn.model.accept import accepts_machine, as_tree
from veridyn.model.tree import Tree


def loaded(name: str) -> vd.Machine:
    return vd.load_model(Path(shipped(f"veridyn:{name}")))


def test_a_machine_is_taken_for_its_tree() -> None:
    machine = loaded("arm.yaml")
    tree = vd.load_model(shipped("veridyn:arm.yaml")).tree
    assert as_tree(machine).coordinates == tree.coordinates and as_tree(tree) is tree
    rng = np.random.default_rng(0)
    motion = vd.Motion(0.01 * np.arange(5), *(rng.normal(size=(5, tree.n)) for _ in range(3)))
    np.testing.assert_allclose(vd.inverse_dynamics(machine, motion), vd.inverse_dynamics(tree, motion), rtol=1e-12)
    assert vd.base_parameters(machine).count == vd.base_parameters(tree).count


def test_the_signature_and_the_text_are_those_of_the_verb() -> None:
    def verb(tree: Tree, times: int = 1) -> int:
        """How many coordinates, so many times."""
        return times * tree.n

    taken = accepts_machine(verb)
    assert taken(loaded("linkage.yaml"), times=2) == 6
    assert inspect.signature(taken) == inspect.signature(verb) and taken.__doc__ == verb.__doc__


def test_mechanisms_have_a_tree_and_trees_a_mechanism() -> None:
    """The four-bar linkage of points and bars has a crank to identify; the arm has points to observe."""
    linkage = loaded("fourbar.yaml")
    assert linkage.formulation == "natural" and "phi" in linkage.coordinates
    assert vd.base_parameters(linkage).count > 0
