"""Records to samples: units, names, and everything that can be wrong with a packet."""

import json
from pathlib import Path

import numpy as np
import pytest

from veridyn.live.columns import LONGEST_RECORD, columns_of
from veridyn.live.sample import Sample, Trouble
from veridyn.studies.config.study import load_study

STUDY = """
veridyn: 1
kind: observe
model: {file: "veridyn:crane.yaml"}
log:
  file: none.csv
  time: time [ms]
  columns: {travel: "trolley [mm]", tilt: {column: angle, unit: deg, times: -1}, motor: "push"}
"""


@pytest.fixture
def columns(tmp_path: Path):
    (tmp_path / "study.yaml").write_text(STUDY)
    loaded = load_study(tmp_path / "study.yaml")
    return columns_of(loaded, loaded.study.log, ("motor",))


def only(found):
    assert len(found) == 1
    return found[0]


def test_a_record_is_turned_into_si(columns):
    sample = only(columns.read('{"time": 250, "trolley": 1500, "angle": 90, "push": 3}', 7.0))
    assert isinstance(sample, Sample) and sample.t == pytest.approx(0.25) and sample.arrived == 7.0
    assert sample.values == pytest.approx({"travel": 1.5, "tilt": -np.pi / 2})
    assert sample.inputs == {"motor": 3.0}


def test_a_header_gives_the_units_that_the_study_leaves_out(columns):
    sample = only(
        columns.with_header(["time", "push [kN]", "trolley [km]"]).sample({"time": 0, "push": 2, "trolley": 1}, 0.0)
    )
    assert sample.inputs == {"motor": 2000.0} and sample.values["travel"] == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("packet", "key"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        ("[1, 2]", "not JSON"),
        ("[" * 5000, "not JSON"),
        ('{"trolley": 1}', "no time"),
        ('{"time": "soon"}', "no time"),
        ('{"time": NaN}', "no time"),
        ('{"time": 1e999}', "no time"),
        ('{"time": true}', "no time"),
        ('{"time": 1, "x": "' + "a" * LONGEST_RECORD + '"}', "too long"),
    ],
)
def test_a_packet_that_is_no_sample_is_named(columns, packet, key):
    trouble = only(columns.read(packet, 0.0))
    assert isinstance(trouble, Trouble) and trouble.key == key and len(trouble.text) < 200


def test_what_is_no_number_is_a_reading_that_failed_and_an_unknown_name_is_told_once(columns):
    record = json.dumps({"time": 0, "trolley": None, "angle": "x", "push": float("nan"), "troley": 4})
    push, told, sample = columns.read(record, 0.0)
    assert "Did you mean 'trolley'?" in told.text and push.key == "input push"
    assert np.isnan([sample.values["travel"], sample.values["tilt"]]).all() and not sample.inputs
    assert len(columns.read(record, 0.0)) == 2


def test_a_token_is_asked_for(columns, tmp_path: Path):
    loaded = load_study(tmp_path / "study.yaml")
    guarded = columns_of(loaded, loaded.study.log, (), "a-word")
    assert only(guarded.read('{"time": 0, "token": "another"}', 0.0)).key == "token"
    assert only(guarded.read('{"time": 0}', 0.0)).key == "token"
    assert isinstance(only(guarded.read('{"time": 0, "token": "a-word"}', 0.0)), Sample)
