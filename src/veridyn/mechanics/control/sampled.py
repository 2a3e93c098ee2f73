"""The controllers of a machine while it runs: each ticks at its own rate, with its delays, and holds its force between ticks.

Instants at which a controller reads or acts are instants of the integration: a measurement of age d is the state at t_k − d itself, not
an interpolation. Before the start the machine stood as it starts, and the command was its first.

Runs of open machines on a fixed base in fixed steps are compiled (:mod:`veridyn.mechanics.control.controlled_run`). This serves what is
not, and is the reference for it: loops, free bases, wrenches, placed loads, and integrators that choose their steps.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, SimulationError, part_at
from veridyn.mechanics.control.law import (
    LAW,
    READ,
    ControlConstants,
    ControlTick,
    Numbers,
    Schedule,
    law_states,
    limited,
    requested,
    schedule,
    voltage,
)
from veridyn.mechanics.system.simulation import SAME_INSTANT_S, Inputs
from veridyn.mechanics.tree.dynamics.evaluator import Evaluator
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.controller import Controller, check_controllers
from veridyn.model.elements.element import Element
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Reference


def controlled_coordinates(machine: Machine) -> tuple[str, ...]:
    """The coordinates that have a controller, in the order of the machine: that of a command's columns."""
    own = {c.on for c in machine.controllers}
    return tuple(name for name in machine.coordinates if name in own)


@dataclass
class _Instant:
    """What happens at one time: (controller, number of the tick) that read, and (controller, number, whether its law ticks) that act."""

    reads: list[tuple[int, int]]
    acts: list[tuple[int, int, bool]]


@dataclass
class RunningController:
    """A controller with its state: the integral and force of its law, the current asked for, and the integral of its current loop."""

    law: Controller
    constants: ControlConstants
    joint: int
    column: int
    motor: Element | None
    state: dict[str, float]
    readings: dict[int, tuple[Array, Array]] = field(default_factory=dict)
    current: float = 0.0
    current_integral: float = 0.0


