"""The live page: one HTML file with its style and script inside, in the colours of the reports."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from veridyn.live.row import Layout
from veridyn.report.template import own_file


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
