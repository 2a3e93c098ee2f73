"""Scores that noise of the motion makes, against logs that have it, and derivatives by size against Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import clean, drawn, forces, noisy, truth
from strangers.pinocchio_logs import Recording, fourier, machine, three_joints, torques
from strangers.pinocchio_oracle import PinModel
from veridyn.errors import IdentificationWarning
from veridyn.identify.diagnosis.likelihood import NoisyEquations
from veridyn.identify.diagnosis.signature_samples import samples_of
from veridyn.identify.diagnosis.signatures import examine, scores_by_noise
from veridyn.identify.diagnosis.trace_noise import noise_slopes, passed_covariances, passed_variance, size_slopes
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, NoiseBands
from veridyn.signals.butterworth import Butterworth
from veridyn.spatial.rotations import Placement

SEEDS = range(60, 72)
HOW = Sampling(trim=20, filter=Butterworth(10.0))
WITH_DEAD_ZONE = Sampling(dead_zone={f"q{k}": 0.05 for k in range(1, 5)})


def test_it_is_the_mean_score_of_logs_without_damage() -> None:
    """On 12 logs of one motion with noisy encoders: to the fifth that a log states it, and four deviations of the mean.

    Residuals of filtered equations remember, so that memory is taken off as well.
    """
    arm = three_joints()
    robot, t = machine(arm), np.arange(1500) / 100.0
    states = fourier(np.random.default_rng(7), 3, t, reach=1.0)
    tau = torques(arm, *states)
    found, foretold, names = [], [], []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        noisy = (x + s * rng.normal(size=x.shape) for x, s in ((states[0], 2e-4), (tau, 0.05)))
        motion = vd.motion(robot, Recording(t, *states, tau, *noisy).log, vd.Signals(lowpass=25.0, trim=0.3))
        fit = vd.identify(robot, motion, diagnose="off", settings=vd.IdentifySettings(sampling=HOW))
        x = samples_of(fit, [motion], [r.row for r in fit.rows], HOW)
        made = [
            s
            for s in x.signatures(fit.values)
            if s[0] in ("force scale", "encoder zero", "machine size") and s[1] != "q1"
        ]
        columns = np.stack([column for *_, column in made], axis=2)
        model = NoisyEquations.of(x, x.misfit(fit.values))
        slopes, passed = (
            noise_slopes(fit, [motion], x.rows),
            passed_covariances([motion], x.rows, HOW, x.window, model.lags),
        )
        assert slopes is not None and passed is not None
        noise = scores_by_noise(slopes, passed, x, model)
        names = [(kind, where) for kind, where, _ in made]
        rest = model.white.beside(model.filtered(columns))
        scores = model.white.tested_beside(rest)
        seen = np.isfinite(scores.sigma)
        deviation = np.where(seen, scores.sigma, 1.0) * np.sum(rest**2, axis=(0, 1))  # of g
        expected = noise.scores(names, model.white.effects(model.filtered(columns)))
        found.append(scores.z)
        foretold.append(np.where(seen, expected, 0.0) / np.where(seen, deviation, 1.0))
    mean, wanted = np.mean(found, axis=0), np.mean(foretold, axis=0)
    print({name: (round(float(a), 2), round(float(b), 2)) for name, a, b in zip(names, mean, wanted, strict=True)})
    spread = np.std(found, axis=0) / np.sqrt(len(SEEDS))
    assert np.all(np.abs(mean - wanted) < 0.2 * np.abs(wanted) + 4.0 * spread + 1e-9)
    assert np.abs(wanted).max() > 0.5  # as much as that is left behind the filters of the residuals
    assert mean[names.index(("encoder zero", "q3"))] == 0.0  # the parameters explain it whole


def test_windows_let_slow_noise_through_and_differences_take_it_off() -> None:
    """White noise keeps its variance in windows; noise far below their rate is larger by their length; differences take that off."""
    t = np.arange(200) / 100.0
    zero = np.zeros((200, 1))
    white, slow = np.full((1, 2048), 1.0 / 2048), np.zeros((1, 2048))
    slow[0, 0] = 1.0
    alone, differences = [np.ones(1)], [np.array([1.0, -1.0])]
    for bands, filters, wanted in ((white, alone, 1.0), (slow, alone, 4.0), (slow, differences, 0.0)):
        motion = vd.Motion(t, zero, zero, zero, noise_bands=NoiseBands(bands, 100.0))
        passed = passed_covariances([motion], ["q1"], Sampling(), 4, 1)
        assert passed is not None
        assert float(passed_variance(passed, filters)[0, 0]) == pytest.approx(wanted, rel=0.01, abs=0.01)


def test_motions_of_unknown_noise_have_none() -> None:
    arm = three_joints()
    robot, t = machine(arm), np.arange(300) / 100.0
    states = fourier(np.random.default_rng(1), 3, t)
    motion = vd.Motion(t, *states, forces=torques(arm, *states) + np.random.default_rng(2).normal(size=(300, 3)))
    fit = vd.identify(robot, motion, diagnose="off")
    assert passed_covariances([motion], ["q1"], Sampling(), 1, 0) is None
    assert noise_slopes(fit, [motion], ["q1"]) is None


def larger(share: float) -> Machine:
    """The true arm with every joint that much farther from the one before it."""
    return scaled(truth(), 1.0 + share)


def scaled(machine: Machine, factor: float) -> Machine:
    joints = []
    for joint in machine.joints:
        before, _ = machine.ends(joint)
        place = Placement(before.placement.rotation, factor * before.placement.position)
        joints.append(replace(joint, a=replace(before, placement=place)))
    return replace(machine, joints=tuple(joints))


def recorded(share: float) -> Motion:
    """With a tenth of the noise that this arm has otherwise, which would hide such sizes."""
    m = noisy(np.random.default_rng(11))
    return replace(m, forces=0.1 * (forces(m) - forces(clean())) + inverse_dynamics(larger(share), clean()))


def test_slopes_are_those_of_pinocchio() -> None:
    m, h = clean(200), 1e-4
    ahead, back = (PinModel(larger(x)).inverse_dynamics(m) for x in (h, -h))
    machine = truth()
    found = size_slopes(machine, machine.parameters.values, m, machine.coordinates, inverse_dynamics(machine, m))
    assert found == pytest.approx((ahead - back) / (2.0 * h), abs=1e-3 * np.abs(found).max())


@pytest.mark.parametrize("share", [0.1, -0.05])
def test_a_machine_of_another_size_is_named(share: float) -> None:
    """With its size, to first order; links as long as the model's raise nothing (test_signatures)."""
    motion = recorded(share)
    fit = vd.identify(drawn(), motion, settings=vd.IdentifySettings(sampling=WITH_DEAD_ZONE), diagnose="off")
    best = examine(fit, [motion], WITH_DEAD_ZONE).found[0][0]
    assert best.kind == "machine size"
    assert abs(best.size - share) < 4.0 * best.sigma + 0.35 * abs(share)
    with pytest.warns(IdentificationWarning, match="these bodies sit elsewhere"):
        vd.identify(drawn(), motion, settings=vd.IdentifySettings(sampling=WITH_DEAD_ZONE))


def test_a_model_ten_times_too_large_is_named_by_the_weights_it_predicts() -> None:
    """Its parameters shrink until it fits nearly as well, and the column of its size is theirs to explain."""
    machine = drawn()
    large = scaled(machine, 10.0)
    with pytest.warns(
        IdentificationWarning, match=r"(?s)a small part of the weights that the model's own values predict.*q2 0\."
    ):
        vd.identify(large, noisy(np.random.default_rng(11)), settings=vd.IdentifySettings(sampling=WITH_DEAD_ZONE))
