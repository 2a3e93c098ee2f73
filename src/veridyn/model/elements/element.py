"""Everything linear in its parameter that is not inertia: one element is one column.

An element acts in one of four ways:

- through a combination of coordinates ``c = Σ aᵢ qᵢ``: its force on coordinate i is aᵢ times its value;
- along the line `between` two places, c their distance: its tension pulls them together, and by virtual work its force on
  coordinate i is ∂c/∂qᵢ times its value;
- as one component of a wrench that a body exerts on its surroundings (drag, and an offset on "body.fx", which is what the zero of
  a force sensor or an accelerometer looks like);
- between a wheel and the road: a tyre (:mod:`veridyn.model.elements.kinds`).

Signs are those of equation (17) of paper 000: the element's force stands on the side of the inertia forces, ``Γ = … + k c``, so a
positive spring or damper resists. The kinds and their laws are those of :mod:`veridyn.model.elements.kinds`; a function makes each.

Of laws given by points: with uᵢ(x) = (x − xᵢ)/hᵢ held between 0 and 1, a table of values fᵢ at xᵢ is f₀ + Σ pᵢ(uᵢ), where pᵢ(0) = 0 and
pᵢ(1) = fᵢ₊₁ − fᵢ: every interval adds its own share, so that no digits are lost, and beyond the ends the law keeps its last value.
"linear": pᵢ = (fᵢ₊₁ − fᵢ) u. "smooth": the cubic with the slopes of Fritsch and Butland (1984, SIAM J. Sci. Stat. Comput. 5(2); SciPy's
`PchipInterpolator`), which has a continuous derivative and never swings beyond the points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

import numpy as np

from veridyn.arguments import as_array, checked, checked_record
from veridyn.arrays import Record
from veridyn.errors import Faults, ModelError, part_at
from veridyn.model.elements.kinds import KINDS, NAN
from veridyn.model.elements.own_law import LawFormula, read_formula, unusable
from veridyn.model.place import Marker
from veridyn.spatial.algebra import Algebra, Scalar, add, mul, positive_part, sub

OWN_KINDS = ("law", "table")  # laws of one's own
WRENCH_ROWS = ("fx", "fy", "fz", "mx", "my", "mz")
On = str | Mapping[str, float]
SHAPES = ("smooth", "linear")
OUTSIDE = ("hold", "extend")
MOST_POINTS = 200  # of a table: each is a few operations of every kernel


@checked_record
@dataclass(frozen=True)
class LawTable:
    """A law by points: `values` at the places `at`, which grow, of the formula `of`.

    `shape`: smooth (a continuous derivative) or linear between points. `outside`: hold the values of the ends, or extend them along the
    slopes of the ends.
    """

    at: tuple[float, ...]
    values: tuple[float, ...]
    of: str = "c"
    shape: str = "smooth"
    outside: str = "hold"

    def __post_init__(self) -> None:
        for part in ("at", "values"):
            object.__setattr__(self, part, tuple(as_array(getattr(self, part), f"table.{part}", (None,)).tolist()))

    def faults(self, where: str, faults: Faults) -> LawFormula | None:
        """Note everything that is wrong with it; else the formula it is a table of."""
        before = len(faults.found)
        if len(self.at) != len(self.values) or len(self.at) < 2:
            found = f"{len(self.at)} places, {len(self.values)} values"
            faults.add("its table needs as many values as places.", where=where, expected="two or more", found=found)
        elif len(self.at) > MOST_POINTS:
            most, found, hint = f"at most {MOST_POINTS} points", f"{len(self.at)}", "Keep every second point, or fewer."
            faults.add("its table is too long.", where=where, expected=most, found=found, hint=hint)
        if not (np.isfinite(self.at).all() and np.isfinite(self.values).all()):
            faults.add("its table has entries that are not finite numbers.", where=where)
        elif np.any(np.diff(self.at) <= 0.0):
            k = int(np.argmax(np.diff(self.at) <= 0.0))
            found = f"{self.at[k]:g} and then {self.at[k + 1]:g}"
            faults.add("the places of its table do not grow.", where=where, found=found, hint="Sort them; none twice.")
        for what, word, choices in (("shape", self.shape, SHAPES), ("outside", self.outside, OUTSIDE)):
            if word not in choices:
                faults.add(f"its table has no {what} '{word}'.", where=where, expected=" or ".join(choices))
        try:
            formula = read_formula(self.of)
        except ModelError as error:
            faults.add(f"of: {error.faults[0].what}", where=where, hint=error.faults[0].hint)
            return None
        return formula if len(faults.found) == before else None

    def slopes(self) -> tuple[float, ...]:
        """The derivative at each point, of a smooth table by Fritsch and Butland's rule."""
        h = np.diff(self.at)
        d = np.diff(self.values) / h
        if self.shape == "linear" or len(d) == 1:
            return (float(d[0]), *(float(s) for s in d))
        w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.where(d[1:] * d[:-1] > 0.0, (w1 + w2) / (w1 / d[:-1] + w2 / d[1:]), 0.0)
        return (_end(h, d), *(float(s) for s in inner), _end(h[::-1], d[::-1]))

    def value(self, x: Scalar, algebra: Algebra) -> Scalar:
        """The law at x, over scalars of any kind."""
        out: Scalar = self.values[0]
        for start, h, p in self._intervals():
            u = _within(x, start, h, algebra)
            out = add(out, mul(u, _polynomial(p, u)))
        if self.outside == "extend":
            m, below, above = self.slopes(), *self._beyond(x, algebra)
            out = add(sub(out, mul(m[0], below)), mul(m[-1], above))
        return out

    def integral(self, x: Scalar, algebra: Algebra) -> Scalar:
        """∫ of the law from its first place to x: of an interval h ∫p du, and the rise so far times what lies beyond."""
        out: Scalar = mul(self.values[0], sub(x, self.at[0]))
        for start, h, p in self._intervals():
            u = _within(x, start, h, algebra)
            whole = mul(mul(u, u), _polynomial(tuple(c / (k + 2.0) for k, c in enumerate(p)), u))
            out = add(out, add(mul(h, whole), mul(sum(p), positive_part(algebra, sub(x, start + h)))))
        if self.outside == "extend":
            m, below, above = self.slopes(), *self._beyond(x, algebra)
            out = add(out, add(mul(0.5 * m[0], mul(below, below)), mul(0.5 * m[-1], mul(above, above))))
        return out

    def _intervals(self) -> Iterator[tuple[float, float, tuple[float, ...]]]:
        """Start and length of each interval, and the coefficients (c₁, c₂, …) of its p = c₁ u + c₂ u² + …"""
        m = self.slopes()
        for i, (start, end) in enumerate(pairwise(self.at)):
            rise, h = self.values[i + 1] - self.values[i], end - start
            a, b = h * m[i], h * m[i + 1]
            yield start, h, (rise,) if self.shape == "linear" else (a, 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise)

    def _beyond(self, x: Scalar, algebra: Algebra) -> tuple[Scalar, Scalar]:
        """How far x lies below the first place, and above the last."""
        return positive_part(algebra, sub(self.at[0], x)), positive_part(algebra, sub(x, self.at[-1]))


