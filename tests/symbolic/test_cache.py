"""Objects on disk: made once, loaded ever after, whole whatever happens to the files, and never those that somebody else has planted."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from strangers.cache_writer import write_together
from veridyn.errors import CacheWarning
from veridyn.symbolic import cache, trust
from veridyn.symbolic.cache import (
    Stored,
    folder,
    is_remembered,
    key_of,
    load_or_make,
    remembered,
)
from veridyn.symbolic.sources import FORMAT, PACKAGE

STORED = Stored(bytes(range(256)) * 40, {"labels": [[0, 1], [2, 3]], "samples": ["q.0", "s.é"], "places": 7})


class Maker:
    """Makes an object and counts how often it had to."""

    def __init__(self, stored: Stored = STORED) -> None:
        self.stored, self.calls = stored, 0

    def __call__(self) -> Stored:
        self.calls += 1
        return self.stored


needs_modes = pytest.mark.skipif(not trust.has_modes(), reason="files have no owner and mode here")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_refused", set())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "objects"))
    return tmp_path / "objects"


def test_made_once_and_loaded_after(place: Path) -> None:
    make = Maker()
    first, second = load_or_make("a", make), load_or_make("a", make)
    assert make.calls == 1
    assert first == second == STORED
    assert [p.name for p in place.iterdir()] == ["a.object"]


def test_keys_are_separate(place: Path) -> None:
    load_or_make("a", Maker())
    other = Maker(Stored(b"other", {}))
    assert load_or_make("b", other) == other.stored and other.calls == 1
    assert load_or_make("a", other) == STORED


def test_a_key_names_all_its_parts() -> None:
    assert key_of("a", "b") == key_of("a", "b")
    assert len({key_of("a", "b"), key_of("ab"), key_of("b", "a"), key_of("a", "b", ""), key_of("", "a", "b")}) == 5
    assert key_of("µ").isalnum()


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped_in_the_code(data: bytes) -> bytes:
    return data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]


def flipped_in_the_tag(data: bytes) -> bytes:
    at = len(cache.MAGIC) + cache.DIGEST_BYTES + 3
    return data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :]


def flipped_in_the_length(data: bytes) -> bytes:
    at = len(cache.MAGIC) + 2 * cache.DIGEST_BYTES
    return data[:at] + bytes([data[at] ^ 2]) + data[at + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": truncated,
    "one byte short": lambda data: data[:-1],
    "one byte more": lambda data: data + b"\0",
    "a bit of the code": flipped_in_the_code,
    "a bit of the tag": flipped_in_the_tag,
    "a bit of the length": flipped_in_the_length,
    "empty": lambda data: b"",
    "the first word only": lambda data: data[: len(cache.MAGIC)],
    "garbage": lambda data: bytes(reversed(data)),
    "of another version": lambda data: data.replace(b"object 2", b"object 0", 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_again(place: Path, damage: str) -> None:
    load_or_make("a", Maker())
    file = place / "a.object"
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[damage](whole))
    make = Maker()
    assert load_or_make("a", make) == STORED and make.calls == 1
    assert file.read_bytes() == whole
    assert load_or_make("a", make) == STORED and make.calls == 1


FOREIGN = Stored(b"foreign code", {"planted": True})


def forged(key: bytes, name: str) -> bytes:
    """A file as veridyn writes it, by somebody with this key."""
    return cache._packed(key, name, FOREIGN)


def of_the_first_format(_: Path) -> bytes:
    """Without a tag: the digest of what is in it was all that a file had to show."""
    body = forged(bytes(32), "a.object")[len(cache.MAGIC) + 2 * cache.DIGEST_BYTES :]
    return b"veridyn object 1\n" + hashlib.sha256(body).digest() + body


def renamed(place: Path) -> bytes:
    """A good file of this user, which belongs to another key."""
    load_or_make("b", Maker(FOREIGN))
    return (place / "b.object").read_bytes()


FORGERIES: dict[str, Callable[[Path], bytes]] = {
    "signed with another key": lambda _: forged(b"k" * 32, "a.object"),
    "signed with an empty key": lambda _: forged(b"", "a.object"),
    "of the first format": of_the_first_format,
    "a good file of another name": renamed,
    "without a tag": lambda _: flipped_in_the_tag(forged(bytes(32), "a.object")),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_planted_file_is_made_again(place: Path, forgery: str) -> None:
    load_or_make("a", Maker())
    whole = (place / "a.object").read_bytes()
    (place / "a.object").write_bytes(FORGERIES[forgery](place))
    make = Maker()
    assert load_or_make("a", make) == STORED and make.calls == 1
    assert (place / "a.object").read_bytes() == whole


def test_with_the_right_key_it_would_have_been_loaded(place: Path) -> None:
    """The forgeries above fail by their key and name, not by their form."""
    load_or_make("a", Maker())
    key = trust.user_key()
    assert key is not None
    (place / "a.object").write_bytes(forged(key, "a.object"))
    assert load_or_make("a", Maker()) == FOREIGN


@needs_modes
@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_can_write_is_not_used(place: Path, mode: int) -> None:
    """Neither read nor written, though the file there is a good one; one warning."""
    load_or_make("a", Maker())
    place.chmod(mode)
    make = Maker()
    with pytest.warns(CacheWarning, match=f"objects: compiled code is not kept(.|\n)*found mode {mode:04o}") as caught:
        assert [load_or_make(name, make) for name in ("a", "b", "a")] == [STORED] * 3 and make.calls == 3
    assert len(caught) == 1 and [p.name for p in place.iterdir()] == ["a.object"] and not is_remembered("a")


@needs_modes
def test_a_folder_of_another_user_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_or_make("a", Maker())
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    make = Maker()
    with pytest.warns(CacheWarning, match=f"found mode 0700 of user {owner}") as caught:
        assert load_or_make("a", make) == STORED and make.calls == 1
    assert len(caught) == 1


@needs_modes
def test_the_folder_is_made_for_this_user_alone(place: Path) -> None:
    load_or_make("a", Maker())
    assert place.stat().st_mode & 0o777 == 0o700 and (place / "a.object").stat().st_mode & 0o777 == 0o600


def test_without_a_key_nothing_is_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "user_key", lambda: None)
    make = Maker()
    assert [load_or_make("a", make) for _ in range(2)] == [STORED] * 2 and make.calls == 2
    assert list(place.iterdir()) == []


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (cache.VARIABLE, "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for module in (cache, trust):
        monkeypatch.setattr(module, "home", lambda: None)
    make = Maker()
    with pytest.warns(CacheWarning, match="this user has no home folder") as caught:
        assert [load_or_make("a", make) for _ in range(2)] == [STORED] * 2 and make.calls == 2
    assert len(caught) == 1 and not is_remembered("a")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the object "a" that an administrator with another key has filled and opened for reading."""
    found = tmp_path / "shared"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache.VARIABLE, str(found))
        patch.setattr(cache, "user_key", lambda: b"administrator" * 2)
        load_or_make("a", Maker())
    found.chmod(0o755)
    (found / "a.object").chmod(0o644)
    monkeypatch.setenv(cache.SHARED_VARIABLE, str(found))
    return found


