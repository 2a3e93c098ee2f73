"""What acts on a simulated machine: forces, friction, other parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mechanics.small_trees import PENDULUM, pendulum
from strangers.machines import MACHINES, any_motion, branched_arm, free_machine
from strangers.random_trees import random_inertia
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, integrate
from veridyn.mechanics.tree.dynamics import engine as machine_code
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, drive_gain
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.spatial.rotations import MDH


def test_motion_carries_the_forces_that_acted() -> None:
    """Inverse dynamics of the result gives the inputs back: forces, wrenches, signals and elements."""
    rng = np.random.default_rng(5)
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=np.pi / 2, d=0.3))]
    elements = [drive_gain("q2", "amps", 3.0), damper("q1", 0.4)]
    tree = Tree.build(bodies, inertia={b.name: random_inertia(rng) for b in bodies}, elements=elements)
    inputs = Inputs(
        forces=lambda t, q, qd: [np.sin(3 * t), 0.0],
        wrenches=lambda t, q, qd: {"2": [0.1, 0.2, np.cos(t), 0.0, 0.3, 0.0]},
        signals=lambda t, q, qd: {"amps": 0.5 * np.cos(2 * t)},
    )
    run = integrate(tree, np.linspace(0.0, 1.0, 11), [0.1, 0.2], [0.0, 0.0], inputs)
    motion = run.motion
    assert motion.forces[:, 0] == pytest.approx(np.sin(3 * motion.t))
    assert motion.signals["amps"] == pytest.approx(0.5 * np.cos(2 * motion.t))
    assert inverse_dynamics(tree, motion) == pytest.approx(motion.forces, abs=1e-11)
    plain = integrate(pendulum(), [0.0, 0.1], [0.1], [0.0], lambda t, q, qd: [2.0])  # a bare function is the forces
    assert np.all(plain.motion.forces == 2.0)


def test_smooth_friction_stops_a_slider() -> None:
    """m v̇ = −f sign(v), rounded off: from 1 m/s at f/m = 2 m/s² it stops after 0.5 s, and stays."""
    tree = Tree.build(
        [Body("block", joint="sliding")],
        gravity=(9.81, 0, 0),
        inertia={"block": [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.5]},
        elements=[coulomb("block", 3.0)],
    )
    how = Method("Radau", friction_speed=1e-3, rtol=1e-6, atol=1e-8)
    run = integrate(tree, [0.0, 0.25, 1.0], [0.0], [1.0], method=how)
    assert run.motion.qd[1, 0] == pytest.approx(0.5, abs=2e-3)
    assert abs(run.motion.qd[2, 0]) < 1e-3
    assert run.motion.q[2, 0] == pytest.approx(0.25, abs=2e-3)


def test_other_parameters_may_be_given() -> None:
    heavy = np.array(PENDULUM) * 2.0
    t = np.linspace(0, 0.5, 3)
    a = integrate(pendulum(), t, [1.0], [0.0], lambda t, q, qd: [1.0]).motion.q
    b = integrate(pendulum(), t, [1.0], [0.0], lambda t, q, qd: [2.0], parameters=heavy).motion.q
    assert a == pytest.approx(b, abs=1e-9)


ENGINES = ("compiled", "numpy")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERIDYN_CACHE", str(tmp_path_factory.mktemp("objects")))
        yield


def called(instant: StateAccelerations, motion: Motion) -> np.ndarray:
    """Sample by sample along a motion."""
    zero = np.zeros((len(motion), 3))
    w, v = (zero, zero) if motion.base is None else (motion.base.omega, motion.base.velocity)
    return np.array(
        [
            instant(
                motion.q[k],
                motion.qd[k],
                motion.forces[k],
                w[k],
                v[k],
                {body: six[k] for body, six in motion.wrenches.items()},
                {name: float(x[k]) for name, x in motion.signals.items()},
            )
            for k in range(len(motion))
        ]
    )


def expected(tree: Tree, motion: Motion) -> np.ndarray:
    caused = forward_dynamics(tree, motion, engine="numpy")
    if caused.base is None:
        return caused.qdd
    return np.hstack([caused.base.acceleration, caused.base.omega_dot, caused.qdd])


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-11) -> bool:
    return bool(np.abs(a - b).max() <= tolerance * np.abs(b).max())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MACHINES)
def test_the_accelerations_of_forward_dynamics(name: str, engine: str) -> None:
    tree = tree_of(MACHINES[name]())
    motion = any_motion(tree, 12)
    assert close(
        called(StateAccelerations(tree, tree.parameters.values, engine=engine), motion), expected(tree, motion)
    )


@pytest.mark.parametrize("name", MACHINES)
def test_wrenches_may_come_and_go(name: str) -> None:
    """None, one, two in either order, none again: each set of bodies is compiled once."""
    tree = tree_of(MACHINES[name]())
    both = any_motion(tree, 6)
    one, other = both.wrenches
    made: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        compiling = machine_code.compile_object
        patch.setattr(machine_code, "compile_object", lambda *a: made.append(1) or compiling(*a))
        # Values of its own, and a geometry that no other test has compiled.
        tree = replace(tree, gravity=np.array([0.3, 0.2, -9.0]))
        instant = StateAccelerations(tree, tree.parameters.values)
        for chosen in ((), (one,), (one, other), (other, one), (other,), (), (one,)):
            motion = replace(both, wrenches={b: both.wrenches[b] for b in chosen})
            assert close(called(instant, motion), expected(tree, motion))
    assert len(made) <= 4  # sets: none, one, other, both; less where gravity does not enter (a free base)


@pytest.mark.parametrize("engine", ENGINES)
def test_friction_is_rounded_off_below_a_speed(engine: str) -> None:
    """fs sign(q̇) against fs q̇/(q̇⁸ + s⁸)^⅛: the difference, given as a force on the row that rubs, has the same effect."""
    tree, speed = tree_of(branched_arm()), 0.5
    motion = any_motion(tree, 8, wrenches=False)
    k = tree.coordinates.index("q4")
    v = motion.qd[:, k]
    pushed = motion.forces.copy()
    pushed[:, k] += 0.9 * (np.sign(v) - v / (v**8 + speed**8) ** 0.125)
    found = called(StateAccelerations(tree, tree.parameters.values, speed, engine), motion)
    assert close(found, expected(tree, replace(motion, forces=pushed)))
    far = called(StateAccelerations(tree, tree.parameters.values, 1e-9, engine), motion)
    assert close(far, expected(tree, motion), 1e-8)


def test_standstill_has_no_friction_when_rounded_off() -> None:
    tree = tree_of(branched_arm())
    motion = any_motion(tree, 3, wrenches=False)
    still = replace(motion, qd=np.zeros_like(motion.qd))
    for engine in ENGINES:
        assert close(
            called(StateAccelerations(tree, tree.parameters.values, 0.1, engine), still), expected(tree, still)
        )


def test_other_parameters() -> None:
    tree = tree_of(branched_arm())
    values = tree.parameters.values * np.linspace(0.9, 1.1, len(tree.parameters))
    motion = any_motion(tree, 4)
    assert close(called(StateAccelerations(tree, values), motion), expected(tree.with_parameters(values), motion))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_machine_without_mass_is_refused(engine: str) -> None:
    tree = Tree.build([Body("1"), Body("2", "1", real=False)], inertia={"1": [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]})
    with pytest.raises(ModelError, match="moves no mass"):
        called(StateAccelerations(tree, tree.parameters.values, engine=engine), any_motion(tree, 1, wrenches=False))


def test_an_unknown_engine_is_refused() -> None:
    tree = tree_of(branched_arm())
    with pytest.raises(DataError, match="there is no engine 'fast'"):
        StateAccelerations(tree, tree.parameters.values, engine="fast")


def test_coordinates_too_far_out_are_refused() -> None:
    """Beyond a million radians the compiled sine loses digits, which must not pass unseen."""
    tree = Tree.build([Body("1")], inertia={"1": [1, 0, 0, 1, 0, 1, 0.5, 0.1, 0, 1]}, gravity=(9.81, 0.0, 0.0))
    motion = any_motion(tree, 1, wrenches=False)
    far = replace(motion, q=np.full_like(motion.q, 1e10))
    instant = StateAccelerations(tree, tree.parameters.values)
    with pytest.raises(DataError, match="too far from zero"):
        called(instant, far)
    assert close(called(StateAccelerations(tree, tree.parameters.values, engine="numpy"), far), expected(tree, far))


def simulated(tree: Tree, engine: str, method: Method) -> np.ndarray:
    """Half a second under forces, a wrench that comes and goes, and a signal."""
    rng = np.random.default_rng(5)
    last = tree.bodies[-1].name

    def wrenches(t: float, q: np.ndarray, qd: np.ndarray) -> dict[str, np.ndarray]:
        return {last: np.array([np.sin(9 * t), 0.3, q[0], 0.1 * t, 0.0, -0.2])}

    names = [e.signal for e in tree.elements if e.kind == "drive_gain"]
    inputs = Inputs(
        forces=lambda t, q, qd: np.sin((3.0 + np.arange(tree.n)) * t) - 0.5 * qd,
        wrenches=wrenches,
        signals=lambda t, q, qd: dict.fromkeys(names, np.cos(5 * t)),
    )
    base = BaseState(velocity=(1.0, 0.2, 0.0), omega=(0.1, -0.3, 0.2)) if tree.base == "free" else None
    q, qd = 0.3 * rng.normal(size=(2, tree.n))
    run = integrate(tree, np.linspace(0.0, 0.5, 11), q, qd, inputs, base=base, method=method, engine=engine)
    parts = [run.motion.q, run.motion.qd, run.motion.qdd]
    if run.motion.base is not None:
        parts += [run.base_position, run.motion.base.omega, run.motion.base.acceleration]
    return np.hstack(parts)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    "method", [Method("RK4", step=5e-3, friction_speed=0.05), Method(friction_speed=0.05, rtol=1e-10)]
)
def test_both_engines_simulate_the_same_half_second(name: str, method: Method) -> None:
    """To 1e-9 of the largest value."""
    tree = tree_of(MACHINES[name]())
    a, b = (simulated(tree, engine, method) for engine in ENGINES)
    assert close(a, b, 1e-9)


def test_base_rows_come_first() -> None:
    tree = tree_of(free_machine())
    found = called(StateAccelerations(tree, tree.parameters.values), any_motion(tree, 2))
    assert found.shape == (2, 6 + tree.n)
