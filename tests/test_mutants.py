"""The sampler of changed lines: what it changes and what it leaves alone, and that a change reaches the tests."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.mutants import TARGETS, Changed, Mutant, every, listed, mutants

SOURCE = '''"""Words: 1 + 1."""

from veridyn.errors import Fault

LIMIT = 0.5


def area(a: float, b: int = 2) -> float:
    """Not 3 * 4."""
    if a < LIMIT and not b == 1:
        raise ValueError(f"{a + 1}", Fault("2 of 3", expected=1 + 1))
    return -(a * b) ** 2


def core(function):
    return function


@core
def compiled(a):
    return a + 7
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "shape.py"
    made.write_text(SOURCE, encoding="utf-8")
    return made


def test_what_computes_is_changed_and_words_are_not(file: Path) -> None:
    lines = {m.source().decode().splitlines()[m.line - 1].strip() for m in mutants("shape", file, (file,))}
    assert lines == {
        "LIMIT = 1.0",
        "def area(a: float, b: int = 3) -> float:",
        "if a >= LIMIT and not b == 1:",
        "if a < LIMIT or not b == 1:",
        "if a < LIMIT and  b == 1:",
        "if a < LIMIT and not b != 1:",
        "if a < LIMIT and not b == 2:",
        "return (a * b) ** 2",
        "return -(a / b) ** 2",
        "return -(a * b) * 2",
        "return -(a * b) ** 3",
    }


def test_a_change_is_what_is_imported_and_the_file_stays(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (changed,) = (m for m in mutants("shape", file, (file,)) if m.text == "/")
    monkeypatch.setattr(sys, "meta_path", [Changed(changed), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "shape", raising=False)
    module = importlib.import_module("shape")
    monkeypatch.delitem(sys.modules, "shape")
    assert module.area(6.0, 3) == -4.0
    assert file.read_text(encoding="utf-8") == SOURCE


def test_every_change_of_the_targets_is_a_program_and_each_has_its_tests() -> None:
    found: list[Mutant] = every()
    assert len({m.file for m in found}) == sum(map(len, TARGETS.values()))
    assert all(t.is_file() for m in found for t in m.tests)
    assert {t.name for m in found for t in m.tests if m.file.stem == "methods"} == {
        "test_methods.py",
        "test_methods_ukf.py",
    }
    for mutant in found[::23]:
        compile(mutant.source(), mutant.file.name, "exec")


def test_changes_that_are_listed_as_equivalent_exist_and_have_reasons() -> None:
    words = {m.words for m in every()}
    assert listed().keys() <= words
    assert all(listed().values())


TRIALS = """
import sys
from pathlib import Path
from benchmarks.mutants import Trial, mutants, outcomes

folder = Path(sys.argv[1])
bodies = {"passes": "pass", "fails": "assert 1 == 2", "endless": "while True: pass"}
trials = []
for name, body in bodies.items():
    tests = folder / f"test_{name}.py"
    tests.write_text(f"def test_it():\\n    {body}\\n", encoding="utf-8")
    trials.append(Trial((tests,), None, 60.0 if name != "endless" else 1.0))
tests = folder / "test_noticed.py"
tests.write_text("def test_it():\\n    import shape_tried\\n    assert shape_tried.area(6.0, 3) == -324.0\\n", encoding="utf-8")
changed = mutants("shape_tried", folder / "shape_tried.py", (tests,))
trials += [Trial((tests,), m, 60.0) for m in changed if m.source().count(b"(a / b)") or m.source().count(b"b: int = 3")]
for t, said, _ in outcomes(trials, workers=3):
    print(t.tests[0].stem, t.mutant.text if t.mutant else "-", said)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="trials are processes that are forked")
def test_trials_that_run_together_have_each_its_own_outcome(file: Path) -> None:
    """Tests that pass, that fail, that compute without end; a change that is noticed, and one that is not.

    In a process of its own, as the command is: what is forked from one with threads may wait for a lock that nobody holds.
    """
    file.rename(file.with_name("shape_tried.py"))  # no other test imports it by this name
    words = [sys.executable, "-W", "ignore", "-c", TRIALS, str(file.parent)]
    root = Path(__file__).parents[1]
    done = subprocess.run(words, cwd=root, check=True, capture_output=True, text=True, timeout=600)
    assert set(done.stdout.splitlines()) == {
        "test_passes - passes",
        "test_fails - fails",
        "test_endless - does not end",
        "test_noticed / fails",
        "test_noticed 3 passes",
    }
