"""Which sources machine code is made of, as one digest: what the module that makes it imports, directly or not, without comments.

A compiled kernel is stored under a name that contains this digest, so that code of other sources is never loaded, and that an edit
elsewhere, or of a comment or docstring, recompiles nothing. Imports are read from the text, those within functions included: a kernel that
lies on disk is found without importing what would make it. An import from a package that names none of its modules stands for all of them.

The text of a module without comments is its *meaning*. Reading a file takes microseconds and finding its meaning a millisecond, so that
meanings are kept in the store of objects, by the digest of the file's content.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from veridyn.symbolic.cache import Stored, keep, key_of, load

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
    ("inference",),
    ("mechanics", "signals"),
    ("model",),
    ("symbolic", "spatial"),
    ("arguments",),
    ("settings",),
    ("argument_words",),
    ("arrays", "errors", "lazy", "plain_text", "progress", "version", "wording"),
)
PACKAGE = Path(__file__).resolve().parents[1]
BESIDE = ""  # stands for the modules directly in the package
FORMAT = "meanings 1"
MOST_MEANINGS = 4000  # kept on disk, some 200 bytes each: several versions of every source
Stamps = dict[str, tuple[int, int, int]]

STRING = r"""(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
TOKEN = re.compile(rf"(?P<string>{STRING})|(?P<comment>\#[^\n]*)", re.DOTALL)
HEADER = re.compile(
    r"[ \t]*(?:(?:async +)?def\b|class\b|\))[^\n]*:"
)  # the last line of the head of a function or class
TRAILING_SPACE = re.compile(r"[ \t]+(?=\n)")
BLANK_LINES = re.compile(r"\n{2,}")
IMPORT = re.compile(r"^[ \t]*from +([\w.]+) +import +(\([^)]*\)|[^\n]*)|^[ \t]*import +([\w., ]+)", re.MULTILINE)


class Meaning(NamedTuple):
    """The digest of a module's text without comments and docstrings, and the names that it imports, with their modules."""

    digest: str
    imports: tuple[tuple[str, str], ...]  # (module, name); the name is empty where the module itself is imported


def meaning_of(text: str) -> Meaning:
    """What is left of a source without comments, docstrings and blank lines, and what it imports."""
    parts: list[str] = []
    code, end = "", 0
    for token in TOKEN.finditer(text):
        code += text[end : token.start()]
        end = token.end()
        if token["string"] is not None and not _is_docstring(text, token.start(), end, code or "".join(parts[-1:])):
            parts += [_trimmed(code), token["string"]]
            code = ""
    whole = "".join([*parts, _trimmed(code + text[end:])]).strip()
    return Meaning(hashlib.sha256(whole.encode()).hexdigest(), tuple(_imports(whole)))


def _trimmed(code: str) -> str:
    return BLANK_LINES.sub("\n", TRAILING_SPACE.sub("", code))


def _is_docstring(text: str, start: int, end: int, before: str) -> bool:
    """Whether a string is a statement of its own at the start of a file or behind the head of a function or class."""
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip() or text[end : end + 1] not in ("\n", ""):
        return False
    head = before.rstrip()
    return not head or HEADER.fullmatch(head[head.rfind("\n") + 1 :]) is not None


def _imports(code: str) -> Iterator[tuple[str, str]]:
    for module, names, modules in IMPORT.findall(code):
        if module:
            yield from (
                (module, name.split(" as ")[0].strip()) for name in names.strip("()").split(",") if name.strip()
            )
        else:
            yield from ((name.split(" as ")[0].strip(), "") for name in modules.split(","))


def note_sources(module: str, package: Path = PACKAGE) -> None:
    """Remember the state of all files that `module` can depend on; called while it is imported.

    Times and sizes only, which is quick. :func:`source_digest` reads the files when it is first needed, which may be much later: what was
    edited in between is not what this process runs.
    """
    for room in _rooms_in_reach(module, package):
        _noted(package, room)


def source_digest(module: str, package: Path = PACKAGE) -> str | None:
    """SHA-256 of the names and meanings of all sources that `module` ("veridyn.room. …") is made of.

    None where no digest can stand for the running code: the module is not of this package, its source is not there, or a source that it
    can depend on has changed since :func:`note_sources`.
    """
    note_sources(module, package)
    if not _is_below(module, package) or _source(package, module) is None:
        return None
    if not all(_unchanged(package, room) for room in _rooms_in_reach(module, package)):
        return None
    return _digest(module, package)


@cache
def source_meaning(module: str, package: Path = PACKAGE) -> str:
    """The digest of one module's source alone, without comments and docstrings; empty where it has no source in the package."""
    source = _source(package, module)
    if source is None or not _is_below(module, package):
        return ""
    return _meanings(package).of(source).digest


@cache
def _digest(module: str, package: Path) -> str:
    meanings = _meanings(package)
    digest = hashlib.sha256()
    for name in sorted(_reached(module, package)):
        digest.update(f"{name}\0{meanings.of(name).digest}\0".encode())
    meanings.keep()
    return digest.hexdigest()


def _reached(module: str, package: Path) -> set[str]:
    """Paths of the sources that a module imports, directly or not, its own among them; the package's own front door is none of them."""
    meanings = _meanings(package)
    reached, waiting = set[str](), [_source(package, module)]
    while waiting:
        name = waiting.pop()
        if name is None or name in reached:
            continue
        reached.add(name)
        for imported in meanings.of(name).imports:
            waiting += _named(package, *imported)
    parents = {f"{folder.as_posix()}/__init__.py" for name in reached for folder in list(Path(name).parents)[:-1]}
    return reached | {name for name in parents if (package / name).is_file()}


def _named(package: Path, module: str, name: str) -> list[str | None]:
    """Sources that stand behind ``from module import name``; all those of a package that has no module of this name."""
    if module != package.name and not _is_below(module, package):
        return []
    inner = _source(package, f"{module}.{name}") if name else None
    source = _source(package, module)
    if inner is not None or source is None or not source.endswith("__init__.py") or module == package.name:
        return [inner, source if module != package.name else None]
    return [*sorted(_stamps(package, source.removesuffix("/__init__.py")))]


def _is_below(module: str, package: Path) -> bool:
    return module.startswith(f"{package.name}.")


@cache
def _source(package: Path, module: str) -> str | None:
    """The path of a module's source within the package."""
    place = package.joinpath(*module.split(".")[1:])
    found = next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()), None)
    return None if found is None else found.relative_to(package).as_posix()


