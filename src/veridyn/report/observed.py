"""Pages of observations: estimates with bands, virtual sensors, innovations, consistency, and what became of the sensors; and of drives of
a car, what was identified with priors, and what was observed with bands beside references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from veridyn.inference.verdict import Verdict
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.observe.consistency.withheld import WithheldOutput, withheld_outputs
from veridyn.observe.observation import Observation
from veridyn.report import FILTER_WORDS, listed, number
from veridyn.report.blocks import Animation, Block, Figure, Key, Listing, Section, Table, Text, attempted
from veridyn.report.motion import machine_animation, mechanism_animation
from veridyn.report.page import page
from veridyn.report.parameters import QuantityLine, quantity_table
from veridyn.report.plots import Plot, Series, curves
from veridyn.report.rows import row_table
from veridyn.report.spectra import whiteness_figures
from veridyn.report.traces import consistency_plot, error_plot, estimate_plot, innovation_plots, thin
from veridyn.signals.drive import DriveLog
from veridyn.spatial.rotations import matrix_of
from veridyn.studies.result import ParameterRow, Result
from veridyn.studies.run.observed import ObservedDrive, ObserveRun

if TYPE_CHECKING:
    from veridyn.studies.run.estimation import IdentifiedDrive

WITHHELD_BREAK = 10.0  # times the usual step: between two spans of withheld readings
DRIVE_WORDS = {
    "sideslip": "sideslip angle",
    "front_force": "lateral force, front axle",
    "rear_force": "lateral force, rear axle",
    "front_slip": "slip angle, front axle",
    "rear_slip": "slip angle, rear axle",
    **{f"load_{x[0]}{y[0]}": f"load, {x} {y} wheel" for x in ("front", "rear") for y in ("left", "right")},
}


class ObservedParts(NamedTuple):
    """What a page of an observation is made of beside limits, innovations and consistency, which all have: sections `before` and `after`
    those, key figures, settings, and the observation, if there is one, from sample `skip` on."""

    name: str
    observation: Observation | None
    skip: int
    keys: list[Key]
    before: list[Section]
    after: list[Section]
    settings: dict[str, str]


def observed_page(run: ObserveRun, result: Result, command: str) -> str:
    """The whole page, of any machine."""
    parts = _parts(run) if run.drive is None else drive_parts(run, run.drive)
    o = parts.observation
    sections = [
        *parts.before,
        *(consistency_sections(o, parts.skip) if o is not None and o.estimates.dof.any() else []),
        *parts.after,
    ]
    title, faults = f"Observation of “{parts.name}”", () if run.drive is None else run.drive.faults
    own = {"missed": run.missed, "faults": faults}
    return page(title, verdict_of(run), parts.keys, sections, result, command, parts.settings, **own)


def _parts(run: ObserveRun) -> ObservedParts:
    """The parts of the page of a machine of bodies and joints."""
    o, f = run.observation, run.figures
    states = [
        estimate_plot(name, unit, o.t, o.reduced[:, j], o.sigma[:, j])
        for j, (name, unit) in enumerate(zip(o.states, o.units, strict=True))
    ]
    virtual = [
        estimate_plot(component, v.units[j], v.t, v.values[:, j], v.sigma[:, j])
        for v in run.virtual.values()
        for j, component in enumerate(v.components)
    ]
    last = [QuantityLine(p.name, p.unit, p.value, p.sigma) for p in run.parameters]
    moving = attempted("The estimated motion", lambda: _animation(run))
    shown = [moving, Figure(states), quantity_table(last, "state", "At the end of the log.")]
    before = [Section("Estimates", shown, "What the observer estimates. Shaded: its own 95 % band.")]
    if virtual:
        lead = "Quantities without a sensor. Shaded: the 95 % band."
        before.append(Section("Virtual sensors", [Figure(virtual)], lead))
    white = sum(w.is_white for w in run.whiteness.values())
    keys = [
        Key(number(f["nis"], 3), "NIS per reading (ideal 1)"),
        Key(f"{white} of {len(run.whiteness)}", "outputs with white innovations"),
        Key(f"{f['rejected']:.0f}", "reading not used" if f["rejected"] == 1.0 else "readings not used"),
        Key(f"{f['samples']:.0f}", "samples"),
        Key(f"{f['step_microseconds']:.0f} µs", "a step of the observer"),
    ]
    settings = {
        "filter": FILTER_WORDS.get(o.filter, o.filter),
        "noise": "as the study says" if o.tuning is None else f"chosen on this log: {o.tuning.summary()}",
        "statistics from": f"sample {run.skip + 1} on",
    }
    return ObservedParts(run.machine_name, o, run.skip, keys, before, [], settings)


def verdict_of(run: ObserveRun) -> Verdict:
    """The verdict on an observation, of any machine."""
    return run.verdict


def _animation(run: ObserveRun) -> Animation:
    o = run.observation
    model: Any = o.system.model
    if o.system.formulation == "natural":
        return mechanism_animation(model.system, o.t, o.q, "estimate")
    machine = machine_of_tree(model.tree)
    base = (None, None) if machine.base == "fixed" else (o.q[:, :3], matrix_of(o.q[:, 3:7]))
    own, caption = o.q[:, -machine.n :] if machine.n else o.q[:, :0], "Origins of the joints, joined; drag to turn."
    return machine_animation(machine, o.t, {"estimate": own}, caption, base)


def consistency_sections(o: Observation, skip: int) -> list[Section]:
    """Innovations, whether they are as large as the filter states, and what became of readings, of any machine."""
    whiteness, nis = o.whiteness(skip), o.nis(skip)
    tests = [f"'{name}': {w.summary()}" for name, w in whiteness.items()] or ["Too few readings."]
    innovations = Figure(innovation_plots(o), "Innovations", "Shaded: ±1.96 σ.")
    blocks = [innovations, *whiteness_figures(whiteness, "innovations"), Listing(tests)]
    some = nis.dof > 0
    plot = consistency_plot("NIS per reading over time", o.t[skip:][some], nis.values[some] / nis.dof[some])
    lead = "Whether the stated deviations fit the errors."
    return [
        Section("Innovations", blocks, "Readings minus their predictions."),
        *_withheld(o),
        Section("Consistency", [Text(nis.summary() + "."), Figure([plot])], lead),
        Section("Sensors", _sensors(o), "What became of the readings."),
    ]


def _withheld(o: Observation) -> list[Section]:
    """Readings that the study kept from the filter, against their predictions; no section where there are none."""
    every = list(withheld_outputs(o.estimates))
    if not every:
        return []
    rows = [
        (
            w.output,
            str(len(w.t)),
            number(w.rms, 3),
            number(float(np.sqrt(np.mean(w.sigma**2))), 3),
            f"{100 * w.share_inside:.0f} %",
        )
        for w in every
    ]
    heads = ("output", "readings", "rms error", "rms of stated σ", "within 2σ (ideal 95 %)")
    lead = "Readings that the filter was not given, minus its predictions."
    return [Section("Withheld readings", [Table(heads, rows), Figure([_withheld_plot(w) for w in every])], lead)]


def _withheld_plot(w: WithheldOutput) -> Plot:
    """Errors of predictions over time; the curve is broken between spans."""
    breaks = np.flatnonzero(np.diff(w.t) > WITHHELD_BREAK * np.median(np.diff(w.t))) + 1 if len(w.t) > 2 else []
    t, error, sigma = (np.insert(x, breaks, np.nan) for x in (w.t, w.errors, w.sigma))
    return error_plot(w.output, "error", t, error, sigma)


def _sensors(o: Observation) -> list[Block]:
    counts = o.estimates.counts()
    kinds = list(next(iter(counts.values())))
    rows = [(name, *(str(found[k]) for k in kinds)) for name, found in counts.items()]
    listed = [f"{e}." for e in o.episodes()] or ["No sensor failed for longer than two readings."]
    return [Table(("output", *(k.replace("_", " ") for k in kinds)), rows), Listing(listed)]


def identified_sections(found: IdentifiedDrive) -> list[Section]:
    """The sections of the page of an identification that a drive has of its own."""
    lead = "Identified values with deviations; priors are those of the model file."
    out = [Section("Parameters", [_parameters(found.parameters)], lead)]
    if found.not_shown:
        out.append(Section("Not shown by this drive", [Listing([f"{n}: {why}" for n, why in found.not_shown.items()])]))
    if found.validation is not None:
        rows = [replace(r, nis=found.validation.nis[r.row]) for r in found.validation.rows]
        lead = "One-step predictions on samples not used for the fit."
        out.append(Section("Validation", [row_table(rows, "output")], lead))
    return [*out, _channels(found.drive)]


def identified_keys(found: IdentifiedDrive) -> list[Key]:
    """The key figures of an identification of a drive."""
    return [
        Key(f"{len(found.parameters)}", "parameters"),
        Key(f"{len(found.not_shown)}", "not shown by this drive"),
        Key(f"{found.figures['samples']:.0f}", "samples"),
    ]


def shown_verdict(car: str, found: IdentifiedDrive) -> Verdict:
    """What the drive shows of the car, and what speaks against it."""
    return found.verdict(car)


def drive_parts(run: ObserveRun, drive: ObservedDrive) -> ObservedParts:
    """The parts of the page of an observation that a car has of its own."""
    before = [*_quantities(run, drive), *_way(drive)]
    if run.parameters:
        lead = "Identified values with deviations, and states at the end."
        before.append(Section("Parameters", [_parameters(run.parameters)], lead))
    f = run.figures
    keys = [Key(f"{f['samples']:.0f}", "samples")]
    if "rms_sideslip" in f:
        keys += [
            Key(f"{np.degrees(f['rms_sideslip']):.2f}°", "sideslip error, rms"),
            Key(f"{100.0 * f['share_inside_two_sigma']:.0f} %", "inside its own 2σ"),
        ]
    if "nis" in f:
        keys.append(Key(number(f["nis"], 3), "NIS per reading (ideal 1)"))
    return ObservedParts(drive.car.name, run.seen, 0, keys, before, [_channels(drive.drive)], {})


def _quantities(run: ObserveRun, drive: ObservedDrive) -> list[Section]:
    if not run.virtual:
        return []
    plots, idle = [], []
    for name, v in run.virtual.items():
        if not (v.values.any() or v.sigma.any()):
            idle.append(DRIVE_WORDS.get(name, name))
            continue
        scale, unit = (180.0 / np.pi, "deg") if v.units[0] == "rad" else (1.0, v.units[0])
        beside = []
        if name in drive.reference:
            beside = [Series("reference", v.t, scale * drive.reference[name], colour="truth")]
        own, word = (scale * v.values[:, 0], scale * v.sigma[:, 0]), DRIVE_WORDS.get(name, name)
        plots.append(estimate_plot(word, unit, v.t, *own, sigmas=2.0, beside=beside))
    blocks: list[Block] = [Figure([p], p.title.capitalize()) for p in plots[:1]]
    blocks += [Figure(plots[1:])] if plots[1:] else []
    blocks += [Text(f"Zero throughout: {listed(idle)}.")] if idle else []
    if "sideslip" in drive.reference and "sideslip" in run.virtual:
        caption = "Estimate less reference. Shaded: ±2σ as the filter states it."
        blocks.append(Figure([_errors(run, drive)], "Error of the sideslip angle", caption))
    return [Section("Unmeasured quantities", blocks, "Shaded: ±2σ.")]


def _errors(run: ObserveRun, drive: ObservedDrive) -> Plot:
    v, scale, true = run.virtual["sideslip"], 180.0 / np.pi, drive.reference["sideslip"]
    others = []
    if drive.linear is not None:
        label = "identified stiffness" if drive.fitted is not None else "stiffness of the file"
        off = scale * (drive.linear - true)
        others = [Series(f"linear filter, {label}", v.t, off, style="dashed", colour=2)]
    own = scale * (v.values[:, 0] - true), scale * v.sigma[:, 0]
    return error_plot("error of the sideslip angle", "deg", v.t, *own, *others, sigmas=2.0)


def _way(drive: ObservedDrive) -> list[Section]:
    p = drive.path
    if p is None:
        return []
    shown = [Series("estimate", p.state("east"), p.state("north"), colour="estimate")]
    c = drive.drive.channels
    if "east" in c:
        shown.append(Series("positions", thin(c["east"]), thin(c["north"]), style="dots", colour="measured"))
    plots = [curves("the way", shown, "east, m", "north, m")]
    for name, unit in (("speed", "m/s"), ("heading", "rad"), ("east", "m")):
        sigma = 2.0 * p.sigma[:, p.states.index(name)]
        x = p.state(name)
        plots.append(
            curves(
                f"deviation of {name}, 2σ",
                [Series("2σ", p.t, np.minimum(sigma, np.ptp(x) + 1.0), colour=0)],
                "time, s",
                unit,
            )
        )
    gaps = "; ".join(f"{a:g} to {b:g} s" for a, b in drive.gaps)
    lead = f"Positions are withheld from {gaps}." if gaps else "Positions, wheels and gyroscope together."
    rows = [(n, number(v, 4)) for n, v in drive.figures.items() if "gap" in n or n in ("rms_speed", "rms_heading")]
    return [Section("The way", [Figure(plots), Table(("figure", "value"), rows)], lead)]


def _parameters(rows: Sequence[ParameterRow]) -> Table:
    return quantity_table([QuantityLine(p.name, p.unit, p.value, p.sigma, p.prior) for p in rows])


def _channels(drive: DriveLog) -> Section:
    plots = [
        curves(name, [Series("", drive.t, values, colour=0)], "time, s", "")
        for name, values in drive.channels.items()
        if np.isfinite(values).any()
    ]
    return Section("The drive", [Figure(plots)], "The channels of the log, as they are used.")
