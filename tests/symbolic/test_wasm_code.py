"""The bytes of WebAssembly, as its standard writes them (core specification 5.2.2, LEB128)."""

from __future__ import annotations

import pytest

from veridyn.symbolic.wasm_code import F64, I64, WasmFunction, section, signed, unsigned, vector


@pytest.mark.parametrize(("value", "code"), [(0, "00"), (127, "7f"), (128, "8001"), (624485, "e58e26")])
def test_numbers_as_the_standard_writes_them(value: int, code: str) -> None:
    assert unsigned(value).hex() == code


@pytest.mark.parametrize(("value", "code"), [(0, "00"), (63, "3f"), (64, "c000"), (-1, "7f"), (-123456, "c0bb78")])
def test_signed_numbers_as_the_standard_writes_them(value: int, code: str) -> None:
    """-123456 is the example of the standard."""
    assert signed(value).hex() == code


def test_sections_and_vectors_have_their_length_before_them() -> None:
    assert section(1, vector([b"ab", b"c"])).hex() == "0104" + "02" + b"abc".hex()


def test_locals_are_declared_in_runs_of_one_kind() -> None:
    f = WasmFunction(1)
    x = f.add(b"\x20\x00", f.number(1.0))
    f.bits(f.mul(x, x))
    assert f.locals == [F64, F64, I64]
    assert f.body().hex().startswith(unsigned(len(f.body()) - 1).hex() + "02" + "027c" + "017e")
