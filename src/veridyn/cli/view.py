"""``veridyn view``: a machine in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veridyn.cli.reading import Strict


def view(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model file (YAML) or a URDF; veridyn:NAME is one that comes with veridyn.",
            show_default=False,
        ),
    ],
    log: Annotated[
        Path | None, typer.Argument(help="A log to play, with the positions of the joints.", show_default=False)
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Where the page is served; the next free one if taken.")
    ] = 8080,
    host: Annotated[
        str, typer.Option(help="Address that the page is for; 0.0.0.0 is everybody, with a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(help="Word that the page's address must carry; drawn at random for other hosts.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Stop by itself after so long; Ctrl-C does so at any time.", show_default=False)
    ] = None,
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

    from veridyn.files.machine.load import load_model
    from veridyn.files.machine.urdf import urdf_limits
    from veridyn.files.machine.urdf_visuals import urdf_visuals
    from veridyn.files.shipped import is_shipped, shipped
    from veridyn.mechanics.natural.of_machine import mechanism_of
    from veridyn.mechanics.natural.system import system_of
    from veridyn.view.live import LiveView, posable_mechanism, posable_tree
    from veridyn.view.meshes import shapes_of
    from veridyn.view.playing import recorded

    file = shipped(str(model)) if is_shipped(str(model)) else model
    described = load_model(file, strict=strict)
    if described.formulation == "natural":
        machine_model = system_of(mechanism_of(described))
        machine = posable_mechanism(machine_model)
    else:
        machine_model = described
        is_urdf = file.suffix.lower() == ".urdf"
        limits = urdf_limits(file) if is_urdf else {}
        visuals, faults = urdf_visuals(file) if is_urdf and meshes else ([], [])
        shapes, unread = shapes_of(visuals)
        for fault in (*faults, *unread):
            typer.echo(f"not shown: {fault}", err=True)
        ranges = {name: (limit.lower, limit.upper) for name, limit in limits.items()}
        machine = posable_tree(machine_model, ranges, shapes)
    recording = None
    if log is not None:
        recording, used = recorded(machine, machine_model, shipped(str(log)) if is_shipped(str(log)) else log)
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
