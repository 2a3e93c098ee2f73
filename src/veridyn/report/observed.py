"""The report of ``veridyn observe``: estimates with bands, virtual sensors, innovations, consistency, and what became of the sensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.observe.consistency.findings import USABLE_NIS
from veridyn.observe.observation import Observation
from veridyn.report.blocks import Animation, Block, Figure, Key, Listing, Section, Table, Text, Verdict, attempted
from veridyn.report.car import drive_parts, drive_verdict
from veridyn.report.observer import WORDS, ObservedParts, innovation_plots, mechanism_animation, thin, whiteness_plot
from veridyn.report.page import page
from veridyn.report.plots import Plot, Series, curves
from veridyn.report.running import ELLIPSOIDS
from veridyn.report.words import count, listed, measured, number, unit_text
from veridyn.spatial.rotations import matrix_of
from veridyn.studies.result import Result
from veridyn.studies.run.observe_log import WithheldOutput, withheld_outputs
from veridyn.studies.run.observed import ObserveRun
from veridyn.view.meshes import solids_of
from veridyn.view.scene import scene, tree_layer

MAX_FRAMES = 240  # of an animation, at most
WITHHELD_BREAK = 10.0  # times the usual step: between two spans of withheld readings


def observed_page(run: ObserveRun, result: Result, command: str) -> str:
    """The whole page, of any machine."""
    parts = _parts(run) if run.drive is None else drive_parts(run, run.drive, result)
    o = parts.observation
    sections = [
        *([Section("Limits that are missed", [Listing(list(run.missed))])] if run.missed else []),
        *parts.before,
        *(consistency_sections(o, parts.skip) if o is not None and o.estimates.dof.any() else []),
        *parts.after,
    ]
    title = f"Observation of “{parts.name}”"
    return page(title, verdict_of(run), parts.keys, sections, result, command, parts.settings)


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
        Key(f"{f['rejected']:.0f}", "readings not used"),
        Key(f"{f['samples']:.0f}", "samples"),
        Key(f"{f['step_microseconds']:.0f} µs", "a step of the observer"),
    ]
    settings = {
        "filter": WORDS.get(o.filter, o.filter),
        "noise": "as the study says" if o.tuning is None else f"chosen on this log: {o.tuning.summary()}",
        "statistics from": f"sample {run.skip + 1} on",
    }
    return ObservedParts(run.machine_name, o, run.skip, keys, before, [], settings)


def verdict_of(run: ObserveRun) -> Verdict:
    """The verdict on an observation, of any machine."""
    return _verdict(run) if run.drive is None else drive_verdict(run, run.drive)


def _verdict(run: ObserveRun) -> Verdict:
    """Good where the innovations are white and as large as the filter says; poor where they are neither."""
    o, nis = run.observation, run.nis.mean
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
        may, may_not = ("Its bands may be taken as they stand.",), ()
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
            f"Its bands may not be taken as they stand: they are {reason}{'' if white else ', and errors last longer than it thinks'}.",
        )
    name = WORDS.get(o.filter, o.filter)
    return Verdict(
        "good" if near and white else "fair" if near or white else "poor",
        f"{name} on {run.machine_name}: the observer's errors {'match' if near and white else 'do not match'} its stated bands.",
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
    band = tuple(thin(np.clip(value + side * 1.96 * sigma, *y_range)) for side in (-1.0, 1.0))
    shown = Series("estimate", thin(t), thin(value), band=(band[0], band[1]), colour="estimate")
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
    rows = [(p.name, *measured(p.value, p.sigma), unit_text(p.unit)) for p in run.parameters]
    return Table(("state", "value", "± σ", "unit"), rows, "At the end of the log.", left=(3,))


def consistency_sections(o: Observation, skip: int) -> list[Section]:
    """Innovations, whether they are as large as the filter states, and what became of readings, of any machine."""
    return [
        Section("Innovations", _innovations(o, skip), "Readings minus their predictions."),
        *_withheld(o),
        Section("Consistency", _consistency(o, skip), "Whether the filter knows how wrong it is."),
        Section("Sensors", _sensors(o), "What became of the readings."),
    ]


def _innovations(o: Observation, skip: int) -> list[Block]:
    whiteness = o.whiteness(skip)
    plots = [whiteness_plot(name, w) for name, w in whiteness.items()]
    blocks: list[Block] = [Figure(innovation_plots(o), "Innovations", "Shaded: ±1.96 σ.")]
    if plots:
        caption = "Shaded: the band of Kolmogorov and Smirnov, 95 %. Outside, the model's errors have a colour."
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
    shown = Series("error", thin(t), thin(error), band=(thin(-1.96 * sigma), thin(1.96 * sigma)), colour="estimate")
    return curves(w.output, [shown], "time, s", "error")


def _consistency(o: Observation, skip: int) -> list[Block]:
    nis = o.nis(skip)
    some = nis.dof > 0
    plot = curves(
        "NIS per reading over time",
        [Series("NIS", thin(o.t[skip:][some]), thin(np.maximum(nis.values[some] / nis.dof[some], 1e-4)), colour=0)],
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
