"""One reader for model files of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from veridyn.errors import FileError, ModelError
from veridyn.files.access import shipped
from veridyn.files.machine.load import load_model, parse_machine

TREES = {"linkage": 3, "palletizer": 5, "arm": 6, "car_20": 14}
MECHANISMS = {"fourbar": ("phi", "q1", "B"), "crane": ("x", "swing")}
URDF = """<robot name="one"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 0.5"/><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def _file(name: str) -> Path:
    return shipped(f"veridyn:{name}.yaml")


@pytest.mark.parametrize("name", TREES)
def test_a_file_of_a_tree(name: str) -> None:
    machine = load_model(_file(name))
    assert machine.formulation == "tree"
    assert machine.n == TREES[name]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_file_in_natural_coordinates(name: str) -> None:
    machine = load_model(_file(name))
    assert machine.formulation == "natural"
    assert machine.coordinates == MECHANISMS[name]


def test_a_urdf(tmp_path: Path) -> None:
    file = tmp_path / "one.urdf"
    file.write_text(URDF)
    machine = load_model(file)
    assert (machine.name, machine.coordinates, machine.formulation) == ("one", ("hinge",), "tree")


def test_faults_have_their_lines() -> None:
    for text in (
        "veridyn: 2\nname: m\npoints: {A: {at: [0, x]}}\nbodies: {b: {points: {A: [0, 0]}}}\n",
        "veridyn: 2\nbodies:\n  - {name: a, joint: hinge}\n",
    ):
        with pytest.raises(ModelError, match=r"line 3"):
            parse_machine(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "veridyn: 3\nbodies: []\n",
            r"m\.yaml, veridyn \(line 1\): this version of the format is unknown\.\nExpected 2, found '3'",
        ),
        (
            "veridyn: 1\nname: old\nbodies:\n  - {name: a, joint: turning}\nloops: []\n",
            r"m\.yaml, veridyn \(line 1\): model files of version 1 are no longer read\.\nExpected 2, found '1'\. "
            r"Write veridyn: 2 and the keys of version 2, which docs/model-file\.md lists: loops are joints with cut: yes",
        ),
        (
            "veridyn: 1\nmechanism: m\npoints: {A: {at: [0, 0]}}\nbodies: {b: {points: {A: [0, 0]}}}\n",
            r"m\.yaml, veridyn \(line 1\): model files of version 1 are no longer read\.\nExpected 2, found '1'\. Write veridyn: 2",
        ),
        ("veridyn: [2]\nbodies: []\n", "found something else"),
        ("kind: observe\nlog: x\n", "this is not a model file"),
        ("bodies:\n  - {name: a, joint: turning}\n", "the key 'veridyn' is missing"),
    ],
)
def test_other_files_are_refused(text: str, words: str) -> None:
    with pytest.raises((FileError, ModelError), match=words):
        parse_machine(text, "m.yaml")


def test_points_of_one_number_are_named() -> None:
    text = _file("fourbar").read_text(encoding="utf-8")
    assert "A: {at: [0, 0]" in text
    with pytest.raises(ModelError, match=r"(?s)point 'B' \(line \d+\): at has the wrong shape"):
        parse_machine(text.replace("A: {at: [0, 0]", "A: {at: [0, ]"))
