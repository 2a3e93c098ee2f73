"""Mistakes that fit too well to be noticed, and are looked for: columns swapped or turned round, wrong units, wrong gravity.

Each check is a question to some hundred samples of the training log (:mod:`veridyn.identify.diagnosis.evidence`): would the data
fit far better if this one thing were otherwise? A good fit has no such thing, whatever its residual; a mistake has one that explains it.
What needs no data but physics (friction that drives, inertia below zero) stands in :mod:`veridyn.identify.diagnosis.plausible`.

What was not looked for is listed with the reason: a report without findings says little where the reader does not know what was checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.errors import Fault
from veridyn.identify.diagnosis.evidence import Evidence
from veridyn.identify.diagnosis.geometry import LOOK, MISSING, SIGN, best_gravity, best_place, other_gearings
from veridyn.identify.found_cause import FoundCause
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
DEGREES = 180.0 / np.pi
FAR_BETTER = 0.5  # of the error is left where something else explains the data (chosen)
MIN_ERROR = 0.02  # error below which nothing is checked, unless the rows contradict each other (chosen)
# Times what each row leaves by itself: more is a contradiction (chosen; real arms in order have 1.1 to 1.2)
CONTRADICTION_RATIO = 1.3
CONTRADICTION = "rows contradict"  # the kind of that mistake
ASKED_TOGETHER = 32  # questions whose columns are computed in one pass
CLEAR_ERROR = 0.1  # error below which a fast diagnosis asks about forces only: wrong positions leave more (chosen)
UNEXPLAINED = 0.6  # of a row's force is left over: the model does not explain it (chosen)
UNEXPLAINED_FAST = 0.5  # the same for a fast diagnosis, which sees forces as measured and not behind a filter (chosen)
UNEXPLAINED_IN_ALL = 0.1  # of all forces together is left over: the same (chosen)
PLAUSIBLE_GRAVITY = (8.0, 12.0)  # m/s^2: plausible sizes of gravity (chosen)
BETTER_ERROR_SHARE = 0.7  # of the error is left with another gravity or geometry, where that is reported (chosen)
NOISE_MARGIN = 1.1  # of the noise, which is known to some percent
GRAVITY_OFF = 0.15  # share by which the gravity that fits best may differ from the model's (chosen)
GEARS = (SIGN, MISSING)
FALSE_ALARMS = 0.005  # share of logs in order (chosen)
STRONG = 10.0  # of 2 Δ log L: "very strong" evidence (Kass and Raftery, 1995, JASA 90(430))
MAX_LISTED = 6  # readings that are listed


@dataclass(frozen=True)
class Mistake:
    """`kind`: one of the words of this module; `fault`: the possible mistake, where, and the evidence for it; `measured`: the same in
    numbers, where there are some."""

    kind: str
    fault: Fault
    measured: FoundCause | None = None

    def finding(self, rank: int) -> FoundCause:
        """As one of several."""
        own = self.measured or FoundCause(cause=self.kind, place=self.fault.where, rank=rank)
        return replace(own, rank=rank, message=str(self.fault))

    @classmethod
    def of(cls, kind: str, what: str, where: str, expected: str = "", found: str = "", hint: str = "") -> Mistake:
        return cls(kind, Fault(what, where, expected, found, hint))

    def __str__(self) -> str:
        return str(self.fault)


@dataclass(frozen=True, eq=False)
class _Question:
    """One thing that may be otherwise; without a motion where the loops of the machine cannot be closed for it."""

    kind: str
    where: str
    what: str
    hint: str
    motion: Motion | None


def unreached(e: Evidence) -> list[str]:
    """Questions about positions that cannot be checked, because the loops of the machine cannot be closed for them."""
    return [f"{q.where} ({q.kind})" for q in _all_questions(e) if q.motion is None and not q.kind.startswith("joint")]


@lru_cache(maxsize=1)
def _all_questions(e: Evidence) -> tuple[_Question, ...]:
    return tuple(_questions(e))


@checked
def find_mistakes(
    e: Evidence, apart: float = 1.0, progress: Progress = silent, *, fast: bool = False
) -> tuple[Mistake, ...]:
    """What would explain the data far better than the study as it stands, best first; else what nothing explains.

    `apart`: how much more all rows together leave unexplained than each by itself, σ of the weighted residual (26). Rows share
    parameters through the geometry of the machine, so a wrong length makes them contradict each other. `fast` leaves out gravity,
    geometry, the positions of closed machines and, where less than `CLEAR_ERROR` is unexplained, all positions and scales.
    """
    if not e.rows:
        return ()
    (as_given,) = e.errors([e.motion])
    if as_given <= MIN_ERROR and apart <= CONTRADICTION_RATIO:
        return ()
    if apart <= CONTRADICTION_RATIO and e.noise_error() > NOISE_MARGIN * BETTER_ERROR_SHARE * as_given:
        if fast and as_given * np.sqrt(len(e.rows)) < UNEXPLAINED_FAST:
            return ()  # no row leaves more than that
        # Nothing can explain far more.
        return tuple(_unexplained(e, UNEXPLAINED_FAST, 1.0) if fast else _unexplained(e))
    if fast:
        unclear = as_given > CLEAR_ERROR or apart > CONTRADICTION_RATIO
        every = tuple(_questions(e, positions=unclear and not e.machine.closed, scales=unclear))
    else:
        every = _all_questions(e)
    answers = _answers(e, [q for q in every if q.motion is not None], progress)
    best = min(answers, key=lambda a: a[0], default=None)
    found = [] if fast else _gravity(e, as_given, as_given if best is None else best[0])
    if not found and best is not None and best[0] < FAR_BETTER * as_given:
        # What explains nearly as much as the best is reported as well: two simple mistakes may look alike.
        for error, q in sorted(answers, key=lambda a: a[0]):
            if error < FAR_BETTER * as_given and error < 1.5 * best[0]:
                evidence = f"{100 * as_given:.3g} % of the forces unexplained, {100 * error:.3g} % if it were otherwise"
                gain = e.gain(as_given, error)
                fault = Fault(q.what, q.where, found=evidence, hint=q.hint)
                found.append(Mistake(q.kind, fault, FoundCause(cause=q.kind, place=q.where, rank=1, evidence=gain)))
    found = found or _other_gears(e, [q for q in every if q.kind in GEARS])
    if not found:
        found = _unexplained(e, UNEXPLAINED_FAST, 1.0) if fast else _geometry(e, as_given, progress) or _unexplained(e)
    if not found and apart > CONTRADICTION_RATIO:
        found = [_contradiction(apart)]
    return tuple(found)


def _other_gears(e: Evidence, questions: Sequence[_Question]) -> list[Mistake]:
    """Gears and couplings that are likelier otherwise, whatever their share of the forces: friction may be most of these.

    Models of the same size: under the right one another is likelier by x with a chance of at most exp(−x/2), Markov's inequality of a
    likelihood ratio, shared out over the questions. Those that are as likely as the best are named with it.
    """
    if not questions:
        return []
    gains = np.array(e.likelihoods([q.motion for q in questions if q.motion is not None]))
    best = int(np.argmax(gains))
    if gains[best] < STRONG + 2.0 * np.log(len(questions) / FALSE_ALARMS):
        return []
    alike = [k for k in np.argsort(-gains) if k != best and gains[k] > gains[best] - STRONG]
    q = questions[best]
    also = "; ".join(f"{questions[k].where}: {questions[k].what}" for k in alike)
    hint = f"{q.hint} This log does not tell it from these: {also}" if also else q.hint
    others = tuple((questions[k].kind, questions[k].where) for k in alike)
    evidence = FoundCause(cause=q.kind, place=q.where, rank=1, evidence=float(gains[best]), alternatives=others)
    found = f"2 Δ log L = {gains[best]:.3g} in favour of it"
    return [Mistake(q.kind, Fault(q.what, q.where, found=found, hint=hint), evidence)]


def _answers(e: Evidence, questions: Sequence[_Question], progress: Progress) -> list[tuple[float, _Question]]:
    """The error that each question would leave; a group of them at a time, so that memory stays small."""
    answers: list[tuple[float, _Question]] = []
    for k in range(0, len(questions), ASKED_TOGETHER):
        progress("looking for mistakes", float(k), float(len(questions)))
        group = questions[k : k + ASKED_TOGETHER]
        answers += zip(e.errors([q.motion for q in group if q.motion is not None]), group, strict=True)
    progress("looking for mistakes", float(len(questions)), float(len(questions)))
    return answers


def _geometry(e: Evidence, as_given: float, progress: Progress) -> list[Mistake]:
    """The one place of a body that would explain the data far better."""
    place = best_place(e, progress)
    if place is None or place.error > BETTER_ERROR_SHARE * as_given:
        return []
    fault = Fault(
        "it seems to sit elsewhere than the model says.",
        place.where,
        expected=f"the place in the model, which leaves {100 * as_given:.3g} % of the forces unexplained",
        found=f"{place.words}, which leaves {100 * place.error:.3g} %",
        hint="Look at the lengths, twists and zeros of the model, and whether it is that of this machine.",
    )
    evidence = e.gain(as_given, place.error)
    measured = FoundCause(cause="geometry", place=place.where, rank=1, evidence=evidence, size=place.amount)
    return [Mistake("geometry", fault, measured)]


def _contradiction(apart: float) -> Mistake:
    return Mistake.of(
        CONTRADICTION,
        "the rows contradict each other: together they leave more unexplained than each by itself.",
        where="rows",
        expected=f"at most {CONTRADICTION_RATIO:g} times as much",
        found=f"{apart:.3g} times",
        hint="Look at the geometry of the model, and at the scale and delay of each force.",
    )


def _unexplained(e: Evidence, limit: float = UNEXPLAINED_IN_ALL, of_row: float = UNEXPLAINED) -> list[Mistake]:
    """That more than `limit` of all forces is left over, or `of_row` of a row's."""
    each, sizes = e.beyond_noise()
    in_all = float(np.linalg.norm(each * sizes) / np.linalg.norm(sizes))
    if in_all < limit and each.max() < of_row:
        return []
    listed = f"{100 * in_all:.0f} % in all; " + ", ".join(f"{row} {100 * x:.0f} %" for row, x in zip(e.rows, each))
    return [
        Mistake.of(
            "unexplained",
            "the model does not explain these forces, and no simple mistake that was tried does.",
            where="rows",
            expected=f"at most {100 * limit:.0f} % of all forces left over, and {100 * of_row:.0f} % of any row's",
            found=listed,
            hint="Check the geometry of the model, the order of its joints, and whether this log is of this machine.",
        )
    ]


