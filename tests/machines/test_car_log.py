"""From instruments to motions: what is found is the truth of the simulator, and it is the truth only where bands are made alike."""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.estimate import identify
from veridyn.identify.sampling import Sampling
from veridyn.machines.arm import arm
from veridyn.machines.car import TEN_ROWS, car_20, car_38, estimated_33
from veridyn.machines.car_log import from_log, prepared, rack_angle
from veridyn.machines.car_record import CarKinematics
from veridyn.machines.car_sensors import sensed, sensors_2006
from veridyn.mechanics.ground.road_rough import rough_road
from veridyn.model.experiment import Experiment
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.motion import Signals
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import sinusoidal_steering, speed_variation
from veridyn.simulate.vehicle.run import VehicleRun, drive, to_motion
from veridyn.simulate.vehicle.truth import truth

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
        fit = identify(machine, motion, rows=TEN_ROWS, sampling=how, covariance="hac")
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
