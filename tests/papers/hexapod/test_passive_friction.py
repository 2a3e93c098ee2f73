"""Which friction of passive joints a log bears: Table I where it is true, each axis its own where they differ, viscous where it pays."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.papers.hexapod.machine import CENTRE
from veridyn.papers.hexapod.passive_friction import (
    AXES,
    DRIVES,
    DRY,
    TABLE_I,
    VISCOUS,
    chosen_friction,
    own_friction,
    rivals,
)
from veridyn.papers.hexapod.trials import FREQUENCY, HARMONICS, ROOM
from veridyn.signals.trajectory import FourierTrajectory, JointLimits

FEW = 2  # periods


@pytest.fixture(scope="module")
def motion() -> FourierTrajectory:
    """Not designed: a random series within the box of the designs."""
    fast = np.full(6, 1.0)
    limits = JointLimits(CENTRE - ROOM, CENTRE + ROOM, fast, 10.0 * fast)
    return FourierTrajectory.random(np.random.default_rng(3), limits, harmonics=HARMONICS, frequency=FREQUENCY)


def test_rivals_differ_by_their_passive_joints_alone() -> None:
    counts = {name: len(machine.parameters.select("estimated")) for name, machine in rivals().items()}
    first = counts[DRIVES]
    assert counts == {DRIVES: first, TABLE_I: first + 2, DRY: first + 12, VISCOUS: first + 24}


def test_table_i_is_chosen_where_it_is_true(motion: FourierTrajectory) -> None:
    """The truth is the machine written by hand, which has Table I's friction; twelve viscous ones are more than the motion bears."""
    found = chosen_friction(motion, np.random.default_rng(0), FEW)
    print(found.summary())
    assert found.chosen == TABLE_I
    drives, table, dry, viscous = found.rivals
    assert [one.parameters for one in found.rivals] == [22, 24, 34, 46]
    assert table.predicts and table.borne and dry.borne and not dry.predicts
    assert not viscous.borne and not viscous.predicts and viscous.price > 2.0 and drives.price == 1.0


def test_each_axis_has_its_own_where_they_differ(motion: FourierTrajectory) -> None:
    """Every axis .3 N m more or less than Table I has."""
    more = own_friction(motion, {axis: 0.3 * (-1.0) ** k for k, axis in enumerate(AXES[:6])}, {})
    assert chosen_friction(motion, np.random.default_rng(1), FEW, more).chosen == DRY


@pytest.mark.slow
def test_viscous_friction_that_is_there_is_reported_and_not_chosen(motion: FourierTrajectory) -> None:
    """4 N m s on every first axis: the large model predicts better, and is named as one that this motion does not bear."""
    more = own_friction(motion, {}, dict.fromkeys(AXES[::2], 4.0))
    found = chosen_friction(motion, np.random.default_rng(2), FEW, more)
    print(found.summary())
    last = found.rivals[-1]
    assert last.name == VISCOUS and last.predicts and not last.borne and found.chosen != VISCOUS
    assert "does not bear it" in found.summary()


@pytest.mark.slow
def test_viscous_friction_that_pays_for_its_condition_is_chosen(motion: FourierTrajectory) -> None:
    more = own_friction(motion, {}, dict.fromkeys(AXES, 8.0))
    assert chosen_friction(motion, np.random.default_rng(3), FEW, more).chosen == VISCOUS
