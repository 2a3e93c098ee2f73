"""Fleet studies: the example, whose torques Pinocchio made, on one thread, on two and on a cluster; and what happens to bad logs.

Patterns of paths: which files belong to which machine.
"""

from __future__ import annotations

import csv
import io
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.fleet_log import COULOMB, EXAMPLE, FOLDER, NAMES, WORN, drawn, table
from veridyn.errors import DeviceError, FileError, IdentificationError
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.result import collected_warnings
from veridyn.studies.run.fleet import FleetRun, jobs_of, logs_of, run_fleet, shipped_study


def with_pattern(folder: Path, pattern: str) -> Loaded:
    file = folder / "fleet.yaml"
    text = EXAMPLE.read_text(encoding="utf-8")
    file.write_text(text.replace('logs: "fleet/{machine}.csv"', f'logs: "{pattern}"'), encoding="utf-8")
    return load_study(file, variables={"LOGS": str(folder / "logs")})


def names(loaded: Loaded) -> dict[str, list[str]]:
    return {name: [r.file for r in logs] for name, logs in logs_of(loaded).items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("car 7/b.csv", "car 7/a.csv", "car 8/a.csv", "car 8/a.txt", "car+9/a.csv"):
        (tmp_path / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / name).touch()
    return tmp_path


def test_a_pattern_names_machines_by_folder(folder: Path) -> None:
    """In alphabetical order; a folder that is no name of a machine is not one."""
    found = {"car 7": ["logs/car 7/a.csv", "logs/car 7/b.csv"], "car 8": ["logs/car 8/a.csv"]}
    assert names(with_pattern(folder, "logs/{machine}/*.csv")) == found


def test_a_pattern_names_machines_by_a_part_of_a_name(folder: Path) -> None:
    assert names(with_pattern(folder, "${LOGS}/car {machine}/?.csv")) == {
        "7": ["logs/car 7/a.csv", "logs/car 7/b.csv"],
        "8": ["logs/car 8/a.csv"],
    }


def test_a_pattern_outside_the_folder_of_the_study(folder: Path) -> None:
    loaded = with_pattern(folder, "${LOGS}/{machine}/a.txt")
    moved = replace(loaded, file=folder / "elsewhere" / "fleet.yaml")
    assert names(moved) == {"car 8": [str(folder / "logs" / "car 8" / "a.txt")]}


def test_a_pattern_without_a_log_is_named_with_its_line(folder: Path) -> None:
    with pytest.raises(FileError, match=r"fleet.logs \(line 8\): no log has such a path.\nFound .*\{machine\}.mf4"):
        logs_of(with_pattern(folder, "logs/{machine}.mf4"))


def study(folder: Path, machines: str = "", executor: str = "none", more: str = "") -> Path:
    """The example with other machines, beside its files."""
    text = EXAMPLE.read_text(encoding="utf-8").replace("fleet_model.yaml", str(FOLDER / "fleet_model.yaml"))
    line = next(x for x in text.splitlines() if x.startswith("  logs:"))
    text = text.replace(line, machines or f"  logs: '{FOLDER}/fleet/{{machine}}.csv'")
    line = next(x for x in text.splitlines() if x.startswith("executor:"))
    file = folder / "study.yaml"
    file.write_text(text.replace(line, f"executor: {executor}") + more, encoding="utf-8")
    return file


def log(number: int) -> str:
    return str(FOLDER / "fleet" / f"{NAMES[number]}.csv")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> FleetRun:
    return run_fleet(load_study(study(tmp_path_factory.mktemp("fleet"))))


def test_the_logs_of_the_example_are_what_their_program_writes() -> None:
    for number, name in enumerate(NAMES):
        assert (FOLDER / "fleet" / f"{name}.csv").read_text(encoding="utf-8") == table(number)


def test_friction_of_each_machine_is_its_own(done: FleetRun) -> None:
    """Dry and viscous friction of eight machines within their deviations: 32 values, χ² below its 99.9 % point."""
    fleet = done.fleet
    at = [fleet.names.index(n) for n in ("fs_q1", "fs_q2", "h_q1", "h_q2")]
    truth = np.array([np.concatenate(drawn(k)[1:]) for k in range(len(NAMES))])
    z = (fleet.values[:, at] - truth) / fleet.sigma[:, at]
    print(np.abs(z).max(), np.sum(z**2))
    assert np.sum(z**2) < 62.5 and fleet.machines == NAMES


def test_the_worn_machine_stands_apart_and_no_other(done: FleetRun) -> None:
    assert [(o.machine, o.parameter) for o in done.fleet.outliers] == [(WORN, "h_q2")]
    assert done.figures["machines_apart"] == 1.0 and done.figures["machines_left_out"] == 0.0
    spread = done.fleet.distribution["fs_q1"]
    assert abs(spread.mean - COULOMB[0]) < 3.0 * spread.sigma


def test_what_is_written_is_what_was_found(done: FleetRun) -> None:
    rows = list(csv.DictReader(io.StringIO(done.table())))
    assert len(rows) == len(NAMES) * len(done.fleet.names)
    assert [r["machine"] for r in rows if r["outlier"] == "1"] == [WORN]
    assert float(rows[0]["value"]) == done.fleet.values[0, 0] and rows[0]["unit"] == done.units[0]
    result = done.result("fleet", 0)
    assert set(result.validation) == set(NAMES)
    assert {p.name: p.value for p in result.parameters} == {n: s.mean for n, s in done.fleet.distribution.items()}
    assert len(result.inputs) == 2 + len(NAMES)
    kept = done.as_dict()
    assert kept["machines"] == list(NAMES) and kept["machines_left_out"] == {} and kept["logs_left_out"] == {}


@pytest.mark.parametrize("word", ["local", "{local: 3}"])
def test_threads_change_nothing(tmp_path: Path, done: FleetRun, word: str) -> None:
    found = run_fleet(load_study(study(tmp_path, executor=word)))
    assert found.fleet.values == pytest.approx(done.fleet.values, rel=1e-12)
    assert found.figures == pytest.approx(done.figures, rel=1e-9)


def test_a_dask_cluster_changes_nothing(tmp_path: Path, done: FleetRun) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster:
        found = run_fleet(load_study(study(tmp_path, executor=f"{{dask: '{cluster.scheduler_address}'}}")))
    assert found.fleet.values == pytest.approx(done.fleet.values, rel=1e-12)
    assert found.figures == pytest.approx(done.figures, rel=1e-9)


def test_dask_workers_without_a_gpu_are_named(tmp_path: Path) -> None:
    """Where no GPU can be used: before any log is read, with the worker, and without asking for one on this machine."""
    from distributed import LocalCluster

    from veridyn.symbolic.gpu import open_gpu

    try:
        open_gpu()
    except DeviceError:
        with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
            file = study(tmp_path, executor=f"{{dask: '{cluster.scheduler_address}'}}", more="device: cuda\n")
            with pytest.raises(FileError, match=r"a worker has no GPU that can be used[\s\S]*inproc://"):
                run_fleet(load_study(file))
    else:
        pytest.skip("there is a GPU")


def test_threads_and_a_gpu_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"device|GPU"):
        run_fleet(load_study(study(tmp_path, executor="local", more="device: cuda\n")))


