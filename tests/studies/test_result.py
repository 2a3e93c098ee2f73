import csv
import io
import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import veridyn
from studies.small_arm import small_study
from veridyn.errors import DataWarning, Fault, FileError, warn
from veridyn.model.experiment import Experiment
from veridyn.studies.result import (
    ParameterRow,
    Result,
    Run,
    collected_warnings,
    fingerprint,
    finite,
    new_run,
    parameter_rows,
    versions,
)

KEYS = [
    "veridyn",
    "study",
    "seed",
    "quick",
    "inputs",
    "figures",
    "parameters",
    "validation",
    "warnings",
    "findings",
    "verdict",
]
PARAMETER = ["name", "unit", "value", "sigma", "sigma_percent", "prior", "truth"]


def result() -> Result:
    rows = (
        ParameterRow("ZZ1R", "kg*m^2", 2.0, 0.1, 5.0, float("nan"), 2.1),
        ParameterRow("h", "N", 0.0, 1.0, float("inf")),
    )
    return Result("demo", 3, True, {"log": "00"}, {"condition": 7.5}, rows, {"q1": {"rms": 0.5}}, ("careful",))


def test_result_json_has_exactly_the_keys_of_the_schema(tmp_path: Path) -> None:
    run = new_run(tmp_path, "demo")
    run.write_result(result())
    content = json.loads((run.folder / "result.json").read_text(encoding="utf-8"))
    assert list(content) == KEYS
    assert content["veridyn"] == veridyn.__version__
    assert (content["study"], content["seed"], content["quick"]) == ("demo", 3, True)
    assert [list(p) for p in content["parameters"]] == [PARAMETER, PARAMETER]
    assert content["parameters"][0]["prior"] is None
    assert content["parameters"][1]["sigma_percent"] is None
    assert content["warnings"] == ["careful"]


def test_a_study_fills_the_schema_with_numbers(tmp_path: Path) -> None:
    made = small_study().result("small", seed=7, quick=False, inputs={"log": fingerprint("x")})
    run = new_run(tmp_path, "small")
    run.write_result(made)
    content = json.loads((run.folder / "result.json").read_text(encoding="utf-8"))
    assert all(isinstance(v, float) for v in content["figures"].values())
    assert all(isinstance(p["truth"], float) for p in content["parameters"])
    assert set(content["validation"]) == {"q1", "q2"}
    assert set(content["validation"]["q1"]) == {
        "samples",
        "rms",
        "measured_rms",
        "measured_std",
        "measured_noise",
        "error_percent",
        "error_std_percent",
        "judged",
    }


def test_the_table_holds_the_same_parameters_with_empty_cells_for_what_is_not_known() -> None:
    rows = list(csv.reader(io.StringIO(result().parameter_table())))
    assert rows[0] == PARAMETER
    assert rows[1] == ["ZZ1R", "kg*m^2", "2.0", "0.1", "5.0", "", "2.1"]
    assert rows[2] == ["h", "N", "0.0", "1.0", "", "", ""]


def test_inside_is_two_sigma_and_unknown_without_a_truth() -> None:
    assert ParameterRow("a", "1", 1.0, 0.1, 10.0, truth=1.19).inside is True
    assert ParameterRow("a", "1", 1.0, 0.1, 10.0, truth=1.21).inside is False
    assert ParameterRow("a", "1", 1.0, 0.1, 10.0).inside is None


def test_a_fingerprint_changes_with_every_part_of_a_log() -> None:
    t = np.arange(4.0)

    def log(values: object = (1.0, 2.0, 3.0, 4.0), unit: str = "N", name: str = "f", at: object = t) -> Experiment:
        return Experiment.from_arrays(at, {name: values}, {name: unit})

    every = [log(), log((1.0, 2.0, 3.0, 5.0)), log(unit="N*m"), log(name="g"), log(at=t + 1e-9)]
    assert len({fingerprint(e) for e in every}) == len(every)
    assert fingerprint(log()) == fingerprint(log())
    # FIPS 180-2, appendix B.1: the digest of "abc"
    assert (
        fingerprint("abc") == fingerprint(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_warnings_of_veridyn_are_collected_once_each_and_others_pass() -> None:
    with collected_warnings() as texts:
        for _ in range(2):
            warn(DataWarning, Fault("the clock is odd.", "log"))
    assert texts == ["log: the clock is odd."]
    with pytest.warns(UserWarning, match="from elsewhere"), collected_warnings() as texts:
        warnings.warn("from elsewhere", UserWarning, stacklevel=1)
    assert texts == []


def test_warnings_are_kept_when_the_study_fails() -> None:
    found: list[str] = []

    def study() -> None:
        with collected_warnings(found):
            warn(DataWarning, Fault("odd.", "log"))
            raise ValueError("later")

    with pytest.raises(ValueError, match="later"):
        study()
    assert found == ["log: odd."]


def test_versions_are_those_in_use() -> None:
    found = versions()
    assert found["veridyn"] == veridyn.__version__
    assert found["numpy"] == np.__version__


def test_runs_are_numbered_and_an_existing_folder_is_never_used_again(tmp_path: Path) -> None:
    first = new_run(tmp_path / "runs", "arm")
    assert first.folder == tmp_path / "runs" / "arm-001"
    kept = first.write_text("result.json", "mine")
    assert new_run(tmp_path / "runs", "arm").folder.name == "arm-002"
    assert new_run(tmp_path / "runs", "car").folder.name == "car-001"
    assert kept.read_text() == "mine"


def test_the_number_after_the_highest_is_taken_whatever_is_missing_below(tmp_path: Path) -> None:
    for taken in ("arm-007", "arm-1200", "arm-x", "armchair-9000"):
        (tmp_path / taken).mkdir()
    assert new_run(tmp_path, "arm").folder.name == "arm-1201"


def test_a_file_in_the_way_counts_as_taken(tmp_path: Path) -> None:
    (tmp_path / "arm-001").write_text("not a folder")
    assert new_run(tmp_path, "arm").folder.name == "arm-002"


def test_runs_that_start_together_get_folders_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: new_run(tmp_path, "arm").folder, range(24)))
    assert len(set(made)) == 24


