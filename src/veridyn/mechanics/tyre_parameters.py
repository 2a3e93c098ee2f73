"""The coefficients of a Magic Formula tyre under the names of the .tir file, and their places in a flat array.

Axes and signs are ISO 8855, in the road's tangent plane at the contact: x forward in the wheel's plane, y left, z up. κ is positive
when driving, α = atan(v_y/|v_x|) is positive when the contact moves to the left, γ is positive when the top leans to the
right (a turn about +x). A tyre that resists therefore has PKY1 < 0: a contact moving left is pushed right. Coefficients printed in
Pacejka's adapted SAE axes (y right, z down, PKY1 > 0) come in through :func:`from_adapted_sae`.
Reference: H. B. Pacejka, Tyre and Vehicle Dynamics, section 4.3.2, in the form known as PAC2002.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
INF = math.inf


@dataclass(frozen=True)
class TyreParameters:
    """All coefficients, in SI and radians: those not given are zero, scaling factors (L…) one, ranges without end.

    `packed` holds them in the order of the fields, for compiled code. A tyre that cannot carry load, hold, or resist slip is refused,
    with every fault named.
    """

    # the wheel and its contact
    FNOMIN: float = 0.0  # N, nominal load F_z0
    UNLOADED_RADIUS: float = 0.0  # m, R_0
    VERTICAL_STIFFNESS: float = 0.0  # N/m
    VERTICAL_DAMPING: float = 0.0  # N*s/m
    BREFF: float = 0.0
    DREFF: float = 0.0
    FREFF: float = 0.0
    LONGVL: float = 16.7  # m/s, speed of the measurement, the scale of QSY3 and QSY4

    # ranges of the measurement; outside, the value at the limit is used
    FZMIN: float = 0.0
    FZMAX: float = INF
    KPUMIN: float = -INF
    KPUMAX: float = INF
    ALPMIN: float = -INF
    ALPMAX: float = INF
    CAMMIN: float = -INF
    CAMMAX: float = INF

    # scaling factors
    LFZO: float = 1.0
    LCX: float = 1.0
    LMUX: float = 1.0
    LEX: float = 1.0
    LKX: float = 1.0
    LHX: float = 1.0
    LVX: float = 1.0
    LGAX: float = 1.0
    LCY: float = 1.0
    LMUY: float = 1.0
    LEY: float = 1.0
    LKY: float = 1.0
    LHY: float = 1.0
    LVY: float = 1.0
    LGAY: float = 1.0
    LTR: float = 1.0
    LRES: float = 1.0
    LGAZ: float = 1.0
    LXAL: float = 1.0
    LYKA: float = 1.0
    LVYKA: float = 1.0
    LS: float = 1.0
    LSGKP: float = 1.0
    LSGAL: float = 1.0
    LMX: float = 1.0
    LVMX: float = 1.0
    LMY: float = 1.0

    # longitudinal, pure and combined
    PCX1: float = 0.0
    PDX1: float = 0.0
    PDX2: float = 0.0
    PDX3: float = 0.0
    PEX1: float = 0.0
    PEX2: float = 0.0
    PEX3: float = 0.0
    PEX4: float = 0.0
    PKX1: float = 0.0
    PKX2: float = 0.0
    PKX3: float = 0.0
    PHX1: float = 0.0
    PHX2: float = 0.0
    PVX1: float = 0.0
    PVX2: float = 0.0
    RBX1: float = 0.0
    RBX2: float = 0.0
    RCX1: float = 0.0
    REX1: float = 0.0
    REX2: float = 0.0
    RHX1: float = 0.0
    PTX1: float = 0.0
    PTX2: float = 0.0
    PTX3: float = 0.0

    # lateral, pure and combined
    PCY1: float = 0.0
    PDY1: float = 0.0
    PDY2: float = 0.0
    PDY3: float = 0.0
    PEY1: float = 0.0
    PEY2: float = 0.0
    PEY3: float = 0.0
    PEY4: float = 0.0
    PKY1: float = 0.0
    PKY2: float = 0.0
    PKY3: float = 0.0
    PHY1: float = 0.0
    PHY2: float = 0.0
    PHY3: float = 0.0
    PVY1: float = 0.0
    PVY2: float = 0.0
    PVY3: float = 0.0
    PVY4: float = 0.0
    RBY1: float = 0.0
    RBY2: float = 0.0
    RBY3: float = 0.0
    RCY1: float = 0.0
    REY1: float = 0.0
    REY2: float = 0.0
    RHY1: float = 0.0
    RHY2: float = 0.0
    RVY1: float = 0.0
    RVY2: float = 0.0
    RVY3: float = 0.0
    RVY4: float = 0.0
    RVY5: float = 0.0
    RVY6: float = 0.0
    PTY1: float = 0.0
    PTY2: float = 0.0

    # moments: overturning, rolling resistance, aligning
    QSX1: float = 0.0
    QSX2: float = 0.0
    QSX3: float = 0.0
    QSY1: float = 0.0
    QSY2: float = 0.0
    QSY3: float = 0.0
    QSY4: float = 0.0
    QBZ1: float = 0.0
    QBZ2: float = 0.0
    QBZ3: float = 0.0
    QBZ4: float = 0.0
    QBZ5: float = 0.0
    QBZ9: float = 0.0
    QBZ10: float = 0.0
    QCZ1: float = 0.0
    QDZ1: float = 0.0
    QDZ2: float = 0.0
    QDZ3: float = 0.0
    QDZ4: float = 0.0
    QDZ6: float = 0.0
    QDZ7: float = 0.0
    QDZ8: float = 0.0
    QDZ9: float = 0.0
    QEZ1: float = 0.0
    QEZ2: float = 0.0
    QEZ3: float = 0.0
    QEZ4: float = 0.0
    QEZ5: float = 0.0
    QHZ1: float = 0.0
    QHZ2: float = 0.0
    QHZ3: float = 0.0
    QHZ4: float = 0.0
    SSZ1: float = 0.0
    SSZ2: float = 0.0
    SSZ3: float = 0.0
    SSZ4: float = 0.0

    # what a file said beside them: (section, key, text), kept so that nothing is lost when it is written again
    other: tuple[tuple[str, str, str], ...] = ()

    def __post_init__(self) -> None: ...

    @property
    def packed(self) -> Array:
        """The coefficients as one float array; the constants of this module are its indices."""
        return np.array([getattr(self, name) for name in NAMES], dtype=np.float64)

    @property
    def values(self) -> dict[str, float]:
        """Name → coefficient, in the order of `packed`."""
        return {name: getattr(self, name) for name in NAMES}


NAMES = tuple(field.name for field in dataclasses.fields(TyreParameters) if field.name != "other")


def mirrored(parameters: TyreParameters) -> TyreParameters: ...


def from_adapted_sae(coefficients: Mapping[str, float]) -> TyreParameters: ...
