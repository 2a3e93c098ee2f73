from pathlib import Path

import numpy as np
import pytest

from studies.bench_robot import Bench
from studies.small_arm import small_arm
from veridyn.errors import DataError, DataWarning
from veridyn.model.motion import Motion
from veridyn.progress import silent
from veridyn.signals.butterworth import Butterworth
from veridyn.studies.config.log import RecordingSettings
from veridyn.studies.config.study import load_study
from veridyn.studies.run.machine import study_machine
from veridyn.studies.run.preparing import Preparing, RecordedMotion, dropped, plain, resting, warn_of_rest, wrong_speed
from veridyn.studies.run.recordings import Recordings

T = np.arange(1000) / 100.0


def part(moving: np.ndarray | None = None, **settings) -> RecordedMotion:
    """Joint 1 turns faster and faster; joint 2 rests where `moving` is false."""
    qd = np.column_stack([T, np.ones(1000) if moving is None else np.where(moving, 1.0, 0.001)])
    zeros = np.zeros((1000, 2))
    return RecordedMotion(Motion(T, zeros, qd, zeros), RecordingSettings(file="x", **settings))


def test_spans_speeds_and_rest_add_up_over_several_motions() -> None:
    parts = [part(drop={"q1": ((1.0, 2.0),)}), part(speeds=(0.0, 0.5))]
    masks = dropped(parts, ["q1", "q2"], [{}, {"q2": T > 9.0}])
    assert {row: len(mask) for row, mask in masks.items()} == {"q1": 2000, "q2": 2000}
    np.testing.assert_array_equal(masks["q1"][:1000], (T >= 1.0) & (T <= 2.0))
    np.testing.assert_array_equal(masks["q1"][1000:], T >= 5.0)
    np.testing.assert_array_equal(masks["q2"][:1000], False)
    np.testing.assert_array_equal(masks["q2"][1000:], T >= 5.0)
    assert dropped([part()], ["q1"], [{}]) == {}
    with pytest.raises(DataError, match="'q9' is not one of the rows"):
        dropped([part(drop={"q9": ((0.0, 1.0),)})], ["q1"], [{}])
    assert [len(m) for m in plain(parts)] == [1000, 1000]


def test_every_sample_is_in_one_share_of_speed() -> None:
    shares = [~wrong_speed(part(speeds=s)) for s in ((0.0, 0.3), (0.3, 0.9), (0.9, 1.0))]
    np.testing.assert_array_equal(np.sum(shares, axis=0), 1)
    assert [int(s.sum()) for s in shares] == [300, 600, 100]


def test_rest_is_found_where_it_lasts_a_second_and_named_where_it_is_much() -> None:
    machine = small_arm()
    short, long = (T < 3.0) | (T > 3.8), (T < 3.0) | (T > 6.0)
    assert resting(machine, part(short).motion) == {}
    found = resting(machine, part(long).motion)
    np.testing.assert_array_equal(found["q2"], ~long)
    warn_of_rest(machine, [part(short)])
    with pytest.warns(DataWarning, match=r"(?s)joints stand still.*q2 30 %.*standstill: drop"):
        warn_of_rest(machine, [part(long)])


def prepared(folder: Path, *changes: tuple[str, str], bench: Bench | None = None) -> Preparing:
    made = bench or Bench(folder)
    for old, new in changes:
        assert old in made.study
        made.study = made.study.replace(old, new)
    loaded = load_study(made.write())
    return Preparing(loaded, study_machine(loaded, ("model",), loaded.study.model), Recordings(loaded), silent)


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
        prepared(tmp_path, bench=bench)
    assert "training.csv, channel 'force.q1'" in str(caught.value)
    assert "validation.csv, channel 'q.q1'" in str(caught.value)
