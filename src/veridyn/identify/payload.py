"""A payload as a yardstick, and a payload as the unknown.

A load of known inertia that the machine carries is a wrench it bears: with it on the measured side, drive gains have a scale (Gautier
and Briot, 2014, ASME J. Dyn. Syst. Meas. Control 136(5)). Turned round, a machine that is known, gains included, weighs what it
carries: ten parameters of one body, with everything else known, to within the uncertainty of the fit that it is known from. Errors of
gains and of the empty machine go together (a gain 1 % too large makes both machine and load 1 % too heavy), so their covariance
counts, and not their deviations alone.

The load is given by its mass, its centre of mass and the inertia about it, physically consistent, with where their deviations come from.
The fit of :func:`with_payload` gives base parameters χ̂ = K x of the load's ten parameters x with their covariance C. Its consistent
parameters are the most likely ones that a rigid body can have,

    minimise (K x − χ̂)ᵀ C⁻¹ (K x − χ̂)   subject to   P(x) ⪰ 0,

P the pseudo-inertia (4, 4) (Wensing, Kim and Slotine, 2018, IEEE RA-L 3(1)): a convex problem in ten unknowns, solved along the central
path of −log det P, whose gap to the minimum is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError, ModelError
from veridyn.identify.delivery import uncertainty_of
from veridyn.identify.gains import gain_names
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.mechanics.tree.recursion.kinematics import body_motion
from veridyn.model.graph import unique
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.place import Attachment
from veridyn.spatial.inertia import (
    INERTIAL,
    INERTIAL_UNITS,
    broken_law,
    cross_matrix,
    inertia_matrix,
    pseudo_inertia,
    six,
)
from veridyn.spatial.rotations import MDH, Placement

GAP = 1e-8  # in χ², by which the consistent load may miss the minimum
OPEN_WEIGHT = 1e-6  # in χ² per typical size squared, on what the motion leaves open
START_SHARE = 1e-2  # of the largest eigenvalue of the pseudo-inertia, the least one at the start
MAX_STEPS = 200  # Newton steps for one weight of the barrier
DETERMINED_RESIDUAL = 1e-6  # share of a parameter outside the rows of K, in typical sizes, below which it is determined
NOISE = "noise of the loaded runs"


@takes_machine
def carrying(machine: Machine, motion: Motion, body: str, inertia: ArrayLike) -> Motion:
    """The same motion with a rigid load on `body` whose ten parameters, about that body's origin and in its frame, are known.

    The load enters as the wrench that it puts on the body, so it needs no column and no other model: give the runs with it and those
    without as one list of motions.
    """
    x = np.asarray(inertia, dtype=np.float64)
    law = (
        broken_law(x)
        if x.shape == (10,) and np.isfinite(x).all()
        else "it takes ten numbers, XX XY XZ YY YZ ZZ MX MY MZ M"
    )
    if law:
        raise ModelError(f"no load has this inertia: {law}.", where=f"the load on '{body}'", found=f"{x.tolist()}")
    J, s, m = np.array(inertia_matrix(x)), x[6:9], x[9]
    moved = body_motion(machine, motion, body)
    w, wd, a = moved.omega, moved.omega_dot, moved.acceleration
    force = m * a + np.cross(wd, s) + np.cross(w, np.cross(w, s))
    moment = wd @ J.T + np.cross(w, w @ J.T) + np.cross(s, a)
    own = motion.wrenches.get(body, np.zeros((len(motion), 6)))
    return replace(motion, wrenches={**motion.wrenches, body: own - np.hstack([force, moment])})


@checked
def with_payload(
    machine: Fit | Machine, body: str, placement: Placement | MDH | None = None, name: str = "payload"
) -> Machine:
    """A machine that is known, from a fit or with all its values, carrying a body of ten estimated parameters fixed to `body`.

    Identify it on runs with the load: what comes out is the load alone, in the frame of `placement`. The covariance of a fit, with that of
    known drive gains where they have one, or the uncertainty of a machine goes with it, and so into the deviations of the load. It is in
    formulation tree.
    """
    (machine.described if isinstance(machine, Fit) else machine).need_joints("load on a body")
    known = machine.described.with_parameters(machine.standard) if isinstance(machine, Fit) else machine
    if missing := known.parameters.missing():
        raise ModelError(
            "the machine must be known to weigh what it carries.",
            where=known.name,
            found=f"no value for {', '.join(missing[:6])}",
            hint="Identify it without the load first, and pass the fit.",
        )
    known.body(body)
    if name in known.by_name:
        raise DataError(f"there is a body '{name}' already.", where=known.name, hint="Give name=.")
    flange = Attachment(body, placement or MDH())
    fixed = Joint(name=unique(name, known.joint_names, "joint"), kind="fixed", a=flange, b=name, cut="no")
    sure = known.with_parameters(known.parameters.known(known.parameters.names)).formulated("tree")
    loaded = replace(sure.with_body(Link(name=name), fixed), name=f"{known.name} with {name}")
    return loaded.with_uncertainty(uncertainty_of(machine) if isinstance(machine, Fit) else machine.uncertainty)


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadEstimate:
    """A load on `body`, in the frame `placed` on it. `free` and `values` (10,): parameters about the frame's origin without and with the
    condition of physical consistency, NaN in `free` where the motion does not determine them. `covariance` (10, 10) is that of `free`.
    `determined` (10,) says which of them the motion determines. `shift`: √ of what consistency adds to χ², in standard deviations.
    `mass_budget`: source → standard deviation of the mass from it, in kg; their squares add up."""

    body: str
    free: Array
    values: Array
    covariance: Array
    determined: NDArray[np.bool_]
    shift: float
    mass_budget: Mapping[str, float]
    mass_only: bool = False

    @property
    def mass(self) -> float:
        """kg."""
        return float(self.values[9])

    @property
    def mass_sigma(self) -> float:
        """kg; NaN where the motion does not determine the mass."""
        return float(np.sqrt(self.covariance[9, 9]))

    @property
    def centre(self) -> Array:
        """Centre of mass (3,) in the frame, m."""
        return self.values[6:9] / self.values[9]

    @property
    def inertia(self) -> Array:
        """Inertia (3, 3) about the centre of mass, in the frame's axes, kg*m^2."""
        C = cross_matrix(self.centre)
        return np.array(inertia_matrix(self.values)) - self.mass * C.T @ C

    @property
    def has_inertia(self) -> bool:
        """Whether the motion determines all ten parameters."""
        return bool(self.determined.all()) and not self.mass_only

    @property
    def centre_sigma(self) -> Array:
        """Standard deviations (3,) of the centre, to first order, m: zero where the centre is given."""
        if self.mass_only:
            return np.zeros(3)
        J = np.zeros((3, 10))
        J[:, 6:9] = np.eye(3) / self.mass
        J[:, 9] = -self.centre / self.mass
        return np.sqrt(np.diag(J @ self.covariance @ J.T))

    @property
    def inertia_sigma(self) -> Array:
        """Standard deviations (6,) of XX XY XZ YY YZ ZZ about the centre, to first order, kg*m^2; NaN where they are not determined."""
        if not self.has_inertia:
            return np.full(6, np.nan)
        J = np.array([_about_centre(self.values + h) - _about_centre(self.values - h) for h in 1e-6 * np.eye(10)]).T
        J /= 2e-6
        return np.sqrt(np.diag(J @ self.covariance @ J.T))

    def summary(self) -> str:
        """Mass, centre of mass and inertia with their deviations as plain text."""
        c, s = self.centre, self.centre_sigma
        lines = [f"load on '{self.body}': {self.mass:.4g} ± {self.mass_sigma:.2g} kg"]
        lines += [f"  of that {name}: {value:.2g} kg" for name, value in self.mass_budget.items()]
        given = " (given)" if self.mass_only else ""
        lines.append("centre of mass: " + ", ".join(f"{x:.4g} ± {y:.2g}" for x, y in zip(c, s)) + f" m{given}")
        if self.has_inertia:
            named = zip(INERTIAL[:6], six(self.inertia), self.inertia_sigma)
            lines.append("inertia about it: " + ", ".join(f"{n} {x:.3g} ± {y:.1g}" for n, x, y in named) + " kg*m^2")
        if self.shift > 0.0:
            lines.append(f"made physically consistent at a distance of {self.shift:.2g} standard deviations")
        return "\n".join(lines)


