"""``veridyn compare``: runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or their result.json: two or more.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="Also write the comparison as JSON.")] = None,
    page: Annotated[Path | None, typer.Option(help="Also write it as a page that opens offline.")] = None,
) -> None:
    """Print the figures and parameters of runs side by side, and mark parameters that differ by more than three deviations.

    \b
    Example:
      veridyn compare runs/panda-001 runs/panda-002 runs/panda-003 --page compared.html
    """
    import json
    import shlex

    from veridyn.cli.bar import shown_progress
    from veridyn.files.atomic import write_atomic
    from veridyn.studies.compare import compare as compared
    from veridyn.studies.run.folder import finite

    with shown_progress() as progress:
        progress(f"comparing {len(runs)} runs", 0.0, None)
        found = compared(*runs)
    typer.echo(found.summary())
    if out is not None:
        text = json.dumps(finite(found.as_dict()), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        typer.echo(str(write_atomic(out, text.encode())))
    if page is not None:
        from veridyn.report.compared import comparison_page

        command = shlex.join(["veridyn", "compare", *map(str, runs), "--page", str(page)])
        typer.echo(str(write_atomic(page, comparison_page(found, command).encode())))
