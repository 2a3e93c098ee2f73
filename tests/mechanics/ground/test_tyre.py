"""The Magic Formula and the tyre on the road against a second writing, closed forms, published check values, symmetry and limits."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.errors import ModelError
from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.ground import tyre_parameters
from veridyn.mechanics.ground.tyre import (
    RELAXATION_FLOOR,
    SPEED_FLOOR,
    _lateral,
    _longitudinal,
    _slips_in_range,
    combined_forces,
    effective_radius,
    forces,
    lateral_stiffness,
    load_in_range,
    longitudinal_stiffness,
    overturning_moment,
    relaxation_lengths,
    rolling_moment,
    slip_rates,
    vertical_force,
)
from veridyn.mechanics.ground.tyre_parameters import (
    ESSENTIAL,
    NAMES,
    RANGES,
    TyreParameters,
    from_adapted_sae,
    mirrored,
)

# The buggy's tyre: public data of the MRZR utility vehicle of Project Chrono (BSD-3), a subset of PAC2002.
_CONTACT = {"FNOMIN": 4000.0, "UNLOADED_RADIUS": 0.3683, "VERTICAL_STIFFNESS": 82.7e3, "VERTICAL_DAMPING": 500.0}
_ROLLING = {"BREFF": 6.1, "DREFF": 0.45, "FREFF": 0.01, "QSY1": 0.015, "PTX1": 1.85, "PTY1": 1.9, "PTY2": 2.25}
_ALONG = {"PCX1": 1.839, "PDX1": 1.1387, "PDX2": -0.12, "PEX1": 0.627, "PKX1": 18.886, "PKX2": -3.988, "PKX3": 0.215}
_ACROSS = {"PCY1": 1.3223, "PDY1": 1.0141, "PDY2": -0.1227, "PEY1": -0.638, "PKY1": -19.797, "PKY2": 1.7999}
_BOTH = {"RBX1": 5.99, "RBX2": -8.26, "RCX1": 1.078, "RBY1": 6.22, "RBY2": 3.07, "RBY3": 0.016, "RCY1": 1.005}
BUGGY = TyreParameters(**_CONTACT, **_ROLLING, **_ALONG, **_ACROSS, **_BOTH)
P = BUGGY.packed


def slip_stiffness(p: np.ndarray, fz: float, gamma: float) -> tuple[float, float]:
    """C_κ = K_x (N) and C_α = −K_y (N/rad): what a linear tyre has at this load; both positive."""
    load, dfz, share = load_in_range(p, fz)
    if load == 0.0:
        return 0.0, 0.0
    return longitudinal_stiffness(p, load, dfz) * share, -lateral_stiffness(p, load, gamma) * share


def linear_tyre(c_kappa: float, c_alpha: float, kappa: float, alpha: float) -> tuple[float, float]:
    """F_x = C_κ κ, F_y = −C_α α; for small slips."""
    return c_kappa * kappa, -c_alpha * alpha


def pure_longitudinal(p: np.ndarray, fz: float, kappa: float, gamma: float, mu: float) -> float:
    """F_x without side slip, N."""
    load, dfz, share = load_in_range(p, fz)
    if load == 0.0:
        return 0.0
    kappa, _, gamma = _slips_in_range(p, kappa, 0.0, gamma)
    return share * _longitudinal(p, load, dfz, kappa, gamma, mu)


def pure_lateral(p: np.ndarray, fz: float, alpha: float, gamma: float, mu: float) -> float:
    """F_y of a freely rolling wheel, N."""
    load, dfz, share = load_in_range(p, fz)
    if load == 0.0:
        return 0.0
    _, alpha, gamma = _slips_in_range(p, 0.0, alpha, gamma)
    return share * _lateral(p, load, dfz, alpha, gamma, mu)[0]


def steady_slip(vx: float, vy: float, vr: float) -> tuple[float, float]:
    """κ = (v_r − v_x)/V and tan α = v_y/V of a wheel in steady motion; speeds of the contact in the wheel's axes, m/s."""
    speed = max(abs(vx), SPEED_FLOOR)
    return (vr - vx) / speed, vy / speed


