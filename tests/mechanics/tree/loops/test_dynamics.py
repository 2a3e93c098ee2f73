"""Forward dynamics and integration of closed machines, against Pinocchio's constraint dynamics and MuJoCo's `connect`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from strangers.mujoco_trees import SYMBOLS, MujocoTree
from strangers.pinocchio_closed import PinClosed
from strangers.pinocchio_loops import PinLoops
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.machines import delta, linkage, palletizer
from veridyn.mechanics.system.integrate import BaseState, Method, integrate
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, open_mass_matrix
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.mechanics.tree.loops.assembly import assembled, units
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.closure import close, closed_home, closed_motion, closed_positions, loop_jacobian
from veridyn.mechanics.tree.loops.dynamics import (
    first_crossing,
    nearest_closed,
    onto_closure,
    solve_closed,
    solve_regular,
)
from veridyn.mechanics.tree.of_machine import machine_of_tree, tree_of
from veridyn.mechanics.tree.recursion.kinematics import energy, jacobian
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import damper
from veridyn.model.graph import Body, Loop
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.place import Assembly, Attachment
from veridyn.papers.hexapod.machine import LEGS, hexapod, truth
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH, Placement

MACHINES = {"linkage": linkage, "delta": delta, "palletizer": palletizer, "hexapod": truth}


@cache
def bare(name: str, elements: tuple = ()) -> Tree:
    """A machine without friction, motors and the like."""
    tree = tree_of(MACHINES[name]())
    inertia = {b.name: [tree.parameters[b.parameter(s)] for s in SYMBOLS] for b in tree.bodies if b.real}
    return Tree.build(
        tree.bodies,
        name=name,
        inertia=inertia,
        elements=elements,
        gravity=tree.gravity,
        loops=tree.loops,
        assembly=tree.assembly,
    )


def states(tree: Tree, samples: int, seed: int = 0) -> Motion:
    """Closed states with random rates and forces of the drives."""
    rng = np.random.default_rng(seed)
    q, own = closed_positions(tree, samples, rng), list(tree.independent)
    qd = np.einsum("nij,nj->ni", loop_jacobian(tree, q), rng.standard_normal((samples, len(own))))
    forces = np.zeros((samples, tree.n))
    forces[:, own] = 10.0 * rng.standard_normal((samples, len(own)))
    return Motion(np.arange(samples, dtype=np.float64), q, qd, np.zeros_like(q), forces=forces)


@pytest.mark.parametrize("name", MACHINES)
def test_accelerations_are_those_of_pinocchio(name: str) -> None:
    tree = bare(name)
    motion = states(tree, 6)
    stranger = PinClosed(tree)
    wanted = np.array([stranger.forward(*x) for x in zip(motion.q, motion.qd, motion.forces)])
    # accelerations of up to some hundreds, and a handful of roundings each of the two
    assert forward_dynamics(tree, motion).qdd == pytest.approx(wanted, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n == "delta" else ()) for n in MACHINES])
def test_inverse_dynamics_gives_the_forces_back(name: str) -> None:
    """Friction and all elements included; the two share the recursion, and not how loops are dealt with."""
    tree = tree_of(MACHINES[name]())
    motion = states(tree, 8, 1)
    found = forward_dynamics(tree, motion)
    own = list(tree.independent)
    assert inverse_dynamics(tree, found, "joints") == pytest.approx(motion.forces[:, own], abs=1e-8)
    compiled = forward_dynamics(tree, motion, engine="compiled").qdd
    assert compiled == pytest.approx(found.qdd, rel=1e-9, abs=1e-9)
    zero = np.zeros(3)
    for engine in ("numpy", "compiled"):
        instant = StateAccelerations(tree, tree.parameters.values, engine=engine)
        one = instant(motion.q[0], motion.qd[0], motion.forces[0], zero, zero, {}, {})
        assert one == pytest.approx(found.qdd[0], rel=1e-9, abs=1e-9)


def test_a_wrench_on_a_body_of_a_loop() -> None:
    tree = bare("linkage")
    motion = states(tree, 5, 2)
    pushed = replace(motion, wrenches={"coupler": np.tile([3.0, -2.0, 0.0, 0.0, 0.0, 0.5], (5, 1))})
    found = forward_dynamics(tree, pushed)
    assert np.abs(found.qdd - forward_dynamics(tree, motion).qdd).min() > 0.01
    assert inverse_dynamics(tree, found, "joints") == pytest.approx(motion.forces[:, [0]], abs=1e-9)
    zero = np.zeros(3)
    instant = StateAccelerations(tree, tree.parameters.values)
    acting = {"coupler": pushed.wrenches["coupler"][0]}
    one = instant(motion.q[0], motion.qd[0], motion.forces[0], zero, zero, acting, {})
    assert one == pytest.approx(found.qdd[0], rel=1e-9)


@pytest.mark.parametrize("method", [Method(), Method("RK4", step=2e-3), Method("LSODA", rtol=1e-9, atol=1e-10)])
def test_a_linkage_keeps_its_energy_and_its_loop(method: Method) -> None:
    """The crank turns right round, through the dead points of the rocker."""
    tree = bare("linkage")
    q = closed_home(tree)
    qd = loop_jacobian(tree, q[None])[0] @ np.array([12.0])
    m = integrate(tree, np.linspace(0.0, 1.0, 51), q, qd, method=method).motion
    e = energy(tree, m)
    assert np.ptp(m.q[:, 0]) > 2.0 * np.pi
    assert np.abs(e.total - e.total[0]).max() < 1e-6 * e.kinetic.max()
    loops = loop_values(tree, m.q, m.qd)
    assert np.abs(loops[:, :, 3]).max() < 1e-12
    assert np.abs(np.einsum("nij,nj->ni", loops[:, :, :3], m.qd)).max() < 1e-11


def test_a_linkage_moves_as_its_one_equation_says() -> None:
    """½ m(q) q̇² + U(q) = E for one degree of freedom: the time to any q is ∫ dq/q̇, by quadrature, while it does not turn round."""
    tree = bare("linkage")
    start = closed_home(tree)
    qd = loop_jacobian(tree, start[None])[0] @ np.array([12.0])
    m = integrate(tree, np.linspace(0.0, 0.4, 21), start, qd).motion
    total = float(energy(tree, m[:1]).total[0])
    crank = np.linspace(m.q[0, 0], m.q[-1, 0], 2001)
    q = close(tree, crank[:, None]).q
    unit = loop_jacobian(tree, q)[:, :, 0]
    e = energy(tree, Motion(np.arange(2001.0), q, unit, 0.0 * q))
    passed = CubicSpline(crank, np.sqrt(e.kinetic / (total - e.gravity))).antiderivative()
    assert passed(m.q[:, 0]) == pytest.approx(m.t, abs=1e-8)


@pytest.mark.parametrize(("name", "speed"), [("linkage", (8.0,)), ("delta", (1.0, -2.0, 0.5))])
def test_machines_move_as_in_mujoco(name: str, speed: tuple[float, ...]) -> None:
    """Half a second (a fifth for the delta robot) under damped joints and a push of the drives. MuJoCo holds loops softly and forces over a
    step; with steps of 0.2, 0.1 and 0.05 ms the difference falls by four each time."""
    friction = tuple(damper(c, 0.05) for c in bare(name).coordinates)
    tree = bare(name, friction)
    own, end = list(tree.independent), 0.5 if name == "linkage" else 0.2
    q = closed_home(tree)
    qd = loop_jacobian(tree, q[None])[0] @ np.array(speed)
    t = np.linspace(0.0, end, 11)

    def forces(time: float, *_: np.ndarray) -> np.ndarray:
        out = np.zeros(tree.n)
        out[own] = 3.0 * np.sin(10.0 * time)
        return out

    m = integrate(tree, t, q, qd, forces, method=Method(rtol=1e-9, atol=1e-10)).motion
    engine = MujocoTree(tree, 1e-4, stiff=2.5e-4)
    found, _ = engine.run(t, q, qd, forces)
    assert np.ptp(m.q[:, own], axis=0).min() > 0.1
    assert m.q[:, own] == pytest.approx(found[:, own], abs=5e-7)


def test_a_closed_machine_on_a_free_base_keeps_its_momentum_and_energy() -> None:
    """A floating frame with a four-bar linkage on it, without gravity: linear momentum of the whole stays."""
    bar = from_centre(1.0, (0.1, 0, 0), np.diag([0.001, 0.01, 0.01]))
    bodies = [
        Body("frame", None, "fixed"),
        Body("crank", "frame", "turning", MDH(alpha=np.pi / 2), coordinate="a"),
        Body("coupler", "crank", "turning", MDH(d=0.2), coordinate="b", actuated=False),
        Body("rocker", "frame", "turning", MDH(alpha=np.pi / 2, d=0.45), coordinate="c", actuated=False),
    ]
    pin = Loop(
        "pin",
        "turning",
        Attachment("coupler", Placement(position=(0.5, 0, 0))),
        Attachment("rocker", Placement(position=(0.4, 0, 0))),
    )
    tree = Tree.build(
        bodies,
        base="free",
        gravity=(0, 0, 0),
        inertia={"frame": from_centre(3.0, (0.2, 0, 0), np.eye(3)), "crank": bar, "coupler": bar, "rocker": bar},
        loops=[pin],
        assembly=Assembly({"a": 1.0}, {"b": -0.6, "c": 1.5}),
    )
    q = closed_home(tree)
    qd = loop_jacobian(tree, q[None])[0] @ np.array([6.0])
    start = BaseState(velocity=(0.1, 0.2, 0.3), omega=(0.5, -0.4, 0.3))
    found = integrate(tree, np.linspace(0.0, 1.0, 21), q, qd, base=start)
    m, R, p = found.motion, found.base_rotation, found.base_position
    e = energy(tree, m, base_rotation=R, base_position=p)
    assert np.abs(e.total - e.total[0]).max() < 1e-7 * e.total[0]
    # without anything outside, inverse dynamics asks nothing of the base: the sum of all wrenches is zero
    assert inverse_dynamics(tree, m, "base") == pytest.approx(0.0, abs=1e-8)
    back = forward_dynamics(tree, replace(m, forces=np.zeros_like(m.q)))
    assert isinstance(back.base, BaseMotion) and back.base.omega_dot == pytest.approx(m.base.omega_dot, abs=1e-8)
    assert forward_dynamics(tree, replace(m, forces=np.zeros_like(m.q)), engine="compiled").qdd == pytest.approx(
        m.qdd, abs=1e-8
    )


def test_back_to_closure_is_the_shortest_way() -> None:
    tree = bare("delta")
    rng = np.random.default_rng(4)
    q = closed_positions(tree, 5, rng)
    away = q + 1e-4 * rng.standard_normal(q.shape)
    near, qd = onto_closure(tree, away, rng.standard_normal(q.shape))
    loops = loop_values(tree, near, qd)
    J = loops[:, :, : tree.n]
    assert np.abs(loops[:, :, tree.n]).max() < 1e-12 and np.abs(np.einsum("nij,nj->ni", J, qd)).max() < 1e-12
    # what was taken off has no part along the motions that the loops allow, but for the bend of the way, 1e-8
    free, unit = loop_jacobian(tree, near), units(tree)
    assert np.abs(np.einsum("nij,ni->nj", free, (near - away) / unit**2)).max() < 1e-6


@pytest.mark.parametrize("name", ["delta", "hexapod", "linkage"])
def test_one_state_the_quick_way(name: str) -> None:
    """The bordered system and Cholesky's factors against the careful way; the equations of the linkage repeat each other."""
    tree = bare(name)
    home, n = assembled(tree), tree.n
    motion = states(tree, 3, 4)
    assert (len(home.rows) < loop_values(tree, motion.q[:1]).shape[1]) == (name == "linkage")
    for k in range(3):
        q, qd = motion.q[k], motion.qd[k]
        M = open_mass_matrix(tree, q[None], engine="numpy")[0]
        load, loops = motion.forces[k] - 3.0, loop_values(tree, q[None], qd[None], "numpy")[0]
        quick = solve_regular(tree, M, load, loops, qd, 2.0, home, np.zeros(n))
        off_q, off_qd = q + 1e-4 * np.sin(np.arange(n)), qd + 0.1 * np.cos(np.arange(n))
        near = nearest_closed(tree, lambda x, v: loop_values(tree, x[None], v[None], "numpy")[0], off_q, off_qd, home)
        assert quick == pytest.approx(
            solve_closed(tree, M[None], load[None], loops[None], qd[None], 2.0, home)[0], rel=1e-8, abs=1e-8
        )
        assert near is not None
        careful = onto_closure(tree, off_q[None], off_qd[None], "numpy")
        assert near[0] == pytest.approx(careful[0][0], abs=1e-11)
        assert near[1] == pytest.approx(careful[1][0], abs=1e-9)


