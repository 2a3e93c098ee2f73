"""The page of an identification: parameters with their judgement, and nothing about a truth that is not known."""

from dataclasses import replace

import numpy as np

from studies.small_arm import small_study, with_check
from veridyn.report.identification import (
    forces_section,
    identification_page,
    key_figures,
    parameter_quantities,
    parameter_section,
    simulation_section,
)


def test_parameters_are_set_with_their_judgement() -> None:
    study = small_study()
    quantities = parameter_quantities(study)
    assert [q.name for q in quantities] == list(study.fit.names)
    for q, row in zip(quantities, study.parameters, strict=True):
        assert q.weak == (row.sigma_percent >= 10.0) and q.truth == row.truth
        assert bool(q.mark) == (q.name in study.inessential)


def test_without_a_truth_nothing_is_claimed_about_it() -> None:
    study = replace(small_study(), truth=np.full(len(small_study().truth), np.nan))
    section = parameter_section(study)
    assert "truth" not in section.blocks[0].columns and "truth" not in section.lead
    assert "truth" in parameter_section(small_study()).lead
    assert len(key_figures(study)) == len(key_figures(small_study())) - 1


def test_forces_have_a_figure_for_each_row_and_notes_on_what_was_used() -> None:
    study = small_study()
    table, *figures = forces_section(study).blocks
    assert len(figures) == len(study.fit.rows) and "“Before” is the model" in table.caption
    plain = forces_section(with_check(study, before=None, share=0.4)).blocks[0]
    assert "error before" not in plain.columns and "40 % were not used" in plain.caption


def test_a_fit_that_was_not_made_by_simulation_has_no_section_about_it() -> None:
    assert simulation_section(small_study()) == []


def test_sections_stand_in_their_order() -> None:
    study = small_study()
    page = identification_page(study, study.result("small", seed=7, quick=True, inputs={}), "veridyn demo arm")
    anchors = [f'<section id="{name}">' for name in ("forces", "parameters", "appendix", "sums", "excitation")]
    places = [page.index(a) for a in anchors]
    assert places == sorted(places)
