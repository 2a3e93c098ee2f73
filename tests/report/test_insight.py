"""What stands behind an identification: four questions, bodies that break a law, and parameters that depend on each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from studies.small_arm import small_study
from veridyn.report.blocks import Figure, Heat, Listing, Table
from veridyn.report.insight import insight


def test_it_answers_four_questions() -> None:
    titles = [s.title for s in insight(small_study())]
    assert titles == [
        "What is left over",
        "What the motion shows of each parameter",
        "Is it physically consistent?",
        "What to record next",
    ]


def test_a_body_that_breaks_a_law_is_named_with_the_law() -> None:
    study = small_study()
    names = list(study.fit.names)
    values = study.fit.values.copy()
    values[names.index("ZZ1R" if "ZZ1R" in names else "ZZ1")] = -5.0
    possible, wrong = (insight(replace(study, fit=replace(study.fit, values=v)))[2] for v in (study.fit.priors, values))
    assert possible.lead.startswith("Yes")
    assert wrong.lead.startswith("Not as they stand: body 1")
    table = wrong.blocks[0]
    assert (
        isinstance(table, Table)
        and table.rows[0][3] != "physically consistent"
        and table.rows[1][3] == "physically consistent"
    )


def test_correlated_parameters_are_listed_the_strongest_first() -> None:
    study = small_study()
    s = study.fit.sigma
    C = np.diag(s**2)
    C[0, 1] = C[1, 0] = 0.95 * s[0] * s[1]
    C[2, 3] = C[3, 2] = -0.99 * s[2] * s[3]
    blocks = insight(replace(study, fit=replace(study.fit, covariance=C)))[1].blocks
    (listing,) = [b for b in blocks if isinstance(b, Listing)]
    n = study.fit.names
    assert list(listing.items) == [f"{n[3]} and {n[2]}: −0.990", f"{n[1]} and {n[0]}: +0.950"]
    assert sum(isinstance(b, Heat) for b in blocks) == 1
    assert sum(isinstance(b, Figure) for b in blocks) == 2


def test_where_deviations_come_from_is_shown_where_there_is_more_than_noise() -> None:
    study = small_study()
    bias = 2.0 * study.fit.sigma
    wide = replace(study.fit, position_bias=bias, covariance=study.fit.covariance + np.outer(bias, bias))
    section = insight(replace(study, fit=wide))[1]
    assert section.title == "Where the deviations come from"
    bars, table = section.blocks
    assert isinstance(bars, Figure) and isinstance(table, Table)
    assert [row[:2] for row in table.rows] == [("noise of positions", "80 %"), ("noise", "20 %")]
    assert all("recording" in row[3] for row in table.rows)
