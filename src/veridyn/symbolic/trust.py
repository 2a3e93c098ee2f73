"""Whose folders and files may be trusted with code: their owner, and who can write them.

Machine code and pickles run whatever is in them. The user's own cache must be a folder of this user that nobody else can write; a shared
one, which the user has named, may also be root's. Windows has no such modes: there the key of :mod:`veridyn.symbolic.user_key` alone
decides, and shared folders, which it does not cover, are refused.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from veridyn.errors import CacheWarning, Fault, warn

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ROOT = 0
OWN_HINT = "Change the folder's owner or mode, name another folder in VERIDYN_CACHE, or set VERIDYN_CACHE=off."
SHARED_HINT = "Change the owner or mode ('chmod -R go-w'), or name another folder in VERIDYN_SHARED_CACHE."
_refused: set[str] = set()


def refuse(fault: Fault) -> None:
    """Warn why code is not kept or not used, once in a process for each reason."""
    if str(fault) not in _refused:
        _refused.add(str(fault))
        warn(CacheWarning, fault)


def has_modes() -> bool:
    """True where files have an owner and a mode that say who can write them."""
    return hasattr(os, "geteuid")


def is_own_folder(path: Path, *, what: str, hint: str = OWN_HINT, create: bool = False) -> bool:
    """True for a folder of this user that nobody else can write; a missing one is made with mode 0700 if `create`, else False.

    The check is on the folder that the path leads to. Somebody who can write a folder above may still exchange it between the check and
    the use: the tag of each file, not this check, is what keeps foreign code from running then.
    """
    failure = ""
    if create:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            failure = error.strerror or str(error)
    try:
        status = path.stat()
    except OSError:
        if failure:
            refuse(Fault(what, str(path), "a folder that can be created", failure, hint))
        return False
    if not stat.S_ISDIR(status.st_mode):
        refuse(Fault(what, str(path), "a folder", "a file", hint))
        return False
    if has_modes() and (status.st_uid != os.geteuid() or status.st_mode & OTHERS_WRITE):
        expected = f"a folder of user {os.geteuid()} that nobody else can write (mode 0700)"
        refuse(Fault(what, str(path), expected, described(status), hint))
        return False
    return True


def is_shared_folder(path: Path) -> bool:
    """True for a folder that nobody besides root and this user can write or exchange for another."""
    fault = _shared_fault(path)
    if fault is not None:
        refuse(fault)
    return fault is None


def read_shared(path: Path) -> bytes | None:
    """The content of a file in a shared folder; None where it is missing, or where somebody besides root and this user can write it."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            content = file.read()
    except OSError:
        return None
    if not _is_safe(status):
        expected = f"a file of root or of user {os.geteuid()} that nobody else can write"
        what = "this file of the shared cache of compiled code is not used."
        refuse(Fault(what, str(path), expected, described(status), SHARED_HINT))
        return None
    return content


def described(status: os.stat_result) -> str:
    """Mode and owner, as messages give them."""
    return f"mode {stat.S_IMODE(status.st_mode):04o} of user {status.st_uid}"


def _shared_fault(path: Path) -> Fault | None:
    what = "the shared cache of compiled code is not used."
    if not has_modes():
        return Fault(what, str(path), found="a system on which the owner and mode of files cannot be checked")
    try:
        resolved = path.resolve(strict=True)
        places = [(place, place.stat()) for place in (resolved, *resolved.parents)]
    except (OSError, RuntimeError) as error:
        return Fault(what, str(path), "a folder", getattr(error, "strerror", None) or str(error), SHARED_HINT)
    if not stat.S_ISDIR(places[0][1].st_mode):
        return Fault(what, str(path), "a folder", "a file", SHARED_HINT)
    for place, status in places:
        sticky = place != resolved and status.st_mode & stat.S_ISVTX  # as /tmp, where nobody moves what others own
        if not _is_safe(status, sticky=bool(sticky)):
            expected = f"a folder of root or of user {os.geteuid()} that nobody else can write"
            return Fault(what, str(place), expected, described(status), SHARED_HINT)
    return None


def _is_safe(status: os.stat_result, *, sticky: bool = False) -> bool:
    return status.st_uid in (ROOT, os.geteuid()) and (sticky or not status.st_mode & OTHERS_WRITE)
