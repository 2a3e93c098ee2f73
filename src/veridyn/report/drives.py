"""Reports of drives and of flexible joints: what the encoders determine, and what was simulated or predicted beside what was measured."""

from __future__ import annotations

import numpy as np

from veridyn.identify.drives.drive_result import DriveReplay, DrivesFit
from veridyn.inference.verdict import Verdict
from veridyn.report import listed, measured, number, percent, unit_text
from veridyn.report.blocks import Animation, Figure, Key, Listing, Section, Table, attempted
from veridyn.report.page import page
from veridyn.report.plots import Plot, Series, curves
from veridyn.report.running import ELLIPSOIDS, FRAMES
from veridyn.studies.result import Result
from veridyn.studies.run.drives import DrivesRun, FlexibleRun
from veridyn.view.meshes import solids_of
from veridyn.view.scene import scene, tree_layer

DRAWN = 700  # samples of a curve


def drives_page(run: DrivesRun, result: Result, command: str) -> str:
    """The report of ``veridyn identify`` for a study with a section ``drives``."""
    fit, figures = run.fit, run.figures
    word = "held_out" if "rms_held_out" in figures else "fitted"
    said = "held out" if word == "held_out" else "of the fit"
    keys = [
        Key(f"{number(1e3 * figures[f'rms_{word}'], 3)} mrad", f"rms of the encoders, {said}"),
        Key(f"{number(1e3 * figures[f'rms_{word}_defaults'], 3)} mrad", "with the values of the model file"),
        Key(f"{len(fit.determined)} of {len(fit.drives)}", "numbers that the log determines"),
    ]
    if "share_inside_two_sigma" in figures:
        keys.append(Key(f"{number(100.0 * figures['share_inside_two_sigma'], 2)} %", "of the true values within 2σ"))
    sections = [_errors(run), _numbers(run), _open(run), _terms(run), _replay(run), _moving(run)]
    sections.append(Section("Assumed and noted", [Listing(fit.notes)]))
    kept = [s for s in sections if s is not None]
    return page(
        f"Drives of “{fit.described.name}”", drives_verdict(run), keys, kept, result, command, missed=run.missed
    )


def drives_verdict(run: DrivesRun) -> Verdict:
    """Whether the simulation may be used, and for what not."""
    fit, figures = run.fit, run.figures
    word = "held_out" if "rms_held_out" in figures else "fitted"
    now, before = figures[f"rms_{word}"], figures[f"rms_{word}_defaults"]
    ratio = before / now if now > 0.0 else np.inf
    head = f"The simulation follows the encoders {_times(ratio)} times as closely as with the values of the model file."
    lines = [
        f"{len(fit.determined)} of {len(fit.drives)} numbers are determined by the log; the others stay near what was known."
    ]
    if word == "fitted":
        lines.append("All samples were fitted: no sample is left that could contradict.")
    lines += [str(one.message) for one in run.findings]
    lines += [f"Missed: {text}" for text in run.missed]
    worse = bool(run.findings) or ratio < 1.0
    grade = "poor" if run.missed or worse else "good" if word == "held_out" else "fair"
    may = () if worse else ("Simulation of this machine under its own drives.",)
    never = ["Forces and speeds far beyond those of the log.", "Contact: the machine was held."]
    never += ["Simulation in place of the model file, whose values follow held-out data better."] if worse else []
    return Verdict(grade, head, tuple(lines), may, tuple(never))


def _times(ratio: float) -> str:
    """A ratio without a power of ten."""
    return f"{ratio:.0f}" if 10.0 <= ratio < np.inf else number(ratio, 2)


def _errors(run: DrivesRun) -> Section:
    """Of every log, fitted and held out, beside the values of the model file; those for validation are held out as a whole."""
    fit, several = run.fit, len(run.fit.replays) + len(run.validation) > 1
    held = np.isfinite(fit.until) or bool(run.validation)
    spans = [("fitted", 0.0, fit.until)] + ([("held out", fit.until, np.inf)] if held else [])
    head = (
        *(("log",) if several else ()),
        "joint",
        *(x for word, _, _ in spans for x in (f"{word}, mrad", "model file's values")),
    )
    logs = [(r, d, spans) for r, d in zip(fit.replays, fit.replays_defaults, strict=True)]
    whole = [("fitted", np.inf, np.inf), ("held out", 0.0, np.inf)]
    logs += [(r, d, whole) for r, d in zip(run.validation, run.validation_defaults, strict=True)]
    rows = []
    for now, before, own in logs:
        pairs = [(r.rms(a, b) if r.reaches(a) and a < b else None) for _, a, b in own for r in (now, before)]
        for joint in now.joints:
            cells = ("–" if pair is None else number(1e3 * pair[joint], 3) for pair in pairs)
            rows.append((*((now.name,) if several else ()), joint, *cells))
    lead = (
        "rms of measured less simulated encoder; the simulation starts once and sees nothing but commands from then on."
    )
    note = f" Samples after {fit.until:g} s were not fitted." if np.isfinite(fit.until) else ""
    names = ", ".join(f"“{r.name}”" for r in fit.replays)
    plots = [p for both in zip(fit.replays, fit.replays_defaults, strict=True) for p in _error_plots(fit, *both)]
    figure = Figure(plots, "Measured less simulated", f"Of {names}.{note}")
    return Section("Errors", [Table(head, rows, left=(1,) if several else ()), figure], lead)


