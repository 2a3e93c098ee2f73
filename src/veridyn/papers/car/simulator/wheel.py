"""One wheel and its carrier in the car's equations of motion: how they move, what they add, and what a dynamometer between them reads.

A wheel centre moves along a path r(z, rack, forces) and its carrier turns with R = Rz(toe or steering) Rx(camber) Ry(kingpin), by the
elasto-kinematic tables. With a the chassis' specific acceleration, ω̇ its angular acceleration and z̈ that of the clearance,

    acceleration of the wheel centre  = a + ω̇ × r + A₀ + z̈ ∂r/∂z
    angular acceleration of carrier   = ω̇ + W₀ + z̈ ∂turn/∂z

and A₀, W₀ hold what speeds, rack and bushes ask for. The spin of a wheel follows from its own axis e alone,
I_s (Ω̇ + e·ω̇ᵢ) = drive + brake + e·(moment of the road). The work of the road's force along the path is in the wheel's row: a side force
that meets a path which leans jacks the car.
"""

from __future__ import annotations

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core
from veridyn.papers.car.simulator.contact import (
    M3,
    V3,
    add,
    cross,
    dot,
    put,
    scale,
    sub,
    symmetric,
    third,
    turned,
    turned_back,
)
from veridyn.papers.car.simulator.description import (
    BRAKING,
    BUSH,
    BUSHD,
    DRIVE,
    RACK,
    SPIND,
    WHEEL,
    WHEELD,
    WHEELDD,
    WRENCH,
    ZD,
    Z,
)
from veridyn.papers.car.simulator.forces import bar_force, damper_force, spring_force
from veridyn.papers.car.simulator.tables import TableNumbers, in_interval, interval

# Places of a wheel's vectors, all in the chassis frame.
R_, RD, TURN_, OWN, AXIS, AHEAD, PATH, TURN_PATH, A0, W0, CARRIER = 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30


@core
def wheel_tables(i: int, x: Array, design: float, T: TableNumbers, kin: Array) -> None:
    """To `kin`, rows of the five quantities of a wheel: value; slope with z; rate; and the second derivative without z̈, rack's and bushes'.

    The last row is the slope with the rack.
    """
    z, rack = x[Z + i] - design, x[RACK]
    zd, rack_d = x[ZD + i], x[RACK + 1]
    at_z, in_z, past_z = interval(T.clearance, T.clearance_grid, i, z)
    at_rack, in_rack, past_rack = interval(T.rack, T.rack_grid, i, rack)
    for q in range(5):
        a, a1, a2 = in_interval(T.clearance, i, q, at_z, in_z, past_z)
        c, c1, c2 = in_interval(T.rack, i, q, at_rack, in_rack, past_rack)
        if q == 2 and i < 2:
            c, c1 = c + rack, c1 + 1.0
        kin[0, q] = a + c + x[BUSH + 5 * i + q]
        kin[1, q] = a1
        kin[2, q] = a1 * zd + c1 * rack_d + x[BUSHD + 5 * i + q]
        kin[3, q] = a2 * zd * zd + c2 * rack_d * rack_d
        kin[4, q] = c1


@core
def carrier_rotation(keep: Array) -> M3:
    """Rz(toe) Rx(camber) Ry(kingpin): from the carrier to the chassis."""
    return third(keep[CARRIER:]), third(keep[CARRIER + 3 :]), third(keep[CARRIER + 6 :])


@core
def wheel_moves(i: int, x: Array, place: Array, w: V3, kin: Array, keep: Array) -> None:
    """Place, axes and speeds of a wheel, to `keep`: r, ṙ, the carrier's turning rate in the chassis and in space, e, x after toe, paths.

    And the rotation from the carrier to the chassis, by rows.
    """
    k, k1, kd = kin[0], kin[1], kin[2]
    cb, sb, cg, sg, ck, sk = np.cos(k[2]), np.sin(k[2]), np.cos(k[3]), np.sin(k[3]), np.cos(k[4]), np.sin(k[4])
    put(keep[CARRIER:], (cb * ck - sb * sg * sk, -sb * cg, cb * sk + sb * sg * ck))
    put(keep[CARRIER + 3 :], (sb * ck + cb * sg * sk, cb * cg, sb * sk - cb * sg * ck))
    put(keep[CARRIER + 6 :], (-cg * sk, sg, cg * ck))
    ahead, e = (cb, sb, 0.0), (-sb * cg, cb * cg, sg)
    turn = add((0.0, 0.0, kd[2]), add(scale(kd[3], ahead), scale(kd[4], e)))
    put(keep[R_:], (place[0] + k[1], place[1] + k[0], x[Z + i]))
    put(keep[RD:], (kd[1], kd[0], x[ZD + i]))
    put(keep[TURN_:], turn)
    put(keep[OWN:], add(w, turn))
    put(keep[AXIS:], e)
    put(keep[AHEAD:], ahead)
    put(keep[PATH:], (k1[1], k1[0], 1.0))
    put(keep[TURN_PATH:], add((0.0, 0.0, k1[2]), add(scale(k1[3], ahead), scale(k1[4], e))))


