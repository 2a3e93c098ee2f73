"""A wrong sensor is named, others are not; an inconsistent filter is reported by verb and command alike, a consistent one by neither."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from observe.test_observe import HOW, T, swing
from observe.test_observe import log as swing_log
from observe.test_observe import pendulum as hanging
from veridyn.errors import DataWarning
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.consistency.findings import (
    FALSE_ALARMS,
    SensorFinding,
    _pulled_along,
    finding_lines,
    mean_deviations,
    nis_finding,
    observation_findings,
    sensor_findings,
)
from veridyn.observe.consistency.nis import Consistency
from veridyn.observe.filters.methods import EKF
from veridyn.observe.observe import observe
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.simulate.simulator import Driven, simulate
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

N, BEGINS = 600, 3.0


@pytest.fixture(scope="module")
def pendulum() -> Machine:
    rod = Body("1", placement=MDH(alpha=-np.pi / 2))
    inertia = {"1": from_centre(1.0, [0.5, 0.0, 0.0], np.diag([1e-3, 0.08, 0.08]))}
    sensors = [Sensor("encoder", "coordinate", "q1", 1e-3), Sensor("second", "coordinate", "q1", 2e-3)]
    return Machine.of_bodies([rod], inertia=inertia, sensors=[*sensors, Sensor("tacho", "rate", "q1", 1e-2)])


@pytest.fixture(scope="module")
def log(pendulum: Machine) -> Experiment:
    return simulate(pendulum, Driven(N / 100.0, 100.0, [0.3], [0.0]), rng=np.random.default_rng(3))


def _found(pendulum: Machine, log: Experiment) -> tuple[SensorFinding, ...]:
    noise = ProcessNoise(acceleration=1e-6, start=1e-2, start_rate=1e-2)
    states = observe(
        pendulum, log, EKF(gate=0.9999), ObserveSettings(process_noise=noise, start={"q1": 0.3}, unknown=())
    )
    return sensor_findings(states, log)


def _changed(log: Experiment, name: str, by: float = 0.0, frozen: bool = False, silent: bool = False) -> Experiment:
    c = log[name]
    late = c.t >= BEGINS
    values = np.where(late, c.values[late][0] if frozen else c.values + by, c.values)
    kept = ~late if silent else np.ones(len(c), dtype=np.bool_)
    return log.replacing(Channel(name, c.t[kept], values[kept], c.unit))


def test_healthy_sensors_are_not_named(pendulum: Machine, log: Experiment):
    assert _found(pendulum, log) == ()


@pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")  # a rounded reading is no white noise
@pytest.mark.parametrize("cut", [False, True])
def test_a_sensor_of_steps_is_silent_only_while_they_are_missed(pendulum: Machine, cut: bool):
    """It speaks at every step, seldom near a turning point: only where its cable is cut does it miss some."""
    step, truth = 0.05, simulate(pendulum, Driven(N / 100.0, 100.0, [0.3], [0.0]), rng=np.random.default_rng(3))
    t, q = truth["encoder"].t, truth["encoder"].values
    counts = np.floor(np.interp(t, t[::5], q[::5]) / step)
    there = np.append(True, np.diff(counts) != 0.0) & ~(cut & (t > 3.0) & (t < 4.5))
    edges = Channel("second", t[there], step * (counts[there] + 0.5), "rad")
    coarse = replace(pendulum.sensors[1], sigma=0.0, quantum=step)
    sensors = [pendulum.sensors[0], coarse, pendulum.sensors[2]]
    found = _found(replace(pendulum, sensors=tuple(sensors)), truth.replacing(edges))
    assert [one.sensor for one in found if one.what == "is silent"] == (["second"] if cut else [])


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("second", {"by": 0.05}, "disagrees with all else"),
        ("second", {"frozen": True}, "repeats itself"),
        ("tacho", {"silent": True}, "is silent"),
        ("second", {"by": 1.5e-3}, "reads beside what the model expects"),
    ],
)
def test_the_one_that_is_wrong_is_named(
    pendulum: Machine, log: Experiment, name: str, change: dict[str, float], what: str
):
    (finding,) = _found(pendulum, _changed(log, name, **change))
    assert (finding.sensor, finding.what) == (name, what)
    assert abs(finding.since - BEGINS) < 0.5
    assert f"sensor '{name}' {what} from" in str(finding)


def test_mean_deviations_are_normal_where_all_is_well(pendulum: Machine, log: Experiment):
    """z over outputs of one healthy run stays within four deviations."""
    noise = ProcessNoise(acceleration=1e-6, start=1e-2, start_rate=1e-2)
    states = observe(pendulum, log, EKF(), ObserveSettings(process_noise=noise, start={"q1": 0.3}, unknown=()))
    assert max(abs(mean_deviations(states.estimates, j)[0]) for j in range(3)) < 4.0


def test_what_a_stuck_sensor_pulls_along_is_not_named():
    """A mean that is smaller than the stuck sensor's own and later; a larger one, an earlier one and readings that were refused stand."""
    stuck = SensorFinding("gyro", "repeats itself", 4.1, 0.2, 70.0)
    wrong = replace(stuck, what="disagrees with all else")
    beside = SensorFinding("angle", "reads beside what the model expects", 5.0, 0.0, 7.0)
    assert _pulled_along(beside, [stuck, beside])
    assert not _pulled_along(beside, [wrong, beside]) and not _pulled_along(stuck, [stuck, beside])
    for own in (replace(beside, deviations=80.0), replace(beside, since=3.0), replace(beside, share=0.1)):
        assert not _pulled_along(own, [stuck, own])