def _error_plots(fit: DrivesFit, now: DriveReplay, before: DriveReplay) -> list[Plot]:
    """Errors over a whole log, with the identified drives and with the values of the model file."""
    made = []
    thin = slice(None, None, max(1, len(now.t) // DRAWN))
    for k, joint in enumerate(now.joints):
        series = [
            Series(word, r.t[thin], 1e3 * (r.measured - r.simulated)[thin, k], colour=colour)
            for word, r, colour in (("model file's values", before, 3), ("identified", now, 1))
        ]
        unit = "mrad" if fit.described.kinds[joint] == "turning" else "mm"
        title = f"{joint}, {now.name}" if fit.further else joint
        made.append(curves(title, series, "t, s", unit, clock=now.name))
    return made


def _numbers(run: DrivesRun) -> Section:
    rows = []
    for d in run.fit.drives:
        shown = measured(d.value, d.sigma) if d.determined else (number(d.value, 3), "not determined")
        true = (number(run.truth.get(d.name, np.nan), 3),) if run.truth else ()
        rows.append((d.name, unit_text(d.unit), *shown, *true, number(d.prior, 3), number(d.prior_sigma, 2)))
    lead = (
        "A number is determined where its standard deviation is at most half that of its prior. Deviations allow for residuals that have a "
        "memory, and for parts of the log that disagree."
    )
    head = ("number", "unit", "value", "± σ", *(("true",) if run.truth else ()), "prior", "± σ")
    weak = tuple(k for k, d in enumerate(run.fit.drives) if not d.determined)
    return Section("What the encoders show", [Table(head, rows, left=(1,), strong=(2,), weak=weak)], lead)


def _open(run: DrivesRun) -> Section | None:
    if not run.fit.open:
        return None
    lead = "Directions in which the numbers may move together without the encoders showing it, and what would separate them."
    return Section("What the log does not determine", [Listing([str(one) for one in run.fit.open])], lead)


def _terms(run: DrivesRun) -> Section | None:
    kept = [t for t in run.fit.terms if t.kept]
    if not kept:
        return None
    joints = listed(list(dict.fromkeys(t.joint for t in kept)))
    lead = f"The fitted samples show more than one number of dry friction at {joints}, by Schwarz's criterion."
    rows = [(t.joint, t.term.removesuffix("_2")) for t in kept]
    return Section("Friction that is not one number", [Table(("joint", "term"), rows, left=(1,))], lead)


def _replay(run: DrivesRun) -> Section:
    plots, kinds = [], run.fit.described.kinds
    logs = (*run.fit.replays, *run.validation)
    for place, replay in enumerate(logs):
        thin = slice(None, None, max(1, len(replay.t) // DRAWN))
        t, fitted = replay.t[thin], place < len(run.fit.replays)
        for k, joint in enumerate(replay.joints):
            title = joint if len(logs) == 1 else f"{joint}, {replay.name}"
            simulated = replay.simulated[thin, k]
            series = [Series("measured", t, replay.measured[thin, k], style="dots")]
            for label, own, colour in (
                ("simulated", t < run.fit.until if fitted else t < 0.0, 1),
                ("simulated, held out", t >= run.fit.until if fitted else t >= 0.0, 2),
            ):
                series += [Series(label, t[own], simulated[own], colour=colour)] if own.any() else []
            unit = "rad" if kinds[joint] == "turning" else "m"
            plots.append(curves(title, series, "t, s", f"encoder, {unit}", clock=replay.name))
    end = f" Samples after {run.fit.until:g} s were not fitted." if np.isfinite(run.fit.until) else ""
    return Section("Measured and simulated", [Figure(plots)], f"From the commands alone.{end}")


def _moving(run: DrivesRun) -> Section:
    title = "The machine on held-out data" if run.validation or np.isfinite(run.fit.until) else "The machine"
    return Section(title, [attempted(title, lambda: _animation(run))])


def _animation(run: DrivesRun) -> Animation:
    """The last replay, of a validation log where there is one, else of the samples behind `until`."""
    fit = run.fit
    replay = run.validation[-1] if run.validation else fit.replay
    start = fit.until if not run.validation and np.isfinite(fit.until) else 0.0
    own = np.flatnonzero(replay.t >= start)
    kept = own[np.unique(np.linspace(0, len(own) - 1, FRAMES).astype(np.intp))]
    machine = fit.described
    solids, _ = solids_of(machine, None)
    layers = [
        tree_layer(machine, replay.measured[kept], "measured", meaning="measured"),
        tree_layer(machine, replay.simulated[kept], "simulated", meaning="estimate", solids=solids),
    ]
    caption = (
        f"“{replay.name}” as its encoders read it, and as the identified drives move the model under the same commands."
    )
    return Animation(scene(replay.t[kept], layers, machine.name, FRAMES), caption + (ELLIPSOIDS if solids else ""))


LARGEST_AGREEMENT = 2.0  # standard deviations by which two fits may differ before the verdict doubts them
DRAWN_DEFLECTIONS = 500  # samples of a curve


def flexible_page(run: FlexibleRun, result: Result, command: str) -> str:
    """The report of ``veridyn identify`` for a study with a section ``flexible``."""
    value, sigma = measured(1e3 * run.fit.delay, 1e3 * run.fit.delay_sigma)
    keys = [Key(f"{value} ±\N{NO-BREAK SPACE}{sigma} ms", "delay of the link encoders or sensors")]
    keys += [Key(f"{percent(x)} %", f"error of the deflection of {c}") for c, x in run.std_percent.items()]
    sections = [_joints(run), _agreement(run), _deflections(run)]
    title = f"Flexible joints of “{run.fit.described.name}”"
    return page(title, flexible_verdict(run), keys, sections, result, command, missed=run.missed)


def flexible_verdict(run: FlexibleRun) -> Verdict:
    """Which stiffnesses may be used."""
    known = [c for c, joint in run.fit.joints.items() if joint.stiffness.determined]
    apart = [c for c in known if run.agreement[c] > LARGEST_AGREEMENT]
    lines = []
    for c in known:
        value, sigma = measured(run.fit.joints[c].stiffness.value, run.fit.joints[c].stiffness.sigma)
        lines.append(f"{c}: {value} ± {sigma} {unit_text(run.fit.joints[c].stiffness.unit)}.")
    lines += run.fit.notes()
    lines += [f"Training and validation logs differ in {listed(apart)} by more than two deviations."] if apart else []
    lines += [f"Missed: {text}" for text in run.missed]
    head = f"The logs determine the stiffness of {listed(known)}." if known else "The logs determine no stiffness."
    doubted = len(known) < len(run.fit.joints) or apart or run.fit.findings
    grade = "poor" if not known or run.missed else "fair" if doubted else "good"
    never = ["Frequencies above the band of the fit: resonances are not in these logs."]
    return Verdict(grade, head, tuple(lines), ("Correcting link angles for the load.",) if known else (), tuple(never))


def _joints(run: FlexibleRun) -> Section:
    rows = []
    for c, joint in run.fit.joints.items():
        for x in joint.quantities.values():
            shown = measured(x.value, x.sigma) if x.determined else ("not determined", "–")
            rows.append((c, x.name, *shown, number(x.prior, 3), number(x.prior_sigma, 2), unit_text(x.unit)))
    lead = (
        "A quantity is determined where its standard deviation is at most half that of its prior. Deviations allow for residuals that are "
        "autocorrelated."
    )
    head = ("joint", "quantity", "value", "± σ", "prior", "± σ", "unit")
    return Section("What the encoders show", [Table(head, rows, left=(1, 6), strong=(2,))], lead)


def _agreement(run: FlexibleRun) -> Section:
    rows = []
    for c, joint in run.fit.joints.items():
        a, b = joint.stiffness, run.again.joints[c].stiffness
        cells = [(number(x.value, 4), number(x.sigma, 2), "yes" if x.determined else "no") for x in (a, b)]
        own = (number(1e3 * joint.own_delay[0], 4), number(1e3 * run.again.joints[c].own_delay[0], 4))
        rows.append((c, *cells[0], *cells[1], number(run.agreement[c], 2), *own))
    head = (
        "joint",
        "training",
        "± σ",
        "determined",
        "validation",
        "± σ",
        "determined",
        "apart, σ",
        "delay, ms",
        "delay, ms",
    )
    lead = "The same fit of the training logs and of the validation logs; delays are those of each joint by itself."
    return Section("Twice from other logs", [Table(head, rows, left=(3, 6))], lead)


def _deflections(run: FlexibleRun) -> Section:
    plots = []
    for c, joint in run.fit.joints.items():
        samples, predicted = joint.predict(run.logs[0])
        y = samples.deflection
        thin = slice(None, None, max(1, len(y) // DRAWN_DEFLECTIONS))
        series = [
            Series("measured", samples.t[thin], 1e3 * y[thin], style="dots"),
            Series("predicted", samples.t[thin], 1e3 * predicted[thin], colour=1),
        ]
        what, unit = joint.compared
        plots.append(curves(c, series, "t, s", f"{what}, m{unit_text(unit)}", clock=c))
    lead = (
        "Motor less link as the encoders show it, or the reading of a sensor on the link less that of a rigid joint, the delay in it. The "
        "zero of the encoders and the dry friction that acts at the start "
        "are those of the log; at standstill friction stays as it was."
    )
    return Section("Deflection on the validation log", [Figure(plots)], lead)
