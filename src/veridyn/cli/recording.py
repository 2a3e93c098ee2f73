"""What a command leaves behind: the one way from work to a run folder, for demonstrations and for studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from veridyn.progress import Progress
    from veridyn.studies.config.study import Loaded
    from veridyn.studies.result import Result, Run

MISSED = 1


@dataclass(frozen=True)
class Recorded:
    """What work hands over to be kept: its result, its page made of (result, command), and what it prints.

    `keep` writes what else the run folder gets. `missed`: sentences about limits that are not kept; with any, the exit code is 1.
    """

    result: Result
    page: Callable[[Result, str], str]
    show: Callable[[Result], None]
    keep: Callable[[Run], object] = lambda run: None
    missed: tuple[str, ...] = ()


def recorded(out: Path, name: str, command: str, work: Callable[[Run, Progress], Recorded]) -> None:
    """Do `work` with a progress bar, keep what came of it in a new run folder with its warnings, print it, and say where the report is."""
    from veridyn.cli.output import Stages, mode, print_json, print_warnings, shown_progress
    from veridyn.studies.result import collected_warnings, new_run

    run = new_run(out, name, whole=True)
    warned: list[str] = []
    try:
        with collected_warnings(warned), shown_progress() as progress:
            stages = Stages(progress)
            done = work(run, stages)
        result = replace(done.result, warnings=(*done.result.warnings, *warned))
        undrawn: list[str] = []
        try:
            with collected_warnings(undrawn):
                page = done.page(result, command)
        except BaseException as error:  # the work is done, and is kept whatever becomes of its page
            note = f"report.html is not written: it could not be made ({type(error).__name__}: {_first_line(error)})."
            _keep(run, done, replace(result, warnings=(*result.warnings, *undrawn, note)))
            typer.echo(f"{note} The results are complete, in {run.finish()}.", err=True)
            raise
        result = replace(result, warnings=(*result.warnings, *undrawn))
        _keep(run, done, result)
        run.write_text("report.html", page)
        report = run.finish() / "report.html"
    except BaseException:
        run.discard()
        print_warnings(warned)
        raise
    if mode() == "json":
        code = MISSED if done.missed else 0
        print_json({**result.as_dict(), "missed": done.missed, "report": str(report), "exit_code": code})
    else:
        if mode() != "quiet":
            done.show(result)
        print_warnings(result.warnings)
        for sentence in done.missed:
            typer.echo(f"missed: {sentence}", err=True)
        if mode() == "verbose":
            typer.echo("\n".join(stages.lines()), err=True)
        typer.echo(str(report))
    if done.missed:
        raise typer.Exit(MISSED)


def _keep(run: Run, done: Recorded, result: Result) -> None:
    """Write what came of the work, all but its page."""
    done.keep(run)
    run.write_result(result)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "no reason given")


def loaded_study(
    study: Path, kind: str, variables: Mapping[str, str] | None = None, strict: bool = False
) -> Loaded[Any]:
    """The study file of a command, read; what the reader warns of is printed. `strict` refuses inertias that no body can have."""
    from veridyn.cli.output import print_warnings
    from veridyn.studies.config.study import load_study
    from veridyn.studies.result import collected_warnings

    with collected_warnings() as warned:
        loaded = load_study(study, kind, variables)
    print_warnings(warned)
    settings = loaded.study
    if strict and settings.model is not None:
        model = settings.model.model_copy(update={"impossible": "refuse"})
        loaded = replace(loaded, study=settings.model_copy(update={"model": model}))
    return loaded


def recorded_study(
    study: Path,
    out: Path | None,
    loaded: Loaded[Any],
    work: Callable[[Run, Progress], Recorded],
    show: bool,
    options: str = "",
) -> None:
    """:func:`recorded` for a study file, which goes into the run folder with its defaults and the versions used.

    With `show` it is printed instead, and nothing is done. `options`: what else the command was given, for the report.
    """
    from veridyn.studies.config.text import study_text
    from veridyn.studies.result import versions

    settings = loaded.study
    if show:
        typer.echo(study_text(settings, comments=True), nl=False)
        return

    def with_settings(run: Run, progress: Progress) -> Recorded:
        done = work(run, progress)

        def keep(run: Run) -> None:
            done.keep(run)
            run.write_text("study.yaml", study_text(settings))
            run.write_json("versions.json", versions())

        return replace(done, keep=keep)

    folder = study.parent / settings.out if out is None else out
    if out is None and not folder.resolve().is_relative_to(study.parent.resolve()):
        typer.echo(
            f"note: 'out: {settings.out}' of {study.name} leaves the folder of the study: {folder.resolve()}", err=True
        )
    recorded(folder, settings.name, f"veridyn {settings.kind} {study.name}{options}", with_settings)
