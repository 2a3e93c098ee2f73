"""Runs as machine code: SciPy on Pinocchio's dynamics, the general integrator, finite differences, closed forms, and refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin
import pytest
from benchmarks.running import run_in_threads
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from strangers.pinocchio_logs import ArmLink, machine, pin_model, truth
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.mechanics.system.compiled_run import CompiledRun
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, coulomb, coulomb_along, damper, drive_gain, stribeck
from veridyn.model.graph import Body
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
STEP = 0.01
ARM = [
    ArmLink(mass=2.0, centre=(0.05, 0.0, 0.1), moments=(0.02, 0.02, 0.01), viscous=0.4),
    ArmLink(
        rpy=(1.5, 0.0, 0.2), xyz=(0.0, 0.0, 0.2), mass=1.5, centre=(0.2, 0.02, 0.0), moments=(0.005, 0.03, 0.03), viscous=0.3
    ),
    ArmLink(rpy=(0.1, 0.2, 0.0), xyz=(0.4, 0.0, 0.0), mass=0.8, centre=(0.1, 0.0, 0.03), moments=(0.002, 0.01, 0.01), viscous=0.2),
]  # fmt: skip


def test_the_same_as_scipy_on_the_dynamics_of_pinocchio() -> None:
    """Torques are linear between samples for both; RK4 with steps of 1 ms is within 1e-9 rad of DOP853 at 1e-12 over .5 s."""
    model = pin_model(ARM)
    data, t = model.createData(), STEP * np.arange(51)
    torque = np.stack([2.0 * np.sin(7.0 * t), 6.0 + 2.0 * np.cos(5.0 * t), np.sin(9.0 * t)], axis=1)
    viscous = np.array([link.viscous for link in ARM])

    def rate(time: float, y: Array) -> Array:
        u = np.array([np.interp(time, t, x) for x in torque.T]) - viscous * y[3:]
        return np.concatenate([y[3:], pin.aba(model, data, y[:3], y[3:], u)])

    y = np.array([0.3, -0.2, 0.5, 0.1, 0.2, -0.4])
    expected = [y]
    for a, b in itertools.pairwise(t):  # torques have a kink at every sample
        y = solve_ivp(rate, (a, b), y, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        expected.append(y)
    described = machine(ARM).with_parameters(truth(ARM))
    found, _ = CompiledRun(described).run(STEP, np.array([expected[0]]), torque[None], {}, substeps=10)
    assert np.concatenate([found.q[0], found.qd[0]], axis=1) == pytest.approx(np.array(expected), abs=1e-8)


def pendulum(mass: float = 0.6) -> Tree:
    """Two links that hang, with friction, the second driven by a current."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    link = from_centre(mass, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    elements = [damper("q1", 0.1), coulomb("q2", 0.05), drive_gain("q2", "i", 2.0)]
    return Tree.build(bodies, inertia={"1": link, "2": link}, elements=elements)


