"""The tree of commands, and those that open a page: ``veridyn live``, a study that runs while samples come in, and ``veridyn view``, a
machine in 3-D. Only typer is imported here; each command imports what it needs when it runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from veridyn.cli import demo, model, new, study
from veridyn.cli.output import Data, Model, Strict, flags_first, print_error, set_mode, variables
from veridyn.errors import VeridynError, VeridynWarning
from veridyn.version import __version__

Host = Annotated[str, typer.Option(help="Address to serve on; 0.0.0.0 is open to other computers, with a token.")]
Token = Annotated[
    str | None,
    typer.Option(help="Token that every connection must present; drawn at random where other computers may connect."),
]
Seconds = Annotated[
    float | None, typer.Option(help="Stop after so many seconds; Ctrl-C stops at any time.", show_default=False)
]


def live(
    study: Annotated[
        str,
        typer.Argument(
            help="A study file of kind observe or identify; or crane, arm, car or buggy, which come with veridyn.",
            show_default=False,
        ),
    ],
    pace: Annotated[float, typer.Option(help="Seconds of the log in one second; 0: as fast as possible.")] = 1.0,
    udp: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Take samples from UDP packets to this port.", show_default=False),
    ] = None,
    websocket: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Take samples from a WebSocket on this port.", show_default=False),
    ] = None,
    follow: Annotated[
        Path | None, typer.Option(help="Take samples from a CSV file that grows.", show_default=False)
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where the page is served; 0 is any free one.")] = 8090,
    host: Host = "127.0.0.1",
    token: Token = None,
    out: Annotated[Path | None, typer.Option(help="Folder that gets what is saved, in place of the study's.")] = None,
    data: Data = None,
    seconds: Seconds = None,
) -> None:
    """Run an observer, or an identification, on a page: a log replayed, or samples that arrive.

    The page shows estimates with bands, virtual sensors, innovations, alarms and the machine in 3-D; sensors can be switched off and on.
    Samples that arrive are JSON objects with the names of the study's columns: {"time": 0.01, "trolley": 120.3, "angle": 0.2}.

    \b
    Example:
      veridyn live crane
      veridyn live crane.yaml --udp 9000
    """
    import threading

    from veridyn.cli.output import shown_progress
    from veridyn.live.opening import Arriving, open_session
    from veridyn.live.server import LiveServer
    from veridyn.view.admission import Admission

    if sum(x is not None for x in (udp, websocket, follow)) > 1:
        raise typer.BadParameter("choose one of --udp, --websocket and --follow.")
    if not 0.0 <= pace < inf:
        raise typer.BadParameter(f"a pace is a number, 0 or more; found {pace:g}.")
    secret = Admission.at(host, token).token
    arriving = Arriving(udp=udp, websocket=websocket, follow=follow, host=host, token=secret)
    with shown_progress() as progress:
        session = open_session(
            study, pace=pace or inf, arriving=arriving, out=out, variables=variables(data), progress=progress
        )
    server = LiveServer(session, port, host, secret or None)
    worker = threading.Thread(target=session.run, daemon=True)
    try:
        typer.echo(f"{session.feed.layout.title}: {server.address} (Ctrl-C stops)")
        typer.echo(f"samples: {session.source.words}" + (f", token {secret}" if secret else ""))
        worker.start()
        session.stopped.wait(seconds)
        if seconds is None:
            threading.Event().wait()
    except KeyboardInterrupt:
        typer.echo("")
    finally:
        session.stop()
        if worker.is_alive():
            worker.join(5.0)
        server.stop()


def view(
    model: Model,
    log: Annotated[
        Path | None, typer.Argument(help="A log to play, with the positions of the joints.", show_default=False)
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Where the page is served; the next free one if taken.")
    ] = 8080,
    host: Host = "127.0.0.1",
    token: Token = None,
    seconds: Seconds = None,
    meshes: Annotated[bool, typer.Option(help="Show the meshes that a URDF names.")] = True,
    strict: Strict = False,
) -> None:
    """Show a machine in a browser, posed by sliders, or moving as a log says. Needs the extra 'view'.

    \b
    Example:
      veridyn view robot.urdf
      veridyn view robot.urdf run.bag --port 8090
    """
    import threading

    from veridyn.files.access import is_shipped, shipped
    from veridyn.files.machine.load import load_model
    from veridyn.files.machine.urdf import urdf_limits
    from veridyn.files.machine.urdf_shapes import urdf_visuals
    from veridyn.view.live import LiveView, posable_mechanism, posable_tree
    from veridyn.view.meshes import shapes_of
    from veridyn.view.playing import recorded

    file = shipped(str(model)) if is_shipped(str(model)) else model
    described = load_model(file, strict=strict)
    if described.formulation == "natural":
        machine = posable_mechanism(described)
    else:
        is_urdf = file.suffix.lower() == ".urdf"
        limits = urdf_limits(file) if is_urdf else {}
        visuals, faults = urdf_visuals(file) if is_urdf and meshes else ([], [])
        shapes, unread = shapes_of(visuals)
        for fault in (*faults, *unread):
            typer.echo(f"not shown: {fault}", err=True)
        ranges = {name: (limit.lower, limit.upper) for name, limit in limits.items()}
        machine = posable_tree(described, ranges, shapes)
    recording = None
    if log is not None:
        recording, used = recorded(machine, described, shipped(str(log)) if is_shipped(str(log)) else log)
        for guess in used:
            typer.echo(f"{guess.channel}: {guess.column} [{guess.unit}]" + (f"  ({guess.why})" if guess.why else ""))
    live = LiveView(machine, port, host, recording, token)
    try:
        typer.echo(f"{machine.name}: {live.address} (Ctrl-C stops)")
        live.run(threading.Event(), seconds)
    except KeyboardInterrupt:
        typer.echo("")
    finally:
        live.stop()


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
                from veridyn.report import units_in

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
    *(model.export, study.compare, live, view, model.schema, model.warm),
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
