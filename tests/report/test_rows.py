"""Rows in one table and on one scale: errors of every kind that is known, and curves of every motion."""

from __future__ import annotations

from dataclasses import replace

from studies.small_arm import small_study
from veridyn.report.plots import MAX_CURVE_POINTS
from veridyn.report.rows import row_figure, row_figures, row_table


def column(table, head: str) -> list[str]:
    k = list(table.columns).index(head)
    return [str(row[k]) for row in table.rows]


def test_rows_show_both_motions_and_what_was_known_before() -> None:
    study = small_study()
    assert study.before is not None
    table = row_table(study.check.rows, "row", study.own.rows, study.before.rows, {"q1": "white"})
    assert column(table, "row") == ["q1", "q2"] and column(table, "unit") == ["N·m", "N·m"]
    assert column(table, "what is left over") == ["white", "–"]
    # Priors are a fifth off, and so is every force that they predict.
    of = [f"{100 * 0.2 * r.measured_rms / r.measured_std:.0f} %" for r in study.check.rows]
    assert column(table, "error before") == of
    assert table.columns[2:4] == ("error, validation", "error, training")


def test_what_is_not_known_has_no_column() -> None:
    rows = small_study().check.rows
    table = row_table(rows, "output")
    assert table.columns == ("output", "unit", "error", "‖r‖/‖y‖", "rms error", "std", "measured rms", "samples")
    assert row_table([replace(r, nis=1.5) for r in rows]).columns[-2:] == ("NIS", "samples")
    missing = row_table(rows, "row", before=rows[:1])
    assert column(missing, "error before")[1] == "– %"


def test_a_row_of_noise_is_marked_and_explained() -> None:
    first, second = small_study().check.rows
    table = row_table([first, replace(second, rms=second.measured_std, noise=second.measured_std)], caption="Note.")
    marks = [row[0].mark for row in table.rows]
    assert marks[0] == "" and marks[1] and table.caption.startswith("Note. ○ marks")
    assert row_table([first]).caption == ""


def test_every_row_is_drawn_on_both_motions_on_common_scales() -> None:
    figures = row_figures(small_study().traces)
    assert [f.title for f in figures] == ["q1", "q2"]
    for figure in figures:
        learned, new = figure.plots
        below, beside = figure.below
        assert learned.y_ticks == new.y_ticks and below.y_ticks == beside.y_ticks
        assert [c.label for c in learned.legend] == ["measured", "predicted"]
        assert below.x_ticks and not learned.x_ticks and learned.clock == below.clock != new.clock
        for curve in (*learned.curves, *beside.curves):
            assert 1 < len(curve.path.split()) + 1 <= MAX_CURVE_POINTS + 1


def test_a_row_of_one_motion_stands_by_itself() -> None:
    trace = small_study().traces["validation"]
    figure = row_figure(trace, 1)
    assert figure.title == "q2" and [p.low for p in figure.plots] == [False, False]
    assert all(p.x_ticks and p.x_label == "time, s" for p in figure.plots)
