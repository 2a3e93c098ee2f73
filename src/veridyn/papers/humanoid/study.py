"""The study of paper 004: whole-body parameters of a humanoid from base-link equations and contact forces.

Recorded in an independent engine: walking, slow bending, and a free leg swinging. Identified from four steps of walking by plain weighted
least squares, with the drawing as a prior, and physically consistent; judged on bending and on swinging, which no fit has seen.

Then the laboratory has one fault at a time, and the study says whether it is found: plate shifted, swapped or late, markers lost, an
encoder off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, IdentificationError, IdentificationWarning, warn
from veridyn.identify.base import BaseParameters, base_parameters
from veridyn.identify.estimate import identify
from veridyn.identify.estimator import WLS, Estimator
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.trust import CalibratedPrior, calibrate_prior
from veridyn.identify.laboratory import diagnose, encoder_offsets
from veridyn.identify.pipeline.identified import Trace, trace
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.selection import DETERMINED_SIGMA, Remedy, Selection, remedies, select_motions
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import validate
from veridyn.identify.validation import Validation
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.humanoid.machine import BASE, FEET, SIDES, SOLE, bend, cad, machine, swing, total_mass, walk
from veridyn.papers.humanoid.stand import standing_motions
from veridyn.papers.humanoid.walk import (
    LOWPASS,
    SIGMA,
    SOLE_AXES,
    Faulty,
    Performed,
    Read,
    performed,
    prescribed,
    read,
    recorded,
    signals,
)
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth
from veridyn.spatial.inertia import pseudo_inertia
from veridyn.spatial.rotations import Placement
from veridyn.studies.result import ParameterRow, Result, collected_warnings, parameter_rows

FAULTS = {
    "nothing": Faulty(),
    "plate origin off by (20, −10, 0) mm": Faulty(shift=(0.02, -0.01, 0.0)),
    "plate axes x and y swapped": Faulty(axes=((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))),
    "plate 20 ms late": Faulty(late=0.020),
    "encoder of left_ankle +50 mrad": Faulty(encoder={"left_ankle": 0.05}),
    "markers lost for 0.5 s": Faulty(lost=(1.2, 1.7)),
}
WALK, BEND, LONG = "4 steps", "bend", "10 steps"
PLAIN, PRIOR, CONSISTENT, EXCITED = "plain", "prior", "consistent", "consistent, with swings"
FORCES, MOMENTS = WRENCH_ROWS[:3], WRENCH_ROWS[3:]
NOT_A_PROOF = (
    "a good reconstruction of the walking forces does not prove the parameters: this motion tells most of them "
    "only in sums, and another motion shows it."
)


@dataclass(frozen=True)
class FaultTrial:
    """What was built in, and what was found by base rows, by the soles and by the markers, in words."""

    fault: str
    found: tuple[str, ...]


def laboratory(
    model: Machine, runs: Mapping[str, Performed], rng: np.random.Generator, progress: Progress = silent
) -> tuple[FaultTrial, ...]:
    """Each fault built into recordings of walking and bending, and looked for in all ways."""
    out = []
    for k, (name, faulty) in enumerate(FAULTS.items()):
        progress("faulty laboratories", float(k), float(len(FAULTS)))
        out.append(FaultTrial(name, found(model, runs, rng, faulty)))
    progress("faulty laboratories", float(len(FAULTS)), float(len(FAULTS)))
    return tuple(out)


def found(model: Machine, runs: Mapping[str, Performed], rng: np.random.Generator, faulty: Faulty) -> tuple[str, ...]:
    """What the checks say of one laboratory: of base rows on walking, of soles on bending, of markers on both."""
    warned: list[str] = []
    with collected_warnings(warned):
        walked, bent = (read(model, recorded(model, runs[name], rng, faulty)) for name in ("4 steps", "bend"))
    said = [text.replace("\n", " ").split(" The pose there")[0] for text in warned if "markers" in text]
    usable = (
        walked.markers.valid.all()
    )  # with markers lost, the pose in between is made up: nothing is concluded from it
    if usable:
        diagnosis = diagnose(model, [walked.trial], SIGMA, low=Butterworth(LOWPASS))
        said += [s.text for s in diagnosis.faults]
        soles = {foot: Placement(SOLE_AXES, (SOLE, 0.0, 0.0)) for foot in FEET}
        offsets = encoder_offsets(model, [(bent.trial.motion, bent.trial.pose)], soles)
        said += offsets.summary().split("\n")[:-1] if offsets.faulty else []
    return tuple(said)


@dataclass(frozen=True, eq=False)
class HumanoidStudy:
    """`fits` by name, from walking alone but for the last; `checks`: fit or "cad" → motion → errors of the rows.

    Swings are the motion of another kind. `exact`: fits of the engine's exact data, by motion. `ranks`: rows → rank. `drawing`: how wrong
    the drawing is by the likelihood of the walking data, which is the prior of all fits that have one.
    """

    model: Machine
    truth: Machine
    runs: Mapping[str, Performed]
    reads: Mapping[str, Read]
    logs: Mapping[str, Experiment]
    ranks: Mapping[str, int]
    exact: Mapping[str, Fit]
    fits: Mapping[str, Fit]
    checks: Mapping[str, Mapping[str, Validation]]
    traces: Mapping[str, Mapping[str, Trace]]
    selection: Selection
    remedies: tuple[Remedy, ...]
    faults: tuple[FaultTrial, ...]
    drawing: CalibratedPrior
    quick: bool

    @property
    def chosen(self) -> Fit:
        """The fit whose numbers are the result: physically consistent, with the drawing as prior, from walking alone."""
        return self.fits[CONSISTENT]

    def exact_error(self, motion: str) -> float:
        """The largest error of all base parameters from exact data, in typical sizes."""
        fit = self.exact[motion]
        return float(np.abs((fit.values - truth_of(fit, self.truth)) / sizes(fit)).max())

    def rms(self, fit: str, motion: str, rows: tuple[str, ...]) -> float:
        """Over some rows together."""
        check = self.checks[fit][motion]
        return float(np.sqrt(np.mean([check[r].rms ** 2 for r in rows])))

    def unknown_links(self) -> tuple[str, ...]:
        """Links none of whose base parameters plain least squares determines."""
        fit = self.fits[PLAIN]
        known = set(determined(fit))
        p = self.model.parameters
        by_link: dict[str, list[bool]] = {}
        for name, column in zip(fit.names, fit.base.columns, strict=True):
            link = self.model.columns[p.index(p.names[column])][0]
            by_link.setdefault(link, []).append(name in known)
        return tuple(link for link, found in by_link.items() if not any(found))

    @property
    def figures(self) -> dict[str, float]:
        chosen = self.chosen
        mass = float(chosen.values[chosen.base.columns.index(self.model.parameters.index("M0"))])
        true_mass = total_mass(self.truth)
        swung = next(iter(m for m in self.checks["cad"] if m.startswith("swing")))
        out = {
            **{f"rank_{name.removesuffix('s')}_rows": float(rank) for name, rank in self.ranks.items()},
            "rank_walking": float(self.fits[PLAIN].base.count),
            "mass": mass,
            "mass_error_percent": 100.0 * abs(mass - true_mass) / true_mass,
            "rms_force_walking": self.rms(CONSISTENT, WALK, FORCES),
            "rms_moment_walking": self.rms(CONSISTENT, WALK, MOMENTS),
            "rms_force_bending": self.rms(CONSISTENT, BEND, FORCES),
            "rms_moment_bending": self.rms(CONSISTENT, BEND, MOMENTS),
            "rms_force_bending_cad": self.rms("cad", BEND, FORCES),
            "rms_moment_bending_cad": self.rms("cad", BEND, MOMENTS),
            **{
                f"improvement_bending_{row}": self.checks["cad"][BEND][row].rms / self.checks[CONSISTENT][BEND][row].rms
                for row in ("fz", "mx", "my")
            },
            "parameters_determined": float(len(determined(self.fits[PLAIN]))),
            "parameters_determined_prior": float(len(determined(self.fits[PRIOR]))),
            "parameters_determined_with_swings": float(len(determined(self.fits[EXCITED]))),
            "consistent": float(is_consistent(chosen)),
            "share_inside_one_sigma": inside(chosen, self.truth, 1.0),
            "share_inside_two_sigma": inside(chosen, self.truth),
            "share_inside_two_sigma_plain": inside(self.fits[PLAIN], self.truth),
            **{f"drawing_error_{group}": scale for group, scale in self.drawing.groups.items()},
            "exact_error_walking": self.exact_error(LONG if LONG in self.exact else WALK),
            "exact_error_swings": self.exact_error("swings"),
        }
        for name in (PLAIN, PRIOR, CONSISTENT):
            out[f"rms_force_swing_{name}"] = self.rms(name, swung, FORCES)
            out[f"rms_moment_swing_{name}"] = self.rms(name, swung, MOMENTS)
        return out

    def result(self, study: str, *, seed: int | None, quick: bool, inputs: Mapping[str, str]) -> Result:
        """What `result.json` holds; the validation is that on bending."""
        check = self.checks[CONSISTENT][BEND]
        return Result(study, seed, quick, dict(inputs), self.figures, self.parameters, check.table)

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        fit = self.chosen
        columns = (fit.values, fit.sigma, fit.relative_sigma, fit.priors, truth_of(fit, self.truth))
        return parameter_rows(fit.names, fit.units, *columns)


def humanoid_study(rng: np.random.Generator, quick: bool = False, progress: Progress = silent) -> HumanoidStudy:
    """Record, identify and judge. `quick`: shorter swings, no ten steps, a smaller choice of motions, no faulty laboratory."""
    model, truth = cad(), machine()
    runs = perform(model, truth, rng, quick, progress)
    logs = {name: recorded(model, run, rng) for name, run in runs.items()}
    reads = {name: read(model, log) for name, log in logs.items()}
    swings = [name for name in runs if name.startswith("swing")]

    walked = reads[WALK]
    progress("identifying", 0.0, 4.0)
    fits, drawing = walking_fits(model, logs[WALK])
    every = [reads[name].motion for name in (WALK, *swings)]
    fits[EXCITED] = base_fit(model, every, Consistent(prior=drawing.prior), walked.sampling)
    exact = {
        name: identify(model, motion, "ols", rows="base", diagnose="off")
        for name, motion in {
            **{n: runs[n].motion for n in (WALK, LONG) if n in runs},
            "swings": [runs[n].motion for n in swings],
        }.items()
    }
    drawn = replace(fits[PLAIN], values=fits[PLAIN].priors, standard_values=None)
    validated = {"cad": drawn, **fits}
    checks = {
        name: {
            motion: validate(fit, r.motion, settings=IdentifySettings(sampling=r.sampling))
            for motion, r in reads.items()
        }
        for name, fit in validated.items()
    }
    traces = {
        name: {motion: trace(validated[name], reads[motion].motion, walked.sampling) for motion in (WALK, BEND)}
        for name in ("cad", CONSISTENT)
    }
    ranks = rank_counts(model)
    plans = standing_motions(model, 3.0 if quick else 6.0, progress)
    moves = {name: plan.motion(model)[::10] for name, plan in plans.items()}
    selection = select_motions(model, moves, SIGMA, 3 if quick else 6, "base", progress=progress)
    help_ = remedies(model, walked.motion[::10], moves, SIGMA, "base")
    faults = () if quick else laboratory(model, runs, rng, progress)
    study = HumanoidStudy(
        model, truth, runs, reads, logs, ranks, exact, fits, checks, traces, selection, help_, faults, drawing, quick
    )
    _warn(study)
    return study


def perform(
    model: Machine, truth: Machine, rng: np.random.Generator, quick: bool = False, progress: Progress = silent
) -> dict[str, Performed]:
    """Walking and bending freely in the engine, and two swings with one foot strapped down."""
    runs = {
        WALK: performed(truth, walk(model, 4), progress=progress),
        BEND: performed(truth, bend(model), progress=progress),
    }
    if not quick:
        runs[LONG] = performed(truth, walk(model, 10), progress=progress)
    for side in SIDES:
        plan = swing(model, side, rng, duration=5.0 if quick else 10.0)
        runs[plan.name] = prescribed(truth, plan)
    return runs


def rank_counts(model: Machine) -> dict[str, int]:
    """Of generic states: base rows, all rows, joint rows, forces and moments of the base."""
    chosen = {"base": "base", "all": "all", "joints": "joints", "forces": FORCES, "moments": MOMENTS}
    return {name: base_parameters(model, rows=rows).count for name, rows in chosen.items()}


def sizes(fit: Fit) -> Array:
    """Typical sizes of a fit's base parameters: those of the parameters that lead them."""
    return fit.described.parameters.typical[list(fit.base.columns)]


