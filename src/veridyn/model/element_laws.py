"""Elements whose law has constants or a state of its own, by name; the laws are those of :mod:`veridyn.model.element_kinds`."""

from __future__ import annotations

from collections.abc import Mapping

from veridyn.model.element_kinds import NAN
from veridyn.model.elements import Element

On = str | Mapping[str, float]


def tanh_friction(on: On, speed: float, value: float = NAN, name: str = "") -> Element:
    """Dry friction without a jump, value · tanh(v/speed), in N*m or N; `speed` in rad/s or m/s."""
    return _made("tanh_friction", on, value, name, speed=speed)


def cubic(on: On, value: float = NAN, name: str = "", *, rest: float = 0.0) -> Element:
    """A stiffness of third order, value · (c − rest)³, in N*m/rad^3 or N/m^3; `rest` in rad or m."""
    return _made("cubic", on, value, name, rest=rest)


def bump_stop(on: On, gap: float, value: float = NAN, name: str = "") -> Element:
    """A stop on one side, value · (c − gap) where c > gap, in N*m/rad or N/m; on ``{"q": -1.0}`` it acts on the other side."""
    return _made("bump_stop", on, value, name, gap=gap)


def dead_zone(on: On, gap: float, value: float = NAN, name: str = "") -> Element:
    """A spring with play, value · (c ∓ gap) outside ±gap and nothing inside, in N*m/rad or N/m; `gap` in rad or m."""
    return _made("dead_zone", on, value, name, gap=gap)


def lugre(
    on: On,
    deflection: float,
    time: float,
    value: float = NAN,
    name: str = "",
    *,
    ratio: float = 1.0,
    speed: float = 1.0,
) -> Element:
    """Dry friction of the LuGre model, whose state is the deflection of bristles; `value` is its dry friction in N*m or N.

    `deflection` (rad or m) is that at which the bristles slide, `time` (s) their damping, `ratio` that of static to dry friction, and
    `speed` (rad/s or m/s) that at which static friction has fallen.
    """
    return _made("lugre", on, value, name, deflection=deflection, time=time, ratio=ratio, speed=speed)


def maxwell(on: On, time: float, value: float = NAN, name: str = "") -> Element:
    """A spring and a damper in series: a stiffness (N*m/rad or N/m) whose force fades with the time constant `time` (s)."""
    return _made("maxwell", on, value, name, time=time)


def relaxation(on: On, length: float, signal: str, value: float = NAN, name: str = "") -> Element:
    """A stiffness (N*m/rad or N/m) whose force follows over a travelled `length` (m); `signal` names the speed of travel (m/s)."""
    acts = {on: 1.0} if isinstance(on, str) else on
    return Element(kind="relaxation", on=acts, value=value, name=name, signal=signal, constants={"length": length})


def _made(kind: str, on: On, value: float, name: str, **constants: float) -> Element:
    return Element(kind=kind, on={on: 1.0} if isinstance(on, str) else on, value=value, name=name, constants=constants)