def test_a_singular_position_ends_a_simulation() -> None:
    """A parallelogram that folds flat may go on as one or crossed: nobody knows."""
    tree = bare("palletizer")
    q = closed_home(tree)
    for method in (Method("RK4", step=2e-3), Method()):
        with pytest.raises(SimulationError, match="singular position"):
            integrate(tree, np.linspace(0.0, 1.0, 101), q, np.zeros(tree.n), method=method)
    path = close(bare("linkage"), np.linspace(0.0, 6.0, 60)[:, None]).q
    assert first_crossing(bare("linkage"), path) is None


def test_what_is_open_is_refused() -> None:
    tree = bare("linkage")
    q = closed_home(tree)[None]
    motion = Motion(np.zeros(1), q, 0 * q, 0 * q, forces=0 * q)
    with pytest.raises(DataError, match=r"linkage, sample 0: its loops are open here.\nFound loop 'pin' open by 0.0"):
        forward_dynamics(tree, replace(motion, q=q + np.array([0.0, 0.1, 0.0])))
    with pytest.raises(DataError, match="these rates open its loops"):
        forward_dynamics(tree, replace(motion, qd=np.array([[1.0, 0.0, 0.0]])))
    with pytest.raises(DataError, match="its loops are open here"):
        integrate(tree, [0.0, 1.0], q[0] + 0.1, np.zeros(3))
    weightless = tree.with_parameters(np.zeros(len(tree.parameters)))
    with pytest.raises(ModelError, match="moves no mass"):
        forward_dynamics(weightless, motion)


