import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from veridyn.errors import FileError
from veridyn.studies.run.folder import Run, finite, new_run


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
