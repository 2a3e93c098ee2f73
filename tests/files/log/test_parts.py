from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veridyn.errors import DataError, FileError
from veridyn.files.log.load import load_log
from veridyn.files.log.parts import LogPart, load_spread, open_log

N = 10_007
T = np.arange(N) / 250.0
X = np.sin(T) + 1e-3 * np.arange(N)
COLUMNS, UNITS = {"a": "x", "t": "t"}, {"a": "deg", "t": "s"}
PART_TIMES = np.arange(30) / 100.0
Q = np.column_stack([np.sin(PART_TIMES), np.cos(PART_TIMES)])


@pytest.fixture(scope="module", params=["csv", "parquet"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / f"log.{request.param}"
    if request.param == "csv":
        path.write_text("t,y,x\n" + "\n".join(f"{t!r},0,{x!r}" for t, x in zip(T.tolist(), X.tolist())) + "\n")
    else:
        pq.write_table(pa.table({"t": T, "y": 0.0 * T, "x": X}), path, row_group_size=777)
    return path


@pytest.mark.parametrize(("size", "margin"), [(1000, 0), (1000, 137), (4096, 5000), (20_000, 10)])
def test_own_rows_follow_on_one_another_and_margins_are_there(file: Path, size: int, margin: int) -> None:
    log = open_log(file, COLUMNS, UNITS)
    assert log.rows == N
    whole = load_log(file, COLUMNS, UNITS)["a"]
    at, units = 0, set()
    for window in log.windows(size, margin):
        c = window.log["a"]
        units.add(c.unit)
        own = (c.t >= window.start) & (c.t < window.end)
        count = int(own.sum())
        assert count == min(size, N - at)
        np.testing.assert_array_equal(c.values[own], whole.values[at : at + count])
        lo, hi = max(0, at - margin), min(N, at + count + margin)
        np.testing.assert_array_equal(c.t, whole.t[lo:hi])
        at += count
    assert at == N
    assert units == {"rad"}


def test_a_span_of_rows(file: Path) -> None:
    windows = list(open_log(file, COLUMNS, UNITS).windows(1000, 50, 2500, 4700))
    assert [w.start for w in windows] == [T[2500], T[3500], T[4500]]
    assert windows[0].log["a"].t[0] == T[2500] and windows[-1].log["a"].t[-1] == T[4699]
    assert windows[-1].end == np.inf


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x\n0,1\n1,2\n2,much\n")
    with pytest.raises(FileError, match="there is no column 'z'"):
        open_log(tmp_path / "a.csv", {"t": "t", "a": "z"}, {"t": "s"})
    with pytest.raises(FileError, match=r"(?s)it cannot be read to its end.*much"):
        list(open_log(tmp_path / "a.csv", {"t": "t", "a": "x"}, {"t": "s", "a": "1"}).windows(10, 0))
    np.savez(tmp_path / "a.npz", t=T)
    with pytest.raises(FileError, match="cannot be read in blocks"):
        open_log(tmp_path / "a.npz", None, {})


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, LogPart]:
    np.savetxt(tmp_path / "t.txt", PART_TIMES)
    np.savetxt(tmp_path / "q.txt", np.degrees(Q).ravel())
    (tmp_path / "tau.csv").write_text("a;b\n" + "\n".join(f"{x};{-x}" for x in PART_TIMES) + "\n")
    return {
        "clock": LogPart(tmp_path / "t.txt", ("t",), time="t [s]"),
        "q": LogPart(tmp_path / "q.txt", ("q1", "q2"), interleaved=True),
        "tau": LogPart(tmp_path / "tau.csv"),
    }


PART_COLUMNS = {"q.q1": ("q1", "deg"), "q.q2": ("q2", "deg"), "force.q1": ("b", "mNm")}


def test_parts_become_channels_on_the_clock_of_the_one_that_has_it(parts: dict[str, LogPart]) -> None:
    log = load_spread(parts, PART_COLUMNS, "run")
    np.testing.assert_allclose(log["q.q1"].values, Q[:, 0], atol=1e-14)
    np.testing.assert_allclose(log["q.q2"].values, Q[:, 1], atol=1e-14)
    np.testing.assert_allclose(log["force.q1"].values, -1e-3 * PART_TIMES)
    assert log["force.q1"].unit == "N*m"
    assert all(c.t is log["q.q1"].t for c in log.channels.values())


def test_a_part_may_have_a_clock_of_its_own(parts: dict[str, LogPart], tmp_path: Path) -> None:
    (tmp_path / "slow.csv").write_text("ms,i\n" + "\n".join(f"{100 * k},{k}" for k in range(4)) + "\n")
    log = load_spread(
        parts | {"slow": LogPart(tmp_path / "slow.csv", time="ms [ms]")}, {**PART_COLUMNS, "signal.i": ("i", "A")}
    )
    np.testing.assert_allclose(log["signal.i"].t, [0.0, 0.1, 0.2, 0.3])
    assert len(log["q.q1"]) == 30


def test_a_file_that_was_cut_off_is_noticed(parts: dict[str, LogPart], tmp_path: Path) -> None:
    np.savetxt(tmp_path / "q.txt", Q.ravel()[:-1])
    with pytest.raises(FileError, match=r"its 59 values are no whole number of samples of 2"):
        load_spread(parts, PART_COLUMNS)
    np.savetxt(tmp_path / "q.txt", Q.ravel()[:-2])
    with pytest.raises(FileError, match=r"(?s)part 'q' is not as long as the clock.*30 samples, found 29"):
        load_spread(parts, PART_COLUMNS)


def test_missing_columns_clocks_and_names_are_told(parts: dict[str, LogPart]) -> None:
    with pytest.raises(FileError, match=r"(?s)there is no column 'c'.*Known: t, q1, q2, b"):
        load_spread(parts, {**PART_COLUMNS, "force.q2": ("c", "N*m")})
    with pytest.raises(FileError, match="no part has a clock"):
        load_spread({"q": parts["q"]}, {"q.q1": ("q1", "rad")})
    with pytest.raises(FileError, match="there is no column 'time' for the time"):
        load_spread(parts | {"clock": LogPart(parts["clock"].file, ("t",), time="time [s]")}, PART_COLUMNS)
    with pytest.raises(FileError, match="needs the names of its values"):
        load_spread(parts | {"q": LogPart(parts["q"].file, interleaved=True)}, PART_COLUMNS)
    with pytest.raises(DataError, match="unknown symbol 'Kg'"):
        load_spread(parts, {**PART_COLUMNS, "force.q1": ("b", "Kg")})


def test_columns_of_one_name_in_several_parts_are_named_with_their_part(tmp_path: Path) -> None:
    for k, name in enumerate(("pos", "tau")):
        (tmp_path / f"{name}.csv").write_text("t,Joint_1\n" + "\n".join(f"{x},{k + x}" for x in PART_TIMES) + "\n")
    two = {name: LogPart(tmp_path / f"{name}.csv", time="t [s]") for name in ("pos", "tau")}
    with pytest.raises(FileError) as caught:
        load_spread(two, {"q.q1": ("Joint_1", "rad")})
    assert "several parts have a column 'Joint_1': pos, tau." in str(caught.value)
    assert "pos/Joint_1 or tau/Joint_1" in str(caught.value) and "Did you mean" not in str(caught.value)
    log = load_spread(two, {"q.q1": ("pos/Joint_1", "rad"), "force.q1": ("tau/Joint_1", "N*m")})
    np.testing.assert_allclose(log["force.q1"].values - log["q.q1"].values, 1.0)


def test_parts_without_a_clock_have_one_rate_or_one_each(parts: dict[str, LogPart]) -> None:
    without = {p: parts[p] for p in ("q", "tau")}
    log = load_spread(without, PART_COLUMNS, "run", rate=100.0)
    np.testing.assert_allclose(log["q.q1"].t, PART_TIMES)
    own = load_spread({"q": without["q"], "tau": LogPart(without["tau"].file, rate=50.0)}, {"force.q1": ("b", "N*m")})
    np.testing.assert_allclose(own["force.q1"].t, 2.0 * PART_TIMES)
    with pytest.raises(DataError, match="this is no rate"):
        load_spread(without, PART_COLUMNS, "run", rate=0.0)


def test_windows_of_a_log_without_a_clock_count_from_its_first_row(tmp_path: Path) -> None:
    """At 250 Hz sample k is at k/250 s, in whatever window it lies; the values are those of the file."""
    path = tmp_path / "log.csv"
    path.write_text("x\n" + "\n".join(f"{x!r}" for x in X.tolist()) + "\n")
    windows = list(open_log(path, {"a": "x"}, {"a": "rad"}, rate=250.0).windows(1000, 137))
    own = [(w.log["a"].t >= w.start) & (w.log["a"].t < w.end) for w in windows]
    assert np.concatenate([w.log["a"].t[k] for w, k in zip(windows, own)]) == pytest.approx(T, abs=1e-12)
    assert np.array_equal(np.concatenate([w.log["a"].values[k] for w, k in zip(windows, own)]), X)


def test_blanks_between_columns_are_refused_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("t   x\n" + "\n".join(f"{k / 10:.1f}   {k}" for k in range(20)) + "\n")
    assert load_log(path, COLUMNS, UNITS)["a"].values == pytest.approx(np.deg2rad(np.arange(20)))
    with pytest.raises(FileError, match=r"columns separated by blanks cannot be read in blocks\.\n.*commas"):
        open_log(path, COLUMNS, UNITS)


def test_a_part_that_is_no_text_is_named(parts: dict[str, LogPart], tmp_path: Path) -> None:
    path = tmp_path / "positions.txt"
    path.write_bytes(b"q1,q2\n1,2\n3,\xff\xfe\n")
    broken = {**parts, "positions": LogPart(path)}
    with pytest.raises(FileError, match=r"positions\.txt, it is not text in UTF-8"):
        load_spread(broken, {**PART_COLUMNS, "q.q1": ("positions/q1", "rad")})
