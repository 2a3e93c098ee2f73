"""What became of each sensor over a run, in words; sensors that freeze or fall silent while the program runs, or are late.

A reading that is not used leaves the filter to its model, and its band grows until the sensor is back. A gate judges every reading by
itself: a sensor that jumped is let in again as soon as it agrees with what the filter knows, or the filter knows so little that it agrees.

Which outputs have not been heard for longer than is usual of them, as machine code: it is asked at every step of an observer.

Whether a sensor is later than it is said to be is a score test on innovations. A delay τ_j that nobody knows changes the readings of output
j by −τ_j ẏ_j, and through the gains the state and all later innovations:

    v_k = −ẏ_k e_j − H_k s_k⁻,    s_k⁺ = s_k⁻ + K_k v_k,    s_{k+1}⁻ = F_{k+1} s_k⁺            v = ∂ν/∂τ_j,  s = ∂x̂/∂τ_j
    τ̂ = (Σ Vᵀ S⁻¹ V)⁻¹ Σ Vᵀ S⁻¹ ν,    2 Δ log L = τ̂_j²/σ_j²

for all outputs at once, V having a column for each; where innovations are larger than stated, so is σ. ẏ_k is the rate that the filter
predicts from the sample before, so that under a right model V_k ν_k has no mean: it is known before ν_k is. A filter that follows a late
sensor hides the delay in its states; s says by how much they are off, and so whether the bands survive it: τ̂² sᵀ P⁻¹ s / n is what the
delay adds to NEES.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri  # scipy.stats takes a second to import

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.compiled import kept
from veridyn.observe.measurements import MISSING, Codes, Status
from veridyn.observe.result import Estimates

SILENT_AFTER_PAUSES = 3.0  # times its longest pause so far, after which an output counts as silent


@kept
def listen(t: float, flags: Codes, clocks: Array, silent: NDArray[np.bool_]) -> bool:
    """Take note of the outputs that are heard at the time t; whether some is silent, and which.

    `clocks` (3, m): when each was last heard, its longest pause, and how often it was heard; three times make its clock known.
    """
    some = False
    for j in range(len(flags)):
        heard, often = flags[j] != MISSING, clocks[2, j]
        gap = t - clocks[0, j] if often > 0.0 else 0.0
        overdue = often > 2.0 and gap > SILENT_AFTER_PAUSES * clocks[1, j]
        silent[j] = overdue and not heard
        some |= silent[j]
        if heard:
            if not overdue:
                clocks[1, j] = max(clocks[1, j], gap)
            clocks[0, j] = t
            clocks[2, j] += 1.0
    return some


WORDS = {
    Status.NOT_FINITE: "sends no numbers",
    Status.FROZEN: "repeats itself",
    Status.OUTLIER: "disagrees with all else",
    Status.LATE: "comes too late",
    Status.MISSING: "is silent",
}


@dataclass(frozen=True)
class Episode:
    """A stretch in which readings of one output were not used, and why; `until` is the last of them."""

    output: str
    status: Status
    since: float
    until: float
    count: int

    def __str__(self) -> str:
        span = f"from {self.since:.6g} s to {self.until:.6g} s" if self.count > 1 else f"at {self.since:.6g} s"
        return f"'{self.output}' {WORDS[self.status]} {span} ({self.count} readings not used)"


def episodes(estimates: Estimates, least: int = 3) -> tuple[Episode, ...]:
    """Every stretch of at least `least` readings in a row that failed; pauses of a slower clock and withheld readings do not count."""
    found = []
    for j, name in enumerate(estimates.outputs):
        codes = estimates.status[:, j]
        heard = np.flatnonzero(codes != Status.MISSING)
        expected = np.arange(len(codes)) if len(heard) == 0 else _on_clock(estimates.t, heard)
        flags = codes[expected]
        edges = np.flatnonzero(np.diff(flags, prepend=-1, append=-1))
        for a, b in itertools.pairwise(edges):
            status = Status(int(flags[a]))
            if status not in (Status.USED, Status.WITHHELD) and b - a >= least:
                rows = expected[a:b]
                found.append(
                    Episode(name, status, float(estimates.t[rows[0]]), float(estimates.t[rows[-1]]), len(rows))
                )
    return tuple(sorted(found, key=lambda e: e.since))


def _on_clock(t: Array, heard: NDArray[np.intp]) -> NDArray[np.intp]:
    """The stamps at which an output was heard, and those at which it should have been, while it is silent for longer than three times its
    longest pause so far: readings at the edges of a wheel come as fast as it turns, and have no clock."""
    if len(heard) < 2 or len(heard) == len(t):
        return np.arange(len(t))
    pauses = np.diff(t[heard], append=t[-1])
    usual, longest = float(np.median(pauses[:-1])), 0.0
    kept: list[int] = []
    for begin, end, pause in zip(heard.tolist(), [*heard[1:].tolist(), len(t)], pauses.tolist(), strict=True):
        kept.append(begin)
        if pause <= SILENT_AFTER_PAUSES * max(usual, longest):
            longest = max(longest, pause)
            continue
        for k in range(begin + 1, end):
            if t[k] - t[kept[-1]] >= 0.999 * usual:
                kept.append(k)
    return np.array(kept, dtype=np.intp)


class Repeats:
    """Counts, reading by reading, how often each output has sent the same number in a row."""

    def __init__(self, outputs: int, most: int | None) -> None:
        if most is not None and most < 1:
            raise DataError(
                "the number of repeats is not usable.", where="frozen_after", expected="1 or more", found=f"{most}"
            )
        self.most = most
        self._last: Array = np.full(outputs, np.nan)
        self._same: NDArray[np.int64] = np.zeros(outputs, dtype=np.int64)

    def flags(self, values: Array, flags: Codes, t: float = 0.0) -> Codes:
        """The flags, with FROZEN where an output has repeated itself more often than `frozen_after` allows."""
        if self.most is None:
            return flags
        heard = flags == Status.USED
        self._same = np.where(heard, np.where(values == self._last, self._same + 1, 0), self._same)
        self._last = np.where(heard, values, self._last)
        return np.where(heard & (self._same >= self.most), Status.FROZEN, flags).astype(np.int8)


class Silence:
    """Notices an output that has not been heard for three times its longest pause so far; three readings make its clock known.

    `silent` (m,): which outputs are silent now.
    """

    def __init__(self, outputs: int) -> None:
        self.silent: NDArray[np.bool_] = np.zeros(outputs, dtype=np.bool_)
        self._clocks = np.zeros((3, outputs))  # when each was last heard, its longest pause, and how often it was heard

    def since(self, t: float, flags: Codes) -> bool:
        """Take note of the outputs that are heard at the time t; whether some is silent."""
        return listen(float(t), flags, self._clocks, self.silent)


MOST_SAMPLES = 2000  # of a log: its end, where it is longer
LEAST_SAMPLES = 200  # readings of an output
ADDED_NEES = 0.25  # that makes bands wrong: NEES outside its usable band
LEAST_RUNS = 10  # of equal readings, by which a held sensor is known
REGULAR_SHARE = 0.8  # of these runs that have the usual length, or one sample more or fewer
DETERMINED = 1e-9  # of the largest singular value: a smaller one is a shift of all clocks together, which no log shows


@dataclass(frozen=True)
class SensorDelay:
    """Output `output` is `size` seconds later than the model has it (earlier where it is negative), with deviation `sigma`; `evidence`:
    2 Δ log L; `added_nees`: what it adds to the mean NEES of the states."""

    output: str
    size: float
    sigma: float
    evidence: float
    added_nees: float

    def __str__(self) -> str:
        way, remedy = "later", "give its sensor a delay, or look at its clock."
        if self.size < 0.0:  # no sensor reads ahead of time, but a force that is held acts half a sample late
            way = "earlier"
            remedy = 'inputs that run on between their samples need input_hold="linear"; else look at the clocks.'
        return (
            f"'{self.output}' is {way} than its sensor says, by {1e3 * abs(self.size):.3g} ± {1e3 * self.sigma:.2g} ms "
            f"(2 Δ log L {self.evidence:.3g}): {remedy}"
        )


def sensor_delays(e: Estimates, values: Array, false_alarms: float, beyond: float = 0.0) -> tuple[SensorDelay, ...]:
    """The outputs whose innovations show a delay beyond chance that makes bands wrong, the strongest evidence first.

    `values` (N, m): the readings of the run `e`, in the order of its outputs. `false_alarms`: of consistent filters that are named;
    `beyond`: evidence that is asked for on top of that.
    """
    m, first = len(e.outputs), max(0, len(e) - MOST_SAMPLES)
    used = e.status[first:] == Status.USED
    if e.replayed or len(used) < LEAST_SAMPLES:
        return ()
    slopes, states = _sensitivities(e, values, first, used)
    V, nu = _whitened(e, first, used, slopes)
    information, score = np.einsum("kij,kil->jl", V, V), np.einsum("kij,ki->j", V, nu)
    there = [j for j in range(m) if used[:, j].sum() >= LEAST_SAMPLES and information[j, j] > 0.0]
    if not there:
        return ()
    scale = 1.0 / np.sqrt(information.diagonal()[there])
    scaled = information[np.ix_(there, there)] * np.outer(scale, scale)
    if float(np.linalg.eigvalsh(scaled)[0]) < DETERMINED:
        return ()
    misfit = max(1.0, float((nu**2).sum() / used.sum()))  # innovations that are larger than stated say less
    covariance = misfit * np.linalg.inv(scaled) * np.outer(scale, scale)
    found, limit = covariance @ score[there] / misfit, beyond + float(chdtri(1, false_alarms / len(there)))
    named = []
    for i, j in enumerate(there):
        size, sigma = float(found[i]), float(np.sqrt(covariance[i, i]))
        evidence = (size / sigma) ** 2
        if evidence <= limit:
            continue
        added = size**2 * _nees(states[:, :, j], e.P[first:])
        if added > ADDED_NEES:
            named.append(SensorDelay(e.outputs[j], size, sigma, evidence, added))
    return tuple(sorted(named, key=lambda one: -one.evidence))


def _rates(e: Estimates, values: Array, first: int) -> Array:
    """The rates (N, m) of readings that are predicted from the sample before; zero where that is not known."""
    expected = values[first:] - e.innovations[first:]
    gains = e.H[first:] @ e.K[first:] @ np.nan_to_num(e.innovations[first:])[:, :, None]
    after = expected + gains[:, :, 0]  # h(x̂) once the readings are taken in
    out, step = np.zeros(expected.shape), np.diff(e.t[first:])[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        out[1:] = (expected[1:] - after[:-1]) / step
    return np.where(np.isfinite(out), out, 0.0)


@kept
def chain(A: Array, b: Array, s: Array) -> None:
    """s_k = A_k s_{k−1} + b_k (N, n, m), from s_{−1} = 0."""
    count, n, m = s.shape
    for k in range(count):
        for i in range(n):
            for j in range(m):
                s[k, i, j] = b[k, i, j]
            if k > 0:
                for a in range(n):
                    factor = A[k, i, a]
                    if factor != 0.0:
                        for j in range(m):
                            s[k, i, j] += factor * s[k - 1, a, j]


def _sensitivities(e: Estimates, values: Array, first: int, used: NDArray[np.bool_]) -> tuple[Array, Array]:
    """∂ν/∂τ (N, m, m) and ∂x̂/∂τ (N, n, m), a column for the delay of each output."""
    rates, (_, m), n = _rates(e, values, first), used.shape, e.P.shape[1]
    F, H, K = e.F[first:], e.H[first:], e.K[first:]
    own = np.where(used, -rates, 0.0)
    states = np.empty((len(own), n, m))
    chain(F - K @ (H @ F), K * own[:, None, :], states)
    before = np.zeros(states.shape)
    before[1:] = F[1:] @ states[:-1]
    slopes, diagonal = -(H @ before), np.arange(m)
    slopes[:, diagonal, diagonal] += own
    return slopes, states


def _whitened(e: Estimates, first: int, used: NDArray[np.bool_], slopes: Array) -> tuple[Array, Array]:
    """∂ν/∂τ and ν in deviations of independent combinations of the readings that were used; zero for others."""
    H, P, m = e.H[first:], e.P_predicted[first:], used.shape[1]
    S = H @ P @ np.swapaxes(H, 1, 2)
    at = np.arange(m)
    S[:, at, at] = np.where(used, e.innovation_variances[first:], 1.0)
    both = used[:, :, None] & used[:, None, :]
    S = np.where(both | np.eye(m, dtype=np.bool_), S, 0.0)
    L = np.linalg.cholesky(S)
    nu = np.where(used, e.innovations[first:], 0.0)
    V = np.asarray(np.linalg.solve(L, np.where(used[:, :, None], slopes, 0.0)), dtype=np.float64)
    return V, np.asarray(np.linalg.solve(L, nu[:, :, None])[:, :, 0], dtype=np.float64)


def _nees(states: Array, P: Array) -> float:
    """Mean of sᵀ P⁻¹ s / n over a run, of states that have some uncertainty."""
    sigma = np.sqrt(np.maximum(np.diagonal(P, axis1=1, axis2=2), 0.0))
    live = (sigma > 0.0).all(axis=0)
    if not live.any():
        return 0.0
    s, d = states[:, live], sigma[:, live]
    C = P[:, live][:, :, live] / (d[:, :, None] * d[:, None, :])
    eigen, axes = np.linalg.eigh(C)
    along = np.einsum("kij,ki->kj", axes, s / d)
    kept = eigen > 1e-9 * eigen[:, -1:]  # directions that rounding leaves
    squares = np.where(kept, along**2 / np.where(kept, eigen, 1.0), 0.0).sum(axis=1)
    return float(squares.mean() / live.sum())


def held_readings(values: Array) -> int:
    """How often each reading (N,) is repeated by a sensor that holds it for a slower clock, 1 for one that does not."""
    heard = values[np.isfinite(values)]
    changes = np.flatnonzero(np.diff(heard) != 0.0)
    if len(changes) <= LEAST_RUNS:
        return 1
    runs = np.diff(changes)
    usual = int(np.median(runs))
    return usual if usual > 1 and float(np.mean(np.abs(runs - usual) <= 1)) >= REGULAR_SHARE else 1