def random_tyre(rng: np.random.Generator) -> TyreParameters:
    """Every coefficient at work, of the size it has in measured tyres."""
    values = {name: rng.uniform(-0.1, 0.1) for name in NAMES if name not in RANGES}
    values |= {name: rng.uniform(0.8, 1.2) for name in NAMES if name.startswith("L")}
    values |= {"FNOMIN": 4000.0, "UNLOADED_RADIUS": 0.33, "VERTICAL_STIFFNESS": 2e5, "VERTICAL_DAMPING": 50.0}
    values |= {"LONGVL": 16.7, "PCX1": 1.6, "PDX1": 1.1, "PEX1": 0.3, "PKX1": 21.0, "PKX2": 2.0, "PKX3": -0.2}
    values |= {"PCY1": 1.3, "PDY1": rng.choice([1.0, -1.0]), "PEY1": -0.8, "PKY1": -15.0, "PKY2": 1.7, "PKY3": 0.4}
    values |= {
        "RBX1": 12.0,
        "RBX2": -9.0,
        "RCX1": 1.1,
        "RBY1": 7.0,
        "RBY2": 5.0,
        "RCY1": 1.06,
        "RVY5": 1.9,
        "RVY6": 9.0,
    }
    values |= {"QBZ1": 9.0, "QBZ9": 18.0, "QCZ1": 1.2, "QDZ1": 0.09, "QEZ1": -1.5, "PTX1": 2.3, "PTX3": 0.5}
    values |= {"PTY1": 2.1, "PTY2": 2.0}
    return TyreParameters(**values)


def states(rng: np.random.Generator, count: int) -> tuple[NDArray[np.float64], ...]:
    """Load, κ, α, γ, road friction."""
    low, high = (200.0, -0.8, -0.6, -0.15, 0.3), (9000.0, 0.8, 0.6, 0.15, 1.1)
    return tuple(rng.uniform(a, b, count) for a, b in zip(low, high, strict=True))


