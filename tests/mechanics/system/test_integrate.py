"""Integration over time: energy, momentum, closed forms, the order of the step, other integrators, starts that are refused by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mechanics.small_trees import PENDULUM, pendulum
from strangers.random_trees import random_inertia, random_tree
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.write import model_text
from veridyn.identify.estimate import identify
from veridyn.mechanics.system.compiled_run import CompiledRun
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, Trajectory, element_states, integrate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import machine_of_tree, tree_of
from veridyn.mechanics.tree.recursion.kinematics import energy
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, Marker, damper, dc_motor, spring
from veridyn.model.graph import Body
from veridyn.spatial.rotations import MDH

LUGRE = {"deflection": 1e-3, "ratio": 1.5, "speed": 0.1, "time": 5e-3}
MASS = 2.0


def test_a_force_that_runs_away_is_a_simulation_error() -> None:
    """q̈ grows as q²: infinite before the end, said with the time that was reached and the coordinate."""
    tree = Tree.build([Body("block", joint="sliding")], inertia={"block": [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.0]})

    def force(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return 9.81 + 50.0 * q**2

    with pytest.raises(
        SimulationError, match=r"coordinate 'block': the motion has run away at 0\.4\d+ s[\s\S]*feeds on itself"
    ):
        integrate(tree, np.linspace(0.0, 10.0, 1001), [1.0], [1.0], force)


def test_a_fixed_step_that_explodes_is_a_simulation_error() -> None:
    stiff = pendulum((spring("arm", 1e9),))
    with (
        np.errstate(all="ignore"),
        pytest.raises(SimulationError, match=r"(no longer finite|run away) at [\d.]+ s[\s\S]*smaller step"),
    ):
        integrate(stiff, np.linspace(0.0, 20.0, 201), [0.1], [0.0], method=Method("RK4", step=0.1))


def test_bad_starts_are_reported_all_at_once() -> None:
    with pytest.raises(DataError) as caught:
        integrate(pendulum(), [0.0, 0.0], [np.nan], [0.0, 1.0], base=BaseState(), method=Method("RK5"))
    text = str(caught.value)
    assert len(caught.value.faults) == 5
    for part in (
        "times do not increase",
        "q: the start is not",
        "qd: the start is not",
        "no integrator 'RK5'",
        "no state",
    ):
        assert part in text
    with pytest.raises(DataError, match=r"a fixed step needs its length[\s\S]*found inf"):
        integrate(pendulum(), [0.0, 1.0], [0.0], [0.0], method=Method("RK4"))


def test_a_coordinate_without_mass_is_named() -> None:
    tree = Tree.build([Body("a"), Body("b", "a", real=False)], inertia={"a": PENDULUM})
    with pytest.raises(ModelError, match="coordinate b moves no mass"):
        integrate(tree, [0.0, 1.0], [0.0, 0.0], [0.0, 0.0])


@cache
def arm() -> Tree:
    """Three joints, turning, sliding and turning, neither planar nor parallel."""
    rng = np.random.default_rng(3)
    bodies = [
        Body("1", placement=MDH(alpha=0.4)),
        Body("2", "1", "sliding", MDH(alpha=1.2, d=0.3, theta=0.5)),
        Body("3", "2", "turning", MDH(alpha=-0.9, d=0.2, r=0.1)),
    ]
    inertia = {b.name: random_inertia(rng) for b in bodies}
    return Tree.build(bodies, inertia=inertia, elements=[spring("q2", 60.0)])


@cache
def free_tree() -> Tree:
    return random_tree(np.random.default_rng(8), bodies=4, base="free", kinds=("turning",))


def tumbling(seconds: float, samples: int, method: Method) -> tuple[Tree, Trajectory]:
    tree = free_tree()
    rng = np.random.default_rng(1)
    start = BaseState(quaternion=rng.normal(size=4), velocity=(0.3, 0.0, 1.0), omega=(0.5, -1.0, 0.7))
    t = np.linspace(0.0, seconds, samples)
    return tree, integrate(tree, t, rng.normal(size=tree.n), rng.normal(size=tree.n), base=start, method=method)


def drift(tree: Tree, run: Trajectory) -> float:
    """Largest change of the total energy over the kinetic energy at the start, before the fall has made it large."""
    E = energy(tree, run.motion, base_rotation=run.base_rotation, base_position=run.base_position)
    return float(np.abs(E.total - E.total[0]).max() / E.kinetic[0])


def test_energy_of_a_free_tree_over_one_second() -> None:
    tree, run = tumbling(1.0, 21, Method("DOP853", step=1e-3))
    assert tree.n == 3
    assert drift(tree, run) < 1e-9


@pytest.mark.slow
def test_energy_of_a_free_tree_over_ten_seconds_at_one_millisecond() -> None:
    """DOP853 with steps of 1 ms at most, 10 s: drift below 1e-6 relative."""
    tree, run = tumbling(10.0, 101, Method("DOP853", step=1e-3))
    print(f"drift {drift(tree, run):.2e} relative")
    assert drift(tree, run) < 1e-6


def test_energy_of_a_free_tree_over_ten_seconds() -> None:
    """The same ten seconds with the step left to the integrator's own tolerance."""
    tree, run = tumbling(10.0, 101, Method("DOP853", rtol=1e-10, atol=1e-11))
    assert drift(tree, run) < 1e-6


