"""The compiled filter step of a mechanism in natural coordinates, bound to one caller.

Everything a step needs stands in one record per set of independent coordinates; the sets share all but the mechanism over them, so that
steps go on in another set as soon as the reference has changed to it.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.natural.kernels.law_code import law_rows
from veridyn.mechanics.natural.kernels.room import found_of, room_of
from veridyn.mechanics.natural.measurement import Readout
from veridyn.mechanics.natural.steps.model import Charts
from veridyn.mechanics.record import Bound
from veridyn.observe.filters.kernels.natural_step import Loads, NaturalFilter, NaturalWork, Sensors, natural_steps
from veridyn.observe.filters.kernels.step import STRAINED
from veridyn.observe.filters.machine_step import MachineStep
from veridyn.observe.machine import MachineSystem
from veridyn.observe.result import Belief


class NaturalStep(MachineStep):
    """Filter steps of a mechanism. `gate`: the probability that a good reading passes, None without one.

    `about`: the state of the tangent along which a linear filter runs, in the first set of independent coordinates.
    """

    def __init__(self, system: MachineSystem, gate: float | None, about: Array | None = None) -> None:
        model: Any = system.model
        charts: Charts = model.charts
        self._system, self._charts = system, charts
        self._one_set = model.one_set or about is not None
        self._sets: dict[int, Bound] = {}
        first = charts.first.system
        n, f, k, states, forces = first.n, system.f, system.extra, len(system.states), first.forces
        table = cast(Readout, system.table)  # mechanisms have no other
        inputs = np.array([forces.places[name] for name in system.inputs], dtype=np.int64)
        self._defaults = forces.values[inputs]
        super().__init__(natural_steps, system, len(inputs), gate)
        self._parts = NaturalFilter(
            filter=self._filter,
            model=charts.first.bound.record,
            density=np.zeros(0),
            weights=np.zeros((0, 0)),
            strained=np.inf,
            linear=about is not None,
            about=np.zeros(len(self._filter.x)) if about is None else _rows(about),
            sensors=Sensors(
                a=_rows(table.a),
                G=_rows(table.G),
                D=_rows(table.D),
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
            work=NaturalWork(
                room=room_of(n, n - f, f, k, len(first.tables.places), law_rows(first.tables.laws)),
                found=found_of(n, n - f, f, k),
                load=np.zeros(n),
                values=np.zeros(len(forces.values)),
                turning=np.zeros((n if len(forces.active) else 0, n + 1)),
                aim=np.zeros(f),
                speed=np.zeros(f),
                slopes_z=np.zeros((f, 2 * f + k)),
                push=np.zeros((f, k)),
                d=np.zeros(states),
                slopes=np.zeros(n + 1),
                by_qd=np.zeros(n),
                by_qdd=np.zeros(n),
            ),
            begun=np.zeros(2, dtype=np.int64),
        )

    def _done(self, belief: Belief, given: Bound) -> int:
        """As far as it goes in one set of coordinates; a single step that strains it goes on where no other is better."""
        number, begun = int(belief.x[-1]), self._parts.begun
        begun[:] = 0
        done = super()._done(belief, given)
        while not done and given is self._given_one and begun[0] == STRAINED:
            at = self._parts.work.found
            if self._charts.better(number, at.q, at.R) is not None:
                return 0
            done = super()._done(belief, given)
        return done

    def _acting(self, inputs: Array) -> Array:
        """Inputs as they are given, those that are not as the model has them."""
        acting = np.tile(self._defaults, (len(inputs), 1))
        count = min(inputs.shape[1], acting.shape[1])
        acting[:, :count] = inputs[:, :count]
        return acting

    def _address(self, belief: Belief) -> NDArray[np.int64]:
        number, system = int(belief.x[-1]), self._system
        if number not in self._sets:
            model, density = self._charts[number], system.density
            if number:
                density = np.concatenate(
                    [system.process_noise.coordinate_densities(model.names), density[2 * system.f :]]
                )
            strained = np.inf if self._one_set else self._charts.limits(number)[0]
            self._sets[number] = Bound(
                self._parts._replace(
                    model=model.bound.record,
                    density=_rows(density),
                    weights=_rows(self._charts.weights(number)),
                    strained=strained,
                )
            )
        return self._sets[number].address


def _rows(x: Array) -> Array:
    return np.array(x, dtype=np.float64, order="C")
