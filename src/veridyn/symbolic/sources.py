"""The sources that compiled code can depend on, and their digest, so that code of other sources is never found.

Imports go down the floors only, and rooms on one floor never import each other. What stands in a room depends on that room, on the rooms
of lower floors, and on the modules beside the rooms. A room that has no floor here is taken to be reached by all.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

# From the top: the layers of pyproject.toml, which an installed package does not have.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("dynamics", "elements", "estimators", "filters", "gpu", "manoeuvres"),
    ("cli",),
    ("live",),
    ("papers",),
    ("report",),
    ("view",),
    ("studies",),
    ("machines",),
    ("files",),
    ("identify", "observe", "simulate"),
    ("mechanics", "signals"),
    ("model",),
    ("symbolic", "spatial"),
    ("arguments",),
    ("settings",),
    ("argument_words",),
    ("arrays", "errors", "lazy", "progress", "threads", "version"),
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