def test_lines_say_what_episodes_do_not():
    refused = [SensorFinding(name, "disagrees with all else", 1.0, 0.5, 3.0) for name in "abc"]
    beside = SensorFinding("d", "reads beside what the model expects", 2.0, 0.0, 9.0)
    assert finding_lines(refused[:2]) == ()  # which are episodes
    assert finding_lines([refused[0], beside]) == ("sensor 'd' reads beside what the model expects from 2 s.",)
    (line,) = finding_lines(refused)
    assert line.startswith("3 sensors at once do not fit the model ('a', 'b', 'c')")


def chi_square(mean: float, count: int) -> Consistency:
    return Consistency("NIS", np.full(count, mean), np.ones(count, dtype=np.int64), float(count), 0.95)


def test_what_chance_or_a_usable_band_explains_is_no_finding() -> None:
    assert (
        nis_finding(chi_square(1.2, 100_000)) == "" == nis_finding(chi_square(0.8, 100_000))
    )  # significant, and small
    assert nis_finding(chi_square(1.5, 20)) == "" == nis_finding(chi_square(0.6, 20))  # large, and within chance
    assert "too sure of itself: NIS 2200" in nis_finding(chi_square(2200.0, 500))
    assert "too cautious: NIS 0.3" in nis_finding(chi_square(0.3, 500))
    assert nis_finding(chi_square(1.6, 500), (0.5, 2.0)) == ""


def test_consistent_filters_are_reported_as_rarely_as_stated() -> None:
    """χ² of 40 readings each, 200,000 logs: some 20 at 1e-4 of false alarms."""
    means = np.random.default_rng(11).chisquare(40, 200_000) / 40
    low, high = (nis_band(40, side) for side in (0, 1))
    assert np.mean((means < min(low, 0.75)) | (means > max(high, 1.25))) < 2.0 * FALSE_ALARMS


def nis_band(dof: int, side: int) -> float:
    return Consistency("NIS", np.ones(1), np.ones(1, dtype=np.int64), float(dof), 1.0 - FALSE_ALARMS).band[side]


@pytest.mark.parametrize("formulation", ["tree", "natural"])
def test_the_verb_warns_of_a_filter_that_is_far_too_sure(formulation: str) -> None:
    """The torque is in the log, and the filter is told to do without it."""
    machine = hanging(formulation=formulation)
    with pytest.warns(DataWarning) as told:
        found = vd.observe(machine, swing_log("force.phi"), vd.EKF(gate=None), replace(HOW, inputs=()))
    assert found.nis().mean > 1000.0
    assert [str(w.message) for w in told] == [f"ekf on pendulum: {text}" for text in observation_findings(found)]
    assert "the filter is too sure of itself: NIS" in str(told[-1].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = vd.observe(machine, swing_log("force.phi"), "ekf", HOW)
    assert observation_findings(good) == ()


def test_a_sensor_that_is_never_used_is_named() -> None:
    """An angle in degrees, behind a gate."""
    sure = vd.ProcessNoise(acceleration=1e-6, start=0.01, start_rate=0.01)
    far = Channel("encoder", T, np.degrees(swing()[:, 0]) + 100.0, "rad")
    wrong = Experiment({"encoder": far, "force.phi": swing_log("force.phi")["force.phi"]})
    with pytest.warns(DataWarning, match="no reading of 'encoder' is used"):
        vd.observe(hanging(), wrong, vd.EKF(gate=0.999), replace(HOW, process_noise=sure))
