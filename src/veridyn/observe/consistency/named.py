"""Findings on an observation as objects, in the shape of those of a fit: cause, place, evidence, rank, size and sigma.

============== ==================== ============================================== ==================================
cause          place                size                                           evidence
============== ==================== ============================================== ==================================
delay          output               s that it is later                             2 Δ log L of the score test
held readings  output               samples that each reading is held              share of neighbours that are equal
outliers       output               share of its readings beyond the gate          how many
silent         sensor               share of its readings that is missing          z of its mean innovation, squared
frozen         sensor               share of its readings that is not used         the same
offset         sensor               mean innovation, in deviations of the mean     the same
dead centre    coordinate           least share of the usual sensitivity           how often
predictions    output               mean squared deviation through a muted sensor  the same, or over a horizon
directions     outputs, weighted    mean squared innovation along them             the same
model error    coordinate           rms acceleration that the model lacks          share of the coordinate's own
innovations    machine              NIS                                            the same
============== ==================== ============================================== ==================================

Those that say what to do stand before those that say how wrong the filter is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from veridyn.model.experiment import Experiment
from veridyn.observe.consistency.directions import wrong_directions
from veridyn.observe.consistency.findings import (
    FALSE_ALARMS,
    REFUSED_SHARE,
    USABLE_PREDICTION,
    found_delays,
    lost_coordinates,
    model_error_findings,
    nis_finding,
    sensor_findings,
)
from veridyn.observe.consistency.health import WORDS
from veridyn.observe.consistency.predictions import wrong_predictions
from veridyn.observe.consistency.sensor_delays import held_readings
from veridyn.observe.history import StateHistory
from veridyn.observe.measurements import Status
from veridyn.observe.observation import Observation
from veridyn.observe.result import ObserverFinding

FEW_OUTLIERS = 3  # readings of an output: chance puts one in a million beyond the gate
SENSOR_CAUSES = {WORDS[Status.MISSING]: "silent", WORDS[Status.FROZEN]: "frozen", WORDS[Status.OUTLIER]: "outliers"}


def named_findings(found: StateHistory, log: Experiment | None = None, skip: int = 0) -> tuple[ObserverFinding, ...]:
    """What limits what may be concluded from a run from sample `skip` on, by rank."""
    every = (*_of_sensors(found, log, skip), *_of_filter(found, skip))
    return tuple(replace(one, rank=k) for k, one in enumerate(every, 1))


def _of_sensors(found: StateHistory, log: Experiment | None, skip: int) -> Iterator[ObserverFinding]:
    for delay in found_delays(found, skip):
        yield ObserverFinding(
            cause="delay",
            place=delay.output,
            evidence=delay.evidence,
            size=delay.size,
            sigma=delay.sigma,
            message=str(delay),
        )
    yield from _held(found)
    named = sensor_findings(found, log, skip)
    for one in named:
        cause = SENSOR_CAUSES.get(one.what, "offset")
        size = one.deviations if cause == "offset" else one.share
        yield ObserverFinding(cause=cause, place=one.sensor, evidence=one.deviations**2, size=size, message=f"{one}.")
    refused = {one.sensor for one in named if one.share > REFUSED_SHARE}
    yield from _outliers(found, refused)
    for centre in lost_coordinates(found, skip):
        yield ObserverFinding(
            cause="dead centre",
            place=centre.coordinate,
            evidence=float(len(centre.times)),
            size=centre.share,
            message=str(centre),
        )


def _held(found: StateHistory) -> Iterator[ObserverFinding]:
    if not isinstance(found, Observation) or found.made_by is None:
        return
    readings, table = found.made_by.readings.select(found.estimates.outputs), found.system.table
    for j, name in enumerate(readings.names):
        values = readings.values[:, j]
        times = 1 if table.sensors[table.owner[j]].quantum else held_readings(values)
        if times > 1:
            heard = values[np.isfinite(values)]
            yield ObserverFinding(
                cause="held readings",
                place=name,
                evidence=float(np.mean(np.diff(heard) == 0.0)),
                size=float(times),
                message=f"'{name}' repeats each reading for {times} samples: its own clock is slower. Leave repeats out of the log (NaN): "
                "taken as new readings they make the filter too sure.",
            )


def _outliers(found: StateHistory, named: set[str]) -> Iterator[ObserverFinding]:
    e, table = found.estimates, found.system.table
    for j, name in enumerate(e.outputs):
        beyond = np.flatnonzero(e.status[:, j] == Status.OUTLIER)
        read = int((e.status[:, j] != Status.MISSING).sum())
        if len(beyond) < FEW_OUTLIERS or table.sensors[table.owner[j]].name in named:
            continue
        share = len(beyond) / read
        yield ObserverFinding(
            cause="outliers",
            place=name,
            evidence=float(len(beyond)),
            size=share,
            sigma=float(np.sqrt(share * (1.0 - share) / read)),
            message=f"{len(beyond)} of {read} readings of '{name}' ({100 * share:.2g} %) are beyond the gate and count little, the first "
            f"at {e.t[beyond[0]]:.6g} s.",
        )


def _of_filter(found: StateHistory, skip: int) -> Iterator[ObserverFinding]:
    if isinstance(found, Observation) and found.model_error is not None:
        considers = found.system.considered is not None
        for check, text in wrong_predictions(found.predictions, FALSE_ALARMS, USABLE_PREDICTION, considers):
            yield ObserverFinding(
                cause="predictions", place=check.output, evidence=check.z2, size=check.z2, message=text
            )
        for along, text in wrong_directions(found.directions(skip), FALSE_ALARMS, USABLE_PREDICTION):
            yield ObserverFinding(cause="directions", place=along.named, evidence=along.z2, size=along.z2, message=text)
        for name, rms, share, text in model_error_findings(found.model_error):
            yield ObserverFinding(cause="model error", place=name, evidence=share, size=rms, message=text)
    if found.estimates.dof[skip:].any():
        size, considers = found.nis(skip), found.system.considered is not None
        if text := nis_finding(size, found.usable_nis, considers):
            yield ObserverFinding(
                cause="innovations", place=found.system.name, evidence=size.mean, size=size.mean, message=text
            )
