"""``veridyn model``: look at a model file, or write it in today's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veridyn.cli.reading import BaseOption, BaseWord, Strict

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def models() -> None:
    """Look at model files, and convert those of older formats.

    \b
    Example:
      veridyn model show robot.yaml
      veridyn model convert old-car.yaml car.yaml
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


@app.command()
def convert(
    old: Annotated[
        Path,
        typer.Argument(help="A model file of any version, a vehicle file, or a study with one.", show_default=False),
    ],
    new: Annotated[Path, typer.Argument(help="The model file to write; it must not exist.", show_default=False)],
) -> None:
    """Write the machine of a file as a model file of today's format.

    A vehicle file, or a study with the section vehicle, becomes a car in formulation single_track; a study then names the new file.

    \b
    Example:
      veridyn model convert old-car.yaml car.yaml
    """
    from veridyn.files.machine.load import load_model
    from veridyn.files.machine.old_vehicle import has_vehicle, parse_vehicle
    from veridyn.files.machine.write import save_model
    from veridyn.files.yaml_nodes import text_of

    is_yaml = old.suffix.lower() in (".yaml", ".yml")
    text = text_of(old) if is_yaml else ""
    of_study = False
    if is_yaml and has_vehicle(text, old.name):
        machine = parse_vehicle(text, old.name)
        of_study = "\nkind:" in f"\n{text}"
    else:
        machine = load_model(old)
    save_model(machine, new)
    typer.echo(f"{new}: {machine.name}, formulation {machine.formulation}")
    if of_study:
        typer.echo(
            f"In the study, write model: {{file: {new.name}, formulation: {machine.formulation}}} in place of vehicle."
        )
