from dataclasses import replace

import numpy as np

from studies.bench_evidence import bench_evidence
from studies.closed_bench import MACHINES, moved
from veridyn.identify.diagnosis.evidence import evidence
from veridyn.identify.diagnosis.omitted import omitted
from veridyn.identify.sampling import Sampling


def test_a_good_fit_is_not_asked_further() -> None:
    said = omitted(bench_evidence(), 1.0, delays=True, speeds=True, streamed=False)
    assert len(said) == 1 and "these are checked where more than 2 %" in said[0]
    said = omitted(bench_evidence(), 1.0, delays=False, speeds=False, streamed=True)
    assert [word in text for word, text in zip(("Delays", "Speeds", "first block"), said[1:], strict=True)] == [
        True
    ] * 3


def test_readings_out_of_reach_are_listed() -> None:
    machine = MACHINES["palletizer"]()
    e = evidence(machine, [moved("palletizer", 1)], machine.actuated_coordinates, Sampling())
    wrong = replace(e, motion=e.with_forces(np.eye(machine.n)[[0, 3, 2, 1, 4]]))
    (said,) = omitted(wrong, 1.0, delays=True, speeds=True, streamed=False)
    assert "no way to close the loops was found" in said and "positions of 'q2' and 'q4' (positions swapped)" in said
    assert "forces of" not in said  # forces can always be read otherwise


def test_no_forces_no_questions() -> None:
    e = replace(bench_evidence(), rows=())
    assert omitted(e, 1.0, True, True, False) == ("Everything that needs measured forces: no row measures any.",)
