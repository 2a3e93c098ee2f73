"""Tyres: contact with the road, slips, forces and lagging states, over scalars of any kind and in every formulation.

Everything is in one frame, that of the wheel's body on trees and the ground's in natural coordinates. s is the wheel's axis, n the road's
normal; forward e_x = s × n/cos γ, left e_y = n × e_x, and r = e_x × s points up in the wheel's plane, with sin γ = s·n and
cos γ = r·n. H is the height of the centre above the road along n:

    ρ = H/cos γ,    ρ̇ = (Ḣ + ρ sin γ (sin γ)˙/cos γ)/cos γ,    v_x = e_x·v_c,    v_y = e_y·(v_c − ρ ω × r),    Ω = s·ω

The force acts at the foot of −ρ r. Laws and constants are those of :mod:`veridyn.model.elements.kinds`; camber has no force of its own.
Reference: H. B. Pacejka, Tyre and Vehicle Dynamics, section 4.3.2 (PAC2002) and chapter 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from veridyn.mechanics.laws import constant_of
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, Wrench
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.spatial.algebra import (
    IDENTITY,
    ZERO,
    Algebra,
    Mat,
    Scalar,
    Vec,
    add,
    cross,
    dot,
    hyperbolic_tangent,
    minus,
    mul,
    plus,
    positive_part,
    product,
    rotate,
    rotate_back,
    scaled,
    sub,
)

SPEED_FLOOR = 1.0  # m/s, the least denominator of a slip
ROLLING_SPEED = 0.1  # m/s, over which rolling resistance grows to its full value
Pair = tuple[Scalar, Scalar]


@dataclass(frozen=True, eq=False)
class Contact:
    """A wheel on the road; vectors are in the frame in which the wheel's motion is given.

    `loaded` is ρ, `deflection` d = R_0 − ρ with its `rate`, `spin` Ω; `vx` and `vy` are speeds of the contact along and across.
    """

    centre: Vec
    axis: Vec
    normal: Vec
    forward: Vec
    left: Vec
    up: Vec
    loaded: Scalar
    deflection: Scalar
    rate: Scalar
    vx: Scalar
    vy: Scalar
    spin: Scalar


class TyreWheel(Protocol):
    """How the wheel of a tyre moves: `pose` is the attitude of the frame of all other vectors and the wheel's centre, in the ground's
    frame.

    `centre` is that from the place about which moments are counted, `v` its velocity, `w` the angular velocity, `axis` the unit axis.
    """

    @property
    def pose(self) -> tuple[Mat, Vec]: ...
    @property
    def axis(self) -> Vec: ...
    @property
    def centre(self) -> Vec: ...
    @property
    def w(self) -> Vec: ...
    @property
    def v(self) -> Vec: ...


@dataclass(frozen=True, eq=False)
class TreeWheel:
    """The wheel of a tyre on a tree, in the frame of its body, about whose origin moments are counted."""

    tree: Tree
    e: Element
    state: State
    o: Outward

    @cached_property
    def body(self) -> int:
        assert self.e.wheel is not None  # the tree was checked when it was built
        return self.tree.index(self.e.wheel.body)

    @cached_property
    def _axis(self) -> Vec:
        assert self.e.wheel is not None
        axis = np.array(self.e.wheel.axis) / np.linalg.norm(self.e.wheel.axis)
        return float(axis[0]), float(axis[1]), float(axis[2])

    @property
    def axis(self) -> Vec:
        return self._axis

    @property
    def centre(self) -> Vec:
        assert self.e.wheel is not None
        return float(self.e.wheel.at[0]), float(self.e.wheel.at[1]), float(self.e.wheel.at[2])

    @property
    def pose(self) -> tuple[Mat, Vec]:
        return self._pose

    @cached_property
    def _pose(self) -> tuple[Mat, Vec]:
        A, P = IDENTITY, ZERO
        for i in self.tree.path(self.body):
            if self.tree.base == "free" and self.tree.antecedent[i] < 0:
                break
            A, P = product(self.o.A[i], A), plus(self.o.P[i], rotate(self.o.A[i], P))
        R, p = self.state.R, self.state.p
        return product(R, A), plus(p, rotate(R, plus(P, rotate(A, self.centre))))

    @property
    def w(self) -> Vec:
        return self.o.w[self.body]

    @property
    def v(self) -> Vec:
        return plus(self.o.v[self.body], cross(self.w, self.centre))


def tyre_of(tree: Tree, e: Element, state: State, o: Outward, signals: Mapping[str, Scalar], algebra: Algebra) -> Tyre:
    """A tyre of a tree at one instant."""
    return Tyre(e, TreeWheel(tree, e, state, o), lambda key: constant_of(tree, e, key, algebra), signals, algebra)


@dataclass(frozen=True, eq=False)
class Tyre:
    """One tyre at one instant: contact, load, forces, wrench and the rates of its lagging slips. `constant`: those of its law by key."""

    e: Element
    wheel: TyreWheel
    constant: Callable[[str], Scalar]
    signals: Mapping[str, Scalar]
    algebra: Algebra

    def _road(self, key: str) -> Scalar:
        """What it reads of the road; the constant zero where nobody says anything."""
        return self.signals.get(f"{self.e.parameter_name}.{key}", 0.0)

    @cached_property
    def contact(self) -> Contact:
        algebra, s = self.algebra, self.wheel.axis
        along, across = self._road("road_x"), self._road("road_y")
        A, (x, y, z) = self.wheel.pose
        length = algebra.sqrt(add(1.0, add(mul(along, along), mul(across, across))))
        n = rotate_back(A, (sub(0.0, along) / length, sub(0.0, across) / length, 1.0 / length))
        road = add(add(self.constant("ROAD"), self._road("road")), add(mul(along, x), mul(across, y)))
        height = sub(z, road) / length
        lean = dot(n, s)
        upright = algebra.sqrt(sub(1.0, mul(lean, lean)))
        forward = scaled(1.0 / upright, cross(s, n))
        left, up = cross(n, forward), cross(forward, s)
        w, v = self.wheel.w, self.wheel.v
        loaded = height / upright
        tipping = mul(mul(loaded, lean), dot(n, cross(w, s))) / upright
        return Contact(
            centre=self.wheel.centre,
            axis=s,
            normal=n,
            forward=forward,
            left=left,
            up=up,
            loaded=loaded,
            deflection=sub(self.constant("UNLOADED_RADIUS"), loaded),
            rate=sub(0.0, add(dot(n, v), tipping) / upright),
            vx=dot(forward, v),
            vy=dot(left, minus(v, scaled(loaded, cross(w, up)))),
            spin=dot(s, w),
        )

    @cached_property
    def load(self) -> Scalar:
        """F_z."""
        c = self.contact
        pressed = mul(self.constant("VERTICAL_STIFFNESS"), c.deflection)
        return positive_part(self.algebra, add(pressed, mul(self.constant("VERTICAL_DAMPING"), c.rate)))

    @cached_property
    def effective_radius(self) -> Scalar:
        """R_e, on which a free wheel rolls."""
        stiffness, nominal = self.constant("VERTICAL_STIFFNESS"), self.constant("FNOMIN")
        ratio = mul(stiffness, positive_part(self.algebra, self.contact.deflection)) / nominal
        lost = mul(self.constant("DREFF"), self.algebra.atan(mul(self.constant("BREFF"), ratio)))
        lost = add(lost, mul(self.constant("FREFF"), ratio))
        return sub(self.constant("UNLOADED_RADIUS"), mul(nominal / stiffness, lost))

    @cached_property
    def slips(self) -> tuple[Scalar, Scalar]:
        """The lagging slips κ' and tan α', which are states."""
        name = self.e.parameter_name
        return self.signals[f"{name}.kappa"], self.signals[f"{name}.tan_alpha"]

    @cached_property
    def forces(self) -> tuple[Scalar, Scalar]:
        """F_x and F_y."""
        return _FORCES[self.e.kind](self)

    def slip_rates(self) -> dict[str, Scalar]:
        """κ̇' and (tan α')˙."""
        c, (kappa, side) = self.contact, self.slips
        speed = _at_least(self.algebra, self.algebra.abs(c.vx), SPEED_FLOOR)
        along, across = _LENGTHS[self.e.kind](self)
        slipping = sub(mul(c.spin, self.effective_radius), c.vx)
        return {
            "kappa": sub(slipping, mul(speed, kappa)) / along,
            "tan_alpha": sub(c.vy, mul(speed, side)) / across,
        }

    @cached_property
    def rolling_moment(self) -> Scalar:
        """M_y, which resists the spin."""
        radius, c = self.constant("UNLOADED_RADIUS"), self.contact
        size = mul(mul(self.constant("QSY1"), self.load), radius)
        return mul(-1.0, mul(size, hyperbolic_tangent(self.algebra, mul(c.spin, radius) / ROLLING_SPEED)))

    def wrench(self) -> Wrench:
        """Force and moment about the place from which the wheel's centre is counted, acting on the wheel."""
        c, (fx, fy) = self.contact, self.forces
        force = plus(plus(scaled(fx, c.forward), scaled(fy, c.left)), scaled(self.load, c.normal))
        foot = minus(c.centre, scaled(c.loaded, c.up))
        return force, plus(cross(foot, force), scaled(self.rolling_moment, c.axis))


