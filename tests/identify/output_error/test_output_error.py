"""Output error: exact on exact data, calibrated under noise on positions, in closed loop, and refusals. See also test_conformance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from identify.hanging_arm import SOFT, STEP, clean, drawn, noisy, truth
from identify.undiagnosed import identify
from veridyn.errors import IdentificationError
from veridyn.identify.output_error.output_error import OutputError
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.control.law import Tracker
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.signals.trajectory import FourierTrajectory, JointLimits

HOW = OutputError(horizon=1.0, friction_speed=SOFT, start="tree")


def errors(fit, machine=None):
    return fit.values - fit.base.reduce((machine or truth()).parameters.values)


def test_noise_on_positions_biases_least_squares_and_not_output_error():
    """Positions with noise and what differences make of it: least squares takes accelerations that are mostly noise for inertia."""
    rng = np.random.default_rng(0)
    motion = noisy(rng)
    speed = np.gradient(motion.q, STEP, axis=0)
    felt = replace(motion, qd=speed, qdd=np.gradient(speed, STEP, axis=0))
    least, output = identify(drawn(), felt), identify(drawn(), felt, HOW)
    ZZ1 = output.names.index("ZZ1R")
    print(f"ZZ1R true {truth_base(output)[ZZ1]:.4f}, wls {least.values[ZZ1]:.4f}, oe {output.values[ZZ1]:.4f}")
    assert abs(errors(least)[ZZ1]) > 30.0 * abs(errors(output)[ZZ1])
    assert np.abs(errors(output) / output.sigma).max() < 3.5


def truth_base(fit):
    return fit.base.reduce(truth().parameters.values)


def test_initial_states_as_measured_where_they_are_exact():
    fit = identify(drawn(), clean(), replace(HOW, initial="measured"))
    assert np.abs(errors(fit)).max() < 1e-6


def test_forces_held_between_samples_make_another_motion():
    """The data were simulated with forces that go linearly from sample to sample; held ones are half a step late."""
    right, wrong = (identify(drawn(), clean(), replace(HOW, hold=h)) for h in ("linear", "zero"))
    assert max(r.rms for r in right.rows) < 1e-7 < 1e-5 < min(r.rms for r in wrong.rows)


@pytest.fixture(scope="module")
def loop():
    """The arm made to follow a trajectory by a controller without a model, and the law that did it."""
    limits = JointLimits(np.full(2, -2.0), np.full(2, 0.5), np.full(2, 4.0), np.full(2, 15.0))
    path = FourierTrajectory.random(np.random.default_rng(3), limits, harmonics=5, frequency=0.2, fill=0.9)
    law = Tracker(path, np.array([20.0, 8.0]), np.array([2.0, 0.8]))
    q, qd, _ = path.at(0.0)
    method = Method("RK4", step=STEP, friction_speed=SOFT)
    return law, integrate(truth(), STEP * np.arange(200), q, qd, law, method=method).motion


def test_in_closed_loop_forces_tell_what_positions_hide(loop):
    law, motion = loop
    how = OutputError(law=law, friction_speed=SOFT, start="tree")
    fit = identify(drawn(), motion, how)
    assert np.abs(errors(fit)).max() < 1e-6
    rng = np.random.default_rng(0)
    felt = replace(motion, forces=motion.forces + 0.02 * rng.normal(size=motion.forces.shape))
    fit = identify(drawn(), felt, how)
    assert np.sqrt(np.mean((errors(fit) / fit.sigma) ** 2)) < 2.0
    assert "forces simulated in closed loop" in fit.notes[-1]


def test_residuals_that_remember_widen_deviations():
    motion = noisy(np.random.default_rng(1))
    wander = np.cumsum(np.random.default_rng(2).normal(size=motion.q.shape), axis=0)
    motion = replace(motion, q=motion.q + 2e-3 * (wander - wander.mean(axis=0)) / wander.std(axis=0))
    white, hac = (identify(drawn(), motion, HOW, settings=IdentifySettings(covariance=c)) for c in ("white", "hac"))
    assert np.array_equal(white.values, hac.values)
    assert (hac.sigma > white.sigma).all()
    assert "within a run" in hac.notes[-1]


def test_a_drive_gain_known_drives_the_simulation():
    plain = truth()
    elements = [*plain.elements, vd.elements.drive_gain("q2", "i", 2.0, "K2")]
    inertia = {b: plain.parameters.values[10 * k : 10 * k + 10] for k, b in enumerate(("1", "2"))}
    machine = vd.Machine.of_bodies(tree_of(plain).bodies, inertia=inertia, elements=elements)
    machine = machine.with_parameters(machine.parameters.known(["K2"]))
    motion = clean()
    forces = motion.forces.copy()
    forces[:, 1] = np.nan
    motion = replace(motion, forces=forces, signals={"i": motion.forces[:, 1] / 2.0})
    fit = identify(machine, motion, HOW)
    assert np.abs(errors(fit, machine)).max() < 1e-7


def test_what_it_cannot_do_is_refused():
    with pytest.raises(IdentificationError, match=r"OutputError\.horizon: .*\nExpected a number above 0, found 0\.0"):
        OutputError(horizon=0.0)
    with pytest.raises(
        IdentificationError, match=r"OutputError\.start: .*\nExpected 'best' or 'data' or 'tree', found 'nowhere'"
    ):
        OutputError(start="nowhere")
    with pytest.raises(IdentificationError, match="a simulation needs every row"):
        identify(truth(), clean(), "oe", rows=["q1"])
    empty = vd.Machine.of_bodies(tree_of(truth()).bodies, elements=truth().elements)
    with pytest.raises(IdentificationError, match="the tree has no values to start from: ZZ1R"):
        identify(empty, clean(), HOW)
    with pytest.raises(vd.errors.DataError, match="it is not uniform"):
        identify(truth(), clean()[np.r_[0:100, 150:400]], HOW)
    with pytest.raises(IdentificationError) as error:
        identify(drawn(), noisy(np.random.default_rng(0)), replace(HOW, iterations=1))
    (fault,) = error.value.faults
    assert fault.where == "OutputError" and "1 iterations" in fault.what and "0.02" in fault.expected
    assert "errors of q1" in fault.found
    upside = truth().with_parameters(-truth().parameters.values)
    with pytest.raises(
        IdentificationError, match="cannot be simulated with the parameters that the estimate starts from"
    ):
        identify(upside, clean(), HOW)
