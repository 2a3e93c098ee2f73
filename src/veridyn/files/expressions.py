"""Formulas in a model file: numbers, constants, arithmetic and a few functions; never code.

The text is parsed and every node of it must be of a short list, so that nothing but arithmetic is left
(:mod:`veridyn.model.elements.formula_text`). It is computed with operators that know floats only, so that no power fills the memory.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from veridyn.model.elements.formula_text import FormulaWords, parsed, refuse

MAX_NUMBER = 1e50  # no quantity in SI units is larger, and the square of a larger one may overflow
MAX_LENGTH = 200  # characters; a longer formula belongs in several constants
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


def evaluate(expression: str, constants: Mapping[str, float] = PI) -> float:
    """The value of a formula in `constants` and pi: a finite real number, or a :class:`ModelError` that says why not."""
    names = {**PI, **{name: float(value) for name, value in constants.items()}}
    return _computed(_parsed(expression, names, FUNCTIONS), names, FUNCTIONS, expression.strip())


def function_of(expression: str, variable: str = "t") -> Callable[[float], float]:
    """A formula in one variable, checked once; what cannot be computed for some value is refused when that value comes.

    Besides the functions of model files: exp, tanh, and step(x), which is 1 from x = 0 on.
    """
    functions = {**FUNCTIONS, **OF_TIME}
    tree = _parsed(expression, {**PI, variable: 0.0}, functions)

    def value(at: float) -> float:
        return _computed(tree, {**PI, variable: float(at)}, functions, expression.strip())

    return value


def _parsed(text: str, names: Mapping[str, float], functions: Mapping[str, Callable[..., float]]) -> ast.expr:
    words = FormulaWords(functions, names, ALLOWED, "no constant defined above it", MAX_LENGTH)
    return parsed(text.strip(), words).body


def _computed(
    tree: ast.expr, names: Mapping[str, float], functions: Mapping[str, Callable[..., float]], text: str
) -> float:
    try:
        value = _value(tree, names, functions)
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


def _value(node: ast.expr, names: Mapping[str, float], functions: Mapping[str, Callable[..., float]]) -> float:
    """What a node is that has passed the fence."""
    inner = partial(_value, names=names, functions=functions)
    match node:
        case ast.Constant(value=float(number)):
            return number
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=a, op=op, right=b):
            return _COMPUTES[type(op)](inner(a), inner(b))
        case ast.UnaryOp(op=op, operand=a):
            return _COMPUTES[type(op)](inner(a))
        case ast.Call(func=ast.Name(id=name), args=args):
            return functions[name](*map(inner, args))
        case _:
            raise TypeError(f"{type(node).__name__} is no part of a formula")


def is_constant_name(name: str) -> bool:
    """Whether a constant may have this name: an identifier that is not a word of the formulas themselves."""
    return name.isidentifier() and not keyword.iskeyword(name) and name not in PI and name not in FUNCTIONS
