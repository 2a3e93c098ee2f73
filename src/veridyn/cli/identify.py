"""``veridyn identify``: a study file run, from model and logs to a folder with result, report and identified model."""

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


def identify(
    study: Annotated[Path, typer.Argument(help="A study file of kind identify (YAML).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder that gets the new run folder, in place of the study's.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="What ${VERIDYN_DATA} stands for in the paths of the study.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the study with every default, and stop.")] = False,
    strict: Strict = False,
) -> None:
    """Identify the parameters of a machine from logs, as a study file says, and validate them on data not used for the fit.

    Writes result.json, parameters.csv, report.html, the study with its defaults, the versions used and the identified model into a new
    folder and prints where; reduced.csv and friction.csv where the study reduces the model or tries friction. With a section payload or
    fleet a load is weighed, or many machines of one model are compared (machines.csv, fleet.json). Exit codes: 0 done, 1 a limit of the
    study file is missed, 2 bad input.

    \b
    Example:
      veridyn new robot.urdf run.csv --out robot-study.yaml
      veridyn identify robot-study.yaml --out runs
    """
    from veridyn.cli.car import identify_work, is_car
    from veridyn.cli.fleet import fleet_work, is_fleet
    from veridyn.cli.payload import is_payload, payload_work
    from veridyn.cli.shown import print_study
    from veridyn.errors import IdentificationWarning, warn
    from veridyn.files.archive import save
    from veridyn.report.page import identification_page
    from veridyn.report.reduced import reduced_line, reduced_table
    from veridyn.report.study import study_sections
    from veridyn.studies.run.export import export
    from veridyn.studies.run.identify import run_identify

    loaded = loaded_study(
        study, "identify", {} if data is None else {"VERIDYN_DATA": str(data.resolve())}, strict=strict
    )
    settings = loaded.study
    if is_car(loaded):
        recorded_study(study, out, loaded, partial(identify_work, loaded), show)
        return
    if is_payload(loaded):
        recorded_study(study, out, loaded, partial(payload_work, loaded), show)
        return

    if is_fleet(loaded):
        recorded_study(study, out, loaded, partial(fleet_work, loaded), show)
        return

    def work(run: Run, progress: Progress) -> Recorded:
        done = run_identify(loaded, progress)
        if settings.output.model:
            written = export(
                run, done.study.fit, done.model_file, settings.output.infeasible == "write", settings.model.lock
            )
            for fault in written.refused:
                warn(IdentificationWarning, fault)

        def keep(run: Run) -> None:
            save(done.study.fit, run.folder / "fit.json")
            if done.cutoff is not None:
                run.write_text("cutoffs.csv", done.cutoff.table())
            if done.study.essential.steps:
                run.write_text("reduced.csv", reduced_table(done.study))
            if done.ladder is not None:
                run.write_text("friction.csv", done.ladder.table())

        def show_result(result: Result) -> None:
            print_study(done.study, result)
            if done.cutoff is not None:
                typer.echo(done.cutoff.summary() + "\n")
            if done.ladder is not None:
                typer.echo(done.ladder.summary() + "\n")
            if done.study.essential.steps:
                typer.echo(reduced_line(done.study) + "\n")

        return Recorded(
            done.result(settings.name, settings.seed, ()),
            lambda result, command: identification_page(
                done.study, result, command, study_sections(done), model=done.model_file
            ),
            show_result,
            keep,
            tuple(done.missed),
        )

    recorded_study(study, out, loaded, work, show)
