"""OpenSim storages (.sto, .mot): a head that ends with 'endheader', a line of names, and rows of numbers."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.errors import Fault, Faults, FileError

Array = NDArray[np.float64]
MOST_FAULTS = 20  # listed of one storage


@checked
def load_storage(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Columns of an OpenSim storage (.sto, .mot) by name, as they stand: angles in degrees where its head says inDegrees=yes."""
    file = Path(path)
    try:
        lines = file.read_bytes().decode("utf-8-sig").splitlines()
    except OSError as error:
        raise FileError(Fault("it cannot be read.", where=str(file), found=error.strerror or str(error))) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found, hint = f"the byte {error.object[error.start]:#04x}", "Save it as UTF-8."
        raise FileError(Fault("it is not text in UTF-8.", str(file), found=found, hint=hint, line=line)) from error
    ends = [k for k, line in enumerate(lines) if line.strip().lower() == "endheader"]
    if not ends or ends[0] + 2 > len(lines):
        raise FileError(
            Fault("it is no OpenSim storage.", where=str(file), expected="a head that ends with 'endheader'")
        )
    names = lines[ends[0] + 1].split()
    rows = [line.split() for line in lines[ends[0] + 2 :] if line.strip()]
    faults, first = Faults(), ends[0] + 3
    for name in [n for n, times in Counter(names).items() if times > 1]:
        faults.add(f"two columns are called '{name}'.", where=str(file), line=first - 1)
    numbered = [first + k for k, line in enumerate(lines[ends[0] + 2 :]) if line.strip()]
    for line, row in zip(numbered, rows, strict=True):
        if len(faults.found) == MOST_FAULTS:
            break
        if len(row) != len(names):
            faults.add(
                "a row has another number of cells than the head.",
                where=str(file),
                expected=f"{len(names)}",
                found=f"{len(row)}",
                line=line,
            )
        elif wrong := [cell for cell in row if not _is_number(cell)]:
            faults.add("a cell is no number.", where=str(file), found=f"'{wrong[0][:40]}'", line=line)
    if not rows:
        faults.add("it holds no samples.", where=str(file), expected="rows of numbers below the names")
    faults.raise_if_any(FileError)
    table = np.array(rows, dtype=np.float64)
    return {name: table[:, k] for k, name in enumerate(names)}


def _is_number(cell: str) -> bool:
    """Whether a cell of a storage is a number; nan marks a sample that is missing."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
