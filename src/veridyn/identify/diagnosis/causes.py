"""Causes that a diagnosis asks about: each is columns beside the regressor, a place, and words.

A cause is of `structure`, what machines have and a model may lack, or of a sensor, its clock or the geometry that the model states. Where a
cause has options (speeds, times, moments), each is a question of its own, and the best of them is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault
from veridyn.identify.diagnosis import structure as s
from veridyn.identify.diagnosis.drives import acting_alone, drive_named, motor_of, moving_alone, turns_round
from veridyn.identify.diagnosis.score_test import MACHINE
from veridyn.identify.diagnosis.signature_samples import Samples
from veridyn.model.machine import Machine

ENCODER_ZERO, DRIFTING_ENCODER = "encoder zero", "encoder drift"
FORCES = "forces"  # the place of what is wrong with all of them
MOMENTS = 16  # at which a load may be taken up: a sixteenth of a log beside the right one costs a few per cent of the evidence
POSITIVE = (
    s.ROTOR,
    s.DRY,
    s.VISCOUS,
    s.STRIBECK,
    s.LOAD_FRICTION,
    s.PRESLIDING,
    s.FLEXIBLE,
)  # what is below zero is something else
STRUCTURE = (*POSITIVE, s.ASYMMETRIC, s.SPRING, s.CABLE, s.WARM_UP, s.GRAVITY, s.PAYLOAD)

PLURAL = {
    "encoder zero": "zeros of the positions",
    "force scale": "scales of the forces",
    "force offset": "offsets of the forces",
    "force drift": "drifts of the forces",
    s.LATE_FORCE: "delays of the forces",
    "machine size": "distances between joints",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Cause:
    """`columns` (N, R, k) of a cause of this `kind` at a coordinate, or at the machine as a whole; `option` of its grid.

    `beside` (N, R, m): columns of what looks like it and is none, beside which it must be seen. `also`: further places that it is asked at
    together, whose columns follow.
    """

    kind: str
    where: str
    columns: Array
    option: int = 0
    beside: Array | None = None
    also: tuple[str, ...] = ()

    @property
    def structural(self) -> bool:
        return self.kind in STRUCTURE

    @property
    def name(self) -> tuple[str, str]:
        return self.kind, self.where


def causes_of(x: Samples, values: Array) -> Iterator[Cause]:
    """All causes with columns of their own, for a fit with these base parameters (p,).

    Where motors turn with several joints, forces are measured at the motors.
    """
    acting, moving = ({x.coordinates[k] for k in f(x.drives)} for f in (acting_alone, moving_alone))
    coupled = {c for d in x.drives for c, a in zip(x.coordinates, d.turns, strict=True) if a}
    for kind, where, column in x.signatures(values):
        if where not in (moving if kind == ENCODER_ZERO else coupled):
            yield Cause(kind=kind, where=where, columns=column[:, :, None])
    by_option: dict[tuple[str, int], list[Array]] = {}
    for (kind, option, _), lines in x.own.items():
        by_option.setdefault((kind, option), []).append(lines)
    for (kind, option), parts in by_option.items():
        sensor = kind in (s.LOW_PASS, s.LATE_FORCE, s.IN_STEPS)
        even = by_option.get((s.ZERO_PHASE, option % s.WHOLE)) if sensor and kind != s.IN_STEPS else None
        for j, row in enumerate(x.rows):
            if kind == s.ZERO_PHASE or option >= s.EARLY or not x.measured[j] or row in (coupled if sensor else acting):
                continue
            columns, beside = (None if lines is None else _in_row(x, j, lines) for lines in (parts, even))
            assert columns is not None
            yield Cause(kind=kind, where=row, columns=columns, option=option, beside=beside)
    yield from _encoders(x, moving)
    yield from _one_clock(x)
    at_places: dict[tuple[str, str, int], list[Array]] = {}
    for line, column in x.whole.items():
        at_places.setdefault((line.kind, line.where, line.option), []).append(column)
    for (kind, where, option), parts in at_places.items():
        columns = np.stack(parts, axis=2)
        if kind == s.GRAVITY:
            # Moments of the first body, which an upright axis does not show, act as its angle does.
            first = np.zeros((*x.y.shape, 2))
            first[:, 0] = np.stack([x.own[s.CABLE, 0, k][:, 0] for k in range(2)], axis=1)
            yield Cause(kind=kind, where=MACHINE, columns=np.concatenate([columns, first], axis=2))
        elif kind == s.PAYLOAD:
            for k in range(1, MOMENTS):
                late = columns.copy()
                late[: k * len(late) // MOMENTS] = 0.0
                yield Cause(kind=kind, where=MACHINE, columns=late, option=k)
        elif kind != s.ZERO_PHASE:
            lags = kind == s.LOW_PASS or (kind == s.LATE_FORCE and option >= s.WHOLE)
            even = at_places.get((s.ZERO_PHASE, where, option % s.WHOLE)) if lags else None
            yield Cause(
                kind=kind,
                where=where,
                columns=columns,
                option=option,
                beside=None if even is None else np.stack(even, axis=2),
            )


def _in_row(x: Samples, j: int, lines: Sequence[Array]) -> Array:
    """Columns (N, R, k) of lines that act in row j alone."""
    columns = np.zeros((*x.y.shape, len(lines)))
    columns[:, j] = np.stack([line[:, j] for line in lines], axis=1)
    return columns


def _one_clock(x: Samples) -> Iterator[Cause]:
    """All forces late by one delay: recorded by another clock than the positions."""
    if np.count_nonzero(x.measured) < 2:
        return
    yield Cause(kind=s.LATE_FORCE, where=MACHINE, columns=(-x.rates * x.measured)[:, :, None])
    for (kind, option, _), line in x.own.items():
        if kind == s.LATE_FORCE:
            column, even = (v * x.measured for v in (line, x.own[s.ZERO_PHASE, option % s.WHOLE, 0]))
            yield Cause(kind=kind, where=MACHINE, columns=column[:, :, None], option=option, beside=even[:, :, None])


def _encoders(x: Samples, moving: set[str]) -> Iterator[Cause]:
    """Encoders that drift, and those of motors that turn with several joints."""
    clock = np.divide(x.clock, x.ones, out=np.zeros_like(x.clock), where=x.ones > 0.0)
    for c, column in x.turned.items():
        if c != MACHINE and c not in moving:
            yield Cause(kind=DRIFTING_ENCODER, where=c, columns=(column * clock)[:, :, None])
    if x.turned:
        for d in x.drives:
            column = np.sum([a * x.turned[c] for a, c in zip(d.moves, x.coordinates, strict=True) if a], axis=0)
            yield Cause(kind=ENCODER_ZERO, where=d.name, columns=column[:, :, None])
            yield Cause(kind=DRIFTING_ENCODER, where=d.name, columns=(column * clock)[:, :, None])


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What was found: its `size` c with deviation `sigma` and score `z`; it shifts the parameter `moved` by `shift` deviations.

    `evidence`: 2 Δ log L, the gain in likelihood of the whitened equations with its `columns` appended; `option` of its grid.
    `also`: further places that have it; `z` and `evidence` are of all of them together. `unshown`: the machine has it by its description,
    and the log neither shows nor excludes as much as would shift a parameter so far.
    """

    kind: str
    where: str
    size: float
    sigma: float
    z: float
    shift: float
    moved: str
    evidence: float = 0.0
    columns: int = 1
    option: int = 0
    also: tuple[str, ...] = ()
    unshown: bool = False

    @property
    def structural(self) -> bool:
        return self.kind in STRUCTURE


