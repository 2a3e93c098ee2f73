"""Machines and results as a notebook shows them: tables by themselves, pictures on request, the same as in a report; and as data frames.

    fit                      its parameters as a table           fit.plot()           deviations and correlations
    fit.plot(motion)         forces, measured and predicted      states.plot("q1")    estimates with their bands

A :class:`Display` is a piece of HTML whose style does not touch the rest of the page; :meth:`Display.save` makes a page of it. pandas is
imported when a frame is asked for.
"""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from veridyn.errors import DataError, Fault, VeridynError, did_you_mean
from veridyn.files.access import refuse_format, write_atomic
from veridyn.identify.base import BaseParameters
from veridyn.identify.pipeline.identified import trace
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.validation import Validation
from veridyn.inference.error_measures import RowReport
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.single_track import car_described, prior_of
from veridyn.observe.observation import Observation
from veridyn.report import count, listed, number
from veridyn.report.blocks import Block, Figure, Heat, Listing, Table, Text
from veridyn.report.faults import verdict_blocks
from veridyn.report.page import environment, own_file, script
from veridyn.report.parameters import QuantityLine, quantity_table, singular_values, sum_blocks
from veridyn.report.plots import Plot, bars, heat
from veridyn.report.rows import row_figure, row_table
from veridyn.report.traces import estimate_plot

PAGE_ENDINGS = (".html", ".htm")
ERRORS = "Error: rms of what is left over, in percent of the standard deviation of what was measured."
MAX_CORRELATED = 60  # parameters that a map of correlations shows
MAX_STATES = 24  # plots of states that are shown unless some are named


def frame_of_fit(fit: Fit) -> Any:
    """A line for each base parameter, by its name."""
    well = set(fit.well_identified())
    columns = {
        "value": fit.values,
        "sigma": fit.sigma,
        "sigma_percent": fit.relative_sigma,
        "prior": fit.priors,
        "unit": list(fit.units),
        "well_identified": [name in well for name in fit.names],
    }
    return _pandas().DataFrame(columns, index=_pandas().Index(fit.names, name="parameter"))


def frame_of_rows(rows: Sequence[RowReport]) -> Any:
    """A line for each row, as in the table of a validation, with its unit."""
    table = Validation(tuple(rows)).table
    columns = {key: [table[r.row][key] for r in rows] for key in next(iter(table.values()), {})}
    return _pandas().DataFrame(
        {**columns, "unit": [r.unit for r in rows]}, index=_pandas().Index([r.row for r in rows], name="row")
    )


def frame_of_states(states: Observation) -> Any:
    """A line for each sample, by time in s; each state and its standard deviation."""
    sigma = states.sigma
    columns = {}
    for j, name in enumerate(states.states):
        columns |= {name: states.reduced[:, j], f"{name}.sigma": sigma[:, j]}
    return _pandas().DataFrame(columns, index=_pandas().Index(states.t, name="t"))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        hint = "pip install pandas, or use names, values and sigma as they are."
        raise VeridynError(
            Fault("a data frame needs pandas, which is not installed.", "to_frame", hint=hint)
        ) from error
    return pandas


