"""Sine and cosine of many angles at once, to within one unit in the last place for |x| ≤ 1e6.

x = n π/2 + r with |r| ≤ π/4: π/2 is taken off in three parts of 33 bits and a tail, each product with n exact, so r is known to twice
double precision as r + e. On the small interval both functions are Taylor series, whose first term left out is below 1e-18.
"""

from __future__ import annotations

import math

from veridyn.symbolic.llvm_text import constant

# π/2 to 151 bits: three parts whose products with integers below 2^20 are exact, and what remains.
_HALF_PI = 0x1921FB54442D18469898CC51701B839A252049  # π/2 times 2^148
_SCALE = 148


def half_pi_parts() -> tuple[float, float, float, float]:
    """π/2 as a sum: products of the first three parts with integers below 2^20 are exact."""
    rest, parts = _HALF_PI, []
    for _ in range(3):
        shift = rest.bit_length() - 33
        top = (rest >> shift) << shift
        parts.append(math.ldexp(float(top >> shift), shift - _SCALE))
        rest -= top
    return parts[0], parts[1], parts[2], math.ldexp(float(rest), -_SCALE)


SINE = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(1, 9))  # of r³, r⁵, …, r¹⁷
COSINE = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(2, 9))  # of r⁴, r⁶, …, r¹⁶


def sincos_function(width: int) -> str:
    """LLVM text of ``@sincos``: a vector of angles to a pair of vectors."""
    V, L = f"<{width} x double>", f"<{width} x i64>"

    def c(value: float) -> str:
        return constant(value, width)

    def i(value: int) -> str:
        return "<" + ", ".join([f"i64 {value}"] * width) + ">"

    p1, p2, p3, p4 = half_pi_parts()
    fma = f"call {V} @llvm.fmuladd.v{width}f64"
    lines: list[str] = []
    # n = x 2/π to the nearest: adding and taking off 1.5·2^52 rounds, and leaves n in the low bits.
    magic = 1.5 * 2.0**52
    lines += [
        f"  %y = {fma}({V} %x, {V} {c(2.0 / math.pi)}, {V} {c(magic)})",
        f"  %n = fsub {V} %y, {c(magic)}",
        f"  %bits = bitcast {V} %y to {L}",
        f"  %a1 = fmul {V} %n, {c(p1)}",
        f"  %r1 = fsub {V} %x, %a1",
        f"  %a2 = fmul {V} %n, {c(p2)}",
        f"  %r2 = fsub {V} %r1, %a2",
        # What rounding took from r1 − a2, then the two smaller parts.
        f"  %b2 = fsub {V} %r1, %r2",
        f"  %e2 = fsub {V} %b2, %a2",
        f"  %a3 = fmul {V} %n, {c(p3)}",
        f"  %r3 = fsub {V} %r2, %a3",
        f"  %b3 = fsub {V} %r2, %r3",
        f"  %e3 = fsub {V} %b3, %a3",
        f"  %a4 = fmul {V} %n, {c(p4)}",
        f"  %f1 = fadd {V} %e2, %e3",
        f"  %f2 = fsub {V} %f1, %a4",
        f"  %r = fadd {V} %r3, %f2",
        f"  %g1 = fsub {V} %r, %r3",
        f"  %e = fsub {V} %f2, %g1",
        f"  %z = fmul {V} %r, %r",
    ]

    def horner(name: str, coefficients: tuple[float, ...]) -> str:
        at = c(coefficients[-1])
        for k, value in enumerate(reversed(coefficients[:-1])):
            lines.append(f"  %{name}{k} = {fma}({V} %z, {V} {at}, {V} {c(value)})")
            at = f"%{name}{k}"
        return at

    s = horner("s", SINE)
    q = horner("q", COSINE)
    lines += [
        # sin(r + e) = r + (r³ S(z) + e (1 − z/2))
        f"  %h = fmul {V} %z, {c(0.5)}",
        f"  %u = fsub {V} {c(1.0)}, %h",
        f"  %eu = fmul {V} %e, %u",
        f"  %rz = fmul {V} %r, %z",
        f"  %st = {fma}({V} %rz, {V} {s}, {V} %eu)",
        f"  %sin = fadd {V} %r, %st",
        # cos(r + e) = (1 − z/2) + what rounding took from it + z² C(z) − r e
        f"  %k1 = fsub {V} {c(1.0)}, %u",
        f"  %k2 = fsub {V} %k1, %h",
        f"  %zz = fmul {V} %z, %z",
        f"  %re = fmul {V} %r, %e",
        f"  %k3 = fsub {V} %k2, %re",
        f"  %ct = {fma}({V} %zz, {V} {q}, {V} %k3)",
        f"  %cos = fadd {V} %u, %ct",
        # n odd exchanges the two; bit 1 of n turns the sine's sign, bit 1 of n + 1 the cosine's.
        f"  %odd = and {L} %bits, {i(1)}",
        f"  %swap = icmp ne {L} %odd, {i(0)}",
        f"  %sv = select <{width} x i1> %swap, {V} %cos, {V} %sin",
        f"  %cv = select <{width} x i1> %swap, {V} %sin, {V} %cos",
        f"  %ss0 = and {L} %bits, {i(2)}",
        f"  %ss = shl {L} %ss0, {i(62)}",
        f"  %cn = add {L} %bits, {i(1)}",
        f"  %cs0 = and {L} %cn, {i(2)}",
        f"  %cs = shl {L} %cs0, {i(62)}",
        f"  %sb = bitcast {V} %sv to {L}",
        f"  %cb = bitcast {V} %cv to {L}",
        f"  %sx = xor {L} %sb, %ss",
        f"  %cx = xor {L} %cb, %cs",
        f"  %sr = bitcast {L} %sx to {V}",
        f"  %cr = bitcast {L} %cx to {V}",
        f"  %p0 = insertvalue {{{V}, {V}}} poison, {V} %sr, 0",
        f"  %p1 = insertvalue {{{V}, {V}}} %p0, {V} %cr, 1",
        f"  ret {{{V}, {V}}} %p1",
    ]
    body = "\n".join(lines)
    return f"""
declare {V} @llvm.fmuladd.v{width}f64({V}, {V}, {V})
define internal {{{V}, {V}}} @sincos({V} %x) #0 {{
{body}
}}
"""
