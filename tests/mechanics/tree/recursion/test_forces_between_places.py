"""Elements between two places: rows by Pinocchio, motions by MuJoCo's tendons and natural coordinates, energy by differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.mujoco_trees import MujocoTree
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.identify.base import base_parameters
from veridyn.identify.estimate import identify
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.dynamics import initial_state
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, inverse_derivatives
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.elsewhere import rebased
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.mechanics.tree.recursion.kinematics import energy
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, Marker, coulomb, strut
from veridyn.model.graph import Body, Loop
from veridyn.model.motion import Motion
from veridyn.model.place import Assembly, Attachment
from veridyn.model.point_parts import Angle, Damper, Point, Spring, uniform_bar
from veridyn.spatial.rotations import Placement

N = 7


def tied(seed: int, base: str, kinds: tuple[str, ...] = ("spring", "offset", "damper", "coulomb")) -> Tree:
    """A random tree with struts of several kinds between two random places on bodies that move against each other."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, bodies=7, base=base, shared=bool(seed % 2))
    names = [b.name for b in tree.bodies] + (["ground"] if base == "fixed" else [])
    while True:
        a, b = (str(x) for x in rng.choice(names, 2, replace=False))
        places = Marker(a, rng.normal(size=3)), Marker(b, rng.normal(size=3))
        if any(tree.coordinate[j] >= 0 for way in tree.ways(places) for j in way):
            break
    rest = {"spring": {"rest": 0.4}, "stribeck": {"speed": 0.7}}
    elements = [strut(kind, *places, value=3.0 + k, **rest.get(kind, {})) for k, kind in enumerate(kinds)]
    return tree.with_elements([*elements, strut("spring", *places, 2.0, "free")])


def by_pinocchio(tree: Tree, e: Element, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
    """ℓ (N,) and ∂ℓ/∂(rows) (N, rows) of an element's two places, with Pinocchio's poses and Jacobians."""
    oracle = PinModel(replace(tree, elements=()))
    ends, slopes = [], []
    assert e.between is not None
    for m in e.between:
        if m.body == "ground":
            ends.append(np.broadcast_to(m.at, (len(motion), 3)))
            slopes.append(np.zeros((len(motion), 3, len(tree.rows))))
            continue
        R, p = oracle.frame_pose(motion.q, m.body)
        J = oracle.jacobian(motion.q, m.body, local=True)
        J = np.concatenate([R @ J[:, :3], R @ J[:, 3:]], axis=1)
        arm = R @ np.array(m.at)
        turned = np.stack([np.cross(J[:, 3:, k], arm) for k in range(J.shape[2])], axis=2)
        ends.append(p + arm)
        slopes.append(J[:, :3] + turned)
    r = ends[1] - ends[0]
    length = np.linalg.norm(r, axis=1)
    slope = np.einsum("ni,nik->nk", r / length[:, None], slopes[1] - slopes[0])
    return length, slope


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(4))
def test_columns_are_laws_times_the_slope_of_the_length(seed: int, base: str) -> None:
    """Column = law(ℓ, ℓ̇) ∂ℓ/∂q; the rows of a free base are zero, since both ends are on the machine."""
    tree = tied(seed, base)
    motion = random_motion(np.random.default_rng(seed), tree, N, wrenches=False)
    length, slope = by_pinocchio(tree, tree.elements[0], motion)
    rate = np.einsum("nk,nk->n", slope[:, len(tree.rows) - tree.n :], motion.qd)
    laws = [length - 0.4, np.ones(N), rate, np.sign(rate), length]
    expected = np.stack([x[:, None] * slope for x in laws], axis=2)
    if base == "free":
        assert np.abs(expected[:, :6]).max() < 1e-10
        expected[:, :6] = 0.0
    for engine in ("numpy", "compiled"):
        D = regressor(tree, motion, engine=engine)[:, :, -5:]
        assert pytest.approx(expected, rel=1e-9, abs=1e-9) == D


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_forward_dynamics_undoes_inverse_dynamics(base: str) -> None:
    tree = tied(2, base, ("spring", "offset", "damper", "damper_forward", "coulomb_backward", "stribeck"))
    motion = random_motion(np.random.default_rng(5), tree, N, wrenches=False)
    gamma = inverse_dynamics(tree, motion)
    if base == "free":
        motion = replace(motion, wrenches={tree.bodies[0].name: gamma[:, :6]})
    for engine in ("numpy", "compiled"):
        assert inverse_dynamics(tree, replace(motion, wrenches={}), engine=engine) == pytest.approx(
            gamma, rel=1e-9, abs=1e-9
        )
        again = forward_dynamics(tree, replace(motion, forces=gamma[:, -tree.n :]), engine=engine)
        assert again.qdd == pytest.approx(motion.qdd, rel=1e-7, abs=1e-8)


