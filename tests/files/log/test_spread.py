from pathlib import Path

import numpy as np
import pytest

from veridyn.errors import DataError, FileError
from veridyn.files.log.spread import LogPart, load_spread

T = np.arange(30) / 100.0
Q = np.column_stack([np.sin(T), np.cos(T)])


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, LogPart]:
    np.savetxt(tmp_path / "t.txt", T)
    np.savetxt(tmp_path / "q.txt", np.degrees(Q).ravel())
    (tmp_path / "tau.csv").write_text("a;b\n" + "\n".join(f"{x};{-x}" for x in T) + "\n")
    return {
        "clock": LogPart(tmp_path / "t.txt", ("t",), time="t [s]"),
        "q": LogPart(tmp_path / "q.txt", ("q1", "q2"), interleaved=True),
        "tau": LogPart(tmp_path / "tau.csv"),
    }


COLUMNS = {"q.q1": ("q1", "deg"), "q.q2": ("q2", "deg"), "force.q1": ("b", "mNm")}


def test_parts_become_channels_on_the_clock_of_the_one_that_has_it(parts: dict[str, LogPart]) -> None:
    log = load_spread(parts, COLUMNS, "run")
    np.testing.assert_allclose(log["q.q1"].values, Q[:, 0], atol=1e-14)
    np.testing.assert_allclose(log["q.q2"].values, Q[:, 1], atol=1e-14)
    np.testing.assert_allclose(log["force.q1"].values, -1e-3 * T)
    assert log["force.q1"].unit == "N*m"
    assert all(c.t is log["q.q1"].t for c in log.channels.values())


def test_a_part_may_have_a_clock_of_its_own(parts: dict[str, LogPart], tmp_path: Path) -> None:
    (tmp_path / "slow.csv").write_text("ms,i\n" + "\n".join(f"{100 * k},{k}" for k in range(4)) + "\n")
    log = load_spread(
        parts | {"slow": LogPart(tmp_path / "slow.csv", time="ms [ms]")}, {**COLUMNS, "signal.i": ("i", "A")}
    )
    np.testing.assert_allclose(log["signal.i"].t, [0.0, 0.1, 0.2, 0.3])
    assert len(log["q.q1"]) == 30


def test_a_file_that_was_cut_off_is_noticed(parts: dict[str, LogPart], tmp_path: Path) -> None:
    np.savetxt(tmp_path / "q.txt", Q.ravel()[:-1])
    with pytest.raises(FileError, match=r"its 59 values are no whole number of samples of 2"):
        load_spread(parts, COLUMNS)
    np.savetxt(tmp_path / "q.txt", Q.ravel()[:-2])
    with pytest.raises(FileError, match=r"(?s)part 'q' is not as long as the clock.*30 samples, found 29"):
        load_spread(parts, COLUMNS)


def test_missing_columns_clocks_and_names_are_told(parts: dict[str, LogPart]) -> None:
    with pytest.raises(FileError, match=r"(?s)there is no column 'c'.*Known: t, q1, q2, b"):
        load_spread(parts, {**COLUMNS, "force.q2": ("c", "N*m")})
    with pytest.raises(FileError, match="no part has a clock"):
        load_spread({"q": parts["q"]}, {"q.q1": ("q1", "rad")})
    with pytest.raises(FileError, match="there is no column 'time' for the time"):
        load_spread(parts | {"clock": LogPart(parts["clock"].file, ("t",), time="time [s]")}, COLUMNS)
    with pytest.raises(FileError, match="needs the names of its values"):
        load_spread(parts | {"q": LogPart(parts["q"].file, interleaved=True)}, COLUMNS)
    with pytest.raises(DataError, match="unknown symbol 'Kg'"):
        load_spread(parts, {**COLUMNS, "force.q1": ("b", "Kg")})


def test_columns_of_one_name_in_several_parts_are_named_with_their_part(tmp_path: Path) -> None:
    for k, name in enumerate(("pos", "tau")):
        (tmp_path / f"{name}.csv").write_text("t,Joint_1\n" + "\n".join(f"{x},{k + x}" for x in T) + "\n")
    two = {name: LogPart(tmp_path / f"{name}.csv", time="t [s]") for name in ("pos", "tau")}
    with pytest.raises(FileError) as caught:
        load_spread(two, {"q.q1": ("Joint_1", "rad")})
    assert "several parts have a column 'Joint_1': pos, tau." in str(caught.value)
    assert "pos/Joint_1 or tau/Joint_1" in str(caught.value) and "Did you mean" not in str(caught.value)
    log = load_spread(two, {"q.q1": ("pos/Joint_1", "rad"), "force.q1": ("tau/Joint_1", "N*m")})
    np.testing.assert_allclose(log["force.q1"].values - log["q.q1"].values, 1.0)


def test_parts_without_a_clock_have_one_rate_or_one_each(parts: dict[str, LogPart]) -> None:
    without = {p: parts[p] for p in ("q", "tau")}
    log = load_spread(without, COLUMNS, "run", rate=100.0)
    np.testing.assert_allclose(log["q.q1"].t, T)
    own = load_spread({"q": without["q"], "tau": LogPart(without["tau"].file, rate=50.0)}, {"force.q1": ("b", "N*m")})
    np.testing.assert_allclose(own["force.q1"].t, 2.0 * T)
    with pytest.raises(DataError, match="this is no rate"):
        load_spread(without, COLUMNS, "run", rate=0.0)
