"""The gate in machine code is that of the Python filter: readings off by half a metre, by a wrong scale, stuck, with noise of their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from observe.test_model_error import HOW, cart, recorded, truth
from veridyn.arrays import Array
from veridyn.errors import DataWarning
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.filters.filter import Passing, starting_belief
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Status
from veridyn.observe.observation import Observation


def observed(change: Callable[[Array], None]) -> Observation:
    """A pendulum on a cart by SciPy, its readings changed."""
    force, _, readings = truth(0, 1.0)
    wild = readings.copy()
    change(wild)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return vd.observe(cart(), recorded(force, wild), EKF(), HOW)


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


@pytest.mark.parametrize("change", [outliers, wrong_scale, jump, stuck])
@pytest.mark.parametrize("own", [False, True], ids=["sensor noise", "noise of readings"])
def test_machine_code_gates_as_the_python_filter_does(change: Callable[[Array], None], own: bool) -> None:
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
