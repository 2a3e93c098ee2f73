"""Vectors as LLVM text: a constant in every lane, and a scalar spread over all lanes."""

from __future__ import annotations

import struct


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
