"""Bounds of unpacking, and NPZ files that lie about themselves: refused before memory is taken; good ones are what NumPy reads.

Files that come with veridyn.
"""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import veridyn
from veridyn.errors import DataError, FileError
from veridyn.files.access import (
    ALWAYS_ALLOWED_BYTES,
    MAX_RATIO,
    allowed_bytes,
    inflate,
    is_shipped,
    read_arrays,
    resolved,
    shipped,
    shipped_files,
    shipped_name,
    too_large,
    write_atomic,
)
from veridyn.files.log.load import load_log, survey
from veridyn.files.machine.load import load_model
from veridyn.mechanics.natural.description.of_machine import mechanism_of


def test_the_bound_is_64_mib_or_a_hundred_times_the_file() -> None:
    assert allowed_bytes(10) == ALWAYS_ALLOWED_BYTES == 64 * 2**20
    assert allowed_bytes(10**9) == MAX_RATIO * 10**9
    assert too_large(ALWAYS_ALLOWED_BYTES, 10) is None
    fault = too_large(1_500_000_000, 800_000)  # what 0.8 MB became
    assert fault is not None and "80000000 bytes" in fault.expected and "1500000000 bytes from 800000" in fault.found


def test_inflate_gives_back_what_was_packed_up_to_the_limit() -> None:
    data = bytes(range(256)) * 20
    packed = zlib.compress(data)
    assert inflate(packed, len(data)) == data == inflate(packed, 10 * len(data))
    assert inflate(zlib.compress(b""), 5) == b""
    assert inflate(zlib.compress(b""), 0) == b""
    for limit in (0, 1, 100, len(data) - 1):
        with pytest.raises(ValueError, match=f"more than {limit} bytes"):
            inflate(packed, limit)
    with pytest.raises(ValueError, match="cut off"):
        inflate(packed[:-6], 10 * len(data))
    with pytest.raises(zlib.error):
        inflate(b"no stream", 10)


UNITS = {"t": "s", "x": "m"}


def member(header: str, body: bytes = b"\0" * 24, version: bytes = b"\x01\x00") -> bytes:
    """One array as np.save writes it, with any header."""
    text = header.encode("latin-1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + body


def header(shape: str = "(3,)", kind: str = "'<f8'") -> str:
    return f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}"


def archive(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return out.getvalue()


GOOD = member(header(), np.arange(3.0).tobytes())


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_arrays_are_those_that_numpy_reads(write) -> None:
    given = {
        "a": np.arange(6.0).reshape(2, 3),
        "turned": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "word": np.array("arm"),
        "none": np.zeros((0, 3)),
        "flags": np.array([True, False]),
    }
    out = io.BytesIO()
    write(out, **given)
    found = read_arrays(out, "a.npz")
    out.seek(0)
    with np.load(out) as expected:
        assert list(found) == expected.files
        for name, value in found.items():
            assert isinstance(value, np.ndarray)
            assert value.dtype == expected[name].dtype and np.array_equal(value, expected[name])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (member("{'descr': '<f8', 'fortran_order': False, 'shape': (3,, "), "no header of an array"),
        (member("(("), "no header of an array"),
        (member(header("(1000000000000,)")), r"does not fit its data(.|\n)*8000000000000 bytes(.|\n)*found 24"),
        (member(header("(10**9,)")), "no header of an array"),
        (member(header("(-3,)")), "does not fit its data"),
        (member(header("(4,)")), "does not fit its data"),
        (member(header("(10000000000, 10000000000, 10000000000)")), "does not fit its data"),
        (member(header(kind="'<U400000000'")), "does not fit its data"),
        (member(header(kind="'nonsense'")), "no header of an array"),
        (member(header(kind="[" * 3000 + "]" * 3000)), "no header of an array"),
        (member(header(kind="'|O'")), "it holds Python objects"),
        (member(header(), version=b"\x09\x00"), "of a version that is not read"),
        (b"hello", "no header of an array"),
    ],
)
def test_headers_that_lie_are_refused_by_name(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    path.write_bytes(archive(t=GOOD, x=content, y=GOOD))
    for read in (lambda: load_log(path, units=UNITS | {"y": "m"}), lambda: survey(path)):
        with pytest.raises(FileError, match=rf"array 'x': (it is |its header )?(.|\n)*{what}"):
            read()
    assert load_log(path, {"y": "y"}, {"t": "s", "y": "m"}).names == ("y",)  # what nobody asks for may be anything


def test_what_unpacks_to_more_than_any_log_is_refused_unread(tmp_path: Path) -> None:
    """The sizes are those of the table of contents: nothing is unpacked to find out."""
    data = bytearray(archive(t=GOOD, x=GOOD))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rfind(mark)
        data[at + place : at + place + 4] = struct.pack("<I", 1_500_000_000)
    path = tmp_path / "bomb.npz"
    path.write_bytes(data)
    for read in (lambda: load_log(path, units=UNITS), lambda: survey(path)):
        with pytest.raises(
            FileError, match=r"unpacks to more than(.|\n)*at most 67108864 bytes(.|\n)*1500000\d+ bytes from"
        ):
            read()


def test_an_array_longer_than_the_table_of_contents_says_is_not_unpacked_further() -> None:
    long = member(header("(100000,)"), bytes(800_000))
    data = bytearray(archive(x=long))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rfind(mark)
        data[at + place : at + place + 4] = struct.pack("<I", 1000)
    with pytest.raises(FileError, match="it is damaged"):
        read_arrays(io.BytesIO(data), "a.npz")


def test_a_damaged_stream_is_a_file_error(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=3000)
    whole = archive(t=GOOD, x=member(header("(3000,)"), noise.tobytes()))
    path = tmp_path / "log.npz"
    for at in range(300, 20_000, 1500):
        data = bytearray(whole)
        data[at] ^= 0xFF
        path.write_bytes(data)
        for read in (lambda: load_log(path, units=UNITS), lambda: survey(path)):
            with pytest.raises(FileError, match="it is no NPZ file of numbers, or it is damaged"):
                read()


def test_other_compressions_passwords_and_names_that_stand_twice_are_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("x.npy", GOOD)
    with pytest.raises(FileError, match=r"array 'x': its compression is not read"):
        read_arrays(out, "a.npz")
    locked = bytearray(archive(x=GOOD))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.rfind(mark) + place] |= 1
    with pytest.raises(FileError, match="array 'x': it is encrypted"):
        read_arrays(io.BytesIO(locked), "a.npz")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("x.npy", GOOD)
        file.writestr("x", GOOD)
    with pytest.raises(FileError, match=r"array 'x': two arrays have this name"):
        read_arrays(out, "a.npz")
    with pytest.raises(FileError, match="no NPZ file"):
        read_arrays(io.BytesIO(zlib.compress(b"x")), "a.npz")


