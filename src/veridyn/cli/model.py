"""Commands on models: ``veridyn model`` looks at a file; ``capabilities``, ``codegen``, ``export``.

``schema`` prints what model and study files may hold; ``warm`` makes machine code ahead, so that the first study does not wait for it.
"""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veridyn.cli.output import BaseOption, BaseWord, Strict

if TYPE_CHECKING:
    from veridyn.model.machine import Machine

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
OWN = "veridyn:arm.yaml"


@app.callback()
def models() -> None:
    """Look at model files.

    \b
    Example:
      veridyn model show robot.yaml
    """


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A model file (YAML), a URDF or an MJCF (.xml).", show_default=False)],
    base: BaseOption = BaseWord.auto,
    strict: Strict = False,
) -> None:
    """Bodies and elements of a model, its base parameters and how they group, and what has no effect.

    Of a machine with loops also the pose that 'assembly' leads to, where its pins meet, and by how much a loop stays open.

    \b
    Example:
      veridyn model show robot.yaml
      veridyn model show quadruped.urdf --base free
    """
    from veridyn.cli.output import mode, print_json
    from veridyn.cli.shown import car_content, model_content, print_car, print_machine, print_parameters
    from veridyn.files.machine.load import load_model
    from veridyn.identify.base import base_parameters

    machine = load_model(file, base=base.value, strict=strict)
    if machine.car is not None:
        if mode() == "json":
            print_json({**car_content(machine), "exit_code": 0})
        else:
            print_car(machine)
        return
    if mode() == "json":
        print_json({**model_content(machine, base_parameters(machine)), "exit_code": 0})
        return
    print_machine(machine)  # before what needs closed loops: where they stay open is seen here
    print_parameters(machine, base_parameters(machine))


