"""What the rows of ``docs/papers/claims.yaml`` are, and how the status of each follows from tests and numbers.

A row has one of three kinds.

- ``equation``: names a test and the deviation that the test asserts. It holds, or is refuted where the test shows the print to be wrong.
- ``result``: names a command, its seeds, and figures, each with what the paper printed and the interval that follows from that. Its status
  follows from the figures of all seeds: holds (all inside), refuted (all outside), partly, open (numbers are missing).
- ``background``: nothing of it is computed here, and it counts for nothing.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
CLAIMS = ROOT / "docs" / "papers" / "claims.yaml"
RESULTS = CLAIMS.with_suffix(".json")
STATUS = ("holds", "refuted", "partly", "open", "background")
KINDS = ("equation", "result", "background")
LEAST_SEEDS = 5
APPROX_DEFAULT = 1e-6  # relative, of pytest.approx without a tolerance
Interval = tuple[float, float]


@dataclass(frozen=True)
class Figure:
    """A number of a run: `name` is file#key, `printed` what the paper has, `within` what follows from that, and `why`."""

    name: str
    printed: str
    within: Interval
    why: str

    @property
    def key(self) -> str:
        return self.name.partition("#")[2]

    def holds(self, value: float) -> bool:
        return self.within[0] <= value <= self.within[1]


