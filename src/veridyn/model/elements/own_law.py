"""Laws of one's own: a formula of coordinates, speeds and signals, which an element's parameter multiplies.

===================== ==============================================================================================
``c``, ``v``          what the element acts on (Σ aᵢ qᵢ, or the distance of its two places), and its rate
``q2``                the coordinate of that name; ``rate(q2)`` its speed
``signal(heat)``      the measured signal of that name
``+ - * / **``        arithmetic; an exponent is a number, and of ``abs(…)``, ``sqrt(…)`` or ``exp(…)`` where it is not whole
functions             sin cos tan asin acos atan sqrt abs exp log tanh sign step min max radians degrees
===================== ==============================================================================================

The text is read behind the same fence as every formula of a model file (`parsed`: never code) and computed over scalars of any kind,
so that compiled kernels have it, and its exact derivatives, as they have the laws of this package. sign(x) is 0 at 0 and step(x) is ½
there; integrators that round dry friction off round both off alike.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from veridyn.errors import ModelError, did_you_mean
from veridyn.spatial.algebra import Algebra, Scalar, add, hyperbolic_tangent, mul, sub
from veridyn.symbolic.expression import Expression, Graph

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
    # it parses as statements: an import, an assignment
    refuse(f"'{text}' tries to run code.", f"Allowed: {language.allowed}.")


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


OWN = ("c", "v")  # what the element itself acts on, and its rate
OF_NAMES = ("rate", "signal")  # functions of a name, not of a number
LARGEST_POWER = 20  # of whole exponents: x**20 is nineteen products
POSITIVE = ("abs", "sqrt", "exp")  # functions whose values have powers that are not whole
LOG_OFFSET = 1e-100  # added to what a logarithm is taken of in powers; it changes no number above 1e-84
JUMPING = ("sign", "step")
BENT = (*JUMPING, "abs", "min", "max")


@dataclass(frozen=True, kw_only=True)
class LawInputs:
    """What a formula is computed from: c and v, coordinates and their speeds by name, and signals, each where it is needed."""

    position: Callable[[], Scalar]
    rate: Callable[[], Scalar]
    coordinate: Callable[[str], Scalar]
    speed: Callable[[str], Scalar]
    signal: Callable[[str], Scalar]
    algebra: Algebra


@dataclass(frozen=True, kw_only=True)
class LawFormula:
    """A formula that was read: the names it uses, and whether it jumps or bends somewhere."""

    text: str
    tree: ast.expr
    own: frozenset[str]
    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    signals: tuple[str, ...]
    functions: frozenset[str]

    @property
    def jumps(self) -> bool:
        """Whether it has a sign or a step."""
        return bool(self.functions & {*JUMPING})

    @property
    def smooth(self) -> bool:
        """Whether it has derivatives of every order wherever it is a number."""
        return not self.functions & {*BENT}

    @property
    def everywhere(self) -> bool:
        """Whether it is a finite number for whatever it is computed from, short of overflow."""
        return not self.functions & {"log", "sqrt", "tan", "asin", "acos", "exp"} and not any(
            isinstance(n, ast.BinOp)
            and (isinstance(n.op, ast.Div) or (isinstance(n.op, ast.Pow) and (_constant(n.right) or 0.0) < 0.0))
            for n in ast.walk(self.tree)
        )

    @property
    def of_position(self) -> bool:
        """Whether it is a function of c alone."""
        return self.own <= {"c"} and not (self.coordinates or self.speeds or self.signals)

    def value(self, x: LawInputs) -> Scalar:
        """What it is, over scalars of any kind."""
        return _value(self.tree, x)


@lru_cache(maxsize=1024)
def read_formula(text: str) -> LawFormula:
    """A formula from its text, or a :class:`~veridyn.errors.ModelError` that says why not."""
    stripped = text.strip()
    tree = parsed(stripped, LANGUAGE).body
    named: dict[str, list[str]] = {"rate": [], "signal": []}
    plain: list[str] = []
    functions: set[str] = set()
    _walk(tree, stripped, named, plain, functions)
    own = {n for n in plain if n in OWN} | {"v" for n in named["rate"] if n == "c"}
    return LawFormula(
        text=stripped,
        tree=tree,
        own=frozenset(own),
        coordinates=tuple(dict.fromkeys(n for n in plain if n not in OWN and n != "pi")),
        speeds=tuple(dict.fromkeys(n for n in named["rate"] if n != "c")),
        signals=tuple(dict.fromkeys(named["signal"])),
        functions=frozenset(functions),
    )


def unusable(formula: LawFormula) -> str:
    """Why a formula has no value anywhere: its numbers alone divide by zero, overflow or leave a function's range; empty where it has."""
    graph = Graph()
    x = LawInputs(
        position=lambda: graph.input("c"),
        rate=lambda: graph.input("v"),
        coordinate=lambda name: graph.input(f"q.{name}"),
        speed=lambda name: graph.input(f"qd.{name}"),
        signal=lambda name: graph.input(f"s.{name}"),
        algebra=graph,
    )
    try:
        value = formula.value(x)
    except ZeroDivisionError:
        return "divides by zero"
    except OverflowError:
        return "is too large a number"
    except ValueError:
        return "takes a root or logarithm of a number that has none"
    numbers = [*graph.constants.values(), *([] if isinstance(value, Expression) else [value])]
    if not all(math.isfinite(n) for n in numbers):
        return "is not a finite number"
    return "is zero everywhere" if not isinstance(value, Expression) and value == 0.0 else ""


