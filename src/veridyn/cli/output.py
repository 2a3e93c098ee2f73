"""What commands share: how much one prints, progress, options of the commands that read a model file, and what a command leaves behind.

A command prints as people read it, quietly, in detail, or one JSON object for programs. The options stand before or behind the command:
``veridyn identify study.yaml --json`` is ``veridyn --json identify study.yaml``. Progress is a bar with the time left on a terminal, and
plain lines where nobody looks at one. :func:`recorded` is the one way from work to a run folder, for demonstrations and for studies.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from veridyn.cli.streams import unfiltered
from veridyn.errors import VeridynError
from veridyn.plain_text import visible
from veridyn.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from veridyn.progress import Progress
    from veridyn.studies.config.study import Loaded
    from veridyn.studies.result import Result, Run


Mode = Literal["normal", "quiet", "verbose", "json"]
FLAGS: Mapping[str, Mode] = {
    "-q": "quiet",
    "--quiet": "quiet",
    "-v": "verbose",
    "--verbose": "verbose",
    "--json": "json",
}
MISSED = 1  # exit code of a study that misses a limit of its file
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
    """A console as wide as the terminal that prints names as they are: ":arm:" is no picture, "[red]" no colour, "\\x1b" no command."""
    made = _console_class()(file=unfiltered(sys.stdout), emoji=False, markup=False)
    if not sys.stdout.isatty():
        made.width = PLAIN_WIDTH
    return made


def _console_class() -> type[Console]:
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        """What is printed is cleaned where it becomes text; what rich itself does to the terminal is not."""

        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    return VisibleConsole


@contextmanager
def shown_progress(console: Console | None = None) -> Iterator[Progress]:
    """On a terminal a bar for each task, gone at the end; elsewhere one line when a task begins. On stderr; quiet commands show none."""
    if mode() == "quiet":
        yield silent
        return
    from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = console or _console_class()(file=unfiltered(sys.stderr), emoji=False)
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


Model = Annotated[
    Path,
    typer.Argument(
        help="A model file (YAML) or a URDF; veridyn:NAME is one that comes with veridyn.", show_default=False
    ),
]
Data = Annotated[Path | None, typer.Option(help="What ${VERIDYN_DATA} stands for in the paths of the study.")]


def variables(data: Path | None) -> dict[str, str]:
    """What the option :data:`Data` says."""
    return {} if data is None else {"VERIDYN_DATA": str(data.resolve())}


def print_warnings(texts: Iterable[str]) -> None:
    """On stderr, one after the other, with units as in the report."""
    from veridyn.report import units_in

    for text in texts:
        typer.echo(f"warning: {units_in(text)}", err=True)


@dataclass(frozen=True)
class Recorded:
    """What work hands over to be kept: its result, its page made of (result, command), and what it prints.

    `keep` writes what else the run folder gets. `missed`: sentences about limits that are not kept; with any, the exit code is 1.
    """

    result: Result
    page: Callable[[Result, str], str]
    show: Callable[[Result], None]
    keep: Callable[[Run], object] = lambda run: None
    missed: tuple[str, ...] = ()


def recorded(out: Path, name: str, command: str, work: Callable[[Run, Progress], Recorded]) -> None:
    """Do `work` with a progress bar, keep what came of it in a new run folder with its warnings, print it, and say where the report is."""
    from veridyn.studies.result import collected_warnings, new_run

    run = new_run(out, name, whole=True)
    warned: list[str] = []
    try:
        with collected_warnings(warned), shown_progress() as progress:
            stages = Stages(progress)
            done = work(run, stages)
        result = replace(done.result, warnings=(*done.result.warnings, *warned))
        undrawn: list[str] = []
        try:
            with collected_warnings(undrawn):
                page = done.page(result, command)
        except BaseException as error:  # the work is done, and is kept whatever becomes of its page
            note = f"report.html is not written: it could not be made ({type(error).__name__}: {_first_line(error)})."
            _keep(run, done, replace(result, warnings=(*result.warnings, *undrawn, note)))
            typer.echo(f"{note} The results are complete, in {run.finish()}.", err=True)
            raise
        result = replace(result, warnings=(*result.warnings, *undrawn))
        _keep(run, done, result)
        run.write_text("report.html", page)
        report = run.finish() / "report.html"
    except BaseException:
        run.discard()
        print_warnings(warned)
        raise
    if mode() == "json":
        code = MISSED if done.missed else 0
        print_json({**result.as_dict(), "missed": done.missed, "report": str(report), "exit_code": code})
    else:
        if mode() != "quiet":
            done.show(result)
        print_warnings(result.warnings)
        for sentence in done.missed:
            typer.echo(f"missed: {sentence}", err=True)
        if mode() == "verbose":
            typer.echo("\n".join(stages.lines()), err=True)
        typer.echo(str(report))
    if done.missed:
        raise typer.Exit(MISSED)


def _keep(run: Run, done: Recorded, result: Result) -> None:
    """Write what came of the work, all but its page."""
    done.keep(run)
    run.write_result(result)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "no reason given")


def loaded_study(
    study: Path, kind: str, variables: Mapping[str, str] | None = None, strict: bool = False
) -> Loaded[Any]:
    """The study file of a command, read; what the reader warns of is printed. `strict` refuses inertias that no body can have."""
    from veridyn.studies.config.study import load_study
    from veridyn.studies.result import collected_warnings

    with collected_warnings() as warned:
        loaded = load_study(study, kind, variables)
    print_warnings(warned)
    settings = loaded.study
    if strict and settings.model is not None:
        model = settings.model.model_copy(update={"impossible": "refuse"})
        loaded = replace(loaded, study=settings.model_copy(update={"model": model}))
    return loaded


def recorded_study(
    study: Path,
    out: Path | None,
    loaded: Loaded[Any],
    work: Callable[[Run, Progress], Recorded],
    show: bool,
    options: str = "",
) -> None:
    """:func:`recorded` for a study file, which goes into the run folder with its defaults and the versions used.

    With `show` it is printed instead, and nothing is done. `options`: what else the command was given, for the report.
    """
    from veridyn.studies.config.text import study_text
    from veridyn.studies.result import versions

    settings = loaded.study
    if show:
        typer.echo(study_text(settings, comments=True), nl=False)
        return

    def with_settings(run: Run, progress: Progress) -> Recorded:
        done = work(run, progress)

        def keep(run: Run) -> None:
            done.keep(run)
            run.write_text("study.yaml", study_text(settings))
            run.write_json("versions.json", versions())

        return replace(done, keep=keep)

    folder = study.parent / settings.out if out is None else out
    if out is None and not folder.resolve().is_relative_to(study.parent.resolve()):
        typer.echo(
            f"note: 'out: {settings.out}' of {study.name} leaves the folder of the study: {folder.resolve()}", err=True
        )
    recorded(folder, settings.name, f"veridyn {settings.kind} {study.name}{options}", with_settings)
