"""The judge of observations: what was found against one, and how good it is; the same for every machine and at every door.

`CHECKS` are asked in order, and what they find is ranked: those that say what to do stand before those that say how wrong the filter is.

================ ==================== ============================================== ==================================
cause            place                size                                           evidence
================ ==================== ============================================== ==================================
constant         output               s at which it is seen first                    how many samples
clock offset     sensor               –                                              –
log, axles       of a drive           –                                              –
lost track       output               s from which on the model explains little      −2 log p a reading, beyond that without a model
delay            output               s that it is later                             2 Δ log L of the score test
held readings    output               samples that each reading is held              share of neighbours that are equal
outliers         output               share of its readings beyond the gate          how many
silent           sensor               share of its readings that is missing          z of its mean innovation, squared
frozen           sensor               share of its readings that is not used         the same
offset           sensor               mean innovation, in deviations of the mean     the same
dead centre      coordinate           least share of the usual sensitivity           how often
never used       output               share of its readings that is not used         –
process noise    machine              –                                              –
open constraints constraints          m or 1 by which they open                      –
predictions      output               mean squared deviation through a muted sensor  the same, or over a horizon
directions       outputs, weighted    mean squared innovation along them             the same
model error      coordinate           rms acceleration that the model lacks          share of the coordinate's own
innovations      machine              NIS                                            the same
================ ==================== ============================================== ==================================

An innovation is the error of a reading that was predicted before it was used. So the rows of the verdict are the outputs, predicted from
one sample to the next, and those that were withheld altogether; their noise is the deviation that the filter states. They are samples held
out of the estimate that predicts them, and an observation is not "not validated" for want of others. What predictions one step ahead do not
show are the quantities that nobody measures: that needs predictions through a muted sensor, which are findings, or a reference.

=================================================== =======
reason                                              at best
=================================================== =======
NIS outside the usable band of the machine          fair
innovations that are correlated in time             fair
both                                                poor
the model has lost track                            poor
channels of a drive, or axles, that are mistaken    poor
any other finding, but for outliers that were gated fair
an estimated parameter at its bound                 fair
no reading was used                                 not validated
=================================================== =======

and what :mod:`veridyn.inference.verdict` says of rows. Bands of a car of a few numbers allow for innovations that are correlated in time:
errors of its tyres are states that last, and its bands are as wide as the innovations are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from veridyn.arrays import Array
from veridyn.inference.error_measures import Moments, RowReport
from veridyn.inference.finding import FoundCause
from veridyn.inference.verdict import Grade, Outcome, Reason, Verdict, verdict_of
from veridyn.observe.consistency.findings import (
    REFUSED_SHARE,
    dead_centres_of,
    delays_of,
    limits,
    nis_finding,
    observation_findings,
    sensor_findings,
    wrong_by_prediction,
)
from veridyn.observe.consistency.health import WORDS, held_readings
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.observation import Observation
from veridyn.observe.result import Estimates

Check = Callable[[Observation], Iterable[FoundCause]]
FEW_OUTLIERS = 3  # readings of an output: chance puts one in a million beyond the gate
SENSOR_CAUSES = {WORDS[Status.MISSING]: "silent", WORDS[Status.FROZEN]: "frozen", WORDS[Status.OUTLIER]: "outliers"}
UNUSED = (Status.NOT_FINITE, Status.FROZEN, Status.OUTLIER, Status.LATE)
PAUSE_STEPS = 10.0  # times the usual step: a pause of the log that is told
SHOWN_PAUSES = 3
GRAVE = ("lost track", "log", "axles")  # causes that make the states themselves wrong
OWN_REASON = ("innovations",)  # causes that the verdict states in its own words


def findings_of(found: Observation) -> tuple[FoundCause, ...]:
    """What limits what may be concluded from a run, by rank."""
    every = [one for check in CHECKS for one in check(found)]
    return tuple(replace(one, rank=k) for k, one in enumerate(every, 1))


def lost_tracks_of(found: Observation) -> Iterator[FoundCause]:
    """Outputs that the model predicts worse than they do themselves."""
    for one in found.lost:
        yield FoundCause(cause="lost track", place=one.output, evidence=one.excess, size=one.since, message=str(one))


def held_outputs(found: Observation) -> Iterator[FoundCause]:
    """Outputs that repeat each reading for a slower clock."""
    if found.made_by is None:
        return
    readings, table = found.made_by.readings.select(found.estimates.outputs), found.system.table
    for j, name in enumerate(readings.names):
        values = readings.values[:, j]
        times = 1 if table.sensors[table.owner[j]].quantum else held_readings(values)
        if times > 1:
            heard = values[np.isfinite(values)]
            yield FoundCause(
                cause="held readings",
                place=name,
                evidence=float(np.mean(np.diff(heard) == 0.0)),
                size=float(times),
                message=f"'{name}' repeats each reading for {times} samples: its own clock is slower. Leave repeats out of the log (NaN): "
                "taken as new readings they make the filter too sure.",
            )


def wrong_sensors(found: Observation) -> Iterator[FoundCause]:
    """Sensors that are silent, frozen or beside what the model expects, and outputs some of whose readings are outliers."""
    named = sensor_findings(found, skip=found.settled)
    for one in named:
        cause = SENSOR_CAUSES.get(one.what, "offset")
        size = one.deviations if cause == "offset" else one.share
        yield FoundCause(cause=cause, place=one.sensor, evidence=one.deviations**2, size=size, message=f"{one}.")
    yield from _outliers(found, {one.sensor for one in named if one.share > REFUSED_SHARE})


def _outliers(found: Observation, named: set[str]) -> Iterator[FoundCause]:
    e, table = found.estimates, found.system.table
    for j, name in enumerate(e.outputs):
        beyond = np.flatnonzero(e.status[:, j] == Status.OUTLIER)
        read = int((e.status[:, j] != Status.MISSING).sum())
        if len(beyond) < FEW_OUTLIERS or table.sensors[table.owner[j]].name in named:
            continue
        share = len(beyond) / read
        yield FoundCause(
            cause="outliers",
            place=name,
            evidence=float(len(beyond)),
            size=share,
            sigma=float(np.sqrt(share * (1.0 - share) / read)),
            message=f"{len(beyond)} of {read} readings of '{name}' ({100 * share:.2g} %) are beyond the gate and count little, the first "
            f"at {e.t[beyond[0]]:.6g} s.",
        )


def faults_of_log(found: Observation) -> tuple[FoundCause, ...]:
    """What the log shows to be wrong by itself, and what only such a machine can be found to have."""
    return (*found.inspection, *found.own_findings())


def wrong_size(found: Observation) -> Iterator[FoundCause]:
    """Innovations that are not as large as the filter states."""
    if _judged(found):
        size = found.nis()
        if text := nis_finding(size, found.usable_nis, found.system.considered is not None):
            yield FoundCause(
                cause="innovations", place=found.system.name, evidence=size.mean, size=size.mean, message=text
            )


CHECKS: tuple[Check, ...] = (
    faults_of_log,
    lost_tracks_of,
    delays_of,
    held_outputs,
    wrong_sensors,
    dead_centres_of,
    limits,
    wrong_by_prediction,
    wrong_size,
)


def _judged(found: Observation) -> bool:
    """Whether a reading was used after the run has settled."""
    return bool(found.estimates.dof[found.settled :].any())


def predicted_rows(
    e: Estimates, readings: Measurements, units: Mapping[str, str], settled: int = 0
) -> tuple[RowReport, ...]:
    """Outputs as rows, from sample `settled` on: readings that were used, predicted from one sample to the next, and withheld ones.

    What an output varies by is that of all these readings together: a span that is withheld may be short.
    """
    status = np.where(np.isfinite(e.innovations), e.status, Status.MISSING)[settled:]
    innovations, variances = e.innovations[settled:], e.innovation_variances[settled:]
    rows = []
    for j, name in enumerate(e.outputs):
        compared = {"": status[:, j] == Status.USED, ", withheld": status[:, j] == Status.WITHHELD}
        read = Moments.of(readings.values[settled:, readings.names.index(name)][compared[""] | compared[", withheld"]])
        for word, these in compared.items():
            if these.any():
                nu, s = innovations[these, j], variances[these, j]
                size, stated = (float(np.sqrt(np.mean(x))) for x in (nu**2, s))
                more = {"measured_std": read.std, "noise": stated, "nis": float(np.mean(nu**2 / s))}
                rows.append(RowReport(f"{name}{word}", len(nu), size, read.rms, unit=units[name], **more))
    return tuple(rows)


def judged_observation(found: Observation) -> Verdict:
    """The verdict of an observation."""
    table, name, judged = found.system.table, found.system.name, _judged(found)
    units = dict(zip(table.names, table.units, strict=True))
    rows = predicted_rows(found.estimates, found.readings, units, found.settled)
    coloured = [output for output, w in found.whiteness().items() if not w.is_white]
    fits = not judged or found.usable_nis[0] <= found.nis().mean <= found.usable_nis[1]
    held = fits and (not coloured or found.allows_for_colour)
    matching = f"The observer's errors on “{name}” match its stated bands"
    missing = f"The observer's errors on “{name}” do not match its stated bands."
    beside = f"{matching}; what speaks against it stands below." if held else missing
    headlines: dict[Grade, str] = {
        "good": f"{matching}.",
        "fair": beside,
        "poor": beside,
        "not validated": f"No reading of “{name}” was used.",
    }
    verdict = verdict_of(
        Outcome(
            name=name,
            held_out=rows,
            findings=[f for f in found.findings if f.cause not in (*GRAVE, *OWN_REASON) and not _is_allowed_for(f)],
            bounds=[f"{text}." for text in found.bounded()],
            undetermined=list(found.system.frozen),
            unjudged="" if judged else "no reading was used",
            further=list(_further(found, coloured, fits)),
            headlines=headlines,
            may=("Reading its bands as they stand.",) if held and judged else (),
            may_not=() if held or not judged else (_beside_bands(found, coloured),),
        )
    )
    return replace(verdict, findings=tuple(_sentences(found, coloured, judged)))


def _is_allowed_for(finding: FoundCause) -> bool:
    """Whether the gate has dealt with it: some outliers, of a sensor that otherwise agrees."""
    return finding.cause == "outliers" and finding.size <= REFUSED_SHARE


def _further(found: Observation, coloured: list[str], fits: bool) -> Iterator[Reason]:
    """What speaks against an observation beside rows and findings."""
    for one in found.findings:
        if one.cause in GRAVE:
            yield Reason("poor", one.cause, str(one))
    remembers = bool(coloured) and not found.allows_for_colour
    if not fits:
        low, high = found.usable_nis
        what = f"NIS is {found.nis().mean:.3g}, and bands are of use from {low:g} to {high:g}."
        yield Reason("poor" if coloured else "fair", "innovations", what)
    if remembers:
        named = ", ".join(f"'{output}'" for output in coloured)
        yield Reason("fair", "coloured", f"Innovations are correlated in time: {named}.")


def _beside_bands(found: Observation, coloured: list[str]) -> str:
    """Why bands are not to be read as they stand."""
    nis, (low, high) = found.nis().mean, found.usable_nis
    size = "too narrow" if nis > high else "wider than they need to be" if nis < low else "of the right size"
    lasting = ", and errors last longer than the filter assumes" if coloured else ""
    return f"Reading its bands as they stand: they are {size}{lasting}."


def _sentences(found: Observation, coloured: list[str], judged: bool) -> Iterator[str]:
    """What was found of innovations and of readings, for the first lines of a page."""
    if not judged:
        return
    yield f"Squared innovations are {found.nis().mean:.3g} times what the filter states for them (NIS per reading, ideal 1)."
    if coloured:
        yield f"Not white: {', '.join(coloured)}."
    elif found.whiteness():
        yield "Innovations of every output are white."
    else:
        yield "Too few readings to test whether they are white."
    for output, n in rejected_readings(found).items():
        if n:
            yield f"{n} {'reading' if n == 1 else 'readings'} of '{output}' {'was' if n == 1 else 'were'} not used."


def rejected_readings(found: Observation) -> dict[str, int]:
    """Output → readings that were there and were not used."""
    return {name: sum(counts[s.name.lower()] for s in UNUSED) for name, counts in found.estimates.counts().items()}


def remarks(found: Observation) -> tuple[str, ...]:
    """What a reader of a page should know: what became of sensors, pauses of the clock, and findings; also those that chance may explain,
    as every NIS outside its band of 95 %."""
    episodes, rejected = found.episodes(), rejected_readings(found)
    usable = found.usable_nis if found.allows_for_colour else (1.0, 1.0)
    reported = {e.output for e in episodes}
    return (
        *(str(one) for one in found.inspection),
        *(f"{e}." for e in episodes),
        *pauses(found.t),
        *_less_than_a_quantum(found),
        *(
            f"{n} {'reading' if n == 1 else 'readings'} of '{output}' not used."
            for output, n in rejected.items()
            if n and output not in reported
        ),
        *(observation_findings(found, 1.0 - found.nis().level, usable) if _judged(found) else ()),
        *map(str, delays_of(found)),
        *map(str, dead_centres_of(found)),
        *map(str, wrong_by_prediction(found)),
    )


def _less_than_a_quantum(found: Observation) -> Iterator[str]:
    table, readings = found.system.table, found.readings
    for name, k in zip(table.names, table.owner, strict=True):
        y, quantum = readings.values[:, readings.names.index(name)], table.sensors[k].quantum
        if np.isfinite(y).any() and 0.0 < (wide := float(np.nanmax(y) - np.nanmin(y))) < 0.5 * quantum:
            yield (
                f"the readings of '{name}' differ by {wide:.3g} at most, which is less than the quantum of its sensor, {quantum:g}: "
                "is that its unit?"
            )


def pauses(t: Array) -> list[str]:
    """Sentences about pauses of a clock: the model goes on alone, and its bands grow."""
    steps = np.diff(t)
    if not len(steps):
        return []
    usual = float(np.median(steps))
    spans = [(float(t[k]), float(t[k + 1])) for k in np.flatnonzero(steps > PAUSE_STEPS * usual)]
    out = [
        f"the log pauses from {a:.6g} s to {b:.6g} s: the model goes on alone, and its bands grow."
        for a, b in spans[:SHOWN_PAUSES]
    ]
    return out + ([f"the log has {len(spans) - SHOWN_PAUSES} more such pauses."] if len(spans) > SHOWN_PAUSES else [])