def by_the_book(tyre: TyreParameters, fz: float, kappa: float, alpha: float, gamma: float, mu: float) -> NDArray:
    """F_x, F_y, M_x, M_z written once more from section 4.3.2, in the order of the book, without a line of veridyn."""
    c = SimpleNamespace(**tyre.values)
    sgn, arc = np.sign, np.arctan
    c.LMUX, c.LMUY = c.LMUX * mu, c.LMUY * mu
    fz0 = c.LFZO * c.FNOMIN
    df, r0 = fz / fz0 - 1.0, c.UNLOADED_RADIUS
    gx, gy, gz = gamma * c.LGAX, gamma * c.LGAY, gamma * c.LGAZ

    def curve(b: float, x: float, e: float) -> float:
        return arc((1.0 - e) * b * x + e * arc(b * x))

    # longitudinal
    kx = kappa + c.LHX * (c.PHX1 + df * c.PHX2)
    mux = c.LMUX * (c.PDX1 + df * c.PDX2) * (1.0 - c.PDX3 * gx**2)
    ex = min(1.0, c.LEX * np.polyval([c.PEX3, c.PEX2, c.PEX1], df) * (1.0 - c.PEX4 * sgn(kx)))
    Kx = c.LKX * fz * (c.PKX1 + df * c.PKX2) * np.exp(c.PKX3 * df)
    cx, dx = c.LCX * c.PCX1, mux * fz
    fx0 = dx * np.sin(cx * curve(Kx / (cx * dx), kx, ex)) + c.LVX * c.LMUX * fz * (c.PVX1 + df * c.PVX2)
    # lateral
    shy = c.LHY * (c.PHY1 + df * c.PHY2) + c.PHY3 * gy
    ay = alpha + shy
    muy = c.LMUY * (c.PDY1 + df * c.PDY2) * (1.0 - c.PDY3 * gy**2)
    ey = min(1.0, c.LEY * (c.PEY1 + df * c.PEY2) * (1.0 - (c.PEY3 + c.PEY4 * gy) * sgn(ay)))
    ratio = fz / (c.PKY2 * fz0)
    Ky = c.LKY * c.PKY1 * fz0 * 2.0 * ratio / (1.0 + ratio**2) * (1.0 - c.PKY3 * abs(gy))  # sin(2 atan x)
    cy, dy = c.LCY * c.PCY1, muy * fz
    By = Ky / (cy * dy)
    svy = fz * c.LMUY * (c.LVY * (c.PVY1 + df * c.PVY2) + gy * (c.PVY3 + df * c.PVY4))
    fy0 = dy * np.sin(cy * curve(By, ay, ey)) + svy
    # combined
    bxa = c.LXAL * c.RBX1 / np.hypot(1.0, c.RBX2 * kappa)  # cos(atan x)
    exa = c.REX1 + df * c.REX2
    fx = fx0 * np.cos(c.RCX1 * curve(bxa, alpha + c.RHX1, exa)) / np.cos(c.RCX1 * curve(bxa, c.RHX1, exa))
    byk = c.LYKA * c.RBY1 / np.hypot(1.0, c.RBY2 * (alpha - c.RBY3))
    eyk, shk = c.REY1 + df * c.REY2, c.RHY1 + df * c.RHY2
    fyp = fy0 * np.cos(c.RCY1 * curve(byk, kappa + shk, eyk)) / np.cos(c.RCY1 * curve(byk, shk, eyk))
    dvy = muy * fz * (c.RVY1 + df * c.RVY2 + c.RVY3 * gamma) / np.hypot(1.0, c.RVY4 * alpha)
    fy = fyp + c.LVYKA * dvy * np.sin(c.RVY5 * arc(c.RVY6 * kappa))
    # moments

    def equal(a: float) -> float:
        return arc(np.hypot(np.tan(a), Kx * kappa / Ky)) * sgn(a)

    at = alpha + c.QHZ1 + df * c.QHZ2 + gz * (c.QHZ3 + df * c.QHZ4)
    bt = np.polyval([c.QBZ3, c.QBZ2, c.QBZ1], df) * (1.0 + c.QBZ4 * gz + c.QBZ5 * abs(gz)) * c.LKY / c.LMUY
    dt = c.LTR * fz / fz0 * r0 * (c.QDZ1 + df * c.QDZ2) * (1.0 + c.QDZ3 * gz + c.QDZ4 * gz**2)
    et = np.polyval([c.QEZ3, c.QEZ2, c.QEZ1], df)
    et = min(1.0, et * (1.0 + (c.QEZ4 + c.QEZ5 * gz) * 2.0 / np.pi * arc(bt * c.QCZ1 * at)))
    trail = dt * np.cos(c.QCZ1 * curve(bt, equal(at), et)) * np.cos(alpha)
    br = c.QBZ9 * c.LKY / c.LMUY + c.QBZ10 * By * cy
    dr = fz * r0 * c.LMUY * (c.LRES * (c.QDZ6 + df * c.QDZ7) + gz * (c.QDZ8 + df * c.QDZ9))
    mzr = dr * np.cos(alpha) / np.hypot(1.0, br * equal(alpha + shy + svy / Ky))
    s = c.LS * r0 * (c.SSZ1 + c.SSZ2 * fy / fz0 + gamma * (c.SSZ3 + df * c.SSZ4))
    mx = fz * r0 * (c.LVMX * c.QSX1 + c.LMX * (c.QSX3 * fy / fz0 - c.QSX2 * gamma))
    return np.array([fx, fy, mx, -trail * fyp + mzr + s * fx])


def test_agrees_with_a_second_writing_of_the_formula() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        tyre = random_tyre(rng)
        for fz, kappa, alpha, gamma, mu in zip(*states(rng, 20), strict=True):
            fx, fy, mz = combined_forces(tyre.packed, fz, kappa, alpha, gamma, mu)
            mx = overturning_moment(tyre.packed, fz, fy, gamma)
            expected = by_the_book(tyre, fz, kappa, alpha, gamma, mu)
            assert np.allclose([fx, fy, mx, mz], expected, rtol=1e-10, atol=1e-7)


@pytest.mark.parametrize(
    ("fz", "c_alpha", "c_kappa", "radius", "sigma_kappa", "sigma_alpha"),
    [(2937.0, 55.5e3, 55.4e3, 0.338, 0.50, 0.41), (3823.0, 65.6e3, 72.1e3, 0.337, 0.64, 0.50)],
)
def test_check_values_of_the_buggy(
    fz: float, c_alpha: float, c_kappa: float, radius: float, sigma_kappa: float, sigma_alpha: float
) -> None:
    """The linear tyre, radii and relaxation lengths computed for this tyre elsewhere, at loads known to 1 %."""
    assert slip_stiffness(P, fz, 0.0) == pytest.approx((c_kappa, c_alpha), rel=0.005)
    assert effective_radius(P, fz / BUGGY.VERTICAL_STIFFNESS) == pytest.approx(radius, abs=6e-4)
    assert relaxation_lengths(P, fz, 0.0) == pytest.approx((sigma_kappa, sigma_alpha), rel=0.02)


