from dataclasses import replace

import numpy as np
import pytest

from veridyn.mechanics.compiled import compiled, core
from veridyn.mechanics.ground import tyre
from veridyn.mechanics.ground.tyre_parameters import NAMES, RANGES, mirrored
from veridyn.papers.car.simulator.contact import (
    LinearTyre,
    attitude,
    combined_forces,
    contact,
    cross,
    effective_radius,
    overturning_moment,
    packed_tyres,
    relaxation_lengths,
    rolling_moment,
    symmetric,
    turned,
    turned_back,
    vertical_force,
)
from veridyn.papers.car.simulator.description import passenger_tyre
from veridyn.papers.car.simulator.lanes import four, of_four, put_four

UP, LEFT = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)
LINEAR = LinearTyre(c_kappa=50e3, c_alpha=60e3, radius=0.3, stiffness=200e3, relaxation=(0.2, 0.5))


def test_products_are_numpy_s():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 3))
    assert np.allclose(cross(tuple(a), tuple(b)), np.cross(a, b))
    J = rng.standard_normal(6)
    full = np.array([[J[0], J[1], J[2]], [J[1], J[3], J[4]], [J[2], J[4], J[5]]])
    assert np.allclose(symmetric(J, tuple(a)), full @ a)


def test_a_quaternion_turns_as_its_half_angle_says():
    angle, axis = 0.7, np.array([2.0, -1.0, 2.0]) / 3.0
    q = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])
    R = attitude(*q)
    v = np.array([0.3, 0.2, -0.5])
    rodrigues = v * np.cos(angle) + np.cross(axis, v) * np.sin(angle) + axis * (axis @ v) * (1 - np.cos(angle))
    assert np.allclose(turned(R, tuple(v)), rodrigues)
    assert np.allclose(turned_back(R, turned(R, tuple(v))), v)


@compiled
def four_alike(P, n, e, height, v, w, spin, u, s, out):
    """The contact of four wheels that do the same: force, moment, u̇ and v̇, and what is said of the tyre, in rows of four."""
    h, turns, along, across = wide(height), wide(spin), wide(u), wide(s)
    found = contact(P, all_wide(n), all_wide(e), h, all_wide(v), all_wide(w), turns, along, across, 1.0)
    for k in range(3):
        put_four(out, 4 * k, found.force[k])
        put_four(out, 12 + 4 * k, found.moment[k])
    put_four(out, 24, found.slip_rates[0])
    put_four(out, 28, found.slip_rates[1])
    for k in range(7):
        put_four(out, 32 + 4 * k, found.of_tyre[k])


@core
def wide(x):
    return of_four(x, x, x, x)


@core
def all_wide(a):
    return wide(a[0]), wide(a[1]), wide(a[2])


def at(tyre, height=0.28, v=(10.0, 0.0, 0.0), w=(0.0, 0.0, 0.0), spin=None, u=0.0, s=0.0, n=UP, e=LEFT):
    out = np.zeros((15, 4))
    P = packed_tyres(tyre, tyre)
    free = 10.0 / (0.3 - 0.02 / 3.0) if spin is None else spin
    four_alike(P, n, e, height, v, w, free, u, s, out)
    left = out[:, 0]
    # Equal tyres that have no sides, on wheels that do the same.
    assert not isinstance(tyre, LinearTyre) or np.array_equal(out, np.tile(left[:, None], 4))
    return left[:3], left[3:6], left[6], left[7], left[8:]


def test_a_free_rolling_tyre_carries_only():
    F, M, ud, vd, out = at(LINEAR)
    assert np.allclose(F, [0.0, 0.0, 4000.0]) and np.allclose(M, 0.0)
    assert ud == pytest.approx(0.0, abs=1e-12) and vd == 0.0
    assert out[:3] == pytest.approx([4000.0, 0.02, 0.0])


def test_off_the_road_there_is_nothing():
    F, M, _, _, _ = at(LINEAR, height=0.31, u=0.01, s=0.01)
    assert not F.any() and not M.any()


def test_slips_settle_at_their_steady_values_and_forces_resist():
    # Sliding left at 1 m/s of 10: tan α = 0.1. Turning too fast by 5 %: κ = 0.05.
    F, M, ud, vd, out = at(LINEAR, v=(10.0, 1.0, 0.0), spin=10.5 / (0.3 - 0.02 / 3.0), u=0.05 * 0.2, s=0.1 * 0.5)
    assert ud == pytest.approx(0.0, abs=1e-9) and vd == pytest.approx(0.0, abs=1e-12)
    assert np.allclose(F, [2500.0, -6000.0, 4000.0])
    assert np.allclose(M, np.cross([0.0, 0.0, -0.28], F))
    assert out[3] == pytest.approx(0.05) and np.tan(out[4]) == pytest.approx(0.1)