PROJECTED_MACHINES = {"hexapod": lambda: hexapod("none"), "linkage": linkage, "delta": delta, "palletizer": palletizer}
# Base parameters without friction. Hexapod: legs with nothing in common, derived twice elsewhere. The others: rank of Pinocchio's
# projected regressor, singular values dropping by more than eleven orders behind the last.
RIGID = {"hexapod": 88, "linkage": 8, "delta": 34, "palletizer": 18}


def without_elements(tree: Tree) -> Tree:
    """The machine without its elements."""
    plain = Tree.build(tree.bodies, name=tree.name, gravity=tree.gravity, loops=tree.loops, assembly=tree.assembly)
    values = dict(zip(tree.parameters.names, tree.parameters.values, strict=True))
    return plain.with_parameters({name: values[name] for name in plain.parameters.names})


def some(tree: Tree, samples: int = 40) -> Motion:
    return generic_motion(tree, samples)


@pytest.mark.parametrize("name", PROJECTED_MACHINES)
def test_jacobian_and_accelerations(name: str) -> None:
    tree = tree_of(PROJECTED_MACHINES[name]())
    stranger, m = PinLoops(tree), some(tree, 12)
    G = loop_jacobian(tree, m.q)
    theirs = np.array([stranger.projection(q) for q in m.q])
    assert np.abs(G - theirs).max() < 1e-8 * np.abs(theirs).max()
    assert max(stranger.opening(q) for q in m.q) < 1e-10
    # rates and accelerations: the ends of every cut joint stay together
    assert max(np.abs(stranger.constraint(q) @ qd).max() for q, qd in zip(m.q, m.qd, strict=True)) < 1e-8
    largest = np.abs(m.qdd).max()
    assert max(stranger.accelerations(*x) for x in zip(m.q, m.qd, m.qdd, strict=True)) < 1e-9 * largest


