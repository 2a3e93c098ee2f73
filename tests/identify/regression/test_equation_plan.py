"""How samples become equations: rows, columns, masks, decimation and filters, against the dense matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from identify.dense_equations import Tables, arm, check, dense, expected, log, suspended
from strangers.cars import TEN_ROWS, car_20, estimated_33
from strangers.random_trees import random_motion
from veridyn.errors import DataError
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.compiled_stream import SymbolTables
from veridyn.identify.regression.equation_plan import EquationPlan
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.model.elements.element import damper, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth, zero_phase


def test_a_row_holds_only_the_columns_it_can_feel() -> None:
    """The last joint's factor has parameters of body 3 and its own elements, the tied one under the name of the other."""
    machine = arm()
    names = machine.parameters.names
    row = observation(machine, log(50), ["q3"]).rows[0]
    held = {names[c] for c in row.columns}
    assert held <= {n for n in names if n.endswith("3") and n != "fs_q3"} | {"fs_q2"}
    D = regressor(machine, log(50), ["q3"])[:, 0]
    felt = {n for n, size in zip(names, np.abs(D).max(axis=0), strict=True) if size > 0}
    assert felt - {"fs_q3"} <= held and "fs_q2" in held


def thinned(tables: Tables, used: Sequence[np.ndarray]) -> Tables:
    return [(W[u], y[u]) for (W, y), u in zip(tables, used, strict=True)]


def test_dead_zones_masks_gaps_trim_and_decimation() -> None:
    """Each row drops samples of its own; every third of the rest stays, less 10 at either end."""
    machine, motion = arm(), log(1500)
    rng = np.random.default_rng(1)
    forces = motion.forces.copy()
    forces[rng.random(1500) < 0.1, 1] = np.nan
    motion = replace(motion, forces=forces)
    drop = rng.random(1500) < 0.2
    how = Sampling(dead_zone={"q1": 0.2, "q3": 0.5}, drop={"q3": drop}, decimate=3, trim=10, block=111)
    o = observation(machine, motion, settings=IdentifySettings(sampling=how))
    k = np.arange(1500)
    thin = (k % 3 == 0) & (k >= 10) & (k < 1490)
    used = [
        thin & (np.abs(motion.qd[:, 0]) >= 0.2),
        thin & np.isfinite(forces[:, 1]),
        thin & (np.abs(motion.qd[:, 2]) >= 0.5) & ~drop,
    ]
    assert [f.samples for f in o.rows] == [int(u.sum()) for u in used]
    check(machine, solve(o), thinned(dense(machine, motion, machine.rows), used))


def test_masks_run_on_over_several_motions() -> None:
    """One mask over two motions is the mask of each of them."""
    machine, parts = arm(), [log(700, 1), log(400, 2)]
    drop = np.random.default_rng(41).random(1100) < 0.3
    both = observation(machine, parts, settings=IdentifySettings(sampling=Sampling(drop={"q2": drop}, block=128)))
    one, other = (
        observation(machine, part, settings=IdentifySettings(sampling=Sampling(drop={"q2": mask}, block=128)))
        for part, mask in zip(parts, (drop[:700], drop[700:]), strict=True)
    )
    assert [f.samples for f in both.rows] == [1100, int((~drop).sum()), 1100]
    for a, b in zip(both.rows, one.merge(other).rows, strict=True):
        np.testing.assert_allclose(a.R.T @ a.R, b.R.T @ b.R, rtol=1e-9, atol=1e-9)


