"""Files as they are found, unpacked and written.

A file is there, or its neighbours are named; the format of a log follows from its name or its first bytes; veridyn:crane.yaml is a file
that comes with veridyn, found without importing the package that brings it, so that a study works from any folder.

Compressed files and NPZ arrays are read without trusting what a file says of itself: what it unpacks to is bounded by

    allowed_bytes(packed) = max(64 MiB, 100 × packed)

Recorded numbers shrink to between a half and a tenth; a hundredth is left to channels that stand still. Deflate itself allows a
thousandth, so that without a bound a file of 0.8 MB becomes 0.8 GB. The header of an NPZ array must agree with the bytes behind it before
any memory is taken, and nothing is unpickled.

A file is written whole or not at all, and never over another one unasked.
"""

from __future__ import annotations

import os
import secrets
import struct
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from importlib import resources
from math import prod
from pathlib import Path
from typing import IO, Any

from numpy.lib import format as npy
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, FileError, did_you_mean

PARQUET = (".parquet", ".pq")
ARRAYS = (".npz", ".mat")
MDF = (".mf4", ".mdf")
UNFINISHED = b"UnFinMF "
MDF_WORDS = (b"MDF     ", UNFINISHED)  # how such a file begins
BAGS = (".bag", ".db3", ".mcap")
# What readers and decoders of other libraries raise about a file that is cut off or overwritten.
BAD_VALUES = (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, OverflowError)
READER_ERRORS = (*BAD_VALUES, OSError, EOFError, MemoryError, RuntimeError, struct.error, zlib.error)
ALWAYS_ALLOWED_BYTES = 64 * 2**20
MAX_RATIO = 100  # of unpacked to packed bytes
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes; others unpack without a bound
MAX_HEADER_CHARACTERS = 10_000
ARRAY_SUFFIX = ".npy"
ENCRYPTED = 1  # flag of a part of an archive
PYTHON_OBJECTS = Fault(
    "it holds Python objects, which only unpickling could read, and unpickling can run code.",
    expected="an array of numbers",
    hint="Save the numbers themselves: np.savez(file, name=np.asarray(values, dtype=float)).",
)
BAD_ARCHIVE = (OSError, ValueError, EOFError, RuntimeError, OverflowError, struct.error, zipfile.BadZipFile, zlib.error)
# What parsing the header of an array may raise: it is a Python literal.
HEADER_ERRORS = (ValueError, TypeError, KeyError, SyntaxError, OverflowError, RecursionError, tokenize.TokenError)
HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
OTHER_FORMATS = frozenset(  # suffixes that other programs read as what they say
    {
        ".yaml",
        ".yml",
        ".json",
        ".urdf",
        ".xacro",
        ".sdf",
        ".xml",
        ".mjcf",
        ".osim",
        ".usd",
        ".usda",
        ".usdc",
        ".py",
        ".c",
        ".h",
        ".m",
    }
    | {".csv", ".txt", ".tsv", ".xlsx", ".parquet", ".npz", ".npy", ".mat", ".html", ".htm"}
    | {".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf", ".eps", ".ps", ".tif", ".tiff", ".bmp", ".mp4"}
)
PREFIX = "veridyn:"
SHIPPED_KINDS = (".yaml", ".csv")
SHIPPING_PACKAGES = ("veridyn.machines", "veridyn.papers")


def existing_file(path: str | os.PathLike[str]) -> Path:
    """The path of a file that is there; otherwise a FileError that names its neighbours."""
    file = Path(path)
    if not file.is_file():
        raise FileError("it does not exist or is not a file.", hint=_near(file), source=str(file))
    return file


def existing_log(path: str | os.PathLike[str]) -> Path:
    """The path of a log that is there: a file, or the folder of a ROS 2 bag."""
    return Path(path) if (Path(path) / "metadata.yaml").is_file() else existing_file(path)


def _near(file: Path) -> str:
    """Names beside a file that does not exist."""
    if not file.parent.is_dir():
        return f"There is no folder '{file.parent}'."
    return did_you_mean(file.name, sorted(p.name for p in file.parent.iterdir() if p.is_file()))


def unreadable(error: Exception) -> Fault:
    """What a reader's own error means to a user."""
    if isinstance(error, UnicodeDecodeError):
        return Fault(
            "it is not text in UTF-8.", expected="a CSV file", hint="Save it as UTF-8, or load it by its own format."
        )
    return Fault("it cannot be read.", found=str(error).splitlines()[0] if str(error) else type(error).__name__)


