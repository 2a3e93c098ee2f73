"""One quick day of drives and its study, made once for all tests that look at it."""

from __future__ import annotations

from functools import cache

import numpy as np

from veridyn.studies.papers.car.demo import CarDemonstration, car_demonstration

SEED = 1


@cache
def day() -> CarDemonstration:
    return car_demonstration(np.random.default_rng(SEED), quick=True)
