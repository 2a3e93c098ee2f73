"""Whether logs of one machine, or stretches of one log, agree on its parameters; and how far bands widen where they do not.

In coordinates in which the columns are orthonormal, stretch k of the equations has H_k = Q_kᵀQ_k, Σ H_k = 1, and of the residuals of the
fit of all stretches the score h_k = Q_kᵀ r. Where the parameters are the same in all of them,

    E h_k = 0,   cov h_k = V_k = S_k − H_k S_k − S_k H_k + H_k S H_k,   S_k = H_k^½ S H_k^½,

S being the covariance of the scores of all. T_k = h_kᵀ V_k⁻¹ h_k has the mean p, and B = Σ T_k/Σ p the mean 1. Where B is beyond chance,
parameters vary from stretch to stretch, or the model is wrong in another way on another motion: variances are stated B times as large
(R. T. Birge, 1932, Phys. Rev. 40). A parameter that changes by δ from stretch k to the others makes h_k = H_k (1 − H_k) t δ, t its column
of the triangle, so that each can be asked for its change and the deviation of that. An error that all stretches share does not show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from veridyn.arrays import Array

FALSE_ALARM_RATE = 0.01  # of logs that agree: how often bands are widened, and how often a parameter is named
SEEN = 1e-6  # of the largest eigenvalue: a direction with less is not seen by a stretch


@dataclass(frozen=True, eq=False)
class PartSums:
    """`gram` (K, p, p): Σ Qᵀψ'Q of K stretches; `score` (K, p): Σ Qᵀψ of the residuals."""

    gram: Array
    score: Array

    def __add__(self, o: PartSums) -> PartSums:
        return PartSums(self.gram + o.gram, self.score + o.score)

    @classmethod
    def zero(cls, count: int, p: int) -> PartSums:
        return cls(np.zeros((count, p, p)), np.zeros((count, p)))

    @classmethod
    def of(
        cls, ends: NDArray[np.intp], numbers: NDArray[np.intp], Z: Array, psi: Array, slope: Array | None
    ) -> PartSums:
        """Those of samples with `numbers` (n,), of parts that end at `ends`: columns Z (rows, p, n), ψ and ψ' (rows, n), None for 1."""
        part = np.searchsorted(ends, numbers, side="right")
        total = cls.zero(len(ends), Z.shape[1])
        for k in np.unique(part):
            own = slice(*np.searchsorted(part, [k, k + 1]))
            for j, z in enumerate(Z[:, :, own]):
                total.gram[k] += (z if slope is None else z * slope[j, own]) @ z.T
                total.score[k] += z @ psi[j, own]
        return total


@dataclass(frozen=True, eq=False)
class Agreement:
    """B, the probability that so large a one comes by chance, and of each parameter the largest change between stretches over its σ."""

    stretches: int
    ratio: float
    chance: float
    changes: Array

    @property
    def widening(self) -> float:
        """Factor of the variances: 1 where stretches agree."""
        return max(self.ratio, 1.0) if self.chance < FALSE_ALARM_RATE else 1.0

    @property
    def changed(self) -> tuple[int, ...]:
        """Parameters whose change is beyond chance, the surest first."""
        limit = -float(ndtri(0.5 * FALSE_ALARM_RATE / (self.stretches * max(len(self.changes), 1))))
        order = np.argsort(-np.abs(self.changes))
        return tuple(int(k) for k in order if abs(self.changes[k]) > limit)


def agreement(parts: PartSums, S: Array, triangle: Array) -> Agreement:
    """Whether the stretches agree. `S` (p, p): covariance of the scores of all; `triangle`: unit parameters in the same coordinates."""
    M = parts.gram.sum(axis=0)
    values, V = np.linalg.eigh(M)
    back = (V / np.sqrt(values)) @ V.T
    S, t = back @ S @ back, np.linalg.inv(back) @ triangle
    total, freedom = 0.0, 0.0
    changes = np.zeros(len(S))
    for gram, score in zip(parts.gram, parts.score, strict=True):
        H, h = back @ gram @ back, back @ score
        own, U = np.linalg.eigh(H)
        root = (U * np.sqrt(np.maximum(own, 0.0))) @ U.T
        S_k = root @ S @ root
        variances, W = np.linalg.eigh(S_k - H @ S_k - S_k @ H + H @ S @ H)
        seen = variances > SEEN * variances[-1]
        whiten = (W[:, seen] / np.sqrt(variances[seen])).T
        x = whiten @ h
        total += float(x @ x)
        freedom += float(np.count_nonzero(seen))
        move = whiten @ (H - H @ H) @ t
        z = (x @ move) / np.maximum(np.sqrt((move**2).sum(axis=0)), np.finfo(float).tiny)
        changes = np.where(np.abs(z) > np.abs(changes), z, changes)
    count = len(parts.gram)
    independent = freedom * (count - 1) / count
    ratio = total / freedom if freedom else 1.0
    return Agreement(count, ratio, float(chdtrc(independent, ratio * independent)), changes)
