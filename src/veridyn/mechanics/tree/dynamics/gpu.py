"""Batches on a GPU: the laws of motion of arrays that lie on the device, and many simulations at once.

Computed are inverse and forward dynamics, the mass matrix, derivatives and the regressor. Arrays come in and go out by DLPack: CuPy,
PyTorch and JAX arrays of doubles on the GPU are taken where they lie, NumPy arrays are brought over, and results are CuPy arrays, which the
others take without a copy (``torch.from_dlpack``). Samples of one quantity lie together; an array that lies the other way is turned round
on the device. Parameters are one set for all samples, or many sets (draws from a fit), each of which is applied to all samples.

Simulations are those of initial states times sets of parameters, by the classical Runge-Kutta method of fourth order. Under constant
forces a whole step is one program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.engine import sample_source, signature, uniform_values
from veridyn.mechanics.tree.dynamics.formula import Formula, formula
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.inputs import Label, Request, complete_values, loaded_bodies
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.symbolic.cache import key_of, remembered
from veridyn.symbolic.expression import Graph, Number, inserted
from veridyn.symbolic.gpu import Processor, open_gpu, require_memory


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviceBase:
    """Motion of a free base, each (N, 3) in its frame, as :class:`~veridyn.model.motion.BaseMotion`; None where it is not needed."""

    omega: Any
    omega_dot: Any = None
    acceleration: Any = None
    velocity: Any = None
    position: Any = None
    quaternion: Any = None


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviceMotion:
    """N samples on a device, as :class:`~veridyn.model.motion.Motion`: arrays (N, n) of doubles, `wrenches` (N, 6), `signals` (N,).

    What a quantity does not need may be left out.
    """

    q: Any
    qd: Any = None
    qdd: Any = None
    forces: Any = None
    base: DeviceBase | None = None
    wrenches: Mapping[str, Any] = field(default_factory=dict)
    signals: Mapping[str, Any] = field(default_factory=dict)


@takes_machine
def inverse_dynamics(
    machine: Machine | Tree,
    motion: Motion | DeviceMotion,
    parameters: Any = None,
    *,
    processor: Processor | None = None,
) -> Any:
    """The forces of a motion, as :func:`veridyn.mechanics.tree.dynamics.inverse.inverse_dynamics`: (N, rows), or (sets, N, rows)."""
    tree = tree_of(machine)
    request = Request("inverse", tuple(range(len(tree.rows))), bodies=loaded_bodies(tree, motion.wrenches))
    return _filled(tree, motion, request, (len(tree.rows),), parameters, processor)


@takes_machine
def forward_dynamics(
    machine: Machine | Tree,
    motion: Motion | DeviceMotion,
    parameters: Any = None,
    *,
    processor: Processor | None = None,
) -> Any:
    """The accelerations that forces cause: (N, rows), or (sets, N, rows); for a free base [v̇ − g, ω̇, q̈].

    Refused where the mass matrix of some sample is nearly singular.
    """
    tree = tree_of(machine)
    rows = len(tree.rows)
    request = Request("forward_checked", tuple(range(rows)), bodies=loaded_bodies(tree, motion.wrenches))
    solved = _filled(tree, motion, request, (rows + 1,), parameters, processor)
    check_pivots(tree, solved[..., -1])
    return solved[..., :-1]


def check_pivots(tree: Tree, nearness: Any) -> None:
    """Refuse accelerations of samples whose mass matrix is nearly singular; `nearness` is the last output of "forward_checked"."""
    if not bool((nearness < NEAR_SINGULAR).all()):
        raise ModelError(
            "the mass matrix is nearly singular in some sample, or a state is not a number.",
            where=tree.name,
            expected=f"a sum of inverse pivots below {NEAR_SINGULAR:.0e}",
            found=f"{float(nearness.max()):.2e}",
            hint="Look for a coordinate that moves no mass, or for parameters no body can have.",
        )


@takes_machine
def mass_matrix(
    machine: Machine | Tree,
    motion: Motion | DeviceMotion,
    parameters: Any = None,
    *,
    processor: Processor | None = None,
) -> Any:
    """M of every sample: (N, rows, rows), or (sets, N, rows, rows)."""
    tree = tree_of(machine)
    rows = len(tree.rows)
    return _filled(tree, motion, Request("mass"), (rows, rows), parameters, processor)


@takes_machine
def inverse_derivatives(
    machine: Machine | Tree,
    motion: Motion | DeviceMotion,
    parameters: Any = None,
    *,
    processor: Processor | None = None,
) -> tuple[Any, Any]:
    """∂Γ/∂q and ∂Γ/∂q̇ of every sample: (N, rows, n) each, or (sets, N, rows, n)."""
    tree = tree_of(machine)
    rows = len(tree.rows)
    request = Request("inverse_derivatives", tuple(range(rows)), bodies=loaded_bodies(tree, motion.wrenches))
    both = _filled(tree, motion, request, (2, rows, tree.n), parameters, processor)
    return both[..., 0, :, :], both[..., 1, :, :]


@takes_machine
def regressor(machine: Machine | Tree, motion: Motion | DeviceMotion, *, processor: Processor | None = None) -> Any:
    """The regressor D of every sample: (N, rows, columns)."""
    tree = tree_of(machine)
    rows, columns = len(tree.rows), len(tree.columns)
    request = Request("regressor", tuple(range(rows)), tuple(range(columns)))
    return _filled(tree, motion, request, (rows, columns), None, processor, valued=False)


def _filled(
    tree: Tree,
    motion: Motion | DeviceMotion,
    request: Request,
    shape: tuple[int, ...],
    parameters: Any,
    processor: Processor | None,
    *,
    valued: bool = True,
) -> Any:
    """An array ([sets,] N, *shape) with every output at the place of its label, zero elsewhere."""
    device = open_gpu() if processor is None else processor
    values = parameter_sets(tree, parameters) if valued else None
    several = values is not None and values.ndim == 2
    sets = len(values) if values is not None and several else 1
    run, samples, names = batch_program(tree, request, shape, device, several)
    inputs = batch_inputs(tree, motion, samples, device, sets)
    count, size = int(inputs.shape[1]), int(np.prod(shape))
    require_memory(device, 8 * size * count, f"the results of {count} samples")
    out = device.xp.empty((size, count))
    given = np.zeros(0) if values is None else uniform_sets(tree, values, names)
    run(inputs, given, out, count)
    whole = device.xp.moveaxis(out.reshape(*shape, count), -1, 0)
    return whole.reshape(sets, count // sets, *shape) if several else whole


def parameter_sets(tree: Tree, parameters: Any) -> np.ndarray:
    """Complete values (p,) or (sets, p), ties applied; refused where some are unknown or the shape is wrong."""
    given = None if parameters is None else np.asarray(parameters, dtype=np.float64)
    if given is None or given.ndim == 1:
        return complete_values(tree, given)
    if given.ndim != 2 or given.shape[1] != len(tree.columns) or not len(given):
        raise DataError(
            "sets of parameters have one row each.",
            where=tree.name,
            expected=f"({len(tree.columns)},) or (sets, {len(tree.columns)})",
            found=f"{given.shape}",
        )
    return np.array([complete_values(tree, row) for row in given])


def uniform_sets(tree: Tree, values: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """The parameters and constants that a program takes, for one set of values or for several."""
    if values.ndim == 1:
        return uniform_values(tree, values, names)
    return np.array([uniform_values(tree, row, names) for row in values])


def batch_program(
    tree: Tree, request: Request, shape: tuple[int, ...], device: Processor, sets: bool
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """The program of a request with outputs at all places of an array `shape`, made once in a process; its inputs and parameters."""
    tree.check_open("a batch on a GPU")

    def make() -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
        f = formula(tree, request)
        made = dict(zip(f.labels, f.outputs, strict=True))
        labels: list[Label] = [tuple(int(k) for k in label) for label in np.ndindex(*shape)]
        order = {label: k for k, label in enumerate(labels)}
        goals = [order[label] for label in f.labels] + [k for k, label in enumerate(labels) if label not in made]
        outputs = [made.get(label, 0.0) for label in labels]
        run = device.program(f.graph, outputs, f.samples, f.parameters, goals=goals, sets=sets)
        return run, f.samples, f.parameters

    return remembered(key_of("batch", device.name, signature(tree), repr(request), str(shape), str(sets)), make)


def batch_inputs(
    tree: Tree, motion: Motion | DeviceMotion, names: tuple[str, ...], device: Processor, sets: int = 1
) -> Any:
    """The inputs (k, sets N) of a program on the device; each array is taken once."""
    xp = device.xp
    here: dict[int, Any] = {}
    rows = []
    count = len(motion.q)
    for name in names:
        array, column = _source(tree, motion, name)
        if id(array) not in here:
            here[id(array)] = on_device(device, array, name)
        found = here[id(array)]
        if len(found) != count or (column is not None and column >= found.shape[1]):
            raise DataError(
                "an array has the wrong shape.", where=f"'{name}'", expected=f"{count} samples", found=f"{found.shape}"
            )
        rows.append(found if column is None else found[:, column])
    inputs = xp.empty((len(rows), count))
    for k, row in enumerate(rows):
        inputs[k] = row
    return xp.tile(inputs, (1, sets)) if sets > 1 else inputs


def _source(tree: Tree, motion: Motion | DeviceMotion, name: str) -> tuple[Any, int | None]:
    try:
        array, column = sample_source(tree, cast(Motion, motion), name)
    except (AssertionError, KeyError):
        array, column = None, None
    if array is None:
        raise DataError(
            "the motion has no array for an input of this quantity.",
            where=f"{tree.name}, '{name}'",
            hint="q, qd, qdd: coordinates; t: forces; w, wd, vd, v: the base; f, m: wrenches; s: signals.",
        )
    return array, column


def on_device(device: Processor, array: Any, name: str) -> Any:
    """An array where the device can use it: taken by DLPack where it lies there, brought over where it is NumPy's."""
    xp = device.xp
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return xp.asarray(np.ascontiguousarray(array, dtype=np.float64))
    taken = array if isinstance(array, xp.ndarray) else xp.from_dlpack(array)
    if taken.dtype != np.float64:
        raise DataError(
            "arrays on a device hold doubles.", where=f"'{name}'", expected="float64", found=f"{taken.dtype}"
        )
    return taken


