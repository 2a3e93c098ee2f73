"""``veridyn codegen``: a model's equations as source code for a controller."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from veridyn.cli.reading import BaseOption, BaseWord, Strict


class Language(StrEnum):
    """Languages that can be written."""

    c = "c"


class CodegenQuantity(StrEnum):
    """Equations that can be written."""

    inverse = "inverse"
    forward = "forward"
    regressor = "regressor"


def codegen(
    file: Annotated[Path, typer.Argument(help="A model file (YAML), a URDF or an MJCF (.xml).", show_default=False)],
    lang: Annotated[Language, typer.Option(help="The language.")] = Language.c,
    what: Annotated[CodegenQuantity, typer.Option(help="Which equations.")] = CodegenQuantity.inverse,
    wrench: Annotated[list[str] | None, typer.Option(help="A body on which a wrench may act; may be repeated.")] = None,
    name: Annotated[str, typer.Option(help="The function's name; by default the model's and the quantity's.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="A folder for NAME.h and NAME.c; without it, both are printed.")
    ] = None,
    base: BaseOption = BaseWord.auto,
    strict: Strict = False,
) -> None:
    """Standalone C99 of a model: no allocation, names from the model, the count of operations in a comment.

    \b
    Example:
      veridyn codegen robot.yaml --lang c --what forward --out controller
    """
    from veridyn.files.atomic import write_atomic
    from veridyn.files.machine.load import load_model
    from veridyn.mechanics.codegen import c_source

    source = c_source(load_model(file, base=base.value, strict=strict), what.value, name, wrench or ())
    if out is None:
        typer.echo(source.header)
        typer.echo(source.code)
        return
    out.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".h", source.header), (".c", source.code)):
        typer.echo(write_atomic(out / f"{source.name}{suffix}", text.encode()))
