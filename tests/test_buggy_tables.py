"""Tables 5 to 8 on another engine: what is compared with what, and how it is printed."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from benchmarks.buggy_tables import CASES, OBSERVERS, roughened, table, true_states
from benchmarks.foreign.buggy import Drive, Manoeuvre

from veridyn.model.experiment import Channel, Experiment
from veridyn.papers.buggy.observers import QUANTITIES

T = np.arange(0.0, 1.0, 0.002)


def test_true_states_have_the_names_of_an_observer_and_wheels_their_speed():
    three, one = np.zeros((len(T), 3)), np.zeros(len(T))
    angles = {f"angle_{c}": 5.0 * T for c in ("fl", "fr", "rl", "rr")}
    found = true_states(Drive(Manoeuvre(1.0), T, three, three, one, one, np.zeros((len(T), 4)), angles, {}))
    assert {name for names in QUANTITIES.values() for name in names} == set(found)
    np.testing.assert_allclose(found["spin_rl_dot"], 5.0)


def test_a_rough_receiver_has_a_deviation_of_a_metre():
    rng = np.random.default_rng(1)
    t = np.arange(4000) / 50.0
    fine = {n: Channel(n, t, 0.02 * rng.standard_normal(4000), "m") for n in ("gps.x", "gps.y", "gps.z", "gyro.x")}
    log = roughened(Experiment(fine, "log"), rng)
    assert np.std(log["gps.y"].values) == pytest.approx(1.0, rel=0.05)  # 1.1 % for one deviation
    np.testing.assert_array_equal(log["gyro.x"].values, fine["gyro.x"].values)


def test_means_over_runs_stand_beside_the_thesis():
    runs = [{who: dict.fromkeys(QUANTITIES, (rms, 10.0 * rms)) for who in OBSERVERS} for rms in (0.1, 0.3)]
    lines = table("Table 8", CASES["Table 8, receiver of 1 m"], runs)
    assert lines[2] == "| x (m) | 0.071 (0.43) | 0.2 (2) | 0.2 (2) | 0.2 (2) |"
    assert lines[-1].startswith("| wheel speed (rad/s) | – |") and len(lines) == 2 + len(QUANTITIES)
