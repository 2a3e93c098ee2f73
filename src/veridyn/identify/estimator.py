"""What an estimator is: an object with settings, a name, a check before samples are streamed, and a fit.

    method = Robust(loss="tukey");  method.check(tree, rows, covariance);  fit = method.fit(FitProblem(tree=…, motion=…, …))

The data stand in the problem, the settings in the estimator, and what was found in the fit; none of the three changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import ClassVar

from veridyn.errors import Fault, IdentificationError, VeridynError
from veridyn.identify.estimators.coloured import Hac
from veridyn.identify.estimators.least_squares import Solution, Weighting, solve
from veridyn.identify.gains import check_load
from veridyn.identify.gpu import observed
from veridyn.identify.grouping import RANK_TOLERANCE
from veridyn.identify.observation import Device, EquationStream, stream
from veridyn.identify.result import SIGMA_BELOW_TEN, Acceptance, Fit
from veridyn.identify.sampling import Sampling
from veridyn.mechanics.engine import Engine
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.settings import Settings


@dataclass(frozen=True, eq=False, kw_only=True)
class FitProblem:
    """What an estimator is given: the machine, the data, and how both become equations.

    `covariance`: None where residuals are assumed uncorrelated. The other fields are the arguments of
    :func:`~veridyn.identify.estimate.identify` of the same name.
    """

    machine: Machine
    motion: Motion | Sequence[Motion]
    rows: Rows = "all"
    covariance: Hac | None = None
    sampling: Sampling | None = None
    sigma: Mapping[str, float] | None = None
    acceptance: Acceptance = SIGMA_BELOW_TEN
    tolerance: float = RANK_TOLERANCE
    engine: Engine = "auto"
    executor: Executor | None = None
    progress: Progress = silent
    device: Device = "cpu"

    def stream(self) -> EquationStream:
        """The equations, checked and ready for one pass or several."""
        return stream(
            self.machine,
            self.motion,
            self.rows,
            self.sampling,
            engine=self.engine,
            executor=self.executor,
            progress=self.progress,
            device=self.device,
        )

    def least_squares(self, samples: EquationStream, weighting: Weighting = "rows") -> Solution:
        """The weighted least-squares solution from one pass over the samples, from which most estimators start."""
        found = observed(samples)
        check_load(self.machine, found)
        return solve(found, weighting, sigma=self.sigma, tolerance=self.tolerance)


class Estimator(Settings, ABC):
    """Base of all estimators: frozen dataclasses of settings, checked when an object is made.

    `name` is the word that stands for the estimator with default settings; `title` is what reports call it.
    """

    error: ClassVar[type[VeridynError]] = IdentificationError
    name: ClassVar[str]
    title: ClassVar[str]

    def check(self, machine: Machine, rows: Rows, covariance: Hac | None) -> None:
        """Refuse by name what cannot work, before any sample is streamed."""
        machine.select_rows(rows)

    @abstractmethod
    def fit(self, problem: FitProblem) -> Fit:
        """Estimate the parameters of ``problem.tree``; what `check` refuses must not be given."""

    def refuse_hac(self, covariance: Hac | None, reason: str, hint: str) -> None:
        """Refuse standard deviations for autocorrelated residuals where the estimator has none."""
        if covariance is not None:
            raise IdentificationError(Fault(f"estimator '{self.name}' {reason}", where="covariance", hint=hint))
