from dataclasses import replace

import numpy as np

from studies.small_arm import small_study
from veridyn.report.tables import key_figures, parameter_lines, row_lines


def test_parameters_are_set_with_their_judgement() -> None:
    study = small_study()
    lines = parameter_lines(study)
    assert [p.name for p in lines] == list(study.fit.names)
    for line, row in zip(lines, study.parameters, strict=True):
        assert line.well == (row.sigma_percent < 10.0)
        assert line.inside == row.inside
        assert 0.0 <= line.bar <= 100.0
        assert line.place is not None and 0.0 <= line.place <= 100.0
        assert line.unit.count("*") == 0


def test_without_a_truth_nothing_is_claimed_about_it() -> None:
    study = replace(small_study(), truth=np.full(len(small_study().truth), np.nan))
    assert all(p.place is None and p.inside is None and p.truth == "–" for p in parameter_lines(study))
    assert len(key_figures(study)) == len(key_figures(small_study())) - 1


def test_rows_show_both_motions_and_what_was_believed_before() -> None:
    lines = row_lines(small_study())
    assert [r.row for r in lines] == ["q1", "q2"]
    assert all(r.white == "white" and r.unit == "N·m" and r.judged for r in lines)
    of = small_study().check.rows
    assert [r.before for r in lines] == [
        f"{100 * 0.2 * r.measured_rms / r.measured_std:.0f}" for r in of
    ]  # a fifth of the force
    unknown = row_lines(replace(small_study(), before=None, whiteness={}))
    assert all(r.before == "–" and r.white == "–" for r in unknown)
