"""What is handed in of the car of 2002, against the simulator, which shares no equation with it: forces of its suspensions, balance of its
chassis.

Lines nearest to the forces of suspensions: closed forms, and a car that rolls.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.validate import predicted
from veridyn.model.motion import Motion
from veridyn.papers.car.drive import RAMPS, Campaign, campaign, drives_2002, inner
from veridyn.papers.car.knowledge import CarKnown
from veridyn.papers.car.known_2002 import (
    SIXTEEN,
    SPRINGS,
    Model2002,
    drawn_2002,
    fitted,
    groups_2002,
    informed_motion,
    kind_2002,
    moved_2002,
    nearest,
    stretches,
)
from veridyn.papers.car.sensors import sensors_2002
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.study_2002 import COMMON, CUT, HOW, sixteen, true_sixteen, with_knowledge
from veridyn.signals.butterworth import Butterworth, zero_phase

SLOW = Butterworth(2.0)
MACHINE = sixteen(CarKnown.of(Vehicle(), sensors_2002()))


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
    with pytest.raises(DataError, match="no known value is called 'air Cd'"):
        moved_2002(known, {"air Cd": 1.0})


def rolling(samples: int = 400) -> Motion:
    """Left wheels rise as right ones fall, by 3 cm, evenly over a sine."""
    t = np.linspace(0.0, 10.0, samples, endpoint=False)
    q, qd = np.zeros((samples, MACHINE.n)), np.zeros((samples, MACHINE.n))
    w = 2.0 * np.pi * 0.4
    for j, side in ((13, 1.0), (17, -1.0), (7, 1.0), (10, -1.0)):
        c = MACHINE.coordinates.index(f"q{j}")
        q[:, c], qd[:, c] = side * 0.03 * np.sin(w * t), side * 0.03 * w * np.cos(w * t)
    return Motion(t, q, qd, np.zeros_like(q))


def test_nearest_line_of_a_cube_over_a_sine() -> None:
    """(a sin)³ has the first harmonic ¾ a² · a sin."""
    t = np.linspace(0.0, 1.0, 1000, endpoint=False)
    q, qd = 0.2 * np.sin(2.0 * np.pi * t), 0.2 * 2.0 * np.pi * np.cos(2.0 * np.pi * t)
    assert nearest(q, qd, 5.0 + 7.0 * qd + q**3) == pytest.approx((5.0, 0.75 * 0.2**2, 7.0))


def test_in_roll_ks_is_the_spring_and_twice_the_bar() -> None:
    """And a bend of springs adds ¾ a², a square the mean ½ a² to the offset, |q̇| nothing to h."""
    wide = Model2002(MACHINE, True)
    names = [n for n in wide.machine.parameters.names if n not in MACHINE.parameters.names or n in SIXTEEN]
    reported, J = wide.secants(names, [rolling()])
    assert reported == SIXTEEN
    at = {(r, n): J[SIXTEEN.index(r), names.index(n)] for r in SIXTEEN for n in names}
    assert at["ks13", "ks13"] == 1.0 and at["ks13", "k_arf"] == pytest.approx(2.0)
    assert at["ks17", "k_arf"] == pytest.approx(2.0) and at["ks7", "k_arf"] == 0.0
    assert at["ks7", "k3_7"] == pytest.approx(0.75 * 0.03**2) and at["off7", "k2_7"] == pytest.approx(0.5 * 0.03**2)
    assert at["h7", "h1_7"] == pytest.approx(0.0, abs=1e-9)
    assert at["h7", "fs_7"] == pytest.approx(4.0 / np.pi / (0.03 * 2.0 * np.pi * 0.4), rel=1e-3)


def test_the_truth_in_roll_has_the_bars_in_it() -> None:
    """10 s of each ramp of the simplified car on its smooth road: the road's heave is seen too, hence 3 %."""
    ramps = {name: drive for name, drive in drives_2002(quick=True).items() if name in RAMPS}
    car = Vehicle().simplified()
    car = replace(car, suspension=replace(car.suspension, friction=(0.0,) * 4))
    t = true_sixteen(campaign(np.random.default_rng(1), ramps, car, sensors_2002().quiet()))
    assert t["ks13"] == pytest.approx(20600.0 + 2 * 19033.0, rel=0.03) and t["MZ6"] == pytest.approx(2421.1)
    assert t["h13"] == pytest.approx(3200.0, rel=0.02)


def test_stretches_are_left_out_in_turn() -> None:
    m = rolling()
    even, odd = (stretches([m, m], ("q1",), part)["q1"] for part in range(2))
    assert len(even) == 2 * len(m) and (even != odd).all()
    assert even[:79].all() and not even[81:159].any()


def test_kinds() -> None:
    assert [kind_2002(n) for n in ("MZ6", "off7", "ks10", "h13")] == ["chassis", "springs", "springs", "dampers"]
