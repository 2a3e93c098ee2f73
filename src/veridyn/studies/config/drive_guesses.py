"""What a log of commands and encoders says of drives before anything is identified: which columns are commands, and what gains may be.

A column is a command where a word of its name says so (q_des, q_cmd, target, dof_target, des_pos, command.JOINT); what is left of the name
belongs to a joint as any other column does.

Gains and friction are guessed from the model's masses: the rigid machine needs the forces y along the measured positions, and its drives
gave them,

    y = kp (r − q) − d q̇ − Ia q̈ − f sign q̇,      kp, d, Ia, f ≥ 0,

joint by joint in least squares. d is kd and viscous friction together. These are starting values to look at, without deviations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from veridyn.arrays import Array
from veridyn.identify.drives.drive_log import COMMAND, POSITION, DriveRecord
from veridyn.identify.drives.drive_unknowns import ELEMENTS
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.derivative import derivative
from veridyn.studies.config.guessing import (
    COMMANDED,
    DEGREES_FROM,
    Guess,
    LogTable,
    joint_numbers,
    kind_of,
    pick,
    unit_guess,
)

WORDS = (*COMMANDED, "commanded", "commands", "targets", "setpoint", "setpoints", "goals")
IN_DEGREES = 1 / 3  # of the turning joints: with more beyond DEGREES_FROM the log is taken to be in degrees
COMMAND_POWER = 0.95  # of the power of the commands lies below the frequency that a low-pass is chosen from
PASSED = 4.0  # times that frequency: the cut-off of the low-pass
HIGHEST = 0.2  # of the rate: the highest cut-off
SLOW = 0.05  # of the rms speed: dry friction is rounded off below it
SPREAD = 2.0  # largest over smallest kp of the better half of the joints: gains further apart are not one number
EXPLAINED = 0.5  # of the forces: where more is left, what the model needs and what drives give do not belong together


def command_guesses(machine: Machine, table: LogTable) -> list[Guess]:
    """Channels ``command.JOINT`` and ``position.JOINT`` of the joints of which both are found."""
    names = {COMMAND: _asked(table.columns), POSITION: {n: n for n in table.columns if _without_words(n) is None}}
    numbers = {start: joint_numbers(machine, "q", list(own), table.texts) for start, own in names.items()}
    found: list[tuple[str, str, str, str]] = []
    taken: set[str] = set()
    for k, at in enumerate(machine.independent):
        c, pair = machine.coordinates[at], []
        for start, own in names.items():
            free = {n: column for n, column in own.items() if column not in taken}
            exact = next((n for n, column in free.items() if column.lower() == f"{start}{c}".lower()), None)
            picked = (exact, "") if exact else pick("q", numbers[start][k], c, machine.n == 1, list(free))
            if picked is not None:
                pair.append((f"{start}{c}", free[picked[0]], picked[1], c))
        if len(pair) == len(names):
            found += pair
            taken |= {column for _, column, _, _ in pair}
    return _with_units(machine, table, found)


def _asked(columns: Mapping[str, Array]) -> dict[str, str]:
    """Names of commands without the word that makes them commands → their column; the first of several that are alike."""
    out: dict[str, str] = {}
    for name in columns:
        left = _without_words(name)
        if left is None or kind_of(left) not in (None, "q"):
            continue
        number = re.fullmatch(r"[^\d]*?[ _.\[(]*(\d+)[\])]?", left)
        if number and kind_of(left) is None:  # dof_target_3: of a position, as no word says otherwise
            out.setdefault(f"q_{number[1]}", name)
        out.setdefault(left, name)
    return out


def _without_words(name: str) -> str | None:
    """q_0 of q_des_0, None where no word of a name says that it is a command."""
    words = "|".join(WORDS)
    left, count = re.subn(rf"(?i)(?<![a-z])(?:{words})(?![a-z])[ _.]*", "", name)
    return left.strip(" _.") if count else None


def _with_units(machine: Machine, table: LogTable, found: Sequence[tuple[str, str, str, str]]) -> list[Guess]:
    """Units of the header, else degrees for all turning joints or for none."""
    size = {c: 0.0 for _, _, _, c in found if machine.kinds[c] == "turning"}
    for _, column, _, c in found:
        if c in size and not table.units.get(column):
            size[c] = max(size[c], float(np.nanmax(np.abs(table.columns[column]), initial=0.0)))
    beyond = sum(x > DEGREES_FROM for x in size.values())
    degrees = beyond > IN_DEGREES * len(size)
    out = []
    for channel, column, why, c in found:
        unit, because = unit_guess("q", machine.kinds[c] == "turning", np.zeros(0), table.units.get(column, ""))
        if because and degrees and c in size:
            unit, because = "deg", f"unit guessed: {beyond} joints go beyond {DEGREES_FROM:g}"
        out.append(Guess(channel, column, unit, "; ".join(w for w in (why, because) if w)))
    return out


@dataclass(frozen=True, eq=False)
class DriveNumbers:
    """Of each joint kp, kd with viscous friction, armature and dry friction (n, 4), and the share of the forces that they leave (n,)."""

    joints: tuple[str, ...]
    values: Array
    left: Array

    @property
    def gains(self) -> tuple[float, float] | None:
        """kp and kd of all drives: those of the joint in the middle of the better half; None where that half does not agree on any."""
        better = np.argsort(self.left)[: (len(self.joints) + 1) // 2]
        kp = self.values[better, 0]
        if not kp.min() > 0.0 or kp.max() > SPREAD * kp.min() or self.left[better].max() > EXPLAINED:
            return None
        return float(np.median(kp)), float(np.median(self.values[better, 1]))


def drive_numbers(machine: Machine, record: DriveRecord) -> DriveNumbers:
    """Starting values by the forces that the rigid machine needs along the measured positions."""
    rate = 1.0 / record.step
    low = Butterworth(_cutoff(record, rate), 4)
    q, r = (zero_phase(x, rate, low) for x in (record.position, record.command))
    r = r - 0.5 * record.step * derivative(
        r, rate
    )  # held until the next one, a command is half a step late in the mean
    qd, qdd = derivative(q, rate), derivative(q, rate, order=2)
    own = {e.parameter_name: 0.0 for e in machine.elements if e.kind in ELEMENTS}
    motion = Motion(record.t, q, qd, qdd)
    y = zero_phase(inverse_dynamics(machine.with_parameters(own), motion), rate, low)
    found, left = np.zeros((machine.n, 4)), np.ones(machine.n)
    tiny = np.finfo(np.float64).tiny
    for j in range(machine.n):
        slow = SLOW * max(float(np.sqrt(np.mean(qd[:, j] ** 2))), tiny)
        way = zero_phase(np.tanh(qd[:, j] / slow), rate, low)
        A = np.stack([r[:, j] - q[:, j], -qd[:, j], -qdd[:, j], -way], axis=1)
        size = np.maximum(np.abs(A).max(axis=0), tiny)
        x, rest = nnls(A / size, y[:, j])
        found[j], left[j] = x / size, rest / max(float(np.linalg.norm(y[:, j])), tiny)
    return DriveNumbers(machine.coordinates, found, left)


def _cutoff(record: DriveRecord, rate: float) -> float:
    """A few times the frequency below which most of the commanded motion lies."""
    moved = record.command - record.command.mean(axis=0)
    total = np.cumsum((np.abs(np.fft.rfft(moved, axis=0)) ** 2).sum(axis=1))
    f = np.fft.rfftfreq(len(moved), record.step)
    top = f[int(np.searchsorted(total, COMMAND_POWER * total[-1]))] if total[-1] > 0.0 else 0.0
    return float(np.clip(PASSED * top, 2.0 / record.t[-1], HIGHEST * rate))
