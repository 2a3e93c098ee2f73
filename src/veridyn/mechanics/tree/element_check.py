"""What must hold of elements: every fault is found before any is raised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from veridyn.errors import Faults, did_you_mean, part_at
from veridyn.model.body import Body
from veridyn.model.elements.element import WRENCH_ROWS, Element, Marker
from veridyn.model.elements.kinds import KINDS
from veridyn.model.elements.own_law import OWN
from veridyn.model.names import GROUND


def check_elements(bodies: Sequence[Body], elements: Sequence[Element], base: str, faults: Faults) -> None:
    """Every fault of the elements of a tree; `where` begins with "element 'name'"."""
    for e in elements:
        where = part_at("element", e.parameter_name)
        if e.kind not in KINDS:
            faults.add(f"'{e.kind}' is no kind of element.", where=where, hint=did_you_mean(e.kind, list(KINDS)))
            continue
        _numbers(e, where, faults)
        if KINDS[e.kind].signal and not e.signal:
            known = "a drive gain multiplies a measured signal" if e.kind == "drive_gain" else "its law needs a signal"
            faults.add(
                f"{known}, and none is named.",
                where=where,
                expected="" if e.kind == "drive_gain" else KINDS[e.kind].signal,
                hint="Add signal: NAME.",
            )
        _constants(e, where, faults)
        _own_law(bodies, e, where, faults)
        if KINDS[e.kind].wheel or e.wheel is not None:
            _on_wheel(bodies, e, where, faults)
            continue
        if e.between is not None:
            _between(bodies, e, base, where, faults)
            continue
        if not e.on:
            faults.add(
                "it acts on nothing.",
                where=where,
                expected="a coordinate, a combination of coordinates, or two places (between)",
            )
        if e.kind == "drag" or e.on_body is not None:
            _on_body(bodies, e, where, faults)
        else:
            _on_coordinates(bodies, e, where, faults)


def _numbers(e: Element, where: str, faults: Faults) -> None:
    if any(not np.isfinite(a) or a == 0.0 for a in e.on.values()):
        faults.add("its coefficients must be numbers other than zero.", where=where, found=f"{dict(e.on)}")
    if np.isinf(e.value):
        faults.add("its value is infinite.", where=where)
    if not np.isnan(e.typical) and not 0.0 < e.typical < np.inf:
        faults.add("its typical size must be a positive number.", where=where, found=f"{e.typical}")


def _constants(e: Element, where: str, faults: Faults) -> None:
    kind = KINDS[e.kind]
    for key, value in e.constants.items():
        c = kind.constant(key)
        if c is None:
            owners = [name for name, k in KINDS.items() if k.constant(key) is not None]
            own = [c.key for c in kind.constants]
            faults.add(
                f"its kind, {e.kind}, has no constant '{key}'.",
                where=where,
                found=f"{key} {value:g}",
                hint=" ".join(
                    f"{what}: {', '.join(listed)}."
                    for what, listed in (("Kinds that have one", owners), ("Constants of its kind", own))
                    if listed
                ),
            )
        elif not c.allows(value):
            faults.add(
                f"its constant '{key}' is out of bounds.",
                where=where,
                expected=f"a number between {c.low:g} and {c.high:g}",
                found=f"{value}",
            )
    for c in kind.constants:
        if c.required and c.key not in e.constants:
            faults.add(
                f"its law needs the constant '{c.key}': {c.doc}.",
                where=where,
                expected=f"{c.key}, in {c.turning} or {c.sliding}",
                hint=f"Add {c.key}: NUMBER; fit_constants estimates it from a log.",
            )


def _own_law(bodies: Sequence[Body], e: Element, where: str, faults: Faults) -> None:
    """Names in the formula of a law of one's own: coordinates of this machine; c and v mean what the element acts on."""
    if e.own_law is None:
        return
    names = list(dict.fromkeys(b.coordinate_name for b in bodies if b.coordinate_name))
    for name in e.named_coordinates:
        if name not in names:
            faults.add(
                f"its formula '{e.own_law.text}' names '{name}', which is no coordinate.",
                where=where,
                hint=f"{did_you_mean(name, [*names, 'c', 'v'])} A measured signal is written signal({name}).".strip(),
            )
    taken = [name for name in OWN if name in e.own_law.own and name in names and {*e.on} != {name}]
    if taken:
        faults.add(
            f"its formula names '{taken[0]}', which is a coordinate, and what the element acts on.",
            where=where,
            hint=f"Give the coordinate another name than {' or '.join(OWN)}.",
        )


