"""The report of the humanoid, in the form of Figs. 2, 4, 5 and 6 of paper 004."""

from __future__ import annotations

import math

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.result import Fit
from veridyn.inference.verdict import Verdict
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.machine import Machine
from veridyn.papers.humanoid.machine import BASE, CAD_MASS, FOOT, MASS, SIDES, SOLE
from veridyn.papers.humanoid.study import (
    BEND,
    CONSISTENT,
    EXCITED,
    FORCES,
    LONG,
    MOMENTS,
    NOT_A_PROOF,
    PLAIN,
    PRIOR,
    WALK,
    HumanoidStudy,
    determined,
    inside,
    sizes,
    truth_of,
)
from veridyn.papers.humanoid.walk import SOLE_AXES, Performed
from veridyn.papers.requirements import Requirement, at_least, at_most, held_out_reasons, reasons_of
from veridyn.report import listed, number, percent
from veridyn.report.blocks import Animation, Block, Figure, Key, Listing, Section, Table, Text
from veridyn.report.budget import fit_budget
from veridyn.report.page import page
from veridyn.report.parameters import QuantityLine, quantity_table
from veridyn.report.plots import Plot, Series, bars, curves
from veridyn.spatial.inertia import INERTIAL
from veridyn.studies.result import Result
from veridyn.view.scene import Layer, Scene, scene

ROWS = {"fx": "FX", "fy": "FY", "fz": "FZ", "mx": "NX", "my": "NY", "mz": "NZ"}  # as the paper calls them
PAPER = {"M": "M", "MX": "Sx", "MY": "Sy", "MZ": "Sz"}
PAPER |= {"XX": "xx", "YY": "yy", "ZZ": "zz", "YZ": "yz", "XZ": "zx", "XY": "xy"}
ORDER = tuple(PAPER)  # as Fig. 6 has them
TOO_FEW_INSIDE = 0.88  # of 94 parameters within two deviations: three standard errors below 95 %
RANKED = {  # sets of rows whose ranks are compared
    "base": "the six base rows",
    "all": "all 18 rows",
    "joint": "the 12 joint rows",
    "force": "the three forces of the base",
    "moment": "the three moments of the base",
}
WORDS = {
    PLAIN: "plain least squares, walking",
    PRIOR: "drawing as prior, walking",
    CONSISTENT: "consistent with prior, walking",
    EXCITED: "consistent with prior, walking and swings",
    "cad": "drawing (CAD)",
}


def humanoid_page(study: HumanoidStudy, result: Result, command: str) -> str:
    """The whole page."""
    f = study.figures
    keys = [
        Key(
            f"{f['mass']:.3f} kg",
            f"total mass identified from four steps; {MASS:g} kg is true, the drawing says {CAD_MASS:g} kg",
        ),
        Key(f"{int(f['rank_base_rows'])} = {int(f['rank_all_rows'])}", "rank of the six base rows and of all 18 rows"),
        Key(
            f"{number(f['rms_force_bending'], 2)} N",
            f"rms force left on bending, never used; drawing {number(f['rms_force_bending_cad'], 2)} N",
        ),
        Key(
            f"{number(f['rms_moment_bending'], 2)} N·m",
            f"rms moment left on bending; drawing {number(f['rms_moment_bending_cad'], 2)} N·m",
        ),
        Key(
            f"{int(f['parameters_determined'])} of {study.fits[PLAIN].base.count}",
            "parameters that walking alone determines to 30 % of typical size",
        ),
    ]
    sections = [
        _seen(study),
        _exact(study),
        _forces(study, WALK, "Walking: measured and reconstructed (Fig. 4)"),
        _forces(study, BEND, "Bending, never used in the fit (Fig. 5)"),
        _parameters(study),
        _identified(study),
        _other(study),
        _next(study),
        *([_laboratory(study)] if study.faults else []),
    ]
    settings = {
        "robot": "13 links, 18 degrees of freedom, arms locked; all dimensions chosen but 540 mm and 8.0 kg (paper 004)",
        **{run.name: run.how for run in study.runs.values()},
        "sensors": "6 markers of 0.3 mm noise, encoders 0.5 mrad, plate in steps of 0.7 N and 0.05 N·m, every 3 ms",
        "filter": "positions 12 Hz, then both sides of the equations 6 Hz, zero phase; one equation in 10",
    }
    return page(
        "Identification of a humanoid from contact forces", verdict_of(study), keys, sections, result, command, settings
    )


