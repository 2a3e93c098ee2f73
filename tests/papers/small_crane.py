"""A small observation study: the crane, two logs of a hundred samples, three filters."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from strangers.walks import CRANE, walked
from veridyn.machines import crane
from veridyn.mechanics.natural.channels import exact_readings
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.model.experiment import Experiment
from veridyn.papers.fourbar import ObservationStudy, observation
from veridyn.simulate.imperfection import Imperfection, Imperfections

SHORT = replace(CRANE, samples=100)


def study_log(seed: int = 0) -> Experiment:
    truth, _ = walked(crane(), SHORT, np.random.default_rng(2))
    sensors = Imperfections({"travel": Imperfection(noise=0.002), "tilt": Imperfection(noise=0.01)})
    return sensors.read(exact_readings(natural_system(crane()), truth), np.random.default_rng(seed))


@lru_cache(maxsize=1)
def small_crane() -> ObservationStudy:
    machine = crane()
    truth, _ = walked(machine, SHORT, np.random.default_rng(2))
    logs = [study_log(k) for k in range(2)]
    settings = {name: SHORT.setup(name) for name in ("error_ekf_force", "ekf", "smoother")}
    return observation(machine, truth, truth, logs, settings, {"x": "x", "swing": "swing"}, chosen="ekf", skip=10)
