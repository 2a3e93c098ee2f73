"""Outliers count little without any setting, good logs are untouched, and a log in another unit is never hidden behind the gate."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from observe.test_model_error import HOW, SETTLED, T, cart, recorded, truth
from veridyn.arrays import Array
from veridyn.errors import DataWarning
from veridyn.observe.filters.filter import Filter, Passing, starting_belief
from veridyn.observe.filters.methods import EKF, UKF
from veridyn.observe.filters.robust_gate import ALLOWED, AT_FIRST, CLOSES_AFTER, EARNED, RobustGate, widened
from veridyn.observe.filters.run import run
from veridyn.observe.filters.update import Correction
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.observation import Observation
from veridyn.observe.result import Belief
from veridyn.observe.system import Discrete

STEP = 0.01
GOOD = np.zeros(int(1.0 / EARNED))  # readings that earn one beyond the gate


def walker(sigma: float = 0.1) -> Discrete:
    """A number that walks at random, read by one sensor: P and K are constant after a while."""
    return Discrete(
        ("x",),
        ("y",),
        lambda x, u, t, dt: x,
        lambda x, u, t: x,
        [1e-4],
        [sigma**2],
        lambda x, u, t, dt: np.eye(1),
        lambda x, u, t: np.eye(1),
    )


def read(values: np.ndarray) -> tuple[Measurements, Belief]:
    return Measurements(STEP * np.arange(len(values)), values, ("y",)), Belief(np.zeros(1), np.array([0.01]))


def test_a_reading_beyond_the_gate_is_put_on_it() -> None:
    """By hand: s' = ν²/γ, K = P/s', and both the state and P' = (1 − K) P (1 − K) + K² r' follow; γ is χ²₁ at 1 − 1e-6, 23.93."""
    log, start = read(np.array([*GOOD, 3.0]))
    found = run(EKF(), walker(), log, start)
    P = found.P[-2, 0, 0] + 1e-4
    nu = 3.0 - found.x[-2, 0]
    wide = nu**2 / 23.928126
    assert found.status[-1, 0] == Status.OUTLIER and found.dof[-1] == 0 and found.nis[-1] == 0.0
    assert found.K[-1, 0, 0] == pytest.approx(P / wide, rel=1e-5)
    assert found.x[-1, 0] == pytest.approx(found.x[-2, 0] + P / wide * nu, rel=1e-5)
    assert found.P[-1, 0, 0] == pytest.approx((1.0 - P / wide) ** 2 * P + (P / wide) ** 2 * (wide - P), rel=1e-5)


def test_readings_that_contradict_the_start_soon_count_in_full() -> None:
    log, start = read(3.0 + 0.01 * np.arange(4))
    found = run(EKF(gate="auto"), walker(), log, start)
    assert [int(code == Status.OUTLIER) for code in found.status[:, 0]] == [1] * int(AT_FIRST) + [0, 0]
    assert found.x[-1, 0] > found.x[1, 0] + 1.0  # m: two readings of full weight, where P is as large as R


@pytest.mark.parametrize("method", [EKF(), EKF(engine="python"), UKF()], ids=["compiled", "python", "ukf"])
def test_good_readings_are_all_used_as_without_a_gate(method: Filter) -> None:
    y = 0.1 * np.random.default_rng(0).standard_normal(2000)
    log, start = read(y)
    found, plain = (run(m, walker(), log, start) for m in (method, replace(method, gate=None)))
    assert (found.status == Status.USED).all()
    np.testing.assert_allclose(found.x, plain.x, rtol=1e-12, atol=1e-15)


def test_a_log_in_another_unit_opens_the_gate_and_shows_in_nis() -> None:
    """Readings a thousand times as large: but for the allowance the filter is the one without a gate, and says how wrong it is."""
    walk = 1.0 + np.cumsum(0.01 * np.random.default_rng(1).standard_normal(1000))
    log, start = read(np.concatenate([np.zeros(int(ALLOWED / EARNED)), 1e3 * walk]))
    found, plain = (run(EKF(gate=gate), walker(), log, start) for gate in ("auto", None))
    assert int((found.status == Status.OUTLIER).sum()) == int(ALLOWED)
    assert found.nis.sum() / found.dof.sum() > 100.0
    np.testing.assert_allclose(found.x[-1], plain.x[-1], rtol=1e-6)


def earn(gate: RobustGate, good: int) -> None:
    """So many good readings."""
    for _ in range(good):
        gate.spend(np.array([False]), np.array([Status.USED], dtype=np.int8), np.array([0.0]))


def test_the_allowance_is_earned_and_the_gate_closes_again() -> None:
    gate = RobustGate(1)
    earn(gate, int(ALLOWED / EARNED))  # good readings, which earn all of it
    used, beyond = np.array([Status.USED], dtype=np.int8), np.array([True])
    for k in range(int(ALLOWED)):
        assert not gate.spend(beyond, used, np.array([float(k)])).any()
    earn(gate, int(1.0 / EARNED))  # earns one more
    assert not gate.spend(beyond, used, np.array([-1.0])).any()
    assert gate.spend(beyond, used, np.array([-2.0])).all() and gate.some_open
    for _ in range(CLOSES_AFTER):
        assert gate.some_open
        gate.spend(~beyond, used, np.array([0.0]))
    assert not gate.some_open


def test_an_output_that_has_not_earned_all_of_its_allowance_widens_nothing() -> None:
    """Its first readings contradict the start: the gate opens and nothing is widened, since unit or model may be wrong as well."""
    gate, used, beyond = RobustGate(1), np.array([Status.USED], dtype=np.int8), np.array([True])
    earn(gate, int((ALLOWED - AT_FIRST) / EARNED) - 1)  # one reading short of all
    for k in range(int(ALLOWED) + 1):
        assert not gate.spend(beyond, used, np.array([float(k)])).any()
    assert gate.some_open


def test_one_percent_of_outliers_without_a_setting() -> None:
    """A pendulum on a cart by SciPy, one reading in a hundred off by half a metre or radian: hundreds of deviations."""
    found, plain = [], []
    for seed in (0, 1):
        force, x, readings = truth(seed, 1.0)
        wild = readings + 0.5 * (np.random.default_rng(9 + seed).random(readings.shape) < 0.01)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            states = [vd.observe(cart(), recorded(force, wild), m, HOW) for m in ("ekf", EKF(gate=None))]
        for one, errors in zip(states, (found, plain), strict=True):
            errors.append(one.nees(x[:, :2], x[:, 2:], skip=SETTLED).mean)
        outliers = states[0].estimates.status == Status.OUTLIER
        assert np.array_equal(outliers[1:], (wild != readings)[1:])
    assert np.mean(found) < 1.5 < np.mean(plain)
    assert len(T) == len(x)


def test_many_steps_in_one_call_are_those_of_single_ones() -> None:
    """Deviations of NaN are a sensor's own; outliers in the middle are those of single steps."""
    force, _, readings = truth(0, 1.0)
    wild = readings.copy()
    wild[[200, 201, 650], 0] += 0.5
    states = vd.observe(cart(), recorded(force, wild), EKF(gate="auto"), HOW)
    assert states.made_by is not None
    how = states.made_by
    alike = replace(how.readings, sigma=np.full(wild.shape, np.nan))
    one_by_one = run(replace(how.method, engine="python"), how.system, alike, how.start)
    np.testing.assert_allclose(states.estimates.x, one_by_one.x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(states.estimates.P, one_by_one.P, rtol=1e-7, atol=1e-16)
    assert np.array_equal(states.estimates.status, one_by_one.status)


def opened(P: np.ndarray, h: np.ndarray, r: float, nu: float, considered: np.ndarray | None = None) -> np.ndarray:
    """P' after a reading with the innovation `nu` has opened the gate of the only output."""
    s = h @ P @ h + r
    used, none = np.array([Status.USED], dtype=np.int8), np.zeros((len(P), 1))
    c = Correction(np.zeros(len(P)), P, np.array([nu]), np.array([s]), used, 0.0, 0, 0.0, none)
    return widened(P, h[None], c, np.array([True]), considered)


def test_a_covariance_is_widened_along_the_reading_as_written_out() -> None:
    """P' = P + (ν² − s) d dᵀ/(h d)² with d = diag(P) hᵀ, so that the innovation is as large as stated, h P' hᵀ + r = ν²."""
    P = np.array([[0.04, 0.03, 0.0], [0.03, 0.09, 0.01], [0.0, 0.01, 0.5]])
    h, r, nu = np.array([1.0, 0.5, 0.0]), 0.01, 3.0
    d = np.array([0.04, 0.045, 0.0])
    wide = opened(P, h, r, nu)
    assert wide == pytest.approx(P + (nu**2 - (h @ P @ h + r)) * np.outer(d, d) / (h @ d) ** 2)
    assert h @ wide @ h + r == pytest.approx(nu**2)
    held = opened(P, h, r, nu, np.array([False, True, False]))
    assert held[1] == pytest.approx(P[1]) and h @ held @ h + r == pytest.approx(nu**2)


def test_only_what_a_filter_that_is_a_little_wrong_explains_widens() -> None:
    """Up to a hundred deviations beyond what was expected, ν² − s = 10⁴ s; a reading within s widens nothing either."""
    P, h, s = np.array([[0.5]]), np.ones(1), 1.0
    assert opened(P, h, 0.5, np.sqrt(0.99e4 * s + s))[0, 0] == pytest.approx(0.5 + 0.99e4)
    assert opened(P, h, 0.5, np.sqrt(1.5e4 * s + s))[0, 0] == 0.5
    assert opened(P, h, 0.5, 0.9)[0, 0] == 0.5


def test_the_numbers_that_the_documentation_states() -> None:
    """Three in a row contradict a start; one of five may be beyond; twenty are allowed at most; fifty good ones close an open gate."""
    used, beyond = np.array([Status.USED], dtype=np.int8), np.array([True])

    def until_open(gate: RobustGate) -> int:
        for k in range(1, 100):
            gate.spend(beyond, used, np.array([float(k)]))
            if gate.some_open:
                return k
        raise AssertionError

    assert until_open(RobustGate(1)) == 3
    gate = RobustGate(1)
    earn(gate, 8)
    assert until_open(gate) == 3 + 2
    gate = RobustGate(1)
    earn(gate, 10_000)
    assert until_open(gate) == 20 + 1
    for k in range(50):
        assert gate.some_open, k
        gate.spend(~beyond, used, np.array([0.0]))
    assert not gate.some_open
    assert gate.limit == pytest.approx(23.928126)  # χ²₁ at 1 − 1e-6, by tables


def observed(change: Callable[[Array], None]) -> Observation:
    """A pendulum on a cart by SciPy, its readings changed."""
    force, _, readings = truth(0, 1.0)
    wild = readings.copy()
    change(wild)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        # what hangs is left to the gate, which is what is tested here
        return vd.observe(cart(), recorded(force, wild), EKF(), replace(HOW, frozen_after=None))


def outliers(y: Array) -> None:
    y[[200, 201, 650], 0] += 0.5
    y[[201, 400], 1] -= 0.7


def wrong_scale(y: Array) -> None:
    """Beyond the gate again and again: it stays open."""
    y[300:, 0] *= 1.3


def jump(y: Array) -> None:
    """A sensor that slips by 5 cm: it opens the gate, P is widened, and the gate closes again."""
    y[300:, 0] += 0.05


def stuck(y: Array) -> None:
    y[300:420, 0] = 3.0


@pytest.mark.parametrize(
    ("change", "own"),
    [
        pytest.param(change, own, marks=pytest.mark.slow if own and change in (wrong_scale, stuck) else ())
        for change in (outliers, wrong_scale, jump, stuck)
        for own in (False, True)
    ],
)
def test_machine_code_gates_as_the_python_filter_does(change: Callable[[Array], None], own: bool) -> None:
    """Every change with the noise of the sensors; with noise of the readings' own two of them are quick and two slow."""
    made = observed(change).made_by
    assert made is not None
    readings = made.readings
    if own:  # every third reading is four times as noisy as its sensor says, the others are as it says
        sigma = np.full(readings.values.shape, np.nan)
        sigma[::3] = 4.0 * np.sqrt(np.asarray(made.system.sensor_noise(0.0)).diagonal())
        readings = replace(readings, sigma=sigma)
    step = Passing(made.method, made.system)
    start = starting_belief(made.system, made.start, float(readings.t[0]))
    done, _ = step.marched(
        start, readings.inputs[0], readings.t, readings.values, readings.flags, readings.inputs, readings.sigma
    )
    assert done == len(readings)  # in one call: nothing is left to Python
    found, reference = (
        run(method, made.system, readings, made.start)
        for method in (made.method, replace(made.method, engine="python"))
    )
    assert np.array_equal(found.status, reference.status) and np.array_equal(found.dof, reference.dof)
    assert (found.status == Status.OUTLIER).any()
    for name in ("x", "P", "P_predicted", "K", "nis", "log_likelihood"):
        a, b = getattr(found, name), getattr(reference, name)
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9 * np.abs(b).max(), err_msg=name)


def test_single_steps_are_those_of_many() -> None:
    made = observed(jump).made_by
    assert made is not None
    log, together = made.readings, run(made.method, made.system, made.readings, made.start)
    step, belief, u = Passing(made.method, made.system), starting_belief(made.system, made.start, 0.0), log.inputs[0]
    for k in range(len(log)):
        belief, u = step(belief, u, float(log.t[k]), log.values[k], log.flags[k], log.inputs[k]).belief, log.inputs[k]
    assert step.by_reference == 0
    np.testing.assert_allclose(belief.x, together.x[-1], rtol=1e-12, atol=1e-15)