def verdict_of(study: HumanoidStudy) -> Verdict:
    """The verdict, by the study's own figures."""
    f = study.figures
    better = min(f[f"improvement_bending_{row}"] for row in ("fz", "mx", "my"))
    requirements = (
        at_most("Error of the total mass, %", f["mass_error_percent"], 0.5),
        at_least("On bending, errors by the drawing over those of the fit", better, 3.0),
        at_most("On bending, rms force left over, N", f["rms_force_bending"], 0.35),
        at_most("On bending, rms moment left over, N·m", f["rms_moment_bending"], 0.2),
        Requirement(f["consistent"] == 1.0, "No body has the identified parameters."),
    )
    count = study.fits[PLAIN].base.count
    links = study.unknown_links()
    findings = [
        f"From four steps the total mass comes out as {f['mass']:.3f} kg, {percent(f['mass_error_percent'])} % off. "
        "On bending, which no fit has seen, FZ, NX and "
        f"NY are reconstructed {f['improvement_bending_fz']:.0f}, {f['improvement_bending_mx']:.1f} and "
        f"{f['improvement_bending_my']:.1f} times better than by the drawing.",
        f"Walking alone is not enough: of {count} parameters plain least squares determines {int(f['parameters_determined'])} "
        "to 30 % of their typical size"
        + (f", and nothing of {listed(links, 13)}" if links else "")
        + f". Remember: {NOT_A_PROOF}",
        f"On a free leg swinging, plain least squares from walking leaves {number(f['rms_moment_swing_plain'], 2)} N·m; "
        "with the drawing as prior "
        f"{number(f['rms_moment_swing_prior'], 2)} N·m; physically consistent {number(f['rms_moment_swing_consistent'], 2)} N·m.",
    ]
    # The paper judges three rows on bending; what the rule of all fits has against any row is said, and does not decide.
    findings += [f"On bending: {r.text}" for r in held_out_reasons(study.chosen, study.checks[CONSISTENT][BEND])]
    may = [
        "Reconstructing the forces of walking and of slow motions of the trunk.",
        "The total mass, and the parameters whose deviation is small beside them.",
    ]
    may_not = [
        "Single links' masses or inertias where the table says that the prior decided.",
        "Any statement about a real robot: everything here was simulated, in MuJoCo, which shares no equations with the model.",
    ]
    headline = "Base-link equations and contact forces identify the whole body; how much of it depends on the motion."
    return Verdict("good", headline, tuple(findings), tuple(may), tuple(may_not)).with_reasons(reasons_of(requirements))


def _seen(study: HumanoidStudy) -> Section:
    walked = study.runs[LONG if LONG in study.runs else WALK]
    swung = next(run for name, run in study.runs.items() if name.startswith("swing"))
    blocks: list[Block] = [
        Animation(moving(study.model, walked, f"{walked.name} forward"), f"{walked.how}."),
        Animation(moving(study.model, study.runs[BEND], "bending about x, y and z"), f"{study.runs[BEND].how}."),
        Animation(
            moving(study.model, swung, swung.name), f"{swung.how}. The foot is strapped to a block on the plate."
        ),
    ]
    return Section("The motions", blocks, "As the engine performed them. Drag to turn.")


def moving(model: Machine, run: Performed, title: str) -> Scene:
    """The robot as lines: torso and head, legs, soles."""
    thin = slice(None, None, 8)
    R, p, q = run.pose.rotation[thin], run.pose.position[thin], run.q[thin]

    def world(x: Array) -> Array:
        return p + np.einsum("nij,nj->ni", R, x)

    def fixed(*x: float) -> Array:
        return world(np.broadcast_to(np.array(x), (len(q), 3)))

    points = [fixed(0, 0, 0), fixed(0, 0, 0.17), fixed(0, 0, 0.26)]
    lines = [(0, 1), (1, 2)]
    for side in SIDES:
        sign = -1.0 if side == "right" else 1.0
        first = len(points)
        points += [fixed(0, sign * 0.085, 0.16), fixed(0.01, sign * 0.09, 0.0)]  # the locked arm
        lines += [(1, first), (first, first + 1)]
        knee = len(points)
        for part in ("thigh", "shank", "ankle"):
            points.append(world(body_pose(model, q, f"{side}_{part}")[1]))
        lines += [(0, knee), (knee, knee + 1), (knee + 1, knee + 2)]
        Rf, pf = body_pose(model, q, f"{side}_foot")
        (back, front), (inner, outer) = FOOT
        corner = len(points)
        for x, y in ((back, inner), (front, inner), (front, outer), (back, outer)):
            points.append(world(pf + Rf @ (SOLE_AXES @ np.array([x, y, -SOLE]))))
        lines += [(corner + k, corner + (k + 1) % 4) for k in range(4)] + [(knee + 2, corner), (knee + 2, corner + 2)]
    layer = Layer("robot", np.stack(points, axis=1), lines, trails=(0,))
    return scene(run.pose.t[thin], [layer], title)


