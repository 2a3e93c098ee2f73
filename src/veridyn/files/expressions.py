"""Formulas in a model file: numbers, constants, arithmetic and a few functions; never code.

Two fences stand in a row. The text is parsed and every node of it must be of a short list, so that nothing but
arithmetic is left; then simpleeval computes it with operators that know floats only, so that no power fills the memory.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NoReturn

from simpleeval import InvalidExpression, SimpleEval

from veridyn.errors import Fault, ModelError, did_you_mean

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

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WITH_UNIT = re.compile(rf"({_NUMBER})\s*([A-Za-z°µμ%][\w°µμ%/*^²³.-]*)")
_DEGREES = ("deg", "degs", "degree", "degrees", "°", "grad")
_OPERATORS: Mapping[type[ast.operator | ast.unaryop], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: lambda a, b: float(a) ** float(b),
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_PLAIN = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Load, *_OPERATORS)


def evaluate(expression: str, constants: Mapping[str, float] = PI) -> float:
    """The value of a formula in `constants` and pi: a finite real number, or a :class:`ModelError` that says why not."""
    names = {**PI, **{name: float(value) for name, value in constants.items()}}
    return _computed(*_prepared(expression.strip(), names, FUNCTIONS))


def function_of(expression: str, variable: str = "t") -> Callable[[float], float]:
    """A formula in one variable, checked once; what cannot be computed for some value is refused when that value comes.

    Besides the functions of model files: exp, tanh, and step(x), which is 1 from x = 0 on.
    """
    machine, tree, text = _prepared(expression.strip(), {**PI, variable: 0.0}, {**FUNCTIONS, **OF_TIME})

    def value(at: float) -> float:
        machine.names[variable] = float(at)
        return _computed(machine, tree, text)

    return value


def _prepared(
    text: str, names: dict[str, float], functions: Mapping[str, Callable[..., float]]
) -> tuple[SimpleEval, ast.Expression, str]:
    """What computes a formula that has passed both fences."""
    tree = _parsed(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        _check_node(node, text, names, called, functions)
    return SimpleEval(operators=dict(_OPERATORS), functions=dict(functions), names=names), tree, text


def _computed(machine: SimpleEval, tree: ast.Expression, text: str) -> float:
    try:
        value = machine.eval(text, previously_parsed=tree.body)
    except ZeroDivisionError:
        _refuse(f"'{text}' divides by zero.")
    except OverflowError:
        _refuse(f"'{text}' is too large a number.")
    except (ValueError, TypeError) as error:
        _refuse(f"'{text}' cannot be computed: {error}.")
    except (InvalidExpression, RecursionError):
        _refuse(f"'{text}' is not a formula.", f"Allowed: {ALLOWED}.")
    if isinstance(value, complex):
        _refuse(f"'{text}' is not a real number.")
    if not math.isfinite(value):
        _refuse(f"'{text}' is not a finite number.")
    if abs(value) > MAX_NUMBER:
        _refuse(f"'{text}' is too large a number.")
    return float(value)


def is_constant_name(name: str) -> bool:
    """Whether a constant may have this name: an identifier that is not a word of the formulas themselves."""
    return name.isidentifier() and not keyword.iskeyword(name) and name not in PI and name not in FUNCTIONS


def _parsed(text: str) -> ast.Expression:
    if len(text) > MAX_LENGTH:
        _refuse(f"'{text[:30]}…' has {len(text)} characters.", f"At most {MAX_LENGTH}; cut it into constants.")
    if not text:
        _refuse("the formula is empty.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on the style of its own code
            tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        _refuse_unparsed(text)
    # Whole numbers become floats here, so that no operator ever meets an integer of a million digits.
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            try:
                node.value = float(node.value)
            except OverflowError:
                _refuse(f"'{text}' is too large a number.")
    return tree


def _refuse_unparsed(text: str) -> NoReturn:
    if match := _WITH_UNIT.fullmatch(text):
        number, unit = match.groups()
        if unit.lower() in _DEGREES:
            quarter = " or pi/2" if float(number) == 90.0 else ""
            _refuse(f"'{text}' has a unit.", f"Angles are in radians: write radians({number}){quarter}.")
        _refuse(
            f"'{text}' has a unit.",
            "Values are in SI units: convert it and write the number alone. A product needs its *.",
        )
    if text.count("(") != text.count(")"):
        _refuse(
            f"'{text}' has an open bracket.",
            'Inside [ ] and { } put a formula with a comma in quotes, as "atan2(1, 2)".',
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        _refuse(f"'{text}' is not a formula.", f"Allowed: {ALLOWED}.")
    _refuse(f"'{text}' tries to run code.", f"Allowed: {ALLOWED}.")  # it parses as statements: an import, an assignment


def _check_node(
    node: ast.AST, text: str, names: Mapping[str, float], called: set[int], functions: Mapping[str, object]
) -> None:
    if isinstance(node, _PLAIN):
        return
    match node:
        case ast.Constant(value=float()):
            return
        case ast.Name(id=name):
            if name in functions and id(node) not in called:
                _refuse(f"'{text}' names the function {name} without its ( ).")
            if name not in names and name not in functions:
                _refuse(
                    f"'{text}' uses '{name}', which is no constant defined above it.", did_you_mean(name, list(names))
                )
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in functions:
            return
        case ast.Call(func=ast.Name(id=name)) if name not in functions:
            _refuse(f"'{text}' tries to run code: it calls '{name}'.", did_you_mean(name, list(functions)))
        case ast.Attribute(attr=name):
            _refuse(f"'{text}' tries to run code: it reaches for '.{name}'.", f"Allowed: {ALLOWED}.")
        case ast.Tuple():
            _refuse(f"'{text}' has a comma.", "Write decimals with a point, and lists in [ ].")
        case ast.BitXor():
            _refuse(f"'{text}' has a ^.", "Write powers as 2**3.")
        case (
            ast.Constant() | ast.Compare() | ast.BoolOp() | ast.IfExp() | ast.operator() | ast.unaryop() | ast.keyword()
        ):
            _refuse(f"'{text}' is not a formula.", f"Allowed: {ALLOWED}.")
        case ast.Call(func=ast.Name()):
            _refuse(f"'{text}' is not a formula.", f"Allowed: {ALLOWED}.")
        case _:
            _refuse(f"'{text}' tries to run code.", f"Allowed: {ALLOWED}.")


def _refuse(what: str, hint: str = "") -> NoReturn:
    raise ModelError(Fault(what, hint=hint))
