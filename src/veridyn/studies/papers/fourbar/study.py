"""The thesis' four-bar linkage, observed: every filter on the same logs of a true mechanism that its model gets wrong in five ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.machines.fourbar import LABELS, SKIP, fourbar_run, fourbar_settings, wrong_fourbar
from veridyn.mechanics.natural.system import system_of
from veridyn.progress import Progress, silent
from veridyn.studies.observation import ObservationStudy, observation
from veridyn.studies.result import fingerprint

LOGS, QUICK_LOGS = 20, 2


def fourbar_study(
    seed: int, *, quick: bool = False, filter: str = "ekf", progress: Progress = silent
) -> ObservationStudy:
    """Twenty logs (two where it must be quick) whose noise has the seeds (seed, 0), (seed, 1), … ; `filter` is the one judged."""
    run = fourbar_run(progress)
    count = QUICK_LOGS if quick else LOGS
    logs = [run.log(np.random.default_rng([seed, k])) for k in range(count)]
    machine = system_of(wrong_fourbar())
    study = observation(
        machine,
        run.truth,
        run.plain,
        logs,
        fourbar_settings(),
        LABELS,
        chosen=filter,
        skip=SKIP,
        progress=progress,
    )
    return replace(study, inputs={f"log {k}": fingerprint(log) for k, log in enumerate(logs)})
