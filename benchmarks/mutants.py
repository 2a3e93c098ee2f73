"""Do tests notice a changed line? ``make mutants``, or ``python -m benchmarks.mutants [--count 300] [--seed 1] [--only FILE]``.

Of the statistics of estimates and the updates of filters single operators, comparisons, constants and signs are changed, one at a time, as
many as `--count` draws. A change is noticed where a test of the file of the same name fails, or does not end. Each runs in a process of its
own that stops at the first failure, one after the other, and knows the change from an import hook: no file is written. Compiled code is
read from the user's cache and written to a folder that is thrown away. Those that are not noticed are printed; those that change nothing
are listed with the reason in ``benchmarks/equivalent_mutants.txt``, and are not counted.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.util
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

import numpy as np

from veridyn.symbolic.cache import SHARED_VARIABLE, VARIABLE, folder

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
TARGETS = {  # below src/veridyn → below tests
    "identify/statistics": ("agreement", "autoregression", "noise_spectrum", "spectral"),
    "identify/estimators": ("coloured", "least_squares", "noise_model", "robust"),
    "observe/filters": ("update", "robust_gate", "linear", "ukf", "smoother"),
    "observe/consistency": ("nis",),
}
SWAPPED = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.MatMult: ("@", "*"),
    ast.Pow: ("**", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
HEAVY = ("numpy", "scipy.linalg", "scipy.optimize", "scipy.signal", "scipy.stats", "numba", "pytest")
LONGEST_S = 20.0  # beyond ten times what the tests take without a change: then the change is noticed by that


@dataclass(frozen=True)
class Mutant:
    """One change of one file: bytes `start` to `end` become `text`."""

    module: str
    file: Path
    tests: Path
    line: int
    start: int
    end: int
    text: str

    def source(self) -> bytes:
        whole = self.file.read_bytes()
        return whole[: self.start] + self.text.encode() + whole[self.end :]

    @property
    def words(self) -> str:
        """The file and the line before and after, by which it is known whatever its number."""
        before = self.file.read_text(encoding="utf-8").splitlines()[self.line - 1].strip()
        after = self.source().decode().splitlines()[self.line - 1].strip()
        return f"{self.file.relative_to(ROOT / 'src' / 'veridyn')}: {before}  ->  {after}"


def mutants(module: str, file: Path, tests: Path) -> Iterator[Mutant]:
    """Every change of a file that is known here; words, types, messages and settings of arrays are left alone."""
    whole = file.read_bytes()
    starts = [0]
    for line in whole.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + column

    def made(node: ast.expr, start: int, end: int, text: str) -> Mutant:
        line = 1 + whole[:start].count(b"\n")
        return Mutant(module, file, tests, line, start, end, text)

    for node in _computing(ast.parse(whole)):
        first = place(node.lineno, node.col_offset)
        last = place(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        pairs: list[tuple[ast.expr, ast.AST, ast.expr]] = []
        if isinstance(node, ast.BinOp):
            pairs = [(node.left, node.op, node.right)]
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            pairs = [(node.left, node.ops[0], node.comparators[0])]
        elif isinstance(node, ast.BoolOp):
            pairs = [(node.values[0], node.op, node.values[1])]
        for left, op, right in pairs:
            if type(op) in SWAPPED:
                old, new = SWAPPED[type(op)]
                start = place(left.end_lineno or 0, left.end_col_offset or 0)
                between = whole[start : place(right.lineno, right.col_offset)]
                at = between.find(old.encode())
                if at >= 0 and b"#" not in between:
                    yield made(node, start + at, start + at + len(old), new)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            yield made(node, first, first + (1 if isinstance(node.op, ast.USub) else len("not")), "")
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            value = node.value + 1 if isinstance(node.value, int) else 2.0 * node.value or 1.0
            yield made(node, first, last, repr(value))


def _computing(tree: ast.Module) -> Iterator[ast.expr]:
    """Expressions that compute: no docstrings, annotations, decorators, messages, shapes or keywords such as `axis`."""
    passed = (ast.Raise, ast.JoinedStr, ast.Assert)
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, passed) or (isinstance(node, ast.Call) and _name(node.func) in ("Fault", "warn", "finfo")):
            continue
        if isinstance(node, ast.FunctionDef):
            waiting += [*node.body, *node.args.defaults, *(d for d in node.args.kw_defaults if d)]
            continue
        if isinstance(node, ast.AnnAssign):
            waiting += [node.value] if node.value else []
            continue
        if isinstance(node, ast.ClassDef):
            waiting += node.body
            continue
        if isinstance(node, ast.keyword) and node.arg in ("axis", "axis1", "axis2", "keepdims", "maxsize", "dtype"):
            continue
        if isinstance(node, ast.expr):
            yield node
        waiting += ast.iter_child_nodes(node)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Gives one module another source; all others are found as ever."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, fullname: str, path: object = None, target: object = None):
        if fullname != self.mutant.module:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=str(self.mutant.file))

    def get_source(self, fullname: str) -> str:
        return self.mutant.source().decode()

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.mutant.source(), str(self.mutant.file), "exec")


def _tested(tests: Path, mutant: Mutant | None) -> None:
    """In a process of its own: the tests of one file up to the first failure; exit code 0 where all pass."""
    import pytest

    if mutant is not None:
        sys.meta_path.insert(0, Changed(mutant))
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tests)])))


def outcome(tests: Path, mutant: Mutant | None, longest: float) -> tuple[str, float]:
    """ "passes", "fails" or "does not end", and the seconds."""
    process = multiprocessing.get_context("fork").Process(target=_tested, args=(tests, mutant))
    begun = time.perf_counter()
    process.start()
    process.join(longest)
    took = time.perf_counter() - begun
    if process.is_alive():
        process.kill()
        process.join()
        return "does not end", took
    return ("passes" if process.exitcode == 0 else "fails"), took


def listed() -> dict[str, str]:
    """Changes that change nothing → why."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.is_file() else []
    pairs = (line.partition("  --  ") for line in lines if line.strip() and not line.startswith("#"))
    return {words.strip(): why.strip() for words, _, why in pairs}


