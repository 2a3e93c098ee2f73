""""""

from dataclasses import replace

import numpy as np
import pytest

from papers.car.simulator.spring_energy import spring_energy
from veridyn.errors import ModelError
from veridyn.papers.car.simulator.forces import (
    Aerodynamics,
    Brakes,
    Driveline,
    Suspension,
    air_wrench,
    bar_force,
    brake_torque,
    engine_torque,
)


def test_the_linear_suspension_is_that_of_paper_000():
    s = replace(Suspension(), friction=(5.0, 6.0, 7.0, 8.0)).linear()
    z, v = np.linspace(-0.4, -0.2, 9), np.array([-1.0, -0.1, 0.1, 1.0])
    for w in range(4):
        assert np.allclose(s.spring(w, z), s.offset[w] + s.stiffness[w] * z, rtol=1e-14)
        assert np.allclose(s.damper(w, v), s.damping[w] * v + s.friction[w] * np.sign(v), rtol=1e-14)


def test_force_is_the_slope_of_the_energy_also_on_the_stops():
    s = Suspension()
    design = np.array(s.design)
    for shift in (-0.12, -0.05, 0.0, 0.04, 0.1):
        for w in range(4):
            h = np.zeros(4)
            h[w] = 1e-6
            z = design + shift * np.array([1.0, 0.5, -0.7, 1.0])
            slope = (spring_energy(s, z + h) - spring_energy(s, z - h)) / 2e-6
            other = z[w + 1 if w % 2 == 0 else w - 1]
            force = s.spring(w, z[w]) + bar_force(float(z[w] - other), s.packed().bar[w // 2])
            assert force == pytest.approx(slope, rel=1e-6, abs=1e-2)


def test_stops_stiffen_and_dampers_are_harder_in_rebound():
    s = Suspension()
    z0 = s.design[0]
    rest = float(s.spring(0, z0))
    # 20 mm into a stop of 4e6 N/m² is 1600 N beyond the spring.
    assert float(s.spring(0, z0 + s.bump_travel + 0.02)) - rest > s.stiffness[0] * 0.08 + 1600.0
    assert float(s.spring(0, z0 - s.rebound_travel - 0.02)) - rest < -s.stiffness[0] * 0.1
    assert -float(s.damper(0, -0.3)) > 1.3 * float(s.damper(0, 0.3))
    slow = float(s.damper(0, 0.02)) / 0.02
    assert float(s.damper(0, 1.5)) / 1.5 < 0.6 * slow


def test_dry_friction_is_a_damper_close_to_rest():
    s = replace(Suspension().linear(), damping=(0.0,) * 4, friction=(10.0,) * 4)
    assert float(s.damper(1, 1e-6)) == pytest.approx(10.0 * 1e-6 / s.friction_speed, rel=1e-5)


def test_unusable_settings_are_named():
    with pytest.raises(ModelError, match="negative damping") as caught:
        Suspension(damping=(-1.0, 0.0, 0.0, 0.0), friction_speed=0.0)
    assert len(caught.value.faults) == 2


def wrench(air, *velocity):
    out = np.zeros(6)
    air_wrench(*velocity, air.packed(), out)
    return out


def test_drag_alone_is_minus_cx_v_squared_along_x():
    air = Aerodynamics().drag_only()
    Cx = Aerodynamics().coefficients[0][0]
    assert np.allclose(wrench(air, 20.0, 3.0, -1.0), [-Cx * 410.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert not wrench(Aerodynamics.none(), 20.0, 3.0, -1.0).any()


def test_a_table_is_linear_between_speeds_and_constant_beyond():
    rows = tuple(tuple(float(k + c) for c in range(6)) for k in (1, 3, 9))
    air = Aerodynamics((10.0, 20.0, 30.0), rows, (0.0,) * 6)
    for speed, first in ((5.0, 1.0), (15.0, 2.0), (25.0, 6.0), (30.0, 9.0), (50.0, 9.0)):
        assert np.allclose(wrench(air, speed, 0.0, 0.0), -(first + np.arange(6.0)) * speed**2)


def test_sideslip_pushes_against_the_side_and_there_is_nothing_at_rest():
    air = Aerodynamics()
    left, right = wrench(air, 30.0, 3.0, 0.0), wrench(air, 30.0, -3.0, 0.0)
    assert left[1] < 0.0 < right[1] and left[1] == pytest.approx(-right[1])
    assert not wrench(air, 0.0, 0.0, 0.0).any()


def test_a_table_that_is_none_is_refused():
    with pytest.raises(ModelError, match="wrong shape"):
        Aerodynamics((0.0, 1.0), ((0.0,) * 6,))
    with pytest.raises(ModelError, match="do not increase"):
        Aerodynamics((1.0, 1.0), ((0.0,) * 6,) * 2)


def test_the_controller_is_linear_within_its_limits_and_stops_winding_up_at_them():
    line = Driveline(gain=100.0, integral=10.0, limits=(-200.0, 500.0))
    p = line.packed()
    assert engine_torque(0.5, 2.0, 30.0, p) == (30.0 + 50.0 + 20.0, 0.5)
    assert engine_torque(9.0, 0.0, 0.0, p) == (500.0, 0.0)
    assert engine_torque(-1.0, 80.0, 0.0, p) == (500.0, -1.0)
    assert engine_torque(-9.0, 0.0, 0.0, p) == (-200.0, 0.0)


def test_a_brake_opposes_the_spin_with_its_share_of_the_torque():
    p = Brakes(front=400.0, rear=100.0).packed()
    assert brake_torque(5.0, 60.0, 0, p) == pytest.approx(-1000.0)
    assert brake_torque(5.0, -60.0, 3, p) == pytest.approx(250.0)
    assert brake_torque(5.0, 0.0, 1, p) == 0.0
    # Both axles together brake by what is asked for, with the default car's mass and radius.
    whole = Brakes()
    assert (whole.front + whole.rear) / (1680.0 * 0.31) == pytest.approx(1.0, abs=0.02)


def test_unusable_drivelines_are_named():
    with pytest.raises(ModelError, match="its inertia") as caught:
        Driveline(inertia=0.0, limits=(1.0, 2.0))
    assert len(caught.value.faults) == 2
    assert not Driveline().rigid().flexible and np.isfinite(Driveline().packed()).all()
