"""How the loops of a machine were closed from measured positions: how near to singular ones that was, and what else was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.errors import Fault
from veridyn.identify.logged import Logged
from veridyn.inference.finding import Mistake
from veridyn.mechanics.tree.loops.assembly import splitting
from veridyn.mechanics.tree.loops.closing import loops_at
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine

MAX_DISAGREEMENT_SHARE = 0.01  # of a coordinate's span, between measured and followed positions (chosen)
CONDITION_SAMPLES = 2000  # samples of each piece at which the condition is looked at


@dataclass(frozen=True)
class Spare:
    """A coordinate that was measured though it follows: mean and rms of measured less followed, and how far it moves."""

    mean: float
    rms: float
    span: float


@dataclass(frozen=True, kw_only=True)
class Closing:
    """`given`: coordinates the motion was made from; `spans`: coordinate → least and largest position.

    `home` and `worst`: condition of what was solved for, at home and at its largest, at time `at` of a log: a singular position has an
    infinite one.
    """

    given: tuple[str, ...]
    spans: Mapping[str, tuple[float, float]]
    home: float
    worst: float
    at: float
    spare: Mapping[str, Spare]

    def suspicions(self) -> list[Mistake]:
        """Measured positions that are not those that follow."""
        off = {c: s for c, s in self.spare.items() if s.rms > MAX_DISAGREEMENT_SHARE * s.span}
        return [
            Mistake(
                "loop and encoder disagree",
                Fault(
                    "its measured position is not the one that follows from the others through closed loops.",
                    f"position of '{c}'",
                    f"differences up to {100 * MAX_DISAGREEMENT_SHARE:g} % of its span of {s.span:.4g}",
                    f"{s.rms:.3g} rms, {s.mean:.3g} of it steady",
                    "Look at the zeros of these encoders and their signs, and at the lengths in the model.",
                ),
            )
            for c, s in off.items()
        ]


def closing(machine: Machine, pieces: Sequence[Logged]) -> Closing | None:
    """What is to be said of the loops; None where there are none."""
    if not machine.closed:
        return None
    given = pieces[0].given
    split = splitting(tree_of(machine), given)
    at_home = loops_at(split, split.home[None]).condition
    worst, at = 0.0, 0.0
    for piece in pieces:
        m = piece.motion[:: max(1, len(piece.motion) // CONDITION_SAMPLES)]
        condition = loops_at(split, m.q).condition
        if condition.max() > worst:
            worst, at = float(condition.max()), float(m.t[int(np.argmax(condition))])
    q = np.concatenate([piece.motion.q for piece in pieces])
    spans = {c: (float(x.min()), float(x.max())) for c, x in zip(machine.coordinates, q.T, strict=True)}
    spare = {}
    for c in pieces[0].spare:
        d = np.concatenate([piece.spare[c] for piece in pieces])
        spare[c] = Spare(float(d.mean()), float(np.sqrt(np.mean(d**2))), spans[c][1] - spans[c][0])
    return Closing(given=given, spans=spans, home=float(at_home[0]), worst=worst, at=at, spare=spare)
