"""Driving against what can be said by hand: statics, load transfer, steady cornering; and what a run gives away."""

from dataclasses import replace

import numpy as np
import pytest

from strangers.cars import car_20, car_38
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.ground.road import Flat, Plane, rough_road
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.papers.car.simulator import description as eq
from veridyn.papers.car.simulator.contact import LinearTyre
from veridyn.papers.car.simulator.description import (
    KMH,
    Vehicle,
    VehicleManoeuvre,
    ramp_steer,
    sinusoidal_steering,
    speed_variation,
    standstill,
    straight,
    straight_braking,
)
from veridyn.papers.car.simulator.forces import Aerodynamics
from veridyn.papers.car.simulator.run import drive, settle, to_motion, truth

CAR = Vehicle()
FRONT, REAR = LinearTyre(c_kappa=200e3, c_alpha=60e3), LinearTyre(c_kappa=200e3, c_alpha=75e3)
LINEAR = replace(CAR.simplified(), tyres=(FRONT, REAR), aerodynamics=Aerodynamics.none())


def of_the_papers() -> dict[str, tuple[VehicleManoeuvre, float]]:
    """The manoeuvres of papers 000 and 001 by name, each with its seconds: what a test drive can be chosen from.

    Sinusoidal steering at 90 to 160 km/h (000, IV.D); ramps to the left at 90 and to the right at 110 km/h, together 3000 samples of 16 ms,
    and braking (001, 6); a rough road, on which one drives straight on, and speed variation and standstill (chosen) show what these lack.
    """
    steered = [(sinusoidal_steering(v * KMH), 20.0) for v in (90.0, 110.0, 130.0, 160.0)]
    ramps = [(ramp_steer(90.0 * KMH, 0.06), 24.0), (ramp_steer(110.0 * KMH, -0.06), 24.0)]
    others = [(straight_braking(), 5.0), (straight(), 20.0), (speed_variation(), 20.0), (standstill(), 5.0)]
    return {made.name: (made, duration) for made, duration in (*steered, *ramps, *others)}


def centre(vehicle):
    """How far the whole car's centre of mass is ahead of the rear axle and above the wheel centres, at the design clearances."""
    m = vehicle.mass
    each = vehicle.carriers[0].mass + vehicle.wheels[0].mass
    x = (vehicle.chassis[6] + 2.0 * each * vehicle.wheelbase) / m
    return x, (vehicle.chassis[8] - 4.0 * each * 0.295) / m + 0.295


def at_rest(vehicle, road=None, **where):
    x = settle(vehicle, road or Flat(), **where)
    coast = VehicleManoeuvre("at rest", np.zeros_like, lead_in=0.0, controlled=False)
    return x, drive(vehicle, coast, road or Flat(), 1e-3, start=x)


def test_wheel_loads_at_rest_are_those_of_statics():
    for vehicle in (CAR, CAR.simplified()):
        _, run = at_rest(vehicle)
        load = run.tyre["load"][0]
        weight = vehicle.mass * vehicle.gravity
        assert load.sum() == pytest.approx(weight, rel=1e-9)
        x, _ = centre(vehicle)
        # Level statics; the car stands some 2 mrad nose down, which moves its centre of mass by a millimetre.
        assert load[:2].sum() == pytest.approx(weight * x / vehicle.wheelbase, rel=2e-3)
        assert load[0] == pytest.approx(load[1], rel=1e-6) and load[2] == pytest.approx(load[3], rel=1e-6)
        assert np.abs(run.clearance[0][0] - vehicle.suspension.design).max() < 5e-4
        assert np.abs(run.clearance[2]).max() < 1e-6
        # A dynamometer reads the load less the wheel's own weight.
        reading = run.wheel_wrench[0, :, 2]
        assert np.allclose(reading, load - vehicle.wheels[0].mass * vehicle.gravity, rtol=1e-4)


def test_a_car_settles_on_a_banked_road_and_stays():
    banked = Plane(bank=0.02)
    x, run = at_rest(CAR, banked)
    load = run.tyre["load"][0]
    # The right wheels are lower; weight's lever is bank times the height of the centre of mass, over the track.
    lever = 0.02 * (centre(CAR)[1] + 0.3) * CAR.mass * CAR.gravity
    half = np.array(CAR.half_tracks) * np.array([-1.0, 1.0, -1.0, 1.0])
    assert (load * half).sum() == pytest.approx(lever, rel=0.15)  # and the body rolls a little further
    assert load.sum() == pytest.approx(CAR.mass * CAR.gravity, rel=1e-3)
    assert np.abs(run.base.acceleration[0] - [0.0, 9.81 * 0.02, 9.81]).max() < 0.06
    assert x[2] > 0.5


