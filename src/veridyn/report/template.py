"""The templates and the style that pages and displays are set with."""

from __future__ import annotations

from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@cache
def environment() -> Environment:
    """Templates escape whatever they are given; a name that is missing is an error."""
    return Environment(
        loader=PackageLoader("veridyn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def own_file(name: str) -> Markup:
    """A file of the package, which needs no escaping."""
    return Markup(resources.files("veridyn.report").joinpath("templates", name).read_text(encoding="utf-8"))


def script(moving: bool = False, running: bool = False) -> Markup:
    """What makes plots and tables answer, scenes move and machines run, where there are some."""
    names = ("plots.js", "tables.js", *(["player.js"] if moving else []), *(["running.js"] if running else []))
    return Markup("\n").join(own_file(name) for name in names)
