"""Tables in memory are logs like files: the same channels, units and faults."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from veridyn.errors import DataError, FileError
from veridyn.files.log.load import load_log

t = [0.0, 0.1, 0.2]


@pytest.mark.parametrize("made", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
def test_a_frame_is_a_log(made: Any) -> None:
    log = load_log(
        made({"t [s]": t, "angle": [0.0, 90.0, 180.0]}), {"q.hinge": "angle"}, {"angle": "deg"}, name="bench"
    )
    assert log.names == ("q.hinge",) and log.name == "bench" and log["q.hinge"].unit == "rad"
    np.testing.assert_allclose(log["q.hinge"].values, [0.0, np.pi / 2, np.pi])
    np.testing.assert_array_equal(log["q.hinge"].t, t)


def test_a_named_index_is_a_column_and_dates_are_seconds() -> None:
    frame = pd.DataFrame({"q.hinge [rad]": [1.0, None, 3.0]}, index=pd.Index([0, 5, 10], name="t"))
    log = load_log(frame, units={"t": "ms"})
    np.testing.assert_allclose(log["q.hinge"].t, [0.0, 0.005, 0.01])
    assert np.isnan(log["q.hinge"].values[1])
    dates = pd.to_datetime(["2024-01-01 00:00:00.00", "2024-01-01 00:00:00.25"])
    step = load_log(pd.DataFrame({"time": dates, "q.hinge [rad]": [1, 2]}))["q.hinge"].t
    assert step[1] - step[0] == pytest.approx(0.25, abs=1e-6) and step[0] == pytest.approx(1704067200.0)


def test_without_a_clock_a_frame_has_a_rate() -> None:
    log = load_log(pd.DataFrame({"q.hinge [rad]": [1.0, 2.0, 3.0]}), rate=50.0)
    np.testing.assert_allclose(log["q.hinge"].t, [0.0, 0.02, 0.04])


def test_what_a_frame_lacks_is_named_as_of_a_file() -> None:
    frame = pd.DataFrame({"t [s]": t, "word": ["a", "b", "c"]})
    with pytest.raises(FileError, match=r"DataFrame, column 'word': the column does not hold numbers.\nFound str"):
        load_log(frame, units={"word": "1"})
    with pytest.raises(FileError, match=r"there is no column 'wort'.\n.*Did you mean 'word'"):
        load_log(frame, {"x": "wort"})
    with pytest.raises(DataError, match="only text files are without a header row"):
        load_log(frame, header=["t", "x"])
    with pytest.raises(FileError, match="it holds no samples"):
        load_log(frame.iloc[:0], {"x": "word"}, {"x": "1"})