def _at_least(algebra: Algebra, x: Scalar, least: Scalar) -> Scalar:
    return add(least, positive_part(algebra, sub(x, least)))


def _magic(t: Tyre, slip: Scalar, b: Scalar, shape: Scalar, peak: Scalar, curvature: Scalar) -> Scalar:
    """D sin(C atan(Bx − E (Bx − atan Bx)))."""
    bx = mul(b, slip)
    bent = sub(bx, mul(curvature, sub(bx, t.algebra.atan(bx))))
    return mul(peak, t.algebra.sin(mul(shape, t.algebra.atan(bent))))


def _weight(t: Tyre, slip: Scalar, other: Scalar, b1: str, b2: str, shape: str, shift: Scalar = 0.0) -> Scalar:
    """cos(C atan(B x)) with B = b1 cos(atan(b2 (other − shift))): what the slip x leaves of the other direction's force."""
    inner = mul(t.constant(b2), sub(other, shift))
    b = t.constant(b1) / t.algebra.sqrt(add(1.0, mul(inner, inner)))
    return t.algebra.cos(mul(t.constant(shape), t.algebra.atan(mul(b, slip))))


def _magic_forces(t: Tyre) -> tuple[Scalar, Scalar]:
    c, a = t.constant, t.algebra
    kappa, side = t.slips
    alpha = a.atan(side)
    over = t.load / c("FNOMIN")
    df = sub(over, 1.0)
    mu = mul(add(c("PDX1"), mul(c("PDX2"), df)), c("LMUX"))
    stiffness = mul(add(c("PKX1"), mul(c("PKX2"), df)), a.exp(mul(c("PKX3"), df)))  # K_x/F_z
    fx = _magic(t, kappa, stiffness / mul(c("PCX1"), mu), c("PCX1"), mul(mu, t.load), c("PEX1"))
    mu = mul(add(c("PDY1"), mul(c("PDY2"), df)), c("LMUY"))
    ratio = over / c("PKY2")
    # K_y/F_z, as sin(2 atan x) = 2x/(1 + x²)
    stiffness = mul(2.0, c("PKY1")) / mul(c("PKY2"), add(1.0, mul(ratio, ratio)))
    fy = _magic(t, alpha, stiffness / mul(c("PCY1"), mu), c("PCY1"), mul(mu, t.load), c("PEY1"))
    fx = mul(fx, _weight(t, alpha, kappa, "RBX1", "RBX2", "RCX1"))
    return fx, mul(fy, _weight(t, kappa, alpha, "RBY1", "RBY2", "RCY1", c("RBY3")))


