"""Forward simulation against a log: zero where the machine is the true one, and larger the farther it is from it."""

from __future__ import annotations

import numpy as np
import pytest

from identify.hanging_arm import SOFT, clean, drawn, truth
from veridyn.errors import ModelError
from veridyn.identify.replay import replay
from veridyn.mechanics.integrate import Method, integrate
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine


def test_the_true_machine_follows_its_log() -> None:
    found = replay(truth(), [clean(), clean(400, 1)], horizon=2.0, friction_speed=SOFT)
    assert [r.row for r in found.rows] == ["q1", "q2"]
    assert found.rows[0].samples == 1000
    assert found.relative_error < 1e-9


def test_another_machine_strays_as_an_integration_of_its_own_says() -> None:
    """One run of 3 s, against the general integrator."""
    machine, motion = drawn(), clean()[:300]
    forces = motion.forces

    def between(time: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.array([np.interp(time, motion.t, forces[:, k]) for k in range(2)])

    method = Method("RK4", step=0.01, friction_speed=SOFT)
    alone = integrate(machine, motion.t, motion.q[0], motion.qd[0], between, method=method).motion
    expected = np.sqrt(((alone.q - motion.q) ** 2).mean(axis=0))
    found = replay(machine, motion, friction_speed=SOFT)
    assert [r.rms for r in found.rows] == pytest.approx(expected, rel=1e-6)
    assert found["q1"].rms > 5.0 * replay(machine, motion, horizon=0.25, friction_speed=SOFT)["q1"].rms


def test_a_machine_without_values_is_refused() -> None:
    empty = Machine.of_bodies(tree_of(truth()).bodies, name="arm")
    with pytest.raises(ModelError, match="these parameters have no value"):
        replay(empty, clean())
