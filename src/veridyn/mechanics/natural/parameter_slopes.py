"""Parameters by which a mechanism's equations are differentiated, as its system carries them along."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.room import Slopes
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterSlopes:
    """Parameters that may differ from the `values` the mechanism was made with; `tables` are what the kernels read."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    uncertainty: Uncertainty
    tables: Slopes
    machine: Machine
