"""Sine and cosine of a double, right to some forty digits: whole numbers only, no library."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

BITS = 320  # of the fixed point; |x| up to 2^30 leaves some 280 behind the point after reduction


def _arctangent_of_inverse(k: int) -> int:
    """atan(1/k) · 2^BITS by its series."""
    power = total = (1 << BITS + 32) // k
    sign, n = -1, 3
    while power:
        power //= k * k
        total += sign * (power // n)
        sign, n = -sign, n + 2
    return total >> 32


@cache
def half_pi() -> int:
    """π/2 · 2^BITS, by Machin's formula."""
    return 2 * (4 * _arctangent_of_inverse(5) - _arctangent_of_inverse(239))


def _series(r: int, first: int, n: int) -> int:
    """first − first r²/((n + 1)(n + 2)) + …, in fixed point."""
    z = (r * r) >> BITS
    term = total = first
    while term:
        term = -((term * z) >> BITS) // ((n + 1) * (n + 2))
        total += term
        n += 2
        if abs(term) <= 1:
            break
    return total


def sine_and_cosine(x: float) -> tuple[Fraction, Fraction]:
    """sin x and cos x as fractions."""
    numerator, denominator = x.as_integer_ratio()
    if abs(x) < 2.0**-200:
        return Fraction(numerator, denominator), Fraction(1)
    fixed = (numerator << BITS) // denominator
    quarter = half_pi()
    n = (2 * fixed + quarter) // (2 * quarter)
    r = fixed - n * quarter
    s, c = _series(r, r, 1), _series(r, 1 << BITS, 0)
    turned = ((s, c), (c, -s), (-s, -c), (-c, s))[n % 4]
    return Fraction(turned[0], 1 << BITS), Fraction(turned[1], 1 << BITS)


def error_in_ulp(value: float, exact: Fraction) -> float:
    """|value − exact| in units of the last place of a double next to the exact one."""
    return float(abs(Fraction(value) - exact) / Fraction(math.ulp(float(exact))))


def nearest_to_quarter(k: int) -> float:
    """The double nearest to k π/2."""
    return float(Fraction(k * half_pi(), 1 << BITS))
