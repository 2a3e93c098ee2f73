"""A machine that follows commands by its own controllers, as a servo does: the manoeuvre, and commands out of a log.

The controllers are those of the machine (:mod:`veridyn.model.controller`), each at its own rate with its own delays; the motion is
integrated from tick to tick. The log gets ``command.JOINT`` beside what the sensors read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, part_at, warn
from veridyn.mechanics.control.controlled_run import can_be_compiled, controlled_run
from veridyn.mechanics.control.sampled import SampledControl, controlled_coordinates, with_law
from veridyn.mechanics.control.stability import growth_per_tick
from veridyn.mechanics.formulated import formulated
from veridyn.mechanics.system.control import Reference
from veridyn.mechanics.system.simulation import BaseState, Inputs, Method, Trajectory, clock
from veridyn.model.controller import MOTOR
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent

COMMAND = "command."  # begins the channel of what a coordinate is asked for
Between = Literal["hold", "linear", "cubic"]
RK4_REAL_STABILITY = 2.78  # times a decay rate: the longest stable step of Kutta's rule on the negative real axis
STEPS = Method("RK4", step=1e-3)


@dataclass(frozen=True, eq=False)
class CommandLog:
    """Commands out of the channels ``command.JOINT`` of a log, as the reference of :class:`Commanded`.

    `between` two commands the drive holds the last ("hold", the default, with ṙ = r̈ = 0), or moves along a line or a cubic spline through
    them, with their rates. Before the first and after the last command it holds. Times are those of the log, 0 being the start.
    """

    log: Experiment
    coordinates: tuple[str, ...]
    between: Between = "hold"

    def __post_init__(self) -> None:
        faults = Faults()
        for name in self.coordinates:
            channel = f"{COMMAND}{name}"
            if channel not in self.log:
                found = ", ".join(n for n in self.log.names if n.startswith(COMMAND)) or "no commands"
                faults.add(f"there is no channel '{channel}'.", where=self.log.name, found=found)
            elif not np.isfinite(self.log[channel].values).all():
                c = self.log[channel]
                first = c.t[np.flatnonzero(~np.isfinite(c.values))[0]]
                faults.add(f"'{channel}' is not a finite number at {first:.6g} s.", where=self.log.name)
            elif self.between == "cubic" and len(self.log[channel]) < 2:
                faults.add(f"'{channel}' has one command, through which no cubic goes.", where=self.log.name)
        if self.between not in get_args(Between):
            faults.add(f"between cannot be '{self.between}'.", where="commands", expected=", ".join(get_args(Between)))
        faults.raise_if_any(DataError)

    @cached_property
    def _splines(self) -> list[CubicSpline]:
        tables = (self.log[f"{COMMAND}{name}"] for name in self.coordinates)
        return [CubicSpline(c.t, c.values) for c in tables] if self.between == "cubic" else []

    def at(self, t: ArrayLike, /) -> tuple[Array, Array, Array]:
        """r, ṙ and r̈ at times (…,), each (…, n)."""
        time = np.asarray(t, dtype=np.float64)
        found = np.zeros((3, *time.shape, len(self.coordinates)))
        for k, name in enumerate(self.coordinates):
            c = self.log[f"{COMMAND}{name}"]
            found[0, ..., k] = np.interp(time, c.t, c.values)
            last = np.clip(np.searchsorted(c.t, time, side="right") - 1, 0, len(c.t) - 1)
            moving = (time >= c.t[0]) & (time < c.t[-1])
            if self.between == "hold":
                found[0, ..., k] = c.values[last]
            elif self.between == "linear" and len(c.t) > 1:
                slopes = np.diff(c.values) / np.diff(c.t)
                found[1, ..., k] = np.where(moving, slopes[np.minimum(last, len(slopes) - 1)], 0.0)
            elif self.between == "cubic":
                spline, inside = self._splines[k], np.clip(time, c.t[0], c.t[-1])
                found[0, ..., k] = spline(inside)
                found[1, ..., k], found[2, ..., k] = (np.where(moving, spline(inside, nu), 0.0) for nu in (1, 2))
        return found[0], found[1], found[2]


@dataclass(frozen=True, eq=False)
class Commanded:
    """The machine's own controllers follow `command` for `duration` seconds, sampled at `rate` Hz.

    `command`: a reference whose columns are the coordinates with a controller, in the order of the machine, or a log with their channels
    ``command.JOINT`` (see :class:`CommandLog`). The machine starts at (`q`, `qd`); by default where the command begins, others at zero,
    at rest. `model` is what the controllers compute feed-forward with, right or wrong; the machine itself by default. `inputs`: what
    acts besides, `base`: the state of a free base. `method` integrates between ticks; dry friction holds, by default.
    """

    command: Reference | Experiment
    duration: float
    rate: float
    q: ArrayLike | None = None
    qd: ArrayLike | None = None
    model: Machine | None = None
    method: Method = STEPS
    inputs: Inputs | None = None
    base: BaseState | None = None

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory:
        names, t = controlled_coordinates(machine), clock(self.duration, self.rate)
        command = CommandLog(self.command, names) if isinstance(self.command, Experiment) else self.command
        law = SampledControl(machine, command, self.model)
        asked = command.at(t)[0]
        _check(machine, names, asked, self.method)
        q, qd = np.zeros(machine.n), np.zeros(machine.n)
        q[[machine.coordinates.index(name) for name in names]] = asked[0]
        q = q if self.q is None else np.asarray(self.q, dtype=np.float64)
        qd = qd if self.qd is None else np.asarray(self.qd, dtype=np.float64)
        if q.shape == (machine.n,):
            _warn_if_unstable(machine, q, self.model, self.duration)
        given = self.inputs or Inputs()
        if self.base is None and can_be_compiled(machine, given, self.method):
            found = controlled_run(law, t, q, qd, given, self.method, progress)
        else:
            _refuse_load(machine)
            acting, form = with_law(machine, law, given), formulated(machine)
            found = form.integrated(t, q, qd, acting, base=self.base, method=self.method, progress=progress)
        return replace(found, commands={name: asked[:, k] for k, name in enumerate(names)})


def _refuse_load(machine: Machine) -> None:
    """Friction that grows with load is part of compiled runs alone."""
    for c in machine.controllers:
        if c.rubs:
            raise DataError(
                "friction that grows with load is simulated on open machines that are held, by RK4, with inputs that are not loads.",
                where=part_at("controller", c.name),
                hint="Leave load_friction and backdrive_friction out, or take method=Method('RK4', step).",
            )


def _check(machine: Machine, names: tuple[str, ...], asked: Array, method: Method) -> None:
    faults = Faults()
    if asked.ndim != 2 or asked.shape[1] != len(names):
        expected = f"{len(names)} columns: {', '.join(names)}"
        faults.add(
            "the command is not one of this machine.", where=machine.name, expected=expected, found=f"{asked.shape}"
        )
    for e in machine.elements:
        decay = e.constant("resistance") / e.constant("inductance") if e.kind == MOTOR else 0.0
        if method.name == "RK4" and method.step * decay > RK4_REAL_STABILITY:
            faults.add(
                "the step is too long for its winding.",
                where=part_at("element", e.parameter_name),
                expected=f"method=Method('RK4', step) with a step below {RK4_REAL_STABILITY / decay:.2g} s",
                found=f"{method.step:g} s",
            )
    faults.raise_if_any(DataError)


def _warn_if_unstable(machine: Machine, q: Array, model: Machine | None, duration: float) -> None:
    found = growth_per_tick(machine, q, model)
    if found is None or found.doubling_time > duration:
        return
    hint = "Lower kp or kd, raise rate, or shorten the delays; a pose that gravity topples needs a higher kp."
    what = (
        f"about the start, small errors double every {found.doubling_time:.3g} s under the controllers, most of all those of "
        f"'{found.coordinate}'."
    )
    where = part_at("controller", found.controller)
    warn(DataWarning, Fault(what, where, expected="errors that do not double during the run", hint=hint))
