"""Mistakes that fit too well to be noticed, and are looked for: columns swapped or turned round, wrong units, wrong gravity.

Each check is a question to some hundred samples of the training log (:mod:`veridyn.identify.diagnosis.evidence`): would the data
fit far better if this one thing were otherwise? A good fit has no such thing, whatever its residual; a mistake has one that explains it.
What needs no data but physics (friction that drives, inertia below zero) stands in :mod:`veridyn.identify.diagnosis.plausible`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.identify.diagnosis.evidence import Equations, Evidence
from veridyn.identify.diagnosis.geometry import best_place
from veridyn.identify.diagnosis.gravity import best_gravity
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
DEGREES = 180.0 / np.pi
FAR_BETTER = 0.5  # of the error is left where something else explains the data (chosen)
MIN_ERROR = 0.02  # error below which nothing is checked, unless the rows contradict each other (chosen)
CONTRADICTION_RATIO = (
    1.3  # times what each row leaves by itself: more is a contradiction (chosen; real arms in order have 1.1 to 1.2)
)
UNEXPLAINED = 0.6  # of a row's force is left over: the model does not explain it (chosen)
UNEXPLAINED_IN_ALL = 0.1  # of all forces together is left over: the same (chosen)
PLAUSIBLE_GRAVITY = (8.0, 12.0)  # m/s^2: plausible sizes of gravity (chosen)
BETTER_ERROR_SHARE = 0.7  # of the error is left with another gravity or geometry, where that is reported (chosen)
GRAVITY_OFF = 0.15  # share by which the gravity that fits best may differ from the model's (chosen)


@dataclass(frozen=True)
class Mistake:
    """`kind`: one of the words of this module; `fault`: the possible mistake, where, and the evidence for it."""

    kind: str
    fault: Fault

    def __str__(self) -> str:
        return str(self.fault)


@dataclass(frozen=True, eq=False)
class _Question:
    """One thing that may be otherwise."""

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


def find_mistakes(e: Evidence, apart: float = 1.0, progress: Progress = silent) -> tuple[Mistake, ...]:
    """What would explain the data far better than the study as it stands, best first; else what nothing explains.

    `apart`: how much more all rows together leave unexplained than each by itself, σ of the weighted residual (26). Rows share
    parameters through the geometry of the machine, so a wrong length makes them contradict each other.
    """
    if not e.rows:
        return ()
    as_given = e.error()
    if as_given <= MIN_ERROR and apart <= CONTRADICTION_RATIO:
        return ()
    questions = [q for q in _all_questions(e) if q.motion is not None]
    answers: list[tuple[float, _Question]] = []
    for k, question in enumerate(questions):
        progress("looking for mistakes", float(k), float(len(questions)))
        answers.append((e.error(motion=question.motion), question))
    progress("looking for mistakes", float(len(questions)), float(len(questions)))
    best = min(answers, key=lambda a: a[0], default=None)
    found = _gravity(e, as_given, as_given if best is None else best[0])
    if not found and best is not None and best[0] < FAR_BETTER * as_given:
        # What explains nearly as much as the best is reported as well: two simple mistakes may look alike.
        for error, q in sorted(answers, key=lambda a: a[0]):
            if error < FAR_BETTER * as_given and error < 1.5 * best[0]:
                evidence = f"{100 * as_given:.3g} % of the forces unexplained, {100 * error:.3g} % if it were otherwise"
                found.append(Mistake(q.kind, Fault(q.what, q.where, found=evidence, hint=q.hint)))
    found = found or _geometry(e, as_given, progress) or _unexplained(e)
    if not found and apart > CONTRADICTION_RATIO:
        found = [_contradiction(apart)]
    return tuple(found)


def _geometry(e: Evidence, as_given: float, progress: Progress) -> list[Mistake]:
    """The one place of a body that would explain the data far better."""
    place = best_place(e, progress)
    if place is None or place.error > BETTER_ERROR_SHARE * as_given:
        return []
    return [
        Mistake(
            "geometry",
            Fault(
                "it seems to sit elsewhere than the model says.",
                place.where,
                f"the place in the model, which leaves {100 * as_given:.3g} % of the forces unexplained",
                f"{place.words}, which leaves {100 * place.error:.3g} %",
                "Look at the lengths, twists and zeros of the model, and whether it is that of this machine.",
            ),
        )
    ]


def _contradiction(apart: float) -> Mistake:
    return Mistake(
        "rows contradict",
        Fault(
            "the rows contradict each other: together they leave more unexplained than each by itself.",
            "rows",
            f"at most {CONTRADICTION_RATIO:g} times as much",
            f"{apart:.3g} times",
            "Look at the geometry of the model, and at the scale and delay of each force.",
        ),
    )


def _unexplained(e: Evidence) -> list[Mistake]:
    equations = e.equations()
    each = np.linalg.norm(equations.solved()[1], axis=1)
    in_all = float(np.linalg.norm(each * equations.sizes) / np.linalg.norm(equations.sizes))
    if in_all < UNEXPLAINED_IN_ALL and each.max() < UNEXPLAINED:
        return []
    listed = f"{100 * in_all:.0f} % in all; " + ", ".join(f"{row} {100 * x:.0f} %" for row, x in zip(e.rows, each))
    return [
        Mistake(
            "unexplained",
            Fault(
                "the model does not explain these forces, and no simple mistake that was tried does.",
                "rows",
                f"at most {100 * UNEXPLAINED_IN_ALL:.0f} % of all forces left over, and {100 * UNEXPLAINED:.0f} % of any row's",
                listed,
                "Check the geometry of the model, the order of its joints, and whether this log is of this machine.",
            ),
        )
    ]


def _questions(e: Evidence) -> Iterator[_Question]:
    tree, n = e.tree, e.tree.n
    names, kinds = tree.coordinates, tree.coordinate_kinds
    given, own = [names.index(c) for c in e.given], [names.index(r) for r in e.rows]
    for i, j in combinations(given, 2):
        T = np.eye(n)
        T[[i, j]] = T[[j, i]]
        pair = f"'{names[i]}' and '{names[j]}'"
        if kinds[i] == kinds[j]:
            yield from _asked(
                "positions swapped",
                f"positions of {pair}",
                "these columns seem to be swapped.",
                "Look at which column belongs to which joint.",
                e.with_coordinates(T),
            )
            if i in own and j in own:
                yield from _asked(
                    "forces swapped",
                    f"forces of {pair}",
                    "these columns seem to be swapped.",
                    "Look at which column belongs to which joint.",
                    e.with_forces(T),
                )
                yield from _asked(
                    "joints swapped",
                    f"coordinates {pair}",
                    "these joints seem to be swapped.",
                    "Look at the order of the joints in the model and in the log.",
                    e.with_joints(T),
                )
    for i in sorted({*given, *own}):
        T = np.eye(n)
        T[i, i] = -1.0
        if i in given:
            yield from _asked(
                "position turned round",
                f"position of '{names[i]}'",
                "its sign seems to be wrong.",
                "Write times: -1 at its column, or turn the axis of the joint in the model.",
                e.with_coordinates(T),
            )
        if i in own:
            yield from _asked(
                "force turned round",
                f"force of '{names[i]}'",
                "its sign seems to be wrong.",
                "Write times: -1 at its column.",
                e.with_forces(T),
            )
            if i in given:
                yield from _asked(
                    "joint turned round",
                    f"coordinate '{names[i]}'",
                    "position and force seem to count the other way than the model's axis.",
                    "Turn the axis of the joint in the model, or write times: -1 at both columns.",
                    e.with_joints(T),
                )
            yield from _other_scale(e, i)
    yield from _degrees(e)


def _asked(kind: str, where: str, what: str, hint: str, motion: Motion | None) -> Iterator[_Question]:
    """The question; without a motion where the loops of the machine cannot be closed for it."""
    yield _Question(kind, where, what, hint, motion)


def _degrees(e: Evidence) -> Iterator[_Question]:
    """Angles that are degrees though the study says radians, or the reverse: of one joint, and of all."""
    names, kinds = e.tree.coordinates, e.tree.coordinate_kinds
    turning = [k for k, kind in enumerate(kinds) if kind == "turning" and names[k] in e.given]
    groups = [[k] for k in turning] + ([turning] if len(turning) > 1 else [])
    for group in groups:
        for factor, what in (
            (1.0 / DEGREES, "it seems to be in degrees, and the study says radians."),
            (DEGREES, "it seems to be in radians, and the study says degrees."),
        ):
            T = np.eye(e.tree.n)
            for k in group:
                T[k, k] = factor
            where = f"position of '{names[group[0]]}'" if len(group) == 1 else "positions of all turning joints"
            yield from _asked("angle unit", where, what, "Correct the unit of the column.", e.with_coordinates(T))


def _other_scale(e: Evidence, i: int) -> Iterator[_Question]:
    """One force is off by a factor: the one that fits the other rows best, found as one more unknown."""
    if len(e.rows) < 2:
        return
    factor = best_factor(e, i)
    if not (factor > 1.5 or 0.0 < factor < 1.0 / 1.5):
        return
    T = np.eye(e.tree.n)
    T[i, i] = factor
    yield from _asked(
        "force scale",
        f"force of '{e.tree.coordinates[i]}'",
        f"it seems to be {1.0 / factor:.3g} times what it should be beside the others.",
        "Is it measured at the motor (a gear ratio), in another unit, or with another torque constant?",
        e.with_forces(T),
    )


def best_factor(e: Evidence, i: int) -> float:
    """The factor of one coordinate's force that makes it agree best with the other rows.

    The rows share parameters: with the other rows fixed, the row says λ y_i = W_i φ, so λ is one more unknown of least squares.
    """
    j = e.rows.index(e.tree.coordinates[i])
    total = 1.0
    for _ in range(3):  # rows are weighed by their own size, so a wrong size must first be put about right
        T = np.eye(e.tree.n)
        T[i, i] = total
        total *= _factor(e.equations(motion=e.with_forces(T)), j)
        if not 0.0 < abs(total) < 1e6:
            break
    return total


def _factor(equations: Equations, j: int) -> float:
    others = np.array([[0.0] if k == j else [1.0] for k in range(len(equations.y))])
    own = np.zeros((*equations.y.shape, 1))
    own[j, :, 0] = -equations.y[j]
    x, _ = replace(equations, y=equations.y * others).solved(own)
    return float(x[0])


def _gravity(e: Evidence, as_given: float, otherwise: float) -> list[Mistake]:
    """The gravity that fits best, where it is far from the model's and explains much more than that and than anything else."""
    found = best_gravity(e)
    if found is None or found.error > BETTER_ERROR_SHARE * as_given or found.error > otherwise:
        return []
    model = np.asarray(e.tree.gravity, dtype=np.float64)
    size = float(np.linalg.norm(found.gravity))
    if (
        not PLAUSIBLE_GRAVITY[0] < size < PLAUSIBLE_GRAVITY[1]
        or float(np.linalg.norm(found.gravity - model)) < GRAVITY_OFF * size
    ):
        return []  # what is no gravity of this planet explains nothing
    return [
        Mistake(
            "gravity",
            Fault(
                "gravity seems to be other than the model says.",
                "model.gravity",
                f"({_listed(model)}) m/s^2 by the model, which leaves {100 * as_given:.3g} % of the forces unexplained",
                f"({_listed(found.gravity)}), which leaves {100 * found.error:.3g} %",
                "Look at how the machine is mounted (a wall, a ceiling), and at the frame the model is written in.",
            ),
        )
    ]


def _listed(g: Array) -> str:
    return ", ".join(f"{x:.3g}" for x in g)
