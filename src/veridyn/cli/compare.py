"""``veridyn compare``: two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    first: Annotated[Path, typer.Argument(help="A run folder, or its result.json.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another one.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="Also write the comparison as JSON.")] = None,
) -> None:
    """Print the figures and parameters of two runs side by side, and mark parameters that differ by more than three deviations.

    \b
    Example:
      veridyn compare runs/panda-001 runs/panda-002 --out difference.json
    """
    import json

    from veridyn.cli.bar import shown_progress
    from veridyn.files.atomic import write_atomic
    from veridyn.studies.compare import compare as compared
    from veridyn.studies.run.folder import finite

    with shown_progress() as progress:
        progress("comparing two runs", 0.0, None)
        found = compared(first, second)
    typer.echo(found.summary())
    if out is not None:
        text = json.dumps(finite(found.as_dict()), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        typer.echo(str(write_atomic(out, text.encode())))
