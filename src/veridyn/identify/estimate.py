"""Identification: a machine, a motion and a method in; a fit out, with what the uncertainty of known values adds to its deviations.

Known parameters κ stand on the measured side, so an error of theirs moves the estimates: of weighted least squares by

    dχ̂/dκ = −(W_PᵀW_P)⁻¹ W_Pᵀ W_κ,P = J      so that  cov χ̂ = C + J Σ Jᵀ,   cov(χ̂, κ) = J Σ,

with W_κ their columns and Σ their covariance (``machine.with_uncertainty``, or that of the fit a machine came from): one more pass with
those columns kept. Other estimators are fitted again with κ moved by one standard deviation along each principal direction of Σ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, cast

import numpy as np
from scipy.linalg import solve_triangular

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, IdentificationError, Limit
from veridyn.identify.diagnosis.fit_check import Diagnose, check_level
from veridyn.identify.diagnosis.judge import Case, judgement_of
from veridyn.identify.drives.drive_method import Drives
from veridyn.identify.estimator import OLS, WLS, Estimator, FitProblem, with_tree_note
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.gauss_markov import GaussMarkov
from veridyn.identify.estimators.innovations import Innovations, identify_car
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.estimators.likelihood import Likelihood
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.gains import check_gains
from veridyn.identify.logged import prepared_motions
from veridyn.identify.output_error.output_error import OutputError
from veridyn.identify.regression.factor import one_blas_thread, triangle_of
from veridyn.identify.regression.gpu import observed
from veridyn.identify.regression.sampling import Sampling, measured_rows, with_dead_zones
from veridyn.identify.regression.sampling_rule import default_sampling
from veridyn.identify.result import Fit, KnownValues
from veridyn.identify.settings import DiagnosisSettings, IdentifySettings
from veridyn.mechanics.tree.of_machine import first_argument, takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import ParameterSet, Uncertainty
from veridyn.progress import Progress, silent
from veridyn.settings import method_of, verb_with_method

SMALLEST_DIRECTION = 1e-6  # of the largest standard deviation, in typical sizes: directions of Σ below it are exact


def uncertain(p: ParameterSet, given: Uncertainty | None) -> Uncertainty | None:
    """What is stated of parameters that are known, or that others are tied to; None where that is nothing."""
    if given is None:
        return None
    rest = given.without(tuple(n for n in given.names if n not in p.names or p.states[p.index(n)] != "known"))
    return rest if rest.names and (rest.sigma > 0.0).any() else None


def with_known_values(fit: Fit, problem: FitProblem, again: Callable[[FitProblem], Fit] | None) -> Fit:
    """The fit with the uncertainty of its tree's known parameters in its covariance; as it is where they are exact.

    `again` fits another problem by the same method; None where it is weighted least squares, which is linear in what is known.
    """
    known = uncertain(fit.described.parameters, problem.machine.uncertainty)
    if known is None:
        return fit
    if again is None:
        J = _linear(fit, problem, known)
        whole = np.zeros((len(fit.described.parameters), len(known.names)))
        whole[list(fit.base.columns)] = J
    else:
        J, whole = _by_refits(fit, problem, known, again)
    added = J @ known.covariance @ J.T
    standard = fit.standard_covariance
    if standard is not None:
        standard = standard + whole @ known.covariance @ whole.T
    with np.errstate(invalid="ignore"):
        growth = np.sqrt(1.0 + np.diag(added) / np.diag(fit.covariance))
    note = (
        f"known values are not exact ({len(known.names)} of them): deviations are {np.nanmin(growth):.2f} to {np.nanmax(growth):.2f} "
        "times those of noise alone"
    )
    return replace(
        fit,
        covariance=fit.covariance + added,
        standard_covariance=standard,
        known=KnownValues(known.names, known.covariance, J),
        notes=(*fit.notes, note),
    )


def _linear(fit: Fit, problem: FitProblem, known: Uncertainty) -> Array:
    """J of least squares with the weights of the fit's rows."""
    p = problem.machine.parameters
    loose = replace(problem, machine=problem.machine.with_parameters(p.estimated(known.names)))
    found = observed(loose.stream())
    weights = {r.row: 1.0 / r.sigma for r in fit.rows}
    R = found.stacked([weights[f.row] for f in found.rows])
    place = {c: k for k, c in enumerate(found.columns)}
    own, others = list(fit.base.columns), [p.index(name) for name in known.names]
    T = np.zeros((len(R), len(own) + len(others)))
    for k, c in enumerate([*own, *others]):
        if c in place:
            T[:, k] = R[:, place[c]]
    T = triangle_of(T)
    n = len(own)
    return -np.asarray(solve_triangular(T[:n, :n], T[:n, n:]), dtype=np.float64)


