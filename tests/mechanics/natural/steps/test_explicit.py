"""Explicit rules: order and accuracy on the four-bar of FACTS 6, machine code against NumPy, SciPy, loads that change inside a step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from strangers.natural_mechanisms import fourbar, random_mechanism
from strangers.natural_steps import natural_step
from strangers.pinocchio_natural import natural
from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.natural.equations.dynamics import (
    Bordered,
    NaturalState,
    Stabilisation,
    energies,
    initial_state,
    solve_accelerations,
)
from veridyn.mechanics.natural.equations.position import independent, position, velocity
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.steps.integrate import (
    NaturalMethod,
    constraint_errors,
    integrate_natural,
)
from veridyn.mechanics.system.stepper import RULES, tableau

PHI, PHI_DOT = 2.53083926, -2.5638753  # FACTS 6, at 4 s: DOP853 and Pinocchio agree to 1e-10


def explicit(rule: str, step: float) -> NaturalMethod:
    return NaturalMethod("explicit", step=step, rule=rule)  # pyright: ignore[reportArgumentType]


def step_by_numpy(system: NaturalSystem, state: NaturalState, h: float, rule: str) -> NaturalState:
    """Stages on exact accelerations, then Newton's way back to the constraints in the metric M."""
    A, b, _ = tableau(rule)
    v, a = np.empty((len(b), system.n)), np.empty((len(b), system.n))
    for i in range(len(b)):
        v[i] = state.qd + h * A[i, :i] @ a[:i]
        a[i] = solve_accelerations(system, state.q + h * A[i, :i] @ v[:i], v[i])[0]
    q, qd, nothing = state.q + h * b @ v, state.qd + h * b @ a, np.zeros(system.n)

    def nearest(q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The shortest way in the metric M by which Φ_q closes what is open."""
        bordered = Bordered(system.mass, system.constraints.jacobian(q), Stabilisation().alpha(system))
        return bordered.solve(nothing, rows)[0]

    for _ in range(8):
        q = q + nearest(q, system.constraints.values(q))
    qd = qd + nearest(q, system.constraints.jacobian(q) @ qd)
    return NaturalState(state.t + h, q, qd, *solve_accelerations(system, q, qd))


def at_the_end(rule: str, step: float, system: NaturalSystem, end: float = 4.0) -> float:
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    return float(integrate_natural(system, [0.0, end], start, method=explicit(rule, step)).column("phi")[-1])


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_consistent(rule: str) -> None:
    A, b, c = tableau(rule)
    assert np.abs(np.triu(A)).max() == 0.0
    assert A.sum(axis=1) == pytest.approx(c, abs=1e-14)
    for k in range(4):
        assert b @ c**k == pytest.approx(1.0 / (k + 1), abs=1e-14)


@pytest.mark.parametrize(("rule", "step", "near"), [("RK4", 0.02, 5e-6), ("RK45", 0.02, 1e-6), ("DOP853", 0.05, 2e-6)])
def test_four_bar_with_long_steps(rule: str, step: float, near: float) -> None:
    system = system_of(fourbar())
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    motion = integrate_natural(system, np.linspace(0.0, 4.0, 81), start, method=explicit(rule, step))
    assert motion.column("phi")[-1] == pytest.approx(PHI, abs=near)
    assert motion.qd[-1, 4] == pytest.approx(PHI_DOT, abs=10.0 * near)
    assert (constraint_errors(system, motion) < 1e-9).all()
    total = energies(system, motion.q, motion.qd).sum(axis=1) + 10.0 * motion.column("phi")
    assert np.ptp(total) < 1e-2  # of about 600 J that move


@pytest.mark.parametrize(("rule", "order", "coarse"), [("RK4", 4, 0.02), ("RK45", 5, 0.025), ("DOP853", 8, 0.05)])
def test_the_way_back_to_the_constraints_costs_no_order(rule: str, order: int, coarse: float) -> None:
    """Over 1 s, against the same rule with steps so short that nothing is left; the reference itself against FACTS 6 above."""
    system = system_of(fourbar())
    exact = at_the_end("DOP853", 2e-3, system, 1.0)
    errors = [abs(at_the_end(rule, h, system, 1.0) - exact) for h in (coarse, 0.5 * coarse)]
    assert np.log2(errors[0] / errors[1]) > order - 0.5


def test_machine_code_equals_numpy() -> None:
    """Random mechanisms in plane and space with everything that can act, among it torques that turn with their body."""
    for seed in range(8):
        rng = np.random.default_rng(900 + seed)
        system = system_of(random_mechanism(rng, 2 + seed % 2).mechanism)
        q = position(system)
        names = independent(system, q)
        if not names:
            continue
        qd = velocity(system, q, dict(zip(names, 0.1 * rng.normal(size=len(names)), strict=True)))
        qdd, lam = solve_accelerations(system, q, qd)
        states = [NaturalState(0.0, q, qd, qdd, lam)] * 2
        for _ in range(3):
            states = [
                step_by_numpy(system, states[0], 1e-3, "RK4"),
                natural_step(system, states[1], 1e-3, method=explicit("RK4", 1e-3)),
            ]
        for part in ("q", "qd", "qdd"):
            a, b = (getattr(s, part) for s in states)
            assert np.abs(a - b).max() <= 1e-8 * max(1.0, np.abs(a).max()), part
        assert states[0].t == states[1].t == pytest.approx(3e-3)


def test_in_space_it_is_the_index_3_motion() -> None:
    """Which Pinocchio has confirmed in test_integrate; both rules come nearer to each other with the square of index-3's step."""
    system = system_of(natural())
    start = initial_state(system)
    exact = integrate_natural(system, [0.0, 0.5], start, method=explicit("DOP853", 1e-2)).q[-1]
    apart = [
        np.abs(integrate_natural(system, [0.0, 0.5], start, method=NaturalMethod(step=h)).q[-1] - exact).max()
        for h in (2e-3, 1e-3)
    ]
    assert apart[0] < 1e-4
    assert np.log2(apart[0] / apart[1]) == pytest.approx(2.0, abs=0.1)


def test_loads_are_asked_for_at_the_stages() -> None:
    """A load that swings: the order stays 4, against SciPy on the exact accelerations."""
    system = system_of(fourbar())
    (load,) = system.forces.loads
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    n = system.n

    def push(time: float) -> dict[str, float]:
        return {load: 100.0 * np.sin(20.0 * time)}

    def rate(time: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[n:], solve_accelerations(system, y[:n], y[n:], push(time))[0]])

    exact = solve_ivp(rate, (0.0, 0.5), np.concatenate([start.q, start.qd]), "DOP853", rtol=1e-12, atol=1e-12).y[4, -1]
    errors = [
        abs(integrate_natural(system, [0.0, 0.5], start, push, method=explicit("RK4", h)).q[-1, 4] - exact)
        for h in (0.02, 0.01)
    ]
    assert errors[0] < 1e-5
    assert np.log2(errors[0] / errors[1]) > 3.5


def test_the_first_acceleration_is_that_of_the_loads_not_of_the_start() -> None:
    """A start whose accelerations belong to another load, as where a load jumps, does not carry them on."""
    system = system_of(fourbar())
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    wrong = NaturalState(0.0, start.q, start.qd, start.qdd + 1.0, start.multipliers)
    found = [natural_step(system, s, 1e-2, method=explicit("RK4", 1e-2)).q for s in (start, wrong)]
    assert (found[0] == found[1]).all()


def test_a_step_that_is_too_long_says_so() -> None:
    system = system_of(fourbar())
    state = initial_state(system, {"phi": 1.0}, {"phi": 30.0})
    with pytest.raises(SimulationError, match=r"(?s)the step that ends at 3 s is too long.*index3"):
        natural_step(system, state, 3.0, method=explicit("RK4", 3.0))


def test_an_unknown_rule_is_refused() -> None:
    system = system_of(fourbar())
    start = initial_state(system, {"phi": 1.0}, {"phi": 1.0})
    with pytest.raises(DataError, match=r"(?s)there is no rule 'RK9'.*RK4, RK45, DOP853"):
        integrate_natural(system, [0.0, 1.0], start, method=explicit("RK9", 1e-3))
