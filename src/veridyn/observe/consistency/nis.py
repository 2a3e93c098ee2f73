"""Does a filter know how wrong it is? Errors and innovations, divided by what the filter claims for them.

    NIS = νᵀ S⁻¹ ν ~ χ²(m),    NEES = (x − x_true)ᵀ P⁻¹ (x − x_true) ~ χ²(n);    both divided by their dimension: ideal 1

Innovations of a consistent filter are independent from step to step, so the band of their mean is χ² with all degrees of
freedom. Errors of the state are not: they forget only as fast as e_{k+1} = (I − K H) F e_k does. The band of the mean
NEES therefore counts the independent samples that the filter's own gains leave, cov(NEES_j, NEES_k) = 2 ‖C_jk‖² with
C_jk the normalised covariance of e_j and e_k. Smoothed errors hang together backwards, by the smoother's gains; a log may
hold far fewer independent ones of them. Whiteness is tested by the cumulative periodogram (paper 003, equations 60
to 62) with the band of Kolmogorov and Smirnov.

NIS near one may be a sum of directions in which the filter is far too sure and others in which it is cautious:

    d = diag(S)^½,    C = mean of d⁻¹ S d⁻¹ over the samples,    C u_i = λ_i u_i,    z_i² = (u_iᵀ d⁻¹ ν)² / (u_iᵀ d⁻¹ S d⁻¹ u_i)

S is the innovations' covariance that the filter states, and u_i its usual principal directions in deviations of the single outputs. Two
encoders of one shaft have their mean and their difference as directions: states follow the mean, and a twisted shaft shows in the
difference alone. The mean of z_i² is ideally 1 in each direction. Outputs belong together where they are read at the same stamps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri  # χ² quantiles from above; scipy.stats takes a second to import

from veridyn.arguments import as_array, checked
from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.observe.filters.run import Smoothed
from veridyn.observe.measurements import Status
from veridyn.observe.result import Estimates
from veridyn.signals.spectrum import Whiteness, cumulative_periodogram

LARGE_STATE = 40  # states, from which on fewer samples are followed
MEMORY_STARTS = 400  # samples from which the memory of the filter is followed; more change the third digit of a band


@dataclass(frozen=True, eq=False)
class Consistency:
    """`values` (N,) with their dimensions `dof` (N,); `mean` is the sum of the one over the sum of the other, ideal 1.

    `band` holds the mean of a consistent filter with probability `level`; `independent` is the number of degrees of
    freedom that it rests on.
    """

    name: str
    values: Array
    dof: NDArray[np.int64]
    independent: float
    level: float

    @property
    def mean(self) -> float:
        return float(self.values.sum() / self.dof.sum())

    @property
    def band(self) -> tuple[float, float]:
        return _band(self.independent, self.level)

    @property
    def consistent(self) -> bool:
        low, high = self.band
        return low <= self.mean <= high

    @property
    def share_inside(self) -> float:
        """The share of the samples within the band of one sample; near `level` for a consistent filter."""
        some = self.dof > 0
        tail = (1.0 - self.level) / 2.0
        low, high = chdtri(self.dof[some], 1.0 - tail), chdtri(self.dof[some], tail)
        return float(np.mean((self.values[some] >= low) & (self.values[some] <= high)))

    def summary(self) -> str:
        low, high = self.band
        verdict = "consistent" if self.consistent else ("overconfident" if self.mean > high else "too cautious")
        return (
            f"{self.name} {self.mean:.3f}: {verdict} "
            f"({100 * self.level:g} % band {low:.3f} to {high:.3f}; {100 * self.share_inside:.1f} % of samples inside theirs)"
        )


@checked
def nis(estimates: Estimates, level: float = 0.95, skip: int = 0) -> Consistency:
    """The normalised innovations squared from sample `skip` on. A gate refuses large ones, so with it the mean is low."""
    values, dof = estimates.nis[skip:], estimates.dof[skip:]
    if not dof.sum():
        raise DataError("no reading was used, so there are no innovations to check.", where=estimates.filter)
    return Consistency("NIS", values, dof, float(dof.sum()), level)


@checked
def nees(
    track: Estimates | Smoothed,
    truth: ArrayLike,
    level: float = 0.95,
    skip: int = 0,
    states: Sequence[str] | None = None,
    subtract: Callable[[Array, Array], Array] | None = None,
) -> Consistency:
    """The normalised errors squared of a filter or a smoother against `truth` (N, n), of all states or of those named.

    `subtract`: the system's own, where the state is not a plain vector.
    """
    true = np.asarray(truth, dtype=np.float64)
    if true.shape != track.x.shape:
        raise DataError("wrong shape.", where="truth", expected=f"{track.x.shape}", found=f"{true.shape}")
    unknown = [n for n in states or () if n not in track.states]
    if unknown:
        raise DataError(f"there is no state '{unknown[0]}'.", where="NEES", hint=did_you_mean(unknown[0], track.states))
    if states is not None and not len(states):
        raise DataError("no state is named.", where="NEES", expected="one or more", found="none")
    chosen = list(range(len(track.states))) if states is None else [track.states.index(n) for n in states]
    error = (
        true - track.x
        if subtract is None
        else as_array(subtract(true, track.x), "NEES, subtract", (len(track.x), None))
    )  # in the coordinates of P, those of the track
    P = track.P[skip:][:, chosen][:, :, chosen]
    try:
        L: Array = np.asarray(np.linalg.cholesky(P), dtype=np.float64)
    except np.linalg.LinAlgError as fault:
        raise DataError(
            "a covariance is singular, so an error cannot be compared with it.",
            where="NEES",
            hint="Leave out the states whose stated variance is zero, or skip the first samples.",
        ) from fault
    scaled = np.linalg.solve(L, error[skip:, chosen, None])[..., 0]
    values = (scaled**2).sum(axis=1)
    dof = np.full(len(values), len(chosen), dtype=np.int64)
    return Consistency("NEES", values, dof, _independent(*_memory(track, L, skip), chosen), level)


def pooled(runs: Sequence[Consistency]) -> Consistency:
    """Several runs of one length as one: sums over the runs at each sample, independent from run to run."""
    if len({len(r.values) for r in runs}) != 1:
        raise DataError("the runs are not of one length.", where="pooled consistency")
    return Consistency(
        runs[0].name,
        np.sum([r.values for r in runs], axis=0),
        np.sum([r.dof for r in runs], axis=0),
        sum(r.independent for r in runs),
        runs[0].level,
    )


@checked
def innovation_whiteness(estimates: Estimates, level: float = 0.05, skip: int = 0) -> dict[str, Whiteness]:
    """The cumulative periodogram of each output's innovations, each divided by its claimed deviation.

    Readings that were not used are left out, and the rate is the mean one of those that were; an output with fewer than
    eight of them has no entry.
    """
    found = {}
    for j, name in enumerate(estimates.outputs):
        used = np.flatnonzero(estimates.status[skip:, j] == Status.USED) + skip
        if len(used) < 8:
            continue
        t = estimates.t[used]
        scaled = estimates.innovations[used, j] / np.sqrt(estimates.innovation_variances[used, j])
        found[name] = cumulative_periodogram(scaled, (len(t) - 1) / (t[-1] - t[0]), level, f"innovations of '{name}'")
    return found


def _memory(track: Estimates | Smoothed, L: Array, skip: int) -> tuple[Array, Array, Array]:
    """What leads from one error to the next, (I − K H) F forwards or G backwards; their covariances, and the roots of these."""
    if isinstance(track, Smoothed):
        return track.gains[skip:][::-1], track.P[skip:][::-1], L[::-1]
    track.chained("the band of NEES")
    steps = (np.eye(track.P.shape[1]) - track.K[skip:] @ track.H[skip:]) @ track.F[skip:]
    return steps, track.P[skip:], L


def _independent(steps: Array, P: Array, L: Array, chosen: list[int]) -> float:
    """Degrees of freedom of the mean NEES: 2 (Σ dof)² / var(Σ NEES), with the variance that the filter itself implies."""
    n, count = len(chosen), len(L)
    stride = max(1, count // (MEMORY_STARTS if P.shape[1] <= LARGE_STATE else MEMORY_STARTS // 4))
    at = np.arange(0, count, stride)
    inverse = np.linalg.inv(L)
    D = P[at][:, :, chosen]
    total = float(n * len(at))
    for lag in range(1, count):
        inside = at + lag < count
        at, D = at[inside], D[inside]
        if len(at) == 0:
            break
        D = steps[at + lag] @ D
        C = inverse[at + lag] @ D[:, chosen] @ np.swapaxes(inverse[at], 1, 2)
        shared = float((C**2).sum())
        total += 2.0 * shared
        if shared < 1e-4 * n * len(at):
            break
    starts = len(range(0, count, stride))
    return (n * count) / (total / (n * starts))


def _band(dof: float, level: float) -> tuple[float, float]:
    tail = (1.0 - level) / 2.0
    return float(chdtri(dof, 1.0 - tail) / dof), float(chdtri(dof, tail) / dof)


LEAST_SAMPLES = 50  # that are read together: the mean of as many squares is known within a fifth
MOST_SAMPLES = 2000  # spread over the log: they know a mean square within three percent
NAMED_WEIGHT = 0.3  # of a direction, as a share of its largest: outputs that have less of it are not named


@dataclass(frozen=True, eq=False)
class DirectionCheck:
    """The mean of z² along a direction: `weights` (m,) of `outputs` in deviations of each, over `samples` samples."""

    outputs: tuple[str, ...]
    weights: Array
    z2: float
    samples: int

    @property
    def named(self) -> str:
        """The direction in words: "0.71 left - 0.71 right"."""
        order = np.argsort(-np.abs(self.weights))
        largest = self.weights[order[0]]
        parts = [(self.weights[k] * np.sign(largest), self.outputs[k]) for k in order]
        shown = [(w, n) for w, n in parts if abs(w) >= NAMED_WEIGHT * abs(largest)]
        words = [f"{'-' if w < 0.0 else '+'} {abs(w):.2f} {n}" for w, n in shown]
        return " ".join(words).removeprefix("+ ")

    def largest(self, false_alarms: float) -> float:
        """The mean z² that chance exceeds in this share of all checks."""
        return float(chdtri(self.samples, false_alarms) / self.samples)


def direction_checks(e: Estimates, skip: int = 0, most: int = MOST_SAMPLES) -> tuple[DirectionCheck, ...]:
    """The principal directions of innovations that are read together, from sample `skip` on, the largest z² first; none of one output.
    `most`: samples, spread over the log."""
    used = e.status[skip:] == Status.USED
    if used.all():  # which is usual, and need not be sorted
        patterns, which, counts = used[:1], np.zeros(len(used), dtype=np.intp), np.array([len(used)])
    else:
        patterns, which, counts = np.unique(used, axis=0, return_inverse=True, return_counts=True)
    found: list[DirectionCheck] = []
    seen: set[tuple[int, ...]] = set()
    for k in np.argsort(-counts).tolist():
        outputs = tuple(np.flatnonzero(patterns[k]).tolist())
        if counts[k] < LEAST_SAMPLES or len(outputs) < 2 or any(set(outputs) <= set(other) for other in seen):
            continue
        seen.add(outputs)
        rows = np.flatnonzero(which.reshape(-1) == k) + skip
        found += _along(e, rows[:: -(-len(rows) // most)], list(outputs))
    return tuple(sorted(found, key=lambda one: -one.z2))


def _along(e: Estimates, rows: NDArray[np.intp], outputs: list[int]) -> list[DirectionCheck]:
    H, P = e.H[rows][:, outputs], e.P_predicted[rows]
    S = H @ P @ np.swapaxes(H, 1, 2)  # noises of sensors do not hang together
    at = np.arange(len(outputs))
    variances = e.innovation_variances[rows][:, outputs]
    S[:, at, at] = variances
    d = np.sqrt(variances)
    C = S / (d[:, :, None] * d[:, None, :])
    _, axes = np.linalg.eigh(C.mean(axis=0))
    along = (e.innovations[rows][:, outputs] / d) @ axes
    z2 = (along**2 / np.einsum("ij,kil,lj->kj", axes, C, axes)).mean(axis=0)
    names = tuple(e.outputs[j] for j in outputs)
    return [DirectionCheck(names, axes[:, i], float(z2[i]), len(rows)) for i in range(len(outputs))]


def direction_line(checks: Sequence[DirectionCheck]) -> tuple[str, ...]:
    """A line for a summary: how far the directions lie apart, and which has the largest innovations."""
    if not checks:
        return ()
    worst, least = checks[0], checks[-1]
    return (f"innovations by direction: z^2 {least.z2:.3g} to {worst.z2:.3g}, the largest along {worst.named}",)


def wrong_directions(
    checks: Sequence[DirectionCheck], false_alarms: float, usable: float
) -> tuple[tuple[DirectionCheck, str], ...]:
    """Directions in which innovations are larger than stated, beyond chance and beyond what bands survive, each with a sentence."""
    each = false_alarms / max(len(checks), 1)
    return tuple(
        (
            one,
            f"innovations along {one.named} are larger than stated: mean squared deviation {one.z2:.3g}, and chance explains "
            f"{one.largest(each):.3g}. These outputs contradict each other, however well the others agree.",
        )
        for one in checks
        if one.z2 > max(one.largest(each), usable)
    )
