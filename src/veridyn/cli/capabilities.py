"""``veridyn capabilities``: what can be done with a machine in its formulation, or with each kind of machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def capabilities(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="A model file (YAML, URDF, MJCF). Without one, the table of all formulations.", show_default=False
        ),
    ] = None,
) -> None:
    """Say which verbs, estimators and filters a machine has in its formulation, and the reason where it has not.

    Without a model the table of `docs/capabilities.md` is printed.

    \b
    Example:
      veridyn capabilities robot.urdf
      veridyn capabilities > capabilities.md
    """
    from veridyn.cli.output import mode, print_json
    from veridyn.files.machine.load import load_model
    from veridyn.studies.capabilities import capabilities as row_of
    from veridyn.studies.capabilities import shown_machines, table

    rows = {k: row_of(m) for k, m in (shown_machines().items() if model is None else [("", load_model(model))])}
    if mode() == "json":
        told = {
            row.name: {f"{verb} {method}".strip(): cell.text for (verb, method), cell in row.items()}
            for row in rows.values()
        }
        print_json({"capabilities": told, "exit_code": 0})
    elif model is None:
        typer.echo(table())
    else:
        typer.echo(next(iter(rows.values())).summary())
