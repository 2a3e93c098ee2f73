"""A check that fails becomes a note, and what others find stays."""

from dataclasses import replace

import numpy as np
import pytest

from studies.closed_bench import MACHINES, moved
from veridyn.identify.diagnosis.attempt import attempt
from veridyn.mechanics.regressor import regressor


def test_a_trial_that_fails_is_named_with_its_reason() -> None:
    machine, m = MACHINES["palletizer"](), moved("palletizer", 1)[:50]
    bent = replace(m, qdd=m.qdd + 0.1)  # passive joints do not follow
    failed: list[str] = []
    assert attempt("Swapped columns", lambda: [regressor(machine, bent)], failed) == []
    assert len(attempt("Delays", lambda: [regressor(machine, m)], failed)) == 1
    (note,) = failed
    assert note.startswith("Swapped columns, because a trial failed: palletizer, sample ")
    assert "the accelerations of this motion open its loops" in note and "loop 'elbow" in note


def test_a_decomposition_that_fails_is_named() -> None:
    failed: list[str] = []
    assert attempt("Delays", lambda: [np.linalg.inv(np.zeros((2, 2)))], failed) == []
    assert failed == ["Delays, because a decomposition failed: Singular matrix."]


def test_errors_of_the_program_itself_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        attempt("A slip", lambda: [1 // 0], [])
