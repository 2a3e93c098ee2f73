"""Sensors that fail, on a short drive: the log is changed as it is said, and the observer names the one that fails."""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.papers.buggy import faults
from veridyn.papers.buggy.drive import BuggyDrive
from veridyn.papers.buggy.faults import FAULTS, fault_runs
from veridyn.papers.buggy.log import BuggyTruth, driven
from veridyn.papers.buggy.machine import buggy

SHORT = {("gyro", "0.01 rad/s beside"), ("accelerometer", "wrong sign"), ("gps", "silent")}


@pytest.fixture(scope="module")
def truth() -> BuggyTruth:
    return driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=2.0, rack=-0.010))


def test_every_sensor_of_the_buggy_fails_in_some_way():
    assert {s.name for s in buggy().sensors} - {f.sensor for f in FAULTS} == {"angle_fl", "angle_rr"}  # as their likes


def test_only_the_channels_of_a_sensor_change_and_only_after_the_fault(truth: BuggyTruth):
    log = truth.log(np.random.default_rng(1), buggy().sensors)
    for fault in FAULTS:
        changed = fault.applied(log, 1.0)
        for name in log.names:
            before = changed[name].t < 1.0
            np.testing.assert_array_equal(changed[name].values[before], log[name].values[log[name].t < 1.0])
            own = name in fault.channels or (not fault.channels and name.split(".")[0] == fault.sensor)
            assert own != np.array_equal(changed[name].values, log[name].values)


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_the_sensor_that_fails_is_named_and_no_other(truth: BuggyTruth, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(faults, "FAULTS", tuple(f for f in FAULTS if (f.sensor, f.how) in SHORT))
    runs = list(fault_runs(buggy(rolling_resistance=0.030), truth, 11))
    assert len(runs) == 1 + len(SHORT)
    for run in runs:
        assert run.named, run.findings
        assert all(abs(f.since - run.begins) < 0.1 for f in run.findings)
        assert run.rms("x") < 0.005
    assert not replace(runs[0], fault=FAULTS[0]).named