class SampledControl:
    """All controllers of a machine at once, for ``Inputs.sampled``: `forces` and `signals` are what they hold.

    `command` gives r, ṙ and r̈ of :func:`controlled_coordinates`. `model`: what feed-forward and computed torques are computed with, right
    or wrong; the machine itself by default.
    """

    def __init__(self, machine: Machine, command: Reference, model: Machine | None = None) -> None:
        _check(machine, model or machine)
        columns = controlled_coordinates(machine)
        motors = {e.parameter_name: e for e in machine.elements}
        self.machine, self.command = machine, command
        self.running = [
            RunningController(
                c,
                ControlConstants(c),
                machine.coordinates.index(c.on),
                columns.index(c.on),
                motors[c.motor] if c.motor else None,
                dict.fromkeys(law_states(c), 0.0),
            )
            for c in machine.controllers
        ]
        self.model = Evaluator(model or machine) if _uses_model(machine) else None
        self._forget()
        self._instants: Iterator[_Instant] = iter(())
        self._first: tuple[Array, Array] | None = None
        self._start = 0.0

    def instants(self, start: float, end: float) -> list[float]:
        """The times from start to end at which something is read or done, in order; with them a run begins anew."""
        found = schedule([r.law for r in self.running], start, end)
        self._instants, self._start, self._first = iter(_instants(found)), start, None
        self._forget()
        for r in self.running:
            r.state, r.current, r.current_integral = dict.fromkeys(r.state, 0.0), 0.0, 0.0
            r.readings.clear()
        return found.time.tolist()

    def _forget(self) -> None:
        """Before the first tick nothing is held."""
        self._accelerations = np.zeros(self.machine.n)
        still = {r.motor.signal: 0.0 for r in self.running if r.motor is not None}
        self._times, self._forces, self._voltages = [-math.inf], [np.zeros(self.machine.n)], [still]

    def reach(self, time: float, q: Array, qd: Array, states: Mapping[str, float]) -> None:
        """The machine has reached the next of its instants, in this state; `states` are those of elements, by name."""
        here = next(self._instants)
        if self._first is None:
            self._first = q.copy(), qd.copy()
        for j, number in here.reads:
            self.running[j].readings[number] = q.copy(), qd.copy()
        ticking = [(self.running[j], number) for j, number, law in here.acts if law]
        forces = self._forces[-1].copy()
        read = [self._tick(r, number, time) for r, number in ticking]
        for (r, _), (_, raw) in zip(ticking, read, strict=True):
            if r.law.kind == "computed_torque":
                self._accelerations[r.joint] = raw
        for (r, number), (x, raw) in zip(ticking, read, strict=True):
            if r.law.kind == "computed_torque":
                raw = self._torque(r, number, self._accelerations)
            force, after = limited(r.law, x, raw, r.state, r.constants)
            r.state.update(after)
            r.readings.pop(number, None)
            if not math.isfinite(force):
                refuse_odd(r.law, "force", force, time)
            if r.motor is None:
                forces[r.joint] = force
            else:
                r.current = force / (r.motor.value * r.motor.on[r.law.on])
        volts = dict(self._voltages[-1])
        for j, _, _ in here.acts:
            r = self.running[j]
            if r.motor is not None:
                present = states[f"{r.motor.parameter_name}.i"]
                u, r.current_integral = voltage(r.law, r.current, present, r.current_integral, r.constants)
                if not math.isfinite(u):
                    refuse_odd(r.law, "voltage", u, time)
                volts[r.motor.signal] = u
        if here.acts:
            self._times.append(time)
            self._forces.append(forces)
            self._voltages.append(volts)

    def forces(self, time: float) -> Array:
        """(n,): the forces that controllers hold at a time, zero where there is none."""
        return self._forces[self._held(time)]

    def voltages(self, time: float) -> Mapping[str, float]:
        """The voltages that current loops hold at a time, by the signals of their motors."""
        return self._voltages[self._held(time)]

    def _held(self, time: float) -> int:
        if time >= self._times[-1]:
            return len(self._times) - 1
        return bisect_right(self._times, time + SAME_INSTANT_S) - 1

    def _tick(self, r: RunningController, number: int, time: float) -> tuple[ControlTick, float]:
        """What the law reads at a tick, and its force before limits."""
        asked = [x[r.column] for x in self.command.at(max(time - r.law.constant("command_delay"), self._start))]
        if not all(math.isfinite(x) for x in asked):
            self.refuse_command(r, asked, time)
        q, qd = self._reading(r, number)
        x = ControlTick(*map(float, (*asked, q[r.joint], qd[r.joint], self._ahead(r, q, time))))
        return x, requested(r.law, x, r.state, r.constants)

    def _reading(self, r: RunningController, number: int) -> tuple[Array, Array]:
        assert self._first is not None  # the first instant has been reached
        return r.readings.get(number, self._first)

    def _ahead(self, r: RunningController, q: Array, time: float) -> float:
        """Γ_m: what a model adds to the law."""
        if self.model is None or r.law.feedforward == "none":
            return 0.0
        if r.law.feedforward == "gravity":
            still = np.zeros(self.machine.n)
            return float(self.model.inverse_dynamics(q, still, still)[r.joint])
        motion = np.zeros((3, self.machine.n))
        places = [x.joint for x in sorted(self.running, key=lambda x: x.column)]
        motion[:, places] = self.command.at(max(time - r.law.constant("command_delay"), self._start))
        return float(self.model.inverse_dynamics(*motion)[r.joint])

    def _torque(self, r: RunningController, number: int, accelerations: Array) -> float:
        assert self.model is not None  # a computed torque uses a model
        return float(self.model.inverse_dynamics(*self._reading(r, number), accelerations)[r.joint])

    def refuse_command(self, r: RunningController, asked: Sequence[float], time: float) -> NoReturn:
        """Name the controller whose command (r, ṙ, r̈) is no number at a time."""
        raise SimulationError(
            f"the command of '{r.law.on}' is not a finite number at {time:.6g} s.",
            where=part_at("controller", r.law.name),
            found=", ".join(f"{x:g}" for x in asked),
        )


def refuse_odd(c: Controller, what: str, value: float, time: float) -> NoReturn:
    """Name a controller whose force or voltage is no finite number at a time."""
    raise SimulationError(
        f"its {what} is {value:g} at {time:.6g} s.",
        where=part_at("controller", c.name),
        expected="a finite number",
        hint="Look for a gain too high for its rate, a model that divides by zero, or a motion that has run away.",
    )