def load_estimate(fit: Fit, body: str, name: str = "payload", empty: Fit | None = None) -> LoadEstimate:
    """The load `name` on `body` from the fit of a machine that carries it, refused by name where mass or centre are not determined.

    `empty`: the fit of the machine without it, which says how much of the deviation is that of given drive gains.
    """
    p = fit.described.parameters
    own = [p.index(f"{s}_{name}") for s in INERTIAL]
    tied = [p.ties.get(p.names[k]) for k in own]
    mass_only = any(t is not None for t in tied)
    T = p.tie_matrix()[np.ix_(own, own)]
    K = fit.base.matrix[:, own] @ T
    others = [k for k in p.select("estimated") if k not in own]
    if others:
        raise IdentificationError(
            "parameters besides those of the load are estimated.", where=name, found=p.names[others[0]]
        )
    typical = p.typical[own]
    determined = _determined(K * typical, T) if not mass_only else np.ones(10, dtype=bool)
    needed = [f"{INERTIAL[k]} [{INERTIAL_UNITS[k]}]" for k in (9, 6, 7, 8) if not determined[k]]
    if needed:
        raise IdentificationError(
            f"the motion does not determine {', '.join(needed)} of the load.",
            where=f"the load on '{body}'",
            hint="Move the joints before it through poses in which gravity pulls in all directions, or estimate the mass alone.",
        )
    C = fit.covariance
    if not np.isfinite(C).all():
        raise IdentificationError("the fit states no covariance of the load.", where=fit.estimator)
    if mass_only:
        factors = T[:, 9]
        mass = float(fit.values[0])
        if not mass > 0.0:
            raise IdentificationError(
                f"the mass of the load is {mass:.4g} kg, below zero.", where=f"the load on '{body}'"
            )
        values, free, shift = factors * mass, factors * mass, 0.0
        covariance = np.outer(factors, factors) * C[0, 0]
        back = np.ones((10, 1))
    else:
        values, shift = consistent_load(K, fit.values, C, typical)
        back = np.linalg.pinv(K * typical) * typical[:, None]
        free, covariance = back @ fit.values, back @ C @ back.T
        free = np.where(determined, free, np.nan)
        covariance = np.where(determined[:, None] & determined, covariance, np.nan)
    return LoadEstimate(
        body=body,
        free=free,
        values=values,
        covariance=covariance,
        determined=determined,
        shift=shift,
        mass_budget=_mass_budget(fit, back[9], empty),
        mass_only=mass_only,
    )


