"""Unobservable combinations named, sensors that mend them found, and the Gramian as the judge."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from benchmarks.foreign.small import MACHINES
from scipy.integrate import solve_ivp
from scipy.linalg import solve_discrete_are

import veridyn as vd
from observe import textbook
from observe.builders import log_of, pendulum, pendulum_log, start_of, system_of
from observe.linear import Kalman, Linear, steady_state
from veridyn.errors import DataError, DataWarning, SimulationError
from veridyn.model.experiment import Experiment
from veridyn.observe.consistency.observability import ExtraSensor, closed_loop, dead_centres, observability, poles
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.filters.update import Expectation, correct
from veridyn.observe.measurements import Measurements
from veridyn.observe.observation import Observation
from veridyn.observe.result import Belief
from veridyn.observe.system import Discrete

T = np.arange(50) * 0.1


def two_carts():
    """Positions and velocities of two carts of which only the distance is measured."""
    F = np.eye(4) + 0.1 * np.eye(4, k=2)
    return Linear(("x1", "x2", "v1", "v2"), ("distance",), F, [[-1.0, 1.0, 0.0, 0.0]], np.zeros(4), [0.01])


def test_singular_values_are_those_of_the_whole_stack():
    rng = np.random.default_rng(0)
    F, H = np.eye(3) + 0.1 * rng.standard_normal((3, 3)), rng.standard_normal((2, 3))
    R, scales = np.array([[0.5, 0.1], [0.1, 0.3]]), np.array([1.0, 10.0, 0.1])
    system = Linear(("a", "b", "c"), ("y", "z"), F, H, np.zeros(3), R)
    o = observability(system, T, np.zeros((50, 3)), scales)
    W = np.linalg.inv(np.linalg.cholesky(R))
    stack = np.vstack([W @ H @ np.linalg.matrix_power(F, k) for k in range(50)]) * scales
    assert o.singular_values == pytest.approx(np.linalg.svd(stack, compute_uv=False), rel=1e-9)
    assert o.observable and not o.unseen and "observable: all 3 states" in o.summary()
    # information: without process noise, the covariance of the start is the inverse Gramian
    gramian = sum((S := np.linalg.matrix_power(F, k).T @ H.T) @ np.linalg.inv(R) @ S.T for k in range(50))
    assert o.singular_values[-1] ** -2 == pytest.approx(
        np.linalg.eigvalsh(np.diag(1 / scales) @ np.linalg.inv(gramian) @ np.diag(1 / scales))[-1], rel=1e-6
    )


def test_steps_that_do_not_commute_are_taken_in_their_order():
    rng = np.random.default_rng(1)
    F, H = rng.standard_normal((6, 3, 3)), np.array([[1.0, 0.0, 0.0]])
    system = Linear(("a", "b", "c"), ("y",), lambda t, dt: F[round(t * 10)], H, np.zeros(3), [1.0])
    rows, Phi = [H], np.eye(3)
    for k in range(5):
        Phi = F[k] @ Phi
        rows.append(H @ Phi)
    o = observability(system, T[:6], np.zeros((6, 3)), np.ones(3))
    assert o.singular_values == pytest.approx(np.linalg.svd(np.vstack(rows), compute_uv=False), rel=1e-9)


def test_what_cannot_be_seen_is_named_and_the_sensor_that_mends_it_found():
    extra = [
        ExtraSensor("second distance", [[-1.0, 1.0, 0.0, 0.0]], 0.01),
        ExtraSensor("speed of cart 1", [[0.0, 0.0, 1.0, 0.0]], 0.1),
        ExtraSensor("position of cart 2", lambda x, u: [[0.0, 1.0, 0.0, 0.0]], 0.5),
    ]
    o = observability(two_carts(), T, np.zeros((50, 4)), np.ones(4), extra=extra)
    assert o.rank == 2 and not o.observable and o.gap > 1e6
    assert {d.text for d in o.unseen} == {"'x1' by 1 and 'x2' by 1 together", "'v1' by 1 and 'v2' by 1 together"}
    assert [(name, rank) for name, rank, _ in o.remedies] == [
        ("position of cart 2", 4),
        ("speed of cart 1", 3),
        ("second distance", 2),
    ]
    assert o.enough == ("position of cart 2",)
    text = o.summary()
    assert "2 of 4 directions are seen" in text and "no reading changes with 'x1' by 1 and 'x2' by 1 together" in text
    assert "with 'speed of cart 1': 3 of 4" in text and "enough: position of cart 2" in text


def test_units_do_not_decide_and_changes_are_in_the_states_own_units():
    scaled = observability(two_carts(), T, np.zeros((50, 4)), [1.0, 1.0, 1e-3, 1e3])
    assert scaled.rank == 2
    F = np.eye(2)
    system = Linear(("metres", "millimetres"), ("y",), F, [[1.0, 1e-3]], np.zeros(2), [1e-4])
    o = observability(system, T, np.zeros((50, 2)), [1.0, 1000.0])
    assert o.unseen[0].text == "'metres' by 1 and 'millimetres' by -1000 together"
    assert o.unseen[0].change == pytest.approx([1.0, -1000.0]) or o.unseen[0].change == pytest.approx([-1.0, 1000.0])


def test_two_sensors_where_no_one_alone_is_enough():
    system = Linear(("a", "b", "c"), ("y",), np.eye(3), [[1.0, 0.0, 0.0]], np.zeros(3), [1.0])
    b, c = (ExtraSensor(f"sensor {n}", [row], 1.0) for n, row in (("b", [0.0, 1, 0]), ("c", [0.0, 0, 1])))
    x = np.zeros((50, 3))
    o = observability(system, T, x, np.ones(3), extra=[b, c])
    assert set(o.enough) == {"sensor b", "sensor c"} and {d.text for d in o.unseen} == {"'b'", "'c'"}
    lost = observability(system, T, x, np.ones(3), extra=[b])
    assert lost.enough == () and "none of these sensors makes it observable" in lost.summary()


def test_what_is_hardly_seen_is_said_to_be():
    system = Linear(("a", "b"), ("y", "z"), np.eye(2), np.eye(2), np.zeros(2), [1e-4, 1e6])
    o = observability(system, T, np.zeros((50, 2)), np.ones(2))
    assert o.observable and [d.text for d in o.weak] == ["'b'"]
    assert o.weak[0].seen == pytest.approx(np.sqrt(50) / 1e3) and "hardly seen (0.0071 sigma): 'b'" in o.summary()


def test_motion_can_make_observable_what_rest_does_not():
    """A scale error of an odometer is seen only while driving: y = (1 + s) v t is not, y = x with ẋ = (1 + s) v is."""

    def odometer(v):
        return Discrete(
            ("x", "scale"), ("position",), lambda x, u, t, dt: np.array([x[0] + (1 + x[1]) * u[0] * dt, x[1]]),
            lambda x, u, t: x[:1], np.zeros(2), [0.01],
            F=lambda x, u, t, dt: [[1.0, u[0] * dt], [0.0, 1.0]], H=lambda x, u, t: [[1.0, 0.0]],
        )  # fmt: skip

    x, scales = np.zeros((50, 2)), [1.0, 0.1]
    rest = observability(odometer(0.0), T, x, scales, inputs=np.zeros(50))
    driving = observability(odometer(3.0), T, x, scales, inputs=np.full(50, 3.0))
    assert not rest.observable and rest.unseen[0].text == "'scale'" and driving.observable


def test_a_pendulum_is_observable_from_its_bob():
    x = np.array([[0.5, 0.0]])
    for _ in range(49):
        x = np.vstack([x, pendulum().move(x[-1], np.zeros(0), 0.0, 0.1)])
    assert observability(pendulum(), T, x, [1.0, 3.0]).observable


def test_bad_questions_are_refused():
    with pytest.raises(DataError, match=r"typical sizes are missing(.|\n)*4 positive numbers"):
        observability(two_carts(), T, np.zeros((50, 4)), [1.0, 1.0, 0.0, 1.0])
    with pytest.raises(DataError, match="do not belong together"):
        observability(two_carts(), T, np.zeros((49, 4)), np.ones(4))
    wild = Linear(("a",), ("y",), [[1e200]], [[1.0]], [0.0], [1.0])
    with pytest.raises(SimulationError, match=r"derivative is no longer finite at 0\.2 s"):
        observability(wild, T, np.zeros((50, 1)), [1.0])


SMALL = MACHINES["slider-crank"]
COUNT, GAUGE = 1000, 1e-4  # samples, m
TIMES = 0.002 * np.arange(COUNT)
START, RATE, TORQUE = 0.8, 6.0, 12.0  # rad, rad/s, N*m


@cache
def truth(torque: float) -> tuple[np.ndarray, np.ndarray]:
    """Angle of the crank and place of the slider under a constant torque."""

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        M, c = SMALL.equations(SMALL.constants, y[:1], y[1:])
        return np.array([y[1], (torque - c[0]) / M[0, 0]])

    phi = solve_ivp(rate, (0.0, TIMES[-1]), [START, RATE], t_eval=TIMES, rtol=1e-9, atol=1e-9).y[0]
    r, rod = SMALL.constants["l_crank"], SMALL.constants["l_rod"]
    return phi, r * np.cos(phi) + np.sqrt(rod**2 - (r * np.sin(phi)) ** 2)


def observed(sensor: str, torque: float, start: float = START, how_sure: float = 0.01) -> Observation:
    phi, x = truth(torque)
    sensors = {
        "gauge": vd.Sensor("gauge", "coordinate", "x", GAUGE),
        "encoder": vd.Sensor("encoder", "coordinate", "phi", 1e-3),
    }
    rng, units = np.random.default_rng(3), {"gauge": "m", "encoder": "rad", "force.phi": "N*m"}
    values = {
        "gauge": x + GAUGE * rng.standard_normal(COUNT),
        "encoder": phi + 1e-3 * rng.standard_normal(COUNT),
        "force.phi": np.full(COUNT, torque),
    }
    names = (sensor, "force.phi")
    log = Experiment.from_arrays(TIMES, {n: values[n] for n in names}, {n: units[n] for n in names}, "log")
    how = vd.ObserveSettings(
        sensors=[sensors[sensor]],
        start={"phi": start},
        rates={"phi": RATE},
        unknown=(),
        independents=("phi",),
        process_noise=vd.ProcessNoise(start=how_sure, start_rate=0.1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return vd.observe(vd.load_model(SMALL.file), log, "ekf", how)


def passages(torque: float) -> np.ndarray:
    """When the true crank passes a multiple of π, s."""
    phi, _ = truth(torque)
    return TIMES[np.flatnonzero(np.diff(np.floor(phi / np.pi)))]


def test_dead_centres_are_found_when_the_crank_passes_them() -> None:
    """The gauge reads within a sample or two of where ∂x/∂φ is zero; slow passages first, fast ones lie between samples."""
    seen = observed("gauge", 0.0)
    (found,) = dead_centres(seen.system, seen.estimates)
    assert found.coordinate == "phi" and np.abs(np.array(found.times) - passages(0.0)).max() < 0.005
    fast = observed("gauge", TORQUE)
    (many,) = dead_centres(fast.system, fast.estimates)
    assert np.abs(np.array(many.times[:6]) - passages(TORQUE)[:6]).max() < 0.005
    encoder = observed("encoder", 0.0)
    assert dead_centres(encoder.system, encoder.estimates) == ()


def test_a_filter_that_survives_them_says_nothing_and_one_that_is_lost_names_them() -> None:
    """x is the same on both sides of a dead centre: started on the wrong one, the filter is lost, and the sensors cannot tell."""
    right, lost = observed("gauge", TORQUE), observed("gauge", TORQUE, start=-START)
    assert [f.cause for f in right.findings] == []
    assert lost.nis().mean > 100.0
    named = {f.cause: f for f in lost.findings}
    assert named["dead centre"].place == "phi" and "dead centre" in str(named["dead centre"])
    assert "innovations" in named and "delay" not in named


def test_rates_are_the_logarithms_of_the_stationary_poles():
    case = textbook.oscillator()
    e = run(Kalman(), system_of(Kalman, case), log_of(case, np.zeros((2000, 2))), start_of(case))
    settled = steady_state(case.F, case.H, case.Q, case.R)
    expected = np.sort(np.log(np.abs(settled.poles)) / case.step)[::-1]
    loop = closed_loop(e, skip=200)
    # a product of 1800 steps of 0.1 s knows its rates to a few units of 1/180 s
    assert loop.rates == pytest.approx(expected, abs=0.015) and loop.stable
    assert loop.radius[-1] == pytest.approx(np.abs(settled.poles).max(), rel=1e-6)
    assert loop.memory == pytest.approx(-1 / expected[0], rel=0.02) and "stable: errors fall" in loop.summary()
    assert closed_loop(e, scales=[1.0, 10.0, 0.1], skip=200).rates == pytest.approx(expected, abs=0.05)


def test_the_gain_decides():
    F, H = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    assert np.abs(poles(F, [[0.5], [0.5]], H)).max() < 1.0
    assert np.abs(poles(F, [[0.5], [-0.5]], H)).max() > 1.0
    # The matrix of equation 65: the machine, the model and the error it feeds. Its eigenvalues know nothing of the gain.
    for K in ([[0.5], [0.5]], [[0.5], [-0.5]], [[90.0], [-7.0]]):
        K = np.array(K)
        Z = np.zeros((2, 2))
        printed = np.block([[F, Z, Z], [Z, F, Z], [F @ K @ H, -F @ K @ H, Z]])
        assert np.sort(np.abs(np.linalg.eigvals(printed))) == pytest.approx([0, 0, 1, 1, 1, 1], abs=1e-6)


def stabilisable(F: np.ndarray, root: np.ndarray) -> bool:
    """Hautus: rank [F − λ I, Q^½] is full for every eigenvalue on or outside the unit circle."""
    n = len(F)
    return all(
        np.linalg.matrix_rank(np.hstack([F - z * np.eye(n), root]), tol=1e-9) == n
        for z in np.linalg.eigvals(F)
        if abs(z) >= 1.0 - 1e-9
    )


@pytest.mark.parametrize(("density", "stable"), [((0.0, 0.1), True), ((0.1, 0.0), False), ((0.0, 0.0), False)])
def test_noise_must_reach_every_state_that_does_not_fade(density: tuple[float, float], stable: bool) -> None:
    """Section 3.3 of the thesis: (F, H) detectable and (F, Q^½) stabilisable make the covariance's poles stable.

    Position and velocity of which the position is read. Noise of the velocity reaches both; that of the position leaves the velocity, whose
    variance goes to zero and whose gain with it, so that an error of it is never corrected: the pole stays at one. With noise everywhere
    the covariance is the stabilising solution of Riccati's equation, by SciPy.
    """
    F, H, Q = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]]), np.diag(density)
    assert stabilisable(F, np.sqrt(Q)) is stable
    P, K = np.eye(2), np.zeros((2, 1))
    for _ in range(20_000):
        P = F @ P @ F.T + Q
        found = correct(P, Expectation(np.zeros(1), H, np.eye(1)), np.zeros(1), np.zeros(1, dtype=np.int8))
        P, K = found.P, found.K
    assert bool(np.abs(poles(F, K, H)).max() < 1.0 - 1e-3) is stable
    if stable:
        predicted = F @ P @ F.T + Q
        assert predicted == pytest.approx(solve_discrete_are(F.T, H.T, Q, np.eye(1)), rel=1e-9)


def test_a_state_that_nothing_measures_is_not_forgotten():
    F = np.diag([0.9, 1.01])
    system = Linear(("seen", "unseen"), ("y",), F, [[1.0, 0.0]], [0.1, 0.1], [1.0], step=0.1)
    log = Measurements(0.1 * np.arange(300), np.zeros(300), ("y",))
    loop = closed_loop(run(Kalman(), system, log, Belief([0.0, 0.0], [1.0, 1.0])))
    assert not loop.stable and loop.memory == np.inf
    assert loop.rates[0] == pytest.approx(np.log(1.01) / 0.1, rel=1e-6)
    assert "not stable: an error grows at 0.0995 1/s" in loop.summary()


def test_rates_of_a_pendulum_are_how_fast_two_starts_meet():
    _, log, start = pendulum_log(200, 0.02, np.random.default_rng(0))
    a = run(EKF(), pendulum(), log, start)
    b = run(EKF(), pendulum(), log, Belief(start.x + np.array([1e-4, 0.0]), start.P))
    gap = np.linalg.norm(a.x - b.x, axis=1)
    rate = closed_loop(a).rates[0]
    assert rate < 0.0 and np.log(gap[-1] / gap[20]) / (180 * 0.02) == pytest.approx(rate, abs=0.5 * abs(rate))


def test_one_sample_is_not_enough():
    case = textbook.oscillator()
    e = run(Kalman(), system_of(Kalman, case), log_of(case, np.zeros((1, 2))), start_of(case))
    with pytest.raises(DataError, match="one sample makes no step"):
        closed_loop(e)