def made_folder(path: str | os.PathLike[str]) -> Path:
    """A folder that is there, or is made; a FileError where it cannot be."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = "it is no folder, and none can be made there."
        raise FileError(what, found=error.strerror or str(error), hint="Choose another.", source=str(folder)) from error
    return folder


def clocked_format(file: Path) -> str:
    """ "mdf" or "bag" where the channels of a log have clocks of their own; "" for tables and arrays, which have one for all.

    A .dat file is MDF by its first bytes, because tables of text are called so too.
    """
    suffix = file.suffix.lower()
    if suffix in BAGS or file.is_dir():
        return "bag"
    if suffix == ".dat" and file.is_file():
        with file.open("rb") as stream:
            return "mdf" if stream.read(8) in MDF_WORDS else ""
    return "mdf" if suffix in MDF else ""


def allowed_bytes(packed: int) -> int:
    """How many bytes a file of `packed` bytes may unpack to."""
    return max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * packed)


def too_large(unpacked: int, packed: int, hint: str = "") -> Fault | None:
    """The fault of a file of `packed` bytes that claims to hold `unpacked` ones; None where that is allowed."""
    if unpacked <= allowed_bytes(packed):
        return None
    what = "it unpacks to more than is read from a file of its size."
    expected = f"at most {allowed_bytes(packed)} bytes (64 MiB, or {MAX_RATIO} times the file)"
    found = f"{unpacked} bytes from {packed}"
    return Fault(what, "", expected, found, hint or "Save it without compression if it is meant to be so large.")


def inflate(packed: bytes | memoryview, limit: int) -> bytes:
    """What zlib packed, whole; a ValueError where it is cut off or holds more than `limit` bytes, without unpacking more."""
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(packed, limit) if limit > 0 else b""  # zero would mean no limit at all
    left = unpacker.unconsumed_tail if limit > 0 else packed
    if not unpacker.eof:
        # At the limit exactly, the end mark may still stand in what is left.
        more = unpacker.decompress(left, 1)
        if more:
            raise ValueError(
                f"a compressed part unpacks to more than {limit} bytes, the most that is read from this file"
            )
        if not unpacker.eof:
            raise ValueError("a compressed part is cut off")
    return data


def read_arrays(stream: IO[bytes], source: str) -> dict[str, NDArray[Any] | Fault]:
    """The arrays by name; a Fault in place of one says why it cannot be read. A :class:`FileError` where the file itself is damaged."""
    size = stream.seek(0, 2)
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            faults = _listing_faults(members, size)
            if faults:
                raise FileError(faults, source)
            return {m.filename.removesuffix(ARRAY_SUFFIX): _array(archive, m) for m in members}
    except BAD_ARCHIVE as error:
        what = "it cannot be read: it is no NPZ file of numbers, or it is damaged."
        fault = Fault(what, "", "what np.savez writes", _words(error), "Copy or save it again.")
        raise FileError(fault, source) from error
    except MemoryError as error:
        fault = Fault("its arrays do not fit the memory.", found=f"{size} bytes", hint="Save it in parts.")
        raise FileError(fault, source) from error


def _listing_faults(members: list[zipfile.ZipInfo], size: int) -> list[Fault]:
    """What is wrong with the table of contents of a file of `size` bytes."""
    names = [m.filename.removesuffix(ARRAY_SUFFIX) for m in members]
    twice = [name for name, times in Counter(names).items() if times > 1]
    faults = [Fault("two arrays have this name.", f"array '{name}'", hint="Save it again.") for name in twice]
    for name, member in zip(names, members, strict=True):
        if member.compress_type not in COMPRESSIONS:
            found = f"method {member.compress_type}"
            hint = "Save it with np.savez or np.savez_compressed."
            faults.append(Fault("its compression is not read.", f"array '{name}'", "none, or deflate", found, hint))
        if member.flag_bits & ENCRYPTED:
            faults.append(Fault("it is encrypted.", f"array '{name}'", hint="Save it without a password."))
    bomb = too_large(sum(m.file_size for m in members), size, "Save it with np.savez if it is meant to be so large.")
    return faults if bomb is None else [*faults, bomb]


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any] | Fault:
    with archive.open(member) as stream:
        fault = _header_fault(stream, member.file_size)
    if fault is not None:
        return fault
    with archive.open(member) as stream:
        try:
            return npy.read_array(stream, allow_pickle=False, max_header_size=MAX_HEADER_CHARACTERS)
        except HEADER_ERRORS as error:
            return Fault("it cannot be read.", expected="an array of numbers", found=_words(error))


def _header_fault(stream: IO[bytes], size: int) -> Fault | None:
    """What is wrong with the head of an array of `size` bytes, before memory is taken for it."""
    try:
        version = npy.read_magic(stream)
        read = HEADER_READERS.get(version)
        if read is None:
            found = f"version {version[0]}.{version[1]}"
            return Fault("its header is of a version that is not read.", expected="version 1.0 or 2.0", found=found)
        shape, _, kind = read(stream, max_header_size=MAX_HEADER_CHARACTERS)
        behind = size - stream.tell()
    except HEADER_ERRORS as error:
        hint = "The file is damaged, or not made by NumPy; save it again."
        return Fault("its header is no header of an array.", "", "what np.save writes", _words(error), hint)
    if kind.hasobject:
        return PYTHON_OBJECTS
    claimed = prod(max(0, n) for n in shape) * kind.itemsize
    if min(shape, default=0) < 0 or claimed != behind:
        expected = f"{claimed} bytes for type {kind}, shape {shape}"
        hint = "The file is damaged or cut off; save it again."
        return Fault("its header does not fit its data.", "", expected, f"{behind}", hint)
    return None


def _words(error: BaseException) -> str:
    """The first line of an error, not too long."""
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    return first if len(first) <= 120 else first[:117] + "…"


def is_shipped(text: str) -> bool:
    """Whether a path means a file that comes with veridyn."""
    return text.startswith(PREFIX)


def shipped_name(file: Path) -> str:
    """What a file that comes with veridyn is called, veridyn:NAME; nothing for another."""
    return f"{PREFIX}{file.name}" if shipped_files().get(file.name) == file.resolve() else ""


def resolved(path: Path) -> Path:
    """A path as it is, or the file that "veridyn:NAME" means."""
    return shipped(str(path)) if is_shipped(str(path)) else path


@cache
def shipped_files() -> dict[str, Path]:
    """Every file that comes with veridyn, by name: those of each package and of the folders in it."""
    folders = [Path(str(resources.files(package))).resolve() for package in SHIPPING_PACKAGES]
    found = (f for folder in folders for f in (*folder.glob("*.*"), *folder.glob("*/*.*")) if f.suffix in SHIPPED_KINDS)
    return {f.name: f for f in sorted(found)}


def shipped(text: str) -> Path:
    """The file that "veridyn:NAME" means."""
    name, files = text.removeprefix(PREFIX), shipped_files()
    if name not in files:
        hint = did_you_mean(name, sorted(files))
        raise DataError(f"veridyn brings no file '{name}'.", expected="one of its own", hint=hint)
    return files[name]


def write_atomic(path: str | os.PathLike[str], data: bytes, overwrite: bool = False) -> Path:
    """Write a file whole or not at all: under a temporary name beside it, flushed to the disk, then renamed."""
    file = Path(path)
    refuse_to_replace(file, overwrite)
    unfinished: Path | None = None
    try:
        # A name that nobody can guess, opened only if nothing has it: a link planted there is never followed.
        unfinished = file.with_name(f".{file.name[:100]}.{secrets.token_hex(8)}.part")
        with unfinished.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"it cannot be written: {reason}.", found=str(file), source=file.name) from error
    finally:
        if unfinished is not None:
            with suppress(OSError, ValueError):
                unfinished.unlink(missing_ok=True)
    return file


def refuse_format(path: str | os.PathLike[str], own: Collection[str], what: str, hint: str = "") -> None:
    """A FileError where the suffix of a file that is to be written is that of another format than `what`, whose own suffixes are `own`."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix in OTHER_FORMATS and suffix not in own:
        article = "an" if suffix[1:2] in "aeimnx" else "a"
        said = f"{what} is not written into {article} {suffix} file."
        raise FileError(
            said, expected=f"a name that ends in {' or '.join(own)}", found=str(file), hint=hint, source=file.name
        )


def refuse_to_replace(file: Path, overwrite: bool, hint: str = "Choose another name, or pass overwrite=True.") -> None:
    """A FileError where something is there already, unless it is a file and `overwrite` is given; `hint` says how to give it."""
    if file.exists() and (not overwrite or not file.is_file()):
        hint = hint if file.is_file() else "Choose another name."
        raise FileError("it exists already, and nothing is written over.", found=str(file), hint=hint, source=file.name)
