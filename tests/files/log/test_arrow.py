"""With pyarrow and without it: the same values, the same faults; Parquet files need it, and are refused by name without."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import veridyn as vd
import veridyn.files.log
import veridyn.files.log.arrow as arrow
from veridyn.errors import Faults, FileError
from veridyn.files.log.arrow import parquet_blocks, read_parquet
from veridyn.files.log.layout import CsvLayout, Unparsed, find_layout
from veridyn.files.log.load import load_log, survey
from veridyn.files.log.parts import LogFile, open_log
from veridyn.files.log.tables import parsed_blocks, read_columns, save_log
from veridyn.model.experiment import Channel, Experiment


@contextmanager
def no_pyarrow() -> Iterator[None]:
    """As where the extra is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "veridyn.files.log.arrow", None)
        patch.delattr(veridyn.files.log, "arrow")
        yield


def read(path: Path, layout: CsvLayout, wanted: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    faults = Faults()
    found = read_columns(path, layout, wanted, faults)
    said = [str(f) for f in faults.found]
    return {} if said else {h: [float(v).hex() for v in x] for h, x in found.items()}, said


CELLS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.sampled_from(
        ["", "nan", "NA", "null", " 1.5 ", "1e400", "-0", "+2", "one", "1_0", "0x1", '"3.5"', '"a,b"', "1.", ".5"]
    ),
)
ROWS = st.lists(st.lists(CELLS, min_size=2, max_size=4), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(ROWS, st.sampled_from(["\n", "\r\n", "\n\n"]), st.booleans(), st.sampled_from([",", ";", "\t"]))
def test_values_and_faults_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], end: str, ended: bool, mark: str
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    text = end.join(mark.join(r) for r in [["t", "x", "y"], *rows]) + (end if ended else "")
    path.write_bytes(text.encode())
    layout = CsvLayout(mark, ".", ("t", "x", "y"), True)
    fast = read(path, layout, ["t", "y"])
    with no_pyarrow():
        assert read(path, layout, ["t", "y"]) == fast


