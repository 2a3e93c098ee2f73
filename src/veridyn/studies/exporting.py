"""Machines as files: a machine, or machines drawn from a fit, for simulators, and the identified model written back.

Simulators read MJCF, URDF or model files, or one NPZ of parameters; Isaac Lab a configuration of actuators. The identified model becomes
a model file, and URDF where it was one; it is read again and checked. Data determine base parameters, a model file holds those of bodies.
A set that is not physically consistent is refused, with the law it breaks, unless it is asked for.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from veridyn.errors import DataError, Fault, FileError, ModelError, VeridynError
from veridyn.files.access import made_folder, refuse_format, refuse_to_replace, resolved, write_atomic
from veridyn.files.archive import load
from veridyn.files.machine.joint_laws import save_isaac, ten_of
from veridyn.files.machine.load import MJCF_ENDINGS, load_model, parse_machine
from veridyn.files.machine.mjcf import mjcf_limits
from veridyn.files.machine.mjcf_write import save_mjcf
from veridyn.files.machine.urdf import urdf_limits
from veridyn.files.machine.urdf_reader import UrdfLimits
from veridyn.files.machine.urdf_write import save_urdf
from veridyn.files.machine.write import YAML_ENDINGS, model_text, save_model
from veridyn.identify.estimators.feasible_set import POSITIVE
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import broken_law
from veridyn.studies.result import Run
from veridyn.studies.run.estimation import IdentifyRun
from veridyn.studies.run.machine import FIT, IDENTIFIED

Format = Literal["mjcf", "urdf", "yaml", "isaac"]
ENDINGS: Mapping[Format, str] = {"mjcf": ".xml", "urdf": ".urdf", "yaml": ".yaml", "isaac": ".py"}
FORMATS: Mapping[str, Format] = {"mjcf": "mjcf", "urdf": "urdf", "yaml": "yaml", "isaac": "isaac"}
FORCE = "Choose another name, or pass --force."


@dataclass(frozen=True, eq=False)
class ExportSource:
    """What is exported: a machine, the fit it comes from, the file it is written into a copy of, and the limits of its joints."""

    machine: Machine
    fit: Fit | None
    like: Path | None
    limits: Mapping[str, UrdfLimits]


def source_of(path: Path, base: Literal["auto", "fixed", "free"] = "auto", strict: bool = False) -> ExportSource:
    """The machine of a model file, of a run folder with a fit, or of its fit.json.

    The URDF of a run is the ``identified.urdf`` in its folder, where the study's model was one.
    """
    file = resolved(path)
    if file.is_dir() or file.suffix.lower() == ".json":
        folder = file if file.is_dir() else file.parent
        if file.is_dir() and not (file / FIT).is_file():
            hint = "Name the run of an identification, or a model file."
            raise FileError("this folder has no fit.", expected=f"a folder with {FIT}", found=str(file), hint=hint)
        fit = load(file / FIT if file.is_dir() else file)
        machine = fit.valued
        urdf = folder / "identified.urdf"
        like = urdf if urdf.is_file() else None
        return ExportSource(machine, fit, like, {} if like is None else urdf_limits(like))
    machine = load_model(file, base=base, strict=strict)
    if file.suffix.lower() == ".urdf":
        return ExportSource(machine, None, file, urdf_limits(file))
    limits = mjcf_limits(file) if file.suffix.lower() in MJCF_ENDINGS else {}
    return ExportSource(machine, None, None, limits)


def written_into(source: ExportSource, like: Path, to: Format) -> ExportSource:
    """The same, to be written into a copy of the file `like`."""
    fits = to == "mjcf" if like.suffix.lower() in MJCF_ENDINGS else to == "urdf" and like.suffix.lower() == ".urdf"
    if not fits:
        what, expected = (
            "values are written into a file of the same format.",
            "MJCF with --to mjcf, URDF with --to urdf",
        )
        raise DataError(what, where="--like", expected=expected, found=f"{like.name}, --to {to}")
    return replace(source, like=resolved(like))


def export_machine(source: ExportSource, to: Format, out: Path, force: bool = False) -> list[Path]:
    """One file in a format."""
    own = {"mjcf": MJCF_ENDINGS, "yaml": YAML_ENDINGS}.get(to, (ENDINGS[to],))
    refuse_format(out, own, f"--to {to}", "The format is that of --to, whatever the name.")
    refuse_to_replace(out, force, FORCE)
    _write_machine(source, source.machine, to, out, force)
    return [out]


def export_draws(
    source: ExportSource, to: Format, out: Path, n: int, rng: np.random.Generator, force: bool = False
) -> list[Path]:
    """n machines drawn from the fit: files NAME-0001 … in the folder `out`, or, where `out` ends in .npz, one file of arrays.

    The arrays are `names` and `units` (p,), `values` (p,) of the fit, and `draws` (n, p). Actuators of Isaac Lab are one file, with the
    ranges of n draws.
    """
    if source.fit is None:
        hint = "Name a run folder of veridyn identify, or its fit.json."
        raise DataError("draws come from a fit, and a model file has none.", where="--draws", hint=hint)
    fit = source.fit
    if out.suffix.lower() == ".npz":
        refuse_to_replace(out, force, FORCE)
        sets = fit.draws(n, rng)
        p = fit.described.parameters
        content = io.BytesIO()
        np.savez_compressed(content, names=np.array(p.names), units=np.array(p.units), values=fit.standard, draws=sets)
        return [write_atomic(out, content.getvalue(), force)]
    if to == "isaac":
        refuse_to_replace(out, force, FORCE)
        save_isaac(source.machine, out, draws=fit.draws(n, rng), overwrite=force)
        return [out]
    stem, wide = fit.described.name.replace("/", "_") or "machine", max(4, len(str(n)))
    files = [out / f"{stem}-{k + 1:0{wide}d}{ENDINGS[to]}" for k in range(n)]
    if out.exists() and not out.is_dir():
        raise FileError("draws are written into a folder, or into one .npz file.", found=str(out), source=out.name)
    for file in files:
        refuse_to_replace(file, force, FORCE)
    sets = fit.draws(n, rng)
    made_folder(out)
    for file, phi in zip(files, sets, strict=True):
        _write_machine(source, source.machine.with_parameters(phi), to, file, force)
    return files


def _write_machine(source: ExportSource, machine: Machine, to: Format, out: Path, force: bool) -> None:
    like = source.like
    if to == "mjcf":
        own = like if like is not None and like.suffix.lower() in MJCF_ENDINGS else None
        save_mjcf(machine, out, source.limits, overwrite=force, like=own)
    elif to == "urdf":
        save_urdf(machine, out, like, overwrite=force)
    elif to == "isaac":
        save_isaac(machine, out, overwrite=force)
    else:
        save_model(machine, out, overwrite=force)


@dataclass(frozen=True)
class Exported:
    """Files that were written, and why others were not."""

    files: tuple[Path, ...] = ()
    refused: tuple[Fault, ...] = ()


def export_run(run: Run, done: IdentifyRun, settings: Any) -> Exported:
    """Write the machine that a study has identified, as its section output says; the car of a drive always."""
    if done.drive is not None:
        return Exported((run.write_text(IDENTIFIED, model_text(done.machine)),))
    if not settings.output.model:
        return Exported()
    return export(run, done.study.fit, done.model_file, settings.output.infeasible == "write", settings.model.lock)


def impossible(fit: Fit) -> list[Fault]:
    """What about the standard parameters of a fit is not physically consistent, by body and element."""
    machine = fit.described.with_parameters(fit.standard)
    faults = []
    for b in machine.links:
        if b.real:
            law = broken_law(ten_of(machine, b))
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
        text = "the identified model is not exported: its parameters are not physically consistent."
        hint = (
            "Set estimator: {name: consistent, settings: {prior: {}}}, without the prior where the model has no values, or ask for it all "
            "the same with output: {infeasible: write}."
        )
        return Exported(refused=(Fault(text, "export", found=listed, hint=hint),))
    machine, refused = _in_its_formulation(fit)
    files = [run.write_text(IDENTIFIED, model_text(machine))]
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
