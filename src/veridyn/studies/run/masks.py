"""Which samples a row leaves out: spans of time, speeds that are not asked for, and joints at rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, DataWarning, Fault, warn
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.outliers import runs
from veridyn.studies.config.log import RecordingSettings

Mask = NDArray[np.bool_]
STILL = 1.0  # s: a joint that moves less for longer stands still (chosen)
RESTING = 0.01  # of its largest speed: slower than this is rest (chosen)
MUCH = 0.2  # of the samples at rest: that much is told (chosen)


@dataclass(frozen=True, eq=False)
class RecordedMotion:
    """A motion and the recording it was taken from."""

    motion: Motion
    settings: RecordingSettings


def plain(parts: Sequence[RecordedMotion]) -> list[Motion]:
    return [part.motion for part in parts]


def dropped(
    parts: Sequence[RecordedMotion], rows: Sequence[str], resting: Sequence[Mapping[str, Mask]]
) -> dict[str, Mask]:
    """Row → mask over all motions of the samples that it leaves out, by spans of time, by speed and at rest."""
    odd = [r for part in parts for r in part.settings.drop if r not in rows]
    if odd:
        raise DataError(f"'{odd[0]}' is not one of the rows.", where="drop", expected=", ".join(rows))
    by_speed = [wrong_speed(part) for part in parts]
    named = {r for part in parts for r in part.settings.drop} | {c for masks in resting for c in masks if c in rows}
    dropping = rows if any(mask.any() for mask in by_speed) else named
    out = {}
    for row in dropping:
        masks = []
        for part, wrong, still in zip(parts, by_speed, resting, strict=True):
            t, mask = part.motion.t, wrong | still.get(row, False)
            for start, end in part.settings.drop.get(row, ()):
                mask |= (t >= start) & (t <= end)
            masks.append(mask)
        out[row] = np.concatenate(masks)
    return out


def wrong_speed(part: RecordedMotion) -> Mask:
    """Samples slower or faster than those asked for."""
    low, high = part.settings.speeds
    speed = np.linalg.norm(part.motion.qd, axis=1)
    if (low, high) == (0.0, 1.0) or not len(speed):
        return np.zeros(len(speed), dtype=bool)
    slow, fast = np.quantile(speed, (low, high))
    # A sample at the bound belongs to the slower share.
    return ~((speed <= fast) & ((speed > slow) | (low == 0.0)))


def resting(machine: Machine, m: Motion) -> dict[str, Mask]:
    """Coordinate with an equation of its own → mask of the samples in which it has been at rest for a second or more, or will be."""
    rate, out = _rate_of(m), {}
    for k, c in ((k, machine.coordinates[k]) for k in machine.independent):
        still = np.abs(m.qd[:, k]) < RESTING * float(np.abs(m.qd[:, k]).max(initial=0.0))
        mask = np.zeros(len(m), dtype=bool)
        for a, b in runs(still, max(2, round(STILL * rate))):
            mask[a : b + 1] = True
        if mask.any():
            out[c] = mask
    return out


def warn_of_rest(machine: Machine, parts: Sequence[RecordedMotion]) -> None:
    """Joints that rest for much of the training logs, by name."""
    share: dict[str, float] = {}
    total = sum(len(part.motion) for part in parts)
    for part in parts:
        for c, mask in resting(machine, part.motion).items():
            share[c] = share.get(c, 0.0) + float(mask.sum()) / total
    much = {c: x for c, x in share.items() if x > MUCH}
    if much:
        fault = Fault(
            "joints stand still in spans of a second and more.",
            "training",
            f"at most {100 * MUCH:.0f} % of the samples",
            ", ".join(f"{c} {100 * x:.0f} %" for c, x in much.items()),
            "Friction may be anything there: say values: {standstill: drop}, or sampling: {dead_zone: 0.05}.",
        )
        warn(DataWarning, fault)


def _rate_of(m: Motion) -> float:
    return 1.0 / float(np.median(np.diff(m.t))) if len(m) > 1 else 1.0