@needs_modes
def test_a_shared_cache_is_read_and_never_written(place: Path, shared: Path) -> None:
    make = Maker()
    assert is_remembered("a") and load_or_make("a", make) == STORED and make.calls == 0
    assert not place.exists()
    assert load_or_make("b", make) == STORED and make.calls == 1
    assert [p.name for p in place.iterdir()] == ["b.object"] and [p.name for p in shared.iterdir()] == ["a.object"]


@needs_modes
def test_a_shared_cache_serves_where_nothing_is_kept(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, "off")
    assert load_or_make("a", make := Maker()) == STORED and make.calls == 0


@needs_modes
def test_a_shared_cache_that_others_can_write_is_not_used(place: Path, shared: Path) -> None:
    shared.chmod(0o775)
    make = Maker()
    with pytest.warns(CacheWarning, match="the shared cache of compiled code is not used") as caught:
        assert load_or_make("a", make) == STORED and make.calls == 1
    assert len(caught) == 1
    shared.chmod(0o755)
    (shared / "b.object").write_bytes(forged(b"k" * 32, "b.object"))
    (shared / "b.object").chmod(0o666)
    with pytest.warns(CacheWarning, match="this file of the shared cache"):
        assert load_or_make("b", make) == STORED and make.calls == 2


@needs_modes
@pytest.mark.parametrize("damage", sorted(DAMAGES.keys() - {"a bit of the tag"}))
def test_a_damaged_file_of_a_shared_cache_is_left_alone(place: Path, shared: Path, damage: str) -> None:
    """The tag is under a key that this user does not have; the digest shows the damage."""
    damaged = DAMAGES[damage]((shared / "a.object").read_bytes())
    (shared / "a.object").write_bytes(damaged)
    make = Maker()
    assert [load_or_make("a", make) for _ in range(2)] == [STORED] * 2 and make.calls == 1
    assert (shared / "a.object").read_bytes() == damaged and (place / "a.object").exists()