def test_a_car_settles_on_a_very_rough_road():
    rough = rough_road("E", np.random.default_rng(1), length=300.0, track=1.5)
    for x in (-60.0, 10.0):
        _, run = at_rest(CAR, rough, x=x)
        assert run.tyre["load"].min() > 500.0 and np.abs(run.clearance[2][0]).max() < 1e-5
        assert np.abs(run.base.omega_dot[0, :2]).max() < 1e-5


def test_a_car_without_springs_is_refused():
    soft = replace(CAR.suspension, offset=(0.0,) * 4, stiffness=(0.0,) * 4, square=(0.0,) * 4, cube=(0.0,) * 4)
    with pytest.raises(ModelError, match="finds no balance"):
        settle(replace(CAR, suspension=replace(soft, stop_stiffness=0.0)))


def test_standing_still_is_standing_still():
    run = drive(CAR, standstill(), duration=2.0, every=50)
    assert np.abs(run.base.velocity).max() < 2e-3 and np.abs(run.base.omega).max() < 1e-3
    assert np.abs(run.position[-1] - run.position[0]).max() < 2e-3
    assert np.allclose(run.base.acceleration[-1], [0.0, 0.0, 9.81], atol=0.05)


def test_braking_moves_load_by_m_a_h_over_the_wheelbase():
    run = drive(LINEAR, straight_braking(35.0, 3.0, start=0.5), duration=4.0, every=10)
    steady = run.t > 3.0
    load, a = run.tyre["load"][steady].mean(axis=0), run.base.acceleration[steady].mean(axis=0)
    rest = at_rest(LINEAR)[1].tyre["load"][0]
    # The nose dips, and the centre of mass with it.
    q, (ahead, up) = run.quaternion[steady], centre(LINEAR)
    dip = 2.0 * (q[:, 0] * q[:, 2] - q[:, 1] * q[:, 3]).mean()
    height = up - 0.295 + run.position[steady, 2].mean() - ahead * dip
    assert dip > 0.01
    moved = (load - rest)[:2].sum()
    spins = (LINEAR.wheels[0].about * run.wheel_angle[2][steady]).mean(axis=0).sum()
    assert -3.6 < a[0] < -2.6
    slowing = -a[0] - LINEAR.gravity * dip
    # Wheels stay upright, so the dip also carries the centre of mass forward over them; and slowing wheels turn the car.
    expected = (LINEAR.mass * (slowing * height + LINEAR.gravity * dip * up) - spins) / LINEAR.wheelbase
    assert moved == pytest.approx(expected, rel=0.01)


def cornering(vehicle, speed, angle):
    """Steady cornering at a steering wheel angle."""
    made = VehicleManoeuvre(
        "steady", lambda t: np.full_like(t, speed), lambda t: angle * np.clip(t / 2.0, 0.0, 1.0), lead_in=2.0
    )
    return drive(vehicle, made, duration=10.0, every=100)


def test_cornering_moves_load_by_m_a_h_over_the_track():
    run = cornering(LINEAR, 25.0, 0.4)
    load, a = run.tyre["load"][-1], run.base.acceleration[-1]
    half = np.array(LINEAR.half_tracks) * np.array([-1.0, 1.0, -1.0, 1.0])
    height = centre(LINEAR)[1] - 0.295 + run.position[-1, 2]
    assert 1.5 < a[1] < 6.0
    # a is the specific acceleration along the car's own y: what rolling does to the lever of weight is in it.
    assert (load * half).sum() == pytest.approx(LINEAR.mass * a[1] * height, rel=0.01)


def test_steady_cornering_has_the_understeer_of_the_bicycle_model():
    """δ = L/R + K a_y with K = m/L (b/C_f − a/C_r), and so a yaw rate V δ / (L + K V²)."""
    L, m = LINEAR.wheelbase, LINEAR.mass
    b, _ = centre(LINEAR)
    K = m / L * (b / (2.0 * FRONT.c_alpha) - (L - b) / (2.0 * REAR.c_alpha))
    assert K > 0.0
    for speed in (15.0, 25.0, 35.0):
        run = cornering(LINEAR, speed, 0.16)
        V, delta = run.base.velocity[-1, 0], run.rack[-1]
        assert delta == pytest.approx(0.01, rel=1e-6)
        # Rolling by 2° turns yaw rate out of the body's z, and driving force at the front wheels pulls inwards: below 1 %.
        assert run.base.omega[-1, 2] == pytest.approx(V * delta / (L + K * V * V), rel=0.01)


