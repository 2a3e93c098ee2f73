"""Many simulations at once: each the one that `integrate` makes alone, whatever the threads; shapes and numbers are checked by name."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import veridyn as vd
from veridyn.errors import DataError, DeviceError, SimulationError
from veridyn.mechanics.system.batch import RUNS_AT_ONCE, integrate_many
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
CLOCK = np.linspace(0.0, 0.5, 51)
EACH = vd.dynamics.Method("RK4", step=2e-3)


def two_link_arm() -> Machine:
    """Two hanging links with dry friction and damping."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    link = from_centre(0.6, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    elements = [coulomb("q1", 0.3), damper("q1", 0.02), damper("q2", 0.02)]
    return Machine.of_bodies(bodies, name="two links", inertia={"1": link, "2": link}, elements=elements)


def test_each_run_is_the_one_that_integrate_makes() -> None:
    """Starts, constant forces and parameters of their own, in more runs than one call of machine code makes."""
    machine, rng = two_link_arm(), np.random.default_rng(4)
    R, n, p = RUNS_AT_ONCE + 3, machine.n, len(machine.parameters)
    q, qd, forces = rng.normal(size=(3, R, n))
    sets = machine.parameters.values * rng.uniform(0.9, 1.1, (R, p))
    told: list[tuple[float, float]] = []
    runs = integrate_many(
        machine,
        CLOCK,
        q,
        qd,
        forces,
        parameters=sets,
        step=2e-3,
        threads=2,
        progress=lambda _, x, y: told.append((x, y)),
    )
    assert runs.q.shape == (R, len(CLOCK), n) and len(runs) == R and told[-1] == (R, R)
    for k in (0, 1, RUNS_AT_ONCE - 1, RUNS_AT_ONCE, R - 1):
        one = vd.dynamics.integrate(
            machine, CLOCK, q[k], qd[k], lambda *_, k=k: forces[k], method=EACH, parameters=sets[k]
        ).motion
        np.testing.assert_allclose(runs.q[k], one.q, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(runs.qd[k], one.qd, rtol=0.0, atol=1e-11)
    alone = integrate_many(machine, CLOCK, q, qd, forces, parameters=sets, step=2e-3, threads=1)
    assert np.array_equal(alone.q, runs.q) and np.array_equal(alone.qd, runs.qd)


def test_forces_are_joined_by_straight_lines() -> None:
    machine = two_link_arm()
    Γ = np.stack([np.sin(9.0 * CLOCK), np.cos(7.0 * CLOCK)], axis=1)
    runs = integrate_many(machine, CLOCK, np.zeros((2, 2)), np.zeros(2), Γ[None], step=2e-3)
    joined = vd.dynamics.integrate(
        machine,
        CLOCK,
        np.zeros(2),
        np.zeros(2),
        lambda t, *_: np.array([np.interp(t, CLOCK, g) for g in Γ.T]),
        method=EACH,
    ).motion
    assert np.array_equal(runs.q[0], runs.q[1])
    np.testing.assert_allclose(runs.q[0], joined.q, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"q": np.zeros(3)}, r"'?q'?[\s\S]*wrong shape"),
        ({"q": np.zeros((3, 2)), "qd": np.zeros((4, 2))}, r"numbers of runs differ[\s\S]*q 3, qd 4"),
        ({"t": np.array([0.0, 0.1, 0.3])}, "equal intervals"),
        ({"step": 0.0}, "above zero"),
        ({"signals": {"wind": np.zeros(51)}}, "takes no such signal"),
        ({"device": "tpu"}, "no such device"),
    ],
)
def test_bad_input_is_named(given: dict[str, object], message: str) -> None:
    plain: dict[str, object] = {"t": CLOCK, "q": np.zeros(2), "qd": np.zeros(2)}
    with pytest.raises(DataError, match=message):
        integrate_many(two_link_arm(), **(plain | given))  # pyright: ignore[reportArgumentType]


def test_a_run_that_runs_away_is_named() -> None:
    with pytest.raises(SimulationError, match="run away"):
        integrate_many(two_link_arm(), CLOCK, np.zeros(2), np.array([0.0, 1e9]), step=1e-2)


def test_a_gpu_takes_forces_that_stay() -> None:
    with pytest.raises(DeviceError, match="stay the same along time"):
        integrate_many(two_link_arm(), CLOCK, np.zeros(2), np.zeros(2), np.zeros((1, 51, 2)), device="cuda")
