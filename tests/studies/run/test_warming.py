"""Code that is made ahead is found by the verbs that need it."""

import pytest

from strangers.machines import branched_arm, free_machine
from veridyn.files.machine.load import load_model
from veridyn.identify.regression.observation import stream
from veridyn.mechanics.tree.dynamics import formula
from veridyn.studies.run.warming import some_motion, warm


@pytest.mark.parametrize("name", ["branched", "free", "veridyn:palletizer.yaml"])
def test_the_equations_are_there_afterwards(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of few samples takes the reference unless its code is there; what is there afterwards is not made again."""
    machine = {"branched": branched_arm, "free": free_machine}.get(name, lambda: load_model(name))()
    labels: list[str] = []
    warm(machine, lambda label, done, total: labels.append(label))
    assert labels[0] == "compiling: equations of the rows" and labels[-1] == "compiling"

    def refused(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(formula, "formula", refused)
    assert stream(machine, some_motion(machine)).plan.compile
    assert stream(machine, some_motion(machine)).observe().samples > 0