def _magic_lengths(t: Tyre) -> tuple[Scalar, Scalar]:
    """σ_κ = p_Tx1 R_0 F_z/F_z0 and σ_α = p_Ty1 R_0 sin(2 atan(F_z/(p_Ty2 F_z0))), at least SIGMA_MIN."""
    c, over = t.constant, t.load / t.constant("FNOMIN")
    ratio = over / c("PTY2")
    along = mul(mul(c("PTX1"), c("UNLOADED_RADIUS")), over)
    across = mul(mul(c("PTY1"), c("UNLOADED_RADIUS")), mul(2.0, ratio) / add(1.0, mul(ratio, ratio)))
    least = c("SIGMA_MIN")
    return _at_least(t.algebra, along, least), _at_least(t.algebra, across, least)


def _linear_forces(t: Tyre) -> tuple[Scalar, Scalar]:
    """C_κ κ' and −C_α tan α' while there is a load."""
    kappa, side = t.slips
    touching = t.algebra.sign(t.load)
    fx, fy = mul(t.constant("C_KAPPA"), kappa), mul(-1.0, mul(t.constant("C_ALPHA"), side))
    return mul(touching, fx), mul(touching, fy)


def _linear_lengths(t: Tyre) -> tuple[Scalar, Scalar]:
    return t.constant("SIGMA_KAPPA"), t.constant("SIGMA_ALPHA")


_FORCES: dict[str, Callable[[Tyre], Pair]] = {"tyre": _magic_forces, "linear_tyre": _linear_forces}
_LENGTHS: dict[str, Callable[[Tyre], Pair]] = {"tyre": _magic_lengths, "linear_tyre": _linear_lengths}
