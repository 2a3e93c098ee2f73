"""The key `executor` of a study: threads and a cluster give the result of one thread, and a cluster that does not fit is named."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from studies.bench_robot import Bench
from veridyn.errors import DeviceError, FileError
from veridyn.studies.config.study import load_study
from veridyn.studies.run import executors
from veridyn.studies.run.identify import IdentifyRun, run_identify


def run(folder: Path, more: str = "") -> IdentifyRun:
    made = Bench(folder)
    made.study += "checks: false\n" + more
    return run_identify(load_study(made.write()))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> IdentifyRun:
    return run(tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("word", ["local", "{local: 3}"])
def test_threads_change_nothing(tmp_path: Path, alone: IdentifyRun, word: str) -> None:
    found = run(tmp_path, f"executor: {word}\n").study
    assert found.fit.values == pytest.approx(alone.study.fit.values, rel=1e-12)
    assert found.figures == pytest.approx(alone.study.figures, rel=1e-9, nan_ok=True)


def test_a_dask_cluster_changes_nothing(tmp_path: Path, alone: IdentifyRun) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        found = run(tmp_path, f"executor: {{dask: '{address}'}}\n").study
    assert found.fit.values == pytest.approx(alone.study.fit.values, rel=1e-12)
    assert found.figures == pytest.approx(alone.study.figures, rel=1e-9, nan_ok=True)


def test_a_dask_cluster_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "ANSWER_S", 0.3)
    with pytest.raises(
        FileError, match=r"study.yaml, executor, dask tcp://127.0.0.1:9 \(line \d+\): the cluster does not answer"
    ):
        run(tmp_path, "executor: {dask: 'tcp://127.0.0.1:9'}\n")


def test_a_dask_cluster_without_workers_or_with_another_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        with pytest.raises(FileError, match="the cluster has no workers"):
            run(tmp_path, f"executor: {{dask: '{cluster.scheduler_address}'}}\n")
        cluster.scale(1)
        cluster.wait_for_workers(1)
        monkeypatch.setattr(executors, "__version__", "9.9.9")
        with pytest.raises(FileError, match=r"workers have another veridyn[\s\S]*veridyn 9.9.9 on all 1 workers"):
            run_identify(load_study(tmp_path / "study.yaml"))


def work_on(address: str, then: Callable[[], object], work: Callable[..., object], *arguments: object) -> None:
    """Hand one job to a cluster, do something else, and wait for the job."""
    with executors.dask_executor(address) as shared:
        waiting = shared.submit(work, *arguments)
        then()
        waiting.result()


def busy() -> None:
    """Until the worker closes."""
    from distributed import get_worker

    worker = get_worker()
    while worker.status.name == "running":
        pass


def test_a_dask_cluster_that_is_lost_is_named() -> None:
    """The scheduler closes while the study is at work."""
    from distributed import LocalCluster

    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0")
    with cluster, pytest.raises(DeviceError, match="the cluster was lost while it worked"):
        work_on(cluster.scheduler_address, cluster.close, busy)


@pytest.mark.slow
def test_a_dask_job_that_kills_its_workers_is_named() -> None:
    """The quick form of what is done about dead workers is in tests/identify/regression/test_workers.py."""
    from distributed import LocalCluster

    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0")
    with (
        cluster,
        pytest.raises(DeviceError, match=r"every worker that had it died[\s\S]*4 workers, the last of them tcp"),
    ):
        work_on(cluster.scheduler_address, int, os._exit, 3)


@pytest.mark.parametrize(
    "text", ["many", "{local: 0}", "{dask: ''}", "{local: 2, dask: 'tcp://a:1'}", "{}", "{ray: 'x'}"]
)
def test_what_is_no_executor_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileError, match="executor"):
        run(tmp_path, f"executor: {text}\n")
