"""Machines that the calibration's demonstrations draw: true parameters from the standard deviations of a drawing, physically consistent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.estimators.prior import Prior, prior_moments
from veridyn.machines.arm import arm, perturb_inertias
from veridyn.mechanics.natural.description.to_machine import machine_of_points
from veridyn.model.machine import Machine
from veridyn.model.point_parts import uniform_bar
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.forces import Suspension
from veridyn.papers.fourbar import fourbar
from veridyn.papers.hexapod.machine import FRICTION, TRUTH
from veridyn.papers.humanoid.machine import cad
from veridyn.spatial.inertia import broken_law

Array = NDArray[np.float64]
MASS, INERTIA = 0.05, 0.05  # of the value
CENTRE = np.array([0.03, 0.01, 0.02])  # m, of the chassis
RATES, CURVES = 0.1, 0.3  # of stiffness, damping and bars; of their bends and of dry friction
LINKS = 0.12  # of the sizes of a humanoid's inertial parameters: how far it is from its drawing
LEGS, DRIVES = 0.05, 0.2  # of the inertia and of the friction of a hexapod
BAR = 0.1  # of the mass of a four-bar linkage's coupler


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


def drawn_arm(rng: np.random.Generator) -> Machine:
    """The arm with bodies and friction that are each heavier or lighter by a tenth."""
    return perturb_inertias(
        arm(), rng, 0.1 * np.sqrt(3.0)
    )  # an even distribution of that half-width has a deviation of a tenth


def drawn_humanoid(rng: np.random.Generator) -> Machine:
    """A humanoid whose links differ from the drawing by LINKS of the sizes of a prior.

    A link is drawn again until a body can have it and one that differs as much to the other side, so that the drawing is the mean of all
    that are drawn: it says where they are in the middle. Bodies alone would not be, since a slender one can differ to one side only.
    """
    model = cad()
    mean, sigma = (x.reshape(-1, 10) for x in prior_moments(model, Prior(relative=LINKS)))
    links = []
    for m, s in zip(mean, sigma, strict=True):
        apart = s * rng.standard_normal(10)
        while broken_law(m + apart) is not None or broken_law(m - apart) is not None:
            apart = s * rng.standard_normal(10)
        links.append(m + apart)
    return model.with_parameters(np.concatenate(links))


def drawn_hexapod(rng: np.random.Generator) -> dict[str, float]:
    """Values of a hexapod with the names of ``hexapod.TRUTH``: moments and masses of each body scaled alike, friction of each joint."""
    out = dict(TRUTH)
    for part in ("1", "2", "3", "_E"):
        own = [n for n in TRUTH if n.endswith(part) and n not in FRICTION]
        factor = 1.0 + LEGS * float(rng.standard_normal())
        out |= {n: TRUTH[n] * factor for n in own}
    return out | {n: TRUTH[n] * (1.0 + DRIVES * float(rng.standard_normal())) for n in FRICTION}


def drawn_fourbar(rng: np.random.Generator) -> Machine:
    """The linkage with a coupler of another mass."""
    true = fourbar()
    rod = uniform_bar("rod", "1", "2", 8.0, 8.0 * (1.0 + BAR * float(rng.standard_normal())))  # m, kg as in the file
    laid_out = true.description
    assert laid_out is not None  # its file describes it by points
    return machine_of_points(
        laid_out.points,
        [rod if b.name == "rod" else b for b in laid_out.bodies],
        name=true.name,
        added=laid_out.added,
        loads=true.loads,
        sensors=true.sensors,
        gravity=true.gravity[:2].tolist(),
    )
