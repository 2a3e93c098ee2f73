"""Arc tangent of many numbers at once, to within two units in the last place.

|x| above tan 3π/8 is taken as π/2 + atan(−1/|x|), between tan π/8 and that as π/4 + atan((|x| − 1)/(|x| + 1)), so that a series is needed
up to tan π/8 only. There it is Taylor's, whose first term left out is below 1e-18 of the result.
"""

from __future__ import annotations

import math

from veridyn.symbolic.explog_llvm import function_text, horner
from veridyn.symbolic.llvm_text import constant

PI_4_LOW = 3.061616997868383e-17  # what π/4 has beyond the double next to it
ARCTANGENT = tuple((-1.0) ** k / (2 * k + 1) for k in range(1, 22))  # of t³, t⁵, …, t⁴³


def atan_function(width: int) -> str:
    """LLVM text of ``@atan``."""
    V, B = f"<{width} x double>", f"<{width} x i1>"

    def c(value: float) -> str:
        return constant(value, width)

    lines = [
        f"  %a = call {V} @llvm.fabs.v{width}f64({V} %x)",
        f"  %big = fcmp ogt {V} %a, {c(1.0 + math.sqrt(2.0))}",
        f"  %mid = fcmp ogt {V} %a, {c(math.sqrt(2.0) - 1.0)}",
        f"  %less = fsub {V} %a, {c(1.0)}",
        f"  %more = fadd {V} %a, {c(1.0)}",
        f"  %n1 = select {B} %mid, {V} %less, {V} %a",
        f"  %n2 = select {B} %big, {V} {c(-1.0)}, {V} %n1",
        f"  %d1 = select {B} %mid, {V} %more, {V} {c(1.0)}",
        f"  %d2 = select {B} %big, {V} %a, {V} %d1",
        f"  %t = fdiv {V} %n2, %d2",
        f"  %z = fmul {V} %t, %t",
    ]
    series = horner(lines, width, "%z", ARCTANGENT)
    lines += [
        f"  %zs = fmul {V} %z, {series}",
        f"  %tz = fmul {V} %t, %zs",
        f"  %b1 = select {B} %mid, {V} {c(math.pi / 4.0)}, {V} {c(0.0)}",
        f"  %b2 = select {B} %big, {V} {c(math.pi / 2.0)}, {V} %b1",
        f"  %l1 = select {B} %mid, {V} {c(PI_4_LOW)}, {V} {c(0.0)}",
        f"  %l2 = select {B} %big, {V} {c(2.0 * PI_4_LOW)}, {V} %l1",
        f"  %small = fadd {V} %tz, %l2",
        f"  %s1 = fadd {V} %small, %t",
        f"  %s = fadd {V} %b2, %s1",
        f"  %minus = fneg {V} %s",
        f"  %below = fcmp olt {V} %x, {c(0.0)}",
        f"  %v = select {B} %below, {V} %minus, {V} %s",
        f"  ret {V} %v",
    ]
    return function_text("atan", V, lines)
