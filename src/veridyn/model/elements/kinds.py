"""The kinds of elements: what each is called, its units, and the constants inside its law.

An element is its parameter (a gain) times a law of c and v = dc/dt, where c is a combination of coordinates or the distance of two places.

================= =================== ============================================ ==========================
kind              law                 parameter                                    unit (turning | sliding)
================= =================== ============================================ ==========================
spring            c − rest            stiffness k; on a difference: anti-roll bar  N*m/rad | N/m
offset            1                   constant force, torque or tension            N*m | N
damper            v                   viscous coefficient h                        N*m*s/rad | N*s/m
damper_forward    v where v > 0       the same, forwards only                      N*m*s/rad | N*s/m
damper_backward   v where v < 0       the same, backwards only                     N*m*s/rad | N*s/m
coulomb           sign(v)             dry friction fs                              N*m | N
coulomb_forward   1 where v > 0       the same, forwards only                      N*m | N
coulomb_backward  −1 where v < 0      the same, backwards only                     N*m | N
coulomb_along     u sign(v)           dry friction that changes along c, u =         N*m | N
                                      (c − middle)/half; coulomb_along2 … 4 with u² … u⁴
stribeck          sign(v)/(1+|v/vs|ⁿ) static friction above fs; `speed`, exponent  N*m | N
tanh_friction     tanh(v/vs)          dry friction without a jump; vs its `speed`  N*m | N
cubic             (c − rest)³         stiffness of third order                     N*m/rad^3 | N/m^3
bump_stop         c − gap where above stiffness beyond a gap on one side           N*m/rad | N/m
dead_zone         c ∓ gap outside     stiffness outside ±gap, none inside          N*m/rad | N/m
lugre             (z + τ ż)/ζ         dry friction of the LuGre model, state z      N*m | N
maxwell           s                   stiffness of a spring and damper in series   N*m/rad | N/m
relaxation        s                   stiffness whose force follows with a lag     N*m/rad | N/m
dc_motor          −i                  torque constant of a motor, its current i    N*m/A | N/A
inertia           d²c/dt²             inertia of the motor, seen from c            kg*m^2 | kg
drive_gain        −signal             force per unit of a measured signal          N*m/A | N/A
drag              V²                  force per squared speed of a body            N/(m/s)^2, N*m/(m/s)^2
law               a formula           what a formula of one's own is multiplied by N*m | N
table             points              what a table is multiplied by                 N*m | N
tyre              Magic Formula       share of a tyre's force and moment           1
linear_tyre       C_κ κ', −C_α tan α' share of a tyre's force and moment           1
================= =================== ============================================ ==========================

Laws of one's own are those of :mod:`veridyn.model.elements.own_law`, and tables; `unit` states that of their parameter.

A law is linear in its parameter and not in its constants (`speed`, `exponent`, `rest`, `gap`), which belong to the element and are listed
by :attr:`veridyn.model.machine.Machine.constants`. Friction that differs forwards and backwards is linear in its parameters, one column for
each direction; what both directions of dry friction have in common with an offset cannot be separated from it, so one of the three is
left out. Stribeck's curve with exponent 2 is that of Hess and Soom (1990, J. Tribology 112(1)), a rational function. A stop on the other
side is a `bump_stop` on −c.

Laws with a state of their own (`states`) have a differential equation besides:

- lugre: ż = v − |v| z/(ζ g), g = 1 + (ratio − 1) e^(−(v/speed)²); ζ is the `deflection` at which the bristles slide, τ their damping
  `time`, `ratio` that of static to dry friction. At constant speed the law is g sign(v). Canudas de Wit et al., 1995, IEEE T-AC 40(3).
- maxwell: ṡ = v − s/`time`.
- dc_motor: `inductance` di/dt = u − `resistance` i − `emf` v, u the voltage (V) that `signal` names. c is the angle of the motor:
  with a gear of ratio N it acts `on` N q.
- tyre, linear_tyre: see below; they act on a `wheel`, and their states are the lagging slips.
- relaxation: ṡ = |V| (c − s)/`length`, V the travelling speed that `signal` names: a tyre's force follows its slip over a length.

Tyres act on a wheel where it touches the road:

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
from dataclasses import dataclass
from types import MappingProxyType

NAN = float("nan")


@dataclass(frozen=True, kw_only=True)
class ConstantKind:
    """A constant inside a law: its unit on a turning and on a sliding combination, its default (NaN: required) and its bounds."""

    key: str
    turning: str
    sliding: str
    doc: str
    default: float = NAN
    low: float = -math.inf
    high: float = math.inf

    @property
    def required(self) -> bool:
        return math.isnan(self.default)

    def allows(self, value: float) -> bool:
        """Whether a value is finite and lies strictly between the bounds."""
        return math.isfinite(value) and self.low < value < self.high


@dataclass(frozen=True)
class StateKind:
    """A state of an element's own: its unit on a turning and on a sliding combination."""

    key: str
    turning: str
    sliding: str


