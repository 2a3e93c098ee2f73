"""Many steps of a tree in one call: those of the model in Python, one by one, and energy that stays."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from strangers.tree_models import model, moving, stateful_model
from veridyn.errors import DataError, SimulationError
from veridyn.files.access import shipped
from veridyn.mechanics.tree.loops.assembly import assembled
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps import record as places
from veridyn.mechanics.tree.steps.march import TreeMarch, loads_along, shoot
from veridyn.mechanics.tree.steps.model import TreeModel, tree_model

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


VARYING = ("ZZ3", "h1")
RUN_STEP, RUN_EVERY, STEPS = 0.004, 3, 24


def started():
    machine = vd.load_model(shipped("veridyn:linkage.yaml"))
    model = tree_model(tree_of(machine), varying=list(VARYING), friction_speed=0.05)
    u = np.array([machine.parameters.values[machine.parameters.index(name)] for name in VARYING])
    torque = np.zeros((STEPS, 3))
    torque[:, 0] = 1.5 + 4.0 * np.sin(20.0 * RUN_STEP * np.arange(STEPS))
    still = np.tile(model.loads()[1], (STEPS, 1))
    x = assembled(tree_of(machine)).home
    return model, model.instant(x, np.zeros(3), u, (torque[0], still[0])), torque, still


def test_a_run_and_its_derivatives_are_those_of_single_steps() -> None:
    model, start, torque, still = started()
    rng = np.random.default_rng(0)
    chi, S = (
        rng.normal(size=(2, 3)),
        rng.normal(size=(2, 4)),
    )  # three columns by what varies, the last by the start alone
    q, slopes = shoot(model, start, RUN_STEP, RUN_EVERY, (torque, still), (2, 0), chi, S)
    assert (q.shape, slopes.shape) == ((9, 3), (9, 2, 4))
    at, expected = start, S.copy()
    for k in range(STEPS):
        at = model.step(at.q, at.qd, at.u, RUN_STEP, (torque[k], still[k]))
        expected = at.F[:, :2] @ expected
        expected[:, :3] += at.F[:, 2:] @ chi
        if (k + 1) % RUN_EVERY == 0:
            sample = (k + 1) // RUN_EVERY
            assert q[sample] == pytest.approx(at.q, abs=1e-10)  # steps are solved to 1e-11 of the machine's size
            assert slopes[sample] == pytest.approx(at.R[[2, 0]] @ expected[:1], rel=1e-7, abs=1e-10)
    alone, nothing = shoot(model, start, RUN_STEP, RUN_EVERY, (torque, still))
    assert alone == pytest.approx(q, abs=1e-10)
    assert nothing.size == 0


def test_a_step_that_cannot_be_made_is_named_with_its_time() -> None:
    model, start, torque, still = started()
    torque[10:, 0] = np.nan
    with pytest.raises(SimulationError) as caught:
        shoot(model, start, RUN_STEP, RUN_EVERY, (torque, still))
    assert any("in the step 0.04 s after the start of a run" in note for note in caught.value.__notes__)
