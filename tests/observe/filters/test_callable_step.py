"""Filter steps on plain and on compiled functions against the reference, which does each step in Python."""

import numba
import numpy as np
import pytest

from veridyn.errors import ModelError, SimulationError
from veridyn.observe.filters.filter import Passing
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.result import Belief
from veridyn.observe.streaming.stream import Stream
from veridyn.observe.system import Continuous, Discrete

FIELDS = ("x", "P", "x_predicted", "P_predicted", "F", "H", "K", "innovations", "innovation_variances", "nis", "dof")


def f(x, u, t, p):
    return np.array([x[1], -p[0] * np.sin(x[0]) + u[0], 0.0])


def F(x, u, t, p):
    return np.array([[0.0, 1.0, 0.0], [-p[0] * np.cos(x[0]), 0.0, 0.0], [0.0, 0.0, 0.0]])


def h(x, u, t, p):
    return np.array([np.sin(x[0]) + x[2], x[1]])


def H(x, u, t, p):
    return np.array([[np.cos(x[0]), 0.0, 1.0], [0.0, 1.0, 0.0]])


def step(x, u, t, dt):
    return np.array([x[0] + dt * x[1], x[1] - dt * np.sin(x[0])])


def step_slope(x, u, t, dt):
    return np.array([[1.0, dt], [-dt * np.cos(x[0]), 1.0]])


def angle(x, u, t):
    return x[:1].copy()


def angle_slope(x, u, t):
    return np.array([[1.0, 0.0]])


COMPILED = {
    name: numba.njit(g)
    for name, g in globals().copy().items()
    if name in ["f", "F", "h", "H", "step", "step_slope", "angle", "angle_slope"]
}


def pendulum(compiled: bool, **more) -> Continuous:
    g = COMPILED if compiled else {"f": f, "F": F, "h": h, "H": H}
    names, R = ("angle", "rate", "bias"), np.array([[0.0025, 0.0005], [0.0005, 0.0036]])
    return Continuous(
        names, ("sine", "rate"), g["f"], g["h"], [1e-4, 1e-2, 1e-5], R, g["F"], g["H"], parameters=[9.81], **more
    )


def coasting(compiled: bool) -> Discrete:
    g = COMPILED if compiled else globals()
    return Discrete(("a", "b"), ("a",), g["step"], g["angle"], [1e-6, 1e-4], [0.01], g["step_slope"], g["angle_slope"])


def log(outputs: int = 2, count: int = 120) -> Measurements:
    rng = np.random.default_rng(4)
    t = np.cumsum(np.where(np.arange(count) % 7 == 0, 0.03, 0.01))
    values = np.column_stack([np.sin(0.5 * np.cos(3.1 * t)), -1.5 * np.sin(3.1 * t)])[:, :outputs]
    values = values + 0.05 * rng.normal(size=values.shape)
    values[30, 0] = 9.0  # an outlier
    values[50, 0] = np.nan
    flags = np.zeros(values.shape, dtype=np.int8)
    flags[60:70, 0] = Status.MISSING
    return Measurements(t, values, ("sine", "rate")[:outputs], flags, 0.1 * np.sin(t)[:, None])


START = Belief(np.array([0.5, 0.0, 0.0]), np.diag([0.1, 0.1, 0.01]))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"integrator": "midpoint", "step": 0.004},
        {"integrator": "euler"},
        {"limits": {"bias": (-0.005, 0.005)}},
        {"consider": ("bias",)},
    ],
)
def test_every_number_is_that_of_the_reference(compiled: bool, more: dict) -> None:
    expected = run(EKF(gate=0.999, engine="python"), pendulum(False, **more), log(), START)
    found = run(EKF(gate=0.999), pendulum(compiled, **more), log(), START)
    for name in FIELDS:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_array_equal(found.status, expected.status)
    assert (found.status[30, 0], found.status[50, 0]) == (Status.OUTLIER, Status.NOT_FINITE)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_discrete_system_and_a_stream(compiled: bool) -> None:
    readings, start = log(1), Belief(np.array([0.5, 0.0]), np.eye(2))
    readings = Measurements(readings.t, readings.values, ("a",), readings.flags, readings.inputs)
    expected = run(EKF(engine="python"), coasting(False), readings, start)
    found = run(EKF(), coasting(compiled), readings, start)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-10, atol=1e-13)
    stream = Stream(EKF(), coasting(compiled), start)
    for t, y, u, flag in zip(readings.t, readings.values, readings.inputs, readings.flags, strict=True):
        stream.step(float(t), y, u, flag)
    np.testing.assert_allclose(stream.belief.x, expected.x[-1], rtol=1e-10)


def test_a_march_does_every_step_without_the_reference() -> None:
    passing, readings = Passing(EKF(gate=None), pendulum(True)), log()
    start = Belief(START.x, START.P, float(readings.t[0]))
    done, rows = passing.marched(
        start, readings.inputs[0], readings.t, readings.values, readings.flags, readings.inputs
    )
    assert done == len(readings) == len(rows)


def test_noises_that_are_functions_and_angles_that_wrap_take_the_plain_way() -> None:
    more = {"reading_error": lambda y, e: y - e, "R": lambda t: np.diag([0.0025, 0.0036])}
    plain = pendulum(True)
    system = Continuous(plain.states, plain.outputs, plain.f, plain.h, lambda x, u, t: plain.Q, more["R"], plain.F, plain.H,
                        reading_error=more["reading_error"], parameters=[9.81])  # fmt: skip
    found, expected = (run(EKF(engine=e), system, log(), START) for e in ("auto", "python"))
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-10, atol=1e-13)
    with pytest.raises(ModelError, match="no compiled step"):
        run(EKF(engine="compiled"), system, log(), START)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_runs_away_is_reported_by_the_reference(compiled: bool) -> None:
    """A covariance that overflows on its way to the second stamp."""
    far = Belief(START.x, np.diag([1e307, 5e307, 1.0]))
    readings = Measurements(np.array([0.0, 3.0]), np.full((2, 2), np.nan), ("sine", "rate"), inputs=np.zeros((2, 1)))
    with pytest.raises(SimulationError, match="no longer finite at 3 s"):
        run(EKF(), pendulum(compiled), readings, far)


def test_a_compiled_function_of_the_wrong_size_is_named() -> None:
    @numba.njit
    def short(x, u, t, p):
        return np.zeros(2)

    wrong = pendulum(True)
    wrong = Continuous(
        wrong.states, wrong.outputs, short, wrong.h, wrong.Q, wrong.R, wrong.F, wrong.H, parameters=[9.81]
    )
    with pytest.raises(ModelError, match="f has the wrong shape"):
        run(EKF(), wrong, log(), START)


def test_states_that_are_not_there_cannot_be_limited() -> None:
    with pytest.raises(ModelError, match="there is no state 'bais'") as error:
        pendulum(False, limits={"bais": (0.0, 1.0)}, consider=("nothing",))
    assert len(error.value.faults) == 2 and "Did you mean 'bias'" in str(error.value)
