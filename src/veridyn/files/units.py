"""Units at the door: a value in any unit becomes SI, value_SI = factor · value, and the unit keeps its meaning.

    to_si(90.0, "km/h") == (25.0, "m/s")        to_si(1.0, "Nm/deg") == (57.29…, "N*m/rad")

A unit is a product of symbols: "N*m/rad", "m/s^2", "kg m2", "(N*m)*s/rad", "rad/s/Hz^0.5"; each `/` divides by the one
factor after it. Superscripts (m/s²) and the dot (N·m) are read too. An angle is kept as a dimension of its own, so that
Hz and rad/s, which differ by 2π, are never taken for each other. Every number needs a unit; "1" says that it has none.
Degrees Celsius have an offset as well as a factor, and stand only alone.
Reference: BIPM, The International System of Units, 9th edition (2019), for all factors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, did_you_mean

Value = TypeVar("Value", float, NDArray[np.float64])
Powers = Mapping[str, Fraction]

BASE = ("kg", "m", "s", "A", "K", "rad", "mol", "cd")
OFFSET = {"degC": 273.15}


@dataclass(frozen=True)
class Dimension:
    """Exponents of kg, m, s, A, K, rad, mol, cd. Two units with equal dimensions can be converted into each other."""

    exponents: tuple[Fraction, ...]

    def __str__(self) -> str:
        return _write(dict(zip(BASE, self.exponents, strict=True)))


@dataclass(frozen=True)
class _Unit:
    """`factor` to SI, the SI symbols it is written in, and its dimension."""

    factor: float
    si: Powers
    dimension: Dimension


def to_si(value: Value, unit: str, where: str = "") -> tuple[Value, str]:
    """`value` (a number or an array) in SI, and the SI unit it is in: "deg/s" → "rad/s", "Nm" → "N*m", "%" → "1"."""
    parsed = _parse(unit, where)
    shift = OFFSET.get(unit.strip(), 0.0)
    if parsed.factor == 1.0 and shift == 0.0:
        return value, _write(parsed.si)
    return value * parsed.factor + shift, _write(parsed.si)


def convert(value: Value, unit: str, into: str, where: str = "") -> Value:
    """`value` in the unit `into`; a DataError naming both units and dimensions where they do not measure one thing."""
    source, target = _parse(unit, where), _parse(into, where)
    if source.dimension != target.dimension:
        turned = tuple(a - b for a, b in zip(source.dimension.exponents, target.dimension.exponents, strict=True))
        only_angle = all(e == 0 for name, e in zip(BASE, turned, strict=True) if name != "rad")
        what = f"'{unit}' cannot be converted into '{into}'."
        expected = f"a unit of dimension {target.dimension} ('{into}')"
        hint = "They differ by an angle: name it (rad, deg, rev), as in 'N*m/rad' or 'rad/s'." if only_angle else ""
        raise DataError(what, where=where, expected=expected, found=f"{source.dimension} ('{unit}')", hint=hint)
    return (value * source.factor + OFFSET.get(unit.strip(), 0.0) - OFFSET.get(into.strip(), 0.0)) / target.factor


def dimension(unit: str, where: str = "") -> Dimension:
    """What the unit measures: dimension("N") == dimension("kg*m/s^2")."""
    return _parse(unit, where).dimension


def si_unit(unit: str, where: str = "") -> str:
    """The SI unit that :func:`to_si` converts into, by itself."""
    return _write(_parse(unit, where).si)


def _powers(text: str) -> dict[str, Fraction]:
    """The table's own notation, "kg m2 s-2", as a mapping."""
    found = (re.fullmatch(r"([A-Za-z]+)(-?\d+)?", part) for part in text.split())
    return {m[1]: Fraction(m[2] or 1) for m in found if m}


