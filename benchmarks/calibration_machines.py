"""Machines that the calibration's demonstrations draw: true parameters from the standard deviations of a drawing, physically consistent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.suspension import Suspension

Array = NDArray[np.float64]
MASS, INERTIA = 0.05, 0.05  # of the value
CENTRE = np.array([0.03, 0.01, 0.02])  # m, of the chassis
RATES, CURVES = 0.1, 0.3  # of stiffness, damping and bars; of their bends and of dry friction


def drawn_car(rng: np.random.Generator) -> Vehicle:
    """A car that differs from the default one in everything that a study of it estimates, and in the shape of every curve."""
    car = Vehicle()
    mass = car.chassis[9] * (1.0 + MASS * float(rng.standard_normal()))
    centre = np.array(car.chassis[6:9]) / car.chassis[9] + CENTRE * rng.standard_normal(3)
    J = car.about_centre() * (1.0 + INERTIA * float(rng.standard_normal()))
    J = J + np.diag(0.6 * INERTIA * np.diag(J) * rng.standard_normal(3))
    J = J + mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    ten = (J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2], *(mass * centre), mass)
    carriers = tuple(replace(c, mass=c.mass * (1.0 + 2.0 * MASS * float(rng.standard_normal()))) for c in car.carriers)
    suspension = _suspension(car.suspension, mass / car.chassis[9], rng)
    return replace(car, name="drawn", chassis=tuple(float(x) for x in ten), carriers=carriers, suspension=suspension)  # pyright: ignore[reportArgumentType]


def _suspension(old: Suspension, load: float, rng: np.random.Generator) -> Suspension:
    """Other springs, dampers and bars; offsets such that the car, `load` times as heavy, still stands near the design clearances."""

    def some(values: tuple[float, ...], share: float) -> tuple[float, ...]:
        return tuple(v * (1.0 + share * float(rng.standard_normal())) for v in values)

    stiffness = some(old.stiffness, RATES)
    carried = [o + k * z for o, k, z in zip(old.offset, old.stiffness, old.design, strict=True)]
    offset = tuple(load * f - k * z for f, k, z in zip(carried, stiffness, old.design, strict=True))
    return replace(
        old,
        stiffness=stiffness,
        offset=offset,
        damping=some(old.damping, RATES),
        bar=some(old.bar, RATES),
        friction=some(old.friction, CURVES),
        square=some(old.square, CURVES),
        cube=some(old.cube, CURVES),
        bar_cube=some(old.bar_cube, CURVES),
        rebound_share=some((old.rebound_share,), CURVES)[0],
        damper_knee=some((old.damper_knee,), RATES)[0],
    )  # pyright: ignore[reportArgumentType]
