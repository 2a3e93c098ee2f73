from dataclasses import replace

import numpy as np
import pytest

from studies.small_arm import RATE, log_of, small_arm
from veridyn.errors import IdentificationWarning
from veridyn.identify.pipeline.identification import identification
from veridyn.identify.pipeline.identified import Trace, residual_whiteness
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.experiment import Experiment
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth


def test_samples_a_row_does_not_use_are_marked_as_the_fit_counts_them() -> None:
    truth = small_arm()
    rng = np.random.default_rng(10)
    training, validation = log_of(truth, rng, "a", 4.0), log_of(truth, rng, "b", 2.0)
    study = identification(truth, training, validation, sampling=Sampling(trim=20, dead_zone={"q1": 0.5}))
    assert study.traces["training"].used.sum(axis=0).tolist() == [r.samples for r in study.fit.rows]
    assert study.traces["validation"].used.sum(axis=0).tolist() == [r.samples for r in study.check.rows]
    assert study.settings["dead zone"] == "q1 below 0.5 rad/s"


def test_traces_pass_the_filter_of_the_fit_on_both_sides() -> None:
    truth = small_arm()
    rng = np.random.default_rng(5)
    training, validation = log_of(truth, rng, "a", 4.0), log_of(truth, rng, "b", 4.0)
    plain = identification(truth, training, validation).traces["validation"]
    low = identification(
        truth, training, validation, sampling=Sampling(filter=Butterworth(5.0), decimate=10, trim=50)
    ).traces["validation"]
    assert low.rows == plain.rows == ("q1", "q2")
    assert low.units == ("N*m", "N*m")
    # White noise of 200 Hz through 5 Hz twice keeps about √(5/100) of its size.
    inner = slice(50, -50)
    assert np.std(low.residual[inner]) < 0.35 * np.std(plain.residual[inner])


def test_residual_that_is_not_white_is_noticed() -> None:
    truth = small_arm()
    rng = np.random.default_rng(6)
    log = log_of(truth, rng, "a", 4.0)
    hum = log["force.q1"].values + 0.3 * np.sin(2 * np.pi * 30.0 * log["force.q1"].t)
    study = identification(truth, log.replacing(replace(log["force.q1"], values=hum)), log, sampling=Sampling())
    assert not study.whiteness["q1"].is_white
    assert study.whiteness["q1"].worst_frequency == pytest.approx(30.0, abs=1.0)


@pytest.mark.filterwarnings("ignore:.*never changes:veridyn.errors.DataWarning")
def test_exact_data_have_no_whiteness_to_test() -> None:
    # A machine that stands still under its own weight: the model's forces are the measured ones to rounding.
    arm = small_arm()
    t = np.arange(0.0, 2.0, 1.0 / RATE)
    channels = {"q.q1": 0.0 * t, "q.q2": 0.3 + 0.0 * t}
    held = inverse_dynamics(arm, Motion(t, np.column_stack([*channels.values()]), *np.zeros((2, len(t), 2))))
    channels |= {"force.q1": held[:, 0], "force.q2": held[:, 1]}
    log = Experiment.from_arrays(t, channels, {c: "rad" if c[0] == "q" else "N*m" for c in channels})
    with pytest.warns(IdentificationWarning):
        study = identification(arm, log, log)
    assert study.whiteness == {}
    assert study.figures["rows_with_white_residual"] == 0


def test_whiteness_of_white_noise_holds_its_level_where_samples_are_left_out() -> None:
    # p-values of a test that holds its level are uniform: of 200, 10 below 0.05 are expected, and 20 is 3.2 deviations more.
    rng = np.random.default_rng(12)
    t = np.arange(1500) / RATE
    used = (np.sin(2.0 * np.pi * 0.7 * t) > -0.6)[:, None]
    low = 0
    for _ in range(200):
        noise = rng.normal(size=(len(t), 1))
        seen = Trace(t=t, rows=("q1",), units=("N*m",), measured=noise, predicted=np.zeros_like(noise), used=used)
        low += residual_whiteness(seen, Sampling())["q1"].p_value < 0.05
    assert low <= 20
