"""The step as one formula: SciPy, the general step over stops, sensitivities of every kind, and what goes wrong."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from veridyn.errors import SimulationError
from veridyn.mechanics.system import run_formula, run_record
from veridyn.mechanics.system.compiled_run import CompiledRun
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, coulomb, coulomb_along, damper, drive_gain, maxwell, stribeck
from veridyn.model.graph import Body
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
STEP = 0.01
T = STEP * np.arange(150)


def axis() -> Tree:
    """A slide with friction that differs by direction, driven by a force and by a current, beside a spring with a damper."""
    elements = [
        damper("q1", 0.8),
        coulomb("q1", 1.0),
        Element(kind="coulomb_forward", on={"q1": 1.0}, value=0.4, name="ahead"),
        drive_gain("q1", "i", 2.0),
        maxwell("q1", 0.2, 0.5),  # has a state of its own, and a constant
    ]
    inertia = {"1": from_centre(2.0, np.zeros(3), np.eye(3))}
    return Tree.build([Body("1", joint="sliding")], inertia=inertia, gravity=(0.0, 0.0, 0.0), elements=elements)


def arm() -> Tree:
    """Two hanging links with friction on the first joint, on both together (a belt), and rounded off nowhere."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    link = from_centre(0.6, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    belt = Element(kind="coulomb", on={"q1": 1.0, "q2": 1.0}, value=0.3, name="belt")
    elements = [coulomb("q1", 0.9), belt, damper("q1", 0.02), damper("q2", 0.02)]
    return Tree.build(bodies, inertia={"1": link, "2": link}, elements=elements)


def inputs(tree: Tree) -> tuple[Array, dict[str, Array]]:
    """Forces (1, K, n) and signals that stop the joints and turn them round."""
    forces = np.stack([2.0 * np.sin(3.0 * T), 0.3 * np.cos(7.0 * T)], axis=1)[None, :, : tree.n]
    return forces, {"i": 0.4 * np.cos(11.0 * T)[None]} if tree.signals else {}


def test_a_pendulum_as_scipy_has_it() -> None:
    """m l² q̈ = −m g l sin q − d q̇ + τ with τ linear between samples; steps of 1 ms are within 1e-10 rad of DOP853 at 1e-12."""
    m, length, d = 0.7, 0.4, 0.2
    body = {"1": from_centre(m, (length, 0.0, 0.0), np.zeros((3, 3)))}
    tree = Tree.build([Body("1")], inertia=body, gravity=(9.81, 0.0, 0.0), elements=[damper("q1", d)])
    torque = 2.0 * np.sin(5.0 * T[:51])

    def rate(time: float, y: Array) -> list[float]:
        push = float(np.interp(time, T[:51], torque)) - d * y[1] - m * 9.81 * length * np.sin(y[0])
        return [y[1], push / (m * length**2)]

    expected = [np.array([0.3, -1.0])]
    for a, b in itertools.pairwise(T[:51]):
        expected.append(solve_ivp(rate, (a, b), expected[-1], "DOP853", rtol=1e-12, atol=1e-13).y[:, -1])
    run = CompiledRun(tree, friction_speed=0.05, often=True)
    assert run.record.I[run_record.WRITTEN_OUT] == 1
    found, _ = run.run(STEP, expected[0][None], torque[None, :, None], {}, substeps=10)
    assert np.stack([found.q[0, :, 0], found.qd[0, :, 0]], axis=1) == pytest.approx(np.array(expected), abs=1e-9)


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("tree", [axis(), arm()], ids=["axis", "arm"])
def test_the_same_as_the_general_step(tree: Tree, hold: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """States and sensitivities by parameters, their combinations and the start, through stops: to rounding."""
    monkeypatch.setattr(run_formula, "MAX_OPERATIONS", 20_000)
    p, n = len(tree.parameters), tree.n
    known = np.flatnonzero(tree.parameters.values)
    spread = np.eye(p)[:, known]
    spread[known[0], -1] = 0.5  # the last column moves two parameters
    forces, signals = inputs(tree)
    varied = Varied(spread, tuple(range(len(tree.constants))))
    start, found = np.array([[0.3, -0.2, 0.4, 0.1][: 2 * n + len(tree.states)]]), []
    for often in (False, True):
        run = CompiledRun(tree, varied=varied, often=often)
        assert run.record.I[run_record.WRITTEN_OUT] == int(often)
        made, S = run.run(STEP, start, forces, signals, hold=hold, substeps=2, rows=range(start.size))  # pyright: ignore[reportArgumentType]
        alone, _ = CompiledRun(tree, often=often).run(STEP, start, forces, signals, hold=hold, substeps=2)  # pyright: ignore[reportArgumentType]
        assert alone.q == pytest.approx(made.q, abs=1e-10)
        found.append((made, S))
    (one, S_one), (other, S_other) = found
    resting = np.abs(one.qd) < 1e-12
    assert resting.any() and not resting.all()
    for name in ("q", "qd", "qdd", "forces"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), abs=1e-9), name
    for k in range(S_one.shape[3]):
        assert S_other[..., k] == pytest.approx(S_one[..., k], abs=1e-7 * np.abs(S_one[..., k]).max() + 1e-12), k


def test_states_alone_are_those_beside_accelerations() -> None:
    """Where accelerations and forces are not wanted they are not computed, and the states are the same."""
    tree = axis()
    forces, signals = inputs(tree)
    for often in (False, True):
        run = CompiledRun(tree, often=often)
        every, _ = run.run(STEP, np.zeros((1, 3)), forces, signals)
        alone, _ = run.run(STEP, np.zeros((1, 3)), forces, signals, into=run.room(1, len(T), states_alone=True))
        assert alone.qdd.size == 0 and alone.q == pytest.approx(every.q, abs=1e-12)


def test_what_is_no_formula() -> None:
    """Friction that changes with speed or place, or grows with the load of its drive, has other forces in every stage."""
    body = {"1": from_centre(2.0, np.zeros(3), np.eye(3))}
    for changing in (stribeck("q1", 0.3, 0.1), coulomb_along("q1", 0.0, 1.0, 0.3)):
        tree = Tree.build([Body("1", joint="sliding")], inertia=body, elements=[changing])
        assert CompiledRun(tree, often=True).record.I[run_record.WRITTEN_OUT] == 0
    run = CompiledRun(axis(), often=True)
    run.set_load(np.array([0.1]), np.array([0.0]))
    assert run.record.I[run_record.WRITTEN_OUT] == 0
    run.set_load(np.zeros(1), np.zeros(1))
    assert run.record.I[run_record.WRITTEN_OUT] == 1


def test_a_motion_that_runs_away_is_named_as_by_the_general_step() -> None:
    """A damper that feeds: time, coordinate and state of the message are the same."""
    tree = axis()
    values = tree.parameters.values.copy()
    values[tree.parameters.index("h_q1")] = -3e3
    forces, signals = inputs(tree)
    said = []
    for often in (False, True):
        with pytest.raises(SimulationError) as caught:
            CompiledRun(tree, often=often).run(STEP, np.array([[0.0, 1.0, 0.0]]), forces, signals, parameters=values)
        said.append(str(caught.value))
    assert said[0] == said[1]
