"""``veridyn excite``: a motion designed as a study file says, with the table a controller runs."""

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


def excite(
    study: Annotated[Path, typer.Argument(help="A study file of kind excite (YAML).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder that gets the new run folder, in place of the study's.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the study with every default, and stop.")] = False,
    strict: Strict = False,
) -> None:
    """Design the motion that identifies a machine's parameters best, within all its limits.

    Writes trajectory.csv (what a controller runs), joint_trajectory.yaml (the same as a ROS message), result.json, parameters.csv (what
    deviation each parameter is promised), report.html and the study with its defaults into a new folder and prints where. Exit codes:
    0 done, 1 a deviation is larger than the study file accepts, 2 bad input.

    \b
    Example:
      veridyn excite robot-excite.yaml --out runs
    """
    from veridyn.cli.shown import print_verdict
    from veridyn.report.excitation import excitation_page, verdict_of
    from veridyn.studies.run.excite import excitation

    loaded = loaded_study(study, "excite", strict=strict)

    def work(_: Run, progress: Progress) -> Recorded:
        done = excitation(loaded, progress)

        def show_result(result: Result) -> None:
            print_verdict(verdict_of(done), result)
            typer.echo(done.plan.summary() + "\n")

        def keep(run: Run) -> None:
            run.write_text("trajectory.csv", done.table())
            run.write_text("joint_trajectory.yaml", done.ros())

        result = done.result(loaded.study.name, loaded.study.seed)
        page = partial(excitation_page, done)
        return Recorded(result, page, show_result, keep, tuple(done.missed))

    recorded_study(study, out, loaded, work, show)