def with_numbers(text: str, numbers: Mapping[str, float], shift: float = 0.0, still: bool = False) -> str:
    """The formula with numbers in place of names, and c + `shift` in place of c; `still`: their rates are zero.

    Used where a file gives constants, and where joints are locked.
    """
    formula = read_formula(text)
    if not shift and not {*formula.coordinates, *formula.speeds} & {*numbers}:
        return formula.text
    tree = ast.parse(formula.text, mode="eval")
    return ast.unparse(ast.fix_missing_locations(_Replace(numbers, shift, still).visit(tree)))


class _Replace(ast.NodeTransformer):
    def __init__(self, numbers: Mapping[str, float], shift: float, still: bool) -> None:
        self.numbers, self.shift, self.still = numbers, shift, still

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in OF_NAMES:
            on = node.args[0]
            locked = name == "rate" and self.still and isinstance(on, ast.Name) and on.id in self.numbers
            return ast.Constant(0.0) if locked else node
        node.args = [self.visit(a) for a in node.args]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == "c" and self.shift:
            return ast.BinOp(node, ast.Add(), _number(self.shift))
        return _number(self.numbers[node.id]) if node.id in self.numbers and node.id not in OWN else node


def _number(x: float) -> ast.expr:
    return ast.Constant(x) if x >= 0.0 else ast.UnaryOp(ast.USub(), ast.Constant(-x))


def _walk(node: ast.expr, text: str, named: dict[str, list[str]], plain: list[str], functions: set[str]) -> None:
    match node:
        case ast.Name(id=name):
            plain.append(name)
        case ast.Call(func=ast.Name(id=name), args=args):
            if len(args) != COUNTS.get(name, 1):
                many = COUNTS.get(name, 1)
                refuse(f"'{text}' calls {name} with {len(args)} values.", f"It takes {'two' if many == 2 else 'one'}.")
            if name not in OF_NAMES:
                functions.add(name)
                for a in args:
                    _walk(a, text, named, plain, functions)
            elif isinstance(args[0], ast.Name):
                named[name].append(args[0].id)
            else:
                what = "a coordinate" if name == "rate" else "a measured signal"
                refuse(f"'{text}': {name}( ) takes the name of {what}.", f"Write {name}(NAME).")
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            _check_power(base, exponent, text)
            _walk(base, text, named, plain, functions)
        case ast.BinOp(left=a, right=b):
            _walk(a, text, named, plain, functions)
            _walk(b, text, named, plain, functions)
        case ast.UnaryOp(operand=a):
            _walk(a, text, named, plain, functions)
        case _:
            pass


def _check_power(base: ast.expr, exponent: ast.expr, text: str) -> None:
    p = _constant(exponent)
    if p is None:
        refuse(f"'{text}' has a power whose exponent is not a number.", "Write exp(x*log(a)) for a**x.")
    if p != round(p):
        name = base.func.id if isinstance(base, ast.Call) and isinstance(base.func, ast.Name) else ""
        if name not in POSITIVE:
            refuse(
                f"'{text}' has a power that is not a whole number, of what may be negative.",
                f"Take it of abs( ), as in abs(v)**{p:g}*sign(v), or write sqrt( ).",
            )
    elif abs(p) > LARGEST_POWER:
        refuse(f"'{text}' has a power of {p:g}.", f"At most {LARGEST_POWER}.")


