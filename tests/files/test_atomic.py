from pathlib import Path

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


def test_the_temporary_name_cannot_be_guessed_and_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    names = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, to: (names.append(self.name), replace(self, to))[1])
    for k in range(2):
        write_atomic(tmp_path / f"{k}.bin", b"content")
    endings = {name.split(".")[-2] for name in names}
    assert len(endings) == 2 and all(len(ending) == 16 for ending in endings)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    monkeypatch.setattr("veridyn.files.atomic.secrets.token_hex", lambda n: "guessed")
    (tmp_path / ".a.bin.guessed.part").symlink_to(victim)
    with pytest.raises(FileError, match="it cannot be written: File exists"):
        write_atomic(tmp_path / "a.bin", b"content")
    assert victim.read_bytes() == b"precious"
