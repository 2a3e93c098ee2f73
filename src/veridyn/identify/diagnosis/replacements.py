"""Mistakes that replace data instead of adding columns: columns swapped or turned round, other units, gears, gravity, places of bodies.

Each is a model of its own: the positions are T_q q instead of q, the measured forces T y instead of y, or the machine is another one. It
is compared with the study as it stands by likelihood, on some hundred samples of the training log
(:meth:`veridyn.identify.diagnosis.evidence.Evidence.likelihoods`), each with the noise that it leaves itself. Under the right model another
one is likelier by x = 2 Δ log L with a chance of at most exp(−x/2), Markov's inequality of a likelihood ratio, which is shared out over the
questions; what a model estimates besides (a factor, a length) is charged for by Schwarz's criterion. Models that are as likely as the best
are named with it. A model that leaves most of the forces unexplained is no explanation, however much likelier it is.

What was not looked for is listed with the reason: a report without findings says little where the reader does not know what was checked.

Positions may also change places, or their sign, from a moment t* on: a log that was put together from two, or a cable plugged in again.
With θ = A q the positions as they were recorded, at motors where the machine has a transmission, the positions are q' = A⁻¹ P A q from t*
on; P exchanges two of θ, or turns one. t* is where u = θ_a − θ_b, or u = θ_a, jumps to −u: the place of its largest acceleration. Samples
beside it, to which filters carry the jump, are left out of both models,

    2 Δ log L = Σ_j n_j ln(‖r_j‖²/‖r_j'‖²),   n_j: independent samples of row j
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import Fault
from veridyn.identify.diagnosis.columns import LIKELIHOOD_ROUNDS, TOGETHER_SAMPLES, columns_of, independent, squares
from veridyn.identify.diagnosis.delays import Delays, late_forces
from veridyn.identify.diagnosis.evidence import FEW_STEP, SAMPLES, STRONG, Evidence, Replacement
from veridyn.identify.diagnosis.geometry import LOOK, best_gravity, best_place, other_gearings
from veridyn.identify.diagnosis.structure import LONGEST_LAG_SHARE
from veridyn.identify.result import Fit
from veridyn.identify.settings import DiagnosisSettings
from veridyn.inference.finding import CONTRADICTION, UNEXPLAINED, FoundCause, Mistake
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

DEFAULT = DiagnosisSettings()
DEGREES = float(np.rad2deg(1.0))
# Of all forces is left over: no explanation; a fast diagnosis, which sees forces as measured and not behind a filter, reports no less
MOST = 0.5
MAX_LISTED = 6  # readings that are listed
SWAPPED, TURNED = "positions swapped", "position sign"
JUMP_TIMES = 10.0  # times a jump takes, within which filters carry it


def unreached(e: Evidence) -> list[str]:
    """Questions about positions that cannot be checked, because the loops of the machine cannot be closed for them."""
    return [f"{q.where} ({q.kind})" for q in _all_questions(e) if q.motion is None and not q.kind.startswith("joint")]


@lru_cache(maxsize=1)
def _all_questions(e: Evidence) -> tuple[Replacement, ...]:
    return tuple(_questions(e))


@checked
def find_mistakes(
    e: Evidence,
    apart: float = 1.0,
    progress: Progress = silent,
    *,
    fast: bool = False,
    late: Delays | None = None,
    settings: DiagnosisSettings = DEFAULT,
) -> tuple[Mistake, ...]:
    """What would explain the data better than the study as it stands, with all that explains them as well; else what nothing explains.

    `apart`: how much more all rows together leave unexplained than each by itself, σ of the weighted residual (26). Rows share
    parameters through the geometry of the machine, so a wrong length makes them contradict each other. `fast` leaves out gravity,
    geometry and the positions of closed machines. `late`: delays of the forces, where these are asked about.
    """
    if not e.rows:
        return ()
    asked = tuple(_questions(e, positions=not e.machine.closed)) if fast else _all_questions(e)
    asked = tuple(q for q in asked if q.motion is not None)
    gains = _gains(e, asked, progress)
    if not fast:
        searched = [q.replacement for q in (best_gravity(e), best_place(e, progress)) if q is not None]
        asked, gains = (*asked, *searched), [*gains, *_gains(e, searched)]
    delayed = None if late is None else late_forces(e, late)
    if delayed is not None:
        asked, gains = (*asked, delayed), [*gains, *_gains(e, [delayed])]
    found = _likelier(e, asked, gains, settings)
    found = found or _unexplained(e, MOST if fast else settings.max_unexplained)
    if not found and apart > settings.max_contradiction:
        found = [_contradiction(apart, settings)]
    return tuple(found)


def limit_of(questions: int, settings: DiagnosisSettings) -> float:
    """2 Δ log L from which one of so many models is named."""
    return STRONG + 2.0 * float(np.log(max(questions, 1) / settings.false_alarm_rate))


def _gains(e: Evidence, questions: Sequence[Replacement], progress: Progress = silent) -> list[float]:
    """2 Δ log L of each over the data as they are; a group of them at a time, so that memory stays small."""
    out: list[float] = []
    together = TOGETHER_SAMPLES * FEW_STEP // SAMPLES
    for k in range(0, len(questions), together):
        progress("looking for mistakes", float(k), float(len(questions)))
        out += e.likelihoods(questions[k : k + together])
    if questions:
        progress("looking for mistakes", float(len(questions)), float(len(questions)))
    return out


def _likelier(
    e: Evidence, questions: Sequence[Replacement], gains: Sequence[float], settings: DiagnosisSettings
) -> list[Mistake]:
    """The likeliest of the models, where it is clearly likelier than the data as they are, with those that are as likely."""
    if not questions:
        return []
    price = float(np.log(len(e.rows) * len(e.motion)))
    worth = np.array(gains) - price * np.array([q.estimated for q in questions])
    best = int(
        np.flatnonzero(np.isclose(worth, worth.max()))[0]
    )  # of readings that are one and the same, the first asked
    if worth[best] < limit_of(len(questions), settings) or _left(e, questions[best]) > MOST:
        return []  # what explains little better than nothing is no explanation
    alike = [k for k in np.argsort(-worth) if k != best and worth[k] > worth[best] - STRONG]
    q = questions[best]
    also = "; ".join(f"{questions[k].where}: {questions[k].what}" for k in alike)
    hint = f"{q.hint} This log does not tell it from these: {also}" if also else q.hint
    evidence = FoundCause(
        cause=q.kind,
        place=q.where,
        rank=1,
        evidence=float(gains[best]),
        size=q.size,
        alternatives=tuple((questions[k].kind, questions[k].where) for k in alike),
    )
    found = f"{q.found}{', ' if q.found else ''}2 Δ log L = {gains[best]:.3g} in favour of it"
    return [Mistake(q.kind, Fault(q.what, q.where, q.expected, found, hint), evidence)]


def _contradiction(apart: float, settings: DiagnosisSettings) -> Mistake:
    return Mistake.of(
        CONTRADICTION,
        "the rows contradict each other: together they leave more unexplained than each by itself.",
        where="rows",
        expected=f"at most {settings.max_contradiction:g} times as much",
        found=f"{apart:.3g} times",
        hint="Look at the geometry of the model, and at the scale and delay of each force.",
    )


def _unexplained(e: Evidence, limit: float) -> list[Mistake]:
    """That more than `limit` of all forces is left over beyond their noise, whatever the cause."""
    each, in_all = e.beyond_noise()[0], _left(e)
    if in_all < limit:
        return []
    listed = f"{100 * in_all:.0f} % in all; " + ", ".join(f"{row} {100 * x:.0f} %" for row, x in zip(e.rows, each))
    return [
        Mistake.of(
            UNEXPLAINED,
            "the model does not explain these forces, and no simple mistake that was tried does.",
            where="rows",
            expected=f"at most {100 * limit:.0f} % of all forces left over",
            found=listed,
            hint="Check the geometry of the model, the order of its joints, and whether this log is of this machine.",
        )
    ]


def most_left(settings: DiagnosisSettings) -> float:
    """The share of all forces from which a diagnosis says that a model does not explain them."""
    return MOST if settings.level == "fast" else settings.max_unexplained


def _left(e: Evidence, other: Replacement | None = None) -> float:
    """The share of all forces that is left beyond their noise, by the data as they are or by another model."""
    each, sizes = e.beyond_noise(other)
    return float(np.linalg.norm(each * sizes) / np.linalg.norm(sizes))


def _questions(e: Evidence, positions: bool = True) -> Iterator[Replacement]:
    """All that is asked; without `positions`, which take longer in machines with loops, about forces alone."""
    machine, n = e.machine, e.machine.n
    names, kinds = machine.coordinates, machine.coordinate_kinds
    given, own = [names.index(c) for c in e.given], [names.index(r) for r in e.rows]
    if positions:
        yield from _gears(e)  # before joints that are turned round, which may be the same
    for i, j in combinations(given, 2):
        T = np.eye(n)
        T[[i, j]] = T[[j, i]]
        pair = f"'{names[i]}' and '{names[j]}'"
        if kinds[i] != kinds[j]:
            continue
        swapped, look = "these columns seem to be swapped.", "Look at which column belongs to which joint."
        if positions:
            yield e.replaced("positions swapped", f"positions of {pair}", swapped, look, coordinates=T)
        if i in own and j in own:
            yield e.replaced("forces swapped", f"forces of {pair}", swapped, look, forces=T)
            if positions:
                look = "Look at the order of the joints in the model and in the log."
                what = "these joints seem to be swapped."
                yield e.replaced("joints swapped", f"coordinates {pair}", what, look, coordinates=T, forces=T)
    for i in sorted({*given, *own}):
        T = np.eye(n)
        T[i, i] = -1.0
        turned = "its sign seems to be wrong."
        if i in given and positions:
            hint = "Write times: -1 at its column, or turn the axis of the joint in the model."
            yield e.replaced("position turned round", f"position of '{names[i]}'", turned, hint, coordinates=T)
        if i in own:
            hint = "Write times: -1 at its column."
            yield e.replaced("force turned round", f"force of '{names[i]}'", turned, hint, forces=T)
            if i in given and positions:
                what = "position and force seem to count the other way than the model's axis."
                hint = "Turn the axis of the joint in the model, or write times: -1 at both columns."
                yield e.replaced("joint turned round", f"coordinate '{names[i]}'", what, hint, coordinates=T, forces=T)
            yield from _other_scale(e, i)
    if positions:
        yield from _degrees(e)


def _gears(e: Evidence) -> Iterator[Replacement]:
    """Other signs of gears, and couplings that are missing, of a machine without loops."""
    if e.machine.closed:
        return
    both = tuple(c for c in e.machine.coordinates if c in e.given and c in e.rows)
    for g in other_gearings(e.machine, both):
        yield e.replaced(g.kind, g.where, g.what, LOOK, coordinates=g.change, forces=g.forces)


def _degrees(e: Evidence) -> Iterator[Replacement]:
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
            yield e.replaced("angle unit", where, what, "Correct the unit of the column.", coordinates=T)


def _other_scale(e: Evidence, i: int) -> Iterator[Replacement]:
    """One force is off by a factor: the one that fits the other rows best, found as one more unknown.

    One close to 1 is asked as a column (:mod:`veridyn.identify.diagnosis.causes`), which is right to first order there, and sharper.
    """
    if len(e.rows) < 2:
        return
    factor = best_factor(e, i)
    if not (factor > 1.5 or 0.0 < factor < 1.0 / 1.5):  # nor where it is not known
        return
    T = np.eye(e.machine.n)
    T[i, i] = factor
    what = f"it seems to be {1.0 / factor:.3g} times what it should be beside the others."
    hint = "Is it measured at the motor (a gear ratio), in another unit, or with another torque constant?"
    where = f"force of '{e.machine.coordinates[i]}'"
    yield e.replaced("force scale", where, what, hint, forces=T, estimated=1, size=1.0 / factor - 1.0)


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
        if not 1e-6 < abs(total) < 1e6:
            return np.nan  # the row says nothing beside the others
    return total


def omitted(e: Evidence, delays: bool, speeds: bool, streamed: bool) -> tuple[str, ...]:
    """In words. Whether delays were looked for, speeds are measured, and the log is read in blocks."""
    out: list[str] = []
    if not e.rows:
        return ("Everything that needs measured forces: no row measures any.",)
    never = unreached(e) if e.machine.closed else []
    if never:
        more = f" and {len(never) - MAX_LISTED} more" if len(never) > MAX_LISTED else ""
        listed = ", ".join(never[:MAX_LISTED]) + more
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


@dataclass(frozen=True, eq=False)
class _Exchange:
    """Recorded positions `names`, one or two, that are others from sample `at` on; `matrix` (n, n): A⁻¹ P A; `near`: samples beside."""

    names: tuple[str, ...]
    at: int
    near: int
    matrix: Array


def exchanged_positions(
    fit: Fit, motions: Sequence[Motion], rows: Sequence[str], settings: DiagnosisSettings
) -> list[Mistake]:
    """The likeliest of them, where one is far likelier than the log as it is."""
    machine = fit.described
    rows = [row for row in rows if row in machine.coordinates]
    if machine.closed or machine.base != "fixed" or not rows:
        return []
    rate = settings.false_alarm_rate
    every = [(m, x) for m in motions if m.forces is not None and len(m) > SAMPLES for x in _exchanges(machine, m, rate)]
    gains = [_exchange_gain(machine, m, x, rows) for m, x in every]
    if not gains or max(gains) < STRONG + 2.0 * np.log(len(gains) / rate):
        return []
    best = int(np.argmax(gains))
    motion, x = every[best]
    swapped = len(x.names) == 2
    listed = " and ".join(f"'{name}'" for name in x.names)
    what = "they seem to have changed places" if swapped else "it seems to count the other way"
    fault = Fault(
        f"{what} from t = {motion.t[x.at]:.3f} s on.",
        f"position{'s' if swapped else ''} of {listed}",
        expected="one meaning of a column along the log",
        found=f"a jump there, and 2 Δ log L = {gains[best]:.3g} in favour of it",
        hint="Look at the columns of the log and cut it there, or put the columns right from there on.",
    )
    kind = SWAPPED if swapped else TURNED
    return [Mistake(kind, fault, FoundCause(cause=kind, place=" and ".join(x.names), rank=1, evidence=gains[best]))]


def _exchanges(machine: Machine, m: Motion, rate: float) -> Iterator[_Exchange]:
    """One of each pair and of each position that jump somewhere, at that moment.

    A jump is an acceleration beyond the extreme of so many normal ones, at this rate of false alarms.
    """
    names, A = _recorded(machine)
    back = np.linalg.inv(A)
    kinds = [machine.coordinate_kinds[int(np.argmax(np.abs(row)))] for row in A]
    theta, speeds, rates = (x @ A.T for x in (m.q, m.qd, m.qdd))
    pairs = [(a, b) for a, b in combinations(range(machine.n), 2) if kinds[a] == kinds[b]]
    for own in (*pairs, *((a,) for a in range(machine.n))):
        P = np.eye(machine.n)
        P[list(own)] = np.eye(machine.n)[list(reversed(own))] if len(own) == 2 else -P[list(own)]
        u, du, ddu = (x[:, own[0]] - x[:, own[1]] if len(own) == 2 else x[:, own[0]] for x in (theta, speeds, rates))
        most = int(np.argmax(np.abs(ddu)))
        time = float(np.sqrt(np.mean(u**2)) / max(np.abs(du).max(), np.finfo(float).tiny))
        near = int(min(JUMP_TIMES * time / float(np.median(np.diff(m.t))), LONGEST_LAG_SHARE * len(m)))
        low = max(0, most - near)
        usual = np.sqrt(np.mean(np.delete(ddu, np.arange(low, min(len(ddu), most + near + 1))) ** 2))
        if abs(ddu[most]) < np.sqrt(2.0 * np.log(len(ddu) / rate)) * usual:
            continue
        at = low + int(np.argmax(np.abs(du[low : most + near + 1])))
        yield _Exchange(tuple(names[k] for k in own), at, near, back @ P @ A)


def _recorded(machine: Machine) -> tuple[list[str], Array]:
    """Names of the recorded positions, and A of θ = A q."""
    names, A, t = list(machine.coordinates), np.eye(machine.n), machine.transmission
    if t is not None:
        place = [machine.coordinates.index(joint) for joint in t.joints]
        A[np.ix_(place, place)] = np.linalg.inv(t.matrix)
        for k, motor in zip(place, t.motors, strict=True):
            names[k] = motor
    return names, A


def _exchange_gain(machine: Machine, m: Motion, x: _Exchange, rows: Sequence[str]) -> float:
    """2 Δ log L of an exchange over the motion as it is."""
    far = np.flatnonzero(np.abs(np.arange(len(m)) - x.at) > x.near)
    if not len(far) or x.at <= far[0] or x.at >= far[-1]:
        return 0.0
    picked = far[np.unique(np.linspace(0, len(far) - 1, SAMPLES).astype(int))]
    part, late = m[picked], (picked > x.at)[:, None]
    q, qd, qdd = (np.where(late, v @ x.matrix.T, v) for v in (part.q, part.qd, part.qdd))
    before, after = (_residual(machine, motion, rows) for motion in (part, replace(part, q=q, qd=qd, qdd=qdd)))
    counts = np.minimum(independent(before), independent(after))
    return float(np.sum(counts * np.log(squares(before) / squares(after))))


def _residual(machine: Machine, m: Motion, rows: Sequence[str]) -> Array:
    """What least squares leaves of the rows (R, N), each weighed by what is left of it."""
    columns = columns_of(machine, m, rows)
    assert m.forces is not None  # of the motions that are asked
    y = m.forces[:, [machine.coordinates.index(row) for row in rows]].T - columns.known
    there = np.isfinite(y)
    W, y = np.where(there[:, :, None], columns.W, 0.0), np.where(there, y, 0.0)
    r = y
    for _ in range(LIKELIHOOD_ROUNDS):
        weight = 1.0 / np.sqrt(squares(r))[:, None]
        A = (W * weight[:, :, None]).reshape(-1, W.shape[2])
        norms = np.linalg.norm(A, axis=0)
        scale = np.where(norms > 0.0, norms, 1.0)
        x = np.linalg.lstsq(A / scale, (y * weight).ravel(), rcond=None)[0] / scale
        r = np.asarray(y - W @ x, dtype=np.float64)
    return r
