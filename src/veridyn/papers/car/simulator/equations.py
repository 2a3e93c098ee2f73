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
from veridyn.mechanics.compiled import core, kept
from veridyn.mechanics.dense import solve_positive
from veridyn.mechanics.ground.road import road_at
from veridyn.papers.car.simulator.contact import (
    M3,
    V3,
    TyreNumbers,
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
    TYRE,
    VELOCITY,
    ZD,
    ZDD,
    CarNumbers,
    VehicleWork,
    Z,
)
from veridyn.papers.car.simulator.forces import air_wrench, brake_torque, engine_torque
from veridyn.papers.car.simulator.wheel import (
    AXIS,
    OWN,
    R_,
    RD,
    add_wheel,
    bushes_yield,
    put_skew,
    reading,
    suspension_force,
    wheel_moves,
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
    last state. A march of no steps leaves ẋ in work.rate and all outputs in work.out.
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
    n, samples = len(x), 0
    y, k, total = work.state, work.rate, work.total
    steps = (len(u) - 1) // 2
    for s in range(steps + 1):
        for stage in range(4):
            share = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
            for j in range(n):
                y[j] = x[j] + share * step * k[j] if stage > 0 else x[j]
            whole = stage == 0 and s % every == 0
            rates(y, u[2 * s + (stage + 1) // 2], P, road, k, work.out, work, whole)
            if whole:
                size = 0.0
                for j in range(n):
                    size += abs(x[j])
                if not np.isfinite(size):
                    return samples
                for j in range(n):
                    states[samples, j] = x[j]
                for j in range(len(work.out)):
                    outputs[samples, j] = work.out[j]
                samples += 1
            if s == steps:
                return samples
            weight = 1.0 if stage == 0 or stage == 3 else 2.0
            for j in range(n):
                total[j] = weight * k[j] if stage == 0 else total[j] + weight * k[j]
        for j in range(n):
            x[j] += step / 6.0 * total[j]
        length = 1.0 / np.sqrt(x[3] ** 2 + x[4] ** 2 + x[5] ** 2 + x[6] ** 2)
        for j in range(3, 7):
            x[j] *= length
    return samples


def instant(x: Array, u: Array, P: CarNumbers, road: Array, work: VehicleWork) -> tuple[Array, Array]:
    """ẋ and the outputs at one state and input; both are work's own memory, overwritten by the next call."""
    march(x, u.reshape(1, -1), 0.0, 1, P, road, np.empty((1, STATES)), np.empty((1, OUTPUTS)), work)
    return work.rate, work.out


@core
def rates(
    x: Array, u: Array, P: CarNumbers, road: Array, dx: Array, out: Array, work: VehicleWork, whole: bool
) -> None:
    """dx = ẋ of the state x under the inputs u; everything that a sensor may ask for is left in `out` where `whole`."""
    R = attitude(x[3], x[4], x[5], x[6])
    v, w = third(x[VELOCITY:]), third(x[OMEGA:])
    engine, shaft = _powertrain(x, u, P.driveline, P.brakes, P.push, dx)
    aligning = 0.0
    for i in range(4):
        wheel_tables(i, x, P.suspension.corner[i, 4], P.tables, work.kin[i])
        wheel_moves(i, x, P.place[i], w, work.kin[i], work.keep[i])
        _on_the_road(i, x, P.tyres, P.grip, R, v, w, road, work.keep[i], work.tyre[i], dx, out)
        if i < 2:
            aligning += work.tyre[i, 5]

    # Steering: the rack follows the driver's wheel as an oscillator and yields to the tyres' moments.
    S = P.steering
    rack_dd = S[1] * S[1] * (u[HAND] / S[0] + S[3] * aligning - x[RACK]) - 2.0 * S[2] * S[1] * x[RACK + 1]
    dx[RACK], dx[RACK + 1] = x[RACK + 1], rack_dd
    out[RACKDD] = rack_dd

    _put_chassis(P.chassis, w, work.A, work.b)
    air_wrench(v[0], v[1], v[2], P.air, out[AIR:])
    for k in range(6):
        work.b[k] += out[AIR + k]
    for i in range(4):
        out[DRIVE + i] = 0.5 * shaft if i < 2 else 0.0
        out[BRAKING + i] = brake_torque(x[BRAKE], x[SPIN + i], i, P.brakes)
        bushes_yield(i, x, P.tables, work.kin[i], work.keep[i], work.tyre[i], rack_dd, dx, out)
        resists = suspension_force(i, x, P.suspension.corner[i], P.suspension.bar[i // 2])
        add_wheel(
            i, x[SPIN + i], resists, P.carrier[i], P.wheel[i], w, work.kin[i], work.keep[i], work.tyre[i], out,
            work.A, work.b, work.column[i], work.rest[i],
        )  # fmt: skip
    flexible = P.driveline[0] > 0.0
    if flexible:
        _put_block(x, P.driveline, w, shaft, work.A, work.b)
    _solve(work.A, work.b, work.column, work.rest)
    a, wd = third(work.b), third(work.b[3:])
    for i in range(4):
        c = work.column[i]
        zdd = (work.rest[i, 1] - (dot(third(c), a) + dot(third(c[3:]), wd))) / work.rest[i, 0]
        out[ZDD + i] = zdd
        dx[Z + i], dx[ZD + i] = x[ZD + i], zdd
        reading(i, x[SPIN + i], P.wheel[i], a, wd, zdd, work.kin[i], work.keep[i], work.tyre[i], out, whole)
        dx[ANGLE + i], dx[SPIN + i] = x[SPIN + i], out[SPIND + i]
    put(out[ACC:], a)
    put(out[ALPHA:], wd)

    put(dx[POSITION:], turned(R, v))
    qw, qx, qy, qz = x[3], x[4], x[5], x[6]
    dx[3] = 0.5 * (-qx * w[0] - qy * w[1] - qz * w[2])
    dx[4] = 0.5 * (qw * w[0] + qy * w[2] - qz * w[1])
    dx[5] = 0.5 * (qw * w[1] + qz * w[0] - qx * w[2])
    dx[6] = 0.5 * (qw * w[2] + qx * w[1] - qy * w[0])
    put(dx[VELOCITY:], sub(add(a, scale(-P.gravity, R[2])), cross(w, v)))
    put(dx[OMEGA:], wd)
    _move_block(x, P.driveline, w, a, wd, engine, shaft, dx)


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


@core
def _on_the_road(
    i: int, x: Array, tyres: TyreNumbers, grip: float, R: M3, v: V3, w: V3, road: Array, keep: Array, tyre: Array,
    dx: Array, out: Array,
) -> None:  # fmt: skip
    """The wrench of a tyre at its wheel's centre, to `tyre`, and the rates of its slips."""
    r = third(keep[R_:])
    at = add(third(x[POSITION:]), turned(R, r))
    h, hx, hy = road_at(road, at[0], at[1])
    length = 1.0 / np.sqrt(1.0 + hx * hx + hy * hy)
    n = turned_back(R, (-hx * length, -hy * length, length))
    vP = add(add(v, cross(w, r)), third(keep[RD:]))
    F, M, ud, vd = contact(
        i, tyres, n, third(keep[AXIS:]), (at[2] - h) * length, vP, third(keep[OWN:]), x[SPIN + i], x[SLIP_X + i],
        x[SLIP_Y + i], grip, out[TYRE + 7 * i :],
    )  # fmt: skip
    put(tyre, F)
    put(tyre[3:], M)
    dx[SLIP_X + i], dx[SLIP_Y + i] = ud, vd


@core
def _put_chassis(J: Array, w: V3, A: Array, b: Array) -> None:
    """Begin the six equations with the chassis."""
    m, s = J[9], third(J[6:])
    for k in range(6):
        for j in range(6):
            A[k, j] = 0.0
    A[0, 0], A[1, 1], A[2, 2] = m, m, m
    put_skew(A, s)
    A[3, 3], A[3, 4], A[3, 5], A[4, 4], A[4, 5], A[5, 5] = J[0], J[1], J[2], J[3], J[4], J[5]
    A[4, 3], A[5, 3], A[5, 4] = J[1], J[2], J[4]
    put(b, scale(-1.0, cross(w, cross(w, s))))
    put(b[3:], scale(-1.0, cross(w, symmetric(J, w))))


@core
def _solve(A: Array, b: Array, column: Array, rest: Array) -> None:
    """Eliminate the four z̈; the six accelerations of the chassis take the place of b."""
    for i in range(4):
        c, mu, q = column[i], rest[i, 0], rest[i, 1]
        for k in range(6):
            b[k] -= c[k] * q / mu
            for j in range(6):
                A[k, j] -= c[k] * c[j] / mu
    solve_positive(A, b)


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
        for j in range(6):
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
