"""A run gone through backwards: the same as derivatives carried forwards, as differences, and refusals by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import veridyn as vd
from veridyn.errors import ModelError
from veridyn.mechanics.system.compiled_run import CompiledRun, Hold, Simulated
from veridyn.mechanics.system.run_adjoint import GAIN_ROWS, AdjointRun, at_steps, to_samples
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.system.run_layout import JointControllers
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, coulomb, damper, drive_gain, lugre, maxwell, spring
from veridyn.model.graph import Body
from veridyn.model.load import Force
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
STEP, SAMPLES, FRICTION_SPEED = 0.01, 60, 0.05
EXACT = 1e-10  # relative: both are derivatives of the same steps, so that only rounding differs
T = STEP * np.arange(SAMPLES)


def arm() -> Tree:
    """Three hanging links, the last one sliding, with springs, a belt, a force that fades, a current, and friction that is rounded off."""
    bodies = [
        Body("1", placement=MDH(alpha=np.pi / 2)),
        Body("2", "1", placement=MDH(d=0.3)),
        Body("3", "2", joint="sliding", placement=MDH(d=0.2, alpha=-np.pi / 2)),
    ]
    link = from_centre(0.6, (0.2, 0.01, 0.03), 0.01 * np.eye(3))
    elements = [
        damper("q1", 0.1),
        spring({"q1": 1.0, "q2": -1.0}, 3.0, name="belt"),
        Element(kind="spring", on={"q3": 1.0}, value=40.0, name="rest", constants={"rest": 0.1}),
        maxwell("q2", 0.05, 2.0),
        coulomb("q2", 0.05),
        drive_gain("q3", "i", 2.0),
    ]
    return Tree.build(bodies, inertia={"1": link, "2": link, "3": link}, elements=elements)


def pushed(n: int) -> Array:
    return np.stack([(0.8 - 0.2 * j) * np.sin((3.0 + j) * T + j) for j in range(n)], axis=1)


def weighted(by_state: Array, by_force: Array):
    """Σ of all outputs, each with a weight."""

    def goal(run: Simulated) -> tuple[float, Array, Array]:
        states = [run.q[0], run.qd[0], *(x[0][:, None] for name, x in run.signals.items() if name.endswith(".s"))]
        y = np.concatenate(states, axis=1)
        return float((by_state * y).sum() + (by_force * run.forces[0]).sum()), by_state, by_force

    return goal


def start_of(tree: Tree) -> Array:
    return np.concatenate(
        [np.linspace(0.4, -0.3, tree.n), np.linspace(-0.5, 0.8, tree.n), 0.1 * np.ones(len(tree.states))]
    )


@pytest.mark.parametrize(("hold", "substeps"), [("linear", 1), ("linear", 3), ("zero", 2)])
def test_the_same_as_derivatives_carried_forwards(hold: Hold, substeps: int) -> None:
    """By all parameters, all constants of laws and the start, of weighted positions, rates and states of elements."""
    tree, rng = arm(), np.random.default_rng(3)
    size, p = 2 * tree.n + len(tree.states), len(tree.parameters)
    by_state = rng.normal(size=(SAMPLES, size))
    inputs = np.column_stack([pushed(tree.n), 0.2 * np.cos(5.0 * T)])
    run = AdjointRun(tree, friction_speed=FRICTION_SPEED)
    found = run.sweep(
        STEP, start_of(tree), inputs, weighted(by_state, np.zeros((SAMPLES, 3))), hold=hold, substeps=substeps
    )
    varied = Varied(np.eye(p), tuple(range(len(tree.constants))))
    forwards = CompiledRun(tree, friction_speed=FRICTION_SPEED, varied=varied)
    same, S = forwards.run(
        STEP, start_of(tree)[None], inputs[None, :, :3], {"i": inputs[None, :, 3]}, hold=hold, substeps=substeps, rows=range(size)
    )  # fmt: skip
    expected = np.einsum("kr,krc->c", by_state, S[0])
    ours = np.concatenate([found.parameters, found.constants, found.start])
    assert len(tree.constants) == 2 and len(tree.states) == 1
    assert found.run.q == pytest.approx(same.q, abs=1e-13)
    assert ours == pytest.approx(expected, abs=EXACT * np.abs(expected).max())


SERVO = JointControllers(
    kp=np.array([30.0, 20.0, 300.0]),
    ki=np.array([20.0, 0.0, 400.0]),
    kd=np.array([2.0, 1.0, 20.0]),
    limit=np.array([4.0, np.inf, 20.0]),
    ticks=2,
    lag=5,
    zero=np.array([0.02, 0.0, -0.01]),
    measurement_delay=np.array([0.0, 0.023, 0.0411]),
)


def followed() -> tuple[Tree, Array]:
    """The arm, and its inputs: forces, the current, and a command that drives two of its joints into their limits."""
    tree = arm()
    command = np.stack([np.sin(4.0 * T), 0.5 * np.cos(3.0 * T), 0.1 * np.sin(6.0 * T)], axis=1)
    return tree, np.column_stack([0.1 * pushed(3), 0.2 * np.cos(5.0 * T), command, np.gradient(command, STEP, axis=0)])


def test_the_same_as_derivatives_carried_forwards_through_controllers() -> None:
    """PID laws that are limited, with zeros, and with measurements of any age; weights on their forces too."""
    tree, inputs = followed()
    rng, p, n = np.random.default_rng(5), len(tree.parameters), tree.n
    by_state, by_force = rng.normal(size=(SAMPLES, 7)), rng.normal(size=(SAMPLES, n))
    run = AdjointRun(tree, friction_speed=FRICTION_SPEED, servo=SERVO)
    found = run.sweep(STEP, start_of(tree), inputs, weighted(by_state, by_force), servo=SERVO)
    keys = [key for key in GAIN_ROWS if key != "limit"]
    varied = Varied(np.eye(p), gains=tuple((key, j) for key in keys for j in range(n)))
    forwards = CompiledRun(tree, friction_speed=FRICTION_SPEED, servo=SERVO, varied=varied)
    given = STEP, start_of(tree)[None], inputs[None, :, :3], {"i": inputs[None, :, 3]}
    same, S = forwards.run(*given, command=inputs[None, :, 4:], rows=range(7))
    _, by = forwards.run(*given, command=inputs[None, :, 4:], rows=range(n), law_forces=True)
    limited = np.abs(same.forces[0]) >= SERVO.limit
    assert limited.any(axis=0).tolist() == [True, False, True] and not limited.all(axis=0).any()
    expected = np.einsum("kr,krc->c", by_state, S[0]) + np.einsum("kr,krc->c", by_force, by[0])
    gains = [found.gains[GAIN_ROWS.index(key)] for key in keys]
    ours = np.concatenate([found.parameters, *gains, found.start])
    assert ours == pytest.approx(expected, abs=EXACT * np.abs(expected).max())


def test_limits_and_inputs_by_differences() -> None:
    """What is not carried forwards: by limits, forces, signals and commands at samples, of runs with steps between them."""
    tree, inputs = followed()
    rng = np.random.default_rng(6)
    goal = weighted(rng.normal(size=(SAMPLES, 7)), rng.normal(size=(SAMPLES, 3)))

    def run_with(x: Array, servo: JointControllers | None):
        own = AdjointRun(tree, friction_speed=FRICTION_SPEED, servo=servo)
        return own.sweep(STEP, start_of(tree), x, goal, servo=servo, substeps=2)

    for servo, given in ((SERVO, inputs), (None, inputs[:, :4])):
        ages = None if servo is None else replace(servo, measurement_delay=0.5 * np.asarray(servo.measurement_delay))
        found = run_with(given, ages)
        for k, column in [
            (0, 0),
            (7, 1),
            (20, 2),
            (21, 3),
            (58, 3),
            (6, 4),
            (20, 5),
            (31, 6),
            (14, 7),
            (40, 8),
            (15, 9),
        ]:
            if column < given.shape[1]:
                d = np.zeros_like(given)
                d[k, column] = 1e-5
                expected = (run_with(given + d, ages).value - run_with(given - d, ages).value) / 2e-5
                near = 1e-6 * np.abs(found.inputs[:, column]).max()  # of differences of 1e-5
                assert found.inputs[k, column] == pytest.approx(expected, abs=near), (k, column)
        if ages is not None:
            for j in (0, 2):
                d = np.zeros(3)
                d[j] = 1e-5
                ahead, back = (run_with(given, replace(ages, limit=ages.limit + way * d)).value for way in (1.0, -1.0))
                assert found.gains[GAIN_ROWS.index("limit"), j] == pytest.approx((ahead - back) / 2e-5, rel=1e-5)


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_inputs_between_samples_and_their_transpose(hold: Hold) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(7, 2)), rng.normal(size=(19, 2))
    fine = at_steps(x, 3, hold)
    assert fine[::3] == pytest.approx(x, abs=0.0)
    assert fine[4] == pytest.approx(x[1] if hold == "zero" else (2.0 * x[1] + x[2]) / 3.0)
    assert (w * fine).sum() == pytest.approx((to_samples(w, 3, hold) * x).sum())


def test_all_that_is_not_smooth_is_named() -> None:
    tree = arm()
    with pytest.raises(ModelError, match=r"dry friction 'fs.*'.*OutputError"):
        AdjointRun(tree)
    bristles = tree.with_elements([lugre("q1", 0.01, 0.01, 0.2, ratio=1.5, speed=0.1)])
    with pytest.raises(ModelError, match="lugre"):
        AdjointRun(bristles, friction_speed=FRICTION_SPEED)
    for name, found in {"linkage": "loop 'pin'", "humanoid": "a free base", "car_20": "a free base"}.items():
        with pytest.raises(ModelError, match=found):
            AdjointRun(vd.load_model(f"veridyn:{name}.yaml"), friction_speed=FRICTION_SPEED)
    bodies, link = [Body("1"), Body("2", "1")], from_centre(0.6, (0.2, 0.01, 0.03), 0.01 * np.eye(3))
    own = {"inertia": {"1": link, "2": link}}
    with pytest.raises(ModelError, match="prescribed coordinate 'q1'"):
        AdjointRun(Tree.build(bodies, **own, prescribed=["q1"]))
    with pytest.raises(ModelError, match="load 'push' at a place"):
        AdjointRun(Tree.build(bodies, **own, loads=[Force("push", "2", (1.0, 2.0, 3.0))]))
