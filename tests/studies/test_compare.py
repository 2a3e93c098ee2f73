import json
from dataclasses import replace
from pathlib import Path

import pytest

from studies.small_arm import small_study
from veridyn.errors import FileError, VeridynError
from veridyn.studies.compare import compare
from veridyn.studies.result import Run


def write(folder: Path, **changes) -> Path:
    folder.mkdir()
    result = small_study().result("small", seed=1, quick=False, inputs={"log": "00", "model": "11"})
    Run(folder).write_result(replace(result, **changes))
    return folder


def test_a_run_beside_itself_differs_in_nothing(tmp_path: Path) -> None:
    one = write(tmp_path / "a")
    found = compare(one, one / "result.json")
    assert found.differing == () and found.lacking == ((), ())
    assert all(d.apart == 0.0 for d in found.parameters)
    assert found.input_lines == ("log: the same", "model: the same")


def test_what_differs_is_marked_in_deviations(tmp_path: Path) -> None:
    rows = small_study().parameters
    moved = replace(rows[0], value=rows[0].value + 10.0 * rows[0].sigma)
    found = compare(write(tmp_path / "a"), write(tmp_path / "b", parameters=(moved, *rows[2:]), inputs={"log": "99"}))
    # The difference of two estimates has √2 times their deviation.
    assert found.parameters[0].apart == pytest.approx(10.0 / 2**0.5)
    assert [d.name for d in found.differing] == [rows[0].name]
    assert found.lacking == ((), (rows[1].name,))
    said = found.summary()
    assert "log: not the same" in said and "model: not the same" in said
    assert f"not in b: {rows[1].name}" in said
    assert "1 of " in said and "differ by more than 3 deviations" in said
    assert json.dumps(found.as_dict())


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    one = write(tmp_path / "a")
    with pytest.raises(FileError, match="there is no result of a run"):
        compare(one, tmp_path / "nowhere")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(FileError, match="not JSON"):
        compare(one, tmp_path / "x.json")
    (tmp_path / "y.json").write_text("[]")
    with pytest.raises(FileError, match="it is no result of a run"):
        compare(one, tmp_path / "y.json")


def test_of_three_runs_the_two_furthest_apart_count(tmp_path: Path) -> None:
    rows = small_study().parameters
    runs = [
        write(tmp_path / name, parameters=(replace(rows[0], value=rows[0].value + k * rows[0].sigma), *rows[1:]))
        for k, name in zip((0.0, 2.0, -5.0), "abc", strict=True)
    ]
    found = compare(*runs)
    assert found.runs == ("a", "b", "c") and len(found.parameters[0].values) == 3
    assert found.parameters[0].apart == pytest.approx(7.0 / 2**0.5)
    assert [d.name for d in found.differing] == [rows[0].name]
    assert compare(runs[0], runs[0]).runs == ("a (1)", "a (2)")


def test_one_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VeridynError, match="two runs or more, found 1"):
        compare(write(tmp_path / "a"))
