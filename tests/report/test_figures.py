from dataclasses import replace

import numpy as np

from studies.small_arm import small_study
from veridyn.report.figures import row_figures, singular_values
from veridyn.report.plots import MAX_CURVE_POINTS


def test_every_row_is_drawn_on_both_motions_on_common_scales() -> None:
    figures = row_figures(small_study())
    assert [f.row for f in figures] == ["q1", "q2"]
    for figure in figures:
        learned, new = figure.panels
        assert learned.forces.y_ticks == new.forces.y_ticks
        assert learned.residual.y_ticks == new.residual.y_ticks
        assert [c.label for c in learned.forces.legend] == ["measured", "predicted"]
        assert learned.residual.x_ticks and not learned.forces.x_ticks
        for curve in (*learned.forces.curves, *new.residual.curves):
            assert 1 < len(curve.path.split()) + 1 <= MAX_CURVE_POINTS + 1


def test_singular_values_show_what_is_kept_and_what_is_dropped() -> None:
    base = small_study().fit.base
    drawn = singular_values(base)
    assert drawn is not None
    assert [len(c.path.split()) for c in drawn.curves] == [base.count, len(base.singular_values) - base.count]
    whole = replace(base, singular_values=np.array([3.0, 1.0]), columns=base.columns[:2])
    drawn = singular_values(whole)
    assert drawn is not None
    assert [c.kind for c in drawn.curves] == ["kept"]
    assert singular_values(replace(base, singular_values=np.zeros(0))) is None
