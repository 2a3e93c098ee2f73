"""Patterns of paths: which files belong to which machine."""

from dataclasses import replace
from pathlib import Path

import pytest

from studies.fleet_log import EXAMPLE
from veridyn.errors import FileError
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.run.fleet_logs import logs_of


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