@dataclass(frozen=True)
class Words:
    """What a cause says: `what` is wrong, at which `place`, what was `expected` and `found`, and what to do."""

    what: str
    place: str
    expected: str
    found: str
    hint: str

    def fault(self, also: str = "", evidence: str = "") -> Fault:
        return Fault(self.what, self.place, self.expected, f"{self.found}{evidence}", f"{self.hint}{also}")


@dataclass(frozen=True)
class _Place:
    """A joint, or a motor that acts on several, in words and units; `on`: the coordinates of an element there."""

    name: str
    turning: bool
    on: str
    motor: bool = False

    @property
    def spoken(self) -> str:
        return f"{'motor' if self.motor else 'joint'} '{self.name}'"

    @property
    def angle(self) -> str:
        return "rad" if self.turning else "m"

    @property
    def force(self) -> str:
        return "N*m" if self.turning else "N"

    @property
    def inertia(self) -> str:
        return "kg*m^2" if self.turning else "kg"

    def element(self, kind: str) -> str:
        return f"{{kind: {kind}, on: {self.on}}}"


def words_of(machine: Machine, d: Damage) -> Words:
    """In words: what, where, how much, and what to write or try."""
    if d.where == MACHINE:
        return _OF_MACHINE[d.kind](machine, d)
    drive = drive_named(machine, d.where)
    on = d.where
    if drive is not None:
        listed = [f"{c}: {a:g}" for c, a in zip(machine.coordinates, drive.turns, strict=True) if a]
        on = f"{{{', '.join(listed)}}}"
    at = _Place(place_of(machine, d), turns_round(machine, d.where), on, drive is not None)
    return _OF_JOINT[d.kind](at, d)


def place_of(machine: Machine, d: Damage) -> str:
    """A coordinate, or a motor: one that turns a joint alone has the sensors of that joint."""
    if d.structural or d.where not in machine.coordinates:
        return d.where
    return motor_of(machine, d.where) or d.where


