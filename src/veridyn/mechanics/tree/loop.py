"""Closed loops: joints at which a machine is cut open to be a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from veridyn.errors import Fault, Faults, did_you_mean, part_at
from veridyn.model.assembly import Assembly
from veridyn.model.body import Body, Loop
from veridyn.model.names import GROUND
from veridyn.spatial.rotations import is_rotation

CUTS: Mapping[str, str] = MappingProxyType(
    {
        "spherical": "one point in common",
        "turning": "one point and the direction of the axis in common",
        "universal": "one point in common, axes at right angles",
        "cylindrical": "one axis in common",
        "sliding": "one axis and all directions in common",
        "planar": "one plane in common, normal to the axis",
        "fixed": "everything in common",
        "distance": "two points at a constant distance: a rod without mass",
    }
)


def members(bodies: Sequence[Body], loop: Loop) -> tuple[str, ...]:
    """The coordinates a loop ties together: those between its two ends, without what carries both ends alike."""
    by_name = {b.name: b for b in bodies}

    def path(name: str) -> list[str]:
        found = []
        while name in by_name:
            found.append(name)
            name = by_name[name].antecedent or GROUND
        return found

    ends = path(loop.first.body), path(loop.second.body)
    between = [n for n in (*ends[0], *ends[1]) if (n in ends[0]) != (n in ends[1])]
    return tuple(dict.fromkeys(c for n in between if (c := by_name[n].coordinate_name)))


def check_loops(bodies: Sequence[Body], loops: Sequence[Loop], assembly: Assembly, base: str) -> list[Fault]:
    """Every fault of the loops of a description; `where` begins with "loop 'name'" or "assembly"."""
    faults = Faults()
    names = [b.name for b in bodies]
    for name, times in Counter(loop.name for loop in loops).items():
        if times > 1:
            faults.add(f"the name is used {times} times.", where=part_at("loop", name))
    for loop in loops:
        _check(loop, names, base, faults)
        known = loop.first.body in (*names, GROUND) and loop.second.body in (*names, GROUND)
        if known and loop.first.body != loop.second.body and not members(bodies, loop):
            faults.add("nothing moves between its two ends, so there is no loop.", where=loop.where)
    coordinates = [b.coordinate_name for b in bodies if b.coordinate_name]
    for what, values in (("hold", assembly.hold), ("guess", assembly.guess)):
        for name, value in values.items():
            if name not in coordinates:
                hint = did_you_mean(name, list(dict.fromkeys(coordinates)))
                faults.add(f"there is no coordinate '{name}'.", where=f"assembly, {what}", hint=hint)
            elif not np.isfinite(value):
                faults.add(f"'{name}' is not a finite number.", where=f"assembly, {what}", found=f"{value}")
    for name in assembly.hold:
        if name in assembly.guess:
            faults.add(f"'{name}' is held and guessed at once.", where=part_at("assembly"), hint="Drop one.")
    return faults.found


def _check(loop: Loop, names: Sequence[str], base: str, faults: Faults) -> None:
    if loop.joint not in CUTS:
        faults.add(f"'{loop.joint}' is no kind of cut joint.", where=loop.where, hint=did_you_mean(loop.joint, [*CUTS]))
    for end in (loop.first, loop.second):
        if end.body not in (*names, GROUND):
            hint = did_you_mean(end.body, [*names, GROUND])
            faults.add(f"there is no body '{end.body}'.", where=loop.where, hint=hint)
        if end.body == GROUND and base == "free":
            what = "a machine whose base is free has no loop through the ground."
            faults.add(what, where=loop.where, hint="Put it on six joints: base: six_joints.")
        R, p = end.placement.rotation, end.placement.position
        if p.shape != (3,) or not np.isfinite(p).all() or not (np.isfinite(R).all() and is_rotation(R)):
            faults.add(f"its place on '{end.body}' is not a rotation and a position.", where=loop.where)
    if loop.first.body == loop.second.body:
        faults.add(f"both ends are on '{loop.first.body}'.", where=loop.where)
    if loop.joint == "distance" and not 0.0 < loop.length < np.inf:
        faults.add("a distance needs a length above zero.", where=loop.where, found=f"{loop.length:g}")
    if loop.joint != "distance" and loop.length != 0.0:
        faults.add("only a distance has a length.", where=loop.where, found=f"joint: {loop.joint}")
