"""The estimators by the words that stand for them."""

from __future__ import annotations

from veridyn.identify.estimator import Estimator
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.gauss_markov import GaussMarkov
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.estimators.likelihood import Likelihood
from veridyn.identify.estimators.output_error import OutputError
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.estimators.weighted import OLS, WLS

ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind
    for kind in (OLS, WLS, Robust, Prior, Consistent, Instrumental, OutputError, GaussMarkov, Likelihood)
}
