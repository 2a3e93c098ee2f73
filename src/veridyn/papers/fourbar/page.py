"""The page of the four-bar linkage: that of any observation study, and what the thesis' correction (58) costs as it is printed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.observe.filters.methods import ErrorEKF
from veridyn.observe.observation import Observation
from veridyn.observe.observe import observe_with
from veridyn.report.blocks import Block, Section, Table, Text
from veridyn.report.observer import observation_page
from veridyn.report.words import number
from veridyn.studies.observation import ObservationStudy
from veridyn.studies.result import Result

SHOWN_SAMPLES = 400  # of the first log: 2 s, in which the errors of the start are corrected


@dataclass(frozen=True, eq=False)
class PrintedCorrection:
    """The errorEKF with its corrections closed and as printed: largest |Φ| after each correction (N,), and errors of coordinates (N, n)."""

    open_closed: Array
    open_printed: Array
    error_closed: Array
    error_printed: Array


def printed_correction(study: ObservationStudy) -> PrintedCorrection:
    """The first samples of the study's first log, by the thesis' errorEKF with both corrections."""
    score = study.scores["error_ekf"]
    assert score.example.made_by is not None
    readings = score.example.made_by.readings.between(0, SHOWN_SAMPLES)
    closed, printed = (
        observe_with(replace(score.setup, method=ErrorEKF(gate=None, correction=how)), study.machine, readings)
        for how in ("closed", "velocity")
    )
    true = study.truth.q[:SHOWN_SAMPLES]
    return PrintedCorrection(_opening(closed), _opening(printed), closed.q - true, printed.q - true)


def _opening(found: Observation) -> Array:
    """The largest constraint error (N,) of positions."""
    return found.constraint_errors()[:, 0]


def fourbar_page(study: ObservationStudy, result: Result, command: str) -> str:
    """The whole page."""
    lead = (
        f"The errorEKF on the first {SHOWN_SAMPLES} samples of the first log. Equation 58 corrects dependent coordinates by the velocity "
        "problem alone; here positions are solved first."
    )
    section = Section("Correction as printed (58)", _printed_blocks(study), lead)
    return observation_page(study, result, command, "Observers on a four-bar linkage", more=[section])


def _printed_blocks(study: ObservationStudy) -> list[Block]:
    found = printed_correction(study)
    rows = [
        ("largest constraint error, m²", *(number(float(x.max()), 3) for x in (found.open_closed, found.open_printed)))
    ]
    for label in study.labels:
        k = study.column(label)
        worst = (np.abs(error[:, k]).max() for error in (found.error_closed, found.error_printed))
        rows.append(
            (f"largest error of {label}, {'rad' if label == 'phi' else 'm'}", *(number(float(x), 3) for x in worst))
        )
    last = float(np.median(found.open_printed[-SHOWN_SAMPLES // 4 :]))
    said = (
        "Once the start is forgotten corrections are small: as printed they leave constraints open by "
        f"{number(last, 2)} m² (median of the last quarter)."
    )
    return [Table(("", "positions solved", "as printed"), rows), Text(said)]
