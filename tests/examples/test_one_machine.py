"""Machines from description to observer by the same lines, in each formulation: errors within their bands, and what is unobservable."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {  # formulations, parameters, samples of the second log, and the coordinates whose angle no sensor shows
    "arm": (("tree", "natural"), 53, 301, ()),
    "four-bar": (("tree", "natural"), 8, 301, ()),
    "crane": (("tree", "natural"), 5, 501, ()),
    "car": (("tree",), 33, 601, ("theta1", "theta2", "theta3", "theta4")),
    "small car": (("single_track",), 2, 2001, ()),
}
QUICK = (("crane", "tree"), ("small car", "single_track"))  # the others by the same lines, 5 to 60 s each
CASES = [(name, formulation) for name, (formulations, *_) in EXPECTED.items() for formulation in formulations]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return runpy.run_path(str(EXAMPLES / "one_machine.py"))


@pytest.mark.parametrize(
    ("name", "formulation"), [pytest.param(*c, marks=() if c in QUICK else pytest.mark.slow) for c in CASES]
)
@pytest.mark.filterwarnings("ignore::veridyn.errors.IdentificationWarning", "ignore::veridyn.errors.DataWarning")
def test_from_description_to_observer(
    name: str, formulation: str, example: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    _, parameters, samples, unseen = EXPECTED[name]
    job = example["JOBS"][name]()
    found = example["journey"](job, job.machine.with_formulation(formulation), np.random.default_rng(0))
    assert len(found.fit.names) == parameters and len(found.states) == samples
    assert np.mean(np.abs(found.z) < 3.0) >= 0.9
    assert found.inside > 0.9 and found.rms
    if unseen:
        texts = [d.text for d in found.states.observability(part=slice(0, 400, 20)).unseen]
        assert texts and all(any(f"'{c}'" in text for text in texts) for c in unseen)
    example["report"](name, found)
    assert f"{name}, {formulation}: {parameters} parameters" in capsys.readouterr().out


@pytest.mark.parametrize("name", EXPECTED)
def test_formulations_that_do_not_carry_a_machine_are_named(
    name: str, example: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    carried = [machine.formulation for machine in example["formulations"](example["JOBS"][name]().machine)]
    assert carried == list(EXPECTED[name][0])
    assert capsys.readouterr().out.count("refused, ") == 3 - len(carried)


def test_only_veridyn_is_imported() -> None:
    """The front modules of veridyn, none of its rooms."""
    text = "".join((EXAMPLES / f"{name}.py").read_text(encoding="utf-8") for name in ("one_machine", "four_jobs"))
    rooms = ("mechanics", "identify", "observe", "simulate", "files", "machines", "papers")
    assert not any(f"veridyn.{room}" in text for room in rooms)