def _between(bodies: Sequence[Body], e: Element, base: str, where: str, faults: Faults) -> None:
    assert e.between is not None  # the caller looked
    if e.on:
        faults.add("it acts on coordinates and between two places at once.", where=where, hint="Leave one of them out.")
    if not KINDS[e.kind].between:
        faults.add(
            f"an element of kind {e.kind} cannot act between two places.",
            where=where,
            expected=", ".join(name for name, kind in KINDS.items() if kind.between),
        )
    if len(e.between) != 2:
        faults.add("it acts between two places.", where=where, found=f"{len(e.between)} places")
        return
    names = {b.name: b for b in bodies}
    known = True
    for place in e.between:
        if place.body != GROUND and place.body not in names:
            faults.add(f"there is no body '{place.body}'.", where=where, hint=did_you_mean(place.body, list(names)))
            known = False
        if place.body == GROUND and base == "free":
            faults.add(
                "its end is on the ground, and where a free base stands on it is not part of the equations.",
                where=where,
                hint="Put both ends on bodies, or put the tree on six joints (base: six_joints).",
            )
        if len(place.at) != 3 or not np.isfinite(place.at).all():
            faults.add(
                f"its place on '{place.body}' is not a point.",
                where=where,
                expected="three lengths in m",
                found=f"{place.at}",
            )
    if known and not _moves(names, *e.between):
        faults.add(
            "its length never changes: no joint lies between its ends.",
            where=where,
            hint="Put its ends on bodies that move against each other.",
        )


def _on_wheel(bodies: Sequence[Body], e: Element, where: str, faults: Faults) -> None:
    if not KINDS[e.kind].wheel:
        faults.add(
            f"an element of kind {e.kind} cannot act on a wheel.",
            where=where,
            expected=", ".join(name for name, kind in KINDS.items() if kind.wheel),
        )
    if e.on or e.between is not None:
        faults.add("a tyre acts on its wheel alone.", where=where, hint="Leave out on and between.")
    if e.wheel is None:
        faults.add("it needs a wheel.", where=where, expected="its body, its centre (at) and its axis")
        return
    names = [b.name for b in bodies]
    if e.wheel.body not in names:
        faults.add(f"there is no body '{e.wheel.body}'.", where=where, hint=did_you_mean(e.wheel.body, names))
    for what, numbers in (("centre", e.wheel.at), ("axis", e.wheel.axis)):
        if len(numbers) != 3 or not np.isfinite(numbers).all() or (what == "axis" and not np.any(numbers)):
            faults.add(f"its {what} is not given by three numbers.", where=where, found=f"{tuple(numbers)}")


def _moves(names: Mapping[str, Body], a: Marker, b: Marker) -> bool:
    ways = []
    for place in (a, b):
        way: list[str] = []
        at = place.body
        while at in names and at not in way:
            way.append(at)
            at = names[at].antecedent or GROUND
        ways.append(way)
    apart = set(ways[0]) ^ set(ways[1])
    return any(names[name].joint != "fixed" for name in apart)


def _on_body(bodies: Sequence[Body], e: Element, where: str, faults: Faults) -> None:
    names = [b.name for b in bodies]
    target = next(iter(e.on), "")
    if e.on_body is None or e.on_body[0] not in names:
        faults.add(
            f"{e.kind if e.kind == 'drag' else 'an ' + e.kind} cannot act on '{target}'.",
            where=where,
            expected=f"one component {', '.join(WRENCH_ROWS)} of a body, as in '{names[0]}.fx'",
        )


def _on_coordinates(bodies: Sequence[Body], e: Element, where: str, faults: Faults) -> None:
    kinds = {b.coordinate_name: b.joint for b in bodies if b.coordinate_name}
    unknown = [c for c in e.on if c not in kinds]
    for c in unknown:
        faults.add(f"there is no coordinate '{c}'.", where=where, hint=did_you_mean(c, list(kinds)))
    if not unknown and len({kinds[c] for c in e.on}) > 1:
        faults.add(
            "it mixes turning and sliding coordinates, so its parameter has no unit.",
            where=where,
            found=", ".join(f"{c} {kinds[c]}" for c in e.on),
        )
