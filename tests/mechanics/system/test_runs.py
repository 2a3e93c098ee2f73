"""Many runs at once: the same states as one run at a time by the general integrator, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import ModelError, SimulationError
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.mechanics.system.runs import simulate_runs
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, drive_gain
from veridyn.model.graph import Body
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.transforms import MDH


def pendulum(mass: float = 0.6) -> Tree:
    """Two links that hang, with friction, the second driven by a current."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    link = from_centre(mass, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    elements = [damper("q1", 0.1), coulomb("q2", 0.05), drive_gain("q2", "i", 2.0)]
    return Tree.build(bodies, inertia={"1": link, "2": link}, elements=elements)


def pushed(time: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    return np.stack([0.5 * np.sin(3.0 * time) - 0.1 * qd[:, 0], np.zeros(len(q))], axis=1)


def current(time: float, runs: int) -> dict[str, np.ndarray]:
    return {"i": np.full(runs, 0.2 * np.cos(5.0 * time))}


def test_the_same_as_one_run_at_a_time() -> None:
    tree, rng = pendulum(), np.random.default_rng(0)
    q, qd = rng.normal(size=(2, 5, 2))
    found = simulate_runs(
        tree,
        0.01,
        60,
        q,
        qd,
        lambda t, q, qd: (pushed(t, q, qd), current(t, len(q))),
        friction_speed=0.05,
        substeps=2,
    )
    for k in range(5):
        inputs = Inputs(
            lambda t, q, qd: pushed(t, q[None], qd[None])[0], signals=lambda t, q, qd: {"i": current(t, 1)["i"][0]}
        )
        method = Method("RK4", step=0.005, friction_speed=0.05)
        alone = integrate(tree, 0.01 * np.arange(60), q[k], qd[k], inputs, method=method).motion
        for name in ("q", "qd", "qdd", "forces"):
            assert getattr(found, name)[k] == pytest.approx(getattr(alone, name), rel=1e-9, abs=1e-10)
        assert found.signals["i"][k] == pytest.approx(alone.signals["i"], rel=1e-14)


def test_what_cannot_be_simulated_is_refused() -> None:
    start = np.zeros((1, 2))

    def still(time: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return np.zeros_like(q), {"i": np.zeros(len(q))}

    with pytest.raises(ModelError, match=r"mass matrix is singular or not positive|moves no mass"):
        simulate_runs(pendulum(), 0.01, 5, start, start, still, parameters=-pendulum().parameters.values)
    with pytest.raises(SimulationError, match="has run away"):
        simulate_runs(pendulum(), 0.01, 900, start, start, lambda t, q, qd: (1e4 * (q + 1.0), {"i": np.zeros(1)}))
