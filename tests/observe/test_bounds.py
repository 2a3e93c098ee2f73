"""Bounds of estimated parameters: the projection against a quadratic program, and settings that do not fit by name."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from observe.test_tree import arm
from veridyn.errors import ModelError
from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.record import Bound, opened
from veridyn.observe.bounds import Estimated, ParameterBounds, read_parameters
from veridyn.observe.kernels.bounds import project
from veridyn.observe.kernels.correction import Corrected, corrected_of
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.tree_setup import tree_system


def bounds(*held: tuple[int, float, float]) -> ParameterBounds:
    return ParameterBounds(
        names=tuple(f"p{i}" for i, _, _ in held),
        places=np.array([i for i, _, _ in held]),
        changes=np.array([i for i, _, _ in held]),
        lower=np.array([low for _, low, _ in held]),
        upper=np.array([high for _, _, high in held]),
    )


def random_case(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, 4))
    return rng.standard_normal(4), rng.standard_normal(4), root @ root.T


@pytest.mark.parametrize("seed", range(5))
def test_one_bound_is_the_nearest_state_within_it(seed: int) -> None:
    """min (x − x̂)ᵀ P⁻¹ (x − x̂) under x₂ ≤ bound, by a general optimiser."""
    x, d, P = random_case(seed)
    high = float(x[2] + d[2] - 0.5)
    found = x + bounds((2, -np.inf, high)).project(x, d, P, None)
    W = np.linalg.inv(P)
    goal = minimize(
        lambda z: (z - x - d) @ W @ (z - x - d),
        x + d,
        jac=lambda z: 2.0 * W @ (z - x - d),
        constraints={"type": "ineq", "fun": lambda z: high - z[2]},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(found, goal.x, atol=1e-5)
    assert found[2] == pytest.approx(high, abs=1e-14)


def test_within_the_bounds_nothing_changes_and_considered_states_stay() -> None:
    x, d, P = random_case(7)
    b = bounds((1, -10.0, 10.0), (2, -10.0, 10.0))
    np.testing.assert_array_equal(b.project(x, d, P, None), d)
    tight = bounds((1, float(x[1] + d[1] + 0.3), 10.0))
    moved = tight.project(x, d, P, np.array([False, False, True, False]))
    assert moved[2] == d[2] and moved[0] != d[0]


@pytest.mark.parametrize("seed", range(5))
def test_machine_code_projects_as_the_reference(seed: int) -> None:
    x, d, P = random_case(seed)
    b = bounds((1, -0.2, 0.3), (3, 0.1, np.inf))
    considered = np.array([True, False, False, False])
    room = corrected_of(4, 1, considered)
    room.dx[:], room.P[:] = d, P
    run(Bound(room).address, x, b.places, b.changes, b.lower, b.upper)
    np.testing.assert_allclose(room.dx, b.project(x, d, P, considered), rtol=1e-13, atol=1e-15)
    assert (x[[1, 3]] + room.dx[[1, 3]] >= b.lower - 1e-12).all()


@compiled
def run(address, x, places, changes, lower, upper):
    from_record = opened(address, Corrected)
    project(x, from_record, places, changes, lower, upper)


def test_what_was_held_is_counted() -> None:
    b = bounds((1, 0.0, 2.0))
    assert b.held(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])) == {"p1": (0.0, 2)}
    assert b.held(np.array([[0.0, 0.5]])) == {}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"M_lower": (0.2, 0.0, 3.0, 1.0)}, "bounds leave nothing"),
        ({"M_lower": (-0.2,)}, "deviation or walk is not usable"),
        ({"M_lower": "wide"}, "does not say how it is estimated"),
        ({"M_lower": (0.2, 0.0, 3.0, 4.0)}, "own value is beyond its bounds"),
        ({"M_lowr": (0.2,)}, "there is no parameter 'M_lowr'"),
    ],
)
def test_settings_that_do_not_fit_are_named(parameters: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        tree_system(arm(), ProcessNoise(), unknown=(), parameters=parameters, step=0.01)


def test_deviations_and_walks_of_each_parameter() -> None:
    """Those given with a parameter count; the others' are those of `process_noise`."""
    assert read_parameters(("a", "b")) == (("a", "b"), {})
    given = {"M_lower": Estimated(0.2, 0.01, 0.5, 5.0), "fv1": (0.1,)}
    system, q, qd = tree_system(arm(), ProcessNoise(start_parameter=7.0), unknown=(), parameters=given, step=0.01)
    at = [system.states.index(f"parameter.{name}") for name in given]
    assert np.sqrt(
        np.diag(np.diag(system.belief(q, qd).P) if system.belief(q, qd).P.ndim == 1 else system.belief(q, qd).P)
    )[at] == (pytest.approx([0.2, 0.1]))
    assert system.density[at] == pytest.approx([0.01, 0.0])
    assert system.bounds is not None and system.bounds.names == ("M_lower",)
