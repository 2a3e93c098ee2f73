"""Progress as a thing that is passed in: the floors below never print, they only tell.

A function that takes long accepts ``progress=`` and calls it with what it does, how much is done and how much there is.
The command line passes a bar; a program may pass any callable; nobody needs to pass anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Called with a short description, the amount done and the total (None where it is not known)."""

    def __call__(self, task: str, done: float, total: float | None) -> None: ...


def silent(task: str, done: float, total: float | None) -> None:
    """The default: tell nobody."""


def tracked(items: Iterable[T], task: str, progress: Progress) -> Iterator[T]:
    """Yield the items, telling `progress` after each one is dealt with."""
    total = float(len(items)) if isinstance(items, Sized) else None
    done = 0
    progress(task, 0.0, total)
    for item in items:
        yield item
        done += 1
        progress(task, float(done), total)