CHECKED_EACH = 64  # samples of a simulation: a check waits for the device
Forces = Callable[[float, Any, Any], Any]  # time, q and q̇ (runs, n) on the device → forces (runs, n)


@dataclass(frozen=True, eq=False)
class DeviceRuns:
    """Simulated motions on the device: `t` (T,), `q` and `qd` (T, runs, n), or (T, sets, runs, n) for sets of parameters."""

    t: np.ndarray
    q: Any
    qd: Any


@takes_machine
def integrate(
    machine: Machine | Tree,
    t: ArrayLike,
    q: Any,
    qd: Any,
    forces: Forces | Any = None,
    *,
    parameters: Any = None,
    steps: int = 1,
    friction_speed: float = 0.0,
    processor: Processor | None = None,
) -> DeviceRuns:
    """Motions from states (runs, n) at t[0], sampled at the times t, `steps` steps between two of them.

    `forces`: (runs, n), the same all the time, or a function of time and of the states of all runs; none by default. With several sets of
    parameters, each set has all runs. For open machines on a fixed base whose elements have no states of their own.
    """
    tree = tree_of(machine)
    times = np.asarray(t, dtype=np.float64)
    _check(tree, times, steps)
    device = open_gpu() if processor is None else processor
    xp, n = device.xp, tree.n
    values = parameter_sets(tree, parameters)
    sets = len(values) if values.ndim == 2 else 1
    start = [on_device(device, x, name) for x, name in ((q, "q"), (qd, "qd"))]
    runs = len(start[0])
    if any(x.shape != (runs, n) for x in start):
        raise DataError(
            "initial states have the wrong shape.", where=tree.name, expected=f"(runs, {n})", found=f"{start[0].shape}"
        )
    count = sets * runs
    require_memory(device, 8 * n * count * (2 * len(times) + 12), f"{count} simulations")
    state = xp.concatenate([xp.tile(x.T, (1, sets)) for x in start])  # q above q̇, (2 n, count)
    if callable(forces):
        stepped = _staged(tree, forces, values, friction_speed, device, count)
    else:
        acting = None if forces is None else xp.tile(on_device(device, forces, "forces").T, (1, sets))
        stepped = _fused(tree, acting, values, friction_speed, device, count)
    kept = xp.empty((len(times), 2 * n, count))
    kept[0] = state
    for k, (lo, hi) in enumerate(pairwise(times), 1):
        kept[k], nearness = stepped(lo, (hi - lo) / steps, steps, kept[k - 1])
        if k % CHECKED_EACH == 0 or k == len(times) - 1:
            check_pivots(tree, nearness)
    whole = xp.moveaxis(kept, 1, 2)  # (T, count, 2 n)
    if values.ndim == 2:
        whole = whole.reshape(len(times), sets, runs, 2 * n)
    return DeviceRuns(times, whole[..., :n], whole[..., n:])


