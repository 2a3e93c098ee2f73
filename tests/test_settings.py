"""Settings: constraints read from annotations, checked when an object is made and when it is built from a file."""

from __future__ import annotations

import inspect
import math
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from veridyn.errors import DataError, IdentificationError, VeridynError
from veridyn.settings import (
    Interval,
    Rule,
    Settings,
    above,
    at_least,
    between,
    build,
    method_of,
    names,
    required,
    values_of,
    verb_with_method,
)


@dataclass(frozen=True, repr=False)
class Inner(Settings):
    share: Annotated[float, between(0.0, 1.0)] = 0.5


@dataclass(frozen=True, repr=False)
class Outer(Settings):
    size: Annotated[float, above(0.0)]
    count: Annotated[int, at_least(1)] = 3
    kind: Literal["fast", "slow"] = "fast"
    on: bool = False
    label: str = ""
    limit: Annotated[float, above(0.0, infinite=True)] | None = None
    inner: Inner | None = None
    names: tuple[str, ...] = ()
    ends: tuple[float, float] = (0.0, 1.0)
    table: Mapping[str, Annotated[float, above(0.0)]] | None = None
    law: Callable[[float], float] | None = None
    even: Annotated[int, Rule(lambda n: isinstance(n, int) and n % 2 == 0, "an even number")] = 2


@pytest.mark.parametrize(
    "given",
    [
        {"size": 2},
        {"size": np.float32(2.0), "count": np.int64(4)},
        {"size": 1.0, "limit": math.inf},
        {"size": 1.0, "limit": None, "on": True, "label": "x", "kind": "slow"},
        {"size": 1.0, "inner": Inner(0.1), "names": ("a", "b"), "ends": (1, 2.0), "even": 4},
        {"size": 1.0, "table": {"a": 1.0, "b": 2}, "law": math.sin},
    ],
)
def test_what_keeps_to_the_annotations_is_taken_as_it_is(given: dict[str, Any]) -> None:
    made = Outer(**given)
    assert {k: values_of(made)[k] for k in given} == given
    assert Outer(**values_of(made)) == made


@pytest.mark.parametrize(
    ("setting", "value", "expected", "found"),
    [
        ("size", 0.0, "a number above 0", "0.0"),
        ("size", math.nan, "a number above 0", "nan"),
        ("size", math.inf, "a number above 0", "inf"),
        ("size", "2", "a number above 0", "'2'"),
        ("size", True, "a number above 0", "True"),
        ("size", None, "a number above 0", "None"),
        ("size", np.ones(2), "a number above 0", "array([1., 1.])"),
        ("count", 0, "a whole number of at least 1", "0"),
        ("count", 3.0, "a whole number of at least 1", "3.0"),
        ("count", "many", "a whole number of at least 1", "'many'"),
        ("kind", "medium", "'fast' or 'slow'", "'medium'"),
        ("kind", 1, "'fast' or 'slow'", "1"),
        ("on", 1, "True or False", "1"),
        ("label", 3, "text", "3"),
        ("limit", -1.0, "a number above 0 or None", "-1.0"),
        ("inner", {"share": 0.5}, "Inner(…) or None", "{'share': 0.5}"),
        ("names", "ab", "a list of names", "'ab'"),
        ("names", ("a", 1), "a list of names", "('a', 1)"),
        ("ends", (1.0,), "2 numbers", "(1.0,)"),
        ("table", [1.0], "a mapping of names, each to a number above 0, or None", "[1.0]"),
        ("law", 3.0, "a function or None", "3.0"),
        ("even", 3, "an even number", "3"),
    ],
)
def test_what_does_not_is_named_with_what_was_expected_and_found(
    setting: str, value: Any, expected: str, found: str
) -> None:
    with pytest.raises(DataError) as caught:
        Outer(**{"size": 1.0, setting: value})
    (fault,) = caught.value.faults
    assert (fault.where, fault.expected, fault.found) == (f"Outer.{setting}", expected, found)


def test_all_faults_at_once_and_entries_of_a_mapping_by_name() -> None:
    with pytest.raises(DataError) as caught:
        Outer(size=-1.0, count=0, table={"a": 1.0, "b": 0.0, "c": "x"})  # pyright: ignore[reportArgumentType]
    assert [f.where for f in caught.value.faults] == ["Outer.size", "Outer.count", "Outer.table.b", "Outer.table.c"]
    with pytest.raises(DataError, match=r"Outer\.count"):
        replace(Outer(1.0), count=0)


def test_an_unknown_setting_is_named_with_the_nearest_one() -> None:
    with pytest.raises(DataError, match=r"Outer\.cont: Outer has no setting 'cont'\.\n.*Did you mean 'count'\?"):
        Outer(1.0, cont=3)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="size"):
        Outer()  # pyright: ignore[reportCallIssue]
    assert pickle.loads(pickle.dumps(Outer(1.0, count=4))) == Outer(1.0, count=4)


