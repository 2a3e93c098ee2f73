"""Four machines from description to observer by the same lines: errors within their bands, and what is unobservable by name."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {  # parameters, samples of the second log, and the coordinates whose angle no sensor tells
    "arm": (60, 1501, ()),
    "linkage": (12, 1501, ()),
    "crane": (5, 1501, ()),
    "car": (33, 601, ("theta1", "theta2", "theta3", "theta4")),
}

LONG = ("arm", "linkage", "car")  # 7 to 15 s each, by the same lines


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in EXPECTED])
def test_from_description_to_observer(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = runpy.run_path(str(EXAMPLES / "one_machine.py"))
    found = example["journey"](example["JOBS"][name](), np.random.default_rng(0))
    parameters, samples, unseen = EXPECTED[name]
    assert len(found.fit.names) == parameters and len(found.states) == samples
    assert np.mean(np.abs(found.z) < 3.0) >= 0.9
    assert 0.2 < found.nees < 2.0  # one log of a drawn machine: the mean over many is tests/observe/test_consider.py's
    assert all(any(f"'{c}'" in text for text in found.unseen) for c in unseen)
    assert bool(found.unseen) == bool(unseen)
    example["report"](name, found)
    assert "NEES" in capsys.readouterr().out
