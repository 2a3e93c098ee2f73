"""Many runs of one machine at once: the same steps for all of them, by machine code over the runs.

Where parameters are fitted by simulation, a log is cut into runs and all of them are simulated with the same parameters; one call of
the compiled forward dynamics serves them all. The scheme is the classical one of order four with a fixed step, as
``Method("RK4")`` of :mod:`veridyn.mechanics.system.integrate`, on a fixed base and without wrenches. Without a speed below which it is
rounded off, dry friction holds (:mod:`veridyn.mechanics.system.dry_friction`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import SimulationError
from veridyn.mechanics.system.dry_friction import HoldingSteps, StepPart, dry_friction
from veridyn.mechanics.system.stepper import explicit_step, tableau
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD, compiled, uniform_values
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR, check_mass, mass_matrix, open_mass_matrix
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request, complete_values
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.symbolic.kernel import padded

Array = NDArray[np.float64]
# Time since each run began, q and q̇ (R, n) → forces (R, n) and signals by name (R,).
Drive = Callable[[float, Array, Array], tuple[Array, Mapping[str, Array]]]


@dataclass(frozen=True, eq=False)
class Simulated:
    """States of R runs at K times: q, q̇, q̈ and the forces that acted, (R, K, n), and signals (R, K).

    `parts`: the parts of the steps between the times, where dry friction holds and they are asked for; see :class:`StepParts`.
    """

    q: Array
    qd: Array
    qdd: Array
    forces: Array
    signals: Mapping[str, Array]
    parts: StepParts | None = None

    def at(self, samples: slice | NDArray[np.intp]) -> Simulated:
        """Some of the times."""
        q, qd, qdd, forces = (x[:, samples] for x in (self.q, self.qd, self.qdd, self.forces))
        return Simulated(q, qd, qdd, forces, {name: x[:, samples] for name, x in self.signals.items()})


@dataclass(frozen=True, eq=False)
class StepParts:
    """Steps of runs with dry friction that holds, parted where sliding ends: what derivatives along them need.

    `whole`: states at the K' ends of all parts and at the start, as of :class:`Simulated`, at times `t` (K',); `samples` (K,) are those
    of the simulation's own times. `shares` (R, K' − 1, m) of each part; `stopped` (R, K', m): what came to rest at that time, and
    `arriving` (R, K', n) the q̈ just before it, zero where nothing did.
    """

    whole: Simulated
    t: Array
    samples: NDArray[np.intp]
    shares: Array
    stopped: NDArray[np.bool_]
    arriving: Array


class Accelerations:
    """q̈ (R, n) of R states at once under forces (R, n), with dry friction rounded off below `friction_speed` where that is given."""

    def __init__(self, tree: Tree, values: Array, runs: int, friction_speed: float = 0.0) -> None:
        rows = tuple(range(len(tree.rows)))
        self.tree, self.values, self.runs = tree, values, runs
        self.made = compiled(tree, Request("forward_checked", rows, friction_speed=friction_speed))
        self._chosen = uniform_values(tree, values, self.made.kernel.parameters)
        rows = [label[0] for label in self.made.labels]
        self._rows = slice(rows[0], rows[-1] + 1) if rows == list(range(rows[0], rows[-1] + 1)) else rows
        # What kernels are given is written where it stays, so that a call costs little beside what it computes.
        n = tree.n
        self._road, self._inner = frozenset(tree.road_signals), 3 * n + len(tree.signals) - len(tree.states)
        self._signals = [(3 * n + k, name) for k, name in enumerate(tree.signals) if 3 * n + k < self._inner]
        place = {f"{s}.{k}": n * i + k for i, s in enumerate(("q", "qd", "t")) for k in range(n)}
        place |= {f"s.{name}": 3 * n + k for k, name in enumerate(tree.signals)}
        self._given, self._solved = np.zeros((3 * n + len(tree.signals), runs)), np.zeros((n + 1, runs))
        self._columns = [self._given[place[name]] for name in self.made.kernel.inputs]
        room = padded(runs)
        self._out = np.zeros((len(self.made.labels), room))
        self._addresses = self._out.ctypes.data + 8 * room * np.arange(len(self.made.labels), dtype=np.uintp)
        self._call = self.made.kernel.prepared(self._columns, self._chosen, self._addresses, runs)

        self._rates = _StateRates(tree, self._given, place, values, runs, friction_speed) if tree.states else None

    def state_rates(self) -> Array:
        """The rates (R, states) of elements' own states, at the state of the last call."""
        return np.zeros((self.runs, 0)) if self._rates is None else self._rates()

    def __call__(self, q: Array, qd: Array, forces: Array, signals: Mapping[str, Array], inner: Array) -> Array:
        """Measured `signals` (R,) by name, and elements' own states `inner` (R, states)."""
        n, given = self.tree.n, self._given
        given[:n], given[n : 2 * n], given[2 * n : 3 * n] = q.T, qd.T, forces.T
        for k, name in self._signals:
            given[k] = signals.get(name, 0.0) if name in self._road else signals[name]
        given[self._inner :] = inner.T
        self._call()
        solved = self._solved
        solved[self._rows] = self._out[:, : self.runs]
        if not np.maximum.reduce(solved[-1]) < NEAR_SINGULAR:  # also where it is no number
            if not (np.isfinite(given).all() and np.abs(q).max() < LARGEST_ANGLE_RAD):
                raise SimulationError(
                    "the motion has run away.",
                    where=self.tree.name,
                    hint="Shorten the runs, or start from parameters that are nearer to the truth.",
                )
            check_mass(self.tree, open_mass_matrix(self.tree, q, self.values, engine="numpy"))
        return solved[:-1].T  # good until the next call


class _StateRates:
    """The kernel of the rates of elements' own states, reading what that of the accelerations was given."""

    def __init__(
        self, tree: Tree, given: Array, place: Mapping[str, int], values: Array, runs: int, friction_speed: float
    ) -> None:
        made = compiled(tree, Request("state_rates", friction_speed=friction_speed))
        room, self.runs = padded(runs), runs
        self.out = np.zeros((len(tree.states), room))
        at = np.array([label[0] for label in made.labels], dtype=np.uintp)
        columns = [given[place[name]] for name in made.kernel.inputs]
        chosen = uniform_values(tree, values, made.kernel.parameters)
        self.call = made.kernel.prepared(columns, chosen, self.out.ctypes.data + 8 * room * at, runs)

    def __call__(self) -> Array:
        self.call()
        return self.out[:, : self.runs].T.copy()


def simulate_runs(
    machine: Machine | Tree,
    step: float,
    samples: int,
    q: Array,
    qd: Array,
    drive: Drive,
    *,
    parameters: Array | None = None,
    friction_speed: float = 0.0,
    substeps: int = 1,
    inner: Array | None = None,
    parts: bool = False,
) -> Simulated:
    """R runs from (q, q̇) (R, n), sampled `samples` times every `step` seconds, each interval in `substeps` equal steps.

    With ``friction_speed=0`` dry friction is not rounded off: it holds where it can; `parts` asks for the parts of its steps.
    `inner` (R, states): where the states of elements' own start, zero by default; they are among the signals of the result.

    A run that leaves the finite numbers, or whose mass matrix becomes singular, raises :class:`~veridyn.errors.SimulationError`.
    """
    tree = tree_of(machine)
    tree.check_unprescribed("a simulation of many runs")
    values = complete_values(tree, parameters)
    check_mass(tree, mass_matrix(tree, q[:1], values, engine="numpy"))
    dry = dry_friction(tree, values) if friction_speed == 0.0 else None
    law = Accelerations(tree, values if dry is None else dry.smooth_values, len(q), friction_speed)
    names = [s.name for s in tree.states]
    z = np.zeros((len(q), len(names))) if inner is None else inner
    rule, n = tableau("RK4"), tree.n

    def rate(time: float, y: Array, friction: Array | float = 0.0) -> Array:
        """(q̇, q̈, ż) of states y = (q, q̇, z)."""
        forces, heard = drive(time, y[:, :n], y[:, n : 2 * n])
        return pushed(y, forces + friction, heard)

    def pushed(y: Array, forces: Array, heard: Mapping[str, Array]) -> Array:
        out = np.empty_like(y)
        out[:, :n] = y[:, n : 2 * n]
        out[:, n : 2 * n] = law(y[:, :n], y[:, n : 2 * n], forces, heard, y[:, 2 * n :])
        if names:
            out[:, 2 * n :] = law.state_rates()
        return out

    holding = None if dry is None else HoldingSteps(dry, rate, slice(n, 2 * n), len(q), tree.name)
    kept = _Kept(n, names)
    y, h = np.concatenate([q, qd, z], axis=1), step / substeps

    def keep(time: float, y: Array, sampled: bool = True, part: StepPart | None = None) -> Array:
        forces, heard = drive(time, y[:, :n], y[:, n : 2 * n])
        friction = 0.0
        if holding is not None:
            friction = holding.friction.forces(y[:, n : 2 * n], holding.at_instant(time, y))
        slope = pushed(y, forces + friction, heard)
        kept.add(time, y, slope, forces, heard, sampled, part)
        return slope

    slope = keep(0.0, y)
    for k in range(samples - 1):
        for m in range(substeps):
            time = k * step + m * h
            if holding is None:
                y = explicit_step(rule, rate, time, y, h, slope if m == 0 else None)
                continue
            y = holding.step(time, y, h)
            for part in holding.parts[:-1] if parts else ():
                keep(part.time, part.end, False, part)
        last = holding.parts[-1] if holding is not None and parts else None
        slope = keep((k + 1) * step, y, True, last)
    return kept.simulated()


class _Kept:
    """What is kept of a simulation, time by time."""

    def __init__(self, n: int, names: list[str]) -> None:
        self.n, self.names = n, names
        self.t, self.path, self.slopes, self.forces = list[float](), list[Array](), list[Array](), list[Array]()
        self.signals, self.sampled, self.parts = dict[str, list[Array]](), list[bool](), list[StepPart]()

    def add(
        self,
        time: float,
        y: Array,
        slope: Array,
        forces: Array,
        heard: Mapping[str, Array],
        sampled: bool,
        part: StepPart | None,
    ) -> None:
        self.t.append(time)
        for store, x in ((self.path, y), (self.slopes, slope), (self.forces, forces)):
            store.append(x)
        for name, value in heard.items():
            self.signals.setdefault(name, []).append(value)
        self.sampled.append(sampled)
        if part is not None:
            self.parts.append(part)

    def simulated(self) -> Simulated:
        n = self.n
        path, slopes, acting = (np.stack(x, axis=1) for x in (self.path, self.slopes, self.forces))
        heard = {name: np.stack(found, axis=1) for name, found in self.signals.items()}
        heard |= {name: path[..., 2 * n + i] for i, name in enumerate(self.names)}
        whole = Simulated(path[..., :n], path[..., n : 2 * n], slopes[..., n : 2 * n], acting, heard)
        if not self.parts:
            return whole
        samples, none = np.flatnonzero(self.sampled), np.zeros_like(whole.q[:, 0])
        arriving = [none, *(none if p.arriving is None else p.arriving for p in self.parts)]
        shares = np.stack([p.shares for p in self.parts], axis=1)
        stopped = np.stack([np.zeros_like(self.parts[0].stopped), *(p.stopped for p in self.parts)], axis=1)
        parts = StepParts(whole, np.array(self.t), samples, shares, stopped, np.stack(arriving, axis=1))
        return replace(whole.at(samples), parts=parts)
