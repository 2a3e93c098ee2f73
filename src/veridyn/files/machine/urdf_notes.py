"""What is reported of a URDF that is read all the same: one warning for each kind of oddity, with the count of places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from veridyn.errors import DataError, Fault, FileError, part_at
from veridyn.files.machine.urdf_reader import NOT_SI, UrdfLink
from veridyn.spatial.inertia import broken_law

Impossible = Literal["unknown", "keep", "refuse"]
SHOWN_LINKS = 4


def broken_inertias(links: Mapping[str, UrdfLink]) -> dict[str, Fault]:
    """Link → fault, for each link whose inertia no physical body has."""
    hint = "Without strict the file is read, and such inertias are unknown."
    return {
        link.name: Fault(
            f"no distribution of mass has this inertia: {law}.",
            where=part_at("link", link.name),
            hint=hint,
            line=link.node.line,
        )
        for link in links.values()
        if link.ten is not None and (law := broken_law(link.ten))
    }


def warnings_of(
    notes: Sequence[Fault], links: Mapping[str, UrdfLink], impossible: Impossible, source: str
) -> list[Fault]:
    """What a reader warns of: one line about inertias that no body has, and one warning for all notes of a kind."""
    broken = broken_inertias(links)
    found = [_inertia_line(list(broken), sum(x.ten is not None for x in links.values()), impossible)] if broken else []
    if impossible == "unknown":  # then their size does not matter either
        notes = [n for n in notes if not (n.what == NOT_SI and n.at[-1:] and n.at[-1] in broken)]
    kinds: dict[str, list[Fault]] = {}
    for note in sorted(notes, key=lambda note: note.line or 0):
        kinds.setdefault(_kind(note), []).append(note)
    found += [_together(group) for group in kinds.values()]
    return [Fault(str(FileError(fault, source))) for fault in found]


def _kind(note: Fault) -> str:
    """Notes that differ in numbers only are of one kind."""
    return re.sub(r"\d+", "#", note.what)


def _together(group: Sequence[Fault]) -> Fault:
    """The first note of a kind, which says how many others there are."""
    first = group[0]
    if len(group) == 1:
        return first
    return replace(first, where=f"{first.where} (line {first.line}) and {len(group) - 1} more", line=None, at=())


def _inertia_line(names: Sequence[str], bodies: int, impossible: Impossible) -> Fault:
    listed = ", ".join(names[:SHOWN_LINKS]) + (", …" if len(names) > SHOWN_LINKS else "")
    has, it = ("has an inertia", "it is") if len(names) == 1 else ("have inertias", "they are")
    done = "taken as unknown, to be identified" if impossible == "unknown" else "kept as in the file"
    return Fault(f"{len(names)} of {bodies} links {has} that no physical body has ({listed}); {it} {done}.")


def check_word(name: str, word: str, known: Sequence[str]) -> None:
    """Refuse a word that an argument does not have."""
    if word not in known:
        hint = "'warn' is now called 'keep'." if word == "warn" else ""
        raise DataError(Fault("this word is unknown.", name, " or ".join(f"'{w}'" for w in known), f"'{word}'", hint))
