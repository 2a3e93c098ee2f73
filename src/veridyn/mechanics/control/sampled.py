"""The controllers of a machine while it runs: each ticks at its own rate, with its delays, and holds its force between ticks.

Instants at which a controller reads or acts are instants of the integration: a measurement of age d is the state at t_k − d itself, not
an interpolation. Before the start the machine stood as it starts, and the command was its first. This is the reference for compiled runs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Faults, SimulationError, part_at
from veridyn.mechanics.control.law import ControlConstants, ControlTick, law_states, limited, requested, voltage
from veridyn.mechanics.system.control import Reference
from veridyn.mechanics.system.simulation import SAME_INSTANT_S
from veridyn.mechanics.tree.dynamics.evaluator import Evaluator
from veridyn.model.controller import Controller, check_controllers
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine

Array = NDArray[np.float64]


def controlled_coordinates(machine: Machine) -> tuple[str, ...]:
    """The coordinates that have a controller, in the order of the machine: that of a command's columns."""
    own = {c.on for c in machine.controllers}
    return tuple(name for name in machine.coordinates if name in own)


@dataclass
class _Instant:
    """What happens at one time: (controller, number of the tick) that read, and (controller, number, whether its law ticks) that act."""

    time: float
    reads: list[tuple[int, int]] = field(default_factory=list)
    acts: list[tuple[int, int, bool]] = field(default_factory=list)


@dataclass
class _Running:
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
            _Running(
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
        found = _schedule([r.law for r in self.running], start, end)
        self._instants, self._start, self._first = iter(found), start, None
        self._forget()
        for r in self.running:
            r.state, r.current, r.current_integral = dict.fromkeys(r.state, 0.0), 0.0, 0.0
            r.readings.clear()
        return [x.time for x in found]

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
            self._refuse_odd(r, "force", force, time)
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
                self._refuse_odd(r, "voltage", u, time)
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

    def _tick(self, r: _Running, number: int, time: float) -> tuple[ControlTick, float]:
        """What the law reads at a tick, and its force before limits."""
        asked = [x[r.column] for x in self.command.at(max(time - r.law.constant("command_delay"), self._start))]
        if not all(math.isfinite(x) for x in asked):
            raise SimulationError(
                f"the command of '{r.law.on}' is not a finite number at {time:.6g} s.",
                where=part_at("controller", r.law.name),
                found=", ".join(f"{x:g}" for x in asked),
            )
        q, qd = self._reading(r, number)
        x = ControlTick(*map(float, (*asked, q[r.joint], qd[r.joint], self._ahead(r, q, time))))
        return x, requested(r.law, x, r.state, r.constants)

    def _reading(self, r: _Running, number: int) -> tuple[Array, Array]:
        assert self._first is not None  # the first instant has been reached
        return r.readings.get(number, self._first)

    def _ahead(self, r: _Running, q: Array, time: float) -> float:
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

    def _torque(self, r: _Running, number: int, accelerations: Array) -> float:
        assert self.model is not None  # a computed torque uses a model
        return float(self.model.inverse_dynamics(*self._reading(r, number), accelerations)[r.joint])

    def _refuse_odd(self, r: _Running, what: str, value: float, time: float) -> None:
        if not math.isfinite(value):
            raise SimulationError(
                f"its {what} is {value:g} at {time:.6g} s.",
                where=part_at("controller", r.law.name),
                expected="a finite number",
                hint="Look for a gain too high for its rate, a model that divides by zero, or a motion that has run away.",
            )


def _schedule(controllers: Sequence[Controller], start: float, end: float) -> list[_Instant]:
    """All instants in order; those closer than rounding are one."""
    found: list[tuple[float, int, int, bool | None]] = []
    for j, c in enumerate(controllers):
        each, delay = c.current_ticks, c.constant("measurement_delay")
        for m in range(math.floor((end - start) * c.rate * each + 1e-9) + 1):
            time = start + m / (c.rate * each)
            found.append((time, j, m // each, m % each == 0))
            if m % each == 0 and time - delay > start + SAME_INSTANT_S:
                found.append((time - delay, j, m // each, None))
    out = [_Instant(start)]
    for time, j, number, law in sorted(found, key=lambda x: x[0]):
        if time > out[-1].time + SAME_INSTANT_S:
            out.append(_Instant(min(time, end)))
        if law is None:
            out[-1].reads.append((j, number))
        else:
            out[-1].acts.append((j, number, law))
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
