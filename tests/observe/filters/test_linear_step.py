"""Compiled steps of the linear filter: the reference, Riccati's equation by SciPy, and the least squares of a whole log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from observe.filters.test_free_step import made
from observe.filters.test_natural_step import agree, readings
from observe.test_machine_trees import arm, tumbling
from observe.test_prescribed import in_the_loop, on_the_cart
from observe.textbook import LinearCase, whole_log
from veridyn.errors import ModelError, VeridynError
from veridyn.machines import crane, palletizer
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.filter import Passing
from veridyn.observe.filters.methods import EKF, LinearKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements
from veridyn.observe.model_error import with_density
from veridyn.observe.observer_setup import Linearised, ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.result import Belief
from veridyn.observe.settings import Estimated, ObserveSettings

NOISE = ProcessNoise(acceleration=1e-2, force=0.5, start=0.01, start_rate=0.05, start_force=0.5, start_parameter=0.1)
SETTINGS = ObserveSettings(model_error="off", process_noise=NOISE, step=0.02)
WITHIN = (
    1e-10  # of the largest number of each field: sums in another order, and steps of Newton's method that end elsewhere
)


def loop() -> Machine:
    """A palletising robot without weight, so that it does not fall far, with an encoder on each independent coordinate."""
    sensors = [Sensor(c, "coordinate", c, 1e-2) for c in ("q1", "q2", "q4")]
    return replace(palletizer().with_sensors(sensors), gravity=np.zeros(3))


def seen(machine: Machine, **more: object) -> tuple[Linearised, Belief]:
    """The machine as a linear filter takes it, and where it starts."""
    setup = ObserverSetup(LinearKF(), replace(SETTINGS, **more))
    system, q, qd = setup.system(machine)
    straight = setup.seen(system, q)
    assert isinstance(straight, Linearised)
    return straight, system.belief(q, qd, t=-0.013)


CASES: dict[str, tuple] = {
    "biased": (arm, {"start": {"upper": -1.2, "lower": 0.3}}),
    "estimated": (
        arm,
        {"unknown": (), "parameters": {"M_lower": Estimated(0.05, 1e-3, 1.99, 2.2)}, "start": {"upper": -1.2}},
    ),
    "considered": (
        lambda: arm().with_uncertainty(Uncertainty(("M_lower", "M_upper"), np.diag([0.01, 0.04]))),
        {"unknown": ()},
    ),
    "free": (tumbling, {"start": {"base.yaw": 1.1, "base.roll": -0.4}}),
    "loop": (loop, {}),
    "natural": (crane, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_whole_log_agrees_with_the_reference(name: str) -> None:
    """Steps of many lengths, readings that are missing, wild or not finite, and deviations of their own."""
    build, more = CASES[name]
    system, start = seen(build(), **more)
    spread = start.P if start.P.ndim == 1 else start.P.diagonal()
    log = readings(system, replace(start, P=spread), 50, seed=4)
    own = np.sqrt(np.diag(system.sensor_noise(0.0)))
    sigma = np.where(np.random.default_rng(2).random(log.values.shape) < 0.3, 3.0 * own, np.nan)
    for gate in ("auto", 0.999):
        made, reference = (LinearKF(gate=gate, engine=engine) for engine in ("compiled", "python"))
        for one in (log, replace(log, sigma=sigma)):
            agree(run(made, system, one, start), run(reference, system, one, start), WITHIN)


@pytest.mark.parametrize("case", [on_the_cart, in_the_loop])
def test_prescribed_coordinates_and_their_rates(case) -> None:
    machine, _, _ = case()
    (name,) = machine.prescribed
    system, start = seen(machine, inputs=(f"q.{name}", f"qd.{name}", f"qdd.{name}"), start={name: 0.3}, rates={})
    t = 0.01 * np.arange(40.0)
    inputs = np.column_stack([0.3 + 0.05 * np.sin(3.0 * t), 0.15 * np.cos(3.0 * t), -0.45 * np.sin(3.0 * t)])
    log = readings(system, start, 40, inputs=inputs)
    agree(*(run(LinearKF(engine=engine), system, log, start) for engine in ("compiled", "python")), WITHIN)


@pytest.mark.parametrize("build", [arm, crane])
def test_forces_that_change_and_steps_that_stay(build) -> None:
    """What was found for a step is kept while nothing acts otherwise, and not longer."""
    machine = build()
    force = ("force.upper",) if build is arm else ("motor",)
    system, start = seen(machine, inputs=force, unknown=())
    push = np.repeat(np.random.default_rng(1).normal(size=(10, 1)), 5, axis=0)
    log = readings(system, start, 50, inputs=push)
    log = replace(log, t=0.01 * np.arange(50.0))
    found = [run(LinearKF(engine=engine), system, log, start) for engine in ("compiled", "python")]
    agree(*found, WITHIN)
    passing, belief, u = Passing(LinearKF(), system), replace(start, P=np.diag(start.P)), push[0]
    for k, t in enumerate(log.t.tolist()):  # one by one, as beside a running machine
        belief, u = passing(belief, u, t, log.values[k], log.flags[k], push[k]).belief, push[k]
    assert passing.by_reference == 0
    np.testing.assert_allclose(belief.x, found[0].x[-1], rtol=1e-12, atol=1e-12)


def in_standing(count: int = 40) -> tuple[Linearised, Belief, LinearCase, Measurements, np.ndarray]:
    """An arm at rest with noisy readings at one clock, the linear system that it is to first order, and the readings of that."""
    one = arm()
    one = one.with_sensors([replace(s, bias_walk=0.01 if s.bias_sigma else 0.0) for s in one.sensors])
    system, start = seen(one, start={"upper": -1.5, "lower": 0.1})
    F = system.move_and_jacobian(start.x, np.zeros(0), 0.0, 0.01)[1]
    none, at = np.zeros(0), system.at
    y, H = system.sense_and_jacobian(at, none, 0.0)
    Q, R = system.noise(at, none, 0.0, 0.01), np.asarray(system.sensor_noise(0.0))
    case = LinearCase(F, H, Q, R, np.zeros(len(F)), np.diag(start.P))
    noise = np.random.default_rng(3).normal(size=(count, len(y))) * np.sqrt(np.diag(R))
    drift = system.subtract(system.move(at, none, 0.0, 0.01), at)  # the arm does not stand in balance
    way = [np.zeros(len(F))]
    for _ in range(count - 1):
        way.append(drift + F @ way[-1])
    values = y + np.array(way) @ H.T + noise
    log = Measurements(0.01 * np.arange(count), values, system.outputs)
    return system, replace(start, t=0.0), case, log, noise


def test_the_gain_settles_at_the_solution_of_riccatis_equation() -> None:
    system, start, case, log, _ = in_standing(3000)
    found = run(LinearKF(gate=None, engine="compiled"), system, log, start)
    P = solve_discrete_are(case.F.T, case.H.T, case.Q, case.R)
    K = P @ case.H.T @ np.linalg.inv(case.H @ P @ case.H.T + case.R)
    np.testing.assert_allclose(found.K[-1], K, rtol=1e-6, atol=1e-8 * np.abs(K).max())
    np.testing.assert_allclose(found.P_predicted[-1], P, rtol=1e-6, atol=1e-8 * np.abs(P).max())


def test_the_last_state_is_the_least_squares_of_the_whole_log() -> None:
    """In changes from the way the machine goes by itself, which obey x ← F x alone."""
    system, start, case, log, noise = in_standing()
    found = run(LinearKF(gate=None, engine="compiled"), system, log, start)
    x, covariance = whole_log(case, noise)
    way = run(LinearKF(gate=None, engine="compiled"), system, replace(log, values=log.values - noise), start).x[-1]
    np.testing.assert_allclose(system.subtract(found.x[-1], way), x[-1], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.P[-1], covariance[-1, :, -1], rtol=1e-6, atol=1e-9)


def test_steps_go_on_with_other_densities() -> None:
    system, start, _, log, _ = in_standing()
    other = replace(system, system=with_density(system.system, np.array([1.0, 2.0])))
    passing = Passing(LinearKF(), system)
    belief = replace(start, P=np.diag(start.P))
    before = passing(belief, log.inputs[0], 0.01, log.values[0], log.flags[0], log.inputs[0])
    after = passing.on(other)(belief, log.inputs[0], 0.01, log.values[0], log.flags[0], log.inputs[0])
    new = Passing(LinearKF(), other)(belief, log.inputs[0], 0.01, log.values[0], log.flags[0], log.inputs[0])
    assert np.array_equal(after.prediction.P, new.prediction.P)
    assert not np.array_equal(after.prediction.P, before.prediction.P)


def test_what_has_no_such_step_is_named_or_left_to_the_reference() -> None:
    system, q, qd = made("exact", ())
    at = system.belief(q, qd).x
    assert EKF().compiled_step(Linearised(system, at)) is None
    with pytest.raises(ModelError, match="there is no compiled step of this filter"):
        LinearKF(engine="compiled").compiled_step(Linearised(system, at))
    with pytest.raises(ModelError, match="derivatives can be kept over steps"):
        LinearKF(refresh=2).compiled_step(seen(arm())[0])


def test_a_coordinate_that_has_turned_too_far_is_refused() -> None:
    system, start = seen(arm())
    far = start.x.copy()
    far[0] = 1e7
    log = Measurements(np.array([0.0, 0.01]), np.zeros((2, 4)), system.outputs)
    for engine in ("compiled", "python"):
        with pytest.raises(VeridynError, match="an angle is too far from zero"):
            run(LinearKF(engine=engine, gate=None), system, log, replace(start, x=far))
