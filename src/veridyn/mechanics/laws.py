"""The laws of elements: what each kind makes of c, ċ, c̈ and a signal, over scalars of any kind.

A law is the column of an element before its coefficients: its force is its parameter times the law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from numpy.polynomial.legendre import leggauss

from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import ALONG_KINDS
from veridyn.model.elements.own_law import LOG_OFFSET, LawInputs
from veridyn.spatial.algebra import Algebra, Scalar, add, hyperbolic_tangent, mul, positive_part, sub
from veridyn.symbolic.expression import Graph, Number

GAUSS_POINTS = 20  # of the rule that integrates laws of one's own
BENT_PANELS = 16  # of that rule where a law bends or jumps: 320 places between 0 and c
Lazy = Callable[[], Scalar]


@dataclass(frozen=True, eq=False)
class Acting:
    """What a law is a function of: c and its rates, computed where they are needed, the constants of the law, and signals.

    Laws of one's own also read coordinates and their speeds by name.
    """

    position: Lazy
    rate: Lazy
    acceleration: Lazy
    constant: Callable[[str], Scalar]
    state: Callable[[str], Scalar]
    coordinate: Callable[[str], Scalar]
    speed: Callable[[str], Scalar]
    signals: Mapping[str, Scalar]
    algebra: Algebra

    @property
    def inputs(self) -> LawInputs:
        """What formulas read."""
        return LawInputs(
            position=self.position,
            rate=self.rate,
            coordinate=self.coordinate,
            speed=self.speed,
            signal=self.signals.__getitem__,
            algebra=self.algebra,
        )


def constant_of(tree: Tree, e: Element, key: str, algebra: Algebra) -> Scalar:
    """A constant of an element's law: an input of compiled kernels where the element gives it, else the kind's default, which folds."""
    if key not in e.constants:
        return e.constant(key)
    return algebra.given(f"const.{tree.constant_number[e.parameter_name, key]}", e.constants[key])


@dataclass(eq=False)
class SmoothGraph(Graph):
    """A graph in which the jump of dry friction at standstill is rounded off: sign(v) is v/(v⁸ + speed⁸)^⅛."""

    speed: float = 1.0

    def sign(self, x: Number) -> Number:
        x2 = self.mul(x, x)
        x4 = self.mul(x2, x2)
        return self.div(x, self.sqrt(self.sqrt(self.sqrt(self.add(self.mul(x4, x4), self.speed**8)))))


def graph_of_laws(friction_speed: float) -> Graph:
    """A graph for laws whose jumps are rounded off below a speed (rad/s, m/s), or left as they are where it is zero."""
    return SmoothGraph(speed=friction_speed) if friction_speed > 0.0 else Graph()


def law(e: Element, x: Acting) -> Scalar:
    """The law of an element."""
    return _LAWS[e.kind](e, x)


def rates(e: Element, x: Acting) -> dict[str, Scalar]:
    """The rates of an element's own states, by key."""
    made = _RATES.get(e.kind)
    return {} if made is None else made(e, x)


def potential(e: Element, x: Acting) -> Scalar | None:
    """∫ law dc: the energy that an element of unit parameter stores; None where it stores none, or depends on more than c."""
    if e.own_law is not None and not e.own_law.of_position:
        return None
    made = _POTENTIALS.get(e.kind) if e.own_law is None else _own_energy
    return None if made is None else made(e, x)


def _own(e: Element, x: Acting) -> Scalar:
    """A formula, or a table of a formula."""
    assert e.own_law is not None  # the tree was checked when it was built
    value = e.own_law.value(x.inputs)
    return value if e.table is None else e.table.value(value, x.algebra)


def _own_energy(e: Element, x: Acting) -> Scalar:
    """∫ law dc: of a table of c in closed form, else from 0 by Gauss's rule, to rounding where the law is smooth."""
    assert e.own_law is not None  # the caller looked
    c = x.position()
    if e.table is not None and e.own_law.text == "c":
        return e.table.integral(c, x.algebra)
    panels = 1 if e.own_law.smooth and e.table is None else BENT_PANELS
    total: Scalar = 0.0
    for k in range(panels):
        for node, weight in zip(*leggauss(GAUSS_POINTS), strict=True):
            at = mul((k + 0.5 * (1.0 + float(node))) / panels, c)
            value = _own(e, replace(x, position=lambda at=at: at))
            total = add(total, mul(0.5 * float(weight) / panels, value))
    return mul(c, total)


def _one_way(e: Element, x: Acting) -> Scalar:
    """The part of dry or viscous friction of one direction; 0 at standstill."""
    v = x.rate()
    s = x.algebra.sign(v)
    way = 1.0 if e.kind.endswith("forward") else -1.0
    return mul(0.5, mul(v if e.kind.startswith("damper") else s, add(1.0, mul(way, s))))


