"""The parameters of a car from a drive: those under which the innovations of its observer are most likely, with the priors of the machine.

fit = identify(car, log, Innovations(tuned=("bank",)));  fit.machine()      the car with values and covariance
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import (
    CapabilityError,
    Fault,
    IdentificationError,
    IdentificationWarning,
    Limit,
    VeridynError,
    did_you_mean,
    part_at,
    warn,
)
from veridyn.identify.car_fit import (
    CarFit,
    drive_rows,
    groups_of,
    held_out_of,
    information,
    one_drive,
    predictions,
)
from veridyn.identify.diagnosis.fit_check import Diagnose, check_level
from veridyn.identify.estimator import NOTE, disagreement
from veridyn.identify.settings import IdentifySettings
from veridyn.inference.agreement import PartSums, agreement
from veridyn.lazy import above
from veridyn.model.car import TABLE
from veridyn.model.machine import Machine
from veridyn.model.parameters import ParameterFit
from veridyn.model.single_track import NOISES, CarNoise, prior_of, with_exchanged_axles, with_values
from veridyn.progress import Progress, silent
from veridyn.settings import Settings, changed
from veridyn.signals.drive import DriveLog

SWAP_EVIDENCE = 8.0  # of the logarithm of the likelihood
KNOWN_TYRES = 0.25  # relative deviation of tyre stiffness up to which exchanged axles show
NO_REGRESSOR = Limit(
    "tyres are not linear in its parameters, so that there is no regressor",
    "Use 'innovations', or leave the method out.",
)


@dataclass(frozen=True, repr=False)
class Innovations(Settings):
    """Estimates the parameters of a car by the innovations of its extended Kalman filter, together with their priors.

    `noise`: what the equations leave out. `tuned`: which of slip_error, bank, lateral, yaw and the sensors' own noises (by name) are found
    with the parameters, within a factor e or so of what is stated.
    """

    error: ClassVar[type[VeridynError]] = IdentificationError
    name: ClassVar[str] = "innovations"
    title: ClassVar[str] = "innovations of the extended Kalman filter"

    noise: CarNoise = field(default_factory=CarNoise)
    tuned: tuple[str, ...] = ()


def identify_car(
    machine: Machine,
    data: object,
    method: Innovations | str = "innovations",
    settings: IdentifySettings | None = None,
    *,
    validation: Any = None,
    progress: Progress = silent,
    diagnose: Diagnose = "fast",
    **others: Any,
) -> CarFit:
    """What ``identify`` does with a car of a few numbers: `data` is the log of a drive.

    `validation`: the log of another drive, which judges; the last 30 % of this one where it is left out, and nothing with "none".
    The words of other methods, and settings that belong to a regressor (all but acceptance), are refused by name. What the log shows
    to be wrong is warned of and stands in the notes; "fast" and "full" ask the same of it.
    """
    check_level(diagnose)
    how = settings or IdentifySettings()
    for name in (*others, *(name for name in changed(how) if name != "acceptance")):
        raise IdentificationError(
            f"'{name}' belongs to equations that are linear in the parameters.",
            where="identify",
            hint="A car of a few numbers is identified by identify(car, log, Innovations(…)).",
            source=machine.name,
        )
    log = one_drive(data, "identify", "a car is identified from the log of a drive.")
    chosen = Innovations() if method == Innovations.name else method
    if not isinstance(chosen, Innovations):
        asked = f"estimator '{getattr(method, 'name', method)}'"
        raise CapabilityError("single_track", asked, *NO_REGRESSOR, where=f"identify, {machine.name}")
    drive_of = above("veridyn.observe.car.system", "drive_of")
    drive, rest, logs = drive_of(machine, log), None, [log]
    if validation is None:
        drive, rest = held_out_of(drive)
    elif validation != "none":
        logs.append(one_drive(validation, "validation", "a car is validated on the log of a drive."))
        rest = drive_of(machine, logs[1])
    found = replace(fit_car(machine, chosen, drive, progress), acceptance=how.acceptance)
    for fault in found.faults:
        warn(IdentificationWarning, fault)
    if diagnose != "off":
        swapped = swapped_axles_fault(found, machine, chosen, drive, progress)
        found = found.with_findings(logs, [] if swapped is None else [swapped])
    return found if rest is None else found.with_validation(rest, progress, checks=diagnose != "off")


def fit_car(car: Machine, method: Innovations, drive: DriveLog, progress: Progress = silent) -> CarFit:
    """The estimated parameters of the car, and the noises of `tuned`, under which this drive and the priors are most likely."""
    estimated = tuple(n for n, state in zip(TABLE, car.parameters.states, strict=True) if state == "estimated")
    _check(car, method, estimated)
    search: ParameterFit = above("veridyn.observe.car.system", "most_likely")(
        car, method.noise, method.tuned, estimated, drive, progress
    )
    search, apart = _with_disagreement(search, estimated)
    found, noise = with_values(car, method.noise, search.values)
    at = [list(search.values).index(n) for n in estimated]
    C = search.covariance[np.ix_(at, at)]
    seen, log = predictions(found, noise, drive)
    rows = drive_rows(seen, log)
    base, values = groups_of(car, estimated, C), np.array([search.values[n] for n in estimated])
    raw, scaled = information(C), base.singular_values
    left = [search.sigma[n] / search.guesses[n].spread(search.values[n]) for n in estimated]
    largest = [
        float(np.nanmax(np.abs(drive.channels[s.name]))) for s in car.sensors if s.on == "ay" and s.name in log.names
    ]
    return CarFit(
        described=car,
        base=base,
        values=values,
        covariance=C,
        rows=rows,
        estimator=Innovations.title,
        residual_sigma=float(np.sqrt(np.nanmean([r.nis for r in rows]))),
        condition=float(raw[0] / raw[-1]),
        condition_scaled=float(scaled[0] / scaled[-1]),
        standard_values=found.parameters.values,
        prior_share=_over_all(car, base.columns, np.square(left)),
        formulation="single_track",
        noise=noise,
        fit=search,
        largest=largest[0] if largest else float("nan"),
        notes=tuple(f"{NOTE}{said}" for said in apart),
        disagreement=" ".join(apart),
    )


def _with_disagreement(search: ParameterFit, estimated: tuple[str, ...]) -> tuple[ParameterFit, tuple[str, ...]]:
    """The search with deviations widened where parts of the drive disagree, and notes of it: what varies along a drive is not known better
    by a longer one.

    Parameters of the car and of its noise are compared apart. To first order the one do not depend on the other (innovations and their
    squares are uncorrelated), and a sensor that is noisier on one stretch says nothing of a car that is another one there.
    """
    parts, names = search.stretches, list(search.values)
    if parts is None:
        return search, ()
    factors, notes = np.ones(len(names)), []
    car = [n in estimated for n in names]
    for own in (np.flatnonzero(car), np.flatnonzero(np.logical_not(car))):
        if not len(own):
            continue
        sums = PartSums(parts.information[:, own[:, None], own], parts.scores[:, own])
        found = agreement(sums, parts.covariance[np.ix_(own, own)], np.eye(len(own)))
        if found.widening > 1.0:
            factors[own] = found.widening
            notes.append(disagreement(found, [names[k] for k in own]))
    return (search.widened(factors), tuple(notes)) if notes else (search, ())


def _over_all(car: Machine, columns: tuple[int, ...], values: Array) -> Array:
    """Values of the estimated parameters among all of the car, NaN for the others."""
    out = np.full(len(car.parameters), np.nan)
    out[list(columns)] = values
    return out


def swapped_axles_fault(
    found: CarFit, car: Machine, method: Innovations, drive: DriveLog, progress: Progress
) -> Fault | None:
    """Distances of the axles that are exchanged: the drive is far more likely the other way round, tyres and priors considered."""
    other = exchanged_axles(car)
    if other is None:
        return None
    swapped = fit_car(other, method, drive, progress)
    gain = _evidence(swapped.fit) - _evidence(found.fit)
    if gain < SWAP_EVIDENCE:
        return None
    a, b = car.parameters["front"], car.parameters["rear"]
    return Fault(
        "the distances of the front and the rear axle seem to be exchanged.",
        "car, front and rear",
        f"front {b:g} and rear {a:g} m, by {gain:.0f} units of log-likelihood",
        f"front {a:g} and rear {b:g} m",
        "Both are measured from the centre of mass.",
    )


def exchanged_axles(car: Machine) -> Machine | None:
    """The car with its axles the other way round; None where a drive cannot tell: tyres hardly known beforehand, or equal distances."""
    a, b = car.parameters["front"], car.parameters["rear"]
    tyres = [prior_of(car, n) for n in ("front_stiffness", "rear_stiffness")]
    vague = max(t.sigma / t.value for t in tyres) > KNOWN_TYRES
    if vague or abs(a - b) < 0.02 * (a + b):
        return None
    return with_exchanged_axles(car)


def _evidence(fit: ParameterFit) -> float:
    """log p of readings and parameters together."""
    z = [
        (np.log(fit.values[n] / g.value) * g.value if g.positive else fit.values[n] - g.value) / g.sigma
        for n, g in fit.guesses.items()
    ]
    return fit.log_likelihood - 0.5 * float(np.sum(np.square(z)))


def _check(car: Machine, method: Innovations, estimated: tuple[str, ...]) -> None:
    faults = []
    if not estimated:
        hint = "Give it a deviation in the model file: front_stiffness: {value: 15, sigma: 6}."
        faults.append(Fault("no parameter of this car is estimated.", where=part_at("parameters"), hint=hint))
    for n in estimated:
        if not prior_of(car, n).sigma > 0.0:
            what = f"the estimated parameter '{n}' has no prior deviation."
            hint = (
                "A drive shows most parameters of a car only together with what is known beforehand: give it a sigma."
            )
            faults.append(Fault(what, where=part_at("car", n), hint=hint))
    known = (*NOISES, *(s.name for s in car.sensors))
    faults += [
        Fault(f"there is no noise '{n}' to tune.", where="Innovations.tuned", hint=did_you_mean(n, known))
        for n in method.tuned
        if n not in known
    ]
    if faults:
        raise IdentificationError(faults, car.name)
