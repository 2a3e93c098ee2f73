"""A filter that does not know how wrong it is is reported by the verb as by the command; a consistent one by neither."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import veridyn as vd
from observe.test_observe import HOW, T, log, pendulum, swing
from veridyn.errors import DataWarning
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.consistency.findings import FALSE_ALARMS, nis_finding, observation_findings
from veridyn.observe.consistency.nis import Consistency


def chi_square(mean: float, count: int) -> Consistency:
    return Consistency("NIS", np.full(count, mean), np.ones(count, dtype=np.int64), float(count), 0.95)


def test_what_chance_or_a_usable_band_explains_is_no_finding() -> None:
    assert (
        nis_finding(chi_square(1.2, 100_000)) == "" == nis_finding(chi_square(0.8, 100_000))
    )  # significant, and small
    assert nis_finding(chi_square(1.5, 20)) == "" == nis_finding(chi_square(0.6, 20))  # large, and within chance
    assert "too sure of itself: NIS 2200" in nis_finding(chi_square(2200.0, 500))
    assert "too cautious: NIS 0.3" in nis_finding(chi_square(0.3, 500))
    assert nis_finding(chi_square(1.6, 500), (0.5, 2.0)) == ""


def test_consistent_filters_are_reported_as_rarely_as_stated() -> None:
    """χ² of 40 readings each, 200,000 logs: some 20 at 1e-4 of false alarms."""
    means = np.random.default_rng(11).chisquare(40, 200_000) / 40
    low, high = (nis_band(40, side) for side in (0, 1))
    assert np.mean((means < min(low, 0.75)) | (means > max(high, 1.25))) < 2.0 * FALSE_ALARMS


def nis_band(dof: int, side: int) -> float:
    return Consistency("NIS", np.ones(1), np.ones(1, dtype=np.int64), float(dof), 1.0 - FALSE_ALARMS).band[side]


@pytest.mark.parametrize("formulation", ["tree", "natural"])
def test_the_verb_warns_of_a_filter_that_is_far_too_sure(formulation: str) -> None:
    """The torque is in the log, and the filter is told to do without it."""
    machine = pendulum(formulation=formulation)
    with pytest.warns(DataWarning) as told:
        found = vd.observe(machine, log("force.phi"), "ekf", inputs=(), **HOW)
    assert found.nis().mean > 1000.0
    assert [str(w.message) for w in told] == [f"ekf on pendulum: {text}" for text in observation_findings(found)]
    assert "the filter is too sure of itself: NIS" in str(told[-1].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = vd.observe(machine, log("force.phi"), "ekf", **HOW)
    assert observation_findings(good) == ()


def test_a_sensor_that_is_never_used_is_named() -> None:
    """An angle in degrees, behind a gate."""
    sure = vd.ProcessNoise(acceleration=1e-6, start=0.01, start_rate=0.01)
    far = Channel("encoder", T, np.degrees(swing()[:, 0]) + 100.0, "rad")
    wrong = Experiment({"encoder": far, "force.phi": log("force.phi")["force.phi"]})
    with pytest.warns(DataWarning, match="no reading of 'encoder' is used"):
        vd.observe(pendulum(), wrong, vd.EKF(gate=0.999), **{**HOW, "process_noise": sure})
