"""``veridyn observe``: a machine observed as a study file says, from a log of its sensors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veridyn.cli.recording import Recorded, loaded_study, recorded_study

if TYPE_CHECKING:
    from veridyn.progress import Progress
    from veridyn.studies.result import Result
    from veridyn.studies.run.folder import Run


def observe(
    study: Annotated[Path, typer.Argument(help="A study file of kind observe (YAML).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder that gets the new run folder, in place of the study's.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="What ${VERIDYN_DATA} stands for in the paths of the study.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the study with every default, and stop.")] = False,
) -> None:
    """Estimate the states of a machine from a log of its sensors, with virtual sensors.

    Writes states.csv (estimates with deviations, virtual sensors with bands), result.json, parameters.csv (the states at the end),
    report.html and the study with its defaults into a new folder and prints where. Exit codes: 0 done, 1 a limit of the study file is
    missed, 2 bad input.

    \b
    Example:
      veridyn observe crane.yaml --out runs
    """
    from veridyn.cli.car import is_car, observe_work
    from veridyn.cli.shown import print_verdict
    from veridyn.report.observed import observed_page, verdict_of
    from veridyn.studies.run.observe import observe_study

    loaded = loaded_study(study, "observe", {} if data is None else {"VERIDYN_DATA": str(data.resolve())})
    if is_car(loaded):
        recorded_study(study, out, loaded, partial(observe_work, loaded), show)
        return

    def work(_: Run, progress: Progress) -> Recorded:
        done = observe_study(loaded, progress)

        def show_result(result: Result) -> None:
            print_verdict(verdict_of(done), result)
            typer.echo("\n" + done.summary() + "\n")

        result = done.result(loaded.study.name, loaded.study.seed)
        return Recorded(
            result,
            partial(observed_page, done),
            show_result,
            lambda run: run.write_text("states.csv", done.table()),
            tuple(done.missed),
        )

    recorded_study(study, out, loaded, work, show)
