"""The kinds of tyres: elements that act on a wheel where it touches the road.

    F_z = max(0, K_z d + C_z ḋ),    d = R_0 − ρ,    ρ from the wheel's centre to the road, in the wheel's plane
    σ_κ κ̇' + V κ' = Ω R_e − v_x,   σ_α (tan α')˙ + V tan α' = v_y,   V = max(|v_x|, 1 m/s)
    M_y = −f F_z R_0 tanh(Ω R_0/(0.1 m/s)),    R_e = R_0 − (F_z0/K_z) (D_reff atan(B_reff r) + F_reff r),    r = K_z d/F_z0

Constants have the names of .tir files (Pacejka, Tyre and Vehicle Dynamics, section 4.3.2, in the form known as PAC2002), in SI units and
ISO axes: x forward in the wheel's plane, y left, z up; a tyre that resists has PKY1 < 0. Coefficients that are not among them count as
zero, scaling factors as one. Besides: `ROAD` is the height of the road (m) where nothing else is known of it, `SIGMA_MIN` the shortest
relaxation length, and a linear tyre has `C_KAPPA`, `C_ALPHA`, `SIGMA_KAPPA` and `SIGMA_ALPHA`, its stiffnesses and relaxation lengths.

The road under a wheel is a plane z = ROAD + road + road_x x + road_y y in the ground's axes; `road`, `road_x` and `road_y` are inputs of
the element, zero by default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from veridyn.model.element_kind import NAN, ConstantKind, ElementKind, StateKind

ROAD_INPUTS = ("road", "road_x", "road_y")
SLIPS = (StateKind("kappa", "1", "1"), StateKind("tan_alpha", "1", "1"))
NOMINAL_UNIT = "1"


def _constant(
    key: str, unit: str, doc: str, default: float = NAN, low: float = -math.inf, high: float = math.inf
) -> ConstantKind:
    return ConstantKind(key=key, turning=unit, sliding=unit, doc=doc, default=default, low=low, high=high)


def _coefficients(doc: str, **defaults: float) -> tuple[ConstantKind, ...]:
    return tuple(_constant(key, "1", doc, default) for key, default in defaults.items())


BELOW_ZERO = -1e-300  # a lower bound that zero passes
CONTACT = (
    _constant("UNLOADED_RADIUS", "m", "the radius without load, R_0", low=0.0),
    _constant("VERTICAL_STIFFNESS", "N/m", "the vertical stiffness, K_z", low=0.0),
    _constant("VERTICAL_DAMPING", "N*s/m", "the vertical damping, C_z", 0.0, BELOW_ZERO),
    _constant("FNOMIN", "N", "the nominal load, F_z0", low=0.0),
    _constant("BREFF", "1", "how soon the effective radius shrinks with load", 0.0, BELOW_ZERO),
    _constant("DREFF", "1", "how far the effective radius shrinks with load", 0.0),
    _constant("FREFF", "1", "how far the effective radius goes on shrinking", 0.0),
    _constant("QSY1", "1", "the rolling resistance f", 0.0),
    _constant("SIGMA_MIN", "m", "the shortest relaxation length", 0.05, 0.0),
    _constant("ROAD", "m", "the height of the road", 0.0),
)
LONGITUDINAL = (
    _constant("PCX1", "1", "the shape of F_x", low=0.0),
    _constant("PDX1", "1", "the friction along", low=0.0),
    *_coefficients("how the friction along changes with load", PDX2=0.0),
    _constant("PEX1", "1", "the curvature of F_x", 0.0, high=1.0),
    _constant("PKX1", "1", "the slip stiffness over load", low=0.0),
    *_coefficients("how the slip stiffness changes with load", PKX2=0.0, PKX3=0.0),
)
LATERAL = (
    _constant("PCY1", "1", "the shape of F_y", low=0.0),
    _constant("PDY1", "1", "the friction across", low=0.0),
    *_coefficients("how the friction across changes with load", PDY2=0.0),
    _constant("PEY1", "1", "the curvature of F_y", 0.0, high=1.0),
    _constant("PKY1", "1", "the greatest cornering stiffness over the nominal load", high=0.0),
    _constant("PKY2", "1", "the load of the greatest cornering stiffness over the nominal load", low=0.0),
)
COMBINED = _coefficients(
    "the loss of force by the other slip", RBX1=0.0, RBX2=0.0, RCX1=0.0, RBY1=0.0, RBY2=0.0, RBY3=0.0, RCY1=0.0
)
RELAXATION = (
    _constant("PTX1", "1", "the relaxation length along, over R_0 at the nominal load", 0.0),
    _constant("PTY1", "1", "the greatest relaxation length across, over R_0", 0.0),
    _constant("PTY2", "1", "the load of the greatest relaxation length across over the nominal load", 1.0, 0.0),
)
SCALING = (
    _constant("LMUX", "1", "a factor of the friction along", 1.0, 0.0),
    _constant("LMUY", "1", "a factor of the friction across", 1.0, 0.0),
)
LINEAR = (
    _constant("C_KAPPA", "N", "the slip stiffness", low=0.0),
    _constant("C_ALPHA", "N/rad", "the cornering stiffness", low=0.0),
    _constant("SIGMA_KAPPA", "m", "the relaxation length along", low=0.0),
    _constant("SIGMA_ALPHA", "m", "the relaxation length across", low=0.0),
)


def _tyre(symbol: str, *constants: ConstantKind) -> ElementKind:
    return ElementKind(
        symbol=symbol,
        turning=NOMINAL_UNIT,
        sliding=NOMINAL_UNIT,
        doc="share of a tyre's force and moment",
        constants=constants,
        between=False,
        states=SLIPS,
        wheel=True,
        inputs=ROAD_INPUTS,
    )


TYRE_KINDS: Mapping[str, ElementKind] = MappingProxyType(
    {
        "tyre": _tyre("tyre", *CONTACT, *LONGITUDINAL, *LATERAL, *COMBINED, *RELAXATION, *SCALING),
        "linear_tyre": _tyre("tyre", *CONTACT, *LINEAR),
    }
)