def test_elastic_force_is_the_slope_of_the_energy() -> None:
    """∂E/∂q_k by central differences is what the springs and offsets ask of coordinate k."""
    tree = tied(3, "fixed", ("spring", "offset"))
    motion = random_motion(np.random.default_rng(0), tree, N, wrenches=False)
    own = np.zeros(len(tree.parameters))
    own[-3:] = tree.parameters.values[-3:]
    exact = regressor(tree, motion) @ own
    h = 1e-6
    for k in range(tree.n):
        up, down = (
            energy(tree, replace(motion, q=motion.q + way * h * np.eye(tree.n)[k])).elastic for way in (1.0, -1.0)
        )
        assert exact[:, k] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-7)


def test_derivatives_are_those_of_finite_differences() -> None:
    tree, h = tied(1, "free", ("spring", "damper", "stribeck")), 1e-6
    motion = random_motion(np.random.default_rng(1), tree, N, wrenches=False)
    exact = inverse_derivatives(tree, motion, engine="compiled")
    plain = inverse_derivatives(tree, motion, engine="numpy")
    assert plain.by_q == pytest.approx(exact.by_q, rel=1e-9, abs=1e-9)
    for k in range(tree.n):
        step = h * np.eye(tree.n)[k]
        for name, slope in (("q", exact.by_q), ("qd", exact.by_qd)):
            up, down = (replace(motion, **{name: getattr(motion, name) + way * step}) for way in (1.0, -1.0))
            found = (inverse_dynamics(tree, up) - inverse_dynamics(tree, down)) / (2 * h)
            assert slope[:, :, k] == pytest.approx(found, rel=1e-5, abs=1e-5)


def test_a_motion_is_that_of_mujocos_tendons() -> None:
    """One second of a chain of three bodies hung on springs and dampers; MuJoCo integrates with its own rule of order four."""
    tree = random_tree(np.random.default_rng(11), bodies=3, branched=False, kinds=("turning",))
    a, b, c = (
        Marker(x, at) for x, at in (("ground", (0.5, 0.2, 1.0)), ("2", (0.1, 0.3, 0.2)), ("3", (0.4, 0.0, -0.1)))
    )
    parts = [strut("spring", a, b, 40.0, rest=0.3), strut("damper", a, b, 1.5), strut("spring", a, c, 15.0, rest=0.0)]
    tree = tree.with_elements([*parts, strut("damper", c, a, 0.7, "h_c")])
    t = np.linspace(0.0, 1.0, 11)
    q0, qd0 = np.array([0.3, -0.2, 0.5]), np.array([0.1, 0.4, -0.3])
    ours = integrate(tree, t, q0, qd0, method=Method(rtol=1e-11, atol=1e-12)).motion
    theirs = MujocoTree(tree, 5e-4).run(t, q0, qd0)
    assert ours.q == pytest.approx(theirs[0], abs=1e-8)
    assert ours.qd == pytest.approx(theirs[1], abs=1e-7)


