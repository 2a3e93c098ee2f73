"""From logs to motions and equations by one rule, here as a study names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.bench_robot import Bench
from veridyn.errors import DataError
from veridyn.identify.pipeline.prepared_logs import PreparedLogs
from veridyn.identify.pipeline.recording import plain
from veridyn.signals.butterworth import Butterworth
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import pipeline_of
from veridyn.studies.run.machine import study_machine
from veridyn.studies.run.recordings import Recordings


def prepared(folder: Path, *changes: tuple[str, str], bench: Bench | None = None) -> PreparedLogs:
    made = bench or Bench(folder)
    for old, new in changes:
        assert old in made.study
        made.study = made.study.replace(old, new)
    loaded = load_study(made.write())
    machine = study_machine(loaded, ("model",), loaded.study.model)
    return pipeline_of(loaded, machine, Recordings(loaded)).start().logs


def test_ends_in_motion_lose_two_periods_of_the_cut_off_and_ends_at_rest_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for k in (1, 2, 3):  # the first second and a half at rest, then gently on
        start = np.clip((bench.training["t"] - 1.5) / 1.5, 0.0, 1.0)
        bench.training[f"q{k}"] = bench.training[f"q{k}"] * start**3 * (10.0 - 15.0 * start + 6.0 * start**2)
    work = prepared(tmp_path, bench=bench)
    (training, validation) = work.motions(8.0)
    assert len(training[0].motion) == 2000 - 50  # 0.25 s at 200 Hz, at its end
    assert len(validation[0].motion) == 2000 - 2 * 50
    assert work.motions(8.0)[0][0].motion is training[0].motion  # made once for a cut-off


def test_an_end_that_turns_round_is_in_motion(tmp_path: Path) -> None:
    """A log that ends at the very moment in which all joints turn round still loses what the filter does not know."""
    bench = Bench(tmp_path)
    for k in (1, 2, 3):
        bench.training[f"q{k}"] = np.cos(np.pi * (bench.training["t"] - bench.training["t"][-1]))
    assert len(prepared(tmp_path, bench=bench).motions(8.0)[0][0].motion) == 2000 - 2 * 50


def test_a_stated_trim_holds_at_both_ends(tmp_path: Path) -> None:
    work = prepared(tmp_path, ("{lowpass: 8}", "{lowpass: 8, trim: 1}"))
    assert len(plain(work.motions(8.0)[0])[0]) == 1600
    with pytest.raises(DataError, match="nothing is left of a piece"):
        prepared(_fresh(tmp_path, "b"), ("{lowpass: 8}", "{lowpass: 8, trim: 6}")).motions(8.0)


def _fresh(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def test_equations_follow_the_filter(tmp_path: Path) -> None:
    work = prepared(tmp_path)
    training, validation = work.motions(8.0)
    how, _ = work.samplings(training, validation, 8.0)
    # White noise that passed |H|² = 1/(1 + (f/8)⁸) is white again at the rate 2 ∫ |H|⁴ df = 1.796 · 8 Hz (closed form), of 200 Hz.
    assert how.decimate == 14
    assert how.filter is not None and how.filter.cutoff == 8.0
    text = "sampling: {filter: 20, order: 6, decimate: 3, dead_zone: 0.1, trim: 7}\naccept:"
    other = prepared(_fresh(tmp_path, "b"), ("accept:", text))
    how, _ = other.samplings(*other.motions(8.0), 8.0)
    assert (how.filter.cutoff, how.filter.order, how.decimate, how.trim) == (20.0, 6, 3, 7)
    assert how.dead_zone == {"q1": 0.1, "q2": 0.1, "q3": 0.1}
    none = prepared(_fresh(tmp_path, "c"), ("accept:", "sampling: {filter: none}\naccept:"))
    how, _ = none.samplings(*none.motions(8.0), 8.0)
    assert how.filter is None and how.decimate == 1


def test_the_same_filter_is_the_same_however_short_the_log(tmp_path: Path) -> None:
    """At 0.5 Hz, ten seconds have 18 independent equations of each row: the filter stays, more are kept, and it is said by name."""
    work = prepared(tmp_path)
    training, validation = work.motions(2.0)
    how, later = work.samplings(training, validation, 0.5)
    assert how.filter == later.filter == Butterworth(0.5)
    total = len(training[0].motion)
    assert how.decimate == total // (4 * work.rule(None).combinations)
    fault = work.few_equations(training, how, 0.5)
    assert fault is not None and fault.where == "sampling.filter"
    assert "the low-pass of the equations at 0.5 Hz leaves few independent ones" in fault.what
    # 2 ∫ |H|⁴ df = 1.796 · 0.5 Hz of 200 Hz (closed form): one in 223 is independent.
    assert f"{total // 223}: one in 223 of {total} samples is independent" in fault.found
    wider = float(fault.hint.split("filter: ")[1].split("}")[0])
    assert 1.796 * wider * total / 200.0 == pytest.approx(4 * work.rule(None).combinations, rel=0.06)  # two digits
    assert work.few_equations(training, work.samplings(training, validation, 8.0)[0], 8.0) is None


def test_dead_zones_are_chosen_once_from_the_training_logs(tmp_path: Path) -> None:
    work = prepared(tmp_path, ("accept:", "sampling: {dead_zone: auto}\naccept:"))
    how, later = work.samplings(*work.motions(8.0), 8.0)
    assert how.dead_zone == later.dead_zone
    dry = [e for e in work.machine.elements if e.jumps]
    assert len(dry) == len(how.zones)


def test_the_rate_is_that_of_the_log_however_its_clock_jitters(tmp_path: Path) -> None:
    bench, rng = Bench(tmp_path), np.random.default_rng(0)
    assert prepared(tmp_path).rate == pytest.approx(200.0)
    for log in (bench.training, bench.validation):
        log["t"] = log["t"] + 4e-4 * rng.uniform(-1.0, 1.0, len(log["t"]))
    bench.folder = _fresh(tmp_path, "b")
    assert prepared(bench.folder, bench=bench).rate == pytest.approx(200.0, rel=0.01)


def test_faults_of_all_logs_come_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.training["tau1"][5] = np.nan
    bench.validation["t"][9] = bench.validation["t"][8]
    with pytest.raises(DataError) as caught:
        _ = prepared(tmp_path, bench=bench).repaired
    assert "training.csv, channel 'force.q1'" in str(caught.value)
    assert "validation.csv, channel 'q.q1'" in str(caught.value)