def test_a_run_that_is_killed_before_its_first_file_leaves_nothing(tmp_path: Path) -> None:
    run = new_run(tmp_path / "runs", "arm")
    assert list((tmp_path / "runs").iterdir()) == []
    run.discard()
    run.write_text("result.json", "mine")
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["arm-001"]


def test_a_place_that_cannot_hold_runs_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(FileError, match=r"(?s)runs: no run folder can be made there.*--out"):
        new_run(tmp_path / "runs", "arm")


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be called that"):
        new_run(tmp_path, "../arm")


def test_a_file_of_a_run_is_not_written_over(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.write_bytes("a.bin", b"\x00\x01")
    with pytest.raises(FileError, match="nothing is written over"):
        run.write_text("a.bin", "other")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\x01"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), full)
    with pytest.raises(FileError, match=r"report.html, it cannot be written: No space left on device"):
        Run(tmp_path).write_text("report.html", "half")
    assert list(tmp_path.iterdir()) == []


def test_json_has_no_nan_and_no_numpy(tmp_path: Path) -> None:
    content = {
        "a": float("nan"),
        "b": [np.float64("inf"), np.int64(3)],
        "c": np.array([1.0, np.nan]),
        "d": (True, None, "σ"),
    }
    written = Run(tmp_path).write_json("a.json", content).read_text(encoding="utf-8")
    assert json.loads(written) == {"a": None, "b": [None, 3], "c": [1.0, None], "d": [True, None, "σ"]}
    assert finite(content)["c"] == [1.0, None]


def test_an_empty_run_can_be_taken_back_and_a_full_one_cannot(tmp_path: Path) -> None:
    empty, full = new_run(tmp_path, "arm"), new_run(tmp_path, "arm")
    assert empty.folder.is_dir()  # as an export makes it that writes its files itself
    full.write_text("a", "b")
    empty.discard()
    full.discard()
    assert [p.name for p in tmp_path.iterdir()] == ["arm-002"]


def test_a_whole_run_gets_its_number_when_all_of_it_is_written(tmp_path: Path) -> None:
    run = new_run(tmp_path, "arm", whole=True)
    run.write_text("a", "b")
    (hidden,) = tmp_path.iterdir()
    assert hidden.name.startswith(".arm-") and hidden == run.folder
    other = new_run(tmp_path, "arm")
    assert other.folder.name == "arm-001"
    assert run.finish() == tmp_path / "arm-002" == run.folder
    assert run.finish() == run.folder and (run.folder / "a").read_text() == "b"
    assert run.folder.stat().st_mode & 0o777 == other.folder.stat().st_mode & 0o777
    run.discard()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arm-001", "arm-002"] and (run.folder / "a").is_file()


def test_a_whole_run_takes_no_folder_of_others(tmp_path: Path) -> None:
    run = new_run(tmp_path, "arm", whole=True)
    run.write_text("a", "b")
    (tmp_path / "arm-003").mkdir()  # empty
    (tmp_path / "arm-004").write_text("a file")
    (tmp_path / "arm-005").symlink_to("nowhere")
    assert run.finish().name == "arm-006"
    with ThreadPoolExecutor(8) as pool:
        runs = [new_run(tmp_path, "arm", whole=True) for _ in range(16)]
        for each in runs:
            each.write_text("a", "b")
        assert len(set(pool.map(lambda each: each.finish(), runs))) == 16


def test_a_whole_run_that_fails_leaves_nothing(tmp_path: Path) -> None:
    run = new_run(tmp_path, "arm", whole=True)
    run.write_text("a", "b")
    (run.folder / "fits").mkdir()
    (run.folder / "fits" / "one.json").write_text("{}")
    run.discard()
    assert list(tmp_path.iterdir()) == []


def test_rows_of_parameters_take_their_columns_in_order() -> None:
    columns = np.array([[1.0, 2.0], [0.1, 0.4], [10.0, 20.0], [3.0, 4.0]])
    assert parameter_rows(("m", "c"), ("kg", "1"), *columns) == (
        ParameterRow("m", "kg", 1.0, 0.1, 10.0, 3.0),
        ParameterRow("c", "1", 2.0, 0.4, 20.0, 4.0),
    )
    with pytest.raises(ValueError, match="zip"):
        parameter_rows(("m", "c"), ("kg", "1"), columns[0], columns[1], columns[2][:1])


@pytest.mark.skipif(sys.platform == "win32", reason="nobody can be asked there without being ended")
def test_what_a_killed_run_leaves_goes_with_the_next(tmp_path: Path) -> None:
    """Its hidden folder stayed for ever. Those of runs that live, and of other names and computers, stay."""
    code = f"""if True:
        from veridyn.studies.result import new_run
        run = new_run({str(tmp_path)!r}, "arm", whole=True)
        run.write_text("a.txt", "a")
        import os
        os._exit(9)"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".part")
    living = new_run(tmp_path, "arm", whole=True)
    assert list(tmp_path.iterdir()) == []
    living.write_text("b.txt", "b")
    other = tmp_path / ".arm-00000000.1-0123456789abcdef.part"
    other.mkdir()
    new_run(tmp_path, "arm", whole=True)
    assert other.is_dir() and living.folder.is_dir()
    assert living.finish().name == "arm-001"
