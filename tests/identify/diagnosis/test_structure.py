"""Lines of structure beside Pinocchio's forces of the same change."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import veridyn as vd
from strangers import untold_structure as u
from strangers.pinocchio_logs import GRAVITY, machine, pin_model
from veridyn.identify.diagnosis.structure import FLEXIBLE, PAYLOAD, between, load_columns, rigid_forces, whole_lines
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
