"""One HTML file that holds everything: style, figures, tables, animations; it opens offline, on a phone, and prints.

A page is a list of sections made of blocks (:mod:`veridyn.report.blocks`) below a verdict with its reasons and key figures. Templates and
style serve other displays too.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from veridyn.errors import Fault
from veridyn.inference.verdict import Verdict
from veridyn.report import units_in
from veridyn.report.blocks import Key, Section
from veridyn.report.faults import fault_section, missed_section, own_findings, own_reasons, unlisted, unstated
from veridyn.studies.result import Result

FILES = "result.json and parameters.csv"  # that a run folder has


@cache
def environment() -> Environment:
    """Templates escape whatever they are given; a name that is missing is an error."""
    made = Environment(
        loader=PackageLoader("veridyn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["units"] = units_in
    return made


@cache
def own_file(name: str) -> Markup:
    """A file of the package, which needs no escaping."""
    return Markup(resources.files("veridyn.report").joinpath("templates", name).read_text(encoding="utf-8"))


def script(*kinds: str) -> Markup:
    """What makes plots and tables answer, scenes move and machines run, where there are blocks of these kinds."""
    own = {"animation": "player.js", "running": "running.js"}
    names = ("words.js", "plots.js", "tables.js", *(file for kind, file in own.items() if kind in kinds))
    return Markup("\n").join(own_file(name) for name in names)


def page(
    title: str,
    verdict: Verdict,
    key_figures: Sequence[Key],
    sections: Sequence[Section],
    result: Result,
    command: str,
    settings: Mapping[str, str] | None = None,
    beside: str = FILES,
    missed: Sequence[str] = (),
    faults: Sequence[Fault] = (),
) -> str:
    """A report of any study: verdict, key figures, sections, and how to make it again.

    `command` is what would, `settings` how; `beside` names the files with the same numbers that stand beside the page. `missed` limits of
    the study file and possible `faults` stand first.
    """
    every = [*missed_section(missed, verdict), *fault_section(faults, verdict), *sections]
    warnings = unlisted(unstated(result.warnings, verdict, faults), every)
    contents = [
        *([("warnings", "Warnings")] if warnings else []),
        *((s.anchor or f"section-{k}", s.title) for k, s in enumerate(every, 1)),
        ("again", "How to make this again"),
    ]
    return (
        environment()
        .get_template("frame.html")
        .render(
            style=own_file("style.css"),
            script=script(*(b.kind for s in every for b in s.blocks)),
            contents=contents,
            title=title,
            verdict=verdict,
            reasons=own_reasons(verdict),
            findings=own_findings(verdict, faults),
            key_figures=key_figures,
            sections=every,
            result=result,
            # What speaks against the model or the run first; what single channels of a log have, behind it.
            warnings=sorted(warnings, key=lambda text: text.startswith("channel '")),
            command=command,
            settings=settings or {},
            made_with=f"veridyn {result.veridyn}, Python {platform.python_version()}, NumPy {np.__version__}",
            beside=beside,
        )
    )
