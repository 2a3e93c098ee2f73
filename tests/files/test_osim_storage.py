"""OpenSim storages: columns by name, and what is refused, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from veridyn.errors import FileError
from veridyn.files.osim_storage import load_storage


def test_a_storage_is_read_by_column_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "run.sto"
    path.write_text("name\nversion=1\nendheader\ntime\tknee\n0.0\t1.5\n0.1\t2.5\n")
    found = load_storage(path)
    assert found["knee"].tolist() == [1.5, 2.5] and found["time"].tolist() == [0.0, 0.1]
    path.write_text("endheader\ntime knee\n0.0 1.5\n0.1\n")
    with pytest.raises(FileError, match=r"line 4.*another number of cells"):
        load_storage(path)
    path.write_text("time knee\n0 1\n")
    with pytest.raises(FileError, match="no OpenSim storage"):
        load_storage(path)
    with pytest.raises(FileError, match="cannot be read"):
        load_storage(tmp_path / "none.sto")


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    storage = tmp_path / "run.sto"
    storage.write_bytes("endheader\ntime knee\n0 1\n1 \xe9\n".encode("latin-1"))
    with pytest.raises(FileError, match=r"line 4\): it is not text in UTF-8(.|\n)*0xe9"):
        load_storage(storage)


def test_cells_of_a_storage_are_numbers_and_all_faults_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "run.sto"
    path.write_text("endheader\ntime knee\n0.0 one\n\n0.1 nan\n0.2 2,5\n")
    with pytest.raises(FileError, match=r"2 faults:(.|\n)*line 3(.|\n)*'one'(.|\n)*line 6(.|\n)*'2,5'"):
        load_storage(path)
    path.write_text("endheader\ntime knee knee\n0.0 1 2\n")
    with pytest.raises(FileError, match="two columns are called 'knee'"):
        load_storage(path)
    path.write_text("endheader\ntime knee\n")
    with pytest.raises(FileError, match="it holds no samples"):
        load_storage(path)
