"""Sine, cosine, exponential, logarithm and arc tangent of one number, over any arithmetic that has bits.

The same series and reductions as the vector functions of :mod:`veridyn.symbolic.sincos_llvm`, :mod:`veridyn.symbolic.explog_llvm` and
:mod:`veridyn.symbolic.atan_llvm`, with the same bounds on their error, written once for the back ends that work on one number at a time.
"""

from __future__ import annotations

import math
from typing import Protocol, TypeVar

from veridyn.symbolic.atan_llvm import ARCTANGENT, PI_4_LOW
from veridyn.symbolic.explog_llvm import ARTANH, EXPONENTIAL, LN2_HIGH, LN2_LOW, SMALLEST
from veridyn.symbolic.sincos_llvm import COSINE, SINE, half_pi_parts

V = TypeVar("V")
ROUNDING = 1.5 * 2.0**52  # adding it rounds to an integer, which the low bits then hold
ROUNDING_BITS = 0x4338000000000000
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # of √½: what lies between it and √2 keeps the exponent 0


class Arithmetic(Protocol[V]):
    """What a back end offers: doubles, the 64-bit integers of their bits, and conditions, each as whatever it works with."""

    def number(self, value: float) -> V: ...
    def whole(self, value: int) -> V: ...
    def add(self, a: V, b: V) -> V: ...
    def sub(self, a: V, b: V) -> V: ...
    def mul(self, a: V, b: V) -> V: ...
    def div(self, a: V, b: V) -> V: ...
    def fma(self, a: V, b: V, c: V) -> V: ...
    def bits(self, a: V) -> V: ...
    def double(self, i: V) -> V: ...
    def plus(self, i: V, j: V) -> V: ...
    def minus(self, i: V, j: V) -> V: ...
    def both(self, i: V, j: V) -> V: ...
    def either(self, i: V, j: V) -> V: ...
    def up(self, i: V, places: int) -> V: ...
    def down(self, i: V, places: int) -> V: ...
    def less(self, a: V, b: V) -> V: ...
    def differs(self, i: V, j: V) -> V: ...
    def choose(self, condition: V, a: V, b: V) -> V: ...


