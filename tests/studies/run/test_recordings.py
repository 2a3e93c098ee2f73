import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from studies.bench_robot import STUDY, Bench, recording, robot, table
from veridyn.errors import DataError, FileError
from veridyn.files.log.parts import open_log
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.model.experiment import Experiment
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, motion
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.recordings import Chained, Recordings, Streamed, margin_of, with_margin

COLUMNS = {"t": "t"} | {f"q.q{k}": f"q{k}" for k in (1, 2, 3)} | {f"force.q{k}": f"tau{k}" for k in (1, 2, 3)}
UNITS = {"t": "s"} | {name: "rad" if name[0] == "q" else "N*m" for name in COLUMNS if name != "t"}
SIGNALS = Signals(rate=200.0, lowpass=8.0)
SAMPLING = Sampling(filter=Butterworth(8.0), decimate=5)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streamed") / "log.parquet"
    pq.write_table(pa.table(recording(1, 60.0)), path)
    return path


def streamed(file: Path, size: int, margin: int) -> Streamed:
    log = open_log(file, COLUMNS, UNITS)
    return Streamed(robot(), log, SIGNALS, margin, size, 0, log.rows, lambda channels: channels)


def test_equations_are_those_of_the_whole_log(file: Path) -> None:
    """Windows of 2000 rows against the log in memory: the same equations, but for the margin at its two ends."""
    margin = margin_of(SIGNALS, SAMPLING, 200.0)
    how = with_margin(SAMPLING, margin)
    windows = streamed(file, 2000, margin)
    raw = recording(1, 60.0)
    log = Experiment.from_arrays(raw["t"], {c: raw[h] for c, h in COLUMNS.items() if c != "t"}, UNITS)
    whole = observation(robot(), motion(robot(), log, SIGNALS), settings=IdentifySettings(sampling=how))
    found = observation(robot(), windows, settings=IdentifySettings(sampling=how))
    assert len(windows) == 6
    assert [f.samples for f in found.rows] == [f.samples for f in whole.rows]
    for a, b in zip(found.rows, whole.rows, strict=True):
        size = np.abs(b.R.T @ b.R).max()
        np.testing.assert_allclose(a.R.T @ a.R, b.R.T @ b.R, atol=1e-8 * size)


def test_sequences_can_be_asked_and_chained(file: Path) -> None:
    margin = margin_of(SIGNALS, SAMPLING, 200.0)
    one = streamed(file, 4000, margin)
    two = Chained((one, one))
    assert len(two) == 2 * len(one) == 6 and two.samples == 2 * one.samples
    np.testing.assert_array_equal(two[3].q, one[0].q)
    assert len(two[1:3]) == 2
    with pytest.raises(IndexError):
        _ = one[9]
    with pytest.raises(DataError, match="cannot be dropped"):
        with_margin(Sampling(drop={"q1": [True]}), 10)


def test_the_memory_needed_is_that_of_a_window(tmp_path: Path) -> None:
    file = tmp_path / "long.parquet"
    part = recording(1, 60.0)
    long = {
        name: np.tile(x, 6) for name, x in part.items()
    }  # six minutes; that it jumps in between does not matter here
    long["t"] = np.arange(len(long["t"])) / 200.0
    pq.write_table(pa.table(long), file, row_group_size=5000)
    margin = margin_of(SIGNALS, SAMPLING, 200.0)

    # What an observation needs besides does not grow with the log: tests/identify/regression/test_observation.py.
    def peak(size: int) -> int:
        tracemalloc.start()
        for _ in streamed(file, size, margin):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(4000) < 0.25 * peak(72_000)


