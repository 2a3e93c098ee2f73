"""What a log itself says of the geometry, the transmission and the gravity of its machine: is one of them wrong in the model?

A body that sits δ elsewhere changes the equations by δ ∂Γ/∂g, Γ the forces of the parameters that fit best, so δ is one more unknown beside
the parameters: with U an orthonormal basis of the columns of W, s = ∂Γ/∂g − U Uᵀ ∂Γ/∂g and r = y − U Uᵀ y, least squares gives δ = s·r/s·s
and leaves r − δ s. It is tried at one place at a time, each body's position along three axes and its turn about three, and the best are
followed by Gauss-Newton. What parameters can take upon themselves (a frame moved along its own joint)
changes nothing and is never reported. Of a machine with loops the ends of its cut joints are tried as well, and its loops are closed anew
for every place.

Of gears and couplings a sign may be wrong, and a coupling may be missing. Motors are measured, and q = T q_m, Γ = T⁻ᵀ Γ_m. With another
matrix T' the same log says q' = S q and Γ' = S⁻ᵀ Γ, with S = T' T⁻¹, so a wrong entry can be asked about on the side of the joints. A
shaft that turns joint i through joint j adds what motor j turns joint j by, to one side or the other: T'_ij = ±T_jj. Without a
transmission in the model joints are taken for motors, T = 1.

Gravity is found as three more unknowns beside the parameters,

    y = (W₀ + Σ_k g_k W_k) φ        W_k = regressor under unit gravity along axis k, less that under none

For each g the best φ is a least-squares solution (variable projection), so only the direction of g is searched, from the model's own and
from the six of the axes; its size is that of this planet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError
from veridyn.identify.base import ZERO_COLUMN
from veridyn.identify.diagnosis.columns import DIFFERENCE, ROUNDING, Equations, share, triangles_of
from veridyn.identify.diagnosis.evidence import FEW_SAMPLES, Evidence, Replacement
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.elsewhere import End, assembled_at, ends_of, moved
from veridyn.mechanics.tree.loops.closure import closed_home, closed_motion
from veridyn.model.graph import GRAVITY
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

DIFFERENCE_STEP = 1e-4  # m or rad: smaller ones are spoilt by what loops stay open by
PASSES = 3  # of Gauss and Newton, behind the first step
REFINED_CHANGES = 4  # changes that are followed: the first step does not always know the best
COUPLED = 2  # joints farther along the arm that a shaft still reaches: those of a wrist
LOOK = "Look at the transmission of the model: signs of its gears, and entries beside the diagonal."
SIGN, MISSING = "gear sign", "coupling missing"
STANDARD_GRAVITY = float(np.linalg.norm(GRAVITY))  # m/s^2, anywhere on the ground to 0.3 %


@dataclass(frozen=True, kw_only=True)
class Misplaced:
    """Body `body` would sit `amount` (m, or rad where `turned`) further along or about `axis`; the `machine` and its `motion` then.

    With a `loop`, the end of that cut joint on the body; where `far`, the joint on the body that it carries. `error`: the share of the
    forces that it leaves.
    """

    body: str
    axis: str
    turned: bool
    amount: float
    error: float
    machine: Machine
    motion: Motion
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

    @property
    def replacement(self) -> Replacement:
        """As a model that is compared with others."""
        return Replacement(
            kind="geometry",
            where=self.where,
            what="it seems to sit elsewhere than the model says.",
            hint="Look at the lengths, twists and zeros of the model, and whether it is that of this machine.",
            motion=self.motion,
            machine=self.machine,
            estimated=1,
            size=self.amount,
            expected="the place in the model",
            found=self.words,
        )


def best_place(e: Evidence, progress: Progress = silent) -> Misplaced | None:
    """The one change of geometry that explains most; None where there is nothing to be changed."""
    few = replace(e, motion=e.motion[:: max(1, len(e.motion) // FEW_SAMPLES)])
    here, found = _place_of(few, e.machine), []
    places = [(end, k) for end in ends_of(e.machine) for k in range(end.ways)]
    if here is None:
        return None
    for i, (end, k) in enumerate(places):
        progress("looking at the geometry", float(i), float(len(places)))
        step = _step(few, here, end, k)
        if step is not None:
            found.append((end, k, step))
    progress("looking at the geometry", float(len(places)), float(len(places)))
    best = sorted(found, key=lambda f: f[2][1])[:REFINED_CHANGES]
    refined = (_refined(e, few, end, k, step[0]) for end, k, step in best)
    return min((m for m in refined if m is not None), key=lambda m: m.error, default=None)


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
    kept = s > ROUNDING * s.max(initial=0.0)
    U, y = U[:, kept], equations.y.ravel()
    along = U.T @ y
    p = machine.parameters
    phi = p.tie_matrix() @ np.where(np.array(p.states) == "known", p.values, 0.0)
    phi += p.estimated_matrix()[:, numbers] @ (Vt[kept].T @ (along / s[kept]) / scale)
    return _Place(machine, U, y - U @ along, _forces(e, machine, m, phi), phi, equations.sizes)


def _forces(e: Evidence, machine: Machine, m: Motion, phi: Array) -> Array:
    """Γ (rows, N) of parameters."""
    return inverse_dynamics(machine, m, list(e.rows), phi, engine="numpy").T


def _refined(e: Evidence, few: Evidence, end: End, k: int, first: float) -> Misplaced | None:
    """Gauss-Newton along one change, whose first step is known; None where loops cannot be closed."""
    amount, machine = first, moved(e.machine, end, k, first)
    for _ in range(PASSES):
        here = _place_of(few, machine)
        step = None if here is None else _step(few, here, end, k)
        if here is None or step is None:
            break
        amount += step[0]
        machine = moved(e.machine, end, k, amount)
    closed = _closed(e, machine)
    if closed is None:
        return None
    return Misplaced(
        body=end.body,
        axis="xyz"[k % 3],
        turned=k >= 3,
        amount=amount,
        error=e.equations(*closed).error(),
        machine=closed[0],
        motion=closed[1],
        loop=end.joint if end.cut else "",
        far=end.far,
    )


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
    if size < DIFFERENCE:
        return None
    beside = column - here.basis @ (here.basis.T @ column)
    square = float(beside @ beside)
    if square <= (ROUNDING * size) ** 2:
        return None  # the parameters explain it
    amount = float(beside @ here.residual) / square
    left = here.residual - amount * beside
    return amount, share(left.reshape(len(here.sizes), -1))


@dataclass(frozen=True, eq=False)
class Gearing:
    """One other transmission: `change` S (n, n) takes coordinates to those it would give, `forces` S⁻ᵀ forces."""

    kind: str
    where: str
    what: str
    change: Array

    @property
    def forces(self) -> Array:
        """S⁻ᵀ."""
        return np.asarray(np.linalg.inv(self.change).T, dtype=np.float64)


def other_gearings(machine: Machine, joints: tuple[str, ...]) -> Iterator[Gearing]:
    """All single entries of the transmission of another sign, all motors that count the other way, and couplings that may be missing.

    `joints`: those whose position and force are both measured; of a machine without a transmission only these are asked about.
    """
    own = machine.transmission
    names = joints if own is None else own.joints
    T = np.eye(len(names)) if own is None else own.matrix
    motors = names if own is None else own.motors
    place = [machine.coordinates.index(c) for c in names]
    inverse = np.linalg.inv(T)

    def gearing(kind: str, where: str, what: str, other: Array) -> Iterator[Gearing]:
        if np.linalg.matrix_rank(other) == len(names):
            S = np.eye(machine.n)
            S[np.ix_(place, place)] = other @ inverse
            yield Gearing(kind, where, what, S)

    if own is not None:
        beside = np.count_nonzero(T, axis=0) > 1
        for i, j in zip(*np.nonzero(T), strict=True):
            # the sign of a joint's only entry is that of the joint, and of a motor's only entry that of its column: asked elsewhere
            if np.count_nonzero(T[i]) > 1 or beside[j]:
                other = T.copy()
                other[i, j] = -T[i, j]
                where = f"transmission, joint '{names[i]}', motor '{motors[j]}'"
                yield from gearing(SIGN, where, "the sign of this gear or coupling seems to be wrong.", other)
        for j in np.flatnonzero(beside):
            other = T.copy()
            other[:, j] = -T[:, j]
            what = "the motor seems to count the other way than the transmission says."
            yield from gearing(SIGN, f"transmission, motor '{motors[j]}'", what, other)
    yield from _missing(machine, names, motors, T, gearing)


def _missing(machine: Machine, names: tuple[str, ...], motors: tuple[str, ...], T: Array, gearing) -> Iterator[Gearing]:  # pyright: ignore[reportMissingParameterType]
    kinds = dict(zip(machine.coordinates, machine.coordinate_kinds, strict=True))
    pairs = [
        (i, j)
        for i in range(len(names))
        for j in range(max(0, i - COUPLED), i)
        if T[i, j] == 0.0 and T[j, j] != 0.0 and kinds[names[i]] == kinds[names[j]] == "turning"
    ]
    chains = [[(i, j)] for i, j in pairs]
    chains += [[a, b] for a in pairs for b in pairs if a[0] == a[1] + 1 and b == (a[0] + 1, a[0])]
    for chain in chains:
        for side in (-1.0, 1.0):
            other = T.copy()
            for i, j in chain:
                other[i, j] = side * T[j, j]
            listed = " and ".join(
                f"joint '{names[i]}' seems to turn along with motor '{motors[j]}', by {other[i, j]:.4g} of its angle"
                for i, j in chain
            )
            where = "transmission, " + ", ".join(f"joint '{names[i]}'" for i, _ in chain)
            yield from gearing(MISSING, where, f"a coupling seems to be missing: {listed}.", other)


@dataclass(frozen=True, eq=False)
class Gravity:
    """The `gravity` that fits best (m/s^2, in the ground's frame), the machine with it, its motion, and the error it leaves."""

    gravity: Array
    error: float
    machine: Machine
    motion: Motion
    stated: Array

    @property
    def replacement(self) -> Replacement:
        """As a model that is compared with others."""
        return Replacement(
            kind="gravity",
            where="model.gravity",
            what="gravity seems to be other than the model says.",
            hint="Look at how the machine is mounted (a wall, a ceiling), and at the frame the model is written in.",
            motion=self.motion,
            machine=self.machine,
            estimated=2,
            expected=f"({_listed(self.stated)}) m/s^2 by the model",
            found=f"({_listed(self.gravity)})",
        )


def _listed(g: Array) -> str:
    return ", ".join(f"{x:.3g}" for x in g)


def best_gravity(e: Evidence) -> Gravity | None:
    """None where the base is free: its acceleration, gravity included, is measured."""
    machine = e.machine
    if machine.base != "fixed" or not e.rows:
        return None
    few = replace(e, motion=e.motion[:: max(1, len(e.motion) // FEW_SAMPLES)])
    under = [few.equations(replace(machine, gravity=g)) for g in (np.zeros(3), *np.eye(3))]
    # Equations are relative to ‖y‖; only where parameters are known does ‖y‖ itself depend on gravity. [W | y] is linear in gravity, and
    # the R factor of what it is made of has the sums of squares of every direction.
    size, numbers = under[0].sizes, under[0].numbers
    own = [np.concatenate([eq.W, eq.y[:, :, None]], axis=2) * (eq.sizes / size)[:, None, None] for eq in under]
    without, *slopes = np.split(
        triangles_of(np.concatenate([own[0], *(k - own[0] for k in own[1:])], axis=2)), 4, axis=2
    )

    def residual(direction: Array) -> Array:
        g = STANDARD_GRAVITY * direction / np.linalg.norm(direction)
        at = without + sum(gk * slope for gk, slope in zip(g, slopes, strict=True))
        return Equations(at[:, :, :-1], at[:, :, -1], size, numbers).solved()[1]

    stated = np.asarray(machine.gravity, dtype=np.float64)
    starts = [sign * axis for axis in np.eye(3) for sign in (-1.0, 1.0)]
    starts += [stated / np.linalg.norm(stated)] if stated.any() else []
    first = min(starts, key=lambda g: share(residual(g)))
    found = least_squares(lambda g: residual(g).ravel(), first, diff_step=1e-3, max_nfev=12)
    gravity = STANDARD_GRAVITY * found.x / np.linalg.norm(found.x)
    other = replace(machine, gravity=gravity)
    return Gravity(np.asarray(gravity), share(residual(found.x)), other, e.motion, stated)
