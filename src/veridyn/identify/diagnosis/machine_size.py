"""What forces become where all distances between joints are longer than the model's: the column of a log of a larger or smaller machine.

s = ∂Γ̂/∂c,     every distance (1 + c) times the model's, with the parameters of the fit
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.tree.elsewhere import stretched
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
MACHINE = ""  # in place of a coordinate, of what is said of the machine as a whole
STEP = 1e-5  # of c


def size_slopes(machine: Machine, values: Array, m: Motion, rows: Sequence[str], forces: Array) -> Array:
    """s (N, rows) along a motion with standard parameters `values` (p,), which ask for the `forces` (N, rows) as the model has it."""
    longer = inverse_dynamics(stretched(machine, 1.0 + STEP), m, list(rows), values, engine="numpy")
    return (longer - forces) / STEP
