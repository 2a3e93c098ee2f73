"""What a machine carries, weighed: the machine identified without its load, or known from a fit, then its load from runs with it.

    payload = weigh(arm, loaded_runs, "hand", empty=empty_runs);  payload.load.mass, payload.verdict

Drive gains that are estimated need runs with a known load among the empty ones (:func:`~veridyn.identify.payload.carrying`), and a
method that noise of currents does not bias. The load is estimated by weighted least squares in equations whose every other parameter is
known, to within what the fit of the empty machine knows of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked
from veridyn.errors import IdentificationError
from veridyn.identify.delivery import unexcited_directions
from veridyn.identify.estimate import identify
from veridyn.identify.estimator import WLS, Estimator
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.gains import estimated_gains, gain_names
from veridyn.identify.payload import LoadEstimate, load_estimate, with_payload
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.inference.verdict import Verdict
from veridyn.lazy import above
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import Tie, Uncertainty
from veridyn.progress import Progress, silent
from veridyn.spatial.inertia import INERTIAL, cross_matrix, six
from veridyn.spatial.rotations import MDH, Placement

NAME = "payload"
SCALE = "scale_"  # of the name of a torque's scale, which stands for a drive gain where torques are measured
OF_A_FIT = "as the fit has them, with what it knows of their uncertainty"
Runs = Motion | Experiment | Sequence[Motion | Experiment]


@dataclass(frozen=True, eq=False, kw_only=True)
class Payload:
    """A `load`, the `fit` of the runs that carry it and that of the `empty` machine; `gains`: how the drive gains are known, a sentence."""

    load: LoadEstimate
    fit: Fit
    empty: Fit
    gains: str

    @cached_property
    def unexcited(self) -> tuple[str, ...]:
        """Parameters of the machine that its own runs did not show."""
        return unexcited_directions(self.empty)

    @cached_property
    def verdict(self) -> Verdict:
        """How good it is, why it is no better, and what it may be used for."""
        return above("veridyn.identify.payload_verdict", "payload_verdict")(self)

    def summary(self) -> str:
        """The load with its deviations, and the verdict."""
        return f"{self.load.summary()}\n{self.verdict.summary()}"


@checked
def weigh(
    machine: Fit | Machine,
    loaded: Runs,
    body: str,
    *,
    empty: Runs | None = None,
    flange: Placement | MDH | None = None,
    centre: ArrayLike | None = None,
    gain_sigma: float | None = None,
    load_sigma: float = 0.0,
    settings: IdentifySettings | None = None,
    rows: Rows = "all",
    validation: Runs | Literal["none"] | None = None,
    progress: Progress = silent,
) -> Payload:
    """Weigh what a machine carries on `body`.

    Parameters
    ----------
    machine : Fit or Machine
        The fit of the machine without its load; or a machine, which is identified from the runs `empty` first.
    loaded, empty : Motion, Experiment, or a sequence of them
        Runs with the load, and without it or with a known one.
    body : str
        The body that carries it.
    flange : Placement, optional
        The frame on that body in which the load is given; the body's own by default.
    centre : (3,), optional
        The centre of mass in that frame, m, where it is known and the mass alone is estimated.
    gain_sigma : float, optional
        Standard deviation of drive gains that are known, as a share; they are exact by default.
    load_sigma : float, optional
        That of the known load by which gains are calibrated, as a share.
    settings, rows
        As those of :func:`veridyn.identify`.
    validation : Motion, Experiment, or a sequence of them, optional
        Runs with the load that the fit does not use, and is judged by, as that of :func:`veridyn.identify`.

    Returns
    -------
    Payload
        The load with its deviations, both fits, and the verdict.
    """
    identified = partial(identify, rows=rows, progress=progress)
    if isinstance(machine, Fit):
        fit, gains = machine, OF_A_FIT
    else:
        if empty is None:
            raise IdentificationError(
                "nothing says what the machine is without its load.",
                where="weigh, empty",
                hint="Give empty runs, or a fit.",
            )
        known = with_gain_sigma(machine, gain_sigma)
        gains = gains_in_words(machine, gain_sigma)
        every = "none" if validation == "none" else None
        fit = identified(known, empty, empty_method(known), settings, validation=every)
        fit = with_load_sigma(fit, load_sigma)
    weighed = identified(machine_with_load(fit, body, flange, centre), loaded, WLS(), settings, validation=validation)
    return Payload(
        load=load_estimate(weighed, body, NAME, fit),
        fit=weighed,
        empty=fit,
        gains=gains,
    )


def with_gain_sigma(machine: Machine, share: float | None) -> Machine:
    """The machine with the uncertainty of its known gains, none where any is estimated."""
    if share is None or estimated_gains(machine):
        return machine
    known = gain_names(machine)
    values = np.array([machine.parameters[name] for name in known])
    return machine.with_uncertainty(Uncertainty(tuple(known), np.diag((share * values) ** 2)))


def gains_in_words(machine: Machine, share: float | None, masses: Sequence[float] = ()) -> str:
    """How the drive gains of a machine are known; `masses` (kg): of the known loads that calibrate them."""
    known = gain_names(machine)
    if estimated_gains(machine):
        return "calibrated from known loads" + (f" of {', '.join(f'{m:g} kg' for m in masses)}" if masses else "")
    if share is None:
        return "taken as exact" if known else "measured torques are taken as exact in scale"
    words = "the scale of each measured torque" if known[0].startswith(SCALE) else "given values"
    return f"{words}, each ± {100 * share:g} %"


def empty_method(machine: Machine, method: Estimator | None = None) -> Estimator:
    """How the empty machine is identified: gains that are estimated call for instrumental variables, where nothing else is asked for."""
    chosen = method or WLS()
    return Instrumental(reference="measured") if estimated_gains(machine) and isinstance(chosen, WLS) else chosen


def with_load_sigma(fit: Fit, share: float) -> Fit:
    """The fit with the deviation of a known load, a share of it: where all forces come through estimated gains, every estimate is
    proportional to that load, and nothing is where they do not."""
    if not share:
        return fit
    p = fit.described.parameters
    driven = {c for e in fit.described.elements if e.kind == "drive_gain" for c in e.on}
    estimated = set(gain_names(fit.described)) == set(estimated_gains(fit.described))
    proportional = estimated and {r.row for r in fit.rows} <= driven
    if not proportional or any(p.values[k] != 0.0 for k in p.select("known")):
        what = "the deviation of a known load counts where every force comes through an estimated drive gain."
        raise IdentificationError(what, where="known load", hint="Leave sigma out, or estimate all drive gains.")
    return replace(fit, covariance=fit.covariance + share**2 * np.outer(fit.values, fit.values))


def machine_with_load(
    fit: Fit, body: str, flange: Placement | MDH | None = None, centre: ArrayLike | None = None
) -> Machine:
    """The known machine with a body of unknown parameters at the flange; with a known `centre`, all of them are tied to its mass."""
    made = with_payload(fit, body, flange, NAME)
    if centre is None:
        return made
    at = np.asarray(centre, dtype=np.float64)
    S = cross_matrix(at)
    factors = [*six(S.T @ S), *at]
    ties = {f"{s}_{NAME}": Tie(f"M_{NAME}", float(f)) for s, f in zip(INERTIAL, factors)}
    return made.with_parameters(made.parameters.tied(ties))
