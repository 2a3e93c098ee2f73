"""The car's equations of motion, written out by hand in the chassis frame and compiled.

Unknowns are the chassis' specific acceleration a = v̇ − g and angular acceleration ω̇, and the four z̈. Newton's and Euler's laws of
chassis, wheel carriers and wheels, projected on these ten directions, make

    [ M₆  c₁ … c₄ ] [a, ω̇]   [ wrench on the whole car, less what speeds ask for          ]
    [ cᵢᵀ    μᵢ   ] [ z̈ᵢ ] = [ what acts along the path of wheel i, springs among it        ]

and the four z̈ are eliminated by hand, so that six equations are solved. No part of it uses the package's recursions, so that the
one can be held against the other. What a wheel adds stands in :mod:`veridyn.papers.car.simulator.wheel`.

They are integrated by the classical Runge-Kutta method of fourth order, compiled and kept on disk. :func:`march` is the one way to the
compiled equations; :func:`instant` is a march of no steps.
"""

from __future__ import annotations

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, kept, merged
from veridyn.mechanics.ground.road import road_at
from veridyn.papers.car.simulator.contact import (
    M3,
    V3,
    TyreNumbers,
    WheelContact,
    add,
    attitude,
    contact,
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
    ACC,
    AIR,
    ALPHA,
    ANGLE,
    BLOCK,
    BRAKE,
    BRAKES,
    BRAKING,
    CONTROL,
    DRIVE,
    ENGINE,
    HAND,
    INTEGRAL,
    OMEGA,
    OUTPUTS,
    PEDAL,
    POSITION,
    PUSH,
    RACK,
    RACKDD,
    SLIP_X,
    SLIP_Y,
    SPEED,
    SPIN,
    SPIND,
    STATES,
    TURN,
    TWIST,
    VELOCITY,
    ZD,
    ZDD,
    CarNumbers,
    VehicleWork,
    Z,
)
from veridyn.papers.car.simulator.forces import air_wrench, brake_torque, engine_torque
from veridyn.papers.car.simulator.lanes import Lanes, each, four, of_four, put_four, root
from veridyn.papers.car.simulator.wheel import (
    Moved,
    add_wheels,
    bushes_yield,
    spins,
    suspension_force,
    wheel_moves,
    wheel_outputs,
    wheel_tables,
)


@kept
def march(
    x: Array,
    u: Array,
    step: float,
    every: int,
    P: CarNumbers,
    road: Array,
    states: Array,
    outputs: Array,
    work: VehicleWork,
) -> int:
    """Steps from x, with inputs u at whole and half steps; the number of samples that were kept.

    Samples are kept `every` so many steps, with the outputs of the same instant. Stops where the state is no longer finite. x becomes the
    last state. A march of no steps leaves ẋ in work.rate[0] and all outputs in work.out.
    """
    return _steps(x, u, step, every, P, road, states, outputs, work)


@core
def _steps(
    x: Array,
    u: Array,
    step: float,
    every: int,
    P: CarNumbers,
    road: Array,
    states: Array,
    outputs: Array,
    work: VehicleWork,
) -> int:
    """The work of :func:`march`, without counting references to arrays, which takes longer than a tyre's forces."""
    samples, y = 0, work.state
    k1, k2, k3, k4 = work.rate[0], work.rate[1], work.rate[2], work.rate[3]
    steps = (len(u) - 1) // 2
    for s in range(steps + 1):
        whole = s % every == 0
        rates(x, u[2 * s], P, road, k1, work.out, work, whole)
        if whole:
            size = 0.0
            for j in range(STATES):
                size += abs(x[j])
            if not np.isfinite(size):
                return samples
            for j in range(STATES):
                states[samples, j] = x[j]
            for j in range(OUTPUTS):
                outputs[samples, j] = work.out[j]
            samples += 1
        if s == steps:
            return samples
        _moved_on(x, 0.5 * step, k1, y)
        rates(y, u[2 * s + 1], P, road, k2, work.out, work, False)
        _moved_on(x, 0.5 * step, k2, y)
        rates(y, u[2 * s + 1], P, road, k3, work.out, work, False)
        _moved_on(x, step, k3, y)
        rates(y, u[2 * s + 2], P, road, k4, work.out, work, False)
        for at in range(0, STATES + 3, 4):
            j = min(at, STATES - 4)
            k = (four(k1, j) + four(k4, j)) + 2.0 * (four(k2, j) + four(k3, j))
            put_four(y, j, four(x, j) + step / 6.0 * k)
        length = 1.0 / np.sqrt(y[3] ** 2 + y[4] ** 2 + y[5] ** 2 + y[6] ** 2)
        for j in range(3, 7):
            y[j] *= length
        for j in range(STATES):
            x[j] = y[j]
    return samples


