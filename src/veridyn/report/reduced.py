"""The reduced model of essential parameters beside the full one: values, deviations, and errors on training and held-out data."""

from __future__ import annotations

from collections.abc import Iterator

from veridyn.identify.pipeline.identification import IdentificationStudy
from veridyn.identify.selection import EliminationStep
from veridyn.identify.validation import Validation
from veridyn.report import count, measured, number, percent, unit_text
from veridyn.report.blocks import Section, Table
from veridyn.studies.result import csv_text

LEFT_OUT = "0"
REMOVAL_REASONS = ("removed_at_sigma_percent", "f_statistic", "p_value", "joint_p_value")
REDUCED_COLUMNS = ("parameter", "unit", "full", "σ", "reduced", "σ of it", "σ % when removed", "F", "p")


def reduced_section(study: IdentificationStudy) -> list[Section]:
    """What the reduced model is, and how much worse it predicts; no section where nothing was left out."""
    if not study.essential.steps:
        return []
    lean = study.essential
    lead = (
        f"{count(len(lean.fit.values), 'parameter')} of {len(study.fit.values)} are essential by this rule: {lean.stated_rule}. "
        "The others are zero here, and the rest is estimated anew by weighted least squares."
    )
    if study.reduced_is_worse:
        lead += f" On {study.judged_on} the reduced model is noticeably worse than the full one: what it leaves out matters."
    errors = Table(
        ("model", "parameters", "training %", "validation %", "worst row, validation %"),
        [
            _error_row("full", len(study.fit.values), study.own, study.check),
            _error_row("reduced", len(lean.fit.values), study.essential_own, study.essential_check),
        ],
        "Relative errors ‖r‖/‖y‖ of the forces.",
        strong=(3,),
    )
    caption = "Parameters of both models; deviations of the reduced one assume uncorrelated residuals."
    values = Table(REDUCED_COLUMNS, reduced_rows(study), caption, left=(1,))
    return [Section("Reduced model", [errors, values], lead)]


def reduced_rows(study: IdentificationStudy) -> list[tuple[str, ...]]:
    """One row for each base parameter: value and deviation in the full and in the reduced model, and why it was removed."""
    rows = []
    for name, unit, x, sigma, own, s in _both(study):
        if own is not None:
            tail = (*measured(*own), "–", "–", "–")
        elif s is not None:
            tail = (LEFT_OUT, "–", percent(s.relative_sigma), number(s.f_statistic, 3), number(s.p_value, 2))
        else:  # a fit with a prior estimates what least squares cannot
            tail = ("–",) * 5
        rows.append((name, unit_text(unit), *measured(x, sigma), *tail))
    return rows


def _both(
    study: IdentificationStudy,
) -> Iterator[tuple[str, str, float, float, tuple[float, float] | None, EliminationStep | None]]:
    """For each base parameter its name, unit, value and σ; value and σ in the reduced model; the step that removed it. None: not so."""
    full, lean = study.fit, study.essential
    own = dict(
        zip(lean.fit.base.columns, zip(lean.fit.values.tolist(), lean.fit.sigma.tolist(), strict=True), strict=True)
    )
    steps = {study.model.parameters.index(s.name): s for s in lean.steps}
    for c, name, unit, x, sigma in zip(full.base.columns, full.names, full.units, full.values, full.sigma, strict=True):
        yield name, unit, float(x), float(sigma), own.get(c), steps.get(c)


def reduced_table(study: IdentificationStudy) -> str:
    """Both models as the text of a CSV file; cells of what does not apply are empty."""
    rows = []
    for name, unit, x, sigma, own, s in _both(study):
        cells: list[float | str] = [*(own or ("", "")), "", "", "", ""]
        if s is not None:
            cells = [0.0, "", s.relative_sigma, s.f_statistic, s.p_value, s.joint_p_value]
        rows.append([name, unit, *(v if isinstance(v, str) else f"{v:.9g}" for v in (x, sigma, *cells))])
    return csv_text(["name", "unit", "full", "full_sigma", "reduced", "reduced_sigma", *REMOVAL_REASONS], rows)


def reduced_line(study: IdentificationStudy) -> str:
    """The same in one line, for a terminal."""
    full, less = (percent(100.0 * v.relative_error) for v in (study.check, study.essential_check))
    counts = f"{len(study.essential.fit.values)} of {len(study.fit.values)} parameters"
    of = " in forces" if study.by_simulation else ""
    return f"reduced model: {counts}, off by {less} %{of} on {study.judged_on}, the full one by {full} %"


def _error_row(name: str, parameters: int, own: Validation | None, check: Validation) -> tuple[str, ...]:
    training = "–" if own is None else percent(100.0 * own.relative_error)
    held_out, worst = percent(100.0 * check.relative_error), percent(100.0 * check.worst_relative_error)
    return name, f"{parameters}", training, held_out, worst
