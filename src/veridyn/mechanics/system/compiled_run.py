"""Runs of an open tree on a fixed base as machine code: many samples, runs and parameter sets in one call, with sensitivities.

A :class:`CompiledRun` holds the tree's kernels and the memory of a run; :meth:`CompiledRun.run` starts from states (q, q̇, z), and all
samples of all runs are made before it returns (:mod:`veridyn.mechanics.system.run_kernel`). The rule is any explicit one of
:mod:`veridyn.mechanics.system.stepper`; forces and signals are held or interpolated between samples, or forces come from a control law.
Without a speed below which it is rounded off, dry friction holds (:mod:`veridyn.mechanics.system.dry_friction`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import ModelError, SimulationError
from veridyn.mechanics.system import run_record as k
from veridyn.mechanics.system.dry_friction import DryFriction, dry_friction
from veridyn.mechanics.system.run_blocks import Block, blocks_of, starts
from veridyn.mechanics.system.run_kernel import compiled_run
from veridyn.mechanics.system.stepper import tableau
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD, Compiled, compiled, uniform_values
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR, check_mass, mass_matrix
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request, complete_values
from veridyn.mechanics.tree.steps.record import TreeRecord, connect, record_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
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


@dataclass(frozen=True, eq=False)
class Varied:
    """What sensitivities are computed by: p combinations of parameters, whose effect on all is `spread` (all, p), then constants of laws.

    `constants` are their numbers in ``tree.constants``. The columns of a result are these, and behind them the initial state.
    """

    spread: Array
    constants: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return self.spread.shape[1] + len(self.constants)


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
        varied: Varied | None = None,
    ) -> None:
        self.tree = tree = tree_of(machine)
        if tree.loops or tree.base == "free":
            found = "loops" if tree.loops else "a free base"
            what = "a compiled run is that of an open machine on a fixed base."
            raise ModelError(what, where=tree.name, found=found, hint="integrate() knows loops and free bases.")
        tree.check_unprescribed("a compiled run")
        self.friction_speed, self.rule, self.law, self.varied = friction_speed, tableau(rule), law, varied
        n = tree.n
        self.size = 2 * n + len(tree.states)
        dry = dry_friction(tree, np.zeros(len(tree.parameters))) if friction_speed == 0.0 else None
        self._dry = dry
        rows, speed = tuple(range(n)), friction_speed
        requests = {"FORWARD_KERNEL": Request("forward_checked", rows, friction_speed=speed)}
        if tree.states:
            requests["RATES_KERNEL"] = Request("state_rates", friction_speed=speed)
        if varied is not None:
            requests["DERIVATIVES_KERNEL"] = Request("run_derivatives", rows, varied.constants, friction_speed=speed)
            requests["MASS_KERNEL"] = Request("mass")
            moved = np.flatnonzero(varied.spread.any(axis=1)).tolist()
            held = [] if dry is None else dry.columns
            columns = tuple(c for c in moved if c not in held)
            if columns:
                requests["REGRESSOR_KERNEL"] = Request("regressor", rows, columns, friction_speed=speed)
        self._made = {name: compiled(tree, request, single=True) for name, request in requests.items()}
        self._record = self._laid_out()

    def _laid_out(self) -> TreeRecord:
        """The record, with every kernel connected to it."""
        tree, made, varied, dry = self.tree, self._made, self.varied, self._dry
        n, s, size, stages = tree.n, len(tree.states), self.size, len(self.rule.b)
        m, elements = (0, 0) if dry is None else (len(dry.C), len(dry.elements))
        constants = 0 if varied is None else len(varied.constants)
        sensitive = _Sensitive.of(self)
        length, width = sensitive.at[-1], max((b.width for b in sensitive.blocks), default=0)
        largest = max((len(b.coordinates) for b in sensitive.blocks), default=0)
        parameters = {f"P_{name.removesuffix('_KERNEL')}": len(one.kernel.parameters) for name, one in made.items()}
        regressor = len(made["REGRESSOR_KERNEL"].labels) if "REGRESSOR_KERNEL" in made else 0
        lengths = {
            "Y": size, "STAGE": size, "END": size, "SLOPES": max(2, stages) * size,
            "TABLE_A": stages**2, "TABLE_B": stages, "TABLE_C": stages,
            "GIVEN": 4 * n + len(tree.signals), "ACC": n + 1, "RATES": s, "DERIVATIVES": (n + s) * (size + constants), "MASS": n * n,
            "REGRESSOR": regressor, **parameters,
            "BEFORE": n + len(tree.signals) - s, "AFTER": n + len(tree.signals) - s, "FORCE": n, "CLOCK": 5,
            "C": m * n, "VALUE": elements, "SPEED": elements, "EXPONENT": elements, "RESPONSE": n * m, "PUSH": n,
            "H": m * m, "H_WORK": m * m, "ARRIVING": n, "ARRIVED": n, "LEAVING": n,
            "S": length, "S_STAGE": length, "S_SLOPES": stages * length, "S_RIGHT": sensitive.right_at[-1], "M_BLOCK": largest**2,
            "HELD_BLOCK": m * m, "HELD_RIGHT": m * width, "BY_LAW": 2 * n * n, "COEFFICIENTS": len(sensitive.coefficients),
        }  # fmt: skip
        kinds = [] if dry is None else [(i, FRICTION_KINDS[e.kind]) for i, e, _ in dry.elements]
        none = [0] * m
        lists = [
            [i for i, _ in kinds], [kind for _, kind in kinds], none, none, none, none, none, none * 2, range(largest), *sensitive.lists(),
        ]  # fmt: skip
        header = [
            n, s, size, len(tree.signals), stages, m, elements, 0, 0, len(sensitive.blocks), length, constants,
            len(sensitive.triples), len(sensitive.rows), 0, 0 if varied is None else varied.count,
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
        self._at, self._sensitive = at, sensitive
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

    def _set_values(self, tree: Tree, values: Array) -> None:
        """Parameters of kernels and of friction, and constants of laws, which are those of `tree`."""
        dry, W, at = self._dry, self._record.W, self._at
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

    def run(
        self,
        step: float,
        initial: Array,
        forces: Array,
        signals: Mapping[str, Array],
        *,
        parameters: Array | None = None,
        machine: Machine | Tree | None = None,
        start: Array | None = None,
        hold: Hold = "linear",
        substeps: int = 1,
        rows: Sequence[int] = (),
        law_forces: bool = False,
    ) -> tuple[Simulated, Array]:
        """R runs from `initial` (R, size) under forces (R, K, n) and signals (R, K) by name, sampled every `step` seconds.

        `machine`: the same one with other constants of laws. `start` (R,): times of the runs' starts, for a control law. The sensitivities
        (R, K, rows, columns) are those of the components `rows` of a state, or with `law_forces` of the law's forces; none by default.
        """
        tree = self.tree if machine is None else tree_of(machine)
        n, (R, K) = tree.n, forces.shape[:2]
        values = complete_values(tree, parameters)
        check_forces(tree, forces, step)
        self._set_values(tree, values)
        check_mass(tree, mass_matrix(tree, initial[:1, :n], values, engine="numpy"))
        W, I, at = self._record.W, self._record.I, self._at
        measured = [name for name in tree.signals if name not in {s.name for s in tree.states}]
        none = np.zeros((R, K))
        given = [signals.get(name, none) if name in tree.road_signals else signals[name] for name in measured]
        heard = np.ascontiguousarray(np.stack(given, axis=2)) if given else np.zeros((R, K, 0))
        y, qdd, acting = np.empty((R, K, self.size)), np.empty((R, K, n)), np.empty((R, K, n))
        kept = self._sensitive.kept(rows, law_forces)
        list_at = int(I[k.OUT_ROW])
        I[k.ROWS] = len(kept) // 2
        I[list_at : list_at + len(kept)] = kept
        columns = 0 if self.varied is None else self.varied.count + self.size
        S = np.zeros((R, K, len(kept) // 2, columns))
        I[k.HOLDS] = int(hold == "zero")
        W[at["CLOCK"] + k.NEAREST] = NEAR_SINGULAR
        called = None if self.law is None else _Called(self.law, W, at, n)
        I[k.LAW] = 0 if called is None else called.address
        reached = np.zeros(2)
        arguments = (np.zeros(R) if start is None else np.ascontiguousarray(start, dtype=np.float64),
            np.ascontiguousarray(initial, dtype=np.float64), np.ascontiguousarray(forces, dtype=np.float64), heard,
            step, substeps, y, qdd, acting, S, reached)  # fmt: skip
        status = compiled_run()(I, W, *arguments)
        if status == k.ESCAPED and self._is_near_singular(tree, values):
            W[at["CLOCK"] + k.NEAREST] = np.inf
            status = compiled_run()(I, W, *arguments)
        if status != k.DONE:
            self._refuse(status, float(reached[1]), called)
        own = {state.name: y[:, :, 2 * n + j] for j, state in enumerate(tree.states)}
        known = {name: heard[:, :, j] for j, name in enumerate(measured)}
        return Simulated(y[:, :, :n], y[:, :, n : 2 * n], qdd, acting, {**known, **own}), S

    def _state(self) -> Array:
        """q and q̇ where the run ended."""
        start = self._at["GIVEN"]
        return self._record.W[start : start + 2 * self.tree.n]

    def _is_near_singular(self, tree: Tree, values: Array) -> bool:
        """Whether the run ended in a usable state whose mass matrix needs a closer look, and passes it; refused where it does not."""
        q = self._state()[: tree.n]
        if not (np.isfinite(self._state()).all() and np.abs(q).max() < LARGEST_ANGLE_RAD):
            return False
        check_mass(tree, mass_matrix(tree, q[None], values, engine="numpy"))
        return True

    def _refuse(self, status: int, time: float, called: _Called | None) -> None:
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
            hint="Take shorter steps or shorter runs, or start from parameters that are nearer to the truth.",
        )


def check_forces(tree: Tree, forces: Array, step: float) -> None:
    """Refuse forces (R, K, n) that are no numbers, with the time and the coordinate of the first."""
    if np.isfinite(forces).all():
        return
    _, sample, j = (int(x) for x in np.argwhere(~np.isfinite(forces))[0])
    what = f"the force of '{tree.coordinates[j]}' is no number {sample * step:.6g} s after the start."
    raise SimulationError(what, where=tree.name, hint="Close gaps of the log, or cut it there.")


class _Called:
    """A control law of Python that compiled code can call: it reads q and q̇ from the record and writes forces there."""

    def __init__(self, law: Law, W: Array, at: Mapping[str, int], n: int) -> None:
        self.error: BaseException | None = None
        q, qd = W[at["GIVEN"] : at["GIVEN"] + n], W[at["GIVEN"] + n : at["GIVEN"] + 2 * n]
        force = W[at["FORCE"] : at["FORCE"] + n]

        def call(time: float) -> int:
            with self:
                force[:] = law(time, q.copy(), qd.copy())
            return int(self.error is not None)

        self._function = _LAW(call)
        self.address = cast(int, ctypes.cast(cast(Any, self._function), ctypes.c_void_p).value)

    def __enter__(self) -> None:
        """Nothing can be raised through compiled code: what the law raises is kept, and raised behind it."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True


