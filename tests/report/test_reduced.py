"""The reduced model beside the full one: values, what was removed and why, errors of both, and when it is worse."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from studies.small_arm import small_study
from veridyn.identify.pipeline.identification import IdentificationStudy
from veridyn.identify.selection import EliminationStep, Essential
from veridyn.report.blocks import Table
from veridyn.report.reduced import reduced_line, reduced_rows, reduced_section, reduced_table


def without_the_last() -> IdentificationStudy:
    """A study whose reduced model lacks the last parameter of the fit."""
    study = small_study()
    fit = study.fit
    base = replace(fit.base, columns=fit.base.columns[:-1], matrix=fit.base.matrix[:-1])
    name = study.model.parameters.names[fit.base.columns[-1]]
    lean = replace(fit, base=base, values=fit.values[:-1], covariance=fit.covariance[:-1, :-1], removed=(name,))
    step = EliminationStep(name, 250.0, 0.16, 0.69, 0.7)
    return replace(study, essential=Essential(lean, (step,)), essential_own=study.own, essential_check=study.check)


def test_both_models_stand_side_by_side() -> None:
    study = without_the_last()
    rows = reduced_rows(study)
    assert [row[0] for row in rows] == list(study.fit.names)
    assert rows[0][2:4] == rows[0][4:6] and rows[-1][4:] == ("0", "–", "250", "0.16", "0.69")
    (section,) = reduced_section(study)
    assert "by this rule: relative deviations at most 30 times the smallest" in section.lead
    errors, values = section.blocks
    assert (
        isinstance(errors, Table) and isinstance(values, Table) and [r[0] for r in errors.rows] == ["full", "reduced"]
    )
    assert "noticeably worse" not in section.lead
    cells = list(csv.DictReader(io.StringIO(reduced_table(study))))
    assert float(cells[0]["full"]) == float(cells[0]["reduced"]) and cells[-1]["reduced"] == "0"
    assert cells[-1]["joint_p_value"] == "0.7" and cells[0]["p_value"] == ""
    assert reduced_line(study).startswith(f"reduced model: {len(rows) - 1} of {len(rows)} parameters")


def test_a_worse_one_is_said_to_be_worse() -> None:
    study = without_the_last()
    assert study.before is not None and study.before.relative_error > 1.1 * study.check.relative_error
    worse = replace(study, essential_check=study.before)
    (section,) = reduced_section(worse)
    assert worse.reduced_is_worse and "noticeably worse" in section.lead


def test_without_removals_there_is_no_section() -> None:
    study = small_study()
    assert reduced_section(replace(study, essential=Essential(study.fit, ()))) == []
