"""What the commands print of a study and of a model."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

import typer
from rich.console import Console
from rich.table import Table

from veridyn.identify.base import BaseParameters
from veridyn.model.elements import Element
from veridyn.model.joint import Body
from veridyn.model.transmission import Transmission
from veridyn.model.tree import Tree
from veridyn.report.blocks import Verdict
from veridyn.report.verdict import verdict
from veridyn.report.words import count, number, percent, unit_text
from veridyn.studies.identification import IdentificationStudy
from veridyn.studies.result import Result

PLAIN_WIDTH = 200  # of a line where there is no terminal: nothing is cut


def print_study(study: IdentificationStudy, result: Result) -> None:
    """The verdict, the figures and the rows of an identification."""
    console = _console()
    print_verdict(verdict(study), result)
    own = {r.row: r for r in study.own.rows}
    rows = [
        (
            r.row if r.judged else f"{r.row} (not judged)",
            percent(100.0 * r.std_error),
            percent(100.0 * own[r.row].std_error),
            percent(100.0 * r.relative_error),
            number(r.rms, 3),
            number(r.measured_std, 3),
            number(r.measured_rms, 4),
            unit_text(r.unit),
        )
        for r in study.check.rows
    ]
    head = (
        "row",
        "% of std, validation",
        "training",
        "% of rms, validation",
        "rms error",
        "std",
        "measured rms",
        "unit",
    )
    console.print()
    console.print(_table(head, rows))
    if not all(r.judged for r in study.check.rows):
        console.print("Rows that vary by less than three times their noise are listed and not judged.", highlight=False)
    console.print()


def print_verdict(verdict: Verdict, result: Result) -> None:
    """The verdict and the figures of any study."""
    console = _console()
    if result.quick:
        console.print("This was a quick run.", highlight=False)
    console.print(verdict.headline, style="bold", highlight=False)
    for sentence in verdict.findings:
        console.print(sentence, highlight=False, soft_wrap=not console.is_terminal)
    console.print()
    console.print(_table(("figure", "value"), [(k, number(v, 6)) for k, v in result.figures.items()]))


def print_warnings(texts: Iterable[str]) -> None:
    """On stderr, one after the other."""
    for text in texts:
        typer.echo(f"warning: {text}", err=True)


def print_model(tree: Tree, base: BaseParameters) -> None:
    """Bodies, elements, base parameters with their relations, and what has no effect."""
    console = _console()
    masses = {b.name: tree.parameters[b.parameter("M")] if b.real else float("nan") for b in tree.bodies}
    bodies = [
        (
            b.name,
            b.antecedent or "–",
            _joint(tree, b),
            b.coordinate_name or "–",
            number(masses[b.name]) if b.real else "virtual",
        )
        for b in tree.bodies
    ]
    kind = "a fixed base" if tree.base == "fixed" else "a free base"
    head = f"{tree.name}: {count(len(tree.bodies), 'body', 'bodies')} on {kind}, {count(tree.n, 'coordinate')}"
    console.print(head, style="bold", highlight=False)
    console.print(_table(("body", "antecedent", "joint", "coordinate", "mass, kg"), bodies, left=4))
    if tree.elements:
        units = dict(zip(tree.parameters.names, tree.parameters.units, strict=True))
        elements = [
            (e.parameter_name, e.kind, _acts_on(e), unit_text(units[e.parameter_name]), number(e.value))
            for e in tree.elements
        ]
        console.print()
        console.print(_table(("element", "kind", "acts on", "unit", "value"), elements, left=4))
    if tree.transmission is not None:
        console.print()
        console.print(f"transmission: {_transmission(tree.transmission)}", highlight=False)
    if tree.loops:
        loops = [(c.name, c.joint, c.first.body, c.second.body) for c in tree.loops]
        console.print()
        console.print(_table(("loop", "cut joint", "between", "and"), loops, left=4))
        moved = [tree.coordinates[k] for k in tree.independent]
        console.print(f"{count(len(moved), 'degree')} of freedom: {', '.join(moved)}", highlight=False, soft_wrap=True)
    _print_parameters(tree, base)


def _print_parameters(tree: Tree, base: BaseParameters) -> None:
    p = tree.parameters
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


def _joint(tree: Tree, body: Body) -> str:
    if tree.base == "free" and body.antecedent is None:
        return "free"
    return body.joint if body.joint == "fixed" or body.actuated else f"{body.joint}, passive"


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


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Table:
    """A table whose first `left` columns are words and the others numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for k, name in enumerate(head):
        table.add_column(name, justify="left" if k < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)
