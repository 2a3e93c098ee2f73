"""Compiled objects kept on disk, so that a machine is compiled once and loaded ever after.

One file for each key, written under a temporary name and renamed, so that two processes never see half a file. Each file carries the
digest of what is in it: a damaged one is dropped and made again. The only place below the fifth floor that touches files.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

MAGIC = b"veridyn object 1\n"
VARIABLE = "VERIDYN_CACHE"  # a folder, or "off"
ABANDONED = 3600.0  # seconds after which a file under its temporary name belongs to nobody
UNUSED = 30 * 86400.0  # seconds after which the folder of other sources goes
LIMIT = 512 * 2**20  # bytes the folder may hold before the oldest files go
NEVER_COMPILED = frozenset({"identify", "observe", "files", "machines", "studies", "view", "report", "cli"})  # rooms


@dataclass(frozen=True)
class Stored:
    """What a file holds: machine code, and a description of how to call it."""

    code: bytes
    description: Mapping[str, Any]


def folder() -> Path | None:
    """Where objects are kept: $VERIDYN_CACHE, else the platform's place for caches; None where it is "off"."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() == "off":
        return None
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "veridyn" / "objects"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "veridyn"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "veridyn"


@cache
def folder_of_sources() -> Path | None:
    """A folder for compiled functions, named by a digest of all sources they can depend on and of numba's version; None where it is "off".

    They stand in `mechanics` and `simulate`, and imports go down the floors only: the rooms of `NEVER_COMPILED` cannot change them.
    Folders of other sources that nobody has used for a month are removed.
    """
    place = folder()
    if place is None:
        return None
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {version('numpy')}".encode())
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0] not in NEVER_COMPILED:
            digest.update(inside.as_posix().encode() + b"\0" + path.read_bytes())
    chosen = place / f"compiled-{digest.hexdigest()[:24]}"
    with suppress(OSError):
        for other in place.glob("compiled-*"):
            if other != chosen and time.time() - other.stat().st_mtime > UNUSED:
                shutil.rmtree(other, ignore_errors=True)
    return chosen


def key_of(*parts: str) -> str:
    """A name for a file from everything its content depends on."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def load_or_make(key: str, make: Callable[[], Stored]) -> Stored:
    """The object of this key, from disk where it is whole, else made and kept. A disk that refuses costs time, not the result."""
    place = folder()
    if place is None:
        return make()
    path = place / f"{key}.object"
    found = _read(path)
    if found is not None:
        return found
    made = make()
    _write(path, made)
    return made


def _packed(stored: Stored) -> bytes:
    head = json.dumps(stored.description, separators=(",", ":")).encode()
    body = len(head).to_bytes(8, "little") + head + stored.code
    return MAGIC + hashlib.sha256(body).digest() + body


def _read(path: Path) -> Stored | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + 32
    body = data[start:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        with suppress(OSError):
            path.unlink()
        return None
    size = int.from_bytes(body[:8], "little")
    return Stored(body[8 + size :], json.loads(body[8 : 8 + size]))


def _write(path: Path, stored: Stored) -> None:
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_packed(stored))
            Path(temporary).replace(path)
        except OSError:
            with suppress(OSError):
                Path(temporary).unlink()
        _thin(path.parent)


def _thin(place: Path) -> None:
    """Drop the files unused for longest while the folder is over its limit."""
    files = []
    for p in [*place.glob("*.object"), *place.glob("*.part")]:
        with suppress(OSError):
            status = p.stat()
            if p.suffix == ".object":
                files.append((status.st_atime, status.st_size, p))
            elif time.time() - status.st_mtime > ABANDONED:
                p.unlink()  # a process was killed while it wrote this
    total = sum(size for _, size, _ in files)
    for _, size, p in sorted(files, key=lambda f: f[0]):
        if total <= LIMIT:
            break
        with suppress(OSError):
            p.unlink()
            total -= size


T = TypeVar("T")
_memory: dict[str, Any] = {}
_lock = threading.Lock()


def remembered(key: str, make: Callable[[], T]) -> T:
    """What was made for this key in this process, or what `make` makes now."""
    with _lock:
        if key not in _memory:
            _memory[key] = make()
        return _memory[key]


def is_remembered(key: str) -> bool:
    """True when something was made for this key in this process, or lies on disk."""
    place = folder()
    if key in _memory or place is None:
        return key in _memory
    with suppress(OSError):
        return (place / f"{key}.object").exists()
    return False
