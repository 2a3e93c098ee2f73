"""The tables of a report, as rows of text ready to be set."""

from __future__ import annotations

import math
from dataclasses import dataclass

from veridyn.report.blocks import Key
from veridyn.report.words import like, measured, number, percent, unit_text
from veridyn.studies.identification import IdentificationStudy

SCALE_SIGMAS = 4.0  # standard deviations that the small scale of the truth shows to either side


@dataclass(frozen=True)
class ParameterLine:
    """One parameter; `bar` is σ % on a scale of 0 to 100 (logarithmic, 0.01 % to 100 %), `place` that of the truth, None if unknown."""

    name: str
    unit: str
    value: str
    sigma: str
    sigma_percent: str
    prior: str
    truth: str
    well: bool
    essential: bool
    bar: float
    inside: bool | None
    place: float | None
    error: str


@dataclass(frozen=True)
class RowLine:
    """One row: its errors on training and validation data, and what its residual looks like.

    `training`, `validation` and `before`: rms over the standard deviation of the measured force; `relative`: ‖r‖/‖y‖ there.
    """

    row: str
    unit: str
    samples: int
    measured: str
    std: str
    rms: str
    training: str
    validation: str
    relative: str
    before: str
    white: str
    judged: bool


def parameter_lines(study: IdentificationStudy) -> tuple[ParameterLine, ...]:
    well, spare = set(study.fit.well_identified()), set(study.inessential)
    lines = []
    for p in study.parameters:
        value, sigma = measured(p.value, p.sigma)
        known = math.isfinite(p.truth) and p.sigma > 0.0
        off = (p.value - p.truth) / p.sigma if known else math.nan
        share = min(max(p.sigma_percent, 0.01), 100.0)
        lines.append(
            ParameterLine(
                p.name,
                unit_text(p.unit),
                value,
                sigma,
                percent(p.sigma_percent),
                like(p.prior, p.sigma),
                like(p.truth, p.sigma),
                p.name in well,
                p.name not in spare,
                25.0 * (math.log10(share) + 2.0),
                p.inside,
                50.0 + 50.0 * max(-SCALE_SIGMAS, min(SCALE_SIGMAS, off)) / SCALE_SIGMAS if known else None,
                f"{off:+.1f} σ".replace("-", "−") if known else "–",
            )
        )
    return tuple(lines)


def row_lines(study: IdentificationStudy) -> tuple[RowLine, ...]:
    before = {} if study.before is None else {r.row: r.std_error for r in study.before.rows}
    lines = []
    for own, other in zip(study.own.rows, study.check.rows, strict=True):
        w = study.whiteness.get(own.row)
        white = "–" if w is None else "white" if w.is_white else f"structure near {number(w.worst_frequency, 2)} Hz"
        lines.append(
            RowLine(
                own.row,
                unit_text(own.unit),
                other.samples,
                number(other.measured_rms, 3),
                number(other.measured_std, 3),
                number(other.rms, 2),
                percent(100.0 * own.std_error),
                percent(100.0 * other.std_error),
                percent(100.0 * other.relative_error),
                percent(100.0 * before.get(own.row, math.nan)),
                white,
                other.judged,
            )
        )
    return tuple(lines)


def key_figures(study: IdentificationStudy) -> tuple[Key, ...]:
    f = study.figures
    out = [
        Key(f"{int(f['well_identified'])} / {study.fit.base.count}", "base parameters with σ below 10 %"),
        Key(
            f"{percent(100.0 * study.judging.std_error)} %",
            (
                "of the positions' standard deviation is not reproduced by simulation"
                if study.by_simulation
                else "of the force's standard deviation is not predicted"
            )
            + (", on held-out data" if study.held_out == 1.0 else ""),
        ),
        Key(number(f["condition_scaled"], 3), "condition, columns scaled by typical sizes"),
    ]
    if "share_inside_two_sigma" in f:
        out.append(Key(f"{100 * f['share_inside_two_sigma']:.0f} %", "of the parameters within 2σ of the truth"))
    return tuple(out)
