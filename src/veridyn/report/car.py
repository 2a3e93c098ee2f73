"""What the reports of a drive have of their own: what was identified with priors, and what was observed with bands beside references."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridyn.identify.validation import Validation
from veridyn.report.blocks import Block, Figure, Key, Listing, Section, Table, Text, Verdict
from veridyn.report.observer import ObservedParts, thin
from veridyn.report.plots import Plot, Series, curves
from veridyn.report.words import count, listed, measured, number, unit_text
from veridyn.signals.drive import DriveLog
from veridyn.studies.result import ParameterRow, Result
from veridyn.studies.run.identified import IdentifiedDrive
from veridyn.studies.run.observed import ObservedDrive, ObserveRun

WORDS = {
    "sideslip": "sideslip angle",
    "front_force": "lateral force, front axle",
    "rear_force": "lateral force, rear axle",
    "front_slip": "slip angle, front axle",
    "rear_slip": "slip angle, rear axle",
    "load_fl": "load, front left wheel",
    "load_fr": "load, front right wheel",
    "load_rl": "load, rear left wheel",
    "load_rr": "load, rear right wheel",
}


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
    before = [
        *_quantities(run, drive),
        *_way(drive),
        *(
            [
                Section(
                    "Parameters",
                    [_parameters(run.parameters)],
                    "Identified values with deviations, and states at the end.",
                )
            ]
            if run.parameters
            else []
        ),
    ]
    after = [
        *_suspicions(list(result.warnings)),
        _channels(drive.drive),
    ]
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
    grade = "poor" if drive.faults or not near else "fair" if run.missed else "good"
    return Verdict(grade, f"{drive.car.name}: what its sensors do not measure.", tuple(findings))


def _quantities(run: ObserveRun, drive: ObservedDrive) -> list[Section]:
    if not run.virtual:
        return []
    plots = []
    for name, v in run.virtual.items():
        angle = v.units[0] == "rad"
        scale, unit = (180.0 / np.pi, "deg") if angle else (1.0, v.units[0])
        low, high = (thin(scale * end[:, 0]) for end in v.band(2.0))
        shown = [Series("estimate", thin(v.t), thin(scale * v.values[:, 0]), band=(low, high), colour="estimate")]
        if name in drive.reference:
            shown.append(Series("reference", thin(v.t), thin(scale * drive.reference[name]), colour="truth"))
        plots.append(curves(WORDS.get(name, name), shown, "time, s", unit_text(unit)))
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
    shown = [
        Series("estimate minus reference", thin(v.t), thin(error), band=(thin(-sigma), thin(sigma)), colour="estimate")
    ]
    if drive.linear is not None:
        shown.append(
            Series(
                "linear filter, identified stiffness"
                if drive.fitted is not None
                else "linear filter, stiffness of the file",
                thin(v.t),
                thin(scale * (drive.linear - drive.reference["sideslip"])),
                style="dashed",
                colour=2,
            )
        )
    return curves("error", shown, "time, s", "deg")


def _way(drive: ObservedDrive) -> list[Section]:
    p = drive.path
    if p is None:
        return []
    shown = [Series("estimate", thin(p.state("east")), thin(p.state("north")), colour="estimate")]
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
                [Series("2σ", thin(p.t), thin(np.minimum(sigma, np.ptp(x) + 1.0)), colour=0)],
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


def _suspicions(texts: Sequence[str]) -> list[Section]:
    return [Section("What the checks say", [Text(text) for text in texts])] if texts else []


def _channels(drive: DriveLog) -> Section:
    plots = [
        curves(name, [Series(name, thin(drive.t), thin(values), colour=0)], "time, s", name)
        for name, values in drive.channels.items()
        if np.isfinite(values).any()
    ]
    return Section("The drive", [Figure(plots)], "The channels of the log, as they are used.")
