"""``veridyn warm``: machine code of models made ahead, so that the first study does not wait for it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from veridyn.model.machine import Machine

OWN = "veridyn:arm.yaml"


def warm(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Model files (YAML, URDF, MJCF), or study files, whose models have the elements that the study adds. "
            "Without any, the arm that comes with veridyn.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Compile ahead, into the cache on disk: the code that every study uses, and the equations of these models.

    \b
    Example:
      veridyn warm robot.urdf study.yaml
    """
    from veridyn.cli.bar import shown_progress
    from veridyn.cli.output import mode, print_json
    from veridyn.studies.run.warming import warm as compile_ahead
    from veridyn.symbolic.cache import folder

    done: dict[str, float] = {}
    for name in models or [OWN]:
        begin = time.perf_counter()
        machine = _machine(name)
        with shown_progress() as progress:
            compile_ahead(machine, progress)
        done[name] = time.perf_counter() - begin
    if mode() == "json":
        print_json({"compiled": done, "cache": str(folder()), "exit_code": 0})
    elif mode() != "quiet":
        for name, seconds in done.items():
            typer.echo(f"{name}: {seconds:.1f} s")
        where = folder()
        typer.echo("nothing is kept: the cache is switched off" if where is None else f"kept in {where}")


def _machine(name: str) -> Machine:
    """Of a model file, or of the model of a study file."""
    from veridyn.errors import Fault, FileError
    from veridyn.files.machine.load import load_model
    from veridyn.files.shipped import resolved
    from veridyn.files.yaml_plain import plain_yaml
    from veridyn.studies.config.study import load_study
    from veridyn.studies.run.machine import study_machine

    file = resolved(Path(name))
    if file.suffix.lower() in (".yaml", ".yml") and file.is_file():
        values = plain_yaml(file.read_text(encoding="utf-8"), file.name).values
        if isinstance(values, dict) and "kind" in values:
            loaded = load_study(file)
            if not hasattr(loaded.study, "model"):
                raise FileError(Fault("the study names no model.", file.name))
            return study_machine(loaded, ("model",), loaded.study.model)
    machine = load_model(file)
    if machine.formulation != "tree":
        hint = "Machines in natural coordinates are compiled when they first run, in less than a second."
        raise FileError(Fault("only machines in joint coordinates are compiled ahead.", file.name, hint=hint))
    return machine
