"""``veridyn export``: a model, or what a run identified, as a file for a simulator."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from veridyn.cli.reading import BaseOption, BaseWord, Strict


class ExportFormat(StrEnum):
    """Formats that can be written."""

    mjcf = "mjcf"
    urdf = "urdf"
    yaml = "yaml"


def export(
    source: Annotated[
        Path,
        typer.Argument(
            help="A model file (YAML, URDF or MJCF), the folder of a run of veridyn identify, or its fit.json.",
            metavar="MODEL_OR_RUN",
            show_default=False,
        ),
    ],
    to: Annotated[ExportFormat, typer.Option(help="The format.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            help="The file; with --draws a folder for files, or a name that ends in .npz.", show_default=False
        ),
    ],
    draws: Annotated[
        int | None,
        typer.Option(
            min=1, help="Write so many machines drawn from the fit, each physically consistent.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write over files that exist.")] = False,
    base: BaseOption = BaseWord.auto,
    strict: Strict = False,
) -> None:
    """A machine as MJCF, URDF or a model file; what the format cannot hold is a warning, or refused where it would move otherwise.

    A URDF is written into a copy of the one that the machine came from, comments and order kept; of other machines it is a new one.

    \b
    Example:
      veridyn export robot.urdf --to mjcf --out robot.xml
      veridyn export runs/robot-001 --to mjcf --draws 100 --out machines
      veridyn export runs/robot-001 --to yaml --draws 1000 --seed 7 --out draws.npz
    """
    import numpy as np

    from veridyn.cli.output import mode, print_json
    from veridyn.studies.exporting import FORMATS, export_draws, export_machine, source_of

    given = source_of(source, base.value, strict)
    if draws is None:
        files = export_machine(given, FORMATS[to.value], out, force)
    else:
        files = export_draws(given, FORMATS[to.value], out, draws, np.random.default_rng(seed), force)
    if mode() == "json":
        content = {
            "format": to.value,
            "files": [str(f) for f in files],
            "draws": draws,
            "seed": seed if draws else None,
        }
        print_json({**content, "exit_code": 0})
    elif len(files) == 1:
        typer.echo(str(files[0]))
    else:
        typer.echo(f"{files[0]} … {files[-1].name} ({len(files)} files)")
