"""Runs of the humanoid in the engine, made once for all tests of one process."""

from __future__ import annotations

from functools import cache

import numpy as np

from veridyn.papers.humanoid.machine import bend, cad, machine, swing, walk
from veridyn.papers.humanoid.walk import Performed, performed, prescribed

CAD, TRUE = cad(), machine()


@cache
def walking() -> Performed:
    return performed(TRUE, walk(CAD, 4))


@cache
def bending() -> Performed:
    return performed(TRUE, bend(CAD))


@cache
def swinging(foot: str = "right") -> Performed:
    return prescribed(TRUE, swing(CAD, foot, np.random.default_rng(5 + len(foot)), duration=6.0))
