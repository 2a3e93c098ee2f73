"""The compiled filter step of a mechanism in natural coordinates, bound to one caller.

Everything a step needs stands in one record per set of independent coordinates; the sets share all but the mechanism over them, so that
steps go on in another set as soon as the reference has changed to it.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound
from veridyn.mechanics.natural.channels import Readout
from veridyn.mechanics.natural.kernels.law_code import law_rows
from veridyn.mechanics.natural.kernels.room import found_of, room_of
from veridyn.mechanics.natural.steps.model import Charts
from veridyn.observe.filters.kernels.correction import DONE, corrected_of
from veridyn.observe.filters.kernels.natural_step import (
    STRAINED,
    Given,
    Loads,
    NaturalFilter,
    NaturalSettings,
    NaturalWork,
    Predicted,
    Sensors,
    natural_march,
    natural_step,
)
from veridyn.observe.filters.passage import ERROR_MODELS, CompiledPassage, Passage, PassageLayout, with_start
from veridyn.observe.filters.update import noise_of_readings, threshold
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Codes
from veridyn.observe.result import Belief


class NaturalStep:
    """Filter steps of a mechanism by machine code, a :class:`~veridyn.observe.filters.filter.CompiledStep`.

    `charts`: the sets of independent coordinates of the mechanism; `one_set`: keep to the first. `gate`: the probability that a good
    reading passes, None without a gate. `about`: the state of the tangent along which a linear filter runs. It works in memory of its own;
    not for two threads at once.
    """

    def __init__(
        self,
        system: MachineSystem,
        charts: Charts,
        gate: float | None,
        about: Array | None = None,
        one_set: bool = False,
    ) -> None:
        self._system, self._charts = system, charts
        self._one_set = one_set or about is not None
        self._sets: dict[int, Bound] = {}
        self._R = _rows(system.R)
        self._changed = False  # whether the record has another R than the sensors' own
        n, f, k = charts.first.system.n, system.f, system.extra
        states, m, a = len(system.states), len(system.outputs), len(charts.first.system.tables.places)
        self._layout = PassageLayout(2 * n + k + len(system.drifting) + 1, states, m)
        forces, N = charts.first.system.forces, self._layout.N
        table = cast(Readout, system.table)  # mechanisms have no other
        inputs = np.array([forces.places[name] for name in system.inputs], dtype=np.int64)
        self._defaults = forces.values[inputs]
        self._parts = NaturalFilter(
            model=charts.first.bound.record,
            density=np.zeros(0),
            weights=np.zeros((0, 0)),
            sensors=Sensors(
                a=_rows(table.a),
                G=_rows(table.G),
                D=_rows(table.D),
                bias=_rows(table.bias),
                selector=_rows(system.selector),
                wraps=system.wraps.astype(np.int8),
                R=self._R.copy(),
                moves=table.moves,
                accelerates=table.accelerates,
            ),
            loads=Loads(
                weight=_rows(forces.weight[:-1]),
                constant=_rows(forces.constant),
                values=_rows(forces.values),
                inputs=inputs,
                active=forces.active.astype(np.int64),
                turnings=_rows(forces.turning[forces.active]),
            ),
            settings=NaturalSettings(
                error_model=ERROR_MODELS[system.error_model],
                longest=system.longest,
                limit=np.inf if gate is None else threshold(gate),
                strained=np.inf,
                linear=about is not None,
            ),
            given=Given(
                x=np.zeros(N),
                P=np.zeros((states, states)),
                before=np.zeros(len(inputs)),
                inputs=np.zeros(len(inputs)),
                values=np.zeros(m),
                flags=np.zeros(m, dtype=np.int8),
                about=np.zeros(N) if about is None else _rows(about),
            ),
            found=Predicted(
                x=np.zeros(N),
                P=np.zeros((states, states)),
                F=np.zeros((states, states)),
                Q=np.zeros((states, states)),
                y=np.zeros(m),
                H=np.zeros((m, states)),
                residual=np.zeros(m),
                after=np.zeros(N),
            ),
            corrected=corrected_of(states, m, system.considered),
            work=NaturalWork(
                room=room_of(n, n - f, f, k, a, law_rows(charts.first.system.tables.laws)),
                found=found_of(n, n - f, f, k),
                load=np.zeros(n),
                values=np.zeros(len(forces.values)),
                turning=np.zeros((n if len(forces.active) else 0, n + 1)),
                aim=np.zeros(f),
                speed=np.zeros(f),
                slopes_z=np.zeros((f, 2 * f + k)),
                push=np.zeros((f, k)),
                G=np.zeros((states, states)),
                added=np.zeros((states, states)),
                product=np.zeros((states, states)),
                d=np.zeros(states),
                slopes=np.zeros(n + 1),
                by_qd=np.zeros(n),
                by_qdd=np.zeros(n),
            ),
            out=np.zeros(self._layout.size),
        )

    def __call__(
        self,
        belief: Belief,
        before: Array,
        t: float,
        values: Array,
        flags: Codes,
        inputs: Array,
        sigma: Array | None = None,
    ) -> Passage | None:
        """One step; None where the reference must do it: the set of coordinates may change, or something is wrong."""
        number = int(belief.x[-1])
        address = self._sets[number].address if number in self._sets else self._bound(number).address
        g, out, dt = self._parts.given, self._parts.out, 0.0 if belief.t is None else t - belief.t
        g.x[:], g.P[:], g.values[:], g.flags[:] = belief.x, belief.P, values, flags
        if sigma is not None or self._changed:
            self._parts.sensors.R[:], self._changed = noise_of_readings(self._R, sigma), sigma is not None
        if len(self._defaults):
            self._act(g.before, before)
            self._act(g.inputs, inputs)
        code = natural_step(address, dt, 0)
        while code == STRAINED:
            at = self._parts.work.found
            if self._charts.better(number, at.q, at.R) is not None:
                return None
            code = natural_step(address, dt, int(out[0]))
        return CompiledPassage(self._layout, out.copy(), t) if code == DONE else None

    def march(
        self, belief: Belief, before: Array, t: Array, values: Array, flags: Codes, inputs: Array
    ) -> tuple[int, Array]:
        """Steps from the belief to the readings at t[0], t[1] and so on: how many were done, and their results a row each.

        It ends before a step in which the gate refuses a reading, and where another set of coordinates may be better.
        """
        g, number, rows = self._parts.given, int(belief.x[-1]), np.empty((len(t), self._layout.size))
        if len(before) != inputs.shape[1]:
            return 0, rows
        clock, readings, codes, given = with_start(belief, before, t, values, flags, inputs)
        acting = np.tile(self._defaults, (len(clock), 1))
        count = min(given.shape[1], acting.shape[1])
        acting[:, :count] = given[:, :count]
        address = self._sets[number].address if number in self._sets else self._bound(number).address
        g.x[:], g.P[:] = belief.x, belief.P
        if self._changed:
            self._parts.sensors.R[:], self._changed = self._R, False
        return int(natural_march(address, clock, readings, codes, acting, rows)), rows

    def _act(self, place: Array, inputs: Array) -> None:
        """Inputs as they are given, those that are not as the model has them."""
        place[:] = self._defaults
        count = min(len(inputs), len(place))
        place[:count] = inputs[:count]

    def _bound(self, number: int) -> Bound:
        system, parts = self._system, self._parts
        model, density = self._charts[number], system.density
        if number:
            density = np.concatenate([system.process_noise.coordinate_densities(model.names), density[2 * system.f :]])
        strained = np.inf if self._one_set else self._charts.limits(number)[0]
        self._sets[number] = Bound(
            parts._replace(
                model=model.bound.record,
                density=_rows(density),
                weights=_rows(self._charts.weights(number)),
                settings=parts.settings._replace(strained=strained),
            )
        )
        return self._sets[number]


def _rows(x: Array) -> Array:
    return np.array(x, dtype=np.float64, order="C")
