"""What a fit of drives has beside a fit, in its files: every number of the drives, what stays open, and encoders measured and simulated.

:mod:`veridyn.files.archive` writes and reads them; what is simulated is stored, so that a loaded fit has the replay of its own log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.write import model_text
from veridyn.identify.result import Fit

if TYPE_CHECKING:  # these bring the compiler along
    from veridyn.identify.drives.drive_result import DrivesFit

ARRAYS = ("drive_times", "drive_measured", "drive_simulated", "drive_simulated_defaults")


class _Part(BaseModel):
    """Every key is known and has its type."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DriveNumberFile(_Part):
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


class OpenFile(_Part):
    """An :class:`OpenDirection`."""

    names: list[str]
    left: float
    text: str


class RungFile(_Part):
    """A :class:`Rung`."""

    joint: str
    term: str
    decrease: float
    needed: float
    kept: bool


class DrivesPart(_Part):
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


def drives_part(fit: DrivesFit) -> tuple[DrivesPart, dict[str, Array]]:
    """The part of a file that a fit of drives has, and its arrays."""
    replay = fit.replay
    part = DrivesPart(
        numbers=[DriveNumberFile(**{**vars(d), "joints": list(d.joints)}) for d in fit.drives],
        open=[OpenFile(names=list(o.names), left=o.left, text=o.text) for o in fit.open],
        terms=[RungFile(**vars(t)) for t in fit.terms],
        started=model_text(fit.started),
        between=fit.between,
        until=fit.until,
        widening=fit.widening,
        log=replay.name,
        joints=list(replay.joints),
    )
    values = (replay.t, replay.measured, replay.simulated, fit.replay_defaults.simulated)
    return part, dict(zip(ARRAYS, values, strict=True))


def drives_fit_of(fit: Fit, part: DrivesPart, arrays: Mapping[str, NDArray[Any]]) -> DrivesFit:
    """The fit of drives from its common part, its own part and its arrays."""
    from veridyn.identify.drives.drive_result import DriveEstimate, DriveReplay, DrivesFit
    from veridyn.identify.drives.friction_choice import Rung
    from veridyn.identify.drives.undetermined import OpenDirection

    times, measured, simulated, defaults = (arrays[name] for name in ARRAYS)
    replays = [
        DriveReplay(name=part.log, joints=tuple(part.joints), t=times, measured=measured, simulated=own)
        for own in (simulated, defaults)
    ]
    common: dict[str, Any] = {f.name: getattr(fit, f.name) for f in fields(Fit)}
    return DrivesFit(
        **common,
        drives=tuple(DriveEstimate(**{**d.model_dump(), "joints": tuple(d.joints)}) for d in part.numbers),
        open=tuple(OpenDirection(tuple(o.names), o.left, o.text) for o in part.open),
        terms=tuple(Rung(**t.model_dump()) for t in part.terms),
        started=parse_machine(part.started, source="the machine before the fit"),
        between=part.between,
        until=part.until,
        widening=part.widening,
        replay=replays[0],
        replay_defaults=replays[1],
    )


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
    samples = len(arrays[ARRAYS[0]]) if ARRAYS[0] in arrays else 0
    for name in ARRAYS:
        shape = (samples,) if name == ARRAYS[0] else (samples, len(part.joints))
        array = arrays.get(name)
        if array is None or array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
            shown = "none" if array is None else f"{array.dtype} {array.shape}"
            faults.add(f"array '{name}' does not fit.", expected=f"finite float64 {shape}", found=shown)
    return faults
