"""Elements with states of their own: closed forms, steady friction, SciPy's integrators on equations written here, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from veridyn.errors import DataError, ModelError
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.write import model_text
from veridyn.identify.estimate import identify
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.mechanics.system.runs import simulate_runs
from veridyn.mechanics.tree.dynamics.element_states import element_states
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.to_machine import machine_of_tree
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.elements.element import Element, Marker, damper, spring

LUGRE = {"deflection": 1e-3, "ratio": 1.5, "speed": 0.1, "time": 5e-3}
MASS = 2.0


def slider(*elements: Element) -> Tree:
    """A mass of 2 kg on a slide, without gravity."""
    return Tree.build(
        [Body("x", joint="sliding")], inertia={"x": [0.0] * 9 + [MASS]}, gravity=(0, 0, 0), elements=elements
    )


def lugre(value: float = 4.0) -> Element:
    return Element(kind="lugre", on={"x": 1.0}, value=value, constants=LUGRE)


def friction(v: float, z: float, force: float = 4.0) -> tuple[float, float]:
    """Force and ż of the LuGre model, in the words of the reference: σ0, σ1, g(v)."""
    sigma0, sigma1 = force / LUGRE["deflection"], force / LUGRE["deflection"] * LUGRE["time"]
    g = force + force * (LUGRE["ratio"] - 1.0) * np.exp(-((v / LUGRE["speed"]) ** 2))
    zd = v - sigma0 * abs(v) / g * z
    return sigma0 * z + sigma1 * zd, zd


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
def test_stick_and_slip_is_that_of_the_equations(engine: str) -> None:
    """A mass pulled through a spring whose end moves slowly: it sticks and slips; the equations written here, by another integrator."""
    tree = slider(lugre(), spring("x", 800.0, "k"))
    pull = 0.02

    def forces(t: float, q: np.ndarray, qd: np.ndarray) -> list[float]:
        return [800.0 * pull * t]

    t = np.linspace(0.0, 1.0, 51)
    got = integrate(
        tree, t, [0.0], [0.0], Inputs(forces), method=Method("LSODA", rtol=1e-10, atol=1e-13), engine=engine
    )

    def rate(time: float, y: np.ndarray) -> list[float]:
        F, zd = friction(y[1], y[2])
        return [y[1], (800.0 * (pull * time - y[0]) - F) / MASS, zd]

    exact = solve_ivp(rate, (0.0, 1.0), [0.0, 0.0, 0.0], "Radau", t, rtol=1e-10, atol=1e-13)
    assert got.motion.q[:, 0] == pytest.approx(exact.y[0], abs=1e-7)
    assert got.states["fl_x.z"] == pytest.approx(exact.y[2], abs=1e-7)
    assert inverse_dynamics(tree, got.motion)[:, 0] == pytest.approx(got.motion.forces[:, 0], abs=1e-9)


@pytest.mark.parametrize("v", [0.02, 0.1, 1.0, -0.5])
def test_friction_at_constant_speed_is_the_curve(v: float) -> None:
    """Pulled at constant speed the force settles at Fc g(v) sign(v)."""
    tree = slider(lugre()).with_prescribed(["x"])
    t = np.linspace(0.0, 1.5, 6)  # a path of at least twenty deflections
    got = integrate(tree, t, [0.0], [v], Inputs(prescribed=lambda s: {"x": (v * s, v, 0.0)}), method=Method("LSODA"))
    curve = 4.0 * (1.0 + 0.5 * np.exp(-((v / 0.1) ** 2))) * np.sign(v)
    assert got.motion.forces[-1, 0] == pytest.approx(curve, rel=1e-5)


def test_maxwell_element_relaxes() -> None:
    """Held at a stretch after a fast ramp, the force fades as e^(−t/time); start values count."""
    tree = slider(Element(kind="maxwell", on={"x": 1.0}, value=50.0, constants={"time": 0.2})).with_prescribed(["x"])
    t = np.linspace(0.0, 0.6, 13)
    still = Inputs(prescribed=lambda s: {"x": (0.3, 0.0, 0.0)})
    got = integrate(tree, t, [0.3], [0.0], still, states={"km_x.s": 0.1})
    assert got.motion.forces[:, 0] == pytest.approx(50.0 * 0.1 * np.exp(-t / 0.2), rel=1e-7)


def test_relaxation_follows_over_its_length() -> None:
    """A step of slip: after a travelled length L the force has reached 1 − 1/e, whatever the speed."""
    e = Element(kind="relaxation", on={"x": 1.0}, value=1000.0, name="tyre", signal="speed", constants={"length": 0.4})
    tree = slider(e).with_prescribed(["x"])
    for speed in (2.0, 10.0):
        inputs = Inputs(signals=lambda t, q, qd, v=speed: {"speed": v}, prescribed=lambda s: {"x": (0.05, 0.0, 0.0)})
        got = integrate(tree, [0.0, 0.2 / speed, 0.4 / speed], [0.05], [0.0], inputs)
        assert got.motion.forces[1:, 0] == pytest.approx(50.0 * (1.0 - np.exp([-0.5, -1.0])), rel=1e-7)


def test_a_strut_with_a_state() -> None:
    """A Maxwell element between two places: along a straight line its length is the coordinate's distance."""
    ends = Marker("ground", (0.0, 0.0, -1.0)), Marker("x", (0.0, 0.0, 0.0))
    line = slider(Element(kind="maxwell", on={"x": 1.0}, value=50.0, name="m", constants={"time": 0.2}))
    tied = slider(Element(kind="maxwell", on={}, value=50.0, name="m", between=ends, constants={"time": 0.2}))
    t = np.linspace(0.0, 1.0, 11)
    a, b = (integrate(tree, t, [0.1], [0.5], states={"m.s": 0.02}).motion for tree in (line, tied))
    assert b.q == pytest.approx(a.q, abs=1e-8)