class _Meanings:
    """Meanings of a package's sources: from the store of objects where the content is known, found now where it is not."""

    def __init__(self, package: Path) -> None:
        self._package, self._key = package, key_of(FORMAT, package.as_posix())
        stored = load(self._key)
        self._known: dict[str, Meaning] = {} if stored is None else _read(stored.description)
        self._of: dict[str, tuple[str, Meaning]] = {}
        self._new = False

    def of(self, name: str) -> Meaning:
        if name not in self._of:
            content = (self._package / name).read_bytes()
            key = hashlib.sha256(content).hexdigest()
            if key not in self._known:
                self._known[key], self._new = meaning_of(content.decode()), True
            self._of[name] = key, self._known[key]
        return self._of[name][1]

    def keep(self) -> None:
        """Leave what was found for the next process, the newest MOST_MEANINGS of them."""
        if self._new:
            newest = list(self._known.items())[-MOST_MEANINGS:]
            keep(self._key, Stored(b"", {key: [meaning.digest, *meaning.imports] for key, meaning in newest}))
            self._new = False


def _read(description: Mapping[str, Any]) -> dict[str, Meaning]:
    return {key: Meaning(digest, tuple((m, n) for m, n in imports)) for key, (digest, *imports) in description.items()}


@cache
def _meanings(package: Path) -> _Meanings:
    return _Meanings(package)


@cache
def _rooms_in_reach(module: str, package: Path) -> tuple[str, ...]:
    room = module.split(".")[1] if "." in module else ""
    floor = next((k for k, rooms in enumerate(FLOORS) if room in rooms), -1)
    beyond = {name for rooms in FLOORS[: floor + 1] for name in rooms} - {room}
    rooms = sorted(p.name for p in package.iterdir() if p.is_dir() and p.name != "__pycache__")
    return (BESIDE, *(name for name in rooms if name not in beyond))


@cache
def _noted(package: Path, room: str) -> Stamps:
    return _stamps(package, room)


@cache
def _unchanged(package: Path, room: str) -> bool:
    return _stamps(package, room) == _noted(package, room)


def _stamps(package: Path, room: str) -> Stamps:
    """Name → (time of change, size, inode) of each source."""
    found: Stamps = {}
    for folder, folders, files in os.walk(package / room):
        if room == BESIDE:
            folders.clear()
        for name in files:
            if name.endswith(".py"):
                path = Path(folder, name)
                status = path.stat()
                found[path.relative_to(package).as_posix()] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
