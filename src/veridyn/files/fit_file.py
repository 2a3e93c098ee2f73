"""The files of a fit as they are read: every key known and of its type, arrays that belong to it, and covariances that are some.

The fit of a car in formulation single_track adds the noise that it goes with, and the search that its values come from; a fit of drives
every number of the drives, what stays open, and encoders measured and simulated, so that a loaded fit has the replay of its own log.
:mod:`veridyn.files.archive` writes the files.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from veridyn.arrays import Array
from veridyn.errors import Fault, Faults, FileError, ModelError, did_you_mean
from veridyn.files.access import read_arrays
from veridyn.files.machine.load import parse_machine
from veridyn.identify.result import Feasibility, HeldOutRows
from veridyn.inference.error_measures import RowReport
from veridyn.inference.finding import FoundCause
from veridyn.model.machine import Machine
from veridyn.version import __version__

FORMAT = 1
# Arrays that only some estimators have.
OPTIONAL = (
    *("standard_values", "standard_covariance", "prior_share", "position_bias", "cutoff_change", "posterior_mean"),
)
COVARIANCE_ROUNDING = 1e-6  # of correlations: asymmetry and negative eigenvalues that rounding may leave
DRIVE_ARRAYS = ("drive_times", "drive_measured", "drive_simulated", "drive_simulated_defaults")
# What every file has of these records, though they could do without it: what was cut out of a file is not unknown.
WRITTEN = {
    "rows": ("sigma",),
    "feasibility": ("bound", "broken"),
    "findings": (
        "rank",
        "evidence",
        "size",
        "sigma",
        "moves",
        "shift",
        "alternatives",
        "recording",
        "remedy",
        "message",
    ),
}
SEARCH_COVARIANCE = "search_covariance"  # the array of the search's own covariance, tuned noises included


class Strict(BaseModel):
    """Every key is known and has its type."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ArraysFile(Strict):
    """The file beside this one."""

    file: str
    sha256: str


class ReplayFile(Strict):
    """A :class:`ReplaySettings` without a law, which is a program."""

    horizon: float = Field(gt=0.0)
    hold: Literal["linear", "zero"]
    friction_speed: float = Field(ge=0.0)
    substeps: int = Field(ge=1)
    outputs: list[str]


class FitFile(Strict):
    """A :class:`Fit`; numbers that are not finite are the texts "nan", "inf" and "-inf"."""

    veridyn: str
    format: int
    kind: Literal["fit"]
    estimator: str
    residual_sigma: float
    condition: float
    condition_scaled: float
    accept_percent: float
    accept_sigmas: float
    names: list[str]
    units: list[str]
    values: list[float]
    rows: list[RowReport]
    notes: list[str]
    removed: list[str]
    gap: float
    source: str
    feasibility: Feasibility | None = None
    constants: list[str] = []
    known: list[str] = []
    described: bool = True  # of files of older versions; a fit always has the machine as it was described
    replay: ReplayFile | None = None
    findings: list[FoundCause] = []
    disagreement: str = ""
    unseen: HeldOutRows | None = None
    car: CarFile | None = None  # of a car of a few numbers
    drives: DrivesPart | None = None  # of drives from commands and encoders
    arrays: ArraysFile
    model: str

    @field_validator(*WRITTEN, mode="before")
    @classmethod
    def _as_written(cls, value: Any, info: ValidationInfo) -> Any:
        for part in value if isinstance(value, list) else [value]:
            for key in WRITTEN[info.field_name or ""] if isinstance(part, dict) else ():
                if key not in part:
                    raise PydanticCustomError("missing", "'{key}' is missing", {"key": key})
        return value


