from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.bench_robot import Bench, robot
from studies.small_arm import small_study
from veridyn.errors import DataError, DataWarning, FileError, IdentificationWarning
from veridyn.identify.estimator import disagreement
from veridyn.identify.pipeline.estimation import estimated
from veridyn.identify.result import Fit
from veridyn.inference.agreement import Agreement
from veridyn.report.verdict import verdict
from veridyn.studies.config.identify import IdentifyAccept
from veridyn.studies.config.study import load_study
from veridyn.studies.run.estimation import IdentifyRun
from veridyn.studies.run.identify import missed, run_identify


def test_limits_that_are_kept_say_nothing() -> None:
    study = small_study()
    kept = IdentifyAccept(
        training_percent=50, validation_percent=50, row_percent={"q1": 50}, suspicions=0, condition=1e6
    )
    assert missed(study, kept, 0) == []
    assert missed(study, IdentifyAccept(), 7) == []
    assert missed(study, IdentifyAccept(base_parameters=study.fit.base.count, well_identified=1), 0) == []


def test_each_limit_that_is_missed_is_a_sentence() -> None:
    hard = IdentifyAccept(
        training_percent=1e-3,
        validation_percent=1e-3,
        row_percent={"q1": 1e-3, "q9": 5},
        base_parameters=99,
        condition=1,
        well_identified=99,
        suspicions=0,
    )
    said = missed(small_study(), hard, 1)
    assert len(said) == 8
    assert any("accept.validation_percent" in s for s in said)
    assert any("row 'q9'" in s and "no such row" in s for s in said)


def run(folder: Path, *changes: tuple[str, str], bench: Bench | None = None) -> IdentifyRun:
    made = bench or Bench(folder)
    for old, new in changes:
        assert old in made.study
        made.study = made.study.replace(old, new)
    return run_identify(load_study(made.write()))


