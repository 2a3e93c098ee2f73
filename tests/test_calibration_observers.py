"""Bands of observers on foreign truth: how they are counted, and a short drive on which the defaults hold and a twin's do not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import calibration_observers as observers
from benchmarks.calibration import main
from benchmarks.calibration_observers import (
    CASES,
    Calibration,
    Case,
    Followed,
    Outcome,
    against_thesis,
    against_unmarked,
    bands,
    calibrate,
    driven,
    followed,
    silence,
    table,
    unit_of,
)
from benchmarks.foreign.buggy import Manoeuvre

from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import best_observer
from veridyn.papers.buggy.trials import outage_observer

T = np.arange(1000) / 100.0


def noise(size: float, stated: float, seed: int) -> Followed:
    errors = size * np.random.default_rng(seed).standard_normal((len(T), 2))
    return Followed(T, ("x", "y"), errors, np.full_like(errors, stated))


def test_normal_errors_have_the_shares_of_a_normal_law() -> None:
    """95.4 % inside two deviations where they are true; of 4000 samples the share has a standard error of .3 %."""
    found = bands([(noise(1.0, 1.0, k),) for k in range(4)])
    assert found["inside_x"] == pytest.approx(0.954, abs=0.012) and found["rms_y"] == pytest.approx(1.0, rel=0.05)
    assert found["sigma_over_rms_x"] == pytest.approx(1.0, rel=0.05)
    assert bands([(noise(1.0, 0.1, 1),)])["inside_x"] == pytest.approx(0.159, abs=0.04)  # within a fifth of a deviation
    both = against_thesis([(noise(1.0, 1.0, 1), noise(2.0, 2.0, 2))])
    assert both["over_error_ekf_x"] == pytest.approx(0.5, rel=0.1)


def test_marks_are_compared_with_none() -> None:
    """Rates half as far off with the marks: two sets of 4000 normal errors know the ratio within a few percent."""

    def moving(rate: float, nees: float, seed: int) -> Followed:
        errors = np.random.default_rng(seed).standard_normal((len(T), 4)) * [1.0, 1.0, rate, rate]
        return Followed(T, ("x", "y", "x_dot", "y_dot"), errors, np.ones_like(errors), nees)

    found = against_unmarked([(moving(1.0, 0.9, k), moving(2.0, 1.5, 10 + k)) for k in range(2)])
    assert found["rate_over_unmarked"] == pytest.approx(0.5, rel=0.05)
    assert (found["nees"], found["nees_unmarked"]) == pytest.approx((0.9, 1.5))


def test_one_sample_outside_counts_as_an_outage_lost() -> None:
    calm = Followed(T, ("x", "y"), np.full((1000, 2), 0.2), np.full((1000, 2), 0.1))
    errors = calm.errors.copy()
    errors[500, 1] = 0.31
    lost = Followed(T, ("x", "y"), errors, calm.sigma)
    found = silence([(calm,), (lost,)], (2.0, 8.0))
    assert found == {"outages_outside": 1.0, "rms_end": 0.2, "sigma_end": 0.1, "sigma_over_rms_end": pytest.approx(0.5)}
    assert silence([(lost,)], (6.0, 8.0))["outages_outside"] == 0.0


def test_a_figure_outside_its_limits_is_named() -> None:
    def run(seed: int) -> Outcome:
        return (noise(1.0, 1.0 + seed, seed),)

    found = calibrate("noise", Case(run, bands, {"rms_x": (0.0, 0.5), "inside_x": (0.9, 1.0)}), 2, 5)
    assert found.missed == ("rms_x",) and not found.within and found.runs == 2
    assert table([found])[2].endswith("| at most 0.5 | no |") and table([found])[3].endswith("| 0.9 to 1 | yes |")
    assert Calibration("a", 1, {}, {}, (), 0.0).within


def test_runs_in_pieces_are_judged_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs, then four with the same first seed: two are new, and a line cut short is run again."""
    asked: list[int] = []

    def run(seed: int) -> Outcome:
        asked.append(seed)
        return (noise(1.0, 1.0, seed), noise(2.0, 2.0, seed))

    case, file = Case(run, against_thesis, {"over_error_ekf_x": (0.0, 1.05)}), tmp_path / "runs"
    calibrate("noise", case, 2, 7, file)
    assert asked == [7, 8] and "noise, seed 8: over_error_ekf_x 0.5" in capsys.readouterr().err
    file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    pieces = calibrate("noise", case, 4, 7, file)
    assert asked == [7, 8, 8, 9, 10] and calibrate("another", case, 1, 7, file).runs == 1 and asked[-1] == 7
    whole = calibrate("noise", case, 4, 7)
    for name, value in whole.figures.items():
        assert pieces.figures[name] == pytest.approx(value, rel=1e-3)  # samples are kept with five digits


def test_cases_have_the_limits_that_were_asked_for() -> None:
    assert [name for name in CASES if name.startswith("fitted")] == [
        "fitted, pendulum on a cart",
        "fitted, two-link arm",
        "fitted, slider-crank",
    ]
    assert CASES["fitted, slider-crank"].limits == {"nees": (0.75, 1.35)}
    circle = CASES["buggy, circle"].limits
    assert circle["rms_y"] == (0.0, 0.005) and circle["inside_x"] == (0.88, 1.0)
    assert circle["sigma_over_rms_y"] == (0.0, 2.0)
    assert CASES["buggy, slalom"].limits["over_error_ekf_x"] == (0.0, 1.05)
    assert CASES["buggy, outage"].limits == {"outages_outside": (0.0, 1.0), "sigma_over_rms_end": (0.0, 2.0)}


def test_every_channel_has_its_unit() -> None:
    assert [unit_of(n) for n in ("gps.x", "angle_fl", "drive_rl", "qdd.rack", "gps_velocity.y")] == [
        "m", "rad", "N*m", "m/s^2", "m/s",
    ]  # fmt: skip


def test_bands_hold_on_foreign_truth_and_those_of_a_twin_do_not() -> None:
    """Six seconds of the circle, vehicle 11: x and y of the default observer, and of the one that takes its model for the vehicle."""
    drive, log = driven(Manoeuvre(6.0, ((0.0, -0.010),)), 11)
    held, twin = (
        bands([(followed(best_observer(*error), 0.030, drive, log).between(1.0, 6.0),)]) for error in ((), (None,))
    )
    for name in ("x", "y"):
        assert held[f"inside_{name}"] >= 0.88 and held[f"rms_{name}"] <= 0.005
    assert min(twin["inside_x"], twin["inside_y"]) < 0.5


def test_the_outage_observer_states_a_model_error_by_default() -> None:
    machine = buggy()
    noise, rounding = outage_observer(machine).noise, outage_observer(machine, None).noise
    assert isinstance(noise.position, dict) and 0.0 < noise.position["base.x"] < 1e-6  # m²/s, a quarter of 2e-6
    assert rounding.position == 0.0


def test_the_door(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "FIT_S", 4.0)
    monkeypatch.setattr(observers, "OBSERVED_S", 2.0)
    asked = ["--foreign", "--observers", "--runs", "1", "--case", "two-link arm", "--json"]
    assert main(asked) in (0, 1)
    content = json.loads(capsys.readouterr().out)
    assert content["seed"] == 2028 and content["quick"] is True
    assert content["cases"][0]["case"] == "fitted, two-link arm" and content["cases"][0]["figures"]["nees"] > 0.0
    for wrong in (["--observers"], ["--foreign", "--observers", "--workers", "2"]):
        with pytest.raises(SystemExit):
            main(wrong)
