"""What the commands print of a study, in tables and lines as wide as the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from veridyn.cli.output import console, plain_table
from veridyn.report.blocks import Verdict
from veridyn.report.verdict import SIMULATION_HEAD, simulation_lines, verdict
from veridyn.report.words import number, percent, unit_text, units_in
from veridyn.studies.identification import IdentificationStudy
from veridyn.studies.result import Result

if TYPE_CHECKING:
    from veridyn.studies.run.estimation import IdentifyRun


def print_identified(run: IdentifyRun, result: Result) -> None:
    """The verdict, the figures, and the rows or parameters of an identification of any machine; then what was tried on the way."""
    from veridyn.report.insight import reduced_line
    from veridyn.report.study import identified_verdict

    if run.drive is not None:
        print_verdict(identified_verdict(run), result)
        typer.echo(f"\n{run.machine.name}:\n{units_in(run.drive.summary())}\n")
        return
    print_study(run.study, result)
    if run.cutoff is not None:
        typer.echo(run.cutoff.summary() + "\n")
    if run.ladder is not None:
        typer.echo(units_in(run.ladder.summary()) + "\n")
    if run.study.essential.steps:
        typer.echo(reduced_line(run.study) + "\n")


def print_study(study: IdentificationStudy, result: Result) -> None:
    """The verdict, the figures and the rows of an identification."""
    out = console()
    print_verdict(verdict(study), result)
    own = {r.row: r for r in study.own.rows}
    rows = [
        (
            r.row if r.judged else f"{r.row} (not judged)",
            percent(100.0 * r.std_error),
            percent(100.0 * own[r.row].std_error),
            percent(100.0 * r.relative_error),
            number(r.rms, 3),
            number(r.measured_std, 3),
            number(r.measured_rms, 4),
            unit_text(r.unit),
        )
        for r in study.check.rows
    ]
    head = (
        "row",
        "% of std, validation",
        "training",
        "% of rms, validation",
        "rms error",
        "std",
        "measured rms",
        "unit",
    )
    if study.by_simulation and not study.not_simulated:
        out.print()
        out.print(plain_table(SIMULATION_HEAD, simulation_lines(study)))
    out.print()
    out.print(plain_table(head, rows))
    if not all(r.judged for r in study.check.rows):
        out.print("Rows that vary by less than three times their noise are listed and not judged.", highlight=False)
    out.print()


def print_verdict(verdict: Verdict, result: Result) -> None:
    """The verdict and the figures of any study."""
    out = console()
    if result.quick:
        out.print("This was a quick run.", highlight=False)
    out.print(verdict.headline, style="bold", highlight=False)
    for sentence in verdict.findings:
        out.print(sentence, highlight=False, soft_wrap=not out.is_terminal)
    out.print()
    out.print(plain_table(("figure", "value"), [(k, number(v, 6)) for k, v in result.figures.items()]))


def print_warnings(texts: Iterable[str]) -> None:
    """On stderr, one after the other, with units as in the report."""
    for text in texts:
        typer.echo(f"warning: {units_in(text)}", err=True)
