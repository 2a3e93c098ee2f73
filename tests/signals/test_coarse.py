"""Forces in coarse steps, of an arm by Pinocchio with torque noise of 0.1 N·m, and of signals whose noise hides rounding."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers.pinocchio_logs import machine, recording, three_joints, truth
from veridyn.errors import DataWarning, IdentificationWarning
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.readings import measurements_of
from veridyn.signals.coarse import coarse_step, step
from veridyn.signals.quality import inspect

LINKS = three_joints()
ARM = machine(LINKS)


def made(seed: int = 1):
    return recording(LINKS, np.random.default_rng(seed), seconds=10.0)


def test_torques_truncated_to_whole_numbers_are_named_and_move_friction() -> None:
    """The defect itself: friction and weights by Pinocchio come out wrong by many deviations, and now a warning names each column."""
    r = made()
    cut = replace(r, measured_tau=np.trunc(r.measured_tau))
    with pytest.warns(DataWarning) as said:
        motion = vd.motion(ARM, cut.log, vd.Signals(lowpass=20.0))
    texts = [str(w.message) for w in said]
    for k in (1, 2, 3):
        assert any(
            f"channel 'force.q{k}': all its values are multiples of 1 N*m, coarser than its noise" in t for t in texts
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        fit = vd.identify(ARM, motion, settings=vd.IdentifySettings(covariance="white"))
    true = np.array([truth(LINKS)[n] for n in ARM.parameters.names])
    assert np.abs((fit.values - fit.base.matrix @ true) / fit.sigma).max() > 10.0
    assert any(note.startswith("found: coarse, channel 'force.q1'") for note in fit.notes)


def test_a_motion_without_notes_is_looked_at_by_the_fit() -> None:
    r = made(2)
    motion = vd.Motion(r.t, r.q, r.qd, r.qdd, forces=np.trunc(r.measured_tau))
    with pytest.warns(IdentificationWarning) as said:
        vd.identify(ARM, motion)
    texts = [str(w.message) for w in said]
    assert all(any(f"force of 'q{k}': all its values are multiples of 1 N*m" in t for t in texts) for k in (1, 2, 3))


@pytest.mark.parametrize("q", [1.0, 0.3])
@pytest.mark.parametrize("cut", [np.trunc, np.round, np.floor])
def test_steps_above_twice_the_noise_are_coarse(q: float, cut: np.ufunc) -> None:
    for seed in range(5):
        for torque in made(seed).measured_tau.T:
            assert coarse_step(cut(torque / q) * q) == pytest.approx(q)


@pytest.mark.parametrize("q", [0.1, 0.01, 1e-6])
def test_steps_below_the_noise_are_not(q: float) -> None:
    for seed in range(5):
        for torque in made(seed).measured_tau.T:
            assert coarse_step(np.round(torque / q) * q) == 0.0
            assert coarse_step(torque) == 0.0


def test_commands_that_are_switched_and_fine_steps_are_not() -> None:
    t = np.arange(2000) / 200.0
    assert step(2.0 * np.sign(np.sin(t))) == 0.0
    stairs = np.floor(t) % 6.0
    assert coarse_step(stairs) == 0.0  # a second at each value: a rest, not a resolution
    assert step(np.round(50.0 * np.sin(t), 1)) == 0.0  # a thousandth of the signal


def test_only_forces_and_currents_are_looked_at() -> None:
    t = np.arange(2000) / 200.0
    whole = np.round(20.0 * np.sin(t))
    for unit, found in (("N*m", 1), ("N", 1), ("A", 1), ("degC", 0), ("1", 0)):
        assert len(inspect(Experiment({"x": Channel("x", t, whole, unit)}, "log")).of("coarse")) == found


def test_an_input_of_an_observer_is_looked_at_too() -> None:
    inertia = {"1": vd.spatial.from_centre(1.0, [0.5, 0.0, 0.0], np.diag([1e-3, 0.08, 0.08]))}
    encoder = vd.Sensor("encoder", "coordinate", "q1", 1e-3)
    rod = vd.model.Body("1", placement=vd.spatial.MDH(alpha=-np.pi / 2))
    machine = vd.Machine.of_bodies([rod], inertia=inertia, sensors=[encoder])
    t = 0.01 * np.arange(200)
    torque = np.trunc(6.0 * np.sin(5.0 * t))
    channels = [Channel("encoder", t, np.zeros(len(t)), "rad"), Channel("force.q1", t, torque, "N*m")]
    system, _, _ = machine_system(
        machine, vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-2), inputs=("force.q1",))
    )
    with pytest.warns(DataWarning, match=r"run, channel 'force.q1': all its values are multiples of 1 N\*m"):
        measurements_of(system, Experiment({c.name: c for c in channels}, "run"))
