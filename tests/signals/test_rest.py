"""A rest or a stuck sensor: positions by Pinocchio and in closed form, frozen near reversals, and machines that come to rest."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers.pinocchio_logs import Recording, machine, recording, three_joints
from veridyn.errors import DataWarning
from veridyn.signals.mend import mended
from veridyn.signals.quality import inspect
from veridyn.signals.rest import arrival, comes_to_rest, moves_on, stands_still

ARM = machine(three_joints())
T = np.arange(2400) / 200.0


def quintic(start: float, seconds: float, reach: float) -> np.ndarray:
    s = np.clip((T - start) / seconds, 0.0, 1.0)
    return reach * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def resolved(made: Recording, grain: float) -> Recording:
    """With encoders of finite resolution, or with noise of 2e-5 rad where that is zero."""
    return made if grain == 0.0 else replace(made, measured_q=np.round(made.q / grain) * grain)


def frozen_at_reversal(seed: int, way: int, grain: float) -> tuple[Recording, int]:
    """600 samples; the encoder of a joint stands still to the end of the log from where it is 30 resolutions before or behind its last
    reversal, as the sign of `way` says."""
    made = resolved(recording(three_joints(), np.random.default_rng(seed), seconds=3.0), grain)
    turns = [np.flatnonzero(np.diff(np.sign(made.qd[:, k]))) for k in range(3)]
    last = [int(t[(t > 60) & (t < 500)].max(initial=0)) for t in turns]
    joint = int(np.argmax(last))
    at, q = last[joint], made.measured_q.copy()
    while abs(made.q[at, joint] - made.q[last[joint], joint]) < 30.0 * max(grain, 2e-5):
        at += way
    q[at:, joint] = q[at, joint]
    return replace(made, measured_q=q), joint + 1


@pytest.mark.parametrize("grain", [0.0, 1e-5, 1e-4])
def test_an_encoder_that_freezes_near_a_reversal_is_named(grain: float) -> None:
    for seed in range(40, 44):
        for way in (-1, 1):
            made, joint = frozen_at_reversal(seed, way, grain)
            with pytest.warns(DataWarning, match=rf"channel 'q.q{joint}': it is frozen in 1 span"):
                vd.motion(ARM, made.log, vd.Signals(lowpass=20.0))


@pytest.mark.parametrize("grain", [0.0, 1e-5, 1e-4])
def test_whole_encoders_are_not(grain: float) -> None:
    for seed in range(60, 80):
        found = inspect(resolved(recording(three_joints(), np.random.default_rng(seed), seconds=3.0), grain).log)
        assert not [f for f in found if f.severity != "note"]


def moved(seed: int, grain: float, noise: float = 2e-5) -> dict[str, np.ndarray]:
    """Two joints that move and rest in turn; noise, as of a resolver, only while they move."""
    rng = np.random.default_rng(seed)
    out = {}
    for name in ("a", "b"):
        q = sum(quintic(s, rng.uniform(0.6, 1.2), rng.uniform(-1.0, 1.0)) for s in (0.5, 3.0, 5.5, 8.0))
        qd = np.gradient(q, T)
        noisy = q + noise * rng.normal(size=len(T)) * (np.abs(qd) > 1e-6)
        out[f"q.{name}"] = np.round(noisy / grain) * grain if grain else noisy
        out[f"qd.{name}"] = np.where(np.abs(qd) > 1e-6, qd + 1e-3 * rng.normal(size=len(T)), 0.0)
        out[f"force.{name}"] = np.where(
            np.abs(qd) > 1e-6, 5.0 * qd + 0.05 * rng.normal(size=len(T)), 1.0
        )  # brakes hold
    return out


def log_of(values: dict[str, np.ndarray]) -> vd.Experiment:
    units = {"q": "rad", "qd": "rad/s", "force": "N*m"}
    return vd.Experiment.from_arrays(T, values, {name: units[name.partition(".")[0]] for name in values})


@pytest.mark.parametrize("grain", [0.0, 1e-5, 1e-4])
def test_channels_of_a_machine_at_rest_are_not_frozen(grain: float) -> None:
    for seed in range(10):
        assert not inspect(log_of(moved(seed, grain))).of("frozen")


def test_a_channel_that_stands_still_while_the_machine_moves_is_frozen() -> None:
    rng = np.random.default_rng(3)
    q = 0.8 * np.sin(2.0 * np.pi * 0.3 * T)
    qd = np.gradient(q, T)
    whole = {"q.a": q + 2e-5 * rng.normal(size=len(T)), "qd.a": qd + 1e-3 * rng.normal(size=len(T))}
    whole["force.a"] = 4.0 * qd + 0.05 * rng.normal(size=len(T))
    assert not inspect(log_of(whole)).of("frozen")
    for name in whole:
        values = dict(whole)
        values[name] = values[name].copy()
        values[name][1000:1060] = values[name][1000]
        found = inspect(log_of(values)).of("frozen")
        assert [f.channel for f in found] == [name] and found[0].severity == "warning"


def test_a_parabola_arrives_with_its_speed_and_acceleration() -> None:
    x = 0.3 - 0.02 * (np.arange(100.0) - 80.0) + 0.5 * 0.003 * (np.arange(100.0) - 80.0) ** 2
    met = arrival(x, 80, 0.0)
    assert met is not None
    assert met.speed == pytest.approx(-0.02) and met.acceleration == pytest.approx(0.003)
    assert met.way()[0] == pytest.approx(0.02**2 / 0.006)
    assert arrival(x, 5, 0.0) is None


def test_a_stop_is_told_from_a_stuck_sensor() -> None:
    braked = np.where(T < 5.0, 0.5 * np.cos(0.4 * np.pi * T), 0.5)  # at rest where its speed is zero
    assert not moves_on(braked, 1000, 2399, 0.0)
    stuck = np.where(T < 5.1, 0.5 * np.cos(0.4 * np.pi * T), 0.5 * np.cos(0.4 * np.pi * 5.1))
    assert moves_on(stuck, 1020, 2399, 0.0)
    halted = quintic(0.5, 1.0, 0.4) + quintic(5.0, 1.0, -0.3)
    assert comes_to_rest(halted, 300, 1000, 0.0, 1e-3) and not comes_to_rest(stuck, 1020, 2399, 0.0, 1e-3)


def test_noise_is_no_motion() -> None:
    channel = log_of({"q.a": 1e-4 * np.random.default_rng(0).normal(size=len(T)) + quintic(2.0, 1.0, 1.0)})["q.a"]
    assert stands_still(channel, 4.0, 5.0) and not stands_still(channel, 2.0, 3.0)


def test_clean_motions_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vd.motion(ARM, recording(three_joints(), np.random.default_rng(90), seconds=3.0).log, vd.Signals(lowpass=20.0))


def test_studies_say_it_too() -> None:
    """What `veridyn identify` reports of a log comes from mending it."""
    made, joint = frozen_at_reversal(41, 1, 1e-4)
    told = [str(f) for f in mended(made.log).told]
    assert any(f"channel 'q.q{joint}': it is frozen in 1 span" in text for text in told)
    cut = replace(made, measured_tau=np.trunc(made.measured_tau))
    assert any("channel 'force.q1': all its values are multiples of 1 N*m" in str(f) for f in mended(cut.log).told)
