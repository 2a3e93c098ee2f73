"""The tree of commands. Only typer is imported here; each command imports what it needs when it runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from veridyn.cli import browser, demo, model, new, study
from veridyn.cli.output import flags_first, print_error, set_mode
from veridyn.errors import VeridynError, VeridynWarning
from veridyn.version import __version__

BAD_INPUT = 2


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Warnings of veridyn become lines on stderr; those of other packages are shown as ever."""
    printed: set[str] = set()
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, VeridynWarning):
                show_others(message, category, *where, **more)
            elif str(message) not in printed:
                printed.add(str(message))
                from veridyn.report.words import units_in

                typer.echo(f"warning: {units_in(str(message))}", err=True)

        warnings.simplefilter("always", VeridynWarning)
        warnings.showwarning = show
        yield


class CommandGroup(TyperGroup):
    """Errors raised on purpose are answered with their text on stderr and exit code 2; anything else is a bug: where, and code 3.

    Warnings are printed on stderr as "warning: …", each text once.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, flags_first(args))

    def invoke(self, ctx: Any) -> Any:
        """In a context of its own, so that how much a command prints ends with it."""
        return copy_context().run(self._answered, ctx)

    def _answered(self, ctx: Any) -> Any:
        try:
            with printed_warnings():
                return super().invoke(ctx)
        except VeridynError as error:
            print_error(error)
            raise typer.Exit(BAD_INPUT) from None


app = typer.Typer(
    cls=CommandGroup,
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(demo.app, name="demo")
app.add_typer(model.app, name="model")
COMMANDS = (  # in the order of the help
    *(model.capabilities, model.codegen, study.identify, study.excite, study.observe, study.simulate, new.new),
    *(model.export, study.compare, browser.live, browser.view, model.schema, model.warm),
)
for command in COMMANDS:
    app.command()(command)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"veridyn {__version__}")
        raise typer.Exit


@app.callback()
def veridyn(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print the report's path, warnings and errors only.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Print the seconds that each step took, too.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, errors too, and nothing else on stdout.")
    ] = False,
) -> None:
    """Identifies the parameters of multibody machines from logs, and runs the identified model as an observer.

    -q, -v and --json may stand anywhere in a command.

    Exit codes: 0 done, 1 the study ran and misses a limit its study file sets, 2 bad input, 3 a defect of veridyn (with a traceback).

    \b
    Example:
      veridyn demo arm
    """
    if quiet + verbose + as_json > 1:
        raise typer.BadParameter("choose one of -q, -v and --json.")
    set_mode("json" if as_json else "quiet" if quiet else "verbose" if verbose else "normal")
