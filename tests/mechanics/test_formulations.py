"""One machine in both formulations: accelerations, energies, places, readings, reactions and motions agree, and agree with Pinocchio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from strangers.graph_machines import rssr, seven_joint_arm, slider_crank
from strangers.machine_files import RSSR
from strangers.pinocchio_closed import PinClosed
from strangers.pinocchio_machine import PinMachine
from strangers.pinocchio_oracle import PinModel
from veridyn.errors import SimulationError
from veridyn.files.access import shipped
from veridyn.files.machine.load import parse_machine
from veridyn.mechanics.natural.channels import readout
from veridyn.mechanics.natural.description.of_machine import mechanism_of, mechanism_with
from veridyn.mechanics.natural.equations.dynamics import NaturalState, natural_energy, solve_accelerations
from veridyn.mechanics.natural.equations.freedoms import mobility
from veridyn.mechanics.natural.equations.position import position, velocity
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.reaction import reaction_of
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, integrate_natural
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.loops.closure import closed_home, closed_motion
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.quantity import Quantity
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.recursion.kinematics import body_pose, energy
from veridyn.mechanics.tree.steps.model import tree_model
from veridyn.mechanics.tree.virtual import TreeQuantities
from veridyn.model.elements.element import Element
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.place import Assembly, Marker
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]
SMOOTH = ("spring", "damper", "inertia", "offset")
PLANE, SPACE = ("x", "y"), ("x", "y", "z")
WHOLE = (*SPACE, "moment.x", "moment.y", "moment.z")


def _text(name: str) -> str:
    return shipped(f"veridyn:{name}.yaml").read_text(encoding="utf-8")


def _described(name: str) -> Machine:
    return parse_machine(_text(name), name)


def _smooth(name: str) -> Machine:
    """A shipped tree with those of its elements that both formulations carry and that have a value."""
    machine = parse_machine(_text(name), name)
    kept = tuple(e for e in machine.elements if isinstance(e, Element) and e.kind in SMOOTH and np.isfinite(e.value))
    return replace(machine, elements=kept, stated=None)


MACHINES: dict[str, Callable[[], Machine]] = {
    "four-bar": lambda: _described("fourbar"),
    "linkage": lambda: _smooth("linkage"),
    "slider-crank": slider_crank,
    "crane": lambda: _described("crane"),
    "delta": lambda: _smooth("delta"),
    "palletizer": lambda: _smooth("palletizer"),
    "hexapod": lambda: _smooth("hexapod"),
    "rssr": rssr,
    "rssr, rod without mass": lambda: parse_machine(RSSR),
    "seven-joint arm": seven_joint_arm,
    "two arms and a rod": lambda: _described("spatial"),
}
# What a joint of the tree does to the body beyond it, or a cut joint to its second end, and the same in natural coordinates: there a joint
# by name, or (body, point) where bodies share the point. Components that both have: redundant joints share the others.
REACTIONS: dict[str, list[tuple[str, str | tuple[str, str], tuple[str, ...]]]] = {
    "four-bar": [("rod", ("rod", "1"), PLANE), ("crank", ("crank", "A"), PLANE), ("2", ("rocker", "2"), PLANE)],
    "linkage": [
        ("coupler", ("coupler", "coupler"), ("x", "z")),
        ("pin", "pin", ("x", "z")),
        ("rocker", ("rocker", "rocker"), ("x", "z")),
    ],
    "slider-crank": [("rod", ("rod", "A_point"), PLANE), ("x", "x", PLANE)],
    "crane": [("rope", ("rope", "T"), PLANE), ("rail", "rail", PLANE)],
    "delta": [
        ("rod1a", ("rod1a", "cross1a_point"), SPACE),
        ("ball1a", ("platform", "ball1a"), SPACE),
        ("arm1", ("arm1", "arm1"), SPACE),
    ],
    "palletizer": [
        ("forearm", ("forearm", "forearm"), ("z",)),
        ("elbow", "elbow", ("z",)),
        ("column", ("column", "column"), WHOLE),
    ],
    "hexapod": [("rod1", "rod1_joint", SPACE), ("rod4", "rod4_joint", SPACE)],
    "rssr": [
        ("rod", ("rod", "hook"), SPACE),
        ("ball", ("rocker", "ball"), SPACE),
        ("rocker", ("rocker", "psi_point"), WHOLE),
    ],
    "rssr, rod without mass": [("rod", "rod", ("",)), ("rocker", ("rocker", "B0"), WHOLE)],
    "seven-joint arm": [("link4", ("link4", "q4_point"), WHOLE), ("link6", ("link6", "q5_point"), SPACE)],
    "two arms and a rod": [
        ("wrist_2", "wrist", WHOLE),
        ("TB", ("upper_b", "TB"), SPACE),
        ("PB", ("upper_b", "PB"), WHOLE),
    ],
}
BY_PINOCCHIO = [name for name in MACHINES if name != "rssr, rod without mass"]
SIMULATED = {  # step for which the error of order four is well above rounding
    "four-bar": 0.05,
    "slider-crank": 0.02,
    "crane": 0.1,
    "rssr": 0.02,
    "seven-joint arm": 0.02,
    "linkage": 0.02,
    "palletizer": 0.02,
    "delta": 0.02,
    "hexapod": 0.02,
}
QUICK = dict.fromkeys(("four-bar", "slider-crank", "crane", "rssr", "seven-joint arm"), 1.0)  # s; of the others less
LONG = ("rssr", "delta", "slider-crank", "seven-joint arm")  # 3 to 4 s each
QUICK |= {"linkage": 0.16, "palletizer": 0.16, "delta": 0.2, "hexapod": 0.08}
# s; without motors these then fall through singular positions, which is refused
LONGEST = {"palletizer": 0.6, "delta": 0.4}


@cache
def made(name: str) -> tuple[Machine, NaturalSystem, tuple[str, ...]]:
    """The machine, its natural system with all coordinates of the tree that it can have, and independent coordinates."""
    machine = MACHINES[name]()
    tree = tree_of(machine)
    system = system_of(mechanism_of(machine) if machine.description else mechanism_with(machine, "all"))
    free = tuple(tree.coordinates[k] for k in tree.independent)
    if tree.loops and len(free) != tree.n - len(_rows(tree)):
        free = tuple(tree.actuated_coordinates)
    return machine, system, free


def _rows(tree) -> tuple[int, ...]:
    from veridyn.mechanics.tree.loops.assembly import assembled

    return assembled(tree).rows


def states(name: str, count: int = 3) -> list[Motion]:
    """Closed states of the tree, with forces on its motors."""
    machine, _, free = made(name)
    tree, rng = tree_of(machine), np.random.default_rng(0)
    home = closed_home(tree) if tree.loops else np.array([_home(machine, c) for c in tree.coordinates])
    found = []
    for _ in range(count):
        numbers = {c: tree.coordinates.index(c) for c in free}
        size = {c: 0.03 if tree.coordinate_kinds[k] == "turning" else 0.005 for c, k in numbers.items()}  # rad, m
        at = {c: np.array([home[k] + size[c] * rng.standard_normal()]) for c, k in numbers.items()}
        rates = {c: rng.standard_normal(1) for c in free}
        still = {c: np.zeros(1) for c in free}
        if tree.loops:
            motion = closed_motion(tree, np.zeros(1), at, rates, still, at=free)
        else:
            q, qd = (np.array([[values[c][0] for c in tree.coordinates]]) for values in (at, rates))
            motion = Motion(np.zeros(1), q, qd, 0 * q)
        forces = np.where(tree.actuated, 3.0 * rng.standard_normal((1, tree.n)), 0.0)
        found.append(replace(motion, forces=forces))
    return found


def _home(machine: Machine, coordinate: str) -> float:
    return {**machine.assembly.guess, **machine.assembly.hold}.get(coordinate, 0.0)


def natural(name: str, motion: Motion) -> tuple[Array, Array, dict[str, float]]:
    """Position, velocity and loads of the natural system in the state of a tree."""
    machine, system, free = made(name)
    tree, m = tree_of(machine), system.mechanism
    by_name = dict(zip(tree.coordinates, motion.q[0].tolist(), strict=True))
    if machine.description:
        x = position(system, {c: by_name[c] for c in free})
    else:  # where the tree puts the points
        x = system_of(mechanism_with(replace(machine, assembly=Assembly(hold=by_name)), "all")).guess
    xd = velocity(system, x, {c: motion.qd[0, tree.coordinates.index(c)] for c in free})
    loads = {
        load.name: float(motion.forces[0, tree.coordinates.index(load.coordinate)])
        for load in m.loads
        if isinstance(load, Drive) and load.name not in {str(getattr(e, "name", "")) for e in machine.elements}
    }
    return x, xd, loads


def common(name: str) -> tuple[list[int], list[int]]:
    """Numbers of the coordinates that both have, in the tree and in the natural system."""
    machine, system, _ = made(name)
    both = [c for c in tree_of(machine).coordinates if c in system.coordinates]
    return [tree_of(machine).coordinates.index(c) for c in both], [system.mechanism.index(c) for c in both]


@pytest.mark.parametrize("name", MACHINES)
def test_accelerations_energies_and_places_agree(name: str) -> None:
    machine, system, free = made(name)
    tree = tree_of(machine)
    here, there = common(name)
    assert {tree.coordinates[k] for k in here} >= set(free)
    potentials = []
    for motion in states(name):
        x, xd, loads = natural(name, motion)
        assert np.abs(system.constraints.values(x)).max() <= 1e-9
        assert x[there] == pytest.approx(motion.q[0, here], abs=1e-9)
        assert xd[there] == pytest.approx(motion.qd[0, here], abs=1e-8)
        found = forward_dynamics(tree, motion, engine="numpy")
        xdd, _ = solve_accelerations(system, x, xd, loads)
        expected = found.qdd[0, here]
        assert np.abs(xdd[there] - expected).max() <= 1e-9 * max(1.0, float(np.abs(expected).max()))
        one, two = energy(tree, found), natural_energy(system, x, xd)
        assert two.kinetic == pytest.approx(one.kinetic[0], rel=1e-9)
        assert two.gravity == pytest.approx(one.gravity[0], rel=1e-9, abs=1e-9)
        potentials.append(one.elastic[0] - two.elastic)
        for body in system.mechanism.bodies:
            if body.name in machine.by_name:
                _check_places(machine, system, motion, x, body.name)
    offsets = [e for e in machine.elements if isinstance(e, Element) and e.kind == "offset"]
    if not offsets:  # a tree counts a constant force as a potential; that of a spring's rest differs by a constant
        assert np.ptp(potentials) <= 1e-9 * max(1.0, float(np.abs(potentials).max()))


def _check_places(machine: Machine, system: NaturalSystem, motion: Motion, x: Array, name: str) -> None:
    """Every point of a body is where the tree puts it."""
    R, p = body_pose(tree_of(machine), motion.q, name)
    for point, local in system.mechanism.body(name).points.items():
        at = np.append(local, np.zeros(3 - len(local)))
        found = system.geometry.elements[point] @ np.append(x, 1.0)
        assert found == pytest.approx((p[0] + R[0] @ at)[: len(local)], abs=1e-8)


@pytest.mark.parametrize("name", MACHINES)
def test_the_points_say_nothing_twice_and_leave_the_freedoms_of_the_tree(name: str) -> None:
    _, system, free = made(name)
    found = mobility(system, natural(name, states(name, 1)[0])[0])
    assert found.redundant == ()
    assert found.degrees_of_freedom == len(free)


@pytest.mark.parametrize("name", BY_PINOCCHIO)
def test_accelerations_are_those_of_pinocchio(name: str) -> None:
    """Without elements, which Pinocchio has not."""
    machine = made(name)[0]
    bare = replace(machine, elements=(), stated=None)
    tree = tree_of(bare)
    system = system_of(mechanism_of(bare) if bare.description else mechanism_with(bare, "all"))
    here, there = common(name)
    for motion in states(name, 2):
        x, xd, loads = natural(name, motion)
        expected = (
            PinClosed(tree).forward(motion.q[0], motion.qd[0], motion.forces[0])
            if tree.loops
            else PinModel(tree).forward_dynamics(motion, motion.forces).qdd[0]
        )
        xdd, _ = solve_accelerations(system, x, xd, loads)
        scale = max(1.0, float(np.abs(expected).max()))
        # Pinocchio's own loops are iterated to 1e-10 or so
        assert np.abs(xdd[there] - expected[here]).max() <= 1e-7 * scale
        assert np.abs(forward_dynamics(tree, motion, engine="numpy").qdd[0] - expected).max() <= 1e-7 * scale


def test_the_reaction_of_a_joint_of_the_arm_is_that_of_pinocchio() -> None:
    """What link 3 does to link 4: the force, and the moment across the axis; about it the motor acts."""
    name = "seven-joint arm"
    machine, system, _ = made(name)
    stranger = PinMachine(machine)
    wrench = reaction_of(system, ("link4", "q4_point"))
    for motion in states(name):
        x, xd, loads = natural(name, motion)
        values = system.forces.load_values(loads)
        xdd, lam = solve_accelerations(system, x, xd, values)
        found = wrench.at(x, xd, xdd, lam, values, np.zeros(0)).y
        qdd = xdd[[system.mechanism.index(c) for c in stranger.names]]
        pin.forwardKinematics(stranger.model, stranger.data, motion.q[0])
        pin.rnea(stranger.model, stranger.data, motion.q[0], motion.qd[0], qdd)
        joint = stranger.at["link4"][0]
        R, f = stranger.data.oMi[joint].rotation, stranger.data.f[joint]
        scale = np.abs(f.linear).max()
        assert np.abs(found[:3] - R @ f.linear).max() <= 1e-9 * scale
        across = np.eye(3) - np.outer(R[:, 2], R[:, 2])
        assert np.abs(across @ (found[3:] - R @ f.angular)).max() <= 1e-9 * scale


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in ("hexapod", "two arms and a rod") else ()) for n in REACTIONS],
)
def test_reactions_agree(name: str) -> None:
    """Of joints and cut joints, to 1e-9 of the largest of each."""
    machine, system, free = made(name)
    tree = tree_of(machine)
    model = tree_model(tree, independents=free if tree.loops else (), unknown=())
    cuts = [loop.name for loop in tree.loops]
    chosen = [
        Quantity("cut", cuts.index(on)) if on in cuts else Quantity("joint", tree.index(on))
        for on, _, _ in REACTIONS[name]
    ]
    ready = TreeQuantities(model, chosen)
    for motion in states(name, 2):
        x, xd, loads = natural(name, motion)
        values = system.forces.load_values(loads)
        xdd, lam = solve_accelerations(system, x, xd, values)
        given = {load.name: 0.0 for load in tree.loads if isinstance(load, Drive)}
        given |= {f"force.{c}": motion.forces[0, k] for k, c in enumerate(tree.coordinates)}
        acting = model.loads(given)
        at = model.instant(motion.q[0], motion.qd[0], np.zeros(0), acting, derivative=False)
        y, determined, first = ready.at(at.q, at.qd, at, acting).y, ready.determined, 0
        for quantity, (_, on, components) in zip(chosen, REACTIONS[name], strict=True):
            count = quantity.count(tree)
            places = [first + (WHOLE.index(c) if count > 1 else 0) for c in components]
            wrench = reaction_of(system, on)
            theirs = wrench.at(x, xd, xdd, lam, values, np.zeros(0)).y[[wrench.components.index(c) for c in components]]
            assert determined[places].all()
            assert np.abs(y[places] - theirs).max() <= 1e-9 * max(1.0, float(np.abs(y[first : first + count]).max()))
            first += count


@pytest.mark.parametrize("name", MACHINES)
def test_sensors_read_the_same(name: str) -> None:
    """Position, velocity, gyroscope and accelerometer of a place on every body that natural coordinates give an orientation."""
    machine, system, _ = made(name)
    tree, flat = tree_of(machine), machine.dimension == 2
    bodies = [
        b.name for b in system.mechanism.bodies if b.name in machine.by_name and len(b.elements) >= (2 if flat else 4)
    ]
    assert bodies
    ours, theirs = [], []
    for body in bodies:
        deep = Marker(body, (0.11, -0.07, 0.0 if flat else 0.05))
        place = Marker(body, deep.at[:2]) if flat else deep
        for kind in ("position", "velocity", "accelerometer"):
            ours.append(Sensor(f"{body} {kind}", kind, deep, 1.0, axes="xy" if flat else "xyz"))
            theirs.append(Sensor(f"{body} {kind}", kind, place, 1.0))
        ours.append(Sensor(f"{body} gyroscope", "gyroscope", body, 1.0, axes="z" if flat else "xyz"))
        theirs.append(Sensor(f"{body} gyroscope", "gyroscope", body, 1.0))
    one, two = tree_readout(tree, ours, "numpy"), readout(system, theirs)
    for motion in states(name, 2):
        x, xd, loads = natural(name, motion)
        xdd, _ = solve_accelerations(system, x, xd, loads)
        qdd = forward_dynamics(tree, motion, engine="numpy").qdd[0]
        a, b = one.read(motion.q[0], motion.qd[0], qdd), two.read(x, xd, xdd)
        assert np.abs(a - b).max() <= 1e-9 * max(1.0, float(np.abs(a).max()))


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in SIMULATED],
)
def test_a_simulated_motion_converges_with_the_order_of_the_step_to_one_motion(name: str) -> None:
    check_motion(name, QUICK[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, duration in QUICK.items() if duration < 1.0])
def test_a_simulated_second_converges_with_the_order_of_the_step_to_one_motion(name: str) -> None:
    check_motion(name, LONGEST.get(name, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", LONGEST)
def test_a_motion_through_a_singular_position_is_refused(name: str) -> None:
    machine, _, _ = made(name)
    motion, clock = states(name, 1)[0], np.linspace(0.0, 1.0, 101)
    with pytest.raises(SimulationError, match=r"goes through a singular position between 0\.[4-7]"):
        integrate(tree_of(machine), clock, motion.q[0], motion.qd[0], method=Method("RK4", 2e-3), engine="numpy")


def check_motion(name: str, duration: float) -> None:
    """Runge-Kutta of order four: seen from a quarter of the step, half of it leaves a seventeenth of the error; both give one motion."""
    machine, system, _ = made(name)
    tree, h = tree_of(machine), SIMULATED[name]
    here, there = common(name)
    motion = states(name, 1)[0]
    x, xd, loads = natural(name, motion)
    xdd, lam = solve_accelerations(system, x, xd, loads)
    start, clock = NaturalState(0.0, x, xd, xdd, lam), np.array([0.0, duration])

    def by_tree(method: Method) -> Array:
        forces = motion.forces[0]
        run = integrate(tree, clock, motion.q[0], motion.qd[0], lambda t, q, qd: forces, method=method, engine="numpy")
        return run.motion.q[-1, here]

    def by_points(step: float) -> Array:
        how = NaturalMethod("explicit", step, rule="RK4")
        return integrate_natural(system, clock, start, lambda t: loads, method=how).q[-1, there]

    last = []
    for found in (lambda step: by_tree(Method("RK4", step)), by_points):
        coarse, middle, fine = (found(step) for step in (h, h / 2, h / 4))
        left = float(np.abs(middle - fine).max())
        assert left <= 1e-3  # rad and m: a step at which the order shows
        assert left <= float(np.abs(coarse - fine).max()) / 10.0 or left <= 1e-10
        last.append((fine, left))
    (one, left_one), (two, left_two) = last
    assert np.abs(one - two).max() <= left_one + left_two
