"""Several files are parts of one log, or recordings of their own; a log of which nothing is known is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from studies.bench_robot import Bench, table
from veridyn.cli.app import app
from veridyn.errors import FileError
from veridyn.files.log.load import survey
from veridyn.files.machine.load import load_model
from veridyn.studies.config.several_logs import are_recordings
from veridyn.studies.config.study import load_study
from veridyn.studies.config.template import template
from veridyn.studies.run.identify import run_identify


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.write()
    return made


def arrays(bench: Bench, folder: Path) -> list[Path]:
    made = []
    for name, columns in (("run1", bench.training), ("run2", bench.validation)):
        np.savez(folder / f"{name}.npz", **columns)
        made.append(folder / f"{name}.npz")
    return made


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_two_recordings_are_two_logs(bench: Bench, tmp_path: Path, kind: str) -> None:
    """They were parts of one log: an NPZ ended in "not text in UTF-8", and of two CSV files the second was ignored."""
    files = [tmp_path / "training.csv", tmp_path / "validation.csv"] if kind == "csv" else arrays(bench, tmp_path)
    study = tmp_path / "new.yaml"
    done = CliRunner().invoke(app, ["new", str(tmp_path / "model.yaml"), *map(str, files), "--out", str(study)])
    assert done.exit_code == 0, done.output
    read = load_study(study).study
    assert [r.file for r in read.training] == [files[0].name] and [r.file for r in read.validation] == [files[1].name]
    assert not read.log.parts and len(read.log.columns) == 9
    study.write_text(study.read_text().replace("lowpass: auto", "lowpass: 8"))
    found = run_identify(load_study(study))
    assert found.missed == () and found.suspicions == ()


def test_of_three_the_last_judges(bench: Bench, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("training.csv", "more.csv", "validation.csv")]
    (tmp_path / "more.csv").write_text(table(bench.training))
    (tmp_path / "new.yaml").write_text(
        template(tmp_path / "model.yaml", load_model(tmp_path / "model.yaml"), files, tmp_path / "new.yaml")
    )
    read = load_study(tmp_path / "new.yaml").study
    assert [r.file for r in read.training] == ["training.csv", "more.csv"]
    assert [(r.file, r.share) for r in read.validation] == [("validation.csv", (0.0, 1.0))]


def test_parts_stay_parts_and_arrays_of_one_log_are_one_file(bench: Bench, tmp_path: Path) -> None:
    model = load_model(tmp_path / "model.yaml")
    for kind in ("csv", "npz"):
        parts = []
        for name, start in (("a", "q"), ("b", "tau")):
            part = {"t": bench.training["t"]} | {n: x for n, x in bench.training.items() if n.startswith(start)}
            parts.append(tmp_path / f"{name}.{kind}")
            if kind == "csv":
                parts[-1].write_text(table(part))
            else:
                np.savez(parts[-1], **part)
        assert not are_recordings(model, [survey(p) for p in parts])
    with pytest.raises(FileError, match=r"b\.npz|a\.npz") as caught:
        template(tmp_path / "model.yaml", model, parts, tmp_path / "n.yaml")
    assert "parts of one log" in caught.value.faults[0].what


def test_recordings_with_other_headers_are_refused_by_name(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(table(bench.validation).replace("tau", "torque_"))
    model, files = load_model(tmp_path / "model.yaml"), [tmp_path / "training.csv", other]
    with pytest.raises(FileError, match="called otherwise") as caught:
        template(tmp_path / "model.yaml", model, files, tmp_path / "n.yaml")
    assert caught.value.source == "other.csv" and "tau1" in caught.value.faults[0].expected


def test_a_log_of_which_nothing_is_recognised_is_refused(bench: Bench, tmp_path: Path) -> None:
    """It gave a study with "6 guesses", which ended in: max() arg is an empty sequence."""
    log, study = tmp_path / "odd.csv", tmp_path / "new.yaml"
    log.write_text("t,a,b,c,d,e,f,g,h,k\n" + table(bench.training).split("\n", 1)[1])
    done = CliRunner().invoke(app, ["new", str(tmp_path / "model.yaml"), str(log), "--out", str(study)])
    assert done.exit_code == 2 and not study.exists()
    said = " ".join(done.stderr.split())
    assert "no column of this log is recognised" in said and "a, b, c, d, e, f, g, h, k" in said and "q.q1, " in said


def test_a_study_without_columns_is_refused_by_its_line(bench: Bench, tmp_path: Path) -> None:
    text = (tmp_path / "study.yaml").read_text()
    start, end = text.index("  columns:"), text.index("training:")
    (tmp_path / "study.yaml").write_text(f"{text[:start]}  columns: {{}}\n{text[end:]}")
    with pytest.raises(FileError, match="the study names no column") as caught:
        run_identify(load_study(tmp_path / "study.yaml"))
    assert caught.value.faults[0].line is not None
