"""How a fit is made, apart from its method: one object for every verb that turns motions into equations.

    how = IdentifySettings(covariance="hac", sampling=Sampling(decimate=10))
    fit = identify(machine, motion, "wls", how);    check = validate(fit, other, how)

The method says how parameters are estimated from equations; these settings say how samples become equations, what is known of their noise,
and how the result is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from veridyn.errors import IdentificationError, VeridynError
from veridyn.identify.base import RANK_TOLERANCE
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.settings import Settings, above, at_least, between

Device = Literal["cpu", "cuda"]
Level = Literal["fast", "full", "off"]
DEFAULT_LEVEL: Level = "full"  # of a diagnosis, in Python, in study files and on the command line


@dataclass(frozen=True, repr=False)
class Hac(Settings):
    """Settings of ``covariance="hac"``: standard deviations that allow for autocorrelated residuals.

    Parameters
    ----------
    lags : int of at least 0, or None
        Samples over which residuals may be correlated, L; it is rounded up to 3, 7, 11 … None, the default, chooses it from the data by
        Andrews' rule.
    """

    error: ClassVar[type[VeridynError]] = IdentificationError

    lags: Annotated[int, at_least(0)] | None = None


@dataclass(frozen=True, repr=False)
class Auto(Settings):
    """``covariance="auto"``, the default, which has no settings: see :mod:`veridyn.identify.statistics.spectral`."""

    error: ClassVar[type[VeridynError]] = IdentificationError


Covariance = Literal["auto", "white", "hac"] | Hac | Auto


@dataclass(frozen=True)
class Acceptance:
    """When a parameter counts as well identified: `sigmas` times its relative deviation below `percent`.

    Paper 000 has two rules: section IV.B asks for 2 σ% < 10, section VII.A accepts σ% < 10. Both are stated, one is chosen.
    """

    percent: float = 10.0
    sigmas: float = 1.0


SIGMA_BELOW_TEN = Acceptance(10.0, 1.0)
TWO_SIGMA_BELOW_TEN = Acceptance(10.0, 2.0)


@dataclass(frozen=True, repr=False, kw_only=True)
class IdentifySettings(Settings):
    """How samples become equations, what is known of their noise, and how estimates are judged; checked when it is made.

    Parameters
    ----------
    covariance : "auto", "white", "hac", or Hac
        How standard deviations are made. “auto”, the default, looks at the spectrum of the residuals, and compares logs, or parts of a
        single one, with each other; “white” assumes uncorrelated residuals; “hac” is Newey and West's estimate. The estimates are the
        same, but for "map" and "consistent", in which data weigh less beside the prior and the bounds where residuals are
        autocorrelated. "gauss_markov" and "likelihood" estimate the noise's spectrum themselves and take no “hac”.
    sampling : Sampling, optional
        Filter, decimation, dead zones and masks between samples and equations. By default, of motions that were made from logs, as studies
        have them: equations pass the low-pass of the positions, as many of them are kept as it leaves independent, and samples near
        standstill are left out where there is dry friction (:mod:`veridyn.identify.regression.sampling_rule`). Other motions are taken
        sample by sample, as is "gauss_markov" with coloured noise, which is weighed by its differences. :func:`veridyn.validate` compares
        every sample by default.
    sigma : mapping of row names to numbers above 0, optional
        Standard deviation of the noise of a row in N or N*m; estimated from the data for rows that are not named.
    acceptance : Acceptance
        When a parameter counts as well identified; by default σ below 10 % of the value.
    tolerance : float between 0 and 1
        Ratio of singular values, with columns in typical sizes, below which a direction counts as not excited.
    engine : {"auto", "compiled", "numpy"}
        Machine code, the NumPy reference, or machine code where there are enough samples to pay for compiling (the default).
    device : {"cpu", "cuda"}
        Where samples become equations and factors: this processor (the default), or an NVIDIA GPU, for "ols", "wls", "map" and
        "consistent" of open machines without filters; see :mod:`veridyn.identify.regression.gpu`.
    threads : int of at least 1, or None
        Threads of this process that share in the samples where there is no executor: never more than it may use processors, or than the
        variable OMP_NUM_THREADS allows. None, the default, takes all of these where a log is long and its samples go through machine
        code, and up to four where columns are filtered or single equations are looked at; 1 takes none beside the calling one. Results do
        not depend on it.

    Raises
    ------
    IdentificationError
        A setting is not of these; every fault is named.

    Examples
    --------
    >>> import veridyn as vd
    >>> vd.IdentifySettings(covariance="hac", engine="auto")
    IdentifySettings(covariance='hac')
    """

    error: ClassVar[type[VeridynError]] = IdentificationError

    covariance: Covariance = "auto"
    sampling: Sampling | None = None
    sigma: Mapping[str, Annotated[float, above(0.0)]] | None = None
    acceptance: Acceptance = SIGMA_BELOW_TEN
    tolerance: Annotated[float, between(0.0, 1.0)] = RANK_TOLERANCE
    engine: Engine = "auto"
    device: Device = "cpu"
    threads: Annotated[int, at_least(1)] | None = None

    @property
    def correlated(self) -> Hac | Auto | None:
        """How autocorrelation is allowed for; None where residuals are assumed uncorrelated."""
        if isinstance(self.covariance, Hac | Auto):
            return self.covariance
        return {"auto": Auto(), "hac": Hac(), "white": None}[self.covariance]


@dataclass(frozen=True, repr=False, kw_only=True)
class DiagnosisSettings(Settings):
    """What :func:`veridyn.identify` asks of a fit before it is handed out: ``identify(machine, motion, diagnose=DiagnosisSettings(…))``.

    Parameters
    ----------
    level : {"fast", "full", "off"}
        As the word alone: some samples and every measured force, all there is to ask (the default at every door), or nothing.
    false_alarm_rate : float between 0 and 1
        Share of logs in order in which some cause is named, over all questions together; .005 by default.
    min_shift : float of at least 0
        Standard deviations by which a cause must move some parameter to be named; 2 by default.
    max_unexplained : float between 0 and 1
        Share of all forces, beyond their noise, that may be left over before the model is said not to explain them; .1 by default. A
        fast diagnosis reports nothing below half.
    max_contradiction : float of at least 1
        How many times as much all rows together may leave unexplained as each by itself; 1.3 by default, arms in order leave 1.1 to 1.2.
    causes : tuple of str
        Causes that are asked about, such as "rotor inertia"; all by default.
    max_samples : int above 0
        Samples in which a fast diagnosis looks for causes, in stretches of longer logs; 30,000 by default.

    Examples
    --------
    >>> import veridyn as vd
    >>> vd.estimators.DiagnosisSettings(false_alarm_rate=0.001)
    DiagnosisSettings(false_alarm_rate=0.001)
    """

    error: ClassVar[type[VeridynError]] = IdentificationError

    level: Level = DEFAULT_LEVEL
    false_alarm_rate: Annotated[float, between(0.0, 1.0)] = 0.005
    min_shift: Annotated[float, at_least(0)] = 2.0
    max_unexplained: Annotated[float, between(0.0, 1.0)] = 0.1
    max_contradiction: Annotated[float, at_least(1)] = 1.3
    causes: tuple[str, ...] = ()
    max_samples: Annotated[int, above(0)] = 30_000
