"""What is kept of a simulation: tables that are the log again, and study files that read them.

The sensors of a simulation: which channels they fit, and what is refused by name.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from studies.arm_simulation import ARM, FREE, LED, PUSHED, written
from veridyn.errors import FileError
from veridyn.files.log.load import load_log
from veridyn.files.machine.load import load_model
from veridyn.machines import linkage
from veridyn.model.elements.element import coulomb
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.studies.config.study import load_study
from veridyn.studies.result import new_run
from veridyn.studies.run.recordings import Recordings
from veridyn.studies.run.simulate import simulate_study
from veridyn.studies.run.simulation_records import (
    by_clock,
    dead_zones,
    keep_simulation,
    named_sensors,
    on_one_clock,
    perfect_sensors,
    read_log,
    same_start,
    seen_from,
)

T = np.arange(11) / 10.0


def test_without_sensors_a_log_holds_what_such_a_machine_measures(tmp_path: Path) -> None:
    assert "q.*" in perfect_sensors(load_model(ARM))
    closed = perfect_sensors(linkage())
    assert "q.q1" in closed and "q.*" not in closed and "q.q2" not in closed
    loaded = load_study(written(tmp_path, FREE))
    t = np.linspace(0.0, 1.0, 11)
    truth = Experiment.from_arrays(
        t, {"q.q1": t, "qd.q1": t, "force.q1": t}, {"q.q1": "rad", "qd.q1": "rad/s", "force.q1": "N*m"}
    )
    log = read_log(loaded, perfect_sensors(load_model(ARM)), truth, np.random.default_rng(0))
    assert log.names == ("q.q1", "force.q1") and np.array_equal(log["q.q1"].values, t)


def test_a_study_names_its_sensors(tmp_path: Path) -> None:
    text = LED + "sensors: {q.q1: {noise: 0.1, rate: 20, walk: 0.5}, q.*: }\n"
    named = named_sensors(load_study(written(tmp_path, text)))
    assert (named["q.q1"].noise, named["q.q1"].rate, named["q.q1"].walk) == (0.1, 20.0, 0.5)
    assert list(named) == ["q.q1", "q.*"] and named["q.*"].noise == 0.0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("sensors: {q.q7: {}}", r"sensors.q.q7 \(line \d+\): 'q.q7' is no channel(.|\n)*q.q1"),
        ("sensors: {q.*: {delay: 9}}", "the truth is too short for this sensor"),
    ],
)
def test_sensors_that_measure_nothing_are_refused(tmp_path: Path, more: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        simulate_study(load_study(written(tmp_path, LED + more + "\n")))


def channel(name: str, t: np.ndarray) -> Channel:
    return Channel(name, t, 2.0 * t, "rad")


LOG = Experiment(
    {c.name: c for c in (channel("a", T), channel("b", T[::2]), channel("c", T + 1e-12), channel("d", T[3:]))}
)


def test_parts_by_clock_and_all_on_one() -> None:
    parts = by_clock(LOG)
    assert [part.names for part in parts] == [("a", "c"), ("d",), ("b",)]
    whole = on_one_clock(LOG)
    assert len(whole["b"]) == 11 and np.isnan(whole["b"].values[1::2]).all()
    assert whole["b"].values[::2] == pytest.approx(2.0 * T[::2]) and np.isnan(whole["d"].values[:3]).all()


def test_a_log_begins_when_every_sensor_of_its_clock_speaks() -> None:
    begun = same_start(LOG)
    assert begun["a"].t[0] == pytest.approx(0.3) == begun["d"].t[0] and begun["b"].t[0] == 0.0
    assert [part.names for part in by_clock(begun)] == [("a", "c", "d"), ("b",)]


def kept(folder: Path, text: str) -> Path:
    loaded = load_study(written(folder, text))
    done = simulate_study(loaded)
    run = new_run(folder / "runs", loaded.study.name)
    keep_simulation(loaded, done.machine, done.log, done.truth, run)
    return run.folder


def test_a_tree_leaves_one_table_for_each_clock_and_a_study_that_reads_them(tmp_path: Path) -> None:
    run = kept(tmp_path, FREE + "sensors: {q.*: {delay: 0.02}, force.*: {rate: 50}}\n")
    assert {p.name for p in run.iterdir()} == {"log.csv", "log-2.csv", "truth.csv", "identify.yaml"}
    positions, forces, truth = (load_log(run / f"{n}.csv") for n in ("log", "log-2", "truth"))
    assert positions.names == ("q.q1", "q.q2", "q.q3") and forces["force.q1"].rate == pytest.approx(50.0)
    assert positions["q.q2"].t[0] == pytest.approx(0.02)
    assert positions["q.q2"].values == pytest.approx(truth["q.q2"].values[:-2], abs=1e-12)
    study = load_study(run / "identify.yaml", "identify").study
    assert set(study.log.parts) == {"log", "log-2"} and study.training[0].files == {
        "log": "log.csv",
        "log-2": "log-2.csv",
    }
    read = Recordings(load_study(run / "identify.yaml", "identify")).logs[0]
    assert (read["q.q1"].unit, read["force.q1"].unit) == ("rad", "N*m")
    assert read["force.q1"].t == pytest.approx(forces["force.q1"].t) and len(read["q.q1"]) == len(positions["q.q1"])
    speeds = {c: np.abs(truth[f"qd.{c}"].values) for c in ("q1", "q2", "q3")}
    zones = study.sampling.dead_zone
    assert set(zones) <= set(speeds) and (run / study.model.file).is_file()
    for c, zone in zones.items():  # what the rounding of friction asks for, or what leaves seven of ten samples
        assert zone == pytest.approx(min(0.4, np.quantile(speeds[c], 0.3)), rel=0.05)
        assert np.mean(speeds[c] >= zone) >= 0.69


def test_tables_may_be_parquet(tmp_path: Path) -> None:
    run = kept(tmp_path, FREE + "format: parquet\n")
    assert {p.name for p in run.iterdir()} == {"log.parquet", "truth.parquet", "identify.yaml"}
    read = Recordings(load_study(run / "identify.yaml", "identify")).logs[0]
    assert np.array_equal(read["q.q2"].values, load_log(run / "truth.parquet")["q.q2"].values)


def test_a_mechanism_leaves_one_table_and_a_study_that_reads_it(tmp_path: Path) -> None:
    run = kept(tmp_path, PUSHED + "sensors: {tilt: {rate: 25, noise: 0.01}, load.motor: {}}\n")
    log = load_log(run / "log.csv")
    assert log.names == ("travel", "tilt", "load.motor") and np.isfinite(log["tilt"].values).sum() == 26
    study = load_study(run / "observe.yaml", "observe").study
    assert study.log.empty == "none" and study.log.columns["motor"].column == "load.motor"
    assert study.start.coordinates == {"x": 0.5, "swing": 0.1} and (run / study.model.file).is_file()


def test_one_seed_gives_one_log(tmp_path: Path) -> None:
    logs = [
        simulate_study(load_study(written(tmp_path, PUSHED.replace("duration: 1", f"duration: 0.2\nseed: {k}")))).log
        for k in (1, 1, 2)
    ]
    assert np.array_equal(logs[0]["tilt"].values, logs[1]["tilt"].values)
    assert not np.array_equal(logs[0]["tilt"].values, logs[2]["tilt"].values)


def test_dead_zones_of_slow_cylinders_come_from_their_speeds() -> None:
    """A cylinder at 0.1 m/s used to get a dead zone of 0.4 m/s, which left no sample."""
    t = np.arange(1000) / 100.0
    machine = Machine.of_bodies(
        [Body("1", joint="sliding", coordinate="s"), Body("2", "1", joint="turning", coordinate="q")],
        elements=[coulomb("s"), coulomb("q")],
    )
    truth = Experiment.from_arrays(
        t, {"qd.s": 0.1 * np.sin(t), "qd.q": 5.0 * np.sin(t)}, {"qd.s": "m/s", "qd.q": "rad/s"}, "truth"
    )
    zones, slow = dead_zones(machine, truth, 0.02)
    assert slow == ["s"] and zones["q"] == pytest.approx(0.4)
    assert zones["s"] == pytest.approx(np.quantile(np.abs(0.1 * np.sin(t)), 0.3), rel=0.05)
    assert dead_zones(machine, truth, 1e-4) == ({"s": pytest.approx(0.002), "q": pytest.approx(0.002)}, [])


def test_a_model_on_another_drive_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two drives of Windows there is no relative path."""

    def apart(path: object, start: object) -> str:
        raise ValueError("path is on mount 'C:', start on mount 'D:'")

    model = tmp_path / "arm.yaml"
    assert seen_from(tmp_path / "runs" / "a-001", model) == "../../arm.yaml"
    monkeypatch.setattr(os.path, "relpath", apart)
    assert seen_from(tmp_path / "runs", model) == model.as_posix()
