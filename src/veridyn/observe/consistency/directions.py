"""Innovations by direction: NIS near one may be a sum of directions in which the filter is far too sure and others in which it is cautious.

    d = diag(S)^½,    C = mean of d⁻¹ S d⁻¹ over the samples,    C u_i = λ_i u_i,    z_i² = (u_iᵀ d⁻¹ ν)² / (u_iᵀ d⁻¹ S d⁻¹ u_i)

S is the innovations' covariance that the filter states, and u_i its usual principal directions in deviations of the single outputs. Two
encoders of one shaft have their mean and their difference as directions: states follow the mean, and a twisted shaft shows in the
difference alone. The mean of z_i² is ideally 1 in each direction. Outputs belong together where they are read at the same stamps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri  # scipy.stats takes a second to import

from veridyn.arrays import Array
from veridyn.observe.measurements import Status
from veridyn.observe.result import Estimates

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