def _questions(e: Evidence, positions: bool = True, scales: bool = True) -> Iterator[_Question]:
    """All that is asked; without `positions` and `scales`, which take longer, about the signs and places of forces alone."""
    machine, n = e.machine, e.machine.n
    names, kinds = machine.coordinates, machine.coordinate_kinds
    given, own = [names.index(c) for c in e.given], [names.index(r) for r in e.rows]
    for i, j in combinations(given, 2):
        T = np.eye(n)
        T[[i, j]] = T[[j, i]]
        pair = f"'{names[i]}' and '{names[j]}'"
        if kinds[i] != kinds[j]:
            continue
        swapped, look = "these columns seem to be swapped.", "Look at which column belongs to which joint."
        if positions:
            yield _Question("positions swapped", f"positions of {pair}", swapped, look, e.with_coordinates(T))
        if i in own and j in own:
            yield _Question("forces swapped", f"forces of {pair}", swapped, look, e.with_forces(T))
            if positions:
                look = "Look at the order of the joints in the model and in the log."
                what = "these joints seem to be swapped."
                yield _Question("joints swapped", f"coordinates {pair}", what, look, e.with_joints(T))
    for i in sorted({*given, *own}):
        T = np.eye(n)
        T[i, i] = -1.0
        turned = "its sign seems to be wrong."
        if i in given and positions:
            hint = "Write times: -1 at its column, or turn the axis of the joint in the model."
            yield _Question("position turned round", f"position of '{names[i]}'", turned, hint, e.with_coordinates(T))
        if i in own:
            hint = "Write times: -1 at its column."
            yield _Question("force turned round", f"force of '{names[i]}'", turned, hint, e.with_forces(T))
            if i in given and positions:
                yield _Question(
                    "joint turned round",
                    f"coordinate '{names[i]}'",
                    "position and force seem to count the other way than the model's axis.",
                    "Turn the axis of the joint in the model, or write times: -1 at both columns.",
                    e.with_joints(T),
                )
            if scales:
                yield from _other_scale(e, i)
    if positions:
        yield from _degrees(e)
        yield from _gears(e)


