"""A payload study, run: the machine identified without its load, the load weighed with it, and the settings that controllers take.

Controllers of Universal Robots, Franka and KUKA want mass in kg, the centre of mass in the flange's frame and the inertia about the
centre of mass; they differ in order, units and axes:

    UR      set_target_payload(m, cog, inertia)    m; Ixx Iyy Izz Ixy Ixz Iyz in axes of the flange
    Franka  setLoad(mass, F_x_Cload, load_inertia) m; (3, 3) in axes of the flange, nine numbers column by column
    KUKA    $LOAD                                   mm; moments about principal axes, whose orientation A B C is in degrees about z, y', x''
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError, ModelError, did_you_mean
from veridyn.files.yaml_reader import Place
from veridyn.identify.delivery import unexcited_directions
from veridyn.identify.estimator import WLS
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.gains import estimated_gains, gain_names
from veridyn.identify.payload import LoadEstimate, load_estimate, with_payload
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.model.parameters import Tie, Uncertainty
from veridyn.progress import Progress, silent
from veridyn.spatial.inertia import INERTIAL, cross_matrix, inertia_matrix, six
from veridyn.spatial.rotations import Placement, rpy
from veridyn.studies.config.identify import ElementSettings, IdentifyFile
from veridyn.studies.config.identify_sections import PayloadFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import Result
from veridyn.studies.run.estimation import IdentifyRun, check_estimation, estimation_of
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.machine import loaded_fit, study_machine

NAME = "payload"
SCALE = "scale_"  # of the name of a torque's scale, which stands for a drive gain where torques are measured
CONVENTIONS = {
    "mass": "kg",
    "centre_of_mass": "m, in the flange frame",
    "inertia": "kg*m^2, about the centre of mass, in the axes of the flange; XX XY XZ YY YZ ZZ with products of inertia as entries of the "
    "matrix (XY = −∫ x y dm)",
    "ur": "URScript set_target_payload: kg; m from the tool flange; kg*m^2 about the centre of mass as [Ixx, Iyy, Izz, Ixy, Ixz, Iyz] "
    "in the axes of the flange",
    "franka": "libfranka setLoad: kg; m from flange to centre of mass in the flange frame; kg*m^2 about the centre of mass, (3, 3) in the "
    "axes of the flange, column by column",
    "kuka": "KRL $LOAD: kg; mm in the flange frame; A, B, C in degrees, rotations about z, then y, then x of the turned frame, from the "
    "flange to the principal axes; kg*m^2 about the principal axes through the centre of mass",
}


@dataclass(frozen=True, eq=False)
class PayloadRun:
    """A load, the run that weighed it and the run that identified the machine; None where the machine came from a fit of another run.

    `gains`: how the drive gains are known, a sentence; `unexcited`: parameters of the machine that its own runs did not show.
    """

    load: LoadEstimate
    weighed: IdentifyRun
    empty: IdentifyRun | None
    gains: str
    unexcited: tuple[str, ...]
    missed: tuple[str, ...]

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
        return replace(made, figures={**self.figures, **made.figures}, inputs=inputs)


def run_payload(loaded: Loaded[PayloadFile], progress: Progress = silent) -> PayloadRun:
    """Identify the machine from its empty runs, or take it from a fit, and weigh what it carries in the training runs."""
    own = loaded.study.payload
    if own.empty:
        loaded = _with_scales(loaded)
        machine = study_machine(loaded, ("model",), loaded.study.model, "unknown")
        _check_body(loaded, machine)
        machine, gains = _with_gain_sigma(loaded, machine)
        empty = _empty_run(loaded, machine, progress)
        fit = _with_load_sigma(loaded, empty.study.fit)
    else:
        empty, fit = None, loaded_fit(loaded, ("model", "fit"), loaded.study.model.fit)
        _check_body(loaded, fit.described)
        gains = "as the fit has them, with what it knows of their uncertainty"
    carrying = _loaded_machine(loaded, fit)
    estimation = replace(estimation_of(loaded, ("estimator",), loaded.study.estimator), method=WLS())
    inner: Loaded[Any] = loaded
    weighed = run_identify(inner, progress, carrying, estimation)
    with loaded.placing(("payload",), IdentificationError):
        load = load_estimate(weighed.study.fit, own.body, NAME, fit)
    missed = list(weighed.missed)
    if own.largest_sigma is not None and not load.mass_sigma <= own.largest_sigma:
        missed.append(
            f"standard deviation of the mass, kg: {load.mass_sigma:.4g}, and at most {own.largest_sigma:g} is accepted "
            "(payload.largest_sigma)."
        )
    return PayloadRun(load, weighed, empty, gains, unexcited_directions(fit), tuple(missed))


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


def _with_gain_sigma(loaded: Loaded[PayloadFile], machine: Machine) -> tuple[Machine, str]:
    """The machine with the uncertainty of its known gains, and how gains are known in words."""
    share, free = loaded.study.payload.gain_sigma, estimated_gains(machine)
    known = [name for name in gain_names(machine) if name not in free]
    runs = [r.load for r in loaded.study.payload.empty if r.load is not None]
    if free and not runs:
        raise loaded.error_at(
            ("payload", "empty"),
            f"the drive gains {', '.join(free)} are estimated, and no run carries a known load that would fix their size.",
            hint="Give one run a known load, {file: run.csv, load: {body: …, mass: …, centre: […]}}, or gains under model.known.",
        )
    if free:
        return machine, f"calibrated from known loads of {', '.join(f'{x.mass:g} kg' for x in runs)}"
    if share is None:
        return machine, "taken as exact" if known else "measured torques are taken as exact in scale"
    values = np.array([machine.parameters[name] for name in known])
    sigma = Uncertainty(tuple(known), np.diag((share * values) ** 2))
    words = "the scale of each measured torque" if known[0].startswith(SCALE) else "given values"
    return machine.with_uncertainty(sigma), f"{words}, each ± {100 * share:g} %"


def _empty_run(loaded: Loaded[PayloadFile], machine: Machine, progress: Progress) -> IdentifyRun:
    """The runs that identify the machine, as a study of their own; gains that are estimated call for instrumental variables."""
    study = loaded.study
    keys = {name: getattr(study, name) for name in IdentifyFile.model_fields if name not in ("training", "validation")}
    part = IdentifyFile.model_construct(**{**keys, "training": study.payload.empty, "validation": ()})
    part = part.model_copy(update={"accept": IdentifyFile.model_fields["accept"].get_default()})
    inner: Loaded[Any] = replace(loaded, study=part, places={"training": ("payload", "empty")})
    estimation = estimation_of(loaded, ("estimator",), study.estimator)
    if estimated_gains(machine) and isinstance(estimation.method, WLS):
        estimation = replace(estimation, method=Instrumental(reference="measured"))
    check_estimation(inner, ("estimator",), machine, estimation)
    return run_identify(inner, progress, machine, estimation)


def _with_load_sigma(loaded: Loaded[PayloadFile], fit: Fit) -> Fit:
    """The fit with the deviations of known loads: where all forces come through estimated gains, every estimate is proportional to them."""
    uncertain = [(k, r.load) for k, r in enumerate(loaded.study.payload.empty) if r.load is not None and r.load.sigma]
    if not uncertain:
        return fit
    at: Place = ("payload", "empty", uncertain[0][0], "load", "sigma")
    p = fit.described.parameters
    driven = {c for e in fit.described.elements if e.kind == "drive_gain" for c in e.on}
    proportional = (
        set(gain_names(fit.described)) == set(estimated_gains(fit.described)) and {r.row for r in fit.rows} <= driven
    )
    if not proportional or any(p.values[k] != 0.0 for k in p.select("known")):
        what = "the deviation of a known load counts where every force comes through an estimated drive gain."
        raise loaded.error_at(at, what, hint="Leave sigma out, or estimate all drive gains.")
    if len(uncertain) > 1:
        at = ("payload", "empty", uncertain[1][0], "load", "sigma")
        raise loaded.error_at(at, "one known load with a deviation is taken, and not two.")
    load: Mapping[str, Any] = uncertain[0][1].model_dump()
    share = load["sigma"] / load["mass"]
    return replace(fit, covariance=fit.covariance + share**2 * np.outer(fit.values, fit.values))


def _loaded_machine(loaded: Loaded[PayloadFile], fit: Fit) -> Machine:
    """The known machine with a body of unknown parameters at the flange; of a mass alone, with all of them tied to the mass."""
    own = loaded.study.payload
    placement = Placement(rpy(*own.flange.rpy), own.flange.position)
    with loaded.placing(("payload",), ModelError, DataError):
        made = with_payload(fit, own.body, placement, NAME)
    if own.centre is None:
        return made
    S = cross_matrix(own.centre)
    factors = [*six(S.T @ S), *own.centre]
    ties = {f"{s}_{NAME}": Tie(f"M_{NAME}", float(f)) for s, f in zip(INERTIAL, factors)}
    return made.with_parameters(made.parameters.tied(ties))


def controller_settings(mass: float, centre: ArrayLike, inertia: ArrayLike | None) -> dict[str, Any]:
    """Settings of the three controllers from mass [kg], centre of mass (3,) [m], inertia (3, 3) about it [kg*m^2], in the flange's frame.

    Without an inertia it is zero for UR and Franka and zero about all axes for KUKA, and `inertia_known` is false.
    """
    c = np.asarray(centre, dtype=np.float64)
    J = np.zeros((3, 3)) if inertia is None else np.asarray(inertia, dtype=np.float64)
    xx, xy, xz, yy, yz, zz = (float(v) for v in six(J))
    moments, (a, b, g) = principal_axes(J)
    ur = [xx, yy, zz, xy, xz, yz]
    c_mm = [1e3 * float(v) for v in c]
    frame = "X {:.3f}, Y {:.3f}, Z {:.3f}, A {:.4f}, B {:.4f}, C {:.4f}".format(*c_mm, a, b, g)
    return {
        "mass": float(mass),
        "centre_of_mass": c.tolist(),
        "inertia": [xx, xy, xz, yy, yz, zz],
        "inertia_known": inertia is not None,
        "ur": {
            "payload": float(mass),
            "cog": c.tolist(),
            "inertia": ur,
            "script": f"set_target_payload({mass:.6g}, {_listed(c)}, {_listed(ur)})",
        },
        "franka": {"mass": float(mass), "F_x_Cload": c.tolist(), "load_inertia": J.T.ravel().tolist()},
        "kuka": {
            "M": float(mass),
            "CM": dict(zip("XYZABC", [*c_mm, a, b, g], strict=True)),
            "J": dict(zip("XYZ", moments.tolist(), strict=True)),
            "script": f"$LOAD = {{M {mass:.6g}, CM {{{frame}}}, J {{X {moments[0]:.6g}, Y {moments[1]:.6g}, Z {moments[2]:.6g}}}}}",
        },
        "conventions": CONVENTIONS,
    }


def principal_axes(J: ArrayLike) -> tuple[Array, tuple[float, float, float]]:
    """Principal moments (3,) and the angles A, B, C in degrees with J = R diag(moments) Rᵀ, R = Rz(A) Ry(B) Rx(C).

    Of the 24 ways to name right-handed principal axes, the one whose axes are nearest to those of the frame.
    """
    M = np.array(inertia_matrix(six(J)), dtype=np.float64)
    values, V = np.linalg.eigh(M)
    best: tuple[float, Array, Array] | None = None
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        R = V[:, order]
        R = R * np.where(np.diag(R) < 0.0, -1.0, 1.0)
        if np.linalg.det(R) < 0.0:
            k = int(np.argmin(np.abs(np.diag(R))))
            R[:, k] = -R[:, k]
        score = float(np.trace(R))
        if best is None or score > best[0] + 1e-12:
            best = (score, R, values[list(order)])
    assert best is not None
    _, R, moments = best
    B = float(np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0])))
    if np.hypot(R[0, 0], R[1, 0]) > 1e-12:
        A, C = float(np.arctan2(R[1, 0], R[0, 0])), float(np.arctan2(R[2, 1], R[2, 2]))
    else:  # z along x: only A − C or A + C counts
        A, C = float(np.arctan2(-R[0, 1], R[1, 1])), 0.0
    a, b, c = np.degrees([A, B, C])
    return moments, (float(a), float(b), float(c))


def _listed(values: ArrayLike) -> str:
    return "[" + ", ".join(f"{v:.6g}" for v in np.asarray(values, dtype=np.float64)) + "]"
