"""A payload study, run: the machine identified without its load, and the load weighed with it (:mod:`veridyn.identify.weighing`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from veridyn.errors import DataError, IdentificationError, ModelError, did_you_mean
from veridyn.files.yaml_reader import Place
from veridyn.identify.estimator import WLS
from veridyn.identify.gains import estimated_gains
from veridyn.identify.payload import LoadEstimate, load_estimate
from veridyn.identify.result import Fit
from veridyn.identify.weighing import (
    NAME,
    OF_A_FIT,
    SCALE,
    Payload,
    empty_method,
    gains_in_words,
    machine_with_load,
    with_gain_sigma,
    with_load_sigma,
)
from veridyn.inference.verdict import Verdict
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.spatial.inertia import INERTIAL, six
from veridyn.spatial.rotations import Placement, rpy
from veridyn.studies.config.identify import ElementSettings, IdentifyFile
from veridyn.studies.config.identify_sections import PayloadFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import Result, grade_missed
from veridyn.studies.run.estimation import IdentifyRun, check_estimation, estimation_of
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.machine import loaded_fit, study_machine


@dataclass(frozen=True, eq=False)
class PayloadRun:
    """A load that was weighed, and the runs behind it: that with the load, and that without; None where a fit of another run is taken."""

    payload: Payload
    weighed: IdentifyRun
    empty: IdentifyRun | None
    missed: tuple[str, ...]

    @property
    def load(self) -> LoadEstimate:
        return self.payload.load

    @property
    def verdict(self) -> Verdict:
        """That of the load, and limits of the study."""
        return self.payload.verdict.against(self.missed)

    @property
    def figures(self) -> dict[str, float]:
        """Numbers of the load, as in result.json."""
        x = self.load
        out = {"payload_mass": x.mass, "payload_mass_sigma": x.mass_sigma, "payload_consistency_shift": x.shift}
        out |= {f"payload_centre_{a}": float(v) for a, v in zip("xyz", x.centre, strict=True)}
        out |= {f"payload_centre_{a}_sigma": float(v) for a, v in zip("xyz", x.centre_sigma, strict=True)}
        if x.has_inertia:
            pairs = zip(INERTIAL, six(x.inertia), x.inertia_sigma, strict=False)
            for name, value, sigma in pairs:
                out |= {f"payload_inertia_{name}": float(value), f"payload_inertia_{name}_sigma": float(sigma)}
        for source, sigma in x.mass_budget.items():
            out[f"payload_mass_sigma_{source.replace(' ', '_')}"] = sigma
        return out

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        made = self.weighed.result(name, seed, warnings)
        inputs = {**(self.empty.inputs if self.empty is not None else {}), **made.inputs}
        figures, verdict = {**self.figures, **made.figures}, self.verdict.record
        return replace(made, figures=figures, inputs=inputs, verdict=verdict)


def run_payload(loaded: Loaded[PayloadFile], progress: Progress = silent) -> PayloadRun:
    """Identify the machine from its empty runs, or take it from a fit, and weigh what it carries in the training runs."""
    own = loaded.study.payload
    if own.empty:
        loaded = _with_scales(loaded)
        machine = study_machine(loaded, ("model",), loaded.study.model, "unknown")
        _check_body(loaded, machine)
        gains = _gains(loaded, machine)
        empty = _empty_run(loaded, with_gain_sigma(machine, own.gain_sigma), progress)
        fit = _with_load_sigma(loaded, empty.study.fit)
    else:
        empty, fit, gains = None, loaded_fit(loaded, ("model", "fit"), loaded.study.model.fit), OF_A_FIT
        _check_body(loaded, fit.described)
    flange = Placement(rpy(*own.flange.rpy), own.flange.position)
    with loaded.placing(("payload",), ModelError, DataError):
        carrying = machine_with_load(fit, own.body, flange, own.centre)
    estimation = replace(estimation_of(loaded, ("estimator",), loaded.study.estimator), method=WLS())
    inner: Loaded[Any] = loaded
    weighed = run_identify(inner, progress, carrying, estimation)
    with loaded.placing(("payload",), IdentificationError):
        load = load_estimate(weighed.study.fit, own.body, NAME, fit)
    payload = Payload(load=load, fit=weighed.study.fit, empty=fit, gains=gains)
    missed = list(weighed.missed)
    if own.largest_sigma is not None and not load.mass_sigma <= own.largest_sigma:
        missed.append(
            f"standard deviation of the mass, kg: {load.mass_sigma:.4g}, and at most {own.largest_sigma:g} is accepted "
            "(payload.largest_sigma)."
        )
    missed += grade_missed(payload.verdict, loaded.study.accept.verdict)
    return PayloadRun(payload, weighed, empty, tuple(missed))


def _check_body(loaded: Loaded[PayloadFile], machine: Machine) -> None:
    names = machine.body_names
    places: list[tuple[Place, str]] = [(("payload", "body"), loaded.study.payload.body)]
    for k, r in enumerate(loaded.study.payload.empty):
        places += [(("payload", "empty", k, "load", "body"), r.load.body)] if r.load is not None else []
    for at, body in places:
        if body not in names:
            hint = did_you_mean(body, names)
            raise loaded.error_at(at, f"there is no body '{body}' in this model.", hint=hint)


def _with_scales(loaded: Loaded[PayloadFile]) -> Loaded[PayloadFile]:
    """Where torques are measured and their scale is uncertain: each as a signal times a drive gain of 1, so that gains are one thing."""
    study = loaded.study
    forces = [name for name in study.log.columns if name.startswith(("force.", "force_motor."))]
    if study.payload.gain_sigma is None or not forces:
        return loaded
    motors = [name for name in forces if name.startswith("force_motor.")]
    if motors:
        at: Place = ("log", "columns", motors[0])
        what = "torques of motors have no scale that could be uncertain here."
        hint = "Leave payload.gain_sigma out, or log torques of joints, or currents as signal.NAME with drive gains."
        raise loaded.error_at(at, what, hint=hint)
    coordinates = [name.removeprefix("force.") for name in forces]
    columns = {(f"signal.{SCALE}{n[6:]}" if n in forces else n): c for n, c in study.log.columns.items()}
    scales = tuple(
        ElementSettings(kind="drive_gain", on=c, signal=f"{SCALE}{c}", value=1.0, name=f"{SCALE}{c}", unit="1")
        for c in coordinates
    )
    model = study.model.model_copy(
        update={
            "elements": (*study.model.elements, *scales),
            "known": {**study.model.known, **{f"{SCALE}{c}": None for c in coordinates}},
        }
    )
    log = study.log.model_copy(update={"columns": columns})
    return replace(loaded, study=study.model_copy(update={"model": model, "log": log}))


def _gains(loaded: Loaded[PayloadFile], machine: Machine) -> str:
    """How the drive gains are known; refused where nothing fixes their size."""
    free, runs = estimated_gains(machine), [r.load for r in loaded.study.payload.empty if r.load is not None]
    if free and not runs:
        raise loaded.error_at(
            ("payload", "empty"),
            f"the drive gains {', '.join(free)} are estimated, and no run carries a known load that would fix their size.",
            hint="Give one run a known load, {file: run.csv, load: {body: …, mass: …, centre: […]}}, or gains under model.known.",
        )
    return gains_in_words(machine, loaded.study.payload.gain_sigma, [x.mass for x in runs])


def _empty_run(loaded: Loaded[PayloadFile], machine: Machine, progress: Progress) -> IdentifyRun:
    """The runs that identify the machine, as a study of their own."""
    study = loaded.study
    keys = {name: getattr(study, name) for name in IdentifyFile.model_fields if name not in ("training", "validation")}
    validation = "none" if study.validation == "none" else ()  # all samples are fitted, or some are held out
    part = IdentifyFile.model_construct(**{**keys, "training": study.payload.empty, "validation": validation})
    part = part.model_copy(update={"accept": IdentifyFile.model_fields["accept"].get_default()})
    inner: Loaded[Any] = replace(loaded, study=part, places={"training": ("payload", "empty")})
    estimation = estimation_of(loaded, ("estimator",), study.estimator)
    estimation = replace(estimation, method=empty_method(machine, estimation.method))
    check_estimation(inner, ("estimator",), machine, estimation)
    return run_identify(inner, progress, machine, estimation)


def _with_load_sigma(loaded: Loaded[PayloadFile], fit: Fit) -> Fit:
    """The fit with the deviation of the known load."""
    uncertain = [(k, r.load) for k, r in enumerate(loaded.study.payload.empty) if r.load is not None and r.load.sigma]
    if not uncertain:
        return fit
    if len(uncertain) > 1:
        at: Place = ("payload", "empty", uncertain[1][0], "load", "sigma")
        raise loaded.error_at(at, "one known load with a deviation is taken, and not two.")
    number, load = uncertain[0]
    with loaded.placing(("payload", "empty", number, "load", "sigma"), IdentificationError):
        return with_load_sigma(fit, (load.sigma or 0.0) / load.mass)
