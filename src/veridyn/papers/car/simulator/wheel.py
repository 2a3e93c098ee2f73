"""The four wheels and their carriers in the car's equations of motion: how they move, what they add, and what dynamometers read.

All four are computed side by side (:mod:`veridyn.papers.car.simulator.lanes`), each equation once.

A wheel centre moves along a path r(z, rack, forces) and its carrier turns with R = Rz(toe or steering) Rx(camber) Ry(kingpin), by the
elasto-kinematic tables. With a the chassis' specific acceleration, ω̇ its angular acceleration and z̈ that of the clearance,

    acceleration of the wheel centre  = a + ω̇ × r + A₀ + z̈ ∂r/∂z
    angular acceleration of carrier   = ω̇ + W₀ + z̈ ∂turn/∂z

and A₀, W₀ hold what speeds, rack and bushes ask for. The spin of a wheel follows from its own axis e alone,
I_s (Ω̇ + e·ω̇ᵢ) = drive + brake + e·(moment of the road). The work of the road's force along the path is in the wheel's row: a side force
that meets a path which leans jacks the car.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, merged
from veridyn.papers.car.simulator.contact import M3, V3, WheelContact, add, cross, dot, scale, sub, turned, turned_back
from veridyn.papers.car.simulator.description import (
    BARS,
    BUSH,
    BUSHD,
    CARRIER,
    COMPLIANCE,
    PLACE,
    RACK,
    SPIN,
    TYRE,
    WHEEL,
    WHEELD,
    WHEELDD,
    WHEELS,
    WRENCH,
    ZD,
    Z,
)
from veridyn.papers.car.simulator.forces import bar_force, damper_force, spring_force
from veridyn.papers.car.simulator.lanes import Lanes, each, four, of_four, put_four, sine_cosine, totals
from veridyn.papers.car.simulator.tables import TableNumbers, in_intervals, intervals

Five: TypeAlias = tuple[Lanes, Lanes, Lanes, Lanes, Lanes]


class Tabled(NamedTuple):
    """The five quantities of the wheels: value; slope with z; rate; second derivative but for z̈, rack and bushes; slope with the rack."""

    value: Five
    slope: Five
    rate: Five
    bend: Five
    by_rack: Five


class Moved(NamedTuple):
    """Of the wheels, in the chassis frame: place, its rate, the carrier's turning rate in the chassis and in space, x after toe, what the
    place and the turn change by with z; and the rotation from the carrier to the chassis, whose second column is the axis e."""

    r: V3
    rd: V3
    turn: V3
    own: V3
    ahead: tuple[Lanes, Lanes]
    path: V3
    turn_path: V3
    R: M3
    e: V3


class Added(NamedTuple):
    """What the wheels leave for the accelerations to come: the row along z, what stands beside it, and the accelerations without them."""

    column: V3
    column_turn: V3
    mu: Lanes
    q: Lanes
    a0: V3
    w0: V3


@merged
def _tabled(
    q: int, x: Array, T: TableNumbers, zd: Lanes, rack_d: float, steered: float, z: V3, rack: V3
) -> tuple[Lanes, Lanes, Lanes, Lanes, Lanes]:
    """One quantity of :class:`Tabled`; the front wheels' toe, where it is `steered`, has the rack's angle itself beside its table."""
    a, a1, a2 = in_intervals(T.clearance, q, z[0], z[1], z[2])
    c, c1, c2 = in_intervals(T.rack, q, rack[0], rack[1], rack[2])
    front = of_four(steered, steered, 0.0, 0.0)
    c, c1 = c + front * x[RACK], c1 + front
    return (
        a + c + four(x, BUSH + 4 * q),
        a1,
        a1 * zd + c1 * rack_d + four(x, BUSHD + 4 * q),
        a2 * zd * zd + c2 * (rack_d * rack_d),
        c1,
    )


@merged
def wheel_tables(x: Array, design: Lanes, T: TableNumbers) -> Tabled:
    """The five quantities of the wheels at their clearances and the rack's angle."""
    zd, rack, rack_d = four(x, ZD), x[RACK], x[RACK + 1]
    at_z = intervals(T.clearance, T.clearance_grid, four(x, Z) - design)
    at_rack = intervals(T.rack, T.rack_grid, of_four(rack, rack, rack, rack))
    a = _tabled(0, x, T, zd, rack_d, 0.0, at_z, at_rack)
    b = _tabled(1, x, T, zd, rack_d, 0.0, at_z, at_rack)
    c = _tabled(2, x, T, zd, rack_d, 1.0, at_z, at_rack)
    d = _tabled(3, x, T, zd, rack_d, 0.0, at_z, at_rack)
    e = _tabled(4, x, T, zd, rack_d, 0.0, at_z, at_rack)
    return Tabled(
        (a[0], b[0], c[0], d[0], e[0]),
        (a[1], b[1], c[1], d[1], e[1]),
        (a[2], b[2], c[2], d[2], e[2]),
        (a[3], b[3], c[3], d[3], e[3]),
        (a[4], b[4], c[4], d[4], e[4]),
    )


