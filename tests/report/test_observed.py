"""The page of an observation: every section, warnings and limits before the rest, and a verdict that follows the numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from studies.crane_log import EXAMPLE, crane_log, written
from veridyn.report.observed import observed_page, verdict_of
from veridyn.studies.config.observe import ObserveAccept
from veridyn.studies.config.study import load_study
from veridyn.studies.run.observe import observe_study
from veridyn.studies.run.observed import ObserveRun


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
    assert "Limits that are missed" in text and "3 to 4 is accepted" in text


def test_the_verdict_follows_the_numbers(done: ObserveRun, tmp_path: Path) -> None:
    good = verdict_of(done)
    assert good.grade == "good" and good.may and not good.may_not
    text = EXAMPLE.read_text(encoding="utf-8").replace("force: 400", "force: 0.001")
    text = text.replace("gate: 0.9999", "gate: null")
    text = text.replace("process_noise:", "process_noise:\n  model_error: off")  # which would see through it
    sure = verdict_of(observe_study(load_study(written(tmp_path, text, crane_log()[1][:200]))))
    assert sure.grade == "poor" and "too narrow" in sure.may_not[0] and "Not white" in sure.findings[1]