def test_a_study_in_blocks_finds_the_same_parameters(tmp_path: Path) -> None:
    bench = Bench(tmp_path, training=recording(1, 40.0), validation=recording(2, 20.0))
    margin = margin_of(SIGNALS, Sampling(filter=Butterworth(8.0), decimate=10), 200.0)
    bench.study = STUDY.replace("{lowpass: 8}", f"{{lowpass: 8, trim: 0}}\nsampling: {{trim: {margin}, decimate: 10}}")
    whole = run_identify(load_study(bench.write()))
    bench.study = bench.study.replace("  time: t [s]\n", "  time: t [s]\n  block: 3000\n")
    parts = run_identify(load_study(bench.write_study()))
    np.testing.assert_allclose(parts.study.fit.values, whole.study.fit.values, rtol=1e-5, atol=1e-7)
    assert parts.suspicions == ()
    assert parts.study.figures["cross_validation_percent"] == pytest.approx(
        whole.study.figures["cross_validation_percent"], rel=1e-4
    )


def test_what_blocks_cannot_do_is_refused_by_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.study = STUDY.replace("  time: t [s]\n", "  time: t [s]\n  block: 1000\n")
    bench.study = bench.study.replace("[training.csv]", "[{file: training.csv, start: 1}]")
    with pytest.raises(FileError, match=r"training\[1\] \(line 18\): of a log that is read in blocks only a share"):
        run_identify(load_study(bench.write()))


def recordings(folder: Path, study: str = STUDY) -> Recordings:
    bench = Bench(folder)
    bench.study = study
    return Recordings(load_study(bench.write()))


def test_logs_are_read_once_and_hashed(tmp_path: Path) -> None:
    study = STUDY.replace(
        "[training.csv]", "[{file: training.csv, share: [0, 0.5]}, {file: training.csv, share: [0.5, 1]}]"
    )
    read = recordings(tmp_path, study)
    assert len(read.logs) == 2 and all(r.log is read.logs[0] for r in read.training)
    assert len(read.training) == 2 and [r.log for r in read.validation] == [read.logs[1]]
    assert set(read.hashes) == {"training.csv", "validation.csv"}
    assert read.logs[0]["q.q1"].unit == "rad" and read.logs[0]["force.q1"].unit == "N*m"


def test_units_signs_and_torque_constants(tmp_path: Path) -> None:
    study = STUDY.replace("q1 [rad]", "q1 [deg]").replace("tau1 [N*m]", "{column: tau1, unit: A, times: -0.05 N*m/A}")
    study = study.replace("tau2 [N*m]", "{column: tau2, unit: mNm, times: 2}")
    read, raw = recordings(tmp_path, study), Bench(tmp_path).training
    log = read.logs[0]
    np.testing.assert_allclose(log["q.q1"].values, np.radians(raw["q1"]), rtol=1e-7)
    np.testing.assert_allclose(log["force.q1"].values, -0.05 * raw["tau1"], rtol=1e-7)
    np.testing.assert_allclose(log["force.q2"].values, 2e-3 * raw["tau2"], rtol=1e-7)
    assert log["force.q1"].unit == "N*m" and log["force.q2"].unit == "N*m"


@pytest.mark.parametrize("unit", ["Kg", "g", "NM", "sec"])
def test_units_that_may_mean_two_things_are_refused(tmp_path: Path, unit: str) -> None:
    with pytest.raises(DataError, match=f"'{unit}'"):
        recordings(tmp_path, STUDY.replace("tau1 [N*m]", f"tau1 [{unit}]"))
    (tmp_path / "model.yaml").unlink()
    with pytest.raises(FileError, match=rf"(?s)log.columns.force.q1 \(line 14\).*'{unit}'"):
        recordings(tmp_path, STUDY.replace("tau1 [N*m]", f"{{column: tau1, unit: N*m, times: 3 {unit}}}"))


