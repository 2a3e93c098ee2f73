"""``veridyn demo``: a whole study on a simulated machine, from nothing to a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from veridyn.cli.recording import Recorded, recorded

if TYPE_CHECKING:
    from veridyn.identify.regression.observation import Sampling
    from veridyn.model.coordinates import Rows
    from veridyn.model.experiment import Experiment
    from veridyn.model.machine import Machine
    from veridyn.progress import Progress
    from veridyn.signals.motion import Signals

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Out = Annotated[Path, typer.Option(help="Folder that gets the new run folder.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the noise; the same seed gives the same result.")]
Quick = Annotated[bool, typer.Option("--quick", help="Do less, and say so in the result.")]


class Demo(Protocol):
    """What a machine hands over to be identified."""

    @property
    def truth(self) -> Machine: ...
    @property
    def model(self) -> Machine: ...
    @property
    def training(self) -> Experiment: ...
    @property
    def validation(self) -> Experiment: ...
    @property
    def signals(self) -> Signals: ...
    @property
    def sampling(self) -> Sampling: ...
    @property
    def rows(self) -> Rows: ...


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
    from veridyn.machines.arm import demonstration

    _identify("arm", demonstration, out, seed, quick)


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

    from veridyn.cli.shown import print_verdict
    from veridyn.papers.car.demo import car_demonstration
    from veridyn.papers.car.page import car_page, car_verdict

    def work(progress: Progress) -> Recorded:
        made = car_demonstration(np.random.default_rng(seed), quick, progress)
        return Recorded(
            made.result("demo car", seed),
            lambda result, command: car_page(made, result, command),
            lambda result: print_verdict(car_verdict(made), result),
        )

    _recorded("car", out, seed, quick, work)


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

    from veridyn.cli.shown import print_verdict
    from veridyn.files.machine.write import model_text
    from veridyn.papers.humanoid.page import humanoid_page, verdict_of
    from veridyn.papers.humanoid.study import humanoid_study
    from veridyn.studies.result import fingerprint

    def work(progress: Progress) -> Recorded:
        study = humanoid_study(np.random.default_rng(seed), quick=quick, progress=progress)
        inputs = {"model": fingerprint(model_text(study.model))}
        inputs |= {f"log of {name}": fingerprint(log) for name, log in study.logs.items()}
        return Recorded(
            study.result("demo humanoid", seed=seed, quick=quick, inputs=inputs),
            lambda result, command: humanoid_page(study, result, command),
            lambda result: print_verdict(verdict_of(study), result),
        )

    _recorded("humanoid", out, seed, quick, work)


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
    from veridyn.cli.shown import print_verdict
    from veridyn.papers.fourbar.machine import fourbar_study
    from veridyn.report.observer import observation_page, observation_verdict

    def work(progress: Progress) -> Recorded:
        study = fourbar_study(seed, quick=quick, filter=filter, progress=progress)
        return Recorded(
            study.result("demo fourbar", seed=seed, quick=quick, inputs=study.inputs),
            lambda result, command: observation_page(study, result, command, "Observers on a four-bar linkage"),
            lambda result: print_verdict(observation_verdict(study), result),
        )

    _recorded("fourbar", out, seed, quick, work)


@app.command()
def buggy(out: Out = Path("runs"), seed: Seed = 0, quick: Quick = False) -> None:
    """Observe a buggy with GPS, inertial unit and wheel sensors through a wrong model, with three observers, and without GPS.

    18 bodies, Magic Formula tyres, steering by wire. Ten logs of each manoeuvre and 20 vehicles without GPS, one of each with --quick. A
    full run takes half an hour; the first on a machine compiles the buggy's equations, some two minutes.

    \b
    Example:
      veridyn demo buggy --out runs --quick
    """
    from veridyn.cli.shown import print_verdict
    from veridyn.papers.buggy.page import buggy_page, buggy_verdict
    from veridyn.papers.buggy.study import FULL, QUICK, buggy_study

    def work(progress: Progress) -> Recorded:
        study = buggy_study(seed, QUICK if quick else FULL, progress)
        return Recorded(
            study.result("demo buggy", seed),
            lambda result, command: buggy_page(study, result, command),
            lambda result: print_verdict(buggy_verdict(study), result),
        )

    _recorded("buggy", out, seed, quick, work)


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

    from veridyn.cli.shown import print_verdict
    from veridyn.papers.hexapod.page import hexapod_page, verdict_of
    from veridyn.papers.hexapod.study import hexapod_study

    def work(progress: Progress) -> Recorded:
        study = hexapod_study(np.random.default_rng(seed), quick=quick, progress=progress)
        return Recorded(
            study.result("demo hexapod", seed),
            lambda result, command: hexapod_page(study, result, command),
            lambda result: print_verdict(verdict_of(study), result),
        )

    _recorded("hexapod", out, seed, quick, work)


def _identify(name: str, demonstration: Callable[..., Demo], out: Path, seed: int, quick: bool) -> None:
    """Make the logs, run the study, write the run folder, and say where the report is."""
    import numpy as np

    from veridyn.cli.shown import print_study
    from veridyn.files.machine.write import model_text
    from veridyn.report.page import identification_page
    from veridyn.studies.identification import identification
    from veridyn.studies.result import fingerprint

    def work(progress: Progress) -> Recorded:
        made = demonstration(np.random.default_rng(seed), quick=quick, progress=progress)
        study = identification(
            made.model,
            made.training,
            made.validation,
            made.signals,
            made.sampling,
            made.rows,
            truth=made.truth,
            progress=progress,
        )
        inputs = {
            "model": fingerprint(model_text(made.model)),
            "training log": fingerprint(made.training),
            "validation log": fingerprint(made.validation),
        }
        return Recorded(
            study.result(f"demo {name}", seed=seed, quick=quick, inputs=inputs),
            lambda result, command: identification_page(study, result, command),
            lambda result: print_study(study, result),
        )

    _recorded(name, out, seed, quick, work)


def _recorded(name: str, out: Path, seed: int, quick: bool, work: Callable[[Progress], Recorded]) -> None:
    command = f"veridyn demo {name} --seed {seed}" + (" --quick" if quick else "")
    recorded(out, name, command, lambda _, progress: work(progress))