@core
def _moved_on(x: Array, step: float, k: Array, y: Array) -> None:
    """y = x + step k, four at a time; the last four again with the three that are left."""
    for at in range(0, STATES + 3, 4):
        j = min(at, STATES - 4)
        put_four(y, j, four(x, j) + step * four(k, j))


def instant(x: Array, u: Array, P: CarNumbers, road: Array, work: VehicleWork) -> tuple[Array, Array]:
    """ẋ and the outputs at one state and input; both are work's own memory, overwritten by the next call."""
    march(x, u.reshape(1, -1), 0.0, 1, P, road, np.empty((1, STATES)), np.empty((1, OUTPUTS)), work)
    return work.rate[0], work.out


@core
def rates(
    x: Array, u: Array, P: CarNumbers, road: Array, dx: Array, out: Array, work: VehicleWork, whole: bool
) -> None:
    """dx = ẋ of the state x under the inputs u; everything that a sensor may ask for is left in `out` where `whole`."""
    R = attitude(x[3], x[4], x[5], x[6])
    v, w = third(x[VELOCITY:]), third(x[OMEGA:])
    engine, shaft = _powertrain(x, u, P.driveline, P.brakes, P.push, dx)
    tabled = wheel_tables(x, four(P.suspension.by_wheel, 16), P.tables)
    moved = wheel_moves(x, P.by_wheel, w, tabled)
    tyre = _on_the_road(x, P.tyres, P.grip, R, v, w, road, moved, dx)

    # Steering: the rack follows the driver's wheel as an oscillator and yields to the tyres' moments.
    S, aligning = P.steering, each(tyre.moment[2])
    yielding = S[3] * (aligning[0] + aligning[1])
    rack_dd = S[1] * S[1] * (u[HAND] / S[0] + yielding - x[RACK]) - 2.0 * S[2] * S[1] * x[RACK + 1]
    dx[RACK], dx[RACK + 1] = x[RACK + 1], rack_dd

    _put_chassis(P.chassis, w, work.A, work.b)
    air_wrench(v[0], v[1], v[2], P.air, out[AIR:])
    for k in range(6):
        work.b[k] += out[AIR + k]
    drive, braking = of_four(0.5 * shaft, 0.5 * shaft, 0.0, 0.0), _brakes(x, P.brakes)
    kdd = bushes_yield(x, P.by_wheel, P.tables, tabled, moved.R, tyre, rack_dd, dx)
    resists = suspension_force(x, P.suspension.by_wheel, P.by_wheel)
    added = add_wheels(four(x, SPIN), resists, drive, braking, P.by_wheel, w, kdd, tabled, moved, tyre, work.A, work.b)
    if P.driveline[0] > 0.0:
        _put_block(x, P.driveline, w, shaft, work.A, work.b)
    a, wd = _solve(work.A, work.b)
    zdd = (added.q - (dot(added.column, a) + dot(added.column_turn, wd))) / added.mu
    spin_dd = spins(zdd, drive, braking, P.by_wheel, wd, moved, tyre, added.w0)
    put_four(dx, Z, four(x, ZD))
    put_four(dx, ZD, zdd)
    put_four(dx, ANGLE, four(x, SPIN))
    put_four(dx, SPIN, spin_dd)

    put(dx[POSITION:], turned(R, v))
    qw, qx, qy, qz = x[3], x[4], x[5], x[6]
    dx[3] = 0.5 * (-qx * w[0] - qy * w[1] - qz * w[2])
    dx[4] = 0.5 * (qw * w[0] + qy * w[2] - qz * w[1])
    dx[5] = 0.5 * (qw * w[1] + qz * w[0] - qx * w[2])
    dx[6] = 0.5 * (qw * w[2] + qx * w[1] - qy * w[0])
    put(dx[VELOCITY:], sub(add(a, scale(-P.gravity, R[2])), cross(w, v)))
    put(dx[OMEGA:], wd)
    _move_block(x, P.driveline, w, a, wd, engine, shaft, dx)
    if whole:
        put(out[ACC:], a)
        put(out[ALPHA:], wd)
        out[RACKDD] = rack_dd
        put_four(out, ZDD, zdd)
        put_four(out, SPIND, spin_dd)
        put_four(out, DRIVE, drive)
        put_four(out, BRAKING, braking)
        wheel_outputs(
            x, zdd, drive, braking, P.by_wheel, a, wd, kdd, tabled, moved, tyre, added, out, work.slope, work.tyre
        )


