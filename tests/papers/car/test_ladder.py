"""Every difference between the identified and the true car is explained, and vanishes as the simulator becomes the model."""

from __future__ import annotations

import numpy as np
import pytest

from papers.car.ladder import ladder


@pytest.mark.slow
def test_differences_vanish_one_by_one() -> None:
    rungs = ladder(np.random.default_rng(0), duration=20.0)
    for r in rungs:
        errors = ", ".join(f"{k} {x:.2g}" for k, x in r.errors.items())
        print(f"{r.step}: {errors}; fx {r.fx_percent:.2g}, worst {r.worst_percent:.2g} %")
    printed, air, rows, paths, points, rigid, springs, dampers, straight, model = rungs
    assert printed.errors["k_ar"] > 20.0 and printed.errors["k"] > 10.0 and printed.fx_percent > 8.0
    assert air.errors["M_j"] < 0.5 * printed.errors["M_j"]
    assert rows.fx_percent < 1.0  # the driveline is out of the chassis' rows
    assert paths.errors["k_ar"] < 3.0 and paths.errors["k"] < 3.0  # the work of side forces is in the suspensions' rows
    assert points.errors["inertia"] < 1e-7 and points.errors["M_j"] < 1e-6  # all that was wrong was the carriers' shape
    assert rigid.fx_percent < 1e-7
    assert springs.errors["k_ar"] < 0.5 * rigid.errors["k_ar"]
    assert dampers.errors["h"] < 0.05 and dampers.errors["k"] < 0.05 and dampers.worst_percent < 0.01
    assert straight.errors["k"] < 0.01 and max(model.errors.values()) < 0.02  # dry friction, rounded off over 1 mm/s
