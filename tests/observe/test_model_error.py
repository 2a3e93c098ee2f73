"""What is learned as model error is what the truth has of it, in physical units; the floor stays where a twin shows none.

The truth is a pendulum on a cart by SciPy:
(M + m) ẍ + m l cos θ θ̈ − m l sin θ θ̇² = F − c ẋ,    m l cos θ ẍ + (I + m l²) θ̈ = −m g l sin θ − d θ̇.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import veridyn as vd
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.place import Attachment
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements
from veridyn.observe.model_error import FLOOR_SHARE, SAME_FLOOR, acceleration_rms
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import observe_with
from veridyn.observe.result import Estimates
from veridyn.observe.system import System
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement

CART, ROD, LENGTH, INERTIA, FRICTION, HINGE, G = 2.0, 0.7, 0.4, 0.03, 0.5, 0.02, 9.81
STEP, T = 0.01, 0.01 * np.arange(801)
SIGMA = np.array([1e-3, 2e-3])  # m, rad
SETTLED = 100  # samples


def accelerations(theta: float, xd: float, thetad: float, force: float) -> np.ndarray:
    c, s = np.cos(theta), np.sin(theta)
    mass = [[CART + ROD, ROD * LENGTH * c], [ROD * LENGTH * c, INERTIA + ROD * LENGTH**2]]
    acting = [force - FRICTION * xd + ROD * LENGTH * s * thetad**2, -ROD * G * LENGTH * s - HINGE * thetad]
    return np.linalg.solve(mass, acting)


@cache
def truth(seed: int, disturbance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Force that the log has (N,), states (N, 4) and their readings (N, 2); a force that nobody knows is new at every sample (N rms)."""
    rng = np.random.default_rng(seed)
    phases = rng.uniform(0.0, 2.0 * np.pi, 3)
    force = sum(
        a * np.sin(2.0 * np.pi * f * T + p) for a, f, p in zip((3, 3, 2), (0.35, 0.75, 1.15), phases, strict=True)
    )
    acting = force + disturbance * rng.standard_normal(len(T))
    states = [np.array([0.0, 0.4, 0.0, 0.0])]
    for f in acting[:-1]:

        def rate(_: float, y: np.ndarray, f: float = f) -> np.ndarray:
            return np.array([y[2], y[3], *accelerations(y[1], y[2], y[3], f)])

        states.append(solve_ivp(rate, (0.0, STEP), states[-1], rtol=1e-8, atol=1e-10).y[:, -1])
    x = np.array(states)
    return np.asarray(force), x, x[:, :2] + SIGMA * rng.standard_normal((len(T), 2))


