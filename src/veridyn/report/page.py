"""One HTML file that holds everything: style, figures, tables, animations; it opens offline, on a phone, and prints.

The tables are rows of text ready to be set. Templates and style serve other displays too. An identification shows in pictures forces
measured and predicted, what is left over, and how well the motion excites.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from veridyn.arrays import Array
from veridyn.identify.base import BaseParameters
from veridyn.identify.pipeline.identification import IdentificationStudy
from veridyn.identify.pipeline.identified import Trace
from veridyn.inference.verdict import Verdict
from veridyn.report import like, measured, number, percent, superscript, unit_text, units_in
from veridyn.report.blocks import Key, Listing, Section
from veridyn.report.insight import insight, reduced_section
from veridyn.report.plots import Axis, Curve, Plot, Tick, axis_over, dots, level, line, shared
from veridyn.report.running import replay_section, running_section
from veridyn.report.verdict import grade_rule, simulation_section, verdict
from veridyn.studies.result import Result

SCALE_SIGMAS = 4.0  # standard deviations that the small scale of the truth shows to either side


@cache
def environment() -> Environment:
    """Templates escape whatever they are given; a name that is missing is an error."""
    made = Environment(
        loader=PackageLoader("veridyn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["units"] = units_in
    return made


@cache
def own_file(name: str) -> Markup:
    """A file of the package, which needs no escaping."""
    return Markup(resources.files("veridyn.report").joinpath("templates", name).read_text(encoding="utf-8"))


def script(moving: bool = False, running: bool = False) -> Markup:
    """What makes plots and tables answer, scenes move and machines run, where there are some."""
    names = (
        "words.js",
        "plots.js",
        "tables.js",
        *(["player.js"] if moving else []),
        *(["running.js"] if running else []),
    )
    return Markup("\n").join(own_file(name) for name in names)


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
                f"{round(off, 1) + 0.0:+.1f} σ".replace("-", "−") if known else "–",
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
        Key(
            f"{percent(100.0 * study.judging.std_error)} %",
            (
                "of the positions' standard deviation is not reproduced by simulation"
                if study.by_simulation
                else "of the force's standard deviation is not predicted"
            )
            + (", on held-out data" if study.held_out == 1.0 else ""),
        ),
        Key(f"{int(f['well_identified'])} / {study.fit.base.count}", "base parameters with σ below 10 %"),
        Key(number(f["condition_scaled"], 3), "condition, columns scaled by typical sizes"),
    ]
    if "share_inside_two_sigma" in f:
        out.append(Key(f"{100 * f['share_inside_two_sigma']:.0f} %", "of the parameters within 2σ of the truth"))
    return tuple(out)


FILES = "result.json and parameters.csv"  # that a run folder has


def page(
    title: str,
    verdict: Verdict,
    key_figures: Sequence[Key],
    sections: Sequence[Section],
    result: Result,
    command: str,
    settings: Mapping[str, str] | None = None,
    beside: str = FILES,
    missed: Sequence[str] = (),
) -> str:
    """A report of any study: verdict, key figures, sections, and how to make it again.

    `command` is what would, `settings` how; `beside` names the files with the same numbers that stand beside the page. `missed`: limits of
    the study file that are not kept, which stand first.
    """
    lead = "The study file sets limits, and these are not kept."
    sections = [*([Section("Limits that are missed", [Listing(missed)], lead)] if missed else []), *sections]
    return _set("frame.html", title, verdict, key_figures, sections, result, command, settings or {}, (), beside=beside)


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
) -> str:
    """The report of an identification; `more` are sections to stand behind its forces and parameters, `first` before them.

    `title`, the verdict `found` and key figures `keys` in place of those of an identification. `model`: the file of the machine.
    """
    base = study.fit.base
    names, never = base.parameters.names, set(study.structure.dead)
    relations = base.relations()
    sums = "What comes only as a sum" if relations else "What has no effect"
    lines = parameter_lines(study)
    reduced = reduced_section(study)
    first = [*first, *simulation_section(study)]
    own = [(f"first-{k}", s.title) for k, s in enumerate(first, 1)]
    own += [("forces", "Forces, row by row"), ("parameters", "Parameters")]
    own += [("appendix", "Appendix"), *([("sums", sums)] if relations or base.dead else [])]
    samples = f"{len(study.training)} for the fit, {len(study.validation)} for validation"
    return _set(
        "identification.html",
        title or f"Identification of “{study.model.name}”",
        found or verdict(study),
        keys or key_figures(study),
        [
            *more,
            replay_section(study, model),
            running_section(study.fit, study.training),
            *([] if reduced is None else [reduced]),
            *insight(study),
        ],
        result,
        command,
        {"estimator": study.fit.estimator, **study.settings, "samples": samples, "grade": grade_rule(study)},
        (*own, ("excitation", "How well the motion excites")),
        study=study,
        parameters=lines,
        priors=any(p.prior != "–" for p in lines),
        rows=row_lines(study),
        relations=relations,
        sums=sums,
        beside=FILES,
        first=first,
        never=[names[k] for k in base.dead if k in never],
        dead=[names[k] for k in base.dead if k not in never],
        figures=row_figures(study),
        spectrum=singular_values(base),
        number=number,
    )


def _set(
    template: str,
    title: str,
    verdict: Verdict,
    keys: Sequence[Key],
    sections: Sequence[Section],
    result: Result,
    command: str,
    settings: Mapping[str, str],
    own: Sequence[tuple[str, str]],
    **more: object,
) -> str:
    """Set a page; `own` are anchors and titles of the sections that the template itself brings."""
    contents = [
        *([("warnings", "Warnings")] if result.warnings else []),
        *own,
        *((f"section-{k}", s.title) for k, s in enumerate(sections, 1)),
        ("again", "How to make this again"),
    ]
    moving = any(b.kind == "animation" for s in sections for b in s.blocks)
    running = any(b.kind == "running" for s in sections for b in s.blocks)
    return (
        environment()
        .get_template(template)
        .render(
            style=own_file("style.css"),
            script=script(moving, running),
            contents=contents,
            title=title,
            verdict=verdict,
            key_figures=keys,
            sections=sections,
            result=result,
            # What speaks against the model or the run first; what single channels of a log have, behind it.
            warnings=sorted(result.warnings, key=lambda text: text.startswith("channel '")),
            command=command,
            settings=settings,
            made_with=f"veridyn {result.veridyn}, Python {platform.python_version()}, NumPy {np.__version__}",
            **more,
        )
    )


NAMES = {"training": "Motion used for the fit", "validation": "Validation motion"}


@dataclass(frozen=True)
class Panel:
    """One motion of one row: forces above, what is left over below."""

    title: str
    forces: Plot
    residual: Plot


@dataclass(frozen=True)
class RowFigure:
    """One row on every motion, on common scales so that they can be compared."""

    row: str
    panels: tuple[Panel, ...]

    @property
    def tick_width(self) -> int:
        """Characters of the longest label beside any of its y axes."""
        return max(p.tick_width for panel in self.panels for p in (panel.forces, panel.residual))


def row_figures(study: IdentificationStudy) -> tuple[RowFigure, ...]:
    """One figure for each row of the fit."""
    traces = study.traces
    rows = next(iter(traces.values())).rows
    figures = []
    for k, row in enumerate(rows):
        forces = shared([t.measured[:, k] for t in traces.values()] + [t.predicted[:, k] for t in traces.values()])
        residual = shared([_used(t, k) for t in traces.values()])
        panels = [_panel(NAMES.get(name, name), t, k, forces, residual, name) for name, t in traces.items()]
        figures.append(RowFigure(row, tuple(panels)))
    return tuple(figures)


def trace_figure(t: Trace, k: int) -> list[Plot]:
    """Forces of row k along one motion, and what is left over beside them."""
    panel = _panel("one motion", t, k, shared([t.measured[:, k], t.predicted[:, k]]), shared([_used(t, k)]))
    below = {"x_ticks": panel.residual.x_ticks, "x_label": panel.residual.x_label}
    return [
        replace(panel.forces, title="measured and predicted", **below),
        replace(panel.residual, title="measured less predicted", low=False),
    ]


def _used(t: Trace, k: int) -> Array:
    """The differences that decide the scale: those the row uses, or all where it uses none."""
    return t.residual[t.used[:, k], k] if t.used[:, k].any() else t.residual[:, k]


def _panel(title: str, t: Trace, k: int, forces: Axis, residual: Axis, clock: str = "time") -> Panel:
    """Two plots on one clock: each motion has its own."""
    time = axis_over(t.t, margin=0.0)
    unit, row = unit_text(t.units[k]), t.rows[k]
    whole, used = t.residual[:, k], t.used[:, k]
    pale = np.convolve(~used, np.ones(3), "same") > 0  # with the samples beside them, so that no gap is left
    compared = Plot(
        f"{row}, {title.lower()}: measured and predicted force over time",
        (
            Curve("zero", level(0.0, forces)),
            Curve("measured", line(t.t, t.measured[:, k], time, forces), "measured"),
            Curve("predicted", line(t.t, t.predicted[:, k], time, forces), "predicted"),
        ),
        (),
        forces.ticks(5, upwards=True),
        "",
        unit,
        axes=(time, forces),
        clock=clock,
    )
    difference = Plot(
        f"{row}, {title.lower()}: measured less predicted over time",
        (
            Curve("zero", level(0.0, residual)),
            *(
                []
                if used.all()
                else [Curve("unused", line(t.t, np.where(pale, whole, np.nan), time, residual), "difference, not used")]
            ),
            Curve("residual", line(t.t, np.where(used, whole, np.nan), time, residual), "difference"),
        ),
        time.ticks(7),
        residual.ticks(4, upwards=True),
        "time, s",
        unit,
        low=True,
        axes=(time, residual),
        clock=clock,
    )
    return Panel(title, compared, difference)


def singular_values(base: BaseParameters) -> Plot | None:
    """Singular values of the weighted regressor with columns scaled by typical sizes, largest 1, on a logarithmic axis."""
    s = base.singular_values
    if not len(s) or s[0] <= 0.0:
        return None
    floor = -17.0
    decades = np.maximum(np.log10(np.maximum(s / s[0], 1e-300)), floor)
    number = np.arange(1, len(s) + 1, dtype=np.float64)
    across, up = Axis(0.0, len(s) + 1.0), Axis(min(float(decades.min()), -1.0) - 0.6, 0.6)
    kept = number <= base.count
    curves = [Curve("kept", dots(number[kept], decades[kept], across, up), "kept")]
    if not kept.all():
        curves.append(Curve("dropped", dots(number[~kept], decades[~kept], across, up), "dropped: rounding"))
    step = 1 if up.low > -5 else 3
    powers = tuple(
        Tick(100.0 * (1.0 - float(up.share(-p))), f"10{superscript(-p)}" if p else "1")
        for p in range(0, int(-up.low) + 1, step)
    )
    title = f"Singular values of the regressor: {base.count} kept, {len(s) - base.count} dropped"
    return Plot(title, tuple(curves), across.ticks(6), powers, "number", "size", axes=(across, up), log="y")
