"""``veridyn demo``: a whole study on a simulated machine, from nothing to a report."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veridyn.cli.output import Recorded, recorded

if TYPE_CHECKING:
    from veridyn.inference.verdict import Verdict
    from veridyn.progress import Progress
    from veridyn.studies.result import Result, Run

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Out = Annotated[Path, typer.Option(help="Folder that gets the new run folder.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the noise; the same seed gives the same result.")]
Quick = Annotated[bool, typer.Option("--quick", help="Run fewer or shorter trials; the result says so.")]


@app.callback()
def demonstrations() -> None:
    """Simulate a machine, identify it, validate it, and write a report.

    \b
    Example:
      veridyn demo arm --out runs
    """


@app.command()
def arm(out: Out = Path("runs"), seed: Seed = 0, quick: Quick = False) -> None:
    """Identify a six-joint arm from a simulated log with sensor noise, and validate it on another motion.

    Writes result.json, parameters.csv and report.html into a new folder and prints where.

    \b
    Example:
      veridyn demo arm --out runs --seed 3
    """
    import numpy as np

    from veridyn.files.machine.write import model_text
    from veridyn.identify.pipeline.identification import identification
    from veridyn.machines.arm import demonstration
    from veridyn.report.identification import identification_page
    from veridyn.studies.result import fingerprint

    def work(progress: Progress) -> tuple[Any, Result]:
        made = demonstration(np.random.default_rng(seed), quick=quick, progress=progress)
        logs = made.training, made.validation
        how = made.signals, made.sampling, made.rows
        study = identification(made.model, *logs, *how, truth=made.truth, progress=progress)
        inputs = {"model": fingerprint(model_text(made.model))}
        inputs |= {f"{name} log": fingerprint(log) for name, log in zip(("training", "validation"), logs, strict=True)}
        return study, study.result("demo arm", seed=seed, quick=quick, inputs=inputs)

    _record("arm", out, seed, quick, work, identification_page)


@app.command()
def car(out: Out = Path("runs"), seed: Seed = 0, quick: Quick = False) -> None:
    """Identify the 33 parameters of a car from simulated drives, and validate them on another manoeuvre; and the car of 2002.

    The drives are those of a simulator more detailed than the model, which shares no equations with it. Writes result.json, parameters.csv
    and report.html into a new folder and prints where. The first drive of a process compiles the simulator, some 20 seconds.

    \b
    Example:
      veridyn demo car --out runs --seed 3
    """
    import numpy as np

    from veridyn.papers.car.page import car_demonstration, car_page, car_verdict

    def work(progress: Progress) -> tuple[Any, Result]:
        made = car_demonstration(np.random.default_rng(seed), quick, progress)
        return made, made.result("demo car", seed)

    _record("car", out, seed, quick, work, car_page, car_verdict)


@app.command()
def humanoid(out: Out = Path("runs"), seed: Seed = 0, quick: Quick = False) -> None:
    """Identify a humanoid from base-link equations and contact forces, as it walks, and validate it on motions not used for the fit.

    The robot moves in MuJoCo, which shares no equations with the model (extras mujoco and consistent). Writes result.json, parameters.csv
    and report.html into a new folder and prints where.

    \b
    Example:
      veridyn demo humanoid --out runs --seed 3
    """
    import numpy as np

    from veridyn.files.machine.write import model_text
    from veridyn.papers.humanoid.page import humanoid_page, verdict_of
    from veridyn.papers.humanoid.study import humanoid_study
    from veridyn.studies.result import fingerprint

    def work(progress: Progress) -> tuple[Any, Result]:
        study = humanoid_study(np.random.default_rng(seed), quick=quick, progress=progress)
        inputs = {"model": fingerprint(model_text(study.model))}
        inputs |= {f"log of {name}": fingerprint(log) for name, log in study.logs.items()}
        return study, study.result("demo humanoid", seed=seed, quick=quick, inputs=inputs)

    _record("humanoid", out, seed, quick, work, humanoid_page, verdict_of)


@app.command()
def fourbar(
    out: Out = Path("runs"),
    seed: Seed = 0,
    quick: Quick = False,
    filter: Annotated[str, typer.Option(help="The filter that is assessed; the report compares all.")] = "ekf",
) -> None:
    """Observe a four-bar linkage with one encoder and a wrong model, with every filter, and check how well they estimate their errors.

    The linkage, the model's errors and the noise are those of the thesis behind the observers. Twenty logs, two with --quick. The first
    run on a machine compiles the mechanism's equations, some 30 seconds.

    \b
    Example:
      veridyn demo fourbar --out runs --seed 3
    """
    from veridyn.papers.fourbar import fourbar_study
    from veridyn.papers.fourbar_page import fourbar_page, observation_verdict

    def work(progress: Progress) -> tuple[Any, Result]:
        study = fourbar_study(seed, quick=quick, filter=filter, progress=progress)
        return study, study.result("demo fourbar", seed=seed, quick=quick, inputs=study.inputs)

    _record("fourbar", out, seed, quick, work, fourbar_page, observation_verdict)


@app.command()
def buggy(out: Out = Path("runs"), seed: Seed = 0, quick: Quick = False) -> None:
    """Observe a buggy with GPS, inertial unit and wheel sensors through a wrong model, with three observers, and without GPS.

    18 bodies, Magic Formula tyres, steering by wire. Ten logs of each manoeuvre and 20 vehicles without GPS, one of each with --quick. A
    full run takes some fifteen minutes of processor time, shared by all processors that may be used; the first on a machine compiles the
    buggy's equations, some two minutes.

    \b
    Example:
      veridyn demo buggy --out runs --quick
    """
    from veridyn.papers.buggy.page import buggy_page, buggy_verdict
    from veridyn.papers.buggy.study import FULL, QUICK, buggy_study

    def work(progress: Progress) -> tuple[Any, Result]:
        study = buggy_study(seed, QUICK if quick else FULL, progress)
        return study, study.result("demo buggy", seed)

    _record("buggy", out, seed, quick, work, buggy_page, buggy_verdict)


@app.command()
def hexapod(out: Out = Path("runs"), seed: Seed = 0, quick: Quick = False) -> None:
    """Design an experiment for a hexapod, identify it from a run under control, and steer it with what was found.

    The machine is simulated by equations written by hand, which share nothing with the model. Writes result.json, parameters.csv and
    report.html into a new folder and prints where. A full run takes some minutes: 100 trials of each of two designs.

    \b
    Example:
      veridyn demo hexapod --out runs --quick
    """
    import numpy as np

    from veridyn.papers.hexapod.page import hexapod_page, verdict_of
    from veridyn.papers.hexapod.study import hexapod_study

    def work(progress: Progress) -> tuple[Any, Result]:
        study = hexapod_study(np.random.default_rng(seed), quick=quick, progress=progress)
        return study, study.result("demo hexapod", seed)

    _record("hexapod", out, seed, quick, work, hexapod_page, verdict_of)


@app.command()
def drives(out: Out = Path("runs"), seed: Seed = 0, quick: Quick = False) -> None:
    """Identify the drives of a leg from commands and encoders alone, and simulate motions that were not fitted.

    The leg moves by equations written by hand, which share nothing with the model; it has drives other than those of its data sheet.
    Writes result.json, parameters.csv, replay.csv (encoders measured and simulated), model.yaml (the leg with the drives that were found),
    fit.json and report.html into a new folder and prints where.

    \b
    Example:
      veridyn demo drives --out runs --seed 3
    """
    import time

    import numpy as np

    from veridyn.files.archive import save
    from veridyn.files.machine.write import model_text, save_model
    from veridyn.identify.drives.drive_method import Drives
    from veridyn.identify.drives.drives import identify_drives
    from veridyn.machines.leg import demonstration
    from veridyn.report.drives import drives_page, drives_verdict
    from veridyn.studies.result import fingerprint
    from veridyn.studies.run.drives import DrivesRun

    def work(progress: Progress) -> tuple[Any, Result]:
        made = demonstration(np.random.default_rng(seed), quick, progress)
        inputs = {"model": fingerprint(model_text(made.model))}
        logs = {"training": made.training, "validation": made.validation}
        inputs |= {f"{name} log": fingerprint(log) for name, log in logs.items()}
        begun = time.process_time()
        fit = identify_drives(made.model, made.training, Drives(until=made.fitted), progress=progress)
        spent = time.process_time() - begun
        run = DrivesRun(fit.with_validation(made.validation), spent, inputs, truth=made.truth, quick=quick)
        return run, run.result("demo drives", seed)

    def keep(done: Any, run: Run) -> None:
        run.write_text("replay.csv", done.table())
        save_model(done.fit.machine(), run.folder / "model.yaml")
        save(done.fit, run.folder / "fit.json")

    _record("drives", out, seed, quick, work, drives_page, drives_verdict, keep)


def _record(
    name: str,
    out: Path,
    seed: int,
    quick: bool,
    work: Callable[[Progress], tuple[Any, Result]],
    page: Callable[..., str],
    verdict_of: Callable[[Any], Verdict] | None = None,
    keep: Callable[[Any, Run], None] = lambda study, run: None,
) -> None:
    """Run the study of a demonstration, write the run folder, and print its verdict, or the rows of an identification.

    `keep` writes what else the folder gets.
    """
    from veridyn.cli.shown import print_study, print_verdict

    def recorded_work(_: Run, progress: Progress) -> Recorded:
        study, result = work(progress)

        def show(result: Result) -> None:
            if verdict_of is None:
                print_study(study, result)
            else:
                print_verdict(verdict_of(study), result)

        return Recorded(result, partial(page, study), show, partial(keep, study))

    recorded(out, name, f"veridyn demo {name} --seed {seed}" + (" --quick" if quick else ""), recorded_work)
