"""A compiled run gone through backwards: the gradient of one number by everything that the run depends on, in one sweep.

With λ the gradient of what follows by the state after a step, its stages from the last to the first give

    k̄_i = h (b_i λ + Σ_j A_ji Ȳ_j),     Ȳ_i = (∂f/∂y)ᵀ k̄_i,     λ⁻ = λ + Σ_i Ȳ_i,     x̄ += (∂f/∂x)ᵀ k̄_i

at the states Y_i of the stages, which are made again from the states at the steps that the run has kept: the exact transpose of what
:mod:`veridyn.mechanics.system.run_sensitivity` carries forwards, and of the ticks of joint controllers. x are parameters, constants of
laws, forces and signals, all at once, so that its time does not grow with their number. f is smooth here: no friction holds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.mechanics.compiled import core, kept, only_for
from veridyn.mechanics.system import run_record as record
from veridyn.mechanics.system.compiled_run import CompiledRun, Hold, Simulated
from veridyn.mechanics.system.run_kernel import past_steps, put
from veridyn.mechanics.system.run_layout import JointControllers
from veridyn.mechanics.system.run_stages import add_to, copy, stage
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.record import call_kernel, view
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive
from veridyn.model.machine import Machine

Numbers = NDArray[np.int64]
GAIN_ROWS = ("kp", "ki", "kd", "zero", "limit", "measurement_delay")  # of a gradient by joint controllers


class SweptRun(NamedTuple):
    """A run at its K samples, the `value` made of it, and the gradient of that: by parameters (p,), constants of laws (c,), the start
    (q, q̇, z), inputs (K, ·), which are forces, measured signals and commands, and constants of joint controllers, rows GAIN_ROWS."""

    run: Simulated
    value: float
    parameters: Array
    constants: Array
    start: Array
    inputs: Array
    gains: Array


class AdjointRun:
    """Runs of a tree, one at a time, and gradients of what is made of them, under forces, signals and joint controllers as of
    :class:`~veridyn.mechanics.system.compiled_run.CompiledRun`. It belongs to one thread at a time."""

    def __init__(
        self, machine: Machine | Tree, *, friction_speed: float = 0.0, servo: JointControllers | None = None
    ) -> None:
        self.tree = tree = tree_of(machine)
        refuse_unsmooth(tree, friction_speed)
        self._run = CompiledRun(tree, friction_speed=friction_speed, servo=servo, adjoint=True)
        self.measured = tuple(name for name in tree.signals if name not in {s.name for s in tree.states})

    def sweep(
        self,
        step: float,
        initial: Array,
        inputs: Array,
        goal: Callable[[Simulated], tuple[float, Array, Array]],
        *,
        servo: JointControllers | None = None,
        parameters: Array | None = None,
        hold: Hold = "linear",
        substeps: int = 1,
    ) -> SweptRun:
        """The gradient of a goal of the run from `initial` (size,) under `inputs` (K, ·), sampled every `step` seconds.

        Inputs are forces (n), the signals `measured`, and with joint controllers commands (2n). `goal` makes of the run, whose arrays are
        (1, K, ·), a value and its derivatives by the states (K, size) and by the forces that acted (K, n). All else is as for
        :meth:`~veridyn.mechanics.system.compiled_run.CompiledRun.run`.
        """
        run, n, h = self._run, self.tree.n, step / substeps
        fine, heard = at_steps(inputs, substeps, hold), n + len(self.measured)
        made = run.room(1, len(fine))
        y, acting = made[0], made[2]
        signals = {name: fine[None, :, n + j] for j, name in enumerate(self.measured)}
        command = None if run.servo is None else fine[None, :, heard:]
        run.run(
            h, initial[None], fine[None, :, :n], signals, command=command, servo=servo, parameters=parameters, hold=hold, into=made
        )  # fmt: skip
        known = {name: x[:, ::substeps] for name, x in signals.items()}
        found = run.simulated(y[:, ::substeps], made[1][:, ::substeps], acting[:, ::substeps], known)
        by_y, by_acting, by_inputs = (np.zeros_like(x) for x in (y[0], acting[0], fine))
        value, by_y[::substeps], by_acting[::substeps] = goal(found)
        I, W, p = run.record.I, run.record.W, len(self.tree.parameters)
        total, gains = np.zeros(p + len(self.tree.constants)), np.zeros((len(GAIN_ROWS), n))
        arguments = h, y[0], acting[0], fine, by_y, by_acting, by_inputs, gains, np.zeros((2, n)), total
        status = compiled_sweep()(I, W, *arguments)
        if status != record.DONE:
            run.refuse(status, float(W[I[record.CLOCK] + record.INSTANT]), None)
        start = W[I[record.LAMBDA] : I[record.LAMBDA] + run.size].copy()
        return SweptRun(found, value, total[:p], total[p:], start, to_samples(by_inputs, substeps, hold), gains)


def refuse_unsmooth(tree: Tree, friction_speed: float) -> None:
    """Refuse what a sweep backwards does not know, all of it by name."""
    found = [f"loop '{loop.name}'" for loop in tree.loops] + ["a free base"] * (tree.base == "free")
    found += [f"prescribed coordinate '{tree.coordinates[j]}'" for j in tree.held]
    found += [f"load '{load.name}' at a place" for load in tree.loads if not isinstance(load, Drive)]
    for e in tree.elements:
        if e.wheel is not None or e.kind == "lugre":
            found.append(f"{e.kind} '{e.parameter_name}'")
        elif e.jumps and friction_speed == 0.0:
            found.append(f"dry friction '{e.parameter_name}'")
    if found:
        raise ModelError(
            "gradients by a sweep backwards are those of open machines on a fixed base, under smooth forces.",
            where=tree.name,
            found=", ".join(found),
            hint="Take derivatives forwards, as identify(…, OutputError()) does; a friction_speed above zero makes dry friction smooth.",
        )


def at_steps(x: Array, substeps: int, hold: Hold) -> Array:
    """Inputs (K, ·) at all steps from those at samples: on straight lines between them, or held."""
    share = 0.0 if hold == "zero" else np.arange(substeps)[:, None] / substeps
    between = (1.0 - share) * x[:-1, None] + share * x[1:, None]
    return np.concatenate(
        [np.broadcast_to(between, (len(x) - 1, substeps, x.shape[1])).reshape(-1, x.shape[1]), x[-1:]]
    )


def to_samples(by: Array, substeps: int, hold: Hold) -> Array:
    """The gradient by inputs at samples from that by the inputs that :func:`at_steps` makes of them."""
    share = 0.0 if hold == "zero" else np.arange(substeps)[:, None] / substeps
    between = by[:-1].reshape(-1, substeps, by.shape[1])
    out = np.zeros((len(between) + 1, by.shape[1]))
    out[:-1] = ((1.0 - share) * between).sum(axis=1)
    out[1:] += (share * between).sum(axis=1)
    out[-1] += by[-1]
    return out


@core
def pull_step(
    I: Numbers,
    W: Array,
    k: int,
    h: float,
    y: Array,
    acting: Array,
    inputs: Array,
    by_inputs: Array,
    held: Array,
    total: Array,
) -> int:
    """LAMBDA at the start of step k from that at its end; what the step says of inputs, held forces and parameters is added."""
    n, size, own, stages = I[record.COUNT], I[record.SIZE], I[record.STATES], I[record.STAGES]
    measured, width = I[record.SIGNALS] - own, 4 * n + I[record.SIGNALS]
    put(W, I[record.Y], y[k])
    put(W, I[record.BEFORE], inputs[k])
    put(W, I[record.AFTER], inputs[k + 1])
    if I[record.SERVO]:
        put(W, I[record.FORCE], acting[k])
    for i in range(stages):
        status = stage(I, W, i, I[record.Y], 0.0, h, I[record.TRIED])
        if status != record.DONE:
            return int(status)
        copy(W, I[record.GIVEN], width, I[record.STAGES_GIVEN] + i * width)
    at, rest = I[record.ADJOINT], I[record.ADJOINT] + 3 * n + I[record.SIGNALS]
    for back in range(stages):
        i = stages - 1 - back
        bar = I[record.STAGES_ADJOINT] + i * size
        for r in range(size):
            W[bar + r] = h * W[I[record.TABLE_B] + i] * W[I[record.LAMBDA] + r]
        for later in range(i + 1, stages):
            a = h * W[I[record.TABLE_A] + later * stages + i]
            if a != 0.0:
                add_to(W, a, I[record.STAGES_ADJOINT] + later * size, size, bar)
        copy(W, I[record.STAGES_GIVEN] + i * width, width, I[record.GIVEN])
        copy(W, bar + n, n + own, I[record.WEIGHT])
        call_kernel(I, record.ADJOINT_KERNEL)
        for j in range(n):
            W[bar + n + j] = W[bar + j] + W[at + n + j]
            W[bar + j] = W[at + j]
        copy(W, at + 3 * n + measured, own, bar + 2 * n)
        share = 0.0 if I[record.HOLDS] else min(W[I[record.TABLE_C] + i], 1.0)
        for j in range(n + measured):
            by = W[at + 2 * n + j]
            if j < n and I[record.SERVO]:
                held[0, j] += by
            else:
                by_inputs[k, j] += (1.0 - share) * by
                by_inputs[k + 1, j] += share * by
        for c in range(len(total)):
            total[c] += W[rest + c]
    for i in range(stages):
        add_to(W, 1.0, I[record.STAGES_ADJOINT] + i * size, size, I[record.LAMBDA])
    return record.DONE


@core
def pull_tick(
    I: Numbers,
    W: Array,
    k: int,
    h: float,
    y: Array,
    acting: Array,
    inputs: Array,
    by_y: Array,
    by_inputs: Array,
    by_gains: Array,
    held: Array,
) -> None:
    """What a tick at step k makes of the gradient by the forces that it gave and by the integrals behind it, `held` (2, n).

    A force within its limit is that of the law; the integral does not grow further into a limit.
    """
    n = I[record.COUNT]
    asked = n + I[record.SIGNALS] - I[record.STATES]
    for j in range(n):
        before, after, s = past_steps(I, W, j, k, h)
        q0, q1, v0, v1 = y[before, j], y[after, j], y[before, n + j], y[after, n + j]
        # as run_kernel.tick: the cubic through both positions and speeds, and the line through both speeds
        a0, b0, b1 = (1.0 + 2.0 * s) * (1.0 - s) ** 2, h * s * (1.0 - s) ** 2, -h * s * s * (1.0 - s)
        q, v = a0 * q0 + (1.0 - a0) * q1 + b0 * v0 + b1 * v1, (1.0 - s) * v0 + s * v1
        e, ed = inputs[k, asked + j] - (q + W[I[record.ZERO] + j]), inputs[k, asked + n + j] - v
        kp, kd, ki, force = W[I[record.KP] + j], W[I[record.KD] + j], W[I[record.KI] + j], acting[k, j]
        limited = abs(force) >= W[I[record.LIMIT] + j]
        grows = 0.0 if limited and force * ki * e > 0.0 else I[record.TICKS] * h
        by_force, by_integral = held[0, j], held[1, j]
        held[0, j] = 0.0
        if limited:
            by_gains[4, j] += np.sign(force) * by_force
            by_force = 0.0
        by_e, by_ed = kp * by_force + grows * ki * by_integral, kd * by_force
        held[1, j] += by_force
        by_gains[0, j] += e * by_force
        by_gains[1, j] += grows * e * by_integral
        by_gains[2, j] += ed * by_force
        by_gains[3, j] -= by_e
        if k > W[I[record.AGE] + j] / h:  # else it is the initial state that is read
            speed = 6.0 * s * (1.0 - s) * (q1 - q0) / h + (1.0 - s) * (1.0 - 3.0 * s) * v0 + s * (3.0 * s - 2.0) * v1
            by_gains[5, j] += by_e * speed + by_ed * (v1 - v0) / h
        by_inputs[k, j] += by_force
        by_inputs[k, asked + j] += by_e
        by_inputs[k, asked + n + j] += by_ed
        by_y[before, j] -= a0 * by_e
        by_y[after, j] -= (1.0 - a0) * by_e
        by_y[before, n + j] -= b0 * by_e + (1.0 - s) * by_ed
        by_y[after, n + j] -= b1 * by_e + s * by_ed


@kept
def sweep(
    I: Numbers,
    W: Array,
    h: float,
    y: Array,
    acting: Array,
    inputs: Array,
    by_y: Array,
    by_acting: Array,
    by_inputs: Array,
    by_gains: Array,
    held: Array,
    total: Array,
) -> int:
    """LAMBDA: the gradient by the state at the start, of a number whose derivatives by all states y (K, size) and by the forces that acted
    (K, n) are `by_y`, which is changed, and `by_acting`; K steps of h seconds.

    Added to `by_inputs` (K, ·), which are forces, measured signals and commands, to `by_gains` (GAIN_ROWS, n), and to `total`, which are
    parameters and constants. `held` (2, n) begins with zeros. How it ended.
    """
    n, K = I[record.COUNT], len(y)
    slopes = view(W, I[record.LAMBDA], I[record.SIZE])
    for r in range(len(slopes)):
        slopes[r] = 0.0
    for back in range(K):
        k = K - 1 - back
        if back:
            status = pull_step(I, W, k, h, y, acting, inputs, by_inputs, held, total)
            if status != record.DONE:
                return int(status)
        for j in range(n):
            if I[record.SERVO]:
                held[0, j] += by_acting[k, j]
            else:
                by_inputs[k, j] += by_acting[k, j]
        if I[record.SERVO] and k % I[record.TICKS] == 0:
            pull_tick(I, W, k, h, y, acting, inputs, by_y, by_inputs, by_gains, held)
        for r in range(len(slopes)):
            slopes[r] += by_y[k, r]
    return record.DONE


@cache
def compiled_sweep() -> Any:
    """:func:`sweep` for arrays in one piece, compiled or loaded now."""
    d1, d2 = (types.Array(types.float64, k, "C") for k in (1, 2))
    return only_for(sweep, (types.Array(types.int64, 1, "C"), d1, types.float64, d2, d2, d2, d2, d2, d2, d2, d2, d1))
