"""A tree becomes a machine and a tree again without a change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.machines import MACHINES
from strangers.random_trees import random_tree
from veridyn.errors import ModelError
from veridyn.files.access import shipped
from veridyn.files.machine.load import parse_machine
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.to_machine import machine_of_tree
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.parameters import Uncertainty

SHIPPED = ("linkage", "palletizer", "hexapod", "delta", "arm", "humanoid", "car_20", "car_38", "car_2002")


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
