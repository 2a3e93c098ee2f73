"""The gradient of one number that a simulation gives, by everything that it depends on: one run, and one sweep backwards through it.

What a machine, its inputs and its own controllers may be for that, and how the sweep goes: :mod:`veridyn.mechanics.system.run_adjoint`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, ModelError, did_you_mean, part_at
from veridyn.mechanics.system.batch import GivenRuns
from veridyn.mechanics.system.compiled_run import Simulated
from veridyn.mechanics.system.run_adjoint import GAIN_ROWS, AdjointRun, refuse_unsmooth
from veridyn.mechanics.system.run_layout import JointControllers
from veridyn.mechanics.system.simulation import BaseState, Inputs
from veridyn.mechanics.tree.dynamics.instant import ActingInputs
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.controller import Controller
from veridyn.model.machine import Machine

OUTPUTS = ("q", "qd", "forces")
WHOLE = 1e-9  # relative, of a number of steps that should be whole
# what a tick of a compiled run does not know; at these values it is not there
UNKNOWN_CONSTANTS = {
    "velocity_feedforward": 0.0,
    "acceleration_feedforward": 0.0,
    "rate_limit": math.inf,
    "command_delay": 0.0,
    "load_friction": 0.0,
    "backdrive_friction": 0.0,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class RunGradient:
    """A number made of a run at K samples, its gradient, and the run: q, q̇ and the forces that acted (K, n).

    `by_parameters` and `by_constants` are in the order of ``machine.parameters`` and ``machine.constants``, `by_controllers` has names of
    ``machine.controller_constants``; `by_q` and `by_qd` (n,) are by the start, `by_forces` (K, n), `by_signals` (K,) by name and
    `by_command` (K, 2, m) by the inputs at the samples, also where these are the same all along.
    """

    value: float
    by_parameters: Array
    by_constants: Array
    by_controllers: Mapping[str, float]
    by_q: Array
    by_qd: Array
    by_forces: Array
    by_signals: Mapping[str, Array]
    by_command: Array
    q: Array
    qd: Array
    forces: Array


@takes_machine
def integrate_gradient(
    machine: Machine | Tree,
    t: ArrayLike,
    q: ArrayLike,
    qd: ArrayLike,
    forces: ArrayLike | None = None,
    *,
    measured: Mapping[str, ArrayLike] | None = None,
    weights: Mapping[str, ArrayLike] | None = None,
    command: ArrayLike | None = None,
    parameters: ArrayLike | None = None,
    signals: Mapping[str, ArrayLike] | None = None,
    step: float = 1e-3,
    friction_speed: float = 0.0,
) -> RunGradient:
    """One number of a simulated motion, and its gradient by all parameters, the start and the inputs in one sweep backwards.

    The number is Σ w (measured − simulated)², or Σ w simulated of what is not given as measured. Its time does not grow with what it is
    differentiated by. The gradient is the exact one of the steps that are run, those of the Runge-Kutta rule of order four.

    Parameters
    ----------
    machine : Machine
        Open, on a fixed base, under smooth forces; its elements may have states of their own, which start from zero.
    t : (K,)
        Times of the samples in s, equally far apart.
    q, qd : (n,)
        Where the run starts, rad or m, and rad/s or m/s.
    forces : (n,) or (K, n), or None
        N*m or N, joined by straight lines from sample to sample; by default those of the machine's drives. With a command they are added
        by the controllers at each tick, and held to the next one.
    measured : mapping of "q", "qd" or "forces" to (K, n), or None
        What is compared with positions, rates, and forces that acted (with a command those of the controllers); nan where nothing was
        measured.
    weights : mapping of the same names to numbers, (n,) or (K, n), or None
        w above; 1 by default for what is measured.
    command : (K, 2, m), or None
        Positions and rates that the machine's m controllers follow, in the order of its coordinates: laws of kind pd and pid with their
        limits, zeros and measurement delays, at ticks a whole number of steps apart. Between steps a state is read off a cubic.
    parameters : (p,), or None
        Values in the order of ``machine.parameters``; by default those of the machine.
    signals : mapping of names to (K,), or None
        What elements of the machine take as measured.
    step : float above 0
        The longest step of the integration in s, of which a whole number is taken from sample to sample.
    friction_speed : float of at least 0
        Speed below which dry friction is rounded off; it must be above zero where there is some.

    Returns
    -------
    RunGradient
        ``value``, ``by_parameters`` (p,), ``by_q``, ``by_qd`` and the others.

    Raises
    ------
    DataError, ModelError, SimulationError
        With all that a sweep backwards does not know: loops, free bases, tyres, bristles, friction that holds, other laws of controllers.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> arm = vd.load_model("veridyn:arm.yaml")
    >>> t, rest = np.linspace(0.0, 0.2, 21), np.zeros(arm.n)
    >>> push, how = np.full((21, arm.n), 20.0), {"friction_speed": 0.05}
    >>> seen = vd.dynamics.integrate_many(arm, t, rest, rest, push[None], **how).q[0]
    >>> true = vd.dynamics.integrate_gradient(arm, t, rest, rest, push, measured={"q": seen}, **how)
    >>> off = arm.parameters.values * 1.1
    >>> away = vd.dynamics.integrate_gradient(arm, t, rest, rest, push, measured={"q": seen}, parameters=off, **how)
    >>> isinstance(true, vd.dynamics.RunGradient), bool(true.value < 1e-20), bool(away.value > 1e-3)
    (True, True, True)
    >>> away.by_parameters.shape == off.shape, away.by_forces.shape
    (True, (21, 6))
    """
    tree, clock = tree_of(machine), np.asarray(t, dtype=np.float64)
    refuse_unsmooth(tree, friction_speed)
    driven = ActingInputs(tree, Inputs()).driving(0.0) if forces is None else np.asarray(forces, dtype=np.float64)
    given = driven[None] if driven.ndim == 2 else driven
    runs = GivenRuns.of(tree, clock, q, qd, given, BaseState(), parameters, signals or {}, step)
    if runs.count > 1:
        raise DataError("a gradient is that of one run.", where=tree.name, found=f"{runs.count} runs")
    K, n = runs.samples, tree.n
    goal = _goal(tree, (K, n), measured or {}, weights or {})
    controllers = machine.controllers if isinstance(machine, Machine) and command is not None else ()
    servo, asked, joints = None, np.zeros((K, 0)), [tree.coordinates.index(c.on) for c in controllers]
    if command is not None:
        servo = _servo(tree, controllers, runs.interval / runs.substeps)
        asked = _command(tree, np.asarray(command, dtype=np.float64), K, sorted(joints))
    run = AdjointRun(tree, friction_speed=friction_speed, servo=servo)
    acting = np.broadcast_to(runs.forces[0], (K, n))
    heard = [
        np.broadcast_to(runs.signals[name][0], K) if name in runs.signals else np.zeros(K) for name in run.measured
    ]
    inputs = np.column_stack([acting, *heard, asked])
    values = None if runs.parameters is None else runs.parameters.reshape(-1)
    found = run.sweep(
        runs.interval, runs.initial[0], inputs, goal, servo=servo, parameters=values, substeps=runs.substeps
    )
    by, last = found.inputs, n + len(run.measured)
    return RunGradient(
        value=found.value,
        by_parameters=found.parameters @ tree.parameters.tie_matrix(),
        by_constants=found.constants,
        by_controllers={
            f"{c.name}.{key}": float(found.gains[GAIN_ROWS.index(key), j])
            for c, j in zip(controllers, joints, strict=True)
            for key in c.constants
            if key in GAIN_ROWS
        },
        by_q=found.start[:n],
        by_qd=found.start[n : 2 * n],
        by_forces=by[:, :n],
        by_signals={name: by[:, n + j] for j, name in enumerate(run.measured)},
        by_command=by[:, last:].reshape(K, -1, n)[:, :, sorted(joints)],
        q=found.run.q[0],
        qd=found.run.qd[0],
        forces=found.run.forces[0],
    )


def _goal(
    tree: Tree, shape: tuple[int, int], measured: Mapping[str, ArrayLike], weights: Mapping[str, ArrayLike]
) -> Callable[[Simulated], tuple[float, Array, Array]]:
    """The number of a run with its derivatives by states and forces; refused where shapes or names are wrong."""
    faults, K, n = Faults(), shape[0], shape[1]
    seen: dict[str, Array] = {}
    pull: dict[str, Array] = {}
    for what, arrays, out in (("measured", measured, seen), ("weights", weights, pull)):
        for name, x in arrays.items():
            where, value = f"{what}['{name}']", np.asarray(x, dtype=np.float64)
            if name not in OUTPUTS:
                faults.add(
                    "a run has no such output.",
                    where=where,
                    expected=", ".join(OUTPUTS),
                    hint=did_you_mean(name, OUTPUTS),
                )
            elif value.shape != shape and (out is seen or value.shape not in ((), (n,))):
                expected = f"{shape}" if out is seen else f"a number, ({n},) or {shape}"
                faults.add("it has the wrong shape.", where=where, expected=expected, found=f"{value.shape}")
            elif not (np.isfinite(value) | ((out is seen) & np.isnan(value))).all():
                faults.add("it holds values that are no numbers.", where=where)
            else:
                out[name] = np.broadcast_to(value, shape)
    if not (measured or weights):
        faults.add("there is nothing to differentiate.", hint="Give measured={'q': …}, or weights of outputs.")
    faults.raise_if_any(DataError, tree.name)

    def goal(run: Simulated) -> tuple[float, Array, Array]:
        value, by_state, by_force = 0.0, np.zeros((K, 2 * n + len(tree.states))), np.zeros(shape)
        places = {"q": by_state[:, :n], "qd": by_state[:, n : 2 * n], "forces": by_force}
        for name in {**seen, **pull}:
            x = getattr(run, name)[0]
            w = pull.get(name, np.ones(shape))
            if name in seen:
                there = np.isfinite(seen[name])
                off = np.where(there, x - seen[name], 0.0)
                value += float((w * off * off).sum())
                places[name][:] = 2.0 * w * off
            else:
                value += float((w * x).sum())
                places[name][:] = w
        return value, by_state, by_force

    return goal


def _servo(tree: Tree, controllers: tuple[Controller, ...], h: float) -> JointControllers:
    """The controllers of a machine as those of all joints in a run of steps of h seconds; refused where their laws are others."""
    faults = Faults()
    rates = sorted({c.rate for c in controllers})
    ticks = 1.0 / (rates[0] * h) if rates else 0.0
    if not rates:
        faults.add("the machine has no controllers to follow a command.", where="command")
    elif len(rates) > 1:
        faults.add(
            "controllers tick at different rates.", expected="one rate", found=", ".join(f"{r:g} Hz" for r in rates)
        )
    elif round(ticks) < 1 or abs(ticks - round(ticks)) > WHOLE * ticks:
        what = "from tick to tick there is no whole number of steps."
        faults.add(
            what,
            where="step",
            found=f"{rates[0]:g} Hz, steps of {h:g} s",
            hint=f"Take samples and steps that divide {1.0 / rates[0]:g} s.",
        )
    for c in controllers:
        found = [f"kind {c.kind}"] * (c.kind not in ("pd", "pid")) + ["a motor"] * bool(c.motor)
        found += [f"feedforward {c.feedforward}"] * (c.feedforward != "none")
        found += [f"anti_windup {c.anti_windup}"] * (
            c.integrates and "limit" in c.constants and c.anti_windup != "clamp"
        )
        found += [key for key, none in UNKNOWN_CONSTANTS.items() if c.constants.get(key, none) != none]
        if found:
            faults.add(
                "a sweep backwards does not know this law.",
                where=part_at("controller", c.name),
                expected="pd or pid, with limit, zero and measurement_delay",
                found=", ".join(found),
            )
    faults.raise_if_any(ModelError, tree.name)
    own = {c.on: c for c in controllers}
    resting = {key: math.inf if key == "limit" else 0.0 for key in GAIN_ROWS}
    constant = {
        key: np.array([own[c].constants.get(key, x) if c in own else x for c in tree.coordinates])
        for key, x in resting.items()
    }
    lag = math.ceil(float(constant["measurement_delay"].max()) / h * (1.0 - WHOLE))
    return JointControllers(ticks=round(ticks), lag=lag, **constant)


def _command(tree: Tree, command: Array, samples: int, joints: list[int]) -> Array:
    """(K, 2n) of a command (K, 2, m) for these joints."""
    if command.shape != (samples, 2, len(joints)):
        expected = (
            f"({samples}, 2, {len(joints)}): positions and rates of {', '.join(tree.coordinates[j] for j in joints)}"
        )
        raise DataError("it has the wrong shape.", where="command", expected=expected, found=f"{command.shape}")
    out = np.zeros((samples, 2, tree.n))
    out[:, :, joints] = command
    return out.reshape(samples, 2 * tree.n)
