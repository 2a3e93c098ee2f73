"""Machine code kept on disk: found by what it is made of, never what somebody else has planted."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import caching, compiler, config

from veridyn.errors import CacheWarning, ModelError
from veridyn.mechanics import kept_code
from veridyn.mechanics.compiled import compiled, fields, kept
from veridyn.symbolic import cache, trust
from veridyn.symbolic.cache import Stored

SCRIPT = """
from numba.core import compiler
made, compile_extra = [], compiler.compile_extra
compiler.compile_extra = lambda *a, **k: made.append(1) or compile_extra(*a, **k)
from veridyn.mechanics.ground import road
height = road.Bump(at=0.0, length=2.0, rise=0.1).height(1.0)
print(height, sum(road.fill_surface.stats.cache_hits.values()), bool(made))
"""
TABLE = np.zeros(2**18)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(trust, "_refused", set())
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "objects"))
    return tmp_path / "objects"


def doubling() -> Any:
    """A function of a room, kept, as a new process would define it."""

    def double(x: float) -> float:
        return 2.0 * x

    double.__module__ = "veridyn.mechanics.compiled"
    return kept(double)


def hits_and_misses(function: Any) -> tuple[int, int]:
    stats = function.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


def test_a_second_process_compiles_nothing(place: Path) -> None:
    def printed() -> list[str]:
        run = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], check=True, capture_output=True, text=True)
        return run.stdout.split()

    assert printed() == ["0.1", "0", "True"]
    assert printed() == ["0.1", "1", "False"]
    assert [p.suffix for p in place.iterdir()] == [".object"]


def test_one_object_for_each_signature(place: Path) -> None:
    first = doubling()
    assert first(4.0) == 8.0 and first(3) == 6.0
    assert hits_and_misses(first) == (0, 2) and len(list(place.iterdir())) == 2
    second = doubling()
    assert second(4.0) == 8.0 and second(3) == 6.0 and hits_and_misses(second) == (2, 0)
    assert second.stats.cache_path == str(place)


class Planted:
    """Makes a folder when it is unpickled: code of somebody else that runs."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.marker),)


def test_what_is_planted_would_run(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Planted(tmp_path / "ran")))
    assert (tmp_path / "ran").is_dir()


def signed_with_another_key(payload: bytes, name: str) -> bytes:
    return cache._packed(b"k" * 32, name, Stored(payload, {}))


def with_the_digest_alone(payload: bytes, name: str) -> bytes:
    at = len(cache.MAGIC) + cache.DIGEST_BYTES
    data = signed_with_another_key(payload, name)
    return data[:at] + bytes(cache.DIGEST_BYTES) + data[at + cache.DIGEST_BYTES :]


FORMS: dict[str, Callable[[bytes, str], bytes]] = {
    "a pickle": lambda payload, name: payload,
    "signed with another key": signed_with_another_key,
    "with the digest alone": with_the_digest_alone,
}


@pytest.mark.parametrize("form", FORMS)
def test_no_planted_object_runs(place: Path, tmp_path: Path, form: str) -> None:
    """Whoever can write into the cache, in whatever form: the file is replaced, and nothing in it has run."""
    doubling()(4.0)
    (file,) = place.iterdir()
    file.write_bytes(FORMS[form](pickle.dumps(Planted(tmp_path / "ran")), file.name))
    again = doubling()
    assert again(4.0) == 8.0 and hits_and_misses(again) == (0, 1)
    assert not (tmp_path / "ran").exists()
    third = doubling()
    assert third(4.0) == 8.0 and hits_and_misses(third) == (1, 0)


