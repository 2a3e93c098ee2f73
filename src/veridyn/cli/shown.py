"""What commands print of a model and of a study: tables and lines as wide as the terminal.

``veridyn model show`` prints bodies, elements, loops, and base parameters; studies print their verdict, figures and rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from veridyn.cli.output import console, plain_table
from veridyn.identify.base import BaseParameters
from veridyn.mechanics.tree.loops.assembly import CLOSED_TOLERANCE_M, AssembledPose, assembled_pose
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.model.controller import Controller
from veridyn.model.elements.element import Element
from veridyn.model.flexible import Flexible, flexible_elements, flexible_joints, motor_side
from veridyn.model.graph import Body
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.model.single_track import car_described, prior_of, uncertain
from veridyn.report import count, number, unit_text, units_in

if TYPE_CHECKING:
    from veridyn.errors import Fault
    from veridyn.identify.pipeline.identification import IdentificationStudy
    from veridyn.inference.verdict import Verdict
    from veridyn.studies.result import Result
    from veridyn.studies.run.estimation import IdentifyRun

FAR_FROM_GUESS = 0.5  # rad: a larger way from a guess to the assembled pose is printed (chosen)


def model_content(machine: Machine, base: BaseParameters) -> dict[str, Any]:
    """The same for programs."""
    p = machine.parameters
    return {
        "name": machine.name,
        "base": machine.base,
        "bodies": [b.name for b in bodies_of(machine)],
        "coordinates": dict(zip(machine.coordinates, machine.coordinate_kinds, strict=True)),
        "loops": [c.name for c in machine.cut_joints],
        **_assembly_content(machine),
        "flexible_joints": {c: motor_side(c) for c in flexible_joints(machine)},
        "controllers": {c.name: controller_line(machine, c) for c in machine.controllers},
        "laws": {e.parameter_name: law_line(e) for e in machine.elements if e.own_law is not None},
        "parameters": dict(zip(p.names, p.states, strict=True)),
        "parameters_missing": list(p.missing()),
        "base_parameters": list(base.names),
        "relations": base.relations(),
        "without_effect": [p.names[k] for k in base.dead],
    }


def car_content(machine: Machine) -> dict[str, Any]:
    """A car of a few numbers, for programs."""
    p = machine.parameters
    return {
        "name": machine.name,
        "formulation": machine.formulation,
        "tyre": car_described(machine).tyre,
        "coordinates": dict(zip(machine.coordinates, machine.coordinate_kinds, strict=True)),
        "sensors": [s.name for s in machine.sensors],
        "values": dict(zip(p.names, p.values.tolist(), strict=True)),
        "sigma": {n: prior_of(machine, n).sigma for n in uncertain(machine)},
        "parameters": dict(zip(p.names, p.states, strict=True)),
    }


def print_car(machine: Machine) -> None:
    """The parameters of a car of a few numbers with deviations and bounds, and its sensors."""
    out, p, car = console(), machine.parameters, car_described(machine)
    out.print(
        f"{machine.name}: a car with {car.tyre} tyres, formulation {machine.formulation}", style="bold", highlight=False
    )
    rows = []
    for n, unit, state in zip(p.names, p.units, p.states, strict=True):
        b = prior_of(machine, n)
        how = state if n in car.values else "by default"
        rows.append(
            (
                n,
                how,
                unit_text(unit),
                number(b.value),
                number(b.sigma) if b.sigma else "",
                f"{b.lower:g} to {b.upper:g}",
            )
        )
    out.print(plain_table(("parameter", "state", "unit", "value", "± σ", "bounds"), rows, left=3))
    measured = ", ".join(f"{s.name} (σ {s.sigma:g} {s.unit(False)})" for s in machine.sensors)
    out.print(f"sensors: {measured or 'none'}", highlight=False, soft_wrap=True)


def _assembly_content(machine: Machine) -> dict[str, Any]:
    if not machine.closed:
        return {}
    pose = assembled_pose(machine)
    return {"pose": dict(pose.coordinates), "openings": dict(pose.openings)}


def print_machine(machine: Machine) -> None:
    """Bodies, elements, transmission, and the pose in which loops close."""
    out = console()
    table = bodies_of(machine)
    masses = {b.name: machine.parameters[b.parameter("M")] if b.real else float("nan") for b in table}
    bodies = [
        (
            b.name,
            b.antecedent or "–",
            _joint(machine, b),
            b.coordinate_name or "–",
            number(masses[b.name]) if b.real else "virtual",
        )
        for b in table
    ]
    kind = "a fixed base" if machine.base == "fixed" else "a free base"
    head = f"{machine.name}: {count(len(table), 'body', 'bodies')} on {kind}, {count(machine.n, 'coordinate')}"
    out.print(head, style="bold", highlight=False)
    out.print(plain_table(("body", "antecedent", "joint", "coordinate", "mass, kg"), bodies, left=4))
    if machine.elements:
        units = dict(zip(machine.parameters.names, machine.parameters.units, strict=True))
        elements = [
            (e.parameter_name, e.kind, _acts_on(e), unit_text(units[e.parameter_name]), number(e.value))
            for e in machine.elements
        ]
        out.print()
        out.print(plain_table(("element", "kind", "acts on", "unit", "value"), elements, left=4))
        for line in (law_line(e) for e in machine.elements if e.own_law is not None):
            out.print(line, highlight=False, soft_wrap=True)
    for c, own in flexible_joints(machine).items():
        out.print(f"flexible joint {c}: {_flexible(machine, c, own)}", highlight=False, soft_wrap=True)
    if machine.controllers:
        out.print()
        for c in machine.controllers:
            out.print(f"controller {c.name}: {controller_line(machine, c)}", highlight=False, soft_wrap=True)
    if machine.transmission is not None:
        out.print()
        out.print(f"transmission: {_transmission(machine.transmission)}", highlight=False)
    if machine.closed:
        _print_loops(machine)


def _flexible(machine: Machine, coordinate: str, own: Flexible) -> str:
    """Stiffness, damping, rotor inertia, hysteresis and backlash of a flexible joint, and the name of its motor side."""
    units = dict(zip(machine.parameters.names, machine.parameters.units, strict=True))
    names = [e.parameter_name for e in flexible_elements(coordinate, own)]
    sizes = (own.stiffness, own.damping, own.inertia, own.hysteresis)
    values = zip(("stiffness", "damping", "rotor inertia", "hysteresis"), sizes, names, strict=False)
    words = [f"{w} unknown" if np.isnan(x) else f"{w} {number(x)} {unit_text(units[n])}" for w, x, n in values]
    words += (
        [f"backlash {number(own.backlash)} {'rad' if machine.kinds[coordinate] == 'turning' else 'm'}"]
        if own.backlash
        else []
    )
    return f"{', '.join(words)}; its motor side is {motor_side(coordinate)}"


def controller_line(machine: Machine, c: Controller) -> str:
    """What a controller does, in one line: its kind, coordinate and rate, then its constants with units."""
    own = [k for k in machine.controller_constants if k.controller == c.name]
    words = [f"{k.key} {number(k.value)}{_deviation(k.sigma)} {unit_text(k.unit)}".rstrip() for k in own]
    words += [f"feedforward {c.feedforward}"] if c.feedforward != "none" else []
    words += [f"anti_windup {c.anti_windup}"] if c.integrates else []
    words += [f"motor {c.motor}, current loop at {c.rate * c.current_ticks:g} Hz"] if c.motor else []
    return f"{c.kind} on {c.on} at {c.rate:g} Hz: {', '.join(words)}"


def _deviation(sigma: float) -> str:
    return "" if np.isnan(sigma) else f" ± {number(sigma)}"


def _print_loops(machine: Machine) -> None:
    """Cut joints with the place where both ends meet, and the pose in which they do, beside what 'assembly' says."""
    out, pose = console(), assembled_pose(machine)
    loops = [
        (c.name, c.kind, *(end.body for end in machine.ends(c)), _place(pose.pins[c.name][1]), _opening(pose, c.name))
        for c in machine.cut_joints
    ]
    out.print()
    out.print(plain_table(("loop", "cut joint", "between", "and", "meets at x, y, z, m", "open by"), loops, left=4))
    moved = [machine.coordinates[k] for k in machine.independent]
    out.print(f"{count(len(moved), 'degree')} of freedom: {', '.join(moved)}", highlight=False, soft_wrap=True)
    rows, far = [], []
    for c, kind in zip(machine.coordinates, machine.coordinate_kinds, strict=True):
        value, given = pose.coordinates[c], machine.assembly.hold.get(c, machine.assembly.guess.get(c))
        how = "held" if c in machine.assembly.hold else "not given" if given is None else f"guess {number(given)}"
        unit = f"{number(value)} rad, {number(np.degrees(value))}°" if kind == "turning" else f"{number(value)} m"
        rows.append((c, how, unit))
        if (
            c in machine.assembly.guess
            and kind == "turning"
            and abs(value - machine.assembly.guess[c]) > FAR_FROM_GUESS
        ):
            far.append(c)
    out.print()
    out.print(plain_table(("assembled pose", "under assembly", "value"), rows, left=2))
    if far:
        why = "A pin on the other side of its body, or another way to put it together, does this."
        out.print(f"Far from their guesses: {', '.join(far)}. {why}", highlight=False, soft_wrap=True)


def _place(p: Any) -> str:
    return ", ".join(f"{x:.4g}" for x in np.where(np.abs(p) < 1e-12, 0.0, p))


def _opening(pose: AssembledPose, loop: str) -> str:
    return "closed" if pose.openings[loop] <= CLOSED_TOLERANCE_M else f"{pose.openings[loop]:.3g}"


def print_parameters(machine: Machine, base: BaseParameters) -> None:
    """States of the parameters, base parameters with their relations, and what has no effect."""
    p = machine.parameters
    states = [f"{len(p.select(s))} {s}" for s in ("estimated", "known", "tied") if p.select(s)]
    typer.echo(f"\n{count(len(p), 'parameter')}: {', '.join(states)}")
    if p.missing():
        typer.echo(f"without a value: {', '.join(p.missing())}")
    typer.echo(f"\n{count(base.count, 'base parameter')} ({base.source}): {', '.join(base.names)}")
    relations = base.relations()
    if relations:
        typer.echo("\n" + "\n".join(relations))
    if base.dead:
        typer.echo(f"\nwithout effect: {', '.join(p.names[k] for k in base.dead)}")


def _joint(machine: Machine, body: Body) -> str:
    if machine.base == "free" and body.antecedent is None:
        return "free"
    return body.joint if body.joint == "fixed" or body.actuated else f"{body.joint}, passive"


def law_line(e: Element) -> str:
    """A law of one's own in one line: its formula, or how its table goes."""
    law = e.own_law
    assert law is not None  # the caller looked
    if e.table is None:
        return f"{e.parameter_name}: value × ({law.text})"
    t = e.table
    span = f"{len(t.at)} points of {law.text} from {t.at[0]:g} to {t.at[-1]:g}"
    beyond = "holds its end values" if t.outside == "hold" else "goes on along its end slopes"
    return f"{e.parameter_name}: value × table, {span}, {t.shape}; outside it {beyond}"


