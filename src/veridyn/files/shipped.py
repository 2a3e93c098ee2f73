"""Files that come with veridyn, by name: veridyn:crane.yaml is the crane's mechanism, veridyn:crane.csv a log of it.

So a study or a command works from any folder, whatever the place veridyn is installed in.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from veridyn.errors import DataError, Fault, did_you_mean

PREFIX = "veridyn:"
KINDS = (".yaml", ".csv")


def is_shipped(text: str) -> bool:
    """Whether a path means a file that comes with veridyn."""
    return text.startswith(PREFIX)


def shipped_name(file: Path) -> str:
    """What a file that comes with veridyn is called, veridyn:NAME; nothing for another."""
    return f"{PREFIX}{file.name}" if file.suffix in KINDS and file.resolve().parent == _folder() else ""


def resolved(path: Path) -> Path:
    """A path as it is, or the file that "veridyn:NAME" means."""
    return shipped(str(path)) if is_shipped(str(path)) else path


def _folder() -> Path:
    return Path(str(resources.files("veridyn.machines"))).resolve()


def shipped(text: str) -> Path:
    """The file that "veridyn:NAME" means."""
    folder = _folder()
    names = sorted(file.name for file in folder.iterdir() if file.suffix in KINDS)
    name = text.removeprefix(PREFIX)
    if name not in names:
        raise DataError(
            Fault(f"veridyn brings no file '{name}'.", expected="one of its own", hint=did_you_mean(name, names))
        )
    return folder / name
