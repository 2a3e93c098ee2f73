"""A viser server that answers by the rule of :mod:`veridyn.view.admission`.

viser takes no rule of its own: its page and its WebSocket are one server of the library websockets, whose `serve` has the argument
`process_request`, called with each request before anything is answered. While a viser server is made, `serve` is called through a
function that puts the rule before viser's own `process_request`. A viser that starts its server in another way is stopped and refused.

The page of viser opens its WebSocket at its own address without the query, so that a token travels in a cookie that the page sets.
"""

from __future__ import annotations

import inspect
import secrets
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from io import StringIO
from typing import Any
from urllib.parse import parse_qs, quote, unquote

from veridyn.errors import DataError, Fault
from veridyn.view.admission import Admission, Refusal, protective_headers, readable_url

# One file with script and style inside, which unpacks itself and starts its workers from blobs; it loads nothing from elsewhere.
PAGE_POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob: ws://{host}; object-src 'none'"
)
_patching = threading.Lock()


def guarded_server(label: str, host: str, port: int, admission: Admission) -> Any:
    """A viser server at an address, behind the rule."""
    try:
        import viser  # pyright: ignore[reportMissingImports]
        import websockets.asyncio.server as library  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        fault = Fault("a live view needs viser, which is not installed.", hint="pip install 'veridyn[view]'")
        raise DataError(fault) from error

    serve, guarded = library.serve, threading.Event()

    def serve_guarded(*arguments: Any, **settings: Any) -> Any:
        if threading.current_thread() not in others:
            settings["process_request"] = _guard(admission, settings.get("process_request"))
            guarded.set()
        return serve(*arguments, **settings)

    with _patching, redirect_stdout(StringIO()):  # viser prints its address by itself
        others = set(threading.enumerate())  # viser starts its server in a thread of its own
        library.serve = serve_guarded
        try:
            server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
        finally:
            library.serve = serve
        if not guarded.is_set():
            server.stop()
    if guarded.is_set():
        return server
    hint = "Install a version that veridyn knows: pip install 'viser==1.1.*'."
    raise DataError(Fault("this version of viser cannot be guarded.", "view", found=viser.__version__, hint=hint))


def _guard(admission: Admission, inner: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
    """`process_request` of a server: refuse by the rule, else answer as `inner` does, with protective headers."""
    cookie = f"veridyn-{secrets.token_hex(4)}"  # its own name: a cookie is sent to all ports of a host

    async def process_request(connection: Any, request: Any) -> Any:
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        url = readable_url(request.path)
        if url is None:
            return _refused(connection, Refusal(HTTPStatus.BAD_REQUEST, "the address cannot be read"))
        asked = parse_qs(url.query).get("token", [])
        no = admission.refusal(hosts, origins, [*asked, *_cookies(request.headers.get_all("Cookie"), cookie)])
        if no is not None:
            return _refused(connection, no)
        answer = None if inner is None else inner(connection, request)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is not None:
            for name, value in protective_headers(PAGE_POLICY.format(host=hosts[0])).items():
                answer.headers[name] = value
            if admission.token:
                answer.headers["Set-Cookie"] = (
                    f"{cookie}={quote(admission.token, safe='')}; Path=/; HttpOnly; SameSite=Strict"
                )
                answer.headers["Cache-Control"] = "no-store"
        return answer

    return process_request


def _refused(connection: Any, no: Refusal) -> Any:
    answer = connection.respond(no.status, f"{no.why}\n")
    for name, value in protective_headers("default-src 'none'").items():
        answer.headers[name] = value
    return answer


def _cookies(headers: list[str], name: str) -> list[str]:
    found = []
    for header in headers:
        jar = SimpleCookie()
        try:
            jar.load(header)
        except CookieError:
            continue
        found += [unquote(jar[name].value)] if name in jar else []
    return found
