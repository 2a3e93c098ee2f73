"""A machine that follows commands by its own controllers, as a servo does: the manoeuvre, commands out of a log, and whether it holds.

The controllers are those of the machine (:mod:`veridyn.model.controller`), each at its own rate with its own delays; the motion is
integrated from tick to tick. The log gets ``command.JOINT`` beside what the sensors read.

Whether the controllers hold the machine is how much small errors about a pose grow from tick to tick. The machine is linearised about the
pose at rest, without dry friction, and the laws about it within their limits. With forces held over a period T the state x = (δq, δq̇) moves
by matrix exponentials,

    x(t_k + s) = Φ(s) x_k + G(s) u_k,    Φ(s) = e^{A s},    G(s) = ∫₀ˢ e^{A σ} dσ B

and a measurement of age n T + δ is x(t_k − δ), kept for n more ticks. The eigenvalues of the whole map from tick to tick decide; see
K. J. Åström and B. Wittenmark, Computer-Controlled Systems, 3rd ed., 1997, sections 3.2 and 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.linalg import expm

from veridyn.arguments import checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, part_at, warn
from veridyn.mechanics.control.controlled_run import can_be_compiled, controlled_run
from veridyn.mechanics.control.law import ControlConstants, ControlTick, law_states, limited, requested
from veridyn.mechanics.control.sampled import SampledControl, controlled_coordinates, with_law
from veridyn.mechanics.formulated import formulated
from veridyn.mechanics.system.dry_friction import dry_friction
from veridyn.mechanics.system.simulation import BaseState, Inputs, Method, Trajectory, clock
from veridyn.mechanics.tree.dynamics.evaluator import Evaluator
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.model.controller import MOTOR, Controller
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Reference
from veridyn.progress import Progress, silent

COMMAND = "command."  # begins the channel of what a coordinate is asked for
Between = Literal["hold", "linear", "cubic"]
RK4_REAL_STABILITY = 2.78  # times a decay rate: the longest stable step of Kutta's rule on the negative real axis
STEPS = Method("RK4", step=1e-3)


@checked_record
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


STEP = 1e-6  # rad, m, rad/s or m/s, of central differences
LIMITS = ("limit", "rate_limit", "speed_limit")


@dataclass(frozen=True)
class ErrorGrowth:
    """The factor by which the least stable small motion grows each tick of `period` seconds, and where most of it is."""

    factor: float
    period: float
    coordinate: str
    controller: str

    @property
    def doubling_time(self) -> float:
        """The time in which small errors double, s; infinite where they do not grow."""
        return self.period * math.log(2.0) / math.log(self.factor) if self.factor > 1.0 else math.inf


def growth_per_tick(machine: Machine, q: Array, model: Machine | None = None) -> ErrorGrowth | None:
    """How small errors about the pose q (n,) at rest grow under the controllers of a machine; `model` is theirs.

    None where this linear view does not hold: controllers of several rates or with a current loop, machines with loops, a free base,
    prescribed coordinates, or elements with signals or states of their own.
    """
    laws = [_unlimited(c) for c in machine.controllers]
    plain = not (machine.closed or machine.base == "free" or machine.prescribed or machine.signals)
    if not laws or not plain or len({c.rate for c in laws}) > 1:
        return None
    A, B = _linearised(machine, q)
    A_step, kept = _map(machine, laws, A, B, _law_slopes(machine, laws, q, model or machine))
    values, vectors = np.linalg.eig(A_step)
    worst = int(np.argmax(np.abs(values)))
    speeds = np.abs(vectors[kept[machine.n :], worst])
    on = [machine.coordinates.index(c.on) for c in laws]
    most = on[int(np.argmax(speeds[on]))]
    name = machine.coordinates[most]
    return ErrorGrowth(
        float(np.abs(values[worst])), 1.0 / laws[0].rate, name, next(c.name for c in laws if c.on == name)
    )


def _unlimited(c: Controller) -> Controller:
    return replace(c, constants={k: x for k, x in c.constants.items() if k not in LIMITS})


def _smooth(machine: Machine) -> Evaluator:
    """The machine without dry friction, one state a call."""
    values = complete_values(machine)
    dry = dry_friction(machine, values)
    return Evaluator(machine, values if dry is None else dry.smooth_values)


def _differences(f: Callable[[Array], Array], x: Array) -> Array:
    """∂f/∂x by central differences."""
    columns = []
    for k in range(len(x)):
        move = np.zeros(len(x))
        move[k] = STEP
        columns.append((f(x + move) - f(x - move)) / (2.0 * STEP))
    return np.array(columns).T


def _linearised(machine: Machine, q: Array) -> tuple[Array, Array]:
    """A (2n, 2n) and B (2n, n) of ẋ = A x + B u about a pose at rest, which the forces there hold."""
    one, n = _smooth(machine), machine.n
    held = one.inverse_dynamics(q, np.zeros(n), np.zeros(n)).copy()

    def rate(x: Array) -> Array:
        return np.concatenate([x[n:], one.forward_dynamics(x[:n], x[n:], held)])

    B = np.zeros((2 * n, n))
    B[n:] = np.linalg.inv(one.mass_matrix(q))
    return _differences(rate, np.concatenate([q, np.zeros(n)])), B


def _law_slopes(machine: Machine, laws: list[Controller], q: Array, model: Machine) -> Array:
    """(controllers, 2, 2n + 1): force and growth of the integral of each law by what it measures, and by its integral."""
    one, n = _smooth(model), machine.n
    torques = [machine.coordinates.index(c.on) for c in laws if c.kind == "computed_torque"]
    found = np.zeros((len(laws), 2, 2 * n + 1))
    for row, c in enumerate(laws):
        j, k = machine.coordinates.index(c.on), ControlConstants(c)

        def tick(x: Array, c: Controller = c, j: int = j, k: ControlConstants = k) -> Array:
            state = dict.fromkeys(law_states(c), float(x[-1]))
            ahead = 0.0
            if c.feedforward == "gravity":
                ahead = float(one.inverse_dynamics(x[:n], np.zeros(n), np.zeros(n))[j])
            t = ControlTick(float(q[j]), 0.0, 0.0, float(x[j]), float(x[n + j]), ahead)
            raw = requested(c, t, state, k)
            if c.kind == "computed_torque":
                wanted = np.zeros(n)
                for other, place in zip((o for o in laws if o.kind == "computed_torque"), torques, strict=True):
                    at = ControlTick(float(q[place]), 0.0, 0.0, float(x[place]), float(x[n + place]))
                    wanted[place] = requested(other, at, {}, ControlConstants(other))
                raw = float(one.inverse_dynamics(x[:n], x[n : 2 * n], wanted)[j])
            force, after = limited(c, t, raw, state, k)
            return np.array([force, after.get("integral", 0.0)])

        found[row] = _differences(tick, np.concatenate([q, np.zeros(n + 1)]))
    return found


def _map(machine: Machine, laws: list[Controller], A: Array, B: Array, slopes: Array) -> tuple[Array, NDArray[np.intp]]:
    """The map of (x, measurements on their way, integrals) from tick to tick, and the places of x in it."""
    n, period = machine.n, 1.0 / laws[0].rate
    whole = [math.floor(c.constant("measurement_delay") / period + 1e-9) for c in laws]
    parts = [max(c.constant("measurement_delay") - m * period, 0.0) for c, m in zip(laws, whole, strict=True)]
    slots = [m + (d > 1e-9 * period) for m, d in zip(whole, parts, strict=True)]
    starts = 2 * n + 2 * n * np.concatenate([[0], np.cumsum(slots)]).astype(int)
    size, x = int(starts[-1]) + len(laws), np.arange(2 * n)
    u, after = np.zeros((n, size)), np.zeros((size, size))
    for j, c in enumerate(laws):
        # Measurements enter at the first slot and are read from the last; without slots the law reads the state itself.
        read = x if slots[j] == 0 else starts[j + 1] - 2 * n + x
        inner = int(starts[-1]) + j
        on = machine.coordinates.index(c.on)
        u[on, read] += slopes[j, 0, : 2 * n]
        u[on, inner] += slopes[j, 0, -1]
        after[inner, read] += slopes[j, 1, : 2 * n]
        after[inner, inner] += slopes[j, 1, -1]
    phi, g = _held(A, B, period)
    after[: 2 * n] = g @ u
    after[: 2 * n, : 2 * n] += phi
    for j, (count, part) in enumerate(zip(slots, parts, strict=True)):
        if count == 0:
            continue
        first = starts[j] + x
        if part > 1e-9 * period:
            phi_part, g_part = _held(A, B, period - part)
            after[first] = g_part @ u
            after[np.ix_(first, x)] += phi_part
        else:
            after[first, x] = 1.0
        for m in range(1, count):
            after[first + 2 * n * m, first + 2 * n * (m - 1)] = 1.0
    return after, x


def _held(A: Array, B: Array, time: float) -> tuple[Array, Array]:
    """Φ and G over a time in which the input is held."""
    n, m = B.shape
    block = np.zeros((n + m, n + m))
    block[:n, :n], block[:n, n:] = A * time, B * time
    e = np.asarray(expm(block), dtype=np.float64)
    return e[:n, :n], e[:n, n:]