def _table() -> dict[str, tuple[float, dict[str, Fraction], dict[str, Fraction]]]:
    """Symbol → factor, SI symbols it is written in, base dimensions."""
    derived = {
        "N": "kg m s-2",
        "J": "kg m2 s-2",
        "W": "kg m2 s-3",
        "Pa": "kg m-1 s-2",
        "V": "kg m2 s-3 A-1",
        "Ohm": "kg m2 s-3 A-2",
        "H": "kg m2 s-2 A-2",
        "C": "A s",
        "F": "kg-1 m-2 s4 A2",
        "T": "kg s-2 A-1",
        "Hz": "s-1",
    }
    table = {s: (1.0, {s: Fraction(1)}, {s: Fraction(1)}) for s in BASE}
    table |= {s: (1.0, {s: Fraction(1)}, _powers(d)) for s, d in derived.items()}
    table["1"] = (1.0, {}, {})
    prefixes = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9}
    for symbol in ("m", "s", "A", "rad", *derived):
        for prefix, factor in prefixes.items():
            table[prefix + symbol] = (factor, table[symbol][1], table[symbol][2])
    del table["ks"], table["Ms"], table["Gs"], table["krad"], table["Mrad"], table["Grad"]  # nobody means these

    def add(names: str, factor: float, si: str) -> None:
        dims: dict[str, Fraction] = {}
        for symbol, power in _powers(si).items():
            for base, exponent in table[symbol][2].items():
                dims[base] = dims.get(base, Fraction(0)) + exponent * power
        for name in names.split():
            table[name] = (factor, _powers(si), dims)

    turn = 2.0 * math.pi
    add("cm", 1e-2, "m")
    add("in inch", 0.0254, "m")
    add("ft", 0.3048, "m")
    add("mi", 1609.344, "m")
    add("min", 60.0, "s")
    add("h", 3600.0, "s")
    add("deg °", turn / 360.0, "rad")
    add("rev turn", turn, "rad")
    add("rpm", turn / 60.0, "rad s-1")
    add("kph", 1.0 / 3.6, "m s-1")
    add("mph", 0.44704, "m s-1")
    add("gram", 1e-3, "kg")
    add("mg", 1e-6, "kg")
    add("t tonne", 1e3, "kg")
    add("lb", 0.45359237, "kg")
    add("lbf", 4.4482216152605, "N")
    add("g0 gn", 9.80665, "m s-2")
    add("Nm", 1.0, "N m")
    add("kNm", 1e3, "N m")
    add("mNm Nmm", 1e-3, "N m")
    add("bar", 1e5, "Pa")
    add("mbar hPa", 1e2, "Pa")
    add("Wh", 3600.0, "J")
    add("degC", 1.0, "K")
    add("%", 1e-2, "")
    table["Ω"] = table["Ohm"]
    return table


_SYMBOLS = _table()
_REFUSED = {
    "g": "'g' may be a gram or standard gravity: write 'gram', or 'g0' (9.80665 m/s^2).",
    "G": "'G' may be gauss or standard gravity: write 'g0' (9.80665 m/s^2).",
    "Kg": "Write 'kg': K is the kelvin.",
    "KG": "Write 'kg': K is the kelvin.",
    "°C": "Write 'degC'.",
    "sec": "Write 's'.",
    "M": "Write 'm' for the metre.",
    "RPM": "Write 'rpm'.",
    "NM": "Write 'N*m' (or 'Nm').",
    "kmh": "Write 'km/h'.",
}
_COMMON = ("m", "mm", "s", "ms", "rad", "deg", "kg", "N", "Nm", "A", "V", "Hz")  # what a message lists first
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TOKEN = re.compile(
    r"\s*(?:(?P<symbol>g0(?!\d)|[A-Za-zµμ°Ω]+|%)|(?P<power>(?:\^|\*\*)\s*[+-]?\d+(?:\.\d+)?|-?\d+(?:\.\d+)?)|(?P<sign>[*·⋅./()]))"
)


