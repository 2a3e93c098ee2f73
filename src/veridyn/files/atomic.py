"""Files that appear whole or not at all, and never over another one unasked."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from veridyn.errors import FileError


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


def refuse_to_replace(file: Path, overwrite: bool, hint: str = "Choose another name, or pass overwrite=True.") -> None:
    """A FileError where something is there already, unless it is a file and `overwrite` is given; `hint` says how to give it."""
    if file.exists() and (not overwrite or not file.is_file()):
        hint = hint if file.is_file() else "Choose another name."
        raise FileError("it exists already, and nothing is written over.", found=str(file), hint=hint, source=file.name)
