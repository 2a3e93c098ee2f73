"""The door of identification: a tree, a motion, rows and an estimator in; a fit out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from veridyn.errors import Fault, Faults, IdentificationError, did_you_mean
from veridyn.identify.estimators.believed import believed
from veridyn.identify.estimators.coloured import Hac, sandwich
from veridyn.identify.estimators.feasible import Consistent, check
from veridyn.identify.estimators.gauss_markov import GaussMarkov, gauss_markov
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.estimators.iterated import all_joints, instrumental_fit, output_error_fit, robust_fit
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.estimators.likelihood import Likelihood
from veridyn.identify.estimators.output_error import OutputError
from veridyn.identify.estimators.periodic import likeliest
from veridyn.identify.estimators.prior import Prior, belief
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.fitting import ESTIMATORS, coloured, fit_of
from veridyn.identify.gains import check_gains, check_load
from veridyn.identify.grouping import RANK_TOLERANCE
from veridyn.identify.observation import Sampling, measured_rows, stream
from veridyn.identify.result import SIGMA_BELOW_TEN, Acceptance, Fit
from veridyn.identify.threads import one_blas_thread
from veridyn.mechanics.engine import Engine
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent

SETTINGS: dict[str, type] = {"robust": Robust, "map": Prior, "consistent": Consistent, "oe": OutputError}
SETTINGS |= {"iv": Instrumental, "gauss_markov": GaussMarkov, "likelihood": Likelihood}
Settings = Robust | Prior | Consistent | Instrumental | OutputError | GaussMarkov | Likelihood


def identify(
    tree: Tree,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    estimator: str = "wls",
    *,
    settings: Settings | None = None,
    covariance: str | Hac = "white",
    sampling: Sampling | None = None,
    sigma: Mapping[str, float] | None = None,
    acceptance: Acceptance = SIGMA_BELOW_TEN,
    tolerance: float = RANK_TOLERANCE,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Fit:
    """The asked parameters of a tree from one motion or several, with standard deviations.

    `rows`: "all", "joints", "base", "actuated", or names. `estimator`: "wls" (rows weighted by 1/σ_j, from `sigma` or from the data by
    (24)), "ols", or one that takes `settings`: "robust" (:class:`~veridyn.identify.estimators.robust.Robust`), "map"
    (:class:`~veridyn.identify.estimators.prior.Prior`), "consistent" (:class:`~veridyn.identify.estimators.feasible.Consistent`), "iv"
    (:class:`~veridyn.identify.estimators.instrumental.Instrumental`), "oe"
    (:class:`~veridyn.identify.estimators.output_error.OutputError`), "gauss_markov"
    (:class:`~veridyn.identify.estimators.gauss_markov.GaussMarkov`) or "likelihood"
    (:class:`~veridyn.identify.estimators.likelihood.Likelihood`). `covariance`: "white" takes every equation for news; "hac", or a
    :class:`~veridyn.identify.estimators.coloured.Hac`, allows for residuals that remember ("ols", "wls", "robust", "iv" and "oe").
    `engine` and `executor` as for :func:`~veridyn.identify.observation.observation`. Parameters the data cannot separate are grouped and
    named; nothing is silently fixed.
    """
    hac = _checked(estimator, settings, covariance)
    # What cannot be is refused before the samples are streamed.
    robust = settings if isinstance(settings, Robust) else Robust()
    prior = settings if isinstance(settings, Prior) else Prior()
    physical = settings if isinstance(settings, Consistent) else Consistent()
    if estimator == "robust":
        robust.check()
    if estimator == "map":
        belief(tree, prior)
    if estimator == "consistent":
        check(tree, physical)
    shooting = settings if isinstance(settings, OutputError) else OutputError()
    if estimator == "oe":
        all_joints(tree, rows)
        shooting.check(tree)
    instruments = settings if isinstance(settings, Instrumental) else Instrumental()
    if estimator == "iv":
        instruments.check(tree)
    markov = settings if isinstance(settings, GaussMarkov) else GaussMarkov()
    said: tuple[str, ...] = ()
    if estimator == "likelihood":
        motion, markov, said = likeliest(tree, motion, rows, settings, progress)
    samples = stream(tree, motion, rows, sampling, engine=engine, executor=executor, progress=progress)
    with one_blas_thread():  # once, and not again in every pass
        observed = samples.observe()
        check_load(tree, observed)
        solution = solve(observed, "none" if estimator == "ols" else "rows", sigma=sigma, tolerance=tolerance)
        if estimator == "robust":
            fit = robust_fit(samples, solution, robust, sigma, hac, acceptance)
        elif estimator == "map":
            fit = believed(tree, solution, prior, acceptance)
        elif estimator == "consistent":
            fit = believed(tree, solution, physical, acceptance)
        elif estimator == "iv":
            fit = instrumental_fit(samples, solution, instruments, sigma, hac, acceptance)
        elif estimator == "oe":
            fit = output_error_fit(samples, solution, shooting, sigma, hac, acceptance)
        elif estimator in ("gauss_markov", "likelihood"):
            found, noise = gauss_markov(samples, solution, markov)
            fit = fit_of(tree, found, estimator, acceptance)
            fit = replace(fit, notes=(*fit.notes, *said, noise.summary()))
        else:
            fit = fit_of(tree, solution, estimator, acceptance)
            if hac is not None:
                fit = coloured(fit, sandwich(samples, solution, None, hac), fit.sigma)
    check_gains(fit, estimator)
    unused = measured_rows(tree, samples.motions, rows)[1]
    return replace(fit, notes=(*fit.notes, *unused)) if unused else fit


def _checked(estimator: str, settings: object, covariance: object) -> Hac | None:
    if estimator not in ESTIMATORS:
        raise IdentificationError(
            Fault(
                f"there is no estimator '{estimator}'.",
                where="identify",
                hint=did_you_mean(estimator, list(ESTIMATORS)),
            )
        )
    faults = Faults()
    wanted = SETTINGS.get(estimator)
    if settings is not None and (wanted is None or not isinstance(settings, wanted)):
        faults.add(
            f"these settings are not those of estimator '{estimator}'.",
            where="settings",
            expected=wanted.__name__ if wanted else "none",
            found=type(settings).__name__,
        )
    if covariance not in ("white", "hac") and not isinstance(covariance, Hac):
        faults.add(f"there is no covariance '{covariance}'.", where="covariance", expected="'white', 'hac' or a Hac")
    elif covariance != "white" and estimator in ("gauss_markov", "likelihood"):
        faults.add(
            f"estimator '{estimator}' has a model of how noise remembers, and deviations by it.",
            where="covariance",
            hint="Give its settings an order above 0 instead.",
        )
    elif covariance != "white" and estimator in ("map", "consistent"):
        faults.add(
            f"estimator '{estimator}' weighs the data as white noise, so 'hac' deviations would contradict its values.",
            where="covariance",
            hint="Identify by 'wls' with covariance='hac' to see how far off white is, and state sigma= larger by that factor.",
        )
    faults.raise_if_any(IdentificationError)
    return covariance if isinstance(covariance, Hac) else Hac() if covariance == "hac" else None
