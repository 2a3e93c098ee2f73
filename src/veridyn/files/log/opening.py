"""Which file a log is: that it exists, of which format it is, and what a reader's own error means to a user."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

from veridyn.errors import Fault, FileError, did_you_mean

PARQUET = (".parquet", ".pq")
ARRAYS = (".npz", ".mat")
MDF = (".mf4", ".mdf")
UNFINISHED = b"UnFinMF "
MDF_WORDS = (b"MDF     ", UNFINISHED)  # how such a file begins
BAGS = (".bag", ".db3", ".mcap")
# What readers and decoders of other libraries raise about a file that is cut off or overwritten.
BAD_VALUES = (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, OverflowError)
DAMAGED = (*BAD_VALUES, OSError, EOFError, MemoryError, RuntimeError, struct.error, zlib.error)


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
