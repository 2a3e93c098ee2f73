"""The buggy driven: against the same vehicle driven in MuJoCo (35 tree coordinates, soft loops, 1 ms), and at rest.

Drives of the buggy at the rate of its sensors, against a Runge-Kutta integration of forward dynamics.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from mechanics.ground.wheel_readings import wheel_readings
from veridyn.mechanics.ground.road import Bump, Plane
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.dynamics import NaturalState, Stabilisation, solve_accelerations
from veridyn.mechanics.natural.equations.freedoms import freedoms_of, pose_of_tree
from veridyn.mechanics.natural.equations.geometry import compact
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, integrate_natural
from veridyn.mechanics.system.integrate import Trajectory
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.sensor import Sensor
from veridyn.papers.buggy.drive import RATE, BuggyDrive, BuggyTruth, drive, driven, settle, surveyed_road
from veridyn.papers.buggy.machine import CORNERS, INDEPENDENT, MISALIGNED, buggy
from veridyn.spatial.rotations import angles_of, rotation_of

POSITION, SPEED = 0.1, 0.01  # m and m/s after 20 s: MuJoCo's loops give way a little
HOW = BuggyDrive(duration=1.0, rack=-0.010, rate=50.0)


def test_the_ramp_of_the_rack_has_its_rates() -> None:
    how, h = BuggyDrive(rack=-0.01), 1e-5
    for t in (0.03, 0.1, 0.17):
        before, here, after = (how.rack_at(x) for x in (t - h, t, t + h))
        assert here[1] == pytest.approx((after[0] - before[0]) / (2 * h), rel=1e-6)
        assert here[2] == pytest.approx((after[1] - before[1]) / (2 * h), rel=1e-6, abs=1e-6)
    assert how.rack_at(0.0) == (0.0, 0.0, 0.0) and how.rack_at(5.0) == pytest.approx((-0.01, 0.0, 0.0), abs=1e-15)


def test_it_stays_where_it_was_settled_and_sets_off_when_driven() -> None:
    machine = buggy()
    start = settle(machine)
    still = drive(machine, BuggyDrive(duration=0.02, torque=0.0), start=start, engine="numpy")
    assert still.motion.q[-1] == pytest.approx(start.q, abs=1e-10)
    assert still.base_position is not None
    assert still.base_position[-1] == pytest.approx(np.asarray(start.base.position), abs=1e-10)
    # at first the torque spins the wheel with its rotor, ω̇ = 100/(1.453 + .4), and its reaction turns the arm a little the other way
    moving = drive(machine, BuggyDrive(duration=0.002, rate=1000.0, step=1e-3), start=start, engine="numpy")
    spin = moving.motion.qdd[0, machine.coordinates.index("spin_rl")]
    assert spin == pytest.approx(100.0 / 1.853, rel=0.05)


@pytest.mark.parametrize(  # steered, all acts
    ("rack", "seconds"), [(-0.010, 0.4), *(pytest.param(r, 1.0, marks=pytest.mark.slow) for r in (0.0, -0.010))]
)
def test_index_3_steps_in_natural_coordinates_drive_the_same_way(rack: float, seconds: float) -> None:
    """Straight and steered, against Runge-Kutta on the closed tree: 1e-5 m at 2 ms, and the error falls as the step's square."""
    machine = buggy()
    tree, at = tree_of(machine), settle(machine)
    how = BuggyDrive(rack=rack, duration=seconds, step=1e-3)
    run = drive(machine, how, start=at)
    system = system_of(compact(mechanism_of(machine.with_formulation("natural"))))
    freedoms = freedoms_of(system, tree, INDEPENDENT)
    e = np.asarray(at.base.quaternion, dtype=np.float64)
    q, still = pose_of_tree(system, tree, at.q, np.asarray(at.base.position), rotation_of(e)), np.zeros(system.n)
    loads = {"drive_rl": how.torque, "drive_rr": how.torque}
    held = system.holding({"rack": how.rack_at(0.0)})
    start = NaturalState(0.0, q, still, *solve_accelerations(held, q, still, loads))
    errors = []
    for step in (4e-3, 2e-3):
        method = NaturalMethod(step=step, stabilisation=Stabilisation(penalty=1e16))
        found = integrate_natural(
            system, [0.0, seconds], start, lambda t: loads, method=method, prescribed=lambda t: {"rack": how.rack_at(t)}
        )
        spins = [
            found.column(f"spin_{c}")[-1] - run.motion.q[-1, machine.coordinates.index(f"spin_{c}")] for c in CORNERS
        ]
        assert run.base_position is not None and run.base_rotation is not None
        place = freedoms.position(found.q[-1]) - run.base_position[-1]
        turn = freedoms.attitude(found.q[-1]) - run.base_rotation[-1]
        errors.append((np.abs(place).max(), np.abs(turn).max(), np.abs(spins).max()))
    assert max(errors[1]) < 1e-4 and errors[1][0] < 1e-5
    assert errors[0][0] / errors[1][0] == pytest.approx(4.0, rel=0.3)
    assert errors[0][2] / errors[1][2] == pytest.approx(4.0, rel=0.3)


