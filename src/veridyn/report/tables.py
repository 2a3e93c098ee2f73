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
    """One row: its errors on the motion it learned from and on the other, and what its residual looks like."""

    row: str
    unit: str
    samples: int
    measured: str
    rms: str
    training: str
    validation: str
    before: str
    white: str


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
    units = dict(zip(study.traces["training"].rows, study.traces["training"].units, strict=True))
    before = {} if study.before is None else {r.row: r.relative_error for r in study.before.rows}
    lines = []
    for own, other in zip(study.fit.rows, study.check.rows, strict=True):
        w = study.whiteness.get(own.row)
        white = "–" if w is None else "white" if w.is_white else f"structure near {number(w.worst_frequency, 2)} Hz"
        lines.append(
            RowLine(
                own.row,
                unit_text(units[own.row]),
                other.samples,
                number(other.measured_rms, 3),
                number(other.rms, 2),
                percent(100.0 * own.relative_error),
                percent(100.0 * other.relative_error),
                percent(100.0 * before.get(own.row, math.nan)),
                white,
            )
        )
    return tuple(lines)


def key_figures(study: IdentificationStudy) -> tuple[Key, ...]:
    f = study.figures
    out = [
        Key(f"{int(f['well_identified'])} / {study.fit.base.count}", "base parameters with σ below 10 %"),
        Key(f"{percent(f['cross_validation_percent'])} %", "force error on the other motion, in all"),
        Key(number(f["condition_scaled"], 3), "condition, columns scaled by typical sizes"),
    ]
    if "share_inside_two_sigma" in f:
        out.append(Key(f"{100 * f['share_inside_two_sigma']:.0f} %", "of the parameters within 2σ of the truth"))
    return tuple(out)
