"""Runs side by side, and the machines of a fleet: what differs by more than its deviations is first to be seen.

Of a fleet: which machines stand apart, how much machines differ, and each machine's parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.fleet import FEWEST, Fleet
from veridyn.inference.verdict import Verdict
from veridyn.report import count, listed, measured, number, percent, unit_text
from veridyn.report.blocks import Block, Figure, Heat, Key, Listing, Section, Table, Text
from veridyn.report.page import page
from veridyn.report.parameters import QuantityLine, quantity_table
from veridyn.report.plots import Axis, Curve, Plot, area, axis_over, bars, dots, heat, level, line, over_names
from veridyn.studies.compare import APART, Comparison, Difference
from veridyn.studies.result import Result
from veridyn.studies.run.fleet import FleetRun

HASH_DIGITS = 10  # of a SHA-256 that the table of inputs shows


def comparison_page(found: Comparison, command: str) -> str:
    """Verdict, parameters, figures and inputs of two runs or more; `command` is what makes the page again."""
    sections = [
        Section("Parameters", _parameters(found)),
        Section("Figures", _figures(found), "What each run reports of itself; SI units, or as the name says."),
        Section("Inputs", _inputs(found), "What went into the runs; the same hash is the same content."),
    ]
    result = Result("comparison", None, False, {}, {}, (), {})
    return page(
        f"Comparison of {count(len(found.runs), 'run')}",
        comparison_verdict(found),
        _keys(found),
        sections,
        result,
        command,
        {"runs": listed(found.runs, most=len(found.runs))},
        beside="",
    )


def comparison_verdict(found: Comparison) -> Verdict:
    """Good where no parameter differs by more than three deviations, fair where some do, poor where most do or none can be compared."""
    known = [d for d in found.parameters if math.isfinite(d.apart)]
    off = found.differing
    grade = "poor" if not known or 2 * len(off) > len(known) else "fair" if off else "good"
    headline = (
        f"{len(off)} of {count(len(known), 'parameter')} differ by more than {APART:g} deviations."
        if off
        else f"No parameter differs by more than {APART:g} deviations."
        if known
        else "These runs have no parameters with deviations in common."
    )
    findings = (
        [f"Furthest apart: {listed([_worst(d) for d in sorted(off, key=lambda d: -d.apart)[:4]])}."] if off else []
    )
    other = [key for key, hashes in found.inputs.items() if len(set(hashes)) > 1]
    findings.append(f"Not the same in all runs: {listed(other)}." if other else "All runs have the same inputs.")
    if len(set(found.versions)) > 1:
        findings.append(f"They were made with different versions: {listed(found.versions)}.")
    return Verdict(grade, headline, tuple(findings))


def _worst(d: Difference) -> str:
    return f"{d.name} by {number(d.apart, 3)}"


def _keys(found: Comparison) -> list[Key]:
    return [
        Key(str(len(found.runs)), "runs"),
        Key(str(len(found.parameters)), "parameters in two runs or more"),
        Key(str(len(found.differing)), f"of them more than {APART:g} deviations apart"),
    ]


def _parameters(found: Comparison) -> list[Block]:
    if not found.parameters:
        return [Text("No parameter is in two runs or more."), *_lacking(found)]
    known = [d for d in found.parameters if math.isfinite(d.apart)]
    blocks: list[Block] = []
    if known:
        shown = {run: [_from_mean(d, k) for d in known] for k, run in enumerate(found.runs)}
        picture = bars("Distance from the mean of the runs", [d.name for d in known], shown, "deviations")
        blocks.append(
            Figure([picture], picture.title, "Each value less the mean of all runs, in deviations of that run.")
        )
    rows = [
        (
            d.name,
            unit_text(d.unit),
            *(_value(v, s) for v, s in zip(d.values, d.sigmas, strict=True)),
            number(d.apart, 3),
            "differs" if d.apart > APART else "",
        )
        for d in found.parameters
    ]
    n = len(found.runs)
    columns = ("parameter", "unit", *found.runs, "deviations apart", f"more than {APART:g}")
    caption = "Values with one standard deviation. Apart: the difference of the two runs that differ most, over its own deviation."
    return [*blocks, Table(columns, rows, caption, left=(1, n + 3), strong=(n + 2,)), *_lacking(found)]


def _from_mean(d: Difference, k: int) -> float:
    known = [v for v in d.values if math.isfinite(v)]
    return (d.values[k] - sum(known) / len(known)) / d.sigmas[k] if d.sigmas[k] > 0.0 else math.nan


def _value(value: float, sigma: float) -> str:
    v, s = measured(value, sigma)
    return v if s == "–" else f"{v} ± {s}"


def _lacking(found: Comparison) -> Sequence[Block]:
    lines = [f"{run} lacks {listed(names)}." for run, names in zip(found.runs, found.lacking, strict=True) if names]
    return [Listing(lines)] if lines else []


def _figures(found: Comparison) -> list[Block]:
    rows = [(d.name, *(number(v, 5) for v in d.values)) for d in found.figures]
    return [Table(("figure", *found.runs), rows)] if rows else [Text("No figure is in two runs or more.")]


def _inputs(found: Comparison) -> list[Block]:
    rows = [
        (key, *(h[:HASH_DIGITS] or "–" for h in hashes), "yes" if len(set(hashes)) == 1 else "no")
        for key, hashes in found.inputs.items()
    ]
    rows.append(("veridyn", *found.versions, "yes" if len(set(found.versions)) == 1 else "no"))
    return [Table(("input", *found.runs, "the same?"), rows, left=(len(found.runs) + 1,))]


FILES = "result.json, parameters.csv (means of the fleet), machines.csv and fleet.json"
DRAWN_PARAMETERS = 6  # pictures of single parameters
PICTURE_LEAD = (
    "Values with two of their own standard deviations; the band is the mean with two deviations between machines."
)
DRAWN_MACHINES = 40  # machines of the matrix, the ones farthest from the others
DEVIATIONS = 6.0  # at which the matrix has its full colour
LISTED_MACHINES = 60  # lines of the table of machines


def fleet_page(run: FleetRun, result: Result, command: str) -> str:
    """The report of ``veridyn identify`` for a study with a section ``fleet``."""
    fleet = run.fleet
    apart = {o.machine for o in fleet.outliers}
    keys = [
        Key(f"{len(fleet.fits)} / {len(run.machines)}", "machines identified"),
        Key(str(len(apart)), "machines that stand apart"),
        Key(
            percent(result.figures["median_cross_validation_percent"]) + " %", "error of a machine on held-out samples"
        ),
    ]
    note = "Distances from the fleet, and how well each machine is predicted."
    sections = [
        Section("Machines that stand apart", outlier_blocks(fleet), _apart_lead(fleet)),
        Section(
            "The fleet", spread_blocks(run), "Mean of each parameter, and the standard deviation between machines."
        ),
        Section("Parameter by parameter", [parameter_figure(run)], PICTURE_LEAD),
        Section("Machine by machine", machine_blocks(run), note),
    ]
    if fleet.failed or run.logs_left_out:
        sections.insert(0, Section("Left out", left_out_blocks(run), "These were not used; the others went on."))
    title = f"A fleet of “{next(iter(fleet.fits.values())).described.name}”"
    return page(title, fleet_verdict(run), keys, sections, result, command, beside=FILES, missed=run.missed)


def fleet_verdict(run: FleetRun) -> Verdict:
    """How many machines are identified, and which are not as the others."""
    return run.verdict


def _apart_lead(fleet: Fleet) -> str:
    return (
        f"A value is listed where only {number(100.0 * fleet.significance, 2)} % of sound fleets would have any value as far from "
        "the others, over all machines and parameters together. Its own uncertainty counts."
    )


def outlier_blocks(fleet: Fleet) -> list[Block]:
    """A table of the values that stand apart."""
    if not fleet.outliers:
        reason = f"which takes {FEWEST} machines" if len(fleet.fits) < FEWEST else ""
        return [Text(f"Not looked for, {reason}." if reason else "None.")]
    units = dict(zip(fleet.names, next(iter(fleet.fits.values())).units, strict=True))
    apart = []
    for o in fleet.outliers:
        sigma = fleet.sigma[fleet.machines.index(o.machine), fleet.names.index(o.parameter)]
        more = (number(fleet.distribution[o.parameter].mean, 4), number(o.deviations, 2))
        name = f"{o.machine}, {o.parameter}"
        apart.append(QuantityLine(name, units[o.parameter], o.value, float(sigma), more=more))
    return [quantity_table(apart, "machine and parameter", more=("mean of the others", "deviations"))]


def spread_blocks(run: FleetRun) -> list[Block]:
    """The distribution of each parameter."""
    rows = []
    for (name, s), unit in zip(run.fleet.distribution.items(), run.units, strict=True):
        share = percent(100.0 * s.between / abs(s.mean)) if s.mean and s.between else "–"
        more = (number(s.between, 2) if s.between else "none found", share, str(s.count))
        rows.append(QuantityLine(name, unit, s.mean, s.sigma, more=more))
    caption = (
        "± σ: of the mean. “None found”: the estimates scatter no more than their own deviations say. Machines that stand apart are not "
        "counted."
    )
    more = ("between machines", "% of the mean", "machines")
    return [quantity_table(rows, "parameter", caption, value="mean", more=more)]


def parameter_figure(run: FleetRun) -> Figure:
    """The parameters with outliers first, then those in which machines differ most, beside their own deviations."""
    fleet = run.fleet
    far = {
        name: max(abs(o.deviations) for o in fleet.outliers if o.parameter == name)
        for name in {o.parameter for o in fleet.outliers}
    }
    sigma = np.median(fleet.sigma, axis=0)
    spread = [s.between for s in fleet.distribution.values()]

    def interest(j: int) -> tuple[float, float]:
        return far.get(fleet.names[j], 0.0), spread[j] / sigma[j] if sigma[j] > 0.0 else math.inf

    chosen = sorted(range(len(fleet.names)), key=interest, reverse=True)[:DRAWN_PARAMETERS]
    shown, of = len(chosen), len(fleet.names)
    note = f"The {shown} of {of} parameters in which machines differ most; machines.csv has all."
    return Figure([_values_plot(run, j) for j in chosen], caption="" if shown == of else note)


def _values_plot(run: FleetRun, j: int) -> Plot:
    """One parameter over the machines: values with ±2σ, and the mean with ±2τ."""
    fleet, name = run.fleet, run.fleet.names[j]
    x, y, s = np.arange(float(len(fleet.fits))), fleet.values[:, j], fleet.sigma[:, j]
    spread = fleet.distribution[name]
    apart = np.isin(fleet.machines, [o.machine for o in fleet.outliers if o.parameter == name])
    across = Axis(-0.5, len(x) - 0.5)
    band = (spread.mean - 2.0 * spread.between, spread.mean + 2.0 * spread.between)
    up = axis_over(y - 2.0 * s, y + 2.0 * s, band)
    ends = np.array([-0.5, len(x) - 0.5])
    drawn = [
        Curve("band c1", area(ends, np.full(2, band[0]), np.full(2, band[1]), across, up), of="fleet"),
        Curve("line c1", level(spread.mean, up), "fleet"),
        Curve("line c0", _bars(x, y - 2.0 * s, y + 2.0 * s, across, up), of="machine"),
        Curve("dots c0", dots(x[~apart], y[~apart], across, up), "machine"),
    ]
    if apart.any():
        drawn.append(Curve("dots c3", dots(x[apart], y[apart], across, up), "stands apart"))
    return over_names(name, fleet.machines, drawn, across, up, f"{name}, {unit_text(run.units[j])}")


def _bars(x: Array, low: Array, high: Array, across: Axis, up: Axis) -> str:
    return " ".join(line(np.full(2, a), np.array([b, c]), across, up) for a, b, c in zip(x, low, high, strict=True))


def machine_blocks(run: FleetRun) -> list[Block]:
    """Distances of machines from the fleet in colours, and a table of machines."""
    fleet = run.fleet
    worst = np.abs(fleet.deviations).max(axis=1)
    order = np.argsort(-worst, kind="stable")
    drawn = sorted(order[:DRAWN_MACHINES].tolist())
    shown = heat(
        "Distances from the fleet", fleet.deviations[drawn], [fleet.machines[i] for i in drawn], fleet.names, DEVIATIONS
    )
    caption = f"(value − mean)/√(σ² + τ²): blue above, red below, full colour at {DEVIATIONS:g} deviations."
    if len(drawn) < len(fleet.fits):
        caption += f" The {len(drawn)} of {len(fleet.fits)} machines that are farthest."
    rows = []
    for i in order[:LISTED_MACHINES].tolist():
        name = fleet.machines[i]
        f = run.machines[name].figures
        j = int(np.argmax(np.abs(fleet.deviations[i])))
        farthest = f"{fleet.names[j]} ({number(float(fleet.deviations[i, j]), 2)})"
        rows.append([name, f"{f['samples_training']:.0f}", percent(f["cross_validation_percent"]), farthest])
    more = "" if len(rows) == len(fleet.fits) else f"The first {len(rows)} of {count(len(fleet.fits), 'machine')}."
    table = Table(
        ["machine", "samples", "error on held-out samples, %", "farthest parameter (deviations)"],
        rows,
        more,
        left=(0, 3),
    )
    return [Heat(shown, caption), table]


def left_out_blocks(run: FleetRun) -> list[Block]:
    """Machines and logs that were not used, with the reason."""
    items = [f"{name}: {why}" for name, why in run.fleet.failed.items()]
    items += [f"{name}, {log}: {why}" for name, logs in run.logs_left_out.items() for log, why in logs.items()]
    return [Listing(items)]
