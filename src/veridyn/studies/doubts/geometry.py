"""The geometry that a log itself speaks of: is one length, twist or zero of the model wrong, and which?

A body that sits δ elsewhere changes the equations by δ (∂W/∂g) φ, so δ is one more unknown beside the parameters; it is asked of one place
at a time, each body's position along three axes and its turn about three, and the best is followed by Gauss-Newton. What parameters
can take upon themselves (a frame moved along its own joint) changes nothing and is never suspected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.model.tree import Tree
from veridyn.spatial.transforms import Placement
from veridyn.studies.doubts.evidence import Evidence, share

Array = NDArray[np.float64]
STEP = 1e-4  # m or rad, of the difference that makes a derivative
PASSES = 4
FOLLOWED = 4  # changes that are followed to their end: the first step does not always know the best
SAMPLES = 200
FELT = 1e-6  # share of the forces that a metre or a radian must change


@dataclass(frozen=True)
class Misplaced:
    """Body `body` would sit `amount` (m, or rad where `turned`) further along or about `axis`, and the error that this leaves."""

    body: str
    axis: str
    turned: bool
    amount: float
    error: float

    @property
    def words(self) -> str:
        """What would be otherwise, for people."""
        if not self.turned:
            return f"{1e3 * self.amount:.3g} mm further along {self.axis} of the frame that carries it"
        about = "its own joint axis (the zero of the joint)" if self.axis == "z" else f"{self.axis} of its own frame"
        return f"turned by {np.degrees(self.amount):.3g}° about {about}"


def best_place(e: Evidence) -> Misplaced | None:
    """The one change of geometry that explains most; None where there is nothing to be changed."""
    few = replace(e, motion=e.motion[:: max(1, len(e.motion) // SAMPLES)])
    found = [
        (b, k, step) for b in range(len(e.tree.bodies)) for k in range(6) if (step := _step(few, b, k)) is not None
    ]
    best = sorted(found, key=lambda f: f[2][1])[:FOLLOWED]
    return min((_followed(e, few, b, k) for b, k, _ in best), key=lambda m: m.error, default=None)


def _followed(e: Evidence, few: Evidence, b: int, k: int) -> Misplaced:
    """One change, as far as it goes."""
    amount, tree = 0.0, e.tree
    for _ in range(PASSES):
        step = _step(replace(few, tree=tree), b, k)
        if step is None:
            break
        amount += step[0]
        tree = moved(e.tree, b, k, amount)
    return Misplaced(e.tree.bodies[b].name, "xyz"[k % 3], k >= 3, amount, e.error(tree))


def moved(tree: Tree, b: int, k: int, amount: float) -> Tree:
    """The tree with one body elsewhere: along axis k of its antecedent's frame, or turned about axis k − 3 of its own."""
    body = tree.bodies[b]
    R, p = np.asarray(body.placement.rotation), np.asarray(body.placement.position)
    if k < 3:
        p = p + amount * np.eye(3)[k]
    else:
        a = np.zeros((3, 3))
        i, j = (k - 2) % 3, (k - 1) % 3
        a[j, i], a[i, j] = 1.0, -1.0
        # Rodrigues about a unit axis: 1 + sin θ A + (1 − cos θ) A².
        R = R @ (np.eye(3) + np.sin(amount) * a + (1.0 - np.cos(amount)) * a @ a)
    other = replace(body, placement=Placement(rotation=R, position=p))
    return replace(tree, bodies=(*tree.bodies[:b], other, *tree.bodies[b + 1 :]))


def _step(e: Evidence, b: int, k: int) -> tuple[float, float] | None:
    """How far to go along one change, and the error to first order; None where nothing feels it."""
    here, there = e.equations(), e.equations(moved(e.tree, b, k, STEP))
    phi = here.parameters()
    felt = ((there.W * there.sizes[:, None, None] - here.W * here.sizes[:, None, None]) @ phi) / STEP
    felt += (here.y * here.sizes[:, None] - there.y * there.sizes[:, None]) / STEP  # known parameters feel it, too
    column = felt / here.sizes[:, None]
    if float(np.linalg.norm(column)) < FELT:
        return None
    amount, left = here.solved(column[:, :, None])
    return float(amount[0]), share(left)
