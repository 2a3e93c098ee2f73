"""Packages that are not always installed."""

from __future__ import annotations

from veridyn.errors import DataError


def missing(package: str) -> DataError:
    """What is raised where a package is not there: which extra brings it."""
    return DataError(
        f"{package} is not installed.",
        where=f"veridyn.{package}",
        hint=f"Install the extra: pip install 'veridyn[{package}]'.",
    )
