"""Two logs of one machine against each other: what agrees is within the bands, what states too little is not, and the door."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from benchmarks.calibration import main
from benchmarks.calibration_foreign import Circumstances, Waves, drawing, model, recorded
from benchmarks.calibration_pairs import PAIRS, Agreement, compared, table
from benchmarks.foreign.machines import SUBJECTS, drawn
from scipy.stats import chi2

import veridyn as vd
from veridyn.identify.result import Fit

DATA = os.environ.get("VERIDYN_DATA", "")


@cache
def two_fits() -> tuple[Fit, Fit]:
    """Two motions of one arm made with Pinocchio, white noise."""
    rng, subject = np.random.default_rng(11), SUBJECTS["arm"]
    truth, how = drawn(subject, drawing("arm"), 0.1, rng), Circumstances(samples=3000)
    paths = [Waves.drawn(rng, subject.reach, (0.1, 1.2)) for _ in range(2)]
    motions = (vd.motion(model("arm"), recorded(subject, truth, along, 0.0, how, rng)) for along in paths)
    first, second = (vd.identify(model("arm"), m) for m in motions)
    return first, second


def test_differences_are_measured_in_deviations_of_both() -> None:
    """dᵀC⁻¹d of true deviations is χ² of as many parameters, here below its .999 quantile; of a sixteenth of C it is 16 times that."""
    first, second = two_fits()
    count = len(first.names)
    right = compared("arm", first, second)
    assert right.parameters == count and right.left_out == 0
    assert chi2.ppf(0.001, count) / count < right.joint < chi2.ppf(0.999, count) / count
    smaller = [replace(f, covariance=f.covariance / 16.0) for f in (first, second)]
    wrong = compared("arm", *smaller)
    assert wrong.joint == pytest.approx(16.0 * right.joint) and wrong.median == pytest.approx(4.0 * right.median)
    assert not wrong.within
    assert "| no |" in table([wrong])[-1]


def test_bands() -> None:
    normal = Agreement("normal", 60, 0, 0.954, 0.67, 1.0, 0.0)
    assert normal.within
    for change in ({"inside_two_sigma": 0.87}, {"median": 0.39}, {"median": 1.01}, {"joint": 3.1}):
        assert not replace(normal, **change).within


def test_parameters_that_one_log_groups_otherwise_are_left_out() -> None:
    first, second = two_fits()
    matrix = second.base.matrix.copy()
    matrix[0, second.base.columns[1]] = 0.5
    other = replace(second, base=replace(second.base, matrix=matrix))
    found = compared("arm", first, other)
    assert found.left_out == 1 and found.parameters == len(first.names) - 1


@pytest.mark.parametrize("arguments", [["--case", "nonsense"], []])
def test_what_cannot_be_compared_is_refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("VERIDYN_DATA", raising=False)
    assert main(["--pairs", *arguments]) == 2
    said = capsys.readouterr().err
    assert ("there is no pair 'nonsense'; there are: KUKA" if arguments else "VERIDYN_DATA") in said


@pytest.mark.skipif(not DATA, reason="VERIDYN_DATA names no folder with measured logs")
def test_the_two_files_of_the_kuka(capsys: pytest.CaptureFixture[str]) -> None:
    """Base parameters are those of the published count and an offset and a spring of each joint (examples/studies/kuka.yaml)."""
    main(["--pairs", "--case", "KUKA, study", "--json"])
    (found,) = json.loads(capsys.readouterr().out)["pairs"]
    assert (
        found["parameters"] == 71 and found["left_out"] == 0 and set(found) >= {"inside_two_sigma", "median", "joint"}
    )
    assert len(PAIRS) == 5
