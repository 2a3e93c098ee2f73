"""Reading takes a time in proportion to the file: twice as long a file takes at most about twice as many calls and comparisons.

Calls of Python functions and of built-in ones are counted by the interpreter's own profiler, comparisons of names by the names
themselves; both are the same on every machine.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from veridyn.errors import Faults, FileError, VeridynError, did_you_mean
from veridyn.files.log.columns import choose
from veridyn.files.log.layout import first_places
from veridyn.files.machine.load import load_model
from veridyn.files.yaml_nodes import MAX_DEPTH, compose
from veridyn.model.parameters import ParameterSet

TWICE = 2.3  # proportional with something fixed is below 2, n log n near 2.2, quadratic near 4
HEAD = "veridyn: 2\nname: many\nbase: fixed\ngravity: [0, 0, -9.81]\nbodies:\n"


def calls(work: Callable[[], object], of: str = f"{os.sep}veridyn{os.sep}") -> int:
    """How many functions code under a path calls while something is done, its own and built-in ones; what is refused counts too."""
    count = 0

    def tally(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call") and of in frame.f_code.co_filename

    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        work()
    except VeridynError:
        pass
    finally:
        sys.setprofile(before)
    return count


def body(k: int, on: str) -> str:
    return f"  - {{name: b{k}, antecedent: {on}, joint: turning, coordinate: q{k}, mdh: {{d: 0.1}}, inertia: {{mass: 1.0}}}}\n"


def chain(n: int, formulation: str = "") -> str:
    return formulation + HEAD + "".join(body(k, f"b{k - 1}" if k else "ground") for k in range(n))


def wide(n: int) -> str:
    return HEAD + "".join(body(k, "ground") for k in range(n))


def faulty(n: int) -> str:
    return HEAD + "".join(body(k, f"c{k}") for k in range(n))


def urdf(n: int) -> str:
    mass = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
    links = "".join(f"<link name='l{k}'>{mass}</link>" for k in range(n + 1))
    limit = "<limit lower='-1' upper='1' effort='1' velocity='1'/>"
    joint = "<joint name='j{0}' type='revolute'><parent link='l{0}'/><child link='l{1}'/>{2}</joint>"
    return f"<robot name='r'>{links}{''.join(joint.format(k, k + 1, limit) for k in range(n))}</robot>"


@pytest.mark.parametrize("sizes", [(4, 20, 40), pytest.param((4, 40, 80), marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (chain, "a.yaml"),
        (lambda n: chain(n, "formulation: natural\n"), "b.yaml"),
        (wide, "c.yaml"),
        (faulty, "d.yaml"),
        (urdf, "e.urdf"),
    ],
    ids=["chain", "natural", "wide", "faulty", "urdf"],
)
def test_models(tmp_path: Path, text: Callable[[int], str], name: str, sizes: tuple[int, ...]):
    """Larger models, where what grows with the square weighs more, are slow."""
    file = tmp_path / name
    counts = []
    for n in sizes:  # the first makes ready what is made once
        file.write_text(text(n))
        counts.append(calls(lambda: load_model(file)))
    assert counts[2] < TWICE * counts[1], counts


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def comparisons(work: Callable[[list[str]], object], n: int) -> int:
    names: list[str] = [Counted(f"c{k}") for k in range(n)]
    Counted.compared = 0
    work(names)
    return Counted.compared


def parameters(names: list[str]) -> None:
    some = ParameterSet(
        names=tuple(names),
        units=("kg",) * len(names),
        values=np.zeros(len(names)),
        typical=np.ones(len(names)),
        states=("estimated",) * len(names),
    )
    assert [some.index(str(name)) for name in names] == list(range(len(names)))


def columns(names: list[str]) -> None:
    units = {str(name): "rad" for name in names}
    found, _ = choose(["t [s]", *names], None, units, "t", Faults(), Faults())
    assert len(found) == len(names)
    asked, _ = choose(["t [s]", *names], {f"x{k}": str(n) for k, n in enumerate(names)}, units, "t", Faults(), Faults())
    assert len(asked) == len(names)


def places(names: list[str]) -> None:
    first = first_places(names)
    assert [first[str(name)] for name in names] == list(range(len(names)))


@pytest.mark.parametrize("work", [parameters, columns, places])
def test_names_are_not_compared_with_all_others(work):
    assert comparisons(work, 400) < 20 * 400


def test_of_a_name_that_stands_twice_the_first_counts():
    assert first_places(["a", "b", "a"]) == {"a": 0, "b": 1}
    twice = ParameterSet(
        names=("a", "b", "a"), units=("",) * 3, values=[1, 2, 3], typical=[1] * 3, states=("known",) * 3
    )
    assert twice.index("a") == 0


def test_a_spelling_is_looked_for_beside_the_name_among_many():
    names = [f"joint_{k:05d}" for k in range(30_000)]
    assert "Did you mean 'joint_12345'?" in did_you_mean("joint_12345x", names)
    few, many = (calls(lambda n=n: did_you_mean("joint_00400x", names[:n]), "") for n in (1000, 30_000))
    assert many < 1.2 * few


def test_brackets_inside_each_other_and_tags_without_end_are_refused_at_once():
    deep = "a: " + "[" * 100_000
    with pytest.raises(FileError, match=f"brackets are nested too deeply.\nExpected at most {MAX_DEPTH} levels"):
        compose(deep, "a.yaml")
    assert calls(lambda: compose(deep + " ", "a.yaml"), "") < 20_000
    assert compose("a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(FileError, match="line 1: this is not YAML: a tag is too long"):
        compose("a: " + "!" * 500_000, "a.yaml")
