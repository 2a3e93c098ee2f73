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
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, FileError, ModelError
from veridyn.files.access import refuse_to_replace, write_atomic
from veridyn.files.fit_file import (
    FORMAT,
    OPTIONAL,
    SEARCH_COVARIANCE,
    ArraysFile,
    CarFile,
    DriveNumberFile,
    DrivesPart,
    FitFile,
    FoundFile,
    NoiseFile,
    OpenFile,
    ReplayFile,
    RungFile,
    arrays_beside,
    check_fit,
    drive_arrays,
    parsed_fit,
)
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.write import model_text
from veridyn.identify.base import BaseParameters
from veridyn.identify.car_fit import CarFit
from veridyn.identify.drives.drive_method import Drives
from veridyn.identify.result import Fit, KnownValues, LawConstants, ReplaySettings
from veridyn.identify.settings import Acceptance
from veridyn.model.machine import Machine
from veridyn.model.parameters import ParameterFit, ParameterGuess, ParameterSet
from veridyn.model.single_track import CarNoise
from veridyn.version import __version__

if TYPE_CHECKING:  # it brings the compiler along
    from veridyn.identify.drives.drive_result import DrivesFit

FIGURES = ("estimator", "residual_sigma", "condition", "condition_scaled")  # alike in a fit and in its file
EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of day is not part of a result: equal fits give equal files


