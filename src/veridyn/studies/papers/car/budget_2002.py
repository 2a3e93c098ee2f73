"""How far Table 4 may be off, by where it comes from; the budget of paper 000's study for the car of paper 001:

    σ² = σ²(noise) + σ²(stretches) + σ²(zeros) + σ²(tables) + σ²(bands) + σ²(places) + σ²(lengths) + σ²(air) + σ²(carriers)

Noise: the sandwich with a memory of a second on the residuals of the model that is reported, its model error included. Stretches: what
differs between every other stretch of the ramps beyond that (:mod:`veridyn.identify.takes`). Zeros: what is left of each instrument's
zero. The others are handed-in knowledge (:mod:`veridyn.machines.car_known_2002`). Each channel's zero and each piece of knowledge is
moved by its standard deviation, the motion is made again, and the estimates answer to first order, J (WᵀW)⁻¹ Wᵀ Δr + ΔJ x. What was
recorded is brought to one band anew for another band alone: a zero passes all of them. Nothing of this needs the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.sampling import Sampling
from veridyn.machines.car_knowledge import CarKnown
from veridyn.machines.car_known_2002 import groups_2002, moved_2002
from veridyn.machines.car_record import CarRecord, needed
from veridyn.machines.car_sensors import kind_of
from veridyn.model.experiment import Experiment
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.studies.papers.car.bent import SuspensionFit
from veridyn.studies.papers.car.budget import Budget, Weighted, filtered_residuals, weighted

Array = NDArray[np.float64]
Record = Callable[[Experiment, CarKnown], CarRecord]
Read = Callable[[CarRecord, CarKnown], Motion]
TASK = "answers to what is handed in, paper of 2002"


@dataclass(frozen=True, eq=False)
class Answers2002:
    """How the sixteen of a fit of `logs` answer to one standard deviation of what is handed in, (16,).

    `record`: log → what its instruments recorded, in one band, of which `records` are those of the fit; `read`: record → motion.
    """

    found: SuspensionFit
    logs: tuple[Experiment, ...]
    known: CarKnown
    record: Record
    read: Read
    how: Sampling
    equations: Weighted
    residuals: Array
    records: tuple[CarRecord, ...]

    @classmethod
    def of(
        cls,
        found: SuspensionFit,
        logs: Sequence[Experiment],
        known: CarKnown,
        record: Record,
        read: Read,
        how: Sampling,
    ) -> Answers2002:
        equations = weighted(found, found.model.machine, found.motions, how)
        start = filtered_residuals(found, found.motions, how, equations)
        records = tuple(record(log, known) for log in logs)
        return cls(found, tuple(logs), known, record, read, how, equations, start, records)

    @property
    def channels(self) -> tuple[str, ...]:
        """Those that the motion is made of and whose zeros may be off."""
        sensors = self.known.sensors
        return tuple(c for c in needed(self.found.model.straight) if sensors.biases[kind_of(c)] > 0.0)

    def to_zero(self, channel: str) -> Array:
        """To the zero of an instrument's channel."""
        size = self.known.sensors.biases[kind_of(channel)]
        return self._to([seen.shifted(channel, size) for seen in self.records], self.known)

    def to_item(self, item: str) -> Array:
        """To a piece of knowledge."""
        other = moved_2002(self.known, {item: 1.0})
        same = other.sensors.kinds == self.known.sensors.kinds
        return self._to(self.records if same else [self.record(log, other) for log in self.logs], other)

    def _to(self, records: Sequence[CarRecord], known: CarKnown) -> Array:
        found, model = self.found, self.found.model
        motions = [self.read(seen, known) for seen in records]
        change = filtered_residuals(found, model.prepared(motions), self.how, self.equations) - self.residuals
        _, secants = model.secants(
            found.fit.names, motions
        )  # a clearance with another zero has another line through the same force
        return (
            found.secants @ self.equations.moved(change[:, None])[:, 0] + (secants - found.secants) @ found.fit.values
        )


def budget_2002(asked: Answers2002, stretches: Array, progress: Progress = silent) -> Budget:
    """The deviations of a fit. `stretches` (16,): what varies between parts of its drives beyond noise."""
    groups = groups_2002(asked.known)
    total, done = float(len(asked.channels) + sum(len(items) for items in groups.values())), 0.0
    parts = {"noise": asked.found.sigma, "stretches": stretches}
    for group, items in {"zeros": asked.channels, **groups}.items():
        answers = []
        for item in items:
            progress(TASK, done, total)
            done += 1.0
            answers.append(asked.to_zero(item) if group == "zeros" else asked.to_item(item))
        parts[group] = np.sqrt(np.square(answers).reshape(-1, len(stretches)).sum(axis=0))
    progress(TASK, total, total)
    return Budget(asked.found.names, parts)
