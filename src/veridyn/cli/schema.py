"""``veridyn schema``: what model and study files may hold, for editors."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer


class FileKind(StrEnum):
    """Files that have a schema."""

    model = "model"
    study = "study"


def schema(of: Annotated[FileKind, typer.Argument(help="Which files.", show_default=False)]) -> None:
    """Print the JSON schema of model files or of study files, with which editors complete and check them.

    \b
    Example:
      veridyn schema study > veridyn-study.schema.json
    """
    if of is FileKind.model:
        from veridyn.files.machine.schema import model_schema as made
    else:
        from veridyn.studies.config.study import json_schema as made
    typer.echo(json.dumps(made(), indent=2, ensure_ascii=False))
