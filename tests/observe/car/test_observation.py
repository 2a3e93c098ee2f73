"""A car under ``observe``: bands that hold, estimated and considered parameters, warnings, and what is refused by name."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from veridyn.errors import CapabilityError, DataError, DataWarning, ModelError
from veridyn.filters import CarNoise, CarObservation
from veridyn.model.experiment import Channel
from veridyn.model.parameters import Drift
from veridyn.model.single_track import PriorValue, car_machine

TRUTH = Bicycle(duration=20.0, rate=25.0)
NOISE = CarNoise(slip_error=5e-4, bank=5e-4, lateral=0.02, yaw=0.02)
UNITS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}
SENSORS = (vd.Sensor("yaw_rate", "reading", "yaw_rate", 0.003), vd.Sensor("ay", "reading", "ay", 0.1))


def car(**more: float | PriorValue) -> vd.Machine:
    given = {"mass": TRUTH.mass, "front": TRUTH.front, "rear": TRUTH.rear, "yaw_inertia": TRUTH.inertia}
    given |= {"front_stiffness": TRUTH.cf, "rear_stiffness": TRUTH.cr, "front_friction": TRUTH.mu}
    return car_machine("bicycle", {**given, "rear_friction": TRUTH.mu, **more}, sensors=SENSORS)


DRIVE = TRUTH.drive(7)


def log(**factors: float) -> vd.Experiment:
    channels = {n: Channel(n, DRIVE["t"], factors.get(n, 1.0) * DRIVE[n], u) for n, u in UNITS.items()}
    return vd.Experiment(channels, "drive")


@pytest.fixture(scope="module")
def states() -> CarObservation:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return vd.observe(car(), log(), settings=vd.ObserveSettings(process_noise=NOISE))


def test_sideslip_is_followed_with_bands_that_hold(states: CarObservation) -> None:
    beta = states.virtual("sideslip")["sideslip"]
    error = beta.values[:, 0] - DRIVE["sideslip"]
    assert np.degrees(np.sqrt(np.mean(error[50:] ** 2))) < 0.15 and beta.units == ("rad",)
    assert np.mean(np.abs(error[50:]) < 2.0 * beta.sigma[50:, 0]) > 0.85
    assert states.states[:2] == ("lateral_speed", "yaw_rate") and states.units[:2] == ("m/s", "rad/s")
    assert 0.7 < states.nis(50).mean < 1.4 and set(states.whiteness()) == {"yaw_rate", "ay"}
    assert "ekf on bicycle" in states.summary() and "CarObservation" in repr(states)
    assert len(states.to_frame()) == len(states)


def test_it_is_an_observation_but_for_what_joints_have(states: CarObservation) -> None:
    assert isinstance(states, vd.filters.Observation) and states.observability().rank == len(states.states)
    for read in (lambda: states.q, lambda: states.qd, lambda: states.qdd, states.energy, states.constraint_errors):
        with pytest.raises(CapabilityError, match="its states are its lateral motion"):
            read()
    with pytest.raises(CapabilityError, match="coordinates of joints"):
        states.nees([0.0], [0.0])


def test_it_is_that_of_the_other_filters() -> None:
    beta = {
        word: vd.observe(car(), log(), word, vd.ObserveSettings(process_noise=NOISE)).virtual("sideslip")["sideslip"]
        for word in ("ekf", "ukf", "smoother")
    }
    apart = np.abs(beta["ukf"].values - beta["ekf"].values)[50:]
    assert (apart < 0.3 * beta["ekf"].sigma[50:]).all()
    errors = {word: np.std((b.values[:, 0] - DRIVE["sideslip"])[50:]) for word, b in beta.items()}
    assert errors["smoother"] < 1.05 * errors["ekf"]
    assert (beta["smoother"].sigma[50:-50] <= 1.001 * beta["ekf"].sigma[50:-50]).all()


def test_uncertain_parameters_are_considered_or_estimated() -> None:
    uncertain = car(rear_stiffness=PriorValue(TRUTH.cr, 2.0), front_stiffness=PriorValue(12.0, 3.0, 8.0, 13.0))
    considered = vd.observe(uncertain, log(), settings=vd.ObserveSettings(process_noise=NOISE))
    plain = vd.observe(uncertain, log(), settings=vd.ObserveSettings(process_noise=NOISE, consider=False))
    assert considered.system.considered.any() and plain.system.considered is None
    assert considered.sigma[100:, 0].mean() > plain.sigma[100:, 0].mean()
    found = vd.observe(
        uncertain, log(), settings=vd.ObserveSettings(process_noise=NOISE, parameters=["front_stiffness"])
    )
    assert found.state("front_stiffness").max() == 13.0 and "stood at its bound 13" in found.bounded()[0]
    assert found.frozen() == {}
    part = found.since(10.0)
    assert part.t[0] >= 10.0 and len(part.virtual("front_force")["front_force"].t) == len(part)


@pytest.mark.parametrize("wrong", [{"speed": 3.6}, {"ay": -1.0}, {"yaw_rate": 57.3}], ids=str)
def test_innovations_far_larger_than_stated_are_warned_of(wrong: dict[str, float]) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        vd.observe(car(), log(**wrong), settings=vd.ObserveSettings(process_noise=NOISE))
    assert any("the filter is too sure of itself" in str(w.message) for w in told if w.category is DataWarning)


def test_what_the_log_shows_to_be_wrong_is_warned_of() -> None:
    d = replace(TRUTH, amplitude=0.02).drive(7)
    read = {n: Channel(n, d["t"], (-1.0 if n == "steer" else 1.0) * d[n], u) for n, u in UNITS.items()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        vd.observe(car(), vd.Experiment(read, "drive"), settings=vd.ObserveSettings(process_noise=NOISE))
    assert sum("turns the other way" in str(w.message) for w in told if w.category is DataWarning) == 1


def test_what_a_car_cannot_do_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="has no filter 'error_ekf': it has no accelerations of joints"):
        vd.observe(car(), log(), "error_ekf")
    with pytest.raises(ModelError, match="no unknown forces on joints"):
        vd.observe(car(), log(), settings=vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1.0)))
    with pytest.raises(ModelError, match="'step' belongs to machines of bodies and joints"):
        vd.observe(car(), log(), settings=vd.ObserveSettings(step=0.01))
    with pytest.raises(ModelError, match="belong to the machine"):
        vd.observe(car(), log(), settings=vd.ObserveSettings(parameters={"mass": (1.0,)}))
    with pytest.raises(DataError, match="no sensor"):
        vd.observe(car(), log(), settings=vd.ObserveSettings(sensors=[]))
    with pytest.raises(ModelError, match="that of a car of a few numbers"):
        vd.observe(vd.load_model("veridyn:crane.yaml"), log(), settings=vd.ObserveSettings(process_noise=NOISE))


def test_sensors_are_chosen_and_hang() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        only = vd.observe(car(), log(), settings=vd.ObserveSettings(process_noise=NOISE, sensors=["yaw_rate"]))
        stuck = vd.observe(car(), log(ay=0.0), settings=vd.ObserveSettings(process_noise=NOISE, frozen_after=5))
    assert only.estimates.outputs == ("yaw_rate",)
    assert stuck.estimates.counts()["ay"]["frozen"] > 0.9 * len(stuck)


AGED = Bicycle(duration=40.0, rate=25.0, cf=16.0, gyro_bias=0.008, amplitude=0.005)  # 14 and 0 when it was identified
DRIFTS = {
    "front_stiffness": Drift(2.0, 3600.0),
    "gyro_bias": Drift(0.01, 3600.0),
    "front_friction": Drift(0.2, 3600.0),
}


def marked() -> vd.Machine:
    made = car(rear_stiffness=PriorValue(TRUTH.cr, 0.5))
    return made.with_parameters(made.parameters.drifting(DRIFTS)).with_uncertainty(made.uncertainty)


def aged_log() -> vd.Experiment:
    drive = AGED.drive(3)
    return vd.Experiment({n: Channel(n, drive["t"], drive[n], u) for n, u in UNITS.items()}, "aged")


def test_what_drifts_is_followed_and_friction_that_no_tyre_reaches_is_frozen() -> None:
    """At 2 m/s² a tyre has a fifth of its friction, which bends its curve by one percent: SciPy's drive does not show it."""
    found = vd.observe(marked(), aged_log(), settings=vd.ObserveSettings(process_noise=NOISE))
    assert isinstance(found, CarObservation) and found.system.frozen == ("front_friction",)
    for name, truth in (("front_stiffness", AGED.cf), ("gyro_bias", AGED.gyro_bias)):
        value, sigma = found.state(name)[-1], found.sigma[-1, found.states.index(name)]
        assert abs(value - truth) < 3.0 * sigma and sigma < 0.5 * DRIFTS[name].by
    k = found.states.index("front_friction")
    assert (found.state("front_friction") == TRUTH.mu).all()
    np.testing.assert_allclose(found.sigma[0, k], 0.2, rtol=1e-6)
    assert "parameter 'front_friction' drifts, and this log does not determine it" in found.summary()
    off = vd.observe(marked(), aged_log(), settings=vd.ObserveSettings(process_noise=NOISE, drifts=False))
    assert "gyro_bias" not in off.states and found.nis(50).mean < 1.0 < off.nis(50).mean
    with pytest.raises(ModelError, match="'mass' is not marked as drifting"):
        vd.observe(marked(), aged_log(), settings=vd.ObserveSettings(process_noise=NOISE, drifts=("mass",)))