@checked_record
@dataclass(frozen=True, kw_only=True)
class Element(Record):
    """One element: `on` maps coordinates to their coefficients aᵢ, or, for drag and offsets, one "body.fx" to its coefficient.

    `name` is the name of its parameter; empty, it is made of the kind's symbol and what the element acts on (k_z1).
    `value` is the prior, NaN where it is unknown. `signal` names the measured signal of a drive gain. `between`, in place of `on`: the two
    places whose distance it acts on. `constants`: those inside its law by name, such as the speed of a Stribeck curve (rad/s or m/s).
    `wheel`, in place of `on`: of a tyre, the body that rolls, its centre and its axis, which points to the left of the way it rolls.
    `formula`: of a law of one's own (:mod:`veridyn.model.elements.own_law`); `table`: of a law by points.

    Examples
    --------
    >>> import veridyn as vd
    >>> bar = vd.Element(kind="spring", on={"z1": 1.0, "z2": -1.0}, value=2e4)  # an anti-roll bar: k (z1 − z2)
    >>> bar.parameter_name
    'k_z1_z2'
    """

    kind: str
    on: Mapping[str, float] = field(default_factory=dict)
    value: float = NAN
    name: str = ""
    signal: str = ""
    typical: float = NAN
    unit: str = ""
    between: tuple[Marker, Marker] | None = None
    constants: Mapping[str, float] = field(default_factory=dict)
    wheel: Marker | None = None
    formula: str = ""
    table: LawTable | None = None

    def __post_init__(self) -> None:
        for part in ("on", "constants"):
            given = getattr(self, part)
            object.__setattr__(self, part, MappingProxyType({str(k): float(v) for k, v in given.items()}))
        if len(self.constants) > 1 and self.kind in KINDS:  # in the order of the kind, so that equal elements are equal
            order = {c.key: k for k, c in enumerate(KINDS[self.kind].constants)}
            ranked = sorted(self.constants.items(), key=lambda item: order.get(item[0], len(order)))
            object.__setattr__(self, "constants", MappingProxyType(dict(ranked)))
        if self.between is not None:
            object.__setattr__(self, "between", tuple(self.between))
        if self.kind in OWN_KINDS or self.formula or self.table is not None:
            faults = Faults()
            own_law_faults(self.kind, self.formula, self.table, part_at("element", self.name or self.kind), faults)
            faults.raise_if_any(ModelError)

    def __hash__(self) -> int:
        acts = (tuple(self.on.items()), self.between, tuple(self.constants.items()), self.wheel)
        return hash((self.kind, self.name, acts, self.signal, self.formula, self.table))

    @property
    def parameter_name(self) -> str:
        if self.name:
            return self.name
        symbol = KINDS[self.kind].symbol if self.kind in KINDS else self.kind
        places = [self.wheel] if self.wheel is not None else self.between or ()
        return f"{symbol}_" + "_".join(target.replace(".", "_") for target in [p.body for p in places] or self.on)

    @property
    def on_body(self) -> tuple[str, int] | None:
        """For a drag, or an offset on a body: that body and the component 0..5 of its wrench; None for what acts on coordinates."""
        if self.kind not in ("drag", "offset") or len(self.on) != 1:
            return None
        body, dot, component = next(iter(self.on)).rpartition(".")
        return (body, WRENCH_ROWS.index(component)) if dot and component in WRENCH_ROWS else None

    @property
    def own_law(self) -> LawFormula | None:
        """The formula of a law of one's own, or the one that its table is of; None for the laws of this package."""
        if self.kind == "law":
            return read_formula(self.formula)
        return read_formula(self.table.of) if self.kind == "table" and self.table is not None else None

    @property
    def named_coordinates(self) -> tuple[str, ...]:
        """The coordinates that the formula of a law of one's own reads by name."""
        law = self.own_law
        return () if law is None else tuple(dict.fromkeys([*law.coordinates, *law.speeds]))

    @property
    def signals(self) -> tuple[str, ...]:
        """The measured signals that its law needs."""
        if self.own_law is not None:
            return self.own_law.signals
        return (self.signal,) if self.kind in KINDS and KINDS[self.kind].signal else ()

    @property
    def has_sign(self) -> bool:
        """Whether its law has the sign of a speed, which integrators round off: dry friction, and friction of one direction."""
        own = self.own_law is not None and self.own_law.jumps
        return own or self.kind.startswith(("coulomb", "stribeck", "damper_"))

    @property
    def jumps(self) -> bool:
        """Whether its force jumps at standstill."""
        return self.has_sign and not self.kind.startswith("damper_")

    def constant(self, key: str) -> float:
        """A constant of its law: as given, or the kind's default; NaN where there is neither."""
        kind = KINDS[self.kind].constant(key) if self.kind in KINDS else None
        return self.constants.get(key, NAN if kind is None else kind.default)


