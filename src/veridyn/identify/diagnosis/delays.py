"""Delays of measured forces against the motion, one for each coordinate, found beside the parameters.

A force recorded d late is y(t) = Γ(t − d), so Γ = y + d ẏ to first order, and W φ = y + d ẏ has d as one more unknown. Positions have
no delay by definition: what is found is the delay of forces against positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.diagnosis.alternatives import Mistake
from veridyn.identify.diagnosis.evidence import Evidence, evidence, share
from veridyn.identify.regression.sampling import Sampling
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
SIGNIFICANT_ERROR_SHARE = 0.6  # of the error left without delays: lagging friction looks like a small one (chosen)

WORTHWHILE_ERROR_SHARE = 0.9  # of the error is left after one step, where another is worth it
PASSES = 3
LONGEST_DELAY_S = 0.3  # s: what would be later is no delay but another mistake (chosen)


@dataclass(frozen=True)
class Delays:
    """Seconds by which each coordinate's force is late, and the error with and without them."""

    seconds: Mapping[str, float]
    before: float = float("nan")
    after: float = float("nan")

    def suspicions(self) -> list[Mistake]:
        """That forces are late, where taking the delays out explains much more."""
        if not self.seconds or not self.after < SIGNIFICANT_ERROR_SHARE * self.before:
            return []
        listed = ", ".join(f"{c} {1e3 * d:.1f} ms" for c, d in self.seconds.items())
        return [
            Mistake.of(
                "delay",
                "measured forces are late or early against the positions.",
                where="forces",
                expected=f"channels on one clock; {100 * self.before:.3g} % of the forces are unexplained",
                found=f"{listed}; {100 * self.after:.3g} % without these delays",
                hint="Write clock: {delays: correct} to take them out, and look at the filters of the drives.",
            )
        ]


def delays(machine: Machine, motions: Sequence[Motion], rows: Sequence[str], sampling: Sampling) -> Delays:
    """The delays that fit best: found to first order, taken out, and found again while that helps."""
    found = _step(evidence(machine, motions, rows, sampling))
    for _ in range(PASSES):
        if not found.after < WORTHWHILE_ERROR_SHARE * found.before:
            break
        moved = without_delays(machine, motions, found.seconds)
        step = _step(evidence(machine, moved, rows, _without_masks(sampling)))
        if not step.before < found.before:
            break
        seconds = {c: d + step.seconds[c] for c, d in found.seconds.items()}
        found = Delays(seconds, found.before, min(step.before, step.after))
    return found


def _without_masks(sampling: Sampling) -> Sampling:
    """Masks count the samples of motions that are as long as they were."""
    return replace(sampling, drop={})


def _step(e: Evidence) -> Delays:
    """Least squares over the parameters and one delay for each row whose force is measured."""
    forces, names = e.motion.forces, e.machine.coordinates
    measured = [r for r in e.rows if forces is not None and np.isfinite(forces[:, names.index(r)]).all()]
    if not measured:
        return Delays({})
    equations = e.equations()
    late = np.zeros((len(e.rows), len(e.motion), len(measured)))
    for k, row in enumerate(measured):
        j = e.rows.index(row)
        late[j, :, k] = -e.force_rates[:, names.index(row)] / equations.sizes[j]
    seconds, left = equations.solved(late)
    before = share(equations.solved()[1])
    if np.abs(seconds).max() > LONGEST_DELAY_S:
        return Delays(dict.fromkeys(measured, 0.0), before, before)
    return Delays(dict(zip(measured, seconds.tolist(), strict=True)), before, share(left))


def without_delays(machine: Machine, motions: Sequence[Motion], seconds: Mapping[str, float]) -> list[Motion]:
    """The motions with forces moved to when they acted; the ends, where nothing was recorded, are cut off."""
    longest = max((abs(d) for d in seconds.values()), default=0.0)
    out = []
    for m in motions:
        if m.forces is None:
            out.append(m)
            continue
        forces = m.forces.copy()
        for c, d in seconds.items():
            k = machine.coordinates.index(c)
            forces[:, k] = np.interp(m.t + d, m.t, m.forces[:, k])
        inside = (m.t >= m.t[0] + longest) & (m.t <= m.t[-1] - longest)
        out.append(replace(m, forces=forces)[inside])
    return out
