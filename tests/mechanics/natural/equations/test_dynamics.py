"""Accelerations: published numbers, Pinocchio, and four forms that agree."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, rack_and_pinion, random_mechanism
from strangers.pinocchio_natural import Stranger, natural
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.dynamics import (
    Bordered,
    Stabilisation,
    accelerations,
    initial_state,
    natural_energy,
    solve_accelerations,
)
from veridyn.mechanics.natural.equations.position import independent, position, velocity
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.model.point_parts import MechanismJoint, Point, RigidBody, uniform_bar


def test_initial_accelerations_of_the_four_bar() -> None:
    """FACTS 6: −2.0233 rad/s² for the truth and −27.041 rad/s² for the wrong model, which has no motor."""
    truth = initial_state(system_of(fourbar()), {"phi": np.pi / 3}, {"phi": 1.0})
    assert truth.qdd[4] == pytest.approx(-2.0233, abs=5e-5)
    wrong = initial_state(system_of(fourbar(9.0, 5.0, 0.0)), {"phi": np.pi / 2}, {"phi": -10.0})
    assert wrong.qdd[4] == pytest.approx(-27.041, abs=5e-4)
    assert truth.q[3] > 0


@pytest.mark.parametrize("seed", range(6))
def test_a_spatial_mechanism_against_pinocchio(seed: int) -> None:
    """Two arms with skew axes and a rod between their tips, at random poses that close."""
    stranger, system = Stranger(seed), system_of(natural(seed))
    q, v = stranger.closed(np.random.default_rng(seed), 1.0)
    x, xd, xdd = stranger.natural_state(q, v, stranger.acceleration(q, v))
    phi, J = system.constraints.evaluate(x)
    assert np.abs(phi).max() <= 1e-12
    assert np.abs(J @ xd).max() <= 1e-12
    found, lam = solve_accelerations(system, x, xd)
    scale = max(1.0, np.abs(xdd).max())
    assert np.abs(found - xdd).max() <= 1e-9 * scale
    for form in ("penalty", "augmented", "r_matrix"):
        assert np.abs(accelerations(system, x, xd, form=form)[0] - xdd).max() <= 1e-7 * scale, form
    Q = system.forces.forces(x, xd, system.forces.values)
    assert system.mass @ found + system.constraints.jacobian(x).T @ lam == pytest.approx(
        Q, abs=1e-7 * max(1.0, np.abs(lam).max())
    )


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_forms_agree(seed: int, dim: int) -> None:
    rng = np.random.default_rng(700 + seed)
    system = system_of(random_mechanism(rng, dim).mechanism)
    q = position(system)
    names = independent(system, q)
    if not names:
        pytest.skip("a structure does not move")
    qd = velocity(system, q, dict(zip(names, 0.3 * rng.normal(size=len(names)), strict=True)))
    exact, lam = solve_accelerations(system, q, qd)
    scale = max(1.0, np.abs(exact).max())
    for form, tolerance in (("augmented", 1e-8), ("r_matrix", 1e-8), ("penalty", 1e-4)):
        found, multipliers = accelerations(system, q, qd, form=form)
        assert np.abs(found - exact).max() <= tolerance * scale, form
        assert np.abs(multipliers - lam).max() <= 1e3 * tolerance * max(1.0, np.abs(lam).max()), form


def test_the_penalty_form_is_wrong_by_its_inverse() -> None:
    system = system_of(fourbar())
    state = initial_state(system, {"phi": 1.0}, {"phi": 2.0})
    errors = [
        np.abs(
            accelerations(system, state.q, state.qd, form="penalty", stabilisation=Stabilisation(p))[0] - state.qdd
        ).max()
        for p in (1e3, 1e5)
    ]
    assert errors[0] / errors[1] == pytest.approx(100.0, rel=0.02)


def test_rack_and_pinion_in_closed_form() -> None:
    """(J + m r²) θ̈ = −k r (x − x₀) with J = m L²/3 of a bar."""
    system = system_of(rack_and_pinion())
    state = initial_state(system, {"theta": 0.5}, {"theta": 1.0})
    expected = -50.0 * 0.4 * (0.4 * 0.5 + 0.2 - 0.1) / (1.2 * 0.25 / 3 + 2.0 * 0.16)
    assert state.qdd[system.mechanism.index("theta")] == pytest.approx(expected, rel=1e-12)
    energy = natural_energy(system, state.q, state.qd)
    assert energy.kinetic == pytest.approx(0.5 * (0.1 + 0.32), rel=1e-12)
    assert energy.elastic == pytest.approx(25.0 * 0.3**2, rel=1e-12)
    assert energy.total == energy.kinetic + energy.gravity + energy.elastic


def test_a_load_that_jumps_jumps_the_acceleration() -> None:
    system = system_of(fourbar())
    state = initial_state(system, {"phi": 1.0}, {"phi": 1.0})
    pushed, _ = solve_accelerations(system, state.q, state.qd, {"motor": 100.0})
    assert pushed[4] > state.qdd[4]


def test_a_motion_without_mass_is_refused_by_name() -> None:
    points = [Point("A", (0, 0), True), Point("P", (1, 0)), Point("R", (2, 0))]
    bars = [uniform_bar("bar", "A", "P", 1, 1), RigidBody("thread", {"P": (0, 0), "R": (1, 0)})]
    with pytest.raises(ModelError, match=r"(?s)coordinate 'R.y' can move without moving any mass.*smallest eigenvalue"):
        initial_state(system_of(Mechanism.build(points, bars)), {"P.y": 0.0})


def test_redundant_constraints_are_refused_unless_kept() -> None:
    points = [Point("A", (0, 0), True), Point("P", (1, 0))]
    mechanism = Mechanism.build(
        points,
        [uniform_bar("bar", "A", "P", 1, 1)],
        joints=[MechanismJoint("tie", "distance", "A", "P", 1.0)],
        gravity=(0, -9.81),
    )
    system = system_of(mechanism)
    with pytest.raises(
        ModelError, match=r"(?s)joint 'tie': the constraint 'tie' is redundant.*follows from 'bar: \|A-P\|'"
    ):
        initial_state(system)
    state = initial_state(system, redundant="keep")
    assert state.qdd[1] == pytest.approx(-1.5 * 9.81, rel=1e-12)  # g m L/2 / (m L²/3)
    for form in ("augmented", "r_matrix"):
        assert accelerations(system, state.q, state.qd, form=form)[0] == pytest.approx(state.qdd, abs=1e-9)


def test_bad_requests() -> None:
    system = system_of(fourbar())
    state = initial_state(system, {"phi": 1.0}, {"phi": 1.0})
    with pytest.raises(DataError, match=r"(?s)no form 'magic'.*exact, penalty"):
        accelerations(system, state.q, state.qd, form="magic")
    with pytest.raises(SimulationError, match=r"(?s)do not settle in 2 repetitions.*larger penalty"):
        accelerations(system, state.q, state.qd, form="augmented", stabilisation=Stabilisation(1e-3, iterations=2))


def test_equals_the_penalised_system() -> None:
    rng = np.random.default_rng(0)
    A, J, a, b = rng.normal(size=(6, 6)), rng.normal(size=(3, 6)), rng.normal(size=6), rng.normal(size=3)
    alpha = 50.0
    x, mu = Bordered(A, J, alpha).solve(a, b)
    assert x == pytest.approx(np.linalg.solve(A + alpha * J.T @ J, a - alpha * J.T @ b), rel=1e-11)
    assert mu == pytest.approx(alpha * (J @ x + b), rel=1e-10)


def test_redundant_rows_and_a_singular_matrix() -> None:
    """A mass that one coordinate lacks is made up for by the constraint that holds it, given twice."""
    A = np.diag([2.0, 0.0])
    J = np.array([[1.0, -1.0], [1.0, -1.0]])
    x, mu = Bordered(A, J, 1e12).solve(np.array([4.0, 1.0]), np.zeros(2))
    assert x == pytest.approx([2.5, 2.5], rel=1e-10)
    assert mu.sum() == pytest.approx(-1.0, rel=1e-10)


def test_a_singular_system_is_not_finite() -> None:
    x, _ = Bordered(np.zeros((2, 2)), np.zeros((1, 2)), 1.0).solve(np.ones(2), np.ones(1))
    assert not np.isfinite(x).any()
