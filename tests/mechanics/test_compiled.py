"""Compiled doors: the same function, as machine code."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import types
from numba.core import caching, compiler, config

from veridyn.errors import CacheWarning, ModelError
from veridyn.mechanics import compiled as compiling
from veridyn.mechanics.compiled import (
    Bound,
    Codes,
    Cube,
    Matrix,
    Numbers,
    Vector,
    compiled,
    core,
    inner,
    kept,
    merged,
    only_for,
    opened,
    summing,
)
from veridyn.symbolic import cache, trust
from veridyn.symbolic.cache import Stored


@core
def _square(x: float) -> float:
    return x * x


@merged
def _product(x: float, y: float) -> float:
    return x * y


@compiled
def _area(x: float, y: float) -> float:
    return _product(x, y)


@summing
def _total(values: np.ndarray) -> float:
    found = 0.0
    for value in values:
        found += _square(value)
    return found


@inner
def _rooted(values: np.ndarray) -> np.ndarray:
    if len(values) == 0:
        raise ValueError("there is nothing")
    return np.full(2, np.sqrt(_total(values)))


@compiled
def _length(values: np.ndarray) -> float:
    return _rooted(values)[1]


def test_three_levels_give_what_they_are_written_to() -> None:
    assert _length(np.array([3.0, 4.0])) == pytest.approx(5.0, rel=1e-15)
    assert _length(np.array([3, 4])) == pytest.approx(5.0, rel=1e-15)  # another signature of all of them


def test_a_merged_function_is_written_out_in_its_caller() -> None:
    assert _area(3.0, 4.0) == 12.0
    made: Any = _area
    machine_code = next(iter(made.inspect_asm().values()))
    assert not [line for line in machine_code.splitlines() if "call" in line.split("#")[0] and "_product" in line]


def test_an_error_passes_through_its_callers() -> None:
    with pytest.raises(ValueError, match="there is nothing"):
        _length(np.zeros(0))


@pytest.mark.skipif(not compiling.linked_options(), reason="not tried with this version of numba")
def test_it_has_no_machine_code_of_its_own() -> None:
    _length(np.array([3.0, 4.0]))
    for function, compiled_itself in ((_square, False), (_total, False), (_rooted, False), (_length, True)):
        overloads = function.overloads  # pyright: ignore[reportFunctionMemberAccess]
        made = next(iter(overloads.values()))
        assert (made.library._compiled_object is not None) == compiled_itself, function


def test_a_numba_that_it_was_not_tried_with_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "TRIED", ("0.1",))
    assert compiling.linked_options() == {}


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


def test_other_sources_have_other_objects(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k, digest in enumerate(("a" * 64, "b" * 64), start=1):
        monkeypatch.setattr(compiling, "source_digest", lambda _, digest=digest: digest)
        function = doubling()
        assert function(4.0) == 8.0 and hits_and_misses(function) == (0, 1) and len(list(place.iterdir())) == k


def test_other_settings_of_numba_have_other_objects(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doubling()(4.0)
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    function = doubling()
    assert function(4.0) == 8.0 and hits_and_misses(function) == (0, 1)


def test_types_of_one_name_are_not_taken_for_each_other(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.KeptCode, "_key", lambda *_: "one name")
    first, second = doubling(), doubling()
    assert first(4.0) == 8.0 and second(3) == 6.0 and hits_and_misses(second) == (0, 1)


def closure(factor: float) -> Any:
    def scaled(x: float) -> float:
        return factor * x

    scaled.__module__ = "veridyn.mechanics.compiled"
    return kept(scaled)


def outside(x: float) -> float:
    return 5.0 * x


def test_what_no_source_stands_for_is_not_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closure, a function of another package, and any function whose sources have changed since they were imported."""
    assert [closure(k)(4.0) for k in (2.0, 3.0)] == [8.0, 12.0]
    assert kept(outside)(4.0) == 20.0
    monkeypatch.setattr(compiling, "source_digest", lambda _: None)
    assert doubling()(4.0) == 8.0
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
    compiling.keep_code(outside, outside)
    assert not hasattr(outside, "_cache") and compiled(outside)(1.0) == 5.0


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


def test_threads_that_ask_at_once_find_one_function() -> None:
    """Whoever comes second waits for the code; other types are refused, not compiled for."""
    function, together = kept(lambda x: 2.0 * x), Barrier(8)

    def ask(k: int) -> float:
        together.wait()
        return float(only_for(function, (types.float64,))(float(k)))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [2.0 * k for k in range(8)]
    with pytest.raises(TypeError, match="No matching definition"):
        function(np.zeros(3))


class Inside(NamedTuple):
    scale: float
    times: int
    twice: bool
    codes: Codes


class Outer(NamedTuple):
    x: Vector
    A: Matrix
    inside: Inside
    G: Cube
    at: Numbers


class Wrong(NamedTuple):
    name: str


@compiled
def shuffle(address):
    """A small sum of every field, and a mark in two of the arrays."""
    r = opened(address, Outer)
    s = r.inside.scale * r.inside.times + r.inside.codes[1]
    if r.inside.twice:
        s *= 2.0
    for i in range(r.A.shape[0]):
        for j in range(r.A.shape[1]):
            s += r.A[i, j] * (1 + i + 10 * j)
    for k in range(r.G.shape[2]):
        s += r.G[1, 2, k] * k
    r.x[r.at[0]] = s
    r.A[1, 2] = -1.0
    return len(r.x), r.A.shape, r.G.shape


def record(twice: bool = False) -> Outer:
    rng = np.random.default_rng(0)
    inside = Inside(0.25, -3, twice, np.array([7, -5], dtype=np.int8))
    return Outer(np.zeros(4), rng.normal(size=(2, 3)), inside, rng.normal(size=(2, 3, 5)), np.array([2]))


@pytest.mark.parametrize("twice", [False, True])
def test_a_kernel_reads_and_writes_the_arrays_of_a_record(twice: bool) -> None:
    r = record(twice)
    weights = 1 + np.arange(2)[:, None] + 10 * np.arange(3)
    expected = (0.25 * -3 - 5) * (2 if twice else 1) + (r.A * weights).sum() + r.G[1, 2] @ np.arange(5)
    bound = Bound(r)
    assert shuffle(bound.address) == (4, (2, 3), (2, 3, 5))
    assert r.x == pytest.approx([0.0, 0.0, expected, 0.0]) and r.A[1, 2] == -1.0


def test_a_bound_record_travels_with_its_arrays_and_not_with_its_addresses() -> None:
    bound = Bound(record())
    again = pickle.loads(pickle.dumps(bound))
    shuffle(again.address)
    assert again.record.x[2] != 0.0 and bound.record.x[2] == 0.0


def test_what_compiled_code_could_not_read_is_refused() -> None:
    for wrong in (np.zeros((3, 2)).T, np.zeros((2, 3), dtype=np.float32), np.zeros(6), [[1.0]]):
        with pytest.raises(ModelError, match=r"Outer.A: the array cannot be handed to compiled code"):
            Bound(record()._replace(A=wrong))
    with pytest.raises(ModelError, match="neither an array of a known kind, a number nor a record"):
        Bound(Wrong("x"))
