"""``veridyn observe``: a mechanism observed as a study file says, from a log of its sensors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MISSED = 1


def observe(
    study: Annotated[Path, typer.Argument(help="A study file of kind observe (YAML).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder that gets the new run folder, in place of the study's.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the study with every default, and stop.")] = False,
) -> None:
    """Estimate the states of a mechanism from a log of its sensors, and read sensors that nobody mounted.

    Writes states.csv (estimates with deviations, virtual sensors with bands), result.json, parameters.csv (the states at the end),
    report.html and the study with its defaults into a new folder and prints where. Exit codes: 0 done, 1 a limit of the study file is
    missed, 2 bad input.

    \b
    Example:
      veridyn observe crane.yaml --out runs
    """
    from veridyn.cli.bar import shown_progress
    from veridyn.cli.shown import print_verdict, print_warnings
    from veridyn.report.observed import judged, observed_page
    from veridyn.studies.config import load_study
    from veridyn.studies.config_text import study_text
    from veridyn.studies.observe_run import observe_study
    from veridyn.studies.result import collected_warnings
    from veridyn.studies.run import new_run
    from veridyn.studies.versions import versions

    loaded = load_study(study, "observe")
    if show:
        typer.echo(study_text(loaded.study, comments=True), nl=False)
        return
    settings = loaded.study
    run = new_run(study.parent / settings.out if out is None else out, settings.name)
    warned: list[str] = []
    try:
        with collected_warnings(warned), shown_progress() as progress:
            done = observe_study(loaded, progress)
        result = done.result(settings.name, settings.seed, tuple(warned))
        page = observed_page(done, result, f"veridyn observe {study.name}")
        run.write_text("states.csv", done.table())
        run.write_text("study.yaml", study_text(settings))
        run.write_json("versions.json", versions())
        run.write_result(result)
        report = run.write_text("report.html", page)
    except BaseException:
        run.discard_if_empty()
        print_warnings(warned)
        raise
    print_verdict(judged(done), result)
    typer.echo("\n" + done.summary() + "\n")
    print_warnings(result.warnings)
    for sentence in done.missed:
        typer.echo(f"missed: {sentence}", err=True)
    typer.echo(str(report))
    if done.missed:
        raise typer.Exit(MISSED)
