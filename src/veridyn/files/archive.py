"""Results on disk: a JSON file to read and an NPZ file of arrays beside it, never a pickle. load(save(fit)) is fit, bit for bit.

The JSON file names the NPZ file and its SHA-256, so a pair that does not belong together is refused. It is written last:
an interrupted save leaves either what was there before or a pair that is refused, never a plausible mixture.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from veridyn.errors import DataError, Fault, Faults, FileError, ModelError, did_you_mean
from veridyn.files.atomic import refuse_to_replace, write_atomic
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.write import model_text
from veridyn.files.npz_arrays import read_arrays
from veridyn.identify.base import BaseParameters
from veridyn.identify.error_measures import RowReport
from veridyn.identify.law_constants import LawConstants
from veridyn.identify.result import Acceptance, Feasibility, Fit, KnownValues
from veridyn.model.machine import Machine
from veridyn.model.parameters import ParameterSet
from veridyn.model.tree import Tree
from veridyn.version import __version__

Array = NDArray[np.float64]

FORMAT = 1
OPTIONAL = (
    "standard_values",
    "standard_covariance",
    "prior_share",
    "position_bias",
    "cutoff_change",
    "posterior_mean",
)  # arrays only some estimators have
COVARIANCE_ROUNDING = 1e-6  # of correlations: asymmetry and negative eigenvalues that rounding may leave
EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of day is not part of a result: equal fits give equal files


class _Strict(BaseModel):
    """Every key is known and has its type."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Row(_Strict):
    """One :class:`RowReport`."""

    row: str
    samples: int
    rms: float
    measured_rms: float
    sigma: float
    measured_std: float = float("nan")
    noise: float = float("nan")
    unit: str = ""


class _Arrays(_Strict):
    """The file beside this one."""

    file: str
    sha256: str


class _Feasible(_Strict):
    """A :class:`Feasibility`."""

    least: dict[str, float]
    cost_percent: float
    bound: list[str]
    broken: list[str]


class _FitFile(_Strict):
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
    rows: list[_Row]
    notes: list[str]
    removed: list[str]
    gap: float
    source: str
    feasibility: _Feasible | None = None
    constants: list[str] = []
    known: list[str] = []
    described: bool = False
    arrays: _Arrays
    model: str


