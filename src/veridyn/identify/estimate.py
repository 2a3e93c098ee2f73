"""Identification: a machine, its logs or motions, and a method in; a fit with its findings and its verdict out.

Logs go the whole way (:mod:`veridyn.identify.pipeline.pipeline`), as those of a study file do; motions enter it where equations are made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Concatenate, Literal, ParamSpec, cast

from veridyn.errors import CapabilityError, DataError, IdentificationError, Limit
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
from veridyn.identify.logged import prepared_motions
from veridyn.identify.output_error.output_error import OutputError
from veridyn.identify.pipeline.estimation import at_hand, estimated
from veridyn.identify.pipeline.held_out import held_out_check
from veridyn.identify.pipeline.pipeline import Pipeline
from veridyn.identify.pipeline.preparation import Preparation
from veridyn.identify.pipeline.recording import Recording
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.identify.regression.sampling import Sampling, measured_rows, with_dead_zones
from veridyn.identify.regression.sampling_rule import default_sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import DEFAULT_LEVEL, DiagnosisSettings, IdentifySettings
from veridyn.mechanics.tree.of_machine import first_argument, takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.settings import method_of, verb_with_method

METHOD_IS_THIRD = "The method is the third argument: identify(machine, motion, Robust(loss='tukey'), rows='joints')."
Held = Motion | Experiment | Sequence[Motion | Experiment] | Literal["none"] | None
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
    validation: Held = None,
    diagnose: Diagnose | DiagnosisSettings = DEFAULT_LEVEL,
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
        Coordinates, rates and accelerations (N, n) in rad or m and s, with measured forces (N, n) in N*m or N; every sample of a motion
        is fitted. Logs go the way of a study file, with its defaults: they are mended and inspected, the low-pass of the positions is
        chosen by held-out blocks, and the last 30 % of each are held out. Logs beside motions are prepared by :func:`veridyn.motion`.
    method : Estimator, Innovations, Drives or str
        How to estimate: an object such as ``Robust(loss="tukey")``, or a word for one with default settings: "ols", "wls" (the default),
        "robust", "map", "consistent", "iv", "oe", "gauss_markov". "likelihood" needs settings: ``Likelihood(frequency=…)``.
        ``Drives(kp=…, kd=…)`` or "drives" takes logs with commands and positions of joints, and no forces, and gives a ``DrivesFit``.
    settings : IdentifySettings, optional
        How samples become equations, what is known of their noise, and how estimates are judged:
        ``IdentifySettings(covariance="white", sampling=…)``; the defaults of :class:`~veridyn.IdentifySettings` where it is left out.
    rows : "all", "joints", "base", "actuated", or names
        The equations that are used; all of them by default.
    validation : Motion, Experiment, a sequence of them, or "none"
        What the fit is judged by, and does not use: motions beside motions, logs beside logs. By default the last 30 % of each log, and
        nothing of motions, whose fit is "not validated"; "none" fits every sample of logs, too.
    diagnose : {"full", "fast", "off"}, or DiagnosisSettings
        What is checked besides: "full", the default here and of ``veridyn identify``, looks at all samples for wrong signs, swaps, units,
        clocks and delays, too few samples, structure that the model lacks, other gravities and geometries, and forces that are constant,
        clipped, frozen or have spikes or dropouts; "fast" looks at some samples, and for no delays; "off" asks nothing. Of motions that
        are made when they are needed, the first is looked at. Of a car steering, wheels, positions, clocks and axles are checked.
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
    checks = diagnose if isinstance(diagnose, DiagnosisSettings) else DiagnosisSettings(level=diagnose)
    how, logs = settings or IdentifySettings(), logs_of(data)
    if logs is not None:
        way = _way_of_logs(machine, logs, validation, chosen, how, checks)
        return replace(way, rows=rows, executor=executor, progress=progress).run().identified
    motion = prepared_motions(machine, data)
    chosen.check(machine, rows, how.correlated)
    by_rule = how.sampling is None and not chosen.every_sample
    if by_rule:
        filters = how.device == "cpu" and not chosen.weighs_differences
        how = replace(how, sampling=default_sampling(machine, at_hand(motion), rows, filters=filters))
    problem = FitProblem(machine=machine, motion=motion, rows=rows, settings=how, executor=executor, progress=progress)
    fit = estimated(chosen, problem)
    if validation is not None and validation != "none":
        others = prepared_motions(machine, validation)
        judging = [others] if isinstance(others, Motion) else others
        later = replace(how.sampling or Sampling(), drop={})
        later = with_dead_zones(later, machine, at_hand(motion), rows)
        fit = held_out_check(fit, problem, judging, later, progress).on(fit)
    several = at_hand(motion)
    used, _ = measured_rows(machine, several, rows)
    with one_blas_thread():  # once, and not again in every pass
        judgement = judgement_of(
            Case(
                fit=fit,
                motions=several,
                sampling=with_dead_zones(how.sampling or Sampling(), machine, several, used),
                method=chosen,
                settings=checks,
                covariance=how.correlated,
                apart=lambda: problem.contradiction,
                by_rule=by_rule,
                progress=progress,
            )
        )
    return judgement.on(fit)


def logs_of(data: object) -> list[Experiment] | None:
    """Logs as a list; None of anything else, motions among them."""
    several = data if isinstance(data, list | tuple) else [data]
    logs = [one for one in several if isinstance(one, Experiment)]
    return logs if logs and len(logs) == len(several) else None


def _way_of_logs(
    machine: Machine,
    logs: Sequence[Experiment],
    validation: Held,
    method: Estimator,
    settings: IdentifySettings,
    checks: DiagnosisSettings,
) -> Pipeline:
    """The way of logs of which nothing is said but what the arguments of the verb say."""
    others = logs_of(validation) if validation is not None else []
    if others is None and validation != "none":
        raise DataError(
            "logs are validated on logs.",
            where="validation",
            expected="a log (Experiment), a list of them, or 'none'",
            found=type(validation).__name__,
            hint="vd.motion makes motions of logs: give both as motions, or both as logs.",
        )
    full = checks.level == "full" and settings.device == "cpu"
    filtered = settings.device == "cpu" and settings.sampling is None
    return Pipeline(
        machine=machine,
        training=[Recording(log=log) for log in logs],
        validation=[Recording(log=log) for log in others or ()],
        hold_out=validation != "none",
        how=Preparation(delays="report" if full else "ignore", filter="same" if filtered else None),
        method=method,
        settings=settings,
        checks=checks,
    )
