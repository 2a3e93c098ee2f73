"""Positions that change places, or their sign, from a moment on: a log that was put together from two, or a cable plugged in again.

With θ = A q the positions as they were recorded, at motors where the machine has a transmission, the positions are q' = A⁻¹ P A q from t*
on; P exchanges two of θ, or turns one. That is a model like the one without it, and is compared by likelihood on some hundred samples, each
with the noise that it leaves itself:

    2 Δ log L = Σ_j n_j ln(‖r_j‖²/‖r_j'‖²),   n_j: independent samples of row j

Under the right model another of the same size is likelier by x with a chance of at most exp(−x/2), Markov's inequality of a likelihood
ratio, which is shared out over the questions. t* is where u = θ_a − θ_b, or u = θ_a, jumps to −u: the place of its largest
acceleration. Samples beside it, to which filters carry the jump, are left out of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault
from veridyn.identify.diagnosis.columns import LIKELIHOOD_ROUNDS, columns_of, independent, squares
from veridyn.identify.diagnosis.evidence import SAMPLES, STRONG
from veridyn.identify.diagnosis.mistake import Mistake
from veridyn.identify.diagnosis.structure import LONGEST_LAG_SHARE
from veridyn.identify.found_cause import FoundCause
from veridyn.identify.result import Fit
from veridyn.identify.settings import DiagnosisSettings
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

SWAPPED, TURNED = "positions swapped", "position sign"
JUMP_TIMES = 10.0  # times a jump takes, within which filters carry it


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
    gains = [_gain(machine, m, x, rows) for m, x in every]
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


def _gain(machine: Machine, m: Motion, x: _Exchange, rows: Sequence[str]) -> float:
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
