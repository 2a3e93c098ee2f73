"""What ``veridyn identify`` and ``veridyn observe`` do with a study of a vehicle."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from veridyn.cli.recording import Recorded

if TYPE_CHECKING:
    from veridyn.progress import Progress
    from veridyn.studies.config.study import Loaded
    from veridyn.studies.result import Result
    from veridyn.studies.run.folder import Run


def is_vehicle(loaded: Loaded[Any]) -> bool:
    """Whether a study is of a vehicle."""
    return hasattr(loaded.study, "vehicle")


def identify_work(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """Identify a car; the identified vehicle file goes into the run folder."""
    from veridyn.cli.shown import print_verdict
    from veridyn.files.vehicle import vehicle_text
    from veridyn.report.vehicle import identified_verdict, vehicle_identified_page
    from veridyn.studies.run.vehicle_identify import identify_vehicle

    done = identify_vehicle(loaded, progress)

    def show(result: Result) -> None:
        print_verdict(identified_verdict(done), result)
        typer.echo("\n" + done.summary() + "\n")

    return Recorded(
        done.result(loaded.study.name, loaded.study.seed),
        partial(vehicle_identified_page, done),
        show,
        lambda run: run.write_text("vehicle.yaml", vehicle_text(done.car)),
        done.missed,
    )


def observe_work(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """Observe a car; states.csv has every quantity with its deviation."""
    from veridyn.cli.shown import print_verdict
    from veridyn.files.vehicle import vehicle_text
    from veridyn.report.vehicle import observed_verdict, vehicle_observed_page
    from veridyn.studies.run.vehicle_observe import observe_vehicle

    done = observe_vehicle(loaded, progress)

    def show(result: Result) -> None:
        print_verdict(observed_verdict(done), result)
        typer.echo("\n" + done.summary() + "\n")

    def keep(run: Run) -> None:
        run.write_text("states.csv", done.table())
        run.write_text("vehicle.yaml", vehicle_text(done.car))

    return Recorded(
        done.result(loaded.study.name, loaded.study.seed), partial(vehicle_observed_page, done), show, keep, done.missed
    )
