"""A filter that is too sure of what its sensors hardly show has a NIS of one, and is caught by what it was not given."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import veridyn as vd
from observe.test_model_error import HOW, SETTLED, cart, recorded, truth
from veridyn.errors import DataWarning
from veridyn.observe.consistency.predictions import (
    FilterRun,
    PredictionCheck,
    check_figures,
    foreseen_over_horizons,
    prediction_checks,
    remembering_outputs,
    wrong_predictions,
)
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.result import Belief
from veridyn.observe.system import Discrete

STEP, COUNT = 0.01, 4000
GPS, TACHO = 0.5, 0.01  # m, m/s


def check_findings(
    checks: tuple[PredictionCheck, ...], false_alarms: float, usable: float, considers: bool = False
) -> tuple[str, ...]:
    return tuple(text for _, text in wrong_predictions(checks, false_alarms, usable, considers))


def vehicle(density: float) -> Discrete:
    """A point on a line: its position measured badly, its speed well; white acceleration."""
    F = np.array([[1.0, STEP], [0.0, 1.0]])
    Q = density * np.array([[STEP**3 / 3, STEP**2 / 2], [STEP**2 / 2, STEP]])
    return Discrete(
        ("x", "v"),
        ("gps", "tacho"),
        lambda x, u, t, dt: F @ x,
        lambda x, u, t: x,
        Q,
        [GPS**2, TACHO**2],
        lambda x, u, t, dt: F,
        lambda x, u, t: np.eye(2),
    )


def drive(slip: float, seed: int = 0) -> tuple[np.ndarray, Measurements]:
    """Truth and readings; the tachometer reads `slip` (m/s) more than the speed, which no model here knows."""
    rng = np.random.default_rng(seed)
    v = 2.0 + np.cumsum(np.sqrt(0.1 * STEP) * rng.standard_normal(COUNT))
    x = np.concatenate([[0.0], np.cumsum(0.5 * STEP * (v[1:] + v[:-1]))])
    y = np.column_stack([x, v + slip]) + rng.standard_normal((COUNT, 2)) * [GPS, TACHO]
    return np.column_stack([x, v]), Measurements(STEP * np.arange(COUNT), y, ("gps", "tacho"))


def checked(slip: float) -> tuple[float, float, tuple[PredictionCheck, ...]]:
    true, readings = drive(slip)
    system, start = vehicle(0.1), Belief(np.array([0.0, 2.0]), np.array([0.01, 0.01]))
    found = run(EKF(), system, readings, start)
    inside = np.abs(found.x[:, 0] - true[:, 0]) < 2.0 * found.sigma[:, 0]
    checks = prediction_checks(FilterRun(EKF(), system, readings, start), found, {"gps": [0], "tacho": [1]})
    return float(found.nis.sum() / found.dof.sum()), float(inside[COUNT // 4 :].mean()), checks


def test_a_consistent_filter_passes() -> None:
    nis, inside, checks = checked(0.0)
    assert nis == pytest.approx(1.0, abs=0.05) and inside > 0.8
    assert check_findings(checks, 1e-4, 4.0) == ()
    assert {(c.muted, c.samples) for c in checks} == {("", 1), ("", 10), ("", 100), ("gps", 500), ("tacho", 500)}


def test_a_nis_of_one_with_a_wrong_position_is_caught() -> None:
    """A wheel that slips by 0.02 m/s: NIS stays within its usable band of 0.75 to 1.25, hardly a position is inside 2σ."""
    nis, inside, checks = checked(0.02)
    assert 0.75 < nis < 1.25 and inside < 0.1
    findings = check_findings(checks, 1e-4, 4.0)
    assert any("without sensor 'gps', 'gps' is farther off than stated" in text for text in findings)
    figures = check_figures(checks)
    assert figures["nis_muted"] > 7.0 and set(figures) == {
        "nis_muted",
        "nis_horizon_1",
        "nis_horizon_10",
        "nis_horizon_100",
    }


def test_chance_is_shared_by_all_checks() -> None:
    """χ² of 4 windows exceeds 23.51 once in ten thousand, a table's value; where parameters are considered all are one: 15.14."""
    check = PredictionCheck("gps", 100, "gps", 5.5, 4)
    assert check.largest(1e-4) == pytest.approx(23.51 / 4, abs=0.005)
    assert check.largest(1e-4, shared=True) == pytest.approx(15.14, abs=0.01)
    assert check_findings((check,), 1e-4, 4.0) == ()
    assert len(check_findings((PredictionCheck("gps", 100, "gps", 6.5, 4),), 1e-4, 4.0)) == 1
    assert check_findings((PredictionCheck("gps", 100, "gps", 6.5, 4),), 1e-4, 4.0, considers=True) == ()


