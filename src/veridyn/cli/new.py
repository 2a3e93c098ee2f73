"""``veridyn new``: a first study file from a model and, to identify or observe it, a log."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veridyn.cli.output import BaseOption, BaseWord, Model, Strict

if TYPE_CHECKING:
    from veridyn.model.machine import Machine


class StudyKind(StrEnum):
    """What a study file is for."""

    auto = "auto"
    identify = "identify"
    observe = "observe"
    excite = "excite"
    simulate = "simulate"
    drives = "drives"


def new(
    model: Model,
    log: Annotated[
        list[Path] | None,
        typer.Argument(
            help="A log, several recordings, or the files that one log is spread over; of simulate, the table of a motion.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        StudyKind,
        typer.Option(
            help="What to do; auto: identify or observe with a log, excite without one, and drives where a log has commands and positions "
            "and no forces. drives without a log: commands to record.",
            show_default=True,
        ),
    ] = StudyKind.auto,
    out: Annotated[
        Path, typer.Option(help="The study file to write; one that exists is left alone without --force.")
    ] = Path("study.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a study file that exists.")] = False,
    rate: Annotated[
        float | None, typer.Option(help="Samples a second of a log without a clock, Hz.", show_default=False)
    ] = None,
    kp: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Of drives: their gain of the position, N*m/rad; guessed without it.", show_default=False
        ),
    ] = None,
    kd: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Of drives: their gain of the speed, N*m*s/rad; guessed without it.", show_default=False
        ),
    ] = None,
    base: BaseOption = BaseWord.auto,
    strict: Strict = False,
) -> None:
    """Write a commented study file from a model and a log: columns matched by name to joints, or to the sensors of the machine, guesses
    marked as guesses.

    With a log, the study identifies a model in joint coordinates and observes one in natural coordinates; a car of a few numbers is
    identified where some of them are uncertain, and observed otherwise. A log of commands and measured positions without forces
    (command.JOINT and position.JOINT, q_des_1 and q_1 and the like) gives a study that identifies the drives. Without a log the study
    designs a motion; --kind simulate writes one that simulates the model.

    \b
    Example:
      veridyn new robot.urdf run.csv --out robot-study.yaml
      veridyn identify robot-study.yaml
      veridyn new quadruped.urdf walk.csv --base free
      veridyn new robot.yaml motors.txt --rate 500
      veridyn new robot.urdf --out motion.yaml
      veridyn new robot.urdf runs/robot-motion-001/trajectory.csv --kind simulate --out simulate.yaml
      veridyn new veridyn:crane.yaml veridyn:crane.csv --out crane-study.yaml
      veridyn new linkage.yaml run.csv --kind identify
      veridyn new quadruped.xml --kind drives --base fixed --kp 20 --kd 1.5 --out commands.yaml
      veridyn new quadruped.xml encoders.csv --kp 20 --kd 1.5
      veridyn observe crane-study.yaml
    """
    from veridyn.cli.output import mode, print_json, print_warnings, shown_progress
    from veridyn.files.access import refuse_to_replace, write_atomic
    from veridyn.studies.result import collected_warnings

    refuse_to_replace(out, force, hint="Choose another name with --out, or give --force.")
    warned: list[str] = []
    with collected_warnings(warned), shown_progress() as progress:
        progress("looking at the model" if not log else "looking at the log", 0.0, None)
        text = _written(model, log or [], out, base.value, strict, rate, kind, (kp, kd))
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
    kind: StudyKind,
    gains: tuple[float | None, float | None] = (None, None),
) -> str:
    """The study file that fits the kind of model."""
    from veridyn.errors import Fault, FileError
    from veridyn.files.access import resolved
    from veridyn.files.log.columns import clock_of_rate
    from veridyn.files.machine.load import load_model

    if rate is not None:
        clock_of_rate(rate, 1, "--rate")
    file, logs = resolved(model), [resolved(part) for part in log]
    if kind is StudyKind.excite or (kind is StudyKind.auto and not logs):
        if logs:
            raise FileError(
                "a motion is designed without a log.", where="--kind excite", found=logs[0].name, source=model.name
            )
        return _designed(file, out, base, strict)
    if kind is StudyKind.drives and not logs:
        from veridyn.studies.config.drive_template import Gains, command_template

        return command_template(
            file, machine_with_values(file, base, strict), out, strict, Gains(kp=gains[0], kd=gains[1])
        )
    if kind is StudyKind.simulate:
        return _simulated(file, logs, out, base, strict)
    machine = load_model(file, base=base, strict=strict)
    if machine.car is not None and logs:
        return _of_car(file, machine, logs, out, kind, rate)
    # A machine by points is observed where it has sensors, and identified where it has none or where that is asked for.
    wanted = "observe" if machine.formulation != "tree" and machine.sensors else "identify"
    if not logs:
        raise FileError(
            "a log is needed.", where=f"--kind {kind.value}", hint="veridyn new MODEL LOG", source=model.name
        )
    if kind.value not in ("auto", "identify", "drives", wanted):
        what = f"from a log of this model a study of kind {wanted} is written."
        hint = (
            "Models in joint coordinates get a study to identify them, models by points one to observe them; veridyn identify and "
            "veridyn observe take both."
        )
        raise FileError(what, where="--kind", expected=wanted, found=kind.value, hint=hint, source=model.name)
    if "identify" in (wanted, kind.value) or kind is StudyKind.drives:
        return _identified(file, machine, logs, out, base, strict, rate, kind, gains)
    if len(logs) > 1:
        fault = Fault("an observer reads one log.", "logs", "one file", ", ".join(f.name for f in logs))
        raise FileError(fault, model.name)
    from veridyn.studies.config.sensor_template import observe_template

    return observe_template(file, machine, logs[0], out, rate)


def _identified(
    file: Path,
    machine: Machine,
    logs: list[Path],
    out: Path,
    base: Literal["auto", "fixed", "free"],
    strict: bool,
    rate: float | None,
    kind: StudyKind,
    gains: tuple[float | None, float | None],
) -> str:
    """A study to identify a machine by forces, or its drives where the log has commands and encoders alone."""
    from veridyn.errors import FileError
    from veridyn.files.log.load import survey
    from veridyn.studies.config.drive_template import Gains, drive_template, is_drive_log
    from veridyn.studies.config.template import template

    seen = [survey(log) for log in logs]
    drives = kind is StudyKind.drives
    if drives and base == "free":
        raise FileError(
            "drives are identified from logs of a machine that is held.",
            where="--kind drives",
            found="--base free",
            source=file.name,
        )
    if drives or (kind is StudyKind.auto and base != "free" and all(is_drive_log(machine, s) for s in seen)):
        return drive_template(file, machine, seen, out, strict, rate, Gains(kp=gains[0], kd=gains[1]))
    if gains != (None, None):
        hint = "--kind drives writes a study of drives, also where forces are measured."
        raise FileError("gains belong to drives.", where="--kp, --kd", hint=hint, source=file.name)
    return template(file, machine, seen, out, strict, rate)


def _of_car(file: Path, car: Machine, logs: list[Path], out: Path, kind: StudyKind, rate: float | None) -> str:
    from veridyn.errors import FileError
    from veridyn.studies.config.sensor_template import car_template

    if rate is not None:
        hint = "Leave --rate out; a rate of the samples that are used is log.rate of the study."
        raise FileError("the log of a drive has a clock.", where="--rate", hint=hint, source=file.name)
    wanted = "identify" if kind is StudyKind.identify else "observe" if kind is StudyKind.observe else None
    return car_template(file, car, logs, out, wanted)


def _designed(file: Path, out: Path, base: Literal["auto", "fixed", "free"], strict: bool) -> str:
    from veridyn.studies.config.motion_template import excite_template

    machine = machine_with_values(file, base, strict)
    machine.need_joints("motion of joints to design")
    return excite_template(file, machine, out, strict)


def _simulated(file: Path, tables: list[Path], out: Path, base: Literal["auto", "fixed", "free"], strict: bool) -> str:
    from veridyn.errors import FileError
    from veridyn.studies.config.motion_template import simulate_mechanism_template, simulate_template

    machine = machine_with_values(file, base, strict)
    if machine.formulation == "tree" and len(tables) <= 1:
        return simulate_template(file, machine, tables[0] if tables else None, out, strict)
    if tables:
        what = "a simulation follows one table of a motion, of a machine in joint coordinates."
        raise FileError(what, where="--kind simulate", found=", ".join(t.name for t in tables), source=file.name)
    return simulate_mechanism_template(file, machine, out)


def machine_with_values(file: Path, base: Literal["auto", "fixed", "free"], strict: bool) -> Machine:
    """The machine; inertias of a URDF that no body can have keep the numbers of the file, which a motion needs."""
    from veridyn.files.machine.load import load_model
    from veridyn.files.machine.urdf import load_urdf

    if file.suffix.lower() == ".urdf" and not strict:
        return load_urdf(file, base, impossible="keep")
    return load_model(file, base=base, strict=strict)
