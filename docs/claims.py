"""The table of the papers' claims, ``docs/papers/claims.md``, written from ``docs/papers/claims.yaml``.

``python -m docs.claims`` prints it; a test holds that the page is what this prints, and that everything it names exists.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
CLAIMS = ROOT / "docs" / "papers" / "claims.yaml"
STATUS = ("holds", "refuted", "partly", "missing")
PAPERS = {
    "000": ("Passenger car, 2006", "car.md"),
    "001": ("Car, 2002", "car.md"),
    "002": ("Hexapod", "hexapod.md"),
    "003": ("Observers of multibody models", "vehicle-observer.md"),
    "004": ("Humanoid", "humanoid.md"),
}
INTRODUCTION = """\
# Every claim of the five papers

What the [five papers](index.md) claim, equation by equation, table by table and figure by figure, and what shows or refutes it here: a
function, a test, a benchmark or a section of the report that `veridyn demo` writes. The table is written from `docs/papers/claims.yaml`
by `python -m docs.claims`; a test holds that every function, test, benchmark and section named in it exists.

**holds**: shown here; where a correction is given, in its corrected form, and where a paper's log is not public, on the machine that the
evidence names. **refuted**: the evidence says otherwise. **partly**: what is left open stands in the evidence. **missing**: nothing
shows it.
"""
DEMONSTRATION = re.compile(r"demo (\w+): (.+)")
BENCHMARK = re.compile(r"python -m (benchmarks\.\w+)")


@dataclass(frozen=True)
class Claim:
    """One claim of a paper: the equation, table or figure, its status, what shows it, and the evidence in one line."""

    paper: str
    item: str
    claim: str
    status: str
    evidence: str
    by: tuple[str, ...] = ()
    correction: str = ""


def claims(file: Path = CLAIMS) -> list[Claim]:
    """All claims, in the order of the file."""
    read: Mapping[str, list[dict[str, str | list[str]]]] = YAML(typ="safe").load(file)
    found = []
    for paper, entries in read.items():
        for entry in entries:
            words = {key: str(value) for key, value in entry.items() if key != "by"}
            found.append(Claim(paper=paper, by=tuple(entry.get("by", ())), **words))
    return found


def missing_names(claim: Claim) -> Iterator[str]:
    """What a claim names and does not exist."""
    for name in claim.by:
        if not exists(name):
            yield name


def exists(name: str) -> bool:
    """Whether a function or module, a test, a section of a demonstration's report or a benchmark is there."""
    if found := DEMONSTRATION.fullmatch(name):
        return any(f'"{found[2]}"' in file.read_text(encoding="utf-8") for file in _pages(found[1]))
    if found := BENCHMARK.match(name):
        return (ROOT / Path(*found[1].split("."))).with_suffix(".py").is_file()
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


def page(every: list[Claim]) -> str:
    """The whole page."""
    counts = Counter(claim.status for claim in every)
    said = ", ".join(f"{counts[status]} {status}" for status in STATUS if counts[status])
    parts = [INTRODUCTION, f"\n{len(every)} claims: {said}.\n"]
    for paper, (title, own) in PAPERS.items():
        listed = [claim for claim in every if claim.paper == paper]
        parts.append(f"\n## {paper}: {title}\n\nEquation by equation: [the page of this paper]({own}).\n\n")
        parts.append("| item | claim | status | shown by | evidence |\n|---|---|---|---|---|\n")
        parts += [_row(claim) for claim in listed]
    return "".join(parts)


def _row(claim: Claim) -> str:
    status = f"{claim.status}, corrected" if claim.correction and claim.status == "holds" else claim.status
    evidence = f"Corrected: {claim.correction} {claim.evidence}" if claim.correction else claim.evidence
    by = "<br>".join(f"`{name}`" for name in claim.by) or "–"
    return f"| {claim.item} | {claim.claim} | {status} | {by} | {evidence} |\n"


if __name__ == "__main__":
    sys.stdout.write(page(claims()))
