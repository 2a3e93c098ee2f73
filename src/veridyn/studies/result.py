"""What a run found, in the one form that programs may rely on, `result.json` and `parameters.csv`, and the folder that it is kept in.

A run folder is numbered, never written over, and without half-written files. The versions of libraries are recorded with it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import platform
import re
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from errno import EEXIST, ENOTDIR, ENOTEMPTY
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import FileError, VeridynWarning
from veridyn.files.access import write_atomic
from veridyn.inference.parameter_row import NAN, ParameterRow
from veridyn.inference.parameter_row import parameter_row as parameter_row
from veridyn.inference.parameter_row import parameter_rows as parameter_rows
from veridyn.inference.verdict import Grade, Verdict
from veridyn.model.experiment import Experiment
from veridyn.plain_text import harmless_cell
from veridyn.version import __version__

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "pyarrow", "cvxpy", "clarabel")
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Result:
    """The content of `result.json`.

    In `figures`, names that end in `_percent` are percent and unsigned, of prediction errors ‖r‖/‖y‖; `_std_percent` is rms(r)/std(y);
    `share_…` is a fraction, yes and no are 1 and 0, all else is SI. `inputs`: what went in → its SHA-256. `validation`: row → samples, rms,
    measured_rms, error_percent and more on the validation data. `findings`: what the diagnosis names, by rank: cause, place, evidence
    (2 Δ log L), rank, size and sigma, the parameter that it moves most and by how many deviations, what cannot be separated from it, the
    recording that would decide, and the remedy. `verdict`: grade, headline, reasons, and what the result may and may not be used for.
    """

    study: str
    seed: int | None
    quick: bool
    inputs: Mapping[str, str]
    figures: Mapping[str, float]
    parameters: tuple[ParameterRow, ...]
    validation: Mapping[str, Mapping[str, float]]
    warnings: tuple[str, ...] = ()
    veridyn: str = __version__
    findings: tuple[Mapping[str, Any], ...] = ()
    verdict: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, object]:
        own = asdict(self)
        return {"veridyn": own.pop("veridyn"), **own}

    def parameter_table(self) -> str:
        """The parameters as CSV; a cell is empty where there is no finite number."""
        columns = [f.name for f in fields(ParameterRow)]
        return csv_text(columns, ([_cell(getattr(row, column)) for column in columns] for row in self.parameters))


def csv_text(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table as CSV: its head, and one line for each row; no cell is a formula."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow([harmless_cell(cell) for cell in head])
    out.writerows([harmless_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return repr(float(value)) if math.isfinite(value) else ""


def fingerprint(content: bytes | str | Path | Experiment) -> str:
    """SHA-256 of bytes, of a text, of a file, which need not fit the memory, or of everything measured in an experiment.

    Of a folder, such as a bag: of the names and hashes of its files.
    """
    if isinstance(content, Path):
        if content.is_dir():
            files = sorted(f for f in content.iterdir() if f.is_file())
            return fingerprint("".join(f"{f.name}\0{fingerprint(f)}\0" for f in files))
        with content.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    digest = hashlib.sha256()
    if isinstance(content, str):
        digest.update(content.encode("utf-8"))
    elif isinstance(content, bytes):
        digest.update(content)
    else:
        for channel in content.channels.values():
            digest.update(f"{channel.name}\0{channel.unit}\0{len(channel)}\0".encode())
            # Little-endian doubles, so that the same log has the same hash on every machine.
            digest.update(channel.t.astype("<f8").tobytes())
            digest.update(channel.values.astype("<f8").tobytes())
    return digest.hexdigest()


@contextmanager
def collected_warnings(into: list[str] | None = None) -> Iterator[list[str]]:
    """A list (`into`, or a new one) that gets, at the end, the texts of veridyn's warnings raised meanwhile; others are shown as ever."""
    texts: list[str] = [] if into is None else into
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VeridynWarning)
        try:
            yield texts
        finally:
            own = [w for w in caught if issubclass(w.category, VeridynWarning)]
            others = [w for w in caught if not issubclass(w.category, VeridynWarning)]
            texts.extend(dict.fromkeys(str(w.message) for w in own))
    for w in others:
        warnings.showwarning(w.message, w.category, w.filename, w.lineno, w.file, w.line)


def versions() -> dict[str, str]:
    """Name → version; libraries that are not installed are left out."""
    found = {"veridyn": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


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
                made = self.parent / f".{self.name}-{_own_mark()}-{secrets.token_hex(8)}.part"
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
    if not RUN_NAME.fullmatch(name):
        raise FileError("a run cannot be called that.", where=f"run '{name}'", expected="letters, digits, . _ and -")
    parent = Path(out)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent)).rmdir()
    except OSError as error:
        raise _no_folder(parent, error) from error
    _remove_left_behind(parent, name)
    return Run(parent, name, whole)


def _own_mark() -> str:
    """This computer and this process, in the name of a hidden folder."""
    return f"{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}.{os.getpid()}"


def _remove_left_behind(parent: Path, name: str) -> None:
    """Remove the hidden folders of runs of this name that were killed: those of processes of this computer that are no more."""
    hidden = re.compile(re.escape(f".{name}-{_own_mark().partition('.')[0]}.") + r"(\d+)-[0-9a-f]{16}\.part")
    for entry in parent.iterdir():
        mark = hidden.fullmatch(entry.name)
        if mark is not None and entry.is_dir() and not entry.is_symlink() and not _is_alive(int(mark[1])):
            shutil.rmtree(entry, ignore_errors=True)


def _is_alive(process: int) -> bool:
    """Whether there is a process of that number; taken for granted where asking would end it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _no_folder(parent: Path, error: OSError) -> FileError:
    what = "no run folder can be made there."
    hint = "Choose another folder with --out."
    return FileError(what, where=str(parent), found=error.strerror or str(error), hint=hint)


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


def limits_missed(accept: Mapping[str, tuple[float, float]], figures: Mapping[str, float]) -> tuple[str, ...]:
    """Sentences about figures beyond the limits of a study."""
    out = []
    for name, (low, high) in accept.items():
        value = figures.get(name, NAN)
        if not low <= value <= high:
            shown = f"{value:.6g}" if name in figures else "no such figure"
            out.append(f"{name}: {shown}, and {low:g} to {high:g} is accepted (accept.{name}).")
    return tuple(out)


def grade_missed(verdict: Verdict, limit: Grade | None) -> tuple[str, ...]:
    """A sentence where the verdict is worse than a study accepts."""
    if limit is None or verdict.at_least(limit):
        return ()
    return (f"verdict: {verdict.grade}, and at least {limit} is accepted (accept.verdict).",)


def rms_of(x: Array) -> float:
    """√(Σ x²/N); NaN of nothing."""
    return float(np.sqrt(np.mean(x**2))) if len(x) else NAN
