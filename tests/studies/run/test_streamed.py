import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from studies.bench_robot import STUDY, Bench, recording, robot
from veridyn.errors import DataError, FileError
from veridyn.files.log.blocks import open_log
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.model.experiment import Experiment
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, motion
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.streamed import Chained, Streamed, margin_of, with_margin

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