@core
def bushes_yield(
    i: int, x: Array, T: TableNumbers, kin: Array, keep: Array, tyre: Array, rack_dd: float, dx: Array, out: Array
) -> None:
    """The compliances of a wheel under its tyre's force, as damped oscillators; the five quantities go to the outputs."""
    R = carrier_rotation(keep)
    force, moment = turned_back(R, third(tyre)), turned_back(R, third(tyre[3:]))
    for q in range(5):
        C = T.compliance[i, q]
        static = C[0] * force[0] + C[1] * force[1] + C[2] * moment[2]
        place = 5 * i + q
        bush_dd = T.lag[0] ** 2 * (static - x[BUSH + place]) - 2.0 * T.lag[1] * T.lag[0] * x[BUSHD + place]
        dx[BUSH + place], dx[BUSHD + place] = x[BUSHD + place], bush_dd
        out[WHEEL + place], out[WHEELD + place] = kin[0, q], kin[2, q]
        out[WHEELDD + place] = kin[3, q] + kin[4, q] * rack_dd + bush_dd


@core
def suspension_force(i: int, x: Array, corner: Array, bar: Array) -> float:
    """What spring, stops, damper, dry friction and bar of a wheel resist its clearance with."""
    opposite = i + 1 if i % 2 == 0 else i - 1
    own = spring_force(x[Z + i], corner) + damper_force(x[ZD + i], corner)
    return own + bar_force(x[Z + i] - x[Z + opposite], bar)


@core
def add_wheel(
    i: int, spin: float, resists: float, c: Array, wheel: Array, w: V3, kin: Array, keep: Array, tyre: Array, out: Array,
    A: Array, b: Array, column: Array, rest: Array,
) -> None:  # fmt: skip
    """Add one carrier c with its wheel to the equations A, b; its row along z, which springs resist, is left in `column` and `rest`."""
    kd = kin[2]
    R = carrier_rotation(keep)
    kdd = out[WHEELDD + 5 * i :]
    r, rd, turn, wi = third(keep[R_:]), third(keep[RD:]), third(keep[TURN_:]), third(keep[OWN:])
    e, ahead, path, turn_path = third(keep[AXIS:]), third(keep[AHEAD:]), third(keep[PATH:]), third(keep[TURN_PATH:])
    F, M = third(tyre), third(tyre[3:])

    # What the accelerations would be if a, ω̇ and z̈ were zero.
    a0 = add(cross(w, cross(w, r)), add(scale(2.0, cross(w, rd)), (kdd[1], kdd[0], 0.0)))
    toe_rate = (0.0, 0.0, kd[2])
    turn_dd = add((0.0, 0.0, kdd[2]), add(scale(kdd[3], ahead), scale(kdd[4], e)))
    lean_rate = add(toe_rate, scale(kd[3], ahead))
    turn_dd = add(turn_dd, add(scale(kd[3], cross(toe_rate, ahead)), scale(kd[4], cross(lean_rate, e))))
    w0 = add(cross(w, turn), turn_dd)
    put(keep[A0:], a0)
    put(keep[W0:], w0)

    mass, It, Is = c[9] + wheel[0], wheel[1], wheel[2]
    s = turned(R, third(c[6:]))
    spin_moment = out[DRIVE + i] + out[BRAKING + i] + dot(M, e)
    bias_force = add(scale(mass, a0), add(cross(w0, s), cross(wi, cross(wi, s))))
    J = _inertia(c, R, e, It)
    momentum = add(turned(J, wi), scale(Is * (spin + dot(e, wi)), e))
    bias = add(turned(J, w0), add(cross(wi, momentum), add(cross(s, a0), scale(spin_moment, e))))
    Fn, Mn = sub(F, bias_force), sub(M, bias)

    # Six rows of the chassis.
    put_skew(A, add(s, scale(mass, r)))
    # −(s̃ r̃ + r̃ s̃ + m r̃ r̃) = −(s rᵀ + r sᵀ + m r rᵀ) + (2 s·r + m r·r) 1
    arms = 2.0 * dot(s, r) + mass * dot(r, r)
    for k3 in range(3):
        A[k3, k3] += mass
        A[3 + k3, 3 + k3] += arms
    _add_row(A[3], J[0], s[0], r[0], s, r, mass)
    _add_row(A[4], J[1], s[1], r[1], s, r, mass)
    _add_row(A[5], J[2], s[2], r[2], s, r, mass)
    all_moment = add(Mn, cross(r, Fn))
    b[0], b[1], b[2] = b[0] + Fn[0], b[1] + Fn[1], b[2] + Fn[2]
    b[3], b[4], b[5] = b[3] + all_moment[0], b[4] + all_moment[1], b[5] + all_moment[2]

    # The row along the wheel's path.
    Fz = add(scale(mass, path), cross(turn_path, s))
    Mz = add(turned(J, turn_path), cross(s, path))
    put(column, Fz)
    put(column[3:], add(Mz, cross(r, Fz)))
    rest[0] = dot(path, Fz) + dot(turn_path, Mz)
    # The shaft's torque reaches the wheel past the carrier; the brake's comes back from it.
    rest[1] = dot(path, Fn) + dot(turn_path, add(Mn, scale(out[DRIVE + i], e))) - resists


