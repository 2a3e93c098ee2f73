import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.simulate.vehicle.aerodynamics import Aerodynamics, air_wrench


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