@merged
def wheel_moves(x: Array, P: Array, w: V3, T: Tabled) -> Moved:
    """Places, axes and speeds of the wheels."""
    k, k1, kd, z, zd = T.value, T.slope, T.rate, four(x, Z), four(x, ZD)
    sb, cb = sine_cosine(k[2])
    sg, cg = sine_cosine(k[3])
    sk, ck = sine_cosine(k[4])
    e = (-sb * cg, cb * cg, sg)
    R = (
        (cb * ck - sb * sg * sk, e[0], cb * sk + sb * sg * ck),
        (sb * ck + cb * sg * sk, e[1], sb * sk - cb * sg * ck),
        (-cg * sk, sg, cg * ck),
    )
    turn = _about(kd, cb, sb, e)
    return Moved(
        (four(P, 4 * PLACE) + k[1], four(P, 4 * PLACE + 4) + k[0], z),
        (kd[1], kd[0], zd),
        turn,
        add(w, turn),
        (cb, sb),
        (k1[1], k1[0], 1.0 + 0.0 * z),
        _about(k1, cb, sb, e),
        R,
        e,
    )


@merged
def _about(k: Five, cb: Lanes, sb: Lanes, e: V3) -> V3:
    """A turn by toe about z, by camber about x after toe, and by kingpin about e."""
    return (k[3] * cb + k[4] * e[0], k[3] * sb + k[4] * e[1], k[2] + k[4] * e[2])


@merged
def bushes_yield(
    x: Array, P: Array, T: TableNumbers, tabled: Tabled, R: M3, tyre: WheelContact, rack_dd: float, dx: Array
) -> Five:
    """The compliances of the wheels under their tyres' forces, as damped oscillators; second derivatives of the quantities but for z̈."""
    F, M = tyre.force, tyre.moment
    along = R[0][0] * F[0] + R[1][0] * F[1] + R[2][0] * F[2]
    side = R[0][1] * F[0] + R[1][1] * F[1] + R[2][1] * F[2]
    turning = R[0][2] * M[0] + R[1][2] * M[1] + R[2][2] * M[2]
    stiff, slow = T.lag[0] * T.lag[0], 2.0 * T.lag[1] * T.lag[0]
    return (
        _yields(0, x, P, stiff, slow, along, side, turning, dx) + tabled.bend[0] + tabled.by_rack[0] * rack_dd,
        _yields(1, x, P, stiff, slow, along, side, turning, dx) + tabled.bend[1] + tabled.by_rack[1] * rack_dd,
        _yields(2, x, P, stiff, slow, along, side, turning, dx) + tabled.bend[2] + tabled.by_rack[2] * rack_dd,
        _yields(3, x, P, stiff, slow, along, side, turning, dx) + tabled.bend[3] + tabled.by_rack[3] * rack_dd,
        _yields(4, x, P, stiff, slow, along, side, turning, dx) + tabled.bend[4] + tabled.by_rack[4] * rack_dd,
    )


