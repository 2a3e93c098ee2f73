"""What must not change base parameters: names, orders, axes, worlds, scales, formulations; by closed rules, by rank, on a motion."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import veridyn as vd
from metamorphic.comparing import check_base, standard_map
from metamorphic.machines import arm, recorded
from metamorphic.relations import ALL, Back, Relation, joints_reordered, named, rebuilt
from veridyn.identify.base import BaseParameters

# Of the combinations, in typical sizes. By the closed rules they are sums of products; by rank, what singular vectors leave of rounding at
# gaps of 1e12 and more between singular values.
BY_RULES, BY_RANK = 1e-12, 1e-9
SAME = Back()
BRANCHED: dict[str, Relation] = {
    **ALL,
    "joints reordered": joints_reordered,
    "bodies swapped": named(b2="3", b3="2", q2="q3", q3="q2"),
}


@cache
def bare(count: int) -> vd.Machine:
    """Without elements, so that the closed rules apply."""
    return rebuilt(arm(count), elements=())


def on_motion(machine: vd.Machine, log: vd.Experiment) -> BaseParameters:
    return vd.base_parameters(machine, vd.motion(machine, log))


@cache
def first(way: str) -> BaseParameters:
    if way == "rules":
        return vd.base_parameters(bare(3))
    return vd.base_parameters(arm(3)) if way == "rank" else on_motion(arm(3), recorded(3))


@pytest.mark.parametrize("name", BRANCHED)
def test_by_the_closed_rules(name: str) -> None:
    machine, _, back = BRANCHED[name](bare(3), recorded(3))
    check_base(first("rules"), vd.base_parameters(machine), back, BY_RULES)


@pytest.mark.parametrize("name", BRANCHED)
def test_by_rank(name: str) -> None:
    machine, _, back = BRANCHED[name](arm(3), recorded(3))
    check_base(first("rank"), vd.base_parameters(machine), back, BY_RANK)


@pytest.mark.parametrize("name", BRANCHED)
def test_on_a_motion(name: str) -> None:
    machine, log, back = BRANCHED[name](arm(3), recorded(3))
    check_base(first("motion"), on_motion(machine, log), back, BY_RANK)


@pytest.mark.parametrize("name", ALL)
def test_values_of_the_groups(name: str) -> None:
    """χ of the machine's own values does not depend on the description beyond dimension and sign."""
    machine, _, back = ALL[name](bare(3), recorded(3))
    base = vd.base_parameters(machine)
    T = standard_map(first("rules"), base, back)
    assert np.allclose(T @ bare(3).parameters.values, machine.parameters.values, rtol=1e-12, atol=1e-15)
    assert np.allclose(base.reduce(machine.parameters.values), base.matrix @ T @ bare(3).parameters.values, atol=1e-12)


@pytest.mark.parametrize("rows", ["joints", ["q2"], ["q3", "q1"]])
def test_the_order_of_rows(rows: str | list[str]) -> None:
    """Rows in another order are the same equations."""
    plain = vd.base_parameters(arm(3), rows=rows)
    other = vd.base_parameters(arm(3), rows=rows[::-1] if isinstance(rows, list) else rows)
    check_base(plain, other, SAME, BY_RANK)


def test_a_motion_in_parts() -> None:
    motion = vd.motion(arm(3), recorded(3))
    parts = [motion[:200], motion[200:]]
    check_base(vd.base_parameters(arm(3), motion), vd.base_parameters(arm(3), parts), SAME, BY_RANK)
    check_base(vd.base_parameters(arm(3), motion), vd.base_parameters(arm(3), parts[::-1]), SAME, BY_RANK)


def test_a_motion_shows_no_more_than_any_motion() -> None:
    """One that excites everything shows the combinations of generic states."""
    check_base(first("rank"), first("motion"), SAME, 1e-6)


@pytest.mark.parametrize("way", ["rules", "rank"])
def test_both_formulations(way: str) -> None:
    machine = rebuilt(bare(3) if way == "rules" else arm(3), formulation="natural")
    check_base(first(way), vd.base_parameters(machine), SAME, BY_RULES)


def test_the_world_without_turned_gravity_is_another() -> None:
    """That the comparison is able to fail: an arm whose first axis stands upright loses what gravity shows of the first body."""
    upright = rebuilt(bare(3), gravity=9.81 * np.array(bare(3).joints[0].a.placement.rotation[:, 2]))
    assert vd.base_parameters(upright).count < first("rules").count