def parsed_fit(file: Path) -> FitFile:
    try:
        content = json.loads(file.read_bytes().decode("utf-8"))
    except FileNotFoundError as error:
        beside = sorted(p.name for p in file.parent.glob("*.json")) if file.parent.is_dir() else []
        raise FileError("there is no such file.", hint=did_you_mean(file.name, beside), source=str(file)) from error
    except OSError as error:
        raise FileError(f"it cannot be read: {error.strerror or error}.", source=str(file)) from error
    except json.JSONDecodeError as error:
        what, hint = "it is not JSON, or its end is missing.", "Save the fit again."
        raise FileError(Fault(what, "", "", error.msg, hint, error.lineno), file.name) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise FileError("it is not a saved result.", expected="JSON text in UTF-8", source=file.name) from error
    if not isinstance(content, dict) or "format" not in content or "kind" not in content:
        fault = Fault("it is JSON, but not a saved result.", expected="the keys 'format' and 'kind'")
        raise FileError(fault, file.name)
    if content["format"] != FORMAT or content["kind"] != "fit":
        what = "it holds something that this version cannot load."
        found = f"format {content['format']}, kind '{content['kind']}'"
        hint = f"It was written by veridyn {content.get('veridyn', 'of an unknown version')}; this is {__version__}."
        raise FileError(Fault(what, "", f"format {FORMAT}, kind 'fit'", found, hint), file.name)
    try:
        return FitFile.model_validate(content)
    except ValidationError as error:
        faults = [
            Fault(f"{e['msg']}.", ".".join(map(str, e["loc"])), found=repr(e["input"])[:60]) for e in error.errors()
        ]
        raise FileError(faults, file.name) from error