@merged
def _yields(
    q: int, x: Array, P: Array, stiff: float, slow: float, along: Lanes, side: Lanes, turning: Lanes, dx: Array
) -> Lanes:
    """The acceleration of the bushes in one quantity."""
    C, rate = 4 * (COMPLIANCE + 3 * q), four(x, BUSHD + 4 * q)
    static = four(P, C) * along + four(P, C + 4) * side + four(P, C + 8) * turning
    bush_dd = stiff * (static - four(x, BUSH + 4 * q)) - slow * rate
    put_four(dx, BUSH + 4 * q, rate)
    put_four(dx, BUSHD + 4 * q, bush_dd)
    return bush_dd


@merged
def suspension_force(x: Array, corner: Array, P: Array) -> Lanes:
    """What springs, stops, dampers, dry friction and bars resist the clearances with."""
    z = four(x, Z)
    own = spring_force(z, corner) + damper_force(four(x, ZD), corner)
    at = each(z)
    d, front, rear = (four(P, 4 * BARS), four(P, 4 * BARS + 4)), at[0] - at[1], at[2] - at[3]
    return own + bar_force(of_four(front, -front, rear, -rear), d)


@merged
def add_wheels(
    spin: Lanes, resists: Lanes, drive: Lanes, braking: Lanes, P: Array, w: V3, kdd: Five, tabled: Tabled, moved: Moved,
    tyre: WheelContact, A: Array, b: Array,
) -> Added:  # fmt: skip
    """Add the carriers with their wheels to the lower half of A and to b, their rows along z, which springs resist, eliminated."""
    kd = tabled.rate
    r, rd, turn, wi, R, e = moved.r, moved.rd, moved.turn, moved.own, moved.R, moved.e
    cb, sb = moved.ahead
    path, turn_path = moved.path, moved.turn_path
    F, M = tyre.force, tyre.moment
    C, W = 4 * CARRIER, 4 * WHEELS
    mass, It, Is = four(P, C + 36) + four(P, W), four(P, W + 4), four(P, W + 8)

    # What the accelerations would be if a, ω̇ and z̈ were zero.
    a0 = add(cross(w, cross(w, r)), scale(2.0, cross(w, rd)))
    a0 = (a0[0] + kdd[1], a0[1] + kdd[0], a0[2])
    # ω_toe × x and (ω_toe + ω_camber) × e turn the axes of camber and kingpin.
    bare = _about(kdd, cb, sb, e)
    leaning = cross((kd[3] * cb, kd[3] * sb, kd[2]), e)
    turn_dd = (
        bare[0] - kd[3] * kd[2] * sb + kd[4] * leaning[0],
        bare[1] + kd[3] * kd[2] * cb + kd[4] * leaning[1],
        bare[2] + kd[4] * leaning[2],
    )
    w0 = add(cross(w, turn), turn_dd)

    s = turned(R, (four(P, C + 24), four(P, C + 28), four(P, C + 32)))
    spin_moment = drive + braking + dot(M, e)
    bias_force = add(scale(mass, a0), add(cross(w0, s), cross(wi, cross(wi, s))))
    J = _inertia(P, R, e, It)
    momentum = add(turned(J, wi), scale(Is * (spin + dot(e, wi)), e))
    bias = add(turned(J, w0), add(cross(wi, momentum), add(cross(s, a0), scale(spin_moment, e))))
    Fn, Mn = sub(F, bias_force), sub(M, bias)
    turned_by = add(Mn, cross(r, Fn))

    # The row along the wheel's path.
    Fz = add(scale(mass, path), cross(turn_path, s))
    Mz = add(turned(J, turn_path), cross(s, path))
    c, d = Fz, add(Mz, cross(r, Fz))
    mu = dot(path, Fz) + dot(turn_path, Mz)
    # The shaft's torque reaches the wheel past the carrier; the brake's comes back from it.
    q = dot(path, Fn) + dot(turn_path, add(Mn, scale(drive, e))) - resists

    # Six rows of the chassis, less what z̈ takes: (c, d) (c, d)ᵀ / μ.
    over = 1.0 / mu
    k, m = scale(over, c), scale(over, d)
    first = add(s, scale(mass, r))
    # −(s̃ r̃ + r̃ s̃ + m r̃ r̃) = −(s rᵀ + r sᵀ + m r rᵀ) + (2 s·r + m r·r) 1
    arms = 2.0 * dot(s, r) + mass * dot(r, r)
    share = q * over
    t = totals(mass - c[0] * k[0], -c[1] * k[0], mass - c[1] * k[1], -c[2] * k[0])
    A[0, 0], A[1, 0], A[1, 1], A[2, 0] = A[0, 0] + t[0], A[1, 0] + t[1], A[1, 1] + t[2], A[2, 0] + t[3]
    t = totals(-c[2] * k[1], mass - c[2] * k[2], -d[0] * k[0], -first[2] - d[0] * k[1])
    A[2, 1], A[2, 2], A[3, 0], A[3, 1] = A[2, 1] + t[0], A[2, 2] + t[1], A[3, 0] + t[2], A[3, 1] + t[3]
    t = totals(first[1] - d[0] * k[2], first[2] - d[1] * k[0], -d[1] * k[1], -first[0] - d[1] * k[2])
    A[3, 2], A[4, 0], A[4, 1], A[4, 2] = A[3, 2] + t[0], A[4, 0] + t[1], A[4, 1] + t[2], A[4, 2] + t[3]
    t = totals(-first[1] - d[2] * k[0], first[0] - d[2] * k[1], -d[2] * k[2], F[0] * 0.0)
    A[5, 0], A[5, 1], A[5, 2] = A[5, 0] + t[0], A[5, 1] + t[1], A[5, 2] + t[2]
    t = totals(
        J[0][0] + arms - s[0] * r[0] - r[0] * first[0] - d[0] * m[0],
        J[0][1] - s[0] * r[1] - r[0] * first[1] - d[1] * m[0],
        J[1][1] + arms - s[1] * r[1] - r[1] * first[1] - d[1] * m[1],
        J[0][2] - s[0] * r[2] - r[0] * first[2] - d[2] * m[0],
    )
    A[3, 3], A[4, 3], A[4, 4], A[5, 3] = A[3, 3] + t[0], A[4, 3] + t[1], A[4, 4] + t[2], A[5, 3] + t[3]
    t = totals(
        J[1][2] - s[1] * r[2] - r[1] * first[2] - d[2] * m[1],
        J[2][2] + arms - s[2] * r[2] - r[2] * first[2] - d[2] * m[2],
        Fn[0] - c[0] * share,
        Fn[1] - c[1] * share,
    )
    A[5, 4], A[5, 5], b[0], b[1] = A[5, 4] + t[0], A[5, 5] + t[1], b[0] + t[2], b[1] + t[3]
    t = totals(
        Fn[2] - c[2] * share,
        turned_by[0] - d[0] * share,
        turned_by[1] - d[1] * share,
        turned_by[2] - d[2] * share,
    )
    b[2], b[3], b[4], b[5] = b[2] + t[0], b[3] + t[1], b[4] + t[2], b[5] + t[3]
    return Added(c, d, mu, q, a0, w0)


