"""Compiled objects kept on disk, so that a machine is compiled once and loaded ever after, but never code of other sources.

One file for each key, written under a temporary name and renamed, so that two processes never see half a file. Each file carries a digest,
which shows damage, and a tag under the user's own key, which shows forgery: what has not the right tag is not looked into, and is made
again. A shared cache that the user names is looked at first and never written; there the owner of the files stands for the tag.
With :mod:`veridyn.symbolic.trust` the only place below the fifth floor that touches files.

A key has the digest of the sources that the code can depend on. Imports go down the floors only, and rooms on one floor never import each
other: what stands in a room depends on that room, on the rooms of lower floors, and on the modules beside the rooms. A room that has no
floor here is taken to be reached by all.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from veridyn.symbolic.trust import (
    digest,
    home,
    is_below_missing_home,
    is_own_folder,
    is_shared_folder,
    read_shared,
    refuse_without_home,
    tag,
    user_folder,
    user_key,
)

MAGIC = b"veridyn object 2\n"
DIGEST_BYTES = 32  # of the digest, and of the tag behind it
VARIABLE = "VERIDYN_CACHE"  # a folder, or "off"
SHARED_VARIABLE = "VERIDYN_SHARED_CACHE"  # a folder
NOT_KEPT = "compiled code is not kept in this folder."
ABANDONED = 3600.0  # seconds after which a file under its temporary name belongs to nobody
LIMIT = 512 * 2**20  # bytes the folder may hold before the oldest files go
LOOK_AGAIN = 16 * 2**20  # bytes after which a process that writes looks at the whole folder again


@dataclass(frozen=True)
class Stored:
    """What a file holds: machine code, and a description of how to call it."""

    code: bytes
    description: Mapping[str, Any]


def folder() -> Path | None:
    """Where objects are kept: $VERIDYN_CACHE, else the platform's place for caches; None where it is "off" or the user has no home."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() == "off":
        return None
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = user_folder("LOCALAPPDATA", "AppData", "Local")
        place = None if base is None else base / "veridyn" / "objects"
    elif sys.platform == "darwin":
        own = home()
        place = None if own is None else own / "Library" / "Caches" / "veridyn"
    else:
        base = user_folder("XDG_CACHE_HOME", ".cache")
        place = None if base is None else base / "veridyn"
    if place is None:
        refuse_without_home()
    return place


def shared_folder() -> Path | None:
    """The cache of $VERIDYN_SHARED_CACHE, which others fill and this process only reads; None without one that may be trusted."""
    chosen = os.environ.get(SHARED_VARIABLE, "")
    return Path(chosen) if chosen and is_shared_folder(Path(chosen)) else None


def key_of(*parts: str) -> str:
    """A name for a file from everything its content depends on."""
    digested = hashlib.sha256()
    for part in parts:
        digested.update(part.encode())
        digested.update(b"\0")
    return digested.hexdigest()


def load_or_make(key: str, make: Callable[[], Stored]) -> Stored:
    """The object of this key, from disk where it may be trusted, else made and kept. A disk that refuses costs time, not the result."""
    found = load(key)
    if found is None:
        found = make()
        keep(key, found)
    return found


def load(key: str) -> Stored | None:
    """The object of this key from the shared cache or from the user's own; None where there is none that may be trusted."""
    name = f"{key}.object"
    shared = shared_folder()
    if shared is not None:
        given, _, body = _parts(read_shared(shared / name) or b"")
        if given == digest(_label(name), body):
            return _unpacked(body)
    own = _own()
    if own is None:
        return None
    place, secret = own
    try:
        data = (place / name).read_bytes()
    except OSError:
        return None
    _, given, body = _parts(data)
    if not hmac.compare_digest(given, tag(secret, _label(name), body)):
        with suppress(OSError):
            (place / name).unlink()
        return None
    return _unpacked(body)


def keep(key: str, stored: Stored) -> None:
    """Write the object of this key into the user's own cache, where there is one."""
    own = _own(create=True)
    if own is None:
        return
    place, secret = own
    name = f"{key}.object"
    data = _packed(secret, name, stored)
    with suppress(OSError):
        handle, temporary = tempfile.mkstemp(dir=place, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).replace(place / name)
        except OSError:
            with suppress(OSError):
                Path(temporary).unlink()
        _bound(place, len(data))


def _own(create: bool = False) -> tuple[Path, bytes] | None:
    """The user's cache and key; None where either cannot be trusted."""
    place = folder()
    if place is not None and is_below_missing_home(place):
        refuse_without_home()
        return None
    if place is None or not is_own_folder(place, what=NOT_KEPT, create=create):
        return None
    secret = user_key()
    return None if secret is None else (place, secret)


def _packed(secret: bytes, name: str, stored: Stored) -> bytes:
    head = json.dumps(stored.description, separators=(",", ":")).encode()
    body = len(head).to_bytes(8, "little") + head + stored.code
    return MAGIC + digest(_label(name), body) + tag(secret, _label(name), body) + body


