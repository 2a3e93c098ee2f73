"""Numbers and functions out of the elements of an OpenSim file: so many as expected, finite, or a fault that names the place."""

from __future__ import annotations

import math
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from veridyn.errors import Fault, FileError, ModelError, within
from veridyn.files.expressions import MAX_NUMBER

Array = NDArray[np.float64]
FUNCTIONS = ("Constant", "LinearFunction", "MultiplierFunction", "NaturalCubicSpline", "SimmSpline")
DEEPEST = 16  # functions in functions


def numbers(parent: ElementTree.Element, tag: str, default: str, count: int | None, where: str) -> Array:
    """The numbers of a child element, `default` where there is none; `count` of them, or any number."""
    text = parent.findtext(tag, default) or ""
    words = text.split()
    values = [_number(word) for word in words]
    wrong = [word for word, value in zip(words, values, strict=True) if value is None]
    if wrong or (count is not None and len(words) != count):
        raise FileError(
            Fault(
                f"it is not {'numbers' if count != 1 else 'a number'}."
                if wrong
                else "it has another number of entries.",
                within(where, tag),
                f"{'' if count is None else f'{count} '}finite {'number' if count == 1 else 'numbers'}, at most {MAX_NUMBER:g}",
                f"'{wrong[0][:40]}'" if wrong else f"{len(words)}",
                "Look at this element of the file.",
            )
        )
    return np.array([v for v in values if v is not None], dtype=np.float64)


def number(parent: ElementTree.Element, tag: str, default: str, where: str) -> float:
    """One number of a child element."""
    return float(numbers(parent, tag, default, 1, where)[0])


def function_of(f: ElementTree.Element, where: str, depth: int = 0) -> Callable[[Array], Array]:
    """What an element computes of a coordinate: a constant, a line, a spline, or a multiple of one of these."""
    if f.tag == "MultiplierFunction":
        scale, inside = number(f, "scale", "1", where), f.find("function/*")
        if inside is None or depth == DEEPEST:
            raise FileError(
                Fault("a multiple of no function.", where, "one element in 'function'", "none or too many levels")
            )
        inner = function_of(inside, where, depth + 1)
        return lambda x: scale * inner(x)
    if f.tag == "Constant":
        value = number(f, "value", "0", where)
        return lambda x: np.full(len(x), value)
    if f.tag == "LinearFunction":
        a, b = numbers(f, "coefficients", "1 0", 2, where)
        return lambda x: a * x + b
    if f.tag in ("SimmSpline", "NaturalCubicSpline"):
        x, y = numbers(f, "x", "", None, where), numbers(f, "y", "", None, where)
        if len(x) != len(y) or len(x) < 2 or not (np.diff(x) > 0.0).all():
            raise FileError(
                Fault(
                    "its points make no spline.",
                    within(where, f.tag),
                    "two or more increasing x, and as many y",
                    f"{len(x)} x and {len(y)} y" + ("" if len(x) != len(y) or len(x) < 2 else ", x not increasing"),
                )
            )
        return CubicSpline(x, y, bc_type="natural" if f.tag == "NaturalCubicSpline" else "not-a-knot")
    raise ModelError(Fault(f"functions of kind '{f.tag}' are not read.", where=where, expected=", ".join(FUNCTIONS)))


def is_identity(f: ElementTree.Element, where: str) -> bool:
    """Whether a function gives back what it is given."""
    return f.tag == "LinearFunction" and numbers(f, "coefficients", "1 0", 2, where).tolist() == [1.0, 0.0]


def _number(word: str) -> float | None:
    try:
        value = float(word) if "_" not in word else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= MAX_NUMBER else None
