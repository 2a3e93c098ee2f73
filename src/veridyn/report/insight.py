"""What stands behind an identification: residuals, how the motion excites, where deviations come from, whether the result is physically
consistent, and what to record next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.identify.diagnosis.explain import what_next
from veridyn.identify.diagnosis.fit_check import attempt
from veridyn.identify.pipeline.identification import IdentificationStudy
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.report import count, listed, number, units_in
from veridyn.report.blocks import Block, Figure, Heat, Listing, Section, Table, Text
from veridyn.report.budget import budget_section
from veridyn.report.plots import Series, bars, curves, heat
from veridyn.report.spectra import spectrum_figures, whiteness_figures
from veridyn.spatial.inertia import broken_law, pseudo_inertia

STRONG_CORRELATION = 0.9  # a correlation above it is worth a line
MOTION_POINTS = 600  # of a picture of the motion
MAX_SHOWN_PAIRS = 8  # of correlated parameters that are named


def insight(study: IdentificationStudy) -> list[Section]:
    """Sections to stand behind those of the page."""
    return [_left_over(study), *budget_section(study.fit), _excitation(study), _possible(study), _next(study)]


def _left_over(study: IdentificationStudy) -> Section:
    lead = "Noise is spread over all frequencies. A residual that gathers where the machine moves shows that the model lacks something."
    blocks = [*spectrum_figures(study.traces["training"]), *whiteness_figures(study.whiteness, "residuals")]
    return Section("What is left over", blocks, lead)


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
