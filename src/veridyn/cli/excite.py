"""``veridyn excite``: a motion designed as a study file says, with the table a controller runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MISSED = 1


def excite(
    study: Annotated[Path, typer.Argument(help="A study file of kind excite (YAML).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder that gets the new run folder, in place of the study's.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the study with every default, and stop.")] = False,
) -> None:
    """Design the motion that tells the most about a machine's parameters, inside all its limits.

    Writes trajectory.csv (what a controller runs), result.json, parameters.csv (what deviation each parameter is promised), report.html
    and the study with its defaults into a new folder and prints where. Exit codes: 0 done, 1 a deviation is larger than the study file
    accepts, 2 bad input.

    \b
    Example:
      veridyn excite robot-excite.yaml --out runs
    """
    from veridyn.cli.bar import shown_progress
    from veridyn.cli.shown import print_verdict, print_warnings
    from veridyn.report.excitation import excitation_page, judged
    from veridyn.studies.config import load_study
    from veridyn.studies.config_text import study_text
    from veridyn.studies.excitation import excitation
    from veridyn.studies.result import collected_warnings
    from veridyn.studies.run import new_run
    from veridyn.studies.versions import versions

    loaded = load_study(study, "excite")
    if show:
        typer.echo(study_text(loaded.study, comments=True), nl=False)
        return
    settings = loaded.study
    run = new_run(study.parent / settings.out if out is None else out, settings.name)
    warned: list[str] = []
    try:
        with collected_warnings(warned), shown_progress() as progress:
            done = excitation(loaded, progress)
        result = done.result(settings.name, settings.seed, tuple(warned))
        page = excitation_page(done, result, f"veridyn excite {study.name}")
        run.write_text("trajectory.csv", done.table())
        run.write_text("study.yaml", study_text(settings))
        run.write_json("versions.json", versions())
        run.write_result(result)
        report = run.write_text("report.html", page)
    except BaseException:
        run.discard_if_empty()
        print_warnings(warned)
        raise
    print_verdict(judged(done), result)
    typer.echo(done.plan.summary() + "\n")
    print_warnings(warned)
    for sentence in done.missed:
        typer.echo(f"missed: {sentence}", err=True)
    typer.echo(str(report))
    if done.missed:
        raise typer.Exit(MISSED)
