"""Where sensors lose sight of a coordinate: dead centres along a run.

    c_i(t) = √Σ_j (∂h_j/∂z_i)²/r_j        what the readings of one sample say about the coordinate z_i, 1/deviation

A gauge on the slider of a crank reads x(φ), and nothing of φ where ∂x/∂φ is zero: from there the crank may go on or turn back, and a
filter that knows one tangent follows one of both. The coordinate is lost where c_i falls below `LOST_SHARE` of what it usually is along
the log; a sensor of the coordinate itself keeps it constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Status
from veridyn.observe.result import Estimates

LOST_SHARE = 0.05  # of the usual sensitivity: its information, which goes by squares, is a four-hundredth
SHOWN = 3  # times


@dataclass(frozen=True)
class DeadCentre:
    """The sensors lose sight of `coordinate` at the `times` (s); `share`: the least of the usual sensitivity that is left."""

    coordinate: str
    times: tuple[float, ...]
    share: float

    def __str__(self) -> str:
        shown = ", ".join(f"{t:.4g} s" for t in self.times[:SHOWN])
        more = f" and {len(self.times) - SHOWN} times more" if len(self.times) > SHOWN else ""
        return (
            f"the sensors show nothing of '{self.coordinate}' near {shown}{more}: at a dead centre its direction cannot be told. "
            "Give it a sensor that reads there."
        )


def dead_centres(system: MachineSystem, e: Estimates) -> tuple[DeadCentre, ...]:
    """The independent coordinates that sensors lose sight of along a run, those that are lost most often first."""
    f = system.f
    own = ((e.H @ e.P_predicted) * e.H).sum(axis=2)
    weight = np.zeros(len(e.outputs))
    for j in range(
        len(weight)
    ):  # sensors on clocks of their own are no dead centres: their usual noise, and H at every sample
        noise = (e.innovation_variances[:, j] - own[:, j])[e.status[:, j] != Status.MISSING]
        noise = noise[np.isfinite(noise)]
        usual = float(np.median(noise)) if len(noise) else 0.0
        weight[j] = 1.0 / usual if usual > 0.0 else 0.0
    c = np.sqrt(np.einsum("kji,j->ki", e.H[:, :, :f] ** 2, weight))
    found = []
    for i, name in enumerate(system.model.names):
        seen, t = c[:, i], e.t
        usual = float(np.median(seen)) if len(seen) else 0.0
        lost = seen < LOST_SHARE * usual
        if not lost.any():
            continue
        begins = np.flatnonzero(lost & ~np.append(False, lost[:-1]))
        ends = np.flatnonzero(lost & ~np.append(lost[1:], False)) + 1
        times = tuple(float(t[a + int(np.argmin(seen[a:b]))]) for a, b in zip(begins, ends, strict=True))
        found.append(DeadCentre(name, times, float(seen.min() / usual)))
    return tuple(sorted(found, key=lambda one: -len(one.times)))