def test_a_file_without_a_header(tmp_path: Path) -> None:
    names = "[t, q1, q2, q3, qd1, qd2, qd3, tau1, tau2, tau3]"
    study = STUDY.replace("  time: t [s]\n", f"  time: t [s]\n  header: {names}\n")
    bench = Bench(tmp_path)
    bench.study = study
    path = bench.write()
    for name in ("training", "validation"):
        text = table(getattr(bench, name)).split("\n", 1)[1]
        (tmp_path / f"{name}.csv").write_text(text)
    read = Recordings(load_study(path))
    np.testing.assert_allclose(read.logs[0]["force.q3"].values, bench.training["tau3"], rtol=1e-7)
    path.write_text(study.replace("tau3 [N*m]", "tau9 [N*m]"))
    with pytest.raises(FileError, match=r"log.columns \(line 8\): 'tau9' is not in the header"):
        Recordings(load_study(path))


def test_logs_in_parts(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    raw = bench.training
    np.savetxt(tmp_path / "t.txt", raw["t"])
    np.savetxt(tmp_path / "q.txt", np.column_stack([raw[f"q{k}"] for k in (1, 2, 3)]).ravel())
    np.savetxt(tmp_path / "f.txt", np.column_stack([raw[f"tau{k}"] for k in (1, 2, 3)]).ravel())
    text = "\n".join(line for line in STUDY.splitlines() if "qd." not in line) + "\n"
    text = text.replace(
        "  time: t [s]\n",
        "  parts:\n    clock: {header: [t], time: 't [s]'}\n    pos: {header: [q1, q2, q3], interleaved: true}\n"
        "    trq: {header: [tau1, tau2, tau3], interleaved: true}\n",
    )
    text = text.replace("[training.csv]", "[{files: {clock: t.txt, pos: q.txt, trq: f.txt}}]").replace(
        "validation: [validation.csv]\n", ""
    )
    bench.study = text
    read = Recordings(load_study(bench.write()))
    np.testing.assert_allclose(read.logs[0]["q.q2"].values, raw["q2"])
    assert set(read.hashes) == {"t.txt", "q.txt", "f.txt"}
    bench.study = text.replace("pos: q.txt", "xyz: q.txt")
    with pytest.raises(FileError, match=r"log.parts does not say how 'xyz' is read"):
        Recordings(load_study(bench.write_study()))


def test_a_log_that_is_not_there_is_told_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"study.yaml, validation\[1\].file \(line 18\): there is no such log"):
        recordings(tmp_path, STUDY.replace("[validation.csv]", "[other.csv]"))


def test_a_log_without_a_clock_below_a_preamble(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.study = STUDY.replace("  time: t [s]\n", "  rate: 200\n")
    path = bench.write()
    for name in ("training", "validation"):
        rows = (tmp_path / f"{name}.csv").read_text().splitlines()
        rest = [" ".join(row.split(",")[1:]) for row in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["recorder 7", "no clock", *rest]) + "\n")
    read = Recordings(load_study(path))
    np.testing.assert_array_equal(read.logs[0]["q.q1"].t, np.arange(len(bench.training["t"])) / 200.0)
    np.testing.assert_allclose(read.logs[0]["q.q1"].values, bench.training["q1"], rtol=1e-7)
    (tmp_path / "study.yaml").write_text(path.read_text().replace("rate: 200", "rate: 200\n  block: 1000"))
    with pytest.raises(FileError, match="separated by blanks cannot be read in blocks"):
        Recordings(load_study(tmp_path / "study.yaml"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("  time: t [s]\n", "  time: stamp [s]\n  rate: 200\n"), "either time or rate"),
        (("  time: t [s]\n", "  rate: -3\n"), "greater than 0"),
        (("  time: t [s]\n", "  skip: -3\n"), "greater than or equal to 0"),
        (("validation: [validation.csv]", "validation: nothing"), "'none'"),
        (("validation: [validation.csv]", "validation: none"), r"accept has a limit for them \(validation_percent\)"),
    ],
)
def test_clocks_and_validations_that_cannot_be_are_named(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    with pytest.raises(FileError, match=words):
        recordings(tmp_path, STUDY.replace(*change))
