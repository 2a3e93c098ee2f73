"""What stands behind an identification: residuals, how the motion excites, where deviations come from, whether the result is physically
consistent, what to record next, and the reduced model of essential parameters beside the full one.

The parts of a standard deviation are drawn as a stacked bar for each parameter, with a line for each source. Their squares add up to the
square of the whole, so shares are those of the variance. Of more sources than colours, the smaller ones are drawn together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.diagnosis.explain import what_next
from veridyn.identify.diagnosis.fit_check import attempt
from veridyn.identify.pipeline.identification import IdentificationStudy
from veridyn.identify.pipeline.identified import Trace
from veridyn.identify.result import Fit
from veridyn.identify.selection import EliminationStep
from veridyn.identify.validation import Validation
from veridyn.model.machine import Machine
from veridyn.report import count, listed, measured, number, percent, unit_text, units_in
from veridyn.report.blocks import Block, Figure, Heat, Listing, Section, Table, Text
from veridyn.report.plots import COLOURS, Plot, Series, bars, curves, heat, stacked
from veridyn.signals.spectrum import power_spectrum
from veridyn.spatial.inertia import broken_law, pseudo_inertia
from veridyn.studies.result import csv_text

BARS_IN_A_PLOT = 12
OTHERS = "others"
REMEDIES = {
    "noise": "a longer recording, or a motion that excites more; four times as long halves it",
    "drives": "more drives, on other days and roads",
    "takes": "more takes of the motion, on other days",
    "known values": "measure better what is known: gains, loads, the empty machine",
    "noise of positions": "finer encoders, a lower cut-off, or instrumental variables; not a longer recording",
    "cut-off": "positions with less noise, which may pass a higher cut-off; softer impacts",
    "stretches": "more drives, on other days and roads",
    "prior": "a motion in which the parameter acts; the data say little of it",
    "zeros": "zero the instruments again before and after the drive",
    "carriers": "weigh and swing a wheel carrier, or ask for its drawing",
    "tables": "measure the axle's kinematics on a bench again",
    "bands": "measure the frequency response of the instruments",
    "places": "measure where the instruments sit",
    "lengths": "measure track and wheelbase on the level",
    "air": "a wind tunnel, or slower drives",
}
STRONG_CORRELATION = 0.9  # a correlation above it is worth a line
MOTION_POINTS = 600  # of a picture of the motion
MIN_SPECTRUM_SAMPLES = 64  # samples for a spectrum
SPECTRUM_DECADES = 5  # below its largest value that a spectrum shows
MAX_SHOWN_PAIRS = 8  # of correlated parameters that are named


def shares(parts: Mapping[str, Array]) -> dict[str, Array]:
    """Source → share of the variance of each parameter (p,); sources that add nothing are left out."""
    whole = np.sum([np.square(x) for x in parts.values()], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {name: np.square(x) / whole for name, x in parts.items()}
    return {name: share for name, share in found.items() if np.nan_to_num(share).max(initial=0.0) > 0.0}


def budget_blocks(names: Sequence[str], parts: Mapping[str, Array], caption: str = "") -> list[Block]:
    """The stacked bars of all parameters, and a table of the sources: their mean share, where they are largest, what reduces them."""
    every = shares(parts)
    if not every:
        return []
    order = sorted(every, key=lambda name: -float(np.nanmean(every[name])))
    drawn = {name: 100.0 * every[name] for name in order}
    if len(order) > COLOURS:
        own, rest = order[: COLOURS - 1], order[COLOURS - 1 :]
        drawn = {name: drawn[name] for name in own} | {OTHERS: np.sum([drawn[name] for name in rest], axis=0)}
    plots = []
    count = max(1, -(-len(names) // BARS_IN_A_PLOT))
    for part in np.array_split(np.arange(len(names)), count):
        some = [names[int(k)] for k in part]
        title = "Parts of the variance" if count == 1 else f"Parts of the variance, {some[0]} to {some[-1]}"
        plots.append(stacked(title, some, {n: x[part] for n, x in drawn.items()}, "% of the variance"))
    rows = []
    for name in order:
        most = int(np.nanargmax(every[name]))
        mean, top = 100.0 * float(np.nanmean(every[name])), 100.0 * float(every[name][most])
        rows.append((name, f"{mean:.0f} %", f"{names[most]}: {top:.0f} %", REMEDIES.get(name, "")))
    head = ("source", "mean share", "largest share", "what would reduce it")
    return [
        Figure(plots, "Where the deviations come from", caption),
        Table(head, rows, "Sources of the deviations and what would reduce each.", left=(2, 3)),
    ]


def insight(study: IdentificationStudy) -> list[Section]:
    """Sections to stand behind those of the page."""
    return [_left_over(study), *_budget(study), _excitation(study), _possible(study), _next(study)]


def _left_over(study: IdentificationStudy) -> Section:
    spectra = [p for p in (_spectrum(study.traces["training"], k) for k in range(len(study.fit.rows))) if p]
    white = [
        curves(
            row,
            [
                Series("what is left over", w.frequency, w.cumulative),
                Series("white noise", w.frequency, w.expected, "dashed", (w.expected - w.band, w.expected + w.band), 5),
            ],
            "frequency, Hz",
            "share of power",
            y_range=(0.0, 1.0),
        )
        for row, w in study.whiteness.items()
    ]
    blocks: list[Block] = []
    if spectra:
        blocks.append(
            Figure(
                spectra, "Spectra", "Root of the power density of each row on the motion used for the fit; logarithmic."
            )
        )
    if white:
        blocks.append(
            Figure(
                white,
                "Is it white?",
                "Cumulative periodogram of each row's residual, with the Kolmogorov–Smirnov band of white noise.",
            )
        )
    lead = "Noise is spread over all frequencies. A residual that gathers where the machine moves shows that the model lacks something."
    return Section("What is left over", blocks, lead)


def _budget(study: IdentificationStudy) -> list[Section]:
    """Where deviations come from, as shares of their squares; nothing where noise is all of it."""
    parts = {name: sigma for name, sigma in study.fit.budget.items() if np.nanmax(sigma, initial=0.0) > 0.0}
    if len(parts) < 2:
        return []
    stated = np.isfinite(study.fit.sigma) & (study.fit.sigma > 0.0)
    names = [name for name, known in zip(study.fit.names, stated, strict=True) if known]
    note = "A longer recording makes the share of noise smaller, and no other."
    lead = "Deviations have several sources; their squares add up."
    blocks = budget_blocks(names, {name: sigma[stated] for name, sigma in parts.items()}, note)
    return [Section("Where the deviations come from", blocks, lead)]


def _spectrum(t: Trace, k: int) -> Plot | None:
    used = t.used[:, k]
    if used.sum() < MIN_SPECTRUM_SAMPLES:
        return None
    first, last = np.flatnonzero(used)[[0, -1]]
    part = slice(first, last + 1)
    measured, rest = t.measured[part, k], t.residual[part, k]
    if not (np.isfinite(measured).all() and np.isfinite(rest).all()):
        return None
    rate = 1.0 / float(np.median(np.diff(t.t)))
    whole, left = (power_spectrum(x, rate) for x in (measured, rest))
    top = float(np.sqrt(whole.values[1:].max()))
    if top <= 0.0:  # a row on which nothing is measured but zero
        return None
    low = top / 10.0**SPECTRUM_DECADES
    above = (whole.frequency > 0.0) & (whole.values > low**2)
    return curves(
        t.rows[k],
        [
            Series("measured", whole.frequency[above], np.sqrt(whole.values[above]), colour="measured"),
            Series("left over", left.frequency[above], np.maximum(np.sqrt(left.values[above]), low), colour=1),
        ],
        "frequency, Hz",
        f"{unit_text(t.units[k])}/√Hz",
        log_x=True,
        log_y=True,
        y_range=(low, 1.5 * top),
    )


def _excitation(study: IdentificationStudy) -> Section:
    fit, m = study.fit, study.training
    thin = slice(None, None, max(1, len(m) // MOTION_POINTS))
    units = {"turning": ("rad", "rad/s"), "sliding": ("m", "m/s")}
    kinds = study.model.coordinate_kinds
    phase = [
        curves(name, [Series("", m.q[thin, c], m.qd[thin, c])], f"position, {units[kinds[c]][0]}", units[kinds[c]][1])
        for c, name in enumerate(study.model.coordinates)
        if np.ptp(m.q[:, c]) > 0.0 and c in study.model.independent
    ]
    share = np.clip(fit.relative_sigma, 1e-3, 1e3)
    blocks: list[Block] = [
        Figure([bars("σ % of each parameter", fit.names, {"σ %": share}, "σ, %", log=True)], "How well each is known"),
        *_correlations(fit),
    ]
    title = "Where the motion has been"
    blocks.append(Figure(phase, title, "Speed over position of each coordinate that has an equation of its own."))
    return Section("What the motion shows of each parameter", blocks)


def _correlations(fit: Fit) -> list[Block]:
    """The correlation of the estimates, those next to each other that depend on each other, and the pairs and groups by name."""
    r, names = np.nan_to_num(fit.correlation), fit.names
    groups = strong_groups(r)
    order = [k for group in groups for k in group]
    order += [k for k in range(len(names)) if k not in order]
    ordered = [names[k] for k in order]
    map_ = heat("Correlation of the estimates", r[np.ix_(order, order)], ordered, ordered)
    ends = np.cumsum([0, *map(len, groups)])
    framed = replace(map_, groups=tuple((int(a), len(group)) for a, group in zip(ends, groups)))
    caption = "Blue: both may be too large together; red: one too large, the other too small."
    if not groups:
        return [Heat(framed, caption)]
    caption += " Framed: groups that these data can hardly separate."
    strong = [
        (abs(r[i, j]), f"{names[i]} and {names[j]}: {r[i, j]:+.3f}".replace("-", "−"))
        for i in range(len(r))
        for j in range(i)
        if abs(r[i, j]) > STRONG_CORRELATION
    ]
    pairs = f"{count(len(strong), 'pair')} with a correlation beyond {STRONG_CORRELATION}"
    sentence = f"{pairs}: the data determine their combination better than either."
    best = [text for _, text in sorted(strong, reverse=True)[:MAX_SHOWN_PAIRS]]
    larger = [", ".join(names[k] for k in group) for group in groups if len(group) > 2]
    found: list[Block] = [Heat(framed, caption), Text(sentence), Listing(best, code=True)]
    if larger:
        found += [Text("Groups of more than two that hang together so:"), Listing(larger, code=True)]
    return found


def strong_groups(r: np.ndarray) -> list[list[int]]:
    """Parameters that hang together by correlations beyond `STRONG_CORRELATION`, directly or through others; the largest group first."""
    left, found = set(range(len(r))), []
    while left:
        group, new = set[int](), {left.pop()}
        while new:
            group |= new
            new = {j for i in new for j in np.flatnonzero(np.abs(r[i]) > STRONG_CORRELATION).tolist()} - group
        left -= group
        if len(group) > 1:
            found.append(sorted(group))
    return sorted(found, key=len, reverse=True)


def _possible(study: IdentificationStudy) -> Section:
    fit = study.fit
    machine = fit.described.with_parameters(fit.standard)
    rows, broken = [], []
    for name, X in _bodies(machine):
        law = broken_law(X)
        broken += [name] if law else []
        rows.append(
            (
                name,
                number(float(X[9]), 4),
                number(float(np.linalg.eigvalsh(pseudo_inertia(X))[0]), 3),
                units_in(law).replace("-", "−") if law else "physically consistent",
            )
        )
    split = (
        "Groups are split as the priors have them, so a body that breaks a law here may do so by its prior's share alone."
        if fit.standard_values is None and fit.base.relations()
        else ""
    )
    if fit.feasibility is not None:
        cost = number(fit.feasibility.cost_percent, 2)
        lead = f"The estimator kept every body physically consistent, at the cost of {cost} % more residual."
    elif broken:
        lead = (
            f"Not as they stand: {'body' if len(broken) == 1 else 'bodies'} {listed(broken)}. Export is refused by default; "
            "the estimator “consistent” finds the nearest consistent set."
        )
    else:
        lead = "Yes: every body has a positive mass and a pseudo-inertia that is positive definite."
    table = Table(("body", "mass, kg", "least eigenvalue of its pseudo-inertia", "verdict"), rows, split, left=(3,))
    return Section("Is it physically consistent?", [table] if rows else [], lead)


def _bodies(machine: Machine) -> list[tuple[str, np.ndarray]]:
    """Ten parameters of each real body of which all are known."""
    p, out = machine.parameters, []
    for body in machine.links:
        if body.real:
            X = np.array([p[body.parameter(s)] for s in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")])
            if np.isfinite(X).all():
                out.append((body.name, X))
    return out


def _next(study: IdentificationStudy) -> Section:
    failed: list[str] = []
    advice = attempt("Further motions were not tried", lambda: what_next(study.fit, study.training), failed)
    if failed:
        return Section("What to record next", [], failed[0])
    if not advice:
        return Section(
            "What to record next",
            [],
            "Nothing that the motions considered would sharpen: the same motion faster or slower, and each coordinate alone.",
        )
    lead = "What a further recording would do follows from the model and the noise, before it is made. The best first."
    return Section("What to record next", [Listing([str(a) for a in advice[:5]])], lead)


LEFT_OUT = "0"
REMOVAL_REASONS = ("removed_at_sigma_percent", "f_statistic", "p_value", "joint_p_value")
REDUCED_COLUMNS = ("parameter", "unit", "full", "σ", "reduced", "σ of it", "σ % when removed", "F", "p")


def reduced_section(study: IdentificationStudy) -> Section | None:
    """What the reduced model is, and how much worse it predicts; None where nothing was left out."""
    if not study.essential.steps:
        return None
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
    return Section("Reduced model", [errors, values], lead)


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
