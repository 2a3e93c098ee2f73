"""Questions that find mistakes; the same mistakes through the public door stand in tests/cli/test_damaged.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studies.bench_evidence import bench_evidence, permuted
from studies.bench_robot import robot
from studies.closed_bench import MACHINES
from studies.closed_bench import moved as moved_loop
from veridyn.identify.diagnosis.alternatives import best_factor, find_mistakes, omitted
from veridyn.identify.diagnosis.evidence import evidence
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.tree.elsewhere import ends_of, moved


def test_good_data_raise_no_suspicion() -> None:
    assert find_mistakes(bench_evidence()) == ()
    assert find_mistakes(replace(bench_evidence(), rows=())) == ()


def turned(k: int) -> np.ndarray:
    T = np.eye(3)
    T[k, k] = -1.0
    return T


@pytest.mark.parametrize(
    ("kind", "where", "change"),
    [
        ("positions swapped", "positions of 'q1' and 'q2'", lambda e: e.with_coordinates(permuted(0, 1))),
        ("forces swapped", "forces of 'q2' and 'q3'", lambda e: e.with_forces(permuted(1, 2))),
        ("joints swapped", "coordinates 'q1' and 'q3'", lambda e: e.with_joints(permuted(0, 2))),
        ("position turned round", "position of 'q1'", lambda e: e.with_coordinates(turned(0))),
        ("force turned round", "force of 'q3'", lambda e: e.with_forces(turned(2))),
        ("angle unit", "position of 'q3'", lambda e: e.with_coordinates(np.diag([1.0, 1.0, 180.0 / np.pi]))),
        ("angle unit", "positions of all", lambda e: e.with_coordinates(np.eye(3) * np.pi / 180.0)),
        ("force scale", "force of 'q1'", lambda e: e.with_forces(np.diag([0.02, 1.0, 1.0]))),
    ],
)
def test_a_mistake_is_named(kind: str, where: str, change) -> None:
    e = bench_evidence()
    found = find_mistakes(replace(e, motion=change(e)))
    assert kind in [s.kind for s in found]
    assert any(s.fault.where.startswith(where) for s in found), [str(s) for s in found]


@pytest.mark.parametrize("factor", [0.01, 0.2, 50.0])
def test_the_factor_of_a_force_is_found_beside_the_others(factor: float) -> None:
    e = bench_evidence()
    changed = replace(e, motion=e.with_forces(np.diag([1.0, factor, 1.0])))
    assert best_factor(changed, 1) == pytest.approx(1.0 / factor, rel=0.1)


def test_progress_is_told() -> None:
    e, told = bench_evidence(), []
    find_mistakes(
        replace(e, motion=e.with_forces(turned(1))), progress=lambda task, done, total: told.append((task, done, total))
    )
    assert told[0][0] == "looking for mistakes" and told[-1][1] == told[-1][2]


def test_a_wrong_length_is_named_and_else_a_contradiction() -> None:
    e = bench_evidence()
    wrong = replace(e, machine=moved(robot(), ends_of(robot())[2], 0, -0.2))
    assert [(s.kind, s.fault.where) for s in find_mistakes(wrong, 2.5)] == [("geometry", "body '3'")]
    assert [s.kind for s in find_mistakes(e, 1.4)] == ["rows contradict"]  # nothing that is tried explains it
    assert find_mistakes(e, 1.2) == ()


def test_a_good_fit_is_not_asked_further() -> None:
    said = omitted(bench_evidence(), 1.0, delays=True, speeds=True, streamed=False)
    assert len(said) == 1 and "these are checked where more than 2 %" in said[0]
    said = omitted(bench_evidence(), 1.0, delays=False, speeds=False, streamed=True)
    assert [word in text for word, text in zip(("Delays", "Speeds", "first block"), said[1:], strict=True)] == [
        True
    ] * 3


def test_readings_out_of_reach_are_listed() -> None:
    machine = MACHINES["palletizer"]()
    e = evidence(machine, [moved_loop("palletizer", 1)], machine.actuated_coordinates, Sampling())
    wrong = replace(e, motion=e.with_forces(np.eye(machine.n)[[0, 3, 2, 1, 4]]))
    (said,) = omitted(wrong, 1.0, delays=True, speeds=True, streamed=False)
    assert "no way to close the loops was found" in said and "positions of 'q2' and 'q4' (positions swapped)" in said
    assert "forces of" not in said  # forces can always be read otherwise


def test_no_forces_no_questions() -> None:
    e = replace(bench_evidence(), rows=())
    assert omitted(e, 1.0, True, True, False) == ("Everything that needs measured forces: no row measures any.",)
