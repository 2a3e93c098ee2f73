from pathlib import Path

import numpy as np
import pytest

from studies.bench_robot import STUDY, Bench, table
from veridyn.errors import DataError, FileError
from veridyn.model.motion import Motion
from veridyn.studies.config.log import RecordingSettings
from veridyn.studies.config.study import load_study
from veridyn.studies.run.recordings import Recordings, taken


def recordings(folder: Path, study: str = STUDY) -> Recordings:
    bench = Bench(folder)
    bench.study = study
    return Recordings(load_study(bench.write()))


def test_logs_are_read_once_and_hashed(tmp_path: Path) -> None:
    study = STUDY.replace(
        "[training.csv]", "[{file: training.csv, share: [0, 0.5]}, {file: training.csv, share: [0.5, 1]}]"
    )
    read = recordings(tmp_path, study)
    assert len(read.logs) == 2 and [t.log for t in read.training] == [0, 0] and [t.log for t in read.validation] == [1]
    assert set(read.hashes) == {"training.csv", "validation.csv"}
    assert read.logs[0]["q.q1"].unit == "rad" and read.logs[0]["force.q1"].unit == "N*m"


def test_without_validation_the_last_30_percent_are_kept_for_it(tmp_path: Path) -> None:
    read = recordings(tmp_path, STUDY.replace("validation: [validation.csv]\n", ""))
    assert read.training[0].settings.share == (0.0, 0.7)
    assert read.validation[0].settings.share == (0.7, 1.0)


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


def motion(start: float, count: int) -> Motion:
    t = start + np.arange(count) / 100.0
    zeros = np.zeros((count, 1))
    return Motion(t, zeros, zeros, zeros)


def test_shares_are_of_the_time_recorded_over_all_pieces() -> None:
    pieces = [motion(0.0, 300), motion(50.0, 700)]
    first = taken(pieces, RecordingSettings(file="x", share=(0.0, 0.5)))
    second = taken(pieces, RecordingSettings(file="x", share=(0.5, 1.0)))
    assert [len(m) for m in first] == [300, 200]
    assert [len(m) for m in second] == [500]
    late = taken(pieces, RecordingSettings(file="x", start=52.0, end=53.0))
    assert [len(m) for m in late] == [101]
    assert taken(pieces, RecordingSettings(file="x", start=900.0)) == []


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


def test_validation_none_takes_every_sample_to_learn_from(tmp_path: Path) -> None:
    study = STUDY.replace("validation: [validation.csv]", "validation: none").replace(
        "accept: {validation_percent: 5}\n", ""
    )
    read = recordings(tmp_path, study)
    assert read.training == read.validation and read.training[0].settings.share == (0.0, 1.0)
