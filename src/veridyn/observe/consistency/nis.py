"""Does a filter know how wrong it is? Errors and innovations, divided by what the filter claims for them.

    NIS = νᵀ S⁻¹ ν ~ χ²(m),    NEES = (x − x_true)ᵀ P⁻¹ (x − x_true) ~ χ²(n);    both divided by their dimension: ideal 1

Innovations of a consistent filter are independent from step to step, so the band of their mean is χ² with all degrees of
freedom. Errors of the state are not: they forget only as fast as e_{k+1} = (I − K H) F e_k does. The band of the mean
NEES therefore counts the independent samples that the filter's own gains leave, cov(NEES_j, NEES_k) = 2 ‖C_jk‖² with
C_jk the normalised covariance of e_j and e_k. Smoothed errors hang together backwards, by the smoother's gains; a log may
hold far fewer independent ones of them. Whiteness is tested by the cumulative periodogram (paper 003, equations 60
to 62) with the band of Kolmogorov and Smirnov.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri  # χ² quantiles from above; scipy.stats takes a second to import

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.observe.filters.smoother import Smoothed
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
    chosen = list(range(len(track.states))) if states is None else [track.states.index(n) for n in states]
    error = (
        true - track.x if subtract is None else subtract(true, track.x)
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