def _by_refits(
    fit: Fit, problem: FitProblem, known: Uncertainty, again: Callable[[FitProblem], Fit]
) -> tuple[Array, Array]:
    """J of base and of all parameters by one fit for each principal direction of Σ."""
    machine = problem.machine
    at = [machine.parameters.index(name) for name in known.names]
    typical = machine.parameters.typical[at]
    values, V = np.linalg.eigh(known.covariance / np.outer(typical, typical))
    size = np.sqrt(np.maximum(values, 0.0))
    standard = fit.standard
    J, whole = np.zeros((len(fit.values), len(at))), np.zeros((len(machine.parameters), len(at)))
    for s, v in zip(size, V.T, strict=True):
        if s <= SMALLEST_DIRECTION * size[-1]:
            continue
        moved = machine.parameters.values.copy()
        moved[at] += s * typical * v
        other = again(replace(problem, machine=machine.with_parameters(moved)))
        J += np.outer(other.values - fit.values, v / typical) / s
        change = other.standard - standard
        change[at] = 0.0
        whole += np.outer(change, v / typical) / s
    return J, whole


METHOD_IS_THIRD = "The method is the third argument: identify(machine, motion, Robust(loss='tukey'), rows='joints')."
ROW_WORDS = ("all", "joints", "base", "actuated")
METHODS = (OLS, WLS, Robust, Prior, Consistent, Instrumental, OutputError, GaussMarkov, Likelihood)
ESTIMATORS: dict[str, type[Estimator]] = {kind.name: kind for kind in METHODS}

P = ParamSpec("P")
NO_CAR = Limit(
    "not built: it fits the observer of a car of a few numbers; equations of bodies and joints are linear in their parameters",
    "Use 'wls', or 'oe' to fit what is simulated.",
)


def _word(method: object) -> object:
    """The word of a method object, or the word itself; anything else means none."""
    word = getattr(method, "name", method)
    return word if isinstance(word, str) else None


def _by_tree(verb: Callable[Concatenate[Machine, P], Fit]) -> Callable[Concatenate[Machine, P], Fit]:
    """`verb` with a machine of any formulation: its tree is fitted, and ``fit.machine()`` has the formulation of the machine given."""
    split, own = first_argument(verb), cast(Callable[..., Fit], verb)

    @functools.wraps(verb)
    def kept(*args: Any, **kwargs: Any) -> Fit:
        machine, rest, named = split(args, kwargs)
        method = rest[1] if len(rest) > 1 else named.get("method")
        if isinstance(machine, Machine) and machine.car is None and _word(method) == Innovations.name:
            raise CapabilityError(machine.formulation, "estimator 'innovations'", *NO_CAR, where=machine.name)
        if isinstance(machine, Machine) and machine.car is None and _word(method) == Drives.name:
            from veridyn.identify.drives.drives import identify_drives  # here: it brings the compiler along

            return identify_drives(machine.formulated("tree"), *rest, **named)
        if isinstance(machine, Machine) and machine.car is not None:
            return identify_car(machine, *rest, **named)
        if not isinstance(machine, Machine) or machine.formulation == "tree":
            return own(machine, *rest, **named)
        fit = own(machine.formulated("tree"), *rest, **named)
        # With other elements than were described, it is what was fitted.
        same = fit.described.parameters.names == machine.parameters.names
        return with_tree_note(replace(fit, formulation=machine.formulation if same else "tree"))

    return kept


