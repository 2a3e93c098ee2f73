"""The one family of errors: what is wrong, where, what was expected, what was found, what to try.

A model or a log is checked whole. Each fault found is a :class:`Fault`; all of them travel in one exception,
so that a user mends a file in one pass. Warnings have the same grammar and a family of their own.

Examples
--------
>>> import veridyn as vd
>>> error = vd.errors.ModelError("it has no mass.", where="body 'rod'", expected="a mass above 0 kg", found="0")
>>> print(error)
body 'rod': it has no mass.
Expected a mass above 0 kg, found 0.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

At = tuple[str | int, ...]
MOST_COMPARED = 500  # names in which a nearest spelling is looked for: the time of a fault does not grow with the model
DECORATORS = (
    "veridyn.arguments",
    "veridyn.settings",
    "veridyn.mechanics.tree.of_machine",
)  # whose wrappers stand around verbs
ALIKE = 4  # faults that say the same of so many places or more are shown as one
LISTED = 8  # places that are named where many are alike


class PartWords(str):
    """A part of a description in words, "body 'arm'", that carries the keys of the place: ("body", "arm").

    It passes through every function that takes a `where`; a :class:`Fault` keeps both.
    """

    at: At

    def __new__(cls, words: str, at: At) -> PartWords:
        made = super().__new__(cls, words)
        made.at = at
        return made


def part_at(word: str, name: str | None = None) -> PartWords:
    """The part called `name` of the kind `word`, or the section `word` itself: "body 'arm'", "gravity"."""
    return PartWords(word, (word,)) if name is None else PartWords(f"{word} '{name}'", (word, name))


def within(where: str, what: str) -> str:
    """A place inside another: "body 'arm', marker"; its keys are those of `where` and `what`."""
    words = f"{where}, {what}"
    return PartWords(words, (*where.at, what)) if isinstance(where, PartWords) else words


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, in the words of the user's own file.

    Sentences carry their own full stop except `expected` and `found`, which are phrases. `at` is the place as keys, for code: the parts of
    a description ("body", "arm"), a column ("column", "speed"), settings ("filter", "gate"). It is taken from `where` where that is a
    :class:`PartWords`.
    """

    what: str
    where: str = ""
    expected: str = ""
    found: str = ""
    hint: str = ""
    line: int | None = None
    at: At = ()

    def __post_init__(self) -> None:
        if isinstance(self.where, PartWords):
            object.__setattr__(self, "at", self.at or self.where.at)
            object.__setattr__(self, "where", str.__str__(self.where))

    def __str__(self) -> str:
        place = self.where
        if self.line is not None:
            place = f"{place} (line {self.line})" if place else f"line {self.line}"
        head = f"{place}: {self.what}" if place else self.what
        tail = []
        if self.expected:
            tail.append(f"Expected {self.expected}" + (f", found {self.found}." if self.found else "."))
        elif self.found:
            tail.append(f"Found {self.found}.")
        if self.hint:
            tail.append(self.hint)
        return head + ("\n" + " ".join(tail) if tail else "")


def merged_faults(faults: Sequence[Fault]) -> list[Fault]:
    """The same faults for a reader: those that say the same of at least `ALIKE` places are one, with their count and the places.

    Those on lines of their own stay, because each is to be mended there.
    """
    alike: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in faults:
        alike.setdefault((fault.what, fault.expected, fault.hint), []).append(fault)
    shown = []
    for same in alike.values():
        lines = {fault.line for fault in same}
        if len(same) < ALIKE or len(lines) > 1 or not all(fault.where for fault in same):
            shown += [(faults.index(fault), fault) for fault in same]
            continue
        places = f"{len(same)} places ({shortened([fault.where for fault in same])})"
        found = shortened(list(dict.fromkeys(fault.found for fault in same if fault.found)))
        shown.append((faults.index(same[0]), replace(same[0], where=places, found=found)))
    return [fault for _, fault in sorted(shown, key=lambda item: item[0])]


def shortened(names: Sequence[str], most: int = LISTED) -> str:
    """Names side by side, at most so many: the first ones and the last."""
    return ", ".join(names if len(names) <= most else (*names[: most - 1], "…", names[-1]))


class VeridynError(Exception):
    """Base of all errors raised on purpose by veridyn; `faults` lists everything that was found wrong.

    One fault may be given in words, with its `where`, `expected`, `found` and `hint` beside it.

    Examples
    --------
    >>> import veridyn as vd
    >>> try:
    ...     vd.load_model("robot.yml")
    ... except vd.VeridynError as error:
    ...     print(error.faults[0].what)
    there is no such file.
    """

    def __init__(
        self,
        faults: Fault | str | Iterable[Fault],
        source: str = "",
        *,
        where: str = "",
        expected: str = "",
        found: str = "",
        hint: str = "",
    ) -> None:
        if isinstance(faults, str):
            faults = Fault(faults, where, expected, found, hint)
        self.faults: tuple[Fault, ...] = (faults,) if isinstance(faults, Fault) else tuple(faults)
        self.source = source
        super().__init__(self._render())

    def _render(self) -> str:
        head = f"{self.source}, " if self.source else ""
        shown = merged_faults(self.faults)
        if len(shown) == 1:
            return head + str(shown[0])
        listed = "\n".join(f"{i}. {fault}" for i, fault in enumerate(shown, 1))
        return f"{head}{len(self.faults)} faults:\n{listed}"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Rebuild from faults and source, so that an error raised in a worker process arrives whole."""
        return type(self), (self.faults, self.source)


class ModelError(VeridynError):
    """A machine's description contradicts itself or physics."""