def _constant(node: ast.expr) -> float | None:
    """The number that a node of numbers alone stands for, within an exponent."""
    match node:
        case ast.Constant(value=float(x)):
            return x
        case ast.UnaryOp(op=ast.USub(), operand=a):
            x = _constant(a)
            return None if x is None else -x
        case ast.BinOp(left=a, op=ast.Div(), right=b):
            x, y = _constant(a), _constant(b)
            return None if x is None or y is None or y == 0.0 else x / y
        case _:
            return None


def _value(node: ast.expr, x: LawInputs) -> Scalar:
    match node:
        case ast.Constant(value=float(number)):
            return number
        case ast.Name(id=name):
            return _named(name, x)
        case ast.Call(func=ast.Name(id="rate"), args=[ast.Name(id=name)]):
            return x.rate() if name == "c" else x.speed(name)
        case ast.Call(func=ast.Name(id="signal"), args=[ast.Name(id=name)]):
            return x.signal(name)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](x.algebra, *(_value(a, x) for a in args))
        case ast.BinOp(left=a, op=ast.Pow(), right=b):
            return _power(_value(a, x), _constant(b) or 0.0, x.algebra)
        case ast.BinOp(left=a, op=op, right=b):
            u, w = _value(a, x), _value(b, x)
            if isinstance(op, ast.Div):
                return u / w
            return add(u, w) if isinstance(op, ast.Add) else sub(u, w) if isinstance(op, ast.Sub) else mul(u, w)
        case ast.UnaryOp(op=op, operand=a):
            u = _value(a, x)
            return mul(-1.0, u) if isinstance(op, ast.USub) else u
        case _:
            raise AssertionError(ast.dump(node))  # the fence lets nothing else through


def _named(name: str, x: LawInputs) -> Scalar:
    if name == "c":
        return x.position()
    if name == "v":
        return x.rate()
    return math.pi if name == "pi" else x.coordinate(name)


def _power(base: Scalar, p: float, algebra: Algebra) -> Scalar:
    if p != round(p):
        return algebra.exp(mul(p, algebra.log(add(base, LOG_OFFSET))))
    out: Scalar = 1.0
    for _ in range(abs(round(p))):
        out = mul(out, base)
    return 1.0 / out if p < 0.0 else out


def _arcsine(algebra: Algebra, x: Scalar) -> Scalar:
    return algebra.atan(x / algebra.sqrt(sub(1.0, mul(x, x))))


def _larger(algebra: Algebra, a: Scalar, b: Scalar, way: float) -> Scalar:
    """The larger of two (way 1), or the smaller (−1): ½ (a + b ± |a − b|)."""
    return mul(0.5, add(add(a, b), mul(way, algebra.abs(sub(a, b)))))


FUNCTIONS: Mapping[str, Callable[..., Scalar]] = {
    "sin": lambda k, x: k.sin(x),
    "cos": lambda k, x: k.cos(x),
    "tan": lambda k, x: k.sin(x) / k.cos(x),
    "asin": _arcsine,
    "acos": lambda k, x: sub(0.5 * math.pi, _arcsine(k, x)),
    "atan": lambda k, x: k.atan(x),
    "sqrt": lambda k, x: k.sqrt(x),
    "abs": lambda k, x: k.abs(x),
    "exp": lambda k, x: k.exp(x),
    "log": lambda k, x: k.log(x),
    "tanh": hyperbolic_tangent,
    "sign": lambda k, x: k.sign(x),
    "step": lambda k, x: add(0.5, mul(0.5, k.sign(x))),
    "min": lambda k, a, b: _larger(k, a, b, -1.0),
    "max": lambda k, a, b: _larger(k, a, b, 1.0),
    "radians": lambda k, x: mul(math.pi / 180.0, x),
    "degrees": lambda k, x: mul(180.0 / math.pi, x),
}
COUNTS: Mapping[str, int] = {"min": 2, "max": 2}  # functions of more than one value
ALLOWED = f"numbers, pi, c, v, coordinates, rate(COORDINATE), signal(NAME), + - * / ** ( ) and {' '.join(FUNCTIONS)}"
LANGUAGE = FormulaWords((*FUNCTIONS, *OF_NAMES), None, ALLOWED, "unknown", 300)
