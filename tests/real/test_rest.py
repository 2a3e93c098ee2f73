"""Rests in measured logs are no faults: a UR10e whose drives report a speed of exactly zero while its encoders stand still."""

import numpy as np
import pytest

import veridyn as vd
from real_logs import folder
from veridyn.signals.quality import inspect

LOGS = ("ur-20_01_17-ptp_10_points", "ur-20_02_05-20sec_8harm", "ur-20_02_10-30sec_12harm", "ur-20_02_12-40sec_12harm")


def logged(name: str) -> vd.Experiment:
    names = [f"{kind}.{k}" for kind in ("q", "qd", "signal") for k in range(1, 7)]
    units = {n: {"q": "rad", "qd": "rad/s", "signal": "A"}[n.partition(".")[0]] for n in names}
    columns = ["t", *names, *[""] * 12]
    return vd.load_log(folder("ur10e") / f"{name}.csv", columns, {"t": "s"} | units)


@pytest.mark.parametrize("name", LOGS)
def test_a_robot_at_rest_is_not_frozen(name: str) -> None:
    log = logged(name)
    assert not inspect(log).of("frozen")


def test_a_speed_that_is_stuck_at_zero_while_the_joint_moves_is() -> None:
    log = logged(LOGS[2])
    speed = log["qd.4"]
    fast = int(np.argmax(np.abs(speed.values)))
    values = speed.values.copy()
    values[fast - 40 : fast + 40] = 0.0
    damaged = log.replacing(type(speed)(speed.name, speed.t, values, speed.unit))
    assert [f.channel for f in inspect(damaged).of("frozen")] == ["qd.4"]
