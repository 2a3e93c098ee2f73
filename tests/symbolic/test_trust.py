"""Folders that may be trusted with code: of the right owner, and written by nobody else."""

from __future__ import annotations

import hashlib
import hmac
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from strangers.cache_writer import key_together
from veridyn.errors import CacheWarning, Fault
from veridyn.symbolic import cache, trust
from veridyn.symbolic.trust import digest, is_own_folder, is_shared_folder, key_folder, read_shared, refuse, tag

pytestmark = pytest.mark.skipif(not trust.has_modes(), reason="files have no owner and mode here")
WHAT = "code is not kept here."


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_refused", set())


def with_mode(path: Path, mode: int) -> Path:
    path.mkdir(exist_ok=True)
    path.chmod(mode)
    return path


def test_a_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    assert not is_own_folder(place, what=WHAT) and not place.exists()
    assert is_own_folder(place, what=WHAT, create=True)
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o700, 0o500, 0o755, 0o750])
def test_a_folder_that_others_only_read_is_good(tmp_path: Path, mode: int) -> None:
    assert is_own_folder(with_mode(tmp_path / "a", mode), what=WHAT, create=True)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777, 0o770])
def test_a_folder_that_others_can_write_is_refused_once(tmp_path: Path, mode: int) -> None:
    place = with_mode(tmp_path / "a", mode)
    with pytest.warns(CacheWarning, match=f"found mode {mode:04o} of user {os.geteuid()}") as caught:
        assert not any(is_own_folder(place, what=WHAT, create=create) for create in (False, True, False))
    assert len(caught) == 1
    assert str(caught[0].message).splitlines() == [
        f"{place}: {WHAT}",
        f"Expected a folder of user {os.geteuid()} that nobody else can write (mode 0700), found mode {mode:04o} of user "
        f"{os.geteuid()}. {trust.OWN_HINT}",
    ]


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(CacheWarning, match=f"a folder of user {owner + 1} .* of user {owner}"):
        assert not is_own_folder(tmp_path, what=WHAT)


def test_the_check_is_on_the_folder_that_a_link_leads_to(tmp_path: Path) -> None:
    open_to_all = with_mode(tmp_path / "open", 0o777)
    (tmp_path / "link").symlink_to(open_to_all)
    with pytest.warns(CacheWarning, match="link: code is not kept"):
        assert not is_own_folder(tmp_path / "link", what=WHAT)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.warns(CacheWarning, match="Expected a folder, found a file"):
        assert not is_own_folder(tmp_path / "file", what=WHAT, create=True)
    with pytest.warns(CacheWarning, match="a folder that can be created, found Not a directory"):
        assert not is_own_folder(tmp_path / "file" / "below", what=WHAT, create=True)


def test_without_modes_the_owner_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, where the tag of each file decides; a shared folder, which has no tag of ours, is refused."""
    monkeypatch.delattr(os, "geteuid")
    assert is_own_folder(with_mode(tmp_path / "a", 0o777), what=WHAT)
    with pytest.warns(CacheWarning, match="cannot be checked"):
        assert not is_shared_folder(tmp_path / "a")


def test_a_shared_folder_may_be_read_by_all(tmp_path: Path) -> None:
    place = with_mode(tmp_path / "a", 0o755)
    (place / "file").write_bytes(b"code")
    (place / "file").chmod(0o644)
    assert is_shared_folder(place) and read_shared(place / "file") == b"code"
    assert read_shared(place / "missing") is None


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_shared_folder_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.warns(CacheWarning, match=f"the shared cache .* is not used(.|\n)*found mode {mode:04o}"):
        assert not is_shared_folder(with_mode(tmp_path / "a", mode))


def test_nor_one_that_others_can_exchange(tmp_path: Path) -> None:
    """Who can write a folder above can put another in its place, unless that is sticky, as /tmp."""
    inner = with_mode(with_mode(tmp_path / "a", 0o777) / "b", 0o755)
    with pytest.warns(CacheWarning, match="found mode 0777"):
        assert not is_shared_folder(inner)
    (tmp_path / "a").chmod(0o1777)
    assert is_shared_folder(inner)


def test_a_shared_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"code")
    file.chmod(0o664)
    with pytest.warns(CacheWarning, match="found mode 0664"):
        assert read_shared(file) is None


def test_a_shared_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"code")
    file.chmod(0o644)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(trust, "ROOT", -1)
    with pytest.warns(CacheWarning, match=f"of user {owner}"):
        assert read_shared(file) is None
    monkeypatch.setattr(trust, "ROOT", owner)
    assert read_shared(file) == b"code"


def test_a_shared_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.warns(CacheWarning, match=r"missing: the shared cache .* is not used(.|\n)*VERIDYN_SHARED_CACHE"):
        assert not is_shared_folder(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.warns(CacheWarning, match="found a file"):
        assert not is_shared_folder(tmp_path / "file")


def test_each_reason_is_given_once() -> None:
    with pytest.warns(CacheWarning) as caught:
        _ = [refuse(Fault(what)) for what in ("one.", "two.", "one.", "two.")]
    assert [str(w.message) for w in caught] == ["one.", "two."]


needs_modes = pytest.mark.skipif(not trust.has_modes(), reason="files have no owner and mode here")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the key, not there yet."""
    monkeypatch.setattr(trust, "_refused", set())
    monkeypatch.setattr(trust, "key_folder", lambda: tmp_path / "config" / "veridyn")
    return tmp_path / "config" / "veridyn"


def in_a_new_process() -> bytes | None:
    trust._keys.clear()
    return trust.user_key()


