"""OptiTrack's tables: names from several rows, and the real ones of a force plate and of markers."""

import csv

import numpy as np

from real_logs import folder
from veridyn.files.log.load import load_log
from veridyn.files.log.motive import motive_headers
from veridyn.files.log.survey import survey

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
    assert found.row == 6 and found.headers[2] == "arm.Rotation.X [deg]" and found.headers[6] == "arm.Position.X [mm]"
    assert motive_headers([["t", "x"]]) is None


def test_real_markers_and_force_plate():
    path = folder("boxlift_s1")
    markers, plate = (survey(path / f"S1_SquatLifting_{name}.csv") for name in ("Markers", "Forceplate"))
    assert len(markers.columns["BODY:KNEE.Position.Y"]) == 5405
    assert markers.units["BODY:KNEE.Position.Y"] == "m" and markers.units["Time (Seconds)"] == "s"
    assert len(plate.columns["Fz"]) == 5405 and plate.columns["Fz"][4] == 808.21875
    log = load_log(path / "S1_SquatLifting_Forceplate.csv", {"fz": "Fz"}, {"MocapTime": "s", "fz": "N"}, "MocapTime")
    assert np.median(log["fz"].values) > 700.0