@pytest.mark.parametrize("leaning", [False, True])
def test_side_forces_roll_the_body_about_its_roll_centres(leaning):
    """K φ = (m_s h_s + m_u h_u) a + m_s g h_s φ_body + Σ I_s Ω ψ̇ − Σ F_y h_rc: what a side force does along a path that leans.

    K = Σ (k/2 + k_ar) T² of both axles; the roll centre's height is the slope of the contact's path times the half track.
    """
    keep = ("paths", "angles") if leaning else ()
    vehicle = replace(CAR.simplified(keep), tyres=(FRONT, REAR), aerodynamics=Aerodynamics.none())
    run = cornering(vehicle, 25.0, 0.08)
    z, l, s = run.clearance[0][-1], np.array(vehicle.half_tracks), vehicle.suspension
    T = np.array([l[0] + l[1], l[2] + l[3]])
    K = (np.array([s.stiffness[0], s.stiffness[2]]) / 2.0 + np.array(s.bar)) * T**2
    roll = ((z[[1, 3]] - z[[0, 2]]) / T) @ K
    body = np.arcsin(run.attitude[-1, 2, 1])
    a = run.base.velocity[-1, 0] * run.base.omega[-1, 2]
    hub = FRONT.radius - run.tyre["deflection"][-1].mean()
    m, x = vehicle.chassis[9], vehicle.chassis[6] / vehicle.chassis[9] / vehicle.wheelbase
    height = hub + 0.295 + vehicle.chassis[8] / m
    moment = (m * height + (vehicle.mass - m) * hub) * a + m * vehicle.gravity * height * body
    moment += (vehicle.wheels[0].about * run.wheel_angle[1][-1]).sum() * run.base.omega[-1, 2]
    if leaning:  # half track by 0.04 m/m, camber by 0.17 and 0.25 rad/m, as the tables' middles have it
        centres = np.array([(0.04 + 0.17 * hub) * l[0], (0.04 + 0.25 * hub) * l[2]])
        assert np.allclose(centres, [0.067, 0.084], atol=0.002)
        moment -= vehicle.mass * a * (centres @ [x, 1.0 - x])
    assert roll == pytest.approx(moment, rel=0.02)


def test_cornering_left_and_right_are_mirror_images():
    unequal = CAR.chassis
    mirror = (unequal[0], 0.0, unequal[2], unequal[3], 0.0, *unequal[5:])
    car = replace(CAR, chassis=mirror)
    left, right = cornering(car, 25.0, 0.5), cornering(car, 25.0, -0.5)
    swapped = [1, 0, 3, 2]
    assert np.allclose(left.tyre["load"], right.tyre["load"][:, swapped], rtol=1e-6)
    assert np.allclose(left.base.omega * [-1.0, 1.0, -1.0], right.base.omega, atol=1e-8)
    assert np.allclose(left.wheel_wrench * [1, -1, 1, -1, 1, -1], right.wheel_wrench[:, swapped], atol=1e-3)


FASTER_AND_SLOWER = tuple(f"sinusoidal steering at {v} km/h" for v in (90, 110, 160))  # than 130 km/h


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in FASTER_AND_SLOWER else ()) for n in of_the_papers()]
)
def test_the_papers_manoeuvres_stay_on_the_road(name):
    manoeuvre, duration = of_the_papers()[name]
    run = drive(CAR, manoeuvre, duration=duration, step=2e-3, every=8)
    a, v = run.base.acceleration, run.base.velocity[:, 0]
    assert run.tyre["load"].min() > 300.0
    wanted = {"braking": 0.0, "straight": 0.0, "standstill": 0.0, "ramp": 8.3}.get(name.split()[0])
    most = np.abs(a[:, 1]).max()
    if wanted is not None:
        assert most == pytest.approx(wanted, abs=0.2)  # a ramp ends where the front tyres have no more to give
    if "steer" in name:
        assert 4.0 < most < 9.0
    if "ramp" in name:
        assert a[-1, 1] * (1.0 if "left" in name else -1.0) > 8.0
        assert len(run) == 1501  # at 16 ms; both together about 3000 samples, as in paper 001
    if "braking" in name:
        assert v[-1] < 0.45 * v[0] and a[-1, 0] < -3.5
    elif "standstill" not in name:
        # The engine alone slows the car by 1.1 m/s²; a swing of 5 m/s in 10 s asks for three times as much.
        assert np.abs(v / manoeuvre.speed(run.t) - 1.0).max() < (0.2 if "variation" in name else 0.04)


