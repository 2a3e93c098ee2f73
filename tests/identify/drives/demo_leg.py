"""The leg of ``veridyn demo drives`` with its quick fit, made once in a process."""

from __future__ import annotations

from functools import cache

import numpy as np

import veridyn as vd
from veridyn.machines.leg import LegDemo, demonstration


@cache
def recorded_leg() -> LegDemo:
    return demonstration(np.random.default_rng(2), quick=True)


@cache
def fitted_leg() -> vd.estimators.DrivesFit:
    made = recorded_leg()
    found = vd.identify(made.model, made.training, vd.estimators.Drives(until=made.fitted))
    assert isinstance(found, vd.estimators.DrivesFit)
    return found
