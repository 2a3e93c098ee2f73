"""From instruments to motions: what is found is the truth of the simulator, and it is the truth only where bands are made alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.estimate import identify
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.machines.arm import arm
from veridyn.mechanics.ground.road import rough_road
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.experiment import Channel, Experiment
from veridyn.papers.car.log import (
    FRAME_6,
    CarKinematics,
    CarRecord,
    attitude_over_road,
    chassis_motion,
    from_log,
    needed,
    prepared,
    rack_angle,
    record,
    wrench_channels,
)
from veridyn.papers.car.machine import TEN_ROWS, car_20, car_38, car_2002, estimated_33
from veridyn.papers.car.sensors import UNITS, WHEELS, kind_of, sensed, sensors_2002, sensors_2006
from veridyn.papers.car.simulator.description import Vehicle, ramp_steer, sinusoidal_steering, speed_variation
from veridyn.papers.car.simulator.run import VehicleRun, drive, to_motion, truth
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.motion import Signals

QUIET = sensors_2006().quiet()


@pytest.fixture(scope="module")
def smooth() -> VehicleRun:
    return drive(Vehicle(), sinusoidal_steering(), duration=6.0)


@pytest.fixture(scope="module")
def rough() -> VehicleRun:
    road = rough_road("C", np.random.default_rng(0), length=600.0, track=1.5)
    return drive(Vehicle().simplified(), speed_variation(), road, 12.0)


def test_a_motion_comes_back_from_the_instruments(smooth: VehicleRun) -> None:
    """The full car on a smooth road: what the bands of sensors leave can be undone to five digits."""
    log = sensed(smooth, None, QUIET)
    for machine in (car_20(), car_38()):
        found = from_log(machine, log, CarKinematics.of(smooth.vehicle), QUIET, signals=Signals(trim=0.5))
        true = to_motion(smooth, machine)[500:5501:2]
        assert np.allclose(found.t, true.t)
        assert found.base is not None and true.base is not None
        for name, limit in (("omega", 1e-5), ("omega_dot", 1e-4), ("acceleration", 1e-4)):
            a, b = getattr(found.base, name), getattr(true.base, name)
            assert np.abs(a - b).max() < limit * np.abs(b).max(), name
        for k, c in enumerate(machine.coordinates):
            if c[:-1] in ("z", "beta", "camber"):
                assert np.abs(found.q - true.q)[:, k].max() < 1e-6, c
            if c[:-1] == "zt":
                assert np.abs(found.q - true.q)[:, k].max() < 1e-3, c  # angles taken as small, axles without camber
        for body, wrench in true.wrenches.items():
            assert np.abs(found.wrenches[body] - wrench).max() < 0.5


def test_half_track_wheelbase_and_kingpin_come_from_the_tables(smooth: VehicleRun) -> None:
    log, machine = sensed(smooth, None, QUIET), car_38()
    kinematics = CarKinematics.of(smooth.vehicle)
    true = to_motion(smooth, machine)[500:5501:2].q
    for forces, limit in ((True, 0.04), (False, 2.0)):
        found = from_log(machine, log, kinematics, QUIET, signals=Signals(trim=0.5), forces_in_tables=forces).q
        for k, c in enumerate(machine.coordinates):
            if c[:-1] in ("dl", "dL", "kingpin"):
                assert np.abs(found - true)[:, k].max() < limit * np.ptp(true[:, k]), (c, forces)
    rack = rack_angle(smooth.wheel_place[0][:, :, 2], smooth.clearance[0] - np.array(kinematics.design), kinematics)
    assert np.abs(rack - smooth.rack).max() < 1e-3  # what the bushes yield to side forces


def test_equal_bands_identify_and_unequal_ones_do_not(rough: VehicleRun) -> None:
    """An inertial unit of 10 Hz beside wheels of 100 Hz. Divided out, nothing of it is left."""
    machine, true = estimated_33(car_20()), truth(rough)
    log, kinematics = sensed(rough, None, QUIET), CarKinematics.of(rough.vehicle)
    how = Sampling(filter=Butterworth(10.0), decimate=5, trim=100)

    def error(common: Butterworth | None) -> dict[str, float]:
        motion = from_log(machine, log, kinematics, QUIET, common, Signals(trim=0.3))
        fit = identify(machine, motion, rows=TEN_ROWS, settings=IdentifySettings(sampling=how, covariance="hac"))
        return {n: abs(v / true[n] - 1.0) for n, v in zip(fit.names, fit.values, strict=True) if true[n]}

    alike, as_they_come = error(Butterworth(40.0)), error(None)
    for name in (
        "M_c",
        "MX_c",
        "XX_c",
        "YY_c",
        "ZZ_c",
        "M1",
        "M2",
        "M3",
        "M4",
        "k_1",
        "k_4",
        "k_arf",
        "k_arr",
        "h_1",
        "h_4",
        "Cx",
    ):
        assert alike[name] < 2e-3, name
    assert as_they_come["M_c"] > 0.05 and as_they_come["M1"] > 1.0 and as_they_come["XX_c"] > 0.1


def test_clocks_of_their_own_are_brought_together(smooth: VehicleRun) -> None:
    mixed = replace(QUIET, clearance=replace(QUIET.clearance, rate=250.0), force=replace(QUIET.force, rate=1000.0))
    log = sensed(smooth, None, mixed)
    ready = prepared(car_20(), log, CarKinematics.of(smooth.vehicle), mixed)
    assert len({len(ready[name]) for name in ready}) == 1
    z = ready["q.z1"]
    inside = (z.t > 0.5) & (z.t < 5.5)
    wanted = zero_phase(smooth.clearance[0][:, 0], 1000.0, Butterworth(40.0))
    assert np.abs(z.values - np.interp(z.t, smooth.t, wanted))[inside].max() < 1e-6


def test_missing_channels_and_wrong_units_are_named_at_once(smooth: VehicleRun) -> None:
    log = sensed(smooth, None, QUIET)
    kept = {n: c for n, c in log.channels.items() if not n.startswith("dynamometer.3.") and n != "height.2"}
    kept["clearance.4"] = replace(kept["clearance.4"], unit="mm")
    kept["steering.1"] = replace(kept["steering.1"], values=np.full(len(log["steering.1"]), np.nan))
    with pytest.raises(DataError) as caught:
        prepared(car_20(), Experiment(kept, log.name), CarKinematics.of(smooth.vehicle), QUIET)
    text = str(caught.value)
    for name in ("dynamometer.3.fx", "dynamometer.3.mz", "height.2", "clearance.4", "steering.1"):
        assert name in text
    with pytest.raises(DataError, match="none of the papers' cars"):
        prepared(arm(), log, CarKinematics.of(smooth.vehicle), QUIET)


QUIET_2002 = sensors_2002().quiet()
AXLE = np.array([0.0, 0.0, -0.295])  # the origin of 2002, on the line of the rear axle


@pytest.fixture(scope="module")
def run() -> VehicleRun:
    return drive(Vehicle().simplified(), ramp_steer(), duration=16.0)


def found(run: VehicleRun, machine, sensors=QUIET_2002, rng=None):
    log = sensed(run, rng, sensors)
    return from_log(
        machine, log, CarKinematics.of(run.vehicle), sensors, Butterworth(12.0), Signals(lowpass=None, trim=0.5)
    )


def at(run: VehicleRun, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A quantity of the run at the log's times."""
    flat = x.reshape(len(run), -1)
    return np.stack([np.interp(t, run.t, c) for c in flat.T], axis=1).reshape(len(t), *x.shape[1:])


