import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.simulate.vehicle.driveline import Brakes, Driveline, brake_torque, engine_torque


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


def test_unusable_settings_are_named():
    with pytest.raises(ModelError, match="its inertia") as caught:
        Driveline(inertia=0.0, limits=(1.0, 2.0))
    assert len(caught.value.faults) == 2
    assert not Driveline().rigid().flexible and np.isfinite(Driveline().packed()).all()
