"""The page of a simulation: every section, limits before the rest, and a verdict that follows the numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.arm_simulation import ARM, FREE, LED, PUSHED, STEERED, frictionless, written
from veridyn.report.simulated import simulated_page, verdict_of
from veridyn.studies.config.simulate import SimulateAccept
from veridyn.studies.config.study import load_study
from veridyn.studies.run.simulate import SimulateRun, simulate_study


@pytest.fixture(scope="module")
def swing(tmp_path_factory: pytest.TempPathFactory) -> SimulateRun:
    folder = tmp_path_factory.mktemp("swing")
    text = FREE.replace(str(ARM), str(frictionless(folder))) + "sensors: {q.*: {noise: 0.01}, force.q1: {}}\n"
    return simulate_study(load_study(written(folder, text)))


def test_the_page_of_a_free_arm(swing: SimulateRun) -> None:
    text = simulated_page(swing, swing.result("swing", 0, ("mind the gap",)), "veridyn simulate swing.yaml")
    for part in ("Simulation of", "Motion", "Sensors", "What they are off by", "change of the sum", "mind the gap"):
        assert part in text
    for part in ("Limits that are missed", "Inputs", "Constraints", "Tracking"):
        assert f"<h2>{part}" not in text
    assert "http://" not in text.replace("http://www.w3.org", "") and len(text) < 1_000_000


def test_the_page_of_a_drive_shows_its_way_and_no_energy(tmp_path: Path) -> None:
    (tmp_path / "car.yaml").write_text("veridyn: 2\ncar: {mass: 1200, front: 1.1, rear: 1.5}\n", encoding="utf-8")
    run = simulate_study(load_study(written(tmp_path, STEERED)))
    text = simulated_page(run, run.result("car", 0), "veridyn simulate car.yaml")
    for part in ("the way", "Inputs", "Sensors", "sideslip", "front_force", "m/s or rad/s", "speed and steering"):
        assert part in text
    assert "<h2>Energy" not in text and verdict_of(run).grade == "good"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LED + "controller: {}\n", ("Inputs", "Tracking", "rounded off below 0.02")),
        (PUSHED, ("Inputs", "Constraints", "travel", "in gravity", "index3")),
        (LED + "inputs: {formulas: {wrench.3.fz: -5}}\n", ("3.fz", "motion made exactly")),
    ],
)
def test_the_page_shows_what_there_is(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    short = text.replace("duration: 0.5", "duration: 0.1").replace("duration: 1", "duration: 0.2")
    run = simulate_study(load_study(written(tmp_path, short)))
    page = simulated_page(run, run.result("x", 0), "veridyn simulate x.yaml")
    for part in words:
        assert part in page


def test_the_verdict_follows_the_numbers(swing: SimulateRun) -> None:
    good = verdict_of(swing)
    assert good.grade == "good" and good.may and "its energy stays within" in good.findings[1]
    assert swing.energies is not None
    leaky = replace(swing, energies=swing.energies + np.linspace(0.0, 5.0, len(swing.t))[:, None])
    poor = verdict_of(leaky)
    assert poor.grade == "fair" and not poor.may and "its energy drifts" in poor.may_not[0]
    strict = replace(swing, accept=SimulateAccept(constraint_error=0.0))
    page = simulated_page(strict, strict.result("s", 0), "veridyn simulate s.yaml")
    assert strict.missed and all(page.count(text) == 1 for text in strict.missed)
