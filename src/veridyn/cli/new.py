"""``veridyn new``: a first study file from a model and a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veridyn.cli.reading import BaseOption, BaseWord, Strict


def new(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model file (YAML) or a URDF; veridyn:NAME is one that comes with veridyn.",
            show_default=False,
        ),
    ],
    log: Annotated[
        list[Path], typer.Argument(help="A log, or the files that one log is spread over.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option(help="The study file to write; one that exists is left alone without --force.")
    ] = Path("study.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a study file that exists.")] = False,
    rate: Annotated[
        float | None,
        typer.Option(help="Samples a second of a log without a clock, Hz.", show_default=False),
    ] = None,
    base: BaseOption = BaseWord.auto,
    strict: Strict = False,
) -> None:
    """Write a commented study file from a model and a log: columns matched by name to joints, or to the sensors of the machine, guesses
    marked as guesses.

    From a model in joint coordinates it is a study to identify it by, in natural coordinates one to observe it by.

    \b
    Example:
      veridyn new robot.urdf run.csv --out robot-study.yaml
      veridyn identify robot-study.yaml
      veridyn new quadruped.urdf walk.csv --base free
      veridyn new robot.yaml motors.txt --rate 500
      veridyn new veridyn:crane.yaml veridyn:crane.csv --out crane-study.yaml
      veridyn observe crane-study.yaml
    """
    from veridyn.cli.bar import shown_progress
    from veridyn.cli.output import mode, print_json
    from veridyn.cli.shown import print_warnings
    from veridyn.files.atomic import refuse_to_replace, write_atomic
    from veridyn.studies.result import collected_warnings

    refuse_to_replace(out, force, hint="Choose another name with --out, or give --force.")
    warned: list[str] = []
    with collected_warnings(warned), shown_progress() as progress:
        progress("looking at the log", 0.0, None)
        text = _written(model, log, out, base.value, strict, rate)
    if mode() != "json":
        print_warnings(warned)
    guessed = sum("guessed" in line for line in text.splitlines()[1:])
    file = write_atomic(out, text.encode(), force)
    if mode() == "json":
        print_json({"study": str(file), "guesses": guessed, "warnings": warned, "exit_code": 0})
    else:
        typer.echo(str(file) if mode() == "quiet" else f"{file} ({guessed} guesses to look at)")


def _written(
    model: Path,
    log: list[Path],
    out: Path,
    base: Literal["auto", "fixed", "free"],
    strict: bool,
    rate: float | None,
) -> str:
    """The study file that fits the kind of model."""
    from veridyn.errors import Fault, FileError
    from veridyn.files.log.columns import clock_of_rate
    from veridyn.files.machine.load import load_model
    from veridyn.files.shipped import resolved
    from veridyn.studies.config.observe_template import observe_template
    from veridyn.studies.config.template import template

    if rate is not None:
        clock_of_rate(rate, 1, "--rate")
    file, logs = resolved(model), [resolved(part) for part in log]
    machine = load_model(file, base=base, strict=strict)
    if machine.formulation == "tree":
        return template(file, machine.tree, logs, out, strict, rate)
    if len(logs) > 1:
        fault = Fault("an observer reads one log.", "logs", "one file", ", ".join(f.name for f in logs))
        raise FileError(fault, model.name)
    return observe_template(file, machine.mechanism, logs[0], out, rate)
