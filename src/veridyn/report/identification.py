"""The page of an identification: forces row by row, parameters, and for those who check what these rest on and what was looked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from veridyn.errors import Fault
from veridyn.identify.pipeline.identification import IdentificationStudy
from veridyn.inference.verdict import Verdict
from veridyn.report import number, percent
from veridyn.report.blocks import Figure, Key, Section, Text
from veridyn.report.insight import insight
from veridyn.report.motion import replay_section
from veridyn.report.page import page
from veridyn.report.parameters import BARS, QuantityLine, quantity_table, singular_values, sum_blocks
from veridyn.report.reduced import reduced_section
from veridyn.report.rows import row_figures, row_table
from veridyn.report.running import running_section
from veridyn.report.spectra import whiteness_words
from veridyn.report.verdict import grade_rule, verdict
from veridyn.studies.result import Result

FORCES_LEAD = (
    "Every row is one equation: the force that was measured there, or that of its motor, against the one that the identified model "
    "predicts. Errors are the rms of the difference over the standard deviation of the measured force; ‖r‖/‖y‖, which a static load makes "
    "smaller, stands beside them."
)
APPENDIX_LEAD = "For those who check: what the numbers above rest on, what was looked for, and how to make them again."
CLEAR_GAP = 1000.0  # between singular values, from which the rank is clear


def identification_page(
    study: IdentificationStudy,
    result: Result,
    command: str,
    more: Sequence[Section] = (),
    title: str = "",
    found: Verdict | None = None,
    keys: Sequence[Key] = (),
    first: Sequence[Section] = (),
    model: Path | None = None,
    missed: Sequence[str] = (),
    faults: Sequence[Fault] = (),
) -> str:
    """The report of an identification; `more` are sections to stand behind its forces and parameters, `first` before them.

    `title`, the verdict `found` and key figures `keys` in place of those of an identification. `model`: the file of the machine.
    """
    samples = f"{len(study.training)} for the fit, {len(study.validation)} for validation"
    sections = [
        *first,
        *simulation_section(study),
        forces_section(study),
        parameter_section(study),
        Section("Appendix", [], APPENDIX_LEAD, "appendix"),
        *_sums(study),
        excitation_section(study),
        *more,
        replay_section(study, model),
        running_section(study.fit, study.training),
        *reduced_section(study),
        *insight(study),
    ]
    return page(
        title or f"Identification of “{study.model.name}”",
        found or verdict(study),
        keys or key_figures(study),
        sections,
        result,
        command,
        {"estimator": study.fit.estimator, **study.settings, "samples": samples, "grade": grade_rule(study)},
        missed=missed,
        faults=faults,
    )


def key_figures(study: IdentificationStudy) -> tuple[Key, ...]:
    """How far predictions are off, how much is known, and how well the motion determines it."""
    f = study.figures
    what = (
        "of the positions' standard deviation is not reproduced by simulation"
        if study.by_simulation
        else "of the force's standard deviation is not predicted"
    )
    out = [
        Key(
            f"{percent(100.0 * study.judging.std_error)} %",
            what + (", on held-out data" if study.held_out == 1.0 else ""),
        ),
        Key(f"{int(f['well_identified'])} / {study.fit.base.count}", "base parameters with σ below 10 %"),
        Key(number(f["condition_scaled"], 3), "condition, columns scaled by typical sizes"),
    ]
    if "share_inside_two_sigma" in f:
        out.append(Key(f"{100 * f['share_inside_two_sigma']:.0f} %", "of the parameters within 2σ of the truth"))
    return tuple(out)


def simulation_section(study: IdentificationStudy) -> list[Section]:
    """Errors of simulated coordinates, by which a fit that was made by simulation is judged; none of any other."""
    settings = study.fit.replay_settings
    if settings is None:
        return []
    compared = "coordinates" if settings.law is None else "forces of the closed loop"
    lead = (
        f"The fit compares {compared} with a simulation, and is judged by one: {settings.words}, each from the measured state. "
        "The forces below are those of inverse dynamics, which it does not use."
    )
    block = (
        Text(f"The validation data cannot be simulated: {study.unseen.not_simulated}.")
        if study.unseen.not_simulated
        else row_table(study.judging.rows, "coordinate", study.judging_own.rows)
    )
    return [Section("Simulation of the validation data", [block], lead)]


def forces_section(study: IdentificationStudy) -> Section:
    """Errors and curves of every row, on the data of the fit and on others."""
    before = () if study.before is None else study.before.rows
    white = {r.row: whiteness_words(study.whiteness.get(r.row)) for r in study.check.rows}
    used = "" if study.held_out == 1.0 else f", of which {100 * study.held_out:.0f} % were not used for the fit"
    notes = [f"‖r‖/‖y‖, rms error, std and rms of the measured force are those of the validation data{used}."]
    notes += ["“Before” is the model with its prior values, on the same data."] if before else []
    if "dead zone" in study.settings:
        notes.append(
            "Samples close to standstill and at the ends are drawn pale below; they enter neither the fit nor the errors."
        )
    table = row_table(study.check.rows, "row", study.own.rows, before, white, " ".join(notes))
    return Section("Forces, row by row", [table, *row_figures(study.traces)], FORCES_LEAD, "forces")


def parameter_section(study: IdentificationStudy) -> Section:
    """Base parameters with their deviations, priors and, where it is known, the truth."""
    quantities, rule = parameter_quantities(study), study.fit.acceptance
    lead = "Base parameters with one standard deviation. A name that ends in R stands for a sum, listed below."
    if any(p.inside is not None for p in study.parameters):
        lead += " The last column shows how far the estimate is from the truth, in standard deviations; the shaded zone is ±2."
    note = f"{BARS}; pale ones are not below {rule.percent / rule.sigmas:g} %."
    if study.inessential:
        note += f" ○ marks parameters that zero would serve as well ({study.essential.stated_rule})."
    return Section("Parameters", [quantity_table(quantities, caption=note, percents=True)], lead, "parameters")


def parameter_quantities(study: IdentificationStudy) -> list[QuantityLine]:
    """The base parameters, with those that zero would serve as well marked."""
    well, spare = set(study.fit.well_identified()), set(study.inessential)
    return [
        QuantityLine(
            *(p.name, p.unit, p.value, p.sigma),
            prior=p.prior,
            truth=p.truth,
            weak=p.name not in well,
            mark="zero explains the data as well" if p.name in spare else "",
        )
        for p in study.parameters
    ]


def _sums(study: IdentificationStudy) -> list[Section]:
    base = study.fit.base
    names = base.parameters.names
    blocks = sum_blocks(base, [names[k] for k in study.structure.dead])
    title = "What comes only as a sum" if base.relations() else "What has no effect"
    return [Section(title, blocks, anchor="sums")] if blocks else []


def excitation_section(study: IdentificationStudy) -> Section:
    """How well the motion determines the base parameters: condition, rank and singular values."""
    fit, base = study.fit, study.fit.base
    rank = "All singular values are kept."
    if base.relations():
        rank = (
            f"The singular values drop by a factor of {number(base.gap, 2)} behind the last one kept, so the rank "
            f"{'is clear' if base.gap > CLEAR_GAP else 'is a matter of taste'}."
        )
    lead = (
        f"The condition number of the weighted base regressor is {number(fit.condition, 4)}, and {number(fit.condition_scaled, 4)} with "
        f"columns scaled by typical sizes. {rank} The machine has {study.structure.count} base parameters ({study.structure.source}); this "
        f"motion excites {base.count}."
    )
    spectrum = singular_values(base)
    caption = "Singular values of the regressor, columns scaled by typical sizes, relative to the largest."
    blocks = [] if spectrum is None else [Figure([spectrum], caption=caption)]
    return Section("How well the motion excites", blocks, lead, "excitation")
