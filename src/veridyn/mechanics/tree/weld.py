"""A machine with some of its joints locked: their bodies become part of what carries them.

Elements act on the remaining coordinates as they did with the others at rest. An element on c = Σ aᵢ qᵢ keeps the free coordinates. The
locked ones make c larger by a constant b, by which the rest of a spring or gap of a stop is moved, and which formulas add to c; laws of
rates do not depend on it. Formulas that name locked coordinates have numbers in their place. An element on locked coordinates alone, or
between two places that have become one body, does no work on what is left and is left out. Places and wheels go with the bodies they are
on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, did_you_mean, part_at
from veridyn.mechanics.tree.of_machine import changes_machine, tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import ALONG_KINDS
from veridyn.model.elements.own_law import with_numbers
from veridyn.model.graph import Body
from veridyn.model.load import Drive, Transmission, moved_load
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND, Home, Marker, moved_place
from veridyn.model.sensor import ON_COORDINATE
from veridyn.spatial.inertia import INERTIAL, moved
from veridyn.spatial.rotations import Placement, rot_z

SHIFTED = {"spring": "rest", "cubic": "rest", "bump_stop": "gap"} | dict.fromkeys(
    ALONG_KINDS, "middle"
)  # what b is taken off
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


@changes_machine
def welded(
    machine: Machine | Tree, locked: Mapping[str, float], *, unknown: Literal["refuse", "keep"] = "refuse"
) -> Tree:
    """The same machine with the coordinates `locked` held at these values (rad, m): fewer bodies, the same mass.

    A body whose joint is locked is merged with its antecedent, its ten parameters moved there, so that every force of the remaining
    joints and of a free base is that of the original with these coordinates at rest. Typical sizes and states of what stays are kept, and
    so are elements (:mod:`~veridyn.mechanics.tree.weld`), sensors and loads, at their places on the bodies that are left.
    `unknown`: whether inertias without a value, and bodies that are locked to the ground, are refused, or kept as :func:`locked_tree` does.
    """
    tree = tree_of(machine)
    if unknown == "keep":
        return locked_tree(tree, locked)
    tree.check_open("welding joints")
    faults = Faults()
    _check(tree, locked, faults)
    _check_inertia(tree, locked, faults)
    faults.raise_if_any(ModelError, tree.name)
    return _merged(tree, locked)


def locked_tree(tree: Tree, locked: Mapping[str, float]) -> Tree:
    """:func:`welded` for a machine whose parameters are identified: an inertia that is unknown makes unknown the one it is added to, and a
    body whose joint is locked to the ground is part of the ground, where no force depends on its inertia."""
    tree.check_open("locking joints")
    faults = Faults()
    _check(tree, locked, faults)
    by_name = {b.name: b for b in tree.bodies}
    for b in tree.bodies:
        if (
            b.coordinate_name in locked
            and b.real
            and not (_stands(by_name, b, locked) or _has_mass(by_name, b, locked))
        ):
            faults.add(
                "its joint cannot be locked: what carries it moves and has no inertia to take it up.",
                where=part_at("body", b.name),
            )
    faults.raise_if_any(ModelError, tree.name)
    return _merged(tree, locked)


def _merged(tree: Tree, locked: Mapping[str, float]) -> Tree:
    values = iter(tree.parameters.values[: 10 * sum(b.real for b in tree.bodies)].reshape(-1, 10))
    inertia = {b.name: next(values) for b in tree.bodies if b.real}
    home: dict[str, Home] = {}  # body → the one it is now part of, and its place there
    bodies: list[Body] = []
    total: dict[str, Array] = {}
    for b in tree.bodies:
        R, p = b.placement.rotation, b.placement.position
        carrier = b.antecedent
        if carrier is not None and carrier in home:
            carrier, A, P = home[carrier]
            R, p = A @ R, P + A @ p
        if b.coordinate_name in locked and b.joint != "fixed":
            by = b.ratio * locked[b.coordinate_name]
            R, p = (R @ rot_z(by), p) if b.joint == "turning" else (R, p + R[:, 2] * by)
            carrier = carrier or GROUND
            home[b.name] = (carrier, R, p)
            if b.real and carrier in total:  # else it stands on the ground
                total[carrier] = total[carrier] + moved(inertia[b.name], R, p)
        else:
            home[b.name] = (b.name, np.eye(3), np.zeros(3))
            place = b.placement if carrier == b.antecedent and R is b.placement.rotation else Placement(R, p)
            bodies.append(replace(b, antecedent=carrier, placement=place))
            if b.real:
                total[b.name] = inertia[b.name].copy()
    faults = Faults()
    elements = welded_elements(tree.elements, home, locked, faults)
    faults.raise_if_any(ModelError, tree.name)
    built = Tree.build(  # without inertias: those of a drawing may be impossible, and are then kept as they are
        bodies,
        name=tree.name,
        base=tree.base,
        gravity=tree.gravity,
        elements=elements,
        transmission=_transmission(tree, locked),
        sensors=[sensor.moved(home) for sensor in tree.sensors],
        loads=[moved_load(load, home) for load in tree.loads],
    )
    held = [c for c in tree.prescribed if c not in locked]
    sizes, known = _kept(tree, built, home)
    sums = {b.parameter(s): x for b in bodies if b.real for s, x in zip(INERTIAL, total[b.name].tolist(), strict=True)}
    return built.with_parameters(replace(built.parameters, typical=sizes).replacing(sums).known(known)).with_prescribed(
        held
    )


def _transmission(tree: Tree, locked: Mapping[str, float]) -> Transmission | None:
    """What is left of the transmission: without locked joints, and without motors that drive none but these."""
    whole = tree.transmission
    if whole is None or not any(j in locked for j in whole.joints):
        return whole
    rows = [i for i, j in enumerate(whole.joints) if j not in locked]
    columns = [k for k in range(len(whole.motors)) if np.any(whole.matrix[rows, k])]
    if len(rows) != len(columns):
        raise ModelError(
            "its transmission has more motors than joints that are left, or fewer.",
            where=part_at("transmission"),
            found=f"{len(columns)} motors of {len(rows)} joints",
            hint="Leave the joint free, or weld the machine without its transmission.",
            source=tree.name,
        )
    if not rows:
        return None
    names = [whole.motors[k] for k in columns], [whole.joints[i] for i in rows]
    return Transmission(tuple(names[0]), tuple(names[1]), whole.matrix[np.ix_(rows, columns)])


def _kept(tree: Tree, built: Tree, home: Mapping[str, Home]) -> tuple[Array, list[str]]:
    """The typical sizes of parameters, and those that are known: of a body that took up others, where all of these are."""
    old, new = tree.parameters, built.parameters
    sizes = np.array([old.typical[old.index(name)] for name in new.names])
    taken: dict[str, set[str]] = {}  # parameter of a body that is left → those that went into it
    for b in tree.bodies:
        if b.real and home[b.name][0] != GROUND:
            into = tree.bodies[tree.index(home[b.name][0])]
            own = [b.parameter(s) for s in INERTIAL]
            if not into.real:
                continue
            for s in INERTIAL:
                taken.setdefault(into.parameter(s), set()).update(own if into is not b else [b.parameter(s)])
    known = [
        name for name in new.names if all(old.states[old.index(part)] == "known" for part in taken.get(name, {name}))
    ]
    return sizes, known


def _check(tree: Tree, locked: Mapping[str, float], faults: Faults) -> None:
    """Names and values of what is locked, and what acts or measures there."""
    for name, value in locked.items():
        if name not in tree.coordinates:
            faults.add(f"'{name}' is no coordinate.", where="locked", hint=did_you_mean(name, tree.coordinates))
        elif not np.isfinite(value):
            faults.add("it cannot be held there.", where=f"locked['{name}']", found=f"{value}")
    lost = [f"sensor '{s.name}'" for s in tree.sensors if s.kind in ON_COORDINATE and s.on in locked]
    lost += [f"load '{d.name}'" for d in tree.loads if isinstance(d, Drive) and d.coordinate in locked]
    for where in lost:
        faults.add("its coordinate is locked.", where=where, hint="Leave it out, or leave the joint free.")


def _check_inertia(tree: Tree, locked: Mapping[str, float], faults: Faults) -> None:
    """That all inertias are known, and that bodies take up those that are locked to them."""
    by_name = {b.name: b for b in tree.bodies}
    for b in tree.bodies:
        carried = b.antecedent not in (None, GROUND) and _has_mass(by_name, b, locked)
        if b.coordinate_name in locked and b.real and not carried:
            faults.add(
                "its joint cannot be locked: what carries it has no inertia to take it up.",
                where=part_at("body", b.name),
            )
    inertial = tree.parameters.values[: 10 * sum(b.real for b in tree.bodies)]
    if not np.isfinite(inertial).all():
        faults.add(
            "the inertia of some bodies is unknown.",
            where=tree.name,
            hint=f"All ten of {' '.join(INERTIAL)} are needed.",
        )


def _stands(by_name: Mapping[str, Body], b: Body, locked: Mapping[str, float]) -> bool:
    """Whether only fixed and locked joints are between a body and the ground."""
    while b.joint == "fixed" or b.coordinate_name in locked:
        if b.antecedent is None:
            return False  # the base moves freely
        if b.antecedent == GROUND:
            return True
        b = by_name[b.antecedent]
    return False


def _has_mass(by_name: Mapping[str, Body], b: Body, locked: Mapping[str, float]) -> bool:
    """Whether the body that this one ends up with is a real one."""
    if b.antecedent in (None, GROUND):
        return False
    carrier = by_name[str(b.antecedent)]
    while carrier.coordinate_name in locked and carrier.antecedent in by_name:
        carrier = by_name[str(carrier.antecedent)]
    return carrier.real
