"""The sensors of a simulation: which channels they fit, and what is refused by name."""

from pathlib import Path

import numpy as np
import pytest

from studies.arm_simulation import ARM, FREE, LED, written
from veridyn.errors import FileError
from veridyn.files.machine.load import load_model
from veridyn.machines.parallel import linkage
from veridyn.model.experiment import Experiment
from veridyn.studies.config.study import load_study
from veridyn.studies.run.simulate import simulate_study
from veridyn.studies.run.simulation.sensing import named_sensors, perfect_sensors, read_log


def test_without_sensors_a_log_holds_what_such_a_machine_measures(tmp_path: Path) -> None:
    assert "q.*" in perfect_sensors(load_model(ARM))
    closed = perfect_sensors(linkage())
    assert "q.q1" in closed and "q.*" not in closed and "q.q2" not in closed
    loaded = load_study(written(tmp_path, FREE))
    t = np.linspace(0.0, 1.0, 11)
    truth = Experiment.from_arrays(
        t, {"q.q1": t, "qd.q1": t, "force.q1": t}, {"q.q1": "rad", "qd.q1": "rad/s", "force.q1": "N*m"}
    )
    log = read_log(loaded, perfect_sensors(load_model(ARM)), truth, np.random.default_rng(0))
    assert log.names == ("q.q1", "force.q1") and np.array_equal(log["q.q1"].values, t)


def test_a_study_names_its_sensors(tmp_path: Path) -> None:
    text = LED + "sensors: {q.q1: {noise: 0.1, rate: 20, walk: 0.5}, q.*: }\n"
    named = named_sensors(load_study(written(tmp_path, text)))
    assert (named["q.q1"].noise, named["q.q1"].rate, named["q.q1"].walk) == (0.1, 20.0, 0.5)
    assert list(named) == ["q.q1", "q.*"] and named["q.*"].noise == 0.0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("sensors: {q.q7: {}}", r"sensors.q.q7 \(line \d+\): 'q.q7' is no channel(.|\n)*q.q1"),
        ("sensors: {q.*: {delay: 9}}", "the truth is too short for this sensor"),
    ],
)
def test_sensors_that_measure_nothing_are_refused(tmp_path: Path, more: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        simulate_study(load_study(written(tmp_path, LED + more + "\n")))
