"""A run folder: numbered, never written over, and without half-written files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veridyn.errors import Fault, FileError
from veridyn.files.atomic import write_atomic
from veridyn.studies.result import Result

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Run:
    """The folder of one run. A file that is in it is complete: it is written under another name first and then renamed."""

    folder: Path

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

    def discard_if_empty(self) -> None:
        """Remove the folder of a run that came to nothing; files in it keep it."""
        with suppress(OSError):
            self.folder.rmdir()


def new_run(out: str | Path, name: str) -> Run:
    """A new folder `out`/`name`-001, or the number after the highest one there; made by whoever comes first, shared by nobody."""
    if not NAME.fullmatch(name):
        raise FileError(
            Fault("a run cannot be called that.", where=f"run '{name}'", expected="letters, digits, . _ and -")
        )
    parent = Path(out)
    numbered = re.compile(re.escape(name) + r"-(\d+)")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        taken = [int(m[1]) for entry in parent.iterdir() if (m := numbered.fullmatch(entry.name))]
        number = max(taken, default=0) + 1
        while True:
            folder = parent / f"{name}-{number:03d}"
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
            else:
                return Run(folder)
    except OSError as error:
        raise FileError(
            Fault(
                "no run folder can be made there.",
                where=str(parent),
                found=error.strerror or str(error),
                hint="Choose another folder with --out.",
            )
        ) from error


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
