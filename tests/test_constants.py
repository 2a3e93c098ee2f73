"""Counts of ``python -m benchmarks.constants`` on sources whose constants are counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.constants import constants, constants_of, counted, main, room_of

SOURCE = '''\
"""A module."""

LIMIT = 3.0  # deviations
LOW, HIGH = 1, 2  # Hz (chosen)
PAIR: tuple[float, float] = (0.5, -2e3)

# of a second (chosen)
FIRST_S = 1 / 3
SECOND_S = 2 * 60

LATER = 7
WORDS = ("a", "b")
FLAG = True
lower = 4.0
COPY = LIMIT


def inner() -> None:
    INSIDE = 5.0
'''


def test_numbers_and_tuples_of_them_in_capitals_at_the_top_count() -> None:
    found = {c.name: c for c in constants_of(SOURCE, "room/module.py")}
    assert list(found) == ["LIMIT", "LOW", "HIGH", "PAIR", "FIRST_S", "SECOND_S", "LATER"]
    assert {n for n, c in found.items() if not c.comment} == {"PAIR", "LATER"}
    assert {n for n, c in found.items() if c.chosen} == {"LOW", "HIGH", "FIRST_S", "SECOND_S"}
    assert found["SECOND_S"].line == 9


def test_rooms_are_folders_to_a_depth() -> None:
    assert room_of("identify/diagnosis/delays.py", 1) == "identify"
    assert room_of("identify/diagnosis/delays.py", 2) == "identify/diagnosis"
    assert room_of("errors.py", 2) == "errors"
    found = constants_of(SOURCE, "a/b.py") + constants_of("X = 1\n", "c.py")
    assert counted(found) == {
        "a": {"constants": 7, "uncommented": 2, "chosen": 4},
        "c": {"constants": 1, "uncommented": 1, "chosen": 0},
    }


def test_a_folder_is_read_with_all_below_it(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "one.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "two.py").write_text("ANSWER = 42\n", encoding="utf-8")
    assert [c.module for c in constants(tmp_path)].count("room/one.py") == 7
    assert constants(tmp_path)[-1].name == "ANSWER"


def test_the_sums_of_the_rooms_are_the_total(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--json"])
    told = json.loads(capsys.readouterr().out)
    for what, total in told["all"].items():
        assert sum(row[what] for row in told["rooms"].values()) == total
    assert told["rooms"]["identify/diagnosis"]["constants"] > 0
