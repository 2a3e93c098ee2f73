"""The table of the papers' claims, ``docs/papers/claims.md``, written from ``docs/papers/claims.yaml`` and ``docs/papers/claims.json``.

``python -m docs.claims`` prints it. ``python -m docs.claims --run [PAPER ...]`` makes the runs that the rows of results name, those that
``claims.json`` does not have yet, and writes that file and the pages made from it (``make claims``); see :mod:`docs.claims_run`. Tests
hold that the page is what this prints, that everything a row names exists, and that its status follows from its numbers
(:mod:`docs.claims_rules`).
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.claims_rules import ROOT, STATUS, Claim, Figure, Runs, claims, minutes, results, status, values

PAGE = ROOT / "docs" / "papers" / "claims.md"
PAPERS = {
    "000": ("Passenger car, 2006", "car.md"),
    "001": ("Car, 2002", "car.md"),
    "002": ("Hexapod", "hexapod.md"),
    "003": ("Observers of multibody models", "vehicle-observer.md"),
    "004": ("Humanoid", "humanoid.md"),
}
INTRODUCTION = """\
# Every claim of the five papers

What the [five papers](index.md) claim, equation by equation, table by table and figure by figure, and what shows or refutes it here. The
table is written from `docs/papers/claims.yaml` and from the numbers of `docs/papers/claims.json` by `python -m docs.claims`;
`make claims` makes those numbers again, from the commands and seeds that the rows name.

- An **equation** names a test and the deviation that the test asserts.
- A **result** names a command, seeds, what the paper printed and the interval that follows from that, which was set before the runs. Its
  value is the median over the seeds, with the least and the largest. Its status follows from them: **holds** (all seeds inside, in every
  figure), **refuted** (all outside), **partly**, **open** (numbers are missing).
- What is **background** is not computed here and counts for nothing.

Where a correction is given an equation holds in its corrected form; where a paper's log is not public a result is that of the machine
which the evidence names.
"""
DEMONSTRATION = re.compile(r"demo (\w+): (.+)")
BENCHMARK = re.compile(r"python -m (benchmarks\.\w+)")


def missing_names(claim: Claim) -> Iterator[str]:
    """What a claim names and does not exist."""
    for name in claim.names:
        if not exists(name):
            yield name


def exists(name: str) -> bool:
    """Whether a function or module, a test, a section of a demonstration's report or a benchmark is there."""
    if found := DEMONSTRATION.fullmatch(name):
        return any(f'"{found[2]}"' in file.read_text(encoding="utf-8") for file in _pages(found[1]))
    if found := BENCHMARK.match(name):
        module = ROOT / Path(*found[1].split("."))
        return module.with_suffix(".py").is_file() or (module / "__main__.py").is_file()
    if name.startswith("tests/"):
        file, _, test = name.partition("::")
        return (ROOT / file).is_file() and f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")
    return _defined(name)


def _pages(demonstration: str) -> Iterator[Path]:
    """The sources of a demonstration's report."""
    package = ROOT / "src" / "veridyn"
    if demonstration == "fourbar":
        yield from (package / "papers" / "fourbar.py", package / "papers" / "fourbar_page.py")
    yield from (package / "papers" / demonstration).glob("*page*.py")


def _defined(name: str) -> bool:
    """Whether a dotted name is a module of the package, or defined at the top of one; read from the source, since imports take seconds."""
    parts = name.split(".")
    own = ROOT / "src" / Path(*parts)
    if parts[0] != "veridyn" or own.with_suffix(".py").is_file() or (own / "__init__.py").is_file():
        return parts[0] == "veridyn"
    module = own.parent.with_suffix(".py")
    if not module.is_file():
        return False
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == parts[-1]:
            return True
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == parts[-1] for target in targets):
            return True
    return False


def page(every: Sequence[Claim], runs: Runs) -> str:
    """The whole page."""
    counts = Counter(status(claim, runs) for claim in every)
    listed = ", ".join(f"{counts[one]} {one}" for one in STATUS if counts[one])
    kinds = Counter(claim.kind for claim in every)
    spent = sum(one.minutes for one in runs.values())
    parts = [
        INTRODUCTION,
        f"\n{len(every)} rows: {listed}. {kinds['equation']} are equations, {kinds['result']} results; ",
    ]
    parts.append(f"the {len(runs)} runs took {spent:.0f} minutes, each on one processor.\n")
    for paper, (title, own) in PAPERS.items():
        parts.append(f"\n## {paper}: {title}\n\nEquation by equation: [the page of this paper]({own}).\n\n")
        parts.append("| item | claim | status | number | shown by | evidence |\n|---|---|---|---|---|---|\n")
        parts += [_row(claim, runs) for claim in every if claim.paper == paper]
    return "".join(parts)


def _row(claim: Claim, runs: Runs) -> str:
    word = status(claim, runs)
    if claim.correction and word == "holds":
        word = "holds, corrected"
    evidence = f"Corrected: {claim.correction} {claim.evidence}" if claim.correction else claim.evidence
    return f"| {claim.item} | {claim.claim} | {word} | {_number(claim, runs)} | {_shown_by(claim)} | {evidence} |\n"


def _number(claim: Claim, runs: Runs) -> str:
    """The deviation of an equation; figures, what the paper printed, and minutes of a result."""
    if claim.kind == "equation":
        return "exact" if claim.deviation == 0.0 else f"{claim.deviation:g}"
    if claim.kind == "background":
        return "–"
    lines = [_figure(claim, figure, runs) for figure in claim.figures]
    return "<br>".join([*lines, f"{len(claim.seeds)} seeds, {minutes(claim, runs):.1f} min"])


def _figure(claim: Claim, figure: Figure, runs: Runs) -> str:
    found = sorted(values(claim, figure, runs))
    n = len(found)
    middle = 0.5 * (found[(n - 1) // 2] + found[n // 2]) if n else 0.0
    measured = f"{middle:.3g} ({found[0]:.3g} to {found[-1]:.3g})" if n else "no run"
    return f"`{figure.key}` {measured}; printed {figure.printed}, {_interval(figure)}: {figure.why}"


def _interval(figure: Figure) -> str:
    low, high = figure.within
    if low == -float("inf"):
        return f"at most {high:g}"
    return f"at least {low:g}" if high == float("inf") else f"{low:g} to {high:g}"


def _shown_by(claim: Claim) -> str:
    shown = [f"`{claim.test}`"] if claim.test else []
    shown += [f"`{claim.command.replace(' --out {out}', '')}`"] if claim.command else []
    return "<br>".join([*shown, *(f"`{name}`" for name in claim.by)]) or "–"


def main(arguments: Sequence[str]) -> int:
    """Print the page, or make runs and write it."""
    if arguments:
        from docs.claims_run import main as run

        from docs import reproduce, thesis_tables

        code = run(arguments)
        PAGE.write_text(page(claims(), results()), encoding="utf-8")
        thesis_tables.PAGE.write_text(thesis_tables.page(results()), encoding="utf-8")
        reproduce.main([])
        return code
    sys.stdout.write(page(claims(), results()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