def test_two_processes_leave_one_whole_file(tmp_path: Path) -> None:
    """Eight rounds of two processes that write one key at once and lose it in between: never half a file, nothing left behind."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(2, mp_context=context) as pool:
        barrier = manager.Barrier(2)
        jobs = [pool.submit(write_together, str(tmp_path), who, 8, barrier) for who in (0, 1)]
        assert [job.result(timeout=120) for job in jobs] == [True, True]
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"round{k}.object" for k in range(8)]


def test_off_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.VARIABLE, "Off")
    make = Maker()
    assert folder() is None
    assert [load_or_make("a", make) for _ in range(2)] == [STORED] * 2 and make.calls == 2
    assert not is_remembered("a") and list(tmp_path.iterdir()) == []


def unwritable(tmp_path: Path) -> dict[str, Path]:
    file = tmp_path / "a file"
    file.write_text("no folder")
    return {"below a file": file / "objects", "a file": file, "a name too long": tmp_path / ("x" * 300)}


@pytest.mark.parametrize("kind", ["below a file", "a file", "a name too long"])
def test_a_folder_that_cannot_be_written_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(unwritable(tmp_path)[kind]))
    make = Maker()
    with pytest.warns(CacheWarning, match="compiled code is not kept in this folder") as caught:
        assert [load_or_make("a", make) for _ in range(2)] == [STORED] * 2 and make.calls == 2
    assert len(caught) == 1
    assert is_remembered("a") is False


def test_a_folder_without_permission_costs_time_only(place: Path) -> None:
    place.mkdir(mode=0o700)
    place.chmod(0o500)
    if os.access(place, os.W_OK):
        pytest.skip("this user may write anywhere")
    make = Maker()
    assert load_or_make("a", make) == STORED and make.calls == 1
    place.chmod(0o000)
    assert load_or_make("a", make) == STORED and not is_remembered("a")
    place.chmod(0o700)


def test_the_oldest_files_go_when_there_are_too_many(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for three: the fourth sends the one away that was not used for longest."""
    load_or_make("0", Maker())
    size = (place / "0.object").stat().st_size
    monkeypatch.setattr(cache, "LIMIT", 3 * size + 10)
    monkeypatch.setattr(cache, "LOOK_AGAIN", 0)
    for k, used in ((0, 500), (1, 100), (2, 300)):
        load_or_make(str(k), Maker())
        os.utime(place / f"{k}.object", (used, used))
    load_or_make("3", Maker())
    assert sorted(p.stem for p in place.iterdir()) == ["0", "2", "3"]
    load_or_make("4", Maker())
    assert sorted(p.stem for p in place.iterdir()) == ["0", "3", "4"]