@pytest.mark.parametrize("text", ["t;x\n0,5;1,25\n1,0;-2\n", "\ufefft x\n0 1\n 1  2\n", "t,x\n0,1\n1,\n2,3\n"])
def test_layouts_are_the_same(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    layout = find_layout(path, None, None, "," if ";" in text else ".")
    fast = read(path, layout, ["t", "x"])
    assert not fast[1]
    with no_pyarrow():
        assert read(path, layout, ["t", "x"]) == fast


def test_blocks_of_a_long_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks end at ends of lines wherever they are cut, and a quoted cell may hold one."""
    monkeypatch.setattr("veridyn.files.log.tables.BLOCK_BYTES", 64)
    values = np.random.default_rng(0).normal(size=(200, 2))
    lines = [
        f'{a!r},"note\nof two lines",{b!r}' if k % 17 == 3 else f"{a!r},note,{b!r}"
        for k, (a, b) in enumerate(values.tolist())
    ]
    path = tmp_path / "log.csv"
    path.write_text("a,text,b\n" + "\n".join(lines) + "\n", encoding="utf-8")
    with no_pyarrow():
        blocks = list(parsed_blocks(path, CsvLayout(",", ".", ("a", "text", "b"), True), ["b", "a"]))
    assert len(blocks) > 20
    np.testing.assert_array_equal(np.concatenate([x["b"] for x in blocks]), values[:, 1])
    np.testing.assert_array_equal(np.concatenate([x["a"] for x in blocks]), values[:, 0])


def test_a_fault_ends_the_blocks(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("t,x\n0,1\n1,one\n", encoding="utf-8")
    layout = CsvLayout(",", ".", ("t", "x"), True)
    with pytest.raises(Unparsed):
        list(parsed_blocks(path, layout, ["x"]))
    with no_pyarrow(), pytest.raises(Unparsed):
        list(parsed_blocks(path, layout, ["x"]))


def test_what_is_written_without_it_reads_the_same(tmp_path: Path) -> None:
    t = 0.01 * np.arange(50)
    x = np.random.default_rng(1).normal(size=50) * 1e-7
    x[3] = np.nan
    log = Experiment({"x": Channel("x", t, x, "m")}, "log")
    with no_pyarrow():
        made = save_log(log, tmp_path / "plain.csv")
        own = load_log(made)
    other = load_log(save_log(log, tmp_path / "arrow.csv"))
    for found in (own, load_log(made), other):
        np.testing.assert_array_equal(found["x"].values, x)
        np.testing.assert_array_equal(found["x"].t, t)


def test_parquet_is_refused_by_name_without_it(tmp_path: Path) -> None:
    t = np.arange(3.0)
    path = save_log(Experiment({"x": Channel("x", t, t, "m")}, "log"), tmp_path / "log.parquet")
    with no_pyarrow():
        for use in (
            lambda: vd.load_log(path),
            lambda: open_log(path, None, {}),
            lambda: save_log(load_log(path), path, True),
        ):
            with pytest.raises(FileError, match=r"(?s)pyarrow is not installed.*veridyn\[parquet\]"):
                use()


def test_columns_of_parquet_files(tmp_path: Path) -> None:
    t = np.arange(20_000.0)
    path = tmp_path / "log.parquet"
    path.write_bytes(arrow.parquet_of({"t": t, "x": -t}))
    assert arrow.parquet_headers(path) == ("t", "x")
    assert arrow.parquet_rows(path) == len(t)
    blocks = list(arrow.parquet_blocks(path, ["x"]))
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate([b["x"] for b in blocks]), -t)


STAMPS = 1_700_000_000_123_456_789 + 5_000_000 * np.arange(40)


@pytest.mark.parametrize("kind", ["int64", "uint64", "timestamp[ns]", "timestamp[us]", "timestamp[ms]", "duration[ns]"])
def test_clocks_of_every_kind(tmp_path: Path, kind: str) -> None:
    """Whole nanoseconds are more than 2^53; dates are s since 1970, as of a DataFrame."""
    per = {"us": 1000, "ms": 1_000_000}.get(kind[-3:-1], 1)
    stamps = pa.array(STAMPS // per, pa.int64()).cast(
        {"int64": pa.int64(), "uint64": pa.uint64()}.get(kind, _kind(kind))
    )
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table({"t": stamps, "q": np.sin(STAMPS)}), file)
    units = {"q": "rad"} | ({"t": "ns"} if "int" in kind else {})
    log = load_log(file, units=units)
    np.testing.assert_allclose(log["q"].t, STAMPS / 1e9, rtol=0, atol=1e-3 if "ms" in kind else 1e-6)
    assert survey(file).units == ({} if "int" in kind else {"t": "s"})
    assert parts_of(open_log(file, None, units)) == 40


def _kind(text: str) -> pa.DataType:
    word, _, unit = text.removesuffix("]").partition("[")
    return {"timestamp": pa.timestamp, "duration": pa.duration}.get(word, pa.timestamp)(unit or "ns")


def parts_of(opened: LogFile) -> int:
    return sum(len(window.log["q"].t) for window in opened.windows(16, 0))


def test_dates_and_times_of_day_are_seconds(tmp_path: Path) -> None:
    file, days = tmp_path / "log.parquet", pa.array([0, 1, None], pa.int32())
    pq.write_table(pa.table({"day": days.cast(pa.date32()), "ms": days.cast(pa.time32("ms"))}), file)
    found = read_parquet(file, None, Faults())
    np.testing.assert_array_equal(found["day [s]"], [0.0, 86400.0, np.nan])
    np.testing.assert_array_equal(found["ms [s]"], [0.0, 0.001, np.nan])


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 3), pa.large_list(pa.int16())], ids=str
)
def test_columns_of_lists_are_columns(tmp_path: Path, kind: pa.DataType) -> None:
    """As LeRobot keeps them: action and observation.state."""
    t, rows = 0.02 * np.arange(30), np.arange(90).reshape(30, 3)
    empty = -1 if pa.types.is_fixed_size_list(kind) else 4  # few versions of pyarrow store an empty row of those
    state = pa.array([None if k == empty else list(row) for k, row in enumerate(rows)], kind)
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table({"timestamp": t, "observation.state": state, "note": ["a"] * 30}), file, row_group_size=7)
    names = [f"observation.state.{k}" for k in range(3)]
    assert list(survey(file).columns) == ["timestamp", *names]
    log = load_log(
        file, {f"q.{k}": name for k, name in enumerate(names)}, {"timestamp": "s", **dict.fromkeys(names, "rad")}
    )
    expected = np.where(np.arange(30)[:, None] == empty, np.nan, rows)
    np.testing.assert_array_equal(np.column_stack([log[f"q.{k}"].values for k in range(3)]), expected)
    blocks = list(parquet_blocks(file, names[1:]))
    np.testing.assert_array_equal(np.concatenate([b[names[2]] for b in blocks]), expected[:, 2])


def test_lists_of_several_lengths_are_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table({"t [s]": [0.0, 1.0], "a": [[1.0, 2.0], [1.0]]}), file)
    with pytest.raises(FileError, match=r"column 'a.0': its lists are not all as long as the first.*\n.*2 numbers"):
        load_log(file, units={"a.0": "rad", "a.1": "rad"})
    pq.write_table(pa.table({"t [s]": [0.0, 1.0], "a": pa.array([[1.0] * 5000] * 2)}), file)
    with pytest.raises(FileError, match="column 'a': the column does not hold numbers"):
        load_log(file, units={"a": "rad"})
