"""What a fit by output error is judged by: its simulation of data that it was not fitted to, coordinate by coordinate."""

from __future__ import annotations

from veridyn.report.blocks import Block, Section, Table, Text
from veridyn.report.words import number, percent, unit_text
from veridyn.studies.identification import IdentificationStudy

HEAD = ("coordinate", "unit", "% of std, validation", "training", "% of rms, validation", "rms error", "std")


def simulation_lines(study: IdentificationStudy) -> list[tuple[str, ...]]:
    """A line for each coordinate that is compared: its errors on the validation data, and on the training data beside."""
    own = {r.row: r for r in study.judging_own.rows}
    return [
        (
            r.row,
            unit_text(r.unit),
            percent(100.0 * r.std_error),
            percent(100.0 * own[r.row].std_error),
            percent(100.0 * r.relative_error),
            number(r.rms, 3),
            number(r.measured_std, 3),
        )
        for r in study.judging.rows
    ]


def simulation_section(study: IdentificationStudy) -> list[Section]:
    """The section of a report; none where the fit was not made by simulation."""
    settings = study.fit.replay_settings
    if settings is None:
        return []
    compared = "coordinates" if settings.law is None else "forces of the closed loop"
    lead = (
        f"The fit compares {compared} with a simulation, and is judged by one: {settings.words}, each from the measured state. "
        "The forces below are those of inverse dynamics, which it does not use."
    )
    failed: list[Block] = [Text(f"The validation data cannot be simulated: {study.not_simulated}.")]
    blocks = failed if study.not_simulated else [Table(HEAD, simulation_lines(study), left=(1,), strong=(2,))]
    return [Section("Simulation of the validation data", blocks, lead)]
