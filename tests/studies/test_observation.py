"""Observers compared on one truth: figures by name, the smoother goes the filter's way back, wrong names and clocks are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studies.small_crane import SHORT, small_crane, study_log
from veridyn.errors import DataError
from veridyn.studies.observation import observation


def test_figures_and_scores() -> None:
    study = small_crane()
    figures = study.figures
    for name in ("rms_x", "rms_swing", "rms_x_dot", "rms_model_x", "nees", "nis", "share_white", "step_microseconds"):
        assert np.isfinite(figures[name]), name
    assert figures["rms_model_x"] == 0.0  # the truth stands for the plain model here
    off = study.best.example.q[10:, study.column("x")] - study.truth.q[10:, study.column("x")]
    assert figures["rms_x"] < 3e-3 and np.sqrt((off**2).mean()) < 3e-3
    assert study.scores["smoother"].rms[study.column("x")] < figures["rms_x"]
    assert study.scores["smoother"].example.estimates is study.scores["ekf"].example.estimates
    result = study.result("small", seed=1, quick=True, inputs={})
    assert "ekf: x" in result.validation and result.parameters[0].name == "x"


def test_what_is_refused() -> None:
    study = small_crane()
    settings = {"ekf": SHORT.setup("ekf")}
    with pytest.raises(DataError, match="there is no filter 'efk'"):
        observation(study.machine, study.truth, study.plain, [], settings, study.labels, chosen="efk")
    late = replace(study.truth, t=study.truth.t + 0.5)
    with pytest.raises(DataError, match="on different clocks"):
        observation(study.machine, late, study.plain, [study_log()], settings, study.labels, chosen="ekf")
