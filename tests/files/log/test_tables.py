"""Tables of every kind give the same columns, the slow reader of text says where a file is wrong, and saving keeps what exists."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veridyn.errors import DataError, Faults, FileError
from veridyn.files.log import tables
from veridyn.files.log.arrow import read_parquet
from veridyn.files.log.layout import CsvLayout, find_layout
from veridyn.files.log.load import load_log
from veridyn.files.log.tables import read_columns, save_log
from veridyn.model.experiment import Channel, Experiment


def write(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_both_readers_agree_on_what_numbers_look_like(tmp_path):
    path = write(tmp_path, "\ufefft,x,note\n0,1.5,ab\n1e-1,-2E3,\n 0.2 ,nan,c\n0.3,,d\n\n0.4,inf,e\n")
    layout = find_layout(path, None, None)
    faults = Faults()
    fast = tables._fast(path, layout, ["t", "x"])
    slow = tables._cell_by_cell(path, layout, ["t", "x"], faults)
    assert not faults
    for header in ("t", "x"):
        assert np.array_equal(fast[header], slow[header], equal_nan=True)
    assert np.array_equal(fast["x"], [1.5, -2000.0, np.nan, np.nan, np.inf], equal_nan=True)


def test_what_only_the_slow_reader_knows_is_still_read(tmp_path):
    path = write(tmp_path, "t,x\n0,+1.5\n1,Infinity\n")
    assert read_columns(path, find_layout(path, None, None), ["x"], Faults())["x"].tolist() == [1.5, np.inf]


def test_decimal_comma(tmp_path):
    path = write(tmp_path, "t;x\n0,5;1,25\n")
    assert read_columns(path, find_layout(path, None, None, ","), ["t", "x"], Faults())["x"].tolist() == [1.25]


def test_every_fault_with_its_line(tmp_path):
    path = write(tmp_path, "t,x\n0,1\n1,one\n2\n3,4,5\n4,1_000\n5,6\n6")
    faults = Faults()
    read_columns(path, CsvLayout(",", ".", ("t", "x"), True), ["t", "x"], faults)
    assert [(f.line, f.found) for f in faults.found] == [(3, "'one'"), (4, "1"), (5, "3"), (6, "'1_000'"), (8, "1")]
    assert "delete it" in str(faults.found[-1])


def test_a_file_of_another_kind_does_not_list_every_line(tmp_path):
    path = write(tmp_path, "t,x\n" + "a,b\n" * 100)
    faults = Faults()
    read_columns(path, find_layout(path, None, None), ["t", "x"], faults)
    assert len(faults.found) == 21
    assert "200 cells that are no numbers in all" in str(faults.found[-1])


def test_columns_separated_by_blanks_are_read_by_both_readers(tmp_path):
    path = write(tmp_path, "\ufeffby the recorder\n  t     x\n  0.00  1.5\n  0.01 -2.5e1\n\n  0.02  nan \n")
    layout, faults = find_layout(path, None, None), Faults()
    assert (layout.delimiter, layout.skip, layout.headers) == (" ", 1, ("t", "x"))
    fast = tables._fast(path, layout, ["x"])
    slow = tables._cell_by_cell(path, layout, ["x"], faults)
    assert not faults
    np.testing.assert_array_equal(fast["x"], [1.5, -25.0, np.nan])
    np.testing.assert_array_equal(slow["x"], fast["x"])


def test_lines_are_counted_from_the_beginning_of_the_file(tmp_path):
    for text in ("a\nb\nt,x\n0,1\n1,one\n2,3\n", "a\nb\nt x\n0 1\n1 one\n2 3\n"):
        path, faults = write(tmp_path, text), Faults()
        read_columns(path, find_layout(path, None, None), ["t", "x"], faults)
        assert [(f.line, f.found) for f in faults.found] == [(5, "'one'")]


def test_no_number_of_a_large_table_is_held_twice(tmp_path):
    """Blocks of text become numbers in the arrays that are returned: what arrow holds meanwhile is a small part of them."""
    rows, width = 100_000, 7
    lines = [",".join(f"{(7 * k + j) % 1000 / 8}" for j in range(width)) for k in range(rows)]
    path = write(tmp_path, ",".join(f"c{j}" for j in range(width)) + "\n" + "\n".join(lines) + "\n")
    layout, wanted = find_layout(path, None, None), [f"c{j}" for j in range(width)]
    tracemalloc.start()
    found = tables._fast(path, layout, wanted)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    bytes_of_columns = 8 * rows * width
    assert bytes_of_columns <= peak < 1.2 * bytes_of_columns
    assert found["c3"][10] == (7 * 10 + 3) / 8


def test_columns_are_those_written_and_words_are_refused_by_name(tmp_path: Path) -> None:
    path, faults = tmp_path / "a.parquet", Faults()
    pq.write_table(pa.table({"t": [0, 1], "x": [0.5, None], "word": ["a", "b"]}), path)
    found = read_parquet(path, ["t", "x"], faults)
    assert not faults and np.array_equal(found["x"], [0.5, np.nan], equal_nan=True)
    read_parquet(path, None, faults)
    assert [f.at for f in faults.found] == [("column", "word")]


def test_rows_that_take_next_to_nothing_on_disk_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": np.zeros(200_000, dtype=np.int8), "x": np.zeros(200_000, dtype=np.int8)}), path)
    monkeypatch.setattr("veridyn.files.access.ALWAYS_ALLOWED_BYTES", 1_000_000)
    with pytest.raises(FileError, match=r"unpacks to more than(.|\n)*3200000 bytes from(.|\n)*in blocks"):
        load_log(path, units={"t": "s", "x": "m"})


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


@pytest.mark.parametrize("made", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
def test_lists_of_numbers_are_columns_of_a_frame_as_of_a_file(made: Any) -> None:
    """LeRobot's tables; a file of Parquet did so, and its DataFrame was refused."""
    frame = made({"t [s]": t, "action": [[1.0, 10.0], None, [3.0, 30.0]], "odd": [[1.0], [1.0, 2.0], [3.0]]})
    log = load_log(frame, {"command.a": "action.0", "command.b": "action.1"}, {"action.0": "rad", "action.1": "deg"})
    np.testing.assert_array_equal(log["command.a"].values, [1.0, np.nan, 3.0])
    np.testing.assert_allclose(log["command.b"].values, np.radians([10.0, np.nan, 30.0]))
    with pytest.raises(FileError, match="column 'odd': the column does not hold numbers"):
        load_log(frame, {"command.a": "odd"}, {"odd": "rad"})


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