@cache
def cached_drive(rack: float, resistance: float, aligned: bool = True, seconds: float = 20.0) -> Trajectory:
    machine = buggy(rolling_resistance=resistance, toe=None if aligned else MISALIGNED)
    return drive(machine, BuggyDrive(rack=rack, duration=seconds))


def end(run: Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Way of the chassis' centre of gravity, its speed in the chassis' axes, and roll, pitch and yaw without jumps."""
    assert run.base_position is not None and run.base_rotation is not None and run.motion.base is not None
    assert run.motion.base.velocity is not None
    angles = np.unwrap(angles_of(run.base_rotation), axis=0)
    return run.base_position[-1] - run.base_position[0], run.motion.base.velocity[-1], angles[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("resistance", "way", "speed"), [(0.015, 55.00, 5.472), (0.030, 24.29, 2.353)])
def test_straight(resistance: float, way: float, speed: float) -> None:
    p, v, angles = end(cached_drive(0.0, resistance))
    assert p[0] == pytest.approx(way, abs=POSITION) and abs(p[1]) < 1e-6
    assert v[0] == pytest.approx(speed, abs=SPEED)
    assert abs(angles[2]) < 1e-7


@pytest.mark.slow
def test_circle() -> None:
    run = cached_drive(-0.010, 0.015)
    p, v, angles = end(run)
    assert run.motion.base is not None
    assert p[:2] == pytest.approx([28.50, 38.35], abs=POSITION)
    assert angles[2] == pytest.approx(1.787, abs=5e-3)
    assert run.motion.base.omega[-1, 2] == pytest.approx(0.1744, abs=3e-4)
    assert np.hypot(v[0], v[1]) == pytest.approx(5.431, abs=SPEED)
    assert np.arctan2(v[1], v[0]) == pytest.approx(0.030, abs=1e-3)
    assert np.degrees(angles[0]) == pytest.approx(1.20, abs=0.02)
    found = wheel_readings(buggy(), run.motion)
    assert [found[f"tyre_{c}"].load[-1] for c in CORNERS] == pytest.approx([2615.0, 3155.0, 3371.0, 4381.0], rel=2e-3)
    assert min(found[f"tyre_{c}"].load.min() for c in CORNERS) > 2000.0  # no wheel lifts


@pytest.mark.slow
def test_circle_with_more_resistance() -> None:
    run = cached_drive(-0.010, 0.030)
    assert run.base_position is not None
    way = float(np.linalg.norm(np.diff(run.base_position[:, :2], axis=0), axis=1).sum())
    assert way == pytest.approx(24.13, abs=POSITION)
    assert end(run)[2][2] == pytest.approx(0.798, abs=5e-3)


@pytest.mark.slow
def test_a_misaligned_buggy_goes_straight_with_the_rack_at_four_millimetres() -> None:
    run = cached_drive(0.004, 0.015, aligned=False)
    p, v, angles = end(run)
    assert p[1] == pytest.approx(0.33, abs=POSITION)
    assert np.arctan2(v[1], v[0]) == pytest.approx(0.0049, abs=2e-4)  # course less yaw
    assert abs(angles[2]) < 2e-3


@pytest.mark.slow
def test_a_minute_of_circles() -> None:
    """More than two full turns of the chassis, at the end near 5.3 m/s² to the side."""
    run = cached_drive(-0.010, 0.015, seconds=60.0)
    _, v, angles = end(run)
    assert run.motion.base is not None
    assert angles[2] > 2.0 * np.pi
    assert np.hypot(v[0], v[1]) == pytest.approx(12.9, abs=0.1)
    assert np.degrees(angles[0]) == pytest.approx(6.7, abs=0.15)
    found = wheel_readings(buggy(), run.motion)
    assert min(found[f"tyre_{c}"].load[-1] for c in CORNERS) == pytest.approx(987.0, rel=0.05)
    assert run.motion.base.omega[-1, 2] * np.hypot(v[0], v[1]) == pytest.approx(5.3, abs=0.1)


@pytest.mark.slow
def test_a_bump_under_the_left_wheels_lifts_them_alone() -> None:
    machine = buggy()
    road = Bump(at=2.2, length=1.0, rise=0.03, right=0.0)
    run = drive(machine, BuggyDrive(duration=4.5), road=road)
    found = wheel_readings(machine, run.motion)
    left, right = (np.ptp(found[f"tyre_{c}"].centre[:, 2]) for c in ("fl", "fr"))
    assert left > 0.02 and right < 0.01


def test_a_survey_goes_through_its_heights_and_repeats_itself():
    heights = np.random.default_rng(3).standard_normal((5, 8))
    road = surveyed_road(heights, 2.0, 1.5)
    x, y = np.meshgrid(2.0 * np.arange(8), 1.5 * (np.arange(5) - 2.0))
    np.testing.assert_allclose(road.height(x, y), heights, atol=1e-12)
    np.testing.assert_allclose(road.height(x + 16.0, y), heights, atol=1e-12)
    np.testing.assert_allclose(road.slope(x, y)[0][:, 1:-1], (heights[:, 2:] - heights[:, :-2]) / 4.0, atol=1e-12)


def test_a_drive_uphill_is_that_of_forward_dynamics():
    """Trapezoidal steps of 1 ms against Runge-Kutta ones of 4 ms, which read the road by a way of their own."""
    machine, how, road = buggy(), BuggyDrive(duration=0.4), Plane(grade=0.03, bank=-0.01)
    ours, other = driven(machine, how, road=road), drive(machine, how, road=road)
    assert other.base_position is not None
    np.testing.assert_allclose(ours.q[::10, :3], other.base_position, atol=2e-5)
    flat = driven(machine, how)
    assert ours.qd[-1, 0] < flat.qd[-1, 0] - 0.05


@pytest.fixture(scope="module")
def truth() -> BuggyTruth:
    return driven(buggy(), HOW)


def test_it_goes_where_a_runge_kutta_integration_goes(truth: BuggyTruth):
    other = drive(buggy(), HOW)
    every = round(RATE / HOW.rate)
    assert other.base_position is not None
    assert np.abs(truth.q[::every, :3] - other.base_position).max() < 5e-6
    assert np.abs(truth.q[::every, 7:] - other.motion.q).max() < 2e-5
    assert np.abs(truth.qd[::every, 6:] - other.motion.qd).max() < 2e-3


def test_sensors_read_the_truth_with_their_noise(truth: BuggyTruth):
    machine = truth.machine
    exact = truth.readings(machine.sensors)
    log = truth.log(np.random.default_rng(5), machine.sensors)
    assert len(log["gps.x"]) == 51 and len(log["gyro.z"]) == 501
    off = log["gyro.z"].values - exact["gyro.z"].values
    assert 0.9 < off.std() / 2e-4 < 1.1
    angle = log["angle_rl"].values
    assert np.abs(angle - exact["angle_rl"].values).max() <= np.pi / 40.0 + 1e-12
    assert np.allclose(angle / (np.pi / 20.0), np.round(angle / (np.pi / 20.0)))
    assert log["drive_rl"].values[0] == HOW.torque
    assert log["q.rack"].values[-1] == pytest.approx(HOW.rack)


def test_a_course_is_where_it_goes_and_a_yaw_where_it_points(truth: BuggyTruth):
    read = truth.readings([Sensor("course", "course", "chassis", 1.0), Sensor("yaw", "yaw", "chassis", 1.0)])
    v, e = truth.qd[-1, :2], truth.q[-1, 3:7]
    assert read["course"].values[-1] == pytest.approx(np.arctan2(v[1], v[0]), abs=1e-12)
    forward = [1.0 - 2.0 * (e[2] ** 2 + e[3] ** 2), 2.0 * (e[1] * e[2] + e[0] * e[3])]
    assert read["yaw"].values[-1] == pytest.approx(np.arctan2(forward[1], forward[0]), abs=1e-12)
    assert np.isfinite(read["course"].values).all()  # standstill among them


def test_a_head_wind_slows_it_down():
    """By F/m with the wheels' inertia counted at their rolling radius, once the rolling resistance is all there."""
    calm = driven(buggy(), BuggyDrive(duration=1.0))
    windy = driven(buggy(), BuggyDrive(duration=1.0), forces={"base.x": -200.0})
    late = slice(-100, None)
    slower = (calm.qdd[late, 0] - windy.qdd[late, 0]).mean()
    assert slower == pytest.approx(200.0 / (1378.3 + 4 * 1.853 / 0.338**2), rel=0.08)


def test_torque_may_change_on_the_way(truth: BuggyTruth):
    eased = driven(buggy(), BuggyDrive(duration=0.1), torque=lambda t: 100.0 if t < 0.05 else 0.0)
    assert eased.torque[0] == 100.0 and eased.torque[-1] == 0.0