def test_no_planted_index_of_numba_runs(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickle in the place where numba itself would look for this function's index."""
    monkeypatch.setattr(config, "CACHE_DIR", str(place))
    index = Path(caching.FunctionCache(doubling().py_func)._cache_file._index_path)
    assert place in index.parents
    place.chmod(0o700)
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_bytes(pickle.dumps(Planted(tmp_path / "ran")))
    assert doubling()(4.0) == 8.0
    assert not (tmp_path / "ran").exists()


def test_a_good_object_of_another_function_is_refused(place: Path) -> None:
    def triple(x: float) -> float:
        return 3.0 * x

    triple.__module__ = "veridyn.mechanics.compiled"
    doubling()(4.0)
    (file,) = place.iterdir()
    kept(triple)(4.0)
    (other,) = set(place.iterdir()) - {file}
    file.write_bytes(other.read_bytes())
    again = doubling()
    assert again(4.0) == 8.0 and hits_and_misses(again) == (0, 1)


def test_other_code_has_other_objects(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k, digest in enumerate(("a" * 64, "b" * 64), start=1):
        monkeypatch.setattr(kept_code, "code_digest", lambda *_, digest=digest: digest)
        function = doubling()
        assert function(4.0) == 8.0 and hits_and_misses(function) == (0, 1) and len(list(place.iterdir())) == k


def test_what_cannot_be_described_is_an_error(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No source stands for it: the function is named, compiled or not."""
    monkeypatch.setitem(globals(), "TABLE", [object()])

    def looked_up(k: int) -> int:
        return len(TABLE) + k

    looked_up.__module__ = "veridyn.mechanics.compiled"
    with pytest.raises(ModelError) as error:
        kept(looked_up)(4)
    assert "looked_up" in error.value.faults[0].where and not place.exists()


IMPORTED = """
import gc, importlib, pkgutil
import veridyn
for module in pkgutil.walk_packages(veridyn.__path__, "veridyn."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except (ImportError, veridyn.errors.DataError) as error:  # torch and jax are extras
            assert module.name.startswith(("veridyn.training.torch", "veridyn.training.jax")), (module.name, error)
from veridyn.mechanics.code_digest import code_digest
from veridyn.mechanics.kept_code import KeptCode
kept = {id(x): x for x in gc.get_objects() if type(x) is KeptCode}.values()
for x in kept:
    assert x._function.__closure__ is None, x._function
    assert len(code_digest(x._function, x._fields_of)) == 64
    print(f"{x._function.__module__}.{x._function.__qualname__}")
"""


def test_every_kept_function_of_the_package_can_be_described() -> None:
    """In a process that imports every module; a function that cannot be described is an error that names it."""
    run = subprocess.run([sys.executable, "-c", IMPORTED], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    names = run.stdout.split()
    sources = Path(kept_code.__file__).parents[1].rglob("*.py")
    decorated = sum(len(re.findall(r"^@kept$", source.read_text(encoding="utf-8"), re.M)) for source in sources)
    assert len(set(names)) == len(names) >= decorated > 0
    assert {"veridyn.mechanics.ground.road.fill_surface", "veridyn.observe.filters.tree_step.tree_steps"} <= set(names)


def test_how_code_is_compiled_counts(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doubling()(4.0)
    meaning = kept_code.source_meaning
    monkeypatch.setattr(kept_code, "source_meaning", lambda name: meaning(name) + "changed")
    function = doubling()
    assert function(4.0) == 8.0 and hits_and_misses(function) == (0, 1)


def test_other_settings_of_numba_have_other_objects(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doubling()(4.0)
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    function = doubling()
    assert function(4.0) == 8.0 and hits_and_misses(function) == (0, 1)


def test_types_of_one_name_are_not_taken_for_each_other(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_code.KeptCode, "_key", lambda *_: "one name")
    first, second = doubling(), doubling()
    assert first(4.0) == 8.0 and second(3) == 6.0 and hits_and_misses(second) == (0, 1)


def closure(factor: float) -> Any:
    def scaled(x: float) -> float:
        return factor * x

    scaled.__module__ = "veridyn.mechanics.compiled"
    return kept(scaled)


def outside(x: float) -> float:
    return 5.0 * x


def test_what_no_source_stands_for_is_not_kept(place: Path) -> None:
    """A closure, and a function of another package."""
    assert [closure(k)(4.0) for k in (2.0, 3.0)] == [8.0, 12.0]
    assert kept(outside)(4.0) == 20.0
    assert not place.exists()


def test_code_that_cannot_be_kept_is_named(place: Path) -> None:
    def looked_up(k: int) -> float:
        return TABLE[k]

    looked_up.__module__ = "veridyn.mechanics.compiled"
    with pytest.warns(CacheWarning, match="looked_up: the machine code of this function cannot be kept"):
        assert kept(looked_up)(4) == 0.0
    assert not place.exists()


def test_without_a_folder_a_function_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, "off")
    function = doubling()
    assert function(3.0) == 6.0 and function.stats.cache_path is None


def test_a_numba_that_lacks_what_is_needed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(compiler.CompileResult, "_rebuild")
    assert doubling()(4.0) == 8.0
    assert not place.exists()


def test_numba_s_own_doors_still_work(place: Path) -> None:
    """recompile() compiles; a disabled cache neither loads nor keeps; without numba's compiler there is nothing to keep."""
    function = doubling()
    function(4.0)
    for file in place.iterdir():
        file.unlink()
    function.recompile()
    assert function(4.0) == 8.0 and hits_and_misses(function) == (0, 2) and list(place.iterdir()) == []
    other = doubling()
    other._cache.disable()
    assert other(4.0) == 8.0 and list(place.iterdir()) == []
    other._cache.enable()
    assert other(3) == 6.0 and len(list(place.iterdir())) == 1
    kept_code.keep_code(outside, outside, fields)
    assert not hasattr(outside, "_cache") and compiled(outside)(1.0) == 5.0
