"""The hand-written equations of the car against strangers: the package's own trees, and the laws of conservation."""

from dataclasses import replace

import numpy as np
import pytest

from papers.car.simulator.spring_energy import spring_energy
from strangers import mujoco_car
from strangers.cars import HALF_TRACK, TEN_ROWS, WHEELBASE, car_20, car_38
from veridyn.mechanics.ground.road import Bump, rough_road
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.papers.car.simulator import description as eq
from veridyn.papers.car.simulator.contact import LinearTyre
from veridyn.papers.car.simulator.description import (
    Steering,
    Vehicle,
    VehicleManoeuvre,
    WheelCarrier,
    speed_variation,
    straight_braking,
)
from veridyn.papers.car.simulator.equations import instant
from veridyn.papers.car.simulator.forces import Aerodynamics
from veridyn.papers.car.simulator.run import drive, settle, to_motion
from veridyn.papers.car.simulator.tables import WheelTables
from veridyn.spatial.inertia import INERTIAL

# Unequal sides, so that no symmetry hides a sign.
CAR = Vehicle(
    half_tracks=HALF_TRACK, wheelbase=WHEELBASE, carriers=(WheelCarrier(), WheelCarrier(26.0, (0.01, -0.05, 0.015)))
)
COAST = VehicleManoeuvre("coasting", np.zeros_like, lead_in=0.0, controlled=False)


def frictionless(vehicle):
    return replace(vehicle, suspension=replace(vehicle.suspension, friction=(0.0,) * 4))


