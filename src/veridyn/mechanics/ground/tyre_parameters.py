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
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, did_you_mean

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

    def __post_init__(self) -> None:
        faults = Faults()
        for name in NAMES:
            value = float(getattr(self, name))
            object.__setattr__(self, name, value)
            if not (math.isfinite(value) or (name in RANGES and not math.isnan(value))):
                faults.add(
                    "it is not a finite number.",
                    where=f"tyre coefficient {name}",
                    at=("coefficient", name),
                    found=str(value),
                )
        for name in ESSENTIAL:
            if getattr(self, name) == 0.0:
                faults.add(
                    "it is missing or zero; without it there is no force.",
                    where=f"tyre coefficient {name}",
                    at=("coefficient", name),
                    expected=ESSENTIAL[name],
                    found="0",
                )
        for name in (*POSITIVE, *NOT_NEGATIVE):
            if getattr(self, name) < 0.0:
                faults.add(
                    "its sign cannot be right.",
                    where=f"tyre coefficient {name}",
                    at=("coefficient", name),
                    expected="a positive number" if name in POSITIVE else "zero or more",
                    found=f"{getattr(self, name):g}",
                )
        if self.PKY1 * self.PKY2 > 0.0:
            faults.add(
                "the slip angle would be driven, not resisted.",
                where="tyre coefficient PKY1",
                at=("coefficient", "PKY1"),
                expected="a negative number in ISO axes (y left), with PKY2 positive",
                found=f"PKY1 = {self.PKY1:g}, PKY2 = {self.PKY2:g}",
                hint="If the coefficients are in Pacejka's adapted SAE axes (y right), use from_adapted_sae.",
            )
        for low, high in zip(RANGES[::2], RANGES[1::2], strict=True):
            ends = getattr(self, low), getattr(self, high)
            if not (ends[0] < ends[1] and (low == "FZMIN" or ends[0] < 0.0 < ends[1])):
                faults.add(
                    "no wheel that rolls freely is within the range.",
                    where=f"{low}, {high}",
                    expected="a lower and a higher load" if low == "FZMIN" else "a negative and a positive limit",
                    found=f"{ends[0]:g} to {ends[1]:g}",
                )
        faults.raise_if_any(ModelError)

    @property
    def packed(self) -> Array:
        """The coefficients as one float array; the constants of this module are its indices."""
        return np.array([getattr(self, name) for name in NAMES], dtype=np.float64)

    @property
    def values(self) -> dict[str, float]:
        """Name → coefficient, in the order of `packed`."""
        return {name: getattr(self, name) for name in NAMES}


NAMES = tuple(field.name for field in dataclasses.fields(TyreParameters) if field.name != "other")
RANGES = ("FZMIN", "FZMAX", "KPUMIN", "KPUMAX", "ALPMIN", "ALPMAX", "CAMMIN", "CAMMAX")
ESSENTIAL = {
    "FNOMIN": "the nominal load, N",
    "UNLOADED_RADIUS": "the free radius, m",
    "VERTICAL_STIFFNESS": "the vertical stiffness, N/m",
    "LONGVL": "the speed of the measurement, m/s",
    "LFZO": "the scale of the nominal load, usually 1",
    "PCX1": "the shape of F_x, about 1.6",
    "PDX1": "the longitudinal friction, about 1",
    "PKX1": "the longitudinal slip stiffness over F_z, about 20",
    "PCY1": "the shape of F_y, about 1.3",
    "PDY1": "the lateral friction, about 1",
    "PKY1": "the greatest cornering stiffness over F_z0, about -20",
    "PKY2": "the load of the greatest cornering stiffness over F_z0, about 2",
}
POSITIVE = ("FNOMIN", "UNLOADED_RADIUS", "VERTICAL_STIFFNESS", "LONGVL", "LFZO", "PKX1")
NOT_NEGATIVE = ("VERTICAL_DAMPING", "LMUX", "LMUY", "FZMIN")

