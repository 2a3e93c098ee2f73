"""The page of observers: one file, with every section, every filter, an animation, and a verdict that follows the numbers."""

from __future__ import annotations

from studies.small_crane import small_crane
from veridyn.report.observer import observation_page, observation_verdict


def test_the_page_holds_everything() -> None:
    study = small_crane()
    result = study.result("small crane", seed=1, quick=True, inputs={})
    text = observation_page(study, result, "veridyn demo small", "Observers on a crane")
    for part in (
        "Observers on a crane",
        "Innovations",
        "Consistency",
        "What nobody measured",
        "smoother (RTS)",
        "player",
    ):
        assert part in text
    assert "http://" not in text.replace("http://www.w3.org", "") and len(text) < 6e6


def test_the_verdict_follows_the_numbers() -> None:
    assert observation_verdict(small_crane()).grade in ("good", "fair", "poor")
    assert "NEES per state" in observation_verdict(small_crane()).findings[-1]