def _size(d: Damage, unit: str, factor: float = 1.0) -> str:
    return f"{factor * d.size:.3g} ± {factor * d.sigma:.2g} {unit}".rstrip()


def _element(what: str, kind: str, unit: Callable[[_Place], str]) -> Callable[[_Place, Damage], Words]:
    """Structure that an element of the model stands for."""

    def words(at: _Place, d: Damage) -> Words:
        hint = f"Add the element {at.element(kind)} to the model, and identify again."
        return Words(what, at.spoken, "a model with it", _size(d, unit(at)), hint)

    return words


def _stribeck(at: _Place, d: Damage) -> Words:
    hint = f"Add the element {at.element('stribeck')} to the model, or ask for friction: {{terms: [stribeck]}} in the study."
    what = "its friction falls with speed, which the model does not have."
    return Words(what, at.spoken, "a model with it", _size(d, at.force), hint)


def _load_friction(at: _Place, d: Damage) -> Words:
    what = "its friction grows with the load of its gear, which the model does not have."
    hint = "Ask for friction: {terms: [load]} in the study (friction_ladder in Python), and identify again."
    return Words(what, at.spoken, "a model with it", _size(d, f"{at.force} for each {at.force} of load"), hint)


def _presliding(at: _Place, d: Damage) -> Words:
    what = "its dry friction yields before it slides: behind reversals it grows with the way, which the model does not have."
    distance = s.PRESLIDING_DISTANCES[d.option]
    found = f"{_size(d, at.force)}, over about {1e3 * distance:g} m{at.angle}"
    hint = (
        "Leave samples near reversals out, with a dead zone of the speed, or identify by output error with the element "
        f"{{kind: lugre, on: {at.on}, deflection: {distance:g}, time: 0.001}}."
    )
    return Words(what, at.spoken, "friction that turns with the speed", found, hint)


def _warm_up(at: _Place, d: Damage) -> Words:
    what = "its friction changes along the log, as a gear does that warms up."
    hint = "Warm the machine up before recording, leave the first part of the log out, or record the temperature of the gear."
    found = f"{_size(d, at.force)} more at the start than behind {s.WARM_UP_TIMES[d.option]:g} of the log"
    return Words(what, at.spoken, "friction that stays", found, hint)


def _flexible(at: _Place, d: Damage) -> Words:
    what = "its position differs from the link's by what the joint gives way under load: it is flexible."
    stiffness = 1.0 / d.size if d.size > 0.0 else np.inf
    found = f"{_size(d, f'{at.angle}/({at.force})')}, a stiffness of {stiffness:.3g} {at.force}/{at.angle}"
    hint = (
        "Model motor and link as two bodies with a spring between, record the link's position, or record slower motion."
    )
    return Words(what, at.spoken, "a stiff joint", found, hint)


def _cable(at: _Place, d: Damage) -> Words:
    what = "a force acts on it that follows its angle, as a cable, a hose or a counterweight pulls."
    hint = "Add its law to the model, e.g. {kind: law, on: " + at.on + ", law: sin(c)}, or tie the cable up."
    return Words(what, at.spoken, "a model with it", _size(d, at.force), hint)


def _force_scale(at: _Place, d: Damage) -> Words:
    hint = "Look at its torque constant or gain, its gear ratio and the calibration of its sensor."
    found = f"{1.0 + d.size:.4g} ± {d.sigma:.2g}"
    return Words("it seems to be off by a factor beside the others.", f"force of '{at.name}'", "1", found, hint)


def _late_force(at: _Place, d: Damage) -> Words:
    what = "it is late against the positions." if d.size > 0.0 else "it is early: positions are late against it."
    hint = (
        "Look at the clocks and filters of both; a study takes delays out with clock: {delays: correct}. "
        "Friction that yields before it slides looks alike: a dead zone leaves it out."
    )
    return Words(what, f"force of '{at.name}'", "channels on one clock", _size(d, "ms", 1e3), hint)


def _one_delay(_machine: Machine, d: Damage) -> Words:
    what = f"measured forces are {'late' if d.size > 0.0 else 'early'} against the positions, all by one delay."
    hint = "Write clock: {delays: correct} to take it out, and look at the clocks of both."
    return Words(what, FORCES, "channels on one clock", _size(d, "ms", 1e3), hint)


def _low_pass(at: _Place, d: Damage) -> Words:
    what = "it lags as behind a low-pass: a drive that filters the torque it reports."
    hint = "Look for the filter of the drive and switch it off, or pass the positions through the same one."
    found = f"a time constant of {_size(d, 'ms', 1e3)}"
    return Words(what, f"force of '{at.name}'", "a force as it acts", found, hint)