@dataclass(frozen=True, kw_only=True)
class ElementKind:
    """What a kind is called in parameter names, its unit on a turning and on a sliding combination, and the constants of its law.

    `between`: whether it may act along the line between two places. `states`: those of its own. `signal`: what the measured signal that it
    needs is; empty where it needs none. `wheel`: whether it acts on a wheel, between it and the road, in place of coordinates; `inputs`
    are then what it reads of the road, signals "parameter.key" that are zero where nobody gives them.
    """

    symbol: str
    turning: str
    sliding: str
    doc: str
    constants: tuple[ConstantKind, ...] = ()
    between: bool = True
    states: tuple[StateKind, ...] = ()
    signal: str = ""
    wheel: bool = False
    inputs: tuple[str, ...] = ()

    def constant(self, key: str) -> ConstantKind | None:
        """The constant of this name, None where the kind has none."""
        return next((c for c in self.constants if c.key == key), None)


__all__ = ["CONSTANT_KEYS", "KINDS", "NAN", "ConstantKind", "ElementKind", "StateKind"]


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


def _kind(
    symbol: str,
    turning: str,
    sliding: str,
    doc: str,
    *constants: ConstantKind,
    between: bool = True,
    states: tuple[StateKind, ...] = (),
    signal: str = "",
) -> ElementKind:
    return ElementKind(
        symbol=symbol,
        turning=turning,
        sliding=sliding,
        doc=doc,
        constants=constants,
        between=between,
        states=states,
        signal=signal,
    )


def _positive(key: str, turning: str, sliding: str, doc: str, default: float = NAN) -> ConstantKind:
    return ConstantKind(key=key, turning=turning, sliding=sliding, doc=doc, default=default, low=0.0)


REST = ConstantKind(key="rest", turning="rad", sliding="m", doc="where the spring is relaxed", default=0.0)
GAP = ConstantKind(key="gap", turning="rad", sliding="m", doc="how far c moves before it touches")
WIDTH = ConstantKind(key="gap", turning="rad", sliding="m", doc="half the width in which there is no force", low=0.0)
EXPONENT = ConstantKind(
    key="exponent", turning="1", sliding="1", doc="how steeply it falls with speed", default=2.0, low=0.0, high=20.0
)
SMOOTH = ConstantKind(
    key="speed", turning="rad/s", sliding="m/s", doc="the speed at which 76 % of it is reached", low=0.0
)
MIDDLE = ConstantKind(key="middle", turning="rad", sliding="m", doc="the middle of the way", default=0.0)
HALF = ConstantKind(key="half", turning="rad", sliding="m", doc="half of the way", low=0.0)
SPEED = ConstantKind(key="speed", turning="rad/s", sliding="m/s", doc="the speed at which half of it is left", low=0.0)

ALONG_KINDS = {"coulomb_along": 1, "coulomb_along2": 2, "coulomb_along3": 3, "coulomb_along4": 4}  # the power of u