def own_law_faults(kind: str, formula: str, table: LawTable | None, where: str, faults: Faults) -> None:
    """Everything that is wrong with a formula or table by itself: a text that is no formula, points that do not grow, a missing one."""
    formulas = ("law", "formula", bool(formula), "formula: c**3, or the like")
    tables = ("table", "table", table is not None, "table: {at: [...], values: [...]}")
    for own, key, there, example in (formulas, tables):
        if there and kind != own:
            faults.add(f"an element of kind {kind} has no {key}.", where=where, hint=f"Write kind: {own}.")
        elif not there and kind == own:
            faults.add(f"its law is a {key}, and none is given.", where=where, hint=f"Add {example}.")
    found = table.faults(where, faults) if table is not None else None
    if formula:
        try:
            found = read_formula(formula)
        except ModelError as error:
            faults.add(f"formula: {error.faults[0].what}", where=where, hint=error.faults[0].hint)
    if found is not None and (reason := unusable(found)):
        faults.add(f"{'formula' if formula else 'of'}: '{found.text}' {reason}.", where=where)


def _on(target: On) -> Mapping[str, float]:
    return {target: 1.0} if isinstance(target, str) else target


@checked
def spring(on: On, value: float = NAN, name: str = "") -> Element:
    """A spring: a stiffness in N*m/rad or N/m on a coordinate, or on a combination of coordinates such as ``{"z1": 1.0, "z2": -1.0}``."""
    return _made("spring", on, value, name)


