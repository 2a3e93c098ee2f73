"""A car on a drive that was not used: sensors predicted from sample to sample, and what cannot be compared."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from veridyn.errors import CapabilityError, DataError, IdentificationWarning
from veridyn.estimators import Innovations
from veridyn.filters import CarNoise
from veridyn.model.experiment import Channel
from veridyn.model.single_track import PriorValue, car_machine

TRUTH = Bicycle(duration=20.0, rate=25.0)
NOISE = CarNoise(slip_error=2e-4, bank=2e-4, lateral=2e-3, yaw=2e-3)  # next to nothing, as the drive has it
UNITS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}
SENSORS = (vd.Sensor("yaw_rate", "reading", "yaw_rate", 0.003), vd.Sensor("ay", "reading", "ay", 0.1))


def log(seed: int) -> vd.Experiment:
    d = TRUTH.drive(seed)
    return vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in UNITS.items()}, "drive")


@pytest.fixture(scope="module")
def fit() -> vd.Fit:
    given = {"mass": TRUTH.mass, "front": TRUTH.front, "rear": TRUTH.rear, "yaw_inertia": TRUTH.inertia}
    given |= {"front_stiffness": PriorValue(13.0, 4.0), "rear_stiffness": PriorValue(17.0, 6.0)}
    return vd.identify(car_machine("bicycle", given, sensors=SENSORS), log(5), Innovations(noise=NOISE))


def test_another_drive_is_predicted_as_well_as_its_sensors_read(fit: vd.Fit) -> None:
    found = vd.validate(fit, log(6))
    assert found.by == "prediction" and [r.row for r in found.rows] == ["yaw_rate", "ay"] and found.fit is fit
    # The innovations are the noise of the sensors, 0.003 rad/s and 0.1 m/s^2, and what the filter does not know of the state.
    assert 0.003 < found["yaw_rate"].rms < 0.006 and 0.1 < found["ay"].rms < 0.2
    # Of 480 independent samples the mean of χ² has a deviation of √(2/480) = 0.065.
    assert all(0.75 < size < 1.25 for size in found.nis.values())
    assert found.table["ay"]["nis"] == found.nis["ay"] and found.worst is not None and "yaw_rate" in found.summary()


def test_they_are_the_innovations_of_observe(fit: vd.Fit) -> None:
    states = vd.observe(fit.machine(), log(6), settings=vd.ObserveSettings(process_noise=NOISE, consider=False))
    e = states.estimates.innovations[20:]
    expected = np.sqrt(np.nanmean(e**2, axis=0))
    np.testing.assert_allclose([r.rms for r in vd.validate(fit, log(6)).rows], expected, rtol=1e-12)


def test_predict_gives_the_readings_less_those_innovations(fit: vd.Fit) -> None:
    other = log(6)
    states = vd.observe(fit.machine(), other, settings=vd.ObserveSettings(process_noise=NOISE, consider=False))
    found = fit.predict(other)
    assert found.shape == (len(states.t), 2)
    for k, name in enumerate(("yaw_rate", "ay")):
        np.testing.assert_allclose(found[:, k], other[name].values - states.estimates.innovations[:, k], atol=1e-12)
    with pytest.raises(DataError, match="a car predicts the sensors of the log of a drive"):
        fit.predict(vd.Motion(np.arange(3.0), *(np.zeros((3, 1)) for _ in range(3))))
    assert fit["front_stiffness"].value == fit.values[fit.names.index("front_stiffness")]


def test_a_machine_is_taken_as_it_is(fit: vd.Fit) -> None:
    assert vd.validate(fit.machine(), log(6)).fit is None
    worse = fit.machine().with_parameters({"front_stiffness": 5.0})
    assert vd.validate(worse, log(6))["yaw_rate"].rms > vd.validate(fit.machine(), log(6))["yaw_rate"].rms


def test_a_log_that_looks_wrong_is_warned_of(fit: vd.Fit) -> None:
    d = replace(TRUTH, amplitude=0.02).drive(6)
    read = {n: Channel(n, d["t"], (15.0 if n == "steer" else 1.0) * d[n], u) for n, u in UNITS.items()}
    with pytest.warns(IdentificationWarning, match="angle of the steering wheel"):
        vd.validate(fit, vd.Experiment(read, "drive"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vd.validate(fit, log(6))


def test_what_a_car_cannot_be_compared_by_is_refused(fit: vd.Fit) -> None:
    for by in ("forces", "simulation"):
        with pytest.raises(CapabilityError, match=f"has no validation by {by}: no force of a joint"):
            vd.validate(fit, log(6), by=by)
    with pytest.raises(DataError, match="'rows' belongs to equations"):
        vd.validate(fit, log(6), rows="all")
    with pytest.raises(DataError, match="on the log of a drive"):
        vd.validate(fit, [log(6), log(7)])
    assert vd.validate(fit, [log(6)]).std_error == vd.validate(fit, log(6)).std_error
    with pytest.raises(DataError, match="'engine' belongs to equations"):
        vd.validate(fit, log(6), vd.IdentifySettings(engine="numpy"))
    arm = vd.load_model("veridyn:arm.yaml")
    still = vd.Motion(np.arange(3.0), *(np.zeros((3, arm.n)) for _ in range(3)))
    with pytest.raises(CapabilityError, match="has no validation by prediction"):
        vd.validate(arm, still, by="prediction")