@lru_cache(maxsize=1024)
def _parse(unit: str, where: str) -> _Unit:
    place = where or (f"unit '{unit}'")
    if not isinstance(unit, str) or not unit.strip():
        hint = "Write '1' for a pure number; a number without a unit cannot be checked."
        raise DataError(
            "there is no unit.", where=place, expected="a unit such as 'rad', 'm/s^2', 'N*m'", found="", hint=hint
        )
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda m: "^" + m[0].translate(_SUPERSCRIPT), unit.strip())
    tokens = _tokens(text, unit, place)
    factors, rest = _product(tokens, unit, place)
    if rest:
        raise _malformed(unit, place, f"'{rest[0][1]}' stands where nothing is expected")
    if len(factors) > 1 and any(s in OFFSET for s, _ in factors):
        what = f"'{unit}' combines a temperature that has an offset."
        raise DataError(what, where=place, hint="Use K for differences of temperature.")
    factor, si, dims = 1.0, dict[str, Fraction](), dict[str, Fraction]()
    for symbol, power in factors:
        scale, written, base = _SYMBOLS[symbol]
        factor *= scale ** (int(power) if power.denominator == 1 else float(power))
        for target, source in ((si, written), (dims, base)):
            for name, exponent in source.items():
                target[name] = target.get(name, Fraction(0)) + exponent * power
    return _Unit(factor, si, Dimension(tuple(dims.get(b, Fraction(0)) for b in BASE)))


def _tokens(text: str, unit: str, where: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _malformed(unit, where, f"the character '{text[at]}' cannot be part of a unit")
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind].strip()))
        at = match.end()
    return tokens


def _product(
    tokens: list[tuple[str, str]], unit: str, where: str
) -> tuple[list[tuple[str, Fraction]], list[tuple[str, str]]]:
    """Read factors up to a closing bracket or the end; give back what was read and what is left."""
    out: list[tuple[str, Fraction]] = []
    sign, expecting = 1, True
    while tokens:
        kind, text = tokens[0]
        if text == ")":
            break
        if kind == "sign" and text != "(":
            if expecting:
                raise _malformed(unit, where, f"a symbol is missing before '{text}'")
            sign, expecting, tokens = (-1 if text == "/" else 1), True, tokens[1:]
            continue
        if text == "(":
            factors, tokens = _product(tokens[1:], unit, where)
            if not tokens:
                raise _malformed(unit, where, "a bracket is not closed")
        elif kind == "symbol" or (text == "1" and expecting):
            _known(text, unit, where)
            factors = [(text, Fraction(1))]
        else:
            raise _malformed(unit, where, f"the number '{text}' stands where a symbol is expected")
        tokens = tokens[1:]
        power = Fraction(1)
        if tokens and tokens[0][0] == "power":
            power = Fraction(tokens[0][1].lstrip("^* "))
            tokens = tokens[1:]
        out.extend((symbol, exponent * power * sign) for symbol, exponent in factors)
        sign, expecting = 1, False
    if expecting:
        raise _malformed(unit, where, "a symbol is missing at the end")
    return out, tokens


def _known(symbol: str, unit: str, where: str) -> None:
    if symbol in _SYMBOLS:
        return
    hint = _REFUSED.get(symbol) or did_you_mean(symbol, [*_COMMON, *(s for s in _SYMBOLS if s not in _COMMON)])
    raise DataError(f"the unit '{unit}' holds an unknown symbol '{symbol}'.", where=where, hint=hint)


def _malformed(unit: str, where: str, reason: str) -> DataError:
    hint = "Write it like 'N*m/rad', 'm/s^2' or 'kg*m^2'."
    return DataError(f"the unit '{unit}' cannot be read: {reason}.", where=where, hint=hint)


def _write(powers: Powers) -> str:
    """Positive powers first, then one division for each negative one: "N*m/rad", "m/s^2", "1/s", "1"."""

    def one(symbol: str, power: Fraction) -> str:
        number = str(power) if power.denominator == 1 else f"{float(power):g}"
        return symbol if power == 1 else f"{symbol}^{number}"

    above = "*".join(one(s, p) for s, p in powers.items() if p > 0)
    below = "".join("/" + one(s, -p) for s, p in powers.items() if p < 0)
    return (above or "1") + below
