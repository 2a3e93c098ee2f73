"""The identified model written back: as a model file, and as URDF where the model was one; read again and checked.

Data determine base parameters, a model file holds those of bodies. A set that is not physically consistent is refused, with the
law it breaks, unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veridyn.errors import DataError, Fault, ModelError, VeridynError
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.urdf_write import save_urdf
from veridyn.files.machine.write import model_text
from veridyn.identify.estimators.feasible_set import POSITIVE
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import INERTIAL, broken_law
from veridyn.studies.run.folder import Run


@dataclass(frozen=True)
class Exported:
    """Files that were written, and why others were not."""

    files: tuple[Path, ...] = ()
    refused: tuple[Fault, ...] = ()


def impossible(fit: Fit) -> list[Fault]:
    """What about the standard parameters of a fit is not physically consistent, by body and element."""
    machine = fit.described.with_parameters(fit.standard)
    faults = []
    for b in machine.links:
        if b.real:
            law = broken_law(np.array([machine.parameters[b.parameter(symbol)] for symbol in INERTIAL]))
            if law:
                faults.append(Fault(f"{law}.", f"body '{b.name}'"))
    for e in machine.elements:
        if e.kind in POSITIVE and machine.parameters[e.parameter_name] < 0.0:
            value = machine.parameters[e.parameter_name]
            faults.append(Fault("it is below zero.", f"element '{e.parameter_name}'", found=f"{value:.4g}"))
    return faults


def export(run: Run, fit: Fit, like: Path, infeasible: bool, locked: Collection[str] = ()) -> Exported:
    """Write ``identified.yaml``, and ``identified.urdf`` where `like` is a URDF file and no joint of it is `locked`, or say why not."""
    broken = impossible(fit)
    if broken and not infeasible:
        listed = "; ".join(str(f).splitlines()[0].removesuffix(".") for f in broken[:6]) + (
            "; …" if len(broken) > 6 else ""
        )
        return Exported(
            refused=(
                Fault(
                    "the identified model is not exported: its parameters are not physically consistent.",
                    "export",
                    found=listed,
                    hint="Set estimator: {name: consistent}, or ask for it all the same with output: {infeasible: write}.",
                ),
            )
        )
    machine, refused = _in_its_formulation(fit)
    files = [run.write_text("identified.yaml", model_text(machine))]
    _check_read_back(machine, files[0])
    if like.suffix.lower() == ".urdf" and locked:
        what = "identified.urdf is not written: the bodies of locked joints are part of others, and that file has them apart."
        refused += (
            Fault(
                what,
                "export",
                found=f"lock: {', '.join(locked)}",
                hint="identified.yaml is the machine as it was identified.",
            ),
        )
    elif like.suffix.lower() == ".urdf":
        try:
            save_urdf(machine, run.folder / "identified.urdf", like, allow_impossible=infeasible)
            files.append(run.folder / "identified.urdf")
        except VeridynError as error:
            refused += tuple(error.faults)
    return Exported(tuple(files), refused)


def _in_its_formulation(fit: Fit) -> tuple[Machine, tuple[Fault, ...]]:
    """The identified machine in the formulation of the fit; in joint coordinates, and why, where the other cannot carry its values."""
    machine = fit.described.with_parameters(fit.standard)
    try:
        return machine.with_formulation(fit.formulation), ()
    except ModelError as error:
        what = f"identified.yaml is in joint coordinates: {error.faults[0].what}"
        return machine, (Fault(what, "export", found=f"formulation: {fit.formulation}"),)


def _check_read_back(machine: Machine, file: Path) -> None:
    again = parse_machine(file.read_text(encoding="utf-8"), source=file.name)
    same = again.parameters.names == machine.parameters.names
    if not same or not np.array_equal(again.parameters.values, machine.parameters.values, equal_nan=True):
        raise DataError("what was written does not read back as what was identified.", where=file.name)
