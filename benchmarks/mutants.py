"""Do tests notice a changed line? ``make mutants``, or ``python -m benchmarks.mutants [--count 300] [--seed 1] [--only FILE]``.

Of the statistics of estimates and the updates of filters single operators, comparisons, constants and signs are changed, one at a time, as
many as `--count` draws; machine code, which Python references judge, is left out. A change is noticed where a test of the file of the same
name (``test_NAME.py``, ``test_NAME_*.py``) fails, or does not end. Each runs in a process of its own that stops at the first failure, and
knows the change from an import hook: no file is written. First the tests run without a change, which leaves compiled code in the user's
cache; with a change it is read from there, and what is compiled is thrown away. Changes that are not noticed are printed; those that change
nothing are listed with the reason in ``benchmarks/equivalent_mutants.txt``, and are not counted.

Hundreds take an hour of one core, and ``--workers N`` tries N at a time. No outcome depends on the others, on their order or on how busy
the machine is: what does not end is known by the processor's time that it takes. With ``--results FILE`` each outcome is written down at
once, and the next call goes on from there, after ``--minutes`` or an interruption. ``--again`` tries those once more that were not noticed,
when tests have been written for them.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.util
import json
import math
import multiprocessing
import os
import pkgutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from veridyn.symbolic.cache import SHARED_VARIABLE, VARIABLE, folder

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
TARGETS = {  # below src/veridyn → below tests
    "identify/statistics": ("spectral",),
    "inference": (
        "agreement",
        "autoregression",
        "lag_window",
        "noise_spectrum",
        "posterior",
        "quadratic",
        "residual_problem",
    ),
    "identify/estimators": ("coloured", "gauss_markov", "least_squares", "robust"),
    "observe/filters": ("update", "robust_gate", "methods", "run"),
    "observe/consistency": ("nis",),
}
# What numba compiles is read from the cache with whatever calls it, so no change of it would run; Python references judge it.
MACHINE_CODE = {"compiled", "core", "inner", "kept", "merged", "summing"}
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
# Imported once, before any change: none of these imports a target, because imports go down the floors only.
HEAVY = (
    "numpy",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.signal",
    "scipy.stats",
    "numba",
    "pytest",
    "hypothesis.strategies",
)
BELOW = ("spatial", "symbolic", "model", "mechanics", "signals")  # rooms of veridyn
LONGEST_S = 20.0  # of CPU beyond ten times what the tests take without a change: then the change is noticed by that
UNCHANGED_S = 600.0  # of CPU for the tests of a file without a change
WAITING = 3.0  # by the clock, per second of CPU that is allowed: beyond it the tests wait for something


@dataclass(frozen=True)
class Mutant:
    """One change of one file: bytes `start` to `end` become `text`."""

    module: str
    file: Path
    tests: tuple[Path, ...]
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


def mutants(module: str, file: Path, tests: tuple[Path, ...]) -> Iterator[Mutant]:
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
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
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
            if any(_name(d) in MACHINE_CODE for d in node.decorator_list):
                continue
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


@dataclass(frozen=True)
class Trial:
    """The tests of one file, with one change or with none, and the CPU seconds that they may take."""

    tests: tuple[Path, ...]
    mutant: Mutant | None
    limit: float


def _tested(trial: Trial, shared: Path | None, took: Any) -> None:
    """In a process of its own: the tests up to the first failure; exit code 0 where all pass."""
    import resource  # there is none on Windows, where nothing can be forked either

    import pytest

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(trial.limit), resource.getrlimit(resource.RLIMIT_CPU)[1]))
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    early = "ignore::pytest.PytestAssertRewriteWarning"  # what is imported already is not rewritten: no harm
    words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", early, *map(str, trial.tests)]
    if trial.mutant is None:
        code = pytest.main(words)
    else:
        sys.meta_path.insert(0, Changed(trial.mutant))
        with tempfile.TemporaryDirectory() as cache:  # its own: code made with a change may be taken for code without
            if shared is not None and shared.is_dir():
                os.environ[SHARED_VARIABLE] = str(shared)
            os.environ[VARIABLE] = cache
            code = pytest.main(words)
    took.send(time.process_time())
    os._exit(int(code))


@dataclass(frozen=True)
class Running:
    """A trial in its process."""

    trial: Trial
    process: BaseProcess
    took: Any  # the end of a pipe where the CPU seconds arrive
    end: float  # by the clock

    @classmethod
    def started(cls, trial: Trial) -> Running:
        took, told = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=_tested, args=(trial, folder(), told))
        process.start()
        told.close()
        return cls(trial, process, took, time.monotonic() + WAITING * math.ceil(trial.limit))

    def is_over(self) -> bool:
        """Whether the process has ended; one that waits for too long is ended here."""
        if self.process.is_alive() and time.monotonic() > self.end:
            self.process.kill()
            self.process.join()
        return not self.process.is_alive()

    def outcome(self) -> tuple[str, float]:
        """ "passes", "fails" or "does not end", and the CPU seconds; NaN where it was stopped."""
        self.process.join()
        stopped = self.process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        with self.took, suppress(EOFError):  # of a process that did not come to its end
            return ("passes" if self.process.exitcode == 0 else "fails"), float(self.took.recv())
        return ("does not end" if stopped else "fails"), math.nan


def outcomes(trials: Iterable[Trial], workers: int = 1) -> Iterator[tuple[Trial, str, float]]:
    """Trials with what came of them and their CPU seconds, as they end, `workers` at a time."""
    waiting = iter(trials)
    running: list[Running] = []
    try:
        while True:
            while len(running) < workers and (trial := next(waiting, None)) is not None:
                running.append(Running.started(trial))
            if not running:
                return
            wait([r.process.sentinel for r in running], max(0.0, min(r.end for r in running) - time.monotonic()))
            over = [r for r in running if r.is_over()]
            running = [r for r in running if r not in over]
            for each in over:
                yield each.trial, *each.outcome()
    finally:
        for each in running:
            each.process.kill()
            each.process.join()


def listed() -> dict[str, str]:
    """Changes that change nothing → why."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.is_file() else []
    pairs = (line.partition("  --  ") for line in lines if line.strip() and not line.startswith("#"))
    return {words.strip(): why.strip() for words, _, why in pairs}


