"""What to record next: which further motion would sharpen the parameters that are still uncertain, and by how much.

A fit holds the information C⁻¹ of what was recorded. A further recording with regressor D adds Dᵀ S⁻² D, S the deviation of each row, so
its effect on every deviation is known before anything is recorded: σ' = √diag((C⁻¹ + Dᵀ S⁻² D)⁻¹). Candidates stay within what the
recorded motion already did, but for speed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.explain import closed_again, enriched
from veridyn.identify.result import Fit
from veridyn.mechanics.regressor import regressor
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
CANDIDATE_SAMPLES = 400  # of a candidate, spread over it
MIN_SIGMA_RATIO = 1.5  # times smaller: below this a deviation does not count as sharpened
SINGLE_FREQUENCIES = (1.0, 2.0, 3.0)  # frequencies of a coordinate that moves alone, relative to one another


@dataclass(frozen=True)
class Advice:
    """One more recording as long as the last: in words, what it would do to σ (name → σ now, σ then), and the gain over all of them."""

    motion: str
    sharpened: dict[str, tuple[float, float]]
    gain: float

    def __str__(self) -> str:
        best = sorted(self.sharpened.items(), key=lambda item: item[1][1] / item[1][0])[:4]
        listed = ", ".join(f"σ of {name} from {a:.2g} to {b:.2g}" for name, (a, b) in best)
        more = len(self.sharpened) - len(best)
        return f"One more recording as long as this one in which {self.motion}: {listed}" + (
            f", and {more} more." if more > 0 else "."
        )


def what_next(fit: Fit, motion: Motion, poor: float = 10.0) -> tuple[Advice, ...]:
    """Candidates that would sharpen parameters with σ % above `poor`, the best first; empty where none would, or none is poor.

    The gain of a candidate is the mean of ln(σ now / σ then) over the poor parameters, times how many they are. Parameters that are
    small beside their typical size are not called poor for that: σ is taken relative to the larger of value and typical size.
    """
    size = np.maximum(np.abs(fit.values), np.abs(fit.base.parameters.typical[list(fit.base.columns)]))
    weak = np.flatnonzero(100.0 * fit.sigma > poor * size)
    if not len(weak) or not np.isfinite(fit.covariance).all():
        return ()
    scale = fit.sigma
    known = np.linalg.inv(fit.covariance / np.outer(scale, scale))
    rows = [r.row for r in fit.rows if r.samples and r.rms > 0.0]
    spread = np.array([r.rms for r in fit.rows if r.samples and r.rms > 0.0])
    length = np.array([r.samples for r in fit.rows if r.samples and r.rms > 0.0])
    found = []
    for label, other in candidates(fit.described, motion):
        D = regressor(fit.described, other, rows) @ fit.base.parameters.estimated_matrix()
        W = D[:, :, list(fit.base.columns)] * (np.sqrt(length / len(other)) / spread)[:, None] * scale
        W = W.reshape(-1, W.shape[2])
        later = scale * np.sqrt(np.diag(np.linalg.inv(known + W.T @ W)))
        ratio = fit.sigma[weak] / later[weak]
        better = {
            fit.names[k]: (float(fit.sigma[k]), float(later[k]))
            for k, r in zip(weak, ratio, strict=True)
            if r > MIN_SIGMA_RATIO
        }
        if better:
            found.append(Advice(label, better, float(np.log(ratio).sum())))
    return tuple(sorted(found, key=lambda a: -a.gain))


def candidates(machine: Machine, motion: Motion) -> list[tuple[str, Motion]]:
    """Motions to consider, with words for them.

    A machine on a fixed base: the same motion faster and slower, and each coordinate alone over its range, as fast as it has been. On a
    free base: the recorded motion with one thing more moving. Of a machine with loops, each coordinate with an equation of its own,
    where the loops let it go its way alone.
    """
    part = motion[np.unique(np.linspace(0, len(motion) - 1, CANDIDATE_SAMPLES).astype(int))]
    if part.base is not None:
        return [(label, _bare(m)) for label, m in enriched(machine, motion)]
    out = [
        ("the same motion runs 1.5 times as fast", _at_speed(part, 1.5)),
        ("the same motion runs at half the speed", _at_speed(part, 0.5)),
    ]
    alone = (
        (f"{machine.coordinates[c]} moves alone over its range", closed_again(machine, _alone(part, c)))
        for c in machine.independent
    )
    return out + [(label, moved) for label, moved in alone if moved is not None]


def _at_speed(m: Motion, s: float) -> Motion:
    return _bare(replace(m, t=m.t / s, qd=s * m.qd, qdd=s * s * m.qdd))


def _alone(m: Motion, c: int) -> Motion:
    """Coordinate c in three sines within the range, the speed and the acceleration it has had; the others stay in their middle."""
    q, qd, qdd = (np.zeros_like(m.q) for _ in range(3))
    q[:] = m.q.mean(axis=0)
    reach = float(np.ptp(m.q[:, c])) / 2.0
    fast, hard = float(np.abs(m.qd[:, c]).max()), float(np.abs(m.qdd[:, c]).max())
    phase = np.linspace(0.0, 2.0 * np.pi, len(m.t), endpoint=False)
    k = np.array(SINGLE_FREQUENCIES)[:, None]
    angle = k * phase + k * k
    shape, rate, bend = (
        (f / len(SINGLE_FREQUENCIES)).sum(axis=0) for f in (np.sin(angle) / k, np.cos(angle), -k * np.sin(angle))
    )
    a = reach / float(np.abs(shape).max() or 1.0)
    w = min(fast / (a * float(np.abs(rate).max()) or 1.0), np.sqrt(hard / (a * float(np.abs(bend).max()) or 1.0)))
    q[:, c] = (m.q[:, c].max() + m.q[:, c].min()) / 2.0 + a * shape
    qd[:, c], qdd[:, c] = w * a * rate, w * w * a * bend
    return _bare(replace(m, q=q, qd=qd, qdd=qdd))


def _bare(m: Motion) -> Motion:
    """Without the forces and wrenches, which belong to what was recorded; the signals of drive gains are kept."""
    return replace(m, forces=None, wrenches={})
