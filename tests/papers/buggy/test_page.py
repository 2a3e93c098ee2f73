"""What the page of the buggy says follows from its figures, and a quick run does not contradict the full one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from veridyn.papers.buggy.page import _misaligned, buggy_verdict, consistency
from veridyn.papers.buggy.study import FULL, QUICK, TABLES, Extent

FIGURES = {
    "rms_circular_x_plain": 9.0,
    "rms_circular_x_error_ekf": 0.004,
    "rms_circular_x_force": 0.003,
    "rms_circular_x": 0.001,
    "rms_circular_xd": 0.001,
    "rms_circular_xd_error_ekf": 0.01,
    "share_sensor_faults_named": 1.0,
    "share_inside_three_sigma_outage": 1.0,
    "rms_outage_end": 0.02,
    "sigma_outage_end": 0.02,
}


def study(extent: Extent, **figures: float) -> Any:
    """A study of which only figures and extent are looked at; every quantity is within the errors of the thesis."""
    runs = {kind: SimpleNamespace(rms=lambda observer, quantity: 0.0) for kind in TABLES}
    return SimpleNamespace(extent=extent, figures={**FIGURES, **figures}, runs=runs)


@pytest.mark.parametrize(
    ("nees", "sigma", "logs", "found"),
    [
        (0.82, 0.05, 20, True),  # t of 19 degrees 2.09: ± 0.10
        (1.60, 0.05, 20, False),
        (0.82, 0.15, 20, None),  # ± 0.31, wider than the band
        (1.60, 0.10, 2, None),  # t of 1 degree 12.7: ± 1.27
    ],
)
def test_few_logs_decide_nothing_about_bands(nees: float, sigma: float, logs: int, found: bool | None) -> None:
    assert consistency({"nees": nees, "nees_sigma": sigma}, logs) is found


def test_one_log_has_no_interval() -> None:
    assert consistency({"nees": 1.0}, 1) is None


@pytest.mark.parametrize(("nees", "sigma"), [(0.6, 0.1), (0.82, 0.1), (1.68, 0.1), (1.68, 0.001)])
def test_a_quick_run_does_not_contradict_the_full_one(nees: float, sigma: float) -> None:
    """Two logs of 8 s, in which the start weighs more than in 20 logs of 20 s, may have any NEES; seed 0 has 1.68."""
    quick = buggy_verdict(study(QUICK, nees=nees, nees_sigma=sigma))
    assert quick.headline.endswith("whether its bands are those of its errors, the full run says.")
    assert any("of 2 logs of 8 s: too few to judge it" in s for s in quick.findings)
    assert quick.may == () and "before a full run" in quick.may_not[0] and quick.grade == "fair"
    full = buggy_verdict(study(FULL, nees=0.82, nees_sigma=0.04))
    assert "knows how far it is from the truth" in full.headline and full.grade == "good"
    assert "not those of its errors" in buggy_verdict(study(FULL, nees=1.6, nees_sigma=0.04)).headline


def test_the_error_of_an_observer_that_takes_the_course_for_the_yaw_is_the_one_that_was_found() -> None:
    """0.136 mrad against 4.9 of the course: it did not learn that error, and 0.0 mrad is not what it made."""
    figures = {"course_less_yaw": 4.9e-3, "yaw_error_ekf": 0.136e-3, "yaw_ekf": 0.031e-3}
    (said,) = _misaligned(study(FULL, **{f"rms_misaligned_{n}": v for n, v in figures.items()}))
    text = said.text  # pyright: ignore[reportAttributeAccessIssue]
    assert "learns that error" not in text and "0.0 mrad" not in text
    assert "course less yaw is 4.9 mrad rms" in text and "deviation of 30 mrad" in text
    assert "its own yaw is 0.14 mrad off, 2.8 % of that error" in text and "is 0.031 mrad off" in text