def test_pose_and_accelerations_of_the_chassis_come_back(run: VehicleRun) -> None:
    machine = car_2002()
    motion = found(run, machine)
    assert np.allclose(np.diff(motion.t), 0.016)
    R, p = body_pose(machine, motion.q, "6")
    true_p, true_R = at(run, motion.t, run.position + run.attitude @ AXLE), at(run, motion.t, run.attitude @ FRAME_6)
    # Positions are integrated from the start of the log, so they are the same but for where and which way it began.
    assert np.abs((p - p[0]) - (true_p - true_p[0])).max() < 2e-3
    assert np.abs(R - true_R).max() < 1e-3
    assert abs(p[:, 2].mean() - true_p[:, 2].mean()) < 1e-3
    assert run.base.velocity is not None
    v = np.einsum("nij,nj->ni", run.attitude, run.base.velocity + np.cross(run.base.omega, AXLE))
    a = at(run, motion.t, np.gradient(v, run.t, axis=0))
    for k, true in ((0, -a[:, 1]), (1, a[:, 0]), (2, a[:, 2])):
        assert np.abs(motion.qdd[:, k] - true).max() < 1e-3


def test_lagrange_and_mixed_rows_say_the_same(run: VehicleRun) -> None:
    """One log through camera, lasers and Correvit, the other through the inertial unit: two ways to the suspension rows."""
    lagrange, mixed = car_2002(), car_2002(form="mixed")
    rows = ["q7", "q10", "q13", "q17"]
    one = inverse_dynamics(lagrange, found(run, lagrange), rows)
    other = inverse_dynamics(mixed, found(run, mixed), rows)
    assert np.abs(one - other).max() < 2e-3 * np.abs(one).max()


