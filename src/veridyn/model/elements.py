"""Everything linear in its parameter that is not inertia: one element is one column.

An element acts through a combination of coordinates ``c = Σ aᵢ qᵢ`` (its force on coordinate i is aᵢ times its value), or as
one component of a wrench that a body exerts on its surroundings (drag, and an offset on "body.fx", which is what
the zero of a force sensor or an accelerometer looks like). Signs are those of equation (17) of paper 000: the
element's force stands on the side of the inertia forces, ``Γ = … + k c``, so a positive spring or damper resists.

================= ================== ============================================ =====================
kind              column, v = dc/dt  parameter                                    unit (turning | sliding)
================= ================== ============================================ =====================
spring            c                  stiffness k; on a difference: anti-roll bar  N*m/rad | N/m
offset            1                  constant force or torque                     N*m | N
damper            v                  viscous coefficient h                        N*m*s/rad | N*s/m
damper_forward    v where v > 0      the same, forwards only                      N*m*s/rad | N*s/m
damper_backward   v where v < 0      the same, backwards only                     N*m*s/rad | N*s/m
coulomb           sign(v)            dry friction fs                              N*m | N
coulomb_forward   1 where v > 0      the same, forwards only                      N*m | N
coulomb_backward  −1 where v < 0     the same, backwards only                     N*m | N
stribeck          sign(v)/(1+(v/vs)²) static friction above fs; vs its `speed`    N*m | N
inertia           d²c/dt²            inertia of the motor, seen from c            kg*m^2 | kg
drive_gain        −signal            force per unit of a measured signal          N*m/A | N/A
drag              V²                 force per squared speed of a body            N/(m/s)^2, N*m/(m/s)^2
================= ================== ============================================ =====================

Friction that differs forwards and backwards is linear in its parameters, one column for each way; what both ways of dry friction have in
common with an offset cannot be told from it, so one of the three is left out. Stribeck's curve is linear in its height and not in
its speed vs, which is a constant of the element; :mod:`veridyn.identify.stribeck` finds it from data. The curve is that of
Hess and Soom (1990, J. Tribology 112(1)), a rational function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

NAN = float("nan")
WRENCH_ROWS = ("fx", "fy", "fz", "mx", "my", "mz")


@dataclass(frozen=True)
class ElementKind:
    """What a kind is called in parameter names, and its unit on a turning and on a sliding combination."""

    symbol: str
    turning: str
    sliding: str
    doc: str


KINDS: Mapping[str, ElementKind] = MappingProxyType(
    {
        "spring": ElementKind("k", "N*m/rad", "N/m", "stiffness"),
        "offset": ElementKind("off", "N*m", "N", "constant force"),
        "damper": ElementKind("h", "N*m*s/rad", "N*s/m", "viscous coefficient"),
        "damper_forward": ElementKind("hp", "N*m*s/rad", "N*s/m", "viscous coefficient forwards"),
        "damper_backward": ElementKind("hn", "N*m*s/rad", "N*s/m", "viscous coefficient backwards"),
        "coulomb": ElementKind("fs", "N*m", "N", "dry friction"),
        "coulomb_forward": ElementKind("fsp", "N*m", "N", "dry friction forwards"),
        "coulomb_backward": ElementKind("fsn", "N*m", "N", "dry friction backwards"),
        "stribeck": ElementKind("fst", "N*m", "N", "static above dry friction"),
        "inertia": ElementKind("Ia", "kg*m^2", "kg", "motor inertia"),
        "drive_gain": ElementKind("K", "N*m/A", "N/A", "force per unit of a signal"),
        "drag": ElementKind("C", "N*m/(m/s)^2", "N/(m/s)^2", "force per squared speed"),
    }
)


@dataclass(frozen=True)
class Element:
    """One element: `on` maps coordinates to their coefficients aᵢ, or, for drag and offsets, one "body.fx" to its coefficient.

    `name` is the name of its parameter; empty, it is made of the kind's symbol and what the element acts on (k_z1).
    `value` is the prior, NaN where nobody knows it. `signal` names the measured signal of a drive gain. `speed` is the vs of a
    Stribeck curve, rad/s or m/s.
    """

    kind: str
    on: Mapping[str, float]
    value: float = NAN
    name: str = ""
    signal: str = ""
    typical: float = NAN
    unit: str = ""
    speed: float = NAN

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", MappingProxyType({str(k): float(v) for k, v in self.on.items()}))

    def __reduce__(self) -> tuple[type[Element], tuple[object, ...]]:
        own = (self.kind, dict(self.on), self.value, self.name, self.signal, self.typical, self.unit)
        return Element, own if math.isnan(self.speed) else (*own, self.speed)

    def __hash__(self) -> int:
        return hash((self.kind, self.name, tuple(self.on.items()), self.signal))

    @property
    def parameter_name(self) -> str:
        if self.name:
            return self.name
        symbol = KINDS[self.kind].symbol if self.kind in KINDS else self.kind
        return f"{symbol}_" + "_".join(target.replace(".", "_") for target in self.on)

    @property
    def on_body(self) -> tuple[str, int] | None:
        """For a drag, or an offset on a body: that body and the component 0..5 of its wrench; None for what acts on coordinates."""
        if self.kind not in ("drag", "offset") or len(self.on) != 1:
            return None
        body, dot, component = next(iter(self.on)).rpartition(".")
        return (body, WRENCH_ROWS.index(component)) if dot and component in WRENCH_ROWS else None


def _on(target: str | Mapping[str, float]) -> Mapping[str, float]:
    return {target: 1.0} if isinstance(target, str) else target


def spring(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    return Element("spring", _on(on), value, name)


def offset(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    return Element("offset", _on(on), value, name)


def damper(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    return Element("damper", _on(on), value, name)


def coulomb(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    return Element("coulomb", _on(on), value, name)


def asymmetric(on: str | Mapping[str, float]) -> tuple[Element, ...]:
    """Dry and viscous friction of each direction: four elements, fsp, fsn, hp and hn. Together with an offset they are one too many."""
    return tuple(
        Element(kind, _on(on)) for kind in ("coulomb_forward", "coulomb_backward", "damper_forward", "damper_backward")
    )


def stribeck(on: str | Mapping[str, float], speed: float, value: float = NAN, name: str = "") -> Element:
    """What static friction has above dry friction, falling with speed: at `speed` half of it is left."""
    return Element("stribeck", _on(on), value, name, speed=speed)


def motor_inertia(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    return Element("inertia", _on(on), value, name)


def drive_gain(on: str | Mapping[str, float], signal: str, value: float = NAN, name: str = "") -> Element:
    return Element("drive_gain", _on(on), value, name, signal)


def drag(on: str, value: float = NAN, name: str = "") -> Element:
    """Drag on one component of a body's wrench, such as "chassis.fx"; positive values oppose forward motion."""
    return Element("drag", _on(on), value, name)
