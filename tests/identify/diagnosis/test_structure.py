"""Lines of structure beside Pinocchio's forces of the same change."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp
from scipy.signal import lfilter

import veridyn as vd
from strangers import untold_structure as u
from strangers.pinocchio_logs import GRAVITY, machine, pin_model
from veridyn.identify.diagnosis.structure import (
    FLEXIBLE,
    LOW_PASS_TIMES,
    PAYLOAD,
    PRESLIDING_DISTANCES,
    between,
    load_columns,
    low_passed,
    quantised,
    rigid_forces,
    whole_lines,
    yielding,
)
from veridyn.identify.diagnosis.structure import GRAVITY as LEANING
from veridyn.identify.result import Fit


@pytest.fixture(scope="module")
def fitted() -> tuple[Fit, vd.Motion, u.Machinery]:
    """A fit to forces without noise or friction, at the exact motion."""
    x = u.Machinery(u.four_joints(), np.random.default_rng(3), 6.0, 200.0)
    motion = vd.Motion(x.t, x.q, x.qd, x.qdd, forces=x.tau)
    return vd.identify(machine(u.four_joints()), motion, diagnose="off"), motion, x


ROWS = ["q1", "q2", "q3", "q4"]


def lines(fitted: tuple[Fit, vd.Motion, u.Machinery], kind: str) -> dict[tuple[str, int], np.ndarray]:
    fit, motion, _ = fitted
    thin, rigid = rigid_forces(fit, motion, 1)
    return {(k.where, k.part): v for k, v in whole_lines(fit, motion, ROWS, thin, rigid) if k.kind == kind}


def test_rigid_forces_have_no_friction(fitted: tuple[Fit, vd.Motion, u.Machinery]) -> None:
    fit, motion, x = fitted
    _, rigid = rigid_forces(fit, motion, 1)
    assert np.allclose(rigid.T, x.rigid, atol=1e-6)


def test_a_load_adds_its_columns(fitted: tuple[Fit, vd.Motion, u.Machinery]) -> None:
    """A point mass at c: m and m c, and moments that are smaller by its distance squared, which Pinocchio is given as zero."""
    _, _, x = fitted
    loaded, mass, c = pin_model(x.arm), 1e-3, np.array([0.02, 0.01, 0.03])
    ten = loaded.inertias[4].toDynamicParameters()
    ten[:4] += mass * np.array([1.0, *c])
    loaded.inertias[4] = pin.Inertia.FromDynamicParameters(ten)
    found = lines(fitted, PAYLOAD)
    made = mass * (found["", 0] + sum(c[k] * found["", k + 1] for k in range(3)))
    assert np.allclose(made.T, x.by(loaded) - x.by(pin_model(x.arm)), atol=1e-8)


def test_gravity_leans_across_itself(fitted: tuple[Fit, vd.Motion, u.Machinery]) -> None:
    """The first body's own moments, which an upright axis does not show, are unknown to the fit, so its row is left out."""
    _, _, x = fitted
    found, step = lines(fitted, LEANING), 1e-5
    for part in range(2):
        changes = []
        for axis in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]):
            other = pin_model(x.arm)
            other.gravity.linear = GRAVITY * (np.array([0.0, 0.0, -1.0]) + step * np.array(axis))
            changes.append(np.abs(x.by(other) - x.by(pin_model(x.arm)))[:, 1:] / step)
        assert any(np.allclose(np.abs(found["", part][1:].T), change, atol=1e-4) for change in changes)


def test_a_flexible_joint_moves_the_link(fitted: tuple[Fit, vd.Motion, u.Machinery]) -> None:
    """q = q_motor − c τ_j with derivatives of τ by differences: Pinocchio's forces at the link's motion less those at the motor's."""
    _, _, x = fitted
    c, j = 1e-5, 1
    tau = x.rigid[:, j]
    rates = np.gradient(tau, x.t), np.gradient(np.gradient(tau, x.t), x.t)
    moved = u.Machinery(u.four_joints(), np.random.default_rng(3), 6.0, 200.0)
    moved.q[:, j] -= c * tau
    moved.qd[:, j] -= c * rates[0]
    moved.qdd[:, j] -= c * rates[1]
    change = (moved.by(pin_model(x.arm)) - x.by(pin_model(x.arm)))[60:-60] / c
    found = lines(fitted, FLEXIBLE)["q2", 0].T[60:-60]
    # Parabolas over 0.2 s take a little of second derivatives.
    assert np.linalg.norm(found - change) < 0.1 * np.linalg.norm(change)


