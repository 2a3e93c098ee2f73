"""The bytes of WebAssembly: numbers, sections, and functions on doubles."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

I32, I64, F64 = 0x7F, 0x7E, 0x7C


def unsigned(value: int) -> bytes:
    """A number as WebAssembly writes it: seven bits a byte, the lowest first."""
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def signed(value: int) -> bytes:
    """The same with a sign, in two's complement."""
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        if (value == 0 and not low & 0x40) or (value == -1 and low & 0x40):
            out.append(low)
            return bytes(out)
        out.append(low | 0x80)


def vector(items: Iterable[bytes]) -> bytes:
    """Some items behind their number."""
    found = list(items)
    return unsigned(len(found)) + b"".join(found)


def section(number: int, content: bytes) -> bytes:
    """A section of a module: its kind, its length, its content."""
    return bytes([number]) + unsigned(len(content)) + content


@dataclass
class WasmFunction:
    """Code of one function; a value is the code that puts it on the stack. An :class:`~veridyn.symbolic.elementary.Arithmetic`."""

    arguments: int
    code: bytearray = field(default_factory=bytearray)
    locals: list[int] = field(default_factory=list)

    def keep(self, kind: int, code: bytes) -> bytes:
        """Compute once: the value of some code, in a new local."""
        self.code += code
        return self.name_top(kind)

    def name_top(self, kind: int) -> bytes:
        number = unsigned(self.arguments + len(self.locals))
        self.locals.append(kind)
        self.code += b"\x21" + number
        return b"\x20" + number

    def body(self) -> bytes:
        """The function as a module holds it: its length, locals in runs of one kind, code."""
        runs: list[list[int]] = []
        for kind in self.locals:
            if runs and runs[-1][1] == kind:
                runs[-1][0] += 1
            else:
                runs.append([1, kind])
        content = vector(unsigned(n) + bytes([kind]) for n, kind in runs) + bytes(self.code) + b"\x0b"
        return unsigned(len(content)) + content

    def number(self, value: float) -> bytes:
        return b"\x44" + struct.pack("<d", value)

    def whole(self, value: int) -> bytes:
        return b"\x42" + signed(value)

    def add(self, a: bytes, b: bytes) -> bytes:
        return self.keep(F64, a + b + b"\xa0")

    def sub(self, a: bytes, b: bytes) -> bytes:
        return self.keep(F64, a + b + b"\xa1")

    def mul(self, a: bytes, b: bytes) -> bytes:
        return self.keep(F64, a + b + b"\xa2")

    def div(self, a: bytes, b: bytes) -> bytes:
        return self.keep(F64, a + b + b"\xa3")

    def fma(self, a: bytes, b: bytes, c: bytes) -> bytes:
        return self.keep(F64, a + b + b"\xa2" + c + b"\xa0")

    def bits(self, a: bytes) -> bytes:
        return self.keep(I64, a + b"\xbd")

    def double(self, i: bytes) -> bytes:
        return self.keep(F64, i + b"\xbf")

    def plus(self, i: bytes, j: bytes) -> bytes:
        return self.keep(I64, i + j + b"\x7c")

    def minus(self, i: bytes, j: bytes) -> bytes:
        return self.keep(I64, i + j + b"\x7d")

    def both(self, i: bytes, j: bytes) -> bytes:
        return self.keep(I64, i + j + b"\x83")

    def either(self, i: bytes, j: bytes) -> bytes:
        return self.keep(I64, i + j + b"\x85")

    def up(self, i: bytes, places: int) -> bytes:
        return self.keep(I64, i + self.whole(places) + b"\x86")

    def down(self, i: bytes, places: int) -> bytes:
        return self.keep(I64, i + self.whole(places) + b"\x87")

    def less(self, a: bytes, b: bytes) -> bytes:
        return self.keep(I32, a + b + b"\x63")

    def differs(self, i: bytes, j: bytes) -> bytes:
        return self.keep(I32, i + j + b"\x52")

    def choose(self, condition: bytes, a: bytes, b: bytes) -> bytes:
        return self.keep(F64, a + b + condition + b"\x1b")

    def load(self, base: bytes, address: int) -> bytes:
        return self.keep(F64, base + b"\x2b\x03" + unsigned(address))

    def store(self, base: bytes, address: int, value: bytes) -> None:
        self.code += base + value + b"\x39\x03" + unsigned(address)