def polynomial(k: Arithmetic[V], x: V, coefficients: tuple[float, ...]) -> V:
    """c₀ + c₁ x + c₂ x² + …, from the last coefficient to the first."""
    value = k.number(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = k.fma(x, value, k.number(c))
    return value


def sine_and_cosine(k: Arithmetic[V], x: V) -> tuple[V, V]:
    """sin x and cos x for |x| ≤ 1e6: x = n π/2 + r, and r is known to twice double precision as r + e."""
    p1, p2, p3, p4 = (k.number(p) for p in half_pi_parts())
    y = k.fma(x, k.number(2.0 / math.pi), k.number(ROUNDING))
    n = k.sub(y, k.number(ROUNDING))
    r1 = k.sub(x, k.mul(n, p1))
    a2 = k.mul(n, p2)
    r2 = k.sub(r1, a2)
    e2 = k.sub(k.sub(r1, r2), a2)
    a3 = k.mul(n, p3)
    r3 = k.sub(r2, a3)
    e3 = k.sub(k.sub(r2, r3), a3)
    f = k.sub(k.add(e2, e3), k.mul(n, p4))
    r = k.add(r3, f)
    e = k.sub(f, k.sub(r, r3))
    z = k.mul(r, r)
    h = k.mul(z, k.number(0.5))
    u = k.sub(k.number(1.0), h)
    # sin(r + e) = r + (r³ S(z) + e (1 − z/2))
    sine = k.add(r, k.fma(k.mul(r, z), polynomial(k, z, SINE), k.mul(e, u)))
    # cos(r + e) = (1 − z/2) + what rounding took from it + z² C(z) − r e
    lost = k.sub(k.sub(k.sub(k.number(1.0), u), h), k.mul(r, e))
    cosine = k.add(u, k.fma(k.mul(z, z), polynomial(k, z, COSINE), lost))
    # n odd exchanges the two; bit 1 of n turns the sine's sign, bit 1 of n + 1 the cosine's.
    bits, two = k.bits(y), k.whole(2)
    swap = k.differs(k.both(bits, k.whole(1)), k.whole(0))
    s, c = k.choose(swap, cosine, sine), k.choose(swap, sine, cosine)
    turn_s = k.up(k.both(bits, two), 62)
    turn_c = k.up(k.both(k.plus(bits, k.whole(1)), two), 62)
    return k.double(k.either(k.bits(s), turn_s)), k.double(k.either(k.bits(c), turn_c))


def exponential(k: Arithmetic[V], x: V) -> V:
    """eˣ: 0 below −708, infinite above 709."""
    low, high = k.less(x, k.number(-708.0)), k.less(k.number(709.0), x)
    x = k.choose(high, k.number(709.0), k.choose(low, k.number(-708.0), x))
    y = k.add(k.mul(x, k.number(1.0 / math.log(2.0))), k.number(ROUNDING))
    n = k.sub(y, k.number(ROUNDING))
    r = k.sub(k.sub(x, k.mul(n, k.number(LN2_HIGH))), k.mul(n, k.number(LN2_LOW)))
    p = k.add(k.add(k.mul(k.mul(r, r), polynomial(k, r, EXPONENTIAL)), r), k.number(1.0))
    scale = k.double(k.plus(k.up(k.bits(y), 52), k.whole(1023 << 52)))
    return k.choose(high, k.number(math.inf), k.choose(low, k.number(0.0), k.mul(p, scale)))


def logarithm(k: Arithmetic[V], x: V) -> V:
    """log x: −∞ for 0, NaN for negative numbers."""
    bits = k.bits(x)
    n = k.down(k.minus(bits, k.whole(ROOT_HALF_BITS)), 52)
    m = k.double(k.minus(bits, k.up(n, 52)))
    count = k.sub(k.double(k.plus(n, k.whole(ROUNDING_BITS))), k.number(ROUNDING))
    f = k.sub(m, k.number(1.0))
    s = k.div(f, k.add(m, k.number(1.0)))
    z = k.mul(s, s)
    # log m = 2 s + s z A(z) = f − s (f − z A(z)): f is exact.
    part = k.sub(k.mul(s, k.sub(f, k.mul(z, polynomial(k, z, ARTANH)))), k.mul(count, k.number(LN2_LOW)))
    value = k.add(k.mul(count, k.number(LN2_HIGH)), k.sub(f, part))
    value = k.choose(k.less(x, k.number(SMALLEST)), k.number(-math.inf), value)
    return k.choose(k.less(x, k.number(0.0)), k.number(math.nan), value)


def arc_tangent(k: Arithmetic[V], x: V) -> V:
    """atan x: taken from π/4 or π/2 beyond tan π/8 and tan 3π/8."""
    zero, one = k.number(0.0), k.number(1.0)
    below = k.less(x, zero)
    a = k.choose(below, k.sub(zero, x), x)
    big, mid = k.less(k.number(1.0 + math.sqrt(2.0)), a), k.less(k.number(math.sqrt(2.0) - 1.0), a)
    top = k.choose(big, k.number(-1.0), k.choose(mid, k.sub(a, one), a))
    t = k.div(top, k.choose(big, a, k.choose(mid, k.add(a, one), one)))
    z = k.mul(t, t)
    series = k.mul(t, k.mul(z, polynomial(k, z, ARCTANGENT)))
    base = k.choose(big, k.number(math.pi / 2.0), k.choose(mid, k.number(math.pi / 4.0), zero))
    rest = k.choose(big, k.number(2.0 * PI_4_LOW), k.choose(mid, k.number(PI_4_LOW), zero))
    s = k.add(base, k.add(k.add(series, rest), t))
    return k.choose(below, k.sub(zero, s), s)