@checked
def offset(on: On, value: float = NAN, name: str = "") -> Element:
    """A constant force or torque, in N or N*m; on a component such as "body.fx" of a wrench, the zero of a force sensor."""
    return _made("offset", on, value, name)


@checked
def damper(on: On, value: float = NAN, name: str = "") -> Element:
    """Viscous friction, in N*m*s/rad or N*s/m."""
    return _made("damper", on, value, name)


@checked
def coulomb(on: On, value: float = NAN, name: str = "") -> Element:
    """Dry friction, value · sign(v), in N*m or N."""
    return _made("coulomb", on, value, name)


@checked
def strut(kind: str, a: Marker, b: Marker, value: float = NAN, name: str = "", **constants: float) -> Element:
    """An element of a kind along the line between two places: ``strut("spring", a, b, 2e4, rest=0.3)``.

    Where the rest length of a spring is unknown, leave `rest` out and add ``strut("offset", a, b)``: the tension is k c + off, and the
    parameter off = −k · rest is identified beside k.
    """
    return Element(kind=kind, on={}, value=value, name=name, between=(a, b), constants=constants)


@checked
def asymmetric(on: On) -> tuple[Element, ...]:
    """Dry and viscous friction of each direction: four elements, fsp, fsn, hp and hn. Together with an offset they are one too many."""
    kinds = ("coulomb_forward", "coulomb_backward", "damper_forward", "damper_backward")
    return tuple(Element(kind=kind, on=_on(on)) for kind in kinds)


@checked
def stribeck(on: On, speed: float, value: float = NAN, name: str = "") -> Element:
    """What static friction has above dry friction, falling with speed: at `speed` half of it is left."""
    return _made("stribeck", on, value, name, speed=speed)


@checked
def coulomb_along(on: On, middle: float, half: float, value: float = NAN, name: str = "", power: int = 1) -> Element:
    """Dry friction that changes along the way: `value` u^power sign(v) with u = (c − middle)/half, beside a `coulomb`; power 1 to 4."""
    kind = f"coulomb_along{power if power > 1 else ''}"
    return _made(kind, on, value, name, middle=middle, half=half)


@checked
def motor_inertia(on: On, value: float = NAN, name: str = "") -> Element:
    """The inertia of a motor as seen from the coordinate, in kg*m^2 or kg."""
    return _made("inertia", on, value, name)


@checked
def drive_gain(on: On, signal: str, value: float = NAN, name: str = "") -> Element:
    """The force per unit of a measured signal, such as N*m/A of a motor current named `signal`."""
    return _made("drive_gain", on, value, name, signal)


@checked
def drag(on: str, value: float = NAN, name: str = "") -> Element:
    """Drag on one component of a body's wrench, such as "chassis.fx"; positive values oppose forward motion."""
    return _made("drag", on, value, name)


@checked
def tyre(wheel: Marker, constants: Mapping[str, float], *, kind: str = "tyre", name: str = "") -> Element:
    """A tyre on a wheel: its body, centre and axis, and the constants of its law; `kind` is "tyre" or "linear_tyre".

    >>> from veridyn.model.elements.element import Marker, tyre
    >>> law = {"UNLOADED_RADIUS": 0.3, "VERTICAL_STIFFNESS": 2e5, "FNOMIN": 4e3}
    >>> slips = {"C_KAPPA": 8e4, "C_ALPHA": 6e4, "SIGMA_KAPPA": 0.3, "SIGMA_ALPHA": 0.4}
    >>> tyre(Marker("wheel", (0, 0, 0), axis=(0, 1, 0)), {**law, **slips}, kind="linear_tyre").parameter_name
    'tyre_wheel'
    """
    return Element(kind=kind, value=1.0, name=name, wheel=wheel, constants=constants)


