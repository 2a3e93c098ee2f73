"""Elements of a machine some of whose joints are locked: what acts on the remaining coordinates as they did with the others at rest.

An element on c = Σ aᵢ qᵢ keeps the free coordinates. The locked ones make c larger by a constant b, by which the rest of a spring or gap
of a stop is moved, and which formulas add to c; laws of rates do not depend on it. Formulas that name locked coordinates have numbers in
their place. An element on locked coordinates alone, or between two places that have become one body, does no work on what is left and is
left out. Places and wheels go with the bodies they are on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from veridyn.errors import Faults, part_at
from veridyn.model.elements import Element
from veridyn.model.own_law import with_numbers
from veridyn.model.place import Home, Marker, moved_place

SHIFTED = {"spring": "rest", "cubic": "rest", "bump_stop": "gap"}  # the constant that b is taken off
NOT_SHIFTABLE = ("dead_zone", "relaxation")  # whose laws know the place c = 0


def welded_elements(
    elements: Sequence[Element], homes: Mapping[str, Home], locked: Mapping[str, float], faults: Faults
) -> list[Element]:
    """The elements that are left, each with the name of its parameter; what cannot be moved is a fault."""
    found = []
    for e in (_unnamed(e, locked) for e in elements):
        if e.wheel is not None:
            found.append(_named(e, wheel=_marker(e.wheel, homes)))
        elif e.between is not None:
            a, b = (_marker(m, homes) for m in e.between)
            if a.body != b.body:
                found.append(_named(e, between=(a, b)))
        elif e.on_body is not None:
            body, component = e.on_body
            if homes[body][0] == body:
                found.append(e)
            else:
                faults.add(
                    "what acts on a body that is welded to another cannot be moved: it acts along one axis of that body.",
                    where=part_at("element", e.parameter_name),
                    found=f"component {component + 1} of the wrench on '{body}'",
                    hint="Leave the element out, or leave the joint free.",
                )
        else:
            _on_coordinates(e, locked, found, faults)
    return found


def _on_coordinates(e: Element, locked: Mapping[str, float], found: list[Element], faults: Faults) -> None:
    free = {c: a for c, a in e.on.items() if c not in locked}
    by = sum(a * locked[c] for c, a in e.on.items() if c in locked)
    if not free:
        return
    if by != 0.0 and e.kind in NOT_SHIFTABLE:
        faults.add(
            f"an element of kind {e.kind} cannot be moved by the {by:g} that the locked coordinates add to what it acts on.",
            where=part_at("element", e.parameter_name),
            hint="Lock them where they add up to zero, leave the element out, or leave the joint free.",
        )
    elif by != 0.0 and e.own_law is not None:
        found.append(_named(e, on=free, **_own_law(e, {}, by)))
    elif by != 0.0 and e.kind in SHIFTED:
        key = SHIFTED[e.kind]
        found.append(_named(e, on=free, constants={**e.constants, key: e.constant(key) - by}))
    else:
        found.append(e if len(free) == len(e.on) else _named(e, on=free))


def _unnamed(e: Element, locked: Mapping[str, float]) -> Element:
    """The element whose formula, of a law of one's own, has numbers in place of locked coordinates."""
    return _named(e, **_own_law(e, locked, 0.0)) if {*e.named_coordinates} & {*locked} else e


def _own_law(e: Element, locked: Mapping[str, float], by: float) -> dict[str, object]:
    if e.table is not None:
        return {"table": replace(e.table, of=with_numbers(e.table.of, locked, by, still=True))}
    return {"formula": with_numbers(e.formula, locked, by, still=True)}


def _named(e: Element, **changes: object) -> Element:
    """The element with these changes and the name its parameter had."""
    return replace(e, name=e.parameter_name, **changes)  # pyright: ignore[reportArgumentType]


def _marker(place: Marker, homes: Mapping[str, Home]) -> Marker:
    moved = moved_place(place, homes)
    assert isinstance(moved, Marker)  # as it was
    return moved
