"""Causes in order: each is a model that is compared with the one without it, structure before sensors.

The causes that explain most, as the equations are and behind the filters of their noise, are fitted each with a noise of its own
(:mod:`veridyn.identify.diagnosis.likelihood`). A cause is significant where both its score, whose variance allows for what correlation is
left, and its gain in likelihood are beyond what noise makes of so many questions. Where none is, what every gear has is asked at all places
together. A sensor is named before structure only where it beats the best of that by `STRONG` of Schwarz's
criterion. What was found is taken into the model, and the others are asked again; those that explained nearly as much, and nothing beside
it, cannot be separated from it on this log.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridyn.identify.diagnosis.causes import Damage
from veridyn.identify.diagnosis.evidence import STRONG
from veridyn.identify.diagnosis.questions import BEHIND_REVERSALS, Answer, Questions
from veridyn.identify.diagnosis.score_test import ROTOR
from veridyn.identify.diagnosis.structure import (
    ASYMMETRIC,
    LATE_FORCE,
    LOW_PASS,
)

MAX_DAMAGES = 12  # that are looked for in one log: as many joints as an arm has may lack the same
# Of the limit of the first, for damages beside it: errors of a model leave several small traces (chosen)
FURTHER_SHARE = 0.1


def ranked(questions: Questions, false_alarm_rate: float) -> list[list[Damage]]:
    """Causes that are significant at this rate over all questions, the best first, each with those that this log cannot
    separate from it.

    Structure is asked first: a cause of a sensor comes before it only where it beats the best structure, in one joint or in all, by
    `STRONG` of Schwarz's criterion. What was found is taken into the model, and the others are asked again, more strictly. A rotor that the
    machine has by its description, and the model not, comes last.
    """
    found: list[list[Damage]] = []
    limits, share = questions.limits(false_alarm_rate), 1.0

    def is_clear(a: Answer) -> bool:
        return a.chance < share * limits[a.cause.kind]

    for _ in range(MAX_DAMAGES):
        possible = [a for a in questions.leading() if questions.possible(a)]
        clear = [a for a in possible if is_clear(a)]
        if not clear:
            possible = clear = [a for a in questions.everywhere() if is_clear(a) and questions.possible(a)]
        if not clear:
            possible = clear = [a for a in questions.together() if is_clear(a) and questions.possible(a)]
        if not clear:
            break
        best = _best(clear, questions)
        questions.take(best)
        group = [best.damage]
        # Also such as are not significant by themselves: what is nearly as likely as the best is not separated from it.
        for a in sorted((a for a in possible if a.criterion > 0.0), key=lambda a: -a.criterion):
            name = a.cause.name
            if a.criterion > best.criterion - STRONG and name not in {(d.kind, d.where) for d in group}:
                again = questions.answer(a.cause, np.zeros((len(questions.fit.values), a.cause.columns.shape[2])))
                if not is_clear(again):
                    group.append(a.damage)
        found.append(group)
        share = FURTHER_SHARE
    rotor = None if any(d.kind == ROTOR for group in found for d in group) else questions.unknown_rotors()
    return found if rotor is None else [*found, [rotor]]


def _best(clear: Sequence[Answer], questions: Questions) -> Answer:
    """The cause that is taken: the best structure unless a sensor beats it clearly."""
    structure = max((a for a in clear if a.cause.structural), key=lambda a: a.criterion, default=None)
    sensor = max((a for a in clear if not a.cause.structural), key=lambda a: a.criterion, default=None)
    if sensor is not None and sensor.cause.kind == LOW_PASS:  # a delay differs from it by second order, and is commoner
        late = [a for a in clear if a.cause.name == (LATE_FORCE, sensor.cause.where)]
        sensor = max(
            (a for a in late if a.criterion > sensor.criterion - STRONG), key=lambda a: a.criterion, default=sensor
        )
    if structure is None or sensor is None:
        best = structure or sensor
        assert best is not None  # one of them is clear
        return best
    offset = (sensor.cause.kind, structure.cause.kind) == ("force offset", ASYMMETRIC)
    if offset and sensor.cause.where == structure.cause.where and sensor.criterion > structure.criterion:
        return sensor  # the dry part of that friction is an offset; nothing of the rest is seen
    if structure.cause.kind in BEHIND_REVERSALS and sensor.cause.kind in BEHIND_REVERSALS:
        # Of one column each in the same few samples, whose scatter says little of either
        gain = sensor.evidence - structure.evidence
    else:
        gain = sensor.criterion - structure.criterion
    if gain <= STRONG:
        return structure
    every = questions.family(structure.cause.kind)
    return sensor if sensor.criterion > every + STRONG else structure