@checked
def tanh_friction(on: On, speed: float, value: float = NAN, name: str = "") -> Element:
    """Dry friction without a jump, value · tanh(v/speed), in N*m or N; `speed` in rad/s or m/s."""
    return _made("tanh_friction", on, value, name, speed=speed)


@checked
def cubic(on: On, value: float = NAN, name: str = "", *, rest: float = 0.0) -> Element:
    """A stiffness of third order, value · (c − rest)³, in N*m/rad^3 or N/m^3; `rest` in rad or m."""
    return _made("cubic", on, value, name, rest=rest)


@checked
def bump_stop(on: On, gap: float, value: float = NAN, name: str = "") -> Element:
    """A stop on one side, value · (c − gap) where c > gap, in N*m/rad or N/m; on ``{"q": -1.0}`` it acts on the other side."""
    return _made("bump_stop", on, value, name, gap=gap)


@checked
def dead_zone(on: On, gap: float, value: float = NAN, name: str = "") -> Element:
    """A spring with play, value · (c ∓ gap) outside ±gap and nothing inside, in N*m/rad or N/m; `gap` in rad or m."""
    return _made("dead_zone", on, value, name, gap=gap)


@checked
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


@checked
def maxwell(on: On, time: float, value: float = NAN, name: str = "") -> Element:
    """A spring and a damper in series: a stiffness (N*m/rad or N/m) whose force fades with the time constant `time` (s)."""
    return _made("maxwell", on, value, name, time=time)


@checked
def relaxation(on: On, length: float, signal: str, value: float = NAN, name: str = "") -> Element:
    """A stiffness (N*m/rad or N/m) whose force follows over a travelled `length` (m); `signal` names the speed of travel (m/s)."""
    return _made("relaxation", on, value, name, signal, length=length)


@checked
def dc_motor(
    on: On, signal: str, resistance: float, inductance: float, emf: float, value: float = NAN, name: str = ""
) -> Element:
    """A motor with its winding of `resistance` (Ohm) and `inductance` (H): `value` is its torque constant (N*m/A or N/A).

    `emf` (V*s/rad or V*s/m) is the voltage that its speed induces, ideally the same number. `signal` names its voltage. Behind a gear of
    ratio N it acts on N q.
    """
    return _made("dc_motor", on, value, name, signal, resistance=resistance, inductance=inductance, emf=emf)


@checked
def law(on: On, formula: str, value: float = NAN, name: str = "", *, unit: str = "", typical: float = NAN) -> Element:
    """A law of one's own: value · formula, the formula in c, v, coordinates, rate(NAME) and signal(NAME).

    See :mod:`veridyn.model.elements.own_law` for what a formula may hold. `unit`: of the value, N*m or N if left out; `typical`: its size.

    >>> from veridyn.model.elements.element import law
    >>> law("q2", "c**3", unit="N*m/rad^3").parameter_name
    'g_q2'
    """
    return Element(kind="law", on=_on(on), value=value, name=name, unit=unit, typical=typical, formula=formula)


@checked
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
    points = LawTable(tuple(at), tuple(values), of, shape, outside)
    return Element(kind="table", on=_on(on), value=value, name=name, unit=unit, typical=typical, table=points)


def _made(kind: str, on: On, value: float, name: str, signal: str = "", **constants: float) -> Element:
    return Element(kind=kind, on=_on(on), value=value, name=name, signal=signal, constants=constants)


def _polynomial(coefficients: tuple[float, ...], u: Scalar) -> Scalar:
    """c₀ + c₁ u + c₂ u² + …"""
    out: Scalar = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = add(c, mul(u, out))
    return out


def _within(x: Scalar, start: float, h: float, algebra: Algebra) -> Scalar:
    """(x − start)/h, held between 0 and 1: ½ (|t| − |t − 1| + 1)."""
    t = mul(1.0 / h, sub(x, start))
    return mul(0.5, add(sub(algebra.abs(t), algebra.abs(sub(t, 1.0))), 1.0))


def _end(h: np.ndarray, d: np.ndarray) -> float:
    """The slope at an end: of three points, kept from turning the other way or rising too fast."""
    slope = float(((2.0 * h[0] + h[1]) * d[0] - h[0] * d[1]) / (h[0] + h[1]))
    if np.sign(slope) != np.sign(d[0]):
        return 0.0
    return 3.0 * float(d[0]) if np.sign(d[0]) != np.sign(d[1]) and abs(slope) > 3.0 * abs(d[0]) else slope