def test_weight_stands_on_the_dynamometers(run: VehicleRun) -> None:
    """Frames 8, 11, 15, 19 have y down: before the steering begins each reads what the static car carries, with a minus sign."""
    motion = found(run, car_2002())
    early = motion.t < 0.9
    loads = np.array([-motion.wrenches[b][early, 1].mean() for b in ("15", "19", "8", "11")])
    car = run.vehicle
    carried = (car.mass - 4 * car.wheels[0].mass) * car.gravity
    assert loads.sum() == pytest.approx(carried, rel=2e-3)


def test_biased_rates_do_not_tilt_the_car_for_ever(run: VehicleRun) -> None:
    motion = found(run, car_2002(), sensors_2002(), np.random.default_rng(5))
    R, _ = body_pose(car_2002(), motion.q, "6")
    down = at(run, motion.t, run.attitude @ FRAME_6)[:, 2, :]
    assert np.abs(R[:, 2, :] - down).max() < 4e-3


RATE = 200.0
T = np.arange(0.0, 4.0, 1.0 / RATE)


def three(name: str, x: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name}.{axis}": x[:, k] for k, axis in enumerate("xyz")}


def test_a_steady_turn_seen_from_other_places() -> None:
    """At ω about z and v along x of the origin, a point p has v + ω × p, and needs ω × (ω × p) beside the origin's acceleration."""
    sensors, turn, speed = sensors_2006(), 0.3, 20.0
    omega = np.tile([0.0, 0.0, turn], (len(T), 1))
    origin = np.tile([0.0, turn * speed, 9.81], (len(T), 1))
    p, s = np.array(sensors.inertial_place), np.array(sensors.speed_place)
    felt = origin + np.cross(omega, np.cross(omega, p))
    seen = np.array([speed, 0.0, 0.0]) + np.cross(omega, s)
    known = CarRecord(
        T,
        RATE,
        three("inertial.acceleration", felt) | {"correvit.x": seen[:, 0], "correvit.y": seen[:, 1]},
    )
    velocity, acceleration = chassis_motion(known, sensors, omega, np.zeros(3))
    assert velocity == pytest.approx(np.tile([speed, 0.0, 0.0], (len(T), 1)), abs=1e-9)
    assert acceleration == pytest.approx(origin, abs=1e-9)


def test_height_pitch_and_roll_of_a_plane() -> None:
    sensors = sensors_2006()
    h, pitch, roll = 0.3 + 0.02 * np.sin(T), 0.03 * np.cos(2.0 * T), 0.05 * np.sin(3.0 * T)
    heights = {
        f"height.{n}": h + z + y * roll - x * pitch for n, (x, y, z) in zip(WHEELS, sensors.height_places, strict=True)
    }
    found = attitude_over_road(CarRecord(T, RATE, heights), sensors)
    for a, b in zip(found, (h, pitch, roll), strict=True):
        assert a == pytest.approx(b, abs=1e-12)


def test_a_wrench_as_channels() -> None:
    made = wrench_channels("carrier", np.arange(12.0).reshape(2, 6))
    assert list(made) == [f"wrench.carrier.{r}" for r in ("fx", "fy", "fz", "mx", "my", "mz")]
    assert [unit for _, unit in made.values()] == ["N"] * 3 + ["N*m"] * 3
    assert made["wrench.carrier.my"][0].tolist() == [4.0, 10.0]


def test_a_zero_passes_the_bands_as_it_is() -> None:
    """A log with another zero of one channel, read from the beginning, is the record of the first with that channel shifted."""
    machine, sensors, rng = car_38(), sensors_2006(), np.random.default_rng(0)
    smooth = {n: np.sin(rng.uniform(1.0, 9.0) * T) + rng.standard_normal(len(T)) for n in needed(machine)}

    def log(zero: float) -> Experiment:
        off = {"dynamometer.2.fz": zero}
        return Experiment({n: Channel(n, T, x + off.get(n, 0.0), UNITS[kind_of(n)]) for n, x in smooth.items()}, "log")

    first, other = (record(machine, log(zero), sensors, Butterworth(9.0)) for zero in (0.0, 5.0))
    moved = first.shifted("dynamometer.2.fz", 5.0)
    assert moved.name == "log" and not np.allclose(moved["dynamometer.2.fz"], first["dynamometer.2.fz"])
    for name in needed(machine):
        assert other[name] == pytest.approx(moved[name], abs=1e-10), name
