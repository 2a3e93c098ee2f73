"""Columns and their units, as headers give them; stamps of ROS 2 in two columns are one clock, in every reader of tables."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import veridyn as vd
from veridyn.errors import DataError
from veridyn.files.log.columns import merged_headers, split_header
from veridyn.files.log.load import survey
from veridyn.files.log.parts import open_log
from veridyn.studies.config.guessing import time_column, time_unit


def test_brackets_hold_a_unit_or_number_a_column() -> None:
    assert split_header("speed [km/h]") == ("speed", "km/h")
    assert split_header("slip [1]") == ("slip", "1")
    assert split_header("position[1]") == ("position[1]", "")
    assert split_header("t[s]") == ("t", "s")
    assert split_header("plain") == ("plain", "")


SECONDS, NANOSECONDS = [1700000000, 1700000000, 1700000001], [990000000, 995000000, 0]
T = np.array([1700000000.99, 1700000000.995, 1700000001.0])


@pytest.fixture(params=["csv", "parquet"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / f"joint_states.{request.param}"
    columns = {"header.stamp.sec": SECONDS, "header.stamp.nanosec": NANOSECONDS, "q [rad]": [0.1, 0.2, 0.3]}
    if request.param == "parquet":
        pq.write_table(pa.table(columns), file)
        return file
    rows = zip(*columns.values(), strict=True)
    file.write_text(",".join(columns) + "\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    return file


def test_both_columns_make_the_clock(log: Path) -> None:
    read = vd.load_log(log)
    np.testing.assert_allclose(read["q"].t, T, rtol=0.0, atol=3e-7)  # half of the last digit of such a date is 1.2e-7
    assert list(read.channels) == ["q"]


def test_by_name_and_with_other_columns_picked(log: Path) -> None:
    read = vd.load_log(log, {"q.hinge": "q", "t": "header.stamp"})
    np.testing.assert_allclose(read["q.hinge"].t, T, rtol=0.0, atol=3e-7)


def test_in_windows(log: Path) -> None:
    parts = list(open_log(log, {"q.hinge": "q"}, {}, time="header.stamp").windows(2, 0))
    np.testing.assert_allclose(np.concatenate([w.log["q.hinge"].t for w in parts]), T, rtol=0.0, atol=3e-7)


def test_new_studies_find_it(log: Path) -> None:
    seen = survey(log)
    assert list(seen.columns) == ["header.stamp", "q"]
    assert time_column(seen.columns) == "header.stamp"
    assert time_unit("header.stamp", seen.columns, seen.units) == ("s", "")


def test_either_column_can_still_be_asked_for(log: Path) -> None:
    read = vd.load_log(log, {"whole": "header.stamp.sec", "q": "q"}, {"whole": "s"}, rate=200.0)
    assert read["whole"].values.tolist() == SECONDS
    with pytest.raises(DataError, match="no unit"):
        vd.load_log(log, time="header.stamp.sec")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (["stamp_secs", "stamp_nsecs", "q"], ("stamp [s]", "q")),
        (["/js/header/stamp/sec [s]", "/js/header/stamp/nanosec [ns]"], ("/js/header/stamp [s]",)),
        (["a.sec", "b.nanosec"], ("a.sec", "b.nanosec")),  # of two clocks
        (["a", "a.sec", "a.nanosec"], ("a", "a.sec", "a.nanosec")),  # the name is taken
        (["a.sec [ms]", "a.nanosec"], ("a.sec [ms]", "a.nanosec")),
    ],
)
def test_which_columns_are_a_pair(headers: list[str], expected: tuple[str, ...]) -> None:
    assert merged_headers(headers)[0] == expected
