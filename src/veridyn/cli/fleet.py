"""What ``veridyn identify`` does with a study of a fleet."""

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


def is_fleet(loaded: Loaded[Any]) -> bool:
    """Whether a study is of many machines."""
    return hasattr(loaded.study, "fleet")


def fleet_work(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """Identify a fleet; machines.csv has every machine's parameters, fleet.json their distribution and what was left out."""
    from veridyn.cli.shown import print_verdict
    from veridyn.files.archive import save
    from veridyn.report.fleet import fleet_page, fleet_verdict
    from veridyn.studies.run.fleet import run_fleet

    done = run_fleet(loaded, progress)

    def show(result: Result) -> None:
        print_verdict(fleet_verdict(done), result)
        typer.echo("\n" + done.fleet.summary() + "\n")

    def keep(run: Run) -> None:
        run.write_text("machines.csv", done.table())
        run.write_json("fleet.json", done.as_dict())
        if loaded.study.fleet.fits:
            folder = run.folder / "fits"
            folder.mkdir()
            for name, fit in done.fleet.fits.items():
                save(fit, folder / f"{name}.json")

    return Recorded(
        done.result(loaded.study.name, loaded.study.seed),
        partial(fleet_page, done),
        show,
        keep,
        done.missed,
    )
