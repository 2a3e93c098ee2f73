"""Other transmissions: what they make of coordinates and forces, by virtual work, and that damage to a coupled wrist is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studies import wrist_log
from studies.bench_evidence import bench_evidence
from veridyn.identify.diagnosis.alternatives import find_mistakes
from veridyn.identify.diagnosis.evidence import Evidence
from veridyn.identify.diagnosis.gearing import MISSING, SIGN, other_gearings
from veridyn.model.transmission import Transmission

MATRIX = np.array([[1 / 60, 0.0, 0.0], [-1 / 60, 1 / 48, 0.0], [0.0, -1 / 48, 1 / 40]])


def test_a_change_is_that_of_the_matrices() -> None:
    """Of every question S T is a matrix that differs from T in what it names: one entry, one column, or couplings that were zero."""
    machine = wrist_log.truth()
    assert machine.transmission is not None
    asked = list(other_gearings(machine, machine.coordinates))
    for g in asked:
        other = g.change @ MATRIX
        changed = np.argwhere(~np.isclose(other, MATRIX, rtol=1e-9, atol=1e-15))
        if g.kind == SIGN:
            assert np.allclose([other[i, j] for i, j in changed], [-MATRIX[i, j] for i, j in changed])
            assert len({j for _, j in changed.tolist()}) == 1
        else:
            assert g.kind == MISSING
            assert all(MATRIX[i, j] == 0.0 and abs(other[i, j]) == pytest.approx(MATRIX[j, j]) for i, j in changed)
    assert any("motor 'm2'" in g.where and "joint" not in g.where for g in asked)


def damaged(e: Evidence, right: np.ndarray, wrong: np.ndarray) -> Evidence:
    """The same motors read with the wrong matrix: q = T q_m and Γ = T⁻ᵀ Γ_m with each."""
    S = wrong @ np.linalg.inv(right)
    moved, forced = e.with_coordinates(S), e.with_forces(np.linalg.inv(S).T)
    assert moved is not None
    return replace(e, motion=replace(moved, forces=forced.forces))


def test_a_missing_coupling_of_a_machine_without_a_transmission() -> None:
    """Joint 3 turns along with joint 2, and the model knows of no motors: the log of both is as motors have it."""
    e = bench_evidence()
    right = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
    found = find_mistakes(damaged(e, right, np.eye(3)))
    assert MISSING in [m.kind for m in found]
    assert any("joint 'q3'" in m.fault.where for m in found), [str(m) for m in found]


@pytest.mark.parametrize(
    ("entry", "value", "kind", "where"),
    [
        ((1, 0), 0.0, MISSING, "transmission, joint 'q3'"),
        ((1, 1), -1 / 48, SIGN, "transmission, joint 'q3', motor 'm2'"),
    ],
)
def test_a_wrong_entry_of_a_transmission(entry: tuple[int, int], value: float, kind: str, where: str) -> None:
    """The last two joints of the bench robot as a coupled wrist, read with one entry wrong."""
    right = np.array([[1 / 60, 0.0], [-1 / 60, 1 / 48]])
    wrong = right.copy()
    wrong[entry] = value
    e = bench_evidence()
    whole = [np.eye(3), np.eye(3)]
    for T, small in zip(whole, (right, wrong), strict=True):
        T[1:, 1:] = small
    machine = replace(e.machine, transmission=Transmission(("m1", "m2"), ("q2", "q3"), wrong))
    found = find_mistakes(replace(damaged(e, *whole), machine=machine))
    assert (kind, where) in [(m.kind, m.fault.where) for m in found], [str(m) for m in found]


def test_a_right_transmission_raises_nothing() -> None:
    e = bench_evidence()
    machine = replace(
        e.machine, transmission=Transmission(("m1", "m2"), ("q2", "q3"), np.array([[0.1, 0.0], [-0.1, 0.2]]))
    )
    assert find_mistakes(replace(e, machine=machine)) == ()
