from dataclasses import replace

import numpy as np
import pytest

from veridyn.identify.estimate import identify
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import validate
from veridyn.machines import arm as machine
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.model.motion import Motion
from veridyn.signals.motion import motion
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.simulate.simulator import simulate
from veridyn.spatial.inertia import INERTIAL, broken_law

TRUTH = machine.arm()


@pytest.fixture(scope="module")
def demo():
    return machine.demonstration(np.random.default_rng(1), quick=True)


def test_the_arm_is_whole():
    assert TRUTH.coordinates == ("q1", "q2", "q3", "q4", "q5", "q6")
    assert not TRUTH.parameters.missing()
    assert set(TRUTH.parameters.states) == {"estimated"}


@pytest.mark.parametrize("make", [machine.exciting, machine.other])
def test_motions_keep_within_the_limits(make):
    trajectory, limits = make(np.random.default_rng(2)), machine.limits()
    q, qd, qdd = trajectory.at(np.linspace(0.0, trajectory.start + trajectory.period, 5000))
    assert ((q > limits.low) & (q < limits.high)).all()
    assert (np.abs(qd) < limits.speed).all() and (np.abs(qdd) < limits.acceleration).all()
    assert not trajectory.velocity(0.0).any()


def condition(trajectory: FourierTrajectory) -> float:
    t = np.linspace(1.0, 1.0 + trajectory.period, 200)
    W = regressor(TRUTH, Motion(t, *trajectory.at(t))).reshape(-1, len(TRUTH.parameters)) * TRUTH.parameters.typical
    s = np.linalg.svd(W, compute_uv=False)
    return float(s[0] / s[s > 1e-9 * s[0]][-1])


def test_the_exciting_motion_is_chosen_for_its_condition():
    rng = np.random.default_rng(3)
    limits = machine.limits()
    plain = [FourierTrajectory.random(rng, limits, harmonics=5, frequency=0.2, start=1.0) for _ in range(9)]
    assert condition(machine.exciting(rng)) < np.median([condition(trajectory) for trajectory in plain])


def test_priors_are_wrong_and_yet_possible():
    model = machine.perturb_inertias(TRUTH, np.random.default_rng(4))
    true, believed = TRUTH.parameters.values, model.parameters.values
    used = true != 0.0
    error = np.abs(believed[used] / true[used] - 1.0)
    assert error.max() <= 0.2 and error.mean() > 0.05
    assert not believed[~used].any()
    for body in model.links:
        assert not broken_law(np.array([model.parameters[body.parameter(s)] for s in INERTIAL]))


def test_the_demonstration_records_what_an_arm_would(demo):
    names = {f"{kind}.q{k}" for kind in ("q", "force") for k in range(1, 7)}
    for log in (demo.training, demo.validation):
        assert set(log.names) == names
        assert all(log[n].rate == pytest.approx(250.0) for n in log)
    assert demo.quick and demo.rows == "all"
    assert demo.training.name != demo.validation.name


def test_one_seed_gives_one_log():
    """All that a demonstration draws, with a fifth of a second of motion."""
    logs = []
    for _ in range(2):
        rng, truth = np.random.default_rng(1), machine.arm()
        model = machine.perturb_inertias(truth, rng)
        moves = machine.tracking(machine.exciting(rng, candidates=2), model, 0.2)
        logs.append(simulate(truth, moves, rng=rng, imperfections=machine.sensors()))
    for name in logs[0]:
        assert np.array_equal(logs[0][name].values, logs[1][name].values)


@pytest.mark.slow
def test_one_seed_gives_one_demonstration(demo):
    again = machine.demonstration(np.random.default_rng(1), quick=True)
    for name in demo.training:
        assert np.array_equal(demo.training[name].values, again.training[name].values)


def test_the_truth_is_found_within_honest_deviations(demo):
    seen = motion(demo.model, demo.training, demo.signals)
    fit = identify(demo.model, seen, rows=demo.rows, settings=IdentifySettings(sampling=demo.sampling))
    truth = fit.base.reduce(demo.truth.parameters.values)
    off = (fit.values - truth) / fit.sigma
    # 60 parameters: 95.4 % expected within two deviations, 2.7 % its standard error
    assert np.mean(np.abs(off) < 2.0) > 0.87
    assert np.sqrt(np.mean(off**2)) < 1.3
    assert fit.residual_sigma == pytest.approx(1.0, abs=0.02)
    assert len(fit.well_identified()) >= 33
    # the noise of the torque sensors, and nothing more, is left of each row
    noise = [machine.sensors().of(f"force.{row.row}").noise for row in fit.rows]
    assert np.allclose([row.rms for row in fit.rows], noise, rtol=0.08)


def test_another_motion_is_predicted_and_far_better_than_before(demo):
    seen, unseen = (motion(demo.model, log, demo.signals) for log in (demo.training, demo.validation))
    fit = identify(demo.model, seen, rows=demo.rows, settings=IdentifySettings(sampling=demo.sampling))
    check = validate(fit, unseen, settings=IdentifySettings(sampling=demo.sampling))
    assert check.worst.relative_error < 0.025
    before = validate(replace(fit, values=fit.priors), unseen, settings=IdentifySettings(sampling=demo.sampling))
    assert before.worst.relative_error > 4.0 * check.worst.relative_error


def test_reversals_are_left_out_those_of_the_coupled_wrist_too(demo):
    assert set(demo.sampling.dead_zone) == {*TRUTH.coordinates, "fsm6"}
    seen = motion(demo.model, demo.training, demo.signals)
    fit = identify(
        demo.model,
        seen,
        rows=["q6"],
        settings=IdentifySettings(sampling=machine.Sampling(dead_zone={"q6": 0.5, "fsm6": 0.5})),
    )
    moving = (np.abs(seen.qd[:, 5]) >= 0.5) & (np.abs(seen.qd[:, 4] + seen.qd[:, 5]) >= 0.5)
    assert fit.rows[0].samples == moving.sum() < len(seen)
