from pathlib import Path

import numpy as np
import pytest

from studies.bench_robot import Bench
from studies.closed_bench import ClosedBench
from veridyn.errors import FileError
from veridyn.studies.config.study import load_study
from veridyn.studies.run.machine import study_machine


def machine(folder: Path, model: str, file: str = "model.yaml"):
    bench = Bench(folder)
    bench.study = bench.study.replace("{file: model.yaml}", "{file: " + file + (", " + model if model else "") + "}")
    loaded = load_study(bench.write())
    return study_machine(loaded, ("model",), loaded.study.model)


def test_elements_are_added_for_each_coordinate_or_for_one(tmp_path: Path) -> None:
    made = machine(
        tmp_path,
        "elements: [{kind: offset}, {kind: drive_gain, on: q2, signal: i2, value: 3, name: K2}], known: [K2, M1]",
    )
    assert made.parameters.names[-4:] == ("off_q1", "off_q2", "off_q3", "K2")
    assert made.parameters["K2"] == 3.0
    known = [made.parameters.names[k] for k in made.parameters.select("known")]
    assert known == ["M1", "K2"]


def test_elements_for_each_motor(tmp_path: Path) -> None:
    bench = ClosedBench(tmp_path)
    bench.study = bench.study.replace(
        "{file: model.yaml}", "{file: model.yaml, elements: [{kind: offset, on: actuated}]}"
    )
    loaded = load_study(bench.write())
    made = study_machine(loaded, ("model",), loaded.study.model)
    assert made.parameters.names[-3:] == ("off_q1", "off_q2", "off_q4")


def test_kinds_are_those_of_model_files(tmp_path: Path) -> None:
    made = machine(tmp_path, "elements: [{kind: stribeck, on: q1, speed: 0.1}, {kind: drive_gain, signal: i_*}]")
    assert made.elements[-4].constants["speed"] == 0.1
    assert [e.signal for e in made.elements[-3:]] == ["i_q1", "i_q2", "i_q3"]
    (tmp_path / "model.yaml").unlink()
    with pytest.raises(
        FileError, match=r"model.elements\[1\].kind \(line 4\): 'dampr' is no kind of element.*Did you mean 'damper'"
    ):
        machine(tmp_path, "elements: [{kind: dampr}]")


def test_priors_may_be_forgotten_and_values_given(tmp_path: Path) -> None:
    made = machine(tmp_path, "priors: forget, known: {M1: 7.5}")
    assert made.parameters["M1"] == 7.5
    assert np.isnan(made.parameters["M2"]) and np.isnan(made.parameters["h_q1"])


def test_gravity_and_gears_are_the_studys(tmp_path: Path) -> None:
    made = machine(tmp_path, "gravity: [0, 9.81, 0], transmission: {ratios: {q1: 100, q3: -50}}")
    np.testing.assert_array_equal(made.gravity, [0.0, 9.81, 0.0])
    assert made.transmission.motors == ("q1", "q3")
    np.testing.assert_allclose(made.transmission.matrix, np.diag([0.01, -0.02]))
    (tmp_path / "b").mkdir()
    coupled = machine(tmp_path / "b", "transmission: {motors: [a, b], joints: [q2, q3], matrix: [[1, 0], [-1, 1]]}")
    assert coupled.transmission.joints == ("q2", "q3")


def test_a_urdf_is_read_by_its_suffix(tmp_path: Path) -> None:
    made = machine(tmp_path, "gravity: [0, 0, -1.62]", "model.urdf")
    assert made.coordinates == ("q1", "q2", "q3")
    np.testing.assert_array_equal(made.gravity, [0.0, 0.0, -1.62])


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("known: [M9]", r"study.yaml, model.known.M9 \(line 4\): there is no parameter 'M9'"),
        ("estimated: [M9]", r"study.yaml, model.estimated \(line 4\): there is no parameter 'M9'"),
        ("elements: [{kind: damper, on: q9}]", r"(?s)study.yaml, model.*\(line 4\): there is no coordinate 'q9'"),
        ("transmission: {ratios: {q9: 2}}", r"'q9' is no coordinate"),
        ("transmission: {motors: [a], joints: [q1], matrix: [[0]]}", r"study.yaml, model"),
    ],
)
def test_what_does_not_fit_is_told_with_the_studys_line(tmp_path: Path, model: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        machine(tmp_path, model)


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"model.file \(line 4\): there is no such model file"):
        machine(tmp_path, "", "other.yaml")


def test_joints_are_locked_by_name_pattern_or_value(tmp_path: Path) -> None:
    """What is left has no coordinate and no element of theirs, and needs no column; a name that is none is told with its line."""
    made = machine(tmp_path, "lock: {q3: 0.4}, elements: [{kind: offset, on: each}]")
    assert made.coordinates == ("q1", "q2") and "off_q3" not in made.parameters.names
    (tmp_path / "b").mkdir()
    assert machine(tmp_path / "b", "lock: [q2, 'q[3]']").coordinates == ("q1",)
    (tmp_path / "c").mkdir()
    with pytest.raises(
        FileError, match=r"study.yaml, model.lock.wheel_\* \(line 4\): no coordinate is called 'wheel_\*'"
    ):
        machine(tmp_path / "c", "lock: [wheel_*]")


def test_known_takes_groups_and_patterns(tmp_path: Path) -> None:
    made = machine(tmp_path, "known: {inertia: , M?: , M1: 7.5}, estimated: [MX*]")
    names, known = made.parameters.names, {made.parameters.names[k] for k in made.parameters.select("known")}
    bodies = [
        n for n in names if n[:2] in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ") or n in ("M1", "M2", "M3")
    ]
    assert known == set(bodies) and made.parameters["M1"] == 7.5
    (tmp_path / "b").mkdir()
    listed = machine(tmp_path / "b", "known: [mass, ZZ*]")
    assert {n for k, n in enumerate(names) if k in listed.parameters.select("known")} == {
        "M1",
        "M2",
        "M3",
        "ZZ1",
        "ZZ2",
        "ZZ3",
    }
    (tmp_path / "c").mkdir()
    with pytest.raises(FileError, match=r"there is no parameter 'inertias'.\n.*Groups: inertia, mass, friction"):
        machine(tmp_path / "c", "known: [inertias]")
