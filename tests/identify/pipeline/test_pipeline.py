"""The way from logs to a judged fit: every stage can be taken out, replaced and run alone, and the verb walks the same way."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from studies.small_arm import believed, log_of, small_arm
from veridyn.errors import DataError, DataWarning, IdentificationError, IdentificationWarning
from veridyn.identify.pipeline.pipeline import (
    STAGES,
    Pipeline,
    Work,
    check_held_out,
    choose_cutoff,
    estimate,
    find_delays,
    inspect_logs,
    judge,
    make_equations,
)
from veridyn.identify.pipeline.preparation import Preparation
from veridyn.identify.pipeline.recording import HELD_OUT, Recording
from veridyn.identify.settings import DiagnosisSettings
from veridyn.model.experiment import Experiment

LOWPASS = 12.0
FAST = DiagnosisSettings(level="fast")


def log(seed: int = 7, name: str = "log", seconds: float = 6.0) -> Experiment:
    return log_of(small_arm(), np.random.default_rng(seed), name, seconds)


def way(*logs: Experiment, **asked: object) -> Pipeline:
    """At a given cut-off, with the fast diagnosis."""
    how = Preparation(lowpass=LOWPASS, delays="ignore")
    return replace(
        Pipeline(
            machine=believed(small_arm()), training=[Recording(log=x) for x in logs or (log(),)], how=how, checks=FAST
        ),
        **asked,
    )


def test_the_last_part_is_held_out_and_the_verdict_rests_on_it() -> None:
    done = way().run()
    fit = done.identified
    whole = len(done.training[0].motion) + len(done.validation[0].motion)
    assert len(done.validation[0].motion) / whole == pytest.approx(HELD_OUT, abs=0.02)
    assert fit.unseen is not None and fit.unseen.share == 1.0 and len(fit.unseen.before) == len(fit.rows)
    assert fit.verdict.grade == "good", fit.verdict.summary()
    assert fit.verdict.summary().splitlines()[0] in fit.summary().splitlines()


def test_without_held_out_samples_nobody_knows() -> None:
    fit = way(hold_out=False).run().identified
    assert fit.unseen is not None and fit.unseen.share == 0.0
    assert fit.verdict.grade == "not validated"
    assert way().start().logs.training[0].share == (0.0, 1.0 - HELD_OUT)


def test_the_verb_walks_the_same_way() -> None:
    """From a log with nothing said; and with logs to be judged by."""
    machine, one, other = believed(small_arm()), log(), log(8, "other")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)  # of a cut-off at the end of those tried
        fit = vd.identify(machine, one)
        done = Pipeline(machine=machine, training=[Recording(log=one)]).run()
        np.testing.assert_array_equal(fit.values, done.identified.values)
        np.testing.assert_array_equal(fit.covariance, done.identified.covariance)
        assert fit.verdict == done.identified.verdict and done.cutoff is not None
        judged = vd.identify(machine, one, validation=other, diagnose="fast")
        assert judged.unseen is not None and judged.unseen.share == 1.0
        assert judged.unseen.rows != fit.unseen.rows
        whole = vd.identify(machine, one, validation="none", diagnose="off")
    assert whole.verdict.grade == "not validated"
    assert whole.rows[0].samples > fit.rows[0].samples
    with pytest.raises(DataError) as error:
        vd.identify(machine, one, validation=vd.motion(machine, other))
    assert error.value.faults[0].where == "validation"


def test_motions_are_judged_by_other_motions() -> None:
    machine = believed(small_arm())
    one, other = (vd.motion(machine, log(k), vd.Signals(lowpass=LOWPASS)) for k in (7, 8))
    alone, judged = vd.identify(machine, one), vd.identify(machine, one, validation=other)
    np.testing.assert_array_equal(alone.values, judged.values)
    assert alone.unseen is None and alone.verdict.grade == "not validated"
    assert judged.verdict.grade == "good"
    assert vd.identify(machine, one, validation=one).verdict.grade == "not validated"


def test_stages_run_alone_one_after_the_other() -> None:
    work = way().start()
    assert work.fit is None
    with pytest.raises(IdentificationError) as error:
        _ = work.identified
    assert error.value.faults[0].where == "Pipeline.stages"
    for stage in (inspect_logs, choose_cutoff, make_equations):
        work = stage(work)
    assert work.lowpass == LOWPASS and work.how.filter is not None and work.training and work.fit is None
    work = estimate(work)
    assert work.identified.unseen is None
    checked = check_held_out(work)
    assert checked.identified.unseen is not None
    assert judge(work).identified.unseen is None  # findings do not rest on the check


def test_a_stage_is_replaced_by_another() -> None:
    def wider(work: Work) -> Work:
        return replace(work, lowpass=2.0 * LOWPASS)

    stages = [wider if stage is choose_cutoff else stage for stage in STAGES]
    done, plain = way(stages=stages).run(), way().run()
    assert done.lowpass == 2.0 * LOWPASS
    assert not np.array_equal(done.identified.values, plain.identified.values)
    without = way(stages=[stage for stage in STAGES if stage is not judge]).run()
    np.testing.assert_array_equal(without.identified.values, plain.identified.values)
    assert without.judgement.seen is None and plain.judgement.seen is not None


def test_late_forces_are_put_back_where_that_is_asked_for() -> None:
    late = log()
    for k in (1, 2):
        channel = late[f"force.q{k}"]
        late = late.replacing(replace(channel, values=np.interp(channel.t - 0.02, channel.t, channel.values)))
    work = way(late, how=Preparation(lowpass=LOWPASS, delays="correct")).start()
    for stage in (inspect_logs, choose_cutoff, make_equations, find_delays):
        work = stage(work)
    assert work.late.seconds["q2"] == pytest.approx(0.02, abs=2e-3)
    with pytest.warns(IdentificationWarning):
        kept = way(late).run().identified
    assert estimate(work).identified.relative_error < 0.5 * kept.relative_error


def test_the_same_samples_twice_are_named() -> None:
    one = log()
    with pytest.warns(DataWarning, match="the same samples are used for training and validation"):
        work = inspect_logs(way(one, validation=[Recording(log=one)]).start())
    assert len(work.logs.logs) == 1
