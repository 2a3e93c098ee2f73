"""Lines nearest to the forces of suspensions: closed forms, and a car that rolls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veridyn.model.motion import Motion
from veridyn.papers.car.bent_2002 import SIXTEEN, Model2002, kind_of, nearest, stretches
from veridyn.papers.car.drive import RAMPS, campaign, drives_2002
from veridyn.papers.car.knowledge import CarKnown
from veridyn.papers.car.sensors import sensors_2002
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.study_2002 import sixteen, true_sixteen

MACHINE = sixteen(CarKnown.of(Vehicle(), sensors_2002()))


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
    assert [kind_of(n) for n in ("MZ6", "off7", "ks10", "h13")] == ["chassis", "springs", "springs", "dampers"]
