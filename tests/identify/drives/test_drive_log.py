"""Records of commands and positions: means over ticks by quadrature, delays by differences, and logs that are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.mujoco_leg import commands, leg

import veridyn as vd
from veridyn.errors import DataError
from veridyn.identify.drives.drive_log import Between, DriveRecord, drive_records

STEP = 0.005


def made(changes: dict[str, object] | None = None) -> vd.Experiment:
    t = STEP * np.arange(400)
    r = commands(t)
    values = {
        "command.thigh": r[:, 0],
        "command.calf": r[:, 1],
        "position.thigh": 0.9 * r[:, 0],
        "position.calf": r[:, 1],
    }
    return vd.Experiment.from_arrays(t, values | (changes or {}), dict.fromkeys(values, "rad"), "made")  # pyright: ignore


@pytest.mark.parametrize("between", ["hold", "linear"])
def test_a_tick_reads_the_mean_of_the_delayed_command(between: Between, tmp_path: Path) -> None:
    record = drive_records(leg(tmp_path), made(), between)[0]
    h, delay, count = 1e-3, 0.00234, 600
    mean, rate, slope, _ = record.ticks(0, count, h, delay)
    t, r = record.t, record.command[:, 0]
    fine = np.arange(count * 100) * h / 100 + h / 200 - delay  # middles of hundredths of a tick
    asked = np.interp(fine, t, r) if between == "linear" else r[np.clip((fine // STEP).astype(int), 0, None)]
    # A hundredth of a tick may hold a step of the command.
    assert mean == pytest.approx(asked.reshape(count, 100).mean(axis=1), abs=0.02 * np.abs(np.diff(r)).max())
    later, before = (record.ticks(0, count, h, delay + d)[0] for d in (1e-7, -1e-7))
    assert (before - later) / 2e-7 == pytest.approx(slope, abs=1e-4 * np.abs(slope).max())
    assert (rate == 0.0).all() if between == "hold" else rate == pytest.approx(slope)


def test_a_start_at_rest_and_one_in_motion() -> None:
    t = STEP * np.arange(100)
    q = np.stack([1e-5 * (-1.0) ** np.arange(100), 2.0 * t], axis=1)
    record = DriveRecord(name="x", coordinates=("a", "b"), start=0.0, step=STEP, command=0 * q, position=q)
    assert record.starting_speed == pytest.approx([0.0, 2.0])


def test_the_start_is_as_sure_as_its_first_samples() -> None:
    """White noise of 2e-4 rad at rest; and q = 5 t², whose slope over five samples is that of the third, 10 · 2 · STEP too large."""
    rng = np.random.default_rng(4)
    t = STEP * np.arange(2000)
    q = np.stack([2e-4 * rng.standard_normal(len(t)), 5.0 * t**2], axis=1)
    record = DriveRecord(name="x", coordinates=("a", "b"), start=0.0, step=STEP, command=0 * q, position=q)
    position, speed = record.start_sigma
    # Third differences of 2000 samples show a deviation to some 4 %. A slope over five even samples has the deviation σ/(√10 step), and
    # that of a parabola at the first of them 4σ/(√14 step) more: three times as much together is beyond chance.
    assert position[0] == pytest.approx(2e-4, rel=0.1)
    assert 1.0 / np.sqrt(10.0) < speed[0] * STEP / position[0] < 3.0 * (1.0 / np.sqrt(10.0) + 4.0 / np.sqrt(14.0))
    assert position[1] < 1e-8 and speed[1] == pytest.approx(10.0 * 2.0 * STEP, rel=1e-3)


def test_wrong_logs_are_named(tmp_path: Path) -> None:
    machine, good = leg(tmp_path), made()
    for changes, text in (
        ({"position.calf": np.degrees(good["position.calf"].values)}, "looks like degrees"),
        (
            {"position.calf": good["position.thigh"].values, "position.thigh": good["position.calf"].values},
            "follows the command of",
        ),
        ({"command.calf": np.where(np.arange(400) == 7, np.nan, 0.0)}, "no numbers"),
    ):
        with pytest.raises(DataError, match=text):
            drive_records(machine, made(changes))
    uneven = good["position.thigh"].t.copy()
    uneven[200:] += 0.1
    channels = {n: vd.model.Channel(n, uneven, c.values, c.unit) for n, c in good.channels.items()}
    with pytest.raises(DataError, match="clock is not even"):
        drive_records(machine, vd.Experiment(channels, "gap"))