def _along(e: Element, x: Acting) -> Scalar:
    u, out = sub(x.position(), x.constant("middle")) / x.constant("half"), x.algebra.sign(x.rate())
    for _ in range(ALONG_KINDS[e.kind]):
        out = mul(out, u)
    return out


def _stribeck(e: Element, x: Acting) -> Scalar:
    v = x.rate()
    ratio = v / x.constant("speed")
    fall = _abs_power(x, ratio, x.constant("exponent")) if "exponent" in e.constants else mul(ratio, ratio)
    return x.algebra.sign(v) / add(1.0, fall)


def _abs_power(x: Acting, base: Scalar, exponent: Scalar) -> Scalar:
    """|base|^exponent, whose derivatives are finite at zero too."""
    return x.algebra.exp(mul(exponent, x.algebra.log(add(x.algebra.abs(base), LOG_OFFSET))))


def _tanh(e: Element, x: Acting) -> Scalar:
    return hyperbolic_tangent(x.algebra, x.rate() / x.constant("speed"))


def _bump_stop(x: Acting) -> Scalar:
    return positive_part(x.algebra, sub(x.position(), x.constant("gap")))


def _dead_zone(x: Acting) -> Scalar:
    c, gap = x.position(), x.constant("gap")
    return sub(positive_part(x.algebra, sub(c, gap)), positive_part(x.algebra, sub(mul(-1.0, c), gap)))


def _bristles(x: Acting) -> Scalar:
    """ż of the LuGre model."""
    v, z = x.rate(), x.state("z")
    s = v / x.constant("speed")
    g = add(1.0, mul(sub(x.constant("ratio"), 1.0), x.algebra.exp(mul(-1.0, mul(s, s)))))
    return sub(v, mul(x.algebra.abs(v), z) / mul(x.constant("deflection"), g))


def _lugre(e: Element, x: Acting) -> Scalar:
    return add(x.state("z"), mul(x.constant("time"), _bristles(x))) / x.constant("deflection")


def _current_rate(e: Element, x: Acting) -> Scalar:
    """di/dt of a motor under its voltage."""
    drop = add(mul(x.constant("resistance"), x.state("i")), mul(x.constant("emf"), x.rate()))
    return sub(x.signals[e.signal], drop) / x.constant("inductance")


def _cube(x: Acting) -> Scalar:
    c = _stretch(x)
    return mul(c, mul(c, c))


def _stretch(x: Acting) -> Scalar:
    return sub(x.position(), x.constant("rest"))


def _half_square(c: Scalar) -> Scalar:
    return mul(0.5, mul(c, c))


_LAWS: dict[str, Callable[[Element, Acting], Scalar]] = {
    "spring": lambda e, x: _stretch(x),
    "offset": lambda e, x: 1.0,
    "damper": lambda e, x: x.rate(),
    "damper_forward": _one_way,
    "damper_backward": _one_way,
    "coulomb": lambda e, x: x.algebra.sign(x.rate()),
    "coulomb_forward": _one_way,
    "coulomb_backward": _one_way,
    **dict.fromkeys(ALONG_KINDS, _along),
    "stribeck": _stribeck,
    "tanh_friction": _tanh,
    "cubic": lambda e, x: _cube(x),
    "bump_stop": lambda e, x: _bump_stop(x),
    "dead_zone": lambda e, x: _dead_zone(x),
    "lugre": _lugre,
    "maxwell": lambda e, x: x.state("s"),
    "relaxation": lambda e, x: x.state("s"),
    "dc_motor": lambda e, x: mul(-1.0, x.state("i")),
    "inertia": lambda e, x: x.acceleration(),
    "drive_gain": lambda e, x: mul(-1.0, x.signals[e.signal]),
    "law": _own,
    "table": _own,
}
_RATES: dict[str, Callable[[Element, Acting], dict[str, Scalar]]] = {
    "lugre": lambda e, x: {"z": _bristles(x)},
    "maxwell": lambda e, x: {"s": sub(x.rate(), x.state("s") / x.constant("time"))},
    "dc_motor": lambda e, x: {"i": _current_rate(e, x)},
    "relaxation": lambda e, x: {
        "s": mul(x.algebra.abs(x.signals[e.signal]), sub(x.position(), x.state("s"))) / x.constant("length")
    },
}
_POTENTIALS: dict[str, Callable[[Element, Acting], Scalar]] = {
    "spring": lambda e, x: _half_square(_stretch(x)),
    "offset": lambda e, x: x.position(),
    "cubic": lambda e, x: mul(0.25, mul(_stretch(x), _cube(x))),
    "bump_stop": lambda e, x: _half_square(_bump_stop(x)),
    "dead_zone": lambda e, x: _half_square(_dead_zone(x)),
}