def _gears(e: Evidence) -> Iterator[_Question]:
    """Other signs of gears, and couplings that are missing, of a machine without loops."""
    if e.machine.closed:
        return
    both = tuple(c for c in e.machine.coordinates if c in e.given and c in e.rows)
    for g in other_gearings(e.machine, both):
        moved, forced = e.with_coordinates(g.change), e.with_forces(g.forces)
        assert moved is not None  # only loops refuse other coordinates
        yield _Question(g.kind, g.where, g.what, LOOK, replace(moved, forces=forced.forces, signals=forced.signals))


def _degrees(e: Evidence) -> Iterator[_Question]:
    """Angles that are degrees though the study says radians, or the reverse: of one joint, and of all."""
    names, kinds = e.machine.coordinates, e.machine.coordinate_kinds
    turning = [k for k, kind in enumerate(kinds) if kind == "turning" and names[k] in e.given]
    groups = [[k] for k in turning] + ([turning] if len(turning) > 1 else [])
    for group in groups:
        for factor, what in (
            (1.0 / DEGREES, "it seems to be in degrees, and is declared as radians."),
            (DEGREES, "it seems to be in radians, and is declared as degrees."),
        ):
            T = np.eye(e.machine.n)
            for k in group:
                T[k, k] = factor
            where = f"position of '{names[group[0]]}'" if len(group) == 1 else "positions of all turning joints"
            yield _Question("angle unit", where, what, "Correct the unit of the column.", e.with_coordinates(T))


