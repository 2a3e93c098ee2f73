"""The part of an angle's force across its axis: against the moment of the row itself, and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.natural_mechanisms import unit
from veridyn.mechanics.natural.couple import across_of, owner_of
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.mechanics.natural.system import system_of
from veridyn.model.names import GROUND
from veridyn.model.place import Marker
from veridyn.model.point_parts import Angle, Point, RigidBody, UnitVector


def arm(of) -> Mechanism:
    """One body that turns about z on the ground, with an angle of a direction of it."""
    return Mechanism.build(
        [Point("O", (0, 0, 0), True), Point("P", (0.6, 0.2, 0.5))],
        [
            RigidBody(
                "arm",
                {"O": (0, 0, 0), "P": (0.6, 0.2, 0.5)},
                {"z": (0, 0, 1), "n": (0, 1, 0)},
                1.0,
                (0.3, 0.1, 0.2),
                np.diag([0.1, 0.1, 0.1]),
            )
        ],
        vectors=[UnitVector("z", (0, 0, 1), True), UnitVector("n", (0, 1, 0))],
        added=[Angle("phi", of, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))],
    )


def test_it_is_the_moment_of_the_row_less_that_about_the_axis() -> None:
    system, rng = system_of(arm(("O", "P"))), np.random.default_rng(0)
    (part,) = across_of(system, "arm", GROUND, system.geometry.elements["z"])
    q, lam = system.guess, rng.normal(size=system.constraints.m)
    d, phi = q[:3], q[part.place]
    n = np.array([np.sin(phi), -np.cos(phi), 0.0])  # ∂Φ/∂d
    whole = np.cross(d, -lam[part.row] * n)
    moment, by_q, by_lam = part.at(q, lam)
    assert moment == pytest.approx([*whole[:2], 0.0], abs=1e-12)
    assert by_lam * lam[part.row] == pytest.approx(moment)
    for _ in range(3):
        off, h = unit(rng, system.n), 1e-6
        change = (part.at(q + h * off, lam)[0] - part.at(q - h * off, lam)[0]) / (2.0 * h)
        assert by_q @ off == pytest.approx(change, abs=1e-8)
    (back,) = across_of(system, GROUND, "arm", system.geometry.elements["z"])
    assert back.at(q, lam)[0] == pytest.approx(-moment)


def test_a_direction_across_the_axis_has_none_and_other_axes_do_not_count() -> None:
    system = system_of(arm("n"))
    (part,) = across_of(system, "arm", GROUND, system.geometry.elements["z"])
    assert part.at(system.guess, np.ones(system.constraints.m))[0] == pytest.approx(np.zeros(3), abs=1e-15)
    assert across_of(system, "arm", GROUND, system.geometry.elements["n"]) == ()
    assert across_of(system, "arm", "other", system.geometry.elements["z"]) == ()


def test_whose_a_place_or_direction_is() -> None:
    m = arm("n")
    assert owner_of(m, Marker("arm", (0, 0, 0))) == "arm" and owner_of(m, ("O", "P")) == "arm"
    assert owner_of(m, "z") == GROUND and owner_of(m, "O") == GROUND and owner_of(m, (1.0, 0.0, 0.0)) == GROUND
    loose = replace(m, points=(*m.points, Point("Q", (1, 1, 1))))
    assert owner_of(loose, ("P", "Q")) is None