def cart(rod: float = ROD) -> vd.Machine:
    along_x = Placement([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    links = [
        vd.Link(name="cart", inertia=from_centre(CART, (0, 0, 0), np.diag([0.01, 0.01, 0.01]))),
        vd.Link(name="rod", inertia=from_centre(rod, (0, -LENGTH, 0), np.diag([INERTIA, 1e-4, INERTIA]))),
    ]
    slide = vd.Joint(
        name="x", kind="sliding", a=Attachment("ground", along_x), b=Attachment("cart", along_x), actuated=True
    )
    return vd.Machine.build(
        links,
        [slide, vd.Joint(name="theta", a="cart", b="rod")],
        name="cart",
        gravity=(0.0, -G, 0.0),
        elements=[vd.elements.damper("x", FRICTION, "cx"), vd.elements.damper("theta", HINGE, "ct")],
        sensors=[
            vd.Sensor("travel", "coordinate", "x", float(SIGMA[0])),
            vd.Sensor("angle", "coordinate", "theta", float(SIGMA[1])),
        ],
    )


def recorded(force: np.ndarray, readings: np.ndarray) -> Experiment:
    channels = [
        Channel("travel", T, readings[:, 0], "m"),
        Channel("angle", T, readings[:, 1], "rad"),
        Channel("force.x", T, force, "N"),
    ]
    return Experiment({c.name: c for c in channels}, "cart")


HOW = vd.ObserveSettings(start="readings", unknown=(), process_noise=vd.ProcessNoise(start=0.01, start_rate=0.5))


def test_a_disturbance_is_learned_and_the_filter_is_consistent() -> None:
    """1 N rms, new every 10 ms, on a cart: accelerations are off by what the mass matrix makes of it; NEES by the truth."""
    found = []
    for seed in (0, 1):
        force, x, readings = truth(seed, 1.0)
        states = vd.observe(cart(), recorded(force, readings), "ekf", HOW)
        error = states.model_error
        assert error is not None and error.learned and error.units == ("m", "rad")
        pushed = [accelerations(th, xd, w, 1.0) - accelerations(th, xd, w, 0.0) for th, xd, w in x[:, 1:]]
        expected = np.sqrt(np.mean(np.square(pushed), axis=0))  # m/s², rad/s²
        assert (
            0.4 < error.rms[0] / expected[0] < 2.5
        )  # a likelihood over 800 samples knows a density within a factor of a few
        found.append(states.nees(x[:, :2], x[:, 2:], skip=SETTLED).mean)
        assert "m/s^2 rms" in states.summary()
    assert 0.75 < np.mean(found) < 1.35


@pytest.mark.parametrize("disturbance", [1.0, 0.0])
def test_a_quarter_of_the_samples_screens_what_is_tried(disturbance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learned is the same, found on all samples; where the floor is enough, nothing but the screen is run."""
    force, _, readings = truth(0, disturbance)
    log = recorded(force, readings)
    whole = vd.observe(cart(), log, "ekf", HOW).model_error
    monkeypatch.setattr("veridyn.observe.model_error.SCREENED_SAMPLES", len(T) // 16)
    screened = vd.observe(cart(), log, "ekf", HOW).model_error
    assert whole is not None and screened is not None
    assert screened.density == pytest.approx(whole.density, rel=1e-9)
    assert screened.learned == (disturbance > 0.0)


def test_a_long_log_is_run_once_where_its_beginning_foresees_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor of the beginning stays where that of the whole log is within a factor of two; else the log is run again with its own."""
    force, _, readings = truth(0, 0.0)
    log = recorded(force, readings)
    whole = vd.observe(cart(), log, "ekf", HOW)
    runs: list[int] = []

    def counted(settings: Filter, system: System, measurements: Measurements, *rest: Any) -> Estimates:
        runs.append(len(measurements))
        return run(settings, system, measurements, *rest)

    monkeypatch.setattr("veridyn.observe.machine_run.run", counted)
    for name, size in {
        "STRETCH_SAMPLES": len(T) // 8,
        "SCREENED_SAMPLES": len(T) // 16,
        "BEGINNING": len(T) // 2,
    }.items():
        monkeypatch.setattr(f"veridyn.observe.model_error.{name}", size)
    for factor, times in ((SAME_FLOOR, 1), (1.0, 2)):
        runs.clear()
        monkeypatch.setattr("veridyn.observe.model_error.SAME_FLOOR", factor)
        found = vd.observe(cart(), log, "ekf", HOW)
        assert runs == [len(T)] * times
        assert found.model_error is not None and whole.model_error is not None and not found.model_error.learned
        ratio = found.model_error.density / whole.model_error.density
        near = (
            1.21 * factor
        )  # the first run has a floor here and none there: accelerations are known within ten percent
        assert ((ratio <= near) & (near * ratio >= 1.0)).all()
        f = found.system.f
        assert found.system.density[f : 2 * f] == pytest.approx(found.model_error.density)


def test_a_white_force_is_found_as_a_force() -> None:
    """1 N rms, new at every sample, beside forces that may walk: it is not taken for a walk, and the pendulum has no force of its own."""
    sizes, found = [], []
    for seed in (0, 1):
        force, x, readings = truth(seed, 1.0)
        states = vd.observe(cart(), recorded(force, readings), "ekf", vd.ObserveSettings(start="readings"))
        error = states.model_error
        assert error is not None and error.learned and error.forces == ("x", "theta") and error.walk < 1.0
        sizes.append(error.force_rms[0])
        found.append(states.nees(x[:, :2], x[:, 2:], skip=SETTLED).mean)
        assert "of it by the force 'x'" in states.summary()
    assert sizes == pytest.approx(
        [1.0, 1.0], rel=0.6
    )  # a likelihood over 800 samples knows a density within a factor of a few
    assert 0.75 < np.mean(found) < 1.35


@pytest.mark.parametrize("refresh", [1, 5])
def test_a_white_force_is_the_white_acceleration_it_makes(refresh: int) -> None:
    """On a pendulum of inertia J a force of density W makes accelerations of density W/J²; J = I + m l² by hand.

    1e-3: a force acts through the trapezoidal step, whose slope is off by m g l h²/4J = 5e-4.
    """
    J = INERTIA + ROD * LENGTH**2
    rod = vd.Link(name="rod", inertia=from_centre(ROD, (0, -LENGTH, 0), np.diag([INERTIA, 1e-4, INERTIA])))
    pendulum = vd.Machine.build(
        [rod],
        [vd.Joint(name="theta", a="ground", b="rod")],
        name="pendulum",
        gravity=(0.0, -G, 0.0),
        sensors=[vd.Sensor("angle", "coordinate", "theta", float(SIGMA[1]))],
    )
    readings = truth(0, 1.0)[2]
    log = Experiment({"angle": Channel("angle", T, readings[:, 1], "rad")}, "pendulum")
    how = [vd.ProcessNoise(force=1e-6, white_force=1e-3), vd.ProcessNoise(force=1e-6, acceleration=1e-3 / J**2)]
    one, other = (
        observe_with(
            ObserverSetup(
                vd.EKF(refresh=refresh), vd.ObserveSettings(process_noise=noise, model_error="off", step=STEP)
            ),
            pendulum,
            log,
        )
        for noise in how
    )
    assert one.sigma == pytest.approx(other.sigma, rel=1e-3)
    assert one.system.noise(one.track.x[-1], np.zeros(0), 0.0, STEP) == pytest.approx(
        other.system.noise(other.track.x[-1], np.zeros(0), 0.0, STEP), rel=1e-3, abs=1e-18
    )
    given = vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-6), model_error=how[0], step=STEP)
    again = observe_with(ObserverSetup(vd.EKF(refresh=refresh), given), pendulum, log)
    assert again.sigma == pytest.approx(one.sigma)
    assert again.model_error is not None and again.model_error.force_rms == pytest.approx([np.sqrt(1e-3 / STEP)])


def test_a_twin_cannot_tune_the_floor_away() -> None:
    """Without any disturbance the error is a hundredth of the motion's own accelerations, which the truth has by its equations."""
    force, x, readings = truth(2, 0.0)
    states = vd.observe(cart(), recorded(force, readings), "ekf", HOW)
    true = np.array([accelerations(th, xd, w, f) for (th, xd, w), f in zip(x[:, 1:], force, strict=True)])
    error = states.model_error
    assert error is not None and not error.learned
    assert error.moves == pytest.approx(np.sqrt(np.mean(true**2, axis=0)), rel=0.1)
    assert error.rms == pytest.approx(FLOOR_SHARE * error.moves)
    assert error.density == pytest.approx(error.rms**2 * STEP)
    assert acceleration_rms(states.system, states.estimates) == pytest.approx(error.moves, rel=0.1)


def test_outliers_do_not_pass_for_model_error_nor_reach_the_states() -> None:
    """3 % of the readings are off by half a metre or radian; without a gate the same log has an rms error of centimetres."""
    force, x, readings = truth(0, 1.0)
    wild = readings + 0.5 * (np.random.default_rng(9).random(readings.shape) < 0.03)
    clean = vd.observe(cart(), recorded(force, readings), "ekf", HOW)
    states = vd.observe(cart(), recorded(force, wild), vd.EKF(gate="auto"), HOW)
    assert states.model_error is not None and clean.model_error is not None
    assert states.model_error.rms == pytest.approx(clean.model_error.rms, rel=0.5)
    assert states.nees(x[:, :2], x[:, 2:], skip=SETTLED).mean < 1.35
    open_to_all = vd.observe(cart(), recorded(force, readings), vd.EKF(gate=None), HOW)
    assert np.abs(states.reduced - open_to_all.reduced)[SETTLED:, :2].max() < 4.0 * SIGMA.max()


def test_a_wrong_mass_is_covered() -> None:
    """A rod that is 10 % heavier than the model's: without model error nine of ten positions are outside their bands."""
    force, x, readings = truth(1, 1.0)
    states = vd.observe(cart(1.1 * ROD), recorded(force, readings), "ekf", HOW)
    inside = np.abs(states.reduced[SETTLED:, :2] - x[SETTLED:, :2]) < 2.0 * states.sigma[SETTLED:, :2]
    assert inside.mean() > 0.88
    error = states.model_error
    assert error is not None
    again = vd.ObserveSettings(
        start="readings", unknown=(), process_noise=HOW.process_noise, model_error=error.process_noise()
    )
    same = vd.observe(cart(1.1 * ROD), recorded(force, readings), "ekf", again)
    assert same.sigma == pytest.approx(states.sigma)


def test_defaults_are_consistent_with_outliers_and_unknown_forces() -> None:
    """Only start and gate are set: forces are estimated, noise and model error are chosen on the log; 3 % of the readings are outliers."""
    found = []
    for seed in (0, 1):
        force, x, readings = truth(seed, 1.0)
        wild = readings + 0.5 * (np.random.default_rng(seed).random(readings.shape) < 0.03)
        states = vd.observe(cart(), recorded(force, wild), vd.EKF(gate="auto"), vd.ObserveSettings(start="readings"))
        assert states.states[-2:] == ("force.x", "force.theta")
        error = states.model_error
        assert error is not None and error.force_rms[0] > 0.0 and error.walk < 0.1  # the disturbance is white
        found.append(states.nees(x[:, :2], x[:, 2:], skip=SETTLED).mean)
    assert 0.75 < np.mean(found) < 1.35
