"""Stages of an observation: each is made once of those before it, may be taken out, and may be replaced."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.house import arm, log

import veridyn as vd
from observe.test_observe import HOW, pendulum
from observe.test_observe import log as swing_log
from veridyn.errors import DataError, DataWarning, ModelError
from veridyn.model.experiment import Experiment
from veridyn.observe.measurements import Status
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import MachineObservation, observation_run, observe_with
from veridyn.observe.stages import MADE_OF

quiet = pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")


def run_of(**more: object) -> MachineObservation:
    run = observation_run(pendulum(), swing_log("force.phi"), "ekf", HOW, **more)
    assert isinstance(run, MachineObservation)
    return run


def test_stages_are_made_once_and_lead_to_what_the_verb_gives() -> None:
    run = run_of()
    states = run.states
    assert run.states is states and run.readings is run.readings
    assert run.inspection == () and run.prepared.system.inputs == ("force.phi",)
    own = vd.observe(pendulum(), swing_log("force.phi"), "ekf", HOW)
    np.testing.assert_array_equal(states.reduced, own.reduced)
    assert (run.findings, run.verdict) == (own.findings, own.verdict)


def test_a_stage_that_is_replaced_is_what_later_ones_are_made_of() -> None:
    """With every other reading the states are those of a log that has no others; what was made before stands."""
    run = run_of()
    _ = run.states
    every_other = np.arange(len(run.readings))[:, None] % 2 == 1
    fewer = run.replacing(readings=run.readings.flagged(every_other, Status.MISSING))
    assert fewer.prepared is run.prepared and fewer.states is not run.states
    assert fewer.states.estimates.counts()["encoder"]["used"] == (len(run.readings) + 1) // 2
    assert (fewer.states.sigma[-1] > run.states.sigma[-1]).all()
    setup = run.noise[0]
    doubtful = run.replacing(noise=(setup.replaced(process_noise=vd.ProcessNoise(acceleration=1.0)), None))
    assert doubtful.readings is run.readings


def test_a_stage_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ModelError, match="no stage 'reading'") as caught:
        run_of().replacing(reading=None)
    assert "Did you mean 'readings'" in caught.value.faults[0].hint
    assert set(MADE_OF) == {"prepared", "inspection", "readings", "noise", "states"}


@quiet
def test_the_log_chooses_densities_and_keeps_the_deviations_that_are_given() -> None:
    given = vd.ProcessNoise(start=0.02, start_rate=0.3)
    settings = vd.ObserveSettings(process_noise=given)
    setup, machine, readings = ObserverSetup(vd.EKF(), settings), arm(), log("observe", 0)
    as_given = MachineObservation(setup=setup, machine=machine, log=readings)
    assert as_given.noise == (as_given.prepared.setup, None)
    chosen, tuning = MachineObservation(setup=setup, machine=machine, log=readings, choose_noise=True).noise
    noise = chosen.settings.process_noise
    assert isinstance(noise, vd.ProcessNoise) and tuning is not None and tuning.converged
    assert (noise.start, noise.start_rate) == (0.02, 0.3) and noise != given


def test_time_to_settle_is_left_out_of_every_judgement() -> None:
    whole, late = run_of().states, run_of(settle=1.0).states
    assert (whole.settled, late.settled) == (0, 100)
    assert late.nis().mean == pytest.approx(whole.nis(100).mean, rel=1e-12)
    assert len(late.nis().values) == len(late) - 100


@quiet  # without its one encoder nothing tells the filter that its rate is off
def test_withheld_readings_are_predicted_and_judged() -> None:
    states = run_of(withheld={"encoder": [(1.0, 1.5)]}).states
    assert states.estimates.counts()["encoder"]["withheld"] == 51
    with pytest.raises(DataError) as caught:
        _ = run_of(withheld={"encoder": [(1.0, 1.5), (8.0, 9.0)], "tacho": [(0.0, 1.0)]}).readings
    assert [f.at for f in caught.value.faults] == [("withheld", "encoder"), ("withheld", "tacho")]


def test_first_readings_need_a_log() -> None:
    start = replace(HOW, start="readings")
    readings = run_of().readings
    run = observation_run(pendulum(), readings, "ekf", replace(start, inputs=("force.phi",)))
    with pytest.raises(DataError) as caught:
        _ = run.states
    assert caught.value.faults[0].where == "observe, start"


def test_a_prepared_setup_is_observed_without_warnings_of_findings() -> None:
    """The torque is in the log, and the filter is told to do without it."""
    setup = ObserverSetup(vd.EKF(gate=None), replace(HOW, inputs=()))
    states = observe_with(setup, pendulum(), swing_log("force.phi"))
    assert states.verdict.grade == "poor" and "innovations" in [r.kind for r in states.verdict.reasons]
    with pytest.warns(DataWarning) as told:
        vd.observe(pendulum(), swing_log("force.phi"), setup.method, setup.settings)
    assert "too sure of itself" in str(told[-1].message)


def test_readings_that_are_made_ready_are_taken_as_they_are() -> None:
    run = run_of()
    other = observation_run(pendulum(), run.readings, "ekf", replace(HOW, inputs=("force.phi",)))
    assert not isinstance(other.log, Experiment) and other.inspection == ()
    np.testing.assert_array_equal(other.states.reduced, run.states.reduced)
