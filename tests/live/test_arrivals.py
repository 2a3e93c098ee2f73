"""Samples over UDP, a WebSocket and a file that grows; floods, broken lines and ports that are taken."""

import socket
import threading
from pathlib import Path
from threading import Event

import pytest

from veridyn.errors import DataError
from veridyn.live.arrivals import Datagrams, GrowingFile, Inbox, Messages, decoded
from veridyn.live.columns import SampleColumns
from veridyn.live.sample import Sample, Trouble

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
