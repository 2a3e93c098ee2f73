"""Many simulations at once on a GPU: initial states times sets of parameters, by the classical Runge-Kutta method of fourth order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from veridyn.errors import DataError, Fault
from veridyn.mechanics.gpu import batch_program, check_pivots, on_device, parameter_sets, uniform_sets
from veridyn.mechanics.symbols import Request
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.symbolic.gpu import Processor, open_gpu, require_memory

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
    request = Request("forward_checked", tuple(range(n)), friction_speed=friction_speed)
    run, names, uniform = batch_program(tree, request, (n + 1,), device, values.ndim == 2)
    given = uniform_sets(tree, values, uniform)
    start = [on_device(device, x, name) for x, name in ((q, "q"), (qd, "qd"))]
    runs = len(start[0])
    if any(x.shape != (runs, n) for x in start):
        raise DataError(
            Fault(
                "initial states have the wrong shape.",
                where=tree.name,
                expected=f"(runs, {n})",
                found=f"{start[0].shape}",
            )
        )
    count = sets * runs
    require_memory(device, 8 * n * count * (2 * len(times) + 12), f"{count} simulations")
    state = xp.concatenate([xp.tile(x.T, (1, sets)) for x in start])  # q above q̇, (2 n, count)
    place = {name: (name.partition(".")[0], int(name.partition(".")[2])) for name in names}
    inputs, solved = xp.empty((len(names), count)), xp.empty((n + 1, count))
    constant = None if forces is None or callable(forces) else xp.tile(on_device(device, forces, "forces").T, (1, sets))

    def rates(now: float, y: Any) -> Any:
        if callable(forces):
            acting = on_device(device, forces(now, y[:n].T, y[n:].T), "forces").T
        else:
            acting = constant
        for k, name in enumerate(names):
            kind, at = place[name]
            inputs[k] = y[at] if kind == "q" else y[n + at] if kind == "qd" else 0.0 if acting is None else acting[at]
        run(inputs, given, solved, count)
        return xp.concatenate([y[n:], solved[:n]])

    kept = [state]
    for lo, hi in pairwise(times):
        h = (hi - lo) / steps
        for k in range(steps):
            state = _runge_kutta(rates, lo + k * h, state, h)
        check_pivots(tree, solved[n])
        kept.append(state)
    whole = xp.moveaxis(xp.stack(kept), 1, 2)  # (T, count, 2 n)
    if values.ndim == 2:
        whole = whole.reshape(len(times), sets, runs, 2 * n)
    return DeviceRuns(times, whole[..., :n], whole[..., n:])


def _runge_kutta(rates: Callable[[float, Any], Any], t: float, y: Any, h: float) -> Any:
    k1 = rates(t, y)
    k2 = rates(t + 0.5 * h, y + 0.5 * h * k1)
    k3 = rates(t + 0.5 * h, y + 0.5 * h * k2)
    k4 = rates(t + h, y + h * k3)
    return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def _check(tree: Tree, times: np.ndarray, steps: int) -> None:
    where = tree.name
    if tree.base != "fixed" or tree.states or tree.held or tree.signals:
        raise DataError(
            Fault(
                "simulations on a GPU are of machines on a fixed base, without signals, prescribed coordinates and states of elements.",
                where=where,
                hint="Use dynamics.integrate.",
            )
        )
    if times.ndim != 1 or len(times) < 1 or (np.diff(times) <= 0.0).any() or steps < 1:
        raise DataError(Fault("times must rise, and there is at least one step between them.", where=where))
