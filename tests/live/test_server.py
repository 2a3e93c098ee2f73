"""The live page in a real browser and its server: order, loss, recovery, and requests that are refused."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from live.chromium import Chromium
from veridyn.errors import DataError
from veridyn.live.server import LiveServer
from veridyn.live.session import Feed, Session
from veridyn.live.tracker import Layout, Row, Sample, Shown, Tracked, Trouble
from veridyn.report import measured

LAYOUT = Layout(
    "a <test> machine",
    "observer",
    (Shown("x", "m", "states"), Shown("v", "m/s", "virtual sensors")),
    (("encoder", "rad"), ("gps.x", "m")),
    {"encoder": ("encoder",), "gps": ("gps.x",)},
    ((0, 1),),
)


class Echo:
    """Shows what it is given: x is the reading itself."""

    layout = LAYOUT

    def __init__(self) -> None:
        self.off: set[str] = set()

    def take(self, sample: Sample) -> Tracked:
        x = sample.values["encoder"]
        codes = [0, 1 if "gps" in self.off else 0]
        row = Row(sample.t, [x, -x], [0.1, np.nan], sample.arrived, [0.2, -0.1], [0.1, 0.1], codes, 1.0)
        return Tracked(row, np.array([x]), (Trouble("nan", "the encoder fails"),) if np.isnan(x) else ())

    def points(self, pose):
        return np.array([[0.0, 0.0, 0.0], [1.0, 0.0, float(pose[0])]])

    def switch(self, sensor: str, on: bool) -> None:
        self.off = self.off - {sensor} if on else self.off | {sensor}

    def restart(self) -> None:
        raise AssertionError


class Handed:
    """Samples that a test hands over one by one."""

    words = "a test"

    def __init__(self) -> None:
        self._items: deque = deque()
        self._there = threading.Condition()

    def put(self, *items) -> None:
        with self._there:
            self._items.extend(items)
            self._there.notify()

    def samples(self, stop: Event) -> Iterator:
        while True:
            with self._there:
                self._there.wait_for(lambda: self._items or stop.is_set(), 0.2)
                if stop.is_set():
                    return
                ready = list(self._items)
                self._items.clear()
            yield from ready


class Running:
    """A session on a server, with its thread."""

    def __init__(self, port: int = 0, **settings) -> None:
        self.source = Handed()
        self.session = Session(Echo(), self.source, save=lambda: "runs/test-001")
        self.server = LiveServer(self.session, port, **settings)
        self.thread = threading.Thread(target=self.session.run)
        self.thread.start()

    def samples(self, first: int, count: int) -> None:
        self.source.put(*(Sample(0.01 * k, {"encoder": np.sin(0.1 * k)}, 0.0) for k in range(first, first + count)))

    def stop(self) -> None:
        self.session.stop()
        self.thread.join()
        self.server.stop()


@pytest.fixture
def running():
    made = Running()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Chromium(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()


def refusal(call) -> tuple[int, str]:
    """The status and the words with which a request is refused."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        call()
    with refused.value as answer:
        return answer.code, answer.read().decode()


