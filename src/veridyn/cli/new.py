"""``veridyn new``: a first study file from a model and a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def new(
    model: Annotated[Path, typer.Argument(help="A model file (YAML) or a URDF.", show_default=False)],
    log: Annotated[
        list[Path], typer.Argument(help="A log, or the files that one log is spread over.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The study file to write; one that exists is left alone.")] = Path(
        "study.yaml"
    ),
) -> None:
    """Write a commented study file from a model and a log: columns matched to joints by name, guesses marked as guesses.

    \b
    Example:
      veridyn new robot.urdf run.csv --out robot-study.yaml
      veridyn identify robot-study.yaml
    """
    from veridyn.cli.bar import shown_progress
    from veridyn.cli.shown import print_warnings
    from veridyn.files.atomic import refuse_to_replace, write_atomic
    from veridyn.files.native import load_model
    from veridyn.studies.result import collected_warnings
    from veridyn.studies.template import template

    refuse_to_replace(out, False)
    warned: list[str] = []
    with collected_warnings(warned), shown_progress() as progress:
        progress("looking at the log", 0.0, None)
        text = template(model, load_model(model), log, out)
    print_warnings(warned)
    guessed = sum("guessed" in line for line in text.splitlines()[1:])
    typer.echo(f"{write_atomic(out, text.encode())} ({guessed} guesses to look at)")
