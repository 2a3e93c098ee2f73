"""``veridyn demo``: a whole study on a simulated machine, from nothing to a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

if TYPE_CHECKING:
    from veridyn.identify.observation import Sampling
    from veridyn.model.experiment import Experiment
    from veridyn.model.tree import Rows, Tree
    from veridyn.progress import Progress
    from veridyn.signals.motion import Signals
    from veridyn.studies.result import Result

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Out = Annotated[Path, typer.Option(help="Folder that gets the new run folder.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the noise; the same seed gives the same result.")]
Quick = Annotated[bool, typer.Option("--quick", help="Do less, and say so in the result.")]


class Demo(Protocol):
    """What a machine hands over to be identified."""

    @property
    def truth(self) -> Tree: ...
    @property
    def model(self) -> Tree: ...
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
    """Identify the 33 parameters of a car from a simulated drive, and validate them on another manoeuvre.

    The drive is that of a simulator more detailed than the model, which shares no equations with it. Writes result.json, parameters.csv
    and report.html into a new folder and prints where. The first drive of a process compiles the simulator, some 20 seconds.

    \b
    Example:
      veridyn demo car --out runs --seed 3
    """
    from veridyn.machines.car_drive import demonstration

    _identify("car", demonstration, out, seed, quick)


def _identify(name: str, demonstration: Callable[..., Demo], out: Path, seed: int, quick: bool) -> None:
    """Make the logs, run the study, write the run folder, and say where the report is."""
    import numpy as np

    from veridyn.cli.shown import print_study
    from veridyn.files.native import model_text
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

    recorded(name, out, seed, quick, work)


@dataclass(frozen=True)
class Recorded:
    """What a demonstration hands over to be kept: its result, its page made of (result, command), and what it prints."""

    result: Result
    page: Callable[[Result, str], str]
    show: Callable[[Result], None]


def recorded(name: str, out: Path, seed: int, quick: bool, work: Callable[[Progress], Recorded]) -> None:
    """Do `work` with a progress bar, keep what came of it in a new run folder with its warnings, print it, and say where the report is."""
    from veridyn.cli.bar import shown_progress
    from veridyn.cli.shown import print_warnings
    from veridyn.studies.result import collected_warnings
    from veridyn.studies.run import new_run

    run = new_run(out, name)
    warned: list[str] = []
    try:
        with collected_warnings(warned), shown_progress() as progress:
            done = work(progress)
        result = replace(done.result, warnings=(*done.result.warnings, *warned))
        command = f"veridyn demo {name} --seed {seed}" + (" --quick" if quick else "")
        page = done.page(result, command)
        run.write_result(result)
        report = run.write_text("report.html", page)
    except BaseException:
        run.discard_if_empty()
        print_warnings(warned)
        raise
    done.show(result)
    print_warnings(warned)
    typer.echo(str(report))
