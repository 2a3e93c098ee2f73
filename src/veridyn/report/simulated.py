"""The report of ``veridyn simulate``: the motion, what drove it, what sensors made of it, and how far to trust the integration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.inference.verdict import Verdict
from veridyn.mechanics.natural.steps.integrate import MechanismRun
from veridyn.mechanics.single_track import READINGS
from veridyn.mechanics.system.integrate import Trajectory
from veridyn.report import count, listed, number, percent, unit_text
from veridyn.report.blocks import Animation, Block, Figure, Key, Section, Table, Text, attempted
from veridyn.report.motion import machine_animation, mechanism_animation
from veridyn.report.page import page
from veridyn.report.plots import COLOURS, Plot, Series, curves
from veridyn.report.traces import by_colours
from veridyn.simulate.simulator import ACTING, SteeredRun
from veridyn.studies.result import Result
from veridyn.studies.run.simulate import OPEN, ROUGH, SimulateRun

MAX_SHOWN_CHANNELS = 24  # channels of each kind that a page shows at most
SMALL_DRIFT_PERCENT = 0.1  # % of a conserved energy that is small beside anything a sensor sees


def simulated_page(run: SimulateRun, result: Result, command: str) -> str:
    """The whole page."""
    f = run.figures
    sections = [
        Section("Motion", [*_moving(run), *_motion(run)], "The truth: what the machine did."),
        *_acting(run),
        Section("Sensors", _sensors(run), "What is in the log, over the truth behind it."),
        *([] if run.energies is None else [Section("Energy", _energy(run, run.energies), _energy_lead(run))]),
        *_errors(run),
    ]
    keys = [
        Key(f"{number(f['duration'], 4)} s", "simulated"),
        Key(f"{f['samples']:.0f}", "samples of the truth"),
        Key(f"{f['channels']:.0f}", "channels in the log"),
        Key(f"{number(f['real_time_factor'], 3)} ×", "real time, on one processor"),
    ]
    if "energy_drift_percent" in f:
        keys.append(Key(f"{number(f['energy_drift_percent'], 2)} %", "drift of the energy"))
    if "constraint_error" in f:
        keys.append(Key(f"{number(f['constraint_error'], 2)} m", "largest opening of a constraint"))
    if "tracking_error" in f:
        keys.append(Key(number(f["tracking_error"], 2), "largest tracking error, rad or m"))
    title, settings = f"Simulation of “{run.machine.name}”", dict(run.settings)
    return page(title, verdict_of(run), keys, sections, result, command, settings, missed=run.missed)


def verdict_of(run: SimulateRun) -> Verdict:
    """Good where what can be checked of the integration is in order."""
    f = run.figures
    drifts = f.get("energy_drift_percent", 0.0) > SMALL_DRIFT_PERCENT
    opens = f.get("constraint_error", 0.0) > OPEN
    rough = f.get("coarser_difference", 0.0) > ROUGH
    findings = []
    if "coarser_difference" in f:
        apart = number(f["coarser_difference"], 2)
        findings.append(f"Repeated with a coarser integration, positions differ by up to {apart} {run.coarser_unit}.")
    if "energy_drift_percent" in f:
        findings.append(
            f"Nothing feeds or brakes it, and its energy stays within {percent(f['energy_drift_percent'])} %."
        )
    if "constraint_error" in f:
        findings.append(f"Its loops or constraints stay closed to {number(f['constraint_error'], 2)} m.")
    if "tracking_error" in f:
        findings.append(
            f"Under its controller it stays within {number(f['tracking_error'], 2)} rad or m of the commanded motion."
        )
    noisy = [n for n, r in run.readings.items() if r["rms"] > 0.0]
    on = "none" if not noisy else "all" if len(noisy) == len(run.log) else f"{len(noisy)}"
    findings.append(f"{count(len(run.log), 'channel')} recorded; noise added to {on} of them, as configured.")
    made = run.settings["drive"] in ("motion made exactly", "led exactly")
    limits = [
        w
        for w, bad in (
            ("its energy drifts", drifts),
            ("its constraints open", opens),
            ("a coarser integration is far from it", rough),
        )
        if bad
    ]
    may = ("Trying identification and observers where the truth is known.",)
    may_not = ("As evidence about a real machine: simulation and identification share their equations.",)
    if limits:
        may_not = (f"As a truth: {listed(limits)}. A smaller step, or tighter tolerances, will mend it.", *may_not)
    head = "not accurate enough yet" if limits else "as commanded" if made else "accurate"
    headline = f"{run.machine.name}, {number(f['duration'], 4)} s: the motion is {head}."
    found = Verdict("fair" if limits else "good", headline, tuple(findings), () if limits else may, may_not)
    return found.against(run.missed)


def _moving(run: SimulateRun) -> list[Block]:
    """The machine as it moves; of a car the way it takes, beside which the car itself is a dot."""
    motion = run.motion
    if isinstance(motion, SteeredRun):
        way = Series("centre of mass", motion.way[:, 0], motion.way[:, 1], colour="truth")
        return [Figure([curves("the way", [way], "east, m", "north, m")])]
    return [attempted("The simulated motion", lambda: _animation(run, motion))]


def _animation(run: SimulateRun, motion: MechanismRun | Trajectory) -> Animation:
    if isinstance(motion, MechanismRun):
        m = motion.motion
        return mechanism_animation(motion.system, m.t, m.q, "truth")
    m, base = motion.motion, (motion.base_position, motion.base_rotation)
    return machine_animation(run.machine, m.t, {"truth": m.q}, "Origins of the joints, joined; drag to turn.", base)


def _plots(run: SimulateRun, names: Sequence[str], title: str) -> list[Plot]:
    """Curves of channels of the truth, those of one unit together, as many as there are colours."""
    units: dict[str, list[str]] = {}
    for name in names[:MAX_SHOWN_CHANNELS]:
        units.setdefault(run.truth[name].unit, []).append(name)
    turn = {n: k for k, n in enumerate(names)} if len(names) <= COLOURS else {}  # plots of one figure share its legend
    out = []
    for unit, own in units.items():
        for part in by_colours(own):
            series = [
                Series(n.partition(".")[2] or n, run.truth[n].t, run.truth[n].values, colour=turn.get(n, k))
                for k, n in enumerate(part)
            ]
            out.append(curves(f"{title}, {unit_text(unit)}", series, "time, s", unit_text(unit)))
    return out


def _motion(run: SimulateRun) -> list[Block]:
    blocks: list[Block] = []
    groups = [
        (title, [n for n in run.truth if n.startswith(prefix)])
        for prefix, title in (("q.", "position"), ("qd.", "speed"), ("base.position.", "base"))
    ]
    if isinstance(run.motion, SteeredRun):
        groups = [("motion", [*READINGS])]
    for title, every in groups:
        names = [n for n in every if np.ptp(run.truth[n].values) > 0.0]
        plots = _plots(run, names, title)
        if len(names) <= COLOURS:
            blocks += [Figure(plots)] if plots else []
        else:  # colours come again from picture to picture, so each has a legend of its own
            blocks += [Figure([plot], plot.title) for plot in plots]
        if len(names) > MAX_SHOWN_CHANNELS:
            blocks.append(Text(f"The first {MAX_SHOWN_CHANNELS} of {len(names)}; truth.csv has all."))
    return blocks


def _acting(run: SimulateRun) -> list[Section]:
    if isinstance(run.motion, SteeredRun):
        names = [n for n in (*ACTING, "bank") if run.truth[n].values.any()]
        return [Section("Inputs", [Figure(_plots(run, names, "driver and road"))], "What acted on the car.")]
    prefixes = ("force.", "load.", "signal.", "wrench.")
    names = [n for n in run.truth if n.startswith(prefixes) and run.truth[n].values.any()]
    if not names:
        return []
    plots = [p for prefix in prefixes for p in _plots(run, [n for n in names if n.startswith(prefix)], prefix[:-1])]
    return [Section("Inputs", [Figure(plots)], "What acted on the machine.")]


def _sensors(run: SimulateRun) -> list[Block]:
    plots, off = [], []
    for name, c in list(run.log.channels.items())[:MAX_SHOWN_CHANNELS]:
        true = run.truth[name]
        series = [
            Series("reading", c.t, c.values, colour="measured"),
            Series("truth", true.t, true.values, colour="truth"),
        ]
        plots.append(curves(name, series, "time, s", unit_text(c.unit), low=True))
        if run.readings[name]["rms"] > 0.0:
            error = Series("reading less truth", c.t, c.values - run.true_at(name, c.t), colour="measured")
            off.append(curves(name, [error], "time, s", unit_text(c.unit), low=True))
    rows = [
        (
            name,
            unit_text(run.log[name].unit),
            f"{r['samples']:.0f}",
            number(run.log[name].rate, 4),
            number(r["measured_rms"], 4),
            number(r["rms"], 3),
            number(r["mean_error"], 2),
        )
        for name, r in run.readings.items()
    ]
    head = ("channel", "unit", "readings", "Hz", "rms", "off by, rms", "off by, mean")
    table = Table(head, rows, left=(1,), strong=(5,))
    return [Figure(plots), *([Figure(off, "What they are off by")] if off else []), table]


def _energy_lead(run: SimulateRun) -> str:
    if run.conservative:
        return "Nothing feeds or brakes this machine: the sum should not change, and what it changes by is the integrator's error."
    return "The sum changes with what drives and brakes the machine."


def _energy(run: SimulateRun, energies: Array) -> list[Block]:
    kinetic, gravity, elastic = (energies - [0.0, energies[0, 1], 0.0]).T  # heights count from the start
    total = kinetic + gravity + elastic
    parts = [("kinetic", kinetic), ("in gravity", gravity), ("elastic", elastic)]
    series = [Series(label, run.t, x, colour=k) for k, (label, x) in enumerate(parts) if np.ptp(x) > 0.0 or k == 0]
    plots = [curves("energy", [*series, Series("sum", run.t, total, style="thick", colour=3)], "time, s", "J")]
    if run.conservative:
        plots.append(curves("change of the sum", [Series("sum", run.t, total - total[0], colour=3)], "time, s", "J"))
    return [Figure(plots)]


def _errors(run: SimulateRun) -> list[Section]:
    out = []
    if run.openings is not None and run.openings.max(initial=0.0) > 0.0:
        plot = curves("opening", [Series("largest", run.t, run.openings)], "time, s", "m", log_y=True)
        out.append(Section("Constraints", [Figure([plot])], "How far loops and constraints are open."))
    if run.errors is not None:
        names = [run.machine.coordinates[k] for k in run.machine.independent]
        series = [Series(n, run.t, run.errors[:, k], colour=k) for k, n in enumerate(names)]
        plots = [curves("tracking error", list(part), "time, s", "rad, m") for part in by_colours(series)]
        out.append(
            Section("Tracking", [Figure(plots)], "How far the machine is from the motion its controller follows.")
        )
    return out
