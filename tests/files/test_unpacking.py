"""Bounds of unpacking, and NPZ files that lie about themselves: refused before memory is taken; good ones are what NumPy reads."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from veridyn.errors import FileError
from veridyn.files.log.load import load_log
from veridyn.files.log.survey import survey
from veridyn.files.unpacking import ALWAYS_ALLOWED_BYTES, MAX_RATIO, allowed_bytes, inflate, read_arrays, too_large


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
