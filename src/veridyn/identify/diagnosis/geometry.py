"""The geometry that a log itself speaks of: is one length, twist or zero of the model wrong, and which?

A body that sits δ elsewhere changes the equations by δ ∂Γ/∂g, Γ the forces of the parameters that fit best, so δ is one more unknown beside
the parameters: with U an orthonormal basis of the columns of W, s = ∂Γ/∂g − U Uᵀ ∂Γ/∂g and r = y − U Uᵀ y, least squares gives δ = s·r/s·s
and leaves r − δ s. It is tried at one place at a time, each body's position along three axes and its turn about three, and the best are
followed by Gauss-Newton as long as they promise something. What parameters can take upon themselves (a frame moved along its own joint)
changes nothing and is never reported. Of a machine with loops the ends of its cut joints are tried as well, and its loops are closed anew
for every place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, ModelError
from veridyn.identify.diagnosis.evidence import SMALLEST_SINGULAR_VALUE, Evidence, share
from veridyn.identify.grouping import ZERO_COLUMN
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.loops.closure import closed_home, closed_motion
from veridyn.mechanics.tree.elsewhere import End, assembled_at, ends_of, moved
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
DIFFERENCE_STEP = 1e-4  # m or rad, of the difference that makes a derivative
CONVERGED_STEP = 1e-7  # m or rad, behind which nothing is followed any further
PASSES = 4
REFINED_CHANGES = 4  # changes that are followed: the first step does not always know the best
PROMISING = (
    0.9  # of the error, below which a change must come by its first two steps to be followed to its end (chosen)
)
SAMPLES = 200
EFFECT_THRESHOLD = 1e-6  # share of the forces that a metre or a radian must change


@dataclass(frozen=True, kw_only=True)
class Misplaced:
    """Body `body` would sit `amount` (m, or rad where `turned`) further along or about `axis`, and the error that this leaves.

    With a `loop`, the end of that cut joint on the body; where `far`, the joint on the body that it carries.
    """

    body: str
    axis: str
    turned: bool
    amount: float
    error: float
    loop: str = ""
    far: bool = False

    @property
    def where(self) -> str:
        """What it is, for people."""
        return f"loop '{self.loop}', its end on '{self.body}'" if self.loop else f"body '{self.body}'"

    @property
    def words(self) -> str:
        """What would be otherwise, for people."""
        if self.loop:
            return f"{1e3 * self.amount:.3g} mm further along {self.axis} of that body's frame"
        if self.far:
            size = f"turned by {np.degrees(self.amount):.3g}°" if self.turned else f"{1e3 * self.amount:.3g} mm further"
            return f"its joint {size} {'about' if self.turned else 'along'} {self.axis} of its own frame"
        if not self.turned:
            return f"{1e3 * self.amount:.3g} mm further along {self.axis} of the frame that carries it"
        about = "its own joint axis (the zero of the joint)" if self.axis == "z" else f"{self.axis} of its own frame"
        return f"turned by {np.degrees(self.amount):.3g}° about {about}"


def best_place(e: Evidence, progress: Progress = silent) -> Misplaced | None:
    """The one change of geometry that explains most; None where there is nothing to be changed, or where no change explains much."""
    few = replace(e, motion=e.motion[:: max(1, len(e.motion) // SAMPLES)])
    here, found, places = (
        _place_of(few, e.machine),
        [],
        [(end, k) for end in ends_of(e.machine) for k in range(end.ways)],
    )
    if here is None:
        return None
    for i, (end, k) in enumerate(places):
        progress("looking at the geometry", float(i), float(len(places)))
        step = _step(few, here, end, k)
        if step is not None:
            found.append((end, k, step))
    progress("looking at the geometry", float(len(places)), float(len(places)))
    best = sorted(found, key=lambda f: f[2][1])[:REFINED_CHANGES]
    followed = (_followed(e, few, end, k, step[0], here.error) for end, k, step in best)
    return min((m for m in followed if m is not None), key=lambda m: m.error, default=None)


@dataclass(frozen=True, eq=False)
class _Place:
    """A geometry: `basis` (rows N, r) of its columns, `residual` (rows N,), and the `forces` (rows, N) of its best parameters `phi`.

    Rows of basis and residual are divided by their `sizes` (rows,).
    """

    machine: Machine
    basis: Array
    residual: Array
    forces: Array
    phi: Array
    sizes: Array

    @property
    def error(self) -> float:
        """The share of the forces that is left."""
        return share(self.residual.reshape(len(self.sizes), -1))


def _place_of(e: Evidence, machine: Machine) -> _Place | None:
    """None where loops cannot be closed."""
    closed = _closed(e, machine)
    if closed is None:
        return None
    machine, m = closed
    equations = e.equations(machine, m)
    columns = equations.W.reshape(-1, equations.W.shape[2])
    norms = np.linalg.norm(columns, axis=0)
    alive = norms > ZERO_COLUMN * norms.max(initial=0.0)
    columns, scale, numbers = columns[:, alive], norms[alive], equations.numbers[alive]
    U, s, Vt = np.linalg.svd(columns / scale, full_matrices=False)
    kept = s > SMALLEST_SINGULAR_VALUE * s.max(initial=0.0)
    U, y = U[:, kept], equations.y.ravel()
    along = U.T @ y
    p = machine.parameters
    phi = p.tie_matrix() @ np.where(np.array(p.states) == "known", p.values, 0.0)
    phi += p.estimated_matrix()[:, numbers] @ (Vt[kept].T @ (along / s[kept]) / scale)
    return _Place(machine, U, y - U @ along, _forces(e, machine, m, phi), phi, equations.sizes)


def _forces(e: Evidence, machine: Machine, m: Motion, phi: Array) -> Array:
    """Γ (rows, N) of parameters."""
    return inverse_dynamics(machine, m, list(e.rows), phi, engine="numpy").T


def _followed(e: Evidence, few: Evidence, end: End, k: int, first: float, error: float) -> Misplaced | None:
    """Gauss-Newton along one change, whose first step is known; None where loops cannot be closed, or where it promises too little."""
    amount, machine = first, moved(e.machine, end, k, first)
    for number in range(PASSES - 1):
        here = _place_of(few, machine)
        step = None if here is None else _step(few, here, end, k)
        if here is None or step is None:
            break
        if number == 0 and min(here.error, step[1]) > PROMISING * error:
            return None
        amount += step[0]
        machine = moved(e.machine, end, k, amount)
        if abs(step[0]) < CONVERGED_STEP:
            break
    closed = _closed(e, machine)
    if closed is None:
        return None
    left, loop = share(e.equations(*closed).solved()[1]), end.joint if end.cut else ""
    return Misplaced(body=end.body, axis="xyz"[k % 3], turned=k >= 3, amount=amount, error=left, loop=loop, far=end.far)


def _closed(e: Evidence, machine: Machine) -> tuple[Machine, Motion] | None:
    """Another geometry and its motion; None where its loops cannot be closed along this motion."""
    if machine is e.machine or not machine.closed:
        return machine, e.motion
    m, own = e.motion, [machine.coordinates.index(c) for c in e.given]
    loose = assembled_at(machine, closed_home(e.machine))
    q, qd, qdd = m.q[:, own], m.qd[:, own], m.qdd[:, own]
    try:
        whole = closed_motion(loose, m.t, q, qd, qdd, at=e.given, base=m.base, start=m.q, engine="numpy")
        return loose, replace(m, q=whole.q, qd=whole.qd, qdd=whole.qdd)
    except (DataError, ModelError):
        return None


def _step(e: Evidence, here: _Place, end: End, k: int) -> tuple[float, float] | None:
    """How far to go along one change of a geometry, and the error to first order; None where it has no effect."""
    there = _closed(e, moved(here.machine, end, k, DIFFERENCE_STEP))
    if there is None:
        return None
    effect = (_forces(e, *there, here.phi) - here.forces) / DIFFERENCE_STEP
    column = (effect / here.sizes[:, None]).ravel()
    size = float(np.linalg.norm(column))
    if size < EFFECT_THRESHOLD:
        return None
    beside = column - here.basis @ (here.basis.T @ column)
    square = float(beside @ beside)
    if square <= (SMALLEST_SINGULAR_VALUE * size) ** 2:
        return None  # the parameters explain it
    amount = float(beside @ here.residual) / square
    left = here.residual - amount * beside
    return amount, share(left.reshape(len(here.sizes), -1))
