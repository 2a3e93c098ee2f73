"""What must hold of a machine's description, its elements included; every fault is found before any is raised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, Faults, did_you_mean, part_at
from veridyn.model.elements.element import WRENCH_ROWS, Element, Marker
from veridyn.model.elements.kinds import KINDS
from veridyn.model.elements.own_law import OWN
from veridyn.model.graph import SIGMA, Body
from veridyn.model.place import GROUND
from veridyn.spatial.inertia import INERTIAL, broken_law
from veridyn.spatial.rotations import is_rotation


def check_tree(
    bodies: Sequence[Body], elements: Sequence[Element], inertia: Mapping[str, Array], base: str, gravity: Array
) -> list[Fault]:
    """Every fault of a description. `where` of a fault begins with "body 'name'" or "element 'name'" so that a loader can add the line."""
    faults = Faults()
    if not bodies:
        faults.add("there is no body.", where=part_at("bodies"), hint="A tree needs at least one.")
        return faults.found
    _names(bodies, faults)
    _antecedents(bodies, base, faults)
    _joints(bodies, faults)
    _coordinates(bodies, faults)
    _inertias(bodies, inertia, faults)
    check_elements(bodies, elements, base, faults)
    _parameter_names(bodies, elements, faults)
    if base not in ("fixed", "free"):
        faults.add(
            "the base is of no known kind.", where=part_at("base"), expected="'fixed' or 'free'", found=f"'{base}'"
        )
    if gravity.shape != (3,) or not np.isfinite(gravity).all():
        faults.add(
            "gravity is not a vector.",
            where=part_at("gravity"),
            expected="three finite numbers in m/s^2",
            found=f"{gravity}",
        )
    return faults.found


def _names(bodies: Sequence[Body], faults: Faults) -> None:
    for name, times in Counter(b.name for b in bodies).items():
        if times > 1:
            faults.add(
                f"the name is used {times} times.",
                where=part_at("body", name),
                hint="Give each body a name of its own.",
            )
        if name in (GROUND, ""):
            faults.add("this name is taken by the ground.", where=part_at("body", name), hint="Call it otherwise.")


def _antecedents(bodies: Sequence[Body], base: str, faults: Faults) -> None:
    names = {b.name: None for b in bodies}
    for b in bodies:
        if b.antecedent not in (None, GROUND) and b.antecedent not in names:
            faults.add(
                f"its antecedent '{b.antecedent}' is not a body of this model.",
                where=part_at("body", b.name),
                hint=did_you_mean(str(b.antecedent), [n for n in names if n != b.name]),
            )
    for cycle in cycles({b.name: b.antecedent for b in bodies}):
        faults.add(
            "it is its own ancestor, so this is not a tree.",
            where=part_at("body", cycle[0]),
            found=" → ".join([*cycle, cycle[0]]),
            hint="Cut the loop at one joint.",
        )
    rootless = [b.name for b in bodies if b.antecedent is None]
    roots = [b.name for b in bodies if b.antecedent in (None, GROUND)]
    if base == "free":
        if len(roots) > 1:
            faults.add(
                f"a free tree has one root, and {len(roots)} bodies have no antecedent: {', '.join(roots)}.",
                where=part_at("body", roots[1]),
                hint="Name its antecedent.",
            )
        for b in bodies:
            if b.name in roots and b.joint != "fixed":
                faults.add(
                    f"the root of a free tree moves freely and has no joint, but this one is {b.joint}.",
                    where=part_at("body", b.name),
                    hint="Write joint: fixed, or base: fixed.",
                )
    elif len(rootless) > 1:
        faults.add(
            f"two roots: {len(rootless)} bodies name no antecedent: {', '.join(rootless)}.",
            where=part_at("body", rootless[1]),
            hint="Name its antecedent; 'antecedent: ground' where it really stands on the ground.",
        )


def cycles(before: Mapping[str, str | None]) -> list[list[str]]:
    """The circles of a mapping from each name to the one before it."""
    seen: set[str] = set()
    found = []
    for start in before:
        path: list[str] = []
        at: str | None = start
        while at is not None and at in before and at not in seen:
            seen.add(at)
            path.append(at)
            at = before[at]
        if at is not None and at in path:
            found.append(path[path.index(at) :])
    return found


def _joints(bodies: Sequence[Body], faults: Faults) -> None:
    for b in bodies:
        where = part_at("body", b.name)
        if b.joint not in SIGMA:
            faults.add(
                f"'{b.joint}' is no kind of joint.", where=where, expected="turning (σ 0), sliding (σ 1) or fixed (σ 2)"
            )
        R, p = b.placement.rotation, b.placement.position
        if not (np.isfinite(R).all() and np.isfinite(p).all()):
            faults.add("its placement holds NaN or infinite numbers.", where=where)
        elif p.shape != (3,) or not is_rotation(R):
            faults.add(
                "its placement is not a rotation and a position.",
                where=where,
                expected="a (3, 3) matrix with RᵀR = 1 and determinant 1, and three lengths",
                found=f"R {np.array2string(R, precision=4, separator=', ')}".replace("\n", "") + f", p {p}",
            )
        if b.joint != "fixed" and (not np.isfinite(b.ratio) or b.ratio == 0.0):
            faults.add("its ratio to the coordinate must be a number other than zero.", where=where, found=f"{b.ratio}")


def _coordinates(bodies: Sequence[Body], faults: Faults) -> None:
    first: dict[str, Body] = {}
    for b in bodies:
        if not b.coordinate_name:
            continue
        other = first.setdefault(b.coordinate_name, b)
        if other is b:
            continue
        if not (b.coordinate and other.coordinate_name == b.coordinate):
            faults.add(
                f"its coordinate '{b.coordinate_name}' is also that of body '{other.name}'.",
                where=part_at("body", b.name),
            )
        elif (other.joint, other.actuated) != (b.joint, b.actuated):
            faults.add(
                f"it shares the coordinate '{b.coordinate}' with body '{other.name}', which is of another kind.",
                where=part_at("body", b.name),
                expected=f"{other.joint}, {'actuated' if other.actuated else 'passive'}",
                found=f"{b.joint}, {'actuated' if b.actuated else 'passive'}",
            )
    for name in first:
        if name in WRENCH_ROWS or name in ("all", "joints", "base", "actuated"):
            faults.add(
                f"the coordinate name '{name}' is the name of rows.",
                where=part_at("body", first[name].name),
                hint="Call it otherwise.",
            )


def _inertias(bodies: Sequence[Body], inertia: Mapping[str, Array], faults: Faults) -> None:
    real = {b.name: b.real for b in bodies}
    for name, X in inertia.items():
        where = part_at("body", name)
        x = np.asarray(X, dtype=np.float64)
        if name not in real:
            faults.add(
                "inertia is given for a body that does not exist.", where=where, hint=did_you_mean(name, list(real))
            )
        elif x.shape != (10,):
            faults.add(
                "its inertia is not ten numbers.",
                where=where,
                expected="XX XY XZ YY YZ ZZ MX MY MZ M",
                found=f"{x.shape}",
            )
        elif not real[name] and np.any(x != 0.0):
            faults.add(
                "a virtual body has no inertia, but some is given.",
                where=where,
                hint="Make it real, or drop the inertia.",
            )
        elif np.isinf(x).any():
            faults.add("its inertia holds infinite numbers.", where=where)
        elif np.isfinite(x).all() and (law := broken_law(x)):
            faults.add(
                f"no distribution of mass has this inertia: {law}.",
                where=where,
                hint="Inertia is about the frame's origin, in the frame's axes, in kg*m^2; first moments are mass times centre.",
            )


def _parameter_names(bodies: Sequence[Body], elements: Sequence[Element], faults: Faults) -> None:
    labels = Counter(b.parameter("") for b in bodies if b.real)
    for b in bodies:
        if b.real and labels[b.parameter("")] > 1 and b.label:
            faults.add(
                f"the label '{b.label}' is used by {labels[b.parameter('')]} bodies.", where=part_at("body", b.name)
            )
    inertial = {b.parameter(symbol) for b in bodies if b.real for symbol in INERTIAL}
    for e in elements:
        if e.parameter_name in inertial:
            faults.add(
                "its name is that of an inertial parameter.",
                where=part_at("element", e.parameter_name),
                hint="Call it otherwise.",
            )
    for name, times in Counter(e.parameter_name for e in elements).items():
        if times > 1:
            faults.add(
                f"the parameter name is used by {times} elements.",
                where=part_at("element", name),
                hint="Give each a name of its own.",
            )


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