def save(fit: Fit, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write a fit as JSON, with its arrays beside it as .npz; files appear whole or not at all.

    Parameters
    ----------
    fit : Fit
        What is saved. The machine travels inside, as the text of a model file.
    path : str or path
        A name that ends in .json.
    overwrite : bool
        Replace files that exist; they are left alone by default.

    Returns
    -------
    Path
        The JSON file.

    Raises
    ------
    FileError
        The name does not end in .json, or a file exists.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)  # moves in the x-y plane, gravity along −y
    >>> t = 0.01 * np.arange(200)
    >>> q, qd, qdd = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    >>> forces = 0.6 * qdd + 9.81 * np.cos(q)
    >>> fit = vd.identify(pendulum, vd.Motion(t, q[:, None], qd[:, None], qdd[:, None], forces=forces[:, None]))
    >>> vd.save(fit, "fit.json").name, vd.load("fit.json").names == fit.names
    ('fit.json', True)
    """
    file = Path(path)
    if file.suffix.lower() != ".json":
        raise FileError(
            Fault("results are saved as JSON.", expected="a name that ends in .json", found=file.name), file.name
        )
    if not _same(fit.base.parameters, fit.tree.parameters):
        raise DataError(
            Fault("the parameters of its base are not those of its tree, so it cannot be saved.", fit.tree.name)
        )
    beside = file.with_suffix(".npz")
    for each in (file, beside):
        refuse_to_replace(each, overwrite)
    arrays = _npz(
        covariance=fit.covariance,
        matrix=fit.base.matrix,
        singular_values=fit.base.singular_values,
        columns=np.array(fit.base.columns, dtype=np.int64),
        dead=np.array(fit.base.dead, dtype=np.int64),
        **{name: value for name in OPTIONAL if (value := getattr(fit, name)) is not None},
        **({} if fit.constants is None else {"constants": np.hstack([fit.constants.cross, fit.constants.covariance])}),
        **(
            {}
            if fit.known is None
            else {"known_covariance": fit.known.covariance, "known_sensitivity": fit.known.sensitivity}
        ),
    )
    sure = fit.feasibility
    content = _FitFile(
        veridyn=__version__,
        format=FORMAT,
        kind="fit",
        estimator=fit.estimator,
        residual_sigma=fit.residual_sigma,
        condition=fit.condition,
        condition_scaled=fit.condition_scaled,
        accept_percent=fit.acceptance.percent,
        accept_sigmas=fit.acceptance.sigmas,
        names=list(fit.names),
        units=list(fit.units),
        values=[float(v) for v in fit.values],
        rows=[_Row(**{name: getattr(r, name) for name in _Row.model_fields}) for r in fit.rows],
        notes=list(fit.notes),
        removed=list(fit.removed),
        gap=fit.base.gap,
        source=fit.base.source,
        feasibility=None
        if sure is None
        else _Feasible(
            least=dict(sure.least), cost_percent=sure.cost_percent, bound=list(sure.bound), broken=list(sure.broken)
        ),
        constants=[] if fit.constants is None else list(fit.constants.names),
        known=[] if fit.known is None else list(fit.known.names),
        arrays=_Arrays(file=beside.name, sha256=hashlib.sha256(arrays).hexdigest()),
        described=fit.described is not None,
        model=model_text(_described(fit)),
    )
    text = json.dumps(_plain(content.model_dump()), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(beside, arrays, overwrite)
    write_atomic(file, text.encode("utf-8"), overwrite)
    return file


def load(path: str | os.PathLike[str]) -> Fit:
    """The fit that :func:`save` wrote.

    Parameters
    ----------
    path : str or path
        The JSON file; its arrays are in the .npz file beside it.

    Returns
    -------
    Fit

    Raises
    ------
    FileError
        A file is missing, is not a fit, or does not belong to the other.

    Examples
    --------
    >>> import veridyn as vd
    >>> vd.load("missing.json")
    Traceback (most recent call last):
    veridyn.errors.FileError: ...
    """
    file = Path(path)
    content = _parsed(file)
    try:
        machine = parse_machine(content.model, source=f"the model inside {file.name}")
        tree = machine.tree
    except ModelError as error:
        raise FileError(error.faults, f"the model inside {file.name}") from error
    arrays = _arrays_of(file, content.arrays)
    _check(file, content, arrays, tree)
    base = BaseParameters(
        parameters=tree.parameters,
        columns=tuple(int(c) for c in arrays["columns"]),
        matrix=arrays["matrix"],
        dead=tuple(int(c) for c in arrays["dead"]),
        gap=content.gap,
        singular_values=arrays["singular_values"],
        source=content.source,
    )
    if list(base.names) != content.names or list(base.units) != content.units:
        fault = Fault("its names are not those that its model and its arrays make.", expected=", ".join(base.names[:8]))
        raise FileError(fault, file.name)
    return Fit(
        tree=tree,
        base=base,
        values=np.array(content.values, dtype=np.float64),
        covariance=arrays["covariance"],
        rows=tuple(RowReport(**r.model_dump()) for r in content.rows),
        estimator=content.estimator,
        residual_sigma=content.residual_sigma,
        condition=content.condition,
        condition_scaled=content.condition_scaled,
        acceptance=Acceptance(content.accept_percent, content.accept_sigmas),
        notes=tuple(content.notes),
        removed=tuple(content.removed),
        standard_values=arrays.get("standard_values"),
        standard_covariance=arrays.get("standard_covariance"),
        prior_share=arrays.get("prior_share"),
        position_bias=arrays.get("position_bias"),
        cutoff_change=arrays.get("cutoff_change"),
        posterior_mean=arrays.get("posterior_mean"),
        feasibility=_feasibility(content.feasibility),
        constants=_constants(tree, content, arrays),
        known=KnownValues(tuple(content.known), arrays["known_covariance"], arrays["known_sensitivity"])
        if content.known
        else None,
        described=machine if content.described else None,
    )


def _described(fit: Fit) -> Machine | Tree:
    """What was identified, with the estimated constants of laws: the machine as it was described, or the tree."""
    if fit.described is None or fit.constants is None:
        return fit.tree if fit.described is None else fit.described
    return fit.described.with_constants(dict(zip(fit.constants.names, fit.constants.values.tolist(), strict=True)))


def _constants(tree: Tree, content: _FitFile, arrays: dict[str, NDArray[Any]]) -> LawConstants | None:
    """Constants inside the laws of elements, whose values the tree has."""
    if not content.constants:
        return None
    value = {c.name: c.value for c in tree.constants}
    values = np.array([value[name] for name in content.constants])
    return LawConstants.of(tree, content.constants, values, arrays["constants"])


def _feasibility(f: _Feasible | None) -> Feasibility | None:
    return None if f is None else Feasibility(f.least, f.cost_percent, tuple(f.bound), tuple(f.broken))


def _npz(**arrays: NDArray[Any]) -> bytes:
    """An NPZ file as numpy.load reads it, the same bytes for the same arrays."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content.getvalue())
    return out.getvalue()


