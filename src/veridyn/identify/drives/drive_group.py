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
from veridyn.identify.drives.drive_unknowns import DriveUnknown
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


@dataclass(frozen=True, eq=False)
class _Places:
    """Of each unknown its columns in a run, and where its value goes: a parameter, or a constant of controllers of some joints."""

    parameters: tuple[tuple[int, int], ...]  # unknown, parameter of the tree
    gains: tuple[tuple[int, str, int], ...]  # unknown, key, joint


class DriveGroup:
    """The joints `group` of a machine with their drives; every unknown it is given has a column, whether or not it is estimated."""

    def __init__(self, machine: Machine, group: Sequence[str], unknowns: Sequence[DriveUnknown]) -> None:
        self.joints, self.unknowns = tuple(group), tuple(unknowns)
        bare = machine.with_controllers([])
        locked = {c: 0.0 for c in machine.coordinates if c not in group}
        self.machine = welded(bare, locked, unknown="keep") if locked else bare
        self.joints = tuple(self.machine.coordinates)
        laws = {c.on: c for c in machine.controllers}
        own = [laws[c] for c in self.joints]
        self.period = 1.0 / own[0].rate
        by = self.machine.parameters
        self.values = by.values.copy()
        parameters, gains = [], []
        for k, u in enumerate(self.unknowns):
            if u.name in by.names:
                parameters.append((k, by.index(u.name)))
            else:
                gains += [(k, u.key, self.joints.index(j)) for j in u.joints]
        self._places = _Places(tuple(parameters), tuple(gains))
        n = len(own)
        late = max(c.constant("measurement_delay") for c in own)
        aged = any(key == "measurement_delay" for _, key, _ in gains)
        self.servo = JointControllers(
            kp=np.array([c.constant("kp") for c in own]),
            kd=np.array([c.constant("kd") for c in own]),
            ki=np.array([c.constant("ki") if c.integrates else 0.0 for c in own]),
            limit=np.array([c.constant("limit") for c in own]),
            lag=int(np.ceil(max(late, LONGEST_DELAY if aged else 0.0) / self.period)),
            zero=np.array([c.constant("zero") for c in own]),
            measurement_delay=np.array([c.constant("measurement_delay") for c in own]),
        )
        self.delay = np.array([c.constant("command_delay") for c in own])
        spread = np.zeros((len(by), len(parameters)))
        for column, (_, p) in enumerate(parameters):
            spread[p, column] = 1.0
        self._varied = Varied(spread, gains=tuple((key, j) for _, key, j in gains))
        self.columns = np.zeros((len(parameters) + len(gains) + 2 * n, len(self.unknowns)))
        for column, (k, _) in enumerate(parameters):
            self.columns[column, k] = 1.0
        for column, (k, key, j) in enumerate(gains):
            self.columns[len(parameters) + column, k] = 1.0
            if key == "zero":  # the start is what was read first, less the zero
                self.columns[len(parameters) + len(gains) + j, k] = -1.0

    @cached_property
    def _run(self) -> CompiledRun:
        return CompiledRun(self.machine, rule=RULE, servo=self.servo, varied=self._varied)

    @cached_property
    def _plain(self) -> CompiledRun:
        return CompiledRun(self.machine, rule=RULE, servo=self.servo)

    def _set(self, x: Array) -> tuple[Array, JointControllers, Array]:
        """Parameters of the tree, controllers and delays of commands, with values x of the unknowns."""
        values, s, delay = self.values.copy(), self.servo, self.delay.copy()
        for k, p in self._places.parameters:
            values[p] = x[k]
        changed = {key: np.array(getattr(s, key)) for key in ("kp", "kd", "zero", "measurement_delay")}
        for k, key, j in self._places.gains:
            if key == "command_delay":
                delay[j] = x[k]
            else:
                changed[key][j] = x[k]
        return values, replace(s, **changed), delay

    def steps_per_sample(self, record: DriveRecord) -> int:
        """Ticks of the drives from sample to sample of a record: the nearest whole number."""
        return max(1, round(record.step / self.period))

    def simulate(self, record: DriveRecord, x: Array, sensitive: bool = True) -> tuple[Array, Array]:
        """What the encoders of the joints read at the samples (K, n), and its derivatives by the unknowns (K, n, u); (0, …) without."""
        n, every = len(self.joints), self.steps_per_sample(record)
        K, h = (len(record) - 1) * every + 1, record.step / self.steps_per_sample(record)
        values, servo, delay = self._set(x)
        at = [record.coordinates.index(c) for c in self.joints]
        command = np.empty((1, K, 4 * n))
        for j in range(n):
            for part, own in enumerate(record.ticks(at[j], K, h, float(delay[j]))):
                command[0, :, part * n + j] = own
        zero = np.zeros(n) if servo.zero is None else servo.zero
        start = np.concatenate([record.position[0, at] - zero, record.starting_speed[at]])[None]
        run = self._run if sensitive else self._plain
        found, S = run.run(
            h,
            start,
            np.zeros((1, K, n)),
            {},
            command=command,
            servo=servo,
            parameters=values,
            hold="zero",
            rows=range(n) if sensitive else (),
        )
        read = found.q[0, ::every] + zero
        if not sensitive:
            return read, np.zeros((0, n, len(self.unknowns)))
        J = S[0, ::every] @ self.columns
        for k, key, j in self._places.gains:
            if key == "zero":
                J[:, j, k] += 1.0
        return read, J
