"""Sections of the car's report: how 74 parameters became 33, spectra, filters, degrees of freedom, and manoeuvres."""

from __future__ import annotations

import math
from collections.abc import Sequence

from veridyn.report.blocks import Block, Figure, Listing, Section, Table, Text
from veridyn.report.plots import Series, curves
from veridyn.report.words import listed, number, percent, unit_text
from veridyn.studies.papers.car.excitation import Excitation
from veridyn.studies.papers.car.spectra import Spectra
from veridyn.studies.papers.car.study import ERRORS, CarStudy


def signed(x: float, digits: int = 1) -> str:
    """With its sign, a real minus."""
    return f"{x:+.{digits}f}".replace("-", "−")


def reduction_section(s: CarStudy) -> Section:
    rows = [
        (r.step, str(r.estimated), str(r.separable), str(r.well) if r.well else "–", percent(r.worst_percent))
        for r in s.reductions
    ]
    head = ("step", "estimated", "separable", "well identified", "worst row, %")
    reasons = Listing([f"{r.step}: {r.reason}." for r in s.reductions])
    standard = s.standard
    ratio = standard.relative_sigma
    weak = [
        n for n, r in zip(standard.names, ratio, strict=True) if r >= 10.0 and n in s.fit.described.parameters.names
    ]
    text = (
        f"With all standard parameters {len(standard.values) - 1} are identifiable in these drives, {len(standard.well_identified())} "
        f"of them with σ % < 10 by noise alone. Not so well: {listed(weak)}."
    )
    steps = [(e.name, percent(e.relative_sigma), number(e.f_statistic, 3)) for e in s.essential.steps]
    blocks: list[Block] = [Table(head, rows, "Well identified: σ % < 10."), reasons, Text(text)]
    if steps:
        blocks.append(
            Table(("removed", "σ %", "F"), steps, "Inessential parameters, removed one by one: zero explains them.")
        )
    return Section(
        "From all standard parameters to the 33", blocks, "Section VI of the 2006 paper, with the reason for each step."
    )


def spectra_section(found: Spectra) -> Section:
    plots = []
    for c in found.channels[:4]:
        kept = (c.spectrum.frequency > 0.2) & (c.spectrum.frequency < 40.0)
        x, y = c.spectrum.frequency[kept], c.spectrum.values[kept]
        series = [Series("density", x, y, colour=0)]
        if c.peaks:
            series.append(
                Series("modes", [p.frequency for p in c.peaks], [p.amplitude for p in c.peaks], "dots", colour=1)
            )
        plots.append(curves(c.channel, series, "Hz", unit_text(c.spectrum.unit), log_x=True, log_y=True))
    rows = [
        (
            c.channel,
            listed([f"{p.name} at {p.frequency:.1f}" for p in sorted(c.peaks, key=lambda p: p.frequency)]) or "–",
            number(c.cutoff, 3) if math.isfinite(c.cutoff) else "–",
        )
        for c in found.channels
    ]
    names = ", ".join(f"{name} {hz:.1f}" for name, hz in found.modes.items())
    text = (
        f"Modes of the car at rest, in Hz: {names}. Between the chassis' and the driveline's modes lies {found.chassis:.2f} Hz, where "
        f"the paper cuts at 3.125; suspension rows need the wheels' hop and are cut above it, at {found.suspension:.0f} Hz or so."
    )
    return Section(
        "Where to cut",
        (
            Figure(plots, "Power spectral densities of four channels", "Dots are peaks that bear the name of a mode."),
            Table(("channel", "peaks, Hz", "sinks into noise at, Hz"), rows, left=(1,)),
            Text(text),
        ),
    )


def schemes_section(s: CarStudy) -> Section:
    rows = []
    for label, names in ERRORS.items():
        cells = [max(abs(100.0 * (v.values[n] / s.truth[n] - 1.0)) for n in names) for v in s.schemes]
        rows.append((label.removesuffix("_error_percent").replace("_", " "), *(percent(c) for c in cells)))
    rows.append(("worst row", *(percent(v.worst_percent) for v in s.schemes)))
    text = (
        "The paper passes everything but the clearances through 3.125 Hz. What is left of the other signals then contradicts them: "
        "unsprung masses and dampers are lost. One filter for all signals of a row mends that. The suspensions' stiffnesses need one "
        "thing more: along the path of a wheel its side force works too, about a tenth of it, and would be taken for stiffness."
    )
    return Section(
        "Filters, as printed and corrected",
        (
            Text(text),
            Table(
                ("largest error, %", *(v.name for v in s.schemes)), rows, "Against the truth, and on the other drive."
            ),
        ),
    )


def degrees_section(s: CarStudy) -> Section:
    rows = []
    for name in s.accepted():
        a, b = s.plain.values[name], s.reduced.values[name]
        difference = 100.0 * (b - a) / abs(a)
        if abs(difference) > 1.0:
            parts = [100.0 * s.leanings[label][name] / abs(a) for label in s.leanings]
            rows.append((name, *(signed(x) for x in (difference, *parts, sum(parts)))))
    head = ("parameter", "20 less 38 dof, %", *s.leanings, "together")
    within = len(s.accepted()) - len(rows)
    lead = (
        f"Of {len(s.accepted())} well identified parameters {within} agree within 1 % between 20 and 38 degrees of freedom, the same "
        "rows taken. For the others the table holds each motion of the wheels that the smaller car leaves out at zero in the larger "
        "one, alone."
    )
    blocks: Sequence[Block] = (
        (Table(head, rows, "Which motion of the wheels makes the difference, in percent of the value."),)
        if rows
        else (Text("No difference exceeds 1 %."),)
    )
    return Section("38 against 20 degrees of freedom", blocks, lead)


def manoeuvres_section(found: Sequence[Excitation]) -> Section:
    names = ("M_c", "XX_c", "ZZ_c", "M1", "k_1", "h_1", "k_arf", "Cx")
    rows = [
        (e.manoeuvre, str(e.separable), str(e.well), number(e.condition, 2), *(percent(e.percent[n]) for n in names))
        for e in found
    ]
    return Section(
        "Which manoeuvre",
        (Table(("manoeuvre", "separable", "σ % < 10", "condition", *names), rows, "Predicted deviations in percent."),),
        "Ranked before any is driven, on the a-priori car: how many of the 33 each identifies, given the noise of filtered rows.",
    )
