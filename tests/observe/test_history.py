"""What every observation has: states by name, consistency and a summary, of a machine of joints and of a car alike."""

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import DataError
from veridyn.observe.history import StateHistory
from veridyn.observers import CarNoise
from veridyn.simulation import Steered


def pendulum() -> StateHistory:
    rod = vd.Link(name="rod", inertia=[0.33, 0, 0, 0.33, 0, 0.01, 0, 0, -0.5, 1.0])
    hinge = vd.Joint(name="hinge", a="ground", b="rod")
    machine = vd.Machine.build([rod], [hinge], sensors=[vd.Sensor("angle", "coordinate", "hinge", 1e-3)])
    log = vd.simulate(machine, vd.Driven(1.0, 50.0, [0.3], [0.0]), rng=np.random.default_rng(0))
    return vd.observe(machine, log, process_noise=vd.ProcessNoise(force=1e-3))


def car() -> StateHistory:
    machine = vd.model.car_machine("small", {"mass": 900.0, "front": 1.0, "rear": 1.4})
    drive = Steered(4.0, 25.0, speed=20.0, steer=lambda t: 0.03 * np.sin(t))
    log = vd.simulate(machine, drive, rng=np.random.default_rng(0))
    return vd.observe(machine, log, process_noise=CarNoise(slip_error=1e-3, bank=1e-3))


@pytest.mark.parametrize("made", [pendulum, car])
def test_every_observation_has_states_consistency_and_a_summary(made) -> None:
    found = made()
    assert isinstance(found, StateHistory) and len(found) == len(found.t) == len(found.reduced) == len(found.sigma)
    assert len(found.states) == len(found.units) == found.reduced.shape[1]
    name = found.states[0]
    np.testing.assert_array_equal(found.state(name), found.reduced[:, 0])
    assert name in found.summary() and "NIS" in found.summary() and type(found).__name__ in repr(found)
    assert 0.3 < found.nis(10).mean < 3.0 and set(found.whiteness()) == set(found.estimates.outputs)
    assert found.bounded() == () and found.episodes() == ()
    assert found.system.name in found._repr_html_() and len(found.to_frame()) == len(found)
    with pytest.raises(DataError, match="there is no state 'nothing'"):
        found.state("nothing")