@pytest.mark.parametrize("name", PROJECTED_MACHINES)
def test_regressor_and_forces(name: str) -> None:
    tree = tree_of(PROJECTED_MACHINES[name]())
    plain = without_elements(tree)
    m = some(plain, 12)
    theirs = PinLoops(plain).regressor(m)
    for engine in ("numpy", "compiled"):
        D = regressor(plain, m, engine=engine)
        assert np.abs(D - theirs).max() < 1e-9 * np.abs(theirs).max()
        gamma = inverse_dynamics(plain, m, engine=engine)
        assert np.abs(gamma - theirs @ plain.parameters.values).max() < 1e-8 * np.abs(gamma).max()
    assert D.shape[1] == len(tree.actuated_coordinates)
    assert plain.select_rows("all") == plain.select_rows("actuated") == plain.select_rows("joints")


@pytest.mark.parametrize("name", PROJECTED_MACHINES)
def test_base_parameters(name: str) -> None:
    """The count is the numerical rank of a stranger's regressor; the groups reproduce it."""
    plain = without_elements(tree_of(PROJECTED_MACHINES[name]()))
    base = base_parameters(machine_of_tree(plain))
    m = some(plain)
    W = PinLoops(plain).regressor(m).reshape(-1, len(plain.parameters))
    s = np.linalg.svd(W * plain.parameters.typical, compute_uv=False)
    assert base.count == RIGID[name] == int((s > 1e-9 * s[0]).sum())
    assert np.abs(W - W[:, list(base.columns)] @ base.matrix).max() < 1e-8 * np.abs(W).max()
    assert base.relations()


