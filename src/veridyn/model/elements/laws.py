"""Elements whose law has constants, a state of its own, a formula or a table, by name; see :mod:`veridyn.model.elements.kinds`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import NAN
from veridyn.model.elements.table_law import LawTable

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


def law(on: On, formula: str, value: float = NAN, name: str = "", *, unit: str = "", typical: float = NAN) -> Element:
    """A law of one's own: value · formula, the formula in c, v, coordinates, rate(NAME) and signal(NAME).

    See :mod:`veridyn.model.elements.own_law` for what a formula may hold. `unit` is that of the value, N*m or N where left out; `typical`
    its size.

    >>> from veridyn.model.elements.laws import law
    >>> law("q2", "c**3", unit="N*m/rad^3").parameter_name
    'g_q2'
    """
    acts = {on: 1.0} if isinstance(on, str) else on
    return Element(kind="law", on=acts, value=value, name=name, unit=unit, typical=typical, formula=formula)


def table(
    on: On,
    at: Sequence[float],
    values: Sequence[float],
    value: float = NAN,
    name: str = "",
    *,
    of: str = "c",
    shape: Literal["smooth", "linear"] = "smooth",
    outside: Literal["hold", "extend"] = "hold",
    unit: str = "",
    typical: float = NAN,
) -> Element:
    """A law by points: value · f(of), where f has `values` at the places `at` of a formula, c if left out.

    Between points f is smooth (monotone cubics) or linear; outside it holds the values of the ends, or extends along their slopes.
    """
    acts = {on: 1.0} if isinstance(on, str) else on
    points = LawTable(tuple(at), tuple(values), of, shape, outside)
    return Element(kind="table", on=acts, value=value, name=name, unit=unit, typical=typical, table=points)


def _made(kind: str, on: On, value: float, name: str, **constants: float) -> Element:
    return Element(kind=kind, on={on: 1.0} if isinstance(on, str) else on, value=value, name=name, constants=constants)
