"""``veridyn model``: look at a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veridyn.cli.reading import BaseOption, BaseWord, Strict

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def models() -> None:
    """Look at model files.

    \b
    Example:
      veridyn model show robot.yaml
    """


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A model file (YAML), a URDF or an MJCF (.xml).", show_default=False)],
    base: BaseOption = BaseWord.auto,
    strict: Strict = False,
) -> None:
    """Bodies and elements of a model, its base parameters and how they group, and what has no effect.

    Of a machine with loops also the pose that 'assembly' leads to, where its pins meet, and by how much a loop stays open.

    \b
    Example:
      veridyn model show robot.yaml
      veridyn model show quadruped.urdf --base free
    """
    from veridyn.cli.output import mode, print_json
    from veridyn.cli.shown_model import car_content, model_content, print_car, print_machine, print_parameters
    from veridyn.files.machine.load import load_model
    from veridyn.identify.base import base_parameters

    machine = load_model(file, base=base.value, strict=strict)
    if machine.car is not None:
        if mode() == "json":
            print_json({**car_content(machine), "exit_code": 0})
        else:
            print_car(machine)
        return
    if mode() == "json":
        print_json({**model_content(machine, base_parameters(machine)), "exit_code": 0})
        return
    print_machine(machine)  # before what needs closed loops: where they stay open is seen here
    print_parameters(machine, base_parameters(machine))
