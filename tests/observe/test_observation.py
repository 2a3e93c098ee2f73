"""What an observation tells: states by name, energy against the textbook, consistency, and names that are refused."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from papers.small_crane import small_crane
from veridyn.errors import DataError
from veridyn.filters import CarNoise
from veridyn.machines import crane
from veridyn.manoeuvres import Steered
from veridyn.mechanics.natural.channels import readout
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.observation import Observation
from veridyn.observe.observe import observe
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.system import numeric_jacobian


def test_states_energy_and_judgements() -> None:
    o = small_crane().best.example
    truth = small_crane().truth
    assert np.array_equal(o.state("x"), o.q[:, o.system.model.system.mechanism.index("x")])
    assert np.abs(o.constraint_errors()).max() < 1e-9
    kinetic, gravity, elastic = o.energy()[-1]
    height = o.q[-1, o.system.model.system.mechanism.index("L.y")]
    assert gravity == pytest.approx((250.0 + 1.5) * 9.81 * height) and elastic == 0.0 and kinetic > 0.0
    assert o.nees(truth.q, truth.qd, 10).mean > 0.0 and o.nis(10).mean > 0.0
    assert set(o.whiteness(10)) == {"travel", "tilt"}
    assert o.qdd.shape == o.q.shape and "ekf on crane" in o.summary()
    smoother = small_crane().scores["smoother"].example
    assert smoother.nees(truth.q, truth.qd, 10).dof[0] == 4
    with pytest.raises(DataError, match="there is no state 'y'"):
        o.state("y")


def test_nees_refuses_a_truth_of_another_width_or_length() -> None:
    o, truth = small_crane().best.example, small_crane().truth
    independent = [o.system.model.system.mechanism.index(name) for name in o.system.model.names]
    for q, qd in (
        (truth.q[:, independent], truth.qd[:, independent]),
        (truth.q[:, :1], truth.qd[:, :1]),
        (truth.q[1:], truth.qd[1:]),
        (np.hstack([truth.q, truth.q]), truth.qd),
        (truth.q[0], truth.qd[0]),
    ):
        with pytest.raises(DataError, match=r"nees: the true motion has another shape"):
            o.nees(q, qd)


@pytest.mark.filterwarnings(
    "ignore:.*(reads beside what the model expects|the filter is)"
)  # readings that no motion has
def test_a_further_sensor_is_judged_under_the_inputs_that_act() -> None:
    """An accelerometer on the rope of a crane: what it says of the swing depends on the motor's force, which comes as an input."""
    machine, extra = crane(), Sensor("felt", "accelerometer", Marker("rope", (0.0, 0.0)), sigma=0.01)
    t, slopes = np.linspace(0.0, 0.1, 3), []
    for force in (0.0, 4000.0):
        values = {"travel": (0.5, "m"), "tilt": (0.3, "rad"), "motor": (force, "N")}
        log = Experiment({n: Channel(n, t, np.full(len(t), v), u) for n, (v, u) in values.items()}, "log")
        o = observe(
            machine,
            log,
            "ekf",
            ObserveSettings(
                model_error="off", process_noise=ProcessNoise(), unknown=(), inputs=("motor",), start={"swing": 0.3}
            ),
        )
        sensor, x, acting = o._extra(extra)[0], o.track.x[0], np.array([force])
        assert callable(sensor.H)

        def felt(change: np.ndarray, o=o, x=x, acting=acting) -> np.ndarray:
            at = o.system.instant(o.system.add(x, change), acting)
            return readout(natural_system(machine), [extra]).read(at.q, at.qd, at.qdd)[:1]

        slopes.append(np.asarray(sensor.H(x, acting)))
        # Biases of the tilt are none of the accelerometer's.
        assert slopes[-1] == pytest.approx(numeric_jacobian(felt, np.zeros(len(o.states)))[0], abs=1e-6)
    assert np.abs(slopes[1] - slopes[0]).max() > 1.0


def pendulum_history() -> Observation:
    rod = vd.Link(name="rod", inertia=[0.33, 0, 0, 0.33, 0, 0.01, 0, 0, -0.5, 1.0])
    hinge = vd.Joint(name="hinge", a="ground", b="rod")
    machine = vd.Machine.build([rod], [hinge], sensors=[vd.Sensor("angle", "coordinate", "hinge", 1e-3)])
    log = vd.simulate(machine, vd.manoeuvres.Driven(1.0, 50.0, [0.3], [0.0]), rng=np.random.default_rng(0))
    return vd.observe(machine, log, settings=vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-3)))


def car() -> Observation:
    machine = vd.model.car_machine("small", {"mass": 900.0, "front": 1.0, "rear": 1.4})
    drive = Steered(4.0, 25.0, speed=20.0, steer=lambda t: 0.03 * np.sin(t))
    log = vd.simulate(machine, drive, rng=np.random.default_rng(0))
    return vd.observe(machine, log, settings=vd.ObserveSettings(process_noise=CarNoise(slip_error=1e-3, bank=1e-3)))


@pytest.mark.parametrize("made", [pendulum_history, car])
def test_every_observation_has_states_consistency_and_a_summary(made) -> None:
    found = made()
    assert isinstance(found, Observation) and len(found) == len(found.t) == len(found.reduced) == len(found.sigma)
    assert len(found.states) == len(found.units) == found.reduced.shape[1]
    name = found.states[0]
    np.testing.assert_array_equal(found.state(name), found.reduced[:, 0])
    assert name in found.summary() and "NIS" in found.summary() and type(found).__name__ in repr(found)
    assert 0.3 < found.nis(10).mean < 3.0 and set(found.whiteness()) == set(found.estimates.outputs)
    assert found.bounded() == () and found.episodes() == ()
    assert found.system.name in found._repr_html_() and len(found.to_frame()) == len(found)
    with pytest.raises(DataError, match="there is no state 'nothing'"):
        found.state("nothing")