Stepped = Callable[[float, float, int, Any], tuple[Any, Any]]  # t, h, steps, state → state, how near M came to singular


def _fused(
    tree: Tree, forces: Any, values: np.ndarray, friction_speed: float, device: Processor, count: int
) -> Stepped:
    """Steps under constant forces, each one program: a state is read once and written once."""
    xp, n = device.xp, tree.n
    states = [f"{symbol}.{k}" for symbol in ("q", "qd") for k in range(n)]
    rows = (*states, "nearness", *(f"t.{k}" for k in range(n)))

    def make() -> tuple[Any, tuple[str, ...]]:
        f = formula(tree, Request("forward_checked", tuple(range(n)), friction_speed=friction_speed))
        graph = Graph()
        for name in rows:
            graph.input(name)
        outputs = step_expressions(graph, f, n)
        run = device.program(graph, outputs, rows, (*f.parameters, "step"), sets=values.ndim == 2)
        return run, f.parameters

    key = key_of("step", device.name, signature(tree), repr(friction_speed), str(values.ndim))
    run, names = remembered(key, make)
    uniform = uniform_sets(tree, values, names)
    given: Any = np.concatenate([uniform, np.zeros((*uniform.shape[:-1], 1))], axis=-1)
    # sets lie on the device, one set goes along with each call
    given = xp.asarray(given) if values.ndim == 2 else given
    old, new = xp.zeros((len(rows), count)), xp.zeros((len(rows), count))
    if forces is not None:
        old[2 * n + 1 :] = new[2 * n + 1 :] = forces

    def stepped(t: float, h: float, steps: int, state: Any) -> tuple[Any, Any]:
        nonlocal old, new
        given[..., -1] = h
        old[: 2 * n] = state
        for _ in range(steps):
            run(old, given, new[: 2 * n + 1], count)
            old, new = new, old
        return old[: 2 * n], old[2 * n]

    return stepped


