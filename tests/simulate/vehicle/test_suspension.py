from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.simulate.vehicle.suspension import Suspension, bar_force


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
            slope = (s.spring_energy(z + h) - s.spring_energy(z - h)) / 2e-6
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
