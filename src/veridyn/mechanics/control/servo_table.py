"""PD and PID controllers of a machine as flat arrays, one entry for each joint: what a compiled run of a machine takes.

At tick k of joint j, with period T, r and ṙ read at k T − command_delay and q, q̇ at k T − measurement_delay:

    Γ = bounded(kp (r − q) + kd (ṙ − q̇) + velocity_feedforward ṙ + acceleration_feedforward r̈ + I)
    I ← I + T ki (r − q), as `windup` allows

:class:`~veridyn.mechanics.control.sampled.SampledControl` is the reference for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Faults, ModelError, part_at
from veridyn.model.controller import ANTI_WINDUPS, MULTIPLE_TOLERANCE
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
SERVO_KINDS = ("pd", "pid")
CLAMP, BACK_CALCULATION, NO_ANTI_WINDUP = range(len(ANTI_WINDUPS))  # what `windup` holds
BOUNDS = ("limit", "rate_limit", "tracking_time")
COLUMNS = (
    *("kp", "ki", "kd", "velocity_feedforward", "acceleration_feedforward"),
    *("limit", "rate_limit", "tracking_time", "command_delay", "measurement_delay"),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class ServoTable:
    """One entry for each controller, in the order of the machine's coordinates; limits and tracking times are infinite where none is given.

    `names` are those of the controllers, so that "NAME.kp" names an entry; `joints` (k,) number their coordinates; `period` (s).
    """

    names: tuple[str, ...]
    joints: NDArray[np.int64]
    period: Array
    windup: NDArray[np.int64]
    kp: Array
    ki: Array
    kd: Array
    velocity_feedforward: Array
    acceleration_feedforward: Array
    limit: Array
    rate_limit: Array
    tracking_time: Array
    command_delay: Array
    measurement_delay: Array

    def __len__(self) -> int:
        return len(self.names)

    def on_joints(self, key: str, n: int) -> Array:
        """A column over all n joints of the machine: zero for joints without a servo, infinite where the column is a bound."""
        out = np.full(n, np.inf if key in BOUNDS else 0.0)
        out[self.joints] = getattr(self, key)
        return out

    def ticks(self, step: float) -> NDArray[np.int64]:
        """How many integration steps of `step` seconds a period has; refused where it is no whole number."""
        return self._steps(self.period, step, "period", 1)

    def lags(self, step: float) -> NDArray[np.int64]:
        """How many integration steps old the measurements are; refused where it is no whole number."""
        return self._steps(self.measurement_delay, step, "measurement_delay", 0)

    def _steps(self, times: Array, step: float, word: str, least: int) -> NDArray[np.int64]:
        whole, faults = np.rint(times / step), Faults()
        off = (np.abs(times / step - whole) > MULTIPLE_TOLERANCE * np.maximum(whole, 1.0)) | (whole < least)
        for j in np.flatnonzero(off):
            faults.add(
                f"its {word} is no multiple of the step.",
                where=part_at("controller", self.names[j]),
                expected=f"a step of {times[j]:g} s divided by a whole number",
                found=f"{step:g} s",
            )
        faults.raise_if_any(DataError)
        return whole.astype(np.int64)


def servo_table(machine: Machine) -> ServoTable:
    """The table of a machine's controllers; kinds that are no servo, models and motors are refused by name."""
    faults = Faults()
    for c in machine.controllers:
        odd = [f"kind {c.kind}"] * (c.kind not in SERVO_KINDS)
        odd += [f"feedforward {c.feedforward}"] * (c.feedforward != "none") + [f"motor {c.motor}"] * bool(c.motor)
        if odd:
            what = "it is no servo whose force is that of its own joint alone."
            faults.add(what, where=part_at("controller", c.name), expected="pd or pid", found=", ".join(odd))
    faults.raise_if_any(ModelError, machine.name)
    order = sorted(machine.controllers, key=lambda c: machine.coordinates.index(c.on))
    # A constant that a kind does not have acts like its default in the other kind: no integral, no limit.
    absent = {"ki": 0.0, "tracking_time": np.inf}
    columns = {
        key: np.array([c.constants.get(key, absent.get(key, c.constant(key))) for c in order]) for key in COLUMNS
    }
    return ServoTable(
        names=tuple(c.name for c in order),
        joints=np.array([machine.coordinates.index(c.on) for c in order], dtype=np.int64),
        period=np.array([1.0 / c.rate for c in order]),
        windup=np.array([ANTI_WINDUPS.index(c.anti_windup) for c in order], dtype=np.int64),
        **columns,
    )