def test_slopes_at_zero_are_the_slip_stiffnesses_whatever_the_road() -> None:
    h = 1e-6
    for fz in (500.0, 2937.0, 8000.0):
        c_kappa, c_alpha = slip_stiffness(P, fz, 0.0)
        for mu in (0.3, 0.8, 1.0):
            fx = [pure_longitudinal(P, fz, k, 0.0, mu) for k in (-h, h)]
            fy = [pure_lateral(P, fz, a, 0.0, mu) for a in (-h, h)]
            assert (fx[1] - fx[0]) / (2.0 * h) == pytest.approx(c_kappa, rel=1e-6)
            assert (fy[1] - fy[0]) / (2.0 * h) == pytest.approx(-c_alpha, rel=1e-6)
            assert linear_tyre(c_kappa, c_alpha, h, h) == pytest.approx((fx[1], fy[1]), rel=1e-6)


@pytest.mark.parametrize("mu", [0.4, 1.0])
def test_peaks_are_d_and_the_tails_are_d_sin_c_quarter_turn(mu: float) -> None:
    fz = 3000.0
    df = fz / 4000.0 - 1.0
    slip = np.linspace(0.0, 3.0, 30001)  # dense enough that a parabola's top is met to 1e-6
    fx, _, _ = forces(BUGGY, fz, slip, 0.0, 0.0, mu)
    _, fy, _ = forces(BUGGY, fz, 0.0, slip, 0.0, mu)
    dx, dy = mu * fz * (1.1387 - 0.12 * df), mu * fz * (1.0141 - 0.1227 * df)
    assert fx.max() == pytest.approx(dx, rel=1e-6)
    assert fy.min() == pytest.approx(-dy, rel=1e-6)
    far = 1e6
    assert pure_longitudinal(P, fz, far, 0.0, mu) == pytest.approx(dx * math.sin(1.839 * math.pi / 2.0), rel=1e-4)
    assert pure_lateral(P, fz, far, 0.0, mu) == pytest.approx(-dy * math.sin(1.3223 * math.pi / 2.0), rel=1e-4)


def test_pure_slip_is_the_edge_of_combined_slip_and_combined_slip_is_weaker() -> None:
    rng = np.random.default_rng(4)
    fz, kappa, alpha, _, mu = states(rng, 500)
    fx, fy, _ = forces(BUGGY, fz, kappa, alpha, 0.0, mu)
    alone_x = np.array([pure_longitudinal(P, f, k, 0.0, m) for f, k, m in zip(fz, kappa, mu, strict=True)])
    alone_y = np.array([pure_lateral(P, f, a, 0.0, m) for f, a, m in zip(fz, alpha, mu, strict=True)])
    assert np.allclose(forces(BUGGY, fz, kappa, 0.0, 0.0, mu)[0], alone_x, rtol=1e-12)
    assert np.allclose(forces(BUGGY, fz, 0.0, alpha, 0.0, mu)[1], alone_y, rtol=1e-12)
    assert (np.abs(fx) <= np.abs(alone_x) * (1.0 + 1e-12)).all()
    assert (np.abs(fy) <= np.abs(alone_y) * (1.0 + 1e-12)).all()
    df = fz / 4000.0 - 1.0
    used = np.hypot(fx / (mu * fz * (1.1387 - 0.12 * df)), fy / (mu * fz * (1.0141 - 0.1227 * df)))
    assert used[mu >= 0.8].max() < 1.25  # weighting functions do not keep to the ellipse, less so on a slippery road
    assert used.max() < math.sqrt(2.0)


