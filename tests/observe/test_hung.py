"""Encoders that hang are not used, joints that dwell are: by a log and by a stream, on arms with equations of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.encoders import ENCODERS, HANGS_S, RATE, model, moving, recorded
from benchmarks.foreign.serial import PENDULUM, THREE_JOINTS, SerialArm, dwelling

import veridyn as vd
from veridyn.errors import DataError, VeridynWarning
from veridyn.model.experiment import Experiment
from veridyn.observe.hung import HungOutputs, roles_of, without_hung
from veridyn.observe.measurements import Status, measurements_of
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.streaming.observer import Observer

GIVEN = vd.ObserveSettings(
    process_noise=vd.ProcessNoise(force=100.0, start_force=30.0), start="readings", model_error="off"
)
ROW = round(HANGS_S * RATE)


def hung_log(arm: SerialArm, seed: int, torques: bool) -> tuple[Experiment, np.ndarray]:
    drive, y, _ = moving(arm, seed, torques)
    y[ROW:, -1] = y[ROW, -1]
    name = f"encoder_q{y.shape[1]}"
    return drive.log.replacing(replace(drive.log[name], values=y[:, -1])), drive.q


def streamed(arm: SerialArm, log: Experiment) -> np.ndarray:
    table = machine_system(model(arm.file), vd.ObserveSettings())[0].table
    watch, used = HungOutputs(table), np.zeros(len(table.names), dtype=np.int8)
    rows = np.column_stack([log[name].values for name in table.names])
    return np.array([watch.flags(row, used, k / RATE) for k, row in enumerate(rows)])


@pytest.mark.parametrize("arm", [PENDULUM, THREE_JOINTS])
@pytest.mark.parametrize("torques", [False, True])
def test_a_hung_encoder_is_masked_named_and_its_band_grows(arm: SerialArm, torques: bool) -> None:
    log, q = hung_log(arm, 1, torques)
    with pytest.warns(VeridynWarning, match="repeats itself from 10 s"):
        found = vd.observe(model(arm.file), log, "ekf", GIVEN)
    j = q.shape[1] - 1
    assert (found.estimates.status[ROW + 1 :, j] == Status.FROZEN).all()
    assert (found.estimates.status[: ROW - 1] == Status.USED).all()
    assert next(one for one in found.findings if one.cause == "frozen").place == f"encoder_q{j + 1}"
    assert "repeats itself" in found.summary()
    assert found.sigma[ROW + 400, j] > 10.0 * found.sigma[ROW - 1, j]


def test_a_stream_leaves_out_the_first_repeat_and_says_frozen_soon() -> None:
    log, _ = hung_log(THREE_JOINTS, 1, False)
    codes = streamed(THREE_JOINTS, log)
    assert (codes[:, :2] == Status.USED).all() and (codes[: ROW + 1, 2] == Status.USED).all()
    assert (codes[ROW + 1 : ROW + 4, 2] == Status.MISSING).all()  # it may hang
    assert (codes[ROW + 10 :, 2] == Status.FROZEN).all()


def test_an_observer_says_that_an_encoder_hangs() -> None:
    log, _ = hung_log(PENDULUM, 1, False)
    first = float(log["encoder_q1"].values[0])
    observer = Observer(model(PENDULUM.file), "ekf", replace(GIVEN, start={"q1": first}))
    said = []
    for k, y in enumerate(log["encoder_q1"].values[: ROW + 40].tolist()):
        said += observer.step(k / RATE, {"encoder_q1": y}).messages
    assert len(said) == 1 and "'encoder_q1' is not used (frozen)" in said[0]
    assert observer.step((ROW + 40) / RATE, {"encoder_q1": first}).messages[-1].endswith("used again.")


@pytest.mark.parametrize("seed", range(5))
def test_a_joint_that_dwells_is_not_hung(seed: int) -> None:
    """Encoders of 12 to 20 bits, most without noise, whose joints rest for up to 3 s while others move."""
    rng, t = np.random.default_rng([seed, 3]), np.arange(2000) / RATE
    motion = dwelling(rng, t, 3, 1.0, (0.6, 2.0), (0.3, 3.0))
    bits, noise = ENCODERS[seed]
    step = 2.0 * np.pi / 2**bits
    y = step * np.round((motion[0] + noise * rng.standard_normal(motion[0].shape)) / step)
    log = recorded(THREE_JOINTS, t, motion, y, None).log
    system = machine_system(model(THREE_JOINTS.file), vd.ObserveSettings())[0]
    readings = measurements_of(system, log)
    assert not (without_hung(readings, system.table, "auto").flags == Status.FROZEN).any()
    assert not (streamed(THREE_JOINTS, log) == Status.FROZEN).any()


def test_a_number_counts_and_none_asks_nothing() -> None:
    log, _ = hung_log(PENDULUM, 1, False)
    system = machine_system(model(PENDULUM.file), vd.ObserveSettings())[0]
    readings = measurements_of(system, log)
    assert roles_of(system.table) == ("q.q1",)
    assert without_hung(readings, system.table, None) is readings
    flags = without_hung(readings, system.table, 5).flags[:, 0]
    assert np.flatnonzero(flags)[0] == ROW + 5


def test_a_word_is_no_reading() -> None:
    observer = Observer(model(PENDULUM.file), "ekf", replace(GIVEN, start={"q1": 0.0}))
    with pytest.raises(DataError, match="no reading"):
        observer.step(0.0, {"encoder_q1": "fast"})  # type: ignore[dict-item]
    with pytest.raises(DataError, match="no readings"):
        observer.step(0.0, "fast")