# The place of each coefficient in `packed`; compiled code reads p[PCX1].
# fmt: off
(
    FNOMIN, UNLOADED_RADIUS, VERTICAL_STIFFNESS, VERTICAL_DAMPING, BREFF, DREFF, FREFF, LONGVL, FZMIN, FZMAX,
    KPUMIN, KPUMAX, ALPMIN, ALPMAX, CAMMIN, CAMMAX, LFZO, LCX, LMUX, LEX, LKX, LHX, LVX, LGAX, LCY, LMUY, LEY, LKY,
    LHY, LVY, LGAY, LTR, LRES, LGAZ, LXAL, LYKA, LVYKA, LS, LSGKP, LSGAL, LMX, LVMX, LMY, PCX1, PDX1, PDX2, PDX3,
    PEX1, PEX2, PEX3, PEX4, PKX1, PKX2, PKX3, PHX1, PHX2, PVX1, PVX2, RBX1, RBX2, RCX1, REX1, REX2, RHX1, PTX1,
    PTX2, PTX3, PCY1, PDY1, PDY2, PDY3, PEY1, PEY2, PEY3, PEY4, PKY1, PKY2, PKY3, PHY1, PHY2, PHY3, PVY1, PVY2,
    PVY3, PVY4, RBY1, RBY2, RBY3, RCY1, REY1, REY2, RHY1, RHY2, RVY1, RVY2, RVY3, RVY4, RVY5, RVY6, PTY1, PTY2,
    QSX1, QSX2, QSX3, QSY1, QSY2, QSY3, QSY4, QBZ1, QBZ2, QBZ3, QBZ4, QBZ5, QBZ9, QBZ10, QCZ1, QDZ1, QDZ2, QDZ3,
    QDZ4, QDZ6, QDZ7, QDZ8, QDZ9, QEZ1, QEZ2, QEZ3, QEZ4, QEZ5, QHZ1, QHZ2, QHZ3, QHZ4, SSZ1, SSZ2, SSZ3, SSZ4,
) = range(len(NAMES))
# fmt: on

# What makes the left of a tyre differ from its right.
_SIDE = (
    *("PEY3", "PHY1", "PHY2", "PVY1", "PVY2", "RHX1", "RBY3", "RVY1", "RVY2", "QSX1"),
    *("QBZ4", "QDZ3", "QDZ6", "QDZ7", "QEZ4", "QHZ1", "QHZ2", "SSZ1"),
)
# What turns with F_y and M_z when y and z are turned and κ, α and γ keep their signs.
_ADAPTED = (
    *("PKY1", "PVY1", "PVY2", "PVY3", "PVY4", "RVY1", "RVY2", "RVY3", "QSX3", "QBZ9"),
    *("QDZ6", "QDZ7", "QDZ8", "QDZ9", "SSZ1", "SSZ3", "SSZ4"),
)


def mirrored(parameters: TyreParameters) -> TyreParameters:
    """The same tyre on the other side of the car: (F_x, −F_y, −M_z) at (κ, −α, −γ)."""
    turned: dict[str, Any] = {name: -getattr(parameters, name) for name in _SIDE}
    turned |= {"ALPMIN": -parameters.ALPMAX, "ALPMAX": -parameters.ALPMIN}
    turned |= {"CAMMIN": -parameters.CAMMAX, "CAMMAX": -parameters.CAMMIN}
    return dataclasses.replace(parameters, **{name: value + 0.0 for name, value in turned.items()})  # no −0


def from_adapted_sae(coefficients: Mapping[str, float]) -> TyreParameters:
    """A tyre whose coefficients are in the axes of Pacejka's book: y right, z down, α so that F_y = +K_y α.

    There α, κ and γ have the same signs as here, and F_y and M_z the opposite ones; so have the coefficients that carry them.
    """
    faults = Faults()
    for name in coefficients:
        if name not in NAMES:
            faults.add("it is not a coefficient of this model.", where=name, hint=did_you_mean(name, NAMES))
    faults.raise_if_any(ModelError)
    turned: dict[str, Any] = {n: -value if n in _ADAPTED else value for n, value in coefficients.items()}
    return TyreParameters(**turned)
