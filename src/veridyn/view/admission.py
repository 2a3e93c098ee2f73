"""Who is answered by a page of this computer, and the headers that keep pages of others away from it.

A browser lets any page send requests to this computer, and open WebSockets to it. What it cannot forge is the `Host` that the request is
addressed to and the `Origin` of the page that sends it. A request is answered if

1. it names one host, in a form that can be read;
2. it carries the token, where there is one; without a token, its host is a name or address of this computer itself, so that a name
   of somebody else that leads here (DNS rebinding) is refused;
3. the page that sends it, where it names one, comes from that same host and port.

viser takes no rule of its own: its page and its WebSocket are one server of the library websockets, whose `serve` has the argument
`process_request`, called with each request before anything is answered. While a viser server is made, `serve` is called through a
function that puts the rule before viser's own `process_request`. A viser that starts its server in another way is stopped and refused.

The page of viser opens its WebSocket at its own address without the query, so that a token travels in a cookie that the page sets.
"""

from __future__ import annotations

import hmac
import inspect
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from io import StringIO
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from veridyn.errors import DataError, Fault

TOKEN_BYTES = 16  # 128 random bits: no number of guesses over a network finds it
_PLAIN_HOST = re.compile(r"[A-Za-z0-9._~-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")
# One file with script and style inside, which unpacks itself and starts its workers from blobs; it loads nothing from elsewhere.
PAGE_POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob: ws://{host}; object-src 'none'"
)
_patching = threading.Lock()


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered, and the status that says so."""

    status: HTTPStatus
    why: str


@dataclass(frozen=True)
class Admission:
    """The rule of a page: `token` is what each request carries; empty where only this computer is answered."""

    token: str = ""

    @classmethod
    def at(cls, host: str, token: str | None = None) -> Admission:
        """The rule of a page that listens at an address: with a token, drawn at random if none is given, wherever others reach it."""
        return cls(token or ("" if is_loopback(host) else secrets.token_urlsafe(TOKEN_BYTES)))

    def refusal(self, hosts: Sequence[str], origins: Sequence[str], tokens: Iterable[str] = ()) -> Refusal | None:
        """Why a request with these `Host` and `Origin` headers and tokens is refused; None where it is answered."""
        if len(hosts) != 1 or not _PLAIN_HOST.fullmatch(hosts[0]):
            return Refusal(HTTPStatus.BAD_REQUEST, "the request names no host, or one that cannot be read")
        if self.token and not any(same_token(given, self.token) for given in tokens):
            why = "the token is missing or wrong: open the address that the program printed"
            return Refusal(HTTPStatus.FORBIDDEN, why)
        if not self.token and not is_loopback(urlsplit(f"//{hosts[0]}").hostname or ""):
            return Refusal(HTTPStatus.FORBIDDEN, "this page is for this computer alone")
        if any(origin.partition("://")[2].lower() != hosts[0].lower() for origin in origins):
            return Refusal(HTTPStatus.FORBIDDEN, "pages of other places may not use this one")
        return None

    def address(self, host: str, port: int) -> str:
        """Where the page is, with the token where there is one."""
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}/" + (f"?token={quote(self.token, safe='')}" if self.token else "")


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def same_token(given: str, wanted: str) -> bool:
    """Whether two tokens are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode("utf-8", "replace"))


def readable_url(path: str) -> SplitResult | None:
    """The parts of a request's path; None where it cannot be read, such as `//[`."""
    try:
        return urlsplit(path)
    except ValueError:
        return None


def protective_headers(policy: str) -> dict[str, str]:
    """Headers of an answer: no other page may frame it, take it for another type or load it; `policy`: what the page itself may load."""
    return {
        "Content-Security-Policy": f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


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
    raise DataError("this version of viser cannot be guarded.", where="view", found=viser.__version__, hint=hint)


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