def _instants(found: Schedule) -> list[_Instant]:
    events = list(zip(found.what.tolist(), found.controller.tolist(), found.number.tolist(), strict=True))
    return [
        _Instant(
            [(j, number) for what, j, number in events[a:b] if what == READ],
            [(j, number, what == LAW) for what, j, number in events[a:b] if what != READ],
        )
        for a, b in itertools.pairwise(found.first.tolist())
    ]


def with_law(machine: Machine, law: SampledControl, given: Inputs) -> Inputs:
    """The inputs with what controllers do; drives of coordinates without one do what the inputs or the model say."""
    drives = other_drives(machine)

    def forces(time: float, q: Array, qd: Array) -> Array:
        out = law.forces(time).copy()
        if given.forces is not None:
            return out + np.asarray(given.forces(time, q, qd), dtype=np.float64)
        return out + driven(machine, drives, given.loads(time) if given.loads is not None and drives else {})

    def signals(time: float, q: Array, qd: Array) -> Mapping[str, float]:
        others = {} if given.signals is None else given.signals(time, q, qd)
        return {**others, **law.voltages(time)}

    return replace(given, forces=forces, signals=signals, sampled=law)


def other_drives(machine: Machine) -> tuple[Drive, ...]:
    """The drives of coordinates without a controller."""
    own = {c.on for c in machine.controllers}
    return tuple(x for x in machine.loads if isinstance(x, Drive) and x.coordinate not in own)


def driven(machine: Machine, drives: Sequence[Drive], values: Mapping[str, ArrayLike]) -> Array:
    """(n,): what drives do, by `values` or as their model says."""
    out = np.zeros(machine.n)
    for x in drives:
        out[machine.coordinates.index(x.coordinate)] += float(np.asarray(values.get(x.name, x.value)).item())
    return out


def _uses_model(machine: Machine) -> bool:
    return any(c.kind == "computed_torque" or c.feedforward != "none" for c in machine.controllers)


def _check(machine: Machine, model: Machine) -> None:
    faults = Faults()
    # A motor may have been taken away, or a coordinate prescribed, since the controllers were checked.
    own = (machine.kinds, machine.actuated_coordinates, machine.elements, machine.prescribed)
    faults.extend(check_controllers(machine.controllers, *own))
    if not machine.controllers:
        hint = "Add controllers to its model file, or with machine.with_controllers."
        faults.add("it has no controllers.", where=machine.name, hint=hint)
    if _uses_model(machine):
        if model.coordinates != machine.coordinates:
            faults.add(
                "the model of its controllers has other coordinates.",
                where=machine.name,
                expected=", ".join(machine.coordinates),
                found=", ".join(model.coordinates),
            )
        if model.closed or model.base == "free":
            what = "feed-forward of a model and computed torque need an open machine on a fixed base."
            faults.add(
                what, where=model.name, found="loops" if model.closed else "a free base", hint="Use feedforward: none."
            )
    faults.raise_if_any(DataError)


def commands_at(law: SampledControl, time: Array, controller: Numbers, start: float) -> Array:
    """(ticks, 4): r, ṙ and r̈ of every tick of a law, and what the model adds along the command."""
    out = np.zeros((len(time), 4))
    places = [r.joint for r in sorted(law.running, key=lambda r: r.column)]
    for j, r in enumerate(law.running):
        own = np.flatnonzero(controller == j)
        asked = law.command.at(np.maximum(time[own] - r.law.constant("command_delay"), start))
        out[own, :3] = np.column_stack([x[:, r.column] for x in asked])
        odd = np.flatnonzero(~np.isfinite(out[own, :3]).all(axis=1))
        if len(odd):
            law.refuse_command(r, out[own[odd[0]], :3].tolist(), float(time[own[odd[0]]]))
        if r.law.feedforward == "model":
            assert law.model is not None  # feed-forward uses a model
            motion = np.zeros((3, len(own), law.machine.n))
            motion[:, :, places] = asked
            idle = {name: np.zeros(len(own)) for name in law.model.tree.signals}
            model = Motion(time[own], motion[0], motion[1], motion[2], signals=idle)
            out[own, 3] = inverse_dynamics(law.model.tree, model, parameters=law.model.values)[:, r.joint]
    return out


def driving(law: SampledControl, given: Inputs) -> Callable[[float], Array] | None:
    """What drives of other coordinates do at a time, where that is a function of Python."""
    drives, loads = other_drives(law.machine), given.loads
    if loads is None or given.forces is not None:
        return None
    return lambda time: driven(law.machine, drives, loads(time))