def consistent_load(K: Array, values: Array, covariance: Array, typical: Array) -> tuple[Array, float]:
    """The most likely ten parameters (10,) that a body can have, and the distance to `values` (p,) in standard deviations.

    What K leaves open is held near the smallest solution, in typical sizes, by a weight that costs nothing beside one deviation.
    """
    W = np.linalg.inv(np.linalg.cholesky(covariance))
    A, b = (W @ K) * typical, W @ values
    y = np.linalg.lstsq(A, b, rcond=None)[0]
    if np.linalg.eigvalsh(_scaled(y * typical, typical))[0] > 0.0:
        return y * typical, 0.0
    H, anchor = A.T @ A + OPEN_WEIGHT * np.eye(10), y
    g0 = A.T @ b + OPEN_WEIGHT * anchor
    units = np.array([_scaled(u * typical, typical) for u in np.eye(10)])  # P = Σ y_k units_k
    eigenvalues, V = np.linalg.eigh(np.tensordot(y, units, 1))
    inside = (V * np.maximum(eigenvalues, START_SHARE * np.abs(eigenvalues).max())) @ V.T
    y = np.asarray(np.linalg.lstsq(units.reshape(10, 16).T, inside.ravel(), rcond=None)[0], dtype=np.float64)
    weight = max(float((A @ y - b) @ (A @ y - b)), 1.0)
    while True:
        y, converged = _centred(H, g0, units, y, weight)
        if not converged:
            raise IdentificationError(
                "the search for a physically consistent load did not converge.",
                where="payload",
                expected=f"a gap of {GAP:g} in χ²",
                found=f"{8.0 * weight:.2g} after {MAX_STEPS} steps",
                hint="Estimate the mass alone, or excite the load more.",
            )
        if 8.0 * weight < GAP:  # twice ν times the weight, ν = 4 of log det: the duality gap in χ²
            return y * typical, float(np.linalg.norm(A @ y - b))
        weight /= 10.0