def test_accelerations_are_those_of_natural_coordinates() -> None:
    """A slender bar on a pin, held by a spring and a damper between a place on it and the ground."""
    length, mass, angle, rate = 0.8, 2.5, 0.4, 1.3
    on_ground, on_bar = (0.3, 0.9), (0.5, 0.05)
    m = Mechanism.build(
        name="held bar",
        points=[Point("O", (0.0, 0.0), fixed=True), Point("P", (length * np.cos(angle), length * np.sin(angle)))],
        bodies=[uniform_bar("bar", "O", "P", length, mass)],
        added=[Angle("phi", ("O", "P"), (1.0, 0.0))],
        springs=[Spring("k", (Marker("ground", on_ground), Marker("bar", on_bar)), 300.0, 0.25)],
        dampers=[Damper("h", (Marker("ground", on_ground), Marker("bar", on_bar)), 9.0)],
        gravity=(0.0, -9.81),
    )
    natural = initial_state(system_of(m), {"phi": angle}, {"phi": rate})
    ends = Marker("ground", (*on_ground, 0.0)), Marker("bar", (*on_bar, 0.0))
    across = mass * length**2 / 3.0
    tree = Tree.build(
        [Body("bar")],
        gravity=(0.0, -9.81, 0.0),
        inertia={"bar": [0, 0, 0, across, 0, across, mass * length / 2, 0, 0, mass]},
        elements=[strut("spring", *ends, 300.0, rest=0.25), strut("damper", *ends, 9.0)],
    )
    still = Motion([0.0], [[angle]], [[rate]], [[0.0]], forces=[[0.0]])
    assert forward_dynamics(tree, still).qdd[0, 0] == pytest.approx(natural.qdd[m.index("phi")], rel=1e-10)


def four_bar(elements: tuple[Element, ...]) -> Tree:
    """A planar four-bar in the x-y plane, its crank driven."""
    bodies = [
        Body("crank"),
        Body("coupler", "crank", placement=Placement(np.eye(3), np.array([0.3, 0.0, 0.0])), actuated=False),
        Body("rocker", placement=Placement(np.eye(3), np.array([0.8, 0.0, 0.0])), actuated=False),
    ]
    pin = Loop(
        "pin",
        "turning",
        Attachment("coupler", Placement(np.eye(3), np.array([0.7, 0.0, 0.0]))),
        Attachment("rocker", Placement(np.eye(3), np.array([0.6, 0.0, 0.0]))),
    )
    bar = [0.0, 0.0, 0.0, 0.02, 0.0, 0.02, 0.1, 0.0, 0.0, 1.0]
    return Tree.build(
        bodies,
        gravity=(0.0, -9.81, 0.0),
        inertia={b.name: bar for b in bodies},
        loops=[pin],
        assembly=Assembly(hold={"crank": 1.2}, guess={"coupler": -0.8, "rocker": 1.6}),
        elements=elements,
    )


def test_in_a_closed_machine_the_row_is_the_power_over_the_speed() -> None:
    """Γ_a q̇_a of a strut's column is law · ℓ̇, ℓ̇ by differences of ℓ along the closed motion; what drives it undoes forward dynamics."""
    ends = Marker("ground", (0.1, 0.6, 0.0)), Marker("coupler", (0.35, 0.1, 0.0))
    tree = four_bar((strut("spring", *ends, 200.0, rest=0.2), strut("damper", *ends, 4.0)))
    t = np.linspace(0.0, 1.0, 2001)
    crank = 1.2 + 0.5 * np.sin(3.0 * t)
    rates = 1.5 * np.cos(3.0 * t), -4.5 * np.sin(3.0 * t)
    motion = closed_motion(tree, t, crank[:, None], rates[0][:, None], rates[1][:, None])
    length, _ = by_pinocchio(replace(tree, loops=()), tree.elements[0], motion)
    rate = np.gradient(length, t, edge_order=2)
    D = regressor(tree, motion)
    assert D[:, 0, -2] * motion.qd[:, 0] == pytest.approx((length - 0.2) * rate, abs=2e-5)
    assert D[:, 0, -1] * motion.qd[:, 0] == pytest.approx(rate**2, abs=2e-4)
    some = motion[::400]
    forces = np.zeros_like(some.q)
    forces[:, 0] = inverse_dynamics(tree, some)[:, 0]
    for engine in ("numpy", "compiled"):
        assert forward_dynamics(tree, replace(some, forces=forces), engine=engine).qdd == pytest.approx(
            some.qdd, abs=1e-8
        )