def with_values_of(tree, vehicle):
    """The tree of paper 000 with the parameters of a vehicle."""
    s = vehicle.suspension
    values = dict(zip([f"{p}_c" for p in INERTIAL], vehicle.chassis, strict=True))
    for w in range(4):
        ten = vehicle.carriers[w // 2].ten(right=bool(w % 2))
        values |= {f"{p}{w + 1}": x for p, x in zip(INERTIAL, ten, strict=True)}
        values |= {f"k_{w + 1}": s.stiffness[w], f"h_{w + 1}": s.damping[w]}
        values |= {f"fs_{w + 1}": s.friction[w], f"off_{w + 1}": s.offset[w]}
    values |= {"k_arf": s.bar[0], "k_arr": s.bar[1], "Cx": vehicle.aerodynamics.coefficients[0][0]}
    return tree.with_parameters(values)


def imbalance(tree, motion, rows):
    """What is missing to zero in each row, over the largest force or moment that the motion alone asks for there."""
    left = inverse_dynamics(tree, motion, rows)
    alone = inverse_dynamics(tree, replace(motion, wrenches={}), rows)
    return np.abs(left) / np.abs(alone).max(axis=0)


@pytest.fixture(scope="module")
def road():
    return rough_road("C", np.random.default_rng(8), length=400.0, track=1.5)


def test_the_simplified_car_is_the_tree_of_20_degrees_of_freedom(road):
    vehicle = frictionless(CAR.simplified())
    tree = with_values_of(car_20(elements=True), vehicle)
    for manoeuvre in (speed_variation(), straight_braking(30.0, 6.0)):
        run = drive(vehicle, manoeuvre, road, 4.0, every=4)
        assert np.ptp(run.clearance[0], axis=0).min() > 0.01 and np.abs(run.wheel_wrench[:, :, 4]).max() > 100.0
        # Both are exact laws evaluated in double precision: only rounding is left.
        assert imbalance(tree, to_motion(run, tree), TEN_ROWS).max() < 1e-12


def test_dry_friction_is_the_tree_s_away_from_standstill(road):
    vehicle = CAR.simplified()
    tree = with_values_of(car_20(elements=True), vehicle)
    run = drive(vehicle, speed_variation(), road, 3.0, every=2)
    moving = np.abs(run.clearance[1]) > 20.0 * vehicle.suspension.friction_speed  # tanh(20) = 1 − 8e-18
    left = imbalance(tree, to_motion(run, tree), TEN_ROWS)
    assert left[:, :6].max() < 1e-12
    assert moving.mean() > 0.5 and left[:, 6:][moving].max() < 1e-12


def test_tables_and_carriers_are_the_tree_of_38_degrees_of_freedom(road):
    """With tables a wheel's path z carries the rows of its other coordinates along: Γ_z + Σ (∂q/∂z) Γ_q = drive torque · ∂(turn)/∂z."""
    vehicle = frictionless(
        replace(
            CAR,
            suspension=CAR.suspension.linear(),
            driveline=CAR.driveline.rigid(),
            aerodynamics=CAR.aerodynamics.drag_only(),
        )
    )
    tree = with_values_of(car_38(elements=True), vehicle)
    run = drive(vehicle, speed_variation(), road, 4.0, every=4)
    motion = to_motion(run, tree)
    assert imbalance(tree, motion, "base").max() < 1e-12
    P = vehicle.packed()
    work = eq.workspace()
    slopes = []
    for x, u in zip(run.states, run.inputs, strict=True):
        instant(x, u, P, road.packed, work)
        slopes.append(work.slope.copy())
    slope = np.array(slopes)  # (N, wheel, quantity)
    assert np.abs(slope[:, :, (0, 2, 3, 4)]).max(axis=0).min() > 1e-3
    place = run.wheel_place[0]
    for w in range(4):
        names = [f"{n}{w + 1}" for n in ("z", "dl", "dL", "beta", "camber", "kingpin")]
        rows = inverse_dynamics(tree, motion, names)
        along = rows[:, 0] + (rows[:, 1:] * slope[:, w]).sum(axis=1)
        turning = slope[:, w, 4] + slope[:, w, 2] * np.sin(place[:, w, 3])
        assert np.abs(along - run.drive_torque[:, w] * turning).max() < 1e-8  # of forces of some 10 kN


def energy_and_momentum(vehicle, run):
    """Kinetic and potential energy, and the momenta about the ground's origin in its axes, by sums over bodies."""
    P = vehicle.packed()
    E, L, H = [], [], []
    for k in range(len(run)):
        q = run.quaternion[k]
        R = rotation(q)
        v, w, p = run.base.velocity[k], run.base.omega[k], run.position[k]
        parts = [(P.chassis, np.zeros(3), np.eye(3), v, w, np.zeros(3))]
        place, rate = run.wheel_place[0][k], run.wheel_place[1][k]
        for i in range(4):
            dy, dx, toe, camber, kingpin = place[i]
            r = np.array([P.place[i, 0] + dx, P.place[i, 1] + dy, run.clearance[0][k, i]])
            rd = np.array([rate[i, 1], rate[i, 0], run.clearance[1][k, i]])
            Rz, Rx, Ry = about(2, toe), about(0, camber), about(1, kingpin)
            A = Rz @ Rx @ Ry
            e = A[:, 1]
            turn = rate[i, 2] * np.array([0.0, 0.0, 1.0]) + rate[i, 3] * Rz[:, 0] + rate[i, 4] * e
            vP = v + np.cross(w, r) + rd
            m, across, axis = P.wheel[i]
            wheel = np.array([across, 0.0, 0.0, axis, 0.0, across, 0.0, 0.0, 0.0, m])
            parts.append((P.carrier[i], r, A, vP, w + turn, np.zeros(3)))
            parts.append((wheel, r, A, vP, w + turn, run.wheel_angle[1][k, i] * np.array([0.0, 1.0, 0.0])))
        kinetic, momentum, turning = 0.0, np.zeros(3), np.zeros(3)
        for ten, r, A, vO, wO, spin in parts:
            XX, XY, XZ, YY, YZ, ZZ, *first, m = ten
            J, s = np.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]), np.array(first)
            vb, wb = A.T @ vO, A.T @ wO + spin
            kinetic += 0.5 * m * vb @ vb + vb @ np.cross(wb, s) + 0.5 * wb @ J @ wb
            kinetic += vehicle.gravity * (m * p + R @ (m * r + A @ s))[2]
            pushed = R @ A @ (m * vb + np.cross(wb, s))
            momentum += pushed
            turning += R @ A @ (J @ wb + np.cross(s, vb)) + np.cross(p + R @ r, pushed)
        E.append(kinetic + spring_energy(vehicle.suspension, run.clearance[0][k]))
        L.append(momentum)
        H.append(turning)
    return np.array(E), np.array(L), np.array(H)


def rotation(q):
    w, v = q[0], q[1:]
    S = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.eye(3) + 2.0 * w * S + 2.0 * S @ S


def about(axis, angle):
    S = np.cross(np.eye(3)[axis], np.eye(3)).T
    return np.eye(3) + np.sin(angle) * S + (1.0 - np.cos(angle)) * S @ S


def conservative(vehicle):
    """No damper, no friction, no air, no compliance; springs, stops, bars and tables by clearance stay as they are."""
    none = ((0.0, 0.0, 0.0),) * 5
    tables = WheelTables(replace(vehicle.tables.front, compliance=none), replace(vehicle.tables.rear, compliance=none))
    suspension = replace(vehicle.suspension, damping=(0.0,) * 4, friction=(0.0,) * 4)
    return replace(
        vehicle,
        suspension=suspension,
        tables=tables,
        driveline=vehicle.driveline.rigid(),
        aerodynamics=Aerodynamics.none(),
        steering=Steering(compliance=0.0),
    )


