"""Commands that determine drives best: pieces of chirps, steps and slow sweeps within limits, chosen by what their encoders would show.

A command is simulated by the closed loop with the assumed values of the drives. With the derivatives J of the encoders by
the unknowns in deviations of their priors, noise σ and memory m as in :mod:`veridyn.identify.drives.drive_search`,

    C = (JᵀJ/(σ² m) + 1)⁻¹,        least Σ ln √C_kk over the unknowns k that are asked for,

the others unknown as well. Positions, speeds and forces that are simulated keep the limits; a command that does not is made smaller.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import Faults, IdentificationError, SimulationError, VeridynError, did_you_mean, part_at
from veridyn.identify.drives.drive_group import DriveGroup, groups_of_joints, label_of
from veridyn.identify.drives.drive_log import Between, DriveRecord
from veridyn.identify.drives.drive_method import DEFAULT_KEYS
from veridyn.identify.drives.drive_result import DriveEstimate
from veridyn.identify.drives.drive_unknowns import KEYS, DriveUnknown, check_drives, drive_unknowns, with_drives
from veridyn.identify.drives.undetermined import OpenDirection, open_directions
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.settings import Settings, above, at_least

UNITS = {"turning": "rad", "sliding": "m"}
LIMITS = ("low", "high", "speed", "force")
PIECES = 4  # of a command, each a quarter of it
REST = 0.5  # s at the start, and half of that between pieces
SLOWEST, FASTEST = 0.08, 4.0  # Hz of pieces
SHRINK = 0.8  # of an amplitude that breaks a limit
SMALLEST = 0.02  # of the way: a command that has to be smaller is none
STEPS = 0.35  # of random pieces are steps
VARIATION = 0.4  # of frequencies, amplitudes and places of a piece that is varied
PLAIN = (0.1, 3.0)  # Hz, of the chirp that a design is compared with


@dataclass(frozen=True, kw_only=True)
class PlannedNumber(DriveEstimate):
    """One number of the drives as a recording of the commands will show it: `value` is the assumed one.

    `plain_sigma`: its deviation after a plain chirp within the same limits, NaN where no chirp keeps them. `asked`: whether the design was
    to determine it.
    """

    plain_sigma: float
    asked: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class DrivePlan:
    """Commands (K, n) of the joints at times t (K,), rad or m, and what a recording of them will determine.

    `open`: what they leave open, in words. `used`: of each joint the share of its tightest limit. `noise` and `memory` are what was
    assumed of the encoders.
    """

    name: str
    joints: tuple[str, ...]
    kinds: tuple[str, ...]
    t: Array
    command: Array
    numbers: tuple[PlannedNumber, ...]
    open: tuple[OpenDirection, ...]
    used: Mapping[str, float]
    noise: float
    memory: float

    def experiment(self) -> Experiment:
        """The commands as channels ``command.JOINT``, for :class:`~veridyn.manoeuvres.Commanded`."""
        names = [f"command.{j}" for j in self.joints]
        units = {n: UNITS[kind] for n, kind in zip(names, self.kinds, strict=True)}
        return Experiment.from_arrays(self.t, dict(zip(names, self.command.T, strict=True)), units, self.name)

    def table(self) -> str:
        """The commands as CSV."""
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        names = [f"command.{j} [{UNITS[kind]}]" for j, kind in zip(self.joints, self.kinds, strict=True)]
        out.writerow(("time [s]", *names))
        for t, row in zip(self.t, self.command, strict=True):
            out.writerow((f"{t:.9g}", *(f"{x:.9g}" for x in row)))
        return text.getvalue()

    def summary(self) -> str:
        """Deviations that are promised, and what stays open."""
        wide = max(len(n.name) for n in self.numbers)
        lines = [f"{self.name}: commands of {len(self.joints)} joints for {self.t[-1]:g} s"]
        lines.append(f"{'':{wide}}  {'σ before':>10} {'σ designed':>11} {'σ of a chirp':>13}")
        for n in self.numbers:
            mark = "   asked for" if n.asked else ""
            lines.append(f"{n.name:{wide}}  {n.prior_sigma:10.2g} {n.sigma:11.2g} {n.plain_sigma:13.2g} {n.unit}{mark}")
        return "\n".join([*lines, *(f"not determined: {one}" for one in self.open)])


@dataclass(frozen=True, kw_only=True)
class DriveRange:
    """What a joint may do: positions from `low` to `high` in rad or m, `speed` and `force` at most."""

    low: float
    high: float
    speed: float = np.inf
    force: float = np.inf


@dataclass(frozen=True, repr=False, kw_only=True)
class DriveExcitation(Settings):
    """How commands are designed, from which the drives of a machine are to be identified.

    Parameters
    ----------
    ask : names
        Numbers to determine: keys such as kp, armature, coulomb, zero and command_delay, or names such as knee_drive.kp; all if left out.
    duration : float above 0
        Of the recording, s.
    rate : float above 0
        Commands, and samples of the log, each second.
    noise : float above 0
        What a simulation will leave of the encoders, rad or m.
    memory : float of at least 1
        How many samples of that are worth one independent one.
    tries : int of at least 1
        Commands that are simulated for each group of joints that move each other.
    kp : float of at least 0
        Gain of the position, N*m/rad or N/m, of joints that have no controller in the model file; required where one is missing.
    kd : float of at least 0
        Gain of the speed, N*m*s/rad or N*s/m, of the same joints.
    ticks : float above 0
        Ticks of these drives each second.
    estimate : names
        What will be estimated: any of armature, viscous, coulomb, kp, kd, zero, command_delay, measurement_delay.
    commands : "hold" or "linear"
        Whether a drive holds each command until the next, or moves along the line between both.
    """

    error: ClassVar[type[VeridynError]] = IdentificationError
    name: ClassVar[str] = "drive excitation"

    ask: tuple[str, ...] = ()
    duration: Annotated[float, above(0.0)] = 20.0
    rate: Annotated[float, above(0.0)] = 200.0
    noise: Annotated[float, above(0.0)] = 1e-3
    memory: Annotated[float, at_least(1.0)] = 10.0
    tries: Annotated[int, at_least(1)] = 60
    kp: Annotated[float, at_least(0.0)] = 0.0
    kd: Annotated[float, at_least(0.0)] = 0.0
    ticks: Annotated[float, above(0.0)] = 1000.0
    estimate: tuple[str, ...] = DEFAULT_KEYS
    commands: Between = "hold"


@dataclass(frozen=True)
class _Piece:
    """A quarter of the command of one joint: a chirp or steps between two frequencies, of an amplitude and about a place, in shares."""

    steps: bool
    amplitude: float
    place: float
    first: float
    last: float

    def at(self, t: Array, seconds: float) -> Array:
        """Between −1 and 1, from and to zero at both ends."""
        s = np.clip(t - 0.5 * REST, 0.0, None) / max(seconds - REST, 0.1)
        inside = (t >= 0.5 * REST) & (t <= seconds - 0.5 * REST)
        phase = 2.0 * np.pi * max(seconds - REST, 0.1) * (self.first * s + 0.5 * (self.last - self.first) * s**2)
        wave = np.sign(np.sin(phase)) if self.steps else np.sin(phase)
        room = 1.0 - abs(self.place)
        return np.where(inside, self.place + min(self.amplitude, room) * wave, 0.0)


def _drawn(rng: np.random.Generator) -> _Piece:
    low, high = np.exp(np.sort(rng.uniform(np.log(SLOWEST), np.log(FASTEST), 2)))
    amplitude = float(rng.uniform(0.2, 1.0))
    return _Piece(bool(rng.random() < STEPS), amplitude, float(rng.uniform(-0.5, 0.5)), float(low), float(high))


def _varied(piece: _Piece, rng: np.random.Generator) -> _Piece:
    """A piece near another one."""
    factors = np.exp(VARIATION * rng.standard_normal(3))
    low, high = np.sort(np.clip([piece.first * factors[0], piece.last * factors[1]], SLOWEST, FASTEST))
    return _Piece(
        piece.steps != (rng.random() < 0.1),
        float(np.clip(piece.amplitude * factors[2], 0.1, 1.0)),
        float(np.clip(piece.place + 0.5 * VARIATION * rng.standard_normal(), -0.8, 0.8)),
        float(low),
        float(high),
    )


class _Design:
    """Commands of the joints of one group, simulated and judged."""

    def __init__(
        self, machine: Machine, joints: tuple[str, ...], ranges: Mapping[str, DriveRange], how: DriveExcitation
    ):
        self.machine, self.how = machine, how
        self.unknowns = drive_unknowns(machine, joints, label_of(joints), how.estimate)
        self.group = DriveGroup(machine, joints, self.unknowns)
        self.joints = self.group.joints
        self.ranges = [ranges[j] for j in self.joints]
        self.asked = [k for k, u in enumerate(self.unknowns) if not how.ask or u.key in how.ask or u.name in how.ask]
        laws = {c.on: c for c in machine.controllers}
        self.gains = np.array([[laws[j].constant(key) for j in self.joints] for key in ("kp", "kd")])
        self.t = np.arange(round(how.duration * how.rate) + 1) / how.rate
        self.x = np.array([u.value(0.0) for u in self.unknowns])
        self.slopes = np.array([u.slope(0.0) for u in self.unknowns])

    def command(self, pieces: Sequence[Sequence[_Piece]], scales: Array) -> Array:
        """(K, n), within the positions and the speeds of the joints."""
        out = np.empty((len(self.t), len(self.joints)))
        seconds = (self.how.duration - REST) / len(pieces[0])
        for j, (own, limit) in enumerate(zip(pieces, self.ranges, strict=True)):
            shape = sum(piece.at(self.t - REST - k * seconds, seconds) for k, piece in enumerate(own))
            middle, half = 0.5 * (limit.low + limit.high), 0.5 * (limit.high - limit.low)
            out[:, j] = _slewed(middle + scales[j] * half * shape, limit.speed / self.how.rate)
        return out

    def used(self, command: Array) -> Array | None:
        """Shares of its limits that each joint uses (n, 4); None where the simulation runs away."""
        record = self.record(command)
        try:
            q, _ = self.group.simulate(record, self.x, False)
        except SimulationError:
            return None
        v = np.gradient(q, record.step, axis=0)
        force = self.gains[0] * (command - q) - self.gains[1] * v
        low, high, speed, most = (np.array([getattr(x, key) for x in self.ranges]) for key in LIMITS)
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        return np.stack(
            [
                (q.max(axis=0) - middle) / half,
                (middle - q.min(axis=0)) / half,
                np.abs(v).max(axis=0) / speed,
                np.abs(force).max(axis=0) / most,
            ],
            axis=1,
        )

    def covariance(self, command: Array) -> Array:
        """C of the unknowns, in deviations of their priors."""
        _, J = self.group.simulate(self.record(command), self.x)
        Z = (J * self.slopes).reshape(-1, len(self.unknowns)) / (self.how.noise * np.sqrt(self.how.memory))
        return np.linalg.inv(Z.T @ Z + np.eye(len(self.unknowns)))

    def record(self, command: Array) -> DriveRecord:
        """A record of the whole machine that starts at rest where the command does, the other joints at rest."""
        own = np.zeros((len(self.t), self.machine.n))
        own[:, [self.machine.coordinates.index(j) for j in self.joints]] = command
        at_rest = np.tile(own[:1], (len(own), 1))
        return DriveRecord(
            name="design",
            coordinates=self.machine.coordinates,
            start=0.0,
            step=1.0 / self.how.rate,
            command=own,
            position=at_rest,
            between=self.how.commands,
        )

    def largest(self, pieces: Sequence[Sequence[_Piece]]) -> tuple[Array, Array, Array] | None:
        """The largest of these commands that keeps the limits, with C and the shares used; None where none does."""
        scales = np.ones(len(self.joints))
        while scales.min() > SMALLEST:
            command = self.command(pieces, scales)
            used = self.used(command)
            broken = np.ones(len(scales), dtype=bool) if used is None else used.max(axis=1) > 1.0
            if used is not None and not broken.any():
                return command, self.covariance(command), used
            scales = np.where(broken, SHRINK * scales, scales)
        return None

    def score(self, C: Array) -> float:
        return float(0.5 * np.log(np.diag(C)[self.asked]).sum())

    def plain(self) -> tuple[Array, Array, Array] | None:
        """One chirp of all joints."""
        return self.largest([[_Piece(False, 1.0, 0.0, *PLAIN)] for _ in self.joints])

    def best(self, rng: np.random.Generator, progress: Progress) -> tuple[Array, Array, Array]:
        """The best of the plain chirp and some random commands, then varied piece by piece as long as that helps."""
        best = self.plain()
        ends = np.linspace(*PLAIN, PIECES + 1)
        kept = [[_Piece(False, 1.0, 0.0, a, b) for a, b in pairwise(ends.tolist())] for _ in self.joints]
        for k in range(self.how.tries):
            progress(f"commands of {label_of(self.joints)}", float(k), float(self.how.tries))
            pieces = [list(own) for own in kept]
            if 0 < k < self.how.tries // 4:
                pieces = [[_drawn(rng) for _ in range(PIECES)] for _ in self.joints]
            elif k:
                j, part = int(rng.integers(len(pieces))), int(rng.integers(PIECES))
                pieces[j][part] = _drawn(rng) if rng.random() < STEPS else _varied(pieces[j][part], rng)
            found = self.largest(pieces)
            if found is not None and (best is None or self.score(found[1]) < self.score(best[1])):
                best, kept = found, pieces
        if best is None:
            raise IdentificationError(
                "no command keeps its limits.",
                where=", ".join(self.joints),
                hint="Gravity or friction alone may need more than the force, or the middle of the range is out of reach.",
            )
        return best


def _slewed(r: Array, most: float) -> Array:
    """r with changes of at most `most` from sample to sample."""
    if not np.isfinite(most):
        return r
    out = r.copy()
    for k in range(1, len(out)):
        out[k] = out[k - 1] + min(max(out[k] - out[k - 1], -most), most)
    return out


@checked
def design_drive_commands(
    machine: Machine,
    ranges: Mapping[str, DriveRange],
    how: DriveExcitation | None = None,
    *,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> DrivePlan:
    """Commands of all joints for a recording from which the drives are to be identified.

    Parameters
    ----------
    machine : Machine
        Open, on a fixed base, with assumed values of the drives.
    ranges : mapping
        What each joint may do, by its name.
    how : DriveExcitation, optional
        What is asked for, how long it may take, and what is known of the noise.
    rng : numpy.random.Generator
        Where commands come from: the same generator gives the same plan.
    progress : callable (task, done, total), optional
        Called as commands are tried.

    Returns
    -------
    DrivePlan
        Commands with the deviations that they promise, beside those of a plain chirp within the same limits.

    Raises
    ------
    IdentificationError
        Nothing that is asked for can be estimated, a joint has no range, or no command keeps the limits.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> leg = vd.load_model("veridyn:leg.yaml")
    >>> ranges = {"thigh": vd.estimators.DriveRange(low=0.2, high=1.6), "calf": vd.estimators.DriveRange(low=-2.2, high=-1.0)}
    >>> how = vd.estimators.DriveExcitation(ask=("kp",), duration=5.0, tries=2)
    >>> plan = vd.estimators.design_drive_commands(leg, ranges, how, rng=np.random.default_rng(0))
    >>> plan.command.shape, sum(n.determined for n in plan.numbers if n.asked)
    ((1001, 2), 2)
    """
    how = how or DriveExcitation()
    machine = with_drives(machine, how.kp, how.kd, how.ticks)
    check_drives(machine)
    _check(machine, ranges, how)
    groups = groups_of_joints(machine)
    designs = [_Design(machine, joints, ranges, how) for joints in groups]
    names = [u.name for d in designs for u in d.unknowns]
    unknown = [a for a in how.ask if a not in KEYS and a not in names]
    if unknown or not any(d.asked for d in designs):
        word = unknown[0] if unknown else ", ".join(how.ask)
        hint = did_you_mean(word, [*KEYS, *names])
        raise IdentificationError(
            f"'{word}' is no number of these drives that can be estimated.", where="ask", hint=hint
        )
    command = np.zeros((len(designs[0].t), machine.n))
    numbers: list[PlannedNumber] = []
    opened: list[OpenDirection] = []
    used: dict[str, float] = {}
    with one_blas_thread():
        for d in designs:
            found, C, shares = d.best(rng, progress)
            usual = d.plain()
            command[:, [machine.coordinates.index(j) for j in d.joints]] = found
            plain = np.full(len(d.unknowns), np.nan) if usual is None else np.sqrt(np.diag(usual[1]))
            numbers += _numbers(d.unknowns, d.asked, np.sqrt(np.diag(C)), plain)
            opened += open_directions(d.unknowns, C)
            used |= {j: float(x.max()) for j, x in zip(d.joints, shares, strict=True)}
    return DrivePlan(
        name=machine.name,
        joints=machine.coordinates,
        kinds=tuple(machine.kinds[c] for c in machine.coordinates),
        t=designs[0].t,
        command=command,
        numbers=tuple(numbers),
        open=tuple(opened),
        used=used,
        noise=how.noise,
        memory=how.memory,
    )


def _numbers(unknowns: Sequence[DriveUnknown], asked: Sequence[int], left: Array, plain: Array) -> list[PlannedNumber]:
    return [
        PlannedNumber(
            name=u.name,
            key=u.key,
            joints=u.joints,
            unit=u.unit,
            value=u.value(0.0),
            sigma=float(left[k]) * u.slope(0.0),
            prior=u.prior,
            prior_sigma=u.slope(0.0),
            left=float(left[k]),
            assumed=not u.stated,
            plain_sigma=float(plain[k]) * u.slope(0.0),
            asked=k in asked,
        )
        for k, u in enumerate(unknowns)
    ]


def _check(machine: Machine, ranges: Mapping[str, DriveRange], how: DriveExcitation) -> None:
    faults = Faults()
    for c in machine.coordinates:
        x = ranges.get(c)
        where = part_at("joint", c)
        if x is None or not (np.isfinite(x.low) and np.isfinite(x.high)):
            faults.add("it has no range to move in.", where=where, expected="two positions, rad or m")
        elif not x.low < x.high:
            faults.add("its range is empty.", where=where, found=f"{x.low:g} to {x.high:g}")
        elif not (x.speed > 0.0 and x.force > 0.0):
            faults.add("its speed and force must be above zero.", where=where)
    for name in ranges:
        if name not in machine.coordinates:
            hint = did_you_mean(name, machine.coordinates)
            faults.add(f"'{name}' is no coordinate.", where="ranges", hint=hint)
    if how.duration < PIECES * 2.0 * REST:
        faults.add("it is too short.", where="duration", expected=f"{PIECES * 2.0 * REST:g} s or more")
    faults.raise_if_any(IdentificationError, machine.name)