def test_a_second_pass_over_a_short_log_computes_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equations of two short logs are kept, filtered as in the first pass; another log under the same plan has its own."""
    computed: list[int] = []
    reference = SymbolTables._by_reference

    def counted(self: SymbolTables, part: Motion) -> None:
        if any(self.columns):  # not of what wrenches ask alone
            computed.append(len(part))
        reference(self, part)

    monkeypatch.setattr(SymbolTables, "_by_reference", counted)
    machine, parts, how = arm(), [log(700, 1), log(400, 2)], Sampling(filter=Butterworth(8.0), decimate=2)
    plan = EquationPlan(machine, machine.select_rows("all"), how)

    def equations(motions: Sequence[Motion]) -> list[np.ndarray]:
        befores = np.cumsum([0, *(len(m) for m in motions)])
        jobs = [job for m, before in zip(motions, befores, strict=False) for job in plan.jobs(m, before=int(before))]
        return [A.copy() for job in jobs for block in plan.blocks(job) for A in block.equations]

    first = equations(parts)
    assert computed == [700, 400]
    for a, b in zip(first, equations(parts), strict=True):
        np.testing.assert_array_equal(a, b)
    assert computed == [700, 400]
    other = equations([log(700, 3)])
    assert computed == [700, 400, 700] and np.abs(other[0] - first[0]).max() > 0.1


@pytest.mark.parametrize(
    ("samples", "cutoff", "decimate", "trim"),
    [(1200, 8.0, 5, 100), (1200, 8.0, 1, 0), (16387, 30.0, 7, 0), (40000, 25.0, 5, 100)],
)
def test_parallel_filtering_equals_filtering_the_dense_matrix(
    samples: int, cutoff: float, decimate: int, trim: int
) -> None:
    """Columns and measurements through one zero-phase filter, in overlapping blocks, to 1e-8; one job and several."""
    machine, motion = arm(), log(samples, 5)
    low = Butterworth(cutoff, 4)
    how = Sampling(filter=low, decimate=decimate, trim=trim, block=300)
    o = observation(machine, motion, settings=IdentifySettings(sampling=how))
    k = np.arange(samples)
    thin = (k % decimate == 0) & (k >= trim) & (k < samples - trim)
    for f, (W, y) in zip(o.rows, dense(machine, motion, machine.rows), strict=True):
        A = zero_phase(np.column_stack([W[:, list(f.columns)], y]), 200.0, low)[thin]
        G = A.T @ A
        assert f.samples == thin.sum()
        assert np.abs(f.R.T @ f.R - G).max() <= 1e-8 * np.abs(G).max()
    filtered = [
        (zero_phase(W, 200.0, low)[thin], zero_phase(y, 200.0, low)[thin])
        for W, y in dense(machine, motion, machine.rows)
    ]
    values = expected(filtered, (s := solve(o)).columns, machine.parameters.typical)[0]
    assert np.abs(s.values - values).max() <= 1e-8 * np.abs(values).max()


def test_parallel_filtering_keeps_the_equations_true() -> None:
    """Noise-free data stay noise-free: y = W χ holds after filtering, dry friction included."""
    machine, motion = arm(), log(2000)
    exact = replace(motion, forces=inverse_dynamics(machine, motion))
    o = observation(machine, exact, settings=IdentifySettings(sampling=Sampling(filter=Butterworth(10.0))))
    s = solve(o)
    truth = machine.parameters.tie_matrix() @ machine.parameters.values
    for f in o.rows:
        assert f.residual(truth[list(f.columns)]) < 1e-9 * f.measurement_norm
    assert s.sigma > 0


def test_known_stiffness_goes_to_the_measured_side() -> None:
    """Γ = −k q for an elastic joint of known stiffness: the same estimate as a motor that exerts −k q."""
    rng = np.random.default_rng(0)
    motion = Motion(np.arange(400.0), *rng.normal(size=(3, 400, 1)))
    elastic = solve(observation(suspended(500.0), motion), sigma={"q1": 1.0})
    driven_by = replace(motion, forces=-500.0 * motion.q)
    motor = solve(observation(suspended(actuated=True), driven_by), sigma={"q1": 1.0})
    assert elastic.values == pytest.approx(motor.values, rel=1e-12)
    assert elastic.sigma == pytest.approx(motor.sigma, rel=1e-12)


def test_unknown_stiffness_is_a_column_and_the_force_zero() -> None:
    """Γ = 0 for an elastic joint of unknown stiffness; a wrench that acts makes the measured side."""
    machine = Machine.of_bodies(
        [Body("1", joint="sliding", actuated=False)], elements=[spring("q1", name="k"), damper("q1", name="h")]
    )
    machine = machine.with_parameters(machine.parameters.known(dict.fromkeys(machine.parameters.names[:9], 0.0)))
    rng = np.random.default_rng(1)
    motion = Motion(np.arange(300.0), *rng.normal(size=(3, 300, 1)))
    total = 7.0 * (motion.qdd[:, 0] + 9.81) + 40.0 * motion.q[:, 0] + 3.0 * motion.qd[:, 0]
    push = np.zeros((300, 6))
    push[:, 2] = total
    s = solve(observation(machine, replace(motion, wrenches={"1": push})))
    assert s.values == pytest.approx([7.0, 40.0, 3.0], rel=1e-10)


def test_a_passive_joint_and_the_base_measure_zero() -> None:
    machine = estimated_33(car_20(elements=True))
    motion = random_motion(np.random.default_rng(0), machine, 30)
    o = observation(machine, motion, TEN_ROWS)
    outside = external_rows(machine, motion)[:, machine.select_rows(TEN_ROWS)]
    assert [f.measurement_norm for f in o.rows] == pytest.approx(list(np.linalg.norm(outside, axis=0)), rel=1e-12)


def test_a_short_log_cannot_be_filtered() -> None:
    with pytest.raises(DataError, match="row 'q1'"):
        observation(arm(), log(10), settings=IdentifySettings(sampling=Sampling(filter=Butterworth(10.0))))


def test_an_uneven_clock_cannot_be_filtered() -> None:
    motion = log(300)
    t = motion.t.copy()
    t[100:] += 0.5
    with pytest.raises(DataError, match=r"motion\.t"):
        observation(arm(), replace(motion, t=t), settings=IdentifySettings(sampling=Sampling(filter=Butterworth(10.0))))