def test_between_is_linear() -> None:
    thin = np.array([0, 4, 9])
    assert np.allclose(between(thin, np.array([[0.0, 4.0, 9.0]]), 10), np.arange(10.0))


def test_the_last_body_has_a_mass_and_first_moments(fitted: tuple[Fit, vd.Motion, u.Machinery]) -> None:
    fit, _, _ = fitted
    names = fit.described.parameters.names
    assert [names[k] for k in load_columns(fit.described)] == ["M_link4", "MX_link4", "MY_link4", "MZ_link4"]


def test_a_low_pass_is_that_of_scipy() -> None:
    """(F_τ − F)/τ by the difference equation of a filter of first order, a step of 1 ms, behind its start; a delay moves the force."""
    t = np.arange(4000) * 1e-3
    force = np.sin(3.0 * t) + 0.5 * np.sin(11.0 * t + 1.0)
    lines = {LOW_PASS_TIMES[k]: (slow[0], even[0], late[0]) for k, slow, even, late, _ in low_passed(force[None], 1e-3)}
    tau = 0.03
    slow, even, late = lines[tau]
    a = np.exp(-1e-3 / tau)
    by_scipy, _ = lfilter([1.0 - a], [1.0, -a], force, zi=[a * force[0]])
    inside = slice(500, -500)
    size = float(np.abs((by_scipy - force) / tau).max())
    assert np.abs(slow - (by_scipy - force) / tau)[inside].max() < 0.03 * size  # half a step of 1 ms beside 30 ms
    # 1/(1 + (ωτ)²) − 1 of each sine, without phase
    sines = ((3.0, np.sin(3.0 * t)), (11.0, 0.5 * np.sin(11.0 * t + 1.0)))
    expected = sum(x * (1.0 / (1.0 + (w * tau) ** 2) - 1.0) / tau for w, x in sines)
    assert np.abs(even - expected)[inside].max() < 1e-3 * size
    moved = np.sin(3.0 * (t - tau)) + 0.5 * np.sin(11.0 * (t - tau) + 1.0)
    assert np.abs(late - (moved - force) / tau)[inside].max() < 1e-3 * size


def test_steps_are_found_in_the_values_themselves() -> None:
    t = np.arange(1000) * 1e-2
    force, noise = 5.0 * np.sin(t), np.random.default_rng(1).normal(size=1000)
    lines, steps = quantised(np.array([force, force]), np.array([0.7 * np.round(force / 0.7), force + noise]))
    assert np.allclose(steps, [0.7, 0.0])
    assert np.allclose(lines[0], 0.7 * np.round(force / 0.7) - force) and not lines[1].any()


def test_friction_that_yields_is_that_of_its_differential_equation() -> None:
    """dx/dt = (q̇ − |q̇| x)/δ (Dahl, 1968), integrated by SciPy along a path with reversals; a rest keeps x."""
    t = np.linspace(0.0, 6.0, 1201)
    q, qd = np.sin(2.0 * t) + 0.4 * np.sin(5.0 * t), 2.0 * np.cos(2.0 * t) + 2.0 * np.cos(5.0 * t)
    for line, distance in zip(yielding(q), PRESLIDING_DISTANCES, strict=True):

        def rate(t: float, x: np.ndarray, distance: float = distance) -> np.ndarray:
            v = 2.0 * np.cos(2.0 * t) + 2.0 * np.cos(5.0 * t)
            return (v - abs(v) * x) / distance

        wanted = solve_ivp(rate, (0.0, 6.0), [np.sign(qd[0])], "LSODA", t, rtol=1e-9, atol=1e-9, max_step=0.005).y[0]
        far = np.abs(qd) > 0.05  # turns are found to a sample
        assert np.abs(line - wanted)[far].max() < 0.1
        assert np.sqrt(np.mean((line - wanted)[far] ** 2)) < 0.01
    still = yielding(np.array([0.0, 1.0, 1.0, 1.0, 0.9]))[0]
    assert still.tolist() == pytest.approx([1.0, 1.0, 1.0, 1.0, -1.0])
    assert not yielding(np.zeros(5)).any()
