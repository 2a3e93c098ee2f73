"""The identified machine of a run: what ``model: {fit: runs/x-001}`` of a study file means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veridyn.errors import FileError, IdentificationError
from veridyn.files.archive import load
from veridyn.files.yaml_plain import Place
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.studies.config.study import Loaded

FIT = "fit.json"


def fit_file(loaded: Loaded[Any], at: Place, text: str) -> Path:
    """The file of the fit that a run folder holds; `text` is the folder, or the file itself."""
    path = loaded.path(text, at)
    file = path / FIT if path.is_dir() else path
    if not path.exists():
        runs = sorted(p.parent.name for p in path.parent.glob(f"*/{FIT}")) if path.parent.is_dir() else []
        hint = f"Runs with a fit there: {', '.join(runs[:8])}." if runs else "It is looked for beside the study."
        raise loaded.error(loaded.fault(at, "there is no such run.", "the folder of a run", str(path), hint))
    if not file.is_file():
        fault = loaded.fault(
            at,
            "this run has no fit.",
            f"a folder with {FIT}, as veridyn identify writes it",
            str(path),
            "Name the run of an identification.",
        )
        raise loaded.error(fault)
    return file


def loaded_fit(loaded: Loaded[Any], at: Place, text: str) -> Fit:
    """The fit that a run folder holds, or the file itself."""
    file = fit_file(loaded, at, text)
    try:
        found = load(file)
    except FileError as error:
        faults = [
            loaded.fault(at, f"the fit cannot be read: {f.what}", f.expected, f.found, f.hint) for f in error.faults
        ]
        raise loaded.error(faults) from error
    if not isinstance(found, Fit):
        raise loaded.error(loaded.fault(at, "this file holds no fit.", "a fit", type(found).__name__))
    return found


def fitted_machine(loaded: Loaded[Any], at: Place, text: str, unexcited: float | None) -> Machine:
    """The machine with the identified values and their covariance, refused by name where the fit is not fit to be used.

    `unexcited`: see :meth:`veridyn.identify.result.Fit.machine`.
    """
    try:
        return loaded_fit(loaded, at, text).machine(unexcited=unexcited)
    except IdentificationError as error:
        faults = []
        for f in error.faults:
            hint = f.hint
            if "unexcited=" in hint:
                hint = "Excite them, identify with a prior, or write unexcited: 0.3, which takes 30 % of their typical sizes."
            faults.append(loaded.fault(at, f.what, f.expected, f.found, hint))
        raise loaded.error(faults) from error
