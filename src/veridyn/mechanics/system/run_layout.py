"""How a compiled run lies in memory: its record with every kernel connected, and what is written there before a run.

L runs side by side have one record, in which each number has L lanes: coordinate j of lane l is number j L + l of a state. To the code that
steps it, the record is that of one machine with L times as many coordinates, states and signals; only its kernels know of the lanes, and
work on all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.system import run_record as k
from veridyn.mechanics.system.dry_friction import DryFriction, dry_friction
from veridyn.mechanics.system.run_blocks import ColumnLayout, Varied
from veridyn.mechanics.system.run_bound import BASE_SIZE, GRAVITY, ZERO, Outside, bound_address
from veridyn.mechanics.system.run_formula import SLOPE, STATE, is_short, step_kernel, tangent_kernel
from veridyn.mechanics.system.run_friction import friction_address
from veridyn.mechanics.system.run_sensitivity import sensitivity_address
from veridyn.mechanics.system.run_stages import BRISTLE_CONSTANTS, BristleElements
from veridyn.mechanics.system.stepper import Tableau
from veridyn.mechanics.tree.dynamics.engine import Compiled, compiled, uniform_values
from veridyn.mechanics.tree.loops.assembly import assembled
from veridyn.mechanics.tree.loops.equations import COUNTS
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.steps.record import TreeRecord, connect, record_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.kinds import ALONG_KINDS
from veridyn.symbolic.kernel import this_host

FRICTION_KINDS = {
    "coulomb": k.BOTH_WAYS,
    "coulomb_forward": k.FORWARDS,
    "coulomb_backward": k.BACKWARDS,
    "stribeck": k.FALLS,
    **{kind: power * k.VARIES for kind, power in ALONG_KINDS.items()},
}


@dataclass(frozen=True, eq=False, kw_only=True)
class JointControllers:
    """Controllers of all joints, in their order, as :mod:`veridyn.mechanics.system.run_kernel` states; zero gains where a joint has none.

    Every `ticks` steps of the run they read the state that is measurement_delay seconds old, at most `lag` steps; without one it is `lag`
    steps old. They read positions with the encoder's `zero` added. A run is given their commands. Dry friction of a joint is larger by
    load_friction times the force of its controller, and by backdrive_friction times it where it acts against the motion; none by default.
    """

    kp: Array
    kd: Array
    ki: Array
    limit: Array
    ticks: int = 1
    lag: int = 0
    zero: Array | None = None
    measurement_delay: Array | None = None
    load_friction: Array | None = None
    backdrive_friction: Array | None = None


def usual_lanes() -> int:
    """Lanes that pay: a register of each number, and four where registers are small, so that no operation waits for the one before it."""
    return max(4, this_host().width)


@dataclass(eq=False)
class RunLayout:
    """The record of a run of a tree, for its structure, what is varied, and a rule; parameters and constants may change.

    `friction_speed`, `servo`: see :class:`veridyn.mechanics.system.compiled_run.CompiledRun`. `by_law`: forces are those of a control law.
    `lanes` above 1 are runs without sensitivities, without such a law, and without dry friction that holds. Machines with loops, whose
    openings die out with `closing_rate`, and those on a free base have one lane and no sensitivities.
    `rates_alone`: nothing is stepped, so that kernels that only runs need are not made. `often`: it is stepped so often that the step of a
    small machine is made one formula. `outside`: what acts besides forces and signals. `adjoint`: runs are gone through backwards too
    (:mod:`veridyn.mechanics.system.run_adjoint`), with one lane.
    """

    tree: Tree
    friction_speed: float
    rule: Tableau
    servo: JointControllers | None = None
    varied: Varied | None = None
    by_law: bool = False
    lanes: int = 1
    closing_rate: float = 0.0
    rates_alone: bool = False
    outside: Outside | None = None
    often: bool = False
    adjoint: bool = False
    dry: DryFriction | None = field(init=False)
    bristles: BristleElements = field(init=False)
    made: dict[str, Compiled] = field(init=False)
    record: TreeRecord = field(init=False)
    at: dict[str, int] = field(init=False)
    sensitive: ColumnLayout = field(init=False)

    def __post_init__(self) -> None:
        tree, speed, varied = self.tree, self.friction_speed, self.varied
        self.dry = dry_friction(tree, np.zeros(len(tree.parameters))) if speed == 0.0 else None
        self.bristles = BristleElements.of(tree)
        rows, bodies = tuple(range(self.rates)), self.outside.bodies if self.outside else ()
        requests = {"FORWARD_KERNEL": Request("forward_checked", rows, bodies=bodies, friction_speed=speed)}
        if tree.loops:
            requests = {
                "INVERSE_KERNEL": Request("inverse", rows, bodies=bodies, friction_speed=speed),
                "LOOPS_KERNEL": Request("loop_motion"),
            }
        if tree.loops or (tree.base == "fixed" and not self.rates_alone):
            requests["MASS_KERNEL"] = Request("mass")
        if tree.states:
            requests["RATES_KERNEL"] = Request("state_rates", friction_speed=speed)
        if self.adjoint:
            requests["ADJOINT_KERNEL"] = Request("rates_adjoint", rows, friction_speed=speed)
        if varied is not None:
            requests["DERIVATIVES_KERNEL"] = Request("run_derivatives", rows, varied.constants, friction_speed=speed)
            moved = np.flatnonzero(varied.spread.any(axis=1)).tolist()
            held = [] if self.dry is None else self.dry.columns
            columns = tuple(c for c in moved if c not in held)
            if columns:
                requests["REGRESSOR_KERNEL"] = Request("regressor", rows, columns, friction_speed=speed)
        self.made = {name: compiled(tree, request, single=True, lanes=self.lanes) for name, request in requests.items()}
        self._lay_out()

    def _write_out(self, sensitive: ColumnLayout) -> None:
        """Make the step one formula, where that is short, and the limits of dry friction are constant."""
        own = (
            self.often,
            self.lanes == 1,
            self.servo is None,
            not self.by_law,
            not self.bristles.state,
            self.tree.base == "fixed",
        )
        stages, dry = len(self.rule.b), self.dry
        if not all(own) or self.tree.loops or (dry is not None and dry.constant_limits is None):
            return
        forward = self.made["FORWARD_KERNEL"]
        if self.varied is None and is_short(forward, stages):
            self.made["STEP_KERNEL"] = step_kernel(self.tree, self.friction_speed, self.rule)
        columns = sum(b.width for b in sensitive.blocks)
        if self.varied is not None and is_short(forward, stages, columns):
            self.made["STEP_KERNEL"] = step_kernel(self.tree, self.friction_speed, self.rule)
            self.made["TANGENT_KERNEL"] = tangent_kernel(
                self.tree, self.friction_speed, self.rule, self.varied, dry, sensitive.blocks
            )

    @property
    def size(self) -> int:
        """The length of a state (q, q̇, z) of one lane; of a free base its pose stands before q, and its velocities before q̇."""
        return 2 * self.tree.n + len(self.tree.states) + (13 if self.tree.base == "free" else 0)

    @property
    def rates(self) -> int:
        """The number of velocities, those of a free base among them."""
        return len(self.tree.rows)

    def _lay_out(self) -> None:
        """The record, with every kernel connected to it."""
        tree, made, varied, dry, lanes = self.tree, self.made, self.varied, self.dry, self.lanes
        n, s, size, stages, rates = tree.n, len(tree.states), self.size, len(self.rule.b), self.rates
        m, elements = (0, 0) if dry is None else (len(dry.C), len(dry.elements))
        constants = 0 if varied is None else len(varied.constants)
        sensitive = ColumnLayout.of(tree, varied, dry, made, self.by_law, lanes)
        self._write_out(sensitive)
        length, width = sensitive.at[-1], max((b.width for b in sensitive.blocks), default=0)
        largest = max((len(b.coordinates) for b in sensitive.blocks), default=0)
        kept, forced = 1 if self.servo is None else self.servo.lag + 1, sensitive.servo_at[-1]
        parameters = {f"P_{name.removesuffix('_KERNEL')}": len(one.kernel.parameters) for name, one in made.items()}
        regressor = len(made["REGRESSOR_KERNEL"].labels) if "REGRESSOR_KERNEL" in made else 0
        lengths = {
            "Y": size, "STAGE": size, "END": size, "SLOPES": max(2, stages) * size,
            "TABLE_A": stages**2, "TABLE_B": stages, "TABLE_C": stages,
            "GIVEN": 4 * n + len(tree.signals), "ACC": rates + 1, "RATES": s, "DERIVATIVES": (n + s) * (size + constants),
            "MASS": rates * rates,
            "REGRESSOR": regressor, **parameters,
            "BEFORE": 5 * n + len(tree.signals) - s, "AFTER": 5 * n + len(tree.signals) - s, "FORCE": n, "CLOCK": 5,
            "C": m * n, "VALUE": elements, "SPEED": elements, "EXPONENT": elements, "RESPONSE": n * m, "PUSH": n,
            "H": m * m, "H_WORK": m * m, "ARRIVING": n, "ARRIVED": n, "LEAVING": n,
            "S": length, "S_STAGE": length, "S_SLOPES": stages * length, "S_RIGHT": sensitive.right_at[-1], "M_BLOCK": largest**2,
            "HELD_BLOCK": m * m, "HELD_RIGHT": m * width, "BY_LAW": 2 * n * n, "COEFFICIENTS": len(sensitive.coefficients),
            "KP": n, "KI": n, "KD": n, "LIMIT": n, "ZERO": n, "AGE": n, "LOAD": n, "BACKDRIVE": n,
            "FEED": n, "WANTED": 4 * n, "INTEGRAL": n, "PAST": 2 * n * kept,
            "S_FORCE": forced, "S_INTEGRAL": forced, "S_PAST": 2 * forced * kept,
        }  # fmt: skip
        soft = len(self.bristles.state)
        equations = sum(COUNTS[loop.joint] for loop in tree.loops)
        counted = [int(row) for row in assembled(tree).rows] if tree.loops else []
        border = rates + len(counted) + len(tree.held) if tree.loops else 0
        bound, outside = bool(tree.loops) or tree.base == "free" or self.outside is not None, self.outside or Outside()
        lengths |= {"BASE": BASE_SIZE, "INVERSE": rates, "LOOPS": equations * (n + 2), "BORDER": border**2, "BORDER_RIGHT": border,
            "UNIT": rates, "CLOSING": 1, "P_INVERSE": parameters.get("P_INVERSE", 0), "P_LOOPS": parameters.get("P_LOOPS", 0),
            "P_STEP": parameters.get("P_STEP", 0), "P_TANGENT": parameters.get("P_TANGENT", 0),
            "LEAP": 3, "NEARNESS": stages, "ACTING": elements}  # fmt: skip
        lengths |= outside.lengths(tree)
        swept = int(self.adjoint)
        lengths |= {"P_ADJOINT": parameters.get("P_ADJOINT", 0), "STAGES_GIVEN": swept * stages * lengths["GIVEN"],
            "WEIGHT": swept * (n + s), "STAGES_ADJOINT": swept * stages * size, "LAMBDA": swept * size,
            "ADJOINT": swept * (3 * n + len(tree.signals) + len(tree.parameters) + len(tree.constants))}  # fmt: skip
        lengths |= {"BRISTLE_C": soft * n * lanes, "BRISTLE_CONSTANT": soft * len(BRISTLE_CONSTANTS)}
        kinds = [] if dry is None else [(i, FRICTION_KINDS[e.kind]) for i, e, _ in dry.elements]
        none = [0] * m
        lists = [
            [i for i, _ in kinds], [kind for _, kind in kinds], none, none, none, none, none, none * 2, range(largest), *sensitive.lists(),
            *self._bristle_lists(sensitive), self._loaded(), counted, range(border),
            *outside.lists(tree),
        ]  # fmt: skip
        header = [
            n * lanes, s * lanes, size * lanes, len(tree.signals) * lanes, stages, m, elements, 0, 0, len(sensitive.blocks), length,
            constants, len(sensitive.triples), len(sensitive.rows), 0, 0 if varied is None else varied.count,
            int(self.servo is not None), 1 if self.servo is None else self.servo.ticks, kept - 1,
            friction_address() if m else 0, 0 if varied is None else sensitivity_address(), lanes, soft * lanes,
            *outside.header(tree),
            bound_address() if bound else 0, int(tree.base == "free"), equations, len(counted), 0, 0,
            int("STEP_KERNEL" in made),
        ]  # fmt: skip
        shared = {"TABLE_A", "TABLE_B", "TABLE_C", "CLOCK", "LEAP"}
        shapes = [(1, lengths.get(name, m) * (1 if name in shared else lanes)) for name in k.SECTIONS]
        record = record_of(shapes, lists, len(k.KERNELS), header)
        at = {name: int(record.I[getattr(k, name)]) for name in k.SECTIONS}
        place = {
            f"{symbol}.{j}": at["GIVEN"] + (n * i + j) * lanes
            for i, symbol in enumerate(("q", "qd", "t", "qdd"))
            for j in range(n)
        }
        place |= {f"s.{name}": at["GIVEN"] + (4 * n + j) * lanes for j, name in enumerate(tree.signals)}
        for first, symbol, count in ((0, "x", 3), (3, "e", 4), (7, "v", 3), (10, "w", 3)):
            place |= {f"{symbol}.{j}": at["BASE"] + first + j for j in range(count)}
        place |= {f"g.{j}": at["WEIGHT"] + j for j in range(n + s)}
        place |= outside.places(tree, at)
        leap = {"y": "Y", "step": "LEAP", "before": "BEFORE", "after": "AFTER", "push": "PUSH", "friction": "ACTING"}
        for symbol, section in leap.items():
            place |= {f"{symbol}.{j}": at[section] + j for j in range(lengths[section])}
        for b, block in enumerate(sensitive.blocks):
            where = at["S"] + sensitive.at[b]
            place |= {f"S.{b}.{i // block.width}.{i % block.width}": where + i for i in range(block.rows * block.width)}
        zero = at["BASE"] + ZERO
        for name, one in made.items():
            parameters_at = at[f"P_{name.removesuffix('_KERNEL')}"]
            if name in ("STEP_KERNEL", "TANGENT_KERNEL"):
                outputs = self._written(name, one, at, sensitive)
            else:
                outputs = self._outputs(name, one, at, size + constants)
            still = name == "INVERSE_KERNEL"  # h is what forces have to be where nothing accelerates
            inputs = [zero if still and i.startswith(("qdd.", "wd.", "vd.")) else place[i] for i in one.kernel.inputs]
            connect(record, getattr(k, name), one.kernel, parameters_at, inputs, outputs)
        self.record, self.at, self.sensitive = record, at, sensitive
        for name, values in (("TABLE_A", self.rule.A), ("TABLE_B", self.rule.b), ("TABLE_C", self.rule.c)):
            record.W[at[name] : at[name] + values.size] = values.ravel()
        if dry is not None:
            record.W[at["C"] : at["C"] + m * n] = dry.C.ravel()
        for b, row in enumerate(self.bristles.C):  # lane l of bristles b is their number b L + l
            for lane in range(lanes):
                start = at["BRISTLE_C"] + (b * lanes + lane) * n * lanes
                record.W[start + lane : start + n * lanes : lanes] = row
        if bound:
            unit = np.concatenate([np.ones(rates - n), assembled(tree).unit if tree.loops else np.ones(n)])
            record.W[at["UNIT"] : at["UNIT"] + rates], record.W[at["CLOSING"]] = unit, self.closing_rate
            record.W[at["BASE"] + GRAVITY : at["BASE"] + GRAVITY + 3] = tree.gravity
            outside.connect(tree, record, at, place)
        record.W[at["COEFFICIENTS"] : at["COEFFICIENTS"] + len(sensitive.coefficients)] = sensitive.coefficients

    def _written(self, name: str, one: Compiled, at: Mapping[str, int], sensitive: ColumnLayout) -> list[int]:
        """Where a step that is one formula leaves its results; a state with sensitivities in STAGE and S_STAGE, since END may be in use."""
        to = at["END" if name == "STEP_KERNEL" else "STAGE"]
        places = []
        for kind, i, *rest in one.labels:
            if kind == SLOPE:
                places.append(at["S_STAGE"] + sensitive.at[i] + rest[0] * sensitive.blocks[i].width + rest[1])
            else:
                places.append((to if kind == STATE else at["NEARNESS"]) + i)
        return places

    def _loaded(self) -> list[int]:
        """LOADED."""
        rows = [] if self.dry is None else self.dry.C.tolist()
        alone = [[float(j == k) for k in range(self.tree.n)] for j in range(self.tree.n)]
        return [rows.index(one) if one in rows else -1 for one in alone for _ in range(self.lanes)]

    def _bristle_lists(self, sensitive: ColumnLayout) -> list[list[int]]:
        """BRISTLE_PLACE and BRISTLE_COLUMN."""
        tree, lanes = self.tree, self.lanes
        places: list[int] = []
        columns: list[int] = []
        varied = () if self.varied is None else self.varied.constants
        first = 0 if self.varied is None else self.varied.spread.shape[1]
        for number, state in zip(self.bristles.number, self.bristles.state, strict=True):
            own = next((b for b, one in enumerate(sensitive.blocks) if state in one.states), 0)
            row, found = 0, [-1] * len(BRISTLE_CONSTANTS)
            if sensitive.blocks:
                block, name = sensitive.blocks[own], tree.elements[number].parameter_name
                row = 2 * len(block.coordinates) + block.states.index(state)
                for k, key in enumerate(BRISTLE_CONSTANTS):
                    constant = tree.constant_number.get((name, key), -1)
                    if constant in varied:
                        found[k] = block.columns.index(first + varied.index(constant))
            for lane in range(lanes):
                places += [(2 * tree.n + state) * lanes + lane, row]
                columns += [*found, own]
        return [places, columns]

    def _outputs(self, name: str, one: Compiled, at: Mapping[str, int], width: int) -> list[int]:
        first = "ACC" if name == "FORWARD_KERNEL" else name.removesuffix("_KERNEL")
        if name == "REGRESSOR_KERNEL":
            return [at[first] + e for e in range(len(one.labels))]
        wide = {"DERIVATIVES_KERNEL": width, "MASS_KERNEL": self.rates, "LOOPS_KERNEL": self.tree.n + 2}.get(name, 1)
        places = [label[0] * wide + (label[1] if len(label) > 1 else 0) for label in one.labels]
        return [at[first] + self.lanes * place for place in places]

    def set_gains(self, servo: JointControllers | None, h: float) -> None:
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
            W[self.at[name] : self.at[name] + n * self.lanes] = np.repeat(x, self.lanes)
        self.set_load(servo.load_friction, servo.backdrive_friction)

    def set_load(self, load: Array | None, backdrive: Array | None) -> None:
        """Dry friction of the coordinates per force of their drives; refused where a coordinate has none that holds."""
        W, n, none = self.record.W, self.tree.n, np.zeros(self.tree.n)
        own = {"LOAD": none if load is None else load, "BACKDRIVE": none if backdrive is None else backdrive}
        held = np.array(self._loaded())[:: self.lanes] >= 0
        for name, x in own.items():
            if (x[~held] != 0.0).any():
                raise DataError(
                    "friction that grows with load needs dry friction that holds.",
                    where=f"{self.tree.name}, coordinate '{self.tree.coordinates[int(np.flatnonzero(~held & (x != 0.0))[0])]}'",
                    hint="Give the joint an element of kind coulomb, and leave friction_speed at 0.",
                )
            W[self.at[name] : self.at[name] + n * self.lanes] = np.repeat(x, self.lanes)
        loaded = bool(np.concatenate(list(own.values())).any())
        self.record.I[k.WRITTEN_OUT] = int("STEP_KERNEL" in self.made and not loaded)

    def sets(self, tree: Tree, every: Array) -> Array:
        """(R / lanes, ·): what :meth:`set_values` would set for each of the parameter sets (R, p), lanes side by side."""
        first = self.set_values(tree, every[0])
        held = set() if self.dry is None else set(self.dry.columns)
        places: list[tuple[int, int]] = []
        for name, one in self.made.items():
            start = self.at[f"P_{name.removesuffix('_KERNEL')}"] - self.at["P_FORWARD"]
            given = enumerate(one.kernel.parameters)
            numbers = [(start + i * self.lanes, int(p[2:])) for i, p in given if p.startswith("p.")]
            places += [(i, c) for i, c in numbers if c not in held]
        if self.dry is not None:
            start = self.at["VALUE"] - self.at["P_FORWARD"]
            places += [(start + e, c) for e, c in enumerate(self.dry.columns)]
        out = np.repeat(first[None], len(every) // self.lanes, axis=0)
        to, of = np.array(places, dtype=np.intp).reshape(-1, 2).T
        for lane in range(self.lanes):
            out[:, to + lane] = every[lane :: self.lanes, of]
        return out

    def set_values(self, tree: Tree, values: Array) -> Array:
        """Parameters of kernels and of friction, and constants of laws, which are those of `tree`; the part of W that holds them."""
        dry, W, at = self.dry, self.record.W, self.at
        smooth = values
        if dry is not None:
            now = cast(DryFriction, dry_friction(tree, values))
            smooth = now.smooth_values
            for e, (_, element, column) in enumerate(now.elements):
                W[at["VALUE"] + e] = values[column]
                if element.kind in ALONG_KINDS:
                    W[at["SPEED"] + e], W[at["EXPONENT"] + e] = element.constant("half"), element.constant("middle")
                if element.kind == "stribeck":
                    W[at["SPEED"] + e] = element.constant("speed")
                    W[at["EXPONENT"] + e] = element.constant("exponent") if "exponent" in element.constants else 0.0
        own = np.repeat(self.bristles.constants(tree), self.lanes, axis=0).ravel()
        W[at["BRISTLE_CONSTANT"] : at["BRISTLE_CONSTANT"] + len(own)] = own
        for name, one in self.made.items():
            start, given = at[f"P_{name.removesuffix('_KERNEL')}"], one.kernel.parameters
            W[start : start + len(given) * self.lanes] = np.repeat(uniform_values(tree, smooth, given), self.lanes)
        return W[at["P_FORWARD"] : at["BEFORE"]]
