"""Files that come with veridyn, by name: veridyn:crane.yaml is the crane's mechanism, veridyn:crane.csv a log of it.

So a study or a command works from any folder, whatever the place veridyn is installed in. The packages that bring such files are named
here, and found without importing their code; a file's name is unique among them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from veridyn.errors import DataError, did_you_mean

PREFIX = "veridyn:"
KINDS = (".yaml", ".csv")
PACKAGES = ("veridyn.machines", "veridyn.papers")


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
    folders = [Path(str(resources.files(package))).resolve() for package in PACKAGES]
    found = (f for folder in folders for f in (*folder.glob("*.*"), *folder.glob("*/*.*")) if f.suffix in KINDS)
    return {f.name: f for f in sorted(found)}


def shipped(text: str) -> Path:
    """The file that "veridyn:NAME" means."""
    name, files = text.removeprefix(PREFIX), shipped_files()
    if name not in files:
        hint = did_you_mean(name, sorted(files))
        raise DataError(f"veridyn brings no file '{name}'.", expected="one of its own", hint=hint)
    return files[name]
