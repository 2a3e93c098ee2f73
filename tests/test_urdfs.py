"""Public URDFs through `new`, `excite`, `simulate` and `identify` with default answers; `make urdfs` runs all of them."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.urdfs import ROBOTS, TESTED, Row, _simulated, errors_in_sigmas, main, run_robot

from veridyn.cli.new import StudyKind, _written
from veridyn.report.verdict import verdict
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import run_identify

pytestmark = [
    pytest.mark.skipif(not ROBOTS.is_dir(), reason="the package example-robot-data is not installed"),
    pytest.mark.filterwarnings("ignore::veridyn.errors.VeridynWarning"),
]


def test_a_finger_through_all_four_steps(tmp_path: Path) -> None:
    """26 parameters at one seed: fewer than 19 of 26 within 2σ has a probability below 1e-4 where 95.4 % are expected."""
    row = run_robot("finger_edu", (1,), tmp_path)
    assert (row.grade, row.exit_code, row.coordinates, row.seeds) == ("good", 0, 3, 1)
    assert row.share_inside >= 19 / 26


def white_noise(name: str, noise: float, folder: Path) -> tuple[str, tuple[str, ...], np.ndarray]:
    """Grade, missed limits and errors in σ of a robot that moves by its own model, every force with the same white noise."""
    model, study = ROBOTS / TESTED[name][1], folder / "simulate.yaml"
    text = _written(model, [], study, "auto", False, None, StudyKind.simulate)
    head = text[: text.index("sensors:")].replace("duration: 20", "duration: 40")
    study.write_text(f"{head}sensors: {{q.*: {{noise: 1e-5}}, force.*: {{noise: {noise}}}}}\n")
    log, truth, _ = _simulated(study, 1, folder)
    identify = folder / "identify.yaml"
    identify.write_text(_written(model, [log], identify, "auto", False, None, StudyKind.identify))
    run = run_identify(load_study(identify, "identify"))
    return verdict(run.study).grade, run.missed, errors_in_sigmas(run, truth)


@pytest.mark.parametrize("name", ["panda", pytest.param("solo12", marks=pytest.mark.slow)])
def test_a_noise_floor_is_no_wrong_model(name: str, tmp_path: Path) -> None:
    """The finger of a Panda and the legs of Solo12 carry less than the noise: that is no reason for a bad verdict or an exit code of 1."""
    grade, missed, off = white_noise(name, 0.05, tmp_path)
    assert (grade, missed) == ("good", ())
    assert np.mean(np.abs(off) < 2.0) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ur5", "talos_left_arm", "allegro"])
def test_true_values_lie_within_their_deviations(name: str, tmp_path: Path) -> None:
    row = run_robot(name, range(1, 6), tmp_path)
    assert (row.grade, row.exit_code) == ("good", 0)
    assert 0.88 < row.share_inside < 0.99


def test_the_table_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = Row("bolt", "biped", 6, 52, "good", 0, 11.2, 0.4, 1.3, 20, 0.9432, 1.01, 5.6)
    monkeypatch.setattr("benchmarks.urdfs.run_robot", lambda name, seeds, folder: made)
    assert main(["--seeds", "20", "--robots", "bolt", "--json", str(tmp_path / "rows.json")]) == [made]
    assert capsys.readouterr().out.splitlines()[-1] == "| bolt | biped | 94.3 % | 20 | good, 0 | 6 | 52 | 11 / 0 / 1 |"
