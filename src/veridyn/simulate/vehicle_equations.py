"""The car's equations of motion, written out by hand in the chassis frame and compiled.

Unknowns are the chassis' specific acceleration a = v̇ − g and angular acceleration ω̇, and the four z̈. Newton's and Euler's laws of
chassis, wheel carriers and wheels, projected on these ten directions, make

    [ M₆  c₁ … c₄ ] [a, ω̇]   [ wrench on the whole car, less what speeds ask for          ]
    [ cᵢᵀ    μᵢ   ] [ z̈ᵢ ] = [ what acts along the path of wheel i, springs among it        ]

and the four z̈ are eliminated by hand, so that six equations are solved. A wheel centre moves along a path r(z, rack, forces) and its
carrier turns with R = Rz(toe or steering) Rx(camber) Ry(kingpin). The spin of a wheel follows from its own axis alone,
I_s (Ω̇ + e·ω̇ᵢ) = drive + brake + e·(moment of the road), and stands in the others through that. No part of this
file uses the package's recursions, so that the one can be held against the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.road import road_at
from veridyn.simulate.aerodynamics import AeroNumbers, air_wrench
from veridyn.simulate.driveline import brake_torque, engine_torque
from veridyn.simulate.suspension import SuspensionNumbers, bar_force, damper_force, spring_force
from veridyn.simulate.vehicle_contact import TyreNumbers, contact
from veridyn.simulate.vehicle_tables import TableNumbers, looked_up
from veridyn.simulate.vehicle_vectors import (
    M3,
    V3,
    add,
    attitude,
    cross,
    dot,
    put,
    scale,
    solve_positive,
    sub,
    symmetric,
    third,
    turned,
    turned_back,
)

Array = NDArray[np.float64]

# Places in the state.
POSITION, QUATERNION, VELOCITY, OMEGA, Z, ZD = 0, 3, 7, 10, 13, 17
ANGLE, SPIN, SLIP_X, SLIP_Y, RACK, BUSH, BUSHD = 21, 25, 29, 33, 37, 39, 59
TWIST, ENGINE, BLOCK, TURN, INTEGRAL, BRAKE, STATES = 79, 80, 81, 83, 85, 86, 87

# Places in the outputs of one instant: 3, 3, 4, 4, then per wheel 6 (wrench), 5 (tables), 5 rates, 5 accelerations, 7 (tyre); torques.
ACC, ALPHA, ZDD, SPIND, WRENCH, WHEEL, WHEELD, WHEELDD, TYRE = 0, 3, 6, 10, 14, 38, 58, 78, 98
DRIVE, BRAKING, AIR, RACKDD, OUTPUTS = 126, 130, 134, 140, 141

# Places in the inputs of one instant: steering wheel angle (rad), speed asked for (m/s) and its derivative, braking asked for (m/s²),
# whether the speed controller works (1) or not (0), and torque of the engine beside the controller's (N m at the wheels).
HAND, SPEED, PUSH, BRAKES, CONTROL, PEDAL, INPUTS = 0, 1, 2, 3, 4, 5, 6


class CarNumbers(NamedTuple):
    """All settings as arrays: ten of the chassis, ten of each carrier, mass, I_t and I_s of each wheel, and those of the parts."""

    chassis: Array
    carrier: Array
    wheel: Array
    place: Array
    steering: Array
    gravity: float
    push: float
    suspension: SuspensionNumbers
    tables: TableNumbers
    tyres: TyreNumbers
    driveline: Array
    brakes: Array
    air: AeroNumbers
    grip: float


class Work(NamedTuple):
    """Memory that is used again at every instant."""

    A: Array
    b: Array
    column: Array
    rest: Array
    kin: Array
    tyre: Array
    air: Array


def workspace() -> Work:
    return Work(
        np.zeros((6, 6)),
        np.zeros(6),
        np.zeros((4, 6)),
        np.zeros((4, 2)),
        np.zeros((4, 5, 5)),
        np.zeros((4, 6)),
        np.zeros(6),
    )


@compiled
def _tables(i: int, x: Array, P: CarNumbers, kin: Array) -> None:
    """To `kin`, rows of the five quantities of a wheel: value; slope with z; rate; and the second derivative without z̈, rack's and bushes'.

    The last row is the slope with the rack.
    """
    T = P.tables
    z, rack = x[Z + i] - P.suspension.corner[i, 4], x[RACK]
    zd, rack_d = x[ZD + i], x[RACK + 1]
    for q in range(5):
        a, a1, a2 = looked_up(T.clearance, T.clearance_grid, i, q, z)
        c, c1, c2 = looked_up(T.rack, T.rack_grid, i, q, rack)
        if q == 2 and i < 2:
            c, c1 = c + rack, c1 + 1.0
        kin[i, 0, q] = a + c + x[BUSH + 5 * i + q]
        kin[i, 1, q] = a1
        kin[i, 2, q] = a1 * zd + c1 * rack_d + x[BUSHD + 5 * i + q]
        kin[i, 3, q] = a2 * zd * zd + c2 * rack_d * rack_d
        kin[i, 4, q] = c1


@compiled
def _axes(toe: float, camber: float) -> tuple[V3, V3]:
    """x after the toe angle, and the spin axis e after toe and camber, in the chassis frame."""
    cb, sb, cg, sg = np.cos(toe), np.sin(toe), np.cos(camber), np.sin(camber)
    return (cb, sb, 0.0), (-sb * cg, cb * cg, sg)


@compiled
def _rotation(toe: float, camber: float, kingpin: float) -> M3:
    """Rz(toe) Rx(camber) Ry(kingpin): from the carrier to the chassis."""
    cb, sb, cg, sg, ck, sk = np.cos(toe), np.sin(toe), np.cos(camber), np.sin(camber), np.cos(kingpin), np.sin(kingpin)
    return (
        (cb * ck - sb * sg * sk, -sb * cg, cb * sk + sb * sg * ck),
        (sb * ck + cb * sg * sk, cb * cg, sb * sk - cb * sg * ck),
        (-cg * sk, sg, cg * ck),
    )


@compiled
def rates(x: Array, u: Array, P: CarNumbers, road: Array, dx: Array, out: Array, work: Work) -> None:
    """dx = ẋ of the state x under the inputs u; everything that a sensor may ask for is left in `out`."""
    A, b = work.A, work.b
    R = attitude(x[3], x[4], x[5], x[6])
    v, w = third(x, VELOCITY), third(x, OMEGA)
    g = scale(-P.gravity, R[2])

    # Powertrain.
    D = P.driveline
    mean_spin = 0.5 * (x[SPIN] + x[SPIN + 1])
    engine, integral_rate = 0.0, 0.0
    if u[CONTROL] > 0.0:
        engine, integral_rate = engine_torque(u[SPEED] - v[0], x[INTEGRAL], P.push * u[PUSH], D)
    engine += u[PEDAL]
    flexible = D[0] > 0.0
    shaft = D[3] * x[TWIST] + D[4] * (x[ENGINE] - mean_spin) if flexible else engine
    dx[TWIST] = x[ENGINE] - mean_spin if flexible else 0.0
    dx[ENGINE] = (engine - shaft) / D[1] if flexible else 0.0
    dx[INTEGRAL] = integral_rate
    dx[BRAKE] = (u[BRAKES] - x[BRAKE]) / P.brakes[4]

    # Kinematics of the wheels and the forces of their tyres.
    aligning = 0.0
    for i in range(4):
        kin = work.kin
        _tables(i, x, P, kin)
        k, kd = kin[i, 0], kin[i, 2]
        x_toe, e = _axes(k[2], k[3])
        r = (P.place[i, 0] + k[1], P.place[i, 1] + k[0], x[Z + i])
        rd = (kd[1], kd[0], x[ZD + i])
        wi = add(add(w, (0.0, 0.0, kd[2])), add(scale(kd[3], x_toe), scale(kd[4], e)))
        vP = add(add(v, cross(w, r)), rd)
        at = add(third(x, POSITION), turned(R, r))
        h, hx, hy = road_at(road, at[0], at[1])
        length = 1.0 / np.sqrt(1.0 + hx * hx + hy * hy)
        n = turned_back(R, (-hx * length, -hy * length, length))
        F, M, ud, vd = contact(
            i, P.tyres, n, e, (at[2] - h) * length, vP, wi, x[SPIN + i], x[SLIP_X + i], x[SLIP_Y + i], P.grip,
            out[TYRE + 7 * i : TYRE + 7 * i + 7],
        )  # fmt: skip
        put(work.tyre[i], 0, F)
        put(work.tyre[i], 3, M)
        dx[SLIP_X + i], dx[SLIP_Y + i] = ud, vd
        if i < 2:
            aligning += M[2]

    # Steering: the rack follows the driver's wheel as an oscillator and yields to the tyres' moments.
    S = P.steering
    rack_dd = S[1] * S[1] * (u[HAND] / S[0] + S[3] * aligning - x[RACK]) - 2.0 * S[2] * S[1] * x[RACK + 1]
    dx[RACK], dx[RACK + 1] = x[RACK + 1], rack_dd
    out[RACKDD] = rack_dd

    # The chassis.
    m, s = P.chassis[9], third(P.chassis, 6)
    J = P.chassis
    A[:] = 0.0
    A[0, 0], A[1, 1], A[2, 2] = m, m, m
    _put_skew(A, s)
    A[3, 3], A[3, 4], A[3, 5], A[4, 4], A[4, 5], A[5, 5] = J[0], J[1], J[2], J[3], J[4], J[5]
    A[4, 3], A[5, 3], A[5, 4] = J[1], J[2], J[4]
    air_wrench(v[0], v[1], v[2], P.air, work.air)
    put(b, 0, sub(third(work.air, 0), cross(w, cross(w, s))))
    put(b, 3, sub(third(work.air, 3), cross(w, symmetric(J, w))))
    for k6 in range(6):
        out[AIR + k6] = work.air[k6]

    # Carriers and wheels.
    for i in range(4):
        drive = 0.5 * shaft if i < 2 else 0.0
        brake = brake_torque(x[BRAKE], x[SPIN + i], i, P.brakes)
        out[DRIVE + i], out[BRAKING + i] = drive, brake
        _wheel(i, x, P, w, rack_dd, drive, brake, dx, out, work)

    if flexible:
        _block(x, D, w, shaft, A, b)
    for i in range(4):
        c, mu, q = work.column[i], work.rest[i, 0], work.rest[i, 1]
        for k6 in range(6):
            b[k6] -= c[k6] * q / mu
            for j6 in range(6):
                A[k6, j6] -= c[k6] * c[j6] / mu
    solve_positive(A, b)
    a, wd = third(b, 0), third(b, 3)
    for i in range(4):
        c = work.column[i]
        zdd = (work.rest[i, 1] - (dot(third(c, 0), a) + dot(third(c, 3), wd))) / work.rest[i, 0]
        out[ZDD + i] = zdd
        dx[Z + i], dx[ZD + i] = x[ZD + i], zdd
        dx[ANGLE + i] = x[SPIN + i]
        _reading(i, x, P, w, a, wd, zdd, dx, out, work)
    put(out, ACC, a)
    put(out, ALPHA, wd)

    put(dx, POSITION, turned(R, v))
    qw, qx, qy, qz = x[3], x[4], x[5], x[6]
    dx[3] = 0.5 * (-qx * w[0] - qy * w[1] - qz * w[2])
    dx[4] = 0.5 * (qw * w[0] + qy * w[2] - qz * w[1])
    dx[5] = 0.5 * (qw * w[1] + qz * w[0] - qx * w[2])
    dx[6] = 0.5 * (qw * w[2] + qx * w[1] - qy * w[0])
    put(dx, VELOCITY, sub(add(a, g), cross(w, v)))
    put(dx, OMEGA, wd)
    if flexible:
        at = third(D, 5)
        felt = add(a, add(cross(wd, at), cross(w, cross(w, at))))
        dx[BLOCK], dx[TURN] = x[BLOCK + 1], x[TURN + 1]
        dx[BLOCK + 1] = -felt[0] - (D[9] * x[BLOCK] + D[10] * x[BLOCK + 1]) / D[8]
        reaction = shaft + (engine - shaft) / D[2]
        dx[TURN + 1] = -wd[1] - (D[12] * x[TURN] + D[13] * x[TURN + 1] + reaction) / D[11]
    else:
        dx[BLOCK], dx[BLOCK + 1], dx[TURN], dx[TURN + 1] = 0.0, 0.0, 0.0, 0.0


@compiled
def _put_skew(A: Array, s: V3) -> None:
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


@compiled
def _block(x: Array, D: Array, w: V3, shaft: float, A: Array, b: Array) -> None:
    """An engine block on mounts: its mass along x and its inertia about y leave the chassis, its mounts' forces come."""
    at = third(D, 5)
    arm = cross(at, (1.0, 0.0, 0.0))
    mass = D[8]
    direction = (1.0, 0.0, 0.0, arm[0], arm[1], arm[2])
    swing = cross(w, cross(w, at))[0]
    force = D[9] * x[BLOCK] + D[10] * x[BLOCK + 1] + mass * swing
    for k in range(6):
        b[k] += direction[k] * force
        for j in range(6):
            A[k, j] -= mass * direction[k] * direction[j]
    A[4, 4] -= D[11]
    b[4] += D[12] * x[TURN] + D[13] * x[TURN + 1] + shaft


