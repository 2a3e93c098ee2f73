"""Arithmetic as PTX: every operation a line, its result in a new register, which the assembler places."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field


def hexadecimal(value: float) -> str:
    """A double as PTX writes it: 0d and sixteen digits."""
    return f"0d{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"


@dataclass
class PtxArithmetic:
    """Instructions on registers, as :class:`~veridyn.symbolic.elementary.Arithmetic` asks for them."""

    lines: list[str] = field(default_factory=list)
    doubles: int = 0
    integers: int = 0
    conditions: int = 0
    operations: int = 0

    def _double(self, text: str) -> str:
        self.doubles += 1
        self.operations += 1
        self.lines.append(text.replace("@", f"%d{self.doubles}"))
        return f"%d{self.doubles}"

    def _integer(self, text: str) -> str:
        self.integers += 1
        self.lines.append(text.replace("@", f"%l{self.integers}"))
        return f"%l{self.integers}"

    def _condition(self, text: str) -> str:
        self.conditions += 1
        self.lines.append(text.replace("@", f"%p{self.conditions}"))
        return f"%p{self.conditions}"

    def number(self, value: float) -> str:
        return hexadecimal(value)

    def whole(self, value: int) -> str:
        return str(value)

    def add(self, a: str, b: str) -> str:
        return self._double(f"add.rn.f64 @, {a}, {b};")

    def sub(self, a: str, b: str) -> str:
        return self._double(f"sub.rn.f64 @, {a}, {b};")

    def mul(self, a: str, b: str) -> str:
        return self._double(f"mul.rn.f64 @, {a}, {b};")

    def div(self, a: str, b: str) -> str:
        if a == hexadecimal(1.0):
            return self._double(f"rcp.rn.f64 @, {b};")
        return self._double(f"div.rn.f64 @, {a}, {b};")

    def fma(self, a: str, b: str, c: str) -> str:
        return self._double(f"fma.rn.f64 @, {a}, {b}, {c};")

    def minus_of(self, a: str) -> str:
        return self._double(f"neg.f64 @, {a};")

    def unary(self, name: str, a: str) -> str:
        return self._double(f"{name}.f64 @, {a};")

    def bits(self, a: str) -> str:
        return self._integer(f"mov.b64 @, {a};")

    def double(self, i: str) -> str:
        return self._double(f"mov.b64 @, {i};")

    def plus(self, i: str, j: str) -> str:
        return self._integer(f"add.s64 @, {i}, {j};")

    def minus(self, i: str, j: str) -> str:
        return self._integer(f"sub.s64 @, {i}, {j};")

    def both(self, i: str, j: str) -> str:
        return self._integer(f"and.b64 @, {i}, {j};")

    def either(self, i: str, j: str) -> str:
        return self._integer(f"xor.b64 @, {i}, {j};")

    def up(self, i: str, places: int) -> str:
        return self._integer(f"shl.b64 @, {i}, {places};")

    def down(self, i: str, places: int) -> str:
        return self._integer(f"shr.s64 @, {i}, {places};")

    def less(self, a: str, b: str) -> str:
        return self._condition(f"setp.lt.f64 @, {a}, {b};")

    def differs(self, i: str, j: str) -> str:
        return self._condition(f"setp.ne.s64 @, {i}, {j};")

    def choose(self, condition: str, a: str, b: str) -> str:
        return self._double(f"selp.f64 @, {a}, {b}, {condition};")

    def load(self, text: str) -> str:
        name = self._double(text)
        self.operations -= 1
        return name

    def address(self, text: str) -> str:
        return self._integer(text)
