"""What must hold of a machine's description; every fault is found before any is raised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, Faults, did_you_mean, part_at
from veridyn.mechanics.tree.element_check import check_elements
from veridyn.model.body import SIGMA, Body
from veridyn.model.elements.element import WRENCH_ROWS, Element
from veridyn.model.names import GROUND
from veridyn.spatial.inertia import INERTIAL, broken_law
from veridyn.spatial.rotations import is_rotation

Array = NDArray[np.float64]


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
    for cycle in _cycles(bodies):
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


def _cycles(bodies: Sequence[Body]) -> list[list[str]]:
    parent = {b.name: b.antecedent for b in bodies}
    seen: set[str] = set()
    found = []
    for start in parent:
        path: list[str] = []
        at: str | None = start
        while at in parent and at not in seen:
            seen.add(at)
            path.append(at)
            at = parent[at]
        if at in path:
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
