"""One reader for model files of both kinds."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from veridyn.errors import FileError, ModelError
from veridyn.files.machine import load_machine, parse_machine
from veridyn.files.native import parse_model

TREES = {"linkage": 3, "palletizer": 5, "arm": 6, "car_20": 14}
MECHANISMS = {"fourbar": ("phi", "q1", "B"), "crane": ("x", "swing")}


def _file(name: str) -> Path:
    return Path(str(resources.files("veridyn.machines").joinpath(f"{name}.yaml")))


@pytest.mark.parametrize("name", TREES)
def test_a_file_of_a_tree(name: str) -> None:
    machine = load_machine(_file(name))
    assert machine.formulation == "tree"
    assert machine.n == TREES[name]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_file_of_a_mechanism(name: str) -> None:
    machine = load_machine(_file(name))
    assert machine.formulation == "natural"
    assert machine.coordinates == MECHANISMS[name]


def test_faults_of_either_kind_have_their_lines() -> None:
    with pytest.raises(ModelError, match=r"line 3"):
        parse_machine("veridyn: 1\nmechanism: m\npoints: {A: {at: [0, x]}}\nbodies: {b: {points: {A: [0, 0]}}}\n")
    with pytest.raises(ModelError, match=r"line 3"):
        parse_machine("veridyn: 1\nbodies:\n  - {name: a, joint: hinge}\n")


def test_a_tree_asked_of_the_file_of_a_mechanism_is_refused_by_name() -> None:
    with pytest.raises(FileError, match=r"this is the file of a mechanism in natural coordinates.*\n.*load_machine"):
        parse_model(_file("fourbar").read_text(encoding="utf-8"), "fourbar.yaml")