def test_bad_logs_are_named_and_the_others_go_on(tmp_path: Path) -> None:
    """A corrupt log beside a good one: the log is left out. A machine with no other: the machine is left out. A missing file: the same."""
    text = Path(log(2)).read_text(encoding="utf-8").splitlines()
    (tmp_path / "torn.csv").write_text("\n".join([*text[:200], "3.98,0.1"]) + "\n", encoding="utf-8")
    (tmp_path / "noise.parquet").write_bytes(bytes(range(256)) * 8)
    machines = "\n".join(
        [
            "  machines:",
            f"    a: {log(0)}",
            f"    b: [{log(1)}, noise.parquet]",
            "    c: torn.csv",
            "    d: nowhere.csv",
            f"    e: {log(4)}",
            f"    f: {log(6)}",
        ]
    )
    with collected_warnings() as warned:
        done = run_fleet(load_study(study(tmp_path, machines, more="accept: {left_out: 2}\n")))
    assert done.fleet.machines == ("a", "b", "e", "f")
    assert list(done.fleet.failed) == ["c", "d"] and list(done.logs_left_out) == ["b"]
    assert "torn.csv" in done.fleet.failed["c"] and "fleet.machines.d" in done.fleet.failed["d"]
    assert "(line 12)" in done.fleet.failed["d"] and "there is no such log" in done.fleet.failed["d"]
    assert list(done.logs_left_out["b"]) == ["noise.parquet"]
    said = "\n".join(warned)
    assert "b, noise.parquet: the log is left out" in said and "c: the machine is left out" in said
    assert done.missed == ("machines and logs left out: 3, and at most 2 are accepted (accept.left_out).",)
    assert set(done.as_dict()["machines_left_out"]) == {"c", "d"}  # pyright: ignore[reportArgumentType]


def test_a_fleet_without_any_usable_log_is_refused(tmp_path: Path) -> None:
    file = study(tmp_path, "  machines: {a: nowhere.csv, b: nowhere.csv}")
    with pytest.raises(IdentificationError, match=r"1\. a: [\s\S]*2\. b: "):
        run_fleet(load_study(file))


def test_of_the_environment_only_named_variables_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_LOGS", str(FOLDER / "fleet"))
    monkeypatch.setenv("FLEET_SECRET", "hidden")
    file = study(tmp_path, "  logs: '${FLEET_LOGS}/{machine}.csv'")
    sent = shipped_study(load_study(file))
    assert sent.variables == {"FLEET_LOGS": str(FOLDER / "fleet")} and os.environ["FLEET_SECRET"] == "hidden"
    assert sent.file.is_absolute() and b"hidden" not in pickle.dumps(sent)


def test_the_list_of_machines_does_not_travel_with_every_job(tmp_path: Path) -> None:
    """A job has the lines of its own machine, and what all jobs share does not grow with the fleet."""
    names = [f"m{k}" for k in range(500)]
    many, few = (
        load_study(study(tmp_path, "  machines:\n" + "\n".join(f"    {n}: {n}.csv" for n in some)))
        for some in (names, names[:2])
    )
    sizes = [len(pickle.dumps(shipped_study(x))) for x in (many, few)]
    assert abs(sizes[0] - sizes[1]) < 100  # line numbers have more digits
    jobs = jobs_of(many, logs_of(many))
    assert [job.name for job in jobs] == names and jobs[7].lines == {("fleet", "machines", "m7"): 16}
