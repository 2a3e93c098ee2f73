"""The machine of a study: its model file, with what the study adds to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from veridyn.errors import DataError, Faults, FileError, ModelError, did_you_mean
from veridyn.files.machine.load import MJCF_ENDINGS, load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.files.yaml_plain import Place
from veridyn.model.element_kinds import NAN
from veridyn.model.elements import Element
from veridyn.model.link import Link
from veridyn.model.table_law import LawTable
from veridyn.model.transmission import Transmission
from veridyn.model.tree import GRAVITY, Tree
from veridyn.studies.config.identify import ElementSettings, ModelSettings, TransmissionSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.fitted import fit_file, fitted_machine


def model_path(loaded: Loaded, at: Place, model: ModelSettings) -> Path:
    """The file of a section ``model``: a model file, or that of a fit."""
    if model.fit:
        return fit_file(loaded, (*at, "fit"), model.fit)
    file = loaded.path(model.file, (*at, "file"))
    if not file.is_file():
        raise loaded.error(
            loaded.fault(
                (*at, "file"),
                "there is no such model file.",
                found=str(file),
                hint="It is looked for beside the study.",
            )
        )
    return file


def tree_of(loaded: Loaded, at: Place, model: ModelSettings, impossible: Literal["unknown", "keep"] = "keep") -> Tree:
    """The tree that a section ``model`` of a study file describes; what is wrong with it is told with the study's lines.

    `impossible`: what becomes of a URDF's inertias that no body can have where the study leaves it open.
    """
    file = model_path(loaded, at, model)
    if model.fit:
        tree = fitted_machine(loaded, (*at, "fit"), model.fit, model.unexcited).tree
        if model.gravity is not None:
            tree = replace(tree, gravity=np.array(model.gravity))
    elif file.suffix.lower() == ".urdf":
        tree = load_urdf(
            file,
            model.base,
            gravity=GRAVITY if model.gravity is None else model.gravity,
            impossible=impossible if model.impossible == "auto" else model.impossible,
        )
    else:
        mjcf = file.suffix.lower() in MJCF_ENDINGS
        strict = mjcf and model.impossible == "refuse"
        tree = load_model(file, base=model.base if mjcf else "auto", strict=strict).tree
        if model.gravity is not None:
            tree = replace(tree, gravity=np.array(model.gravity))
    if model.priors == "forget":
        estimated = [k for k, state in enumerate(tree.parameters.states) if state == "estimated"]
        values = tree.parameters.values.copy()
        values[estimated] = np.nan
        tree = tree.with_parameters(values)
    try:
        tree = tree.with_elements([e for s in model.elements for e in _elements(tree, s)])
        if model.transmission is not None:
            tree = replace(tree, transmission=_transmission(model.transmission))
            unknown = [j for j in tree.transmission.joints if j not in tree.coordinates] if tree.transmission else []
            if unknown:
                hint = did_you_mean(unknown[0], tree.coordinates)
                fault = loaded.fault((*at, "transmission"), f"'{unknown[0]}' is no coordinate.", hint=hint)
                raise loaded.error(fault)
        return _states(loaded, at, model, tree)
    except (ModelError, DataError) as error:
        raise FileError(
            [replace(f, line=loaded.yaml.line(at)) for f in error.faults], f"{loaded.file.name}, model"
        ) from error


def described_by_points(loaded: Loaded, at: Place, model: ModelSettings) -> bool:
    """Whether the file of a section ``model`` describes a machine in natural coordinates, whose tree a study of a tree takes."""
    file = model_path(loaded, at, model)
    if model.fit:
        return fitted_machine(loaded, (*at, "fit"), model.fit, model.unexcited).formulation == "natural"
    return file.suffix.lower() not in (".urdf", *MJCF_ENDINGS) and load_model(file).formulation == "natural"


def links_of(loaded: Loaded, at: Place, model: ModelSettings) -> tuple[Link, ...]:
    """The bodies of a section ``model`` as a model file describes them; none where the machine is a URDF's or MJCF's."""
    file = model_path(loaded, at, model)
    if model.fit:
        return fitted_machine(loaded, (*at, "fit"), model.fit, model.unexcited).links
    return () if file.suffix.lower() in (".urdf", *MJCF_ENDINGS) else load_model(file).links


def _elements(tree: Tree, s: ElementSettings) -> list[Element]:
    value, constants = NAN if s.value is None else s.value, s.constants()
    table = None if s.table is None else LawTable(**s.table.model_dump())
    if s.on in ("each", "actuated"):
        return [
            Element(
                kind=s.kind,
                on={c: 1.0},
                value=value,
                name="",
                signal=s.signal.replace("*", c),
                unit=s.unit,
                constants=constants,
                formula=s.formula,
                table=table,
            )
            for c in (tree.coordinates if s.on == "each" else tree.actuated_coordinates)
        ]
    on = {s.on: 1.0} if isinstance(s.on, str) else s.on
    own = {"formula": s.formula, "table": table, "constants": constants}
    return [Element(kind=s.kind, on=on, value=value, name=s.name, signal=s.signal, unit=s.unit, **own)]


def _transmission(s: TransmissionSettings) -> Transmission:
    if s.ratios:
        names = tuple(s.ratios)
        return Transmission(names, names, np.diag([1.0 / r for r in s.ratios.values()]))
    return Transmission(s.motors, s.joints, np.array(s.matrix, dtype=np.float64))


def _states(loaded: Loaded, at: Place, model: ModelSettings, tree: Tree) -> Tree:
    p, faults = tree.parameters, Faults()
    for section, names in (("known", model.known), ("estimated", model.estimated)):
        for name in names:
            if name not in p.names:
                where = (*at, section, name) if section == "known" else (*at, section)
                hint = did_you_mean(name, p.names)
                faults.extend([loaded.fault(where, f"there is no parameter '{name}'.", hint=hint)])
    faults.raise_if_any(FileError, loaded.file.name)
    if not model.known and not model.estimated:
        return tree
    p = p.estimated(model.estimated)
    p = p.replacing({name: value for name, value in model.known.items() if value is not None})
    return tree.with_parameters(p.known(list(model.known)))
