import pytest

from veridyn.errors import FileError
from veridyn.files.atomic import write_atomic


def test_a_file_appears_whole_and_nothing_else_does(tmp_path):
    path = write_atomic(tmp_path / "a.bin", b"content")
    assert path.read_bytes() == b"content"
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_nothing_is_written_over_unasked(tmp_path):
    path = write_atomic(tmp_path / "a.bin", b"old")
    with pytest.raises(FileError, match=r"a\.bin, it exists already(.|\n)*overwrite=True"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert write_atomic(path, b"new", overwrite=True).read_bytes() == b"new"
    with pytest.raises(FileError, match=r"it exists already(.|\n)*Choose another name\.$"):
        write_atomic(tmp_path, b"", overwrite=True)


def test_a_failure_leaves_nothing_behind(tmp_path):
    with pytest.raises(FileError, match="it cannot be written: No such file or directory"):
        write_atomic(tmp_path / "nowhere" / "a.bin", b"")
    assert not list(tmp_path.iterdir())
