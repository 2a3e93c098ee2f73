"""Drives of a leg of the benchmark's quadruped, simulated by MuJoCo: its numbers lie within their deviations of the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.drives import Number, Outcome, agreement, lines, outcome, summary
from tests.identify.drives.demo_leg import recorded_leg

import veridyn as vd


@pytest.fixture(scope="module")
def leg() -> Outcome:
    return outcome(3, "coulomb", 6.0, ("FL",))


def test_numbers_lie_within_their_deviations(leg: Outcome) -> None:
    """Of some 15 numbers 2.5 % are beyond 2σ by chance: three or more have a probability below 3 %."""
    assert not leg.failed and leg.named
    known = [n for n in leg.numbers if n.determined]
    assert len(known) >= 12
    assert sum(n.sigmas > 2.0 for n in known) <= 2 and max(n.sigmas for n in known) < 4.0
    (late,) = [n for n in leg.numbers if n.key == "command_delay"]
    assert abs(late.value - late.truth) < 2e-4
    assert {n.key for n in leg.numbers if not n.determined} <= {"kd", "viscous", "zero"}


def test_shares_are_counted_over_what_is_determined() -> None:
    numbers = tuple(Number("x", "kp", x, 1.0, 0.0, abs(x) < 9.0) for x in (0.5, 1.5, 2.5, 10.0))
    late = Number("d", "command_delay", 0.003, 1.0, 0.0, True)
    found = [Outcome(1, "coulomb", (*numbers, late), (), True, 2.0), Outcome(3, "coulomb", (), (), True, 4.0, "away")]
    s = summary("coulomb", found)
    assert (s.determined, s.undetermined, s.failed, s.cpu_seconds) == (4, 1, 1, 3.0)
    assert (s.within_two_sigma, s.within_sigma, s.delay_rms) == (0.75, 0.5, pytest.approx(0.003))
    assert np.isclose(s.far, 0.0) and "seed 3: away" in lines(found)


@pytest.fixture(scope="module")
def leg_fit() -> vd.estimators.DrivesFit:
    made = recorded_leg()
    fit = vd.identify(made.model, made.training, vd.estimators.Drives(until=made.fitted, friction="coulomb"))
    assert isinstance(fit, vd.estimators.DrivesFit)
    return fit


def test_two_fits_agree_where_they_differ_by_their_deviations(leg_fit: vd.estimators.DrivesFit) -> None:
    same = agreement(leg_fit, leg_fit)
    assert same.share == 1.0 and same.compared == len(leg_fit.determined) and not same.apart
    first = next(d for d in leg_fit.drives if d.determined)
    moved = replace(first, value=first.value + 3.0 * np.sqrt(2.0) * first.sigma)
    other = replace(leg_fit, drives=tuple(moved if d is first else d for d in leg_fit.drives))
    found = agreement(leg_fit, other)
    assert found.apart == (f"{first.name} (3.0)",) and found.share == pytest.approx(1.0 - 1.0 / same.compared)
    assert found.left == same.left