def _acts_on(e: Element) -> str:
    if e.between is not None:
        return " to ".join(f"{m.body} ({', '.join(f'{x:g}' for x in m.at)})" for m in e.between)
    return _combination(e.on)


def _combination(on: Mapping[str, float]) -> str:
    terms = [("− " if a < 0 else "+ ") + ("" if abs(a) == 1.0 else f"{abs(a):g} ") + name for name, a in on.items()]
    return " ".join(terms).removeprefix("+ ")


def _transmission(t: Transmission) -> str:
    return "; ".join(
        f"{joint} = {_combination({m: a for m, a in zip(t.motors, row, strict=True) if a})}"
        for joint, row in zip(t.joints, t.matrix, strict=True)
    )


def print_identified(run: IdentifyRun, result: Result) -> None:
    """The verdict, the figures, and the rows or parameters of an identification of any machine; then what was tried on the way."""
    from veridyn.report.reduced import reduced_line
    from veridyn.report.study import identified_verdict

    if run.drive is not None:
        print_verdict(identified_verdict(run), result)
        typer.echo(f"\n{run.machine.name}:\n{units_in(run.drive.summary())}\n")
        return
    print_study(run.study, result, identified_verdict(run), [s.fault for s in run.suspicions])
    if run.cutoff is not None:
        typer.echo(run.cutoff.summary() + "\n")
    if run.ladder is not None:
        typer.echo(units_in(run.ladder.summary()) + "\n")
    if run.study.essential.steps:
        typer.echo(reduced_line(run.study) + "\n")


