"""What commands share: how much one prints, progress, and options of the commands that read a model file.

A command prints as people read it, quietly, in detail, or one JSON object for programs. The options stand before or behind the command:
``veridyn identify study.yaml --json`` is ``veridyn --json identify study.yaml``. Progress is a bar with the time left on a terminal, and
plain lines where nobody looks at one.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from veridyn.errors import VeridynError
from veridyn.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


Mode = Literal["normal", "quiet", "verbose", "json"]
FLAGS: Mapping[str, Mode] = {
    "-q": "quiet",
    "--quiet": "quiet",
    "-v": "verbose",
    "--verbose": "verbose",
    "--json": "json",
}
PLAIN_WIDTH = 200  # of a line where there is no terminal: nothing is cut
_mode: ContextVar[Mode] = ContextVar("mode", default="normal")


def mode() -> Mode:
    """The mode of the command that runs."""
    return _mode.get()


def set_mode(chosen: Mode) -> None:
    """For this command."""
    _mode.set(chosen)


def flags_first(args: Sequence[str]) -> list[str]:
    """The arguments with the options of output in front, wherever they stand before a "--"."""
    end = args.index("--") if "--" in args else len(args)
    front = [a for a in args[:end] if a in FLAGS]
    return [*front, *(a for a in args[:end] if a not in FLAGS), *args[end:]]


def print_json(content: Mapping[str, Any]) -> None:
    """One object on stdout; NaN and infinity, which JSON does not have, are null."""
    from veridyn.studies.result import finite

    typer.echo(json.dumps(finite(content), ensure_ascii=False, allow_nan=False))


def print_error(error: VeridynError) -> None:
    """The text on stderr or, for programs, every fault with its parts on stdout."""
    if mode() == "json":
        faults = [{k: v for k, v in asdict(f).items() if v not in ("", None, ())} for f in error.faults]
        print_json({"error": type(error).__name__, "source": error.source, "faults": faults, "exit_code": 2})
        return
    typer.echo(f"{type(error).__name__}: {error}", err=True)


@dataclass
class Stages:
    """A progress that also notes when each task began, for the detailed output."""

    inner: Progress
    began: dict[str, float] = field(default_factory=dict)

    def __call__(self, task: str, done: float, total: float | None) -> None:
        self.began.setdefault(task, time.perf_counter())
        self.inner(task, done, total)

    def lines(self) -> list[str]:
        """Each task with the seconds until the next one began."""
        marks = [*self.began.values(), time.perf_counter()]
        return [f"{marks[k + 1] - marks[k]:8.2f} s  {task}" for k, task in enumerate(self.began)]


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Table:
    """A table whose first `left` columns are words and the others numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for k, name in enumerate(head):
        table.add_column(name, justify="left" if k < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def console() -> Console:
    """A console as wide as the terminal that prints names as they are: ":arm:" is no picture."""
    from rich.console import Console

    return Console(emoji=False) if sys.stdout.isatty() else Console(width=PLAIN_WIDTH, emoji=False)


@contextmanager
def shown_progress(console: Console | None = None) -> Iterator[Progress]:
    """On a terminal a bar for each task, gone at the end; elsewhere one line when a task begins. On stderr; quiet commands show none."""
    if mode() == "quiet":
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

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


class BaseWord(StrEnum):
    """What the root of a URDF or MJCF does."""

    auto = "auto"
    fixed = "fixed"
    free = "free"


Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a URDF or MJCF with inertias that no physical body has; otherwise they are unknown, with a warning.",
    ),
]
BaseOption = Annotated[
    BaseWord,
    typer.Option(
        help="Of a URDF or MJCF: the root stands on the ground (fixed) or moves (free: legged, flying). "
        "auto: free where a floating joint says so, else fixed."
    ),
]


def print_warnings(texts: Iterable[str]) -> None:
    """On stderr, one after the other, with units as in the report."""
    from veridyn.report.words import units_in

    for text in texts:
        typer.echo(f"warning: {units_in(text)}", err=True)