@checked
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
            "results are saved as JSON.", expected="a name that ends in .json", found=file.name, source=file.name
        )
    if not _same(fit.base.parameters, fit.described.parameters):
        raise DataError(
            "the parameters of its base are not those of its tree, so it cannot be saved.", where=fit.described.name
        )
    beside = file.with_suffix(".npz")
    for each in (file, beside):
        refuse_to_replace(each, overwrite)
    drives, recorded = _drives_of(fit)
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
        **({SEARCH_COVARIANCE: fit.fit.covariance} if isinstance(fit, CarFit) else {}),
        **recorded,
    )
    content = FitFile(
        veridyn=__version__,
        format=FORMAT,
        kind="fit",
        **{name: getattr(fit, name) for name in (*FIGURES, "names", "units", "notes", "removed")},
        accept_percent=fit.acceptance.percent,
        accept_sigmas=fit.acceptance.sigmas,
        values=fit.values.tolist(),
        rows=list(fit.rows),
        gap=fit.base.gap,
        source=fit.base.source,
        feasibility=fit.feasibility,
        constants=[] if fit.constants is None else list(fit.constants.names),
        known=[] if fit.known is None else list(fit.known.names),
        arrays=ArraysFile(file=beside.name, sha256=hashlib.sha256(arrays).hexdigest()),
        replay=_replay_file(fit.replay_settings),
        findings=list(fit.findings),
        disagreement=fit.disagreement,
        unseen=fit.unseen,
        car=_car_file(fit) if isinstance(fit, CarFit) else None,
        drives=drives,
        model=model_text(fit.described.formulated(fit.formulation)),
    )
    text = json.dumps(_plain(content.model_dump()), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(beside, arrays, overwrite)
    write_atomic(file, text.encode("utf-8"), overwrite)
    return file


@checked
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
    content = parsed_fit(file)
    try:
        described = parse_machine(content.model, source=f"the model inside {file.name}")
        machine = described if content.car is not None else described.with_formulation("tree")
    except ModelError as error:
        raise FileError(error.faults, f"the model inside {file.name}") from error
    arrays = arrays_beside(file, content.arrays)
    check_fit(file, content, arrays, machine)
    same: dict[str, Any] = {name: getattr(content, name) for name in FIGURES}
    same |= {name: arrays.get(name) for name in OPTIONAL}
    base = BaseParameters(
        parameters=machine.parameters,
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
    found = Fit(
        described=machine,
        base=base,
        values=np.array(content.values, dtype=np.float64),
        covariance=arrays["covariance"],
        rows=tuple(content.rows),
        **same,
        acceptance=Acceptance(content.accept_percent, content.accept_sigmas),
        notes=tuple(content.notes),
        removed=tuple(content.removed),
        feasibility=content.feasibility,
        constants=_constants(machine, content, arrays),
        known=KnownValues(tuple(content.known), arrays["known_covariance"], arrays["known_sensitivity"])
        if content.known
        else None,
        formulation=described.formulation,
        replay_settings=_replay_settings(content.replay),
        findings=tuple(content.findings),
        disagreement=content.disagreement,
        unseen=content.unseen,
    )
    if content.drives is not None:
        return _drives_fit_of(found, content.drives, arrays)
    return found if content.car is None else _car_fit_of(found, content.car, arrays[SEARCH_COVARIANCE])


def _replay_file(settings: ReplaySettings | None) -> ReplayFile | None:
    """None where a control law, which is a program, closes the loop: such a fit is judged by its forces once it is loaded."""
    if settings is None or settings.law is not None:
        return None
    return ReplayFile.model_validate(settings, from_attributes=True)


def _replay_settings(replay: ReplayFile | None) -> ReplaySettings | None:
    if replay is None:
        return None
    return ReplaySettings(**{**replay.model_dump(), "outputs": tuple(replay.outputs)})


def _constants(machine: Machine, content: FitFile, arrays: dict[str, NDArray[Any]]) -> LawConstants | None:
    """Constants inside the laws of elements, whose values the machine has."""
    if not content.constants:
        return None
    value = {c.name: c.value for c in machine.constants}
    values = np.array([value[name] for name in content.constants])
    return LawConstants.of(machine, content.constants, values, arrays["constants"])


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
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _same(a: ParameterSet, b: ParameterSet) -> bool:
    if a is b:
        return True
    alike = (a.names, a.units, a.states, dict(a.ties)) == (b.names, b.units, b.states, dict(b.ties))
    return alike and np.array_equal(a.values, b.values, equal_nan=True) and np.array_equal(a.typical, b.typical)


def _car_file(fit: CarFit) -> CarFile:
    """The part of a file that a fit of a car has."""
    n, search = fit.noise, fit.fit
    found = {
        name: FoundFile(
            value=value,
            sigma=search.sigma[name],
            prior=search.guesses[name].value,
            prior_sigma=search.guesses[name].sigma,
            lower=search.guesses[name].lower,
            upper=search.guesses[name].upper,
            positive=search.guesses[name].positive,
        )
        for name, value in search.values.items()
    }
    return CarFile(
        noise=NoiseFile(slip_error=n.slip_error, bank=n.bank, lateral=n.lateral, yaw=n.yaw, walk=dict(n.walk)),
        found=found,
        log_likelihood=search.log_likelihood,
        evaluations=search.evaluations,
        converged=search.converged,
        uninformed=list(search.uninformed),
        at_bound=dict(search.at_bound),
        largest=fit.largest,
    )


def _car_fit_of(fit: Fit, car: CarFile, covariance: Array) -> CarFit:
    """The fit of a car from its common part, the part that a file has of the car, and the covariance of the search."""
    search = ParameterFit(
        values={name: f.value for name, f in car.found.items()},
        sigma={name: f.sigma for name, f in car.found.items()},
        covariance=covariance,
        guesses={
            name: ParameterGuess(value=f.prior, sigma=f.prior_sigma, lower=f.lower, upper=f.upper, positive=f.positive)
            for name, f in car.found.items()
        },
        log_likelihood=car.log_likelihood,
        evaluations=car.evaluations,
        converged=car.converged,
        uninformed=tuple(car.uninformed),
        at_bound=dict(car.at_bound),
    )
    common: dict[str, Any] = {f.name: getattr(fit, f.name) for f in fields(Fit)}
    return CarFit(
        **common,
        noise=CarNoise(**car.noise.model_dump()),
        fit=search,
        largest=car.largest,
    )


def _drives_of(fit: Fit) -> tuple[DrivesPart | None, dict[str, Array]]:
    """What a fit of drives adds to a file, and its arrays; nothing of any other."""
    if fit.estimator != Drives.title:
        return None, {}
    from veridyn.identify.drives.drive_result import DrivesFit  # here: it brings the compiler along

    if not isinstance(fit, DrivesFit):
        return None, {}
    part = DrivesPart(
        numbers=[DriveNumberFile(**{**vars(d), "joints": list(d.joints)}) for d in fit.drives],
        open=[OpenFile(names=list(o.names), left=o.left, text=o.text) for o in fit.open],
        terms=[RungFile(**vars(t)) for t in fit.terms],
        started=model_text(fit.started),
        between=fit.between,
        until=fit.until,
        widening=fit.widening,
        log=fit.replay.name,
        joints=list(fit.replay.joints),
        further=[own.name for own, _ in fit.further],
        chance=fit.chance,
    )
    arrays: dict[str, Array] = {}
    for names, now, before in zip(drive_arrays(part), fit.replays, fit.replays_defaults, strict=True):
        arrays |= dict(zip(names, (now.t, now.measured, now.simulated, before.simulated), strict=True))
    return part, arrays


def _drives_fit_of(fit: Fit, part: DrivesPart, arrays: Mapping[str, NDArray[Any]]) -> DrivesFit:
    """The fit of drives from its common part, its own part and its arrays."""
    from veridyn.identify.drives.drive_result import DriveEstimate, DriveReplay, DrivesFit
    from veridyn.identify.drives.friction_choice import Rung
    from veridyn.identify.drives.undetermined import OpenDirection

    replays = []
    for log, names in zip((part.log, *part.further), drive_arrays(part), strict=True):
        times, measured, *simulated = (arrays[name] for name in names)
        now, before = (
            DriveReplay(name=log, joints=tuple(part.joints), t=times, measured=measured, simulated=own)
            for own in simulated
        )
        replays.append((now, before))
    common: dict[str, Any] = {f.name: getattr(fit, f.name) for f in fields(Fit)}
    return DrivesFit(
        **common,
        chance=part.chance,
        drives=tuple(DriveEstimate(**{**d.model_dump(), "joints": tuple(d.joints)}) for d in part.numbers),
        open=tuple(OpenDirection(tuple(o.names), o.left, o.text) for o in part.open),
        terms=tuple(Rung(**t.model_dump()) for t in part.terms),
        started=parse_machine(part.started, source="the machine before the fit"),
        between=part.between,
        until=part.until,
        widening=part.widening,
        replay=replays[0][0],
        replay_defaults=replays[0][1],
        further=tuple(replays[1:]),
    )
