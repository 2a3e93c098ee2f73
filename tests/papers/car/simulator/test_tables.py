import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from veridyn.errors import ModelError
from veridyn.papers.car.simulator.tables import AxleTables, WheelTables, looked_up


def test_a_table_is_a_natural_spline_inside_and_straight_outside():
    rng = np.random.default_rng(3)
    rows = tuple(tuple(r) for r in rng.standard_normal((5, 7)))
    tables = WheelTables(AxleTables(by_clearance=rows), AxleTables()).packed()
    x = np.linspace(-0.1, 0.1, 7)
    for q in range(5):
        spline = CubicSpline(x, rows[q], bc_type="natural")
        for at in (-0.1, -0.03, 0.011, 0.0999):
            found = looked_up(tables.clearance, tables.clearance_grid, 0, q, at)
            assert np.allclose(found, [spline(at), spline(at, 1), spline(at, 2)], rtol=1e-9, atol=1e-9)
        end, slope, _ = looked_up(tables.clearance, tables.clearance_grid, 0, q, 0.1)
        beyond = looked_up(tables.clearance, tables.clearance_grid, 0, q, 0.13)
        assert np.allclose(beyond, [end + 0.03 * slope, slope, 0.0])


def test_the_right_wheel_mirrors_the_left_one():
    t = WheelTables().packed()
    sign = (-1.0, 1.0, -1.0, -1.0, 1.0)
    for left, right in ((0, 1), (2, 3)):
        for q in range(5):
            a = looked_up(t.clearance, t.clearance_grid, left, q, 0.037)
            b = looked_up(t.clearance, t.clearance_grid, right, q, 0.037)
            assert np.allclose(b, np.multiply(sign[q], a))
            a = looked_up(t.rack, t.rack_grid, left, q, 0.2)
            b = looked_up(t.rack, t.rack_grid, right, q, -0.2)
            assert np.allclose(b, np.array([1.0, -1.0, 1.0]) * sign[q] * a)
        F, mirrored = np.array([100.0, 200.0, 30.0]), np.array([100.0, -200.0, -30.0])
        assert np.allclose(t.compliance[right] @ mirrored, sign * (t.compliance[left] @ F))


def test_compliances_take_energy_and_give_none():
    """Displacements (half track, wheelbase, toe) under their own forces (Fy, Fx, Mz): a symmetric, positive matrix."""
    for C in WheelTables().packed().compliance:
        own = C[[0, 1, 2]][:, [1, 0, 2]]
        assert np.allclose(own, own.T) and np.linalg.eigvalsh(own).min() >= 0.0


def test_tables_of_the_wrong_shape_are_refused():
    with pytest.raises(ModelError, match="by_clearance") as caught:
        AxleTables(by_clearance=((0.0, 1.0),) * 4, rack=(0.1, -0.1))
    assert len(caught.value.faults) == 2
    assert not WheelTables.none().packed().clearance.any()
