"""Ordinary and weighted least squares as estimators: one pass over the samples, one small system solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from veridyn.identify.estimator import Estimator, FitProblem, fit_of, with_sandwich
from veridyn.identify.estimators.least_squares import Weighting
from veridyn.identify.result import Fit
from veridyn.identify.statistics.spectral import noise_covariance


class _LeastSquares(Estimator):
    """Both kinds: they differ in the weights of the rows alone."""

    weighting: ClassVar[Weighting]

    def fit(self, problem: FitProblem) -> Fit:
        samples = problem.stream()
        solution = problem.least_squares(samples, self.weighting)
        fit = fit_of(problem.machine, solution, self.title, problem.settings.acceptance)
        return with_sandwich(fit, noise_covariance(samples, solution, problem.covariance), fit.sigma)


@dataclass(frozen=True, repr=False)
class OLS(_LeastSquares):
    """Ordinary least squares: every equation has the same weight, whatever the unit of its row.

    It has no settings. Use it where there is one row, or where all rows have one unit and the same noise; else use :class:`WLS`.

    Examples
    --------
    >>> fit = vd.identify(robot, motion, vd.estimators.OLS())  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'ordinary least squares'
    """

    name: ClassVar[str] = "ols"
    title: ClassVar[str] = "ordinary least squares"
    weighting: ClassVar[Weighting] = "none"


@dataclass(frozen=True, repr=False)
class WLS(_LeastSquares):
    """Weighted least squares: each row is divided by the standard deviation of its noise. The default method.

    It has no settings. The standard deviations come from the argument `sigma` of :func:`~veridyn.identify.estimate.identify`, or from a
    fit of each row by itself, equation (24) of paper 000.

    Examples
    --------
    >>> how = vd.IdentifySettings(covariance="white")
    >>> fit = vd.identify(robot, motion, vd.estimators.WLS(), how)  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'weighted least squares'
    """

    name: ClassVar[str] = "wls"
    title: ClassVar[str] = "weighted least squares"
    weighting: ClassVar[Weighting] = "rows"