def _exact(study: HumanoidStudy) -> Section:
    name = LONG if LONG in study.exact else WALK
    fit = study.exact[name]
    truth = truth_of(fit, study.truth)
    x = np.arange(1, len(truth) + 1)
    top = curves(
        "true and identified, in typical sizes",
        [
            Series("true", x, truth / sizes(fit), "thick", colour="truth"),
            Series("identified", x, fit.values / sizes(fit), "dots", colour="estimate"),
        ],
        "base parameter",
        "",
    )
    error = curves(
        "error e, in typical sizes",
        [Series("e", x, np.abs(fit.values - truth) / sizes(fit) + 1e-18, "dots")],
        "base parameter",
        "",
        log_y=True,
    )
    f = study.figures
    rows = [(words, f"{f[f'rank_{which}_rows']:.0f}") for which, words in RANKED.items()]
    caption = "Ranks on generic states; all that is identifiable is identifiable from the base rows."
    return Section(
        "Exact data from the engine (Fig. 2)",
        [
            Figure(
                [top, error], caption=f"All {len(truth)} base parameters from {name} of free walking, exact sensors."
            ),
            Table(("rows", "rank"), rows, caption, left=(0,)),
        ],
        f"Without noise the base rows give all {len(truth)} base parameters: to {f['exact_error_walking']:.1g} of typical size "
        "from walking with feet that turn, "
        f"to {f['exact_error_swings']:.1g} from the swings.",
    )


def _forces(study: HumanoidStudy, motion: str, title: str) -> Section:
    cad_trace, fit_trace = study.traces["cad"][motion], study.traces[CONSISTENT][motion]
    plots: list[Plot] = []
    for k, row in enumerate(fit_trace.rows):
        t, used = fit_trace.t, slice(40, len(fit_trace.t) - 40)
        unit = "N" if row in FORCES else "N·m"
        plots.append(
            curves(
                ROWS[row],
                [
                    Series("measured", t[used], fit_trace.measured[used, k], "thick", colour="measured"),
                    Series("drawing (CAD)", t[used], cad_trace.predicted[used, k], "dashed", colour="plain"),
                    Series("identified from walking", t[used], fit_trace.predicted[used, k], colour="estimate"),
                ],
                "time, s",
                unit,
                low=True,
                clock=motion,
            )
        )
    checks = study.checks
    names = ("cad", PLAIN, PRIOR, CONSISTENT, EXCITED)
    rows = [(WORDS[n], *(number(checks[n][motion][r].rms, 2) for r in (*FORCES, *MOMENTS))) for n in names]
    head = ("parameters", *(f"{ROWS[r]}, {'N' if r in FORCES else 'N·m'}" for r in (*FORCES, *MOMENTS)))
    return Section(
        title,
        [
            Figure(plots, caption="Wrench at the torso's origin, in its frame, behind the 6 Hz filter."),
            Table(head, rows, "rms of measured less reconstructed", left=(0,)),
        ],
    )


def _parameters(study: HumanoidStudy) -> Section:
    fit = study.chosen
    truth = truth_of(fit, study.truth)
    plots = []
    for j, body in enumerate(study.model.described.links):
        at = [k for k, c in enumerate(fit.base.columns) if study.model.columns[c][0] == body]
        at.sort(key=lambda k: ORDER.index(_symbol(fit, k)))
        scaled = sizes(fit)[at]
        plots.append(
            bars(
                f"B{j} {body.replace('_', ' ')}",
                [PAPER[_symbol(fit, k)] for k in at],
                {"true": truth[at] / scaled, "drawing": fit.priors[at] / scaled, "identified": fit.values[at] / scaled},
                "",
            )
        )
    share = fit.prior_share
    left = [100.0 * float(share[c]) if share is not None else math.nan for c in fit.base.columns]
    rows = [
        QuantityLine(
            *(name, unit, float(fit.values[k]), float(fit.sigma[k]), float(fit.priors[k])),
            truth=float(truth[k]),
            more=(percent(left[k]),),
        )
        for k, (name, unit) in enumerate(zip(fit.names, fit.units, strict=True))
    ]
    note = "Noise with memory, and the drawing's deviation where data say little; the cut-off of positions: what changes from 6 to 12 Hz."
    caption = "Consistent with prior, from walking alone. 100 % left: the data determine nothing."
    return Section(
        "Base parameters by link (Fig. 6)",
        [
            Figure(
                plots,
                caption="In the order of Fig. 6: mass M, first moments S, moments of inertia xx … xy; "
                "in typical sizes, 0.3 kg, 0.03 kg·m and 0.001 kg·m².",
            ),
            quantity_table(rows, caption=caption, more=("of the drawing's variance left, %",)),
            *fit_budget(fit, note),
        ],
        "Identified from four steps of walking, with the drawing as prior, physically consistent.",
    )


