"""What a compiled function is made of: all that changes its machine code, and nothing else."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from veridyn.errors import ModelError
from veridyn.mechanics import compiled as compiling
from veridyn.mechanics.code_digest import code_digest
from veridyn.mechanics.compiled import fields

PROGRAM = """
from typing import NamedTuple
import math
import numpy as np
from veridyn.mechanics import compiled as doors
from veridyn.mechanics.compiled import Matrix, Numbers, Vector, core, kept, lean, opened

FACTOR = 2.0
TABLE = np.arange(3.0)
UNUSED = 1

class Inner(NamedTuple):
    A: Matrix

class Room(NamedTuple):
    x: Vector
    inner: Inner

@core
def deepest(x):
    return x * FACTOR

@core
def unused(x):
    return x

@core
def below(x):
    return deepest(x) + TABLE[1]

def top(address, n=3):
    room = opened(address, Room)
    return below(room.x[0]) + math.sin(n)
"""


def digest(program: str, file: str = "a") -> str:
    names: dict[str, Any] = {"__name__": "veridyn.mechanics.made_up"}
    exec(compile(textwrap.dedent(program), file, "exec", dont_inherit=True), names)  # noqa: S102  a module of its own
    return code_digest(names["top"], fields)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 2.0", "FACTOR = 2.5"),
        ("np.arange(3.0)", "np.arange(4.0)"),
        ("return x * FACTOR", "return x / FACTOR"),
        ("n=3", "n=4"),
        ("math.sin", "math.cos"),
        ("x: Vector\n    inner: Inner", "inner: Inner\n    x: Vector"),
        ("A: Matrix", "A: Vector"),
        ("@core\ndef deepest", "@lean\ndef deepest"),
    ],
)
def test_what_changes_the_machine_code_counts(old: str, new: str) -> None:
    changed = PROGRAM.replace(old, new)
    assert changed != PROGRAM and digest(changed) != digest(PROGRAM)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("UNUSED = 1", "UNUSED = 2"),
        ("def unused(x):\n    return x", "def unused(x):\n    return 2 * x"),
        ("FACTOR = 2.0", "\n\n# moved\nFACTOR = 2.0"),
        ("return below", "# a comment\n    return below"),
    ],
)
def test_nothing_else_counts(old: str, new: str) -> None:
    changed = PROGRAM.replace(old, new)
    assert changed != PROGRAM and digest(changed, "elsewhere") == digest(PROGRAM)


def test_a_docstring_does_not_count() -> None:
    with_one = PROGRAM.replace("def deepest(x):", 'def deepest(x):\n    "One."')
    assert digest(with_one) == digest(with_one.replace("One.", "Another."))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("TABLE = np.arange(3.0)", "TABLE = [object()]", "[<object object"),
        ("TABLE = np.arange(3.0)", "class TABLE: pass", "TABLE"),
        ("@core\ndef deepest", "def deepest", "deepest"),
    ],
)
def test_what_cannot_be_described_is_named(old: str, new: str, named: str) -> None:
    """The function that was to be kept, the value, and the function that refers to it."""
    with pytest.raises(ModelError) as error:
        digest(PROGRAM.replace(old, new))
    (fault,) = error.value.faults
    assert fault.where == "veridyn.mechanics.made_up.top" and named in fault.found and "below" in fault.found


def test_functions_that_call_each_other_have_a_digest() -> None:
    program = """
    from veridyn.mechanics.compiled import core
    @core
    def even(n):
        return True if n == 0 else odd(n - 1)
    @core
    def odd(n):
        return False if n == 0 else even(n - 1)
    def top(n):
        return even(n)
    """
    assert digest(program)


def test_intrinsics_count_by_their_source(monkeypatch: pytest.MonkeyPatch) -> None:
    from veridyn.mechanics import code_digest as digests

    before = digest(PROGRAM)
    monkeypatch.setattr(digests, "source_meaning", lambda module: f"another {module}")
    assert digest(PROGRAM) != before and compiling.opened is not None
