"""The machine that kernels are compiled for."""

from __future__ import annotations

import llvmlite
import pytest

from veridyn.symbolic.host import Host, this_host
from veridyn.symbolic.kernel import compile_object

EMPTY = "define void @nothing() {\n  ret void\n}\n"


def test_the_host_is_known() -> None:
    host = this_host()
    assert host.width in (2, 4, 8) and host.triple and host.cpu
    assert this_host() is host


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_the_width_is_a_parameter(width: int) -> None:
    host = this_host(width)
    assert host.width == width
    assert (host.triple, host.cpu) == (this_host().triple, this_host().cpu)
    assert len(compile_object(EMPTY, host)) > 100


def test_the_signature_holds_what_an_object_depends_on() -> None:
    signatures = {this_host(w).signature for w in (2, 4, 8)}
    assert len(signatures) == 3
    a = Host("t", "cpu", "+fma", 4)
    others = [Host("u", "cpu", "+fma", 4), Host("t", "old", "+fma", 4), Host("t", "cpu", "", 4)]
    assert len({h.signature for h in (a, *others)}) == 4
    assert llvmlite.__version__ in a.signature


def test_a_plain_processor_of_this_kind_can_be_compiled_for() -> None:
    """No feature but what every machine of this architecture has: what LLVM makes for another computer."""
    here = this_host()
    plain = Host(here.triple, "", "", 2)
    assert len(compile_object(EMPTY, plain)) > 100
