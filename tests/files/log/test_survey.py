from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.io import savemat

from veridyn.errors import FileError
from veridyn.files.log.survey import survey


def test_a_header_gives_names_and_units(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t [ms],q1 [deg],note\n0,1,x\n10,2,y\n")
    seen = survey(tmp_path / "a.csv")
    assert seen.has_header
    assert list(seen.columns) == ["t", "q1"]  # words are no numbers
    assert seen.units == {"t": "ms", "q1": "deg"}
    assert seen.columns["q1"].tolist() == [1.0, 2.0]


def test_a_table_without_a_header_has_columns_by_number(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0;1.5;2\n1;2.5;3\n")
    seen = survey(tmp_path / "a.txt")
    assert not seen.has_header
    assert list(seen.columns) == ["c1", "c2", "c3"]


def test_arrays_and_parquet(tmp_path: Path) -> None:
    t, q = np.arange(5.0), np.arange(10.0).reshape(5, 2)
    np.savez(tmp_path / "a.npz", t=t, positions=q, rate=100.0)
    assert list(survey(tmp_path / "a.npz").columns) == ["t", "positions.0", "positions.1"]
    savemat(tmp_path / "a.mat", {"t": t, "q": q})
    seen = survey(tmp_path / "a.mat")
    np.testing.assert_array_equal(seen.columns["q.1"], q[:, 1])
    pq.write_table(pa.table({"t [s]": t, "v [m/s]": t}), tmp_path / "a.parquet")
    assert survey(tmp_path / "a.parquet").units == {"t": "s", "v": "m/s"}


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        survey(tmp_path / "b.csv")
    (tmp_path / "b.npz").write_bytes(b"no archive")
    with pytest.raises(FileError, match="cannot be read"):
        survey(tmp_path / "b.npz")


def test_blanks_semicolons_decimal_commas_and_units_in_round_brackets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0.0 1.5 2\n0.1 2.5 3\n")
    assert list(survey(tmp_path / "a.txt").columns) == ["c1", "c2", "c3"]
    (tmp_path / "b.txt").write_text("t;v(m/s);n (many)\n0,0;1,5;2\n0,1;2,5;3\n")
    seen = survey(tmp_path / "b.txt")
    assert seen.decimal == "," and seen.columns["v(m/s)"].tolist() == [1.5, 2.5]
    assert seen.units == {"v(m/s)": "m/s"}
    (tmp_path / "c.txt").write_text("Recorder\ntimestamp actual_q_0\n0.002 1\n0.004 2\n0.006 2\n")
    assert list(survey(tmp_path / "c.txt").columns) == ["timestamp", "actual_q_0"]


def test_bytes_that_are_no_text_and_cells_without_end_are_told(tmp_path: Path) -> None:
    for damaged, words in (
        (b"\xff\xfe\x00t,a\n", "not text in UTF-8"),
        (b"t,a\n" + b"9" * 200_000 + b",1\n", "cannot be read"),
    ):
        (tmp_path / "a.csv").write_bytes(damaged)
        with pytest.raises(FileError, match=words):
            survey(tmp_path / "a.csv")