def _in_steps(at: _Place, d: Damage) -> Words:
    what = "it is rounded to steps that its residual shows: it has few levels, multiples of the step."
    hint = (
        "Record or export the column with more digits; rounding of a slow force looks like friction that is not there."
    )
    found = f"{_size(d, 'of what rounding leaves of the force of the fit')}"
    return Words(what, f"force of '{at.name}'", "steps below its noise", found, hint)


def _force_drift(at: _Place, d: Damage) -> Words:
    hint = "Warm up the machine and its sensor, take the drift out of the channel, or cut the log into shorter ones."
    found = f"{_size(d, at.force)} from the start to the end"
    return Words("it seems to drift.", f"force of '{at.name}'", "a sensor with a steady zero", found, hint)


def _force_offset(at: _Place, d: Damage) -> Words:
    what = "it has an offset that the model does not have: its sensor's zero is off or drifts."
    hint = (
        "Take it out of the channel, or give the model an offset there, as friction that differs with direction "
        "(asymmetric friction) needs too: this log cannot tell these apart."
    )
    return Words(what, f"force of '{at.name}'", f"0 {at.force}", _size(d, at.force), hint)


def _encoder_zero(at: _Place, d: Damage) -> Words:
    what = "it seems to be measured from another zero than the model's."
    hint = (
        "Look at the zero of its encoder, and at that of the model: the angles of its joints and where its bodies sit."
    )
    return Words(what, f"position of '{at.name}'", f"0 {at.angle}", _size(d, at.angle), hint)


def _encoder_drift(at: _Place, d: Damage) -> Words:
    hint = "Look for a coupling that slips or counts that are lost, and cut the log into shorter ones."
    found = f"{_size(d, at.angle)} from the start to the end"
    return Words("its zero seems to drift.", f"position of '{at.name}'", "a steady zero", found, hint)


def _machine_size(machine: Machine, d: Damage) -> Words:
    what = "the distances between its joints do not fit this log: these bodies sit elsewhere."
    hint = "Look whether the model is of this machine and of its size, and at lengths in other units."
    found = f"{1.0 + d.size:.4g} ± {d.sigma:.2g} times those of the model"
    return Words(what, f"model '{machine.name}'", "the machine that was recorded", found, hint)


def _gravity(_machine: Machine, d: Damage) -> Words:
    what = "gravity seems to point another way than the model says: the machine stands on a slope, or its model leans."
    hint = "Level the machine, or write its gravity into the model."
    found = f"{np.degrees(d.size):.3g} ± {np.degrees(d.sigma):.2g}° beside it"
    return Words(what, "model.gravity", "the direction in the model", found, hint)


def _payload(machine: Machine, d: Damage) -> Words:
    what = "the last body changes its mass along the log: a load is taken up or set down."
    hint = "Cut the log there, and identify the load by itself (veridyn.payload)."
    found = f"{_size(d, 'kg')} from about {100 * d.option / MOMENTS:.0f} % of the log on"
    return Words(what, f"model '{machine.name}'", "one machine along the log", found, hint)


_OF_JOINT: Mapping[str, Callable[[_Place, Damage], Words]] = {
    s.ROTOR: _element("the inertia of its rotor is missing in the model.", "inertia", lambda at: at.inertia),
    s.DRY: _element("its dry friction is missing in the model.", "coulomb", lambda at: at.force),
    s.VISCOUS: _element(
        "its viscous friction is missing in the model.", "damper", lambda at: f"{at.force}*s/{at.angle}"
    ),
    s.ASYMMETRIC: _element(
        "its friction differs with direction, which the model does not have.",
        "damper_forward",
        lambda at: f"{at.force}*s/{at.angle}",
    ),
    s.SPRING: _element(
        "a spring acts on it that the model does not have.", "spring", lambda at: f"{at.force}/{at.angle}"
    ),
    s.STRIBECK: _stribeck,
    s.LOAD_FRICTION: _load_friction,
    s.PRESLIDING: _presliding,
    s.WARM_UP: _warm_up,
    s.FLEXIBLE: _flexible,
    s.CABLE: _cable,
    "force scale": _force_scale,
    s.LATE_FORCE: _late_force,
    s.LOW_PASS: _low_pass,
    s.IN_STEPS: _in_steps,
    "force drift": _force_drift,
    "force offset": _force_offset,
    ENCODER_ZERO: _encoder_zero,
    DRIFTING_ENCODER: _encoder_drift,
}
_OF_MACHINE: Mapping[str, Callable[[Machine, Damage], Words]] = {
    "machine size": _machine_size,
    s.GRAVITY: _gravity,
    s.PAYLOAD: _payload,
    s.LATE_FORCE: _one_delay,
}
KINDS = tuple(dict.fromkeys((*_OF_JOINT, *_OF_MACHINE)))
