import os
from collections.abc import Callable
from pathlib import Path

import pytest

from strangers.bicycle_drive import Bicycle, write_csv
from studies.bench_robot import STUDY, Bench, robot
from veridyn.errors import DataError, DeviceError, Fault, FileError
from veridyn.files.archive import load
from veridyn.files.machine.load import load_model
from veridyn.identify.estimate import ESTIMATORS
from veridyn.identify.estimator import OLS, WLS
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.pipeline.identification import Estimation
from veridyn.identify.settings import IdentifySettings
from veridyn.studies.config.study import load_study
from veridyn.studies.exporting import export_run
from veridyn.studies.result import new_run
from veridyn.studies.run import estimation
from veridyn.studies.run.estimation import IdentifyRun, check_estimation, estimation_of
from veridyn.studies.run.identify import run_identify

TRUTH = Bicycle(duration=20.0, rate=20.0)
MODEL = f"""veridyn: 2
name: Test car
car:
  {{mass: {TRUTH.mass}, front: {TRUTH.front}, rear: {TRUTH.rear}, yaw_inertia: {TRUTH.inertia}, front_stiffness: {TRUTH.cf},
  rear_stiffness: {{value: 20, sigma: 6}}}}
"""
DRIVE_STUDY = """veridyn: 1
kind: identify
model: {file: model.yaml}
log: {file: drive.csv, time: "t [s]", columns: {COLUMNS}}
noise: {slip_error: 0.001, bank: 0.001, sensors: {yaw_rate: 0.003, ay: 0.1}}
checks: false
"""
LATERAL = "speed: 'speed [m/s]', steer: 'steer [rad]', yaw_rate: 'yaw_rate [rad/s]', ay: 'ay [m/s^2]'"


def made(folder: Path, text: str) -> Estimation:
    (folder / "s.yaml").write_text(STUDY + f"estimator: {text}\n")
    loaded = load_study(folder / "s.yaml")
    return estimation_of(loaded, ("estimator",), loaded.study.estimator)


def test_settings_become_a_method(tmp_path: Path) -> None:
    assert made(tmp_path, "{name: wls}") == Estimation() == Estimation(WLS())
    assert made(tmp_path, "{name: ols, covariance: hac}") == Estimation(OLS(), IdentifySettings(covariance="hac"))
    assert made(tmp_path, "{name: robust, settings: {loss: tukey}}") == Estimation(Robust("tukey"))
    nested = made(tmp_path, "{name: consistent, settings: {weight: 2, prior: {relative: 0.3}, unsigned: [d1]}}").method
    assert nested == Consistent(prior=Prior(relative=0.3), weight=2, unsigned=("d1",))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_can_be_named(tmp_path: Path, name: str) -> None:
    given = ", settings: {frequency: 0.1}" if name == "likelihood" else ""
    assert type(made(tmp_path, f"{{name: {name}{given}}}").method) is ESTIMATORS[name]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name: wlss}", r"s.yaml, estimator.name \(line 21\): there is no estimator 'wlss'.\n.*Did you mean 'wls'"),
        ("{name: wls, settings: {a: 1}}", r"estimator 'wls' has no settings"),
        (
            "{name: map, settings: {relativ: 1}}",
            r"settings.relativ \(line 21\): Prior has no setting 'relativ'.\n.*Did you mean 'relative'",
        ),
        (
            "{name: consistent, settings: {prior: {relativ: 1}}}",
            r"estimator.settings.prior.relativ \(line 21\): Prior has no setting 'relativ'",
        ),
        (
            "{name: robust, settings: {iterations: many}}",
            r"estimator.settings.iterations \(line 21\): .*\nExpected a whole number of at least 1, found 'many'",
        ),
        (
            "\n  name: robust\n  settings:\n    loss: tukey\n    tolerance: .nan",
            r"estimator.settings.tolerance \(line 25\): .*\nExpected a number above 0, found nan",
        ),
        ("{name: oe, settings: {substeps: true}}", r"settings.substeps \(line 21\).*\n.*found True"),
        ("{name: oe, settings: {law: pid}}", r"settings.law \(line 21\).*\n.*a control law.*, found 'pid'"),
        ("{name: map, settings: {sigma: {M1: 0}}}", r"settings.sigma.M1 \(line 21\).*\n.*above 0, found 0"),
        ("{name: gauss_markov, settings: {noise: [[1, 2]]}}", r"settings.noise \(line 21\).*\n.*a covariance"),
        ("{name: likelihood}", r"estimator.settings \(line 21\): Likelihood needs the setting 'frequency'"),
    ],
)
def test_what_is_no_estimator_or_setting_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        made(tmp_path, text)