class Limit(NamedTuple):
    """Why a formulation has not what is asked of it, and what has it."""

    reason: str
    instead: str


class CapabilityError(ModelError):
    """A formulation of a machine has not what is asked of it, by physics or mathematics or because it is not built; something else has.

    `formulation`: its word. `asked`: what is asked for, as a noun. `reason`: why it is not there. `instead`: what has it.

    Examples
    --------
    >>> from veridyn.errors import CapabilityError
    >>> raise CapabilityError("natural", "base parameters", "its equations hold multipliers", "Use formulation: tree.")
    Traceback (most recent call last):
        ...
    veridyn.errors.CapabilityError: formulation natural has no base parameters: its equations hold multipliers.
    Use formulation: tree.
    """

    def __init__(
        self,
        formulation: str,
        asked: str,
        reason: str,
        instead: str,
        faults: Sequence[Fault] = (),
        source: str = "",
        *,
        where: str = "",
        found: str = "",
    ) -> None:
        """`faults`: the places where it is asked for, in place of the one sentence that the rest makes."""
        self.formulation, self.asked, self.reason, self.instead = formulation, asked, reason, instead
        what = f"formulation {formulation} has no {asked}: {reason}."
        super().__init__(faults or [Fault(what, where, found=found, hint=instead)], source)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        own = (self.formulation, self.asked, self.reason, self.instead)
        return type(self), (*own, self.faults, self.source)


class DataError(VeridynError):
    """A measurement, motion or array has the wrong shape, clock, unit or content."""


class FileError(VeridynError):
    """A file cannot be read as what it should be."""


class IdentificationError(VeridynError):
    """The data do not allow the estimate."""


class SimulationError(VeridynError):
    """An integration did not reach its end."""


class DeviceError(VeridynError):
    """A processor that was asked for is missing, does not answer, or has too little memory."""


class VeridynWarning(UserWarning):
    """Base of all warnings; the result stands, and the user should know this about it."""


class ModelWarning(VeridynWarning):
    """Something about a machine's description that was handled, or that limits what follows."""


class DataWarning(VeridynWarning):
    """Something about a measurement that was handled, or that limits what follows."""


class IdentificationWarning(VeridynWarning):
    """Something about an estimate that limits what may be concluded from it."""


class ReportWarning(VeridynWarning):
    """A picture of a report, or the report itself, could not be made; the result stands."""


class CacheWarning(VeridynWarning):
    """Compiled code is not kept on disk, or what was kept is not used; it is compiled again, which costs time."""


@dataclass
class Faults:
    """A collector: add what is wrong while checking, raise once at the end."""

    found: list[Fault] = field(default_factory=list)

    def add(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        found: str = "",
        hint: str = "",
        line: int | None = None,
        at: At = (),
    ) -> None:
        self.found.append(Fault(what, where, expected, found, hint, line, at))

    def extend(self, faults: Iterable[Fault]) -> None:
        self.found.extend(faults)

    def raise_if_any(self, error: type[VeridynError], source: str = "") -> None:
        if self.found:
            raise error(self.found, source)

    def __bool__(self) -> bool:
        return bool(self.found)


def at_line(fault: Fault, line: int | None) -> Fault:
    """The same fault with the line of the file it comes from."""
    return fault if line is None or fault.line is not None else replace(fault, line=line)


def with_line(fault: Fault, lines: Mapping[At, int]) -> Fault:
    """The same fault with the line of its place, or of the nearest place around it that has one."""
    known = (fault.at[:k] for k in range(len(fault.at), 0, -1))
    return at_line(fault, next((lines[at] for at in known if at in lines), None))


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """A hint that lists what exists and the nearest spelling: "Known: a, b. Did you mean 'a'?"."""
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    compared = names
    if len(names) > MOST_COMPARED:  # those beside it in the alphabet
        ordered = sorted(names)
        first = max(0, bisect_left(ordered, name) - MOST_COMPARED // 2)
        compared = ordered[first : first + MOST_COMPARED]
    close = difflib.get_close_matches(name, compared, n=1)
    return f"Known: {listed or 'none'}." + (f" Did you mean '{close[0]}'?" if close else "")


_noted: ContextVar[list[Fault] | None] = ContextVar("veridyn_noted", default=None)


def warn(category: type[VeridynWarning], fault: Fault) -> None:
    """Issue a fault as a warning, attributed to the caller of the function that noticed it; within :func:`noted` it is kept instead.

    Decorators that check the arguments of a verb stand between it and its caller, and are passed over.
    """
    kept = _noted.get()
    if kept is not None:
        kept.append(fault)
        return
    level, frame = 3, sys._getframe(2) if hasattr(sys, "_getframe") else None
    while frame is not None and frame.f_globals.get("__name__") in DECORATORS:
        level, frame = level + 1, frame.f_back
    warnings.warn(str(fault), category, stacklevel=level)


@contextmanager
def noted() -> Iterator[list[Fault]]:
    """A list that gets what this thread would warn of meanwhile, for work of which many run side by side: Python's own list of warnings is
    one for all threads."""
    kept: list[Fault] = []
    token = _noted.set(kept)
    try:
        yield kept
    finally:
        _noted.reset(token)
