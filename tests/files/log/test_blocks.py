from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veridyn.errors import FileError
from veridyn.files.log.blocks import open_log
from veridyn.files.log.load import load_log

N = 10_007
T = np.arange(N) / 250.0
X = np.sin(T) + 1e-3 * np.arange(N)
COLUMNS, UNITS = {"a": "x", "t": "t"}, {"a": "deg", "t": "s"}


@pytest.fixture(scope="module", params=["csv", "parquet"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / f"log.{request.param}"
    if request.param == "csv":
        path.write_text("t,y,x\n" + "\n".join(f"{t!r},0,{x!r}" for t, x in zip(T.tolist(), X.tolist())) + "\n")
    else:
        pq.write_table(pa.table({"t": T, "y": 0.0 * T, "x": X}), path, row_group_size=777)
    return path


@pytest.mark.parametrize(("size", "margin"), [(1000, 0), (1000, 137), (4096, 5000), (20_000, 10)])
def test_own_rows_follow_on_one_another_and_margins_are_there(file: Path, size: int, margin: int) -> None:
    log = open_log(file, COLUMNS, UNITS)
    assert log.rows == N
    whole = load_log(file, COLUMNS, UNITS)["a"]
    at, units = 0, set()
    for window in log.windows(size, margin):
        c = window.log["a"]
        units.add(c.unit)
        own = (c.t >= window.start) & (c.t < window.end)
        count = int(own.sum())
        assert count == min(size, N - at)
        np.testing.assert_array_equal(c.values[own], whole.values[at : at + count])
        lo, hi = max(0, at - margin), min(N, at + count + margin)
        np.testing.assert_array_equal(c.t, whole.t[lo:hi])
        at += count
    assert at == N
    assert units == {"rad"}


def test_a_span_of_rows(file: Path) -> None:
    windows = list(open_log(file, COLUMNS, UNITS).windows(1000, 50, 2500, 4700))
    assert [w.start for w in windows] == [T[2500], T[3500], T[4500]]
    assert windows[0].log["a"].t[0] == T[2500] and windows[-1].log["a"].t[-1] == T[4699]
    assert windows[-1].end == np.inf


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x\n0,1\n1,2\n2,much\n")
    with pytest.raises(FileError, match="there is no column 'z'"):
        open_log(tmp_path / "a.csv", {"t": "t", "a": "z"}, {"t": "s"})
    with pytest.raises(FileError, match=r"(?s)it cannot be read to its end.*much"):
        list(open_log(tmp_path / "a.csv", {"t": "t", "a": "x"}, {"t": "s", "a": "1"}).windows(10, 0))
    np.savez(tmp_path / "a.npz", t=T)
    with pytest.raises(FileError, match="cannot be read in blocks"):
        open_log(tmp_path / "a.npz", None, {})
