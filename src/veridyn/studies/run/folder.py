"""A run folder: numbered, never written over, and without half-written files."""

from __future__ import annotations

import json
import math
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import EEXIST, ENOTDIR, ENOTEMPTY
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from veridyn.errors import FileError
from veridyn.files.atomic import write_atomic
from veridyn.studies.result import Result

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Run:
    """The folder of one run, `parent`/`name`-001 or the number after the highest one there; `parent` itself without a name.

    It is made when it is first needed, for its first file, by whoever comes first, and shared by nobody: a run that is killed before leaves
    nothing behind. A file that is in it is complete: it is written under another name first and then renamed. With `whole`, so is the
    folder: it is hidden, and gets its number in :meth:`finish`, so that a numbered folder holds all that the run writes.
    """

    parent: Path
    name: str = ""
    whole: bool = False

    @cached_property
    def folder(self) -> Path:
        """The folder; made by the first use."""
        if not self.name:
            return self.parent
        try:
            if self.whole:
                made = self.parent / f".{self.name}-{secrets.token_hex(8)}.part"
                made.mkdir()
                return made
            return self._numbered(Path.mkdir)
        except OSError as error:
            raise _no_folder(self.parent, error) from error

    def finish(self) -> Path:
        """The folder under its number, once all is written; the same again where it has one."""
        here = self.folder
        if here.name.startswith(".") and here.parent == self.parent and self.whole:
            try:
                vars(self)["folder"] = self._numbered(partial(_rename_to_new, here))
            except OSError as error:
                raise _no_folder(self.parent, error) from error
        return self.folder

    def _numbered(self, make: Callable[[Path], object]) -> Path:
        """The first number after the highest one there whose folder can be made: what exists is taken."""
        numbered = re.compile(re.escape(self.name) + r"-(\d+)")
        taken = [int(m[1]) for entry in self.parent.iterdir() if (m := numbered.fullmatch(entry.name))]
        number = max(taken, default=0) + 1
        while True:
            folder = self.parent / f"{self.name}-{number:03d}"
            try:
                make(folder)
            except FileExistsError:
                number += 1
            else:
                return folder

    def write_bytes(self, name: str, content: bytes) -> Path:
        """Write one new file; refused where it exists, and nothing is left behind where writing fails."""
        return write_atomic(self.folder / name, content)

    def write_text(self, name: str, text: str) -> Path:
        return self.write_bytes(name, text.encode("utf-8"))

    def write_json(self, name: str, content: object) -> Path:
        """JSON as every reader takes it: numbers that are not finite become null."""
        return self.write_text(name, json.dumps(finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def write_result(self, result: Result) -> None:
        """`result.json` and `parameters.csv`."""
        self.write_text("parameters.csv", result.parameter_table())
        self.write_json("result.json", result.as_dict())

    def discard(self) -> None:
        """Remove what an unfinished run has written; a folder with a number stays, unless it is empty."""
        if "folder" not in vars(self):
            return
        if self.whole and self.folder.name.startswith("."):
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        with suppress(OSError):
            self.folder.rmdir()


def _rename_to_new(folder: Path, to: Path) -> None:
    """Rename a folder that holds something; FileExistsError where anything has that name, whoever comes first."""
    if to.exists() or to.is_symlink():  # an empty folder would be replaced
        raise FileExistsError(EEXIST, "it exists", str(to))
    try:
        folder.rename(to)
    except OSError as error:
        if error.errno in (EEXIST, ENOTEMPTY, ENOTDIR):
            raise FileExistsError(EEXIST, "it exists", str(to)) from error
        raise


def new_run(out: str | Path, name: str, whole: bool = False) -> Run:
    """A run that will have a folder in `out`; refused at once where none can be made there, since work may take long.

    `whole`: the folder gets its number when the run is finished.
    """
    if not NAME.fullmatch(name):
        raise FileError("a run cannot be called that.", where=f"run '{name}'", expected="letters, digits, . _ and -")
    parent = Path(out)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent)).rmdir()
    except OSError as error:
        raise _no_folder(parent, error) from error
    return Run(parent, name, whole)


def _no_folder(parent: Path, error: OSError) -> FileError:
    return FileError(
        "no run folder can be made there.",
        where=str(parent),
        found=error.strerror or str(error),
        hint="Choose another folder with --out.",
    )


def finite(content: object) -> Any:
    """The same content with NaN and infinities as None, NumPy numbers and arrays as plain ones, tuples as lists."""
    if isinstance(content, Mapping):
        return {str(key): finite(value) for key, value in content.items()}
    if hasattr(content, "tolist"):  # arrays and scalars of NumPy
        return finite(content.tolist())  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Sequence) and not isinstance(content, str):
        return [finite(value) for value in content]
    return content
