"""The third argument of a verb: objects, words that stand for them, and what is refused."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest

from veridyn.errors import DataError, IdentificationError, VeridynError
from veridyn.method import method_of, verb_with_method
from veridyn.settings import Settings, above


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