def step_expressions(graph: Graph, f: Formula, n: int) -> list[Number]:
    """A step of the classical method as expressions: the state behind it, and how near M came to singular so far."""
    h, nearness = graph.input("step"), graph.input("nearness")
    y: list[Number] = [graph.input(f"{symbol}.{k}") for symbol in ("q", "qd") for k in range(n)]
    named = dict(zip(f.labels, f.outputs, strict=True))
    wanted = [named.get((k,), 0.0) for k in range(n + 1)]
    half, slopes = graph.mul(0.5, h), []
    at: list[Number] = y
    for ahead in (half, half, h, None):
        stage = {f"q.{k}": at[k] for k in range(n)} | {f"qd.{k}": at[n + k] for k in range(n)}
        *qdd, near = inserted(graph, f.graph, wanted, stage)
        slopes.append([*at[n:], *qdd])
        # max(a, b) = (a + b + |a − b|)/2; what is not a number stays so
        sum_, gap = graph.add(nearness, near), graph.abs(graph.add(nearness, -near))
        nearness = graph.mul(0.5, graph.add(sum_, gap))
        if ahead is not None:
            at = [graph.add(a, graph.mul(ahead, k)) for a, k in zip(y, slopes[-1], strict=True)]
    sixth = graph.mul(1.0 / 6.0, h)
    ends = []
    for a, k1, k2, k3, k4 in zip(y, *slopes, strict=True):
        inner = graph.mul(2.0, graph.add(k2, k3))
        ends.append(graph.add(a, graph.mul(sixth, graph.add(graph.add(k1, k4), inner))))
    return [*ends, nearness]


def _staged(
    tree: Tree, forces: Forces, values: np.ndarray, friction_speed: float, device: Processor, count: int
) -> Stepped:
    """Steps under forces that a function gives: it is asked four times a step."""
    xp, n = device.xp, tree.n
    request = Request("forward_checked", tuple(range(n)), friction_speed=friction_speed)
    run, names, uniform = batch_program(tree, request, (n + 1,), device, values.ndim == 2)
    given = uniform_sets(tree, values, uniform)
    place = {name: (name.partition(".")[0], int(name.partition(".")[2])) for name in names}
    inputs, solved = xp.empty((len(names), count)), xp.empty((n + 1, count))

    def rates(now: float, y: Any) -> Any:
        acting = on_device(device, forces(now, y[:n].T, y[n:].T), "forces").T
        for k, name in enumerate(names):
            kind, at = place[name]
            inputs[k] = y[at] if kind == "q" else y[n + at] if kind == "qd" else acting[at]
        run(inputs, given, solved, count)
        return xp.concatenate([y[n:], solved[:n]])

    def stepped(t: float, h: float, steps: int, y: Any) -> tuple[Any, Any]:
        for k in range(steps):
            now = t + k * h
            k1 = rates(now, y)
            k2 = rates(now + 0.5 * h, y + 0.5 * h * k1)
            k3 = rates(now + 0.5 * h, y + 0.5 * h * k2)
            k4 = rates(now + h, y + h * k3)
            y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return y, solved[n]

    return stepped


def _check(tree: Tree, times: np.ndarray, steps: int) -> None:
    where = tree.name
    if tree.base != "fixed" or tree.states or tree.held or tree.signals:
        raise DataError(
            "simulations on a GPU are of machines on a fixed base, without signals, prescribed coordinates and states of elements.",
            where=where,
            hint="Use dynamics.integrate.",
        )
    if times.ndim != 1 or len(times) < 1 or (np.diff(times) <= 0.0).any() or steps < 1:
        raise DataError("times must rise, and there is at least one step between them.", where=where)
