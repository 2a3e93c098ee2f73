"""Machines that run live without any file: they follow what they are shown, and the buggy goes on without its receiver."""

import numpy as np
import pytest

from veridyn.live.machine import DRAW_ON
from veridyn.live.opening import SHOWS, observed_buggy
from veridyn.papers.buggy.drive import BuggyDrive, driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.car.drive import car_drive
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.progress import silent


def test_the_crane_is_followed():
    tracker, samples, _ = SHOWS["crane"](silent)
    rows = [r.row for s in samples if (r := tracker.take(s)).row is not None]
    assert len(rows) == len(samples) == 500
    nis = np.array([r.nis for r in rows[25:]])
    assert 0.85 < np.nanmean(nis) < 1.15
    pose = tracker.system.split(tracker._observer.belief.x)[0]
    assert tracker.points(pose).shape == (3, 3)


@pytest.mark.slow
def test_the_buggy_goes_on_without_gps_and_comes_back():
    model = buggy(rolling_resistance=0.015)
    truth = driven(model, BuggyDrive(duration=4.0, rack=-0.010), torque=lambda t: 100.0)
    log = truth.log(np.random.default_rng(DRAW_ON), model.sensors)
    tracker, samples = observed_buggy(model, log)
    names = [q.name for q in tracker.layout.quantities]
    x = names.index("base.x")
    sigma, error = {}, {}
    for s in samples:
        for name in ("gps", "gps_velocity", "course"):
            tracker.switch(name, not 2.0 <= s.t < 3.0)
        row = tracker.take(s).row
        if row is not None:
            at = round(row.t, 2)
            sigma[at], error[at] = row.sigma[x], abs(row.values[x] - truth.q[round(row.t * 500), 0])
    assert sigma[2.99] > 3.0 * sigma[1.99] and sigma[3.5] < 1.5 * sigma[1.99]
    assert error[2.99] < 4.0 * sigma[2.99] and error[3.9] < 0.05


@pytest.mark.slow
def test_the_arm_feels_the_push():
    tracker, samples, _ = SHOWS["arm"](silent)
    names = [q.name for q in tracker.layout.quantities]
    forces = [k for k, n in enumerate(names) if n.startswith("force.")]
    rows = [r.row for s in samples if (r := tracker.take(s)).row is not None]
    t = np.array([r.t for r in rows])
    size = np.linalg.norm(np.array([[r.values[k] for k in forces] for r in rows]), axis=1)
    pushed, free = (t > 6.5) & (t < 8.8), (t > 3.0) & (t < 5.8)
    assert np.median(size[pushed]) > 3.0 * np.median(size[free])


@pytest.mark.slow  # its filter in the quick suite: cli/test_vehicle.py; a show: the crane above
def test_the_car_learns_its_tyres_and_its_sideslip_is_known():
    """Beside the simulator in detail, of which the observer knows a few lines; 12 s of bends up to 4 m/s²."""
    vehicle = Vehicle()
    tracker, samples, _ = SHOWS["car"](silent)
    truth = car_drive(vehicle, np.random.default_rng(DRAW_ON))
    rows = [r.row for s in samples if s.t < 12.0 and (r := tracker.take(s)).row is not None]
    names = [q.name for q in tracker.layout.quantities]
    k, late = names.index("sideslip"), [r for r in rows if r.t > 4.0]
    true = np.interp([r.t for r in late], truth.t, truth.channels["sideslip"])
    error, sigma = np.array([r.values[k] for r in late]) - true, np.array([r.sigma[k] for r in late])
    assert np.sqrt((error**2).mean()) < np.radians(0.5) < np.sqrt((true**2).mean())
    assert np.mean(np.abs(error) < 2.0 * sigma) > 0.9
    for name in ("front_stiffness", "rear_stiffness"):
        assert rows[-1].sigma[names.index(name)] < 0.5 * rows[0].sigma[names.index(name)]
