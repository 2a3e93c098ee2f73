"""Vectors in LLVM text: no digit of a constant is lost, and every lane is filled."""

from __future__ import annotations

import struct

import pytest

from veridyn.symbolic.llvm_text import constant, spread


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -1.5, 0.1, 5e-324, 1.7976931348623157e308])
@pytest.mark.parametrize("width", [1, 2, 8])
def test_a_constant_is_the_same_number_in_every_lane(value: float, width: int) -> None:
    lanes = constant(value, width).strip("<>").split(", ")
    assert len(lanes) == width and len(set(lanes)) == 1
    bits = lanes[0].removeprefix("double 0x")
    assert bytes.fromhex(bits) == struct.pack(">d", value)


def test_a_scalar_is_spread_over_all_lanes() -> None:
    first, second = spread(4, "v", "%a").splitlines()
    assert first == "  %v.i = insertelement <4 x double> poison, double %a, i32 0"
    assert second.count("i32 0") == 4 and second.startswith("  %v = shufflevector <4 x double> %v.i")
