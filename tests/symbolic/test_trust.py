"""Folders that may be trusted with code: of the right owner, and written by nobody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from veridyn.errors import CacheWarning, Fault
from veridyn.symbolic import trust
from veridyn.symbolic.trust import is_own_folder, is_shared_folder, read_shared, refuse

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