def test_the_tyre_resists_and_aligns_and_mirrors() -> None:
    tyre = dataclasses.replace(BUGGY, QBZ1=9.0, QCZ1=1.2, QDZ1=0.1, PVY3=-0.3)
    fx, fy, mz = combined_forces(tyre.packed, 4000.0, 0.03, 0.04, 0.0, 1.0)
    assert fx > 0.0 and fy < 0.0 and mz > 0.0  # drives; contact moving left is pushed right and turned left
    assert combined_forces(tyre.packed, 4000.0, 0.0, 0.04, 0.0, 1.0, -1.0)[2] < 0.0  # backwards the trail is ahead
    assert combined_forces(tyre.packed, 4000.0, 0.0, 0.0, 0.1, 1.0)[1] < 0.0  # leaning right pushes right
    rng = np.random.default_rng(5)
    lopsided = random_tyre(rng)
    state = states(rng, 50)
    seen = forces(lopsided, *state)
    turned = forces(mirrored(lopsided), state[0], state[1], -state[2], -state[3], state[4])
    assert np.allclose(turned, [seen[0], -seen[1], -seen[2]], rtol=1e-12, atol=1e-9)
    assert mirrored(mirrored(lopsided)) == lopsided
    left = overturning_moment(lopsided.packed, 4000.0, 900.0, 0.05)
    assert overturning_moment(mirrored(lopsided).packed, 4000.0, -900.0, -0.05) == pytest.approx(-left, rel=1e-12)


def test_coefficients_in_the_axes_of_the_book_give_the_same_tyre() -> None:
    rng = np.random.default_rng(6)
    tyre = random_tyre(rng)
    turned = re.compile("PKY1|PVY[1-4]|RVY[1-3]|QSX3|QBZ9|QDZ[6-9]|SSZ[134]")
    book = {name: -value if turned.fullmatch(name) else value for name, value in tyre.values.items()}
    assert from_adapted_sae(book) == tyre
    for fz, kappa, alpha, gamma, mu in zip(*states(rng, 20), strict=True):
        adapted = by_the_book(_unchecked(book), fz, kappa, alpha, gamma, mu)  # the book's own equations and axes
        fx, fy, mz = combined_forces(tyre.packed, fz, kappa, alpha, gamma, mu)
        mx = overturning_moment(tyre.packed, fz, fy, gamma)
        assert np.allclose([fx, -fy, mx, -mz], adapted, rtol=1e-10, atol=1e-7)
    with pytest.raises(ModelError, match="PKY9"):
        from_adapted_sae({"PKY9": 1.0})


def _unchecked(values: Mapping[str, float]) -> SimpleNamespace:
    return SimpleNamespace(values=dict(values))


def test_forces_are_continuous_through_zero_slip_and_to_no_load() -> None:
    rng = np.random.default_rng(7)
    for _ in range(5):
        tyre = random_tyre(rng)
        bound = 3.0 * max(slip_stiffness(tyre.packed, 4000.0, 0.0))
        slip = np.linspace(-1e-4, 1e-4, 201)
        for fx, fy, mz in (forces(tyre, 4000.0, slip, 0.0), forces(tyre, 4000.0, 0.0, slip)):
            step = slip[1] - slip[0]
            assert max(np.abs(np.diff(f)).max() for f in (fx, fy)) < bound * step
            assert np.abs(np.diff(mz)).max() < bound * step
        load = np.geomspace(1.0, 1e-12, 40)
        assert np.all(np.abs(forces(tyre, load, 0.2, 0.1, 0.05)) < 2.0 * load)


@pytest.mark.parametrize("tyre", [BUGGY, random_tyre(np.random.default_rng(8))])
def test_extremes_are_finite(tyre: TyreParameters) -> None:
    for fz in (-1.0, 0.0, 1e-300, 4000.0, 1e6):
        for slip in (0.0, -1.0, 1e3):
            for mu in (0.0, 1e-9, 1.0):
                found = combined_forces(tyre.packed, fz, slip, slip, 0.2, mu)
                assert np.isfinite(found).all()
                if fz <= 0.0:
                    assert found == (0.0, 0.0, 0.0)
    assert slip_stiffness(tyre.packed, 0.0, 0.0) == (0.0, 0.0)
    assert pure_longitudinal(tyre.packed, 0.0, 0.1, 0.0, 1.0) == pure_lateral(tyre.packed, 0.0, 0.1, 0.0, 1.0) == 0.0


def test_what_is_no_number_stays_none() -> None:
    """A simulation that has gone astray must not be made to look sound."""
    good = (4000.0, 0.1, 0.1, 0.0, 1.0)
    for i in range(5):
        state = [math.nan if k == i else value for k, value in enumerate(good)]
        assert np.isnan(combined_forces(P, *state)).all()
    assert math.isnan(vertical_force(P, math.nan, 0.0)) and math.isnan(vertical_force(P, 0.01, math.nan))
    assert np.isnan(slip_rates(P, 4000.0, 0.0, math.nan, 0.0, 0.0, 0.0, 0.0)).all()


