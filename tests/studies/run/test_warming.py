"""Code that is made ahead is found by the verbs that need it."""

import pytest

from strangers.machines import branched_arm, free_machine
from veridyn.files.machine.load import load_model
from veridyn.identify.observation import stream
from veridyn.mechanics import formula
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.studies.run.warming import some_motion, warm


@pytest.mark.parametrize("machine", ["branched", "free", "veridyn:palletizer.yaml"])
def test_the_equations_are_there_afterwards(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of few samples takes the reference unless its code is there; what is there afterwards is not made again."""
    tree: Tree = {"branched": branched_arm, "free": free_machine}.get(machine, lambda: tree_of(load_model(machine)))()
    labels: list[str] = []
    warm(tree, lambda label, done, total: labels.append(label))
    assert labels[0] == "compiling: equations of the rows" and labels[-1] == "compiling"

    def refused(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(formula, "formula", refused)
    assert stream(tree, some_motion(tree)).plan.compile
    assert stream(tree, some_motion(tree)).observe().samples > 0