def test_what_a_method_cannot_do_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY + "estimator: {name: gauss_markov, covariance: hac}\n")
    loaded = load_study(tmp_path / "s.yaml")
    chosen = estimation_of(loaded, ("estimator",), loaded.study.estimator)
    with pytest.raises(FileError, match=r"s.yaml, estimator, covariance \(line 21\): estimator 'gauss_markov' "):
        check_estimation(loaded, ("estimator",), robot(), chosen)


def test_a_device_that_is_missing_is_refused_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise DeviceError(Fault("a GPU was asked for, and this machine has none.", where="device 'cuda'"))

    monkeypatch.setattr(estimation, "open_gpu", missing)
    with pytest.raises(FileError, match=r"s.yaml, device, device 'cuda' \(line 22\): a GPU was asked for"):
        made(tmp_path, "{name: wls}\ndevice: cuda")
    monkeypatch.setattr(estimation, "open_gpu", lambda: None)
    assert made(tmp_path, "{name: wls}\ndevice: cuda").settings.device == "cuda"
    with pytest.raises(FileError, match="device"):
        made(tmp_path, "{name: wls}\ndevice: gpu")


def run(folder: Path, more: str = "") -> IdentifyRun:
    made = Bench(folder)
    made.study += "checks: false\n" + more
    return run_identify(load_study(made.write()))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> IdentifyRun:
    return run(tmp_path_factory.mktemp("bench"))


def test_the_threads_of_a_study_are_those_of_its_settings(tmp_path: Path) -> None:
    assert made(tmp_path, "{name: wls}").settings.threads is None
    assert made(tmp_path, "{name: wls}\nthreads: 3").settings.threads == 3
    with pytest.raises(FileError, match="threads"):
        made(tmp_path, "{name: wls}\nthreads: 0")


@pytest.mark.parametrize("line", ["executor: local", "executor: {local: 3}", "threads: 2"])
def test_threads_change_nothing(tmp_path: Path, alone: IdentifyRun, line: str) -> None:
    found = run(tmp_path, f"{line}\n").study
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
    monkeypatch.setattr(estimation, "SCHEDULER_TIMEOUT_S", 0.3)
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
        monkeypatch.setattr(estimation, "__version__", "9.9.9")
        with pytest.raises(FileError, match=r"workers have another veridyn[\s\S]*veridyn 9.9.9 on all 1 workers"):
            run_identify(load_study(tmp_path / "study.yaml"))


def work_on(address: str, then: Callable[[], object], work: Callable[..., object], *arguments: object) -> None:
    """Hand one job to a cluster, do something else, and wait for the job."""
    with estimation.dask_executor(address) as shared:
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


def identified(folder: Path, columns: str) -> IdentifyRun:
    drive = TRUTH.drive(1)
    write_csv(folder / "drive.csv", drive | {"wheel_fl": 1.02 * drive["speed"]})
    (folder / "model.yaml").write_text(MODEL, encoding="utf-8")
    (folder / "study.yaml").write_text(DRIVE_STUDY.replace("COLUMNS", columns), encoding="utf-8")
    return run_identify(load_study(folder / "study.yaml"))


def test_a_drive_leaves_its_fit_and_its_car(tmp_path: Path) -> None:
    found = identified(tmp_path, LATERAL)
    (row,) = found.result("car", 0).parameters
    assert row.name == "rear_stiffness" and abs(row.value - TRUTH.cr) < 4.0 * row.sigma
    run = new_run(tmp_path / "runs", "car")
    assert export_run(run, found, load_study(tmp_path / "study.yaml").study).refused == ()
    found.keep(run)
    assert load_model(run.folder / "identified.yaml").parameters["rear_stiffness"] == pytest.approx(row.value)
    assert load(run.folder / "fit.json").values == pytest.approx([row.value])
    assert found.drive is not None and "rear_stiffness" in found.drive.summary()
    with pytest.raises(DataError, match="no forces of joints to judge by"):
        _ = found.study


def test_lines_of_wheels_alone_are_no_fit(tmp_path: Path) -> None:
    found = identified(tmp_path, "speed: 'speed [m/s]', wheel_fl: 'wheel_fl [m/s]'")
    assert found.fit is None and found.machine.name == "Test car"
    (row,) = found.result("car", 0).parameters
    assert row.name == "wheel_fl_scale" and row.value == pytest.approx(1.02, abs=1e-6)
    run = new_run(tmp_path / "runs", "car")
    found.keep(run)
    assert not (run.folder / "fit.json").exists()
