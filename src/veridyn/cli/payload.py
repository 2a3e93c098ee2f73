"""What ``veridyn identify`` does with a study of a payload."""

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


def is_payload(loaded: Loaded[Any]) -> bool:
    """Whether a study weighs a load."""
    return hasattr(loaded.study, "payload")


def payload_work(loaded: Loaded[Any], _: Run, progress: Progress) -> Recorded:
    """Weigh a load; payload.json has it as controllers take it."""
    from veridyn.cli.shown import print_verdict
    from veridyn.files.archive import save
    from veridyn.files.controllers import controller_settings
    from veridyn.report.payload import payload_page, payload_verdict
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

    def show(result: Result) -> None:
        print_verdict(payload_verdict(done), result)
        typer.echo("\n" + x.summary() + "\n")

    def keep(run: Run) -> None:
        run.write_json("payload.json", settings)
        save(done.weighed.study.fit, run.folder / "fit.json")

    return Recorded(
        done.result(loaded.study.name, loaded.study.seed, ()),
        partial(payload_page, done, settings),
        show,
        keep,
        done.missed,
    )
