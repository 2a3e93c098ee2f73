"""``veridyn simulate``: a machine simulated as a study file says, with a log to identify or observe it by."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veridyn.cli.reading import Strict
from veridyn.cli.recording import Recorded, loaded_study, recorded_study

if TYPE_CHECKING:
    from veridyn.progress import Progress
    from veridyn.studies.result import Result
    from veridyn.studies.run.folder import Run


def simulate(
    study: Annotated[Path, typer.Argument(help="A study file of kind simulate (YAML).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder that gets the new run folder, in place of the study's.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the study with every default, and stop.")] = False,
    strict: Strict = False,
) -> None:
    """Simulate a machine: the log that its sensors record, and the truth beside it.

    Writes log.csv (one table for each clock of a tree's sensors), truth.csv, identify.yaml or observe.yaml (a study file that reads the
    log), result.json, parameters.csv (what is true), report.html and the study with its defaults into a new folder and prints where. Exit
    codes: 0 done, 1 a limit of the study file is missed, 2 bad input.

    \b
    Example:
      veridyn simulate arm-simulate.yaml --out runs
    """
    from veridyn.cli.shown import print_verdict
    from veridyn.report.simulated import simulated_page, verdict_of
    from veridyn.studies.run.simulate import simulate_study
    from veridyn.studies.run.simulation.records import keep_simulation

    loaded = loaded_study(study, "simulate", strict=strict)

    def work(_: Run, progress: Progress) -> Recorded:
        done = simulate_study(loaded, progress)

        def show_result(result: Result) -> None:
            print_verdict(verdict_of(done), result)
            typer.echo("\n" + done.summary() + "\n")

        result = done.result(loaded.study.name, loaded.study.seed)
        keep = partial(keep_simulation, loaded, done.machine, done.log, done.truth)
        return Recorded(result, partial(simulated_page, done), show_result, keep, tuple(done.missed))

    recorded_study(study, out, loaded, work, show)