def test_a_long_value_is_shown_by_its_type() -> None:
    with pytest.raises(DataError, match="found list"):
        Outer(size=list(range(100)))  # pyright: ignore[reportArgumentType]


def test_the_representation_shows_what_differs_from_the_default() -> None:
    assert repr(Outer(2.0)) == "Outer(size=2.0)"
    assert repr(Outer(2.0, count=3, inner=Inner())) == "Outer(size=2.0, inner=Inner())"
    assert repr(Outer(2.0, ends=(0.0, 1.0), on=True)) == "Outer(size=2.0, on=True)"


def test_names_of_settings() -> None:
    assert names(Inner) == ("share",) and required(Inner) == () and required(Outer) == ("size",)


def test_built_from_keys_and_values_by_the_same_rules() -> None:
    made = build(Outer, {"size": 1, "names": ["a"], "inner": {"share": 0.25}, "ends": [0, 2]})
    assert made.object == Outer(1, names=("a",), inner=Inner(0.25), ends=(0, 2)) and made.invalid == ()
    assert build(Outer, {"size": 1.0, "inner": None}).object == Outer(1.0)


def test_faults_of_what_is_built_have_their_path() -> None:
    made = build(Outer, {"count": "many", "inner": {"share": 2.0, "shar": 1}, "label": 3, "table": {"b": -1}})
    assert made.object is None
    found = {one.path: one for one in made.invalid}
    assert set(found) == {(), ("count",), ("inner", "share"), ("inner", "shar"), ("label",), ("table", "b")}
    assert found[()].what == "Outer needs the setting 'size'."
    assert found["inner", "shar"].hint == "Known: share. Did you mean 'share'?"
    assert found["inner", "share"].expected == "a number above 0 and below 1"
    assert found["count",].fault("Outer").where == "Outer.count"


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        (above(0.0), (1e-9, 5.0), (0.0, -1.0, math.inf, math.nan)),
        (at_least(0.0, infinite=True), (0.0, math.inf), (-1e-9, math.nan)),
        (between(-1.0, 1.0), (0.0, 0.99), (-1.0, 1.0)),
        (Interval(0.0, 1.0), (0.0, 1.0), (-0.1, 1.1)),
    ],
)
def test_intervals(interval: Interval, inside: tuple[float, ...], outside: tuple[float, ...]) -> None:
    assert all(map(interval.contains, inside)) and not any(map(interval.contains, outside))


class Way(Settings):
    error: ClassVar[type[VeridynError]] = IdentificationError


@dataclass(frozen=True, repr=False)
class Short(Way):
    speed: Annotated[float, above(0.0)] = 1.0


@dataclass(frozen=True, repr=False)
class Long(Way):
    length: Annotated[float, above(0.0)]


WAYS = {"short": Short, "long": Long}


def chosen(given: Any) -> Way:
    return method_of(given, Way, WAYS, "walk", ("all", "left"))


def test_an_object_is_taken_as_it_is_and_a_word_means_default_settings() -> None:
    way = Short(2.0)
    assert chosen(way) is way and chosen("short") == Short()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("shrt", r"walk: there is no method 'shrt'\.\nKnown: short, long\. Did you mean 'short'\?"),
        ("long", r"walk: the method 'long' has no default settings\.\nExpected Long\(length=…\), found 'long'"),
        (Short, r"walk: the class Short is given, not an object of it\.\nExpected Short\(\), found Short"),
        (Long, r"Expected Long\(length=…\), found Long"),
        ("all", r"walk: 'all' names rows, not a method\.\n.*walk\(…, rows='all'\)"),
        (("left",), r"\['left'\] names rows, not a method\.\n.*rows=\['left'\]"),
        (3, r"not a method of this verb\.\nExpected one of Short, Long, or one of the words short, long, found int"),
        (None, "found NoneType"),
    ],
)
def test_what_is_not_a_method_is_refused_by_name(given: Any, said: str) -> None:
    with pytest.raises(IdentificationError, match=said):
        chosen(given)


@verb_with_method(DataError, {"how": "Write it third."})
def walk(tree: str, motion: str, method: str = "short", *, rows: str = "all") -> tuple[str, str]:
    """Walk."""
    return method, rows


def test_a_verb_keeps_its_signature_and_refuses_older_orders() -> None:
    parameters = inspect.signature(walk).parameters
    assert list(parameters) == ["tree", "motion", "method", "rows"] and parameters["rows"].kind.name == "KEYWORD_ONLY"
    assert walk.__doc__ == "Walk." and walk("a", "b", "long", rows="left") == ("long", "left")
    late: Any = walk
    with pytest.raises(DataError, match=r"walk: only the first three.*\n.*found 4\. .*walk\(…, 'short', rows='left'\)"):
        late("a", "b", "left", "short")
    with pytest.raises(DataError, match=r"3 positional arguments, found 5\.$"):
        late("a", "b", 1, 2, 3)
    with pytest.raises(DataError, match=r"walk: there is no argument 'how'\.\nWrite it third\."):
        late("a", "b", how=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        late("a", "b", nonsense=1)