@merged
def _row(P: Array, at: int, v: V3) -> V3:
    """The carriers' own inertia, given as XX XY XZ YY YZ ZZ, times v."""
    xx, xy, xz = four(P, at), four(P, at + 4), four(P, at + 8)
    yy, yz, zz = four(P, at + 12), four(P, at + 16), four(P, at + 20)
    return (xx * v[0] + xy * v[1] + xz * v[2], xy * v[0] + yy * v[1] + yz * v[2], xz * v[0] + yz * v[1] + zz * v[2])


@merged
def _inertia(P: Array, R: M3, e: V3, It: Lanes) -> M3:
    """R J_carrier Rᵀ + I_t (1 − e eᵀ), by rows; symmetric."""
    x, y, z = _row(P, 4 * CARRIER, R[0]), _row(P, 4 * CARRIER, R[1]), _row(P, 4 * CARRIER, R[2])
    xy, xz, yz = dot(R[0], y) - It * e[0] * e[1], dot(R[0], z) - It * e[0] * e[2], dot(R[1], z) - It * e[1] * e[2]
    xx, yy = dot(R[0], x) + It * (1.0 - e[0] * e[0]), dot(R[1], y) + It * (1.0 - e[1] * e[1])
    return (xx, xy, xz), (xy, yy, yz), (xz, yz, dot(R[2], z) + It * (1.0 - e[2] * e[2]))