def determined(fit: Fit, share: float = DETERMINED_SIGMA) -> tuple[str, ...]:
    """Base parameters whose deviation is below a share of their typical size."""
    return tuple(n for n, s, size in zip(fit.names, fit.sigma, sizes(fit), strict=True) if s < share * size)


def base_fit(model: Machine, motions: Motion | Sequence[Motion], way: Estimator, sampling: Sampling) -> Fit:
    """A fit of the six base rows, whose residuals may be correlated in time."""
    return identify(
        model,
        motions,
        way,
        rows="base",
        settings=IdentifySettings(covariance="hac", sampling=sampling, sigma=SIGMA),
        diagnose="off",
    )


def walking_fits(
    model: Machine, log: Experiment, names: tuple[str, ...] = (PLAIN, PRIOR, CONSISTENT)
) -> tuple[dict[str, Fit], CalibratedPrior]:
    """Fits of a log of walking, and the prior of those that have one; the change with the cut-off of positions is in their deviations."""
    found = []
    for how in (signals(), replace(signals(), lowpass=LOWPASS)):
        walked = read(model, log, how=how)
        drawing = calibrate_prior(
            model, walked.motion, rows="base", settings=IdentifySettings(sampling=walked.sampling, sigma=SIGMA)
        )
        ways: dict[str, Estimator] = {PLAIN: WLS(), PRIOR: drawing.prior, CONSISTENT: Consistent(prior=drawing.prior)}
        fits = {name: base_fit(model, walked.motion, ways[name], walked.sampling) for name in names}
        found.append((fits, drawing))
    (fine, drawing), (coarse, _) = found
    return {name: with_cutoff(fine[name], coarse[name]) for name in names}, drawing