def arm() -> Tree:
    """Two hanging links with friction on the first joint and along its way, on both (a belt), and one direction of the second."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    link = from_centre(0.6, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    elements = [
        coulomb("q1", 0.9),
        Element(kind="coulomb", on={"q1": 1.0, "q2": 1.0}, value=0.3, name="belt"),
        Element(kind="coulomb_forward", on={"q2": 1.0}, value=0.25, name="ahead"),
        Element(kind="coulomb_backward", on={"q2": 1.0}, value=0.1, name="back"),
        Element(kind="coulomb_along", on={"q1": 1.0}, value=0.5, name="along", constants={"middle": 0.2, "half": 1.5}),
        Element(kind="coulomb_along3", on={"q1": 1.0}, value=-0.3, name="cubed", constants={"half": 1.5}),
        damper("q1", 0.02),
        damper("q2", 0.02),
    ]
    return Tree.build(bodies, inertia={"1": link, "2": link}, elements=elements)


T = STEP * np.arange(100)
PUSHED = np.stack([0.8 * np.sin(3.0 * T), 0.1 * np.cos(2.0 * T)], axis=1)
CURRENT = 0.2 * np.cos(5.0 * T)


def by_the_integrator(tree: Tree, q: Array, qd: Array, speed: float, **signals: Array):
    """One run by the general integrator, inputs linear between the samples."""
    inputs = Inputs(
        lambda time, q, qd: [np.interp(time, T, x) for x in PUSHED.T],
        signals=(lambda time, q, qd: {name: float(np.interp(time, T, x)) for name, x in signals.items()}) if signals else None,
    )  # fmt: skip
    return integrate(tree, T, q, qd, inputs, method=Method("RK4", STEP / 4, friction_speed=speed)).motion


@pytest.mark.parametrize(("tree", "speed"), [(pendulum(), 0.05), (arm(), 0.0)], ids=["rounded off", "holding"])
def test_the_same_as_one_run_at_a_time_by_the_integrator(tree: Tree, speed: float) -> None:
    """To rounding; with friction that holds, instants of stops are found to 1e-9 of the speeds around them."""
    rng = np.random.default_rng(4)
    q, qd = rng.normal(size=(2, 4, 2))
    signals = {"i": CURRENT} if tree.signals else {}
    many, _ = CompiledRun(tree, friction_speed=speed).run(
        STEP,
        np.concatenate([q, qd], axis=1),
        np.repeat(PUSHED[None], 4, axis=0),
        {name: np.repeat(x[None], 4, axis=0) for name, x in signals.items()},
        substeps=4,
    )
    for k in range(4):
        alone = by_the_integrator(tree, q[k], qd[k], speed, **signals)
        for name in ("q", "qd", "qdd", "forces"):
            expected = getattr(alone, name)
            near = (1e-11 if speed else 1e-8) * np.abs(expected).max()
            assert getattr(many, name)[k] == pytest.approx(expected, abs=near), name
    assert (np.abs(many.qd) < 1e-12).any() == (speed == 0.0)


def test_forces_are_held_between_samples() -> None:
    """A mass m under forces that are constant from sample to sample: v and x in closed form, exactly of degree two."""
    tree = Tree.build(
        [Body("1", joint="sliding")], inertia={"1": from_centre(2.0, np.zeros(3), np.eye(3))}, gravity=(0.0, 0.0, 0.0)
    )
    push = np.array([3.0, -1.0, 4.0, 1.0, 0.0])
    found, _ = CompiledRun(tree).run(0.1, np.zeros((1, 2)), push[None, :, None], {}, hold="zero")
    v = np.concatenate([[0.0], np.cumsum(push[:-1]) * 0.1 / 2.0])
    x = np.concatenate([[0.0], np.cumsum(0.1 * v[:-1] + 0.005 * push[:-1] / 2.0)])
    assert found.qd[0, :, 0] == pytest.approx(v, abs=1e-15)
    assert found.q[0, :, 0] == pytest.approx(x, abs=1e-15)


def legs() -> Tree:
    """Two legs of two links on one stand: nothing ties one to the other."""
    link = from_centre(0.6, (0.2, 0.01, 0.0), 0.01 * np.eye(3))
    bodies, elements = [], []
    for leg in "ab":
        bodies += [Body(f"{leg}1", placement=MDH(alpha=np.pi / 2)), Body(f"{leg}2", f"{leg}1", placement=MDH(d=0.3))]
        elements += [damper(f"{leg}1", 0.1), coulomb(f"{leg}2", 0.2), stribeck(f"{leg}2", 0.3, 0.1)]
        elements += [coulomb_along(f"{leg}2", -0.2, 1.5, x, power=p) for p, x in ((1, 0.05), (2, 0.06))]
    return Tree.build(bodies, inertia={b.name: link for b in bodies}, elements=elements)


@pytest.mark.parametrize("speed", [0.0, 0.05], ids=["holding", "rounded off"])
def test_sensitivities_are_those_of_differences(speed: float) -> None:
    """By parameters of every kind and by the start. The steps are differentiated exactly, so what is left is that of the differences;
    where friction stops a joint within a step, the instant is that of the flow, and 1e-4 of the largest sensitivity is left."""
    tree, n = legs(), 4
    names = [f"{symbol}{leg}2" for leg in "ab" for symbol in ("ZZ_", "MX_", "fs_")]
    names += [name for name in tree.parameters.names if name.startswith(("h_", "fst", "fq"))]
    values = tree.parameters.values.copy()
    spread = np.eye(len(values))[:, [tree.parameters.index(name) for name in names]]
    run = CompiledRun(tree, friction_speed=speed, varied=Varied(spread))
    start = np.array([[0.3, -0.9, 0.1, 0.6, 0.5, 3.0, -0.4, -2.0]])
    push = np.concatenate([PUSHED, 2.0 * PUSHED[::-1]], axis=1)[None]

    def runs(values: Array, start: Array) -> Array:
        found, _ = run.run(STEP, start, push, {}, parameters=values, substeps=2)
        return np.concatenate([found.q, found.qd], axis=2)[0]

    _, S = run.run(STEP, start, push, {}, parameters=values, substeps=2, rows=range(2 * n))
    assert (np.abs(S[0, :, [0, 1, 4, 5]]).max(axis=(0, 1)) == 0.0).any()  # columns of the other leg are not there
    for k in range(len(names) + 2 * n):
        size = 1e-6 if speed == 0.0 else 1e-8  # stops are found to 1e-9; sign(v) rounded off within a step bends more
        way, begun = np.zeros_like(values), np.zeros_like(start)
        if k < len(names):
            way[tree.parameters.index(names[k])] = size
        else:
            begun[0, k - len(names)] = size
        slope = (runs(values + way, start + begun) - runs(values - way, start - begun)) / (2.0 * size)
        off = np.abs(S[0, :, :, k] - slope).max() / np.abs(slope).max()
        assert off < (3e-4 if speed == 0.0 else 1e-6), (k, off)


def test_a_law_of_python_and_what_it_raises() -> None:
    """Closed loop as by the integrator; an error of the law comes out as it was raised."""
    tree = pendulum()

    def law(time: float, q: Array, qd: Array) -> Array:
        return np.array([2.0 * (0.3 * np.sin(time) - q[0]) - 0.5 * qd[0], -q[1]])

    silent, start = {"i": np.zeros((1, 50))}, np.array([[0.2, 0.1, 0.0, 0.5]])
    found, _ = CompiledRun(tree, friction_speed=0.05, law=law).run(
        STEP, start, np.zeros((1, 50, 2)), silent, start=np.array([3.0])
    )
    inputs = Inputs(lambda t, q, qd: law(t, q, qd), signals=lambda t, q, qd: {"i": 0.0})
    method = Method("RK4", STEP, friction_speed=0.05)
    alone = integrate(tree, 3.0 + STEP * np.arange(50), [0.2, 0.1], [0.0, 0.5], inputs, method=method).motion
    assert found.q[0] == pytest.approx(alone.q, abs=1e-12)
    assert found.forces[0] == pytest.approx(alone.forces, abs=1e-12)

    def broken(time: float, q: Array, qd: Array) -> Array:
        raise ZeroDivisionError("a law that divides by zero")

    with pytest.raises(ZeroDivisionError, match="divides by zero"):
        CompiledRun(tree, law=broken).run(STEP, start, np.zeros((1, 50, 2)), silent)


def test_what_cannot_be_simulated_is_refused() -> None:
    tree, start, none = pendulum(), np.zeros((1, 4)), {"i": np.zeros((1, 900))}
    with pytest.raises(ModelError, match=r"mass matrix is singular or not positive|moves no mass"):
        CompiledRun(tree).run(STEP, start, np.zeros((1, 900, 2)), none, parameters=-tree.parameters.values)
    unstable = CompiledRun(tree, law=lambda t, q, qd: 1e4 * (q + 1.0))
    with pytest.raises(SimulationError, match=r"coordinate 'q[12]'[\s\S]*has run away at \d"):
        unstable.run(STEP, start, np.zeros((1, 900, 2)), none)
    forces = np.zeros((1, 900, 2))
    forces[0, 450, 1] = np.nan
    with pytest.raises(SimulationError, match=r"force of 'q2' is no number 4.5 s"):
        CompiledRun(tree).run(STEP, start, forces, none)


def test_parameters_of_each_run() -> None:
    tree, rng = arm(), np.random.default_rng(1)
    sets = tree.parameters.values * rng.uniform(0.9, 1.1, (3, len(tree.parameters)))
    start, push = np.tile([0.3, -0.9, 0.0, 3.0], (3, 1)), np.repeat(PUSHED[None], 3, axis=0)
    run = CompiledRun(tree)
    many, _ = run.run(STEP, start, push, {}, parameters=sets)
    for k in range(3):
        one, _ = run.run(STEP, start[k : k + 1], push[:1], {}, parameters=sets[k])
        assert np.array_equal(many.q[k], one.q[0])
    assert np.ptp(many.q[:, -1], axis=0).min() > 1e-3
    apart = run_in_threads([CompiledRun(tree), CompiledRun(tree)], STEP, start, push, {}, parameters=sets)
    assert np.array_equal(apart.q, many.q) and np.array_equal(apart.forces, many.forces)
    sets[2] *= -1.0
    with pytest.raises(ModelError, match=r"mass matrix is singular or not positive|moves no mass"):
        run.run(STEP, start, push, {}, parameters=sets)
    sets[1, 3] = np.nan
    with pytest.raises(DataError, match="'YY1' of set 1 is no number"):
        run.run(STEP, start, push, {}, parameters=sets)