def test_the_folder_is_looked_through_once_for_many_small_files(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_or_make("0", Maker())
    size = (place / "0.object").stat().st_size
    monkeypatch.setattr(cache, "LIMIT", 2 * size)
    monkeypatch.setattr(cache, "LOOK_AGAIN", 5 * size)
    left = []
    for k in range(1, 8):
        load_or_make(str(k), Maker())
        left.append(len(list(place.iterdir())))
    assert left == [2, 3, 4, 5, 6, 2, 3]


def test_an_object_larger_than_the_folder_still_works(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 10)
    make = Maker()
    assert [load_or_make("a", make) for _ in range(2)] == [STORED] * 2 and make.calls == 2


def test_other_files_of_the_folder_are_left_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.mkdir(mode=0o700)
    (place / "notes.txt").write_text("mine")
    monkeypatch.setattr(cache, "LIMIT", 10)
    load_or_make("a", Maker())
    assert [p.name for p in place.iterdir()] == ["notes.txt"]


def test_what_a_killed_process_left_is_swept_out(place: Path) -> None:
    """A temporary file that nobody writes any more goes; one of this moment, which somebody may be writing, stays."""
    place.mkdir(mode=0o700)
    for name, age in (("old.part", 10 * cache.ABANDONED), ("new.part", 0.0)):
        (place / name).write_bytes(b"half")
        then = (place / name).stat().st_mtime - age
        os.utime(place / name, (then, then))
    load_or_make("a", Maker())
    assert sorted(p.name for p in place.iterdir()) == ["a.object", "new.part"]


def test_remembered_in_this_process(place: Path) -> None:
    made: list[int] = []
    for _ in range(3):
        assert remembered("test_cache: a word", lambda: made.append(1) or "kept") == "kept"
    assert made == [1]
    assert is_remembered("test_cache: a word") and not is_remembered("test_cache: another")
    load_or_make("on disk", Maker())
    assert is_remembered("on disk")


def test_what_fails_is_not_remembered(place: Path) -> None:
    def fail() -> str:
        raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        remembered("test_cache: fails", fail)
    assert remembered("test_cache: fails", lambda: "now") == "now"


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", ("XDG_CACHE_HOME", "/somewhere"), "/somewhere/veridyn"),
        ("linux", ("XDG_CACHE_HOME", ""), "/.cache/veridyn"),
        ("linux", None, "/.cache/veridyn"),
        ("darwin", None, "Library/Caches/veridyn"),
        ("win32", ("LOCALAPPDATA", "/Local"), "/Local/veridyn/objects"),
    ],
)
def test_the_platform_s_place_for_caches(monkeypatch: pytest.MonkeyPatch, platform, variable, expected) -> None:
    for name in (cache.VARIABLE, "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(*variable)
    monkeypatch.setattr(sys, "platform", platform)
    assert folder().as_posix().endswith(expected)


PROGRAM = """
    import sys
    import numpy as np
    from veridyn.mechanics.tree.dynamics import engine
    from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
    from veridyn.model.graph import Body
    from veridyn.model.motion import Motion
    from veridyn.mechanics.tree.tree import Tree

    compiling = []
    make = engine.compile_object
    engine.compile_object = lambda *a: compiling.append(1) or make(*a)
    tree = Tree.build([Body("1"), Body("2", "1", "sliding")], inertia={k: [1, 0, 0, 1, 0, 1, 0, 0, 0, 2] for k in "12"})
    x = np.linspace(0.0, 1.0, 10).reshape(5, 2)
    gamma = inverse_dynamics(tree, Motion(np.arange(5.0), x, x, x), engine=sys.argv[1])
    print(len(compiling), gamma.tobytes().hex())
"""


def test_a_second_process_compiles_nothing(place: Path) -> None:
    """The first compiles; the second, and one whose engine is "auto" with five samples, load; damage is made good by a fourth."""

    def run(engine: str) -> list[str]:
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), engine]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
        return done.stdout.split()

    first = run("compiled")
    meanings = f"{key_of(FORMAT, PACKAGE.as_posix())}.object"
    files = [file for file in place.iterdir() if file.name != meanings]
    assert first[0] == "1" and len(files) == 1
    assert run("compiled") == ["0", first[1]]
    assert run("auto") == ["0", first[1]]
    files[0].write_bytes(files[0].read_bytes()[:-100])
    assert run("compiled") == first