@merged
def spins(
    zdd: Lanes, drive: Lanes, braking: Lanes, P: Array, wd: V3, moved: Moved, tyre: WheelContact, w0: V3
) -> Lanes:
    """Ω̇ of the wheels."""
    wid = add(add(wd, w0), scale(zdd, moved.turn_path))
    return (drive + braking + dot(tyre.moment, moved.e)) / four(P, 4 * WHEELS + 8) - dot(moved.e, wid)


@core
def wheel_outputs(
    x: Array, zdd: Lanes, drive: Lanes, braking: Lanes, P: Array, a: V3, wd: V3, kdd: Five, tabled: Tabled, moved: Moved,
    tyre: WheelContact, added: Added, out: Array, slope: Array, wrench: Array,
) -> None:  # fmt: skip
    """To the outputs: the five quantities, the tyres, and what dynamometric wheels measure, in the carriers' frames.

    And the quantities' slopes with z, and the tyres' wrenches in the chassis frame, (4, 5) and (4, 6).
    """
    spin, R, e, wi, r = four(x, SPIN), moved.R, moved.e, moved.own, moved.r
    acc = add(add(a, cross(wd, r)), add(added.a0, scale(zdd, moved.path)))
    wid = add(add(wd, added.w0), scale(zdd, moved.turn_path))
    W = 4 * WHEELS
    mass, It, Is = four(P, W), four(P, W + 4), four(P, W + 8)
    F, M = tyre.force, tyre.moment
    spin_moment = drive + braking + dot(M, e)
    momentum = add(scale(It, wi), scale((Is - It) * dot(e, wi) + Is * spin, e))
    across = sub(wid, scale(dot(e, wid), e))
    needed = add(add(scale(It, across), cross(wi, momentum)), scale(spin_moment, e))
    force, moment = turned_back(R, sub(F, scale(mass, acc))), turned_back(R, sub(M, needed))
    for i in range(4):
        for k in range(3):
            out[WRENCH + 6 * i + k], out[WRENCH + 6 * i + 3 + k] = _one(force, k, i), _one(moment, k, i)
            wrench[i, k], wrench[i, 3 + k] = _one(F, k, i), _one(M, k, i)
        for k in range(5):
            at = 5 * i + k
            out[WHEEL + at], out[WHEELD + at] = _one(tabled.value, k, i), _one(tabled.rate, k, i)
            slope[i, k] = _one(tabled.slope, k, i)
            out[WHEELDD + at] = _one(kdd, k, i) + slope[i, k] * each(zdd)[i]
        for k in range(7):
            out[TYRE + 7 * i + k] = _one(tyre.of_tyre, k, i)


@core
def _one(values: tuple[Lanes, ...], k: int, wheel: int) -> float:
    """One number of one wheel."""
    return each(values[k])[wheel]