@dataclass(frozen=True)
class Claim:
    """One claim of a paper: item and claim, its kind, what shows it, and the evidence in words."""

    paper: str
    item: str
    claim: str
    kind: str
    evidence: str
    by: tuple[str, ...] = ()
    correction: str = ""
    test: str = ""
    deviation: float = math.nan
    refutes: bool = False
    command: str = ""
    seeds: tuple[int, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that the row names."""
        command = self.command.partition(" --")[0]
        return (*((self.test,) if self.test else ()), *((command,) if command else ()), *self.by)

    def run(self, seed: int) -> str:
        """The command of one seed; ``{out}`` stays."""
        return self.command.replace("{seed}", str(seed))


@dataclass(frozen=True)
class Done:
    """What one run gave: minutes of one processor, and its figures."""

    minutes: float
    figures: Mapping[str, float]


Runs = Mapping[str, Done]  # command, with its seed → what it gave


def claims(file: Path = CLAIMS) -> list[Claim]:
    """All claims, in the order of the file."""
    read: Mapping[str, list[dict[str, Any]]] = YAML(typ="safe").load(file)
    return [_claim(paper, entry) for paper, entries in read.items() for entry in entries]


def _claim(paper: str, entry: Mapping[str, Any]) -> Claim:
    words = {
        key: str(entry[key])
        for key in ("item", "claim", "kind", "evidence", "correction", "test", "command")
        if key in entry
    }
    figures = tuple(
        Figure(
            str(f["figure"]), str(f["printed"]), (_end(f["within"][0], -1.0), _end(f["within"][1], 1.0)), str(f["why"])
        )
        for f in entry.get("figures", ())
    )
    return Claim(
        paper=paper,
        by=tuple(entry.get("by", ())),
        deviation=float(entry.get("deviation", math.nan)),
        refutes=bool(entry.get("refutes", False)),
        seeds=_seeds(str(entry.get("seeds", ""))),
        figures=figures,
        **words,
    )


def _end(value: float | None, side: float) -> float:
    return side * math.inf if value is None else float(value)


def _seeds(text: str) -> tuple[int, ...]:
    first, _, last = text.partition("-")
    return tuple(range(int(first), int(last or first) + 1)) if text else ()


def results(file: Path = RESULTS) -> dict[str, Done]:
    """The runs of a result file; none where there is no file."""
    if not file.is_file():
        return {}
    read = json.loads(file.read_text(encoding="utf-8"))["runs"]
    return {run: Done(float(one["minutes"]), one["figures"]) for run, one in read.items()}


def values(claim: Claim, figure: Figure, runs: Runs) -> list[float]:
    """Of one figure, of those seeds that have it."""
    found = [runs[run].figures.get(figure.key, math.nan) for run in map(claim.run, claim.seeds) if run in runs]
    return [x for x in found if not math.isnan(x)]


def status(claim: Claim, runs: Runs) -> str:
    """By rule; a spread that crosses the end of an interval is no more than partly."""
    if claim.kind == "background":
        return "background"
    if claim.kind == "equation":
        return "refuted" if claim.refutes else "holds"
    inside: list[bool] = []
    for figure in claim.figures:
        found = values(claim, figure, runs)
        if len(found) < max(LEAST_SEEDS, len(claim.seeds)):
            return "open"
        inside += map(figure.holds, found)
    return "holds" if all(inside) else "partly" if any(inside) else "refuted"


def minutes(claim: Claim, runs: Runs) -> float:
    """Of all seeds of a row; a run that several rows share counts in each."""
    return sum(runs[run].minutes for run in map(claim.run, claim.seeds) if run in runs)


def faults(claim: Claim) -> Iterator[str]:
    """What a row lacks, or has and should not."""
    if claim.kind not in KINDS:
        yield f"kind is '{claim.kind}'; expected {', '.join(KINDS)}"
    for word in ("item", "claim", "evidence"):
        if not getattr(claim, word):
            yield f"no {word}"
    is_equation, is_result = claim.kind == "equation", claim.kind == "result"
    if is_equation != bool(claim.test) or is_equation == math.isnan(claim.deviation):
        yield "an equation, and nothing else, names a test and a deviation"
    if is_result != bool(claim.command) or is_result != bool(claim.figures):
        yield "a result, and nothing else, has a command and figures"
    if claim.refutes and not is_equation:
        yield "a result is refuted by its numbers"
    if is_result:
        yield from _faults_of_result(claim)


def _faults_of_result(claim: Claim) -> Iterator[str]:
    if len(claim.seeds) < LEAST_SEEDS:
        yield f"{len(claim.seeds)} seeds; at least {LEAST_SEEDS} show a spread"
    for place in ("{seed}", "{out}"):
        if place not in claim.command:
            yield f"the command has no {place}"
    for figure in claim.figures:
        if not figure.name.partition("#")[0] or not figure.key or not figure.printed or not figure.why:
            yield f"figure '{figure.name}' is file#key, with what is printed and why its interval follows from that"
        if not figure.within[0] < figure.within[1]:
            yield f"figure '{figure.name}': its interval is empty"


def source_of_test(name: str) -> tuple[ast.Module, ast.FunctionDef] | None:
    """The module and the function of a test that is named as ``tests/file.py::test``."""
    file, _, test = name.partition("::")
    path = ROOT / file
    if not path.is_file():
        return None
    module = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == test:
            return module, node
    return None


def asserted(name: str) -> tuple[set[float], bool]:
    """The tolerances that a test states, and whether it asserts something exactly.

    Tolerances are numbers in its assertions and in those of the functions of its module that it calls, values of the module's constants
    that stand there, and cases of its parameters; a number near one, as in ``0.95 < x < 1.05``, is also its distance from one.
    """
    found = source_of_test(name)
    if found is None:
        return set(), False
    module, test = found
    constants, functions = _definitions(module)
    numbers: set[float] = set()
    exact = False
    called = [functions[c] for c in sorted(_names(test)) if c in functions and c != test.name]
    for statement in _assertions([test, *called]):
        numbers |= set(_numbers(statement, constants))
        exact = exact or _is_exact(statement)
    for decorator in test.decorator_list:
        numbers |= set(_numbers(decorator, constants))
    return numbers | {round(abs(1.0 - x), 12) for x in numbers if 0.5 < x < 1.5}, exact


def asserts(name: str, deviation: float) -> bool:
    """Whether a test asserts this deviation; 0 where it asserts equality."""
    numbers, exact = asserted(name)
    return exact if deviation == 0.0 else any(math.isclose(deviation, x, rel_tol=1e-9) for x in numbers)


def _definitions(module: ast.Module) -> tuple[dict[str, float], dict[str, ast.FunctionDef]]:
    constants, functions = {}, {}
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = node
        elif isinstance(node, ast.Assign):
            for target, value in _assigned(node):
                if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                    constants[target] = float(value.value)
    return constants, functions


def _assigned(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for t, v in zip(target.elts, node.value.elts, strict=False):
                if isinstance(t, ast.Name):
                    yield t.id, v


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _assertions(functions: Sequence[ast.FunctionDef]) -> Iterator[ast.AST]:
    for function in functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                yield node.test
            elif isinstance(node, ast.Call) and "assert" in ast.unparse(node.func):
                yield node


def _numbers(node: ast.AST, constants: Mapping[str, float]) -> Iterator[float]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, int | float) and not isinstance(part.value, bool):
            yield float(part.value)
        elif isinstance(part, ast.Name) and part.id in constants:
            yield constants[part.id]
        elif isinstance(part, ast.Call) and ast.unparse(part.func).endswith("approx") and not part.keywords:
            yield APPROX_DEFAULT


def _is_exact(statement: ast.AST) -> bool:
    """Whether an assertion has an equality, a membership or a truth in it that no tolerance softens."""
    for part in ast.walk(statement):
        if isinstance(part, ast.Compare) and "approx" not in ast.unparse(part):
            if any(isinstance(op, ast.Eq | ast.In | ast.NotIn | ast.Is) for op in part.ops):
                return True
            if any(isinstance(c, ast.Constant) and c.value == 0.0 for c in part.comparators):
                return True
    return "array_equal" in ast.unparse(statement) or isinstance(statement, ast.UnaryOp | ast.Call)
