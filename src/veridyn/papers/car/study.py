"""The study of paper 000: all standard parameters, their reduction to 33, identification with 38 and with 20 degrees of freedom,
validation.

    study = car_study(campaign(rng, drives_2006(rng)))

Three drives in: two to learn from, one to check with. The truth of a simulated car is compared with the estimates and used for nothing
else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.errors import DataWarning, warn
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.identify.estimate import identify
from veridyn.identify.pipeline.identification import Estimation, identify_and_validate
from veridyn.identify.pipeline.identified import IdentificationStudy, Trace, std_figures, trace
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import SIGMA_BELOW_TEN, TWO_SIGMA_BELOW_TEN, Acceptance, IdentifySettings
from veridyn.identify.validate import validate
from veridyn.identify.validation import Validation
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.bent import CURVED, STRAIGHT, Selected, selected
from veridyn.papers.car.budget import (
    Budget,
    as_printed,
    asking,
    budget,
    corrected,
    every_standard,
    held,
    one_filter,
    plain_rows,
    printed_motion,
    thirty_three,
    with_carriers,
)
from veridyn.papers.car.check import checked
from veridyn.papers.car.drive import TRAINING, VALIDATION, Campaign
from veridyn.papers.car.machine import TABLE_II, TEN_ROWS, car_20, car_38
from veridyn.progress import Progress, silent
from veridyn.spatial.inertia import INERTIAL
from veridyn.studies.result import ParameterRow, Result, parameter_row

NAMES = tuple(TABLE_II)
# What a wheel does beside rising, turning and steering, in the words of the tables; the car of 20 degrees of freedom leaves it out.
LEANINGS = {"track and wheelbase": ("dl", "dL"), "camber": ("camber",), "kingpin": ("kingpin",), "rear toe": ("beta",)}


@dataclass(frozen=True)
class Reduction:
    """One step from all standard parameters to Table II: how many are estimated, separable in these drives, well identified; and why."""

    step: str
    estimated: int
    separable: int
    well: int
    worst_percent: float
    reason: str


@dataclass(frozen=True, eq=False)
class Variant:
    """The 33 by another model or another treatment of the signals, and its validation."""

    name: str
    values: Mapping[str, float]
    check: Validation

    @property
    def worst_percent(self) -> float:
        return 100.0 * self.check.worst_relative_error


@dataclass(frozen=True, eq=False)
class CarStudy:
    """All that the study found.

    `selected` has the model that is reported, with straight or with curved suspensions, 38 degrees of freedom and rows along the wheels'
    paths; `budget` its deviations, `check` its validation, `checks` that of both models by name. `paper` is the study of the paper's 33
    parameters alone, with carriers that are points, and `fit` its fit. `plain` and `reduced` are the fits with the paper's own rows, with
    38 and with 20 degrees of freedom; `leanings`: by how much each motion of a wheel that the smaller car leaves out moves the estimates.
    `schemes`: treatments of the signals.
    """

    paper: IdentificationStudy
    budget: Budget
    selected: Selected
    checks: Mapping[str, Validation]
    traces: Mapping[str, Trace]
    plain: Variant
    reduced: Variant
    leanings: Mapping[str, Mapping[str, float]]
    schemes: tuple[Variant, ...]
    reductions: tuple[Reduction, ...]
    standard: Fit
    truth: Mapping[str, float]
    real_time_factor: float

    @property
    def fit(self) -> Fit:
        return self.paper.fit

    @property
    def check(self) -> Validation:
        return self.checks[self.selected.name]

    def value(self, name: str) -> float:
        found = self.selected.chosen
        return float(found.values[found.names.index(name)])

    def sigma(self, name: str) -> float:
        return float(self.budget.total[self.budget.names.index(name)])

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        """Table II: estimate, deviation by the whole budget, a priori value and truth."""
        units = dict(zip(self.fit.names, self.fit.units, strict=True))
        known = {name: (TABLE_II[name].a_priori, self.truth.get(name, math.nan)) for name in NAMES}
        return tuple(parameter_row(n, units[n], self.value(n), self.sigma(n), *known[n]) for n in NAMES)

    def accepted(self, rule: Acceptance = SIGMA_BELOW_TEN) -> tuple[str, ...]:
        """Names of the 33 that pass a rule with the whole deviation."""
        return tuple(p.name for p in self.parameters if rule.sigmas * p.sigma_percent < rule.percent)

    @property
    def inessential(self) -> tuple[str, ...]:
        return tuple(n for n in self.paper.essential.fit.removed if n in NAMES)

    @property
    def figures(self) -> dict[str, float]:
        rows = {p.name: p for p in self.parameters}
        out = {
            "parameters_estimated": float(len(NAMES)),
            "well_identified": float(len(self.accepted())),
            "well_identified_strict": float(len(self.accepted(TWO_SIGMA_BELOW_TEN))),
            "essential_parameters": float(len(NAMES) - len(self.inessential)),
            **std_figures("cross_validation", self.check),
            "worst_cross_validation_percent": 100.0 * self.check.worst_relative_error,
            "cross_validation_percent": 100.0 * self.check.relative_error,
            "worst_cross_validation_printed_percent": self.schemes[0].worst_percent,
            "worst_cross_validation_20_percent": self.reduced.worst_percent,
            "selected_curved": float(self.selected.chosen.model.curved),
            "condition": self.fit.condition,
            "condition_scaled": self.fit.condition_scaled,
            "real_time_factor": self.real_time_factor,
            "samples_training": float(max(r.samples for r in self.fit.rows)),
            "samples_validation": float(max(r.samples for r in self.check.rows)),
        }
        for name, check in self.checks.items():
            out[f"worst_cross_validation_{name}_percent"] = 100.0 * check.worst_relative_error
            out[f"selection_{name}_std_percent"] = 100.0 * self.selected.errors[name]
            out |= std_figures(f"cross_validation_{name}", check)
        two = [200.0 * rows[n].sigma / abs(rows[n].value) for n in ("M_c", "MX_c", "k_1", "k_2", "k_3", "k_4")]
        out["largest_two_sigma_percent"] = max(two)
        known = [p for p in self.parameters if p.inside is not None]
        if known:
            out["share_inside_two_sigma"] = float(np.mean([bool(p.inside) for p in known]))
            out["share_inside_one_sigma"] = float(np.mean([abs(p.value - p.truth) <= p.sigma for p in known]))
            for label, names in ERRORS.items():
                out[label] = max(100.0 * abs(rows[n].value / rows[n].truth - 1.0) for n in names)
        return out

    def result(
        self,
        study: str,
        *,
        seed: int | None,
        quick: bool,
        inputs: Mapping[str, str],
        more: Mapping[str, float] | None = None,
    ) -> Result:
        figures = self.figures | dict(more or {})
        return Result(study, seed, quick, inputs, figures, self.parameters, self.check.table)


ERRORS = {
    "mass_error_percent": ("M_c",),
    "first_moment_error_percent": ("MX_c",),
    "inertia_error_percent": ("XX_c", "YY_c", "ZZ_c"),
    "stiffness_error_percent": ("k_1", "k_2", "k_3", "k_4"),
    "bar_error_percent": ("k_arf", "k_arr"),
    "damping_error_percent": ("h_1", "h_2", "h_3", "h_4"),
    "unsprung_error_percent": ("M1", "M2", "M3", "M4"),
    "drag_error_percent": ("Cx",),
}


def car_study(made: Campaign, truth: Mapping[str, float] | None = None, progress: Progress = silent) -> CarStudy:
    """Identify the car of a campaign whose drives are named as those of ``drives_2006``."""
    full, small = thirty_three(car_38()), thirty_three(car_20())
    how = corrected(full)
    total, done = 11.0, 0.0

    def tell(what: str) -> None:
        nonlocal done
        progress(f"identifying: {what}", done, total)
        done += 1.0

    tell("reading the logs")
    for name in (*TRAINING, VALIDATION):
        _looked_at(made, name)
    seen, unseen = [made.motion(full, name) for name in TRAINING], made.motion(full, VALIDATION)
    tell("the paper's 33 parameters")
    estimation = Estimation(settings=IdentifySettings(covariance="hac"))
    paper = identify_and_validate(full, seen, [unseen], how, how, TEN_ROWS, estimation=estimation)
    tell("straight and curved suspensions")
    both = selected(with_carriers(full, made.known.carriers), seen, how)
    models = {name: both.of(curved) for name, curved in ((STRAIGHT, False), (CURVED, True))}
    checks = {
        name: validate(m.fit, m.model.prepared([unseen])[0], settings=IdentifySettings(sampling=how))
        for name, m in models.items()
    }
    tell("deviations")
    deviations = budget(both.chosen, both.takes.sigma, made, TRAINING, how, progress)
    tell("the paper's rows")
    plain = _variant("rows of the clearances alone", full, seen, unseen, plain_rows(full))
    tell("20 degrees of freedom")
    few, other = [made.motion(small, name) for name in TRAINING], made.motion(small, VALIDATION)
    reduced = _variant("20 degrees of freedom", small, few, other, plain_rows(small))
    tell("what the smaller car leaves out")
    leanings = {}
    for label, families in LEANINGS.items():
        still = [held(m, full, families) for m in seen]
        found = _values(
            identify(full, still, rows=TEN_ROWS, settings=IdentifySettings(sampling=plain_rows(full)), diagnose="off")
        )
        leanings[label] = {n: found[n] - plain.values[n] for n in NAMES}
    tell("filters as printed")
    printed = [printed_motion(made, full, name) for name in TRAINING]
    schemes = (
        _variant("as printed", full, printed, printed_motion(made, full, VALIDATION), as_printed(full), (unseen, how)),
        _variant("one filter, 3.125 Hz", full, seen, unseen, one_filter(full), (unseen, how)),
        replace(plain, name="a filter for each row"),
        Variant("and rows along the wheels' paths", _values(paper.fit), paper.check),
    )
    tell("all standard parameters")
    standard_tree = every_standard(car_38())
    bare = [replace(m, wrenches={b: w for b, w in m.wrenches.items() if b != "chassis"}) for m in seen]
    standard = identify(standard_tree, bare, rows=TEN_ROWS, settings=IdentifySettings(sampling=how), diagnose="off")
    tell("reduction")
    reductions = _reductions(
        standard,
        both,
        deviations,
        reduced,
        validate(
            standard,
            replace(unseen, wrenches={b: w for b, w in unseen.wrenches.items() if b != "chassis"}),
            settings=IdentifySettings(sampling=how),
        ),
        paper.check,
    )
    tell("predicting")
    best = both.chosen
    traces = {
        "validation": trace(best.fit, best.model.prepared([unseen])[0], how),
        "training": trace(best.fit, best.motions[0], how),
    }
    progress("identifying", total, total)
    return CarStudy(
        paper,
        deviations,
        both,
        checks,
        traces,
        plain,
        reduced,
        leanings,
        schemes,
        reductions,
        standard,
        dict(truth or {}),
        made.real_time_factor,
    )


def _values(fit: Fit) -> dict[str, float]:
    found = dict(zip(fit.names, (float(v) for v in fit.values), strict=True))
    return {n: found.get(n, math.nan) for n in NAMES}


def _looked_at(made: Campaign, name: str) -> None:
    """Refuse a log with a fatal fault, and warn of the others: a missing channel, a wrong unit, a dynamometer that is wired wrongly."""
    found = checked(made.drives[name].log, made.kinematics, made.sensors)
    found.raise_if_fatal()
    for finding in found:
        warn(DataWarning, finding.fault)


def _variant(
    name: str,
    machine: Machine,
    seen: Sequence[Motion],
    unseen: Motion,
    how: Sampling,
    validated_on: tuple[Motion, Sampling] | None = None,
) -> Variant:
    """Another fit; `validated_on`: the equations that it is validated on, where not on its own."""
    fit = identify(machine, list(seen), rows=TEN_ROWS, settings=IdentifySettings(sampling=how), diagnose="off")
    motion, sampling = validated_on or (unseen, how)
    return Variant(name, _values(fit), validate(fit, motion, settings=IdentifySettings(sampling=sampling)))


def well_known(found: Selected, deviations: Budget) -> tuple[str, ...]:
    """Names of Table II whose whole deviation is below a tenth of the value."""
    ratio = deviations.total / np.abs(found.chosen.values)
    return tuple(n for n, r in zip(found.chosen.names, ratio, strict=True) if n in NAMES and r < 0.1)


def _reductions(
    standard: Fit, found: Selected, deviations: Budget, reduced: Variant, first: Validation, check: Validation
) -> tuple[Reduction, ...]:
    whole = every_standard(car_38(wheels=True))
    whole = asking(whole, (f"{s}_w{i}" for s in INERTIAL for i in range(1, 5)))
    wheels = base_parameters(whole, generic_motion(whole, 60), rows=TEN_ROWS)
    n, well = len(NAMES), len(well_known(found, deviations))
    estimated = len(whole.parameters.select("estimated"))
    return (
        Reduction(
            "every body, suspension and component of the air",
            estimated - 1,
            wheels.count - 1,
            0,
            math.nan,
            "what can be identified in any motion, by the ten rows; wheels cannot be separated from their carriers",
        ),
        Reduction(
            "without the wheels",
            len(standard.described.parameters.select("estimated")) - 1,
            len(standard.values) - 1,
            len(standard.well_identified()),
            100.0 * first.worst_relative_error,
            "dynamometers measure between wheel and carrier, so the wheel's inertia is beyond them (V.D)",
        ),
        Reduction(
            "the air's tables, Cx alone estimated; of unsprung bodies the mass",
            n,
            n,
            well,
            100.0 * check.worst_relative_error,
            "the others are not excited: their deviations exceed what such a body could have (VI.A, VI.B); here with model error",
        ),
        Reduction(
            "20 degrees of freedom",
            n,
            n,
            0,
            reduced.worst_percent,
            "track, wheelbase, toe, camber and kingpin are left out; the wheels' paths go with them",
        ),
    )