def _plain(value: Any) -> Any:
    """Numbers that JSON has no word for become texts; everything else stays."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list) else value


def _parsed(file: Path) -> _FitFile:
    try:
        content = json.loads(file.read_bytes().decode("utf-8"))
    except FileNotFoundError as error:
        beside = sorted(p.name for p in file.parent.glob("*.json")) if file.parent.is_dir() else []
        raise FileError(Fault("there is no such file.", hint=did_you_mean(file.name, beside)), str(file)) from error
    except OSError as error:
        raise FileError(Fault(f"it cannot be read: {error.strerror or error}."), str(file)) from error
    except json.JSONDecodeError as error:
        fault = Fault(
            "it is not JSON, or its end is missing.", found=error.msg, hint="Save the fit again.", line=error.lineno
        )
        raise FileError(fault, file.name) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise FileError(Fault("it is not a saved result.", expected="JSON text in UTF-8"), file.name) from error
    if not isinstance(content, dict) or "format" not in content or "kind" not in content:
        raise FileError(
            Fault("it is JSON, but not a saved result.", expected="the keys 'format' and 'kind'"), file.name
        )
    if content["format"] != FORMAT or content["kind"] != "fit":
        fault = Fault(
            "it holds something that this version cannot load.",
            expected=f"format {FORMAT}, kind 'fit'",
            found=f"format {content['format']}, kind '{content['kind']}'",
            hint=f"It was written by veridyn {content.get('veridyn', 'of an unknown version')}; this is {__version__}.",
        )
        raise FileError(fault, file.name)
    try:
        return _FitFile.model_validate(content)
    except ValidationError as error:
        faults = [
            Fault(f"{e['msg']}.", ".".join(map(str, e["loc"])), found=repr(e["input"])[:60]) for e in error.errors()
        ]
        raise FileError(faults, file.name) from error


def _arrays_of(file: Path, named: _Arrays) -> dict[str, NDArray[Any]]:
    source = f"{file.name}, arrays"
    if Path(named.file).name != named.file or not named.file:
        raise FileError(Fault("its arrays lie elsewhere.", expected="a file beside it", found=named.file), source)
    beside = file.with_name(named.file)
    try:
        data = beside.read_bytes()
    except OSError as error:
        hint = "Keep both files together, under the names they were saved with."
        raise FileError(
            Fault(f"'{beside.name}' cannot be read: {error.strerror or error}.", hint=hint), source
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != named.sha256:
        fault = Fault(
            f"'{beside.name}' is not the file that was saved with it.",
            expected=f"SHA-256 {named.sha256[:16]}…",
            found=f"{found[:16]}… ({len(data)} bytes)",
            hint="It was changed, cut off, or belongs to another result. Save the fit again.",
        )
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


def _check(file: Path, content: _FitFile, arrays: dict[str, NDArray[Any]], tree: Tree) -> None:
    faults = Faults()
    count, size = len(content.values), len(tree.parameters)
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
        shapes |= {
            "known_covariance": ((k, k), np.float64),
            "known_sensitivity": ((count, k), np.float64),
        }
    known = [c.name for c in tree.constants]
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
    if not faults:
        _check_covariances(content, arrays, faults)
    for key, named in (("names", content.names), ("units", content.units)):
        if len(named) != count:
            faults.add(f"'{key}' does not fit the values.", expected=f"{count}", found=f"{len(named)}")
    unknown = [n for n in content.removed if n not in tree.parameters.names]
    if unknown:
        hint = did_you_mean(unknown[0], tree.parameters.names)
        faults.add(f"'{unknown[0]}' is removed, but is no parameter of the model.", where="removed", hint=hint)
    faults.raise_if_any(FileError, file.name)


def _check_covariances(content: _FitFile, arrays: dict[str, NDArray[Any]], faults: Faults) -> None:
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


def _same(a: ParameterSet, b: ParameterSet) -> bool:
    if a is b:
        return True
    alike = (a.names, a.units, a.states, dict(a.ties)) == (b.names, b.units, b.states, dict(b.ties))
    return alike and np.array_equal(a.values, b.values, equal_nan=True) and np.array_equal(a.typical, b.typical)
