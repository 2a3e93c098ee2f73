"""The compiled filter step of a tree, bound to one caller: its record, made once, and the call that fills and reads it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound
from veridyn.mechanics.tree.steps import record as tree
from veridyn.mechanics.tree.steps.model import TreeModel
from veridyn.mechanics.tree.steps.record import call_addresses
from veridyn.observe.filters.kernels.correction import DONE, corrected_of
from veridyn.observe.filters.kernels.robust_gate import gated_of
from veridyn.observe.filters.kernels.tree_step import (
    ActingLoads,
    Held,
    TreeClock,
    TreeFilter,
    TreePrediction,
    TreeSettings,
    tree_march,
    tree_step,
)
from veridyn.observe.filters.passage import ERROR_MODELS, CompiledPassage, Passage, PassageLayout, with_start
from veridyn.observe.filters.update import noise_of_readings, threshold
from veridyn.observe.machine import TURNS, MachineSystem
from veridyn.observe.measurements import Codes
from veridyn.observe.result import Belief

ENOUGH = 1e4  # times the change of a step that counts as settled: 1e-7 of the machine's size, as velocity (chosen)


class TreeStep:
    """Filter steps of a tree by machine code, a :class:`~veridyn.observe.filters.filter.CompiledStep`.

    `gate`: the probability that a good reading passes, None without a gate. It works in the memory of the tree's model; not for two
    threads at once.
    """

    takes_deviations: ClassVar[bool] = True  # when it marches

    def __init__(self, system: MachineSystem, model: TreeModel, gate: float | None) -> None:
        n, m = len(system.states), len(system.outputs)
        f, k = system.f, system.extra
        record = model.kernels.record
        N = system.nq + system.nv + k + len(system.drifting) + 1
        self._layout, self._held = PassageLayout(N, n, m), list[object]()
        self._R = np.array(system.R, order="C")
        self._changed = False  # whether the record has another R than the sensors' own
        readings, slopes = self._connected(system, model)
        at_rest = model.loads()
        self._still = np.concatenate(at_rest)
        self._split = len(at_rest[0])
        units = [np.concatenate(model.loads({name: 1.0})) for name in system.inputs]
        zeros = np.concatenate(model.loads(dict.fromkeys(system.inputs, 0.0)))
        self._zero, self._by_input = zeros, np.array([u - zeros for u in units]).reshape(-1, len(zeros))
        moved = 2 * f + k
        self._parts = TreeFilter(
            I=record.I,
            W=record.W,
            turns=np.array(model.tree.turns, dtype=np.float64),
            readings=readings,
            slopes=slopes,
            density=np.array(system.density),
            bias=np.array(system.table.bias, dtype=np.float64),
            selector=np.ascontiguousarray(system.selector),
            wraps=system.wraps.astype(np.int8),
            sensors=self._R,
            R=self._R.copy(),
            settings=TreeSettings(
                error_model=ERROR_MODELS[system.error_model],
                longest=system.longest,
                limit=np.inf if gate is None else threshold(gate),
                accelerates=system.table.accelerates or bool(model.tree.held),
            ),
            x=np.zeros(N),
            P=np.zeros((n, n)),
            before=ActingLoads(np.zeros(self._split), np.zeros(len(zeros) - self._split)),
            now=ActingLoads(np.zeros(self._split), np.zeros(len(zeros) - self._split)),
            values=np.zeros(m),
            flags=np.zeros(m, dtype=np.int8),
            found=TreePrediction(
                x=np.zeros(N),
                P=np.zeros((n, n)),
                F=np.zeros((n, n)),
                Q=np.zeros((n, n)),
                y=np.zeros(m),
                H=np.zeros((m, n)),
                residual=np.zeros(m),
                after=np.zeros(N),
                push=np.zeros((f, k)),
                slopes=np.zeros((f, moved)),
                step=np.zeros((2 * f + len(system.inner), moved)),
                G=np.zeros((n, n)),
                added=np.zeros((n, n)),
                product=np.zeros((n, n)),
            ),
            corrected=corrected_of(n, m, system.considered),
            gate=gated_of(n, m, system.reports_changes),
            bounds=_bounds(system),
            clock=TreeClock(np.array([0, 1, 0], dtype=np.int64), np.zeros(1)),
            out=np.zeros(self._layout.size),
        )
        self._bound = Bound(self._parts)
        self._rows = np.empty((0, self._layout.size))  # results of many steps, until they are read
        self._standing: list[list[float] | None] = [None, None]  # the inputs that stand in `before` and in `now`

    def adopt(self, system: MachineSystem) -> None:
        """Go on with a system that differs in its densities alone."""
        self._parts.density[:] = system.density

    def refresh(self, steps: int) -> None:
        """Compute derivatives at every so many steps only, and end Newton's method of the steps between as soon as noise hides the rest."""
        self._parts.clock.steps[1] = steps
        self._parts.W[self._parts.I[tree.ENOUGH]] = ENOUGH if steps > 1 else 0.0

    def gate_readings(self) -> Array:
        """Let all readings from now on pass a robust gate in machine code: its state, as a `RobustGate` has it."""
        self._parts.gate.on[0] = 1
        return self._parts.gate.state

    def _connected(self, system: MachineSystem, model: TreeModel) -> tuple[NDArray[np.int64], Array]:
        """The sensors' kernel, reading q, q̇ and q̈ where the tree's kernels have them: its addresses, and what it writes.

        Derivatives that the filter is to take as zero are written where nobody reads.
        """
        table = system.table
        made, record = table.compiled, model.kernels.record  # pyright: ignore[reportAttributeAccessIssue]
        nq, nv, width = model.nq, model.nv, 1 + 3 * model.nv
        starts = [int(record.I[s]) for s in (tree.X, tree.V, tree.A)]
        where = np.concatenate([starts[0] + np.arange(nq), starts[1] + np.arange(nv), starts[2] + np.arange(nv)])
        slopes = np.zeros((len(table.names), width))
        take = table.take  # pyright: ignore[reportAttributeAccessIssue]
        pointers = record.W.ctypes.data + 8 * np.append(where[take], 0).astype(np.uintp)
        out = slopes.ctypes.data + 8 * np.array([*(i * width + k for i, k in made.labels), 0], dtype=np.uintp)
        nowhere = np.zeros(1)
        self._held.append(nowhere)
        if system.attitude_rows is not None:
            out[:-1][[system.attitude_rows[i] and k > nv for i, k in made.labels]] = nowhere.ctypes.data
        if system.place_rows is not None:  # column 0 is the reading itself
            turning = range(1 + TURNS.start, 1 + TURNS.stop)
            out[:-1][[bool(system.place_rows[i]) and k in turning for i, k in made.labels]] = nowhere.ctypes.data
        addresses, held = call_addresses(
            made.kernel, pointers, out, record.W.ctypes.data
        )  # readings have no parameters
        self._held += held
        return np.array(addresses, dtype=np.int64), slopes

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
            s.R[:], self._changed = noise_of_readings(self._R, sigma), sigma is not None
        for k, (place, given) in enumerate(((s.before, before), (s.now, inputs))):
            if (values_of := given.tolist()) != self._standing[k]:
                self._act(place, given)
                self._standing[k] = values_of
        dt = 0.0 if belief.t is None else t - belief.t
        return CompiledPassage(self._layout, s.out.copy(), t) if tree_step(self._bound.address, dt) == DONE else None

    def march(
        self,
        belief: Belief,
        before: Array,
        t: Array,
        values: Array,
        flags: Codes,
        inputs: Array,
        sigma: Array | None = None,
    ) -> tuple[int, Array]:
        """Steps from the belief to the readings at t[0], t[1] and so on: how many were done, and their results a row each.

        `sigma` (N, m): deviations of the readings, NaN for the sensor's own. The rows are written over at the next call.
        """
        s = self._parts
        if len(self._rows) < len(t):
            self._rows = np.empty((len(t), self._layout.size))
        rows = self._rows
        if len(before) != inputs.shape[1]:
            return 0, rows
        clock, readings, codes, given = with_start(belief, before, t, values, flags, inputs)
        loads = self._zero + given @ self._by_input if given.shape[1] else np.tile(self._still, (len(clock), 1))
        own = np.zeros((0, len(s.values))) if sigma is None else np.ascontiguousarray(np.vstack([sigma[:1], sigma]))
        s.x[:], s.P[:] = belief.x, belief.P
        if self._changed or sigma is not None:
            s.R[:], self._changed = self._R, sigma is not None
        self._standing = [None, None]
        return int(tree_march(self._bound.address, clock, readings, codes, own, loads, rows)), rows

    def _act(self, place: ActingLoads, inputs: Array) -> None:
        """Inputs as they are given; none given, as the model has them."""
        both = self._zero + inputs @ self._by_input if len(inputs) else self._still
        place.extra[:], place.outside[:] = both[: self._split], both[self._split :]


def _bounds(system: MachineSystem) -> Held:
    b = system.bounds
    if b is None:
        none = np.zeros(0, dtype=np.int64)
        return Held(none, none, np.zeros(0), np.zeros(0))
    return Held(b.places, b.changes, b.lower, b.upper)
