"""Lines of PTX: constants keep every digit, every result has a register of its own."""

from __future__ import annotations

from veridyn.symbolic.ptx_arithmetic import PtxArithmetic, hexadecimal


def test_constants_keep_every_digit() -> None:
    assert hexadecimal(1.0) == "0d3FF0000000000000"
    assert hexadecimal(-0.1) == "0dBFB999999999999A"


def test_results_have_registers_of_their_own() -> None:
    a = PtxArithmetic()
    x = a.add("%d7", a.number(1.0))
    y = a.choose(a.less(x, a.number(0.0)), x, a.double(a.plus(a.bits(x), a.whole(1))))
    assert (x, y) == ("%d1", "%d3")
    assert a.lines[0] == "add.rn.f64 %d1, %d7, 0d3FF0000000000000;" and a.lines[-1] == "selp.f64 %d3, %d1, %d2, %p1;"
    assert (a.doubles, a.integers, a.conditions, a.operations) == (3, 2, 1, 3)


def test_a_quotient_of_one_is_a_reciprocal() -> None:
    a = PtxArithmetic()
    a.div(a.number(1.0), "%d5")
    a.div(a.number(2.0), "%d5")
    assert [line.split()[0] for line in a.lines] == ["rcp.rn.f64", "div.rn.f64"]
