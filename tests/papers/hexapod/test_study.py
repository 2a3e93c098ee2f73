"""The whole study, quick: every figure that is asked for, its bars, and its page."""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import IdentificationWarning
from veridyn.papers.hexapod.control import LoopBias
from veridyn.papers.hexapod.machine import FRICTION, RIGID, along, circle, hexapod
from veridyn.papers.hexapod.page import hexapod_page, hexapod_scene, verdict_of
from veridyn.papers.hexapod.study import HexapodStudy, _warn, hexapod_study

ASKED = (
    *(
        "rigid_better_dopt",
        "all_better_dopt",
        "gm_over_ols_median",
        "gm_over_ols_equal_noise_median",
        "circle_rms_raw",
        "circle_rms_time",
        "circle_rms_dft",
    ),
    *("chosen_harmonics", "tracking_none", "tracking_prior", "tracking_identified"),
)


def test_scene() -> None:
    """Legs end on the platform: every line of a leg is as long as the leg."""
    machine, t = hexapod(), np.linspace(0.0, 1.0, 5)
    m = along(machine, circle(1.0), t)
    shown = hexapod_scene(m.q, t, "circle")
    points = shown.layers[0].points
    legs = np.linalg.norm(points[:, 6:12] - points[:, :6], axis=2)
    assert legs == pytest.approx(m.q[:, [machine.coordinates.index(f"l{k}") for k in range(1, 7)]])


def test_what_is_biased_under_control_is_named() -> None:
    names = ("ZZ2R", "MY2")
    bias = LoopBias(names, np.array([4.1, -0.5]), np.zeros(2), np.zeros(2), 10)
    with pytest.warns(IdentificationWarning, match=r"p3 \+4\.1") as found:
        _warn(bias)
    assert len(found) == 1 and "p4" not in str(found[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _warn(replace(bias, fed_back=np.array([1.9, -0.5])))


@pytest.fixture(scope="module")
def study() -> HexapodStudy:
    """Estimates from one averaged period are biased, and named: `test_control` looks at that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*from one averaged period is biased", IdentificationWarning)
        return hexapod_study(np.random.default_rng(0), quick=True)


@pytest.mark.slow
def test_figures(study: HexapodStudy) -> None:
    f = study.figures
    assert all(math.isfinite(f[name]) for name in ASKED)
    assert f["base_parameters"] == 24
    assert f["tracking_identified"] <= 0.5 * f["tracking_prior"]
    assert f["tracking_identified"] <= 0.2 * f["tracking_none"]
    assert f["chosen_harmonics"] == f["true_harmonics"]
    assert f["circle_rms_dft"] < f["circle_rms_raw"]


@pytest.mark.slow
def test_result_and_page(study: HexapodStudy) -> None:
    result = study.result("demo hexapod", 0)
    assert [p.name for p in result.parameters] == [*RIGID, *FRICTION]
    assert result.quick and set(ASKED) <= set(result.figures)
    assert set(result.validation) == {f"l{k}" for k in range(1, 7)}
    json.dumps(result.as_dict())
    page = hexapod_page(study, result, "veridyn demo hexapod")
    assert len(page) < 6e6
    assert not re.search(r"(src|href)=.?https?:", page)
    for words in ("Fig. 1", "Fig. 2", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 6", "Table II"):
        assert words in page
    assert verdict_of(study).grade in ("good", "fair")
