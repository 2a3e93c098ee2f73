"""Everything linear in its parameter that is not inertia: one element is one column.

An element acts through a combination of coordinates ``c = Σ aᵢ qᵢ`` (its force on coordinate i is aᵢ times its value), or as
one component of a wrench that a body exerts on its surroundings (drag). Signs are those of equation (17) of paper 000: the
element's force stands on the side of the inertia forces, ``Γ = … + k c``, so a positive spring or damper resists.

========== ================ ============================================ =====================
kind       column           parameter                                    unit (turning | sliding)
========== ================ ============================================ =====================
spring     c                stiffness k; on a difference: anti-roll bar  N*m/rad | N/m
offset     1                constant force or torque                     N*m | N
damper     dc/dt            viscous coefficient h                        N*m*s/rad | N*s/m
coulomb    sign(dc/dt)      dry friction fs                              N*m | N
inertia    d²c/dt²          inertia of the motor, seen from c            kg*m^2 | kg
drive_gain −signal          force per unit of a measured signal          N*m/A | N/A
drag       V²               force per squared speed of a body            N/(m/s)^2, N*m/(m/s)^2
========== ================ ============================================ =====================
"""

from __future__ import annotations

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
        "coulomb": ElementKind("fs", "N*m", "N", "dry friction"),
        "inertia": ElementKind("Ia", "kg*m^2", "kg", "motor inertia"),
        "drive_gain": ElementKind("K", "N*m/A", "N/A", "force per unit of a signal"),
        "drag": ElementKind("C", "N*m/(m/s)^2", "N/(m/s)^2", "force per squared speed"),
    }
)


@dataclass(frozen=True)
class Element:
    """One element: `on` maps coordinates to their coefficients aᵢ, or, for drag, one "body.fx" to its coefficient.

    `name` is the name of its parameter; empty, it is made of the kind's symbol and what the element acts on (k_z1).
    `value` is the prior, NaN where nobody knows it. `signal` names the measured signal of a drive gain.
    """

    kind: str
    on: Mapping[str, float]
    value: float = NAN
    name: str = ""
    signal: str = ""
    typical: float = NAN
    unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", MappingProxyType({str(k): float(v) for k, v in self.on.items()}))

    def __reduce__(self) -> tuple[type[Element], tuple[object, ...]]:
        return Element, (self.kind, dict(self.on), self.value, self.name, self.signal, self.typical, self.unit)

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
        """For a drag: the body it acts on and the component 0..5 of its wrench; None for all other kinds."""
        if self.kind != "drag" or len(self.on) != 1:
            return None
        body, _, component = next(iter(self.on)).rpartition(".")
        return (body, WRENCH_ROWS.index(component)) if component in WRENCH_ROWS else None


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


def motor_inertia(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    return Element("inertia", _on(on), value, name)


def drive_gain(on: str | Mapping[str, float], signal: str, value: float = NAN, name: str = "") -> Element:
    return Element("drive_gain", _on(on), value, name, signal)


def drag(on: str, value: float = NAN, name: str = "") -> Element:
    """Drag on one component of a body's wrench, such as "chassis.fx"; positive values oppose forward motion."""
    return Element("drag", _on(on), value, name)
