"""The calibration of stated deviations: its quick form with a fixed seed, its bands, and its door."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.calibration import BANDS, calibrate, main, table
from benchmarks.calibration_cases import CASES, Outcome

QUICK = [
    "ols, equal noise",
    "wls",
    "wls, hac, first-order noise",
    "map",
    "map, hac, first-order noise",
    "gauss_markov, first-order noise",
    "iv, noisy accelerations",
    "likelihood, whole periods",
    "known values to 10 %",
    "payload, gains to 2 %",
]


def normal(sigma: float, bias: float = 0.0, far: float = 0.0):
    """A case whose true deviation is 1: stated as `sigma`, with a bias, and a share of errors ten times as large."""

    def run(rng: np.random.Generator) -> Outcome:
        errors = rng.normal(size=8) * np.where(rng.random(8) < far, 10.0, 1.0) + bias
        return Outcome(errors, np.full(8, sigma))

    return run


def test_what_is_stated_right_is_within_and_what_is_not_is_found() -> None:
    right = calibrate("right", normal(1.0), 200, 0)
    assert right.within and right.inside_one_sigma == pytest.approx(0.683, abs=0.04)
    assert right.mean_z2 == pytest.approx(1.0, abs=0.1) and right.sigma_over_spread == pytest.approx(1.0, abs=0.05)
    for wrong in (normal(0.8), normal(1.25), normal(1.0, bias=0.8), normal(1.0, far=0.05)):
        assert not calibrate("wrong", wrong, 200, 0).within
    biased = calibrate("biased", normal(1.0, bias=0.8), 200, 0)
    assert biased.largest_bias == pytest.approx(0.8, abs=0.25)
    assert BANDS == {"inside_one_sigma": (0.64, 0.72), "inside_two_sigma": (0.93, 0.97), "mean_z2": (0.8, 1.25)}


@pytest.mark.parametrize("name", QUICK)
def test_estimators_under_their_assumptions(name: str) -> None:
    """Ten machines a case, seed 7, in the bands of 200 runs widened by four standard errors; the full form is benchmarks.calibration."""
    found = calibrate(name, CASES[name], 10, 7)
    print(table([found])[-1])
    assert found.within and found.failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in QUICK])
def test_the_others_take_longer(name: str) -> None:
    pytest.importorskip("cvxpy")
    found = calibrate(name, CASES[name], 24, 7)
    print(table([found])[-1])
    assert found.within


def test_the_door(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "4", "--seed", "3", "--case", "wls", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["seed"] == 3 and content["quick"] is True
    keys = {"inside_one_sigma", "inside_two_sigma", "mean_z2", "largest_bias", "sigma_over_spread"}
    assert keys <= set(content["cases"][0]) and content["cases"][0]["runs"] == 4
    assert main(["--runs", "4", "--case", "wls"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("| case | runs |")


def test_runs_that_excite_different_parameters_are_aligned_by_name() -> None:
    def run(rng: np.random.Generator) -> Outcome:
        names = ("a", "b", "c") if rng.random() < 0.5 else ("c", "a")
        return Outcome(rng.normal(size=len(names)), np.ones(len(names)), names)

    found = calibrate("some", run, 100, 0, demo=True)
    assert found.parameters == 3 and found.within
    assert 0.1 < found.unstated < 0.25  # "b" is missing in every other run


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--case", "nonsense"])
    assert "there is no case 'nonsense'; there are: ols" in capsys.readouterr().err
