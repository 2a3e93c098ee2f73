"""What separates columns, where a header stands, names from several rows, and what is refused."""

import csv

import numpy as np
import pytest

from real_logs import folder
from veridyn.errors import FileError
from veridyn.files.log.layout import find_layout, motive_headers
from veridyn.files.log.load import load_log, survey


def write(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "mark"), [("a,b\n1,2\n", ","), ("a;b\n1;2\n", ";"), ("a\tb\n1\t2\n", "\t"), ("# a\n1\n", ",")]
)
def test_delimiter_is_found(tmp_path, text, mark):
    layout = find_layout(write(tmp_path, text), None, None)
    assert layout.delimiter == mark
    assert layout.has_header
    assert layout.headers[0] == "a"


@pytest.mark.parametrize(
    ("text", "names", "words"),
    [
        ("", None, "rows of numbers under a header, found an empty file"),
        ("t,x\n", None, "found a header alone"),
        ("", ["t"], "Expected rows of numbers, found an empty file"),
        ("1,2,3\n", ["t", "x"], r"\(line 1\): `columns` does not fit the file.\nExpected 3 names, found 2"),
    ],
)
def test_files_without_samples_or_with_other_columns(tmp_path, text, names, words):
    with pytest.raises(FileError, match=words.replace(r"\(line 1\)", "line 1")):
        find_layout(write(tmp_path, text), names, None)


@pytest.mark.parametrize(
    ("text", "mark", "skip"),
    [
        ("Recorder 3\nserial,17\n\nt,a,b\n0,1,2\n1,2,3\n2,2,3\n3,2,3\n", ",", 3),
        ("Recorder 3;;\nby N. N.\nt;a;b\n0,0;1,5;2\n0,1;2,5;3\n0,2;2,5;3\n", ";", 2),
        ("# a log\n# t a b\n0.0 1 2\n0.1 1 2\n0.2 1 2\n", " ", 1),
        ("name\nendheader\ntime\ta\tb\n0\t1\t2\n1\t1\t2\n2\t1\t2\n", "\t", 2),
        ("\n\nt,a,b\n0,1,2\n", ",", 2),
        ("three words here\nevery 5 ms\nt  a  b\n0  1  2\n1  1  2\n", " ", 2),
        ("t,a,b\nnan,,NA\n0,1,2\n", ",", 0),
    ],
)
def test_a_header_below_a_preamble(tmp_path, text, mark, skip):
    layout = find_layout(write(tmp_path, text), None, None, "," if mark == ";" else ".")
    assert (layout.delimiter, layout.skip, layout.before) == (mark, skip, skip + 1)
    assert layout.headers[0] in ("t", "time") and layout.headers[1:] == ("a", "b")


def test_a_row_of_units_below_the_header_becomes_part_of_the_names(tmp_path):
    layout = find_layout(write(tmp_path, "t;q1;tau1;n\ns;deg;[Nm];\n0;1;2;3\n"), None, None)
    assert layout.headers == ("t [s]", "q1 [deg]", "tau1 [Nm]", "n")
    assert layout.before == 2
    below = find_layout(write(tmp_path, "a plate\nFrame,Fx,My\n,N,N*mm\n1,2,3\n2,2,3\n3,2,3\n"), None, None)
    assert below.headers == ("Frame", "Fx [N]", "My [N*mm]") and below.before == 3


def test_lines_before_the_header_may_be_counted_by_the_user(tmp_path):
    path = write(tmp_path, "a,b\nt,x\n0,1\n")
    assert find_layout(path, None, None, skip=1).headers == ("t", "x")
    assert find_layout(path, ["t", "x"], None, skip=2).before == 2
    with pytest.raises(FileError, match="nothing behind the 3 lines that are skipped"):
        find_layout(path, None, None, skip=3)


def test_numbers_without_a_header_below_a_preamble(tmp_path):
    layout = find_layout(write(tmp_path, "the recorder\n0 1 2\n1 1 2\n2 1 2\n"), ["t", "a", "b"], None)
    assert (layout.delimiter, layout.before, layout.has_header) == (" ", 1, False)


BODY = """Format Version,1.23,Take Name,run 1,Capture Frame Rate,100.0,Rotation Type,Quaternion,Length Units,Millimeters
,
,,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Marker
,,arm,arm,arm,arm,arm,arm,arm,arm,arm:1
,,"A1","A1","A1","A1","A1","A1","A1","A1","B2"
,,Rotation,Rotation,Rotation,Rotation,Position,Position,Position,Mean Marker Error,Position
Frame,Time (Seconds),X,Y,Z,W,X,Y,Z,,X
0,0.00,0,0,0,1,100,200,300,0.1,5
1,0.01,0,0,0.1,0.99,110,200,300,0.1,
2,0.02,0,0,0.2,0.98,120,200,300,0.1,6
"""


def test_names_of_several_rows(tmp_path):
    (tmp_path / "take.csv").write_text(BODY)
    log = load_log(tmp_path / "take.csv", time="Time (Seconds)")
    np.testing.assert_allclose(log["arm.Position.X"].values, [0.1, 0.11, 0.12])
    assert log["arm.Position.X"].unit == "m" and log["arm.Rotation.W"].unit == "1"
    np.testing.assert_allclose(log["arm:1.Position.X"].values, [0.005, np.nan, 0.006])
    np.testing.assert_array_equal(log["arm.Rotation.Z"].t, [0.0, 0.01, 0.02])


def test_angles_and_words_before_the_rows():
    text = BODY.replace("Quaternion", "XYZ").replace(",,Rigid", ",Type,Rigid").replace(",,arm", ",Name,arm")
    found = motive_headers(list(csv.reader(text.replace(",,Rotation", ",,Rotation").splitlines())))
    assert found is not None
    assert found[1] == 6 and found[0][2] == "arm.Rotation.X [deg]" and found[0][6] == "arm.Position.X [mm]"
    assert motive_headers([["t", "x"]]) is None


def test_real_markers_and_force_plate():
    path = folder("boxlift_s1")
    markers, plate = (survey(path / f"S1_SquatLifting_{name}.csv") for name in ("Markers", "Forceplate"))
    assert len(markers.columns["BODY:KNEE.Position.Y"]) == 5405
    assert markers.units["BODY:KNEE.Position.Y"] == "m" and markers.units["Time (Seconds)"] == "s"
    assert len(plate.columns["Fz"]) == 5405 and plate.columns["Fz"][4] == 808.21875
    log = load_log(path / "S1_SquatLifting_Forceplate.csv", {"fz": "Fz"}, {"MocapTime": "s", "fz": "N"}, "MocapTime")
    assert np.median(log["fz"].values) > 700.0
