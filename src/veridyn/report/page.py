"""One HTML file that holds everything: style, figures and tables; it opens offline, on a phone, and prints."""

from __future__ import annotations

import platform
from importlib import resources

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from veridyn.report.figures import row_figures, singular_values
from veridyn.report.tables import key_figures, parameter_lines, row_lines
from veridyn.report.verdict import verdict
from veridyn.report.words import number
from veridyn.studies.identification import IdentificationStudy
from veridyn.studies.result import Result


def identification_page(study: IdentificationStudy, result: Result, command: str) -> str:
    """The report of an identification. `command` is what would make it again."""
    environment = Environment(
        loader=PackageLoader("veridyn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = resources.files("veridyn.report").joinpath("templates", "style.css").read_text(encoding="utf-8")
    base = study.fit.base
    names, never = base.parameters.names, set(study.structure.dead)
    return environment.get_template("identification.html").render(
        style=Markup(style),  # the package's own file
        study=study,
        result=result,
        command=command,
        verdict=verdict(study),
        key_figures=key_figures(study),
        parameters=parameter_lines(study),
        rows=row_lines(study),
        relations=base.relations(),
        never=[names[k] for k in base.dead if k in never],
        dead=[names[k] for k in base.dead if k not in never],
        figures=row_figures(study),
        spectrum=singular_values(base),
        number=number,
        made_with=f"veridyn {result.veridyn}, Python {platform.python_version()}, NumPy {np.__version__}",
    )
