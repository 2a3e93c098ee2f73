"""Findings sort by gravity, can be picked, and raise once, all together.

Limits of speeds: what goes to and fro faster than a joint can, and what may roll or drive on. Forces in coarse steps, of an arm by
Pinocchio with torque noise of 0.1 N·m, and of signals whose noise hides rounding.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers.pinocchio_logs import machine, recording, three_joints, truth
from veridyn.errors import DataError, DataWarning, Fault, IdentificationWarning
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.measurements import measurements_of
from veridyn.observe.observer_setup import machine_system
from veridyn.signals.findings import (
    FASTEST_SLIDING,
    FASTEST_TURNING,
    Finding,
    Findings,
    beyond,
    coarse_step,
    step,
    too_fast,
    warn_of_speeds,
)
from veridyn.signals.quality import inspect

T = np.linspace(0.0, 1.0, 200)
WAVE = np.sin(6.0 * np.pi * T)
LINKS = three_joints()
ARM = machine(LINKS)


def finding(channel, kind, severity):
    fault = Fault(f"{kind} found.", f"channel '{channel}'")
    return Finding(channel=channel, kind=kind, severity=severity, t_start=0.0, t_end=1.0, count=1, fault=fault)


FOUND = Findings(
    "run", (finding("a", "gap", "warning"), finding("b", "nan", "fatal"), finding("b", "backwards", "fatal"))
)


def test_picking():
    assert [f.kind for f in FOUND.of(channel="b")] == ["nan", "backwards"]
    assert [f.channel for f in FOUND.of("gap")] == ["a"]
    assert len(FOUND.of()) == len(FOUND) == 3
    assert FOUND[0].kind == "gap"


def test_summary_puts_the_gravest_first():
    lines = FOUND.summary().splitlines()
    assert lines[0] == "run: 3 finding(s)."
    assert lines[1] == "fatal, nan: channel 'b': nan found."
    assert lines[-1].startswith("warning, gap")


def test_fatal_findings_raise_together_and_others_do_not():
    with pytest.raises(
        DataError, match=r"run, 2 faults:\n1. channel 'b': nan found.\n2. channel 'b': backwards found."
    ):
        FOUND.raise_if_fatal()
    Findings("run", FOUND.of("gap")).raise_if_fatal()


@pytest.mark.parametrize(("unit", "most"), [("rad", FASTEST_TURNING), ("m", FASTEST_SLIDING)])
def test_to_and_fro_is_limited_and_one_way_is_not(unit: str, most: float) -> None:
    assert too_fast("a", unit, 0.99 * most * WAVE) is None
    assert too_fast("a", unit, np.full(200, 3.0 * most)) is None
    found = too_fast("a", unit, 1.5 * most * WAVE)
    assert found is not None
    assert found.expected == f"up to {most:g} {unit}/s"


def test_components_of_unit_vectors_and_empty_motions_have_no_limit() -> None:
    assert too_fast("u.x", "1", 1e6 * WAVE) is None
    assert too_fast("a", "rad", np.empty(0)) is None


def test_each_coordinate_is_named() -> None:
    with pytest.warns(DataWarning, match="too fast") as told:
        warn_of_speeds(["a", "b", "c"], ["rad", "rad", "m"], np.outer(WAVE, [61.5, 1.0, 30.0]))
    assert [str(w.message).partition(":")[0] for w in told] == ["coordinate 'a'", "coordinate 'c'"]


CLOCK = np.arange(200) / 100.0


RANGES = {"clearance.*": (-0.6, 0.3), "speed": (-20.0, 90.0), "angle": (-0.8, 0.8)}


def log(unit: str = "m", **channels: np.ndarray) -> Experiment:
    return Experiment.from_arrays(CLOCK, channels, dict.fromkeys(channels, unit), name="drive")


def test_what_is_inside_is_not_mentioned() -> None:
    inside = Experiment.from_arrays(
        CLOCK, {"clearance.1": -0.3 + 0.1 * CLOCK, "other": 1e9 * CLOCK}, {"clearance.1": "m", "other": "1"}
    )
    assert beyond(inside, RANGES) == ()


def test_a_sensor_out_of_range_is_named_with_its_first_time() -> None:
    x = np.full(200, 10.0)
    x[50:53] = 500.0
    (found,) = beyond(log("m/s", speed=x), RANGES)
    assert (found.channel, found.kind, found.severity, found.count) == ("speed", "range", "fatal", 3)
    assert found.t_start == pytest.approx(0.5) and "500 m/s" in found.message and "-20 to 90" in found.message


@pytest.mark.parametrize(
    ("name", "unit", "values", "looks"),
    [
        ("clearance.2", "m", -295.0 + 20.0 * np.sin(CLOCK), "millimetres"),
        ("angle", "rad", 3.0 + 1.5 * np.sin(6 * CLOCK), "degrees"),
        ("speed", "m/s", 100.0 + 20.0 * np.sin(6 * CLOCK), "kilometres per hour"),
    ],
)
def test_a_unit_named_wrongly_is_guessed(name: str, unit: str, values: np.ndarray, looks: str) -> None:
    (found,) = beyond(Experiment.from_arrays(CLOCK, {name: values}, {name: unit}), RANGES)
    assert found.kind == "unit" and looks in found.message and found.channel == name


def test_rubbish_is_no_other_unit() -> None:
    (found,) = beyond(log(**{"clearance.1": 1e7 + 0.0 * CLOCK}), RANGES)
    assert found.kind == "range"


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
