"""Compiled doors: the same function, kept on disk for the next process, and never across a change of the sources."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import veridyn
from veridyn.mechanics.compiled import compiled, core, kept
from veridyn.symbolic import cache

SCRIPT = """
from veridyn.mechanics.ground import road
print(road.Bump(at=0.0, length=2.0, rise=0.1).height(1.0), sum(road._over_arrays.stats.cache_hits.values()))
"""


def double(x: float) -> float:
    return 2.0 * x


def test_a_compiled_function_is_the_one_it_was_written_as() -> None:
    for made in (compiled(double), kept(double)):
        assert made(4.0) == 8.0
    assert np.isinf(compiled(_inverse)(0.0))


def _inverse(x: float) -> float:
    return 1.0 / x


@core
def _twice_in_place(x: np.ndarray) -> None:
    for i in range(len(x)):
        x[i] *= 2.0


@compiled
def _twice(x: np.ndarray) -> None:
    _twice_in_place(x)


def test_a_core_is_called_by_compiled_code_alone() -> None:
    x = np.arange(3.0)
    _twice(x)
    assert x.tolist() == [0.0, 2.0, 4.0]


def test_a_second_process_finds_what_the_first_compiled(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VERIDYN_CACHE", str(tmp_path))

    def told() -> str:
        return subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True).stdout.strip()

    assert told() == "0.1 0"
    assert told() == "0.1 1"
    assert [p.name.split("-")[0] for p in tmp_path.iterdir()] == ["compiled"]


def test_other_sources_have_another_folder(tmp_path, monkeypatch) -> None:
    package = tmp_path / "veridyn"
    (package / "symbolic").mkdir(parents=True)
    (package / "mechanics").mkdir()
    source = package / "mechanics" / "a.py"
    source.write_text("x = 1\n")
    monkeypatch.setattr(cache, "__file__", str(package / "symbolic" / "cache.py"))
    monkeypatch.setenv("VERIDYN_CACHE", str(tmp_path / "objects"))
    of = cache.folder_of_sources.__wrapped__
    first = of()
    assert first == of() and first.parent == tmp_path / "objects"
    source.write_text("x = 2\n")
    second = of()
    assert second != first
    (package / "report").mkdir()
    (package / "report" / "b.py").write_text("y = 1\n")
    assert of() == second
    monkeypatch.setenv("VERIDYN_CACHE", "off")
    assert of() is None


def test_without_a_folder_a_function_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veridyn.mechanics.compiled.folder_of_sources", lambda: None)
    assert kept(double)(3.0) == 6.0


def test_compiled_functions_stand_only_where_their_digest_looks() -> None:
    package = Path(veridyn.__file__).parent
    users = {
        p.relative_to(package).parts[0]
        for p in package.rglob("*.py")
        if "mechanics.compiled import" in p.read_text("utf-8")
    }
    assert users and not users & cache.NEVER_COMPILED