def with_cutoff(fit: Fit, other: Fit) -> Fit:
    """The fit with b bᵀ added to its covariance, b its difference to the same fit of positions behind another low-pass.

    What impacts do beyond a cut-off is the same in every sample's residual and in no noise; how far estimates move with it is how
    large that error is.
    """
    if other.names != fit.names:
        what = "the groups of parameters depend on the cut-off of positions."
        raise IdentificationError(
            what, where="base parameters", expected=f"{len(fit.names)} alike", found=f"{len(other.names)}"
        )
    b = other.values - fit.values
    note = f"deviations include the change with the cut-off of positions, up to {np.nanmax(np.abs(b) / fit.sigma):.2g} of the others"
    return replace(fit, covariance=fit.covariance + np.outer(b, b), cutoff_change=b, notes=(*fit.notes, note))


def truth_of(fit: Fit, truth: Machine) -> Array:
    """The true values of a fit's groups."""
    base: BaseParameters = fit.base
    return base.reduce(truth.parameters.values)


def inside(fit: Fit, truth: Machine, sigmas: float = 2.0) -> float:
    """The share of a fit's parameters whose truth lies within so many of the deviations stated."""
    stated = np.isfinite(fit.sigma)
    return float((np.abs(fit.values - truth_of(fit, truth)) <= sigmas * fit.sigma)[stated].mean())


def is_consistent(fit: Fit) -> bool:
    """Whether every link has a positive mass and a positive-definite pseudo-inertia."""
    X = fit.standard.reshape(-1, 10)
    return bool(all(x[9] > 0.0 and np.linalg.eigvalsh(pseudo_inertia(x))[0] > 0.0 for x in X))


def _warn(study: HumanoidStudy) -> None:
    plain = study.fits[PLAIN]
    missing = study.unknown_links()
    warn(
        IdentificationWarning,
        Fault(
            NOT_A_PROOF,
            where=f"walking alone, base rows of '{BASE}'",
            expected=f"{plain.base.count} parameters",
            found=f"{len(determined(plain))} with a deviation under 30 % of typical size"
            + (f"; nothing is known of {', '.join(missing)}" if missing else ""),
            hint="Add a motion in which the legs swing freely, or a prior.",
        ),
    )