@core
def _add_row(row: Array, own: V3, s_k: float, r_k: float, s: V3, r: V3, mass: float) -> None:
    """Add to a row of the chassis' moments what a carrier's inertia and its distance r make of ω̇."""
    more = sub(own, add(scale(s_k + mass * r_k, r), scale(r_k, s)))
    row[3], row[4], row[5] = row[3] + more[0], row[4] + more[1], row[5] + more[2]


@core
def put_skew(A: Array, s: V3) -> None:
    """Add a first moment s to the mass matrix: s × a in the moments, and ω̇ × s in the forces."""
    A[3, 1] -= s[2]
    A[3, 2] += s[1]
    A[4, 0] += s[2]
    A[4, 2] -= s[0]
    A[5, 0] -= s[1]
    A[5, 1] += s[0]
    A[1, 3] -= s[2]
    A[2, 3] += s[1]
    A[0, 4] += s[2]
    A[2, 4] -= s[0]
    A[0, 5] -= s[1]
    A[1, 5] += s[0]


@core
def _inertia(c: Array, R: M3, e: V3, It: float) -> M3:
    """R J_carrier Rᵀ + I_t (1 − e eᵀ), by rows; symmetric."""
    x, y, z = symmetric(c, R[0]), symmetric(c, R[1]), symmetric(c, R[2])
    xy, xz, yz = dot(R[0], y) - It * e[0] * e[1], dot(R[0], z) - It * e[0] * e[2], dot(R[1], z) - It * e[1] * e[2]
    xx, yy = dot(R[0], x) + It * (1.0 - e[0] * e[0]), dot(R[1], y) + It * (1.0 - e[1] * e[1])
    return (xx, xy, xz), (xy, yy, yz), (xz, yz, dot(R[2], z) + It * (1.0 - e[2] * e[2]))


@core
def reading(
    i: int, spin: float, wheel: Array, a: V3, wd: V3, zdd: float, kin: Array, keep: Array, tyre: Array, out: Array,
    whole: bool,
) -> None:  # fmt: skip
    """Ω̇ of a wheel, and the wrench between wheel and carrier that a dynamometric wheel measures, in the carrier's frame.

    Without `whole` Ω̇ alone, which is all that the next state depends on.
    """
    e = third(keep[AXIS:])
    wid = add(add(wd, third(keep[W0:])), scale(zdd, third(keep[TURN_PATH:])))
    if not whole:
        out[SPIND + i] = (out[DRIVE + i] + out[BRAKING + i] + dot(third(tyre[3:]), e)) / wheel[2] - dot(e, wid)
        return
    k1 = kin[1]
    for q in range(5):
        out[WHEELDD + 5 * i + q] += k1[q] * zdd
    wi, r = third(keep[OWN:]), third(keep[R_:])
    acc = add(add(a, cross(wd, r)), add(third(keep[A0:]), scale(zdd, third(keep[PATH:]))))
    mass, It, Is = wheel[0], wheel[1], wheel[2]
    F, M = third(tyre), third(tyre[3:])
    spin_moment = out[DRIVE + i] + out[BRAKING + i] + dot(M, e)
    spin_dd = spin_moment / Is - dot(e, wid)
    out[SPIND + i] = spin_dd
    momentum = add(scale(It, wi), scale((Is - It) * dot(e, wi) + Is * spin, e))
    across = sub(wid, scale(dot(e, wid), e))
    needed = add(add(scale(It, across), cross(wi, momentum)), scale(spin_moment, e))
    R = carrier_rotation(keep)
    put(out[WRENCH + 6 * i :], turned_back(R, sub(F, scale(mass, acc))))
    put(out[WRENCH + 6 * i + 3 :], turned_back(R, sub(M, needed)))
