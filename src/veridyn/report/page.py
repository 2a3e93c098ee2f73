"""One HTML file that holds everything: style, figures, tables, animations; it opens offline, on a phone, and prints."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from veridyn.report.blocks import Key, Section, Verdict
from veridyn.report.figures import row_figures, singular_values
from veridyn.report.insight import insight
from veridyn.report.output_error import simulation_section
from veridyn.report.reduced import reduced_section
from veridyn.report.replay import replay_section
from veridyn.report.running import running_section
from veridyn.report.tables import key_figures, parameter_lines, row_lines
from veridyn.report.template import environment, own_file, script
from veridyn.report.verdict import verdict
from veridyn.report.words import number
from veridyn.studies.identification import IdentificationStudy
from veridyn.studies.result import Result

FILES = "result.json and parameters.csv"  # that a run folder has


def page(
    title: str,
    verdict: Verdict,
    key_figures: Sequence[Key],
    sections: Sequence[Section],
    result: Result,
    command: str,
    settings: Mapping[str, str] | None = None,
    beside: str = FILES,
) -> str:
    """A report of any study: verdict, key figures, sections, and how to make it again.

    `command` is what would, `settings` how; `beside` names the files with the same numbers that stand beside the page.
    """
    return _set("frame.html", title, verdict, key_figures, sections, result, command, settings or {}, (), beside=beside)


def identification_page(
    study: IdentificationStudy,
    result: Result,
    command: str,
    more: Sequence[Section] = (),
    title: str = "",
    found: Verdict | None = None,
    keys: Sequence[Key] = (),
    first: Sequence[Section] = (),
    model: Path | None = None,
) -> str:
    """The report of an identification; `more` are sections to stand behind its forces and parameters, `first` before them.

    `title`, the verdict `found` and key figures `keys` in place of those of an identification. `model`: the file of the machine.
    """
    base = study.fit.base
    names, never = base.parameters.names, set(study.structure.dead)
    relations = base.relations()
    reduced = reduced_section(study)
    first = [*first, *simulation_section(study)]
    own = [(f"first-{k}", s.title) for k, s in enumerate(first, 1)]
    own += [("forces", "Forces, row by row"), ("parameters", "Parameters")]
    own += [("sums", "What comes only as a sum")] if relations or base.dead else []
    samples = f"{len(study.training)} to learn from, {len(study.validation)} to validate"
    return _set(
        "identification.html",
        title or f"Identification of “{study.model.name}”",
        found or verdict(study),
        keys or key_figures(study),
        [
            *more,
            replay_section(study, model),
            running_section(study.fit, study.training),
            *([] if reduced is None else [reduced]),
            *insight(study),
        ],
        result,
        command,
        {"estimator": study.fit.estimator, **study.settings, "samples": samples},
        (*own, ("excitation", "How well the motion excites")),
        study=study,
        parameters=parameter_lines(study),
        rows=row_lines(study),
        relations=relations,
        beside=FILES,
        first=first,
        never=[names[k] for k in base.dead if k in never],
        dead=[names[k] for k in base.dead if k not in never],
        figures=row_figures(study),
        spectrum=singular_values(base),
        number=number,
    )


def _set(
    template: str,
    title: str,
    verdict: Verdict,
    keys: Sequence[Key],
    sections: Sequence[Section],
    result: Result,
    command: str,
    settings: Mapping[str, str],
    own: Sequence[tuple[str, str]],
    **more: object,
) -> str:
    """Set a page; `own` are anchors and titles of the sections that the template itself brings."""
    contents = [
        *([("warnings", "Warnings")] if result.warnings else []),
        *own,
        *((f"section-{k}", s.title) for k, s in enumerate(sections, 1)),
        ("again", "How to make this again"),
    ]
    moving = any(b.kind == "animation" for s in sections for b in s.blocks)
    running = any(b.kind == "running" for s in sections for b in s.blocks)
    return (
        environment()
        .get_template(template)
        .render(
            style=own_file("style.css"),
            script=script(moving, running),
            contents=contents,
            title=title,
            verdict=verdict,
            key_figures=keys,
            sections=sections,
            result=result,
            command=command,
            settings=settings,
            made_with=f"veridyn {result.veridyn}, Python {platform.python_version()}, NumPy {np.__version__}",
            **more,
        )
    )
