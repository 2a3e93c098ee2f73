"""The start of a simulation, and what may go wrong on its way: checked by name."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Faults, SimulationError, did_you_mean
from veridyn.mechanics.system.simulation import BaseState, Method
from veridyn.mechanics.tree.dynamics.state_rates import ActingInputs, StateRates
from veridyn.mechanics.tree.loops.assembly import loop_values
from veridyn.mechanics.tree.loops.dynamics import check_closed_state, first_crossing
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import components

Array = NDArray[np.float64]
START_TOLERANCE = 1e-9  # relative: by how much the start of a prescribed coordinate may differ from what is prescribed
SCIPY = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


def inner_start(tree: Tree, given: Mapping[str, float]) -> Array:
    """The start of the states that elements have of their own."""
    names, faults = [s.name for s in tree.states], Faults()
    for name, value in given.items():
        if name not in names:
            faults.add(f"there is no state '{name}'.", where="states", hint=did_you_mean(name, names))
        elif not math.isfinite(value):
            faults.add("it cannot start there.", where=f"states['{name}']", found=f"{value}")
    faults.raise_if_any(DataError, tree.name)
    return np.array([float(given.get(name, 0.0)) for name in names])


def check_prescribed(system: ActingInputs, start: float, y: Array) -> None:
    """Refuse prescribed coordinates without a motion, motions of others, and a start that is not as prescribed."""
    tree, given, faults = system.tree, system.inputs.prescribed, Faults()
    named = {} if given is None else dict(given(start))
    for name in tree.prescribed:
        if name not in named:
            faults.add(
                "it is prescribed, and its motion is not given.",
                where=f"coordinate '{name}'",
                expected="Inputs(prescribed=…): time → {name: (q, qd, qdd)}",
            )
    for name in named:
        if name not in tree.prescribed:
            faults.add(
                "its motion is given, and it is not prescribed.",
                where=f"coordinate '{name}'",
                hint="Add it with tree.with_prescribed, or leave it out.",
            )
    faults.raise_if_any(DataError, tree.name)
    off = np.abs(system.with_prescribed(start, y) - y)
    if off.max() > START_TOLERANCE * (1.0 + np.abs(y).max()):
        number, at = int(np.argmax(off)), 7 if system.free else 0
        k = number - at if number < at + tree.n else number - (len(y) - system.own - tree.n)
        raise DataError(
            f"the start of the prescribed coordinate '{tree.coordinates[k]}' is not what is prescribed.",
            where=tree.name,
            expected="q and qd as Inputs.prescribed gives them at the first time",
            found=f"a difference of {off.max():.3g}",
        )


def check_given_loads(system: ActingInputs, start: float) -> None:
    """Refuse values of loads that the machine does not have, or of another size."""
    if system.inputs.loads is None:
        return
    tree, faults = system.tree, Faults()
    sizes = {load.name: components(load) for load in tree.loads}
    for name, value in system.inputs.loads(start).items():
        if name not in sizes:
            faults.add(f"there is no load '{name}'.", where="Inputs.loads", hint=did_you_mean(name, list(sizes)))
        elif np.size(value) != sizes[name]:
            faults.add(
                "its value has another size.",
                where=f"load '{name}'",
                expected=f"{sizes[name]} numbers",
                found=f"{np.size(value)}",
            )
    faults.raise_if_any(DataError, tree.name)


def refuse_crossing(system: StateRates, clock: Array, y: Array) -> None:
    """A fixed step may leap over a singular position; what comes behind it is one of several motions, and nobody knows which."""
    n, at = system.tree.n, 7 if system.free else 0
    k = first_crossing(system.tree, y[:, at : at + n])
    if k is not None:
        raise SimulationError(
            f"the motion goes through a singular position between {clock[k]:.6g} s and {clock[k + 1]:.6g} s.",
            where=system.tree.name,
            hint="Behind it the machine may go on in more than one way. End before it, or lead the motion around it.",
        )


def initial_state(tree: Tree, t: ArrayLike, q: ArrayLike, qd: ArrayLike, base: BaseState | None, how: Method) -> Array:
    """The state vector at the start, without elements' own states; refused where it is none of this machine."""
    faults = Faults()
    clock = np.asarray(t, dtype=np.float64)
    if clock.ndim != 1 or len(clock) < 2 or not (np.diff(clock) > 0).all():
        faults.add("the times do not increase.", where="t", expected="at least two increasing times")
    start = [np.asarray(x, dtype=np.float64) for x in (q, qd)]
    for name, x in zip(("q", "qd"), start, strict=True):
        if x.shape != (tree.n,) or not np.isfinite(x).all():
            faults.add(
                "the start is not a state of this machine.", where=name, expected=f"({tree.n},) finite", found=f"{x}"
            )
    if how.name not in (*SCIPY, "RK4"):
        faults.add(f"there is no integrator '{how.name}'.", where="method", expected="RK4 or " + ", ".join(SCIPY))
    if how.name == "RK4" and not (0 < how.step < math.inf):
        faults.add(
            "a fixed step needs its length.", where="method.step", expected="a positive time", found=f"{how.step}"
        )
    if tree.base == "free" and base is None:
        base = BaseState()
    if tree.base == "fixed" and base is not None:
        faults.add("the base is fixed and has no state.", where="base")
    faults.raise_if_any(DataError, tree.name)
    if tree.loops:
        q0, qd0 = start[0][None], start[1][None]
        check_closed_state(tree, loop_values(tree, q0, qd0), qd0)
    if base is None:
        return np.concatenate(start)
    p, e, v, w = (np.asarray(x, dtype=np.float64) for x in (base.position, base.quaternion, base.velocity, base.omega))
    return np.concatenate([p, e / np.linalg.norm(e), start[0], v, w, start[1]])
