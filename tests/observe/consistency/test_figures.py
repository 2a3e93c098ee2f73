"""Numbers of an observation are those of its own parts, from where it has settled."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.house import arm, log

from veridyn.observe.consistency.figures import consistency_figures, observation_figures
from veridyn.observe.pipeline import observation_run


def test_figures_count_from_where_a_run_has_settled() -> None:
    states = observation_run(arm(), log("observe", 0), settle=1.0).states
    figures = observation_figures(states)
    assert (figures["samples"], figures["states"], figures["rejected"]) == (800.0, 6.0, 0.0)
    assert figures["nis"] == states.nis(200).mean != states.nis(0).mean
    assert (figures["nis_low"], figures["nis_high"]) == states.nis(200).band
    assert consistency_figures(states, 0)["nis_low"] == states.nis(0).band[0]
    error = states.model_error
    assert error is not None
    assert figures["share_model_error"] == pytest.approx(float(np.max(error.rms / error.moves)))
    assert figures["model_error_q1"] == error.rms[0] and "nis_muted" in figures