def test_energy_of_a_fixed_arm_on_a_spring() -> None:
    tree = arm()
    run = integrate(tree, np.linspace(0.0, 3.0, 61), [0.3, 0.1, -0.4], [0.5, 0.0, 1.0])
    E = energy(tree, run.motion)
    assert np.abs(E.total - E.total[0]).max() < 1e-7 * E.kinetic.max()


def test_momentum_is_kept_without_gravity() -> None:
    """No outside force: the wrench that the base rows ask for is zero, and the momentum in the ground's axes stays."""
    tree = replace(free_tree(), gravity=np.zeros(3))
    rng = np.random.default_rng(2)
    start = BaseState(velocity=(1.0, -0.5, 0.2), omega=(0.4, 0.3, -0.8))
    run = integrate(tree, np.linspace(0.0, 2.0, 11), rng.normal(size=3), rng.normal(size=3), base=start)
    rows = inverse_dynamics(tree, run.motion)
    assert np.abs(rows).max() < 1e-9
    assert run.base_rotation == pytest.approx(np.linalg.inv(run.base_rotation).swapaxes(1, 2), abs=1e-12)
    # The centre of mass goes straight on: mass times its place, from the potential in a unit field.
    place = []
    for axis in np.eye(3):
        field = replace(tree, gravity=-axis)
        E = energy(field, run.motion, base_rotation=run.base_rotation, base_position=run.base_position)
        place.append(E.gravity)
    track = np.array(place).T
    straight = track[0] + np.outer(run.motion.t / 2.0, track[-1] - track[0])
    assert track == pytest.approx(straight, abs=1e-7 * np.abs(track).max())


def test_a_free_body_falls_on_a_parabola() -> None:
    X = random_inertia(np.random.default_rng(4))
    X[6:9] = 0.0
    tree = Tree.build(
        [Body("stone", None, "fixed")], base="free", inertia={"stone": [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 2.0]}
    )
    t = np.linspace(0.0, 1.0, 5)
    run = integrate(tree, t, [], [], base=BaseState(velocity=(1.0, 0.0, 3.0), omega=(1.0, 2.0, 3.0)))
    expected = np.column_stack([t, 0 * t, 3.0 * t - 0.5 * 9.81 * t**2])
    assert run.base_position == pytest.approx(expected, abs=1e-9)
    assert run.motion.base.acceleration == pytest.approx(np.zeros((5, 3)), abs=1e-12)  # weightless


def test_runge_kutta_is_of_order_four() -> None:
    """Halving the step divides the error by 16, against DOP853 at 1e-13, under forces that change with time."""
    tree = arm()
    t, q, qd = np.array([0.0, 0.8]), [0.4, 0.1, -0.3], [1.0, 0.2, -0.8]

    def push(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.array([np.sin(9.0 * t), 5.0 * np.cos(7.0 * t), 0.3 * t])

    exact = integrate(tree, t, q, qd, push, method=Method("DOP853", rtol=1e-13, atol=1e-13)).motion.q[-1]
    steps = np.array([0.04, 0.02, 0.01])
    errors = [
        np.abs(integrate(tree, t, q, qd, push, method=Method("RK4", step=h)).motion.q[-1] - exact).max() for h in steps
    ]
    orders = np.diff(np.log(errors)) / np.diff(np.log(steps))
    assert orders == pytest.approx([4.0, 4.0], abs=0.25)


def test_runge_kutta_cuts_each_interval_into_equal_steps() -> None:
    """0.1 s in steps of at most 0.03 s is four of 0.025 s: the same as asking for 0.025."""
    t = np.array([0.0, 0.1, 0.2])
    a, b = (integrate(pendulum(), t, [0.5], [0.0], method=Method("RK4", step=h)).motion.q for h in (0.03, 0.025))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("name", ["RK45", "LSODA", "Radau"])
def test_scipys_integrators_agree(name: str) -> None:
    t = np.linspace(0.0, 1.0, 5)
    expected = integrate(pendulum(), t, [1.0], [0.0]).motion.q
    got = integrate(pendulum(), t, [1.0], [0.0], method=Method(name, rtol=1e-8, atol=1e-9)).motion.q
    assert got == pytest.approx(expected, abs=1e-5)


def test_small_swings_have_the_period_of_a_pendulum() -> None:
    """q̈ = −(M g x / ZZ) q for small q."""
    rate = np.sqrt(0.6 * 9.81 / 0.3)
    t = np.linspace(0.0, 2.0, 41)
    run = integrate(pendulum(), t, [1e-4], [0.0])
    assert run.motion.q[:, 0] == pytest.approx(1e-4 * np.cos(rate * t), abs=1e-9)


def test_progress_is_told() -> None:
    told: list[tuple[str, float, float | None]] = []
    integrate(pendulum(), [0.0, 0.2], [0.1], [0.0], progress=lambda *x: told.append(x))
    assert told and told[0][0] == "simulating" and told[0][2] == 0.2
    assert max(done for _, done, _ in told) == pytest.approx(0.2)


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
    initial = np.concatenate([*start, np.array([[0.02], [0.0]])], axis=1)
    found, _ = CompiledRun(tree).run(0.01, initial, np.zeros((2, 51, 1)), {})
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


def test_signals_that_nothing_gives_are_named() -> None:
    motor = dc_motor("block", "volts", 1.0, 1e-2, 0.1, 0.1)
    tree = Tree.build(
        [Body("block", joint="sliding")], elements=[motor], inertia={"block": [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.0]}
    )
    with pytest.raises(DataError, match=r"its elements need signals that are not given[\s\S]*nothing for volts"):
        integrate(tree, [0.0, 0.1], [0.0], [0.0])
