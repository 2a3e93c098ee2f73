"""The text of a formula, parsed and fenced: numbers, names, arithmetic and listed functions; never code.

Every node of what Python's parser makes of a text must be of a short list, so that nothing but arithmetic is left. Formulas of model files
(:mod:`veridyn.files.expressions`) and laws of one's own (:mod:`veridyn.model.elements.own_law`) stand behind the same fence.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import NoReturn

from veridyn.errors import ModelError, did_you_mean

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WITH_UNIT = re.compile(rf"({_NUMBER})\s*([A-Za-z°µμ%][\w°µμ%/*^²³.-]*)")
_DEGREES = ("deg", "degs", "degree", "degrees", "°", "grad")
OPERATORS: tuple[type[ast.operator | ast.unaryop], ...] = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow),
    *(ast.USub, ast.UAdd),
)
_PLAIN = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Load, *OPERATORS)


@dataclass(frozen=True)
class FormulaWords:
    """What a formula may be made of: `names` of numbers (None: any), `functions`, and at most so many characters.

    `allowed` lists all that for messages; `unknown` says what a name is not that the formula may not use.
    """

    functions: Collection[str]
    names: Collection[str] | None
    allowed: str
    unknown: str
    longest: int = 200


def parsed(text: str, language: FormulaWords) -> ast.Expression:
    """The syntax of a formula that holds nothing but what the language allows; whole numbers have become floats.

    Refused, with the reason, is everything else.
    """
    tree = _syntax(text, language)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        _check_node(node, text, language, called)
    return tree


def refuse(what: str, hint: str = "") -> NoReturn:
    """Refuse a formula."""
    raise ModelError(what, hint=hint)


def _syntax(text: str, language: FormulaWords) -> ast.Expression:
    if len(text) > language.longest:
        refuse(f"'{text[:30]}…' has {len(text)} characters.", f"At most {language.longest}; cut it into constants.")
    if not text:
        refuse("the formula is empty.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on the style of its own code
            tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        _refuse_unparsed(text, language)
    # Whole numbers become floats here, so that no operator ever meets an integer of a million digits.
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            try:
                node.value = float(node.value)
            except OverflowError:
                refuse(f"'{text}' is too large a number.")
    return tree


def _refuse_unparsed(text: str, language: FormulaWords) -> NoReturn:
    if match := _WITH_UNIT.fullmatch(text):
        number, unit = match.groups()
        if unit.lower() in _DEGREES:
            quarter = " or pi/2" if float(number) == 90.0 else ""
            refuse(f"'{text}' has a unit.", f"Angles are in radians: write radians({number}){quarter}.")
        refuse(
            f"'{text}' has a unit.",
            "Values are in SI units: convert it and write the number alone. A product needs its *.",
        )
    if text.count("(") != text.count(")"):
        refuse(
            f"'{text}' has an open bracket.",
            'Inside [ ] and { } put a formula with a comma in quotes, as "atan2(1, 2)".',
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        refuse(f"'{text}' is not a formula.", f"Allowed: {language.allowed}.")
    refuse(
        f"'{text}' tries to run code.", f"Allowed: {language.allowed}."
    )  # it parses as statements: an import, an assignment


def _check_node(node: ast.AST, text: str, language: FormulaWords, called: set[int]) -> None:
    names, functions = language.names, language.functions
    if isinstance(node, _PLAIN):
        return
    match node:
        case ast.Constant(value=float()):
            return
        case ast.Name(id=name):
            if name in functions and id(node) not in called:
                refuse(f"'{text}' names the function {name} without its ( ).")
            if names is not None and name not in names and name not in functions:
                refuse(f"'{text}' uses '{name}', which is {language.unknown}.", did_you_mean(name, list(names)))
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in functions:
            return
        case ast.Call(func=ast.Name(id=name)) if name not in functions:
            refuse(f"'{text}' tries to run code: it calls '{name}'.", did_you_mean(name, list(functions)))
        case ast.Attribute(attr=name):
            refuse(f"'{text}' tries to run code: it reaches for '.{name}'.", f"Allowed: {language.allowed}.")
        case ast.Tuple():
            refuse(f"'{text}' has a comma.", "Write decimals with a point, and lists in [ ].")
        case ast.BitXor():
            refuse(f"'{text}' has a ^.", "Write powers as 2**3.")
        case (
            ast.Constant() | ast.Compare() | ast.BoolOp() | ast.IfExp() | ast.operator() | ast.unaryop() | ast.keyword()
        ):
            refuse(f"'{text}' is not a formula.", f"Allowed: {language.allowed}.")
        case ast.Call(func=ast.Name()):
            refuse(f"'{text}' is not a formula.", f"Allowed: {language.allowed}.")
        case _:
            refuse(f"'{text}' tries to run code.", f"Allowed: {language.allowed}.")
