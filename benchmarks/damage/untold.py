"""Structure that a model lacks and nobody was told of: whether a fit that is wrong says why. ``python -m benchmarks.damage --untold``.

Every joint of a machine has it, in sizes that such machines have. With z the errors of the base parameters in their deviations, a fit is
wrong where the mean of z² exceeds 3 or some |z| exceeds 5, and *silently wrong* where the true cause is not named first besides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.damage.bench import Level
from benchmarks.damage.foreign import bench_of, subject_of
from benchmarks.damage.kinds import Damage, Table, whole
from benchmarks.damage.score import named
from benchmarks.damage.structure import KINDS_BY_NAME, separate_rotors
from benchmarks.damage.world import World, machine_of, without_laws, world
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
WRONG_MEAN_SQUARE, WRONG_DEVIATIONS = 3.0, 5.0  # beyond what a right model's errors reach by chance
LOAD_SHARE = 0.05  # of the load: dry friction of gears of good efficiency
TWIST = 5e-3  # rad, rms: what harmonic drives yield under their usual load
WARM_SHARE = 0.3  # of the friction: how much of it goes as a drive warms up


@dataclass(frozen=True)
class Untold:
    """One run: mean z² and largest |z|, infinite where the log was refused, whether the true cause came first, and what `said` did."""

    case: str
    seed: int
    mean_square: float
    worst: float
    first: bool
    said: str

    @property
    def wrong(self) -> bool:
        return self.mean_square > WRONG_MEAN_SQUARE or self.worst > WRONG_DEVIATIONS

    @property
    def silently_wrong(self) -> bool:
        return self.wrong and not self.first


def _rotor(w: World, machine: Machine) -> tuple[Table, Machine]:
    return w.log(), without_laws(machine, w.subject.names, "Ia", tuple(separate_rotors(machine)))


def _with(kind: str, size: Callable[[World], float | Array]) -> Callable[[World, Machine], tuple[Table, Machine]]:
    def made(w: World, machine: Machine) -> tuple[Table, Machine]:
        joints = tuple(range(len(w.subject.joints)))
        return KINDS_BY_NAME[kind].record(w, size(w), joints, False), machine

    return made


def _compliance(w: World) -> Array:
    """By which each joint that turns yields by TWIST rms, beside its mean; one that slides is stiff."""
    turning = np.array([not joint.slides for joint in w.subject.joints])
    return np.where(turning, TWIST / np.std(w.load(), axis=0), 0.0)


CASES: dict[str, tuple[str, Callable[[World, Machine], tuple[Table, Machine]]]] = {
    "rotor": ("rotor inertia missing", _rotor),
    "load friction": ("load-dependent friction", _with("load-dependent friction", lambda _: LOAD_SHARE)),
    "flexibility": ("flexible joint", _with("flexible joint", _compliance)),
    "warm-up": ("friction that warms up", _with("friction that warms up", lambda _: WARM_SHARE)),
}


def run(case: str, seed: int, level: Level) -> Untold:
    """The fit of one run against the machine that left the log."""
    subject = subject_of(seed)
    kind, make = CASES[case]
    w = world(subject, seed)
    table, machine = make(w, machine_of(subject))
    bench = bench_of(w, machine, f"{subject} {seed}", seed)
    answer = bench.identified(table, machine, level)
    known = KINDS_BY_NAME[kind]
    damage = Damage(known.name, whole, known.words, causes=known.causes)
    first = named(damage, answer.findings, answer.said, ())
    blamed = f"{answer.findings[0].cause} {answer.findings[0].place}" if answer.findings else ""
    said = blamed or (answer.said[0].partition("\n")[0] if answer.said else "")
    if answer.fit is None:
        return Untold(case, seed, np.inf, np.inf, first, said)
    base = answer.fit.base
    z = (answer.values - base.reduce([w.values[name] for name in base.parameters.names])) / answer.sigma
    return Untold(case, seed, float(np.mean(z**2)), float(np.max(np.abs(z))), first, said)