def _other_scale(e: Evidence, i: int) -> Iterator[_Question]:
    """One force is off by a factor: the one that fits the other rows best, found as one more unknown."""
    if len(e.rows) < 2:
        return
    factor = best_factor(e, i)
    if not (factor > 1.5 or 0.0 < factor < 1.0 / 1.5):
        return
    T = np.eye(e.machine.n)
    T[i, i] = factor
    yield _Question(
        "force scale",
        f"force of '{e.machine.coordinates[i]}'",
        f"it seems to be {1.0 / factor:.3g} times what it should be beside the others.",
        "Is it measured at the motor (a gear ratio), in another unit, or with another torque constant?",
        e.with_forces(T),
    )


def best_factor(e: Evidence, i: int) -> float:
    """The factor of one coordinate's force that makes it agree best with the other rows.

    The rows share parameters: with the other rows fixed, the row says λ y_i = W_i φ, so λ is one more unknown of least squares.
    """
    j = e.rows.index(e.machine.coordinates[i])
    total = 1.0
    for _ in range(3):  # rows are weighed by their own size, so a wrong size must first be put about right
        T = np.eye(e.machine.n)
        T[i, i] = total
        moments, y = e.reduced(e.with_forces(T))
        total *= moments.factor(y, j)
        if not 0.0 < abs(total) < 1e6:
            break
    return total


def _gravity(e: Evidence, as_given: float, otherwise: float) -> list[Mistake]:
    """The gravity that fits best, where it is far from the model's and explains much more than that and than anything else."""
    found = best_gravity(e)
    if found is None or found.error > BETTER_ERROR_SHARE * as_given or found.error > otherwise:
        return []
    model = np.asarray(e.machine.gravity, dtype=np.float64)
    size = float(np.linalg.norm(found.gravity))
    if (
        not PLAUSIBLE_GRAVITY[0] < size < PLAUSIBLE_GRAVITY[1]
        or float(np.linalg.norm(found.gravity - model)) < GRAVITY_OFF * size
    ):
        return []  # what is no gravity of this planet explains nothing
    return [
        Mistake.of(
            "gravity",
            "gravity seems to be other than the model says.",
            where="model.gravity",
            expected=f"({_listed(model)}) m/s^2 by the model, which leaves {100 * as_given:.3g} % of the forces unexplained",
            found=f"({_listed(found.gravity)}), which leaves {100 * found.error:.3g} %",
            hint="Look at how the machine is mounted (a wall, a ceiling), and at the frame the model is written in.",
        )
    ]


def _listed(g: Array) -> str:
    return ", ".join(f"{x:.3g}" for x in g)


def omitted(e: Evidence, apart: float, delays: bool, speeds: bool, streamed: bool) -> tuple[str, ...]:
    """In words. `apart` as for :func:`find_mistakes`; whether delays were looked for, speeds are
    measured, and the log is read in blocks."""
    out = []
    if not e.rows:
        return ("Everything that needs measured forces: no row measures any.",)
    error = e.error()
    if error <= MIN_ERROR and apart <= CONTRADICTION_RATIO:
        out.append(
            "Swapped or turned columns, other units and scales, another gravity, bodies that sit elsewhere: these are checked where "
            f"more than {100 * MIN_ERROR:g} % of the forces is unexplained or the rows contradict each other, "
            f"which is not so ({100 * error:.2g} %)."
        )
    else:
        never = unreached(e) if e.machine.closed else []
        if never:
            listed = ", ".join(never[:MAX_LISTED]) + (
                f" and {len(never) - MAX_LISTED} more" if len(never) > MAX_LISTED else ""
            )
            out.append(
                f"Readings of the log with which no way to close the loops was found, so that they explain nothing: {listed}."
            )
        if e.machine.base == "free":
            out.append("Another gravity: the acceleration of the base, gravity included, is measured.")
    if not delays:
        out.append("Delays of forces: the study says clock: {delays: ignore}.")
    if not speeds:
        out.append("Speeds that contradict positions: none are measured.")
    if e.machine.parameters.missing():
        out.append("Forces beside those that the model's own values predict: not all of its parameters have values.")
    if streamed:
        out.append("Anything beyond the first block of each log, which is read in blocks.")
    return tuple(out)
