"""Sections of the car's report: how 74 parameters became 33, spectra, filters, degrees of freedom, manoeuvres, and paper 001."""

from __future__ import annotations

import math
from collections.abc import Sequence

from veridyn.papers.car.bent import CURVED, STRAIGHT
from veridyn.papers.car.check import Spectra
from veridyn.papers.car.drive import BRAKING, RAMPS, Excitation
from veridyn.papers.car.known_2002 import SIXTEEN, TEN_ROWS_2002
from veridyn.papers.car.study import ERRORS, CarStudy
from veridyn.papers.car.study_2002 import CHASSIS_ROWS, Study2002, carrying
from veridyn.report import like, listed, number, percent, unit_text
from veridyn.report.blocks import Block, Figure, Listing, Section, Table, Text
from veridyn.report.budget import budget_blocks
from veridyn.report.parameters import QuantityLine, quantity_table
from veridyn.report.plots import Plot, Series, curves

ROWS = {
    "q1": "Force to the right q1",
    "q2": "Force forward q2",
    "q3": "Vertical force q3",
    "q4": "Yaw torque q4",
    "q5": "Pitch torque q5",
    "q6": "Roll torque q6",
    "q13": "Suspension front left q13",
    "q17": "Suspension front right q17",
    "q7": "Suspension rear left q7",
    "q10": "Suspension rear right q10",
}
PAUSE = 1.0  # s between the ramps, which were two drives


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
    steps = [(e.name, percent(e.relative_sigma), number(e.f_statistic, 3)) for e in s.paper.essential.steps]
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
    blocks = (
        Figure(plots, "Power spectral densities of four channels", "Dots are peaks that bear the name of a mode."),
        Table(("channel", "peaks, Hz", "sinks into noise at, Hz"), rows, left=(1,)),
        Text(text),
    )
    return Section("Where to cut", blocks)


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
    blocks = (
        Text(text),
        Table(("largest error, %", *(v.name for v in s.schemes)), rows, "Against the truth, and on the other drive."),
    )
    return Section("Filters, as printed and corrected", blocks)


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


def second_section(s: Study2002) -> Section:
    """Table 4, its budget, the figures and the weight."""
    w, f = s.weight, s.figures
    text = (
        f"Suspensions that bend, with bars, predict stretches of the ramps that they did not learn from to "
        f"{percent(100.0 * s.selected.errors[CURVED])} % of the standard deviation of their forces, straight ones to "
        f"{percent(100.0 * s.selected.errors[STRAIGHT])} %: the {s.selected.name} model is reported. Its off, ks and h are those of the "
        "straight line nearest to its forces over both ramps, and so are those of the truth. Ramps make the car roll, so each ks is "
        "k + 2 k_ar: that is why the two papers' stiffnesses differ. As printed, the model has no air, wheels that rise straight up and do "
        f"not lean, and no bars; its errors are then up to {number(f['largest_error_over_sigma_printed_2002'], 2)} of the deviations that "
        "noise alone gives. Here air, wheel places and paths are given as known, each wrong by about its deviation."
    )
    weight = (
        f"At rest the wheels carry {number(w.total)} kg; less the unsprung masses that is {number(w.sprung)} kg, against "
        f"{number(w.identified)} kg identified: {signed(100.0 * w.difference, 2)} %, where the paper has 6.47 %."
    )
    order = [s.budget.names.index(name) for name in SIXTEEN]
    blocks: list[Block] = [
        _table_4(s),
        Text(text),
        *budget_blocks(SIXTEEN, {source: x[order] for source, x in s.budget.parts.items()}),
        *_figures(s),
        _validation(s),
        Text(weight),
    ]
    lead = "Ramps of steering to the left at 90 and to the right at 110 km/h, a sample every 16 ms, sensor by joint."
    return Section("The paper of 2002: two ramps, sixteen parameters", blocks, lead)


def _table_4(s: Study2002) -> Table:
    values, sigma, printed = s.values, s.sigma, s.printed_errors
    as_printed = dict(zip(s.printed.names, s.printed.values.tolist(), strict=True))
    rows = [
        QuantityLine(
            *(name, "", values[name], sigma[name]),
            truth=s.truth[name],
            more=(like(as_printed[name], sigma[name]), signed(printed[name])),
        )
        for name in SIXTEEN
    ]
    note = "Table 4 for the simulated car, SI units; as printed: sixteen columns, nothing handed in but masses."
    return quantity_table(rows, caption=note, percents=True, more=("as printed", "error, σ of noise"))


def _figures(s: Study2002) -> list[Figure]:
    """Y and W·X: of the ramps the chassis' rows (Figure 2) and the suspensions' (Figure 3), and of braking (Figure 4)."""
    note = "Measured (Y) and computed (W·X) rows, both behind the filter of the fit."
    ramps = [_plot(s, row, RAMPS, "ramps of 2002") for row in ROWS]
    count = len(CHASSIS_ROWS)
    shown = [row for row in ROWS if row in carrying(s.cross)]
    title = "Figure 2: Y and W·X of the chassis on the ramps"
    return [
        Figure(ramps[:count], title, f"{note} The second ramp follows the first."),
        Figure(ramps[count:], "Figure 3: simple validation, the suspensions on the ramps", note),
        Figure(
            [_plot(s, row, (BRAKING,), "braking of 2002") for row in shown],
            "Figure 4: cross-validation on braking in a straight line",
            f"{note} A drive not used for the fit; rows that carry no signal there are left out.",
        ),
    ]


def _plot(s: Study2002, row: str, drives: Sequence[str], clock: str) -> Plot:
    series: list[Series] = []
    start, unit = 0.0, ""
    for name in drives:
        seen = s.traces[name]
        k = seen.rows.index(row)
        used, unit = seen.used[:, k], seen.units[k]
        t = seen.t[used] - seen.t[used][0] + start
        start = float(t[-1]) + PAUSE
        series.append(Series("measured, Y", t, seen.measured[used, k], colour="measured"))
        series.append(Series("computed, W·X", t, seen.predicted[used, k], "dashed", colour="estimate"))
    return curves(ROWS[row], series, "time, s", unit_text(unit), clock=clock)


def _validation(s: Study2002) -> Table:
    shown, braked = carrying(s.simple), carrying(s.cross)

    def cells(row: str) -> tuple[str, ...]:
        ramps = (100.0 * s.simple[row].std_error, 100.0 * s.simple[row].relative_error)
        brakes = (100.0 * s.cross[row].std_error, 100.0 * s.cross[row].relative_error)
        plain = 100.0 * s.printed_cross[row].relative_error
        first = ramps if row in shown else (math.nan, math.nan)
        second = (*brakes, plain) if row in braked else (math.nan,) * 3
        return tuple(percent(x) if math.isfinite(x) else "–" for x in (*first, *second))

    rows = [(row, *cells(row)) for row in TEN_ROWS_2002]
    head = ("row", "ramps, % of std", "‖r‖/‖y‖ %", "braking, % of std", "‖r‖/‖y‖ %", "as printed, ‖r‖/‖y‖ %")
    note = (
        "Simple and cross-validation; – where a row carries no signal. As printed the model has no bars, which rest on braking: the "
        "chassis rows hold there, and those of the suspensions cannot. q3 and q5 hardly vary: lasers measure heights over a road that is "
        "not quite level, and its roughness is most of what is left there. Moments about the axles of wheels on shafts do no work along "
        "their paths as long as the brakes are open, and are left out: on braking the front suspensions are off by that."
    )
    return Table(head, rows, note, strong=(1, 3))
