"""What compiled steps of all formulations share: the gate, deviations of readings, one step or many in one call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from observe.filters.test_callable_step import START, log, pendulum
from observe.filters.test_free_step import ACTING, made
from observe.filters.test_natural_step import HOW, encoder
from veridyn.observe.filters.filter import Filter, Passing, starting_belief
from veridyn.observe.filters.methods import EKF, ErrorEKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.result import Belief
from veridyn.observe.system import System
from veridyn.papers.fourbar import wrong_fourbar

Case = tuple[Filter, System, Measurements, Belief]


def fourbar() -> Case:
    setup = ObserverSetup(EKF(), HOW)
    system, q, qd = setup.system(wrong_fourbar())
    t = 0.005 * np.arange(120)
    values = np.array([[encoder(k)] for k in range(len(t))])
    values[60] += 0.5  # an outlier
    return setup.method, system, Measurements(t, values, system.outputs), system.belief(q, qd)


def functions(compiled: bool) -> Case:
    return EKF(), pendulum(compiled), log(), START


def freedoms() -> Case:
    system, q, qd = made("integrator", ())
    b, t = system.belief(q, qd), 2e-3 * np.arange(1, 6)
    values = np.tile(system.sense(b.x, ACTING, 0.0), (len(t), 1))
    values[2, 1] += 50.0 * np.sqrt(system.sensor_noise(0.0)[1, 1])
    inputs = np.array([system.later(ACTING, float(k)) for k in t - t[0]])
    return ErrorEKF(), system, Measurements(t, values, system.outputs, inputs=inputs), b


CASES = {
    "points": fourbar,
    "freedoms": freedoms,
    "compiled": lambda: functions(True),
    "plain": lambda: functions(False),
}


@pytest.mark.parametrize("own", [False, True], ids=["sensor noise", "noise of readings"])
@pytest.mark.parametrize("case", CASES)
def test_many_steps_are_done_in_one_call_with_outliers_and_other_noises(case: str, own: bool) -> None:
    method, system, readings, start = CASES[case]()
    if own:  # every third reading is four times as noisy as its sensor says
        sigma = np.full(readings.values.shape, np.nan)
        sigma[::3] = 4.0 * np.sqrt(np.asarray(system.sensor_noise(0.0)).diagonal())
        readings = replace(readings, sigma=sigma)
    r, begin = readings, starting_belief(system, start, float(readings.t[0]))
    done, _ = Passing(method, system).marched(begin, r.inputs[0], r.t, r.values, r.flags, r.inputs, r.sigma)
    assert done == len(r)
    together = run(method, system, r, start)
    assert (together.status == Status.OUTLIER).any()
    step, belief, u = Passing(method, system), begin, r.inputs[0]
    for k, t in enumerate(r.t.tolist()):
        row = None if r.sigma is None else r.sigma[k]
        passage = step(belief, u, t, r.values[k], r.flags[k], r.inputs[k], row)
        assert np.array_equal(passage.status, together.status[k])
        belief, u = passage.belief, r.inputs[k]
    assert step.by_reference == 0
    np.testing.assert_allclose(belief.x, together.x[-1], rtol=1e-9, atol=1e-12)
    if case == "freedoms":  # its reference projects rates in another metric: test_free_step compares the two
        return
    reference = run(replace(method, engine="python"), system, r, start)
    assert np.array_equal(together.status, reference.status)
    for name in ("x", "P", "K", "nis", "log_likelihood"):
        a, b = getattr(together, name), getattr(reference, name)
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9 * np.abs(b).max(), err_msg=name)
