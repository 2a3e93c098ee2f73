"""Whose folders and files may be trusted with code: their owner, who can write them, and a tag under the user's secret key.

Machine code and pickles run whatever is in them. The user's own cache must be a folder of this user that nobody else can write; a shared
one, which the user has named, may also be root's. Windows has no such modes: there the key alone
decides, and shared folders, which it does not cover, are refused.

The user's secret key is 32 random bytes in the user's own folder for settings, which only the user can read. A file is run only if its
tag, the HMAC-SHA256 of its name and body under this key, is right; who can write into the cache but cannot read the key cannot make one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import sys
import tempfile
from pathlib import Path

from veridyn.errors import CacheWarning, Fault, warn

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ROOT = 0
OWN_HINT = "Change the folder's owner or mode, name another folder in VERIDYN_CACHE, or set VERIDYN_CACHE=off."
SHARED_HINT = "Change the owner or mode ('chmod -R go-w'), or name another folder in VERIDYN_SHARED_CACHE."
_refused: set[str] = set()
NAME = "cache.key"
SIZE_BYTES = 32
OTHERS_ANY = stat.S_IRWXG | stat.S_IRWXO
NOT_SAFE = "compiled code is not kept on disk: its key would not be safe here."
HINT = "Change its owner or mode, or remove it and a new one is made; VERIDYN_CACHE=off keeps nothing."
_keys: dict[Path, bytes] = {}


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


def home() -> Path | None:
    """The user's home folder; None where there is none, as for an unknown user in a container."""
    try:
        found = Path.home()
    except RuntimeError:
        return None
    return found if found.is_absolute() else None


def is_below_missing_home(place: Path) -> bool:
    """Whether a place could only be made together with the home folder itself, which is not for a program to make."""
    own = home()
    return own is not None and place.is_relative_to(own) and not own.exists()


def user_folder(variable: str, *below_home: str) -> Path | None:
    """The folder that an environment variable names if its path is absolute, else one below the user's home."""
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():
        return named
    own = home()
    return None if own is None else own.joinpath(*below_home)


def key_folder() -> Path | None:
    """The user's own folder for settings, where the key is; None without a home."""
    if sys.platform == "win32":
        base = user_folder("APPDATA", "AppData", "Roaming")
    elif sys.platform == "darwin":
        own = home()
        base = None if own is None else own / "Library" / "Application Support"
    else:
        base = user_folder("XDG_CONFIG_HOME", ".config")
    return None if base is None else base / "veridyn"


def user_key() -> bytes | None:
    """The key of this user, made at the first call; None, with a warning, where there is no place where it is safe."""
    folder = key_folder()
    if folder is None or is_below_missing_home(folder):
        refuse_without_home()
        return None
    if folder not in _keys:
        if not is_own_folder(folder, what=NOT_SAFE, hint=HINT, create=True):
            return None
        found = _read_or_make(folder / NAME)
        if found is None:
            return None
        _keys[folder] = found
    return _keys[folder]


def refuse_without_home() -> None:
    """Warn, once, that this user has no folder to keep anything in."""
    own = home()
    refuse(
        Fault(
            "compiled code is not kept on disk: this user has no home folder.",
            expected="a folder for the code and one for the key that protects it",
            found="" if own is None else f"no folder {own}",
            hint="Set HOME to a folder of this user, or VERIDYN_CACHE=off to keep nothing without this warning.",
        )
    )


def digest(name: str, body: bytes) -> bytes:
    """SHA-256 of a file's name and body: shows damage."""
    return hashlib.sha256(_text(name, body)).digest()


def tag(key: bytes, name: str, body: bytes) -> bytes:
    """HMAC-SHA256 of a file's name and body: shows forgery, and a good file under the name of another."""
    return hmac.digest(key, _text(name, body), "sha256")


def _text(name: str, body: bytes) -> bytes:
    encoded = name.encode()
    return len(encoded).to_bytes(8, "little") + encoded + body


def _read_or_make(path: Path) -> bytes | None:
    try:
        if not path.exists():
            _make(path)
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            key = file.read(SIZE_BYTES + 1)
    except OSError as error:
        refuse(Fault(NOT_SAFE, str(path), "a file that can be written and read", error.strerror or str(error), HINT))
        return None
    if has_modes() and (status.st_uid != os.geteuid() or status.st_mode & OTHERS_ANY):
        expected = f"a file of user {os.geteuid()} that nobody else can read or write (mode 0600)"
        refuse(Fault(NOT_SAFE, str(path), expected, described(status), HINT))
        return None
    if len(key) != SIZE_BYTES:
        refuse(Fault(NOT_SAFE, str(path), f"{SIZE_BYTES} bytes", str(status.st_size), HINT))
        return None
    return key


def _make(path: Path) -> None:
    """Write a new key, unless another process does so first: the first one stays, and it appears whole."""
    key = secrets.token_bytes(SIZE_BYTES)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{NAME}.")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(key)
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError:  # no hard links on this file system: exclusive all the same, though not whole at once
        _write_exclusively(path, key)
    finally:
        Path(temporary).unlink()


def _write_exclusively(path: Path, key: bytes) -> None:
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600)
    except FileExistsError:
        return
    with os.fdopen(handle, "wb") as file:
        file.write(key)
