"""Joints that move each other, simulated under their drives: what encoders would read, and its derivatives by every unknown.

On a fixed base the branches of a tree that begin at the ground do not influence each other: each is simulated apart, the others locked.
What an encoder reads is q + zero; the simulation starts from what was read first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.drives.drive_log import DriveRecord
from veridyn.identify.drives.drive_unknowns import GAINS, LOAD, STARTS, DriveUnknown
from veridyn.mechanics.system.compiled_run import CompiledRun, JointControllers
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.tree.weld import welded
from veridyn.model.machine import Machine

LONGEST_DELAY = 0.1  # s, of a measurement
# Of order 2, two stages a tick: what it leaves is h² q⃛/6 of a speed, at 1 kHz far below an encoder's quantum, and RK4 takes twice as long.
RULE = "midpoint"


def groups_of_joints(machine: Machine) -> tuple[tuple[str, ...], ...]:
    """Coordinates that move each other: those of one branch from the ground, and those that an element ties together."""
    mark = {c: c for c in machine.coordinates}

    def root(c: str) -> str:
        while mark[c] != c:
            c = mark[c]
        return c

    branches = [machine.described.moving(body) for body in machine.body_names]
    for together in (*branches, *(e.on for e in machine.elements)):
        tied = [c for c in together if c in mark]
        for c in tied[1:]:
            mark[root(c)] = root(tied[0])
    groups: dict[str, list[str]] = {}
    for c in machine.coordinates:
        groups.setdefault(root(c), []).append(c)
    return tuple(tuple(g) for g in groups.values())


def label_of(group: Sequence[str]) -> str:
    """What joints of a group have in common at the beginning of their names, else the first name."""
    common = group[0]
    for name in group[1:]:
        while not name.startswith(common):
            common = common[:-1]
    common = common.rstrip("_.- ")
    return common if len(group) > 1 and len(common) > 1 else group[0]


def _locked(machine: Machine, group: Sequence[str]) -> Machine:
    """The machine of some joints, the others locked."""
    bare = machine.with_controllers([])
    locked = {c: 0.0 for c in machine.coordinates if c not in group}
    return welded(bare, locked, unknown="keep") if locked else bare


def part_of(machine: Machine, group: Sequence[str]) -> Machine:
    """The machine of some joints with their drives, the others locked: what is made of it needs no locking again."""
    return _locked(machine, group).with_controllers([c for c in machine.controllers if c.on in group])


@dataclass(frozen=True, eq=False)
class _Places:
    """Where the value of each unknown goes: a parameter, a constant of a law or of controllers of some joints, or the start of a run."""

    parameters: tuple[tuple[int, int], ...]  # unknown, parameter of the machine
    constants: tuple[tuple[int, int], ...]  # unknown, constant of a law of the machine
    gains: tuple[tuple[int, str, int], ...]  # unknown, key, joint
    starts: tuple[tuple[int, int, int], ...]  # unknown, run, component of (q, q̇)

    @classmethod
    def of(cls, unknowns: Sequence[DriveUnknown], machine: Machine) -> _Places:
        parameters, constants, gains, starts, at = [], [], [], [], machine.coordinates.index
        laws = [c.name for c in machine.constants]
        for k, u in enumerate(unknowns):
            if u.key in STARTS:
                starts.append((k, u.run, STARTS.index(u.key) * machine.n + at(u.joints[0])))
            elif u.name in machine.parameters.names:
                parameters.append((k, machine.parameters.index(u.name)))
            elif u.name in laws:
                constants.append((k, laws.index(u.name)))
            else:
                gains += [(k, u.key, at(j)) for j in u.joints]
        return cls(tuple(parameters), tuple(constants), tuple(gains), tuple(starts))


@dataclass(frozen=True, eq=False)
class _Run:
    """What is known of the machine and its drives in one run: parameters of the machine, controllers, delays of commands (n,).

    `scale` (gains,): how much larger a gain is than in the first run.
    """

    values: Array
    servo: JointControllers
    delay: Array
    scale: Array


class DriveGroup:
    """The joints `group` of a machine with their drives; every unknown it is given has a column, whether or not it is estimated.

    `runs`: the machine of each run, with other gains or loads; a gain of the first machine changes in proportion in all of them.
    `longest_delay` (s) of measurements, of which its simulation keeps the states.
    """

    def __init__(
        self,
        machine: Machine,
        group: Sequence[str],
        unknowns: Sequence[DriveUnknown],
        runs: Sequence[Machine] = (),
    ) -> None:
        self.unknowns = tuple(unknowns)
        self.whole, self.runs = machine, tuple(runs)
        self.machine = _locked(machine, group)
        self.joints = tuple(self.machine.coordinates)
        self.period = 1.0 / machine.controllers[0].rate
        self._places = places = _Places.of(self.unknowns, self.machine)
        aged = any(key == "measurement_delay" for _, key, _ in places.gains)
        machines = self.runs or (machine,)
        laws = [{c.on: c for c in m.controllers} for m in (machine, *machines)]
        constants = {
            key: np.array([[by[c].constant(key) for c in self.joints] for by in laws])
            for key in ("kp", "kd", "limit", "zero", "command_delay", "measurement_delay", *LOAD)
        }
        ki = np.array([[by[c].constant("ki") if by[c].integrates else 0.0 for c in self.joints] for by in laws])
        self.longest_delay = late = max(float(constants["measurement_delay"].max()), LONGEST_DELAY if aged else 0.0)
        self._runs = []
        for r, one in enumerate(machines, 1):
            own = {key: x[r] for key, x in constants.items()}
            servo = JointControllers(
                kp=own["kp"],
                kd=own["kd"],
                ki=ki[r],
                limit=own["limit"],
                lag=int(np.ceil(late / self.period)),
                zero=own["zero"],
                measurement_delay=own["measurement_delay"],
                load_friction=own["load_friction"],
                backdrive_friction=own["backdrive_friction"],
            )
            scale = np.array(
                [own[key][j] / constants[key][0, j] if key in GAINS else 1.0 for _, key, j in places.gains]
            )
            values = (self.machine if one is machine else _locked(one, group)).parameters.values.copy()
            self._runs.append(_Run(values, servo, own["command_delay"], scale))
        spread = np.zeros((len(self.machine.parameters), len(places.parameters)))
        for column, (_, p) in enumerate(places.parameters):
            spread[p, column] = 1.0
        gains = tuple((key, j) for _, key, j in places.gains)
        self._varied = Varied(spread, tuple(c for _, c in places.constants), gains)

    def _columns(self, run: int) -> Array:
        """How parameters, constants, gains and the start of a run (q, q̇, states of elements) change with the unknowns."""
        places, n = self._places, len(self.joints)
        first_gain = len(places.parameters) + len(places.constants)
        first_start = first_gain + len(places.gains)
        found = np.zeros((first_start + 2 * n + len(self.machine.states), len(self.unknowns)))
        for column, (k, _) in enumerate((*places.parameters, *places.constants)):
            found[column, k] = 1.0
        for column, (k, key, j) in enumerate(places.gains):
            found[first_gain + column, k] = self._runs[run].scale[column]
            if key == "zero":  # the start is what was read first, less the zero
                found[first_start + j, k] = -1.0
        for k, own, component in places.starts:
            found[first_start + component, k] = float(own == run)
        return found

    @cached_property
    def _run(self) -> CompiledRun:
        return CompiledRun(self.machine, rule=RULE, servo=self._runs[0].servo, varied=self._varied)

    @cached_property
    def _plain(self) -> CompiledRun:
        return CompiledRun(self.machine, rule=RULE, servo=self._runs[0].servo)

    def _set(self, x: Array, run: int) -> tuple[Array, JointControllers, Array, Array]:
        """Parameters of the machine, controllers, delays of commands and what is added to the start, with values x of the unknowns."""
        own = self._runs[run]
        values, delay, start = own.values.copy(), own.delay.copy(), np.zeros(2 * len(self.joints))
        for k, p in self._places.parameters:
            values[p] = x[k]
        changed = {key: np.array(getattr(own.servo, key)) for key in ("kp", "kd", "zero", "measurement_delay", *LOAD)}
        for (k, key, j), scale in zip(self._places.gains, own.scale.tolist(), strict=True):
            if key == "command_delay":
                delay[j] = x[k]
            else:
                changed[key][j] = scale * x[k]
        for k, number, component in self._places.starts:
            if number == run:
                start[component] = x[k]
        return values, replace(own.servo, **changed), delay, start

    def _with_constants(self, x: Array) -> Machine | None:
        """The machine with constants of its laws among the unknowns; None where there are none."""
        own = {self.unknowns[k].name: float(x[k]) for k, _ in self._places.constants}
        return self.machine.with_constants(own) if own else None

    def steps_per_sample(self, record: DriveRecord) -> int:
        """Ticks of the drives from sample to sample of a record: the nearest whole number."""
        return max(1, round(record.step / self.period))

    def simulate(self, record: DriveRecord, x: Array, sensitive: bool = True) -> tuple[Array, Array]:
        """What the encoders of the joints read at the samples (K, n), and its derivatives by the unknowns (K, n, u); (0, …) without."""
        n, every = len(self.joints), self.steps_per_sample(record)
        K, h = (len(record) - 1) * every + 1, record.step / self.steps_per_sample(record)
        values, servo, delay, moved = self._set(x, record.run)
        at = [record.coordinates.index(c) for c in self.joints]
        command = np.empty((1, K, 4 * n))
        for j in range(n):
            for part, own in enumerate(record.ticks(at[j], K, h, float(delay[j]))):
                command[0, :, part * n + j] = own
        zero = np.zeros(n) if servo.zero is None else servo.zero
        start = np.concatenate([record.position[0, at] - zero, record.starting_speed[at]]) + moved
        start = np.concatenate([start, np.zeros(len(self.machine.states))])[None]
        run = self._run if sensitive else self._plain
        found, S = run.run(
            h,
            start,
            np.zeros((1, K, n)),
            {},
            command=command,
            servo=servo,
            parameters=values,
            machine=self._with_constants(x),
            hold="zero",
            rows=range(n) if sensitive else (),
        )
        read = found.q[0, ::every] + zero
        if not sensitive:
            return read, np.zeros((0, n, len(self.unknowns)))
        J = S[0, ::every] @ self._columns(record.run)
        for k, key, j in self._places.gains:
            if key == "zero":
                J[:, j, k] += 1.0
        return read, J
