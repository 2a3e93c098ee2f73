"""A row of numbers of a compiled step, read out field by field."""

from __future__ import annotations

import numpy as np

from veridyn.observe.filters.passage import CompiledPassage, PassageLayout


def test_fields_lie_in_the_order_of_the_layout() -> None:
    layout = PassageLayout(5, 3, 2)
    given = {
        "x": np.arange(5.0),
        "P": 10.0 + np.arange(9.0).reshape(3, 3),
        "x_predicted": 20.0 + np.arange(5.0),
        "P_predicted": 30.0 + np.arange(9.0).reshape(3, 3),
        "F": 40.0 + np.arange(9.0).reshape(3, 3),
        "dx": 50.0 + np.arange(3.0),
        "K": 60.0 + np.arange(6.0).reshape(3, 2),
        "innovations": np.array([70.0, np.nan]),
        "variances": np.array([80.0, np.nan]),
        "H": 90.0 + np.arange(6.0).reshape(2, 3),
        "status": np.array([0.0, 4.0]),
        "statistics": np.array([1.5, 1.0, -2.5]),
    }
    row = np.concatenate([v.ravel() for v in given.values()])
    assert len(row) == layout.size
    passed = CompiledPassage(layout, row, 0.25)
    p, c = passed.prediction, passed.correction
    found = {"x": passed.belief.x, "P": passed.belief.P, "x_predicted": p.x, "P_predicted": p.P, "F": p.F, "dx": c.dx}
    found |= {"K": c.K, "innovations": c.innovations, "variances": c.variances, "H": passed.H}
    for name, value in found.items():
        assert np.array_equal(value, given[name], equal_nan=True), name
    assert passed.status.tolist() == [0, 4] and passed.status.dtype == np.int8 and c.status is passed.status
    assert (c.nis, c.dof, c.log_likelihood) == (1.5, 1, -2.5) and passed.used == 1
    assert passed.belief.t == p.t == 0.25 and c.P is passed.belief.P