@dataclass(frozen=True)
class Display:
    """What a notebook shows of an object: a title, and blocks as reports have them."""

    title: str
    blocks: Sequence[Block]

    def _repr_html_(self) -> str:
        template = environment().get_template("notebook.html")
        return template.render(style=_scoped_style(), title=self.title, blocks=self.blocks)

    def __repr__(self) -> str:
        return f"<{self.title}; a notebook shows it, and save('picture.html') writes it>"

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write a page of its own (.html), whole or not at all; it opens in a browser without a network."""
        refuse_format(path, PAGE_ENDINGS, "a page", "It opens in a browser, which prints it into other formats.")
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(self.title)}</title>'
        narrow = '<meta name="viewport" content="width=device-width, initial-scale=1">'
        answers = f"<script>\n{script()}\n</script>"
        page = f"{head}{narrow}<body style='margin:0'>{self._repr_html_()}{answers}</body></html>\n"
        return write_atomic(path, page.encode(), overwrite)


def show_machine(machine: Machine) -> Display:
    """Bodies with their joints, what acts, what is measured, and how many parameters there are; of a car its few numbers."""
    if machine.car is not None:
        return _show_car(machine)
    kinds = dict(zip(machine.coordinates, machine.coordinate_kinds, strict=True))
    masses = {b.name: machine.parameters[b.parameter("M")] for b in machine.links if b.real}
    rows = [
        (
            b.name,
            str(b.antecedent or "ground"),
            b.joint if b.coordinate_name is None else f"{kinds.get(b.coordinate_name, b.joint)}, {b.coordinate_name}",
            number(masses[b.name]) if b.name in masses else "–",
        )
        for b in bodies_of(machine)
    ]
    facts = [
        f"{count(machine.n, 'coordinate')} on a {machine.base} base, {count(len(machine.cut_joints), 'closed loop')}, "
        f"{count(len(machine.parameters), 'parameter')}",
        *([f"elements: {listed([e.name or e.kind for e in machine.elements])}"] if machine.elements else []),
        *([f"sensors: {listed([s.name for s in machine.sensors])}"] if machine.sensors else []),
        *([f"controllers: {listed([c.name for c in machine.controllers])}"] if machine.controllers else []),
        *([f"prescribed: {listed(machine.prescribed)}"] if machine.prescribed else []),
    ]
    table = Table(("body", "carried by", "joint", "mass, kg"), rows, left=(1, 2))
    return Display(f"Machine “{machine.name}”", [Listing(facts), table])


def _show_car(car: Machine) -> Display:
    p, own = car.parameters, car_described(car)
    quantities = [
        QuantityLine(n, u, p[n], prior_of(car, n).sigma, more=(state if n in own.values else "by default",))
        for n, u, state in zip(p.names, p.units, p.states, strict=True)
    ]
    facts = [f"a car of a few numbers, {own.tyre} tyres", f"sensors: {listed([s.name for s in car.sensors]) or 'none'}"]
    return Display(f"Machine “{car.name}”", [Listing(facts), quantity_table(quantities, more=("state",), words=True)])


def show_base(base: BaseParameters) -> Display:
    """Which parameters are identifiable, and in which combinations."""
    text = f"{base.count} base parameters of {len(base.parameters.names)} standard ones ({base.source})."
    return Display("Base parameters", [Text(text), *sum_blocks(base)])


def show_fit(fit: Fit) -> Display:
    """The verdict with its reasons, parameters with their deviations, and the errors of each row."""
    well, rule = set(fit.well_identified()), fit.acceptance
    columns = (fit.names, fit.units, fit.values.tolist(), fit.sigma.tolist(), fit.priors.tolist())
    quantities = [QuantityLine(*row, weak=row[0] not in well) for row in zip(*columns, strict=True)]
    known = f"{len(well)} of {count(len(quantities), 'base parameter')}"
    lead = f"{known} with {rule.sigmas:g} σ below {rule.percent:g} %; the others are pale."
    tables = [quantity_table(quantities, percents=True), row_table(fit.rows, caption=ERRORS)]
    blocks: list[Block] = [*verdict_blocks(fit.verdict), Text(lead), *tables]
    if fit.notes:
        blocks.append(Listing(fit.notes))
    return Display(f"“{fit.described.name}” by {fit.estimator}", blocks)


def show_validation(validation: Validation) -> Display:
    """The errors of each row on samples that were not used for the fit."""
    return Display("Validation", [row_table(validation.rows, caption=ERRORS)])


def show_observation(states: Observation) -> Display:
    """States at the end of the log with their deviations, and whether innovations are as large as they should be."""
    columns = (states.states, states.units, states.reduced[-1].tolist(), states.sigma[-1].tolist())
    last = [QuantityLine(*row) for row in zip(*columns, strict=True)]
    span = f"{count(len(states), 'sample')}, {number(float(states.t[0]))} s to {number(float(states.t[-1]))} s."
    verdict = [f"{states.nis().summary()}."] if states.estimates.dof.sum() else []
    blocks: list[Block] = [
        Text(" ".join([span, *verdict])),
        quantity_table(last, "state", "At the end of the log."),
    ]
    return Display(f"{states.filter} on “{states.system.name}”", blocks)


def plot_fit(fit: Fit, motion: Motion | None = None, sampling: Sampling | None = None) -> Display:
    """Deviations, singular values and correlations of a fit; with a motion the forces along it, measured and predicted."""
    if motion is not None:
        return Display(f"Forces of “{fit.described.name}”", _forces(fit, motion, sampling))
    blocks: list[Block] = []
    if len(fit.values):
        deviations = {"σ, % of the value": np.minimum(fit.relative_sigma, 1e4)}
        blocks.append(
            Figure([bars("Standard deviations", fit.names, deviations, "%", log=True)], "Standard deviations")
        )
    spectrum = singular_values(fit.base)
    if spectrum is not None:
        blocks.append(Figure([spectrum], "Singular values of the regressor"))
    if 1 < len(fit.values) <= MAX_CORRELATED:
        blocks.append(Heat(heat("Correlations of the estimates", fit.correlation, fit.names, fit.names)))
    return Display(f"Fit of “{fit.described.name}”", blocks)


def plot_validation(validation: Validation, *rows: str) -> Display:
    """Forces along the motion of a validation, measured and predicted, and what is left over; bars of errors where it has no motion."""
    if isinstance(validation.fit, Fit) and isinstance(validation.motion, Motion):
        return Display("Validation", _forces(validation.fit, validation.motion, validation.sampling, rows))
    names = [r.row for r in validation.rows]
    errors = {
        "rms over standard deviation, %": [100.0 * r.std_error for r in validation.rows],
        "‖r‖/‖y‖, %": [100.0 * r.relative_error for r in validation.rows],
    }
    return Display("Validation", [Figure([bars("Errors of each row", names, errors, "%")], "Errors of each row")])


def plot_states(states: Observation, *names: str) -> Display:
    """States with their 95 % bands; all of them, or those that are named."""
    for name in names:
        if name not in states.states:
            hint = did_you_mean(name, states.states)
            raise DataError(f"there is no state '{name}'.", where=states.filter, hint=hint)
    chosen = [j for j, name in enumerate(states.states) if not names or name in names]
    plots: list[Plot] = [
        estimate_plot(states.states[j], states.units[j], states.t, states.reduced[:, j], states.sigma[:, j])
        for j in chosen[:MAX_STATES]
    ]
    blocks: list[Block] = [Figure(plots, caption="Shaded: the 95 % band of the observer.")]
    if len(chosen) > MAX_STATES:
        rest = listed([states.states[j] for j in chosen[MAX_STATES:]])
        blocks.append(Text(f"Not shown: {rest}. Name them: plot('{states.states[chosen[MAX_STATES]]}')."))
    return Display(f"States of “{states.system.name}”", blocks)


def _forces(fit: Fit, motion: Motion, sampling: Sampling | None, rows: Sequence[str] = ()) -> list[Block]:
    seen = trace(fit, motion, sampling or Sampling())
    for name in rows:
        if name not in seen.rows:
            raise DataError(f"there is no row '{name}'.", where=fit.described.name, hint=did_you_mean(name, seen.rows))
    return [row_figure(seen, k) for k, row in enumerate(seen.rows) if not rows or row in rows]


@cache
def _scoped_style() -> Markup:
    """The style of reports, nested so that it holds within a display only."""
    return Markup(str(own_file("style.css")).replace(":root", "&"))  # a plain string: Markup would escape the ampersand
