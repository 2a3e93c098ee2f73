"""Everything linear in its parameter that is not inertia: one element is one column.

An element acts in one of four ways:

- through a combination of coordinates ``c = Σ aᵢ qᵢ``: its force on coordinate i is aᵢ times its value;
- along the line `between` two places, c their distance: its tension pulls them together, and by virtual work its force on
  coordinate i is ∂c/∂qᵢ times its value;
- as one component of a wrench that a body exerts on its surroundings (drag, and an offset on "body.fx", which is what the zero of
  a force sensor or an accelerometer looks like);
- between a wheel and the road: a tyre (:mod:`veridyn.model.elements.kinds`).

Signs are those of equation (17) of paper 000: the element's force stands on the side of the inertia forces, ``Γ = … + k c``, so a
positive spring or damper resists. The kinds and their laws are those of :mod:`veridyn.model.elements.kinds`; one function makes an
element of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from veridyn.arrays import Record
from veridyn.errors import Faults, ModelError, part_at
from veridyn.model.elements.kinds import KINDS, NAN
from veridyn.model.elements.own_law import LawFormula, read_formula, unusable
from veridyn.model.elements.table_law import LawTable
from veridyn.model.place import Marker

OWN_KINDS = ("law", "table")  # laws of one's own
WRENCH_ROWS = ("fx", "fy", "fz", "mx", "my", "mz")
On = str | Mapping[str, float]


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
        acts = [place.body for place in places] or self.on
        return f"{symbol}_" + "_".join(target.replace(".", "_") for target in acts)

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
    given = {"law": bool(formula), "table": table is not None}
    for own, there in given.items():
        key = "formula" if own == "law" else "table"
        if there and kind != own:
            faults.add(f"an element of kind {kind} has no {key}.", where=where, hint=f"Write kind: {own}.")
        elif not there and kind == own:
            hint = "Add formula: c**3, or the like." if own == "law" else "Add table: {at: [...], values: [...]}."
            faults.add(f"its law is a {key}, and none is given.", where=where, hint=hint)
    found = table.faults(where, faults) if table is not None else None
    if formula:
        try:
            found = read_formula(formula)
        except ModelError as error:
            faults.add(f"formula: {error.faults[0].what}", where=where, hint=error.faults[0].hint)
    if found is not None and (reason := unusable(found)):
        key = "formula" if formula else "of"
        faults.add(f"{key}: '{found.text}' {reason}.", where=where)


def _on(target: str | Mapping[str, float]) -> Mapping[str, float]:
    return {target: 1.0} if isinstance(target, str) else target


def spring(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    """A spring: a stiffness in N*m/rad or N/m on a coordinate, or on a combination of coordinates such as ``{"z1": 1.0, "z2": -1.0}``."""
    return Element(kind="spring", on=_on(on), value=value, name=name)


def offset(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    """A constant force or torque, in N or N*m; on a component such as "body.fx" of a wrench, the zero of a force sensor."""
    return Element(kind="offset", on=_on(on), value=value, name=name)


def damper(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    """Viscous friction, in N*m*s/rad or N*s/m."""
    return Element(kind="damper", on=_on(on), value=value, name=name)


def coulomb(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    """Dry friction, value · sign(v), in N*m or N."""
    return Element(kind="coulomb", on=_on(on), value=value, name=name)


def strut(kind: str, a: Marker, b: Marker, value: float = NAN, name: str = "", **constants: float) -> Element:
    """An element of a kind along the line between two places: ``strut("spring", a, b, 2e4, rest=0.3)``.

    Where the rest length of a spring is unknown, leave `rest` out and add ``strut("offset", a, b)``: the tension is k c + off, and the
    parameter off = −k · rest is identified beside k.
    """
    return Element(kind=kind, on={}, value=value, name=name, between=(a, b), constants=constants)


def asymmetric(on: str | Mapping[str, float]) -> tuple[Element, ...]:
    """Dry and viscous friction of each direction: four elements, fsp, fsn, hp and hn. Together with an offset they are one too many."""
    return tuple(
        Element(kind=kind, on=_on(on))
        for kind in ("coulomb_forward", "coulomb_backward", "damper_forward", "damper_backward")
    )


def stribeck(on: str | Mapping[str, float], speed: float, value: float = NAN, name: str = "") -> Element:
    """What static friction has above dry friction, falling with speed: at `speed` half of it is left."""
    return Element(kind="stribeck", on=_on(on), value=value, name=name, constants={"speed": speed})


def motor_inertia(on: str | Mapping[str, float], value: float = NAN, name: str = "") -> Element:
    """The inertia of a motor as seen from the coordinate, in kg*m^2 or kg."""
    return Element(kind="inertia", on=_on(on), value=value, name=name)


def drive_gain(on: str | Mapping[str, float], signal: str, value: float = NAN, name: str = "") -> Element:
    """The force per unit of a measured signal, such as N*m/A of a motor current named `signal`."""
    return Element(kind="drive_gain", on=_on(on), value=value, name=name, signal=signal)


def drag(on: str, value: float = NAN, name: str = "") -> Element:
    """Drag on one component of a body's wrench, such as "chassis.fx"; positive values oppose forward motion."""
    return Element(kind="drag", on=_on(on), value=value, name=name)


def tyre(wheel: Marker, constants: Mapping[str, float], *, kind: str = "tyre", name: str = "") -> Element:
    """A tyre on a wheel: its body, centre and axis, and the constants of its law; `kind` is "tyre" or "linear_tyre".

    >>> from veridyn.model.elements.element import Marker, tyre
    >>> law = {"UNLOADED_RADIUS": 0.3, "VERTICAL_STIFFNESS": 2e5, "FNOMIN": 4e3}
    >>> slips = {"C_KAPPA": 8e4, "C_ALPHA": 6e4, "SIGMA_KAPPA": 0.3, "SIGMA_ALPHA": 0.4}
    >>> tyre(Marker("wheel", (0, 0, 0), axis=(0, 1, 0)), {**law, **slips}, kind="linear_tyre").parameter_name
    'tyre_wheel'
    """
    return Element(kind=kind, value=1.0, name=name, wheel=wheel, constants=constants)


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


def dc_motor(
    on: On, signal: str, resistance: float, inductance: float, emf: float, value: float = NAN, name: str = ""
) -> Element:
    """A motor with its winding of `resistance` (Ohm) and `inductance` (H): `value` is its torque constant (N*m/A or N/A).

    `emf` (V*s/rad or V*s/m) is the voltage that its speed induces, ideally the same number. `signal` names its voltage. Behind a gear of
    ratio N it acts on N q.
    """
    acts = {on: 1.0} if isinstance(on, str) else on
    constants = {"resistance": resistance, "inductance": inductance, "emf": emf}
    return Element(kind="dc_motor", on=acts, value=value, name=name, signal=signal, constants=constants)


def law(on: On, formula: str, value: float = NAN, name: str = "", *, unit: str = "", typical: float = NAN) -> Element:
    """A law of one's own: value · formula, the formula in c, v, coordinates, rate(NAME) and signal(NAME).

    See :mod:`veridyn.model.elements.own_law` for what a formula may hold. `unit` is that of the value, N*m or N where left out; `typical`
    its size.

    >>> from veridyn.model.elements.element import law
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
