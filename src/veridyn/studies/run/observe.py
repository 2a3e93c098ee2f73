"""One machine observed as a study file says: its states with deviations, its virtual sensors with bands, and how far to trust them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from veridyn.observe.observation import Observation
from veridyn.observe.observe import observe_with
from veridyn.observe.readings import measurements_of
from veridyn.progress import Progress, silent
from veridyn.studies.config.observe import ObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import fingerprint
from veridyn.studies.run.observe_log import observed_log, withhold
from veridyn.studies.run.observed import ObserveRun
from veridyn.studies.run.observer import existing_file, model_file, observer_of


def observe_study(
    loaded: Loaded[Any], progress: Progress = silent, clock: Callable[[], float] = time.process_time
) -> ObserveRun:
    """Observe what a study file of kind observe names: a machine, or a car of a few numbers along a drive.

    `step_microseconds` is processor time by `clock` over the samples; choosing the noise, learning the model's error and compiling are
    left out.
    """
    if loaded.study.of_a_drive:
        from veridyn.studies.run.car_observe import observe_drive  # here: it brings compiled equations along

        return observe_drive(loaded, progress)
    return _observe_machine(loaded, progress, clock)


def _observe_machine(loaded: Loaded[ObserveFile], progress: Progress, clock: Callable[[], float]) -> ObserveRun:
    s = loaded.study
    prepared = observer_of(loaded)
    log_file = existing_file(loaded, s.log.file, ("log", "file"))
    log, findings = observed_log(loaded, prepared.system, log_file)
    readings = measurements_of(prepared.system, log, prepared.setup.settings.input_hold)
    table = prepared.system.table
    owners = [table.sensors[k] for k in table.owner]
    readings = withhold(loaded, readings, [i.name for i in owners], [i.delay for i in owners])
    learns = prepared.setup.settings.model_error == "learned"
    prepared, readings, tuning = prepared.tuned(s, readings, progress, learns)
    setup, machine, wanted = prepared.setup, prepared.machine, prepared.virtual
    found = observe_with(setup, machine, readings, progress, tuning)
    spent = _step_microseconds(found, clock)
    skip = int(np.searchsorted(found.t, found.t[0] + s.settle))
    if not found.estimates.dof[skip:].any():
        what = "no reading is left to judge the filter by."
        shown = f"{s.settle:g} s of a log that lasts {found.t[-1] - found.t[0]:.3g} s"
        fault = loaded.fault(("settle",), what, found=shown, hint="Is the unit of log.time right?")
        raise loaded.error(fault)
    inputs = {
        "study": fingerprint(loaded.text),
        "model": fingerprint(model_file(loaded)),
        "log": fingerprint(log_file),
    }
    return ObserveRun(found, log, found.virtual(*wanted) if wanted else {}, skip, spent, inputs, s.accept, findings)


def _step_microseconds(found: Observation, clock: Callable[[], float]) -> float:
    """The time of one sample of the run, made once more now that its noise is known and its code is made."""
    assert found.made_by is not None
    begin = clock()
    found.made_by.repeated()
    return 1e6 * (clock() - begin) / len(found)
