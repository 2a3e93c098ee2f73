"""Random machines and random motions: what every law of mechanics is tried on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body, BodyJoint
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.place import GROUND
from veridyn.spatial.rotations import MDH, Placement

Array = NDArray[np.float64]
KINDS: tuple[BodyJoint, ...] = ("turning", "sliding", "fixed")
SIZES = (2, 13)  # bodies: the smallest and the largest machine
G = 9.81


def random_rotation(rng: np.random.Generator) -> Array:
    """Uniform over all rotations: the Q of a Gaussian matrix, its signs made unique."""
    Q, R = np.linalg.qr(rng.standard_normal((3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q if np.linalg.det(Q) > 0 else -Q


def random_inertia(rng: np.random.Generator, points: int = 6) -> Array:
    """XX XY XZ YY YZ ZZ MX MY MZ M of a cloud of point masses, so that some distribution of mass has them."""
    m = rng.uniform(0.1, 1.0, points)
    r = 0.3 * rng.standard_normal(3) + 0.2 * rng.standard_normal((points, 3))
    J = np.einsum("k,kab->ab", m, (r**2).sum(axis=1)[:, None, None] * np.eye(3) - r[:, :, None] * r[:, None, :])
    return np.concatenate([J[np.triu_indices(3)], m @ r, [m.sum()]])


def random_placement(rng: np.random.Generator, mdh: bool | None = None) -> MDH | Placement:
    """MDH (True), general (False) or either (None). Half of MDH's angles are right, half of its lengths zero."""
    if mdh is None:
        mdh = bool(rng.random() < 0.5)
    if not mdh:
        return Placement(random_rotation(rng), 0.5 * rng.standard_normal(3))
    right = rng.choice([0.0, np.pi / 2, -np.pi / 2, np.pi], 3)
    angles = np.where(rng.random(3) < 0.5, right, rng.uniform(-np.pi, np.pi, 3))
    lengths = np.where(rng.random(3) < 0.5, 0.0, 0.5 * rng.standard_normal(3))
    return MDH(angles[0], lengths[0], angles[1], lengths[1], angles[2], lengths[2])


def random_open_machine(
    rng: np.random.Generator,
    bodies: int | None = None,
    base: Literal["fixed", "free"] = "fixed",
    kinds: Sequence[BodyJoint] = KINDS,
    branched: bool = True,
    mdh: bool | None = None,
    inertia: bool = True,
    virtual: float = 0.0,
    shared: bool = False,
) -> Machine:
    """A machine without loops, with at least one joint that moves; bodies are named "1", "2", …

    `bodies`: how many, a free base included; 2 to 13 where not given. `kinds`: what joints are drawn
    from. `branched` False gives a chain. `mdh`: see :func:`random_placement`. `inertia` False leaves it unknown
    (NaN). `virtual`: the share of bodies, never a free base, without inertia. `shared`: joints of one kind may share
    a coordinate, each with a ratio of its own.
    """
    n = int(rng.integers(SIZES[0], SIZES[1] + 1)) if bodies is None else bodies
    free = base == "free"
    drawn = [kinds[int(k)] for k in rng.integers(len(kinds), size=n)]
    if free:
        drawn[0] = "fixed"
    moving = [kind for kind in kinds if kind != "fixed"]
    if moving and n > free and all(kind == "fixed" for kind in drawn):
        drawn[int(rng.integers(int(free), n))] = moving[int(rng.integers(len(moving)))]
    made: list[Body] = []
    for j in range(n):
        before = int(rng.integers(int(free) - 1, j)) if branched and j > int(free) else j - 1
        root = free and j == 0
        coordinate, ratio = "", 1.0
        if shared and drawn[j] != "fixed":
            coordinate, ratio = f"{drawn[j]}{rng.integers(3)}", float(rng.uniform(0.5, 2.0) * rng.choice([-1.0, 1.0]))
        made.append(
            Body(
                name=str(j + 1),
                antecedent=None if root else GROUND if before < 0 else made[before].name,
                joint=drawn[j],
                placement=MDH() if root else random_placement(rng, mdh),
                real=root or bool(rng.random() >= virtual),
                coordinate=coordinate,
                ratio=ratio,
            )
        )
    down = rng.standard_normal(3)
    inertias = {b.name: random_inertia(rng) for b in made if b.real} if inertia else {}
    return Machine.of_bodies(made, name="random", base=base, gravity=G * down / np.linalg.norm(down), inertia=inertias)


def random_tree(rng: np.random.Generator, bodies: int | None = None, **how: Any) -> Tree:
    """The tree of a :func:`random_open_machine`, for tests of what trees are and of what is computed on them."""
    return tree_of(random_open_machine(rng, bodies, **how))


def body_names(machine: Machine | Tree) -> list[str]:
    """Names of the bodies, in order."""
    return [b.name for b in (machine.links if isinstance(machine, Machine) else machine.bodies)]


def random_motion(rng: np.random.Generator, machine: Machine | Tree, N: int = 20, wrenches: bool = True) -> Motion:
    """N samples that have nothing to do with each other: all that the equations of one instant need.

    A free base turns, accelerates and has a velocity. Half of the bodies, at least one, feel a wrench where
    `wrenches` is True.
    """
    q, qd, qdd = rng.standard_normal((3, N, machine.n))
    base = BaseMotion(*rng.standard_normal((4, N, 3))) if machine.base == "free" else None
    felt: dict[str, Array] = {}
    if wrenches:
        names = body_names(machine)
        chosen = rng.random(len(names)) < 0.5
        chosen[rng.integers(len(names))] = True
        felt = {name: rng.standard_normal((N, 6)) for name, on in zip(names, chosen, strict=True) if on}
    return Motion(0.01 * np.arange(N), q, qd, qdd, base=base, wrenches=felt)
