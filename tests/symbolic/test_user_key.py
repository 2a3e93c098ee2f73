"""The user's key: made once for all processes, secret, and refused where it is not; tags under it that nobody else can make."""

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
from veridyn.errors import CacheWarning
from veridyn.symbolic import cache, trust, user_key
from veridyn.symbolic.user_key import digest, key_folder, tag

needs_modes = pytest.mark.skipif(not trust.has_modes(), reason="files have no owner and mode here")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the key, not there yet."""
    monkeypatch.setattr(trust, "_refused", set())
    monkeypatch.setattr(user_key, "key_folder", lambda: tmp_path / "config" / "veridyn")
    return tmp_path / "config" / "veridyn"


def in_a_new_process() -> bytes | None:
    user_key._keys.clear()
    return user_key.user_key()


def test_made_once_and_read_after(config: Path) -> None:
    first = in_a_new_process()
    assert first is not None and len(first) == 32
    assert in_a_new_process() == user_key.user_key() == first
    assert [p.name for p in config.iterdir()] == [user_key.NAME]


@needs_modes
def test_only_the_user_can_read_it(config: Path) -> None:
    in_a_new_process()
    assert config.stat().st_mode & 0o777 == 0o700
    assert (config / user_key.NAME).stat().st_mode & 0o777 == 0o600


def test_two_processes_agree(tmp_path: Path) -> None:
    """Eight rounds of two processes that make a key at once: both have the same, and nothing is left beside it."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(2, mp_context=context) as pool:
        barrier = manager.Barrier(2)
        jobs = [pool.submit(key_together, str(tmp_path), 8, barrier) for _ in range(2)]
        first, second = (job.result(timeout=120) for job in jobs)
    assert first == second and len(set(first)) == 8
    assert all([p.name for p in folder.iterdir()] == [user_key.NAME] for folder in tmp_path.iterdir())


def test_the_loser_of_a_race_takes_the_winner_s(config: Path) -> None:
    config.mkdir(parents=True, mode=0o700)
    first = in_a_new_process()
    user_key._make(config / user_key.NAME)
    assert in_a_new_process() == first and len(list(config.iterdir())) == 1


def test_without_hard_links(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    first = in_a_new_process()
    assert first is not None and in_a_new_process() == first
    user_key._make(config / user_key.NAME)
    assert in_a_new_process() == first and len(list(config.iterdir())) == 1


@needs_modes
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o666])
def test_a_key_that_others_can_read_or_write_is_refused(config: Path, mode: int) -> None:
    in_a_new_process()
    (config / user_key.NAME).chmod(mode)
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
    with pytest.warns(CacheWarning, match=rf"{user_key.NAME}: .*(.|\n)*of user {owner + 1}"):
        assert user_key._read_or_make(config / user_key.NAME) is None


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_a_damaged_key_is_refused(config: Path, content: bytes) -> None:
    in_a_new_process()
    (config / user_key.NAME).write_bytes(content)
    with pytest.warns(CacheWarning, match=f"Expected 32 bytes, found {len(content)}"):
        assert in_a_new_process() is None


def test_a_folder_that_cannot_be_made(tmp_path: Path, config: Path) -> None:
    (tmp_path / "config").write_text("a file")
    with pytest.warns(CacheWarning, match="a folder that can be created"):
        assert in_a_new_process() is None


def test_a_user_without_a_home_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_refused", set())
    monkeypatch.setattr(user_key, "home", lambda: None)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("APPDATA", raising=False)
    assert key_folder() is None
    with pytest.warns(CacheWarning, match="this user has no home folder") as caught:
        assert user_key.user_key() is None and user_key.user_key() is None
    assert len(caught) == 1


def test_a_home_that_does_not_exist_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_refused", set())
    monkeypatch.setattr(user_key, "home", lambda: tmp_path / "nonexistent")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "APPDATA", "LOCALAPPDATA", cache.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    with pytest.warns(CacheWarning, match=r"no home folder.\nExpected .*, found no folder .*nonexistent"):
        assert user_key.user_key() is None
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
    assert user_key.home() is None
    monkeypatch.setenv("HOME", "here")
    assert user_key.home() is None


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
