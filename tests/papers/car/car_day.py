"""One quick day of drives and its study, made once for all tests that look at it."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np

from veridyn.errors import IdentificationWarning
from veridyn.papers.car.page import CarDemonstration, car_demonstration

SEED = 1


@cache
def day() -> CarDemonstration:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "paper 001", IdentificationWarning)  # which test_study_2002 looks at
        return car_demonstration(np.random.default_rng(SEED), quick=True)
