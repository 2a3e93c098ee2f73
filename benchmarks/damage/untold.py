"""Structure that a model lacks and nobody was told of: whether a fit that is wrong says why. ``python -m benchmarks.damage --untold``.

Every joint of a machine has it, in sizes that such machines have. With z the errors of the base parameters in their deviations, a fit is
wrong where the mean of z² exceeds 3 or some |z| exceeds 5, and *silently wrong* where the true cause is not named first besides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.damage.bench import Bench, Level
from benchmarks.damage.foreign import bench_of, subject_of
from benchmarks.damage.kinds import Damage, Table, whole
from benchmarks.damage.score import damaged, named, visible
from benchmarks.damage.structure import KINDS_BY_NAME
from benchmarks.damage.world import World, machine_of, world

Array = NDArray[np.float64]
WRONG_MEAN_SQUARE, WRONG_DEVIATIONS = 3.0, 5.0  # beyond what a right model's errors reach by chance
LOAD_SHARE = 0.05  # of the load: dry friction of gears of good efficiency
TWIST = 5e-3  # rad, rms: what harmonic drives yield under their usual load
WARM_SHARE = 0.3  # of the friction: how much of it goes as a drive warms up


@dataclass(frozen=True)
class Untold:
    """One run: mean z² and largest |z|, infinite where the log was refused, whether the true cause came first, and what `said` did.

    `visible`: deviations of the noise by which the structure shows beside the parameters, of runs that are silently wrong, else NaN.
    """

    case: str
    seed: int
    mean_square: float
    worst: float
    first: bool
    said: str
    visible: float = float("nan")

    @property
    def wrong(self) -> bool:
        return self.mean_square > WRONG_MEAN_SQUARE or self.worst > WRONG_DEVIATIONS

    @property
    def silently_wrong(self) -> bool:
        return self.wrong and not self.first


def _compliance(w: World) -> Array:
    """By which each joint that turns yields by TWIST rms, beside its mean; one that slides is stiff."""
    turning = np.array([not joint.slides for joint in w.subject.joints])
    return np.where(turning, TWIST / np.std(w.load(), axis=0), 0.0)


def _rotors(w: World) -> Array:
    return w.law("Ia")


# Kind of structure, and its size at every joint.
CASES: dict[str, tuple[str, Callable[[World], float | Array]]] = {
    "rotor": ("rotor inertia missing", _rotors),
    "load friction": ("load-dependent friction", lambda _: LOAD_SHARE),
    "flexibility": ("flexible joint", _compliance),
    "warm-up": ("friction that warms up", lambda _: WARM_SHARE),
}


def prepared(case: str, seed: int) -> tuple[World, Bench, Damage]:
    """The world without the structure of a case, its bench, and the structure as a damage of it, at all joints where it can be seen."""
    subject = subject_of(seed)
    whole_world, machine = world(subject, seed), machine_of(subject)
    name, size_of = CASES[case]
    structure = KINDS_BY_NAME[name]
    among = range(len(whole_world.subject.joints)) if structure.among is None else structure.among(machine)
    joints, size = tuple(among), size_of(whole_world)
    w, machine = structure.prepare(whole_world, machine, joints)

    def log(_size: float, quiet: bool) -> Table:
        return structure.record(w, size, joints, quiet)

    damage = Damage(structure.name, whole, structure.words, causes=structure.causes, log=log)
    return w, bench_of(w, machine, f"{subject} {seed}", seed), damage


def run(case: str, seed: int, level: Level) -> Untold:
    """The fit of one run against the machine that left the log, without what its model lacks."""
    w, bench, damage = prepared(case, seed)
    table, machine = damaged(bench, damage, 1.0)
    answer = bench.identified(table, machine, level)
    first = named(damage, answer.findings, answer.said, ())
    blamed = f"{answer.findings[0].cause} {answer.findings[0].place}" if answer.findings else ""
    said = blamed or (answer.said[0].partition("\n")[0] if answer.said else "")
    if answer.fit is None:
        return Untold(case, seed, np.inf, np.inf, first, said)
    base = answer.fit.base
    z = (answer.values - base.reduce([w.values[name] for name in base.parameters.names])) / answer.sigma
    found = Untold(case, seed, float(np.mean(z**2)), float(np.max(np.abs(z))), first, said)
    if not found.silently_wrong:
        return found
    return replace(found, visible=visible(damage, 1.0, bench, "off" if level == "cli" else level))
