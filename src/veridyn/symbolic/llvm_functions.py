"""LLVM text of vectors: a constant in every lane, a scalar spread over all lanes, and the elementary functions of many numbers at once."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from veridyn.symbolic.elementary import Arithmetic, arc_tangent, exponential, logarithm, sine_and_cosine

FUNCTIONS = {"exp": exponential, "log": logarithm, "atan": arc_tangent}
# V, L and B are vectors of doubles, of their bits and of conditions.
INSTRUCTIONS = {
    "add": "fadd {V} {0}, {1}",
    "sub": "fsub {V} {0}, {1}",
    "mul": "fmul {V} {0}, {1}",
    "div": "fdiv {V} {0}, {1}",
    "fma": "call {V} @llvm.fmuladd.v{width}f64({V} {0}, {V} {1}, {V} {2})",
    "bits": "bitcast {V} {0} to {L}",
    "double": "bitcast {L} {0} to {V}",
    "plus": "add {L} {0}, {1}",
    "minus": "sub {L} {0}, {1}",
    "both": "and {L} {0}, {1}",
    "either": "xor {L} {0}, {1}",
    "up": "shl {L} {0}, {1}",
    "down": "ashr {L} {0}, {1}",
    "less": "fcmp olt {V} {0}, {1}",
    "differs": "icmp ne {L} {0}, {1}",
    "choose": "select {B} {2}, {V} {0}, {V} {1}",
}


def constant(value: float, width: int) -> str:
    """``<double …, double …>``, the value in hexadecimal so that no digit is lost."""
    bits = struct.unpack(">Q", struct.pack(">d", value))[0]
    return "<" + ", ".join([f"double 0x{bits:016X}"] * width) + ">"


def spread(width: int, name: str, scalar: str) -> str:
    """Two lines that make the vector ``%name`` of a scalar."""
    V = f"<{width} x double>"
    zeros = ", ".join(["i32 0"] * width)
    return (
        f"  %{name}.i = insertelement {V} poison, double {scalar}, i32 0\n"
        f"  %{name} = shufflevector {V} %{name}.i, {V} poison, <{width} x i32> <{zeros}>"
    )


@dataclass
class VectorArithmetic(Arithmetic[str]):
    """Instructions on vectors of `width` numbers: every operation a line, its result under a new name."""

    width: int
    lines: list[str] = field(default_factory=list)

    def number(self, value: float) -> str:
        return constant(value, self.width)

    def whole(self, value: int) -> str:
        return "<" + ", ".join([f"i64 {value}"] * self.width) + ">"

    def operation(self, name: str, *operands: str) -> str:
        types = {letter: f"<{self.width} x {kind}>" for letter, kind in (("V", "double"), ("L", "i64"), ("B", "i1"))}
        text = INSTRUCTIONS[name].format(*operands, width=self.width, **types)
        self.lines.append(f"  %t{len(self.lines)} = {text}")
        return f"%t{len(self.lines) - 1}"


def elementary_functions(width: int) -> str:
    """LLVM text of ``@exp``, ``@log`` and ``@atan`` of a vector, and of ``@sincos``, which returns a pair of vectors."""
    V = f"<{width} x double>"
    pair = f"{{{V}, {V}}}"
    found = [f"declare {V} @llvm.fmuladd.v{width}f64({V}, {V}, {V})"]
    for name, function in FUNCTIONS.items():
        a = VectorArithmetic(width)
        value = function(a, "%x")
        found.append(_function(name, V, V, [*a.lines, f"  ret {V} {value}"]))
    a = VectorArithmetic(width)
    sine, cosine = sine_and_cosine(a, "%x")
    a.lines += [
        f"  %p = insertvalue {pair} poison, {V} {sine}, 0",
        f"  %q = insertvalue {pair} %p, {V} {cosine}, 1",
        f"  ret {pair} %q",
    ]
    return "\n".join([*found, _function("sincos", V, pair, a.lines)])


def _function(name: str, given: str, returned: str, lines: list[str]) -> str:
    body = "\n".join(lines)
    return f"define internal {returned} @{name}({given} %x) #0 {{\n{body}\n}}\n"
