"""Runs side by side, each in a lane of vector registers: those that are made one by one, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.errors import ModelError, SimulationError
from veridyn.mechanics.system.compiled_run import CompiledRun
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.system.run_layout import JointControllers, usual_lanes
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, drive_gain, maxwell
from veridyn.model.graph import Body
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
STEP = 0.01
T = STEP * np.arange(60)
LINK = from_centre(0.6, (0.2, 0.01, 0.0), 0.01 * np.eye(3))


def arm() -> Tree:
    """Two hanging links with friction, a current, and a spring that yields, which has a state of its own."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    elements = [damper("q1", 0.1), coulomb("q2", 0.05), drive_gain("q2", "i", 2.0), maxwell("q1", 0.2, 3.0)]
    return Tree.build(bodies, inertia={"1": LINK, "2": LINK}, elements=elements)


def branches() -> Tree:
    """A turning stand that carries two links, which no entry of the mass matrix ties to each other."""
    bodies = [Body("stand", placement=MDH(alpha=np.pi / 2))]
    bodies += [Body(side, "stand", placement=MDH(d=0.3, alpha=0.4)) for side in ("left", "right")]
    return Tree.build(bodies, inertia={b.name: LINK for b in bodies})


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("lag", [None, 0, 3], ids=["forces", "controllers", "controllers of old states"])
def test_each_run_is_the_one_that_is_made_alone(lanes: int, lag: int | None) -> None:
    """Starts, forces, currents and parameters of their own in seven runs. The operations are the same, so are their numbers but for
    what the compiler fuses."""
    tree, rng, R = arm(), np.random.default_rng(8), 7
    start = np.concatenate([rng.normal(size=(R, 4)), np.zeros((R, 1))], axis=1)
    push, current = 0.3 * rng.normal(size=(R, len(T), 2)), {"i": rng.normal(size=(R, len(T)))}
    sets = tree.parameters.values * rng.uniform(0.8, 1.2, (R, len(tree.parameters)))
    servo, command = None, None
    if lag is not None:
        gains = {"kp": np.array([30.0, 20.0]), "ki": np.array([9.0, 9.0]), "kd": np.array([2.0, 1.0])}
        servo = JointControllers(**gains, limit=np.array([5.0, 4.0]), ticks=2, lag=lag)
        command = rng.normal(size=(R, len(T), 4))
    given = {"friction_speed": 0.05, "servo": servo}
    alone, beside = CompiledRun(tree, **given), CompiledRun(tree, **given, lanes=lanes)
    assert beside.has_lanes and not alone.has_lanes
    one, _ = alone.run(STEP, start, push, current, command=command, parameters=sets, substeps=2)
    many, none = beside.run(STEP, start, push, current, command=command, parameters=sets, substeps=2)
    for name in ("q", "qd", "qdd", "forces"):
        expected = getattr(one, name)
        np.testing.assert_allclose(getattr(many, name), expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())
    for name, expected in one.signals.items():
        np.testing.assert_allclose(many.signals[name], expected, rtol=0.0, atol=1e-12)
    assert none.size == 0 and np.ptp(many.q[:, -1], axis=0).min() > 1e-3
    few, _ = beside.run(
        STEP,
        start[:3],
        push[:3],
        {"i": current["i"][:3]},
        command=None if command is None else command[:3],
        parameters=sets[:3],
        substeps=2,
    )
    assert np.array_equal(few.q, many.q[:3])


def test_what_needs_an_instant_of_its_own_is_made_alone() -> None:
    """Dry friction that holds, a law of Python and sensitivities."""
    tree = arm()
    for given in (
        {},
        {"friction_speed": 0.1, "law": lambda t, q, qd: 0.0 * q},
        {"friction_speed": 0.1, "varied": Varied(np.eye(len(tree.parameters))[:, :1])},
    ):
        assert not CompiledRun(tree, lanes=usual_lanes(), **given).has_lanes  # pyright: ignore[reportArgumentType]


def test_a_lane_that_ends_early_is_named_as_a_run() -> None:
    """The third of four runs away, or has a negative mass: the message is that of the run alone, with its number."""
    tree = branches()
    run, still = CompiledRun(tree, lanes=4), np.zeros((4, len(T), 3))
    start = np.zeros((4, 6))
    start[2, 4] = 1e7
    with pytest.raises(SimulationError, match=r"run 2, coordinate '\w+': the motion has run away at 0\.\d+ s"):
        run.run(STEP, start, still, {})
    sets = np.repeat(tree.parameters.values[None], 4, axis=0)
    sets[2] *= -1.0
    with pytest.raises(ModelError, match=r"run 12: .*(singular|moves no mass)"):
        run.run(STEP, np.zeros((4, 6)), still, {}, parameters=sets, first=10)
    still[3, 7, 1] = np.nan
    with pytest.raises(SimulationError, match=r"run 3, '\w+'.* no number 0\.07 s after the start"):
        run.run(STEP, np.zeros((4, 6)), still, {})


def test_sensitivities_of_branches_on_a_moving_body() -> None:
    """By differences: entries of the mass matrix that are zero by structure stay zero after it was found positive."""
    tree, n = branches(), 3
    values = tree.parameters.values
    index = [tree.parameters.index(name) for name in ("MX_left", "ZZ_right")]
    run = CompiledRun(tree, varied=Varied(np.eye(len(values))[:, index]))
    start = np.array([[0.3, -0.9, 0.1, 0.6, 0.5, 3.0]])
    push = 0.2 * np.ones((1, len(T), n))
    _, S = run.run(STEP, start, push, {}, parameters=values, rows=range(n))
    for column, k in enumerate(index):
        way = 1e-6 * np.eye(len(values))[k]
        ends = [run.run(STEP, start, push, {}, parameters=values + s * way)[0].q[0] for s in (1.0, -1.0)]
        slope = (ends[0] - ends[1]) / 2e-6
        assert np.abs(S[0, :, :, column] - slope).max() < 1e-6 * np.abs(slope).max()