@core
def _brakes(x: Array, brakes: Array) -> Lanes:
    """Torques of the brakes."""
    p = x[BRAKE]
    if p == 0.0:
        return of_four(0.0, 0.0, 0.0, 0.0)
    return of_four(
        brake_torque(p, x[SPIN], 0, brakes),
        brake_torque(p, x[SPIN + 1], 1, brakes),
        brake_torque(p, x[SPIN + 2], 2, brakes),
        brake_torque(p, x[SPIN + 3], 3, brakes),
    )


@core
def _powertrain(x: Array, u: Array, D: Array, brakes: Array, push: float, dx: Array) -> tuple[float, float]:
    """Torques of the engine and of both shafts together; rates of engine, shafts, controller and brake pressure."""
    mean_spin = 0.5 * (x[SPIN] + x[SPIN + 1])
    engine, integral_rate = 0.0, 0.0
    if u[CONTROL] > 0.0:
        engine, integral_rate = engine_torque(u[SPEED] - x[VELOCITY], x[INTEGRAL], push * u[PUSH], D)
    engine += u[PEDAL]
    flexible = D[0] > 0.0
    shaft = D[3] * x[TWIST] + D[4] * (x[ENGINE] - mean_spin) if flexible else engine
    dx[TWIST] = x[ENGINE] - mean_spin if flexible else 0.0
    dx[ENGINE] = (engine - shaft) / D[1] if flexible else 0.0
    dx[INTEGRAL] = integral_rate
    dx[BRAKE] = (u[BRAKES] - x[BRAKE]) / brakes[4]
    return engine, shaft


@merged
def _on_the_road(
    x: Array, tyres: TyreNumbers, grip: float, R: M3, v: V3, w: V3, road: Array, moved: Moved, dx: Array
) -> WheelContact:
    """What the road does to the wheels; the rates of the tyres' slips."""
    at = add(third(x[POSITION:]), turned(R, moved.r))
    ax, ay = each(at[0]), each(at[1])
    h0, h1, h2, h3 = (
        road_at(road, ax[0], ay[0]),
        road_at(road, ax[1], ay[1]),
        road_at(road, ax[2], ay[2]),
        road_at(road, ax[3], ay[3]),
    )
    h, hx, hy = (
        of_four(h0[0], h1[0], h2[0], h3[0]),
        of_four(h0[1], h1[1], h2[1], h3[1]),
        of_four(h0[2], h1[2], h2[2], h3[2]),
    )
    length = 1.0 / root(1.0 + hx * hx + hy * hy)
    n = turned_back(R, (-hx * length, -hy * length, length))
    vP = add(add(v, cross(w, moved.r)), moved.rd)
    found = contact(
        tyres, n, moved.e, (at[2] - h) * length, vP, moved.own, four(x, SPIN), four(x, SLIP_X), four(x, SLIP_Y), grip
    )
    put_four(dx, SLIP_X, found.slip_rates[0])
    put_four(dx, SLIP_Y, found.slip_rates[1])
    return found


@core
def _put_chassis(J: Array, w: V3, A: Array, b: Array) -> None:
    """Begin the six equations, the lower half of A, with the chassis."""
    m, s = J[9], third(J[6:])
    A[0, 0], A[1, 1], A[2, 2], A[1, 0], A[2, 0], A[2, 1] = m, m, m, 0.0, 0.0, 0.0
    A[3, 0], A[3, 1], A[3, 2] = 0.0, -s[2], s[1]
    A[4, 0], A[4, 1], A[4, 2] = s[2], 0.0, -s[0]
    A[5, 0], A[5, 1], A[5, 2] = -s[1], s[0], 0.0
    A[3, 3], A[4, 3], A[5, 3], A[4, 4], A[5, 4], A[5, 5] = J[0], J[1], J[2], J[3], J[4], J[5]
    put(b, scale(-1.0, cross(w, cross(w, s))))
    put(b[3:], scale(-1.0, cross(w, symmetric(J, w))))


