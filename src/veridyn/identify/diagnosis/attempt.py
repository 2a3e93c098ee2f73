"""Checks of a finished fit that may themselves fail: what they find, or a note that names the check and the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from numpy.linalg import LinAlgError

from veridyn.errors import VeridynError

Found = TypeVar("Found")


def attempt(name: str, check: Callable[[], Iterable[Found]], failed: list[str]) -> list[Found]:
    """What a check finds. One that cannot be carried out is noted in `failed`: the fit that it is asked of is done, and stands."""
    try:
        return list(check())
    except VeridynError as error:
        fault = error.faults[0]
        where = f"{fault.where}: " if fault.where else ""
        found = f" ({fault.found})" if fault.found else ""
        failed.append(f"{name}, because a trial failed: {where}{fault.what.rstrip('.')}{found}.")
        return []
    except LinAlgError as error:
        failed.append(f"{name}, because a decomposition failed: {error}.")
        return []
