"""A machine, or machines drawn from a fit, as files of simulators: MJCF, URDF or model files, or one NPZ of parameters."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from veridyn.errors import DataError, FileError
from veridyn.files.archive import load
from veridyn.files.atomic import refuse_to_replace, write_atomic
from veridyn.files.machine.load import MJCF_ENDINGS, load_model
from veridyn.files.machine.mjcf import mjcf_limits
from veridyn.files.machine.mjcf_write import save_mjcf
from veridyn.files.machine.urdf import urdf_limits
from veridyn.files.machine.urdf_reader import UrdfLimits
from veridyn.files.machine.urdf_write import save_urdf
from veridyn.files.machine.write import save_model
from veridyn.files.shipped import resolved
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.studies.run.fitted import FIT

Format = Literal["mjcf", "urdf", "yaml"]
ENDINGS: Mapping[Format, str] = {"mjcf": ".xml", "urdf": ".urdf", "yaml": ".yaml"}
FORMATS: Mapping[str, Format] = {"mjcf": "mjcf", "urdf": "urdf", "yaml": "yaml"}
FORCE = "Choose another name, or pass --force."


@dataclass(frozen=True, eq=False)
class ExportSource:
    """What is exported: a machine, the fit it comes from, the URDF file it is written into, and the limits of its joints."""

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
        machine = fit.described.with_parameters(fit.standard)
        urdf = folder / "identified.urdf"
        like = urdf if urdf.is_file() else None
        return ExportSource(machine, fit, like, {} if like is None else urdf_limits(like))
    machine = load_model(file, base=base, strict=strict)
    if file.suffix.lower() == ".urdf":
        return ExportSource(machine, None, file, urdf_limits(file))
    limits = mjcf_limits(file) if file.suffix.lower() in MJCF_ENDINGS else {}
    return ExportSource(machine, None, None, limits)


def export_machine(source: ExportSource, to: Format, out: Path, force: bool = False) -> list[Path]:
    """One file in a format."""
    refuse_to_replace(out, force, FORCE)
    _write(source, source.machine, to, out, force)
    return [out]


def export_draws(
    source: ExportSource, to: Format, out: Path, n: int, rng: np.random.Generator, force: bool = False
) -> list[Path]:
    """n machines drawn from the fit: files NAME-0001 … in the folder `out`, or, where `out` ends in .npz, one file of arrays.

    The arrays are `names` and `units` (p,), `values` (p,) of the fit, and `draws` (n, p).
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
    stem, wide = fit.described.name.replace("/", "_") or "machine", max(4, len(str(n)))
    files = [out / f"{stem}-{k + 1:0{wide}d}{ENDINGS[to]}" for k in range(n)]
    if out.exists() and not out.is_dir():
        raise FileError("draws are written into a folder, or into one .npz file.", found=str(out), source=out.name)
    for file in files:
        refuse_to_replace(file, force, FORCE)
    sets = fit.draws(n, rng)
    out.mkdir(parents=True, exist_ok=True)
    for file, phi in zip(files, sets, strict=True):
        _write(source, source.machine.with_parameters(phi), to, file, force)
    return files


def _write(source: ExportSource, machine: Machine, to: Format, out: Path, force: bool) -> None:
    if to == "mjcf":
        save_mjcf(machine, out, source.limits, overwrite=force)
    elif to == "urdf":
        save_urdf(machine, out, source.like, overwrite=force)
    else:
        save_model(machine, out, overwrite=force)