def small_log():
    return Experiment.from_arrays([0.0, 0.1], {"q1": [1.0, 2.0]}, {"q1": "rad"}, "small")


def test_saving_keeps_what_exists(tmp_path):
    path = save_log(small_log(), tmp_path / "log.csv")
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"it exists already[\s\S]*Choose another name, or pass overwrite=True"):
        save_log(small_log(), path)
    assert path.read_bytes() == before
    other = Experiment.from_arrays([0.0, 1.0], {"a": [1.0, 2.0]}, {"a": "m"})
    save_log(other, path, overwrite=True)
    assert load_log(path).names == ("a",)


def test_saving_needs_one_clock_and_known_units(tmp_path):
    t = np.arange(3.0)
    log = Experiment(
        {
            "a": Channel("a", t, t, "m"),
            "b": Channel("b", t + 1, t, "m"),
            "c": Channel("c", t, t, "smoot"),
            "t": Channel("t", t, t, "s"),
        },
        "run",
    )
    with pytest.raises(DataError) as caught:
        save_log(log, tmp_path / "log.csv")
    text = str(caught.value)
    assert "run: channel 'b' has another clock than 'a'." in text
    assert "veridyn.signals.resample.resample first" in text
    assert "unknown symbol 'smoot'" in text
    assert "channel 't': its name cannot head a column" in text
    with pytest.raises(DataError, match=r"no channels to save"):
        save_log(Experiment({}), tmp_path / "log.csv")
    assert not any(tmp_path.iterdir())


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    with pytest.raises(FileError, match=r"it cannot be written"):
        save_log(small_log(), tmp_path / "nowhere" / "log.csv")
    assert not any(tmp_path.iterdir())
