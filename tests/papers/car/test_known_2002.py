"""What is handed in of the car of 2002, against the simulator, which shares no equation with it: forces of its suspensions, balance of its
chassis."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.predict import predicted
from veridyn.papers.car.bent_2002 import SPRINGS, Model2002, fitted
from veridyn.papers.car.drive import RAMPS, Campaign, campaign, drives_2002, inner
from veridyn.papers.car.knowledge import CarKnown
from veridyn.papers.car.known_2002 import drawn_2002, groups_2002, informed_motion, moved_2002
from veridyn.papers.car.sensors import sensors_2002
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.study_2002 import COMMON, CUT, HOW, sixteen, with_knowledge
from veridyn.signals.butterworth import Butterworth, zero_phase

SLOW = Butterworth(2.0)


@cache
def ramp() -> Campaign:
    """The detailed car on one ramp, instruments without errors, bands or noise."""
    drives = {RAMPS[0]: drives_2002(quick=True)[RAMPS[0]]}
    return campaign(np.random.default_rng(5), drives, Vehicle(), sensors_2002().perfect())


def test_measured_rows_of_suspensions_are_the_forces_of_springs_bars_and_dampers() -> None:
    """Along each clearance wheel, carrier and path leave what the simulator's own springs, bars and dampers do; without the path's work
    they would be ten times as far off."""
    made = ramp()
    machine = with_knowledge(sixteen(made.known))
    m = informed_motion(machine, made.drives[RAMPS[0]].log, made.known, COMMON, CUT)
    fit = fitted(Model2002(machine, False), [m], HOW).fit
    names, measured, _ = predicted(fit, m)
    run, s = inner(made.drives[RAMPS[0]].run), made.vehicle.suspension
    z, zd, _ = run.clearance
    for i, j in enumerate(SPRINGS):
        other, axle = i + 1 - 2 * (i % 2), i // 2
        d = z[:, i] - z[:, other]
        true = s.spring(i, z[:, i]) + s.damper(i, zd[:, i]) + s.bar[axle] * d + s.bar_cube[axle] * d**3
        found, work = (
            zero_phase(np.interp(run.t, m.t, x), 500.0, SLOW)[500:-500]
            for x in (measured[:, names.index(f"q{j}")], m.signals[f"path.q{j}"])
        )
        error = found - zero_phase(true, 500.0, SLOW)[500:-500]
        assert np.ptp(work) > 100.0, j
        assert np.abs(error).max() < 0.1 * np.ptp(work), j


def test_items_are_moved_and_drawn() -> None:
    known = CarKnown.of(Vehicle(), sensors_2002())
    groups = groups_2002(known)
    assert {"band height", "band camera"} <= set(groups["bands"]) and "air Cx" in groups["air"]
    assert not any(item.endswith(("XX", "YZ")) for item in groups["carriers"])
    other = moved_2002(known, {"air Cx": 1.0, "rear carrier mass": 2.0, "band camera": -1.0})
    assert other.aerodynamics.coefficients[0][0] == pytest.approx(1.1 * known.aerodynamics.coefficients[0][0])
    assert other.aerodynamics.coefficients[0][1:] == known.aerodynamics.coefficients[0][1:]
    assert [c.mass for c in other.carriers] == [24.0, 25.0]
    assert other.sensors.camera is not None and other.sensors.camera.cutoff == pytest.approx(9.8)
    drawn = drawn_2002(known, np.random.default_rng(0))
    assert drawn.carriers[0].mass != 24.0 and drawn.kinematics.tables != known.kinematics.tables
    with pytest.raises(DataError, match="nothing is handed in as 'air Cd'"):
        moved_2002(known, {"air Cd": 1.0})
