"""Many simulations at once: each the one that `integrate` makes alone, whatever the threads; shapes and numbers are checked by name."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import veridyn as vd
from mechanics.ground.test_tyres import MAGIC
from mechanics.system.test_run_bound import floating, home
from mechanics.system.test_run_bound_outside import car, rolling
from veridyn.errors import DataError, DeviceError, SimulationError
from veridyn.machines.described import linkage
from veridyn.mechanics.ground.road import Plane
from veridyn.mechanics.system.batch import RUNS_AT_ONCE, integrate_many
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, spring
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


def test_samples_may_be_far_apart() -> None:
    """A mass of 1 kg that rests on a spring of 1 MN/m: ω = 1000 rad/s, steps of .1 ms, samples every 10 s, which no step could be."""
    weight, k = 9.81, 1e6
    body = {"1": from_centre(1.0, np.zeros(3), np.eye(3))}
    elements = [spring("q1", k), damper("q1", 100.0)]
    tree = Tree.build([Body("1", joint="sliding")], inertia=body, gravity=(0.0, 0.0, -weight), elements=elements)
    runs = integrate_many(tree, [0.0, 10.0, 20.0], [[-weight / k], [0.0]], [0.0], step=1e-4)
    assert runs.q[:, 1:, 0] == pytest.approx(np.full((2, 2), -weight / k), rel=1e-12)


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


def test_machines_with_loops() -> None:
    """A linkage with cranks of other inertia and drives of other torque; against singular values, stepped in Python."""
    machine = linkage()
    rng, times, rest = np.random.default_rng(3), CLOCK[:6], np.zeros(machine.n)
    sets = machine.parameters.values * rng.uniform(0.9, 1.1, (3, len(machine.parameters)))
    forces = np.outer([1.0, -2.0, 3.0], np.array(machine.actuated, dtype=float))
    runs = integrate_many(machine, times, home(machine), rest, forces, parameters=sets, step=2e-3, threads=2)
    assert runs.base is None
    for k in range(3):
        one = vd.dynamics.integrate(
            machine,
            times,
            home(machine),
            rest,
            lambda *_, k=k: forces[k],
            method=EACH,
            parameters=sets[k],
            engine="numpy",
        ).motion
        np.testing.assert_allclose(runs.q[k], one.q, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(runs.qd[k], one.qd, rtol=0.0, atol=1e-9)
    with pytest.raises(DataError, match="loops are open"):
        integrate_many(machine, times, home(machine) + 0.1 * np.arange(machine.n), rest)


def test_free_bases_start_where_each_is_put() -> None:
    machine, times = floating(), CLOCK[:6]
    rng, R = np.random.default_rng(5), 3
    q, qd = rng.normal(size=(2, R, machine.n))
    places, e = rng.normal(size=(R, 3)), rng.normal(size=(R, 4))
    base = vd.dynamics.BaseState(places, e, omega=(0.3, -0.2, 0.5))
    runs = integrate_many(machine, times, q, qd, base=base, step=2e-3, friction_speed=0.02)
    assert runs.base is not None
    for k in range(R):
        alone = vd.dynamics.BaseState(places[k], e[k], omega=(0.3, -0.2, 0.5))
        how = vd.dynamics.Method("RK4", step=2e-3, friction_speed=0.02)
        one = vd.dynamics.integrate(machine, times, q[k], qd[k], base=alone, method=how, engine="numpy")
        np.testing.assert_allclose(runs.q[k], one.motion.q, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(np.asarray(runs.base.position)[k], one.base_position, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(
            np.asarray(runs.base.quaternion)[k], one.motion.base.quaternion, rtol=0.0, atol=1e-10
        )


def test_a_car_rolls_up_a_road() -> None:
    """Four magic tyres on a slope, with chassis of other masses."""
    tree, times = car(MAGIC, "tyre").with_prescribed(()), CLOCK[:3]
    q, qd, base = rolling(tree, 10.0)
    sets = np.tile(tree.parameters.values, (2, 1))
    sets[1, tree.parameters.names.index("M_chassis")] *= 1.1
    road = Plane(grade=0.02)
    runs = integrate_many(tree, times, q, qd, base=base, road=road, parameters=sets, step=2e-3)
    assert runs.base is not None
    how = vd.dynamics.Method("RK4", step=2e-3)
    for k in range(2):
        one = vd.dynamics.integrate(
            tree, times, q, qd, vd.dynamics.Inputs(road=road), base=base, method=how, parameters=sets[k], engine="numpy"
        )
        np.testing.assert_allclose(np.asarray(runs.base.position)[k], one.base_position, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(runs.states[tree.states[0].name][k], one.states[tree.states[0].name], atol=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base": vd.dynamics.BaseState()}, "base is fixed"),
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