def print_study(
    study: IdentificationStudy, result: Result, found: Verdict | None = None, faults: Sequence[Fault] = ()
) -> None:
    """The verdict, which is `found` or that of the study alone, the figures and the rows of an identification."""
    from veridyn.report.rows import row_table  # here: a model is shown without it
    from veridyn.report.verdict import verdict

    out = console()
    print_verdict(found or verdict(study), result, faults)
    tables = [row_table(study.check.rows, "row", study.own.rows)]
    if study.by_simulation and not study.unseen.not_simulated:
        tables.insert(0, row_table(study.judging.rows, "coordinate", study.judging_own.rows))
    for table in tables:
        out.print()
        out.print(plain_table(table.columns, [[str(cell) for cell in row] for row in table.rows], 2))
    unjudged = [r.row for r in study.check.rows if not r.judged]
    if unjudged:
        told = "Listed and not judged, because they vary by less than three times their noise"
        out.print(f"{told}: {', '.join(unjudged)}.", highlight=False)
    out.print()


def print_verdict(verdict: Verdict, result: Result, faults: Sequence[Fault] = ()) -> None:
    """The verdict with its reasons and the figures of any study; possible `faults` that a reason describes are not named again."""
    from veridyn.report.faults import own_findings, own_reasons, unstated  # here: a model is shown without it

    out = console()
    if result.quick:
        out.print("This was a quick run.", highlight=False)
    out.print(verdict.headline, style="bold", highlight=False)
    told = [fault for fault in faults if not unstated([str(fault)], verdict)]
    for sentence in (*(units_in(r.text) for r in own_reasons(verdict)), *own_findings(verdict, told)):
        out.print(sentence, highlight=False, soft_wrap=not out.is_terminal)
    out.print()
    out.print(plain_table(("figure", "value"), [(k, number(v, 6)) for k, v in result.figures.items()]))
