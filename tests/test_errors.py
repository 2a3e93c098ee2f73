"""Faults: their words, and their place as keys."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from veridyn.errors import (
    Fault,
    Faults,
    ModelError,
    VeridynWarning,
    at_line,
    noted,
    part_at,
    warn,
    with_line,
    within,
)


def test_a_part_is_words_for_the_user_and_keys_for_code():
    fault = Fault("it has no mass.", part_at("body", "arm"))
    assert (fault.where, fault.at) == ("body 'arm'", ("body", "arm"))
    assert str(fault) == "body 'arm': it has no mass."
    assert Fault("it is no vector.", part_at("gravity")).at == ("gravity",)
    assert type(fault.where) is str


def test_a_place_inside_a_part_keeps_its_keys():
    where = within(part_at("body", "arm"), "marker")
    assert (where, Fault("no.", where).at) == ("body 'arm', marker", ("body", "arm", "marker"))
    assert Fault("no.", within("log 3", "marker")) == Fault("no.", "log 3, marker")


def test_given_keys_win_over_those_of_the_words():
    assert Fault("it has no unit.", part_at("column", "v"), at=("column", "v", "unit")).at == ("column", "v", "unit")


def test_the_collector_keeps_keys():
    faults = Faults()
    faults.add("first.", where=part_at("joint", "wrist"))
    faults.add("second.", where="speed", at=("process_noise", "speed"))
    assert [f.at for f in faults.found] == [("joint", "wrist"), ("process_noise", "speed")]


@pytest.mark.parametrize(
    ("at", "line"),
    [(("body", "arm"), 7), (("body", "arm", "marker"), 7), (("bodies",), 3), (("body", "leg"), None), ((), None)],
)
def test_the_line_is_that_of_the_nearest_place_that_has_one(at, line):
    assert with_line(Fault("no.", at=at), {("bodies",): 3, ("body", "arm"): 7}).line == line


def test_a_line_that_is_known_stays():
    fault = Fault("no.", line=2, at=("bodies",))
    assert with_line(fault, {("bodies",): 3}).line == 2
    assert at_line(fault, 9) is fault


def test_an_error_arrives_whole_from_another_process():
    error = ModelError(Fault("no.", part_at("body", "arm")), "robot.yaml")
    back = pickle.loads(pickle.dumps(error))
    assert (back.faults, back.source, str(back)) == (error.faults, error.source, str(error))


def test_what_a_thread_notes_is_its_own() -> None:
    """Within `noted` nothing is warned of, and threads do not see each other's notes; afterwards warnings are warnings again."""

    def work(k: int) -> list[str]:
        with noted() as said:
            for _ in range(20):
                warn(VeridynWarning, Fault(f"number {k}."))
        return [str(fault) for fault in said]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [[f"number {k}."] * 20 for k in range(8)]
    with pytest.warns(VeridynWarning, match="again"):
        warn(VeridynWarning, Fault("again."))


def test_faults_that_say_the_same_of_many_places_are_shown_as_one():
    """Fourteen channels of one kind of fault: one, with their count and names; `faults` keeps all of them."""
    same = [
        Fault("it holds NaN.", part_at("channel", f"q{k}"), found="4999 of 5000", hint="Cut it.") for k in range(14)
    ]
    error = ModelError([*same, Fault("it has no unit.", "column 'x'")], "run.csv")
    text = str(error)
    assert (
        text.startswith("run.csv, 15 faults:\n1. 14 places (channel 'q0', channel 'q1', ") and "channel 'q13')" in text
    )
    assert text.count("it holds NaN") == text.count("4999 of 5000") == text.count("Cut it.") == 1
    assert "\n2. column 'x': it has no unit." in text and len(error.faults) == 15
    assert str(ModelError(same, "run.csv")).startswith("run.csv, 14 places (channel 'q0'")
    lines = [Fault("the cell is not a number.", "column 'x'", line=k) for k in range(5)]
    assert str(ModelError(lines)).count("the cell is not a number") == 5  # each is mended on its line
