"""What back ends make of expressions: instructions in a good order, and elementary functions over arithmetic that has bits.

Instructions have fused products: a product that only one sum takes becomes part of that sum. They come in an order of evaluation that
keeps few values alive, so that they stay in registers. Finding the best order is hard, so several are made and the one with the fewest
live values wins: depth first towards each output, in the order of the outputs or against it, and greedily, always taking what frees the
most, of those what became possible last (or first).

Sine, cosine, exponential, logarithm and arc tangent are written once over any arithmetic that has bits. Back ends give the arithmetic:
vectors of LLVM here, one number at a time of PTX and WebAssembly.

- sin, cos, to one unit in the last place for |x| ≤ 1e6: x = n π/2 + r with |r| ≤ π/4. π/2 is taken off in three parts of 33 bits and a
  tail, each product with n exact, so r is known to twice double precision as r + e. Both are Taylor series, to below 1e-18.
- exp, to two units: x = n ln 2 + r with |r| ≤ ln 2/2, ln 2 in two parts so that n times the first is exact; e^r is its Taylor series, whose
  first term left out is below 1e-17 of it. Below −708 the result is 0, above 709 it is infinite.
- log, to two units: x = 2ⁿ m with √½ ≤ m < √2, and log m = 2 artanh(s), s = (m − 1)/(m + 1). Numbers below 2.3e-308 count as 0, whose
  logarithm is −∞; that of a negative number is NaN.
- atan, to two units: |x| above tan 3π/8 is taken as π/2 + atan(−1/|x|), between tan π/8 and that as π/4 + atan((|x| − 1)/(|x| + 1)), so
  that Taylor's series is needed up to tan π/8 only, where its first term left out is below 1e-18 of the result.
"""

from __future__ import annotations

import heapq
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from veridyn.symbolic.expression import ADD, MUL, OPERATIONS, SUB, Expression, Graph, Number, live

Operands = Mapping[int, tuple[int, ...]]
V = TypeVar("V")
ROUNDING = 1.5 * 2.0**52  # adding it rounds to an integer, which the low bits then hold
ROUNDING_BITS = 0x4338000000000000
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # of √½: what lies between it and √2 keeps the exponent 0
# π/2 to 151 bits: three parts whose products with integers below 2^20 are exact, and what remains.
_HALF_PI = 0x1921FB54442D18469898CC51701B839A252049  # π/2 times 2^148
_SCALE = 148
SINE = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(1, 9))  # of r³, r⁵, …, r¹⁷
COSINE = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(2, 9))  # of r⁴, r⁶, …, r¹⁶
_LN2_BITS = 0xB17217F7D1CF79ABC9E3B39803F2F6AF  # ln 2 times 2^128
LN2_HIGH = math.ldexp(float(_LN2_BITS >> 96), -32)  # 32 bits: its product with an integer below 2^11 is exact
LN2_LOW = math.ldexp(float(_LN2_BITS & (2**96 - 1)), -128)
SMALLEST = 2.2250738585072014e-308
EXPONENTIAL = tuple(1.0 / math.factorial(k) for k in range(2, 15))  # of r², r³, …, r¹⁴
ARTANH = tuple(2.0 / (2 * k + 1) for k in range(1, 12))  # of s³, s⁵, …, s²³
PI_4_LOW = 3.061616997868383e-17  # what π/4 has beyond the double next to it
ARCTANGENT = tuple((-1.0) ** k / (2 * k + 1) for k in range(1, 22))  # of t³, t⁵, …, t⁴³


@dataclass(frozen=True)
class Instruction:
    """An operation by name on nodes: those of the graph, and "fma" a b + c, "fnma" c − a b, "fms" a b − c."""

    name: str
    operands: tuple[int, ...]


def instructions(graph: Graph, outputs: Iterable[Number], fused: bool = True) -> dict[int, Instruction]:
    """Node → instruction for all that `outputs` need beyond constants and inputs, in an order of evaluation.

    What is an output, or is used twice, is computed by itself. Where both sides of a sum are such products, the first is taken in.
    """
    wanted = list(outputs)
    nodes = [n for n in live(graph, wanted) if graph.operation[n] >= ADD]
    found = {n: Instruction(OPERATIONS[graph.operation[n]], graph.operands(n)) for n in nodes}
    if not fused:
        return found
    uses: dict[int, int] = {}
    for n in nodes:
        for m in found[n].operands:
            uses[m] = uses.get(m, 0) + 1
    stored = {x.node for x in wanted if isinstance(x, Expression)}
    for n in nodes:
        op = graph.operation[n]
        if op not in (ADD, SUB):
            continue
        for at, m in enumerate(found[n].operands):
            if graph.operation[m] == MUL and uses[m] == 1 and m not in stored:
                other = found[n].operands[1 - at]
                name = "fma" if op == ADD else ("fms", "fnma")[at]
                found[n] = Instruction(name, (*found.pop(m).operands, other))
                break
    return found


def scheduled(operands: Operands, outputs: Sequence[int]) -> list[int]:
    """The keys of `operands`, each after those it is made of.

    `operands` name, for every value that takes a register, the values it is made of, numbered so that these have smaller numbers; what is
    no key is free (a constant, an input that is loaded again). `outputs` are stored where they are made.
    """
    own = {n: tuple(dict.fromkeys(m for m in found if m in operands)) for n, found in operands.items()}
    weight = _registers(own)
    wanted = [n for n in dict.fromkeys(outputs) if n in own]
    orders = [_depth_first(own, goals, weight) for goals in (wanted, wanted[::-1])]
    orders += [_greedy(own, key) for key in (_last_possible, _first_possible)]
    return min(orders, key=lambda order: live_values(own, order))


