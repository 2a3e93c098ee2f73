"""Replays: rms by joint and time, of the log and of another one; what makes no sense is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from tests.identify.drives.demo_leg import fitted_leg, recorded_leg

import veridyn as vd
from veridyn.errors import CapabilityError, DataError
from veridyn.identify.drives.drive_result import DriveReplay


def test_rms_of_a_part() -> None:
    t = np.arange(10.0)
    off = np.stack([np.where(t < 6, 0.0, 3.0), np.where(t < 6, 1.0, 4.0)], axis=1)
    one = DriveReplay(name="x", joints=("a", "b"), t=t, measured=off, simulated=0 * off)
    assert one.rms(6.0) == {"a": 3.0, "b": 4.0} and one.rms(0.0, 6.0) == {"a": 0.0, "b": 1.0}
    assert one.rms_of_all(6.0) == pytest.approx(np.sqrt(12.5))
    with pytest.raises(DataError, match="no samples"):
        one.rms(20.0)


def test_errors_of_each_encoder_are_those_of_the_replay() -> None:
    fit, made = fitted_leg(), recorded_leg()
    found = vd.validate(fit, made.validation)
    replay = fit.simulate(made.validation)
    assert found.by == "simulation" and [r.row for r in found.rows] == ["thigh", "calf"]
    for k, (joint, rms) in enumerate(replay.rms().items()):
        row = found[joint]
        assert (row.rms, row.samples, row.unit) == (pytest.approx(rms), len(replay.t), "rad")
        assert row.std_error == pytest.approx(rms / np.std(replay.measured[:, k]), rel=1e-3)
        assert row.rms < 5e-4  # rad: noise and quantum of the encoders leave 1.2e-4
    assert "thigh" in found.summary()


def test_several_logs_are_judged_together() -> None:
    fit, made = fitted_leg(), recorded_leg()
    both = vd.validate(fit, [made.validation, made.training])
    one, other = (vd.validate(fit, log) for log in (made.validation, made.training))
    for a, b, c in zip(both.rows, one.rows, other.rows, strict=True):
        assert a.samples == b.samples + c.samples
        assert a.rms**2 * a.samples == pytest.approx(b.rms**2 * b.samples + c.rms**2 * c.samples)


def test_what_makes_no_sense_is_refused() -> None:
    fit, made = fitted_leg(), recorded_leg()
    motion = vd.Motion(np.arange(3.0), *(np.zeros((3, 2)) for _ in range(3)))
    for by in ("forces", "prediction"):
        with pytest.raises(CapabilityError, match="no forces or filters to compare"):
            vd.validate(fit, made.validation, by=by)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="'rows' belongs to equations of forces"):
        vd.validate(fit, made.validation, rows="all")
    with pytest.raises(DataError, match="judged on logs"):
        vd.validate(fit, motion)
    forces = vd.Experiment.from_arrays(np.arange(99.0), {"q.thigh": np.zeros(99)}, {"q.thigh": "rad"}, "forces")
    with pytest.raises(DataError, match=r"there is no channel 'command\.thigh'"):
        vd.validate(fit, forces)
