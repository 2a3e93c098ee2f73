"""The two error measures: against NumPy on whole signals, merged in any order, and blind to what is known."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from batch_machines import arm, measured
from identify.test_validate import arm as two_joints
from identify.test_validate import log
from numpy_processor import NumpyProcessor
from studies.small_arm import small_arm
from veridyn.errors import IdentificationWarning
from veridyn.identify.estimate import identify
from veridyn.identify.regression.gpu import gpu_factors
from veridyn.identify.regression.observation import observation, stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import validate
from veridyn.inference.error_measures import (
    Moments,
    RowReport,
    relative_error,
    row_table,
    row_unit,
    std_error,
    std_errors,
    worst_judged,
)
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics
from veridyn.model.elements.element import drive_gain
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.spatial.inertia import from_centre


def test_moments_are_those_of_numpy_in_any_order_of_merging() -> None:
    rng = np.random.default_rng(0)
    y = 1e4 + rng.normal(size=900)  # a static load ten thousand times its variation
    parts = [Moments.of(p) for p in np.split(y, [100, 101, 500])]
    for order in (parts, parts[::-1], [parts[2], Moments(), parts[0], parts[3], parts[1]]):
        total = Moments()
        for part in order:
            total = total.merge(part)
        assert total.samples == 900 and total.triples == 900 - 8 + 1  # each part loses two, the single sample has none
        assert total.rms == pytest.approx(float(np.sqrt(np.mean(y**2))), rel=1e-13)
        assert total.std == pytest.approx(float(np.std(y)), rel=1e-9)
    assert math.isnan(Moments.of(y[:2]).noise) and Moments().rms == 0.0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_noise_is_found_below_a_smooth_force_and_across_gaps(seed: int) -> None:
    """White noise of .1 on 10 sin: second differences see the noise alone; its standard error is √(3.9/n)/2."""
    rng = np.random.default_rng(seed)
    t = np.arange(4000) / 1000.0
    y = 10.0 * np.sin(2.0 * np.pi * 2.0 * t) + 0.1 * rng.normal(size=4000)
    used = rng.random(4000) > 0.2
    for m in (Moments.of(y), Moments.of(y[used], used)):
        assert m.noise == pytest.approx(0.1, rel=4.0 * math.sqrt(3.9 / m.triples) / 2.0)
        assert m.std == pytest.approx(10.0 / math.sqrt(2.0), rel=0.02)


def test_both_measures_of_rows_and_their_pools() -> None:
    rows = (
        RowReport("q1", 100, 1.0, 20.0, measured_std=10.0, noise=1.0, unit="N*m"),
        RowReport("q2", 300, 2.0, 5.0, measured_std=4.0, noise=0.5, unit="N*m"),
        RowReport("q3", 100, 0.1, 0.085, measured_std=0.1, noise=0.1, unit="N"),  # a finger that carries noise alone
        RowReport("q4", 100, 0.3, 3.0, measured_std=1.0, noise=0.1, unit="N"),
    )
    assert [r.std_error for r in rows[:2]] == [0.1, 0.5] and rows[0].relative_error == 0.05
    assert [r.judged for r in rows] == [True, True, False, True]
    turning = math.sqrt((100 * 1.0 + 300 * 4.0) / (100 * 100.0 + 300 * 16.0))
    assert std_errors(rows) == pytest.approx({"N*m": turning, "N": 0.3}) and std_error(rows) == pytest.approx(0.3)
    assert worst_judged(rows) is rows[1]
    size = 100 * 400.0 + 300 * 25.0 + 100 * 0.085**2 + 100 * 9.0
    assert relative_error(rows) == pytest.approx(math.sqrt((100 + 1200 + 1 + 9) / size))
    lines = row_table(rows)
    assert lines[3].endswith("N  not judged: varies by no more than noise") and lines[1].split()[-3:] == [
        "5.00",
        "10.00",
        "N*m",
    ]
    assert math.isnan(std_error(rows[2:3])) and worst_judged(rows[2:3]) is None


def test_a_residual_that_is_noise_is_no_error_of_the_model_and_a_wrong_model_is_no_noise() -> None:
    noise = RowReport("q1", 1000, 0.1, 0.4, measured_std=0.4, noise=0.099, unit="N")
    wrong = replace(noise, rms=0.3)
    assert noise.error_beyond_noise == 0.0 and noise.std_error == 0.25
    margin = 1.0 + 3.0 * math.sqrt(70.0 / 18.0 / 1000.0)
    assert wrong.error_beyond_noise == pytest.approx(math.sqrt(0.09 - margin * 0.099**2) / 0.4)
    assert replace(wrong, noise=5.0).judged is False  # as rough as it is large: nothing to explain
    assert replace(wrong, noise=math.nan).error_beyond_noise == pytest.approx(0.75)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(decimate=3), Sampling(filter=Butterworth(20.0), block=128)])
@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_known_parameters_do_not_change_the_measured_force(sampling: Sampling, engine: str) -> None:
    """y is Γ − Γ_ext, whatever is known of the machine: filtered and decimated as the equations are."""
    machine, m = two_joints(), replace(log(1), t=np.arange(500) / 100.0)
    assert m.forces is not None
    known = machine.with_parameters(machine.parameters.known([n for n in machine.parameters.names if n.endswith("2")]))
    y = m.forces - external_rows(machine, m)
    y = y if sampling.filter is None else zero_phase(y, 100.0, sampling.filter)
    y = y[:: sampling.decimate]
    for one in (machine, known):
        rows = observation(one, m, "joints", IdentifySettings(sampling=sampling, engine=engine)).rows
        assert [f.measured.rms for f in rows] == pytest.approx(np.sqrt(np.mean(y**2, axis=0)), rel=1e-6)
        assert [f.measured.std for f in rows] == pytest.approx(np.std(y, axis=0), rel=1e-6)


def test_wrenches_and_known_drives_belong_to_the_measured_force() -> None:
    machine, m = two_joints(), log(1)
    assert m.forces is not None
    rng = np.random.default_rng(5)
    driven = machine.with_elements([drive_gain("q1", "i", 2.5, "K")])
    driven = driven.with_parameters(driven.parameters.known(["K"]))
    pushed = replace(m, wrenches={"2": rng.normal(size=(500, 6))}, signals={"i": rng.normal(size=500)})
    outside = observation(machine, pushed, "joints").rows  # only h_q1 is known there
    free = machine.with_parameters(machine.parameters.estimated(["h_q1"]))
    for a, b in zip(outside, observation(free, pushed, "joints").rows, strict=True):
        assert b.measured.rms == pytest.approx(b.measurement_norm / math.sqrt(500), rel=1e-12)
        assert a.measured.rms == pytest.approx(b.measured.rms, rel=1e-12)
    gained = replace(pushed, forces=m.forces + 2.5 * pushed.signals["i"][:, None] * [1.0, 0.0])
    want, found = observation(machine, gained, "joints").rows, observation(driven, pushed, "joints").rows
    assert [f.measured.rms for f in found] == pytest.approx([f.measured.rms for f in want], rel=1e-12)


@pytest.mark.parametrize("known", [(), ("M7", "XX3", "MX4")])
def test_a_gpu_finds_the_same_moments(known: tuple[str, ...]) -> None:
    machine = arm()
    machine = machine.with_parameters(machine.parameters.known(dict.fromkeys(known, 0.7)))
    m = measured(machine, 700)
    assert m.forces is not None
    m.forces[50:60, 2] = np.nan
    samples = stream(machine, m, settings=IdentifySettings(sampling=Sampling(decimate=2, trim=3), engine="numpy"))
    for a, b in zip(samples.observe().rows, gpu_factors(samples, NumpyProcessor()).rows, strict=True):
        assert (a.unit, a.measured.samples) == (b.unit, b.measured.samples)
        both = [(f.measured.rms, f.measured.std) for f in (a, b)]
        assert both[0] == pytest.approx(both[1], rel=1e-9)
        assert a.measured.noise == pytest.approx(b.measured.noise, rel=0.05)


def test_a_study_with_known_parameters_reports_the_error_of_the_whole_force() -> None:
    """A machine of which all but a damper is known: 75 % of the small rest used to be reported for 8.5 % of the force."""
    machine, m = two_joints(), log(1)
    names = [n for n in machine.parameters.names if n != "Fv_q1" and not n.startswith("h_")]
    rest = machine.with_parameters(machine.parameters.estimated(["h_q1"]))
    rest = rest.with_parameters(rest.parameters.known([n for n in names if n != "h_q1"]))
    whole, small = identify(machine, m), identify(rest, m)
    assert m.forces is not None
    y = m.forces - external_rows(machine, m)
    for fit in (whole, small):
        assert [r.measured_rms for r in fit.rows] == pytest.approx(np.sqrt(np.mean(y**2, axis=0)), rel=1e-9)
        assert [r.unit for r in fit.rows] == ["N*m", "N*m"]
    assert small.relative_error == pytest.approx(whole.relative_error, rel=0.1)
    assert validate(small, m).std_error == pytest.approx(small.std_error, rel=1e-9)


def test_units_of_rows() -> None:
    machine = small_arm()
    assert [row_unit(machine, row) for row in ("q1", "fx", "mz")] == ["N*m", "N", "N*m"]


def test_the_noise_of_a_filtered_and_decimated_row_is_that_behind_its_filter() -> None:
    """White noise of 0.1 N*m on a slow force: a low-pass at 5 Hz of 200 Hz leaves √(2 · 0.898 · 5/200), however few equations are kept."""
    machine, rng = (
        Machine.of_bodies([Body("1")], inertia={"1": from_centre(1.0, [0.3, 0.0, 0.0], 0.05 * np.eye(3))}),
        np.random.default_rng(0),
    )
    t = 0.005 * np.arange(20_000)
    q, w = np.sin(0.7 * t)[:, None], 0.7
    m = Motion(t, q, w * np.cos(w * t)[:, None], -(w**2) * q)
    force = inverse_dynamics(machine, m) + 0.1 * rng.normal(size=(len(t), 1))
    for step in (1, 20):
        how = Sampling(filter=Butterworth(5.0), decimate=step, trim=500)
        often = pytest.warns(IdentificationWarning, match="found one in 1") if step == 1 else nullcontext()
        with often:
            row = identify(
                machine, replace(m, forces=force), "wls", IdentifySettings(covariance="white", sampling=how)
            ).rows[0]
        assert row.noise == pytest.approx(0.1 * np.sqrt(2.0 * 0.898 * 5.0 / 200.0), rel=0.03)
        assert row.rms == pytest.approx(row.noise, rel=0.1)
        assert row.error_beyond_noise < 0.01
    wrong = replace(m, forces=force + 0.5 * np.sin(9.0 * t)[:, None])  # a disturbance that no parameter explains
    row = identify(
        machine,
        wrong,
        "wls",
        settings=IdentifySettings(sampling=Sampling(filter=Butterworth(5.0), decimate=20, trim=500)),
        diagnose="off",
    ).rows[0]
    assert row.error_beyond_noise * row.measured_std == pytest.approx(0.5 / np.sqrt(2.0), rel=0.05)
