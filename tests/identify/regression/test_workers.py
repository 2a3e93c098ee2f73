"""Motions that workers make: the same fit wherever they are made, also where a worker dies, and bad sources by name."""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from identify.undiagnosed import identify
from studies.small_arm import log_of, small_arm
from veridyn.errors import DataError, FileError
from veridyn.files.log.load import load_log
from veridyn.files.log.tables import save_log
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.regression.workers import MadeMotions, map_in_order, threads_unless
from veridyn.identify.settings import IdentifySettings
from veridyn.model.motion import Motion
from veridyn.signals.motion import Signals, motion

LOGS = 6
HOW = Sampling(trim=20)  # without the samples at which the filter of positions begins and ends


def read(file: Path) -> Motion:
    return motion(small_arm(), load_log(file), Signals(lowpass=20.0))


def read_and_die_once(marker: Path, file: Path) -> Motion:
    """The worker that is given the third log kills itself the first time."""
    if file.name == "run2.parquet" and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    return read(file)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, machine, rng = tmp_path_factory.mktemp("logs"), small_arm(), np.random.default_rng(4)
    found = [folder / f"run{k}.parquet" for k in range(LOGS)]
    for k, file in enumerate(found):
        save_log(log_of(machine, rng, f"run {k}", 3.0), file)
    return found


@pytest.mark.parametrize("method", ["wls", "robust"])
def test_made_here_or_on_threads_the_fit_is_the_same(files: list[Path], method: str) -> None:
    machine, made = small_arm(), MadeMotions(files, read)
    alone = identify(machine, [read(file) for file in files], method, settings=IdentifySettings(sampling=HOW))
    here = identify(machine, made, method, settings=IdentifySettings(sampling=HOW))
    with ThreadPoolExecutor(3) as pool:
        shared = identify(machine, made, method, settings=IdentifySettings(sampling=HOW), executor=pool)
    for fit in (here, shared):
        assert fit.values == pytest.approx(alone.values, rel=1e-12)
        assert fit.sigma == pytest.approx(alone.sigma, rel=1e-9)
        assert [r.samples for r in fit.rows] == [r.samples for r in alone.rows]


@pytest.mark.slow
def test_dask_workers_read_the_logs_themselves_and_one_that_dies_changes_nothing(
    files: list[Path], tmp_path: Path
) -> None:
    from distributed import Client, LocalCluster

    machine, alone = (
        small_arm(),
        identify(small_arm(), MadeMotions(files, read), settings=IdentifySettings(sampling=HOW)),
    )
    marker, told = tmp_path / "died", []
    made = MadeMotions(files, partial(read_and_die_once, marker))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        executor = client.get_executor(pure=False, retries=3)
        marker.touch()  # the first log is looked at here, and this process is to live
        identify(machine, made[:1], settings=IdentifySettings(sampling=HOW))
        marker.unlink()
        there = identify(
            machine,
            made,
            settings=IdentifySettings(sampling=HOW),
            executor=executor,
            progress=lambda task, done, total: told.append((task, done, total)),
        )
    assert marker.exists()
    assert there.values == pytest.approx(alone.values, rel=1e-12)
    assert [r.samples for r in there.rows] == [r.samples for r in alone.rows]
    assert [x for x in told if x[0] == "streaming logs"][-1] == ("streaming logs", LOGS, LOGS)


def test_a_slice_makes_its_own(files: list[Path]) -> None:
    made = MadeMotions(files, read)
    assert len(made[1:3]) == 2 and made[1:3].sources == tuple(files[1:3])
    assert made[-1].t == pytest.approx(read(files[-1]).t)


def test_a_corrupt_log_is_named(files: list[Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(files[0].read_bytes()[:200])
    with ThreadPoolExecutor(2) as pool, pytest.raises((FileError, DataError), match=r"broken\.parquet"):
        identify(small_arm(), MadeMotions([*files, broken], read), executor=pool)


def without_forces(file: Path) -> Motion:
    found = read(file)
    return replace(found, forces=None) if file.name == "run1.parquet" else found


def test_a_log_that_does_not_belong_to_the_machine_is_named(files: list[Path]) -> None:
    with pytest.raises(DataError, match=r"run1\.parquet"):
        identify(small_arm(), MadeMotions(files, without_forces))


def test_what_cannot_be_made_is_refused(files: list[Path]) -> None:
    with pytest.raises(DataError, match="at least one source"):
        MadeMotions([], read)
    with pytest.raises(DataError, match="what was made is no motion"):
        MadeMotions(files, load_log)[0]  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match=r"nothing\.csv"):
        MadeMotions(["nothing.csv"], lambda file: Path(file).read_text())[0]  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="cannot be dropped by number"):
        identify(
            small_arm(),
            MadeMotions(files, read),
            settings=IdentifySettings(sampling=Sampling(drop={"q1": np.zeros(10, dtype=bool)})),
        )


class Slow:
    """An executor that works only when it is asked for a result."""

    def __init__(self):
        self.given, self.cancelled = [], 0

    def submit(self, work, job):
        self.given.append(job)
        outer = self

        class Later(Future):
            def result(self, timeout=None):
                return work(job)

            def cancel(self):
                outer.cancelled += 1
                return True

        return Later()


def test_results_come_in_order_and_jobs_are_made_when_there_is_room():
    slow, made = Slow(), []

    def jobs():
        for k in range(10):
            made.append(k)
            yield k

    results = map_in_order(slow, lambda k: k * k, jobs(), ahead=3)
    assert next(results) == 0
    assert made == [0, 1, 2]
    assert list(results) == [k * k for k in range(1, 10)]
    assert slow.cancelled == 0


def test_what_was_handed_out_in_vain_is_called_back():
    slow = Slow()

    def work(k):
        if k == 1:
            raise ValueError("no")
        return k

    with pytest.raises(ValueError, match="no"):
        list(map_in_order(slow, work, range(10), ahead=4))
    assert slow.cancelled == len(slow.given) - 2


def test_threads_give_the_same():
    with ThreadPoolExecutor(2) as pool:
        assert list(map_in_order(pool, lambda k: k + 1, range(300))) == list(range(1, 301))


def test_threads_of_this_process_only_without_an_executor() -> None:
    with threads_unless(None, 1) as (executor, _):
        assert executor is None
    with threads_unless(None, 3) as (executor, ahead):
        assert isinstance(executor, ThreadPoolExecutor)
        assert ahead == 6
    with ThreadPoolExecutor(1) as pool, threads_unless(pool, 3) as (executor, _):
        assert executor is pool


def recorded():
    machine, rng = small_arm(), np.random.default_rng(4)
    return machine, [motion(machine, log_of(machine, rng, f"run {k}", 3.0), Signals(lowpass=20.0)) for k in range(2)]


@pytest.mark.parametrize("estimator", ["wls", "robust", "iv"])
def test_a_cluster_gives_the_same_fit(estimator):
    """Dask in this process, on two threads: its executor takes each block, and the sums are made in the same order."""
    distributed = pytest.importorskip("distributed", reason="dask (the extra 'cluster') is a cluster as executor")
    machine, motions = recorded()
    method = Instrumental(reference="measured") if estimator == "iv" else estimator
    how = {"method": method, "settings": IdentifySettings(sampling=Sampling(block=64))}
    alone = identify(machine, motions, **how)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        there = identify(machine, motions, executor=client.get_executor(), **how)
    assert there.values == pytest.approx(alone.values, rel=1e-12)
    assert there.sigma == pytest.approx(alone.sigma, rel=1e-9)
