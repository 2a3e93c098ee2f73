"""Samples over UDP, a WebSocket and a file that grows; floods, broken lines and ports that are taken."""

import json
import socket
import threading
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.live.arrivals import (
    LONGEST_RECORD,
    Datagrams,
    GrowingFile,
    Inbox,
    Messages,
    SampleColumns,
    columns_of,
    decoded,
)
from veridyn.live.tracker import Sample, Trouble
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


COLUMNS = SampleColumns(("t", 1.0), {"x": ("x", 2.0, 0.0)})


def collected(source, count: int, meanwhile) -> list:
    """The first `count` items of a source; `meanwhile` runs beside it."""
    stop, found = Event(), []
    sender = threading.Thread(target=meanwhile)
    items = source.samples(stop)
    sender.start()
    for item in items:
        found.append(item)
        if len(found) == count:
            stop.set()
            break
    items.close()
    sender.join()
    return found


def test_datagrams_become_samples_in_their_order():
    source = Datagrams(COLUMNS, 0)

    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            for k in range(20):
                out.sendto(b'{"t": %d, "x": %d}' % (k, k), ("127.0.0.1", source.port))
            out.sendto(b"\x00nonsense", ("127.0.0.1", source.port))

    found = collected(source, 21, send)
    assert [(s.t, s.values["x"]) for s in found[:20]] == [(float(k), 2.0 * k) for k in range(20)]
    assert isinstance(found[20], Trouble) and "no JSON" in found[20].text


def test_a_taken_port_is_named():
    first = Datagrams(COLUMNS, 0)
    try:
        with pytest.raises(DataError, match=f"UDP, 127.0.0.1:{first.port}: this port cannot be listened on"):
            Datagrams(COLUMNS, first.port)
    finally:
        first._socket.close()


def test_messages_of_a_websocket_become_samples_and_need_the_token_where_there_is_one():
    pytest.importorskip("websockets", reason="websockets (the extra 'live')")
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    guarded = SampleColumns(COLUMNS.time, COLUMNS.columns, token="a-word")
    source, refused = Messages(guarded, 0), []

    def send():
        for query in ("", "?token=other"):
            with pytest.raises(InvalidStatus) as status:
                connect(f"ws://127.0.0.1:{source.port}/{query}")
            refused.append(status.value.response.status_code)
        with connect(f"ws://127.0.0.1:{source.port}/?token=a-word") as out:
            for k in range(5):
                out.send(f'{{"t": {k}, "x": 1}}')
            out.send("{}")
            out.send(b'{"t": 9, "x": 3}')

    found = collected(source, 7, send)
    assert refused == [403, 403]
    assert [s.t for s in found[:5]] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert found[5].key == "no time" and found[6].values == {"x": 6.0}


def test_a_flood_leaves_the_newest_records_and_counts_the_others():
    inbox, stop = Inbox(10), Event()
    for k in range(1000):
        inbox.put(f'{{"t": {k}}}', 0.0)
    items = decoded(inbox, COLUMNS, stop)
    first = [next(items) for _ in range(11)]
    assert first[0] == Trouble("flood", "records come faster than they are used: 990 were left out so far.")
    assert [s.t for s in first[1:]] == [float(k) for k in range(990, 1000)]


def test_a_file_that_grows_is_followed_line_by_line(tmp_path: Path):
    file = tmp_path / "run.csv"
    file.write_text("t,x [mm]\n0,1\n1,2\n2")
    steps = iter(["5,4\n3,nan\n", "1,2,3\n\n4,5\n", None])

    def grow(_):
        more = next(steps)
        if more is None:
            file.write_text("t,x\n7,8\n")  # a new recording over the old one
        else:
            with file.open("a") as out:
                out.write(more)

    columns = SampleColumns(("t", 1.0), {"x": ("x", 1.0, 0.0)}, unitless=frozenset({"x"}))
    items = GrowingFile(columns, file, wait=grow).samples(Event())
    found = [next(items) for _ in range(8)]
    kinds = [f"{item.t:g}" if isinstance(item, Sample) else item.key for item in found]
    assert kinds == ["0", "1", "25", "3", "cells", "4", "file", "7"]
    assert found[0].values["x"] == pytest.approx(1e-3) and found[7].values["x"] == 8.0


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(DataError, match="there is no such file to follow"):
        GrowingFile(COLUMNS, tmp_path / "none.csv")