def test_outside_the_measured_ranges_the_limit_holds() -> None:
    limits = {"FZMIN": 1000.0, "FZMAX": 6000.0, "KPUMIN": -0.3, "KPUMAX": 0.3, "ALPMIN": -0.2, "ALPMAX": 0.2}
    tyre = dataclasses.replace(BUGGY, **limits, CAMMIN=-0.1, CAMMAX=0.1, PVY3=-0.3, QDZ1=0.1, QBZ1=9.0, QCZ1=1.2)
    assert forces(tyre, 4000.0, 0.9, 0.9, 0.9) == forces(tyre, 4000.0, 0.3, 0.2, 0.1)
    for low, high in ((500.0, 1000.0), (9000.0, 6000.0)):  # the ratio to the load stays
        outside, edge = np.array(forces(tyre, low, 0.1, 0.1)), np.array(forces(tyre, high, 0.1, 0.1))
        assert np.allclose(outside / low, edge / high, rtol=1e-12)
        assert slip_stiffness(tyre.packed, low, 0.0)[0] / low == pytest.approx(
            slip_stiffness(tyre.packed, high, 0.0)[0] / high
        )


def test_arrays_broadcast_and_other_compiled_code_may_call() -> None:
    fx, fy, mz = forces(BUGGY, np.array([1000.0, 4000.0])[:, None], 0.05, np.linspace(-0.1, 0.1, 5))
    assert fx.shape == fy.shape == mz.shape == (2, 5)
    assert fy[1, 0] == combined_forces(P, 4000.0, 0.05, -0.1, 0.0, 1.0)[1]

    @compiled
    def total(p: NDArray[np.float64], n: int) -> float:
        found = 0.0
        for i in range(n):
            fx, fy, mz = combined_forces(p, 1000.0 * i, 0.05, 0.1, 0.0, 1.0)
            found += fx + fy + mz
        return found

    expected = sum(sum(combined_forces(P, 1000.0 * i, 0.05, 0.1, 0.0, 1.0)) for i in range(4))
    assert total(P, 4) == pytest.approx(expected, rel=1e-14)


def test_packed_places_are_the_names() -> None:
    assert [getattr(tyre_parameters, name) for name in NAMES] == list(range(len(NAMES)))
    assert P[tyre_parameters.PKX3] == 0.215 and P.dtype == np.float64 and P.shape == (len(NAMES),)


def test_a_tyre_that_cannot_be_is_refused_with_all_its_faults() -> None:
    with pytest.raises(ModelError) as caught:
        TyreParameters()
    named = {fault.where.split()[-1] for fault in caught.value.faults}
    assert named == set(ESSENTIAL) - {"LONGVL", "LFZO"}
    with pytest.raises(ModelError, match="adapted SAE"):
        dataclasses.replace(BUGGY, PKY1=19.8)
    with pytest.raises(ModelError) as caught:
        dataclasses.replace(BUGGY, PDX2=math.nan, VERTICAL_DAMPING=-1.0, FZMIN=10.0, FZMAX=5.0, KPUMAX=0.0, PKX1=-2.0)
    text = str(caught.value)
    assert (
        all(name in text for name in ("PDX2", "VERTICAL_DAMPING", "FZMIN, FZMAX", "KPUMIN, KPUMAX", "PKX1"))
        and "5 faults" in text
    )


def test_the_road_presses_and_never_pulls() -> None:
    assert vertical_force(P, 0.04, 0.1) == pytest.approx(82.7e3 * 0.04 + 50.0)
    assert vertical_force(P, 0.001, -5.0) == 0.0  # leaving faster than the tyre follows
    assert vertical_force(P, 0.0, 3.0) == vertical_force(P, -0.01, 3.0) == 0.0
    assert effective_radius(P, -0.01) == effective_radius(P, 0.0) == BUGGY.UNLOADED_RADIUS
    assert (np.diff([effective_radius(P, d) for d in np.linspace(0.0, 0.06, 50)]) < 0.0).all()


