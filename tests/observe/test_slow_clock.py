"""Readings whose clock is in milliseconds and read as seconds are named before anything is integrated between them."""

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import DataError, DataWarning
from veridyn.model.experiment import Channel, Experiment


def pendulum() -> vd.Machine:
    inertia = {"1": vd.spatial.from_centre(1.0, [0.5, 0.0, 0.0], np.diag([1e-3, 0.08, 0.08]))}
    rod = vd.model.Body("1", placement=vd.spatial.MDH(alpha=-np.pi / 2))
    damper = vd.elements.damper("q1", 2.0)
    encoder = vd.Sensor("encoder", "coordinate", "q1", 1e-3)
    return vd.Machine.of_bodies([rod], inertia=inertia, sensors=[encoder], elements=[damper])


def log_of(machine: vd.Machine, rate: float, slower: float = 1.0) -> Experiment:
    """Thirty readings at a rate (Hz), with stamps that are `slower` times what they should be."""
    log = vd.simulate(machine, vd.manoeuvres.Driven(30.0 / rate, rate, [0.3], [0.0]), rng=np.random.default_rng(0))
    return Experiment({n: Channel(n, slower * c.t, c.values, c.unit) for n, c in log.channels.items()}, "run.csv")


NOISE = vd.ProcessNoise(force=1e-4)


def test_milliseconds_read_as_seconds_are_refused_by_name() -> None:
    machine = pendulum()
    with pytest.raises(
        DataError, match=r"run.csv: its clock is slower[\s\S]*reading every 10 s[\s\S]*milliseconds"
    ) as caught:
        vd.observe(
            machine, log_of(machine, 100.0, 1000.0), settings=vd.ObserveSettings(model_error="off", process_noise=NOISE)
        )
    assert "step), above 0.1 s" in str(caught.value)


def test_a_slow_clock_is_a_warning_and_another_is_none() -> None:
    machine = pendulum()
    with pytest.warns(DataWarning, match="its clock is slower than any motion can be followed with"):
        vd.observe(machine, log_of(machine, 3.0), settings=vd.ObserveSettings(model_error="off", process_noise=NOISE))
    vd.observe(machine, log_of(machine, 10.0), settings=vd.ObserveSettings(model_error="off", process_noise=NOISE))


@pytest.mark.filterwarnings(
    "ignore:.*the filter is too cautious"
)  # half a second between readings, and little to learn from each
def test_a_step_that_is_stated_goes_on() -> None:
    machine = pendulum()
    with pytest.warns(DataWarning, match="Is the time in milliseconds"):
        vd.observe(
            machine,
            log_of(machine, 0.5),
            settings=vd.ObserveSettings(model_error="off", process_noise=NOISE, step=0.05),
        )