def test_made_once_and_read_after(config: Path) -> None:
    first = in_a_new_process()
    assert first is not None and len(first) == 32
    assert in_a_new_process() == trust.user_key() == first
    assert [p.name for p in config.iterdir()] == [trust.NAME]


@needs_modes
def test_only_the_user_can_read_it(config: Path) -> None:
    in_a_new_process()
    assert config.stat().st_mode & 0o777 == 0o700
    assert (config / trust.NAME).stat().st_mode & 0o777 == 0o600


def test_two_processes_agree(tmp_path: Path) -> None:
    """Eight rounds of two processes that make a key at once: both have the same, and nothing is left beside it."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(2, mp_context=context) as pool:
        barrier = manager.Barrier(2)
        jobs = [pool.submit(key_together, str(tmp_path), 8, barrier) for _ in range(2)]
        first, second = (job.result(timeout=120) for job in jobs)
    assert first == second and len(set(first)) == 8
    assert all([p.name for p in folder.iterdir()] == [trust.NAME] for folder in tmp_path.iterdir())


def test_the_loser_of_a_race_takes_the_winner_s(config: Path) -> None:
    config.mkdir(parents=True, mode=0o700)
    first = in_a_new_process()
    trust._make(config / trust.NAME)
    assert in_a_new_process() == first and len(list(config.iterdir())) == 1


def test_without_hard_links(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    first = in_a_new_process()
    assert first is not None and in_a_new_process() == first
    trust._make(config / trust.NAME)
    assert in_a_new_process() == first and len(list(config.iterdir())) == 1


@needs_modes
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o666])
def test_a_key_that_others_can_read_or_write_is_refused(config: Path, mode: int) -> None:
    in_a_new_process()
    (config / trust.NAME).chmod(mode)
    with pytest.warns(CacheWarning, match=f"its key would not be safe(.|\n)*0600.*found mode {mode:04o}") as caught:
        assert in_a_new_process() is None and in_a_new_process() is None
    assert len(caught) == 1


@needs_modes
def test_a_key_in_a_folder_that_others_can_write_is_refused(config: Path) -> None:
    in_a_new_process()
    config.chmod(0o777)
    with pytest.warns(CacheWarning, match="its key would not be safe(.|\n)*found mode 0777"):
        assert in_a_new_process() is None


@needs_modes
def test_a_key_of_another_user_is_refused(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_new_process()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(CacheWarning, match=f"of user {owner + 1}"):
        assert in_a_new_process() is None
    with pytest.warns(CacheWarning, match=rf"{trust.NAME}: .*(.|\n)*of user {owner + 1}"):
        assert trust._read_or_make(config / trust.NAME) is None


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_a_damaged_key_is_refused(config: Path, content: bytes) -> None:
    in_a_new_process()
    (config / trust.NAME).write_bytes(content)
    with pytest.warns(CacheWarning, match=f"Expected 32 bytes, found {len(content)}"):
        assert in_a_new_process() is None


def test_a_folder_that_cannot_be_made(tmp_path: Path, config: Path) -> None:
    (tmp_path / "config").write_text("a file")
    with pytest.warns(CacheWarning, match="a folder that can be created"):
        assert in_a_new_process() is None


def test_a_user_without_a_home_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_refused", set())
    monkeypatch.setattr(trust, "home", lambda: None)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("APPDATA", raising=False)
    assert key_folder() is None
    with pytest.warns(CacheWarning, match="this user has no home folder") as caught:
        assert trust.user_key() is None and trust.user_key() is None
    assert len(caught) == 1


def test_a_home_that_does_not_exist_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_refused", set())
    monkeypatch.setattr(trust, "home", lambda: tmp_path / "nonexistent")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "APPDATA", "LOCALAPPDATA", cache.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    with pytest.warns(CacheWarning, match=r"no home folder.\nExpected .*, found no folder .*nonexistent"):
        assert trust.user_key() is None
    monkeypatch.setattr(cache, "folder", lambda: tmp_path / "nonexistent" / ".cache" / "veridyn")
    cache.keep("some-key", cache.Stored(b"code", {}))  # the one warning was given
    assert cache.load("some-key") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="homes are found otherwise")
def test_an_unknown_user_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert trust.home() is None
    monkeypatch.setenv("HOME", "here")
    assert trust.home() is None


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", ("XDG_CONFIG_HOME", "/somewhere"), "/somewhere/veridyn"),
        ("linux", ("XDG_CONFIG_HOME", "somewhere"), "/me/.config/veridyn"),
        ("linux", ("XDG_CONFIG_HOME", ""), "/me/.config/veridyn"),
        ("darwin", None, "/me/Library/Application Support/veridyn"),
        ("win32", ("APPDATA", "/Roaming"), "/Roaming/veridyn"),
        ("win32", None, "/me/AppData/Roaming/veridyn"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="written with POSIX paths")
def test_the_platform_s_place_for_settings(monkeypatch: pytest.MonkeyPatch, platform, variable, expected) -> None:
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/me")
    if variable:
        monkeypatch.setenv(*variable)
    monkeypatch.setattr(sys, "platform", platform)
    assert key_folder() == Path(expected)


def test_a_tag_covers_key_name_and_body() -> None:
    key, other = bytes(32), bytes(31) + b"\1"
    tags = {
        tag(key, "a", b"bc"),
        tag(other, "a", b"bc"),
        tag(key, "ab", b"c"),
        tag(key, "b", b"bc"),
        tag(key, "a", b"bd"),
    }
    assert len(tags) == 5 and tag(key, "a", b"bc") in tags
    text = (1).to_bytes(8, "little") + b"abc"
    assert tag(key, "a", b"bc") == hmac.new(key, text, hashlib.sha256).digest()
    assert digest("a", b"bc") == hashlib.sha256(text).digest()
