"""The Magic Formula of four tyres at once against the package's own, which shares no line with it: random tyres at random slips."""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.ground import tyre
from veridyn.mechanics.ground.tyre_parameters import NAMES, RANGES, mirrored
from veridyn.papers.car.simulator.description import passenger_tyre
from veridyn.papers.car.simulator.lanes import four, put_four
from veridyn.papers.car.simulator.magic_formula import (
    combined_forces,
    effective_radius,
    overturning_moment,
    relaxation_lengths,
    rolling_moment,
    vertical_force,
)


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