def _symbol(fit: Fit, k: int) -> str:
    return INERTIAL[fit.described.columns[fit.base.columns[k]][1]]


def _identified(study: HumanoidStudy) -> Section:
    rows = []
    for name in (PLAIN, PRIOR, CONSISTENT, EXCITED):
        fit = study.fits[name]
        truth = truth_of(fit, study.truth)
        near = int((np.abs(fit.values - truth) < 0.3 * sizes(fit)).sum())
        counts = [len(determined(fit, share)) for share in (0.1, 0.3, 1.0)]
        rows.append(
            (WORDS[name], str(fit.base.count), *map(str, counts), str(near), f"{100 * inside(fit, study.truth):.0f} %")
        )
    known = determined(study.fits[PLAIN])
    unknown = study.unknown_links()
    head = ("parameters", "excited", "σ < 10 %", "σ < 30 %", "σ < 100 %", "truth within 30 %", "truth within 2σ")
    return Section(
        "What walking identifies, and what it does not",
        [
            Table(head, rows, "Numbers of base parameters; percent of typical size.", left=(0,)),
            Text(_deviations_hold(inside(study.fits[PLAIN], study.truth), inside(study.chosen, study.truth))),
            Text("Determined by walking alone, plain least squares: " + (", ".join(known) or "none") + "."),
            Text("Links of which walking alone determines nothing: " + (", ".join(unknown) or "none") + "."),
            Text(NOT_A_PROOF[0].upper() + NOT_A_PROOF[1:]),
        ],
    )


def _deviations_hold(plain: float, chosen: float) -> str:
    """Whether the shares of the truth within two deviations, of plain least squares and of the reported fit, are what they should be."""
    text = (
        f"Of the truth {100.0 * plain:.0f} % lies within two deviations of plain least squares and {100.0 * chosen:.0f} % within two of "
        "the reported fit, where 95 % should."
    )
    if plain < TOO_FEW_INSIDE:
        text += (
            " The former promise too much here: noise in the accelerations, and forces faster than the filter, are errors of the "
            "regressor, which least squares does not know of."
        )
    return text


def _other(study: HumanoidStudy) -> Section:
    swings = [m for m in study.checks["cad"] if m.startswith("swing")]
    rows = [
        (WORDS[n], *(number(study.rms(n, m, kind), 2) for m in swings for kind in (FORCES, MOMENTS)))
        for n in ("cad", PLAIN, PRIOR, CONSISTENT)
    ]
    head = ("parameters", *(f"{m}, {u}" for m in swings for u in ("N", "N·m")))
    note = "Fits of walking, validated on a free leg that swings."
    return Section("A motion of another kind", [Table(head, rows, "rms over three components", left=(0,))], note)


def _next(study: HumanoidStudy) -> Section:
    s = study.selection
    rows = [(g.motion, number(g.gain, 3), str(g.excited), str(g.determined)) for g in s.stages]
    by: dict[str, list[str]] = {}
    for r in study.remedies:
        by.setdefault(r.motion, []).append(r.name)
    lines = [f"{motion}: {', '.join(names)}" for motion, names in sorted(by.items(), key=lambda kv: -len(kv[1]))]
    caption = "The best subset of what a standing robot can do without falling, in order; data alone, no prior."
    return Section(
        "What to record next",
        [
            Table(("motion", "gain of log det", "excited", "σ < 30 %"), rows, caption, left=(0,)),
            Text("Not worth their time here: " + (", ".join(s.left_out) or "none") + "."),
            Text("For each parameter that walking leaves undetermined, the one motion more that would help it most:"),
            Listing(lines),
        ],
        "Candidates keep the centre of pressure inside the soles; they are chosen by what they add to the information.",
    )


def _laboratory(study: HumanoidStudy) -> Section:
    rows = [(f.fault, "; ".join(f.found) or "nothing") for f in study.faults]
    caption = "Base rows look for plate and clock, soles that stand still for encoders, the rigid fit for markers."
    note = f"One fault at a time, in recordings of walking and bending of '{BASE}'."
    return Section("If the laboratory is at fault", [Table(("built in", "found"), rows, caption, left=(0, 1))], note)
