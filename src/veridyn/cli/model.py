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
    from veridyn.cli.shown_model import model_content, print_machine, print_parameters
    from veridyn.files.machine.load import load_model
    from veridyn.identify.base import base_parameters
    from veridyn.mechanics.tree.of_machine import tree_of

    tree = tree_of(load_model(file, base=base.value, strict=strict))
    if mode() == "json":
        print_json({**model_content(tree, base_parameters(tree)), "exit_code": 0})
        return
    print_machine(tree)  # before what needs closed loops: where they stay open is seen here
    print_parameters(tree, base_parameters(tree))
