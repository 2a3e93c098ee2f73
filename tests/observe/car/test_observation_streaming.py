"""A car observed sample by sample: what the whole log gives, and what is refused by name."""

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from veridyn.errors import CapabilityError, DataError, ModelError
from veridyn.filters import CarNoise
from veridyn.model.experiment import Channel
from veridyn.model.single_track import PriorValue, car_machine

TRUTH = Bicycle(duration=8.0, rate=25.0)
NOISE = CarNoise(slip_error=5e-4, bank=5e-4, lateral=0.02, yaw=0.02)
UNITS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}
SENSORS = (vd.Sensor("yaw_rate", "reading", "yaw_rate", 0.003), vd.Sensor("ay", "reading", "ay", 0.1))
DRIVE = TRUTH.drive(7)


def car() -> vd.Machine:
    given = {"mass": TRUTH.mass, "front": TRUTH.front, "rear": TRUTH.rear, "yaw_inertia": TRUTH.inertia}
    given |= {"front_stiffness": PriorValue(13.0, 2.0, 8.0, 13.5), "rear_stiffness": PriorValue(TRUTH.cr, 1.0)}
    return car_machine("bicycle", given, sensors=SENSORS)


@pytest.mark.parametrize("word", ["ekf", "ukf"])
def test_samples_one_by_one_give_what_the_whole_log_gives(word: str) -> None:
    log = vd.Experiment({n: Channel(n, DRIVE["t"], DRIVE[n], u) for n, u in UNITS.items()}, "drive")
    whole = vd.observe(car(), log, word, vd.ObserveSettings(process_noise=NOISE, parameters=["front_stiffness"]))
    beta = whole.virtual("sideslip")["sideslip"]
    observer = vd.Observer(car(), word, vd.ObserveSettings(process_noise=NOISE, parameters=["front_stiffness"]))
    assert isinstance(observer, vd.Observer)
    for k, t in enumerate(DRIVE["t"].tolist()):
        read = {n: DRIVE[n][k] for n in ("yaw_rate", "ay")}
        step = observer.step(t, read, [DRIVE["speed"][k], DRIVE["steer"][k]])
        np.testing.assert_allclose([*step.values.values()], whole.reduced[k], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose([*step.sigma.values()], whole.sigma[k], rtol=1e-7, atol=1e-12)
        y, s = observer.virtual("sideslip")
        np.testing.assert_allclose([y[0], s[0]], [beta.values[k, 0], beta.sigma[k, 0]], rtol=1e-6, atol=1e-9)
        assert step.values.keys() == set(whole.states) and step.bounded.keys() <= {"front_stiffness"}


def test_a_slow_car_is_not_corrected_and_inputs_go_on() -> None:
    observer = vd.Observer(car(), settings=vd.ObserveSettings(process_noise=NOISE))
    first = observer.step(0.0, [0.0, 0.0], [20.0, 0.0, 0.0])
    assert first.dof == 2 and observer.step(0.04, [0.0, 0.0]).dof == 2
    slow = observer.step(0.08, [0.0, 0.0], [3.0, 0.0, -1.0])
    assert slow.dof == 0 and slow.status["ay"].name == "MISSING"


def test_a_step_that_is_refused_changes_nothing() -> None:
    observers = [vd.Observer(car(), settings=vd.ObserveSettings(process_noise=NOISE)) for _ in range(2)]
    for k, observer in enumerate(observers):
        observer.step(0.0, [0.0, 0.0], [20.0, 0.0])
        if k:
            with pytest.raises(DataError, match="the clock runs backwards"):
                observer.step(-1.0, [0.1, 2.0], [25.0, 0.1])
            with pytest.raises(DataError, match="not what acts on a car"):
                observer.step(0.04, [0.0, 0.0], [20.0])
        observer.step(0.04, [0.01, 0.2], [20.0, 0.01])
    np.testing.assert_array_equal(*(o.belief.x for o in observers))


def test_it_has_no_bodies() -> None:
    observer = vd.Observer(car(), settings=vd.ObserveSettings(process_noise=NOISE))
    assert type(observer) is vd.Observer and observer.system.outputs == ("yaw_rate", "ay")
    with pytest.raises(ModelError, match="has no bodies and joints"):
        _ = observer.bodies


def test_what_a_car_cannot_do_is_refused_by_name() -> None:
    with pytest.raises(CapabilityError, match="has no filter 'error_ekf'"):
        vd.Observer(car(), "error_ekf", vd.ObserveSettings(process_noise=NOISE))
    with pytest.raises(ModelError, match="a smoother needs the whole log"):
        vd.Observer(car(), "smoother", vd.ObserveSettings(process_noise=NOISE))
    with pytest.raises(ModelError, match="'step' belongs to machines of bodies and joints"):
        vd.Observer(car(), settings=vd.ObserveSettings(process_noise=NOISE, step=0.01))
    with pytest.raises(ModelError, match="no unknown forces on joints"):
        vd.Observer(car(), settings=vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1.0)))
    with pytest.raises(ModelError, match="that of a car of a few numbers"):
        vd.Observer(vd.load_model("veridyn:crane.yaml"), settings=vd.ObserveSettings(process_noise=NOISE))
    observer = vd.Observer(car(), settings=vd.ObserveSettings(process_noise=NOISE))
    with pytest.raises(DataError, match="speed and steering are not known yet"):
        observer.virtual("sideslip")
    with pytest.raises(DataError, match="not what acts on a car"):
        observer.step(0.0, [0.0, 0.0])
    observer.step(0.0, [0.0, 0.0], [20.0, 0.0, 0.0])
    with pytest.raises(ModelError, match="there is no quantity 'sidslip'"):
        observer.virtual("sidslip")
    with pytest.raises(ModelError, match="has a name alone"):
        observer.virtual(vd.filters.Virtual("place", "position", "car"))