def _centred(H: Array, g0: Array, units: Array, y: Array, weight: float) -> tuple[Array, bool]:
    """Newton's steps for ½ yᵀH y − g0ᵀy − weight log det P(y), from inside; and whether they converged."""
    for _ in range(MAX_STEPS):
        inverse = np.linalg.inv(np.tensordot(y, units, 1))
        each = inverse @ units
        slope = H @ y - g0 - weight * np.trace(each, axis1=1, axis2=2)
        curve = H + weight * np.einsum("aij,bji->ab", each, each)
        step = -np.linalg.solve(curve, slope)
        decrement = float(-slope @ step)
        if decrement < 1e-9 * weight:
            return y, True
        size = 1.0 / (1.0 + np.sqrt(decrement / weight))  # damped: self-concordance keeps P positive definite
        y = y + (size if decrement > 0.1 * weight else 1.0) * step
    return y, False


def _scale(typical: Array) -> Array:
    length = np.sqrt(typical[0] / typical[9])
    return np.array([length, length, length, 1.0]) * np.sqrt(typical[9])


def _scaled(x: Array, typical: Array) -> Array:
    d = _scale(typical)
    return pseudo_inertia(x) / np.outer(d, d)


def _determined(K: Array, T: Array) -> NDArray[np.bool_]:
    basis = np.linalg.svd(K, full_matrices=False)[2]
    outside = np.eye(len(T)) - basis.T @ basis
    return np.linalg.norm(outside, axis=0) < np.sqrt(DETERMINED_RESIDUAL)


def _about_centre(x: Array) -> Array:
    C = cross_matrix(x[6:9] / x[9])
    return six(np.array(inertia_matrix(x)) - x[9] * C.T @ C)


def _mass_budget(fit: Fit, row: Array, empty: Fit | None) -> dict[str, float]:
    """Standard deviations of the mass `row` χ̂ from its independent sources: their squares add up.

    Gains that are known with a deviation act on the load directly and through the machine that was identified with them; gains that were
    estimated are part of that machine.
    """
    total = float(row @ fit.covariance @ row)
    if fit.known is None:
        return {NOISE: float(np.sqrt(total))}
    names, s, C = fit.known.names, row @ fit.known.sensitivity, fit.known.covariance
    known = float(s @ C @ s)
    budget = {NOISE: float(np.sqrt(max(total - known, 0.0)))}
    given = empty.known if empty is not None else None
    if given is None:
        estimated = set(names) & set(gain_names(fit.described))
        budget["the empty machine with its gains" if estimated else "the empty machine"] = float(np.sqrt(known))
        return budget
    assert empty is not None
    leads = [empty.described.parameters.names[k] for k in empty.base.columns]
    direct = np.array([s[names.index(n)] if n in names else 0.0 for n in given.names])
    through = np.array([s[names.index(n)] if n in names else 0.0 for n in leads]) @ given.sensitivity
    gains = float((direct + through) @ given.covariance @ (direct + through))
    budget["the empty machine"] = float(np.sqrt(max(known - gains, 0.0)))
    budget["drive gains as given"] = float(np.sqrt(gains))
    return budget