def every(only: Sequence[str] = ()) -> list[Mutant]:
    """All changes of the targets, or of those whose path holds one of `only`."""
    found = []
    for room, names in TARGETS.items():
        for name in names:
            file, tests = ROOT / "src/veridyn" / room / f"{name}.py", ROOT / "tests" / room / f"test_{name}.py"
            if not only or any(word in str(file) for word in only):
                found += mutants(f"veridyn.{room.replace('/', '.')}.{name}", file, tests)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Count changes of statistics and filters that their tests notice.")
    parser.add_argument("--count", type=int, default=300, help="changes that are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="files, by a part of their path")
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after so long, and say how many were tried")
    given = parser.parse_args()
    for name in HEAVY:
        importlib.import_module(name)
    known, population = listed(), every(given.only)
    drawn = np.random.default_rng(given.seed).permutation(len(population))[: given.count]
    end = time.monotonic() + 60.0 * given.minutes
    usual: dict[Path, float] = {}
    counts: dict[Path, list[int]] = {}
    alive = []
    with tempfile.TemporaryDirectory() as cache:
        own = folder()
        if own is not None:
            os.environ[SHARED_VARIABLE] = str(own)  # is read, and never written
        os.environ[VARIABLE] = cache
        for number, k in enumerate(drawn, 1):
            mutant = population[k]
            if mutant.words in known:
                continue
            if mutant.tests not in usual:
                said, usual[mutant.tests] = outcome(mutant.tests, None, 600.0)
                if said != "passes":
                    raise SystemExit(f"{mutant.tests.relative_to(ROOT)} {said} without any change")
            if time.monotonic() > end:
                break
            said, _ = outcome(mutant.tests, mutant, LONGEST_S + 10.0 * usual[mutant.tests])
            noticed = counts.setdefault(mutant.file, [0, 0])
            noticed[0] += said != "passes"
            noticed[1] += 1
            if said == "passes":
                alive.append(mutant)
                print(f"{number}: not noticed, line {mutant.line}: {mutant.words}", flush=True)
    print(f"\n| file | noticed | of |\n|---|---:|---:|\n{table(counts)}")
    killed, tried = (sum(c[j] for c in counts.values()) for j in (0, 1))
    print(
        f"{killed} of {tried} changes noticed, {100 * killed / max(tried, 1):.0f} %; {len(population)} in all, seed {given.seed}"
    )


def table(counts: dict[Path, list[int]]) -> str:
    rows = sorted((str(f.relative_to(ROOT / "src/veridyn")), c) for f, c in counts.items())
    return "\n".join(f"| {name} | {c[0]} | {c[1]} |" for name, c in rows)


if __name__ == "__main__":
    main()