def capabilities(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="A model file (YAML, URDF, MJCF). Without one, the table of all formulations.", show_default=False
        ),
    ] = None,
) -> None:
    """Print which verbs, estimators and filters a machine has in its formulation, and the reason where one is missing.

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
        shown = {
            row.name: {f"{verb} {method}".strip(): cell.text for (verb, method), cell in row.items()}
            for row in rows.values()
        }
        print_json({"capabilities": shown, "exit_code": 0})
    elif model is None:
        typer.echo(table(rows))
    else:
        typer.echo(next(iter(rows.values())).summary())


class Language(StrEnum):
    """Languages that can be written."""

    c = "c"


class CodegenQuantity(StrEnum):
    """Equations that can be written."""

    inverse = "inverse"
    forward = "forward"
    regressor = "regressor"


def codegen(
    file: Annotated[Path, typer.Argument(help="A model file (YAML), a URDF or an MJCF (.xml).", show_default=False)],
    lang: Annotated[Language, typer.Option(help="The language.")] = Language.c,
    what: Annotated[CodegenQuantity, typer.Option(help="Which equations.")] = CodegenQuantity.inverse,
    wrench: Annotated[list[str] | None, typer.Option(help="A body on which a wrench may act; may be repeated.")] = None,
    name: Annotated[str, typer.Option(help="The function's name; by default the model's and the quantity's.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="A folder for NAME.h and NAME.c; without it, both are printed.")
    ] = None,
    base: BaseOption = BaseWord.auto,
    strict: Strict = False,
) -> None:
    """Standalone C99 of a model: no allocation, names from the model, the count of operations in a comment.

    \b
    Example:
      veridyn codegen robot.yaml --lang c --what forward --out controller
    """
    from veridyn.files.access import made_folder, write_atomic
    from veridyn.files.machine.load import load_model
    from veridyn.mechanics.tree.dynamics.codegen import c_source

    source = c_source(load_model(file, base=base.value, strict=strict), what.value, name, wrench or ())
    if out is None:
        typer.echo(source.header)
        typer.echo(source.code)
        return
    folder = made_folder(out)
    for suffix, text in ((".h", source.header), (".c", source.code)):
        typer.echo(write_atomic(folder / f"{source.name}{suffix}", text.encode()))


class ExportFormat(StrEnum):
    """Formats that can be written."""

    mjcf = "mjcf"
    urdf = "urdf"
    yaml = "yaml"
    isaac = "isaac"


def export(
    source: Annotated[
        Path,
        typer.Argument(
            help="A model file (YAML, URDF or MJCF), the folder of a run of veridyn identify, or its fit.json.",
            metavar="MODEL_OR_RUN",
            show_default=False,
        ),
    ],
    to: Annotated[ExportFormat, typer.Option(help="The format.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            help="The file; with --draws a folder for files (of isaac one file), or a name that ends in .npz.",
            show_default=False,
        ),
    ],
    draws: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of machines to draw from the fit, each physically consistent.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    like: Annotated[
        Path | None,
        typer.Option(
            help="An MJCF or URDF file of this machine: values are written into a copy of it, and everything else stays.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over files that exist.")] = False,
    base: BaseOption = BaseWord.auto,
    strict: Strict = False,
) -> None:
    """A machine as MJCF, URDF, a model file or actuators for Isaac Lab.

    What the format cannot hold is a warning, or refused where it would move otherwise.

    A URDF is written into a copy of the one that the machine came from, comments and order kept; of other machines it is a new one.

    \b
    Example:
      veridyn export robot.urdf --to mjcf --out robot.xml
      veridyn export runs/robot-001 --to mjcf --like robot.xml --out identified.xml
      veridyn export runs/robot-001 --to mjcf --draws 100 --out machines
      veridyn export runs/robot-001 --to isaac --draws 1000 --out actuators.py
      veridyn export runs/robot-001 --to yaml --draws 1000 --seed 7 --out draws.npz
    """
    import numpy as np

    from veridyn.cli.output import mode, print_json
    from veridyn.studies.exporting import FORMATS, export_draws, export_machine, source_of, written_into

    given = source_of(source, base.value, strict)
    if like is not None:
        given = written_into(given, like, FORMATS[to.value])
    if draws is None:
        files = export_machine(given, FORMATS[to.value], out, force)
    else:
        files = export_draws(given, FORMATS[to.value], out, draws, np.random.default_rng(seed), force)
    if mode() == "json":
        content = {
            "format": to.value,
            "files": [str(f) for f in files],
            "draws": draws,
            "seed": seed if draws else None,
        }
        print_json({**content, "exit_code": 0})
    elif len(files) == 1:
        typer.echo(str(files[0]))
    else:
        typer.echo(f"{files[0]} … {files[-1].name} ({len(files)} files)")


class FileKind(StrEnum):
    """Files that have a schema."""

    model = "model"
    study = "study"


def schema(of: Annotated[FileKind, typer.Argument(help="Which files.", show_default=False)]) -> None:
    """Print the JSON schema of model files or of study files, with which editors complete and check them.

    \b
    Example:
      veridyn schema study > veridyn-study.schema.json
    """
    if of is FileKind.model:
        from veridyn.files.machine.schema import model_schema as made
    else:
        from veridyn.studies.config.study import json_schema as made
    typer.echo(json.dumps(made(), indent=2, ensure_ascii=False))


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
    from veridyn.cli.output import mode, print_json, shown_progress
    from veridyn.studies.capabilities import warm as compile_ahead
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
    from veridyn.errors import FileError
    from veridyn.files.access import resolved
    from veridyn.files.machine.load import load_model
    from veridyn.files.yaml_nodes import text_of
    from veridyn.files.yaml_reader import plain_yaml
    from veridyn.studies.config.study import load_study
    from veridyn.studies.run.machine import study_machine

    file = resolved(Path(name))
    if file.suffix.lower() in (".yaml", ".yml") and file.is_file():
        values = plain_yaml(text_of(file), file.name).values
        if isinstance(values, dict) and "kind" in values:
            loaded = load_study(file)
            if not hasattr(loaded.study, "model"):
                raise FileError("the study names no model.", where=file.name)
            return study_machine(loaded, ("model",), loaded.study.model)
    machine = load_model(file)
    if machine.formulation != "tree":
        hint = "Machines in natural coordinates are compiled when they first run, in less than a second."
        raise FileError("only machines in joint coordinates are compiled ahead.", where=file.name, hint=hint)
    return machine
