"""The compiled filter step of a machine in natural coordinates over the freedoms of its base, bound to one caller."""

from __future__ import annotations

from typing import cast

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound
from veridyn.mechanics.natural.channels import Readout
from veridyn.mechanics.natural.equations.wheels import WheelRoom
from veridyn.mechanics.natural.steps.free_kernel import free_room, free_tables
from veridyn.mechanics.natural.steps.free_model import FreeModel
from veridyn.observe.filters.kernels.correction import DONE, corrected_of
from veridyn.observe.filters.kernels.free_step import (
    BilinearRows,
    FreeActing,
    FreeFilter,
    FreePrediction,
    FreeSensors,
    FreeSettings,
    free_step,
)
from veridyn.observe.filters.kernels.robust_gate import gated_of
from veridyn.observe.filters.passage import ERROR_MODELS, CompiledPassage, Passage, PassageLayout
from veridyn.observe.filters.update import noise_of_readings, threshold
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Codes
from veridyn.observe.result import Belief


class FreeStep:
    """Filter steps by machine code, a :class:`~veridyn.observe.filters.filter.CompiledStep`; not for two threads at once.

    `gate`: the probability that a good reading passes, None without a gate.
    """

    def __init__(self, system: MachineSystem, gate: float | None) -> None:
        model = cast(FreeModel, system.model)
        n, m, f, k = len(system.states), len(system.outputs), system.f, system.extra
        table, tables = cast(Readout, system.table), free_tables(model)
        self._wheels = WheelRoom(model.system.wheels)  # which keeps the code of tyres for as long as it is called
        N = 2 * model.n + k + len(system.drifting) + 1
        self._layout, self._R, self._changed = PassageLayout(N, n, m), np.array(system.R, order="C"), False
        self._model, self._inputs = model, system.inputs
        still = model.loads()
        size, forces = 2 * f + len(model.inner), len(model.unknown)
        self._parts = FreeFilter(
            tables=tables,
            room=free_room(model, tables, self._wheels.wheels),
            sensors=FreeSensors(
                a=_bilinear(table.a[:, :, None]),
                G=_bilinear(table.G),
                D=_bilinear(table.D),
                other=table.other.astype(np.int64),
                bias=np.array(table.bias, dtype=np.float64),
                selector=np.ascontiguousarray(system.selector),
                wraps=system.wraps.astype(np.int8),
                R=self._R.copy(),
            ),
            density=np.array(system.density),
            settings=FreeSettings(
                error_model=ERROR_MODELS[system.error_model],
                longest=system.longest,
                limit=np.inf if gate is None else threshold(gate),
            ),
            x=np.zeros(N),
            P=np.zeros((n, n)),
            before=FreeActing(still.values.copy(), np.ascontiguousarray(still.motion.copy())),
            now=FreeActing(still.values.copy(), np.ascontiguousarray(still.motion.copy())),
            values=np.zeros(m),
            flags=np.zeros(m, dtype=np.int8),
            found=FreePrediction(
                x=np.zeros(N),
                P=np.zeros((n, n)),
                F=np.zeros((n, n)),
                Q=np.zeros((n, n)),
                y=np.zeros(m),
                H=np.zeros((m, n)),
                residual=np.zeros(m),
                after=np.zeros(N),
                rows=np.zeros(len(table.a)),
                by_z=np.zeros((len(table.a), 2 * f + k)),
                push=np.zeros((f, k)),
                step=np.zeros((size, 2 * f + k)),
                before=np.zeros((size, size + forces)),
                now=np.zeros((size, size + forces)),
                left=np.zeros((size, size)),
                pivot=np.zeros(size, dtype=np.int64),
                column=np.zeros(size),
                G=np.zeros((n, n)),
                added=np.zeros((n, n)),
                product=np.zeros((n, n)),
                led=np.zeros(still.motion.shape),
            ),
            corrected=corrected_of(n, m, system.considered),
            gate=gated_of(n, m, system.reports_changes),
            clock=np.array([0, 1, 0, 0, 0], dtype=np.int64),
            of=np.zeros(1),
            out=np.zeros(self._layout.size),
        )
        self._bound = Bound(self._parts)
        self._places = self._where(system.inputs)
        self._standing: list[list[float] | None] = [None, None]  # the inputs that stand in `before` and in `now`

    def _where(self, inputs: tuple[str, ...]) -> list[tuple[bool, int]]:
        """Where each input goes: among the values of the loads, or in the motion of prescribed coordinates, row by row."""
        mechanism, places = self._model.system.mechanism, self._model.system.forces.places
        found = []
        for name in inputs:
            symbol, _, rest = name.partition(".")
            if name in places:
                found.append((True, places[name]))
            else:
                row, count = ("q", "qd", "qdd").index(symbol), len(mechanism.prescribed)
                found.append((False, row * count + mechanism.prescribed.index(rest)))
        return found

    def refresh(self, steps: int) -> None:
        """Compute derivatives at every so many steps only."""
        self._parts.clock[1] = steps

    def gate_readings(self) -> Array:
        """Let all readings from now on pass a robust gate in machine code: its state, as a `RobustGate` has it."""
        self._parts.gate.on[0] = 1
        return self._parts.gate.state

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
        """One step; None where the reference must do it, because something about it is wrong."""
        s = self._parts
        s.x[:], s.P[:], s.values[:], s.flags[:] = belief.x, belief.P, values, flags
        if sigma is not None or self._changed:
            s.sensors.R[:], self._changed = noise_of_readings(self._R, sigma), sigma is not None
        for k, (place, given) in enumerate(((s.before, before), (s.now, inputs))):
            if (values_of := given.tolist()) != self._standing[k]:
                self._act(place, given)
                self._standing[k] = values_of
        dt = 0.0 if belief.t is None else t - belief.t
        return CompiledPassage(self._layout, s.out.copy(), t) if free_step(self._bound.address, dt) == DONE else None

    def _act(self, place: FreeActing, inputs: Array) -> None:
        """Inputs as they are given; those that are not stay as the model has them."""
        motion = place.motion.reshape(-1)
        for (load, at), value in zip(self._places, inputs.tolist()):
            if load:
                place.values[at] = value
            else:
                motion[at] = value


def _bilinear(table: Array) -> BilinearRows:
    """The numbers of forms (r, n + 1, n) that are not zero."""
    row, left, right = np.nonzero(table)
    start = np.searchsorted(row, np.arange(len(table) + 1))
    return BilinearRows(
        start.astype(np.int64),
        left.astype(np.int64),
        right.astype(np.int64),
        np.ascontiguousarray(table[row, left, right]),
    )
