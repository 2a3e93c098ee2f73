"""Logs in and out of tables: round trips to the last bit, SI at the door, every fault at once by line and column."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.io import savemat

import veridyn.files.log.load as loading
from veridyn.errors import DataError, FileError
from veridyn.files.log.load import load_log, survey
from veridyn.files.log.tables import save_log
from veridyn.model.experiment import Experiment


def write(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def random_log():
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.5, 1.5, 200)) * 1e-3
    values = {"q1": rng.standard_normal(200), "gamma 1": 1e-7 * rng.standard_normal(200)}
    values["q1"][17] = np.nan
    return Experiment.from_arrays(t, values, {"q1": "rad", "gamma 1": "N*m"}, "random")


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.CSV", "log.txt"])
def test_round_trip_is_exact(tmp_path, name):
    log = random_log()
    path = save_log(log, tmp_path / name)
    back = load_log(path)
    assert back.names == log.names
    for key in log:
        assert np.array_equal(back[key].values, log[key].values, equal_nan=True)
        assert np.array_equal(back[key].t, log[key].t)
        assert back[key].unit == log[key].unit
    assert back.name == name
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_units_in_headers_are_converted_at_the_door(tmp_path):
    path = write(tmp_path, "t [ms],speed [km/h],yaw rate [deg/s],gear [1]\n0,36,180,1\n10,72,90,2\n")
    log = load_log(path, name="lap 1")
    assert log.name == "lap 1"
    assert log["speed"].t.tolist() == [0.0, 0.01]
    assert log["speed"].values == pytest.approx([10.0, 20.0])
    assert log["yaw rate"].values == pytest.approx([np.pi, np.pi / 2])
    assert [log[n].unit for n in log] == ["m/s", "rad/s", "1"]


def test_units_by_argument_come_before_the_header(tmp_path):
    path = write(tmp_path, "Time_s;a [g];b\n0;1;2\n1;1;2\n")
    log = load_log(path, units={"Time_s": "s", "a": "g0", "b": "mm"}, time="Time_s")
    assert log["a"].values == pytest.approx([9.80665] * 2)
    assert log["b"].values == pytest.approx([0.002] * 2)


def test_a_file_without_header(tmp_path):
    path = write(tmp_path, "0,1,x,2\n0.1,3,y,4\n")
    log = load_log(path, columns=["t", "q1 [deg]", "", "i1"], units={"t": "s", "i1": "A"})
    assert log.names == ("q1", "i1")
    assert log["q1"].values == pytest.approx(np.radians([1.0, 3.0]))
    assert log["i1"].values.tolist() == [2.0, 4.0]


def test_columns_are_picked_and_renamed(tmp_path):
    path = write(tmp_path, "stamp [s],pot_fl,driver,pot_fr\n0,10,Ann,20\n1,11,Ann,21\n")
    log = load_log(path, {"t": "stamp", "z1": "pot_fl", "z2": "pot_fr"}, {"z1": "mm", "pot_fr": "cm"})
    assert log["z1"].values == pytest.approx([0.010, 0.011])
    assert log["z2"].values == pytest.approx([0.20, 0.21])
    also = load_log(path, {"z1": "pot_fl"}, {"z1": "mm"}, time="stamp")
    assert also["z1"].t.tolist() == [0.0, 1.0]


def test_parquet_columns_and_integers(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"t": [0, 1000], "n": [600, 1200], "label": ["a", "b"]}), path)
    log = load_log(path, {"w": "n"}, {"t": "ms", "w": "rpm"})
    assert log["w"].t.tolist() == [0.0, 1.0]
    assert log["w"].values == pytest.approx([20 * np.pi, 40 * np.pi])
    with pytest.raises(FileError, match=r"column 'label': the column does not hold numbers.\nFound string"):
        load_log(path, units={"t": "s", "n": "1", "label": "1"})


def test_a_missing_file_names_its_neighbours(tmp_path):
    write(tmp_path, "t [s]\n0\n", "run1.csv")
    with pytest.raises(FileError, match=r"run2.csv, it does not exist .*\nKnown: run1.csv. Did you mean 'run1.csv'"):
        load_log(tmp_path / "run2.csv")
    with pytest.raises(FileError, match=r"There is no folder"):
        load_log(tmp_path / "nowhere" / "run2.csv")
    with pytest.raises(FileError, match=r"not a file"):
        load_log(tmp_path)


def test_unreadable_files(tmp_path):
    binary = tmp_path / "log.csv"
    binary.write_bytes(b"t [s],x [m]\n0,\xff\xfe\x00\x01\n")
    with pytest.raises(FileError, match=r"not text in UTF-8"):
        load_log(binary)
    binary.write_bytes(b"\xff\xfe\x00\x01" * 10)
    with pytest.raises(FileError, match=r"not text in UTF-8"):
        load_log(binary)
    cut = tmp_path / "log.parquet"
    save_log(random_log(), cut)
    cut.write_bytes(cut.read_bytes()[:-20])
    with pytest.raises(FileError, match=r"it cannot be read"):
        load_log(cut)


def test_an_empty_file_and_a_header_alone(tmp_path):
    with pytest.raises(FileError, match=r"it holds no samples.\n.*an empty file"):
        load_log(write(tmp_path, ""))
    with pytest.raises(FileError, match=r"a header alone"):
        load_log(write(tmp_path, "t [s],x [m]\n"))
    pq.write_table(pa.table({"t [s]": pa.array([], pa.float64())}), tmp_path / "log.parquet")
    with pytest.raises(FileError, match=r"it holds no samples"):
        load_log(tmp_path / "log.parquet")


def test_a_truncated_last_row_is_named_by_its_line(tmp_path):
    path = write(tmp_path, "t [s],x [m],y [m]\n0,1,2\n1,2,3\n2,3")
    with pytest.raises(
        FileError, match=r"line 4: the row has another length than the first.\nExpected 3 cells, found 2"
    ):
        load_log(path)


def test_a_cell_that_is_no_number_is_named_by_line_and_column(tmp_path):
    path = write(tmp_path, "t [s],x [m]\n0,1\n1,overflow\n")
    with pytest.raises(FileError, match=r"column 'x \[m\]' \(line 3\): the cell is not a number.\nFound 'overflow'"):
        load_log(path)


def test_a_missing_column_is_answered_with_the_nearest(tmp_path):
    path = write(tmp_path, "t [s],wheel_fl [mm]\n0,1\n")
    with pytest.raises(FileError, match=r"there is no column 'wheel_fr'.\n.*Did you mean 'wheel_fl"):
        load_log(path, {"z1": "wheel_fr"}, {"z1": "mm"})
    with pytest.raises(
        FileError,
        match=r"for the time.\nName it with time=, or give the rate of a log without a clock with rate=. Known: t ",
    ):
        load_log(path, time="time")


def test_missing_units_are_all_named(tmp_path):
    path = write(tmp_path, "t,x,y [m]\n0,1,2\n")
    with pytest.raises(DataError) as caught:
        load_log(path)
    assert [f.where for f in caught.value.faults] == ["column 't'", "column 'x'"]
    assert "it has no unit.\nExpected units={'x': '…'} or a header 'x [unit]'. Write '1'" in str(caught.value)


def test_wrong_units_and_names_in_units(tmp_path):
    path = write(tmp_path, "t [m],x [mmm],y [m]\n0,1,2\n")
    with pytest.raises(DataError) as caught:
        load_log(path, units={"yy": "m"})
    text = str(caught.value)
    assert "column 't': it is the time.\nExpected a unit of time, such as 's' or 'ms', found 'm'." in text
    assert "column 'x': the unit 'mmm' holds an unknown symbol" in text
    assert "`units` names 'yy', which is no column.\nKnown: t, x, y. Did you mean 'y'?" in text


def test_two_columns_of_one_name(tmp_path):
    with pytest.raises(FileError, match=r"column 'x': two columns have one name"):
        load_log(write(tmp_path, "t,x,x\n0,1,2\n"), units={"t": "s", "x": "m"})
    with pytest.raises(FileError, match=r"column 'x \[mm\]': two columns have one name"):
        load_log(write(tmp_path, "t [s],x [m],x [mm]\n0,1,2\n"))


def test_everything_wrong_is_said_at_once(tmp_path):
    path = write(tmp_path, "t [s],x,y [parsec],y2 [m]\n0,1,2,3\n1,a,3\n2,b,4,5\n")
    with pytest.raises(FileError) as caught:
        load_log(path, {"x": "x", "y": "y", "z": "y3"})
    text = str(caught.value)
    for words in ("there is no column 'y3'", "line 3", "(line 4)", "it has no unit", "unknown symbol 'parsec'"):
        assert words in text
    assert len(caught.value.faults) == 5


def test_columns_as_one_word_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"argument 'columns': .*\n.*a list of names, a mapping .*, found the text 't'"):
        load_log(write(tmp_path, "0\n"), columns="t")


def test_a_table_without_a_clock_has_a_rate(tmp_path):
    path = write(tmp_path, "q1 [deg],tau1 [Nm]\n0,1\n90,2\n180,3\n")
    log = load_log(path, {"q.q1": "q1", "force.q1": "tau1"}, rate=200.0)
    np.testing.assert_array_equal(log["q.q1"].t, [0.0, 0.005, 0.01])
    np.testing.assert_allclose(log["q.q1"].values, [0.0, np.pi / 2, np.pi])
    np.savez(tmp_path / "a.npz", q=np.zeros((4, 2)), note=np.zeros(7))
    assert load_log(tmp_path / "a.npz", {"q": "q"}, {"q": "rad"}, rate=100.0)["q.1"].t[-1] == 0.03


def test_a_rate_that_is_none_or_stands_beside_a_clock_is_refused(tmp_path):
    path = write(tmp_path, "q1 [deg]\n0\n1\n")
    for rate in (0.0, -1.0, float("nan")):
        with pytest.raises(DataError, match="this is no rate"):
            load_log(path, {"q": "q1"}, rate=rate)
    with pytest.raises(DataError, match="a column of times or a rate, not both"):
        load_log(path, {"q": "q1"}, time="stamp", rate=10.0)
    np.savez(tmp_path / "a.npz", q=np.zeros(4), p=np.zeros(7))
    with pytest.raises(DataError, match=r"(?s)without a clock all arrays are as long.*found q 4, p 7"):
        load_log(tmp_path / "a.npz", {"q": "q", "p": "p"}, {"q": "rad", "p": "rad"}, rate=100.0)


def test_the_clock_is_found_beside_the_columns_that_are_picked(tmp_path):
    """By the same names as without `columns`, whichever unit stands in its header; units={"t": …} means it as well."""
    log = load_log(write(tmp_path, "time [s],angle [deg]\n0,0\n1,180\n"), {"q.hinge": "angle"})
    assert log.names == ("q.hinge",)
    np.testing.assert_allclose(log["q.hinge"].t, [0.0, 1.0])
    log = load_log(write(tmp_path, "time,angle [deg]\n0,0\n1,180\n"), {"q.hinge": "angle"}, {"t": "ms"})
    np.testing.assert_allclose(log["q.hinge"].t, [0.0, 1e-3])


def test_one_missing_column_is_one_fault(tmp_path):
    path = write(tmp_path, "time [s],angle [deg]\n0,0\n1,180\n")
    with pytest.raises(FileError, match=r"there is no column 'angel'.\n.*Did you mean 'angle") as caught:
        load_log(path, {"q.hinge": "angel"}, {"t": "s", "angel": "deg"})
    assert len(caught.value.faults) == 1
    path = write(tmp_path, "zeit,angle [deg]\n0,0\n1,180\n")
    with pytest.raises(FileError, match=r"no column 't' for the time.\n.*write time='zeit'") as caught:
        load_log(path, units={"t": "s"})
    assert len(caught.value.faults) == 1


def test_a_header_is_counted_named_or_absent(tmp_path):
    units = {"t": "s", "q.hinge": "deg"}
    bare = write(tmp_path, "0,0,7\n1,180,7\n")
    by_names = load_log(bare, header=["t", "q.hinge", ""], units=units)
    picked = load_log(bare, {"q.hinge": "angle"}, units, header=["t", "angle", "x"])
    numbered = load_log(bare, {"q.hinge": "c2"}, {"c1": "s", "q.hinge": "deg"}, "c1", header=False)
    for log in (by_names, picked, numbered):
        assert log.names == ("q.hinge",)
        np.testing.assert_allclose(log["q.hinge"].values, [0.0, np.pi])
    above = write(tmp_path, "made,by\n1,2\nt [s],q.hinge [deg]\n0,0\n1,180\n")
    assert load_log(above, header=2).names == load_log(above, skip=2).names == ("q.hinge",)
    with pytest.raises(DataError, match=r"`header` and `skip` differ"):
        load_log(above, header=2, skip=1)
    with pytest.raises(DataError, match=r"a list of columns names those of a file without a header row"):
        load_log(bare, ["t", "q.hinge", ""], units, header=["t", "q.hinge", ""])


def test_a_log_that_its_recorder_still_writes_is_refused(tmp_path, monkeypatch):
    """Its last line may end in half a number: 1.25 as 1.2."""
    path = write(tmp_path, "t [s],x [m]\n0,1\n0.1,1.2")
    read = loading.read_columns

    def recorded_meanwhile(file, *more):
        found = read(file, *more)
        with path.open("a", encoding="utf-8") as stream:
            stream.write("5\n")
        return found

    monkeypatch.setattr(loading, "read_columns", recorded_meanwhile)
    with pytest.raises(FileError, match=r"it changed while it was read\.\n.*found 23 bytes, then 25") as caught:
        load_log(path)
    assert "veridyn live follows a log that grows" in str(caught.value)


@pytest.mark.parametrize("name", ["drive.mf4", "drive.bag", "drive.mcap"])
def test_a_log_whose_channels_have_clocks_takes_no_rate(tmp_path, name):
    with pytest.raises(DataError, match=r"its channels have clocks of their own, so it has no rate\."):
        load_log(write(tmp_path, "not read", name), rate=100.0)


def test_a_header_gives_names_and_units(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t [ms],q1 [deg],note\n0,1,x\n10,2,y\n")
    seen = survey(tmp_path / "a.csv")
    assert seen.has_header
    assert list(seen.columns) == ["t", "q1"]  # words are no numbers
    assert seen.units == {"t": "ms", "q1": "deg"}
    assert seen.columns["q1"].tolist() == [1.0, 2.0]


def test_a_table_without_a_header_has_columns_by_number(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0;1.5;2\n1;2.5;3\n")
    seen = survey(tmp_path / "a.txt")
    assert not seen.has_header
    assert list(seen.columns) == ["c1", "c2", "c3"]


def test_arrays_and_parquet(tmp_path: Path) -> None:
    t, q = np.arange(5.0), np.arange(10.0).reshape(5, 2)
    np.savez(tmp_path / "a.npz", t=t, positions=q, rate=100.0)
    assert list(survey(tmp_path / "a.npz").columns) == ["t", "positions.0", "positions.1"]
    savemat(tmp_path / "a.mat", {"t": t, "q": q})
    seen = survey(tmp_path / "a.mat")
    np.testing.assert_array_equal(seen.columns["q.1"], q[:, 1])
    pq.write_table(pa.table({"t [s]": t, "v [m/s]": t}), tmp_path / "a.parquet")
    assert survey(tmp_path / "a.parquet").units == {"t": "s", "v": "m/s"}


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        survey(tmp_path / "b.csv")
    (tmp_path / "b.npz").write_bytes(b"no archive")
    with pytest.raises(FileError, match="cannot be read"):
        survey(tmp_path / "b.npz")


def test_blanks_semicolons_decimal_commas_and_units_in_round_brackets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0.0 1.5 2\n0.1 2.5 3\n")
    assert list(survey(tmp_path / "a.txt").columns) == ["c1", "c2", "c3"]
    (tmp_path / "b.txt").write_text("t;v(m/s);n (many)\n0,0;1,5;2\n0,1;2,5;3\n")
    seen = survey(tmp_path / "b.txt")
    assert seen.decimal == "," and seen.columns["v(m/s)"].tolist() == [1.5, 2.5]
    assert seen.units == {"v(m/s)": "m/s"}
    (tmp_path / "c.txt").write_text("Recorder\ntimestamp actual_q_0\n0.002 1\n0.004 2\n0.006 2\n")
    assert list(survey(tmp_path / "c.txt").columns) == ["timestamp", "actual_q_0"]


def test_bytes_that_are_no_text_and_cells_without_end_are_told(tmp_path: Path) -> None:
    for damaged, words in (
        (b"\xff\xfe\x00t,a\n", "not text in UTF-8"),
        (b"t,a\n" + b"9" * 200_000 + b",1\n", "cannot be read"),
    ):
        (tmp_path / "a.csv").write_bytes(damaged)
        with pytest.raises(FileError, match=words):
            survey(tmp_path / "a.csv")
