"""Exponential and natural logarithm of many numbers at once, to within two units in the last place.

exp: x = n ln 2 + r with |r| ≤ ln 2/2, ln 2 in two parts so that n times the first is exact; e^r is its Taylor series, whose first term
left out is below 1e-17 of it. Below −708 the result is 0, above 709 it is infinite. log: x = 2ⁿ m with √½ ≤ m < √2, and
log m = 2 artanh(s), s = (m − 1)/(m + 1). Numbers below 2.3e-308 count as 0, whose logarithm is −∞; that of a negative number is NaN.
"""

from __future__ import annotations

import math

from veridyn.symbolic.llvm_text import constant

_LN2_BITS = 0xB17217F7D1CF79ABC9E3B39803F2F6AF  # ln 2 times 2^128
LN2_HIGH = math.ldexp(float(_LN2_BITS >> 96), -32)  # 32 bits: its product with an integer below 2^11 is exact
LN2_LOW = math.ldexp(float(_LN2_BITS & (2**96 - 1)), -128)
SMALLEST = 2.2250738585072014e-308
EXPONENTIAL = tuple(1.0 / math.factorial(k) for k in range(2, 15))  # of r², r³, …, r¹⁴
ARTANH = tuple(2.0 / (2 * k + 1) for k in range(1, 12))  # of s³, s⁵, …, s²³


def _helpers(width: int) -> tuple[str, str, str]:
    return f"<{width} x double>", f"<{width} x i64>", f"<{width} x i1>"


def _integers(value: int, width: int) -> str:
    return "<" + ", ".join([f"i64 {value}"] * width) + ">"


def horner(lines: list[str], width: int, variable: str, coefficients: tuple[float, ...]) -> str:
    """Lines that make c₀ + c₁ x + c₂ x² + … of a variable, and the name of the result."""
    V = f"<{width} x double>"
    at = constant(coefficients[-1], width)
    for k, value in enumerate(reversed(coefficients[:-1])):
        lines.append(
            f"  %h{k} = call {V} @llvm.fmuladd.v{width}f64({V} {variable}, {V} {at}, {V} {constant(value, width)})"
        )
        at = f"%h{k}"
    return at


def exp_function(width: int) -> str:
    """LLVM text of ``@exp``."""
    V, L, B = _helpers(width)

    def c(value: float) -> str:
        return constant(value, width)

    magic = 1.5 * 2.0**52  # adding it rounds to an integer, which the low bits then hold
    lines = [
        f"  %low = fcmp olt {V} %x, {c(-708.0)}",
        f"  %high = fcmp ogt {V} %x, {c(709.0)}",
        f"  %x1 = select {B} %low, {V} {c(-708.0)}, {V} %x",
        f"  %x2 = select {B} %high, {V} {c(709.0)}, {V} %x1",
        f"  %y0 = fmul {V} %x2, {c(1.0 / math.log(2.0))}",
        f"  %y = fadd {V} %y0, {c(magic)}",
        f"  %n = fsub {V} %y, {c(magic)}",
        f"  %bits = bitcast {V} %y to {L}",
        f"  %a1 = fmul {V} %n, {c(LN2_HIGH)}",
        f"  %r1 = fsub {V} %x2, %a1",
        f"  %a2 = fmul {V} %n, {c(LN2_LOW)}",
        f"  %r = fsub {V} %r1, %a2",
    ]
    series = horner(lines, width, "%r", EXPONENTIAL)
    lines += [
        f"  %rr = fmul {V} %r, %r",
        f"  %t1 = fmul {V} %rr, {series}",
        f"  %t2 = fadd {V} %t1, %r",
        f"  %p = fadd {V} %t2, {c(1.0)}",
        # 2ⁿ: the exponent of a double, whose bits are n + 1023 above the 52 of its fraction.
        f"  %e1 = shl {L} %bits, {_integers(52, width)}",
        f"  %e2 = add {L} %e1, {_integers(1023 << 52, width)}",
        f"  %scale = bitcast {L} %e2 to {V}",
        f"  %v = fmul {V} %p, %scale",
        f"  %v1 = select {B} %low, {V} {c(0.0)}, {V} %v",
        f"  %v2 = select {B} %high, {V} {c(math.inf)}, {V} %v1",
        f"  ret {V} %v2",
    ]
    return function_text("exp", V, lines)


def log_function(width: int) -> str:
    """LLVM text of ``@log``."""
    V, L, B = _helpers(width)

    def c(value: float) -> str:
        return constant(value, width)

    half = 0x3FE6A09E667F3BCD  # the bits of √½: what lies between it and √2 keeps the exponent 0
    lines = [
        f"  %tiny = fcmp olt {V} %x, {c(SMALLEST)}",
        f"  %negative = fcmp olt {V} %x, {c(0.0)}",
        f"  %bits = bitcast {V} %x to {L}",
        f"  %d = sub {L} %bits, {_integers(half, width)}",
        f"  %n = ashr {L} %d, {_integers(52, width)}",
        f"  %down = shl {L} %n, {_integers(52, width)}",
        f"  %mb = sub {L} %bits, %down",
        f"  %m = bitcast {L} %mb to {V}",
        # n as a double: added to the bits of 1.5·2^52, which is then taken off.
        f"  %nb = add {L} %n, {_integers(0x4338000000000000, width)}",
        f"  %nm = bitcast {L} %nb to {V}",
        f"  %k = fsub {V} %nm, {c(1.5 * 2.0**52)}",
        f"  %f = fsub {V} %m, {c(1.0)}",
        f"  %g = fadd {V} %m, {c(1.0)}",
        f"  %s = fdiv {V} %f, %g",
        f"  %z = fmul {V} %s, %s",
    ]
    series = horner(lines, width, "%z", ARTANH)
    lines += [
        # log m = 2 s + s z A(z) = f − s (f − z A(z)): f is exact.
        f"  %za = fmul {V} %z, {series}",
        f"  %fa = fsub {V} %f, %za",
        f"  %sf = fmul {V} %s, %fa",
        f"  %low = fmul {V} %k, {c(LN2_LOW)}",
        f"  %part = fsub {V} %sf, %low",
        f"  %small = fsub {V} %f, %part",
        f"  %big = fmul {V} %k, {c(LN2_HIGH)}",
        f"  %v = fadd {V} %big, %small",
        f"  %v1 = select {B} %tiny, {V} {c(-math.inf)}, {V} %v",
        f"  %v2 = select {B} %negative, {V} {c(math.nan)}, {V} %v1",
        f"  ret {V} %v2",
    ]
    return function_text("log", V, lines)


def function_text(name: str, V: str, lines: list[str]) -> str:
    """A function of one vector from its lines."""
    body = "\n".join(lines)
    return f"""
define internal {V} @{name}({V} %x) #0 {{
{body}
}}
"""
