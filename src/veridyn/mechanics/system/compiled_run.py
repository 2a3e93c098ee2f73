"""Runs of a tree as machine code: many samples, runs and parameter sets in one call, with sensitivities.

A :class:`CompiledRun` holds the tree's kernels and the memory of a run; :meth:`CompiledRun.run` starts from states (q, q̇, z), and all
samples of all runs are made before it returns (:mod:`veridyn.mechanics.system.run_kernel`). The rule is any explicit one of
:mod:`veridyn.mechanics.system.stepper`; forces and signals are held or interpolated between samples, or forces come from a control law.
Without a speed below which it is rounded off, dry friction holds (:mod:`veridyn.mechanics.system.dry_friction`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.mechanics.system import run_record as k
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.system.run_bound import Outside
from veridyn.mechanics.system.run_kernel import compiled_rate, compiled_run
from veridyn.mechanics.system.run_layout import JointControllers, RunLayout
from veridyn.mechanics.system.simulation import checked_forces
from veridyn.mechanics.system.stepper import tableau
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR, check_mass, mass_matrix
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine

Law = Callable[[float, Array, Array], ArrayLike]
Hold = Literal["linear", "zero"]
Arrays3 = tuple[Array, Array, Array]
_LAW = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_double)


@dataclass(frozen=True, eq=False)
class Simulated:
    """States of R runs at K times: q, q̇, q̈ and the forces that acted, (R, K, n), and signals (R, K), elements' own states among them."""

    q: Array
    qd: Array
    qdd: Array
    forces: Array
    signals: Mapping[str, Array]


class NearSingular(Exception):
    """A machine with loops or on a free base came near a position in which its accelerations need a closer look."""

    def __init__(self, time: float, where: str) -> None:
        super().__init__()
        self.time, self.where = time, where