def every() -> list[Mutant]:
    """All changes of the targets."""
    found = []
    for room, names in TARGETS.items():
        for name in names:
            file, folder_of_tests = ROOT / "src/veridyn" / room / f"{name}.py", ROOT / "tests" / room
            tests = [folder_of_tests / f"test_{name}.py", *sorted(folder_of_tests.glob(f"test_{name}_*.py"))]
            found += mutants(f"veridyn.{room.replace('/', '.')}.{name}", file, tuple(tests))
    return found


def _named(file: Path, only: Sequence[str]) -> bool:
    return not only or any(word in str(file) for word in only)


def import_what_stays() -> None:
    """What every test would import again, and no change reaches."""
    for name in HEAVY:
        importlib.import_module(name)
    for room in BELOW:
        for module in pkgutil.walk_packages([str(ROOT / "src/veridyn" / room)], f"veridyn.{room}."):
            importlib.import_module(module.name)
    reached = [m.module for m in every() if m.module in sys.modules]
    assert not reached, reached


def recorded(path: Path | None) -> dict[str, str]:
    """Outcomes of earlier calls by line and words of the change; the last of each counts."""
    if path is None or not path.is_file():
        return {}
    return dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def known(mutant: Mutant) -> str:
    """By what the outcome of a change is written down: two lines of one file may read alike."""
    return f"line {mutant.line}: {mutant.words}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Count changes of statistics and filters that their tests notice.")
    parser.add_argument("--count", type=int, default=300, help="changes that are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="files, by a part of their path")
    parser.add_argument("--workers", type=int, default=1, help="changes that are tried at a time")
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after so long, and say how many were tried")
    parser.add_argument("--results", type=Path, help="where outcomes are kept, and read by the next call")
    parser.add_argument("--again", action="store_true", help="try once more what was not noticed")
    given = parser.parse_args()
    import_what_stays()
    equivalent, population = listed(), every()
    drawn = [population[k] for k in np.random.default_rng(given.seed).permutation(len(population))[: given.count]]
    chosen = [m for m in drawn if m.words not in equivalent and _named(m.file, given.only)]
    found = recorded(given.results)
    settled = {k for k, said in found.items() if not (given.again and said == "passes")}
    for mutant, said in tried([m for m in chosen if known(m) not in settled], 60.0 * given.minutes, given.workers):
        found[known(mutant)] = said
        if given.results is not None:
            with given.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps([known(mutant), said]) + "\n")
    # What `--again` had no time for stays as it was: else every change that was not noticed would be left out of the share.
    print(report([(m, found[known(m)]) for m in chosen if known(m) in found]))
    left_out = f"without {len(drawn) - len(chosen)} that are equivalent or not asked for"
    print(f"{len(chosen)} of {len(population)} changes drawn by seed {given.seed}, {left_out}")


def tried(waiting: Sequence[Mutant], seconds: float, workers: int = 1) -> Iterator[tuple[Mutant, str]]:
    """Changes with what came of them, `workers` at a time; none is begun when the time is over."""
    end = time.monotonic() + seconds
    usual = {}
    unchanged = [Trial(tests, None, UNCHANGED_S) for tests in dict.fromkeys(m.tests for m in waiting)]
    for trial, said, took in outcomes(unchanged, workers):
        if said != "passes":
            raise SystemExit(f"{', '.join(str(t.relative_to(ROOT)) for t in trial.tests)} {said} without any change")
        usual[trial.tests] = took

    def in_time() -> Iterator[Trial]:  # as drawn: where the time ends, those that were tried are a fair sample
        for mutant in waiting:
            if time.monotonic() > end:
                return
            yield Trial(mutant.tests, mutant, LONGEST_S + 10.0 * usual[mutant.tests])

    for trial, said, _ in outcomes(in_time(), workers):
        if trial.mutant is not None:
            yield trial.mutant, said


def report(found: Sequence[tuple[Mutant, str]]) -> str:
    """What was not noticed, and how many were, file by file and in all."""
    lines = [f"not noticed, {known(mutant)}" for mutant, said in found if said == "passes"]
    counts: dict[str, list[int]] = {}
    for mutant, said in found:
        of_file = counts.setdefault(str(mutant.file.relative_to(ROOT / "src/veridyn")), [0, 0])
        of_file[0] += said != "passes"
        of_file[1] += 1
    rows = [f"| {name} | {c[0]} | {c[1]} |" for name, c in sorted(counts.items())]
    killed = sum(c[0] for c in counts.values())
    share = f"{killed} of {len(found)} changes noticed, {100 * killed / max(len(found), 1):.0f} %"
    return "\n".join([*lines, "", "| file | noticed | of |", "|---|---:|---:|", *rows, share])


if __name__ == "__main__":
    main()