def test_a_mechanism_and_a_log() -> None:
    assert mechanism_of(load_model(shipped("veridyn:crane.yaml"))).name == "crane"
    assert shipped("veridyn:crane.csv").read_text(encoding="utf-8").startswith("time,trolley,angle")
    assert is_shipped("veridyn:crane.yaml") and not is_shipped("crane.yaml")


PAPERS = ("buggy", "car_20", "car_2002", "car_38", "fourbar", "hexapod", "humanoid")
CORE = ("arm", "crane", "delta", "leg", "linkage", "palletizer", "spatial")


def test_models_of_the_core_and_of_the_papers_are_found_by_name() -> None:
    """Each once, whichever package brings it: two files of one name would hide each other."""
    root = Path(veridyn.__file__).parent
    there = sorted(f.name for f in root.rglob("*") if f.suffix in (".yaml", ".csv"))
    assert there == sorted(shipped_files()) == sorted([f"{name}.yaml" for name in (*CORE, *PAPERS)] + ["crane.csv"])


def test_a_paper_is_found_without_its_code() -> None:
    """The folder of a paper is looked up by name; none of its modules is imported."""
    script = (
        "import sys; import veridyn as vd; vd.load_model('veridyn:car_20.yaml');"
        "print(sorted(m for m in sys.modules if m.startswith('veridyn.papers.')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_there_and_back(tmp_path: Path) -> None:
    assert shipped_name(resolved(Path("veridyn:hexapod.yaml"))) == "veridyn:hexapod.yaml"
    assert shipped_name(resolved(Path("veridyn:crane.csv"))) == "veridyn:crane.csv"
    assert resolved(tmp_path / "crane.csv") == tmp_path / "crane.csv" and shipped_name(tmp_path / "crane.csv") == ""


@pytest.mark.parametrize("name", ["veridyn:cran.yaml", "veridyn:../errors.py", "veridyn:", "veridyn:spatial.py"])
def test_what_is_not_there(name: str) -> None:
    with pytest.raises(DataError, match="veridyn brings no file"):
        shipped(name)


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
    monkeypatch.setattr("veridyn.files.access.secrets.token_hex", lambda n: "guessed")
    (tmp_path / ".a.bin.guessed.part").symlink_to(victim)
    with pytest.raises(FileError, match="it cannot be written: File exists"):
        write_atomic(tmp_path / "a.bin", b"content")
    assert victim.read_bytes() == b"precious"
