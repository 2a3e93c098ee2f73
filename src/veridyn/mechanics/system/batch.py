"""Many simulations of one machine at once: other parameters, starts and forces in each, on all processors or on a GPU.

Runs of open machines on a fixed base are made side by side, one in each lane of vector registers. Where dry friction holds, which each run
does at instants of its own, and with loops or a free base, whose equations are solved one by one, each thread makes one run after another.
They do not depend on how many there are, nor on the threads that share them, and agree with single ones to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, DeviceError, Faults, SimulationError, did_you_mean
from veridyn.mechanics.ground.road import Road
from veridyn.mechanics.system.compiled_run import Arrays3, CompiledRun, NearSingular, run_name
from veridyn.mechanics.system.fixed_steps import (
    CLOSING_RATE,
    acts_plainly,
    has_equal_intervals,
    is_bound,
    refuse_crossing,
    stepped_by_python,
)
from veridyn.mechanics.system.run_bound import Outside
from veridyn.mechanics.system.run_layout import usual_lanes
from veridyn.mechanics.system.simulation import BaseState, Inputs, Method
from veridyn.mechanics.tree.dynamics import gpu
from veridyn.mechanics.tree.dynamics.instant import ActingInputs
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.dynamics import check_closed_state
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent, usable_threads

BASE_FIELDS = {"position": 3, "quaternion": 4, "velocity": 3, "omega": 3}
INSTANT_S = 1e-12  # a step in which nothing moves
RUNS_AT_ONCE = 64  # of one call of machine code: progress is reported after each


@dataclass(frozen=True, eq=False)
class ManyRuns:
    """R motions, sampled at the times t (K,): positions and rates (R, K, n), and states that elements have of their own (R, K) by name.

    `base`: where a free base is and how it moves, each (R, K, 3), its quaternion (R, K, 4); None where the base is fixed.
    """

    t: Array
    q: Array
    qd: Array
    states: Mapping[str, Array]
    base: BaseState | None = None

    def __len__(self) -> int:
        return len(self.q)


@takes_machine
def integrate_many(
    machine: Machine | Tree,
    t: ArrayLike,
    q: ArrayLike,
    qd: ArrayLike,
    forces: ArrayLike | None = None,
    *,
    base: BaseState | None = None,
    road: Road | None = None,
    parameters: ArrayLike | None = None,
    signals: Mapping[str, ArrayLike] | None = None,
    step: float = 1e-3,
    friction_speed: float = 0.0,
    threads: int | None = None,
    device: str = "cpu",
    progress: Progress = silent,
) -> ManyRuns:
    """R motions of a machine, open or with loops, on a fixed or free base, by the Runge-Kutta rule of order four in equal steps.

    Parameters
    ----------
    machine : Machine
        Without prescribed coordinates; its elements may have states of their own, which start from zero.
    t : (K,)
        Times of the samples in s, equally far apart.
    q, qd : (n,) or (R, n)
        Where the runs start, rad or m, and rad/s or m/s; a machine with loops starts closed.
    forces : (n,), (R, n), (K, n) as (1, K, n), or (R, K, n), or None
        N*m or N. Along time they are joined by straight lines from sample to sample; by default those of the
        machine's drives. Loads at places keep the values of the model.
    base : BaseState, or None
        Where a free base starts, its fields (3,) or (R, 3), the quaternion (4,) or (R, 4); at rest in the origin by default.
    road : Road, or None
        What tyres roll on, the same in all runs; flat ground by default.
    parameters : (p,) or (R, p), or None
        Values in the order of ``machine.parameters``, for instance ``fit.draws(R, rng)``; by default those of the machine.
    signals : mapping of names to (K,) or (R, K), or None
        What elements of the machine take as measured.
    step : float above 0
        The longest step of the integration in s, of which a whole number is taken from sample to sample.
    friction_speed : float of at least 0
        Speed below which dry friction is rounded off; with 0, the default, it holds what it can.
    threads : int of at least 1, or None
        Of this process; by default all processors that it may use, and no more than OMP_NUM_THREADS allows.
    device : {"cpu", "cuda"}
        "cuda" integrates on a GPU (extra gpu), under forces that stay the same along time, and brings the results back.

    Returns
    -------
    ManyRuns
        ``q`` and ``qd`` (R, K, n), and ``base`` where it is free.

    Raises
    ------
    DataError, ModelError, SimulationError
        With the run, the time and the coordinate of what is wrong. A run of a machine with loops that comes near a singular
        position ends with an error: :func:`~veridyn.mechanics.system.integrate.integrate` steps it by singular values.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> arm = vd.load_model("veridyn:arm.yaml")
    >>> sets = arm.parameters.values * np.linspace(0.9, 1.1, 4)[:, None]
    >>> runs = vd.dynamics.integrate_many(arm, np.linspace(0.0, 0.2, 21), np.zeros(arm.n), np.zeros(arm.n), parameters=sets)
    >>> runs.q.shape
    (4, 21, 6)
    """
    tree, clock = tree_of(machine), np.asarray(t, dtype=np.float64)
    tree.check_unprescribed("integrate_many")
    if base is not None and tree.base != "free":
        raise DataError("the base is fixed and has no state.", where="base", found=tree.name)
    acting = ActingInputs(tree, Inputs(road=road))
    driven = acting.driving(0.0) if forces is None else forces
    runs = GivenRuns.of(tree, clock, q, qd, driven, base or BaseState(), parameters, signals or {}, step)
    how = Method("RK4", step, friction_speed=friction_speed)
    outside = None if acts_plainly(tree, acting.inputs) else Outside.of(acting, ())
    if device == "cuda":
        return _on_gpu(tree, clock, runs, how, outside)
    if device != "cpu":
        raise DataError("there is no such device.", where="device", expected="'cpu' or 'cuda'", found=f"'{device}'")
    python = stepped_by_python(tree, acting.inputs, how, clock)
    if python:
        hint = "Round dry friction off with friction_speed, or make each run with integrate()."
        raise DataError("runs of machine code do not know what this machine has.", tree.name, found=python, hint=hint)
    alone = is_bound(tree) or outside is not None
    workers, lanes = min(usable_threads(threads), runs.count), usual_lanes() if runs.count > 1 and not alone else 1
    closing_rate = CLOSING_RATE if alone else None

    def made(lanes: int) -> CompiledRun:
        return CompiledRun(tree, friction_speed=friction_speed, lanes=lanes, closing_rate=closing_rate, outside=outside)

    parts, single = list(_parts(runs.count, workers, lanes)), made(1)
    idle: SimpleQueue[CompiledRun] = SimpleQueue()
    for _ in range(workers):
        idle.put(made(lanes))
    runs.load_code(single)
    y, *unwanted = single.room(runs.count, runs.samples, states_alone=True)

    def done(part: slice) -> None:
        run = idle.get()
        try:
            runs.simulate(run, part, (y[part], unwanted[0][part], unwanted[1][part]))
        finally:
            idle.put(run)

    progress("simulating", 0.0, float(runs.count))
    with ThreadPoolExecutor(workers) as pool:
        for part, _ in zip(parts, pool.map(done, parts), strict=True):
            progress("simulating", float(part.stop), float(runs.count))
    return _many(tree, clock, y)


def _many(tree: Tree, clock: Array, y: Array) -> ManyRuns:
    """Runs by their states y (R, K, size), refused where one of them leapt over a singular position."""
    n, own = tree.n, len(tree.states)
    at, rates = (7 if tree.base == "free" else 0), y.shape[2] - own - n
    q, qd = y[:, :, at : at + n], y[:, :, rates : rates + n]
    for number, path in enumerate(q if tree.loops else ()):
        refuse_crossing(tree, clock, path, run_name(len(y), number, 0))
    base = None
    if at:
        turned = y[:, :, 3:7] / np.linalg.norm(y[:, :, 3:7], axis=2, keepdims=True)
        base = BaseState(y[:, :, :3], turned, y[:, :, 7 + n : 10 + n], y[:, :, 10 + n : 13 + n])
    return ManyRuns(clock, q, qd, {s.name: y[:, :, -own + j] for j, s in enumerate(tree.states)}, base)


def _parts(count: int, workers: int, lanes: int) -> Iterator[slice]:
    """As many runs as one call makes, fewer where not every worker would have some; all lanes are in use but in the last part."""
    size = min(RUNS_AT_ONCE, lanes * -(-count // (workers * lanes)))
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))


@dataclass(frozen=True, eq=False)
class GivenRuns:
    """What R runs are given, with what is the same in all of them once."""

    count: int
    samples: int
    interval: float
    substeps: int
    initial: Array
    forces: Array
    parameters: Array | None
    signals: Mapping[str, Array]

    @classmethod
    def of(
        cls,
        tree: Tree,
        clock: Array,
        q: ArrayLike,
        qd: ArrayLike,
        forces: ArrayLike,
        base: BaseState,
        parameters: ArrayLike | None,
        signals: Mapping[str, ArrayLike],
        step: float,
    ) -> GivenRuns:
        """Checked by name: shapes, numbers of runs that differ, samples at unequal times, and signals that are missing."""
        faults, n, K = Faults(), tree.n, len(clock) if clock.ndim == 1 else 0
        if K < 2 or not np.isfinite(clock).all() or not (np.diff(clock) > 0.0).all() or not has_equal_intervals(clock):
            raise DataError("samples are at equal intervals.", where="t", expected="two or more times that rise")
        if not (step > 0.0 and math.isfinite(step)):
            raise DataError("a step is above zero.", where="step", found=f"{step:g}")
        own = {s.name for s in tree.states}
        wanted = [name for name in tree.signals if name not in own]
        p = len(tree.parameters)
        given: dict[str, tuple[Array, tuple[int, ...]]] = {
            "q": (np.asarray(q, dtype=np.float64), (n,)),
            "qd": (np.asarray(qd, dtype=np.float64), (n,)),
            "forces": (np.asarray(forces, dtype=np.float64), (n,)),
        }
        if tree.base == "free":
            for field, width in BASE_FIELDS.items():
                given[f"base.{field}"] = np.asarray(getattr(base, field), dtype=np.float64), (width,)
        if parameters is not None:
            given["parameters"] = np.asarray(parameters, dtype=np.float64), (p,)
        given |= {f"signals['{name}']": (np.asarray(x, dtype=np.float64), (K,)) for name, x in signals.items()}
        counts: dict[str, int] = {}
        for name, (x, shape) in given.items():
            along = name == "forces" and x.ndim == 3 and x.shape[1:] == (K, n)
            if x.shape == shape:
                continue
            if not along and (x.ndim != 1 + len(shape) or x.shape[1:] != shape):
                expected = f"{shape} or (runs, {', '.join(map(str, shape))})" + (
                    f" or (runs, {K}, {n})" if name == "forces" else ""
                )
                faults.add("it has the wrong shape.", where=name, expected=expected, found=f"{x.shape}")
            elif len(x) != 1:
                counts[name] = len(x)
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{name} {count}" for name, count in counts.items())
            faults.add("the numbers of runs differ.", expected="the same number, or one", found=found)
        for name in [x for x in wanted if x not in signals and x not in tree.road_signals]:
            faults.add("the machine takes this signal, and it is not given.", where=f"signals['{name}']")
        for name in [x for x in signals if x not in wanted]:
            faults.add("the machine takes no such signal.", where=f"signals['{name}']", hint=did_you_mean(name, wanted))
        faults.raise_if_any(DataError, tree.name)
        R, interval = max([1, *counts.values()]), float((clock[-1] - clock[0]) / (K - 1))
        Γ = given["forces"][0]
        return cls(
            count=R,
            samples=K,
            interval=interval,
            substeps=max(1, math.ceil(interval / step - 1e-9)),
            initial=_starts(tree, {name: x for name, (x, _) in given.items()}, R),
            forces=Γ if Γ.ndim == 3 else np.atleast_2d(Γ)[:, None],
            parameters=given["parameters"][0] if parameters is not None else None,
            signals={name: np.atleast_2d(given[f"signals['{name}']"][0]) for name in signals},
        )

    def load_code(self, run: CompiledRun) -> None:
        """Two samples of a run without a step, so that threads find the machine code compiled or loaded."""
        still, sets = np.zeros((1, 2, run.tree.n)), self.parameters
        values = None if sets is None else np.atleast_2d(sets)[0]
        given = {name: np.zeros((1, 2)) for name in self.signals}
        start = (
            self.initial[:1] if is_bound(run.tree) else 0.0 * self.initial[:1]
        )  # zeros close no loop, and are no attitude
        run.run(INSTANT_S, start, still, given, parameters=values)

    def simulate(self, run: CompiledRun, part: slice, into: Arrays3) -> None:
        """The runs of a part of all, into arrays as a run makes them."""
        count = part.stop - part.start

        def own(x: Array) -> Array:
            return x[part] if len(x) == self.count else x

        shape = (count, self.samples, run.tree.n)
        sets = self.parameters
        try:
            run.run(
                self.interval,
                self.initial[part],
                np.array(np.broadcast_to(own(self.forces), shape)),
                {name: np.broadcast_to(own(x), shape[:2]) for name, x in self.signals.items()},
                parameters=sets[part] if sets is not None and sets.ndim == 2 and len(sets) == self.count else sets,
                substeps=self.substeps,
                first=part.start if self.count > 1 else None,
                into=into,
            )
        except NearSingular as near:
            raise SimulationError(
                f"the motion comes near a singular position at {near.time:.6g} s.",
                where=near.where,
                hint="Make this run alone with integrate(), which steps it there by singular values.",
            ) from near


def _starts(tree: Tree, given: Mapping[str, Array], count: int) -> Array:
    """(R, size): states at the start; refused where loops are open."""
    n = tree.n
    q, qd = (np.broadcast_to(given[name], (count, n)) for name in ("q", "qd"))
    if tree.loops:
        check_closed_state(tree, loop_values(tree, q, qd), qd)
    parts = [q, qd, np.zeros((count, len(tree.states)))]
    if tree.base == "free":
        p, e, v, w = (np.broadcast_to(given[f"base.{name}"], (count, k)) for name, k in BASE_FIELDS.items())
        parts = [p, e / np.linalg.norm(e, axis=1, keepdims=True), q, v, w, *parts[1:]]
    return np.concatenate(parts, axis=1)


def _on_gpu(tree: Tree, clock: Array, runs: GivenRuns, how: Method, outside: Outside | None) -> ManyRuns:
    """The same on a GPU, which takes sets of parameters one by one with the states of each."""
    if is_bound(tree) or outside is not None:
        what = "machines with loops, a free base, tyres or loads at places are not integrated on a GPU."
        raise DeviceError(what, where=tree.name, hint="Use device='cpu'.")
    if runs.signals or tree.states:
        what = "signals, and elements with states of their own, are not integrated on a GPU."
        raise DeviceError(what, where=tree.name, hint="Use device='cpu'.")
    if runs.forces.shape[1] != 1:
        hint = "Use device='cpu', or vd.gpu.integrate with a function of time."
        raise DeviceError(
            "forces on a GPU stay the same along time.", where="forces", expected="(n,) or (runs, n)", hint=hint
        )
    n, R = tree.n, runs.count
    sets = runs.parameters
    several = sets is not None and sets.ndim == 2 and len(sets) > 1
    q, qd = runs.initial[:, :n], runs.initial[:, n:]
    same = several and (runs.initial == runs.initial[0]).all() and len(runs.forces) == 1
    if several and not same:
        what = "on a GPU runs differ by their parameters, or by starts and forces, and not by both."
        raise DeviceError(
            what, where=tree.name, hint="Use device='cpu', or vd.gpu.integrate, which makes every start with every set."
        )
    starts = 1 if several else R
    acting = np.ascontiguousarray(np.broadcast_to(runs.forces[:, 0], (starts, n))) if runs.forces.any() else None
    made = gpu.integrate(
        tree,
        clock,
        q[:starts],
        qd[:starts],
        acting,
        parameters=sets,
        steps=runs.substeps,
        friction_speed=how.friction_speed,
    )
    there = (made.q, made.qd) if not several else (made.q[:, :, 0], made.qd[:, :, 0])
    back = [np.moveaxis(np.asarray(x.get() if hasattr(x, "get") else x), 0, 1) for x in there]
    return ManyRuns(clock, np.ascontiguousarray(back[0]), np.ascontiguousarray(back[1]), {})
