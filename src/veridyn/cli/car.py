"""What ``veridyn identify`` and ``veridyn observe`` do with a study of a car of a few numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from veridyn.cli.recording import Recorded

IDENTIFIED = "identified.yaml"  # the model file of the run, as of other machines

if TYPE_CHECKING:
    from veridyn.progress import Progress
    from veridyn.studies.config.study import Loaded
    from veridyn.studies.result import Result
    from veridyn.studies.run.folder import Run


def is_car(loaded: Loaded[Any]) -> bool:
    """Whether a study is of a car of a few numbers."""
    from veridyn.studies.config.car import CarStudyFile

    return isinstance(loaded.study, CarStudyFile)


def identify_work(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """Identify a car; its model file with the identified values goes into the run folder."""
    from veridyn.cli.shown import print_verdict
    from veridyn.files.machine.write import model_text
    from veridyn.report.car import car_identified_page, identified_verdict
    from veridyn.studies.run.car.identify import identify_car_study

    done = identify_car_study(loaded, progress)

    def show(result: Result) -> None:
        print_verdict(identified_verdict(done), result)
        typer.echo("\n" + done.summary() + "\n")

    return Recorded(
        done.result(loaded.study.name, loaded.study.seed),
        partial(car_identified_page, done),
        show,
        lambda run: run.write_text(IDENTIFIED, model_text(done.car)),
        done.missed,
    )


def observe_work(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """Observe a car; states.csv has every quantity with its deviation."""
    from veridyn.cli.shown import print_verdict
    from veridyn.files.machine.write import model_text
    from veridyn.report.car import car_observed_page, observed_verdict
    from veridyn.studies.run.car.observe import observe_car_study

    done = observe_car_study(loaded, progress)

    def show(result: Result) -> None:
        print_verdict(observed_verdict(done), result)
        typer.echo("\n" + done.summary() + "\n")

    def keep(run: Run) -> None:
        run.write_text("states.csv", done.table())
        run.write_text(IDENTIFIED, model_text(done.car))

    return Recorded(
        done.result(loaded.study.name, loaded.study.seed), partial(car_observed_page, done), show, keep, done.missed
    )
