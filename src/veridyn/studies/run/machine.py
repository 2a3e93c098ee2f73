"""The machine of a study: its model file or the fit of a run, with what the study adds to it, and how its loops were closed.

``model: {fit: runs/x-001}`` of a study file means the identified machine of that run. Loops are closed from measured positions; how near
to singular positions that was, and what else was measured, is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import numpy as np

from veridyn.errors import (
    CapabilityError,
    DataError,
    Faults,
    FileError,
    IdentificationError,
    ModelError,
    did_you_mean,
)
from veridyn.files.archive import load
from veridyn.files.machine.load import MJCF_ENDINGS, load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.files.yaml_reader import Place
from veridyn.identify.estimators.prior import GROUPS, group_of
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.mechanics.tree.weld import welded
from veridyn.model.elements.element import Element, LawTable
from veridyn.model.elements.kinds import NAN
from veridyn.model.graph import GRAVITY, Formulation
from veridyn.model.link import Link
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.model.single_track import NO_CAR
from veridyn.studies.config.identify import ElementSettings, ModelSettings, TransmissionSettings
from veridyn.studies.config.study import Loaded

FIT = "fit.json"
IDENTIFIED = "identified.yaml"  # the machine of a run with the identified values
MAX_DISAGREEMENT_SHARE = 0.01  # of a coordinate's span, between measured and followed positions (chosen)
CONDITION_SAMPLES = 2000  # samples of each piece at which the condition is looked at


def fit_file(loaded: Loaded[Any], at: Place, text: str) -> Path:
    """The file of the fit that a run folder holds; `text` is the folder, or the file itself."""
    path = loaded.path(text, at)
    file = path / FIT if path.is_dir() else path
    if not path.exists():
        runs = sorted(p.parent.name for p in path.parent.glob(f"*/{FIT}")) if path.parent.is_dir() else []
        hint = f"Runs with a fit there: {', '.join(runs[:8])}." if runs else "It is looked for beside the study."
        raise loaded.error_at(at, "there is no such run.", "the folder of a run", str(path), hint)
    if not file.is_file():
        expected = f"a folder with {FIT}, as veridyn identify writes it"
        raise loaded.error_at(at, "this run has no fit.", expected, str(path), "Name the run of an identification.")
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
        raise loaded.error_at(at, "this file holds no fit.", "a fit", type(found).__name__)
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


def existing_file(loaded: Loaded[Any], text: str, at: Place) -> Path:
    """A file that the study names; refused with its line where there is none."""
    file = loaded.path(text, at)
    if not file.is_file():
        hint = "Paths are relative to the study file; ${NAME} stands for a variable."
        raise loaded.error_at(at, "there is no such file.", found=str(file), hint=hint)
    return file


def model_file(loaded: Loaded[Any]) -> Path:
    """The file that describes the machine: a model file, or that of a fit."""
    s = loaded.study
    if s.model.fit:
        return fit_file(loaded, ("model", "fit"), s.model.fit)
    return existing_file(loaded, s.model.file, ("model", "file"))


def named_machine(loaded: Loaded[Any]) -> Machine:
    """The machine of the section ``model``, from its file or from a fit, in its own formulation, with all its sensors."""
    s, file = loaded.study, model_file(loaded)
    if s.model.fit:
        return fitted_machine(loaded, ("model", "fit"), s.model.fit, s.model.unexcited)
    return load_model(file)


def named_car(loaded: Loaded[Any]) -> Machine:
    """The car of the section ``model``; a machine of bodies and joints is refused."""
    car = named_machine(loaded)
    if car.car is None:
        what, hint = "this machine is no car of a few numbers.", "Leave out formulation: single_track."
        found, place = f"{car.name}, formulation: {car.formulation}", "fit" if loaded.study.model.fit else "file"
        fault = loaded.fault(("model", place), what, "a model file with the section car", found, hint)
        raise CapabilityError("single_track", "bodies and joints", *NO_CAR, faults=[fault], source=loaded.file.name)
    return car


def model_path(loaded: Loaded, at: Place, model: ModelSettings) -> Path:
    """The file of a section ``model``: a model file, or that of a fit."""
    if model.fit:
        return fit_file(loaded, (*at, "fit"), model.fit)
    file = loaded.path(model.file, (*at, "file"))
    if not file.is_file():
        hint = "It is looked for beside the study."
        raise loaded.error_at((*at, "file"), "there is no such model file.", found=str(file), hint=hint)
    return file


def study_machine(
    loaded: Loaded, at: Place, model: ModelSettings, impossible: Literal["unknown", "keep"] = "keep"
) -> Machine:
    """The machine that a section ``model`` of a study file describes, in joint coordinates; what is wrong with it is told with the
    study's lines.

    `impossible`: what becomes of a URDF's inertias that no body can have where the study leaves it open.
    """
    file = model_path(loaded, at, model)
    if model.fit:
        machine = fitted_machine(loaded, (*at, "fit"), model.fit, model.unexcited)
        if model.gravity is not None:
            machine = replace(machine, gravity=np.array(model.gravity))
    elif file.suffix.lower() == ".urdf":
        machine = load_urdf(
            file,
            model.base,
            gravity=GRAVITY if model.gravity is None else model.gravity,
            impossible=impossible if model.impossible == "auto" else model.impossible,
        )
    else:
        mjcf = file.suffix.lower() in MJCF_ENDINGS
        strict = mjcf and model.impossible == "refuse"
        machine = load_model(file, base=model.base if mjcf else "auto", strict=strict)
        if model.gravity is not None:
            machine = replace(machine, gravity=np.array(model.gravity))
    if model.formulation is not None:
        machine = machine.with_formulation(model.formulation)
    bodies_of(machine)  # refuses by name what has none
    machine = machine.formulated("tree")
    if model.priors == "forget":
        estimated = [k for k, state in enumerate(machine.parameters.states) if state == "estimated"]
        values = machine.parameters.values.copy()
        values[estimated] = np.nan
        machine = machine.with_parameters(values)
    try:
        machine = _locked(loaded, at, model, machine)
        machine = machine.with_elements([e for s in model.elements for e in _elements(machine, s)])
        if model.transmission is not None:
            machine = replace(machine, transmission=_transmission(model.transmission))
            unknown = (
                [j for j in machine.transmission.joints if j not in machine.coordinates] if machine.transmission else []
            )
            if unknown:
                hint = did_you_mean(unknown[0], machine.coordinates)
                raise loaded.error_at((*at, "transmission"), f"'{unknown[0]}' is no coordinate.", hint=hint)
        return _states(loaded, at, model, machine)
    except (ModelError, DataError) as error:
        raise FileError(
            [replace(f, line=loaded.yaml.line(at)) for f in error.faults], f"{loaded.file.name}, model"
        ) from error


def own_formulation(loaded: Loaded, at: Place, model: ModelSettings) -> Formulation:
    """The formulation of the machine of a section ``model``: the one that the study chooses, or that of its file or fit."""
    file = model_path(loaded, at, model)
    if model.formulation is not None:
        return model.formulation
    if model.fit:
        return loaded_fit(loaded, (*at, "fit"), model.fit).formulation
    return "tree" if file.suffix.lower() in (".urdf", *MJCF_ENDINGS) else load_model(file).formulation


def links_of(loaded: Loaded, at: Place, model: ModelSettings) -> tuple[Link, ...]:
    """The bodies of a section ``model`` as a model file describes them; none where the machine is a URDF's or MJCF's."""
    file = model_path(loaded, at, model)
    if model.fit:
        return fitted_machine(loaded, (*at, "fit"), model.fit, model.unexcited).links
    return () if file.suffix.lower() in (".urdf", *MJCF_ENDINGS) else load_model(file).links


def _elements(machine: Machine, s: ElementSettings) -> list[Element]:
    value, constants = NAN if s.value is None else s.value, s.constants()
    table = None if s.table is None else LawTable(**s.table.model_dump())
    places = [({s.on: 1.0} if isinstance(s.on, str) else s.on, s.name, s.signal)]
    if s.on in ("each", "actuated"):
        several = machine.coordinates if s.on == "each" else machine.actuated_coordinates
        places = [({c: 1.0}, "", s.signal.replace("*", c)) for c in several]
    own = {"unit": s.unit, "formula": s.formula, "table": table, "constants": constants}
    return [Element(kind=s.kind, on=on, value=value, name=name, signal=signal, **own) for on, name, signal in places]


def _transmission(s: TransmissionSettings) -> Transmission:
    if s.ratios:
        names = tuple(s.ratios)
        return Transmission(names, names, np.diag([1.0 / r for r in s.ratios.values()]))
    return Transmission(s.motors, s.joints, np.array(s.matrix, dtype=np.float64))


def _locked(loaded: Loaded, at: Place, model: ModelSettings, machine: Machine) -> Machine:
    """The machine with the joints of ``lock`` held where it says."""
    if not model.lock:
        return machine
    faults = Faults()
    chosen: dict[str, float] = {}
    for name, value in model.lock.items():
        found = matching(name, machine.coordinates)
        if not found:
            what = f"no coordinate is called '{name}'."
            faults.extend([loaded.fault((*at, "lock", name), what, hint=did_you_mean(name, machine.coordinates))])
        chosen |= dict.fromkeys(found, float(value))
    faults.raise_if_any(FileError, loaded.file.name)
    return welded(machine, chosen, unknown="keep")


def matching(name: str, names: Sequence[str]) -> list[str]:
    """The names that a name or a pattern with * and ? stands for; a name that is there stands for itself."""
    return [name] if name in names else [n for n in names if fnmatchcase(n, name)]


def _states(loaded: Loaded, at: Place, model: ModelSettings, machine: Machine) -> Machine:
    p, faults = machine.parameters, Faults()
    groups = group_of(machine)
    chosen: dict[str, dict[str, float | None]] = {"known": {}, "estimated": {}}
    for section, given in (("known", model.known), ("estimated", dict.fromkeys(model.estimated))):
        for name, value in given.items():
            found = matching(name, p.names)
            if not found and name in GROUPS:
                found = [n for n, group in zip(p.names, groups, strict=True) if group == name]
            if not found:
                where = (*at, section, name) if section == "known" else (*at, section)
                hint = f"Groups: {', '.join(GROUPS)}. {did_you_mean(name, p.names)}"
                faults.extend([loaded.fault(where, f"there is no parameter '{name}'.", hint=hint)])
            chosen[section] |= {n: value for n in found if value is not None or n not in chosen[section]}
    faults.raise_if_any(FileError, loaded.file.name)
    if not model.known and not model.estimated:
        return machine
    p = p.estimated(chosen["estimated"])
    p = p.replacing({name: value for name, value in chosen["known"].items() if value is not None})
    return machine.with_parameters(p.known(list(chosen["known"])))
