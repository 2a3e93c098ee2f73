"""The page of a live run, one HTML file, its stream of events and its commands over HTTP, by the standard library alone.

The page is served to this computer alone unless a host says otherwise, and then only to those who have the token. Each page that is open
has a thread and a place in the feed of its own, so that none waits for another.
"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
import time
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from veridyn.errors import VeridynError
from veridyn.live.arrivals import taken_port
from veridyn.live.session import Session
from veridyn.live.tracker import Layout
from veridyn.report.page import own_file
from veridyn.view.admission import Admission, protective_headers, readable_url

HEARTBEAT_S = 5.0  # between signs of life where nothing is new
PAUSE_S = 0.012  # between events: rows that come in meanwhile travel together
MOST_PAGES = 24
LONGEST_COMMAND = 4096  # bytes


@cache
def _environment() -> Environment:
    return Environment(loader=PackageLoader("veridyn.live", "templates"), autoescape=True, undefined=StrictUndefined)


@cache
def _own(name: str) -> Markup:
    return Markup(resources.files("veridyn.live").joinpath("templates", name).read_text(encoding="utf-8"))


def live_page(layout: Layout) -> str:
    """The page of a run; everything else comes with its stream of events."""
    return (
        _environment()
        .get_template("live.html")
        .render(
            title=layout.title,
            kind=layout.kind,
            style=own_file("style.css"),
            own=_own("live.css"),
            script=_own("live.js"),
        )
    )


@cache
def page_policy() -> str:
    """What the page may load: its own style and script, by their digests, and the stream and commands of the server it came from."""
    style = _digest(f"\n{own_file('style.css')}\n{_own('live.css')}\n")
    script = _digest(f"\n{_own('live.js')}\n")
    return f"default-src 'none'; style-src {style}; script-src {script}; connect-src 'self'"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


class LiveServer:
    """Serves the page of a session from construction until :meth:`stop`; `address` is where, with the token where there is one."""

    def __init__(self, session: Session, port: int = 8090, host: str = "127.0.0.1", token: str | None = None) -> None:
        admission = Admission.at(host, token)
        self.token = admission.token
        try:
            self._http = _Server((host, port), _Handler)
        except (OSError, OverflowError) as error:
            cause = error if isinstance(error, OSError) else OSError(str(error))
            raise taken_port("HTTP", host, port, cause) from error
        self._http.session, self._http.admission = session, admission
        self.port: int = self._http.server_address[1]
        self.address = admission.address(host, self.port)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def drop_pages(self) -> int:
        """Cut the connections of all pages that are open, as a bad network does; how many there were."""
        return self._http.drop()

    def stop(self) -> None:
        """Close every page's stream and free the port."""
        self._http.session.feed.close()
        self._http.drop()
        self._http.shutdown()
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    """Knows its session, and the streams that are open."""

    daemon_threads = True
    allow_reuse_address = True
    session: Session
    admission: Admission

    def __init__(self, *args: Any) -> None:
        self.streams: set[_Handler] = set()
        self._lock = threading.Lock()
        super().__init__(*args)

    def enter(self, handler: _Handler) -> bool:
        with self._lock:
            if len(self.streams) >= MOST_PAGES:
                return False
            self.streams.add(handler)
            return True

    def leave(self, handler: _Handler) -> None:
        with self._lock:
            self.streams.discard(handler)

    def drop(self) -> int:
        with self._lock:
            handlers = list(self.streams)
        for handler in handlers:
            handler.cut()
        return len(handlers)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that goes away in the middle of a line is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version = "veridyn"
    sys_version = ""
    timeout = 60.0
    disable_nagle_algorithm = True  # an answer's body does not wait until its header is acknowledged

    def do_GET(self) -> None:
        asked = self._admitted()
        if asked is None:
            return
        path, query = asked
        if path == "/":
            self._answer(live_page(self.server.session.feed.layout).encode(), "text/html; charset=utf-8")
        elif path == "/events":
            self._stream(query)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        asked = self._admitted()
        if asked is None:
            self.close_connection = True  # its body was not read
            return
        try:
            length = int(self.headers.get("Content-Length", "0"))
        except ValueError:
            length = -1
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        if asked[0] != "/command" or kind != "application/json" or not 0 < length <= LONGEST_COMMAND:
            self.close_connection = True
            self._refuse(HTTPStatus.BAD_REQUEST, "a command is a JSON object")
            return
        try:
            wanted = json.loads(self.rfile.read(length))
            if not isinstance(wanted, dict):
                raise ValueError("no object")
            self._answer(json.dumps(self.server.session.command(wanted)).encode(), "application/json")
        except (ValueError, RecursionError):
            self._refuse(HTTPStatus.BAD_REQUEST, "a command is a JSON object")
        except VeridynError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))

    def cut(self) -> None:
        """Close the connection under the stream."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def _admitted(self) -> tuple[str, dict[str, str]] | None:
        """The path and query of a request that may be answered; None of one that was refused."""
        url = readable_url(self.path)
        if url is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "the address cannot be read")
            return None
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        hosts, origins = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        no = self.server.admission.refusal(hosts, origins, [query.get("token", "")])
        if no is not None:
            self._refuse(no.status, no.why)
            return None
        return url.path, query

    def _stream(self, query: dict[str, str]) -> None:
        """Events until the page goes away: the layout first, then all that is new."""
        feed = self.server.session.feed
        if not self.server.enter(self):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_PAGES} pages are open already")
            return
        try:
            reader = feed.reader(self._after(query))
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Connection", "close")
            self._protect()
            self.end_headers()
            self.close_connection = True
            hello = json.dumps({"run": feed.run, **feed.layout.as_dict()})
            self.wfile.write(f"retry: 300\nevent: layout\ndata: {hello}\n\n".encode())
            while not feed.closed:
                batch = reader.take(HEARTBEAT_S)
                if batch is None:
                    self.wfile.write(b": alive\n\n")
                    continue
                self.wfile.write(f"id: {batch.run}:{batch.last}\ndata: {batch.text()}\n\n".encode())
                time.sleep(PAUSE_S)
        except (OSError, ValueError):
            pass  # the page is gone
        finally:
            self.server.leave(self)

    def _after(self, query: dict[str, str]) -> int | None:
        """The row after which a page that was cut off goes on, where it has seen this run."""
        seen = self.headers.get("Last-Event-ID") or query.get("seen", "")
        run, _, number = seen.partition(":")
        return int(number) if run == self.server.session.feed.run and number.isdecimal() else None

    def _answer(self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self._protect()
        self.end_headers()
        self.wfile.write(content)

    def _protect(self) -> None:
        self.send_header("Cache-Control", "no-store")
        for name, value in protective_headers(page_policy()).items():
            self.send_header(name, value)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._answer(f"{why}\n".encode(), "text/plain; charset=utf-8", status)