def test_load_stands_on_the_road_and_the_lean_is_camber():
    g = 0.05
    F, M, _, _, out = at(LINEAR, e=(0.0, np.cos(g), np.sin(g)))
    assert out[1] == pytest.approx(0.3 * np.cos(g) - 0.28)
    assert np.allclose(F[:2], 0.0) and F[2] == pytest.approx(200e3 * out[1])
    # A top that leans right puts the contact to the left of the wheel centre: the load turns the wheel about +x.
    assert M[0] > 0.0
    F, _, _, _, _ = at(LINEAR, n=(-0.1 / np.hypot(1, 0.1), 0.0, 1.0 / np.hypot(1, 0.1)))
    assert F[0] < 0.0  # uphill pushes back


def test_the_magic_formula_is_the_package_s_in_its_place():
    own = passenger_tyre()
    F, _, _, _, out = at(own, height=0.293, u=0.004, s=0.02)
    fx, fy, _ = tyre.combined_forces(own.packed, out[0], out[3], out[4], 0.0, 1.0, 1.0)
    assert out[0] == pytest.approx(231e3 * 0.02)
    assert np.allclose(F, [fx, fy, out[0]])


def test_a_standing_tyre_is_a_spring_with_a_damper():
    F, _, ud, _, _ = at(LINEAR, v=(0.01, 0.0, 0.0), spin=0.0)
    assert ud == pytest.approx(-0.01)
    assert F[0] == pytest.approx(-6.0, rel=1e-3)  # 600 N s/m at rest


@compiled
def all_of(p, given, mu, out):
    fz, kappa, alpha, gamma, vx, omega, deflection, rate, direction = (
        four(given, 0), four(given, 4), four(given, 8), four(given, 12), four(given, 16), four(given, 20),
        four(given, 24), four(given, 28), four(given, 32),
    )  # fmt: skip
    fx, fy, mz = combined_forces(p, fz, kappa, alpha, gamma, mu, direction)
    along, across = relaxation_lengths(p, fz, gamma)
    found = (
        fx, fy, mz, overturning_moment(p, fz, fy, gamma), rolling_moment(p, fz, fx, vx, omega),
        vertical_force(p, deflection, rate), effective_radius(p, deflection), along, across,
    )  # fmt: skip
    for k in range(9):
        put_four(out, 4 * k, found[k])


def by_the_package(p, given, mu):
    fz, kappa, alpha, gamma, vx, omega, deflection, rate, direction = (float(x) for x in given)
    fx, fy, mz = tyre.combined_forces(p, fz, kappa, alpha, gamma, mu, direction)
    return [
        fx, fy, mz, tyre.overturning_moment(p, fz, fy, gamma), tyre.rolling_moment(p, fz, fx, vx, omega),
        tyre.vertical_force(p, deflection, rate), tyre.effective_radius(p, deflection), *tyre.relaxation_lengths(p, fz, gamma),
    ]  # fmt: skip


def lopsided(rng):
    """The passenger tyre with every coefficient and scale at work, measured over ranges that slips and loads leave."""
    usual = passenger_tyre().values
    values = {n: usual[n] * rng.uniform(0.8, 1.2) + (usual[n] == 0.0) * rng.uniform(-0.1, 0.1) for n in NAMES}
    ends = dict(zip(RANGES, (1000.0, 8000.0, -0.2, 0.25, -0.3, 0.35, -0.15, 0.1), strict=True))
    return replace(passenger_tyre(), **(values | ends))


def compared(tyres, rng, many):
    p = np.array([t.packed for t in tyres]).T.copy()
    out = np.empty((9, 4))
    low = np.array([0.0, -0.3, -0.4, -0.2, -20.0, -60.0, -0.005, -1.0, -1.0])
    high = np.array([9000.0, 0.3, 0.4, 0.2, 50.0, 160.0, 0.04, 1.0, 1.0])
    for k in range(many):
        given = rng.uniform(low[:, None], high[:, None], (9, 4))
        given[0, k % 4] *= k % 2  # a wheel off the road beside others
        mu = float(rng.uniform(0.3, 1.1))
        all_of(p, given, mu, out)
        expected = np.array([by_the_package(p[:, i].copy(), given[:, i], mu) for i in range(4)]).T
        scale = np.abs(expected).max(axis=1, keepdims=True)
        assert (
            np.abs(out - expected).max() < 1e-11 * scale.max()
            and (np.abs(out - expected) < 1e-11 * (1.0 + scale)).all()
        )


def test_the_passenger_tyre_is_the_package_s():
    left = passenger_tyre()
    compared((left, mirrored(left), left, mirrored(left)), np.random.default_rng(1), 200)


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_tyres_with_every_coefficient_at_work_are_the_package_s(seed):
    rng = np.random.default_rng(seed)
    compared([lopsided(rng) for _ in range(4)], rng, 60)
