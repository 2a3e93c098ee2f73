"""Which outputs have not been heard for longer than is usual of them, as machine code: it is asked at every step of an observer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import kept
from veridyn.observe.measurements import MISSING, Codes

Array = NDArray[np.float64]
SILENT_AFTER_PAUSES = 3.0  # times its longest pause so far, after which an output counts as silent


@kept
def listen(t: float, flags: Codes, clocks: Array, silent: NDArray[np.bool_]) -> bool:
    """Take note of the outputs that are heard at the time t; whether some is silent, and which.

    `clocks` (3, m): when each was last heard, its longest pause, and how often it was heard; three times make its clock known.
    """
    some = False
    for j in range(len(flags)):
        heard, often = flags[j] != MISSING, clocks[2, j]
        gap = t - clocks[0, j] if often > 0.0 else 0.0
        overdue = often > 2.0 and gap > SILENT_AFTER_PAUSES * clocks[1, j]
        silent[j] = overdue and not heard
        some |= silent[j]
        if heard:
            if not overdue:
                clocks[1, j] = max(clocks[1, j], gap)
            clocks[0, j] = t
            clocks[2, j] += 1.0
    return some
