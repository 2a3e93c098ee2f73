"""The benchmark of the house: what it prints of both ways, and its rule on calls that are made here."""

from __future__ import annotations

import json
from types import CodeType

import pytest
from benchmarks import house
from benchmarks.house import Way, floors, is_upward, main, watched

KNOWN = {
    "identify": ("machine", {"identify/estimate.py", "identify/regression/observation.py", "model/machine.py"}),
    "observe": ("log", {"observe/observe.py", "observe/measurements.py", "model/experiment.py"}),
}


@pytest.mark.parametrize("way", KNOWN)
def test_files_and_upward_calls_of_a_way(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--way", way, "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    for pair in counts.values():
        alone, made = pair["alone"], pair["with what is made of it"]
        assert alone["files"] and alone["upward"]
        assert set(alone["files"]) <= set(made["files"]) and set(alone["upward"]) <= set(made["upward"])
    name, files = KNOWN[way]
    assert files <= set(counts[name]["alone"]["files"])
    *_, last = house.lines(way, counts)
    assert f"{name} alone {len(counts[name]['alone']['files'])}, {len(counts[name]['alone']['upward'])}" in last


class Held:
    """An instance of the package's classes, as far as the rule can see."""

    __module__ = "veridyn.made_up"

    def method(self) -> None:
        pass


def taken(thing: object) -> Held:
    inside([thing])
    other(3)
    return Held()


def inside(things: list[object]) -> int:
    return len(things)


def other(number: int) -> int:
    return number


def further(made: Held) -> None:
    made.method()


def from_below(thing: object) -> object:
    return taken(thing)


FILES = {
    "from_below": "model/low.py",
    "taken": "identify/a.py",
    "inside": "mechanics/b.py",
    "other": "mechanics/c.py",
    "further": "observe/d.py",
    "method": "model/e.py",
}


def test_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The object by itself, in a list, from a lower floor; what is made of it, by identity; a number is not followed."""

    def file_of(code: CodeType) -> str:
        return FILES.get(code.co_name, "") if code.co_filename == __file__ else ""

    monkeypatch.setattr(house, "file_of", file_of)
    thing = Held()
    alone, made = Way(thing, made=False), Way(thing, made=True)
    with watched([alone, made]):
        result = from_below(thing)
        further(result)
        further(Held())
    first = {"model/low.py", "identify/a.py", "mechanics/b.py"}
    assert alone.files == first and made.files == {*first, "observe/d.py", "model/e.py"}
    assert alone.upward == made.upward == ["model/low.py from_below -> identify/a.py taken"]


def test_floors_are_those_of_the_contract() -> None:
    assert floors()["model"] < floors()["mechanics"] == floors()["signals"] < floors()["identify"] < floors()["cli"]
    assert is_upward("settings.py", "identify/estimate.py") and not is_upward(
        "identify/estimate.py", "model/machine.py"
    )
    assert not is_upward("__init__.py", "identify/estimate.py")