@pytest.mark.parametrize(("slip", "remembers"), [(0.0, False), (0.02, True)])
def test_predictions_are_asked_where_innovations_remember(slip: float, remembers: bool) -> None:
    """The vehicles of the two tests above: NIS is near one of both, and an error that stays shows in sums of innovations."""
    _, readings = drive(slip)
    found = run(EKF(), vehicle(0.1), readings, Belief(np.array([0.0, 2.0]), np.array([0.01, 0.01])))
    assert bool(remembering_outputs(found)) == remembers


@pytest.mark.parametrize("slip", [0.0, 0.02])
def test_horizons_of_a_linear_system_are_foreseen_exactly(slip: float) -> None:
    """Its slopes are the same everywhere, so that nothing is neglected: the checks themselves are the oracle."""
    _, readings = drive(slip)
    found = run(EKF(), vehicle(0.1), readings, Belief(np.array([0.0, 2.0]), np.array([0.01, 0.01])))
    assert foreseen_over_horizons(found, (0, 1)) == pytest.approx(
        max(c.z2 for c in checked(slip)[2] if not c.muted), rel=1e-9
    )


def test_what_is_asked_in_haste_finds_what_all_checks_find() -> None:
    _, readings = drive(0.02)
    system, start = vehicle(0.1), Belief(np.array([0.0, 2.0]), np.array([0.01, 0.01]))
    found, sensors = run(EKF(), system, readings, start), {"gps": [0], "tacho": [1]}
    how = FilterRun(EKF(), system, readings, start)
    some = prediction_checks(how, found, sensors, remembering_outputs(found))
    named = [c for c in prediction_checks(how, found, sensors) if c.z2 > max(c.largest(1e-4 / 10), 4.0)]
    assert named and all(c in some for c in named)
    assert prediction_checks(how, found, sensors, ()) == ()


def test_the_verb_warns_of_predictions_and_not_of_a_right_model() -> None:
    """A model with hardly any error, with a rod 10 % too heavy and hardly any process noise; then with what it learns."""
    force, x, readings = truth(1, 1.0)
    sure = vd.ObserveSettings(
        start="readings",
        unknown=(),
        model_error=vd.ProcessNoise(acceleration=1e-9),
        process_noise=vd.ProcessNoise(acceleration=1e-8, start=0.01, start_rate=0.5),
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DataWarning)
        wrong = vd.observe(cart(1.1 * 0.7), recorded(force, readings), "ekf", sure)
    assert any("is farther off than stated" in str(w.message) for w in told)
    right = vd.observe(cart(), recorded(force, readings), "ekf", HOW)
    assert max(c.z2 for c in right.predictions) < 7.0 < max(c.z2 for c in wrong.predictions)
    assert right.nees(x[:, :2], x[:, 2:], skip=SETTLED).mean < 1.35


def test_readings_that_are_no_readings_are_not_compared() -> None:
    """A tachometer that hangs is not used; muted, it is not a reading that predictions should meet either."""
    _, readings = drive(0.0)
    hangs = np.zeros(readings.values.shape, dtype=np.bool_)
    hangs[COUNT // 2 :, 1] = True
    values = np.where(hangs, readings.values[COUNT // 2], readings.values)
    frozen = Measurements(readings.t, values, readings.names).flagged(hangs, Status.FROZEN)
    system, start = vehicle(0.1), Belief(np.array([0.0, 2.0]), np.array([0.01, 0.01]))
    found = run(EKF(), system, frozen, start)
    checks = prediction_checks(FilterRun(EKF(), system, frozen, start), found, {"gps": [0], "tacho": [1]})
    assert check_findings(checks, 1e-4, 4.0) == ()
    whole = run(EKF(), system, readings, start)
    every = prediction_checks(FilterRun(EKF(), system, readings, start), whole, {"gps": [0], "tacho": [1]})
    windows = {(c.muted, c.samples, c.output): c.windows for c in every}
    assert all(c.windows <= windows[c.muted, c.samples, c.output] for c in checks)
    assert any(c.output == "tacho" and c.windows < windows[c.muted, c.samples, c.output] for c in checks)
