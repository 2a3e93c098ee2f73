"""Runs of an open tree on a fixed base as machine code: many samples, runs and parameter sets in one call, with sensitivities.

A :class:`CompiledRun` holds the tree's kernels and the memory of a run; :meth:`CompiledRun.run` starts from states (q, q̇, z), and all
samples of all runs are made before it returns (:mod:`veridyn.mechanics.system.run_kernel`). The rule is any explicit one of
:mod:`veridyn.mechanics.system.stepper`; forces and signals are held or interpolated between samples, or forces come from a control law.
Without a speed below which it is rounded off, dry friction holds (:mod:`veridyn.mechanics.system.dry_friction`).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.mechanics.system import run_record as k
from veridyn.mechanics.system.dry_friction import DryFriction, dry_friction
from veridyn.mechanics.system.run_blocks import ColumnLayout, Varied
from veridyn.mechanics.system.run_holding import friction_address
from veridyn.mechanics.system.run_kernel import compiled_run
from veridyn.mechanics.system.run_sensitivity import sensitivity_address
from veridyn.mechanics.system.stepper import tableau
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD, Compiled, compiled, uniform_values
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR, check_mass, mass_matrix
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request, complete_values
from veridyn.mechanics.tree.steps.record import TreeRecord, connect, record_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine

Law = Callable[[float, Array, Array], ArrayLike]
Hold = Literal["linear", "zero"]
FRICTION_KINDS = {
    "coulomb": k.BOTH_WAYS,
    "coulomb_forward": k.FORWARDS,
    "coulomb_backward": k.BACKWARDS,
    "stribeck": k.FALLS,
}
_LAW = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_double)


@dataclass(frozen=True, eq=False)
class Simulated:
    """States of R runs at K times: q, q̇, q̈ and the forces that acted, (R, K, n), and signals (R, K), elements' own states among them."""

    q: Array
    qd: Array
    qdd: Array
    forces: Array
    signals: Mapping[str, Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class JointControllers:
    """Controllers of all joints, in their order, as :mod:`veridyn.mechanics.system.run_servo` states; zero gains where a joint has none.

    Every `ticks` steps of the run they read the state that is measurement_delay seconds old, at most `lag` steps; without one it is `lag`
    steps old. They read positions with the encoder's `zero` added. A run is given their commands.
    """

    kp: Array
    kd: Array
    ki: Array
    limit: Array
    ticks: int = 1
    lag: int = 0
    zero: Array | None = None
    measurement_delay: Array | None = None


class CompiledRun:
    """Runs of a tree; made for its structure, for what is varied, and for a rule. Parameters and constants may change from call to call.

    It belongs to one thread at a time. `friction_speed`: dry friction is rounded off below it; with 0 it holds where it can.
    """

    def __init__(
        self,
        machine: Machine | Tree,
        *,
        friction_speed: float = 0.0,
        rule: str = "RK4",
        law: Law | None = None,
        servo: JointControllers | None = None,
        varied: Varied | None = None,
    ) -> None:
        self.tree = tree = tree_of(machine)
        if tree.loops or tree.base == "free":
            found = "loops" if tree.loops else "a free base"
            what = "a compiled run is that of an open machine on a fixed base."
            raise ModelError(what, where=tree.name, found=found, hint="integrate() knows loops and free bases.")
        tree.check_unprescribed("a compiled run")
        self.friction_speed, self.rule, self.law, self.varied = friction_speed, tableau(rule), law, varied
        self.servo = servo
        n = tree.n
        self.size = 2 * n + len(tree.states)
        dry = dry_friction(tree, np.zeros(len(tree.parameters))) if friction_speed == 0.0 else None
        self._dry = dry
        rows, speed = tuple(range(n)), friction_speed
        requests = {
            "FORWARD_KERNEL": Request("forward_checked", rows, friction_speed=speed),
            "MASS_KERNEL": Request("mass"),
        }
        if tree.states:
            requests["RATES_KERNEL"] = Request("state_rates", friction_speed=speed)
        if varied is not None:
            requests["DERIVATIVES_KERNEL"] = Request("run_derivatives", rows, varied.constants, friction_speed=speed)
            moved = np.flatnonzero(varied.spread.any(axis=1)).tolist()
            held = [] if dry is None else dry.columns
            columns = tuple(c for c in moved if c not in held)
            if columns:
                requests["REGRESSOR_KERNEL"] = Request("regressor", rows, columns, friction_speed=speed)
        self._made = {name: compiled(tree, request, single=True) for name, request in requests.items()}
        self.record = self._laid_out()

    def _laid_out(self) -> TreeRecord:
        """The record, with every kernel connected to it."""
        tree, made, varied, dry = self.tree, self._made, self.varied, self._dry
        n, s, size, stages = tree.n, len(tree.states), self.size, len(self.rule.b)
        m, elements = (0, 0) if dry is None else (len(dry.C), len(dry.elements))
        constants = 0 if varied is None else len(varied.constants)
        sensitive = ColumnLayout.of(tree, varied, dry, made, self.law is not None)
        length, width = sensitive.at[-1], max((b.width for b in sensitive.blocks), default=0)
        largest = max((len(b.coordinates) for b in sensitive.blocks), default=0)
        kept, forced = 1 if self.servo is None else self.servo.lag + 1, sensitive.servo_at[-1]
        parameters = {f"P_{name.removesuffix('_KERNEL')}": len(one.kernel.parameters) for name, one in made.items()}
        regressor = len(made["REGRESSOR_KERNEL"].labels) if "REGRESSOR_KERNEL" in made else 0
        lengths = {
            "Y": size, "STAGE": size, "END": size, "SLOPES": max(2, stages) * size,
            "TABLE_A": stages**2, "TABLE_B": stages, "TABLE_C": stages,
            "GIVEN": 4 * n + len(tree.signals), "ACC": n + 1, "RATES": s, "DERIVATIVES": (n + s) * (size + constants), "MASS": n * n,
            "REGRESSOR": regressor, **parameters,
            "BEFORE": 5 * n + len(tree.signals) - s, "AFTER": 5 * n + len(tree.signals) - s, "FORCE": n, "CLOCK": 5,
            "C": m * n, "VALUE": elements, "SPEED": elements, "EXPONENT": elements, "RESPONSE": n * m, "PUSH": n,
            "H": m * m, "H_WORK": m * m, "ARRIVING": n, "ARRIVED": n, "LEAVING": n,
            "S": length, "S_STAGE": length, "S_SLOPES": stages * length, "S_RIGHT": sensitive.right_at[-1], "M_BLOCK": largest**2,
            "HELD_BLOCK": m * m, "HELD_RIGHT": m * width, "BY_LAW": 2 * n * n, "COEFFICIENTS": len(sensitive.coefficients),
            "KP": n, "KI": n, "KD": n, "LIMIT": n, "ZERO": n, "AGE": n, "FEED": n, "WANTED": 4 * n, "INTEGRAL": n, "PAST": 2 * n * kept,
            "S_FORCE": forced, "S_INTEGRAL": forced, "S_PAST": 2 * forced * kept,
        }  # fmt: skip
        kinds = [] if dry is None else [(i, FRICTION_KINDS[e.kind]) for i, e, _ in dry.elements]
        none = [0] * m
        lists = [
            [i for i, _ in kinds], [kind for _, kind in kinds], none, none, none, none, none, none * 2, range(largest), *sensitive.lists(),
        ]  # fmt: skip
        header = [
            n, s, size, len(tree.signals), stages, m, elements, 0, 0, len(sensitive.blocks), length, constants,
            len(sensitive.triples), len(sensitive.rows), 0, 0 if varied is None else varied.count,
            int(self.servo is not None), 1 if self.servo is None else self.servo.ticks, kept - 1,
            friction_address() if m else 0, 0 if varied is None else sensitivity_address(),
        ]  # fmt: skip
        record = record_of([(1, lengths.get(name, m)) for name in k.SECTIONS], lists, len(k.KERNELS), header)
        at = {name: int(record.I[getattr(k, name)]) for name in k.SECTIONS}
        place = {
            f"{symbol}.{j}": at["GIVEN"] + n * i + j
            for i, symbol in enumerate(("q", "qd", "t", "qdd"))
            for j in range(n)
        }
        place |= {f"s.{name}": at["GIVEN"] + 4 * n + j for j, name in enumerate(tree.signals)}
        for name, one in made.items():
            parameters_at = at[f"P_{name.removesuffix('_KERNEL')}"]
            outputs = self._outputs(name, one, at, size + constants)
            connect(record, getattr(k, name), one.kernel, parameters_at, [place[i] for i in one.kernel.inputs], outputs)
        self.at, self._sensitive = at, sensitive
        for name, values in (("TABLE_A", self.rule.A), ("TABLE_B", self.rule.b), ("TABLE_C", self.rule.c)):
            record.W[at[name] : at[name] + values.size] = values.ravel()
        if dry is not None:
            record.W[at["C"] : at["C"] + m * n] = dry.C.ravel()
        record.W[at["COEFFICIENTS"] : at["COEFFICIENTS"] + len(sensitive.coefficients)] = sensitive.coefficients
        return record

    def _outputs(self, name: str, one: Compiled, at: Mapping[str, int], width: int) -> list[int]:
        n = self.tree.n
        first = "ACC" if name == "FORWARD_KERNEL" else name.removesuffix("_KERNEL")
        if name == "REGRESSOR_KERNEL":
            return [at[first] + e for e in range(len(one.labels))]
        wide = {"DERIVATIVES_KERNEL": width, "MASS_KERNEL": n}.get(name, 1)
        return [at[first] + label[0] * wide + (label[1] if len(label) > 1 else 0) for label in one.labels]

    def _set_gains(self, servo: JointControllers | None, h: float) -> None:
        """The constants of the controllers in a run of steps of h seconds."""
        W, n, own = self.record.W, self.tree.n, self.servo
        if servo is None or own is None:
            return
        age = np.full(n, own.lag * h) if servo.measurement_delay is None else servo.measurement_delay
        if (servo.ticks, servo.lag) != (own.ticks, own.lag) or not (
            (age >= 0.0) & (age <= own.lag * h * (1.0 + 1e-12))
        ).all():
            raise DataError(
                "measurements are older than the states that this run keeps.",
                where=self.tree.name,
                expected=f"from 0 to {own.lag} steps of {h:g} s",
                found=f"{age.max():g} s",
                hint="Give the controllers a larger lag.",
            )
        zero = np.zeros(n) if servo.zero is None else servo.zero
        for name, x in {
            "KP": servo.kp,
            "KI": servo.ki,
            "KD": servo.kd,
            "LIMIT": servo.limit,
            "ZERO": zero,
            "AGE": age,
        }.items():
            W[self.at[name] : self.at[name] + n] = x

    def _sets(self, tree: Tree, every: Array) -> Array:
        """(R, ·): what :meth:`set_values` would set for each of the parameter sets (R, p)."""
        faulty = np.argwhere(~np.isfinite(every))
        if len(faulty):
            r, c = faulty[0]
            what = f"parameter '{tree.parameters.names[c]}' of set {r} is no number."
            raise DataError(what, where=tree.name, found=f"{every[r, c]}")
        first = self.set_values(tree, every[0])
        held = set() if self._dry is None else set(self._dry.columns)
        places: list[tuple[int, int]] = []
        for name, one in self._made.items():
            start = self.at[f"P_{name.removesuffix('_KERNEL')}"] - self.at["P_FORWARD"]
            numbers = [(start + i, int(p[2:])) for i, p in enumerate(one.kernel.parameters) if p.startswith("p.")]
            places += [(i, c) for i, c in numbers if c not in held]
        if self._dry is not None:
            start = self.at["VALUE"] - self.at["P_FORWARD"]
            places += [(start + e, c) for e, c in enumerate(self._dry.columns)]
        out = np.repeat(first[None], len(every), axis=0)
        to, of = np.array(places, dtype=np.intp).reshape(-1, 2).T
        out[:, to] = every[:, of]
        return out

    def set_values(self, tree: Tree, values: Array) -> Array:
        """Parameters of kernels and of friction, and constants of laws, which are those of `tree`; the part of W that holds them."""
        dry, W, at = self._dry, self.record.W, self.at
        smooth = values
        if dry is not None:
            now = cast(DryFriction, dry_friction(tree, values))
            smooth = now.smooth_values
            for e, (_, element, column) in enumerate(now.elements):
                W[at["VALUE"] + e] = values[column]
                if element.kind == "stribeck":
                    W[at["SPEED"] + e] = element.constant("speed")
                    W[at["EXPONENT"] + e] = element.constant("exponent") if "exponent" in element.constants else 0.0
        for name, one in self._made.items():
            start, given = at[f"P_{name.removesuffix('_KERNEL')}"], one.kernel.parameters
            W[start : start + len(given)] = uniform_values(tree, smooth, given)
        return W[at["P_FORWARD"] : at["BEFORE"]]

    def run(
        self,
        step: float,
        initial: Array,
        forces: Array,
        signals: Mapping[str, Array],
        *,
        command: Array | None = None,
        servo: JointControllers | None = None,
        parameters: Array | None = None,
        machine: Machine | Tree | None = None,
        start: Array | None = None,
        hold: Hold = "linear",
        substeps: int = 1,
        rows: Sequence[int] = (),
        law_forces: bool = False,
        called: CalledLaw | None = None,
    ) -> tuple[Simulated, Array]:
        """R runs from `initial` (R, size) under forces (R, K, n) and signals (R, K) by name, sampled every `step` seconds.

        `parameters` (p,), or (R, p) with values of their own for each run. `command` (R, K, 2n): r and ṙ of the joint controllers, whose
        feed-forward `forces` are then, or (R, K, 4n) with their slopes by time, for sensitivities by the delay of a command. `servo`: the
        same controllers with other constants. `machine`: the same one with other constants of laws. `start` (R,): times of the
        runs' starts, for a control law. The sensitivities (R, K, rows, columns) are those of the components `rows` of a state, or with
        `law_forces` of the law's forces on these coordinates; none by default. `called`: what functions of Python do, in place of a law.
        """
        tree = self.tree if machine is None else tree_of(machine)
        n, (R, K) = tree.n, forces.shape[:2]
        if (command is None) != (self.servo is None):
            raise DataError("joint controllers need commands, and nothing else does.", where=tree.name)
        for what, x in (("force", forces), ("command", command), ("initial state", initial[:, None])):
            if x is not None:
                check_finite(tree, what, x, step)
        every = None if parameters is None else np.atleast_2d(parameters)
        values = complete_values(tree, None if every is None else every[0])
        sets = self._sets(tree, every) if every is not None and len(every) > 1 else np.zeros((0, 0))
        self.set_values(tree, values)
        self._set_gains(servo or self.servo, step / substeps)
        W, I, at = self.record.W, self.record.I, self.at
        measured = [name for name in tree.signals if name not in {s.name for s in tree.states}]
        none = np.zeros((R, K))
        given = [signals.get(name, none) if name in tree.road_signals else signals[name] for name in measured]
        asked = np.zeros((R, K, 0)) if command is None else command
        if command is not None and command.shape[2] == 2 * n:
            if self.varied is not None and any(key == "command_delay" for key, _ in self.varied.gains):
                raise DataError(
                    "sensitivities by a command's delay need its slope.",
                    where=tree.name,
                    expected="a command (R, K, 4n)",
                )
            asked = np.concatenate([command, np.zeros_like(command)], axis=2)
        heard = np.ascontiguousarray(np.concatenate([*(x[:, :, None] for x in given), asked], axis=2), dtype=np.float64)
        y, qdd, acting = np.empty((R, K, self.size)), np.empty((R, K, n)), np.empty((R, K, n))
        kept = self._sensitive.kept(rows, law_forces)
        list_at = int(I[k.OUT_ROW])
        I[k.ROWS] = len(kept) // 2
        I[list_at : list_at + len(kept)] = kept
        columns = 0 if self.varied is None else self.varied.count + self.size
        S = np.zeros((R, K, len(kept) // 2, columns))
        I[k.HOLDS] = int(hold == "zero")
        W[at["CLOCK"] + k.NEAREST] = NEAR_SINGULAR
        if self.law is not None:
            called = CalledLaw(self.law, W, at, tree.coordinates)
        I[k.LAW] = 0 if called is None else called.address
        reached = np.zeros(2)
        arguments = (np.zeros(R) if start is None else np.ascontiguousarray(start, dtype=np.float64),
            np.ascontiguousarray(initial, dtype=np.float64), np.ascontiguousarray(forces, dtype=np.float64), heard, sets,
            step, substeps, y, qdd, acting, S, reached)  # fmt: skip
        status = compiled_run()(I, W, *arguments)
        if status == k.ESCAPED and every is not None and len(every) > 1:
            values = every[int(reached[0])]
        if status == k.ESCAPED and self.is_near_singular(tree, values):
            W[at["CLOCK"] + k.NEAREST] = np.inf
            status = compiled_run()(I, W, *arguments)
        if status != k.DONE:
            self.refuse(status, float(reached[1]), called)
        own = {state.name: y[:, :, 2 * n + j] for j, state in enumerate(tree.states)}
        known = {name: heard[:, :, j] for j, name in enumerate(measured)}
        return Simulated(y[:, :, :n], y[:, :, n : 2 * n], qdd, acting, {**known, **own}), S

    def _state(self) -> Array:
        """q and q̇ where the run ended."""
        start = self.at["GIVEN"]
        return self.record.W[start : start + 2 * self.tree.n]

    def is_near_singular(self, tree: Tree, values: Array) -> bool:
        """Whether the run ended in a usable state whose mass matrix needs a closer look, and passes it; refused where it does not."""
        q = self._state()[: tree.n]
        if not (np.isfinite(self._state()).all() and np.abs(q).max() < LARGEST_ANGLE_RAD):
            return False
        check_mass(tree, mass_matrix(tree, q[None], values, engine="numpy"))
        return True

    def refuse(self, status: int, time: float, called: CalledLaw | None) -> None:
        if called is not None and called.error is not None:
            raise called.error
        if status == k.UNBALANCED:
            raise SimulationError(
                f"no friction forces agree with the motion in the step from {time:.6g} s.",
                where=self.tree.name,
                hint="Take shorter steps, or round dry friction off by a friction_speed above zero.",
            )
        y, n = self._state(), self.tree.n
        sizes = np.where(np.isfinite(y), np.abs(y), np.inf)
        worst = int(np.argmax(sizes)) % n
        raise SimulationError(
            f"the motion has run away at {time:.6g} s.",
            where=f"{self.tree.name}, coordinate '{self.tree.coordinates[worst]}'",
            found=f"position {y[worst]:.3g}, rate {y[n + worst]:.3g}",
            hint="Try a smaller step or shorter runs, look for a force that feeds on itself, or take parameters nearer to the truth.",
        )


def run_in_threads(
    runs: Sequence[CompiledRun],
    step: float,
    initial: Array,
    forces: Array,
    signals: Mapping[str, Array],
    *,
    command: Array | None = None,
    parameters: Array | None = None,
    hold: Hold = "linear",
    substeps: int = 1,
) -> Simulated:
    """:meth:`CompiledRun.run` of R runs on as many threads as there are `runs`, which are alike; each takes its share of R.

    Every run is made alone, so that the result does not depend on their number.
    """
    cuts = [len(initial) * k // len(runs) for k in range(len(runs) + 1)]

    def part(k: int) -> Simulated:
        own = slice(cuts[k], cuts[k + 1])
        return runs[k].run(
            step,
            initial[own],
            forces[own],
            {name: x[own] for name, x in signals.items()},
            command=None if command is None else command[own],
            parameters=parameters[own] if parameters is not None and parameters.ndim == 2 else parameters,
            hold=hold,
            substeps=substeps,
        )[0]

    with ThreadPoolExecutor(len(runs)) as pool:
        found = list(pool.map(part, [k for k in range(len(runs)) if cuts[k] < cuts[k + 1]]))
    q, qd, qdd, acting = (np.concatenate([getattr(f, name) for f in found]) for name in ("q", "qd", "qdd", "forces"))
    return Simulated(
        q, qd, qdd, acting, {name: np.concatenate([f.signals[name] for f in found]) for name in found[0].signals}
    )


def check_finite(tree: Tree, what: str, x: Array, step: float) -> None:
    """Refuse x (R, K, ·) that is no number somewhere, with the time and the coordinate of the first."""
    if np.isfinite(x).all():
        return
    _, sample, j = (int(k) for k in np.argwhere(~np.isfinite(x))[0])
    name = tree.coordinates[j % tree.n] if j < 2 * tree.n else tree.states[j - 2 * tree.n].name
    where = f"{tree.name}, '{name}'"
    hint = "Close gaps of the log, or cut it there."
    raise SimulationError(
        f"the {what} of '{name}' is no number {sample * step:.6g} s after the start.", where, hint=hint
    )


class CalledLaw:
    """A control law of Python that compiled code can call: it reads q and q̇ from the record and writes forces there."""

    def __init__(self, law: Law, W: Array, at: Mapping[str, int], coordinates: Sequence[str]) -> None:
        self.error: BaseException | None = None
        n = len(coordinates)
        q, qd = W[at["GIVEN"] : at["GIVEN"] + n], W[at["GIVEN"] + n : at["GIVEN"] + 2 * n]
        force = W[at["FORCE"] : at["FORCE"] + n]

        def call(time: float) -> int:
            with self:
                force[:] = law(time, q.copy(), qd.copy())
                if not math.isfinite(sum(force.tolist())) and not np.isfinite(force).all():
                    odd = int(np.flatnonzero(~np.isfinite(force))[0])
                    what = f"the force on '{coordinates[odd]}' is {force[odd]:g} at {time:.6g} s."
                    raise SimulationError(what, where="control law", expected="a finite number")
            return int(self.error is not None)

        self._function = _LAW(call)
        self.address = cast(int, ctypes.cast(cast(Any, self._function), ctypes.c_void_p).value)

    def __enter__(self) -> None:
        """Nothing can be raised through compiled code: what the law raises is kept, and raised behind it."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True
