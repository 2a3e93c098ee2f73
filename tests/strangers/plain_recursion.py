"""Newton and Euler's recursion as anyone would write it with small vectors, for any array library: the peer of nodes in training graphs.

It shares no code with the package; only data are read from a tree (parents, placements, ratios, kinds of joints). All vectors are
(..., 3), so that leading dimensions are samples, and the parameters (..., p) are ten for each real body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine


@dataclass(frozen=True)
class Row:
    """One body: its parent, whether it slides, its coordinate, its placement, and the first of its ten parameters or −1."""

    parent: int
    slides: bool
    coordinate: int
    ratio: float
    A: np.ndarray
    P: np.ndarray
    first: int


def rows_of(machine: Machine) -> list[Row]:
    """The bodies of a machine on a fixed base, each with a coordinate."""
    tree, found, first = tree_of(machine), [], 0
    for j, b in enumerate(tree.bodies):
        A, P = (np.array(x, dtype=np.float64) for x in tree.placements[j])
        own, first = (first, first + 10) if b.real else (-1, first)
        coordinate = int(tree.coordinate[j])
        found.append(Row(int(tree.antecedent[j]), int(tree.sigma[j]) == 1, coordinate, float(b.ratio), A, P, own))
    return found


class PlainArm:
    """Inverse dynamics with the arrays of `xp`, torch or jax.numpy; `array` makes its constants."""

    def __init__(self, machine: Machine, xp: Any, array: Any) -> None:
        self.rows, self.xp = rows_of(machine), xp
        self.cross = xp.linalg.cross if xp.__name__ == "torch" else xp.cross
        self.A, self.P = [array(r.A) for r in self.rows], [array(r.P) for r in self.rows]
        self.gravity, self.z = array(np.array(machine.gravity, dtype=np.float64)), array(np.array([0.0, 0.0, 1.0]))

    def frame(self, j: int, q: Any) -> tuple[Any, Any]:
        """The rotation (..., 3, 3) and place (..., 3) of a body in its parent."""
        xp, r = self.xp, self.rows[j]
        if r.coordinate < 0:
            return self.A[j], self.P[j]
        x = r.ratio * q[..., r.coordinate]
        if r.slides:
            return self.A[j], self.P[j] + self.A[j][:, 2] * x[..., None]
        s, c = xp.sin(x), xp.cos(x)
        o, one = xp.zeros_like(s), xp.ones_like(s)
        turn = xp.stack([c, -s, o, s, c, o, o, o, one], -1).reshape(*s.shape, 3, 3)
        return self.A[j] @ turn, self.P[j]

    def inverse_dynamics(self, q: Any, qd: Any, qdd: Any, phi: Any) -> Any:
        """Forces (..., n)."""
        xp, cross = self.xp, self.cross
        there = xp.zeros_like(q[..., :3])
        w, wd, vd, frames, wrenches = [], [], [], [], []
        for j, r in enumerate(self.rows):
            R, p = self.frame(j, q)
            a, b, c = (
                (w[r.parent], wd[r.parent], vd[r.parent]) if r.parent >= 0 else (there, there, there - self.gravity)
            )
            p = p + there
            back = xp.swapaxes(R, -1, -2) + xp.zeros_like(q[..., 0])[..., None, None]

            def turned(x: Any, back: Any = back) -> Any:
                return (back @ x[..., None])[..., 0]

            rate = self.z * (r.ratio * qd[..., r.coordinate])[..., None] if r.coordinate >= 0 else there
            speed = self.z * (r.ratio * qdd[..., r.coordinate])[..., None] if r.coordinate >= 0 else there
            w_j, wd_j, vd_j = turned(a), turned(b), turned(c + cross(b, p) + cross(a, cross(a, p)))
            if r.slides:
                vd_j = vd_j + speed + 2.0 * cross(w_j, rate)
            else:
                wd_j = wd_j + speed + cross(w_j, rate)
                w_j = w_j + rate
            for kept, new in ((w, w_j), (wd, wd_j), (vd, vd_j), (frames, (back, p))):
                kept.append(new)
            wrenches.append(self._wrench(r, w_j, wd_j, vd_j, phi) if r.first >= 0 else (there, there))
        forces: dict[int, Any] = {}
        for j in range(len(self.rows) - 1, -1, -1):
            r, (f, n), (back, p) = self.rows[j], wrenches[j], frames[j]
            if r.coordinate >= 0:
                own = r.ratio * (f if r.slides else n)[..., 2]
                forces[r.coordinate] = forces[r.coordinate] + own if r.coordinate in forces else own
            if r.parent >= 0:
                R = xp.swapaxes(back, -1, -2)
                g = (R @ f[..., None])[..., 0]
                F, N = wrenches[r.parent]
                wrenches[r.parent] = (F + g, N + (R @ n[..., None])[..., 0] + cross(p, g))
        return xp.stack([forces[k] for k in range(len(forces))], -1)

    def _wrench(self, r: Row, w: Any, wd: Any, vd: Any, phi: Any) -> tuple[Any, Any]:
        xp, cross = self.xp, self.cross
        ten = phi[..., r.first : r.first + 10]
        J = xp.stack([ten[..., k] for k in (0, 1, 2, 1, 3, 4, 2, 4, 5)], -1).reshape(*ten.shape[:-1], 3, 3)
        S, m = ten[..., 6:9] + xp.zeros_like(w), ten[..., 9:10]
        f = m * vd + cross(wd, S) + cross(w, cross(w, S))
        n = (J @ wd[..., None])[..., 0] + cross(w, (J @ w[..., None])[..., 0]) + cross(S, vd)
        return f, n
