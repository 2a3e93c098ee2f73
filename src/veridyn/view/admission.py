"""Who is answered by a page of this computer, and the headers that keep pages of others away from it.

A browser lets any page send requests to this computer, and open WebSockets to it. What it cannot forge is the `Host` that the request is
addressed to and the `Origin` of the page that sends it. A request is answered if

1. it names one host, in a form that can be read;
2. it carries the token, where there is one; without a token, its host is a name or address of this computer itself, so that a name
   of somebody else that leads here (DNS rebinding) is refused;
3. the page that sends it, where it names one, comes from that same host and port.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import SplitResult, quote, urlsplit

TOKEN_BYTES = 16  # 128 random bits: no number of guesses over a network finds it
_PLAIN_HOST = re.compile(r"[A-Za-z0-9._~-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")


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