def live_values(operands: Operands, order: Sequence[int]) -> tuple[int, int]:
    """The most values alive at once in an order, and the sum of live values over all its steps."""
    last: dict[int, int] = {}
    for step, n in enumerate(order):
        for m in operands[n]:
            if m in operands:
                last[m] = step
    ending = [0] * len(order)
    for step in last.values():
        ending[step] += 1
    alive = most = total = 0
    for step, n in enumerate(order):
        alive += (n in last) - ending[step]
        most, total = max(most, alive), total + alive
    return most, total


def _registers(operands: Operands) -> dict[int, int]:
    """How many registers each value would need were nothing shared (Sethi and Ullman, 1970)."""
    need: dict[int, int] = {}
    for n in sorted(operands):
        found = sorted((need[m] for m in operands[n]), reverse=True)
        need[n] = max((k + at for at, k in enumerate(found)), default=1)
    return need


def _depth_first(operands: Operands, goals: Sequence[int], weight: Mapping[int, int]) -> list[int]:
    """One goal after the other, for each what it needs, the operand that needs most registers first."""
    order: list[int] = []
    done: set[int] = set()
    for goal in goals:
        stack = [goal]
        while stack:
            n = stack[-1]
            missing = [] if n in done else [m for m in operands[n] if m not in done]
            if missing:
                stack.append(max(missing, key=lambda m: (weight[m], -m)))
                continue
            stack.pop()
            if n not in done:
                done.add(n)
                order.append(n)
    return order


def _last_possible(n: int, step: int) -> tuple[int, int]:
    return -step, n


def _first_possible(n: int, step: int) -> tuple[int, int]:
    return n, 0


def _greedy(operands: Operands, preference: Callable[[int, int], tuple[int, int]]) -> list[int]:
    """Of all that can be computed, always what leaves the fewest values alive; `preference` decides between equals."""
    users: dict[int, list[int]] = {n: [] for n in operands}
    for n, found in operands.items():
        for m in found:
            users[m].append(n)
    waiting = {n: len(found) for n, found in operands.items()}
    left = {n: len(found) for n, found in users.items()}
    possible_at = {n: 0 for n, count in waiting.items() if count == 0}

    def growth(n: int) -> int:
        return (left[n] > 0) - sum(left[m] == 1 for m in operands[n])

    heap = [(growth(n), preference(n, 0), n) for n in possible_at]
    heapq.heapify(heap)
    order: list[int] = []
    done: set[int] = set()
    while heap:
        stated, _, n = heapq.heappop(heap)
        if n in done or stated != growth(n):
            continue  # computed, or entered again with its present growth
        done.add(n)
        order.append(n)
        for m in operands[n]:
            left[m] -= 1
            if left[m] == 1:
                for u in users[m]:
                    if u in possible_at and u not in done:
                        heapq.heappush(heap, (growth(u), preference(u, possible_at[u]), u))
        for u in users[n]:
            waiting[u] -= 1
            if waiting[u] == 0:
                possible_at[u] = len(order)
                heapq.heappush(heap, (growth(u), preference(u, len(order)), u))
    return order


class Arithmetic(ABC, Generic[V]):
    """What a back end offers: doubles, the 64-bit integers of their bits, and conditions, each as whatever it works with."""

    @abstractmethod
    def number(self, value: float) -> V: ...

    @abstractmethod
    def whole(self, value: int) -> V: ...

    @abstractmethod
    def operation(self, name: str, *operands: V) -> V:
        """The result of one of the operations below, by its name; that of "choose" is given its condition last."""

    def add(self, a: V, b: V) -> V:
        return self.operation("add", a, b)

    def sub(self, a: V, b: V) -> V:
        return self.operation("sub", a, b)

    def mul(self, a: V, b: V) -> V:
        return self.operation("mul", a, b)

    def div(self, a: V, b: V) -> V:
        return self.operation("div", a, b)

    def fma(self, a: V, b: V, c: V) -> V:
        """a b + c."""
        return self.operation("fma", a, b, c)

    def bits(self, a: V) -> V:
        return self.operation("bits", a)

    def double(self, i: V) -> V:
        return self.operation("double", i)

    def plus(self, i: V, j: V) -> V:
        return self.operation("plus", i, j)

    def minus(self, i: V, j: V) -> V:
        return self.operation("minus", i, j)

    def both(self, i: V, j: V) -> V:
        return self.operation("both", i, j)

    def either(self, i: V, j: V) -> V:
        """Bits that one of the two has, and not both."""
        return self.operation("either", i, j)

    def up(self, i: V, places: int) -> V:
        return self.operation("up", i, self.whole(places))

    def down(self, i: V, places: int) -> V:
        return self.operation("down", i, self.whole(places))

    def less(self, a: V, b: V) -> V:
        """A condition on two doubles."""
        return self.operation("less", a, b)

    def differs(self, i: V, j: V) -> V:
        """A condition on two integers."""
        return self.operation("differs", i, j)

    def choose(self, condition: V, a: V, b: V) -> V:
        return self.operation("choose", a, b, condition)

    def sign(self, a: V) -> V:
        """−1, 0 or 1."""
        zero = self.number(0.0)
        down = self.choose(self.less(a, zero), self.number(-1.0), zero)
        return self.choose(self.less(zero, a), self.number(1.0), down)


def half_pi_parts() -> tuple[float, float, float, float]:
    """π/2 as a sum: products of the first three parts with integers below 2^20 are exact."""
    rest, parts = _HALF_PI, []
    for _ in range(3):
        shift = rest.bit_length() - 33
        top = (rest >> shift) << shift
        parts.append(math.ldexp(float(top >> shift), shift - _SCALE))
        rest -= top
    return parts[0], parts[1], parts[2], math.ldexp(float(rest), -_SCALE)


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
