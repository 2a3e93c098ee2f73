"""Numbers in a model file: formulas, and angles that are quarter turns but for the digits they were written with.

A formula has numbers, constants, arithmetic and a few functions; never code. The text is parsed and every node of it must be of a short
list, so that nothing but arithmetic is left (:mod:`veridyn.model.elements.own_law`). It is computed with operators that know floats
only, so that no power fills the memory.

1.5708, 3.14159 and −1.57 are quarter turns. An angle that is off a right angle by 4e-6 rad makes a machine in which, to rounding, more
parameters are identifiable than any motion can show: axes that are perpendicular do not quite decouple. An angle is taken for k π/2 where
its decimal digits are those of k π/2, rounded or cut off, or where it differs by no more than single precision resolves; no machine is
built to that.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from types import MappingProxyType
from typing import Any

from veridyn.errors import DataWarning, Fault, FileError, warn
from veridyn.model.elements.own_law import FormulaWords, parsed, refuse

MAX_NUMBER = 1e50  # no quantity in SI units is larger, and the square of a larger one may overflow
MAX_LENGTH = 200  # characters; a longer formula belongs in several constants
Formula = Callable[[Mapping[str, float]], float]  # its value, by those of its names
PI: Mapping[str, float] = MappingProxyType({"pi": math.pi})
FUNCTIONS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "sin": math.sin,
        "cos": math.cos,
        "tan": math.tan,
        "asin": math.asin,
        "acos": math.acos,
        "atan": math.atan,
        "atan2": math.atan2,
        "sqrt": math.sqrt,
        "abs": math.fabs,
        "radians": math.radians,
        "degrees": math.degrees,
    }
)
OF_TIME: Mapping[str, Callable[..., float]] = MappingProxyType(
    {"exp": math.exp, "tanh": math.tanh, "step": lambda x: float(x >= 0.0)}
)
ALLOWED = f"numbers, earlier constants, pi, + - * / ** ( ) and {' '.join(FUNCTIONS)}"
_COMPUTES: dict[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: lambda a, b: float(a) ** float(b),
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
QUARTER_TURN_RAD = math.pi / 2
PI_DIGITS = Decimal("3.14159265358979323846264338327950288")
LEAST_DECIMALS = 2  # of an angle that may be a rounded quarter turn: 1.57 is one, 1.6 may be anything
SINGLE_PRECISION = 2.0**-23  # relative resolution
SHOWN_ANGLES = 4  # different ones, in a warning
ROUNDED_QUARTER_TURN = "its angle is a quarter turn that was rounded, and is taken as exact."
QUIET_CHANGE_RAD = 1e-8  # a smaller change is not reported: 10 nm at a distance of 1 m


def evaluate(expression: str, constants: Mapping[str, float] = PI) -> float:
    """The value of a formula in `constants` and pi: a finite real number, or a :class:`ModelError` that says why not."""
    names = {**PI, **{name: float(value) for name, value in constants.items()}}
    return _prepared(expression, names, FUNCTIONS)(names)


def function_of(expression: str, variable: str = "t") -> Callable[[float], float]:
    """A formula in one variable, checked once; what cannot be computed for some value is refused when that value comes.

    Besides the functions of model files: exp, tanh, and step(x), which is 1 from x = 0 on.
    """
    formula = _prepared(expression, {**PI, variable: 0.0}, {**FUNCTIONS, **OF_TIME})

    def value(at: float) -> float:
        return formula({**PI, variable: float(at)})

    return value


def _prepared(text: str, names: Mapping[str, float], functions: Mapping[str, Callable[..., float]]) -> Formula:
    """A formula that is checked and read once, to be computed for many values of its names."""
    text = text.strip()
    words = FormulaWords(functions, names, ALLOWED, "no constant defined above it", MAX_LENGTH)
    try:
        compute = _computing(parsed(text, words).body, functions)
    except RecursionError:
        refuse(f"'{text}' is not a formula.", f"Allowed: {ALLOWED}.")
    return lambda values: _checked_value(compute, values, text)


def _checked_value(compute: Formula, names: Mapping[str, float], text: str) -> float:
    try:
        value = compute(names)
    except ZeroDivisionError:
        refuse(f"'{text}' divides by zero.")
    except OverflowError:
        refuse(f"'{text}' is too large a number.")
    except (ValueError, TypeError) as error:
        refuse(f"'{text}' cannot be computed: {error}.")
    except RecursionError:
        refuse(f"'{text}' is not a formula.", f"Allowed: {ALLOWED}.")
    if isinstance(value, complex):
        refuse(f"'{text}' is not a real number.")
    if not math.isfinite(value):
        refuse(f"'{text}' is not a finite number.")
    if abs(value) > MAX_NUMBER:
        refuse(f"'{text}' is too large a number.")
    return float(value)


def _computing(node: ast.expr, functions: Mapping[str, Callable[..., float]]) -> Formula:
    """What computes a node that has passed the fence; simulations ask for a formula at each step, so its text is read once."""
    match node:
        case ast.Constant(value=float(number)):
            return lambda _: number
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.BinOp(left=left, op=op, right=right):
            combine, a, b = _COMPUTES[type(op)], _computing(left, functions), _computing(right, functions)
            return lambda names: combine(a(names), b(names))
        case ast.UnaryOp(op=op, operand=operand):
            change, x = _COMPUTES[type(op)], _computing(operand, functions)
            return lambda names: change(x(names))
        case ast.Call(func=ast.Name(id=name), args=args):
            function, inner = functions[name], [_computing(arg, functions) for arg in args]
            return lambda names: function(*[x(names) for x in inner])
        case _:
            raise TypeError(f"{type(node).__name__} is no part of a formula")


def is_constant_name(name: str) -> bool:
    """Whether a constant may have this name: an identifier that is not a word of the formulas themselves."""
    return name.isidentifier() and not keyword.iskeyword(name) and name not in PI and name not in FUNCTIONS


def quarter_turn(angle: float) -> float:
    """k π/2, k not zero, where `angle` (rad) is that number as it was written down, else `angle` itself."""
    k = round(angle / QUARTER_TURN_RAD)
    exact = k * QUARTER_TURN_RAD
    if k == 0:
        return angle  # small angles are written with all their digits
    if abs(angle - exact) <= SINGLE_PRECISION * abs(exact):
        return exact
    written = Decimal(repr(angle))
    exponent = written.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent < LEAST_DECIMALS:
        return angle
    place = Decimal(1).scaleb(exponent)
    true = k * PI_DIGITS / 2
    return exact if written in (true.quantize(place), true.quantize(place, ROUND_DOWN)) else angle


def snap_quarter_turns(angles: Sequence[float]) -> tuple[list[float], str]:
    """Angles (rad) with rounded quarter turns made exact, and what was changed in words, empty where nothing to speak of was."""
    exact = [quarter_turn(a) for a in angles]
    changed = [
        f"{a!r} is {_multiple(round(e / QUARTER_TURN_RAD))}"
        for a, e in zip(angles, exact, strict=True)
        if abs(a - e) > QUIET_CHANGE_RAD
    ]
    return exact, ", ".join(dict.fromkeys(changed))


def _multiple(k: int) -> str:
    """k π/2 in words: π/2, −π, 3π/2."""
    sign, n = "−" if k < 0 else "", abs(k)
    if n % 2 == 0:
        return f"{sign}{'' if n == 2 else n // 2}π"
    return f"{sign}{'' if n == 1 else n}π/2"


def warn_of_rounded_angles(notes: Sequence[Fault], source: str) -> None:
    """One DataWarning for all notes of a model file: it names the first place and counts the others."""
    if not notes:
        return
    first, listed = notes[0], list(dict.fromkeys(note.found for note in notes))
    found = "; ".join(listed[:SHOWN_ANGLES]) + ("; …" if len(listed) > SHOWN_ANGLES else "")
    if len(notes) > 1:
        first = replace(first, where=f"{first.where} (line {first.line}) and {len(notes) - 1} more", line=None, at=())
    warn(DataWarning, Fault(str(FileError(replace(first, found=found), source))))
