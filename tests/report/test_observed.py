"""The page of an observation: every section, warnings and limits before the rest, and a verdict that follows the numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle, write_csv
from studies.crane_log import EXAMPLE, crane_log, written
from veridyn.report.observed import observed_page, verdict_of
from veridyn.report.study import identified_page, identified_verdict
from veridyn.studies.config.observe import ObserveAccept
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.observed import ObserveRun
from veridyn.studies.run.observer import observe_study

MODEL = """veridyn: 2
name: Test car
car:
  {mass: 1200, front: 1.1, rear: 1.5, front_stiffness: 14, rear_stiffness: {value: 16, sigma: 2}, front_friction: {value: 1, sigma: 0.3}}
"""
HEAD = """veridyn: 1
kind: {kind}
model: {{file: model.yaml, formulation: single_track}}
log:
  file: drive.csv
  time: t [s]
  columns: {{speed: "speed [m/s]", steer: "steer [rad]", yaw_rate: "yaw_rate [rad/s]", ay: "ay [m/s^2]"}}
noise: {{slip_error: 0.001, bank: 0.001, sensors: {{yaw_rate: 0.003, ay: 0.1}}}}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> ObserveRun:
    return observe_study(load_study(written(tmp_path_factory.mktemp("crane"), rows=crane_log()[1][:200])))


def test_the_page_holds_everything(done: ObserveRun) -> None:
    text = observed_page(done, done.result("crane", 0, ("mind the gap",)), "veridyn observe crane.yaml")
    for part in (
        "Observation of “crane”",
        "Estimates",
        "bias.tilt",
        "rope.y",
        "Are they white?",
        "Sensors",
        "mind the gap",
    ):
        assert part in text
    assert "Limits that are missed" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_missed_limits_stand_on_the_page(done: ObserveRun) -> None:
    strict = replace(done, accept=ObserveAccept(nis=(3.0, 4.0)))
    text = observed_page(strict, strict.result("crane", 0), "veridyn observe crane.yaml")
    assert text.count("3 to 4 is accepted") == 1


def test_the_verdict_follows_the_numbers(done: ObserveRun, tmp_path: Path) -> None:
    good = verdict_of(done)
    assert good.grade == "good" and good.may and not good.may_not
    text = EXAMPLE.read_text(encoding="utf-8").replace("force: 400", "force: 0.001")
    text = text.replace("gate: 0.9999", "gate: null")
    text = text.replace("process_noise:", "process_noise:\n  model_error: off")  # which would see through it
    sure = verdict_of(observe_study(load_study(written(tmp_path, text, crane_log()[1][:200]))))
    assert (
        sure.grade == "poor" and "too narrow" in sure.may_not[0] and any("Not white" in text for text in sure.findings)
    )
    assert "limits of the study are missed" in sure.headline and sure.findings[0].startswith("Missed: ")


def test_the_pages_of_a_drive(tmp_path) -> None:
    gentle = Bicycle(duration=12.0, rate=20.0, amplitude=0.004).drive(1)
    gentle["heading"] = np.unwrap(gentle["heading"])
    write_csv(tmp_path / "drive.csv", gentle)
    (tmp_path / "model.yaml").write_text(MODEL, encoding="utf-8")
    reference = (
        'reference: {file: drive.csv, time: "t [s]", columns: {sideslip: "sideslip [rad]"}}\ncompare_linear: true\n'
    )
    (tmp_path / "o.yaml").write_text(HEAD.format(kind="observe") + reference, encoding="utf-8")
    seen = observe_study(load_study(tmp_path / "o.yaml", "observe"))
    page = observed_page(seen, seen.result("car", 0), "veridyn observe o.yaml")
    for words in (
        "Observation of “Test car”",
        "Error of the sideslip angle",
        "linear filter",
        "lateral force, front axle",
    ):
        assert words in page
    assert 'class="band' in page or "band c0" in page
    said = " ".join(verdict_of(seen).findings)
    assert "inside 2σ; a linear filter is off by " in said
    assert "° with the stiffness of the model file, which is not identified." in said
    assert seen.drive is not None
    more = replace(seen.drive, figures={**seen.figures, "rms_sideslip_linear_identified": np.radians(0.5)})
    fitted = replace(seen, drive=more)
    said = " ".join(verdict_of(fitted).findings)
    assert "a linear filter is off by 0.50° with a stiffness identified from the same drive and by " in said
    (tmp_path / "i.yaml").write_text(HEAD.format(kind="identify"), encoding="utf-8")
    found = run_identify(load_study(tmp_path / "i.yaml", "identify"))
    page = identified_page(found, found.result("car", 0), "veridyn identify i.yaml")
    assert "Not shown by this drive" in page and "far from their grip" in page
    assert identified_verdict(found).grade == "fair"