def test_energy_balance() -> None:
    """Power of the drives is the change of energy where nothing rubs: along a smooth motion, by differences of energy alone."""
    for name in ("hexapod", "palletizer"):
        tree = without_elements(tree_of(PROJECTED_MACHINES[name]()))
        n_a = len(tree.independent)
        step, N = 1e-3, 41
        t = step * np.arange(N)
        k = np.arange(1, n_a + 1)
        size = 0.05 if name == "hexapod" else 0.5
        w = 3.0 + k
        home = closed_home(tree)[list(tree.independent)]
        phase = np.outer(t, w) + k
        q = home + size * (np.sin(phase) - np.sin(k))
        m = closed_motion(tree, t, q, size * w * np.cos(phase), -size * w**2 * np.sin(phase))
        gamma = inverse_dynamics(tree, m)
        power = (gamma * m.qd[:, list(tree.independent)]).sum(axis=1)
        E = energy(tree, m).total
        # the eighth-order central difference of the energy
        weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280]) / step
        change = np.array([weights @ E[i - 4 : i + 5] for i in range(4, N - 4)])
        assert np.abs(change - power[4:-4]).max() < 1e-8 * np.abs(power).max()


def test_friction_of_passive_joints_and_wrenches() -> None:
    """By virtual work: Gᵀ of what the open tree asks, here with Coulomb friction in the legs' universal joints and a load on the tool."""
    tree = tree_of(hexapod())
    names = tree.parameters.names
    m = some(tree, 9)
    D = regressor(tree, m, wanted=[names.index("ra"), names.index("r2")])
    G = loop_jacobian(tree, m.q)
    a1, l2 = tree.coordinates.index("a1"), tree.coordinates.index("l2")
    assert np.abs(D[..., 0] - G[:, a1] * np.sign(m.qd[:, [a1]])).max() < 1e-12
    assert np.abs(D[..., 1] - np.eye(6)[1] * np.sign(m.qd[:, [l2]])).max() < 1e-12
    load = np.random.default_rng(2).normal(size=(9, 6))
    loaded = replace(m, wrenches={"platform": load})
    asked = external_rows(tree, loaded)[:, list(tree.select_rows("all"))]
    # a unit rate of each leg moves the platform; the drives must do the work that the load does not
    J = jacobian(tree, m.q, "platform", frame="body")
    assert np.abs(asked + np.einsum("nij,ni->nj", J @ G, load)).max() < 1e-10


def test_a_motion_that_opens_loops_is_refused() -> None:
    tree = tree_of(hexapod())
    m = some(tree, 5)
    moved = m.q.copy()
    moved[3, tree.coordinates.index("a4")] += 0.01
    with pytest.raises(
        DataError, match=r"sample 3: this motion does not keep its loops closed.\nFound loop 'foot4' open by 0.0"
    ):
        regressor(tree, replace(m, q=moved))
    with pytest.raises(DataError, match="the rates of this motion open its loops"):
        regressor(tree, replace(m, qd=m.qd + 0.1))
    with pytest.raises(DataError, match="the accelerations of this motion open its loops"):
        regressor(tree, replace(m, qdd=m.qdd + 1.0))
    with pytest.raises(DataError, match="wrong shape"):
        loop_jacobian(tree, np.zeros((3, 5)))


def test_rows_of_passive_joints_are_refused() -> None:
    tree = tree_of(hexapod())
    with pytest.raises(ModelError, match="'a1' is a passive joint of a closed loop and has no equation of its own"):
        regressor(tree, some(tree, 3), rows=["l1", "a1"])
    assert regressor(tree, some(tree, 3), rows=["l3", "l1"]).shape[1] == 2
    assert tree.actuated_coordinates == LEGS
