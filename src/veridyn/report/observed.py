"""The report of ``veridyn observe``: estimates with bands, virtual sensors, innovations, consistency, and what became of the sensors.

Pages of a drive have sections of their own: what was identified with priors, and what was observed with bands beside references.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.validation import Validation
from veridyn.inference.verdict import Verdict
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.observe.consistency.findings import USABLE_NIS
from veridyn.observe.observation import Observation
from veridyn.report import FILTER_WORDS, count, listed, measured, number, unit_text
from veridyn.report.blocks import Animation, Block, Figure, Key, Listing, Section, Table, Text, attempted
from veridyn.report.page import page
from veridyn.report.plots import Plot, Series, curves, innovation_plots, thin, whiteness_plot
from veridyn.report.running import ELLIPSOIDS, mechanism_animation
from veridyn.signals.drive import DriveLog
from veridyn.spatial.rotations import matrix_of
from veridyn.studies.result import ParameterRow, Result
from veridyn.studies.run.observe_log import WithheldOutput, withheld_outputs
from veridyn.studies.run.observed import ObservedDrive, ObserveRun
from veridyn.view.meshes import solids_of
from veridyn.view.scene import scene, tree_layer

if TYPE_CHECKING:
    from veridyn.studies.run.estimation import IdentifiedDrive

MAX_FRAMES = 240  # of an animation, at most
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
    parts = _parts(run) if run.drive is None else drive_parts(run, run.drive, result)
    o = parts.observation
    sections = [
        *parts.before,
        *(consistency_sections(o, parts.skip) if o is not None and o.estimates.dof.any() else []),
        *parts.after,
    ]
    title = f"Observation of “{parts.name}”"
    return page(title, verdict_of(run), parts.keys, sections, result, command, parts.settings, missed=run.missed)


def _parts(run: ObserveRun) -> ObservedParts:
    """The parts of the page of a machine of bodies and joints."""
    o = run.observation
    before = [
        Section(
            "Estimates",
            [attempted("The estimated motion", lambda: _animation(run)), Figure(_states(run)), _last(run)],
            "What the observer estimates. Shaded: its own 95 % band.",
        ),
        *(
            [Section("Virtual sensors", [Figure(_virtual(run))], "Quantities without a sensor. Shaded: the 95 % band.")]
            if run.virtual
            else []
        ),
    ]
    f = run.figures
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
    return (_verdict(run) if run.drive is None else drive_verdict(run, run.drive)).against(run.missed)


def _verdict(run: ObserveRun) -> Verdict:
    """Good where the innovations are white and as large as the filter says; poor where they are neither."""
    nis = run.nis.mean
    near = USABLE_NIS[0] <= nis <= USABLE_NIS[1]
    coloured = [name for name, w in run.whiteness.items() if not w.is_white]
    white = bool(run.whiteness) and not coloured
    findings = [
        f"Squared innovations are {number(nis, 3)} times what the filter states for them (NIS per reading, ideal 1).",
        "Innovations of every output are white."
        if white
        else f"Not white: {listed(coloured)}."
        if coloured
        else "Too few readings to test whether they are white.",
        *(
            f"{count(n, 'reading')} of '{name}' {'was' if n == 1 else 'were'} not used."
            for name, n in run.rejected.items()
            if n
        ),
    ]
    if near and white:
        may, may_not = ("Reading its bands as they stand.",), ()
    else:
        reason = (
            "too narrow"
            if nis > USABLE_NIS[1]
            else "wider than they need to be"
            if nis < USABLE_NIS[0]
            else "of the right size"
        )
        may = ()
        may_not = (
            f"Reading its bands as they stand: they are {reason}{'' if white else ', and errors last longer than the filter assumes'}.",
        )
    return Verdict(
        "good" if near and white else "fair" if near or white else "poor",
        f"The observer's errors on “{run.machine_name}” {'match' if near and white else 'do not match'} its stated bands.",
        tuple(findings),
        may,
        may_not,
    )


def _animation(run: ObserveRun) -> Animation:
    o = run.observation
    model: Any = o.system.model
    if o.system.formulation == "natural":
        return mechanism_animation(model.system, o.t, o.q, "estimate")
    machine, kept = (
        machine_of_tree(model.tree),
        np.unique(np.linspace(0, len(o) - 1, min(MAX_FRAMES, len(o))).astype(int)),
    )
    q = o.q[kept]
    at, R = (None, None) if machine.base == "fixed" else (q[:, :3], matrix_of(q[:, 3:7]))
    own, solids = q[:, -machine.n :] if machine.n else q[:, :0], solids_of(machine)[0]
    layer = tree_layer(machine, own, "estimate", at, R, meaning="estimate", solids=solids)
    return Animation(
        scene(o.t[kept], [layer], machine.name), f"Origins of the joints, joined; drag to turn.{ELLIPSOIDS}"
    )


def banded(title: str, unit: str, t: Array, value: Array, sigma: Array) -> Plot:
    """An estimate (N,) with its 95 % band over time."""
    # A start that nobody knows has a band that would hide everything after it: the picture ends where it is wider than later.
    settled = float(np.quantile(sigma, 0.9))
    low, high = float((value - 3.0 * settled).min()), float((value + 3.0 * settled).max())
    margin = max(0.05 * (high - low), 1e-12)
    y_range = (low - margin, high + margin)
    band = tuple(np.clip(value + side * 1.96 * sigma, *y_range) for side in (-1.0, 1.0))
    shown = Series("estimate", t, value, band=(band[0], band[1]), colour="estimate")
    return curves(title, [shown], "time, s", unit_text(unit), y_range=y_range)


def _states(run: ObserveRun) -> list[Plot]:
    o = run.observation
    return [
        banded(name, unit, o.t, o.reduced[:, j], o.sigma[:, j])
        for j, (name, unit) in enumerate(zip(o.states, o.units, strict=True))
    ]


def _virtual(run: ObserveRun) -> list[Plot]:
    return [
        banded(component, reading.units[j], reading.t, reading.values[:, j], reading.sigma[:, j])
        for reading in run.virtual.values()
        for j, component in enumerate(reading.components)
    ]


def _last(run: ObserveRun) -> Table:
    rows = [(p.name, unit_text(p.unit), *measured(p.value, p.sigma)) for p in run.parameters]
    return Table(("state", "unit", "value", "± σ"), rows, "At the end of the log.", left=(1,))


def consistency_sections(o: Observation, skip: int) -> list[Section]:
    """Innovations, whether they are as large as the filter states, and what became of readings, of any machine."""
    return [
        Section("Innovations", _innovations(o, skip), "Readings minus their predictions."),
        *_withheld(o),
        Section("Consistency", _consistency(o, skip), "Whether the stated deviations fit the errors."),
        Section("Sensors", _sensors(o), "What became of the readings."),
    ]


def _innovations(o: Observation, skip: int) -> list[Block]:
    whiteness = o.whiteness(skip)
    plots = [whiteness_plot(name, w) for name, w in whiteness.items()]
    blocks: list[Block] = [Figure(innovation_plots(o), "Innovations", "Shaded: ±1.96 σ.")]
    if plots:
        caption = "Shaded: the band of Kolmogorov and Smirnov, 95 %. Outside it, innovations are correlated in time."
        blocks.append(Figure(plots, "Are they white?", caption))
    blocks.append(Listing([f"'{name}': {w.summary()}" for name, w in whiteness.items()] or ["Too few readings."]))
    return blocks


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
    shown = Series("error", t, error, band=(-1.96 * sigma, 1.96 * sigma), colour="estimate")
    return curves(w.output, [shown], "time, s", "error")


def _consistency(o: Observation, skip: int) -> list[Block]:
    nis = o.nis(skip)
    some = nis.dof > 0
    plot = curves(
        "NIS per reading over time",
        [Series("NIS", o.t[skip:][some], np.maximum(nis.values[some] / nis.dof[some], 1e-4), colour=0)],
        "time, s",
        "NIS",
        log_y=True,
        levels={"ideal": 1.0},
    )
    return [Text(nis.summary() + "."), Figure([plot])]


def _sensors(o: Observation) -> list[Block]:
    counts = o.estimates.counts()
    kinds = list(next(iter(counts.values())))
    rows = [(name, *(str(found[k]) for k in kinds)) for name, found in counts.items()]
    listed = [f"{e}." for e in o.episodes()] or ["No sensor failed for longer than two readings."]
    return [Table(("output", *(k.replace("_", " ") for k in kinds)), rows), Listing(listed)]


def identified_sections(found: IdentifiedDrive) -> list[Section]:
    """The sections of the page of an identification that a drive has of its own."""
    out = [
        Section(
            "Parameters",
            [_parameters(found.parameters)],
            "Identified values with deviations; priors are those of the model file.",
        )
    ]
    if found.not_shown:
        out.append(Section("Not shown by this drive", [Listing([f"{n}: {why}" for n, why in found.not_shown.items()])]))
    if found.validation is not None:
        lead = "One-step predictions on samples not used for the fit."
        out.append(Section("Validation", [_validation(found.validation)], lead))
    return [*out, _channels(found.drive)]


def identified_keys(found: IdentifiedDrive) -> list[Key]:
    """The key figures of an identification of a drive."""
    return [
        Key(f"{len(found.parameters)}", "parameters"),
        Key(f"{len(found.not_shown)}", "not shown by this drive"),
        Key(f"{found.figures['samples']:.0f}", "samples"),
    ]


def shown_verdict(car: str, found: IdentifiedDrive) -> Verdict:
    """Good where everything that was asked is shown and no check is raised."""
    shown = [p.name for p in found.parameters if p.name not in found.not_shown]
    findings = [f"{count(len(shown), 'parameter')} determined: {listed(shown)}."]
    if found.not_shown:
        findings.append(f"Not shown by this drive: {listed(list(found.not_shown))}.")
    findings += [f.what for f in found.faults]
    grade = "poor" if found.faults else "fair" if found.not_shown else "good"
    return Verdict(grade, f"{car}: what the drive shows of the car.", tuple(findings))


def drive_parts(run: ObserveRun, drive: ObservedDrive, result: Result) -> ObservedParts:
    """The parts of the page of an observation that a car has of its own."""
    before = [*_quantities(run, drive), *_way(drive)]
    if run.parameters:
        lead = "Identified values with deviations, and states at the end."
        before.append(Section("Parameters", [_parameters(run.parameters)], lead))
    said = [Section("What the checks say", [Text(text) for text in result.warnings])] if result.warnings else []
    after = [*said, _channels(drive.drive)]
    f = run.figures
    keys = [Key(f"{f['samples']:.0f}", "samples")]
    if "rms_sideslip" in f:
        keys += [
            Key(f"{np.degrees(f['rms_sideslip']):.2f}°", "sideslip error, rms"),
            Key(f"{100.0 * f['share_inside_two_sigma']:.0f} %", "inside its own 2σ"),
        ]
    if "nis" in f:
        keys.append(Key(number(f["nis"], 3), "NIS per reading (ideal 1)"))
    return ObservedParts(drive.car.name, run.seen, 0, keys, before, after, {})


def drive_verdict(run: ObserveRun, drive: ObservedDrive) -> Verdict:
    """Good where the innovations are as large as the filter says and no check is raised."""
    f, findings = run.figures, list[str]()
    low, high = (0.0, np.inf) if run.seen is None else run.seen.usable_nis
    near = low <= f.get("nis", 1.0) <= high
    if "nis" in f:
        findings.append(f"Squared innovations are {number(f['nis'], 3)} times what the filter states for them.")
    if "rms_sideslip" in f:
        share = 100.0 * f["share_inside_two_sigma"]
        text = f"Sideslip is {np.degrees(f['rms_sideslip']):.2f}° rms off the reference, {share:.0f} % inside 2σ"
        linear = {
            "a stiffness identified from the same drive": "rms_sideslip_linear_identified",
            "the stiffness of the model file, which is not identified": "rms_sideslip_linear",
        }
        compared = [f"{np.degrees(f[name]):.2f}° with {what}" for what, name in linear.items() if name in f]
        if compared:
            text += f"; a linear filter is off by {' and by '.join(compared)}"
        findings.append(text + ".")
    findings += [f"'{n}' is frozen: the drive excites it too little." for n in drive.frozen]
    findings += [x.what for x in drive.faults]
    grade = "poor" if drive.faults or not near else "good"
    return Verdict(grade, f"{drive.car.name}: what its sensors do not measure.", tuple(findings))


def _quantities(run: ObserveRun, drive: ObservedDrive) -> list[Section]:
    if not run.virtual:
        return []
    plots = []
    for name, v in run.virtual.items():
        angle = v.units[0] == "rad"
        scale, unit = (180.0 / np.pi, "deg") if angle else (1.0, v.units[0])
        low, high = (scale * end[:, 0] for end in v.band(2.0))
        shown = [Series("estimate", v.t, scale * v.values[:, 0], band=(low, high), colour="estimate")]
        if name in drive.reference:
            shown.append(Series("reference", v.t, scale * drive.reference[name], colour="truth"))
        plots.append(curves(DRIVE_WORDS.get(name, name), shown, "time, s", unit_text(unit)))
    blocks: list[Block] = [Figure(plots[:1], plots[0].title.capitalize())]
    if len(plots) > 1:
        blocks.append(Figure(plots[1:]))
    if "sideslip" in drive.reference and "sideslip" in run.virtual:
        blocks.append(
            Figure([_errors(run, drive)], "Error of the sideslip angle", "Shaded: ±2σ as the filter states it.")
        )
    return [Section("Unmeasured quantities", blocks, "Shaded: ±2σ.")]


def _errors(run: ObserveRun, drive: ObservedDrive) -> Plot:
    v, scale = run.virtual["sideslip"], 180.0 / np.pi
    error, sigma = scale * (v.values[:, 0] - drive.reference["sideslip"]), 2.0 * scale * v.sigma[:, 0]
    shown = [Series("estimate minus reference", v.t, error, band=(-sigma, sigma), colour="estimate")]
    if drive.linear is not None:
        shown.append(
            Series(
                "linear filter, identified stiffness"
                if drive.fitted is not None
                else "linear filter, stiffness of the file",
                v.t,
                scale * (drive.linear - drive.reference["sideslip"]),
                style="dashed",
                colour=2,
            )
        )
    return curves("error", shown, "time, s", "deg")


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
    shown = [
        (p.name, *measured(p.value, p.sigma), number(p.prior) if np.isfinite(p.prior) else "", unit_text(p.unit))
        for p in rows
    ]
    return Table(("parameter", "value", "± σ", "prior", "unit"), shown, left=(4,))


def _validation(found: Validation) -> Table:
    rows = [
        (r.row, number(r.rms, 3), number(r.measured_rms, 3), number(found.nis[r.row], 3), f"{r.samples}")
        for r in found.rows
    ]
    return Table(("output", "rms error", "measured rms", "NIS", "samples"), rows)


def _channels(drive: DriveLog) -> Section:
    plots = [
        curves(name, [Series(name, drive.t, values, colour=0)], "time, s", name)
        for name, values in drive.channels.items()
        if np.isfinite(values).any()
    ]
    return Section("The drive", [Figure(plots)], "The channels of the log, as they are used.")