def _label(name: str) -> str:
    """What digest and tag cover besides the body: a file of another format or name is not taken for this one."""
    return MAGIC.decode() + name


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Digest, tag and body; all empty in a file of another kind."""
    if not data.startswith(MAGIC):
        return b"", b"", b""
    first, second = len(MAGIC) + DIGEST_BYTES, len(MAGIC) + 2 * DIGEST_BYTES
    return data[len(MAGIC) : first], data[first:second], data[second:]


def _unpacked(body: bytes) -> Stored:
    size = int.from_bytes(body[:8], "little")
    return Stored(body[8 + size :], json.loads(body[8 : 8 + size]))


_written: dict[Path, int] = {}


def _bound(place: Path, size: int) -> None:
    """Thin the folder after a process's first file and then after every LOOK_AGAIN bytes; `size` are those just written.

    Looking at all files takes longer than writing one.
    """
    written = _written.get(place)
    if written is not None and written + size <= LOOK_AGAIN:
        _written[place] = written + size
        return
    _written[place] = 0
    _thin(place)


def _thin(place: Path) -> None:
    """Drop the files unused for longest while the folder is over its limit."""
    files = []
    with os.scandir(place) as found:
        for p in found:
            with suppress(OSError):
                if p.name.endswith(".object"):
                    status = p.stat()
                    files.append((status.st_atime, status.st_size, p.path))
                elif p.name.endswith(".part") and time.time() - p.stat().st_mtime > ABANDONED:
                    Path(p.path).unlink()  # a process was killed while it wrote this
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT:
            break
        with suppress(OSError):
            Path(path).unlink()
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
    if key in _memory:
        return True
    own = _own()
    places = [shared_folder(), None if own is None else own[0]]
    with suppress(OSError):
        return any((place / f"{key}.object").exists() for place in places if place is not None)
    return False


# From the top: the layers of pyproject.toml, which an installed package does not have.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("dynamics", "elements", "estimators", "filters", "gpu", "jax", "manoeuvres", "torch"),
    ("cli",),
    ("live",),
    ("papers",),
    ("report",),
    ("view",),
    ("studies",),
    ("machines",),
    ("files",),
    ("identify", "observe", "simulate", "training"),
    ("mechanics", "signals"),
    ("model",),
    ("symbolic", "spatial"),
    ("arguments",),
    ("settings",),
    ("argument_words",),
    ("arrays", "errors", "lazy", "progress", "version"),
)
PACKAGE = Path(__file__).resolve().parents[1]
BESIDE = ""  # stands for the modules directly in the package
Stamps = dict[str, tuple[int, int, int]]


def note_sources(module: str, package: Path = PACKAGE) -> None:
    """Remember the state of all files that `module` can depend on; called while it is imported.

    Times and sizes only, which is quick. :func:`source_digest` reads the files when it is first needed, which may be much later: what was
    edited in between is not what this process runs.
    """
    for part in _parts_in_reach(module, package):
        _noted(package, part)


def source_digest(module: str, package: Path = PACKAGE) -> str | None:
    """SHA-256 of the names and contents of all sources that `module` ("veridyn.room. …") can depend on.

    None where no digest can stand for the running code: the module is not of this package, its source is not there, or a source has
    changed since :func:`note_sources`.
    """
    note_sources(module, package)
    own = module.split(".")[1:]
    if module.split(".")[0] != package.name or not _is_source(package.joinpath(*own)):
        return None
    digest = hashlib.sha256()
    for part in _parts_in_reach(module, package):
        found = _digest(package, part)
        if found is None:
            return None
        digest.update(part.encode() + b"\0" + found)
    return digest.hexdigest()


def _is_source(place: Path) -> bool:
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


@cache
def _parts_in_reach(module: str, package: Path) -> tuple[str, ...]:
    room = module.split(".")[1] if "." in module else ""
    floor = next((k for k, rooms in enumerate(FLOORS) if room in rooms), -1)
    beyond = {name for rooms in FLOORS[: floor + 1] for name in rooms} - {room}
    rooms = sorted(p.name for p in package.iterdir() if p.is_dir() and p.name != "__pycache__")
    return (BESIDE, *(name for name in rooms if name not in beyond))


@cache
def _noted(package: Path, part: str) -> Stamps:
    return _stamps(package, part)


@cache
def _digest(package: Path, part: str) -> bytes | None:
    """Digest of one room, or of the modules beside the rooms; None where they are not as noted."""
    digest = hashlib.sha256()
    for name in sorted(_noted(package, part)):
        try:
            content = (package / name).read_bytes()
        except OSError:
            return None
        digest.update(name.encode() + b"\0" + len(content).to_bytes(8, "little") + content)
    # After reading, so that nothing changes between the look and the read.
    same = _stamps(package, part) == _noted(package, part)
    return digest.digest() if same else None


def _stamps(package: Path, part: str) -> Stamps:
    """Name → (time of change, size, inode) of each source."""
    found: Stamps = {}
    for folder, folders, files in os.walk(package / part):
        if part == BESIDE:
            folders.clear()
        for name in files:
            if name.endswith(".py"):
                path = Path(folder, name)
                status = path.stat()
                found[path.relative_to(package).as_posix()] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