@compiled
def _wheel(
    i: int,
    x: Array,
    P: CarNumbers,
    w: V3,
    rack_dd: float,
    drive: float,
    brake: float,
    dx: Array,
    out: Array,
    work: Work,
) -> None:
    """Add one carrier with its wheel to the equations; its row along z is left in work.column and work.rest."""
    A, b = work.A, work.b
    k, k1, kd = work.kin[i, 0], work.kin[i, 1], work.kin[i, 2]
    R = _rotation(k[2], k[3], k[4])
    x_toe, e = _axes(k[2], k[3])
    F, M = third(work.tyre[i], 0), third(work.tyre[i], 3)
    own_force, own_moment = turned_back(R, F), turned_back(R, M)
    T = P.tables
    for q in range(5):
        C = T.compliance[i, q]
        asked = C[0] * own_force[0] + C[1] * own_force[1] + C[2] * own_moment[2]
        place = 5 * i + q
        bush_dd = T.lag[0] ** 2 * (asked - x[BUSH + place]) - 2.0 * T.lag[1] * T.lag[0] * x[BUSHD + place]
        dx[BUSH + place], dx[BUSHD + place] = x[BUSHD + place], bush_dd
        out[WHEEL + place], out[WHEELD + place] = k[q], kd[q]
        out[WHEELDD + place] = work.kin[i, 3, q] + work.kin[i, 4, q] * rack_dd + bush_dd
    kdd = out[WHEELDD + 5 * i : WHEELDD + 5 * i + 5]

    r = (P.place[i, 0] + k[1], P.place[i, 1] + k[0], x[Z + i])
    rd = (kd[1], kd[0], x[ZD + i])
    path = (k1[1], k1[0], 1.0)
    toe_rate = (0.0, 0.0, kd[2])
    turn = add(toe_rate, add(scale(kd[3], x_toe), scale(kd[4], e)))
    turn_path = add((0.0, 0.0, k1[2]), add(scale(k1[3], x_toe), scale(k1[4], e)))
    lean_rate = add(toe_rate, scale(kd[3], x_toe))
    wi = add(w, turn)
    # What the accelerations would be if a, ω̇ and z̈ were zero.
    A0 = add(cross(w, cross(w, r)), add(scale(2.0, cross(w, rd)), (kdd[1], kdd[0], 0.0)))
    turn_dd = add((0.0, 0.0, kdd[2]), add(scale(kdd[3], x_toe), scale(kdd[4], e)))
    turn_dd = add(turn_dd, add(scale(kd[3], cross(toe_rate, x_toe)), scale(kd[4], cross(lean_rate, e))))
    W0 = add(cross(w, turn), turn_dd)

    c = P.carrier[i]
    mass, It, Is = c[9] + P.wheel[i, 0], P.wheel[i, 1], P.wheel[i, 2]
    s = turned(R, third(c, 6))
    S = add(s, scale(mass, r))
    spin_moment = drive + brake + dot(M, e)
    bias_force = add(scale(mass, A0), add(cross(W0, s), cross(wi, cross(wi, s))))
    momentum = add(_inertia(c, R, e, It, Is, wi), scale(Is * x[SPIN + i], e))
    bias = add(_inertia(c, R, e, It, 0.0, W0), add(cross(wi, momentum), add(cross(s, A0), scale(spin_moment, e))))
    Fn, Mn = sub(F, bias_force), sub(M, bias)

    # Six rows of the chassis.
    for k3 in range(3):
        A[k3, k3] += mass
    _put_skew(A, S)
    for k3 in range(3):
        unit = (1.0 if k3 == 0 else 0.0, 1.0 if k3 == 1 else 0.0, 1.0 if k3 == 2 else 0.0)
        about = _inertia(c, R, e, It, 0.0, unit)
        about = sub(
            about, add(cross(s, cross(r, unit)), add(cross(r, cross(s, unit)), scale(mass, cross(r, cross(r, unit)))))
        )
        for j3 in range(3):
            A[3 + j3, 3 + k3] += about[j3]
    all_moment = add(Mn, cross(r, Fn))
    for k3 in range(3):
        b[k3] += Fn[k3]
        b[3 + k3] += all_moment[k3]

    # The row along the wheel's path.
    Fz = add(scale(mass, path), cross(turn_path, s))
    Mz = add(_inertia(c, R, e, It, 0.0, turn_path), cross(s, path))
    put(work.column[i], 0, Fz)
    put(work.column[i], 3, add(Mz, cross(r, Fz)))
    work.rest[i, 0] = dot(path, Fz) + dot(turn_path, Mz)
    opposite = i + 1 if i % 2 == 0 else i - 1
    U = P.suspension
    resists = spring_force(x[Z + i], U.corner[i]) + damper_force(x[ZD + i], U.corner[i])
    resists += bar_force(x[Z + i] - x[Z + opposite], U.bar[i // 2])
    work.rest[i, 1] = dot(path, Fn) + dot(turn_path, add(Mn, scale(drive, e))) - resists


@compiled
def _inertia(c: Array, R: M3, e: V3, It: float, Is: float, a: V3) -> V3:
    """(R J_carrier Rᵀ + I_t (1 − e eᵀ) + I_s e eᵀ) a."""
    return add(turned(R, symmetric(c, turned_back(R, a))), add(scale(It, a), scale((Is - It) * dot(e, a), e)))


@compiled
def _reading(
    i: int, x: Array, P: CarNumbers, w: V3, a: V3, wd: V3, zdd: float, dx: Array, out: Array, work: Work
) -> None:
    """Ω̇ of a wheel, and the wrench between wheel and carrier that a dynamometric wheel measures, in the carrier's frame."""
    k, k1, kd = work.kin[i, 0], work.kin[i, 1], work.kin[i, 2]
    for q in range(5):
        out[WHEELDD + 5 * i + q] += k1[q] * zdd
    kdd = out[WHEELDD + 5 * i : WHEELDD + 5 * i + 5]
    R = _rotation(k[2], k[3], k[4])
    x_toe, e = _axes(k[2], k[3])
    r = (P.place[i, 0] + k[1], P.place[i, 1] + k[0], x[Z + i])
    rd = (kd[1], kd[0], x[ZD + i])
    toe_rate = (0.0, 0.0, kd[2])
    lean_rate = add(toe_rate, scale(kd[3], x_toe))
    turn = add(lean_rate, scale(kd[4], e))
    turn_dd = add((0.0, 0.0, kdd[2]), add(scale(kdd[3], x_toe), scale(kdd[4], e)))
    turn_dd = add(turn_dd, add(scale(kd[3], cross(toe_rate, x_toe)), scale(kd[4], cross(lean_rate, e))))
    wi = add(w, turn)
    wid = add(wd, add(cross(w, turn), turn_dd))
    acc = add(add(a, cross(wd, r)), cross(w, cross(w, r)))
    acc = add(acc, add(scale(2.0, cross(w, rd)), (kdd[1], kdd[0], zdd)))
    mass, It, Is = P.wheel[i, 0], P.wheel[i, 1], P.wheel[i, 2]
    F, M = third(work.tyre[i], 0), third(work.tyre[i], 3)
    spin_moment = out[DRIVE + i] + out[BRAKING + i] + dot(M, e)
    spin_dd = spin_moment / Is - dot(e, wid)
    out[SPIND + i] = spin_dd
    dx[SPIN + i] = spin_dd
    momentum = add(scale(It, wi), scale((Is - It) * dot(e, wi) + Is * x[SPIN + i], e))
    across = sub(wid, scale(dot(e, wid), e))
    needed = add(add(scale(It, across), cross(wi, momentum)), scale(spin_moment, e))
    put(out, WRENCH + 6 * i, turned_back(R, sub(F, scale(mass, acc))))
    put(out, WRENCH + 6 * i + 3, turned_back(R, sub(M, needed)))


@compiled
def march(
    x: Array, u: Array, step: float, every: int, P: CarNumbers, road: Array, states: Array, outputs: Array, work: Work
) -> int:
    """Runge and Kutta's fourth-order steps from x, with inputs u at whole and half steps; the last good sample's number + 1.

    Samples are kept `every` so many steps, with the outputs of the same instant. Stops where the state is no longer finite.
    """
    n = len(x)
    k1, k2, k3, k4, y = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    out = np.zeros(OUTPUTS)
    count = (len(u) - 1) // 2
    kept = 0
    for s in range(count + 1):
        rates(x, u[2 * s], P, road, k1, out, work)
        if s % every == 0:
            total = 0.0
            for j in range(n):
                total += abs(x[j])
            if not np.isfinite(total):
                return kept
            states[kept] = x
            outputs[kept] = out
            kept += 1
        if s == count:
            break
        for j in range(n):
            y[j] = x[j] + 0.5 * step * k1[j]
        rates(y, u[2 * s + 1], P, road, k2, out, work)
        for j in range(n):
            y[j] = x[j] + 0.5 * step * k2[j]
        rates(y, u[2 * s + 1], P, road, k3, out, work)
        for j in range(n):
            y[j] = x[j] + step * k3[j]
        rates(y, u[2 * s + 2], P, road, k4, out, work)
        for j in range(n):
            x[j] += step / 6.0 * (k1[j] + 2.0 * (k2[j] + k3[j]) + k4[j])
        length = 1.0 / np.sqrt(x[3] ** 2 + x[4] ** 2 + x[5] ** 2 + x[6] ** 2)
        for j in range(3, 7):
            x[j] *= length
    return kept
