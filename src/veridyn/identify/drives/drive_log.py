"""What drives were asked for and what their encoders read: channels ``command.JOINT`` and ``position.JOINT`` on one clock.

A drive holds a command until the next one, or moves along the line between both. What a tick of the drive reads is the mean of the command
over that tick, of a command `delay` seconds ago, so that a delay acts continuously:

    r̄(t) = (R(t + h − delay) − R(t − delay))/h,     ∂r̄/∂delay = −(r(t + h − delay) − r(t − delay))/h,     R = ∫ r dt
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Faults, part_at, warn
from veridyn.inference.finding import Mistake
from veridyn.inference.log_inspection import log_mistakes
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.signals.command_checks import (
    CommandedLog,
    clock_faults,
    command_faults,
    command_warnings,
    saturation_faults,
)

Between = Literal["hold", "linear"]
COMMAND, POSITION = "command.", "position."
SATURATION = "saturation"  # the kind of mistake of a drive at its limit, where its gains do not act
CLOCK_TOLERANCE = 0.25  # of a step: how far a sample may lie from its place on an even clock
FEWEST_SAMPLES = 50
DEGREES = 180.0 / np.pi
SAME_SCALE = 1.25  # factor within which a ratio of two spreads counts as 180/π
NEARER = 3.0  # times: a command that is so much nearer to a position than its own is that of another joint
START_SAMPLES = 5  # from which the speed at the start is read
MOVING_SIGMAS = 4.0  # of that speed, from which on it is not rest
SMALLEST_NOISE = 1e-9  # rad or m: positions of a simulation have none


@dataclass(frozen=True, eq=False, kw_only=True)
class DriveRecord:
    """K samples every `step` seconds from the time `start`: commands and positions (K, n) of the coordinates, rad or m.

    `run`: its number among the runs of a fit. `mistakes`: what speaks against its encoders, and drives that are at a limit.
    """

    name: str
    coordinates: tuple[str, ...]
    start: float
    step: float
    command: Array
    position: Array
    between: Between = "hold"
    run: int = 0
    mistakes: tuple[Mistake, ...] = ()

    def __len__(self) -> int:
        return len(self.position)

    @property
    def t(self) -> Array:
        """Times of the samples since the first, s."""
        return self.step * np.arange(len(self), dtype=np.float64)

    def until(self, end: float) -> DriveRecord:
        """The first `end` seconds."""
        return self.cut(0, int(np.searchsorted(self.t, end)))

    def cut(self, first: int, last: int) -> DriveRecord:
        """Samples `first` to `last` − 1 as a record of their own."""
        return replace(
            self,
            start=self.start + self.step * first,
            command=self.command[first:last],
            position=self.position[first:last],
        )

    @cached_property
    def starting_speed(self) -> Array:
        """(n,): the slope of the first positions, zero where that is within its own uncertainty."""
        slope, sigma, _ = self._first_slope
        return np.where(np.abs(slope) > MOVING_SIGMAS * sigma, slope, 0.0)

    @cached_property
    def start_sigma(self) -> tuple[Array, Array]:
        """Deviations of the first position as it was read and of the starting speed, (n,) each.

        The noise of an encoder has third differences of √20 times its deviation. A slope over some samples has that noise, and differs
        from the slope at their beginning by what the positions bend.
        """
        noise = np.maximum(np.diff(self.position, 3, axis=0).std(axis=0) / np.sqrt(20.0), SMALLEST_NOISE)
        _, _, bend = self._first_slope
        spread = self.step * np.sqrt(((np.arange(START_SAMPLES) - 0.5 * (START_SAMPLES - 1)) ** 2).sum())
        return noise, np.hypot(noise / spread, bend)

    @cached_property
    def _first_slope(self) -> tuple[Array, Array, Array]:
        """The slope of the first positions, its deviation, and how far the slope of a parabola at the first of them is from it."""
        k = min(START_SAMPLES, len(self))
        t = self.t[:k] - self.t[:k].mean()
        y = self.position[:k] - self.position[:k].mean(axis=0)
        slope = t @ y / (t @ t)
        rest = y - np.outer(t, slope)
        sigma = np.sqrt((rest**2).sum(axis=0) / max(k - 2, 1) / (t @ t))
        square = t**2 - (t**2).mean()
        return slope, sigma, 2.0 * t[0] * (square @ rest) / (square @ square)

    def ticks(self, j: int, count: int, h: float, delay: float) -> tuple[Array, Array, Array, Array]:
        """r̄, the command's rate as the drive reads it, and the slopes of both by time, (count,) each, of coordinate j every h seconds.

        A drive that holds its command reads no rate.
        """
        t = h * np.arange(count, dtype=np.float64) - delay
        slope = (self._command(j, t + h) - self._command(j, t)) / h
        mean = (self._integral(j, t + h) - self._integral(j, t)) / h
        none = np.zeros(count)
        if self.between == "hold":
            return mean, none, slope, none
        return mean, slope, slope, (self._rate(j, t + h) - self._rate(j, t)) / h

    def _command(self, j: int, t: Array) -> Array:
        c = self.command[:, j]
        return np.interp(t, self.t, c) if self.between == "linear" else c[self._at(t)]

    def _at(self, t: Array) -> NDArray[np.intp]:
        """The last sample before each time."""
        return np.clip(np.floor(t / self.step + 1e-9).astype(np.intp), 0, len(self) - 1)

    def _rate(self, j: int, t: Array) -> Array:
        """ṙ along the lines between commands, zero before the first."""
        return np.where(t >= 0.0, np.append(np.diff(self.command[:, j]), 0.0)[self._at(t)] / self.step, 0.0)

    @cached_property
    def _sums(self) -> Array:
        """∫ r dt from the first sample to each (K, n)."""
        c = self.command
        mean = 0.5 * (c[1:] + c[:-1]) if self.between == "linear" else c[:-1]
        return np.concatenate([np.zeros((1, c.shape[1])), np.cumsum(self.step * mean, axis=0)])

    def _integral(self, j: int, t: Array) -> Array:
        """∫ r dt from the first sample to t; before and after the record the command is constant."""
        c, s, k = self.command[:, j], self._sums[:, j], self._at(t)
        past = t - self.step * k
        along = 0.0 if self.between == "hold" else 0.5 * self._rate(j, t) * past**2
        return s[k] + past * c[k] + along


def drive_records(
    machine: Machine, logs: Experiment | Sequence[Experiment], between: Between = "hold"
) -> tuple[DriveRecord, ...]:
    """The record of each log; every fault of all of them at once."""
    faults = Faults()
    given = [logs] if isinstance(logs, Experiment) else list(logs)
    for log in given:
        if not isinstance(log, Experiment):
            hint = "Read it with veridyn.load_log; its channels are command.JOINT and position.JOINT."
            raise DataError("drives are identified from logs.", where="data", found=type(log).__name__, hint=hint)
    found = [_record(machine, log, between, faults, run) for run, log in enumerate(given)]
    faults.raise_if_any(DataError, machine.name)
    if not found:
        raise DataError("there is no log.", where="data")
    return tuple(r for r in found if r is not None)


def _record(machine: Machine, log: Experiment, between: Between, faults: Faults, run: int) -> DriveRecord | None:
    before = len(faults.found)
    asked, read = [], []
    for c in machine.coordinates:
        unit = "rad" if machine.kinds[c] == "turning" else "m"
        for start, into in ((COMMAND, asked), (POSITION, read)):
            name = start + c
            if name not in log:
                faults.add(
                    f"there is no channel '{name}'.",
                    where=log.name,
                    hint="Each joint needs command.JOINT and position.JOINT.",
                )
                continue
            channel = log[name]
            if channel.unit != unit:
                faults.add(
                    "its unit does not belong to its joint.",
                    where=part_at("channel", name),
                    expected=unit,
                    found=channel.unit,
                )
            elif not (np.isfinite(channel.values).all() and np.isfinite(channel.t).all()):
                faults.add(
                    "it has samples that are no numbers.", where=part_at("channel", name), hint="Cut the log there."
                )
            else:
                into.append(channel)
    if len(faults.found) > before:
        return None
    t = read[0].t
    if len(t) < FEWEST_SAMPLES:
        faults.add("it has too few samples.", where=log.name, expected=f"{FEWEST_SAMPLES} or more", found=f"{len(t)}")
        return None
    step = float((t[-1] - t[0]) / (len(t) - 1))
    grid = t[0] + step * np.arange(len(t), dtype=np.float64)
    worst = int(np.argmax(np.abs(t - grid)))
    if not step > 0.0 or abs(t[worst] - grid[worst]) > CLOCK_TOLERANCE * step:
        faults.add(
            "its clock is not even.",
            where=log.name,
            expected=f"steps of {step:.4g} s",
            found=f"a sample {abs(t[worst] - grid[worst]):.3g} s from its place at {t[worst]:.6g} s",
            hint="Cut the log at its gap.",
        )
        return None
    faults.extend(clock_faults(asked, t))
    if len(faults.found) > before:
        return None
    command = np.stack([_held(c, grid, step) for c in asked], axis=1)
    position = np.stack([c.values if np.array_equal(c.t, t) else np.interp(grid, c.t, c.values) for c in read], axis=1)
    _check_columns(machine, log, command, position, faults)
    limited: list[Mistake] = []
    if len(faults.found) == before:
        limited = _check_drives(machine, log.name, step, command, position, faults)
    roles = {POSITION + c: f"q.{c}" for c in machine.coordinates}
    return DriveRecord(
        name=log.name,
        coordinates=machine.coordinates,
        start=float(t[0]),
        step=step,
        command=command,
        position=position,
        between=between,
        run=run,
        mistakes=(*log_mistakes([log], roles), *limited) if len(faults.found) == before else (),
    )


def _check_drives(
    machine: Machine, name: str, step: float, command: Array, position: Array, faults: Faults
) -> list[Mistake]:
    """Clocks, signs, stops and limits, with what is known of the drives; those that are at a limit."""
    laws = {c.on: c for c in machine.controllers}
    own = {
        key: np.array([laws[c].constants.get(key, default) if c in laws else default for c in machine.coordinates])
        for key, default in (("kp", 0.0), ("kd", 0.0), ("limit", np.inf))
    }
    log = CommandedLog(
        name=name,
        joints=machine.coordinates,
        turning=tuple(machine.kinds[c] == "turning" for c in machine.coordinates),
        step=step,
        command=command,
        position=position,
        tick=1.0 / machine.controllers[0].rate if machine.controllers else step,
        **own,
    )
    found = command_faults(log)
    faults.extend(found)
    if found:
        return []
    for fault in command_warnings(log):
        warn(DataWarning, fault)
    return [Mistake(SATURATION, replace(fault, where=f"{name}, {fault.where}")) for fault in saturation_faults(log)]


def _held(c: Channel, grid: Array, step: float) -> Array:
    """The last command at each time of the grid, to a hundredth of its step."""
    return c.values[np.clip(np.searchsorted(c.t, grid + CLOCK_TOLERANCE * step, side="right") - 1, 0, len(c) - 1)]


def _check_columns(machine: Machine, log: Experiment, command: Array, position: Array, faults: Faults) -> None:
    """Positions in degrees, and commands of another joint."""
    spread = command.std(axis=0), position.std(axis=0)
    for j, name in enumerate(machine.coordinates):
        ratio = spread[1][j] / spread[0][j] if spread[0][j] > 0.0 else 1.0
        for factor, which in ((DEGREES, POSITION), (1.0 / DEGREES, COMMAND)):
            if machine.kinds[name] == "turning" and 1.0 / SAME_SCALE < ratio / factor < SAME_SCALE:
                faults.add(
                    "it looks like degrees.",
                    where=part_at("channel", which + name),
                    found=f"positions vary {ratio:.3g} times as much as commands",
                    hint="Name the unit where the log is loaded: units={…: 'deg'}.",
                )
    off = np.array(
        [[np.std(command[:, k] - position[:, j]) for k in range(command.shape[1])] for j in range(position.shape[1])]
    )
    for j, name in enumerate(machine.coordinates):
        k = int(np.argmin(off[j]))
        if k != j and NEARER * off[j, k] < off[j, j] and NEARER * off[j, k] < off[k, k]:
            faults.add(
                f"it follows the command of '{machine.coordinates[k]}', not its own.",
                where=part_at("channel", POSITION + name),
                found=f"{off[j, j]:.3g} from its own command, {off[j, k]:.3g} from the other",
                hint="Look for columns that were exchanged.",
            )
