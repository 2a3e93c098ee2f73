"""Many steps of a tree in one call: those of the model in Python, one by one, and energy that stays."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.tree_models import model, moving, stateful_model
from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.tree.steps import record as places
from veridyn.mechanics.tree.steps.march import TreeMarch, loads_along
from veridyn.mechanics.tree.steps.model import TreeModel

H, EVERY, SAMPLES = 2e-3, 3, 12


def by_python(m: TreeModel, x: np.ndarray, v: np.ndarray, u: np.ndarray, rows: tuple[np.ndarray, np.ndarray]):
    """q, q̇, q̈ and u at the samples, by one call of the model for every step and every sample."""
    found = []
    for i in range(EVERY * SAMPLES + 1):
        loads = rows[0][i], rows[1][i]
        if i and i % EVERY == 0:
            at = m.instant(x, v, u, loads, derivative=False)
            found.append((at.q, at.qd, at.qdd, u))
        at = m.step(x, v, u, H, loads, derivative=False)
        x, v, u = at.q, at.qd, at.u
    return [np.array(part) for part in zip(*found, strict=True)]


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("name", ["branched arm", "free machine", "palletizer"])
def test_a_march_is_what_single_steps_make(name: str, held: bool) -> None:
    """Under a load that changes at every step, and under one that is held for some, whose accelerations are not computed twice."""
    m = model(name)
    x, v, u = moving(m, 17)
    t = H * np.arange(EVERY * SAMPLES + 1)
    first = f"force.{m.tree.coordinates[0]}"
    load = 0.3 * np.sin(40.0 * t)
    rows = loads_along(m, {first: load[np.arange(len(t)) // 8 * 8] if held else load}, len(t))
    reference = by_python(m, x, v, u, rows)
    march = TreeMarch(m, x, v, u)
    halves = [EVERY * SAMPLES // 2, EVERY * SAMPLES // 2]  # one call goes on where the last one ended
    parts = [march.run(H, EVERY, *(r[k * n : (k + 1) * n + 1] for r in rows)) for k, n in enumerate(halves)]
    for name_, expected in zip(("q", "qd", "qdd", "u"), reference, strict=True):
        got = np.concatenate([getattr(p, name_) for p in parts])
        # Newton's method ends at 1e-11 of the size of a velocity's change, 2/h of that as acceleration.
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-8 * max(1.0, float(np.abs(expected).max())))


def test_states_of_elements_move_along() -> None:
    m = stateful_model(())
    x, v = m.start_of()
    rows = loads_along(m, {}, EVERY * SAMPLES + 1)
    u = m.start_unknown
    u[-1] = 0.1
    found = TreeMarch(m, x, v, u).run(H, EVERY, *rows)
    reference = by_python(m, x, v, u, rows)
    np.testing.assert_allclose(found.u, reference[3], atol=1e-9)
    assert np.abs(found.u[-1] - u).max() > 1e-6


def test_loads_along_are_the_loads_of_every_time() -> None:
    m = model("palletizer")
    name = f"force.{m.tree.coordinates[0]}"
    values = np.array([1.0, -2.0, 3.0])
    extra, outside = loads_along(m, {name: values}, 3)
    for i, value in enumerate(values.tolist()):
        one = m.loads({name: value})
        assert np.array_equal(extra[i], one[0]) and np.array_equal(outside[i], one[1])
    with pytest.raises(DataError, match="there is no input"):
        loads_along(m, {"force.nothing": values}, 3)


def test_factors_that_cost_more_than_new_ones_are_made_anew() -> None:
    """The same motion as with factors of every step, to what counts as settled, though factors are kept for some steps."""
    m = model("branched arm")
    x, v, u = moving(m, 19)
    rows = loads_along(m, {}, 201)
    record, found, ages = m.kernels.record, [], []
    for keep in (True, False):
        march = TreeMarch(m, x, v, u)
        for i in range(200):
            if not keep:
                record.W[record.I[places.KEPT]] = 0.0
            march.run(H, 1, *(r[i : i + 2] for r in rows))
            ages.append(float(record.W[record.I[places.AGE]]))
        found.append(march.x.copy())
    np.testing.assert_allclose(found[0], found[1], atol=1e-8)
    assert 0.0 < max(ages[:200]) < 199.0  # kept, and not for ever
    assert max(ages[200:]) == 0.0


def test_a_step_that_ends_nowhere_is_refused_with_its_reason() -> None:
    m = model("branched arm")
    x, v, u = moving(m, 19)
    rows = loads_along(m, {f"force.{m.tree.coordinates[0]}": [0.0, 0.0, np.nan, 0.0]}, 4)
    with pytest.raises(SimulationError, match="singular"):
        TreeMarch(m, x, v, u).run(H, 1, *rows)
    far = x.copy()
    far[0] = 1e12
    with pytest.raises(DataError, match="turn"):
        TreeMarch(m, far, v, u).run(H, 1, *loads_along(m, {}, 4))
