"""A study of one kind, whatever machine it is of: the one that its settings are made for is run."""

from __future__ import annotations

from typing import Any

from veridyn.progress import Progress, silent
from veridyn.studies.config.car import CarObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.car.observe import CarObserved, observe_car_study
from veridyn.studies.run.observe import ObserveRun, observe_study


def run_observe(loaded: Loaded[Any], progress: Progress = silent) -> ObserveRun | CarObserved:
    """Observe what a study file of kind observe names."""
    of_a_car = isinstance(loaded.study, CarObserveFile)
    return observe_car_study(loaded, progress) if of_a_car else observe_study(loaded, progress)
