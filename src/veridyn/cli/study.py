"""Commands that run a study file: ``veridyn identify``, ``observe``, ``excite`` and ``simulate``; and ``compare``, runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veridyn.cli.output import Data, Recorded, Strict, loaded_study, recorded_study, variables

if TYPE_CHECKING:
    from veridyn.inference.verdict import Verdict
    from veridyn.progress import Progress
    from veridyn.studies.config.study import Loaded
    from veridyn.studies.result import Result, Run

Out = Annotated[Path | None, typer.Option(help="Folder that gets the new run folder, in place of the study's.")]
Show = Annotated[bool, typer.Option("--show", help="Print the study with every default, and stop.")]


def identify(
    study: Annotated[Path, typer.Argument(help="A study file of kind identify (YAML).", show_default=False)],
    out: Out = None,
    data: Data = None,
    show: Show = False,
    strict: Strict = False,
) -> None:
    """Identify the parameters of a machine from logs, as a study file says, and validate them on data not used for the fit.

    Writes result.json, parameters.csv, report.html, the study with its defaults, the versions used and the identified model into a new
    folder and prints where; reduced.csv and friction.csv where the study reduces the model or tries friction. With a section payload or
    fleet a load is weighed, or many machines of one model are compared (machines.csv, fleet.json); with a section flexible the stiffness of
    joints is found from motor and link encoders (deflection.csv), with a section drives drives are found from commands and encoders
    (replay.csv). Exit codes: 0 done, 1 a limit of the study file is missed, 2 bad input.

    \b
    Example:
      veridyn new robot.urdf run.csv --out robot-study.yaml
      veridyn identify robot-study.yaml --out runs
    """
    loaded = loaded_study(study, "identify", variables(data), strict=strict)
    if hasattr(loaded.study, "payload"):
        work = _weigh_payload
    elif hasattr(loaded.study, "fleet"):
        work = _identify_fleet
    elif hasattr(loaded.study, "flexible"):
        work = _identify_flexible
    elif hasattr(loaded.study, "drives"):
        work = _identify_drives
    else:
        work = _identify_machine
    recorded_study(study, out, loaded, partial(work, loaded), show)


def observe(
    study: Annotated[Path, typer.Argument(help="A study file of kind observe (YAML).", show_default=False)],
    out: Out = None,
    data: Data = None,
    show: Show = False,
) -> None:
    """Estimate the states of a machine from a log of its sensors, with virtual sensors.

    Writes states.csv (estimates with deviations, virtual sensors with bands), result.json, parameters.csv (the states at the end),
    report.html and the study with its defaults into a new folder and prints where. Exit codes: 0 done, 1 a limit of the study file is
    missed, 2 bad input.

    \b
    Example:
      veridyn observe crane.yaml --out runs
    """
    loaded = loaded_study(study, "observe", variables(data))
    recorded_study(study, out, loaded, partial(_observe_machine, loaded), show)


class ExciteKind(StrEnum):
    """What is designed: a motion that identifies the machine, or commands that identify its drives."""

    auto = "auto"
    motion = "motion"
    drive = "drive"


def excite(
    study: Annotated[
        Path,
        typer.Argument(
            help="A study file of kind excite (YAML); with --kind drive also a model file: YAML, URDF, MJCF or veridyn:NAME.",
            show_default=False,
        ),
    ],
    kind: Annotated[
        ExciteKind,
        typer.Option(help="What is designed; auto: what the study says. drive: commands that determine the drives."),
    ] = ExciteKind.auto,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            help="Of drives of a model file: a number to determine, such as kp or knee_drive.zero; may be repeated. All without it.",
            show_default=False,
        ),
    ] = None,
    kp: Annotated[
        float | None,
        typer.Option(min=0.0, help="Of drives of a model file: gain of the position, N*m/rad.", show_default=False),
    ] = None,
    kd: Annotated[
        float | None,
        typer.Option(min=0.0, help="Of drives of a model file: gain of the speed, N*m*s/rad.", show_default=False),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(min=0.1, help="Of commands for a model file, s; 20 without it.", show_default=False),
    ] = None,
    out: Out = None,
    show: Show = False,
    strict: Strict = False,
) -> None:
    """Design the motion that identifies a machine's parameters best, within all its limits.

    Writes trajectory.csv (what a controller runs), joint_trajectory.yaml (the same as a ROS message), result.json, parameters.csv (the
    predicted deviation of each parameter), report.html and the study with its defaults into a new folder and prints where. With a section
    drives, or with --kind drive and a model file, it designs commands that determine the drives from encoders (commands.csv), within
    positions, speeds and forces of the joints. Exit codes: 0 done, 1 a deviation is larger than the study file accepts, 2 bad input.

    \b
    Example:
      veridyn excite robot-excite.yaml --out runs
      veridyn excite quadruped.xml --kind drive --kp 20 --kd 1.5 --ask kp --ask armature
    """
    from veridyn.files.access import resolved

    own = {"--ask": ask, "--kp": kp, "--kd": kd, "--duration": duration}
    given = {name: value for name, value in own.items() if value is not None}
    options = ""
    if kind is ExciteKind.drive and _is_model(file := resolved(study)):
        loaded = _drive_study(file, ask or (), (kp, kd), duration, strict)
        words = [
            f" {name} {x}" for name, value in given.items() for x in (value if isinstance(value, list) else [value])
        ]
        options = "".join([" --kind drive", *words])
    else:
        loaded = loaded_study(study, "excite", strict=strict)
        _check_excite_options(loaded, kind, list(given))
    work = _excite_drives if hasattr(loaded.study, "drives") else _excite_machine
    recorded_study(loaded.file, out, loaded, partial(work, loaded), show, options)


def simulate(
    study: Annotated[Path, typer.Argument(help="A study file of kind simulate (YAML).", show_default=False)],
    out: Out = None,
    show: Show = False,
    strict: Strict = False,
) -> None:
    """Simulate a machine: the log that its sensors record, and the truth beside it.

    Writes log.csv (one table for each clock of the sensors), truth.csv, identify.yaml or observe.yaml (a study file that reads the log),
    result.json, parameters.csv (what is true), report.html and the study with its defaults into a new folder and prints where. Exit codes:
    0 done, 1 a limit of the study file is missed, 2 bad input.

    \b
    Example:
      veridyn simulate arm-simulate.yaml --out runs
    """
    loaded = loaded_study(study, "simulate", strict=strict)
    recorded_study(study, out, loaded, partial(_simulate_machine, loaded), show)


def compare(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or their result.json: two or more.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="Also write the comparison as JSON.")] = None,
    page: Annotated[Path | None, typer.Option(help="Also write it as a page that opens offline.")] = None,
) -> None:
    """Print the figures and parameters of runs side by side, and mark parameters that differ by more than three deviations.

    \b
    Example:
      veridyn compare runs/panda-001 runs/panda-002 runs/panda-003 --page compared.html
    """
    import json
    import shlex

    from veridyn.cli.output import shown_progress
    from veridyn.files.access import write_atomic
    from veridyn.report import units_in
    from veridyn.studies.compare import compare as compared
    from veridyn.studies.result import finite

    with shown_progress() as progress:
        progress(f"comparing {len(runs)} runs", 0.0, None)
        found = compared(*runs)
    typer.echo(units_in(found.summary()))
    if out is not None:
        text = json.dumps(finite(found.as_dict()), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        typer.echo(str(write_atomic(out, text.encode())))
    if page is not None:
        from veridyn.report.compared import comparison_page

        command = shlex.join(["veridyn", "compare", *map(str, runs), "--page", str(page)])
        typer.echo(str(write_atomic(page, comparison_page(found, command).encode())))


def _recorded(
    loaded: Loaded[Any],
    done: Any,
    page: Callable[..., str],
    verdict_of: Callable[[Any], Verdict],
    keep: Callable[[Run], object],
    summary: Callable[[], str] | None = None,
) -> Recorded:
    """What came of a study as it is kept and printed: the verdict, the figures and its summary, or another `summary`."""
    from veridyn.cli.shown import print_verdict
    from veridyn.report import units_in

    def show(result: Result) -> None:
        print_verdict(verdict_of(done), result)
        typer.echo(units_in("\n" + done.summary() if summary is None else summary()) + "\n")

    result = done.result(loaded.study.name, loaded.study.seed)
    return Recorded(result, partial(page, done), show, keep, tuple(done.missed))


def _identify_machine(loaded: Loaded[Any], run: Run, progress: Progress) -> Recorded:
    """The model file with the identified values and the fit go into the run folder."""
    from veridyn.cli.shown import print_identified
    from veridyn.errors import IdentificationWarning, warn
    from veridyn.report.reduced import reduced_table
    from veridyn.report.study import identified_page
    from veridyn.studies.exporting import export_run
    from veridyn.studies.run.identify import run_identify

    settings, done = loaded.study, run_identify(loaded, progress)
    for fault in export_run(run, done, settings).refused:
        warn(IdentificationWarning, fault)

    def keep(run: Run) -> None:
        done.keep(run)
        if done.judged is not None and done.judged.essential.steps:
            run.write_text("reduced.csv", reduced_table(done.judged))

    result = done.result(settings.name, settings.seed)
    return Recorded(result, partial(identified_page, done), partial(print_identified, done), keep, tuple(done.missed))


def _weigh_payload(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """payload.json has the load as controllers take it."""
    from veridyn.files.archive import save
    from veridyn.identify.controller_load import controller_settings
    from veridyn.report.study import payload_page, payload_verdict
    from veridyn.studies.run.payload import run_payload

    done = run_payload(loaded, progress)
    x = done.load
    settings = {
        "flange": {"body": x.body, **loaded.study.payload.flange.model_dump()},
        "mass_sigma": x.mass_sigma,
        "centre_of_mass_sigma": x.centre_sigma,
        "inertia_sigma": x.inertia_sigma if x.has_inertia else None,
        **controller_settings(x.mass, x.centre, x.inertia if x.has_inertia else None),
    }

    def keep(run: Run) -> None:
        run.write_json("payload.json", settings)
        save(done.weighed.study.fit, run.folder / "fit.json")

    def page(done: Any, result: Result, command: str) -> str:
        return payload_page(done, settings, result, command)

    return _recorded(loaded, done, page, payload_verdict, keep, lambda: "\n" + x.summary())


def _identify_fleet(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """machines.csv has every machine's parameters, fleet.json their distribution and what was left out."""
    from veridyn.files.archive import save
    from veridyn.report.compared import fleet_page, fleet_verdict
    from veridyn.studies.run.fleet import run_fleet

    done = run_fleet(loaded, progress)

    def keep(run: Run) -> None:
        run.write_text("machines.csv", done.table())
        run.write_json("fleet.json", done.as_dict())
        if loaded.study.fleet.fits:
            folder = run.folder / "fits"
            folder.mkdir()
            for name, fit in done.fleet.fits.items():
                save(fit, folder / f"{name}.json")

    return _recorded(loaded, done, fleet_page, fleet_verdict, keep, lambda: "\n" + done.fleet.summary())