@pytest.mark.parametrize("braking", [False, True])
def test_accelerations_are_those_of_mujoco(road, braking):
    """The whole multibody part with tables, bushes and unequal sides, in an engine that shares nothing with it; the engine block held."""
    vehicle = replace(CAR, driveline=CAR.driveline.rigid())
    manoeuvre = straight_braking(30.0, 6.0, start=0.2) if braking else speed_variation(angle=0.9)
    run = drive(vehicle, manoeuvre, road, 3.0, every=50)
    stranger, P, work = mujoco_car.model(vehicle), vehicle.packed(), eq.workspace()
    s = vehicle.suspension
    worst = dict.fromkeys(("a", "omega_dot", "zdd", "spin_dot"), 0.0)
    for x, u in zip(run.states, run.inputs, strict=True):
        _, out = instant(x, u, P, road.packed, work)
        z, zd = x[eq.Z : eq.Z + 4], x[eq.ZD : eq.ZD + 4]
        d = z[[0, 2]] - z[[1, 3]]
        bar = np.array(s.bar) * d + np.array(s.bar_cube) * d**3
        resists = np.array([float(s.spring(i, z[i]) + s.damper(i, zd[i])) for i in range(4)])
        resists += np.array([bar[0], -bar[0], bar[1], -bar[1]])
        found = mujoco_car.accelerations(stranger, x, out, work.slope, work.tyre, resists)
        ours = {"a": out[:3], "omega_dot": out[3:6], "zdd": out[6:10], "spin_dot": out[10:14]}
        for name, value in ours.items():
            worst[name] = max(worst[name], float(np.abs(value - found[name]).max() / (1.0 + np.abs(value).max())))
    assert np.abs(run.wheel_place[0][:, :, 2]).max() > (0.002 if braking else 0.03)
    assert max(worst.values()) < 1e-9, worst


def test_a_car_thrown_into_the_air_keeps_energy_and_momentum():
    vehicle = replace(conservative(CAR), gravity=0.0)
    x = settle(conservative(CAR))
    x[2] += 50.0
    x[eq.VELOCITY : eq.VELOCITY + 3] = (3.0, -1.0, 2.0)
    x[eq.OMEGA : eq.OMEGA + 3] = (0.7, -0.9, 1.1)
    x[eq.ZD : eq.ZD + 4] = (0.5, -0.3, 0.4, 0.2)
    x[eq.SPIN : eq.SPIN + 4] = (80.0, 60.0, -40.0, 90.0)

    def errors(car, finer):
        run = drive(car, COAST, duration=0.6, step=2.5e-4 / finer, every=120 * finer, start=x)
        assert run.tyre["load"].max() == 0.0 and np.ptp(run.clearance[0], axis=0).min() > 0.02
        return np.array([np.abs(q - q[0]).max() / np.abs(q).max() for q in energy_and_momentum(car, run)])

    # Measured 5e-9 and 1e-12: the errors of fourth-order steps.
    assert (errors(replace(vehicle, tables=WheelTables.none()), 1) < [2e-8, 1e-11, 1e-11]).all()
    # Tables have jumps in their third derivative, over which steps are of second order; measured 1e-7 and 1e-9.
    assert errors(vehicle, 1).max() < 1e-6 and errors(vehicle, 16).max() < 2e-8


def test_a_car_that_bounces_on_its_tyres_keeps_its_energy():
    smooth = LinearTyre(c_kappa=0.0, c_alpha=0.0)
    vehicle = replace(conservative(Vehicle()), tyres=(smooth, smooth), tables=WheelTables.none())
    x = settle(vehicle, speed=5.0)  # rolling, because a tyre at rest has a damper
    x[eq.VELOCITY + 2], x[eq.OMEGA + 1] = 0.3, 0.1
    run = drive(vehicle, COAST, duration=2.0, every=100, start=x)
    deflection = run.tyre["deflection"]
    assert deflection.min() > 0.0 and np.ptp(deflection) > 0.01
    energy = energy_and_momentum(vehicle, run)[0] + (0.5 * smooth.stiffness * deflection**2).sum(axis=1)
    # The exchange is ½ m v² of some 80 J; camber of the disc on the road is the third-order rest.
    assert np.abs(energy - energy[0]).max() < 1e-3 * 80.0


def test_a_bump_is_felt_where_it_lies():
    run = drive(CAR, speed_variation(20.0, 0.0, angle=0.0), Bump(10.0, 1.0, 0.03, right=0.0), 1.0)
    before = run.t < (10.0 - WHEELBASE - 0.3) / 20.0
    lift = run.tyre["load"] - run.tyre["load"][before].mean(axis=0)
    assert np.abs(lift[before]).max() < 60.0
    assert lift[:, 0].max() > 1500.0 and lift[:, 2].max() > 1500.0
    assert run.t[lift[:, 0] > 1000.0][0] < run.t[lift[:, 2] > 1000.0][0]
    assert np.abs(lift[:, 1]).max() < 0.6 * lift[:, 0].max()
