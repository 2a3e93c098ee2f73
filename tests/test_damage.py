"""The score of damaged logs, on a few of them: ``python -m benchmarks.damage`` counts many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.damage.kinds import DAMAGES, Damage, forces, longer_links, positions
from benchmarks.damage.score import WEAKEST, damaged, moved, outcome, power, visible, weakest
from benchmarks.damage.simulated import simulated

import veridyn as vd

NAMED = {d.name: d for d in DAMAGES}


def test_every_kind_changes_the_log_or_the_machine() -> None:
    bench = simulated(1)
    assert len(DAMAGES) >= 20 and len(NAMED) == len(DAMAGES)
    for d in DAMAGES:
        x, machine = damaged(bench, d, 1.0 if d.sizes is None else d.sizes[1])
        changed = [k for k in x if not np.array_equal(x[k], bench.table[k])]
        assert changed or machine.joints != bench.machine.joints, d.name
    assert len(positions(bench.table)) == len(forces(bench.table)) == 4


def test_a_robot_of_another_size_has_every_distance_longer() -> None:
    machine = simulated(1).machine
    longer = longer_links(machine, 0.25)
    for one, other in zip(machine.joints, longer.joints, strict=True):
        a, b = machine.ends(one)[0].placement, longer.ends(other)[0].placement
        assert np.allclose(b.position, 1.25 * np.asarray(a.position))
        assert np.array_equal(b.rotation, a.rotation)


@pytest.mark.parametrize("name", ["force turned", "robot with other axes", "milliseconds"])
def test_gross_damage_is_named_or_warned_of(name: str) -> None:
    assert outcome(NAMED[name], 1.0, simulated(2), "fast").kind in ("named", "warned")


def test_the_weakest_damage_moves_a_parameter_by_five_deviations() -> None:
    """To the step of the bisection: seven halvings of the logarithm leave a factor of 1.08 of the sizes of a drift."""
    bench, d = simulated(3), NAMED["drift of a force"]
    size = weakest(d, bench)
    found = moved(bench.identified(*damaged(bench, d, size), "off"), bench, "off")
    assert WEAKEST < found < 1.2 * WEAKEST


def test_what_is_visible_is_what_a_test_sees_on_average() -> None:
    """δ_⊥ of an offset of one force, against least squares of the log without noise: its residual, in deviations of the noise."""

    def offset(x: dict[str, np.ndarray], size: float, _rng: np.random.Generator) -> None:
        x["force.q2"] += size

    bench, d = simulated(4), Damage("offset", offset, ())
    assert bench.quiet is not None
    quiet = replace(bench, table=bench.quiet)
    x, machine = damaged(quiet, d, 0.5)
    fit, _ = bench.fitted(bench.log(), bench.machine)
    noise = {r.row: r.sigma for r in fit.rows}
    motion = bench.fitted(x, machine)[1]
    weighted = vd.identify(
        machine, motion, settings=vd.IdentifySettings(sigma=noise, sampling=bench.sampling), diagnose="off"
    )
    rows = vd.validate(weighted, motion, settings=vd.IdentifySettings(sampling=bench.sampling)).rows
    left = np.sqrt(sum(r.samples * (r.rms / noise[r.row]) ** 2 for r in rows))
    assert visible(d, 0.5, bench, "fast") == pytest.approx(left, rel=0.1)


def test_fewer_shapes_are_found_more_often() -> None:
    assert power(3.0, 1) > power(3.0, 4) > power(3.0, 88)
    assert power(0.0, 4) == pytest.approx(0.01 / 4, rel=0.01)
