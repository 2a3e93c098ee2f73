"""Numbers, names, lists and mappings as YAML that reads back as the same values, to the last bit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

WIDTH = 110

_PLAIN = re.compile(r"[A-Za-z_](?:[\w .-]*[\w])?|[1-9][0-9]*", re.ASCII)
_RESERVED = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n", "unknown"))
_ANGLES = {k * math.pi / 4: text for k, text in ((1, "pi/4"), (2, "pi/2"), (4, "pi"))}
_ANGLES |= {-angle: f"-{text}" for angle, text in _ANGLES.items()}


def is_zero(x: float) -> bool:
    """Zero as an entry that is left out is zero; −0 is written."""
    return same_number(float(x), 0.0)


def same_number(a: float, b: float) -> bool:
    """The same bits, or both NaN."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))


def number_text(x: float) -> str:
    return "unknown" if math.isnan(x) else repr(float(x))


def angle_text(x: float) -> str:
    """Quarter and half turns as pi/4, pi/2 and pi, other angles as numbers."""
    return _ANGLES.get(float(x), number_text(x))


def numbers_text(numbers: Iterable[float]) -> str:
    return f"[{', '.join(number_text(x) for x in numbers)}]"


def matrix_text(rows: ArrayLike) -> str:
    return f"[{', '.join(numbers_text(row) for row in np.asarray(rows, dtype=np.float64))}]"


def names_text(names: Iterable[str]) -> str:
    return f"[{', '.join(name_text(name) for name in names)}]"


def mapping_text(entries: Mapping[str, str]) -> str:
    """``{a: 1, b: 2}`` on one line; keys are written as they are."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"


def flow(head: str, entries: Mapping[str, str]) -> str:
    """A mapping behind `head`, over as many lines as it takes."""
    return wrapped(head, [f"{key}: {value}" for key, value in entries.items()], "{}")


def wrapped(head: str, parts: list[str], brackets: str) -> str:
    """``head[a, b, c]`` over as many lines as it takes; YAML allows a line break anywhere within brackets."""
    lines = [head + brackets[0]]
    for k, part in enumerate(parts):
        piece = part + ("," if k < len(parts) - 1 else brackets[1])
        gap = "" if k == 0 else " "
        if k and len(lines[-1]) + len(gap) + len(piece) > WIDTH:
            lines.append(" " * (len(head) + 1) + piece)
        else:
            lines[-1] += gap + piece
    return "\n".join(lines) if parts else head + brackets


def name_text(text: str) -> str:
    """A YAML scalar that is this text and nothing else: plain where that is safe, in quotes otherwise."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