@merged
def _solve(A: Array, b: Array) -> tuple[V3, V3]:
    """The six accelerations: A = L D Lᵀ by its lower half, written out, so that nothing of it goes through memory."""
    d0 = 1.0 / A[0, 0]
    a10, a20, a30, a40, a50 = A[1, 0], A[2, 0], A[3, 0], A[4, 0], A[5, 0]
    l10, l20, l30, l40, l50 = a10 * d0, a20 * d0, a30 * d0, a40 * d0, a50 * d0
    d1 = 1.0 / (A[1, 1] - l10 * a10)
    a21, a31, a41, a51 = A[2, 1] - l20 * a10, A[3, 1] - l30 * a10, A[4, 1] - l40 * a10, A[5, 1] - l50 * a10
    l21, l31, l41, l51 = a21 * d1, a31 * d1, a41 * d1, a51 * d1
    d2 = 1.0 / (A[2, 2] - l20 * a20 - l21 * a21)
    a32, a42, a52 = A[3, 2] - l30 * a20 - l31 * a21, A[4, 2] - l40 * a20 - l41 * a21, A[5, 2] - l50 * a20 - l51 * a21
    l32, l42, l52 = a32 * d2, a42 * d2, a52 * d2
    d3 = 1.0 / (A[3, 3] - l30 * a30 - l31 * a31 - l32 * a32)
    a43 = A[4, 3] - l40 * a30 - l41 * a31 - l42 * a32
    a53 = A[5, 3] - l50 * a30 - l51 * a31 - l52 * a32
    l43, l53 = a43 * d3, a53 * d3
    d4 = 1.0 / (A[4, 4] - l40 * a40 - l41 * a41 - l42 * a42 - l43 * a43)
    a54 = A[5, 4] - l50 * a40 - l51 * a41 - l52 * a42 - l53 * a43
    l54 = a54 * d4
    d5 = 1.0 / (A[5, 5] - l50 * a50 - l51 * a51 - l52 * a52 - l53 * a53 - l54 * a54)
    y0 = b[0]
    y1 = b[1] - l10 * y0
    y2 = b[2] - l20 * y0 - l21 * y1
    y3 = b[3] - l30 * y0 - l31 * y1 - l32 * y2
    y4 = b[4] - l40 * y0 - l41 * y1 - l42 * y2 - l43 * y3
    x5 = (b[5] - l50 * y0 - l51 * y1 - l52 * y2 - l53 * y3 - l54 * y4) * d5
    x4 = y4 * d4 - l54 * x5
    x3 = y3 * d3 - l43 * x4 - l53 * x5
    x2 = y2 * d2 - l32 * x3 - l42 * x4 - l52 * x5
    x1 = y1 * d1 - l21 * x2 - l31 * x3 - l41 * x4 - l51 * x5
    x0 = y0 * d0 - l10 * x1 - l20 * x2 - l30 * x3 - l40 * x4 - l50 * x5
    return (x0, x1, x2), (x3, x4, x5)


@core
def _put_block(x: Array, D: Array, w: V3, shaft: float, A: Array, b: Array) -> None:
    """An engine block on mounts: its mass along x and its inertia about y leave the chassis, its mounts' forces come."""
    at = third(D[5:])
    mass = D[8]
    swing = cross(w, cross(w, at))[0]
    force = D[9] * x[BLOCK] + D[10] * x[BLOCK + 1] + mass * swing
    # Along x at the block: (1, 0, 0) and its moment (0, z, −y).
    direction = (1.0, 0.0, 0.0, 0.0, at[2], -at[1])
    for k in range(6):
        b[k] += direction[k] * force
        for j in range(k + 1):
            A[k, j] -= mass * direction[k] * direction[j]
    A[4, 4] -= D[11]
    b[4] += D[12] * x[TURN] + D[13] * x[TURN + 1] + shaft


@core
def _move_block(x: Array, D: Array, w: V3, a: V3, wd: V3, engine: float, shaft: float, dx: Array) -> None:
    """Rates of the block on its mounts."""
    if D[0] > 0.0:
        at = third(D[5:])
        acceleration = add(a, add(cross(wd, at), cross(w, cross(w, at))))
        dx[BLOCK], dx[TURN] = x[BLOCK + 1], x[TURN + 1]
        dx[BLOCK + 1] = -acceleration[0] - (D[9] * x[BLOCK] + D[10] * x[BLOCK + 1]) / D[8]
        reaction = shaft + (engine - shaft) / D[2]
        dx[TURN + 1] = -wd[1] - (D[12] * x[TURN] + D[13] * x[TURN + 1] + reaction) / D[11]
    else:
        dx[BLOCK], dx[BLOCK + 1], dx[TURN], dx[TURN + 1] = 0.0, 0.0, 0.0, 0.0