def post(address: str, command: object, kind: str = "application/json", host: str | None = None):
    url, _, query = address.partition("?")
    headers = {"Content-Type": kind} | ({"Host": host} if host else {})
    request = urllib.request.Request(f"{url}command?{query}", json.dumps(command).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def test_in_a_browser_a_pace_that_the_menu_lacks_is_shown_and_long_delays_are_in_seconds(running, browser):
    browser.open(running.server.address)
    browser.until("live.layout !== null && live.state.source !== undefined")
    menu = "document.querySelector('#pace')"
    found = browser.evaluate(f"choose({menu}, 10), [{menu}.value, {menu}.selectedOptions[0].textContent]")
    assert found == ["10", "10"]
    values = browser.evaluate(f"[...{menu}.options].map((o) => +o.value)")
    assert values == sorted(values) and values.count(10) == 1
    assert browser.evaluate(f"choose({menu}, 10), choose({menu}, 2), {menu}.value") == "2"
    assert browser.evaluate("[lasting(12.3), lasting(33500)]") == ["12\u00a0ms", "33.5\u00a0s"]


def test_in_a_browser_values_have_the_digits_of_their_deviations_as_reports_do(running, browser):
    browser.open(running.server.address)
    pairs = [
        (0.61828, 0.0011),
        (-0.00022909, 0.0023),
        (-5.99971, 0.0000431),
        (-7.7972, 9.3),
        (12345.6, 321.0),
        (-3.2, 99.6),
        (0.0, 0.5),
    ]
    expected = [" ± ".join(measured(value, sigma)) for value, sigma in pairs]
    assert browser.evaluate(f"{json.dumps(pairs)}.map(([v, d]) => measured(v, d))") == expected
    assert browser.evaluate("[short(-0.25), short(null), measured(2.5, null)]") == ["−0.25", "–", "2.5 ± –"]


def test_in_a_browser_rows_come_once_in_order_and_with_every_digit(running, browser):
    browser.open(running.server.address)
    browser.until("live.layout !== null")
    running.samples(0, 400)
    browser.until("live.last === 400")
    found = browser.evaluate("live.rows.map((row) => [row[0], row[1], row[3][0]])")
    assert found == [[k + 1, 0.01 * k, float(np.sin(0.1 * k))] for k in range(400)]
    assert browser.evaluate("[live.missed, live.repeated, live.lost]") == [0, 0, 0]
    shown = "+document.querySelector('output[data-name=\"x\"]').dataset.value"
    browser.until(f"{shown} === {float(np.sin(0.1 * 399))!r}")
    assert browser.evaluate("document.title") == "a <test> machine: live"
    drawn = browser.evaluate("live.pose[5]")  # of one of the rows: there are fewer pictures than rows
    assert np.abs(np.sin(0.1 * np.arange(400)) - drawn).min() < 1e-5


def test_in_a_browser_the_page_recovers_after_the_connection_was_cut(running, browser):
    browser.open(running.server.address)
    running.samples(0, 30)
    browser.until("live.last === 30")
    before = browser.evaluate("live.connections")
    assert running.server.drop_pages() == 1
    running.samples(30, 30)  # while it is away
    browser.until(f"live.connections > {before} && live.last === 60")
    assert browser.evaluate("[live.missed, live.repeated, live.lost, live.rows.length]") == [0, 0, 0, 60]
    browser.until("document.querySelector('#connection').textContent === 'connected'")


def test_in_a_browser_the_page_recovers_when_the_program_is_started_again(browser):
    first = Running()
    port = first.server.port
    browser.open(first.server.address)
    first.samples(0, 20)
    browser.until("live.last === 20")
    run = browser.evaluate("live.run")
    first.stop()
    browser.until("document.querySelector('#connection').className === 'lost'")
    second = Running(port)
    try:
        second.samples(0, 5)
        browser.until(f"live.run !== '{run}' && live.last === 5")
        assert browser.evaluate("[live.rows.length, live.missed]") == [5, 0]
    finally:
        second.stop()


def test_in_a_browser_a_button_switches_a_sensor_off_and_on_and_alarms_are_listed(running, browser):
    browser.open(running.server.address)
    running.samples(0, 5)
    browser.until("live.last === 5")
    browser.evaluate("document.querySelector('[data-sensor=gps]').click()")
    browser.until("live.state.off.includes('gps')")
    assert running.session.tracker.off == {"gps"}
    running.samples(5, 1)
    browser.until("live.last === 6 && live.rows[5][7][1] === 1")
    browser.evaluate("document.querySelector('[data-sensor=gps]').click()")
    browser.until("live.state.off.length === 0")
    assert running.session.tracker.off == set()
    running.source.put(Sample(0.07, {"encoder": np.nan}, 0.0), Trouble("x", "a packet is no JSON object"))
    browser.until("document.querySelector('#alarms ol').textContent.includes('no JSON')")
    text = browser.evaluate("document.querySelector('#alarms ol').textContent")
    assert "'gps' is switched off." in text and "the encoder fails" in text
    browser.evaluate("document.querySelector('#save').click()")
    browser.until("document.querySelector('#answer').textContent === 'runs/test-001'")


def test_in_a_browser_an_answer_that_comes_late_leaves_a_newer_one(running, browser, monkeypatch):
    answered, command = Event(), running.session.command

    def late(wanted):
        done = command(wanted)
        return done if wanted["do"] == "save" or answered.wait(60.0) else {}

    monkeypatch.setattr(running.session, "command", late)
    browser.open(running.server.address)
    running.samples(0, 1)
    browser.until("live.last === 1")
    browser.evaluate("document.querySelector('[data-sensor=gps]').click()")
    browser.until("live.state.off.includes('gps')")
    browser.evaluate("document.querySelector('#save').click()")
    browser.until("document.querySelector('#answer').textContent === 'runs/test-001'")
    answered.set()
    commands = "performance.getEntriesByType('resource').filter((e) => e.name.includes('command'))"
    browser.until(f"{commands}.length === 2")  # of those that have ended
    browser.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert browser.evaluate("document.querySelector('#answer').textContent") == "runs/test-001"


def test_in_a_browser_a_flood_is_counted_and_the_newest_rows_are_shown(browser):
    made = Running()
    made.session.feed = Feed(LAYOUT, keep=50)
    try:
        browser.open(made.server.address)
        browser.until("live.layout !== null")
        made.samples(0, 6000)  # as many as the page keeps, so that its first row is the first that came
        browser.until("live.last === 6000")
        rows = browser.evaluate("live.rows.map((row) => row[0])")
        assert rows == sorted(set(rows)) and rows[-1] == 6000
        received, missed = browser.evaluate("[live.received, live.missed]")
        assert received + missed == rows[-1] - rows[0] + 1
    finally:
        made.stop()


def test_a_reader_that_takes_nothing_does_not_hold_up_the_run(running):
    with socket.create_connection(("127.0.0.1", running.server.port)) as stuck:
        stuck.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stuck.recv(1)
        reader = running.session.feed.reader()
        running.samples(0, 50_000)
        while running.session.feed.last < 50_000:
            reader.take()
        assert running.session.feed.last == 50_000


def test_another_host_needs_the_token(tmp_path: Path):
    made = Running(host="0.0.0.0", token="a-word")
    try:
        assert made.server.address.endswith("/?token=a-word")
        own = f"http://127.0.0.1:{made.server.port}/"
        for query in ("", "?token=wrong", "?token=a-wor"):
            code, said = refusal(lambda query=query: urllib.request.urlopen(own + query))
            assert code == 403 and "token" in said
        with urllib.request.urlopen(f"{own}?token=a-word") as page:
            assert b"a &lt;test&gt; machine" in page.read()
        assert refusal(lambda: post(own, {"do": "save"}))[0] == 403
        assert post(f"{own}?token=a-word", {"do": "save"}) == {"done": "save", "where": "runs/test-001"}
    finally:
        made.stop()


def test_without_a_token_only_this_computer_is_answered(running):
    request = urllib.request.Request(running.server.address, headers={"Host": "evil.example"})
    assert refusal(lambda: urllib.request.urlopen(request))[0] == 403
    as_form = refusal(lambda: post(running.server.address, {"do": "stop"}, "text/plain"))
    assert as_form[0] == 400  # a form of another page can send no JSON
    assert not running.session.stopped.is_set()


def answer_to(port: int, *lines: str) -> tuple[int, str]:
    """The status and all of the answer to a request, written as it is."""
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as out:
        out.sendall("\r\n".join((*lines, "Connection: close", "", "")).encode("latin-1"))
        answer = b""
        while part := out.recv(65_536):
            answer += part
    text = answer.decode()
    return int(text.split()[1]), text


def test_a_malformed_request_is_answered_and_another_origin_is_refused(running):
    port = running.server.port
    for host in ("[::1", "[::1]x", "a b", "", "127.0.0.1/@evil.example", "127.0.0.1\r\nHost: evil.example"):
        assert answer_to(port, "GET / HTTP/1.1", f"Host: {host}")[0] == 400, host
    assert answer_to(port, "GET / HTTP/1.1")[0] == 400
    assert answer_to(port, "GET http://[ HTTP/1.1", "Host: localhost")[0] == 400
    own = f"127.0.0.1:{port}"
    assert answer_to(port, "GET / HTTP/1.1", f"Host: {own}", f"Origin: http://{own}")[0] == 200
    assert answer_to(port, "GET / HTTP/1.1", f"Host: {own}", "Origin: http://evil.example")[0] == 403
    assert answer_to(port, "GET /events HTTP/1.1", f"Host: {own}", f"Origin: http://localhost:{port + 1}")[0] == 403
    assert answer_to(port, "GET / HTTP/1.1", f"Host: {own}", "Origin: null")[0] == 403


def test_no_other_page_may_frame_it_and_it_loads_nothing_else(running):
    for path in ("/", "/nothing"):
        head = answer_to(running.server.port, f"GET {path} HTTP/1.1", "Host: localhost")[1].partition("\r\n\r\n")[0]
        assert "X-Frame-Options: DENY" in head
        assert "Content-Security-Policy: default-src 'none'; " in head and "frame-ancestors 'none'" in head


def test_in_a_browser_a_script_that_is_not_the_page_s_own_does_not_run(running, browser):
    browser.open(running.server.address)
    browser.until("live.layout !== null")  # its own does
    assert browser.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"  # and its style
    injected = (
        "const s = document.createElement('script'); s.textContent = 'window.foreign = 1'; document.body.append(s)"
    )
    browser.evaluate(f"void (() => {{ {injected} }})()")
    assert browser.evaluate("typeof window.foreign") == "undefined"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ({"do": "fly"}, "there is no command 'fly'."),
        ({"do": "switch", "sensor": "gsp", "on": True}, "Did you mean 'gps'?"),
        ({"do": "pace", "value": 0}, "this is no pace."),
        ({"do": "pause"}, "samples that arrive have a pace of their own."),
        ([], "a command is a JSON object"),
        ("stop", "a command is a JSON object"),
    ],
)
def test_a_command_that_makes_no_sense_is_answered(running, command, said):
    code, answer = refusal(lambda: post(running.server.address, command))
    assert code == 400 and said in answer


def test_a_port_that_is_taken_is_named(running):
    with pytest.raises(DataError, match=f"127.0.0.1:{running.server.port}: this port cannot be listened on"):
        LiveServer(running.session, running.server.port)