class CompiledRun:
    """Runs of a tree; made for its structure, for what is varied, and for a rule. Parameters and constants may change from call to call.

    It belongs to one thread at a time. `friction_speed`: dry friction is rounded off below it; with 0 it holds where it can. `lanes`: so
    many runs are made side by side where they can be, see :meth:`has_lanes`; results agree with those of single runs to rounding.
    `closing_rate`: rad/s, with which openings of loops die out; where it is given, machines with loops and on a free base run too
    (:mod:`veridyn.mechanics.system.run_bound`), without sensitivities, joint controllers and bristles. `rates_alone`: it
    serves :meth:`rate_at`, and :meth:`run` is not called. `often`: the step of a small machine is compiled as one formula
    (:mod:`veridyn.mechanics.system.run_formula`), which takes some tenths of a second once; results agree to rounding. `outside`: what acts
    besides forces and signals, on a machine of any kind (:mod:`veridyn.mechanics.system.run_bound`), with a `closing_rate`. `adjoint`: for
    :class:`veridyn.mechanics.system.run_adjoint.AdjointRun`, which goes through its runs backwards.
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
        lanes: int = 1,
        closing_rate: float | None = None,
        rates_alone: bool = False,
        outside: Outside | None = None,
        often: bool = False,
        adjoint: bool = False,
    ) -> None:
        self.tree = tree = tree_of(machine)
        plain = servo is None and varied is None
        if (tree.loops or tree.base == "free") and not (closing_rate is not None and plain):
            found = "loops" if tree.loops else "a free base"
            what = "a compiled run is that of an open machine on a fixed base."
            raise ModelError(what, where=tree.name, found=found, hint="integrate() knows loops and free bases.")
        if outside is None:
            tree.check_unprescribed("a compiled run")
        self.law, self.servo, self.varied = law, servo, varied
        self._layout = RunLayout(
            tree,
            friction_speed,
            tableau(rule),
            servo,
            varied,
            law is not None,
            closing_rate=closing_rate or 0.0,
            rates_alone=rates_alone,
            outside=outside,
            often=often,
            adjoint=adjoint,
        )
        self.size, self.record, self.at = self._layout.size, self._layout.record, self._layout.at
        self._wide: RunLayout | None = None
        if lanes > 1 and law is None and varied is None and self._layout.dry is None:
            self._wide = replace(self._layout, lanes=lanes)

    @property
    def has_lanes(self) -> bool:
        """Whether runs are made side by side: those without sensitivities, a law of Python, and dry friction that holds."""
        return self._wide is not None

    def set_values(self, tree: Tree, values: Array) -> None:
        """Parameters of kernels and of friction, and constants of laws, which are those of `tree`."""
        self._layout.set_values(tree, values)

    def set_load(self, load: Array, backdrive: Array) -> None:
        """Dry friction of the coordinates (n,) per force that acts on them, both ways and besides where it acts against the motion."""
        self._layout.set_load(load, backdrive)

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
        first: int | None = None,
        into: Arrays3 | None = None,
    ) -> tuple[Simulated, Array]:
        """R runs from `initial` (R, size) under forces (R, K, n) and signals (R, K) by name, sampled every `step` seconds.

        `parameters` (p,), or (R, p) with values of their own for each run. `command` (R, K, 2n): r and ṙ of the joint controllers, whose
        feed-forward `forces` are then, or (R, K, 4n) with their slopes by time, for sensitivities by the delay of a command. `servo`: the
        same controllers with other constants. `machine`: the same one with other constants of laws. `start` (R,): times of the
        runs' starts, for a control law. The sensitivities (R, K, rows, columns) are those of the components `rows` of a state, or with
        `law_forces` of the law's forces on these coordinates; none by default. `called`: what functions of Python do, in place of a law.
        Messages name a run by its number where there are several, counted from `first`. `into`: arrays for states (R, K, size),
        q̈ and forces (R, K, n), as :meth:`room` makes them.
        """
        tree = self.tree if machine is None else tree_of(machine)
        n, (R, K) = tree.n, forces.shape[:2]
        if (command is None) != (self.servo is None):
            raise DataError("joint controllers need commands, and nothing else does.", where=tree.name)
        for what, x in (("force", forces), ("command", command), ("initial state", initial[:, None])):
            if x is not None:
                check_finite(tree, what, x, step, first)
        every = None if parameters is None else np.atleast_2d(parameters)
        if every is not None and len(every) > 1:
            check_sets(tree, every)
        measured = [name for name in tree.signals if name not in {s.name for s in tree.states}]
        none = np.zeros((R, K))
        given = [signals.get(name, none) if name in tree.road_signals else signals[name] for name in measured]
        asked = np.zeros((R, K, 0)) if command is None else command
        if command is not None and command.shape[2] == 2 * n and self.varied is not None:
            if any(key == "command_delay" for key, _ in self.varied.gains):
                raise DataError(
                    "sensitivities by a command's delay need its slope.",
                    where=tree.name,
                    expected="a command (R, K, 4n)",
                )
            asked = np.concatenate([command, np.zeros_like(command)], axis=2)
        heard = np.concatenate([*(x[:, :, None] for x in given), asked], axis=2) if given else asked
        heard = np.ascontiguousarray(heard, dtype=np.float64)
        own_servo, known = servo or self.servo, {name: heard[:, :, j] for j, name in enumerate(measured)}
        out = self.room(R, K) if into is None else into
        if self._wide is not None and called is None:
            made = self._side_by_side(
                self._wide, tree, step, initial, forces, heard, every, own_servo, substeps, hold == "zero", out
            )
            if made:
                return self.simulated(*out, known), np.zeros((R, K, 0, 0))
        values = complete_values(tree, None if every is None else every[0])
        sets = self._layout.sets(tree, every) if every is not None and len(every) > 1 else np.zeros((0, 0))
        self.set_values(tree, values)
        self._layout.set_gains(own_servo, step / substeps)
        W, I, at = self.record.W, self.record.I, self.at
        kept = self._layout.sensitive.kept(rows, law_forces)
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
            np.ascontiguousarray(initial[:, None], dtype=np.float64), np.ascontiguousarray(forces, dtype=np.float64), heard, sets,
            step, substeps, *out, S, reached)  # fmt: skip
        status = compiled_run()(I, W, *arguments)
        if status == k.ESCAPED and every is not None and len(every) > 1:
            values = every[int(reached[0])]
        if (
            status == k.ESCAPED
            and self.tree.base == "fixed"
            and not self.tree.loops
            and self.is_near_singular(tree, values, run_name(R, int(reached[0]), first))
        ):
            W[at["CLOCK"] + k.NEAREST] = np.inf
            status = compiled_run()(I, W, *arguments)
        if status != k.DONE:
            self.refuse(status, float(reached[1]), called, run_name(R, int(reached[0]), first))
        return self.simulated(*out, known), S

    def hold_inputs(self, values: Array, forces: Array, called: CalledLaw | None) -> None:
        """What :meth:`rate_at` computes with: all parameters, forces (n,), and what functions of Python do besides."""
        self.set_values(self.tree, complete_values(self.tree, values))
        W, I, at = self.record.W, self.record.I, self.at
        W[at["BEFORE"] : at["BEFORE"] + self.tree.n], W[at["CLOCK"] + k.NEAREST] = forces, NEAR_SINGULAR
        I[k.HOLDS], I[k.LAW] = 1, 0 if called is None else called.address

    def rate_at(self, time: float, y: Array) -> tuple[int, Array]:
        """The rate of a state y (size,) at a time, under inputs that :meth:`hold_inputs` has put there; and how the call ended."""
        W, at = self.record.W, self.at
        W[at["Y"] : at["Y"] + self.size] = y
        status = compiled_rate()(self.record.I, W, time)
        return status, W[at["SLOPES"] : at["SLOPES"] + self.size].copy()

    def room(self, runs: int, samples: int, states_alone: bool = False) -> Arrays3:
        """Arrays for so many runs: states, q̈ and forces; the last two without columns where states are wanted alone."""
        n, rates = (0, 0) if states_alone else (self.tree.n, self._layout.rates)
        return np.empty((runs, samples, self.size)), np.empty((runs, samples, rates)), np.empty((runs, samples, n))

    def simulated(self, y: Array, qdd: Array, acting: Array, known: Mapping[str, Array]) -> Simulated:
        """What such arrays hold, beside the signals that were known."""
        n, own, free = self.tree.n, len(self.tree.states), self.tree.base == "free"
        states = {state.name: y[:, :, self.size - own + j] for j, state in enumerate(self.tree.states)}
        at, rates = 7 * free, self.size - own - n
        return Simulated(
            y[:, :, at : at + n], y[:, :, rates : rates + n], qdd[:, :, 6 * free :], acting, {**known, **states}
        )

    def _side_by_side(
        self,
        wide: RunLayout,
        tree: Tree,
        step: float,
        initial: Array,
        forces: Array,
        heard: Array,
        every: Array | None,
        servo: JointControllers | None,
        substeps: int,
        holds: bool,
        out: Arrays3,
    ) -> bool:
        """States, q̈ and forces of runs in lanes, into `out`; not where one of them ends early, whose end is that of a single run."""
        (R, K), L = forces.shape[:2], wide.lanes
        G = -(-R // L)
        wide.set_values(tree, complete_values(tree, None if every is None else every[0]))
        sets = np.zeros((0, 0))
        if every is not None and len(every) > 1:
            sets = wide.sets(tree, every[np.minimum(np.arange(G * L), R - 1)])
        wide.set_gains(servo, step / substeps)
        W, I = wide.record.W, wide.record.I
        I[k.HOLDS], I[k.ROWS], I[k.LAW] = int(holds), 0, 0
        W[wide.at["CLOCK"] + k.NEAREST] = NEAR_SINGULAR
        status = compiled_run()(
            I, W, np.zeros(R), np.ascontiguousarray(initial[:, None], dtype=np.float64),
            np.ascontiguousarray(forces, dtype=np.float64), heard, sets,
            step, substeps, *out, np.zeros((R, K, 0, 0)), np.zeros(2),
        )  # fmt: skip
        return bool(status == k.DONE)

    def _state(self) -> Array:
        """q and q̇ where the run ended."""
        start = self.at["GIVEN"]
        return self.record.W[start : start + 2 * self.tree.n]

    def is_near_singular(self, tree: Tree, values: Array, run: str = "") -> bool:
        """Whether the run ended in a usable state whose mass matrix needs a closer look, and passes it; refused where it does not."""
        q = self._state()[: tree.n]
        if not (np.isfinite(self._state()).all() and np.abs(q).max() < LARGEST_ANGLE_RAD):
            return False
        check_mass(tree, mass_matrix(tree, q[None], values, engine="numpy"), tree.name + run)
        return True

    def refuse(self, status: int, time: float, called: CalledLaw | None, run: str = "") -> None:
        if called is not None and called.error is not None:
            raise called.error
        if status == k.SINGULAR:
            raise NearSingular(time, self.tree.name + run)
        y, n = self._state(), self.tree.n
        sizes = np.where(np.isfinite(y), np.abs(y), np.inf)
        worst = int(np.argmax(sizes)) % n
        if status == k.UNBALANCED:
            raise SimulationError(
                f"no friction forces agree with the motion in the step from {time:.6g} s.",
                where=f"{self.tree.name}{run}, coordinate '{self.tree.coordinates[worst]}'",
                found=f"rate {y[n + worst]:.3g}",
                hint="Take shorter steps, or round dry friction off by a friction_speed above zero.",
            )
        raise SimulationError(
            f"the motion has run away at {time:.6g} s.",
            where=f"{self.tree.name}{run}, coordinate '{self.tree.coordinates[worst]}'",
            found=f"position {y[worst]:.3g}, rate {y[n + worst]:.3g}",
            hint="Try a smaller step or shorter runs, look for a force that feeds on itself, or take parameters nearer to the truth.",
        )


def check_sets(tree: Tree, every: Array) -> None:
    """Refuse sets of parameters (R, p) that are no numbers somewhere, by the first."""
    faulty = np.argwhere(~np.isfinite(every))
    if len(faulty):
        r, c = faulty[0]
        what = f"parameter '{tree.parameters.names[c]}' of set {r} is no number."
        raise DataError(what, where=tree.name, found=f"{every[r, c]}")


def run_name(runs: int, run: int, first: int | None) -> str:
    """How messages name a run, counted from `first`; nothing where there is but one."""
    return "" if runs == 1 and first is None else f", run {run + (first or 0)}"


def check_finite(tree: Tree, what: str, x: Array, step: float, first: int | None = None) -> None:
    """Refuse x (R, K, ·) that is no number somewhere, with the run, the time and the coordinate of the first."""
    if np.isfinite(x).all():
        return
    run, sample, j = (int(k) for k in np.argwhere(~np.isfinite(x))[0])
    base = ["base"] if x.shape[2] >= 2 * tree.n + 13 and tree.base == "free" else []
    names = [*7 * base, *tree.coordinates, *6 * base, *tree.coordinates, *(s.name for s in tree.states)]
    name = names[j] if j < len(names) else tree.coordinates[j % tree.n]
    where = f"{tree.name}{run_name(len(x), run, first)}, '{name}'"
    hint = "Close gaps of the log, or cut it there."
    raise SimulationError(
        f"the {what} of '{name}' is no number {sample * step:.6g} s after the start.", where, hint=hint
    )


class Called:
    """A function of Python, of time, that compiled code can call at its address: 0 where it has done what it does.

    Nothing can be raised through compiled code: what the function raises is kept, and raised behind it.
    """

    def __init__(self, function: Callable[[float], None]) -> None:
        self.error: BaseException | None = None

        def call(time: float) -> int:
            with self:
                function(time)
            return int(self.error is not None)

        self._function = _LAW(call)
        self.address = cast(int, ctypes.cast(cast(Any, self._function), ctypes.c_void_p).value)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True


class CalledLaw(Called):
    """A control law of Python that compiled code can call: it reads q and q̇ from the record and writes forces there."""

    def __init__(self, law: Law, W: Array, at: Mapping[str, int], coordinates: Sequence[str]) -> None:
        n = len(coordinates)
        q, qd = W[at["GIVEN"] : at["GIVEN"] + n], W[at["GIVEN"] + n : at["GIVEN"] + 2 * n]
        force = W[at["FORCE"] : at["FORCE"] + n]

        def act(time: float) -> None:
            force[:] = checked_forces(law, time, q.copy(), qd.copy(), coordinates)

        super().__init__(act)