def _identify_flexible(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """deflection.csv has the measured and predicted deflection of every joint on the validation logs; model.yaml what is determined."""
    from veridyn.report.drives import flexible_page, flexible_verdict
    from veridyn.studies.run.drives import run_flexible

    done = run_flexible(loaded, progress)
    return _recorded_encoders(loaded, done, flexible_page, flexible_verdict, "deflection.csv")


def _identify_drives(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """replay.csv has the measured and simulated encoders of every joint; model.yaml the machine with its drives."""
    from veridyn.report.drives import drives_page, drives_verdict
    from veridyn.studies.run.drives import run_drives

    return _recorded_encoders(loaded, run_drives(loaded, progress), drives_page, drives_verdict, "replay.csv")


def _recorded_encoders(loaded: Loaded[Any], done: Any, page: Any, verdict: Any, table: str) -> Recorded:
    """What encoders showed, with its `table` and the identified machine beside the result; of drives the fit too."""
    from veridyn.files.archive import save
    from veridyn.files.machine.write import save_model
    from veridyn.identify.result import Fit

    def keep(run: Run) -> None:
        run.write_text(table, done.table())
        save_model(done.fit.machine(), run.folder / "model.yaml")
        if isinstance(done.fit, Fit):
            save(done.fit, run.folder / "fit.json")

    return _recorded(loaded, done, page, verdict, keep, lambda: "\n" + done.fit.summary())


def _observe_machine(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """states.csv has every quantity with its deviation."""
    from veridyn.report.observed import observed_page, verdict_of
    from veridyn.studies.run.observer import observe_study

    done = observe_study(loaded, progress)
    return _recorded(loaded, done, observed_page, verdict_of, done.keep)


def _excite_machine(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    from veridyn.report.excitation import excitation_page, verdict_of
    from veridyn.studies.run.excite import excitation

    done = excitation(loaded, progress)

    def keep(run: Run) -> None:
        run.write_text("trajectory.csv", done.table())
        run.write_text("joint_trajectory.yaml", done.ros())

    return _recorded(loaded, done, excitation_page, verdict_of, keep, done.plan.summary)


def _excite_drives(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """commands.csv has the command of every joint."""
    from veridyn.report.excitation import drive_excitation_page, drive_excitation_verdict
    from veridyn.studies.run.drives import run_drive_excite

    if not loaded.yaml.lines:  # made of a model file
        _warn_of_guesses(loaded)
    done = run_drive_excite(loaded, progress)

    def keep(run: Run) -> None:
        run.write_text("commands.csv", done.plan.table())

    return _recorded(loaded, done, drive_excitation_page, drive_excitation_verdict, keep)


def _is_model(file: Path) -> bool:
    """Whether a file describes a machine; a study file names its kind."""
    from veridyn.files.machine.load import MJCF_ENDINGS

    if file.suffix.lower() in (".urdf", *MJCF_ENDINGS):
        return True
    from veridyn.files.yaml_nodes import text_of
    from veridyn.files.yaml_reader import plain_yaml

    return "kind" not in plain_yaml(text_of(file), file.name).values


def _drive_study(
    file: Path, ask: Sequence[str], gains: tuple[float | None, float | None], duration: float | None, strict: bool
) -> Loaded[Any]:
    """The study that ``veridyn new --kind drives`` writes for a model, with what the options say; runs go into the folder one is in."""
    import os
    from dataclasses import replace

    from veridyn.cli.new import machine_with_values
    from veridyn.files.yaml_reader import plain_yaml
    from veridyn.studies.config.drive_template import Gains, command_template
    from veridyn.studies.config.study import Loaded, parse_study

    place, stated = Path(file.name), Gains(kp=gains[0], kd=gains[1])
    machine = machine_with_values(file, "auto", strict)
    text = command_template(file, machine, place, strict, stated, ask=ask, duration=duration, complete=True)
    yaml = plain_yaml(text, file.name)
    # Lines are those of a text that nobody sees.
    return Loaded(parse_study(yaml, "excite"), place, replace(yaml, lines={}), text, dict(os.environ))


def _check_excite_options(loaded: Loaded[Any], kind: ExciteKind, given: Sequence[str]) -> None:
    """Refuse options that a study file answers itself, and a kind that it is not."""
    own = ExciteKind.drive if hasattr(loaded.study, "drives") else ExciteKind.motion
    if kind not in (ExciteKind.auto, own):
        hint = "A study of drives has a section drives; --kind drive takes a model file too."
        raise loaded.error_at(("kind",), f"this study designs a {own}.", "--kind auto", f"--kind {kind}", hint)
    if given:
        hint = "Write it in the study file. Options belong to --kind drive with a model file."
        raise loaded.error_at(("kind",), "a study file states everything itself.", found=", ".join(given), hint=hint)


def _warn_of_guesses(loaded: Loaded[Any]) -> None:
    """Limits that the model file does not state are those of a careful first experiment, which somebody has to look at."""
    from veridyn.errors import Fault, IdentificationWarning, warn

    marked = [line.strip().partition(" # ") for line in loaded.text.splitlines()]
    found = "; ".join(
        f"{own} ({why})" for own, _, why in marked if own.partition(":")[0] in loaded.study.limits and why
    )
    if found:
        hint = "Look at them before a machine runs the commands, or state them in a study: veridyn new MODEL --kind drives."
        warn(
            IdentificationWarning,
            Fault("not all limits are those of the model file.", "limits", found=found, hint=hint),
        )


def _simulate_machine(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    from veridyn.report.simulated import simulated_page, verdict_of
    from veridyn.studies.run.simulate import simulate_study
    from veridyn.studies.run.simulation_records import keep_simulation

    done = simulate_study(loaded, progress)
    keep = partial(keep_simulation, loaded, done.machine, done.log, done.truth)
    return _recorded(loaded, done, simulated_page, verdict_of, keep)