def test_stiffness_and_rest_length_are_identified() -> None:
    """A spring without a rest length and an offset: two base parameters, k and −k · rest; with the rest length given, one."""
    ends = Marker("ground", (0.6, 0.4, 0.9)), Marker("2", (0.2, 0.3, 0.1))
    plain = random_tree(np.random.default_rng(3), bodies=3, branched=False, kinds=("turning",))
    free = plain.with_elements(
        [
            strut("spring", *ends, 250.0),
            strut("offset", *ends, -75.0),
            strut("damper", *ends, 6.0),
            coulomb("q2", 0.0, "fs"),
        ]
    )
    given = plain.with_elements([strut("spring", *ends, 250.0, rest=0.3)])
    assert [base_parameters(machine_of_tree(free)).fate(n) for n in ("k_ground_2", "off_ground_2", "h_ground_2")] == [
        "alone"
    ] * 3
    assert base_parameters(machine_of_tree(given)).fate("k_ground_2") == "alone"
    rng = np.random.default_rng(8)
    t = np.linspace(0.0, 10.0, 600)
    q, qd, qdd = np.zeros((3, len(t), 3))
    for k in range(3):
        for w in rng.uniform(1.0, 7.0, 4):
            a, p = rng.uniform(0.2, 0.5), rng.uniform(0.0, 6.0)
            q[:, k] += a * np.sin(w * t + p)
            qd[:, k] += a * w * np.cos(w * t + p)
            qdd[:, k] -= a * w**2 * np.sin(w * t + p)
    oracle = PinModel(plain)
    motion = Motion(t, q, qd, qdd)
    length, slope = by_pinocchio(free, free.elements[0], motion)
    rate = np.einsum("nk,nk->n", slope, qd)
    clean = oracle.inverse_dynamics(motion) + (250.0 * (length - 0.3) + 6.0 * rate)[:, None] * slope
    noisy = replace(motion, forces=clean + 0.01 * rng.normal(size=clean.shape))
    unknown = free.with_parameters(np.full(len(free.parameters), np.nan))
    fit = identify(machine_of_tree(unknown), noisy)
    found = dict(zip(fit.names, zip(fit.values, fit.sigma, strict=True), strict=True))
    for name, truth in (("k_ground_2", 250.0), ("off_ground_2", -75.0), ("h_ground_2", 6.0), ("fs", 0.0)):
        value, sigma = found[name]
        assert abs(value - truth) < 5.0 * sigma and sigma < 0.05 * max(1.0, abs(truth)), name


def test_a_new_base_keeps_the_forces_of_struts() -> None:
    """The same free machine with another base: forces on its coordinates at one state are the same."""
    tree = tied(4, "free", ("spring", "damper"))
    other = rebased(tree, tree.bodies[-1].name)
    rng = np.random.default_rng(2)
    motion = random_motion(rng, tree, N, wrenches=False)
    order = [other.coordinates.index(c) for c in tree.coordinates]
    mixed = replace(motion, q=motion.q[:, np.argsort(order)], qd=motion.qd[:, np.argsort(order)])
    ours = regressor(tree, motion)[:, 6:, -3:]
    theirs = regressor(other, mixed)[:, 6:, -3:][:, order]
    assert theirs == pytest.approx(ours, rel=1e-9, abs=1e-9)
