"""Progress as people see it: a bar with the time left on a terminal, plain lines where nobody looks at one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from veridyn.cli.output import mode
from veridyn.progress import Progress, silent


@contextmanager
def shown_progress(console: Console | None = None) -> Iterator[Progress]:
    """On a terminal a bar for each task, gone at the end; elsewhere one line when a task begins. On stderr; quiet commands show none."""
    if mode() == "quiet":
        yield silent
        return
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(task: str, done: float, total: float | None) -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(task, total=total)
            bars.update(tasks[task], completed=done, total=total)

        yield show


def _lines() -> Progress:
    begun: set[str] = set()

    def show(task: str, done: float, total: float | None) -> None:
        if task not in begun:
            begun.add(task)
            typer.echo(task, err=True)

    return show