@takes_machine
@_by_tree
@verb_with_method(IdentificationError, {"estimator": METHOD_IS_THIRD})
def identify(
    machine: Machine,
    data: Motion | Experiment | Sequence[Motion | Experiment],
    method: Estimator | Innovations | Drives | str = "wls",
    settings: IdentifySettings | None = None,
    *,
    rows: Rows = "all",
    diagnose: Diagnose | DiagnosisSettings = "fast",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Fit:
    """Estimate the parameters of a machine from one motion or several, with standard deviations.

    Parameters that the data cannot separate are grouped and named; no parameter is fixed silently. Data that look wrong are reported as
    an IdentificationWarning and in the notes of the fit.

    Parameters
    ----------
    machine : Machine
        The machine. In natural coordinates, which have no regressor, its tree is used, and a note of the fit says so; ``fit.machine()`` is
        in natural coordinates again. A car of a few numbers (formulation single_track) takes the log of a drive and an ``Innovations``
        method, and gives a ``CarFit``, which is a ``Fit``. Its parameters of state "estimated" are estimated, known ones move to the
        measured side; the uncertainty that the machine states of known ones (``machine.with_uncertainty``) enters the standard deviations.
    data : Motion, Experiment, or a sequence of them
        Coordinates, rates and accelerations (N, n) in rad or m and s, with measured forces (N, n) in N*m or N. A log is prepared by
        :func:`veridyn.motion` with default settings.
    method : Estimator, Innovations, Drives or str
        How to estimate: an object such as ``Robust(loss="tukey")``, or a word for one with default settings: "ols", "wls" (the default),
        "robust", "map", "consistent", "iv", "oe", "gauss_markov". "likelihood" needs settings: ``Likelihood(frequency=…)``.
        ``Drives(kp=…, kd=…)`` or "drives" takes logs with commands and positions of joints, and no forces, and gives a ``DrivesFit``.
    settings : IdentifySettings, optional
        How samples become equations, what is known of their noise, and how estimates are judged:
        ``IdentifySettings(covariance="white", sampling=…)``; the defaults of :class:`~veridyn.IdentifySettings` where it is left out.
    rows : "all", "joints", "base", "actuated", or names
        The equations that are used; all of them by default.
    diagnose : {"fast", "full", "off"}, or DiagnosisSettings
        What is checked besides: "fast", the default, looks for wrong signs, swaps, units and clocks, too few samples, and forces that are
        constant, clipped, frozen or have spikes or dropouts, in one to two times what a log takes to be prepared and fitted; "full" asks
        all that ``veridyn identify`` asks, in seconds; "off" asks nothing. Of motions that are made when they are needed, the first is
        looked at. Of a car steering, wheels, positions, clocks and axles are checked.
    executor : concurrent.futures.Executor, optional
        Shares out the samples; they are streamed in this thread by default.
    progress : callable (task, done, total), optional
        Called as the samples are streamed.

    Returns
    -------
    Fit
        Values, standard deviations, groups, errors of each row, and notes; ``print(fit.summary())``.

    Raises
    ------
    IdentificationError
        What was wanted cannot be estimated from these data; every fault is named.
    DataError
        The motion does not belong to the tree, or lacks what these rows need.
    DeviceError
        A GPU was asked for and is missing, has too little memory, or cannot do what was asked.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> import veridyn as vd
    >>> links = [vd.model.Body("1", placement=vd.spatial.MDH(alpha=np.pi / 2)), vd.model.Body("2", "1", placement=vd.spatial.MDH(d=0.5))]
    >>> inertia = {"1": vd.spatial.from_centre(4.0, [0.25, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))}
    >>> inertia["2"] = vd.spatial.from_centre(2.0, [0.2, 0.0, 0.0], np.diag([0.01, 0.05, 0.05]))
    >>> robot = vd.Machine.of_bodies(links, inertia=inertia, elements=[vd.elements.damper("q1", 0.8), vd.elements.damper("q2", 0.5)])
    >>> limits = vd.signals.JointLimits([-2.0] * 2, [2.0] * 2, [4.0] * 2, [15.0] * 2)
    >>> path = vd.signals.FourierTrajectory.random(np.random.default_rng(0), limits, harmonics=4, frequency=0.5)
    >>> t = 0.01 * np.arange(800)
    >>> motion = vd.Motion(t, *path.at(t))
    >>> noise = 0.05 * np.random.default_rng(1).normal(size=(800, 2))
    >>> motion = replace(motion, forces=vd.inverse_dynamics(robot, motion) + noise)
    >>> fit = vd.identify(robot, motion, "wls", rows="joints")
    >>> fit.estimator, len(fit.names)
    ('weighted least squares', 8)
    """
    chosen = method_of(method, Estimator, ESTIMATORS, "identify", ROW_WORDS)
    check_level(diagnose)
    how, motion = settings or IdentifySettings(), prepared_motions(machine, data)
    chosen.check(machine, rows, how.correlated)
    by_rule = how.sampling is None and not chosen.every_sample
    if by_rule:
        # Behind a low-pass there is no noise left to weigh differences by.
        filters = how.device == "cpu" and not chosen.weighs_differences
        how = replace(how, sampling=default_sampling(machine, at_hand(motion), rows, filters=filters))
    problem = FitProblem(machine=machine, motion=motion, rows=rows, settings=how, executor=executor, progress=progress)
    with one_blas_thread():  # once, and not again in every pass
        fit = with_notes_of_data(fitted(chosen, problem), motion, rows)
        several = at_hand(motion)
        used, _ = measured_rows(machine, several, rows)
        case = Case(
            fit=fit,
            motions=several,
            sampling=with_dead_zones(how.sampling or Sampling(), machine, several, used),
            method=chosen,
            settings=diagnose if isinstance(diagnose, DiagnosisSettings) else DiagnosisSettings(level=diagnose),
            covariance=how.correlated,
            apart=lambda: problem.contradiction,
            by_rule=by_rule,
            progress=progress,
        )
        judgement = judgement_of(case)
    return judgement.on(fit)


def at_hand(motion: Motion | Sequence[Motion]) -> Sequence[Motion]:
    """Motions as a list; of those that are made when they are needed, the first."""
    several = [motion] if isinstance(motion, Motion) else motion
    return several if isinstance(several, list | tuple) else [next(iter(several))]


def with_notes_of_data(fit: Fit, motion: Motion | Sequence[Motion], rows: Rows) -> Fit:
    """The fit with what was found in the logs of its motions, and with the rows that these do not measure, in its notes."""
    several = at_hand(motion)
    _, unused = measured_rows(fit.described, several, rows)
    noted = (*unused, *(n for m in several for n in m.notes or ()))
    return replace(fit, notes=(*fit.notes, *noted)) if noted else fit


def fitted(method: Estimator, problem: FitProblem) -> Fit:
    """The fit of a method, with what the uncertainty of known values adds to its deviations, and gains of drives that can be told."""
    fit = method.fit(problem)
    fit = with_known_values(fit, problem, None if isinstance(method, OLS | WLS) else method.fit)
    check_gains(fit, isinstance(method, Instrumental))
    return fit
