"""``veridyn observe`` of a car: sideslip, forces, roll and loads with bands, and the way of the car through gaps of its positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, IdentificationError, VeridynError
from veridyn.identify.estimators.innovations import fit_car, swapped_axles_fault
from veridyn.inference.verdict import GRADES, Outcome, Reason, Verdict, verdict_of
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.single_track import CarNoise, with_tyre
from veridyn.observe.car.observation import FEWEST_FITTED, CarObservation, observed_car, run_car
from veridyn.observe.car.pipeline import SETTLED_LOGS, SETTLING_S, CarObservationRun, drive_fault
from veridyn.observe.car.system import lateral_measurements, path_start, path_system
from veridyn.observe.consistency.figures import consistency_figures
from veridyn.observe.consistency.findings import nis_finding, serious_findings
from veridyn.observe.consistency.judge import predicted_rows
from veridyn.observe.consistency.nis import nis
from veridyn.observe.consistency.withheld import TWO_SIGMA, withheld_figures
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import EKF, Smoother
from veridyn.observe.filters.run import run, smooth
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.observation import Reading
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.result import Estimates, Track
from veridyn.observe.settings import ObserveSettings
from veridyn.progress import Progress, silent
from veridyn.signals.drive import CHANNELS, DriveLog, wheel_scales
from veridyn.studies.config.observe import CarObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import NAN, rms_of
from veridyn.studies.run.car import (
    fitted_rows,
    reference_values,
    study_car,
    study_drive,
    study_filter,
    study_method,
)
from veridyn.studies.run.observe_log import withheld_placed
from veridyn.studies.run.observed import ObservedDrive, ObserveRun

LINEAR_NOISE = 1e-6  # of errors that a textbook's linear filter does not have
HINT = "Look at the units and signs of speed, steering and yaw rate, at the clock, and at the parameters of the car."


def observe_drive(loaded: Loaded[CarObserveFile], progress: Progress = silent) -> ObserveRun:
    """What a study of kind observe says of a drive: parameters identified first where it has a training span, then states and way."""
    study: CarObserveFile = loaded.study
    car, method, how, fitted = study_car(loaded), study_method(loaded), study_filter(loaded), None
    whole = study_drive(replace_span(loaded), car)
    faults = list(whole.faults)
    lateral = whole.has("speed", "steer") and (whole.has("yaw_rate") or whole.has("ay"))
    if not lateral and study.path is None:
        wanted = "speed, steer and yaw_rate or ay, or a section path with positions"
        raise loaded.error_at(("log", "columns"), "there is nothing to observe.", wanted, ", ".join(whole.channels))
    with withheld_placed(loaded), loaded.placing(("log",), DataError, IdentificationError):
        if study.training is not None and lateral:
            train = whole.between(*study.training)
            if len(train.t) < FEWEST_FITTED:
                raise loaded.error_at(("training",), "fewer than fifty samples lie in this span.")
            fitted = fit_car(car, method, train, progress)
            faults += fitted.faults
            if study.checks:
                swapped = swapped_axles_fault(fitted, car, method, train, progress)
                faults += [swapped] if swapped is not None else []
        end = np.inf if study.log.end is None else study.log.end
        drive = whole.between(study.log.start, end)
        if len(drive.t) < 10:
            raise loaded.error_at(("log",), "fewer than ten samples lie between start and end.")
        noise = method.noise if fitted is None else fitted.noise
        seen = _lateral(study, how, car if fitted is None else fitted.car, noise, whole, progress) if lateral else None
        if seen is not None:
            asked = seen.beginning if study.checks and fitted is None else None
            seen = replace(seen, inspection=tuple(map(drive_fault, faults)), beginning=asked)
        way = _path(study, how, car, whole, drive, progress) if study.path is not None else None
    given = {} if study.reference is None else reference_values(loaded, study.reference, study.reference.file, whole)
    inside = np.isin(whole.t, drive.t)
    reference = {n: v[inside] for n, v in given.items()}
    figures: dict[str, float] = {"samples": float(len(drive.t)), "duration": float(drive.t[-1] - drive.t[0])}
    linear, virtual = None, dict[str, Reading]()
    if seen is not None:
        virtual, settled = seen.virtual(*study.virtual), drive.t >= seen.t[seen.settled]
        figures |= _lateral_figures(seen, virtual, reference, settled)
        faults += [Fault(str(one)) for one in seen.findings if one.cause == "axles"]
        faults = faults or [
            Fault(str(one), "lateral motion", hint=HINT) for one in seen.findings if one.cause == "innovations"
        ]  # a cause that is named explains it
        if study.compare_linear:
            linear = _linear_sideslip(method.noise, car, drive)
            if "sideslip" in reference:
                use = settled & np.isfinite(reference["sideslip"])
                figures["rms_sideslip_linear"] = rms_of((linear - reference["sideslip"])[use])
                if fitted is not None and study.training is not None:
                    own = fit_car(with_tyre(car, "linear"), method, whole.between(*study.training), progress)
                    linear = _linear_sideslip(method.noise, replace(own.car, sensors=car.sensors), drive)
                    figures["rms_sideslip_linear_identified"] = rms_of((linear - reference["sideslip"])[use])
    path_verdict = None
    if way is not None and study.path is not None:
        figures |= _path_figures(way.track, reference, drive, study.path.gaps)
        size = nis(way.estimates, skip=int(np.argmax(_settled(drive))))
        figures["path_nis"], path_verdict = size.mean, way.verdict(car.name, nis_finding(size))
    if whole.offset is not None:
        figures["clock_offset"], figures["clock_offset_sigma"] = whole.offset.seconds, whole.offset.sigma
    figures["suspicions"] = float(len(faults))
    frozen_parameters = {} if seen is None else seen.frozen()
    if study.estimate:
        figures["frozen"] = float(len(frozen_parameters))
    found = ObservedDrive(
        car=car if fitted is None else fitted.car,
        drive=drive,
        fitted=fitted,
        identified=() if fitted is None or seen is None else tuple(fitted_rows(fitted)),
        reference=reference,
        linear=linear,
        path=None if way is None else way.track,
        path_verdict=path_verdict,
        gaps=() if study.path is None else study.path.gaps,
        figures=figures,
        frozen=frozen_parameters,
        faults=tuple(faults),
    )
    notes = [str(f) for f in faults]
    if seen is not None:
        size = [str(one) for one in seen.findings if one.cause == "innovations"]
        notes += [text for text in serious_findings(seen) if text not in size]
    return ObserveRun(seen, virtual, NAN, whole.hashes, study.accept, tuple(notes), found)


def replace_span(loaded: Loaded[Any]) -> Loaded[Any]:
    """The study with its whole log: what is observed is cut out later, after what is learned from."""
    log = loaded.study.log.model_copy(update={"start": 0.0, "end": None})
    return replace(loaded, study=loaded.study.model_copy(update={"log": log}))


@dataclass(frozen=True, eq=False)
class _Way:
    estimates: Estimates
    readings: Measurements
    track: Track  # the estimates themselves, or smoothed

    def verdict(self, car: str, finding: str) -> Verdict:
        """By its outputs, predicted from one sample to the next, and their size."""
        rows = predicted_rows(self.estimates, self.readings, CHANNELS)
        further = [Reason("fair", "innovations", f"the way of the car: {finding}")] if finding else []
        headlines = dict.fromkeys(GRADES, f"{car}: its way, also where its positions are missing.")
        return verdict_of(Outcome(name=car, held_out=rows, further=further, headlines=headlines))


def _lateral(
    study: CarObserveFile, how: Filter, car: Machine, noise: CarNoise, whole: DriveLog, progress: Progress
) -> CarObservation:
    """The lateral motion within the span of the study; the filter starts before it where the log does."""
    settings = ObserveSettings(
        process_noise=noise,
        parameters=study.estimate,
        frozen_after=study.filter.frozen_after,
        sensors=[s for s in car.sensors if s.name in whole.channels],
    )
    log = Experiment({n: Channel(n, whole.t, x, CHANNELS[n] or "1") for n, x in whole.channels.items()}, car.name)
    run = CarObservationRun(
        setup=ObserverSetup(how, settings),
        machine=car,
        log=log,
        withheld=study.withheld,
        span=(study.log.start, np.inf if study.log.end is None else study.log.end),
        progress=progress,
    )
    return run.replacing(inspection=()).observed


def _linear_sideslip(noise: CarNoise, car: Machine, drive: DriveLog) -> Array:
    """Sideslip by the linear two-state Kalman filter of textbooks, with the stiffness of `car`."""
    noise, linear = replace(noise, slip_error=LINEAR_NOISE, bank=LINEAR_NOISE), with_tyre(car, "linear")
    log = lateral_measurements(drive, linear)
    settings = ObserveSettings(process_noise=noise, consider=False, drifts=False)
    found = run_car(EKF(), observed_car(linear, settings, log), log)
    return np.arctan(found.reduced[:, 0] / np.maximum(log.inputs[:, 0], 1.0))


def _lateral_figures(
    seen: CarObservation, virtual: Mapping[str, Reading], reference: Mapping[str, Array], settled: NDArray[np.bool_]
) -> dict[str, float]:
    e, out = seen.estimates, dict[str, float]()
    used = int(e.dof.sum())
    out["nis"] = float(e.nis.sum()) / used if used else NAN
    out |= consistency_figures(seen, 0) if used else {}
    out |= withheld_figures(e)
    for name, truth in reference.items():
        if name not in virtual:
            continue
        v, use = virtual[name], settled & np.isfinite(truth)
        error, sigma = (v.values[:, 0] - truth)[use], v.sigma[use, 0]
        tail = "" if name == "sideslip" else f"_{name}"
        out[f"rms_{name}"] = rms_of(error)
        out[f"mean_error_{name}"] = float(error.mean())
        out[f"rms_sigma_{name}"] = rms_of(sigma)
        out[f"share_inside_two_sigma{tail}"] = float(np.mean(np.abs(error) <= TWO_SIGMA * sigma))
    return out


def _settled(drive: DriveLog) -> NDArray[np.bool_]:
    """Samples of the way that count in the figures."""
    short = drive.t[-1] - drive.t[0] <= SETTLED_LOGS * SETTLING_S
    return drive.t >= drive.t[0] + (0.0 if short else SETTLING_S)


def _path(
    study: CarObserveFile, how: Filter, car: Machine, whole: DriveLog, drive: DriveLog, progress: Progress
) -> _Way:
    """The way of the car; scales of the wheels are those of the training span, where there is one and a speed to compare with."""
    s, c = study.path, drive.channels
    assert s is not None
    scales: dict[str, float] = {}
    if study.training is not None and whole.has("speed"):
        train = whole.between(*study.training)
        wheels = {n: train.channels[n] for n in train.channels if n.startswith("wheel_")}
        scales = {
            n: line.value["scale"] for n, line in wheel_scales(wheels, train.channels["speed"], drive.rate).items()
        }
    noise = s.settings(scales=scales)
    outputs = tuple(
        n for n in ("east", "north", *(f"wheel_{w}" for w in ("fl", "fr", "rl", "rr")), "yaw_rate") if n in c
    )
    if not {"east", "north"} <= set(outputs):
        raise DataError(
            "the way of a car needs positions.",
            where="log, columns",
            expected="east and north, or latitude and longitude",
        )
    values = np.column_stack([c[n] for n in outputs])
    flags = np.where(np.isfinite(values), Status.USED, Status.MISSING).astype(np.int8)
    for low, high in s.gaps:
        flags[(drive.t >= low) & (drive.t <= high), :2] = Status.MISSING
    log = Measurements(drive.t, values, outputs, flags)
    heading, speed, first = _first_course(drive)
    start = path_start(float(c["east"][first]), float(c["north"][first]), heading, speed)
    try:
        system = path_system(outputs, noise, car.parameters["track"])
        found = run(how, system, log, start, progress)
        return _Way(found, log, smooth(found, system) if isinstance(how, Smoother) else found)
    except VeridynError as error:
        raise DataError(error.faults) from error


def _first_course(drive: DriveLog) -> tuple[float, float, int]:
    """Direction and speed of the first metres, and the first sample with a position."""
    e, n = drive.channels["east"], drive.channels["north"]
    ok = np.flatnonzero(np.isfinite(e) & np.isfinite(n))
    gone = np.hypot(e[ok] - e[ok[0]], n[ok] - n[ok[0]])
    far = ok[int(np.argmax(gone > 2.0))] if (gone > 2.0).any() else ok[-1]
    before = ok[max(0, int(np.searchsorted(ok, far)) - 1 - int(drive.rate))]
    span = max(float(drive.t[far] - drive.t[before]), 1e-3)
    d = np.array([e[far] - e[before], n[far] - n[before]])
    moving = before == ok[0]
    return float(np.arctan2(d[1], d[0])), float(np.hypot(*d) / span) if moving else 0.0, int(ok[0])


def _path_figures(
    path: Track, reference: Mapping[str, Array], drive: DriveLog, gaps: tuple[tuple[float, float], ...]
) -> dict[str, float]:
    out: dict[str, float] = {}
    truth = {n: reference.get(n, drive.channels.get(n)) for n in ("speed", "heading", "east", "north")}
    inside = np.zeros(len(drive.t), dtype=np.bool_)
    for low, high in gaps:
        inside |= (drive.t >= low) & (drive.t <= high)
    for name, values in truth.items():
        if values is None:
            continue
        j = path.states.index(name)
        error = path.x[:, j] - values
        error = (error + np.pi) % (2.0 * np.pi) - np.pi if name == "heading" else error
        good = np.isfinite(error) & _settled(drive)
        if name in ("speed", "heading"):
            out[f"rms_{name}"] = rms_of(error[good])
        if (good & inside).any():
            out[f"rms_{name}_gap"] = rms_of(error[good & inside])
            out[f"share_inside_two_sigma_{name}_gap"] = float(
                np.mean(np.abs(error[good & inside]) <= TWO_SIGMA * path.sigma[good & inside, j])
            )
    return out
