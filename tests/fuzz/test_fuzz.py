"""Some hundred damaged files at every door; ``make fuzz CASES=20000 SEED=1`` runs as many as one likes."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from fuzz.runner import DEFECTS, Case, drawn, keep, run, table
from fuzz.subjects import Subject, subjects

pytest.importorskip("asammdf", reason="asammdf, rosbags and mcap (the extra 'logs') write the logs that are damaged")
pytest.importorskip("rosbags")
pytest.importorskip("mcap")

SEED = 7


@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.name)
def test_what_is_not_damaged_is_read_without_a_word(subject: Subject, tmp_path: Path) -> None:
    for name, content in subject.files().items():
        (tmp_path / name).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert subject.door(tmp_path) < 0.01


@pytest.mark.parametrize("cases", [120, pytest.param(220, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_end_in_an_error_of_veridyn_or_are_read(tmp_path: Path, cases: int) -> None:
    done = [run(case) for case in drawn(cases, SEED)]
    print(table(done))
    bad = [d for d in done if d.outcome in DEFECTS]
    for d in bad:
        keep(d, tmp_path)
    assert not bad, "\n".join(f"{d.case}: {d.said}" for d in bad)


def test_a_case_is_the_same_every_time_and_can_be_kept(tmp_path: Path) -> None:
    cases = list(drawn(20, 3))
    assert cases == list(drawn(20, 3)) and cases != list(drawn(20, 4))
    done = run(next(c for c in cases if c.subject != "log to fit"))
    keep(done, tmp_path)
    (place,) = tmp_path.iterdir()
    assert (place / "case.json").exists() and len(list(place.iterdir())) > 1


# Found by the fuzzer, and mended.
FOUND = (
    Case("run", "some_json", 120, 101),
    Case("mcap", "some_bytes", 7569, 951001),
    Case("osim", "some_token", 13982, 981001),
)


REPORTED = (
    *(Case("log to fit", "some_samples", k, 201) for k in (287, 677, 1021, 1176, 1693)),
    Case("log to fit", "some_samples", 5657, 951001),
)


@pytest.mark.parametrize("case", FOUND, ids=str)
def test_cases_that_were_found_stay_mended(case: Case) -> None:
    assert run(case).outcome not in DEFECTS


@pytest.mark.parametrize("case", REPORTED, ids=str)
def test_logs_that_were_changed_silently_are_reported(case: Case) -> None:
    assert run(case).outcome in ("warned", "refused")
