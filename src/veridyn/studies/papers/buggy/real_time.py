"""How much faster than the vehicle its errorEKF runs on one core, sample by sample as beside it, for each formulation of its model."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping

import numpy as np

from veridyn.machines.buggy_log import BuggyTruth
from veridyn.model.machine import Machine
from veridyn.studies.papers.buggy.observers import INPUTS, error_ekf, standing_start

FIRST = 10  # steps


def real_time_factors(models: Mapping[str, Machine], truth: BuggyTruth, seed: int) -> dict[str, float]:
    """Formulation → model; `real_time_factor_…` of each: seconds of the drive over CPU seconds of the errorEKF."""
    return {f"real_time_factor_{name}": real_time_factor(model, truth, seed) for name, model in models.items()}


def real_time_factor(model: Machine, truth: BuggyTruth, seed: int) -> float:
    """Of one model along one log; making the observer ready, and its first steps, for which code may be compiled, do not count."""
    log = truth.log(np.random.default_rng(seed), model.sensors)
    running, rows, _ = error_ekf().beside(model, log, standing_start(model))
    inputs = np.column_stack([log[name].values for name in INPUTS])
    steps = list(zip(truth.t.tolist(), rows, inputs, strict=True))
    for step in steps[:FIRST]:
        running.step(*step)
    gc.collect()  # what making it ready has left behind
    before = time.process_time()
    for t, readings, acting in steps[FIRST:]:
        running.step(t, readings, acting)
    return float((truth.t[-1] - truth.t[FIRST - 1]) / (time.process_time() - before))