def test_rolling_resistance() -> None:
    assert rolling_moment(P, 3000.0, 0.0, 20.0, 60.0) == pytest.approx(-0.015 * 3000.0 * 0.3683)
    assert rolling_moment(P, 3000.0, 0.0, -20.0, -60.0) == pytest.approx(0.015 * 3000.0 * 0.3683)
    assert rolling_moment(P, 3000.0, 0.0, 0.0, 0.0) == rolling_moment(P, -5.0, 0.0, 20.0, 60.0) == 0.0
    faster = dataclasses.replace(BUGGY, QSY2=0.1, QSY3=0.002, QSY4=0.001, LONGVL=10.0).packed
    share = 0.015 + 0.1 * 500.0 / 4000.0 + 0.002 * 2.0 + 0.001 * 16.0
    assert rolling_moment(faster, 3000.0, 500.0, 20.0, 60.0) == pytest.approx(-share * 3000.0 * 0.3683)


def test_lagging_slip_follows_its_closed_form_over_the_distance_rolled() -> None:
    """After a step of slip at constant speed the rest is exp(−x/σ); steps of 5 mm by the midpoint rule are exact to 1e-5."""
    fz, vx, dt = 3823.0, 20.0, 2.5e-4
    kappa = tan_alpha = 0.0
    steady = steady_slip(vx, 1.0, 20.4)
    assert steady == pytest.approx((0.02, 0.05))
    for _ in range(200):
        half = slip_rates(P, fz, 0.0, vx, 1.0, 20.4, kappa, tan_alpha)
        rate = slip_rates(P, fz, 0.0, vx, 1.0, 20.4, kappa + 0.5 * dt * half[0], tan_alpha + 0.5 * dt * half[1])
        kappa, tan_alpha = kappa + dt * rate[0], tan_alpha + dt * rate[1]
    rolled = 200 * dt * vx
    for value, target, sigma in zip((kappa, tan_alpha), steady, relaxation_lengths(P, fz, 0.0), strict=True):
        assert value == pytest.approx(target * (1.0 - math.exp(-rolled / sigma)), rel=1e-4)


def test_relaxation_lengths_of_all_coefficients() -> None:
    tyre = dataclasses.replace(BUGGY, PTX2=0.4, PTX3=0.3, PKY3=0.5, LFZO=1.1, LSGKP=1.2, LSGAL=0.9, LGAY=0.8)
    df = 3000.0 / 4400.0 - 1.0
    along = 3000.0 * (1.85 + 0.4 * df) * math.exp(-0.3 * df) * 0.3683 / 4000.0 * 1.2
    across = 1.9 * math.sin(2.0 * math.atan(3000.0 / (2.25 * 4400.0))) * (1.0 - 0.5 * 0.08) * 0.3683 * 1.1 * 0.9
    assert relaxation_lengths(tyre.packed, 3000.0, -0.1) == pytest.approx((along, across), rel=1e-12)
    without = dataclasses.replace(BUGGY, PTX1=0.0, PTY1=0.0, PTY2=0.0)
    assert relaxation_lengths(without.packed, 3000.0, 0.0) == (RELAXATION_FLOOR, RELAXATION_FLOOR)
    assert relaxation_lengths(P, 0.0, 0.0) == (RELAXATION_FLOOR, RELAXATION_FLOOR)


def test_standstill_is_finite_and_comes_to_rest() -> None:
    """A wheel pushed sideways at rest swings on its tyre and settles as exp(−t·1 m/s/(2σ)), here by e^−8."""
    assert steady_slip(0.0, 0.0, 0.0) == (0.0, 0.0)
    assert steady_slip(0.0, 0.3, 0.5) == (0.5, 0.3)
    assert steady_slip(-10.0, 0.0, -9.0) == (0.1, 0.0)  # rolling back, too slow a wheel is pushed forward
    mass, vy, tan_alpha, dt = 400.0, 0.5, 0.0, 1e-3
    for _ in range(8000):
        _, fy, _ = combined_forces(P, 3823.0, 0.0, math.atan(tan_alpha), 0.0, 0.8)
        vy += dt * fy / mass
        tan_alpha += dt * slip_rates(P, 3823.0, 0.0, 0.0, vy, 0.0, 0.0, tan_alpha)[1]
        assert math.isfinite(vy) and abs(tan_alpha) < 0.6
    assert abs(vy) < 1e-3
