from __future__ import annotations

import numpy as np
import pytest

from studies.bench_evidence import SAMPLING, bench_evidence, bench_motion, permuted
from studies.bench_robot import JOINTS, robot
from veridyn.identify.base import base_parameters
from veridyn.identify.diagnosis.columns import SecondMoments
from veridyn.identify.diagnosis.evidence import drives_of, evidence, measured_coordinates
from veridyn.identify.estimate import identify
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import drive_gain

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 80, 10))
EVERY = [np.arange(10)] * 3


def test_the_error_of_good_data_is_that_of_the_noise() -> None:
    e = bench_evidence()
    assert e.error() < 0.008  # 2 % of white noise through 8 of 100 Hz leaves √0.08 of it
    assert 200 < len(e.motion) <= 400
    assert e.rows == JOINTS


def test_equations_are_those_of_the_dynamics() -> None:
    """W χ = y for the true parameters, up to the noise: columns are the base ones, and rows are relative to their own size."""
    e = bench_evidence()
    eq = e.equations()
    true = inverse_dynamics(robot(), e.motion, list(JOINTS)).T / eq.sizes[:, None]
    base = base_parameters(robot())
    assert tuple(eq.numbers) == base.columns
    np.testing.assert_allclose(eq.W @ base.reduce(robot().parameters.values), true, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(eq.y, axis=1), 1.0)


def test_known_parameters_stand_on_the_measured_side() -> None:
    e = bench_evidence()
    p = robot().parameters
    machine = robot().with_parameters(p.known(["h_q1", "fs_q1"]))
    eq = e.equations(machine)
    assert eq.W.shape[2] == len(p) - 2
    assert e.error(machine) == pytest.approx(e.error(), rel=0.3)


def test_the_error_agrees_with_the_fit_it_stands_for() -> None:
    e = bench_evidence()
    fit = identify(robot(), bench_motion(), settings=IdentifySettings(sampling=SAMPLING))
    relative = [r.relative_error for r in fit.rows]
    assert 0.5 < e.error() / np.sqrt(np.mean(np.square(relative))) < 2.0  # thinned, and columns are not filtered


def test_changes_of_coordinates_and_forces() -> None:
    e = bench_evidence()
    T = permuted(0, 2)
    m = e.replaced("", "", "", "", coordinates=T, forces=T).motion
    np.testing.assert_array_equal(m.q[:, 0], e.motion.q[:, 2])
    np.testing.assert_array_equal(m.forces[:, 2], e.motion.forces[:, 0])
    assert e.error(motion=m) > 5.0 * e.error()


def test_drives_move_with_the_forces_they_make() -> None:
    base = robot()
    machine = base.with_elements([drive_gain(c, f"i{k}", 2.0, f"K{k}") for k, c in enumerate(JOINTS)])
    machine = machine.with_parameters(machine.parameters.known([f"K{k}" for k in range(3)]))
    m = bench_motion()
    driven = type(m)(m.t, m.q, m.qd, m.qdd, signals={f"i{k}": m.forces[:, k] / 2.0 for k in range(3)})
    e = evidence(machine, [driven], JOINTS, SAMPLING)
    assert drives_of(machine) == {"q1": "i0", "q2": "i1", "q3": "i2"}
    assert measured_coordinates(machine, driven) == JOINTS
    swapped = e.with_forces(permuted(0, 1))
    np.testing.assert_array_equal(swapped.signals["i0"], e.motion.signals["i1"])
    assert e.error(motion=swapped) > 5.0 * e.error()
    assert e.error() < 0.05
    turned = e.replaced("", "", "", "", coordinates=np.diag([1.0, -1.0, 1.0]), forces=np.diag([1.0, -1.0, 1.0])).motion
    for other in (swapped, turned):  # known gains are no columns: they stand on the measured side
        moments, y = e.reduced(other)
        torques = 2.0 * np.column_stack([other.signals[f"i{k}"] for k in range(3)]).T
        np.testing.assert_allclose(y, torques, atol=1e-12)
        sizes = e.equations(motion=other).sizes
        np.testing.assert_allclose(moments.W / sizes[:, None, None], e.equations(motion=other).W, atol=1e-12)


def test_predicted_forces_are_those_of_inverse_dynamics_at_the_model_s_own_values() -> None:
    e = bench_evidence()
    wanted = inverse_dynamics(e.machine, e.motion, list(e.rows)).T
    assert e.predicted() == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def stacked(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.linalg.norm(y, axis=1)
    return (W / sizes[:, None, None]).reshape(-1, 10), (y / sizes[:, None]).ravel()


def test_the_factor_of_one_row_is_found() -> None:
    y = W @ RNG.normal(size=10) + 0.001 * RNG.normal(size=(3, 80))
    y[1] /= 1.7
    assert SecondMoments.of(W, EVERY).factor(y, 1) == pytest.approx(1.7, rel=1e-3)


def test_rows_that_measure_nothing_count_as_explained() -> None:
    assert not SecondMoments.of(W, EVERY).left(np.zeros((3, 80))).any()


def test_columns_that_do_not_act_on_a_row_are_left_out_of_its_products() -> None:
    sparse = W.copy()
    sparse[1, :, 4:] = 0.0
    y = sparse @ RNG.normal(size=10) + RNG.normal(size=(3, 80))
    few = SecondMoments.of(sparse, [np.arange(10), np.arange(4), np.arange(10)])
    np.testing.assert_allclose(few.grams, sparse.transpose(0, 2, 1) @ sparse, atol=1e-12)
    np.testing.assert_allclose(few.left(y), SecondMoments.of(sparse, EVERY).left(y), rtol=1e-12)


@pytest.mark.parametrize("noise", [0.01, 1.0, 30.0])
def test_what_is_left_of_each_row_is_what_lstsq_leaves(noise: float) -> None:
    y = W @ RNG.normal(size=10) + noise * RNG.normal(size=(3, 80)) * np.array([[0.1], [1.0], [3.0]])
    A, b = stacked(y)
    left = (b - A @ np.linalg.lstsq(A, b, rcond=1e-9)[0]).reshape(3, -1)
    wanted = np.linalg.norm(left, axis=1) * np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(SecondMoments.of(W, EVERY).left(y), wanted, rtol=1e-5)