@dataclass(frozen=True, eq=False)
class _Sensitive:
    """Blocks of sensitivities, where they lie, and what of the regressor and of friction enters which column."""

    n: int
    blocks: tuple[Block, ...]
    at: list[int]
    right_at: list[int]
    triples: list[tuple[int, int]]
    friction: list[tuple[int, int]]
    constants: list[tuple[int, int]]
    coefficients: list[float]
    rows: list[int]

    @classmethod
    def of(cls, run: CompiledRun) -> _Sensitive:
        """Those of a run; none where nothing is varied."""
        tree, varied, dry, made = run.tree, run.varied, run._dry, run._made
        n, size = tree.n, run.size
        if varied is None:
            return cls(n, (), [0], [0], [], [], [], [], [])
        spread, states = varied.spread, len(tree.states)
        slopes = made["DERIVATIVES_KERNEL"].labels
        entries = list(enumerate(made["REGRESSOR_KERNEL"].labels)) if "REGRESSOR_KERNEL" in made else []
        C = np.zeros((0, n)) if dry is None else dry.C

        def row_of(column: int) -> int:
            return column % n if column < 2 * n else column - n

        ties = [(int(r), int(c)) for r, c in made["MASS_KERNEL"].labels]
        ties += [(int(r), row_of(int(c))) for r, c in slopes if c < size]
        by_parameter = {int(c): np.flatnonzero(spread[int(c)]).tolist() for c in np.flatnonzero(spread.any(axis=1))}
        depends = [(int(r), j) for _, (r, c) in entries for j in by_parameter[int(c)]]
        depends += [(int(r), spread.shape[1] + int(c) - size) for r, c in slopes if c >= size]
        rubbing = [] if dry is None else [
            (e, i, j, spread[column, j]) for e, (i, _, column) in enumerate(dry.elements) for j in by_parameter.get(column, ())
        ]  # fmt: skip
        depends += [(int(np.flatnonzero(C[i])[0]), j) for _, i, j, _ in rubbing]
        blocks = blocks_of(n, states, ties, C, depends, varied.count, run.law is not None)
        at = starts([b.rows * b.width for b in blocks])
        right_at = starts([(len(b.coordinates) + len(b.states)) * b.width for b in blocks])
        home = {
            row: (b, a)
            for b, one in enumerate(blocks)
            for a, row in enumerate([*one.coordinates, *(n + s for s in one.states)])
        }

        def place(row: int, column: int) -> int:
            b, a = home[row]
            return right_at[b] + a * blocks[b].width + blocks[b].columns.index(column)

        triples = [(e, place(int(r), j), spread[int(c), j]) for e, (r, c) in entries for j in by_parameter[int(c)]]
        friction = [
            (e, place(int(row), j), factor * C[i, row]) for e, i, j, factor in rubbing for row in np.flatnonzero(C[i])
        ]
        width = size + len(varied.constants)
        constants = [
            (int(r) * width + int(c), place(int(r), spread.shape[1] + int(c) - size)) for r, c in slopes if c >= size
        ]
        return cls(
            n, blocks, at, right_at, [t[:2] for t in triples], [t[:2] for t in friction], constants,
            [float(t[2]) for t in (*triples, *friction)], [0] * (2 * max(size, n)),
        )  # fmt: skip

    def lists(self) -> list[list[int]]:
        """The lists of :mod:`~veridyn.mechanics.system.run_record` from COORDINATE_FROM on."""
        found: list[list[int]] = []
        for name in ("coordinates", "states", "columns", "combinations"):
            parts = [list(getattr(b, name)) for b in self.blocks]
            if name == "columns":
                parts = [[*b.columns, *[-1] * len(b.combinations)] for b in self.blocks]
            found += [starts([len(p) for p in parts]), [x for p in parts for x in p]]
        flat = [[x for pair in pairs for x in pair] for pairs in (self.triples, self.friction, self.constants)]
        return [*found, self.at, self.right_at, *flat, self.rows]

    def kept(self, rows: Sequence[int], law_forces: bool) -> list[int]:
        """(block, row of it) of components of a state, or (−1, coordinate) of the law's forces."""
        if law_forces:
            return [x for j in rows for x in (-1, j)]
        home: dict[int, tuple[int, int]] = {}
        for b, one in enumerate(self.blocks):
            nb = len(one.coordinates)
            for a, j in enumerate(one.coordinates):
                home[j], home[self.n + j] = (b, a), (b, nb + a)
            for a, j in enumerate(one.states):
                home[2 * self.n + j] = (b, 2 * nb + a)
        return [x for row in rows for x in home[row]]