def test_states_along_a_measured_motion() -> None:
    """The states that the simulation carried, found again from its motion; with them inverse dynamics gives the forces."""
    tree = slider(lugre(), damper("x", 1.0))
    t = np.linspace(0.0, 2.0, 2001)
    forces = lambda s, q, qd: [9.0 * np.sin(5.0 * s)]  # noqa: E731
    sim = integrate(tree, t, [0.0], [0.0], Inputs(forces), method=Method("LSODA", rtol=1e-9, atol=1e-12))
    bare = replace(sim.motion, signals={})
    again = element_states(tree, bare)
    assert again.signals["fl_x.z"] == pytest.approx(sim.states["fl_x.z"], abs=2e-6)
    assert inverse_dynamics(tree, again)[:, 0] == pytest.approx(sim.motion.forces[:, 0], abs=0.05)
    with pytest.raises(DataError, match=r"element 'fl_x' follows a state of its own[\s\S]*without_elements"):
        identify(machine_of_tree(tree), bare)
    fit = identify(machine_of_tree(tree), again, "ols")
    assert dict(zip(fit.names, fit.values, strict=True))["fl_x"] == pytest.approx(4.0, rel=0.01)
    rest = tree.without_elements(["fl_x"])
    own = inverse_dynamics(tree.with_parameters({"h_x": 0.0, "M_x": 0.0}), again)
    assert bare.forces is not None
    clean = identify(machine_of_tree(rest), replace(bare, forces=bare.forces - own), "ols")
    assert dict(zip(clean.names, clean.values, strict=True))["M_x"] == pytest.approx(MASS, rel=1e-3)


def test_many_runs_carry_the_states() -> None:
    tree = slider(Element(kind="maxwell", on={"x": 1.0}, value=50.0, name="m", constants={"time": 0.2}))
    start = np.array([[0.1], [-0.2]]), np.array([[0.5], [0.3]])
    found = simulate_runs(tree, 0.01, 51, *start, lambda t, q, qd: (0.0 * q, {}), inner=np.array([[0.02], [0.0]]))
    for k, s in enumerate((0.02, 0.0)):
        one = integrate(
            tree, 0.01 * np.arange(51), start[0][k], start[1][k], states={"m.s": s}, method=Method("RK4", 0.01)
        )
        assert found.q[k] == pytest.approx(one.motion.q, abs=1e-12)
        assert found.signals["m.s"][k] == pytest.approx(one.states["m.s"], abs=1e-12)


def test_faults_and_files() -> None:
    tree = slider(
        lugre(),
        Element(kind="relaxation", on={"x": 1.0}, value=1.0, name="tyre", signal="speed", constants={"length": 0.4}),
    )
    again = tree_of(parse_machine(model_text(machine_of_tree(tree)), source="x"))
    assert [dict(e.constants) for e in again.elements] == [dict(e.constants) for e in tree.elements]
    assert (again.states, again.signals) == (tree.states, tree.signals)
    assert [(s.name, s.unit) for s in tree.states] == [("fl_x.z", "m"), ("tyre.s", "m")]
    assert tree.signals == ("speed", "fl_x.z", "tyre.s")
    with pytest.raises(DataError, match=r"there is no state 'fl_x\.y'"):
        integrate(slider(lugre()), [0.0, 1.0], [0.0], [0.0], states={"fl_x.y": 1.0})
    with pytest.raises(ModelError, match="its law needs a signal, and none is named"):
        slider(Element(kind="relaxation", on={"x": 1.0}, constants={"length": 0.4}))
    with pytest.raises(ModelError, match="there is no element 'fl'"):
        tree.without_elements(["fl"])