KINDS: Mapping[str, ElementKind] = MappingProxyType(
    {
        "spring": _kind("k", "N*m/rad", "N/m", "stiffness", REST),
        "offset": _kind("off", "N*m", "N", "constant force"),
        "damper": _kind("h", "N*m*s/rad", "N*s/m", "viscous coefficient"),
        "damper_forward": _kind("hp", "N*m*s/rad", "N*s/m", "viscous coefficient forwards"),
        "damper_backward": _kind("hn", "N*m*s/rad", "N*s/m", "viscous coefficient backwards"),
        "coulomb": _kind("fs", "N*m", "N", "dry friction"),
        "coulomb_forward": _kind("fsp", "N*m", "N", "dry friction forwards"),
        "coulomb_backward": _kind("fsn", "N*m", "N", "dry friction backwards"),
        **{
            kind: _kind(f"fq{kind[13:]}", "N*m", "N", "dry friction that changes along the way", MIDDLE, HALF)
            for kind in ALONG_KINDS
        },
        "stribeck": _kind("fst", "N*m", "N", "static above dry friction", SPEED, EXPONENT),
        "tanh_friction": _kind("ft", "N*m", "N", "dry friction without a jump", SMOOTH),
        "cubic": _kind("k3", "N*m/rad^3", "N/m^3", "stiffness of third order", REST),
        "bump_stop": _kind("kb", "N*m/rad", "N/m", "stiffness beyond a gap", GAP),
        "dead_zone": _kind("kd", "N*m/rad", "N/m", "stiffness outside a gap", WIDTH),
        "lugre": _kind(
            "fl",
            "N*m",
            "N",
            "dry friction of the LuGre model",
            _positive("deflection", "rad", "m", "the deflection at which it slides"),
            ConstantKind(
                key="ratio", turning="1", sliding="1", doc="static to dry friction", default=1.0, low=0.0, high=100.0
            ),
            _positive("speed", "rad/s", "m/s", "the speed at which static friction has fallen", 1.0),
            _positive("time", "s", "s", "the damping of its deflection"),
            states=(StateKind("z", "rad", "m"),),
        ),
        "maxwell": _kind(
            "km",
            "N*m/rad",
            "N/m",
            "stiffness in series with a damper",
            _positive("time", "s", "s", "the time in which its force fades"),
            states=(StateKind("s", "rad", "m"),),
        ),
        "relaxation": _kind(
            "kr",
            "N*m/rad",
            "N/m",
            "stiffness of a force that follows over a length",
            _positive("length", "m", "m", "the length travelled in which the force follows"),
            states=(StateKind("s", "rad", "m"),),
            signal="the speed of travel",
        ),
        "dc_motor": _kind(
            "kt",
            "N*m/A",
            "N/A",
            "torque constant of a motor",
            _positive("resistance", "Ohm", "Ohm", "the resistance of its winding"),
            _positive("inductance", "H", "H", "the inductance of its winding"),
            ConstantKind(
                key="emf", turning="V*s/rad", sliding="V*s/m", doc="the voltage that its speed induces", low=BELOW_ZERO
            ),
            between=False,
            states=(StateKind("i", "A", "A"),),
            signal="the voltage",
        ),
        "inertia": _kind("Ia", "kg*m^2", "kg", "motor inertia", between=False),
        "drive_gain": _kind(
            "K", "N*m/A", "N/A", "force per unit of a signal", between=False, signal="what it multiplies"
        ),
        "law": _kind("g", "N*m", "N", "a law of one's own: a formula"),
        "table": _kind("gt", "N*m", "N", "a law of one's own: a table"),
        "drag": _kind("C", "N*m/(m/s)^2", "N/(m/s)^2", "force per squared speed", between=False),
        **TYRE_KINDS,
    }
)
CONSTANT_KEYS = tuple(dict.fromkeys(c.key for kind in KINDS.values() for c in kind.constants))
