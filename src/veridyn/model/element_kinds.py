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
stribeck          sign(v)/(1+|v/vs|ⁿ) static friction above fs; `speed`, exponent  N*m | N
tanh_friction     tanh(v/vs)          dry friction without a jump; vs its `speed`  N*m | N
cubic             (c − rest)³         stiffness of third order                     N*m/rad^3 | N/m^3
bump_stop         c − gap where above stiffness beyond a gap on one side           N*m/rad | N/m
dead_zone         c ∓ gap outside     stiffness outside ±gap, none inside          N*m/rad | N/m
lugre             (z + τ ż)/ζ         dry friction of the LuGre model, state z      N*m | N
maxwell           s                   stiffness of a spring and damper in series   N*m/rad | N/m
relaxation        s                   stiffness whose force follows with a lag     N*m/rad | N/m
inertia           d²c/dt²             inertia of the motor, seen from c            kg*m^2 | kg
drive_gain        −signal             force per unit of a measured signal          N*m/A | N/A
drag              V²                  force per squared speed of a body            N/(m/s)^2, N*m/(m/s)^2
law               a formula           what a formula of one's own is multiplied by N*m | N
table             points              what a table is multiplied by                 N*m | N
tyre              Magic Formula       share of a tyre's force and moment           1
linear_tyre       C_κ κ', −C_α tan α' share of a tyre's force and moment           1
================= =================== ============================================ ==========================

Laws of one's own are those of :mod:`veridyn.model.own_law` and :mod:`veridyn.model.table_law`; `unit` states that of their
parameter.

A law is linear in its parameter and not in its constants (`speed`, `exponent`, `rest`, `gap`), which belong to the element and are listed
by :attr:`veridyn.model.machine.Machine.constants`. Friction that differs forwards and backwards is linear in its parameters, one column for
each direction; what both directions of dry friction have in common with an offset cannot be separated from it, so one of the three is
left out. Stribeck's curve with exponent 2 is that of Hess and Soom (1990, J. Tribology 112(1)), a rational function. A stop on the other
side is a `bump_stop` on −c.

Laws with a state of their own (`states`) have a differential equation besides:

- lugre: ż = v − |v| z/(ζ g), g = 1 + (ratio − 1) e^(−(v/speed)²); ζ is the `deflection` at which the bristles slide, τ their damping
  `time`, `ratio` that of static to dry friction. At constant speed the law is g sign(v). Canudas de Wit et al., 1995, IEEE T-AC 40(3).
- maxwell: ṡ = v − s/`time`.
- tyre, linear_tyre: those of :mod:`veridyn.model.tyre_kinds`; they act on a `wheel`, and their states are the lagging slips.
- relaxation: ṡ = |V| (c − s)/`length`, V the travelling speed that `signal` names: a tyre's force follows its slip over a length.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from veridyn.model.element_kind import NAN, ConstantKind, ElementKind, StateKind
from veridyn.model.tyre_kinds import TYRE_KINDS

__all__ = ["CONSTANT_KEYS", "KINDS", "NAN", "ConstantKind", "ElementKind", "StateKind"]


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
SPEED = ConstantKind(key="speed", turning="rad/s", sliding="m/s", doc="the speed at which half of it is left", low=0.0)

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
