"""Scores that noise of the motion makes without any damage, against their mean over logs made with Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from strangers.pinocchio_logs import Recording, fourier, machine, three_joints, torques
from veridyn.identify.diagnosis.signature_samples import samples_of
from veridyn.identify.diagnosis.signatures import prepared, scores_by_noise
from veridyn.identify.diagnosis.trace_noise import noise_in_traces, passed_variance
from veridyn.identify.sampling import Sampling
from veridyn.model.motion import NoiseBands
from veridyn.signals.butterworth import Butterworth

SEEDS = range(60, 72)
HOW = Sampling(trim=20, filter=Butterworth(10.0))


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
        fit = vd.identify(robot, motion, diagnose="off", sampling=HOW)
        x = samples_of(fit, [motion], [r.row for r in fit.rows], HOW)
        made = [
            s
            for s in x.signatures(fit.values)
            if s[0] in ("force scale", "encoder zero", "machine size") and s[1] != "q1"
        ]
        columns = np.stack([column for *_, column in made], axis=2)
        e = prepared(fit, x, columns, columns)
        assert e is not None
        assert e.memory is not None
        noise = scores_by_noise(fit, [motion], HOW, x, e)
        assert noise is not None
        names = [(kind, where) for kind, where, _ in made]
        rest = e.projected.beside(e.whitened(columns))
        scores = e.projected.tested_beside(rest)
        seen = np.isfinite(scores.sigma)
        deviation = np.where(seen, scores.sigma, 1.0) * np.sum(rest**2, axis=(0, 1))  # of g
        expected = noise.scores(names, e.projected.effects(e.whitened(columns)))
        found.append(scores.z)
        foretold.append(np.where(seen, expected, 0.0) / np.where(seen, deviation, 1.0))
    mean, wanted = np.mean(found, axis=0), np.mean(foretold, axis=0)
    print({name: (round(float(a), 2), round(float(b), 2)) for name, a, b in zip(names, mean, wanted, strict=True)})
    spread = np.std(found, axis=0) / np.sqrt(len(SEEDS))
    assert np.all(np.abs(mean - wanted) < 0.2 * np.abs(wanted) + 4.0 * spread + 1e-9)
    assert np.abs(wanted).max() > 2.0  # it would be taken for damage now and then
    assert mean[names.index(("encoder zero", "q3"))] == 0.0  # the parameters explain it whole


def test_windows_let_slow_noise_through_and_memory_takes_it_off() -> None:
    """White noise keeps its variance in windows; noise far below their rate is larger by their length; memory one takes that off."""
    t = np.arange(200) / 100.0
    zero = np.zeros((200, 1))
    white, slow = np.full((1, 2048), 1.0 / 2048), np.zeros((1, 2048))
    slow[0, 0] = 1.0
    for bands, memory, wanted in ((white, None, 1.0), (slow, None, 4.0), (slow, np.ones(1), 0.0)):
        motion = vd.Motion(t, zero, zero, zero, noise_bands=NoiseBands(bands, 100.0))
        found = passed_variance([motion], ["q1"], Sampling(), 4, memory)
        assert found is not None
        assert float(found[0, 0]) == pytest.approx(wanted, rel=0.01, abs=0.01)


def test_motions_of_unknown_noise_have_none() -> None:
    arm = three_joints()
    robot, t = machine(arm), np.arange(300) / 100.0
    states = fourier(np.random.default_rng(1), 3, t)
    motion = vd.Motion(t, *states, forces=torques(arm, *states) + np.random.default_rng(2).normal(size=(300, 3)))
    fit = vd.identify(robot, motion, diagnose="off")
    assert passed_variance([motion], ["q1"], Sampling(), 1, None) is None
    assert noise_in_traces(fit, [motion], ["q1"], np.ones((1, 3))) is None