def test_logs_that_disagree_are_reported_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What widens the deviations is a warning of the run, which its result, its report and the command line have."""

    def disagreeing(*args: Any) -> Fit:
        fit = estimated(*args)
        apart = Agreement(2, 4.5, 1e-9, np.zeros(len(fit.values)))
        return replace(fit, disagreement=disagreement(apart, fit.names))

    monkeypatch.setattr("veridyn.identify.pipeline.pipeline.estimated", disagreeing)
    with pytest.warns(IdentificationWarning, match=r"2 logs, or parts of one, disagree .* widened by 2.12") as raised:
        found = run(tmp_path)
    assert len(raised) == 1
    assert found.study.verdict.grade == "fair" and found.study.verdict.reasons[0].kind == "disagreement"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> IdentifyRun:
    return run(tmp_path_factory.mktemp("bench"))


def test_the_parameters_of_the_machine_come_back(plain: IdentifyRun) -> None:
    fit = plain.study.fit
    truth = fit.base.reduce(robot().parameters.values)
    # Deviations are for white noise, which a low-pass and one equation in ten nearly leave.
    assert np.mean(np.abs(fit.values - truth) < 3.0 * fit.sigma) > 0.8
    assert plain.study.figures["cross_validation_percent"] < 1.0
    assert plain.suspicions == () and plain.missed == ()
    assert set(plain.inputs) == {"study", "model", "training.csv", "validation.csv"}
    assert plain.figures["lowpass"] == 8.0


def test_motors_gears_and_torque_constants_give_the_same_machine(tmp_path: Path, plain: IdentifyRun) -> None:
    """Positions at motors behind gears of 100, 80 and −60, forces as motor currents: q = q_m / r, Γ = r k i."""
    bench, ratios = Bench(tmp_path), (100.0, 80.0, -60.0)
    for log in (bench.training, bench.validation):
        for k, r in enumerate(ratios, 1):
            log[f"q{k}"] = r * log[f"q{k}"]
            log[f"tau{k}"] = log[f"tau{k}"] / r / 0.05
    for k in (1, 2, 3):
        bench.study = bench.study.replace(f"    qd.q{k}: qd{k} [rad/s]\n", "")
        bench.study = bench.study.replace(f"q.q{k}: q{k} [rad]", f"q_motor.q{k}: q{k} [rad]")
        bench.study = bench.study.replace(
            f"force.q{k}: tau{k} [N*m]", f"force_motor.q{k}: {{column: tau{k}, unit: A, times: 0.05 N*m/A}}"
        )
    found = run(
        tmp_path,
        ("{file: model.yaml}", "{file: model.yaml, transmission: {ratios: {q1: 100, q2: 80, q3: -60}}}"),
        bench=bench,
    )
    np.testing.assert_allclose(found.study.fit.values, plain.study.fit.values, rtol=1e-4, atol=1e-5)


def test_coupled_motors_too(tmp_path: Path, plain: IdentifyRun) -> None:
    """Motor b turns with joint 2 as well as with joint 3: q2 = a, q3 = b − a, so Γ_a = Γ2 − Γ3 and Γ_b = Γ3."""
    bench = Bench(tmp_path)
    for log in (bench.training, bench.validation):
        log["q3"] = log["q3"] + log["q2"]
        log["tau2"] = log["tau2"] - log["tau3"]
    for k, motor in ((2, "a"), (3, "b")):
        bench.study = bench.study.replace(f"    q.q{k}: ", f"    q_motor.{motor}: ").replace(
            f"force.q{k}: ", f"force_motor.{motor}: "
        )
    for k in (1, 2, 3):
        bench.study = bench.study.replace(f"    qd.q{k}: qd{k} [rad/s]\n", "")
    coupled = "{file: model.yaml, transmission: {motors: [a, b], joints: [q2, q3], matrix: [[1, 0], [-1, 1]]}}"
    found = run(tmp_path, ("{file: model.yaml}", coupled), bench=bench)
    np.testing.assert_allclose(found.study.fit.values, plain.study.fit.values, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*these bodies sit elsewhere")  # the ends of a filter, which trim: 0 leaves in
def test_rows_drop_spans_of_their_own_over_several_logs(tmp_path: Path) -> None:
    logs = "[{file: training.csv, drop: {q2: [[2, 4]]}}, {file: validation.csv, share: [0, 0.5], drop: {q3: [[1, 2], [3, 3.5]]}}]"
    found = run(
        tmp_path,
        ("[training.csv]", logs),
        ("[validation.csv]", "[{file: validation.csv, share: [0.5, 1]}]"),
        ("{lowpass: 8}", "{lowpass: 8, trim: 0}\nsampling: {dead_zone: 0}"),
    )
    samples = {r.row: r.samples for r in found.study.fit.rows}
    step = 14  # 200 Hz over the rate at which noise behind a low-pass at 8 Hz is white, 1.796 · 8 Hz
    assert samples["q1"] == -(-2000 // step) - (-1000 // step)
    assert samples["q2"] == pytest.approx(samples["q1"] - 400 / step, abs=1)
    assert samples["q3"] == pytest.approx(samples["q1"] - 300 / step, abs=2)
    with pytest.raises(DataError, match="'q7' is not one of the rows"):
        run_identify(load_study(_changed(tmp_path, "{q2: [[2, 4]]}", "{q7: [[2, 4]]}")))


def test_slow_samples_are_fitted_and_fast_ones_judge(tmp_path: Path) -> None:
    halves = [f"[{{file: training.csv, speeds: {half}}}]" for half in ("[0, 0.5]", "[0.5, 1]")]
    found = run(
        tmp_path,
        ("[training.csv]", halves[0]),
        ("[validation.csv]", halves[1]),
        ("{lowpass: 8}", "{lowpass: 8, trim: 0.5}\nsampling: {dead_zone: 0}"),
    )
    used = {name: found.study.traces[name].used.all(axis=1) for name in ("training", "validation")}
    speed = np.linalg.norm(found.study.training.qd, axis=1)
    assert used["training"].mean() == pytest.approx(0.5, abs=0.01)
    assert not (used["training"] & used["validation"]).any()  # no sample is in both, and no warning says so
    assert speed[used["training"]].max() <= speed[used["validation"]].min()
    assert found.study.figures["cross_validation_percent"] < 2.0


def test_joints_at_rest_are_named_and_left_out_where_the_study_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for log in (
        bench.training,
        bench.validation,
    ):  # joint 3 rests for the last three seconds; its force is then anything
        rest = log["t"] > 7.0
        log["q3"] = np.where(rest, log["q3"][1400], log["q3"])
        log["tau3"] = np.where(rest, log["tau3"] + 2.0 * np.sin(3.0 * log["t"]), log["tau3"])
        del log["qd1"], log["qd2"], log["qd3"]
    bench.study = (
        "\n".join(line for line in bench.study.splitlines() if "qd." not in line) + "\nsampling: {dead_zone: 0}\n"
    )
    frozen = r"'q\.q3': it is frozen in 1 span"  # it stops at speed
    with pytest.warns(DataWarning, match=frozen), pytest.warns(DataWarning, match=r"(?s)joints stand still.*q3 \d+ %"):
        kept = run(tmp_path, ("accept:", "checks: false\naccept:"), bench=bench)
    (tmp_path / "model.yaml").unlink()
    with pytest.warns(DataWarning, match=frozen):
        dropped = run(tmp_path, ("accept:", "values: {standstill: drop}\naccept:"), bench=bench)
    samples = [{r.row: r.samples for r in found.study.fit.rows} for found in (kept, dropped)]
    assert samples[0]["q3"] > samples[1]["q3"] + 30 and samples[0]["q1"] == samples[1]["q1"]
    errors = [found.study.fit.rows[2].relative_error for found in (kept, dropped)]
    assert errors[1] < 0.5 * errors[0]


def _changed(folder: Path, old: str, new: str) -> Path:
    path = folder / "study.yaml"
    path.write_text(path.read_text().replace(old, new))
    return path


def test_damage_is_handled_as_the_study_says(tmp_path: Path) -> None:
    """Reset, repeated stamp, missing cells and a gap in one log: cut into pieces, and identified all the same."""
    bench = Bench(tmp_path)
    log = bench.training
    log["t"] = np.where(log["t"] > 6.0, log["t"] - 6.0, log["t"])
    log["t"][100] = log["t"][99]
    log["tau1"][600:603] = np.nan
    handled = "clock: {backwards: cut, duplicates: drop}\nvalues: {missing: cut}\naccept:"
    with pytest.warns(DataWarning) as told:
        found = run(tmp_path, ("accept:", handled), bench=bench)
    said = "\n".join(str(w.message) for w in told)
    for part in (
        "cut into 2 pieces where its clock was reset",
        "repeat the one before",
        "not finite",
        "hold no measurement",
    ):
        assert part in said
    assert found.study.figures["cross_validation_percent"] < 2.0
    assert found.suspicions == ()


def test_delays_are_taken_out_where_the_study_says_so(tmp_path: Path, plain: IdentifyRun) -> None:
    bench = Bench(tmp_path)
    for log in (bench.training, bench.validation):
        for k in (1, 2, 3):
            log[f"tau{k}"] = np.interp(log["t"] - 0.04, log["t"], log[f"tau{k}"])
    found = run(tmp_path, ("accept:", "clock: {delays: correct}\naccept:"), bench=bench)
    assert [found.figures[f"delay_{c}"] for c in ("q1", "q2", "q3")] == pytest.approx([0.04] * 3, abs=0.003)
    assert found.suspicions == ()
    assert found.study.figures["cross_validation_percent"] < 1.5 * plain.study.figures["cross_validation_percent"]


def test_estimators_and_limits_are_the_studys(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        ("accept: {validation_percent: 5}", "estimator: {name: consistent}\naccept: {validation_percent: 1e-3}"),
    )
    assert found.study.fit.feasibility is not None and found.study.fit.feasibility.feasible
    assert found.study.figures["physically_consistent"] == 1.0
    assert len(found.missed) == 1 and "accept.validation_percent" in found.missed[0]


def test_the_cut_off_is_proposed_from_the_training_logs(tmp_path: Path) -> None:
    found = run(tmp_path, ("{lowpass: 8}", "{candidates: [1, 3, 9, 27]}"))
    assert found.cutoff is not None and found.lowpass == found.cutoff.proposed
    assert [t.cutoff for t in found.cutoff.trials] == [1.0, 3.0, 9.0, 27.0]
    assert found.figures["lowpass"] == found.lowpass


def test_a_span_that_holds_nothing_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"(?s)training\[1\] \(line 17\): nothing of this log.*a log of"):
        run(tmp_path, ("[training.csv]", "[{file: training.csv, start: 100}]"))


def test_a_log_as_parquet_is_the_same_log(tmp_path: Path, plain: IdentifyRun) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    bench = Bench(tmp_path)
    bench.write()
    (tmp_path / "model.yaml").unlink()
    for name in ("training", "validation"):
        raw = {k: [float(f"{x:.9g}") for x in v] for k, v in getattr(bench, name).items()}
        pq.write_table(pa.table(raw), tmp_path / f"{name}.parquet")
    found = run(
        tmp_path, ("[training.csv]", "[training.parquet]"), ("[validation.csv]", "[validation.parquet]"), bench=bench
    )
    for one, other in ((found.study.training, plain.study.training), (found.study.validation, plain.study.validation)):
        np.testing.assert_array_equal(one.q, other.q)
        np.testing.assert_array_equal(one.forces, other.forces)
    # The reference and machine code, whichever is at hand, differ in rounding.
    np.testing.assert_allclose(found.study.fit.values, plain.study.fit.values, rtol=1e-11, atol=1e-13)


def test_a_whole_log_is_fitted_without_validation_and_the_verdict_says_so(tmp_path: Path, plain: IdentifyRun) -> None:
    change = (("validation: [validation.csv]", "validation: none"), ("accept: {validation_percent: 5}", "accept: {}"))
    found = run(tmp_path, *change)
    assert found.study.held_out == 0.0 and len(found.study.training) == len(plain.study.training)
    assert verdict(found.study).grade == "not validated" and found.study.fit.verdict.grade == "not validated"
    assert [r.kind for r in found.study.verdict.reasons] == ["validation"]


def test_a_clock_repaired_as_its_message_suggests_costs_the_wrong_stamps_alone(
    tmp_path: Path, plain: IdentifyRun
) -> None:
    """Two wrong stamps in a row used to end in "very short, found 1"."""
    bench = Bench(tmp_path)
    bench.training["t"][[1000, 1001]] = bench.training["t"][[990, 980]]
    with pytest.raises(DataError, match="Or go on with 'backwards: cut'"):
        run(tmp_path, bench=bench)
    (tmp_path / "model.yaml").unlink()
    with pytest.warns(DataWarning) as told:
        found = run(tmp_path, ("accept:", "clock: {backwards: cut, duplicates: drop}\naccept:"), bench=bench)
    assert any("2 sample(s) left out whose stamps are out of order" in str(w.message) for w in told)
    fit, wanted = found.study.fit, plain.study.fit
    assert found.suspicions == () and np.abs((fit.values - wanted.values) / wanted.sigma).max() < 1.0
