"""``veridyn identify``: a study file run, from model and logs to a folder with result, report and identified model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MISSED = 1


def identify(
    study: Annotated[Path, typer.Argument(help="A study file of kind identify (YAML).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder that gets the new run folder, in place of the study's.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="What ${VERIDYN_DATA} stands for in the paths of the study.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the study with every default, and stop.")] = False,
) -> None:
    """Identify the parameters of a machine from logs, as a study file says, and judge them on data they have not seen.

    Writes result.json, parameters.csv, report.html, the study with its defaults, the versions used and the identified model into a new
    folder and prints where. Exit codes: 0 done, 1 a limit of the study file is missed, 2 bad input.

    \b
    Example:
      veridyn new robot.urdf run.csv --out robot-study.yaml
      veridyn identify robot-study.yaml --out runs
    """
    from veridyn.cli.bar import shown_progress
    from veridyn.cli.shown import print_study, print_warnings
    from veridyn.files.archive import save
    from veridyn.report.page import identification_page
    from veridyn.report.study import study_sections
    from veridyn.studies.config import load_study
    from veridyn.studies.config_text import study_text
    from veridyn.studies.export import export
    from veridyn.studies.identify_run import run_identify
    from veridyn.studies.result import collected_warnings
    from veridyn.studies.run import new_run
    from veridyn.studies.versions import versions

    loaded = load_study(study, "identify", {} if data is None else {"VERIDYN_DATA": str(data.resolve())})
    if show:
        typer.echo(study_text(loaded.study, comments=True), nl=False)
        return
    settings = loaded.study
    run = new_run(study.parent / settings.out if out is None else out, settings.name)
    warned: list[str] = []
    try:
        with collected_warnings(warned), shown_progress() as progress:
            done = run_identify(loaded, progress)
            written = (
                export(run, done.study.fit, done.model_file, settings.output.infeasible == "write")
                if (settings.output.model)
                else None
            )
        warned += [str(fault) for fault in (() if written is None else written.refused)]
        result = done.result(settings.name, settings.seed, tuple(warned))
        command = f"veridyn identify {study.name}"
        page = identification_page(done.study, result, command, study_sections(done))
        run.write_text("study.yaml", study_text(settings))
        run.write_json("versions.json", versions())
        if done.cutoff is not None:
            run.write_text("cutoffs.csv", done.cutoff.table())
        save(done.study.fit, run.folder / "fit.json")
        run.write_result(result)
        report = run.write_text("report.html", page)
    except BaseException:
        run.discard_if_empty()
        print_warnings(warned)
        raise
    print_study(done.study, result)
    if done.cutoff is not None:
        typer.echo(done.cutoff.summary() + "\n")
    print_warnings(warned)
    for sentence in done.missed:
        typer.echo(f"missed: {sentence}", err=True)
    typer.echo(str(report))
    if done.missed:
        raise typer.Exit(MISSED)
