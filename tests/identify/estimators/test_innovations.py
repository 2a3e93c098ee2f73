"""Parameters of a car by ``identify``: a stranger's drive, priors, tuned noise, and what cannot be asked of such a car."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from veridyn.errors import CapabilityError, DataError, IdentificationError, IdentificationWarning
from veridyn.estimators import CarFit, Innovations
from veridyn.model.experiment import Channel
from veridyn.model.single_track import CarNoise, PriorValue, car_machine, prior_of

TRUTH = Bicycle(duration=25.0, rate=25.0)
NOISE = CarNoise(slip_error=0.001, bank=0.001)
UNITS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}
WHOLE: dict[str, Any] = {"validation": "none"}  # every sample is fitted
SENSORS = (vd.Sensor("yaw_rate", "reading", "yaw_rate", 0.003), vd.Sensor("ay", "reading", "ay", 0.1))


def car(**more: float | PriorValue) -> vd.Machine:
    given = {"mass": TRUTH.mass, "front": TRUTH.front, "rear": TRUTH.rear, "yaw_inertia": TRUTH.inertia}
    given |= {"front_stiffness": PriorValue(11.0, 4.0), "rear_stiffness": PriorValue(20.0, 6.0)}
    return car_machine("bicycle", {**given, **more}, sensors=SENSORS)


@pytest.fixture(scope="module")
def log() -> vd.Experiment:
    d = TRUTH.drive(5)
    return vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in UNITS.items()}, "drive")


@pytest.fixture(scope="module")
def fit(log: vd.Experiment) -> CarFit:
    return vd.identify(car(), log, Innovations(noise=NOISE, tuned=("ay",)), **WHOLE)


def test_a_drive_shows_the_stiffness_of_the_tyres(fit: CarFit) -> None:
    assert fit.names == ("front_stiffness", "rear_stiffness") and fit.units == ("1/rad", "1/rad")
    assert (np.abs(fit.values - [TRUTH.cf, TRUTH.cr]) < 4.0 * fit.sigma).all() and (fit.relative_sigma < 10.0).all()
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), fit.sigma, rtol=1e-6)
    assert "front_stiffness" in fit.summary() and fit.notes == ()


def test_its_machine_has_values_covariance_and_tuned_noise(fit: CarFit) -> None:
    machine = fit.machine()
    assert machine.parameters["front_stiffness"] == fit.values[0]
    assert prior_of(machine, "rear_stiffness").sigma == pytest.approx(fit.sigma[1])
    np.testing.assert_allclose(machine.uncertainty.covariance, fit.covariance)
    assert machine.sensors[1].sigma == fit.fit.values["noise.ay"] == pytest.approx(0.1, rel=0.3)


def test_it_is_a_fit_like_any_other(fit: CarFit) -> None:
    assert (
        isinstance(fit, vd.Fit) and fit.base.fate("front_stiffness") == "alone" and fit.well_identified() == fit.names
    )
    np.testing.assert_array_equal(fit.priors, [11.0, 20.0])
    np.testing.assert_array_equal(fit.standard, fit.machine().parameters.values)
    assert [r.row for r in fit.rows] == ["yaw_rate", "ay"] and [r.unit for r in fit.rows] == ["rad/s", "m/s^2"]
    # The filter allows for accelerations that nobody measures, of which this drive has none.
    assert 0.5 < fit.residual_sigma < 1.0
    # (WᵀW)⁻¹ = C, so that the condition of W is the root of that of C
    assert fit.condition == pytest.approx(np.sqrt(np.linalg.cond(fit.covariance)))
    assert len(fit.to_frame()) == 2 and "front_stiffness" in fit._repr_html_() and fit.plot() is not None
    with pytest.raises(IdentificationError, match="no forces of joints to draw"):
        fit.plot(motion=object())


def test_cars_are_drawn_from_what_the_fit_knows(fit: CarFit) -> None:
    sets = fit.draws(400, np.random.default_rng(0))
    own = sets[:, list(fit.base.columns)]
    np.testing.assert_allclose(own.mean(axis=0), fit.values, atol=5.0 * fit.sigma.max() / 20.0)
    np.testing.assert_allclose(own.std(axis=0), fit.sigma, rtol=0.15)
    assert (np.delete(sets, list(fit.base.columns), axis=1) == np.delete(fit.standard, list(fit.base.columns))).all()


class Changing(Bicycle):
    """Front tyres of 12 and 16 1/rad, by turns of 12.5 s."""

    def forces(self, t, v, r):
        soft, hard = (Bicycle.forces(replace(self, cf=cf), t, v, r) for cf in (12.0, 16.0))
        return [np.where(np.floor(np.asarray(t) / 12.5) % 2 == 0, soft[0], hard[0]), hard[1]]


def test_stretches_that_disagree_widen_the_deviations() -> None:
    """No stiffness is that of all four quarters of the drive. The same drive with one tyre agrees with itself, and is not widened."""
    found = []
    for truth in (Changing(duration=50.0, rate=25.0), Bicycle(duration=50.0, rate=25.0)):
        d = truth.drive(3)
        log = vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in UNITS.items()}, "drive")
        found.append(vd.identify(car(), log, Innovations(noise=NOISE), diagnose="off", **WHOLE))
    changing, steady = found
    assert len(changing.notes) == 1 and "disagree beyond their deviations" in changing.notes[0]
    assert steady.notes == () and changing.sigma[0] > 4.0 * steady.sigma[0]
    assert abs(changing.values[0] - 14.0) < 2.5 * changing.sigma[0]  # the mean of both tyres
    np.testing.assert_allclose(np.sqrt(np.diag(changing.covariance)), list(changing.fit.sigma.values()))
    narrow = changing.fit.widened(1e6)  # nobody knows less than before
    np.testing.assert_allclose(
        list(narrow.sigma.values()), [g.spread(narrow.values[n]) for n, g in narrow.guesses.items()]
    )


def test_noise_that_varies_is_not_a_car_that_varies() -> None:
    """A gyroscope that is noisier in the second half: its noise is named and widened, the stiffnesses are not."""
    d = Bicycle(duration=50.0, rate=25.0).drive(3)
    d["yaw_rate"] += 0.01 * (d["t"] > 25.0) * np.random.default_rng(0).normal(size=len(d["t"]))
    log = vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in UNITS.items()}, "drive")
    found = vd.identify(car(), log, Innovations(noise=NOISE, tuned=("yaw_rate",)), diagnose="off", **WHOLE)
    assert len(found.notes) == 1 and "noise.yaw_rate" in found.notes[0] and "stiffness" not in found.notes[0]
    sums = found.fit.stretches
    assert sums is not None
    B = np.linalg.inv(sums.information.sum(axis=0))
    alone = np.sqrt(np.diag(B @ sums.covariance @ B)) * [
        g.spread(found.fit.values[n]) for n, g in found.fit.guesses.items()
    ]
    widened = np.array(list(found.fit.sigma.values())) / alone
    np.testing.assert_allclose(widened[:2], 1.0, rtol=1e-6)
    assert widened[2] > 2.0


def test_what_is_wrong_with_a_log_is_warned_of_and_noted() -> None:
    d, words = TRUTH.drive(5), "it turns the other way than the car does"
    d["steer"] = -d["steer"]
    log = vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in UNITS.items()}, "drive")
    with pytest.warns(IdentificationWarning, match=words):
        found = vd.identify(car(), log)
    assert any(note.startswith("suspected: ") and words in note for note in found.notes)
    assert not any(note.startswith("suspected") for note in vd.identify(car(), log, diagnose="off").notes)


def test_exchanged_axles_are_named_where_tyres_are_known(log: vd.Experiment) -> None:
    known = {
        "front_stiffness": PriorValue(TRUTH.cf, 0.1 * TRUTH.cf),
        "rear_stiffness": PriorValue(TRUTH.cr, 0.1 * TRUTH.cr),
    }
    with pytest.warns(IdentificationWarning, match="seem to be exchanged"):
        vd.identify(car(front=TRUTH.rear, rear=TRUTH.front, **known), log, Innovations(noise=NOISE))


def test_what_a_gentle_drive_does_not_show_is_named() -> None:
    d = Bicycle(duration=12.0, rate=20.0, amplitude=0.004).drive(1)
    log = vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in UNITS.items()}, "drive")
    found = vd.identify(car(front_friction=PriorValue(1.0, 0.3)), log, Innovations(noise=NOISE))
    assert "far from their grip" in found.not_shown["front_friction"]
    assert "not shown by this drive: front_friction" in found.summary()


def test_without_a_method_innovations_are_meant(log: vd.Experiment) -> None:
    by_default, by_word = vd.identify(car(), log, **WHOLE), vd.identify(car(), log, "innovations", **WHOLE)
    np.testing.assert_array_equal(by_default.values, by_word.values)


def test_a_search_that_does_not_end_is_warned_of(log: vd.Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veridyn.observe.fitting.MOST_STEPS", 1)
    with pytest.warns(IdentificationWarning, match="did not converge"):
        found = vd.identify(car(), log, Innovations(noise=NOISE))
    assert "did not converge" in found.summary() and len(found.faults) == 1


def test_what_cannot_be_asked_is_refused_by_name(log: vd.Experiment) -> None:
    for method in ("wls", "robust", vd.Robust()):
        with pytest.raises(CapabilityError, match=r"has no estimator '(wls|robust)': tyres are not linear"):
            vd.identify(car(), log, method)
    with pytest.raises(IdentificationError, match="'rows' belongs to equations that are linear"):
        vd.identify(car(), log, rows="all")
    with pytest.raises(DataError, match="from the log of a drive"):
        vd.identify(car(), [log, log])
    with pytest.raises(IdentificationError, match="'engine' belongs to equations that are linear"):
        vd.identify(car(), log, settings=vd.IdentifySettings(engine="numpy"))
    with pytest.raises(IdentificationError, match="there is no noise 'az' to tune"):
        vd.identify(car(), log, Innovations(tuned=("az",)))
    known = car(front_stiffness=14.0, rear_stiffness=16.0)
    with pytest.raises(IdentificationError, match="no parameter of this car is estimated"):
        vd.identify(known, log)
    with pytest.raises(IdentificationError, match="'front_stiffness' has no prior deviation"):
        vd.identify(car().with_uncertainty(None), log)