def test_accelerations_are_the_derivatives_of_the_states():
    run = drive(CAR, sinusoidal_steering(30.0), duration=1.5, step=5e-4)
    inside = slice(5, -5)

    def slope(x):
        return (8.0 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4]))[3:-3] / (12.0 * 5e-4)

    w, v = run.base.omega, run.base.velocity
    assert np.allclose(slope(w), run.base.omega_dot[inside], atol=2e-4)
    assert np.allclose(slope(run.clearance[1]), run.clearance[2][inside], atol=2e-3)
    assert np.allclose(slope(run.wheel_place[1][:, :, 3]), run.wheel_place[2][inside, :, 3], atol=5e-3)
    assert np.allclose(slope(run.wheel_angle[1]), run.wheel_angle[2][inside], atol=5e-3)
    q = run.quaternion
    up = np.stack(
        [2 * (q[:, 1] * q[:, 3] - q[:, 0] * q[:, 2]), 2 * (q[:, 2] * q[:, 3] + q[:, 0] * q[:, 1]), 1 - 2 * (q[:, 1] ** 2 + q[:, 2] ** 2)],
        axis=1,
    )  # fmt: skip
    specific = slope(v) + (np.cross(w, v) + 9.81 * up)[inside]
    assert np.allclose(specific, run.base.acceleration[inside], atol=2e-3)


def test_a_smaller_step_changes_little():
    coarse = drive(CAR, sinusoidal_steering(30.0), duration=2.0, step=1e-3, every=20)
    fine = drive(CAR, sinusoidal_steering(30.0), duration=2.0, step=5e-4, every=40)
    assert np.allclose(coarse.t, fine.t)
    assert np.abs(coarse.base.acceleration - fine.base.acceleration).max() < 1e-3
    assert np.abs(coarse.wheel_wrench - fine.wheel_wrench).max() < 1.0  # N and N m, of some 5000


def test_a_run_becomes_a_motion_of_either_tree():
    run = drive(CAR, sinusoidal_steering(30.0), duration=0.5, every=10)
    small, full = to_motion(run, car_20()), to_motion(run, car_38())
    assert set(small.wrenches) == {"13", "18", "3", "7"} and set(full.wrenches) == {"26", "35", "8", "17"}
    assert np.array_equal(small.wrenches["13"], run.wheel_wrench[:, 0])
    names = car_20().coordinates
    assert np.array_equal(small.q[:, names.index("z2")], run.clearance[0][:, 1])
    assert np.array_equal(small.qd[:, names.index("theta3")], run.wheel_angle[1][:, 2])
    names = car_38().coordinates
    assert np.array_equal(full.qdd[:, names.index("camber4")], run.wheel_place[2][:, 3, 3])
    assert np.array_equal(full.q[:, names.index("dL1")], run.wheel_place[0][:, 0, 1])
    arm = Tree.build([Body("1", None, "fixed"), Body("2", "1", "turning")], base="free")
    with pytest.raises(ModelError, match="does not know the coordinate 'q2'"):
        to_motion(run, arm)


def test_what_cannot_be_driven_is_said():
    with pytest.raises(DataError, match="nothing to drive"):
        drive(CAR, sinusoidal_steering(), duration=1.0, step=0.0)
    x = settle(CAR)
    x[eq.VELOCITY] = np.nan
    with pytest.raises(DataError, match="no longer finite"):
        drive(CAR, sinusoidal_steering(), duration=0.1, start=x)


@pytest.fixture(scope="module")
def road():
    return rough_road("C", np.random.default_rng(2), length=300.0, track=1.5)


def test_the_truth_of_a_simplified_car_is_its_settings(road):
    car = Vehicle().simplified()
    car = replace(car, suspension=replace(car.suspension, friction=(0.0,) * 4))
    found = truth(drive(car, speed_variation(), road, 3.0, every=5))
    s = car.suspension
    expected = {"M_c": 1508.5, "ZZ_c": 6199.0, "M2": 24.0, "k_arf": s.bar[0], "k_arr": s.bar[1], "Cx": 0.3906}
    expected |= {f"k_{i + 1}": s.stiffness[i] for i in range(4)} | {f"off_{i + 1}": s.offset[i] for i in range(4)}
    expected |= {f"h_{i + 1}": s.damping[i] for i in range(4)}
    assert len(found) == 33 and set(found) <= set(car_20(elements=True).parameters.names)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9), name
    assert max(abs(found[f"fs_{i}"]) for i in (1, 2, 3, 4)) < 1e-6


def test_the_truth_of_a_nonlinear_spring_lies_among_its_slopes(road):
    car = Vehicle()
    run = drive(car, speed_variation(), road, 3.0, every=5)
    found = truth(run)
    for i in range(4):
        z = np.linspace(run.clearance[0][:, i].min(), run.clearance[0][:, i].max(), 200)
        slopes = np.gradient(car.suspension.spring(i, z), z)
        assert slopes.min() < found[f"k_{i + 1}"] < slopes.max()
        assert 0.5 < found[f"h_{i + 1}"] / car.suspension.damping[i] < 1.3
    assert found["k_arf"] > car.suspension.bar[0]