def arrays_beside(file: Path, named: ArraysFile) -> dict[str, NDArray[Any]]:
    source = f"{file.name}, arrays"
    if Path(named.file).name != named.file or not named.file:
        raise FileError("its arrays lie elsewhere.", expected="a file beside it", found=named.file, source=source)
    beside = file.with_name(named.file)
    try:
        data = beside.read_bytes()
    except OSError as error:
        hint = "Keep both files together, under the names they were saved with."
        raise FileError(
            f"'{beside.name}' cannot be read: {error.strerror or error}.", hint=hint, source=source
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != named.sha256:
        what = f"'{beside.name}' is not the file that was saved with it."
        hint = "It was changed, cut off, or belongs to another result. Save the fit again."
        fault = Fault(what, "", f"SHA-256 {named.sha256[:16]}…", f"{found[:16]}… ({len(data)} bytes)", hint)
        raise FileError(fault, source)
    arrays: dict[str, NDArray[Any]] = {}
    faults = Faults()
    for name, value in read_arrays(io.BytesIO(data), f"{source}, '{beside.name}'").items():
        if isinstance(value, Fault):
            faults.extend([replace(value, where=f"array '{name}'")])
        else:
            arrays[name] = value
    faults.raise_if_any(FileError, f"{source}, '{beside.name}'")
    return arrays


def check_fit(file: Path, content: FitFile, arrays: dict[str, NDArray[Any]], machine: Machine) -> None:
    faults = Faults()
    count, size = len(content.values), len(machine.parameters)
    shapes: dict[str, tuple[tuple[int, ...], type]] = {
        "covariance": ((count, count), np.float64),
        "matrix": ((count, size), np.float64),
        "columns": ((count,), np.int64),
        "singular_values": ((-1,), np.float64),
        "dead": ((-1,), np.int64),
    }
    optional = {"standard_values": (size,), "standard_covariance": (size, size), "prior_share": (size,)}
    optional |= {"position_bias": (count,), "cutoff_change": (count,), "posterior_mean": (size,)}
    shapes |= {name: (shape, np.float64) for name, shape in optional.items() if name in arrays}
    if content.known:
        k = len(content.known)
        shapes |= {"known_covariance": ((k, k), np.float64), "known_sensitivity": ((count, k), np.float64)}
    known = [c.name for c in machine.constants]
    for name in content.constants:
        if name not in known:
            faults.add(f"'{name}' is no constant of the model.", where="constants", hint=did_you_mean(name, known))
    if content.constants:
        shapes["constants"] = ((len(content.constants), count + len(content.constants)), np.float64)
    for name, (shape, kind) in shapes.items():
        array = arrays.get(name)
        wanted = f"{np.dtype(kind)} ({', '.join('any' if s < 0 else str(s) for s in shape)})"
        if array is None:
            faults.add(f"there is no array '{name}'.", expected=wanted, hint=did_you_mean(name, list(arrays)))
        elif (
            array.dtype != kind or array.ndim != len(shape) or any(s not in (-1, n) for s, n in zip(shape, array.shape))
        ):
            faults.add(f"array '{name}' does not fit.", expected=wanted, found=f"{array.dtype} {array.shape}")
        elif kind is np.int64 and array.size and not (array.min() >= 0 and array.max() < size):
            faults.add(f"array '{name}' names parameters that do not exist.", expected=f"0 to {size - 1}")
    if content.car is not None:
        faults.extend(check_car_file(content.car, content.names, [s.name for s in machine.sensors], arrays).found)
    if content.drives is not None:
        faults.extend(check_drives_part(content.drives, content.names, arrays).found)
    if not faults:
        _check_covariances(content, arrays, faults)
    for key, named in (("names", content.names), ("units", content.units)):
        if len(named) != count:
            faults.add(f"'{key}' does not fit the values.", expected=f"{count}", found=f"{len(named)}")
    unknown = [n for n in content.removed if n not in machine.parameters.names]
    if unknown:
        hint = did_you_mean(unknown[0], machine.parameters.names)
        faults.add(f"'{unknown[0]}' is removed, but is no parameter of the model.", where="removed", hint=hint)
    faults.raise_if_any(FileError, file.name)


def _check_covariances(content: FitFile, arrays: dict[str, NDArray[Any]], faults: Faults) -> None:
    """Refuse what no estimator writes: a variance below zero, or a matrix that is no covariance of anything."""
    wide = arrays["covariance"]
    if content.constants:
        part, count = arrays["constants"], len(wide)
        wide = np.block([[wide, part[:, :count].T], [part[:, :count], part[:, count:]]])
    for name, C in (("covariance", wide), ("standard_covariance", arrays.get("standard_covariance"))):
        what = "" if C is None else _covariance_fault(C)
        if what:
            hint = "The file was changed, or written by something else. Save the fit again."
            expected = "a symmetric matrix without negative variances or eigenvalues"
            faults.add(f"array '{name}' is no covariance.", expected=expected, found=what, hint=hint)


def _covariance_fault(C: Array) -> str:
    """Why a matrix is no covariance, "" where it is one; parameters whose variance is infinite or unknown (NaN) are left out."""
    known = np.isfinite(C.diagonal())
    C = C[np.ix_(known, known)]
    variances = C.diagonal()
    if not len(C):
        return ""
    if variances.min() < 0.0:
        return f"the variance {variances.min():.4g}"
    if not np.isfinite(C).all():
        return "covariances that are not finite"
    sigma = np.sqrt(variances)
    # In units of the deviations, so that one large parameter does not hide another.
    scale = np.where(sigma > 0.0, sigma, 1.0)
    correlation = C / scale[:, None] / scale
    if np.abs(correlation - correlation.T).max() > COVARIANCE_ROUNDING:
        return "a matrix that is not symmetric"
    least = float(np.linalg.eigvalsh(correlation)[0])
    return f"correlations with the eigenvalue {least:.4g}" if least < -COVARIANCE_ROUNDING else ""


class NoiseFile(Strict):
    """A :class:`CarNoise`."""

    slip_error: float = Field(gt=0.0)
    bank: float = Field(gt=0.0)
    lateral: float = Field(gt=0.0)
    yaw: float = Field(gt=0.0)
    walk: dict[str, float] = {}


class FoundFile(Strict):
    """A parameter, or a noise that was tuned: what was found, its deviation, and what was known of it before."""

    value: float
    sigma: float
    prior: float
    prior_sigma: float
    lower: float
    upper: float
    positive: bool


class CarFile(Strict):
    """What a :class:`CarFit` has beside a fit."""

    noise: NoiseFile
    found: dict[str, FoundFile]
    log_likelihood: float
    evaluations: int
    converged: bool
    uninformed: list[str]
    at_bound: dict[str, float]
    largest: float


def check_car_file(
    car: CarFile, names: list[str], sensors: list[str], arrays: dict[str, NDArray[np.generic]]
) -> Faults:
    """Faults of the part: a search that does not belong to the values, or a covariance that does not belong to the search."""
    faults, size = Faults(), len(car.found)
    missing = [name for name in names if name not in car.found]
    if missing:
        faults.add(f"nothing is found of '{missing[0]}', which the fit has.", where="car, found")
    odd = [
        n for n in car.found if n not in names and n.removeprefix("noise.") not in (*NoiseFile.model_fields, *sensors)
    ]
    if odd:
        faults.add(f"'{odd[0]}' is neither a value of the fit nor a noise.", where="car, found")
    array = arrays.get(SEARCH_COVARIANCE)
    if array is None or array.dtype != np.float64 or array.shape != (size, size):
        shown = "none" if array is None else f"{array.dtype} {array.shape}"
        faults.add(f"array '{SEARCH_COVARIANCE}' does not fit.", expected=f"float64 ({size}, {size})", found=shown)
    return faults


class DriveNumberFile(Strict):
    """A :class:`DriveEstimate`."""

    name: str
    key: str
    joints: list[str]
    unit: str
    value: float
    sigma: float
    prior: float
    prior_sigma: float
    left: float
    assumed: bool


class OpenFile(Strict):
    """An :class:`OpenDirection`."""

    names: list[str]
    left: float
    text: str


class RungFile(Strict):
    """A :class:`Rung`."""

    joint: str
    term: str
    decrease: float
    needed: float
    kept: bool


class DrivesPart(Strict):
    """What a :class:`DrivesFit` has beside a fit; `started`: the machine before, as the text of a model file."""

    numbers: list[DriveNumberFile]
    open: list[OpenFile]
    terms: list[RungFile]
    started: str
    between: Literal["hold", "linear"]
    until: float
    widening: float
    log: str
    joints: list[str]
    further: list[str] = []  # logs after the first
    chance: float = 0.0


def drive_arrays(part: DrivesPart) -> list[tuple[str, ...]]:
    """The names of the arrays of each log."""
    return [
        tuple(f"{name}{'' if k == 1 else f'_{k}'}" for name in DRIVE_ARRAYS) for k in range(1, len(part.further) + 2)
    ]


def check_drives_part(part: DrivesPart, names: list[str], arrays: Mapping[str, NDArray[Any]]) -> Faults:
    """Faults of the part: numbers of the fit that it lacks, a machine that cannot be read, and arrays that are not of its joints."""
    faults, own = Faults(), {d.name for d in part.numbers}
    missing = [n for n in names if n not in own]
    if missing:
        faults.add(f"nothing is said of '{missing[0]}', which the fit has.", where="drives, numbers")
    try:
        coordinates = parse_machine(part.started, source="the machine before the fit").coordinates
    except ModelError as error:
        faults.extend(error.faults)
        return faults
    odd = [j for j in (*part.joints, *(j for d in part.numbers for j in d.joints)) if j not in coordinates]
    if odd:
        faults.add(f"'{odd[0]}' is no joint of its machine.", where="drives, joints")
    for name, times in ((name, names[0]) for names in drive_arrays(part) for name in names):
        samples = len(arrays[times]) if times in arrays else 0
        shape = (samples,) if name == times else (samples, len(part.joints))
        array = arrays.get(name)
        if array is None or array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
            shown = "none" if array is None else f"{array.dtype} {array.shape}"
            faults.add(f"array '{name}' does not fit.", expected=f"finite float64 {shape}", found=shown)
    return faults
