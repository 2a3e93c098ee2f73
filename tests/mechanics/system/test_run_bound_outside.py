"""Compiled runs under wrenches, contacts, loads at places, prescribed coordinates and roads, against the same rule stepped in Python by
recursion and singular values (``engine="numpy"``), against closed forms, and against MuJoCo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from mechanics.ground.test_tyres import LINEAR, MAGIC
from mechanics.system.test_run_bound import floating, home
from mechanics.test_prescribed import cart as cart_on_rail
from mechanics.test_prescribed import closed, sine
from veridyn.errors import ModelError, SimulationError
from veridyn.machines import delta, linkage
from veridyn.mechanics.ground.road import Bump, Plane
from veridyn.mechanics.system import integrate as module
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, Trajectory, integrate
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Marker, coulomb, damper, spring, tyre
from veridyn.model.graph import Body
from veridyn.model.load import Drive, Force, Torque
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement

SMOOTH = Method("RK4", step=5e-3, friction_speed=0.02)
TIMES = np.arange(13) / 100.0
ALONE: list[int] = []  # not empty while steps of Python are refused
OUT_OF_PLANE = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])  # z along the y before
Six = Mapping[str, np.ndarray]


@pytest.fixture(autouse=True)
def in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's steps fail where those of machine code are asked for, so that these are what is compared."""
    march = module.march

    def refused(*given):
        assert not ALONE, "stepped in Python"
        return march(*given)

    monkeypatch.setattr(module, "march", refused)


def assert_same(machine, q, qd, inputs=None, method=SMOOTH, base=None, tolerance=1e-10, t=TIMES) -> Trajectory:
    """All that a trajectory has agrees to rounding that steps have added up."""
    ALONE.append(1)
    try:
        fast = integrate(machine, t, q, qd, inputs, method=method, base=base)
    finally:
        ALONE.clear()
    slow = integrate(machine, t, q, qd, inputs, method=method, base=base, engine="numpy")
    a, b = everything(fast), everything(slow)
    assert a.keys() == b.keys()
    for name, values in b.items():
        assert a[name] == pytest.approx(
            values, rel=tolerance, abs=tolerance * max(1.0, np.abs(values).max(initial=0.0))
        ), name
    assert fast.stepped_by_python == ""
    return fast


def everything(run: Trajectory) -> dict[str, np.ndarray]:
    m = run.motion
    found = {"q": m.q, "qd": m.qd, "qdd": m.qdd, "forces": m.forces, **m.signals, **run.loads, **m.wrenches}
    if m.base is not None:
        names = ("omega", "omega_dot", "acceleration", "velocity", "position", "quaternion")
        found |= {name: getattr(m.base, name) for name in names} | {"R": run.base_rotation}
    return found


def arm(base: str = "fixed", loads=(), prescribed=()) -> Tree:
    """Three joints that turn about axes out of each other's planes; dampers, and dry friction on one."""
    bodies, link = [], [0.02, 0.001, 0.0, 0.12, 0.002, 0.11, 0.3, 0.02, -0.05, 1.5]
    for k in range(3):
        place = Placement(OUT_OF_PLANE if k else np.eye(3), np.array([0.3, 0.0, 0.1]) if k else np.zeros(3))
        parent = f"q{k}" if k else ("trunk" if base == "free" else "ground")
        bodies.append(Body(f"q{k + 1}", parent, placement=place))
    inertia = {b.name: link for b in bodies}
    if base == "free":
        bodies.insert(0, Body("trunk", None, "fixed"))
        inertia["trunk"] = [0.4, 0.0, 0.0, 0.5, 0.0, 0.6, 0.1, 0.0, 0.05, 8.0]
    elements = [damper("q1", 0.3), damper("q3", 0.1), coulomb("q2", 0.2)]
    return Tree.build(bodies, base=base, inertia=inertia, elements=elements, loads=loads, prescribed=prescribed)


def twisting(t: float, q: np.ndarray, qd: np.ndarray) -> Six:
    return {"q3": np.array([2.0, -1.0, 3.0 * np.sin(20.0 * t), 0.1, 0.2 * q[0], -0.1 * qd[1]])}


FREE = BaseState((0.1, 0.2, 0.3), (0.9, 0.1, -0.3, 0.2), (0.3, 0.0, 1.0), (0.5, -1.0, 0.7))
PUSHES = (
    Force("push", Marker("q2", (0.3, 0.1, 0.0)), (1.0, 2.0, -3.0)),
    Torque("turn", "q1", (0.2, -0.1, 0.4), "q3"),
    Drive("motor", "q2", 0.7),
)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_wrench_on_the_last_link(base):
    q, qd = np.array([0.3, -0.5, 0.8]), np.array([0.5, 1.0, -1.0])
    inputs = Inputs(forces=lambda t, q, qd: -0.3 * q, wrenches=twisting)
    assert_same(arm(base), q, qd, inputs, base=FREE if base == "free" else None)


def test_friction_that_holds_under_a_wrench():
    """Dry friction on q2 is held until the wrench, which grows, exceeds it."""
    inputs = Inputs(wrenches=lambda t, q, qd: {"q3": np.array([0.0, 0.0, 60.0 * t, 0.0, 0.0, 0.0])})
    tree = replace(arm(), gravity=np.zeros(3))
    assert_same(tree, np.zeros(3), np.zeros(3), inputs, method=replace(SMOOTH, friction_speed=0.0), tolerance=1e-8)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("given", [False, True])
def test_loads_at_places(base, given):
    def values(t: float) -> dict[str, np.ndarray | float]:
        return {"push": np.array([np.sin(9.0 * t), 2.0, -1.0]), "motor": t}

    tree = arm(base, loads=PUSHES)
    inputs = Inputs(loads=values) if given else Inputs()
    run = assert_same(tree, np.ones(3), np.zeros(3), inputs, base=FREE if base == "free" else None)
    assert set(run.loads) == {"push", "turn"}


def test_loads_at_places_of_a_closed_machine():
    machine = linkage()
    push = Force("push", Marker(machine.links[-1].name, (0.1, 0.0, 0.0)), (3.0, 4.0, 0.0))
    assert_same(replace(machine, loads=(push,)), home(machine), np.zeros(machine.n), Inputs())


def test_contacts_of_a_free_base_and_wrenches_add_up():
    """A trunk on a springy floor, whose wrench depends on the base's state, and a wrench of its own on the same body."""

    def floor(t: float, base: BaseState, q: np.ndarray, qd: np.ndarray) -> Six:
        z, v = np.asarray(base.position)[2], np.asarray(base.velocity)[2]
        return {"trunk": np.array([0.0, 0.0, 500.0 * (0.3 - z) - 10.0 * v, 0.0, 0.0, 0.0])}

    inputs = Inputs(wrenches=lambda t, q, qd: {"trunk": np.full(6, t), **twisting(t, q, qd)}, contacts=floor)
    assert_same(arm("free", loads=PUSHES), np.ones(3), np.zeros(3), inputs, base=FREE)


def test_a_body_that_is_pushed_later():
    def later(t: float, q: np.ndarray, qd: np.ndarray) -> Six:
        return twisting(t, q, qd) if t > 0.062 else {}

    tree = arm()
    fast = integrate(tree, TIMES, np.ones(3), np.zeros(3), Inputs(wrenches=later), method=SMOOTH)
    always = Inputs(wrenches=lambda t, q, qd: later(t, q, qd) or {"q3": np.zeros(6)})
    slow = integrate(tree, TIMES, np.ones(3), np.zeros(3), always, method=SMOOTH, engine="numpy")
    assert fast.motion.q == pytest.approx(slow.motion.q, abs=1e-12)
    wrong = Inputs(wrenches=lambda t, q, qd: {"q9": np.zeros(6)} if t > 0.062 else {})
    with pytest.raises(ModelError, match="no body"):
        integrate(tree, TIMES, np.ones(3), np.zeros(3), wrong, method=SMOOTH)


@pytest.mark.parametrize("friction_speed", [0.0, 0.02])
def test_prescribed_coordinates_on_a_fixed_base(friction_speed):
    tree = arm(loads=PUSHES[:1], prescribed=["q1"])
    inputs = Inputs(prescribed=lambda t: {"q1": sine(t)}, wrenches=twisting)
    first = sine(0.0)
    method = replace(SMOOTH, friction_speed=friction_speed)
    run = assert_same(tree, [first[0], 1.0, 0.3], [first[1], 0.5, 0.0], inputs, method=method, tolerance=1e-9)
    assert run.motion.q[:, 0] == pytest.approx([sine(t)[0] for t in TIMES], abs=1e-14)
    assert np.ptp(run.motion.forces[:, 0]) > 0.1


def test_a_prescribed_coordinate_of_a_free_base():
    tree = arm("free", prescribed=["q2"])
    first = sine(0.0)
    inputs = Inputs(prescribed=lambda t: {"q2": sine(t)}, forces=lambda t, q, qd: -0.2 * q)
    assert_same(tree, [0.1, first[0], 0.3], [0.0, first[1], 0.0], inputs, base=FREE)


@pytest.mark.parametrize("prescribed", [("crank",), ("arm",)])
def test_a_prescribed_coordinate_of_a_closed_machine(prescribed):
    tree = closed(prescribed)

    def led(t: float) -> dict[str, tuple[float, float, float]]:
        q, qd, qdd = sine(t)
        return {prescribed[0]: ((1.2 if prescribed[0] == "crank" else 0.1) + q, qd, qdd)}

    start = led(0.0)[prescribed[0]]
    q, qd = [1.2, 0.1], [0.0, 0.0]
    at = 0 if prescribed[0] == "crank" else 1
    q[at], qd[at] = start[:2]
    first = closed_motion(tree, [0.0], [q], [qd], [[0.0, 0.0]])
    inputs = Inputs(prescribed=led, wrenches=lambda t, q, qd: {"rocker": np.array([1.0, t, 0, 0, 0, 0.1])})
    run = assert_same(tree, first.q[0], first.qd[0], inputs)
    assert np.abs(loop_values(tree, run.motion.q)[:, :, tree.n]).max() < 1e-12


def test_a_wrench_on_a_closed_machine_of_space():
    machine = delta()
    name = machine.links[-1].name
    inputs = Inputs(wrenches=lambda t, q, qd: {name: np.array([1.0, 2.0, -3.0, 0.01, 0.02 * t, 0.0])})
    assert_same(machine, home(machine), np.zeros(machine.n), inputs)


def car(constants=LINEAR, kind="linear_tyre") -> Tree:
    """A chassis on four sliding legs with wheels, the front ones steered as prescribed."""
    bodies, elements = [Body("chassis", None, "fixed")], []
    inertia = {"chassis": [400.0, 0.0, 0.0, 1500.0, 0.0, 1700.0, 0.0, 0.0, 0.0, 1200.0]}
    for corner, x, y in (("fl", 1.3, 0.7), ("fr", 1.3, -0.7), ("rl", -1.3, 0.7), ("rr", -1.3, -0.7)):
        leg, turning, wheel = f"z_{corner}", f"s_{corner}", f"w_{corner}"
        bodies.append(Body(leg, "chassis", "sliding", placement=Placement(np.eye(3), np.array([x, y, -0.2]))))
        if corner[0] == "f":
            bodies.append(Body(turning, leg))
            inertia[turning] = [0.1, 0.0, 0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.0, 5.0]
        bodies.append(Body(wheel, bodies[-1].name, placement=Placement(OUT_OF_PLANE, np.zeros(3))))
        inertia |= {leg: [0.5, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 30.0]}
        inertia |= {wheel: [0.6, 0.0, 0.0, 0.6, 0.0, 1.0, 0.0, 0.0, 0.0, 20.0]}
        elements += [spring(leg, 3e4), damper(leg, 3e3)]
        elements.append(tyre(Marker(wheel, (0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0)), constants, kind=kind))
    return Tree.build(bodies, base="free", inertia=inertia, elements=elements, prescribed=["s_fl", "s_fr"])


def rolling(tree: Tree, speed: float) -> tuple[np.ndarray, np.ndarray, BaseState]:
    qd = np.array([speed / 0.36 if name.startswith("w_") else 0.0 for name in tree.coordinates])
    return np.zeros(tree.n), qd, BaseState((0.0, 0.0, 0.55), velocity=(speed, 0.0, 0.0))


@pytest.mark.parametrize(("constants", "kind"), [(LINEAR, "linear_tyre"), (MAGIC, "tyre")])
def test_a_car_steers_over_a_bump(constants, kind):
    tree = car(constants, kind)

    def steered(t: float) -> dict[str, tuple[float, float, float]]:
        s = 0.5 * t * t
        return {"s_fl": (s, t, 1.0), "s_fr": (s, t, 1.0)}

    q, qd, base = rolling(tree, 10.0)
    road = Plane(grade=0.02) + Bump(at=2.0, length=1.0, rise=0.03)
    run = assert_same(
        tree, q, qd, Inputs(prescribed=steered, road=road), method=replace(SMOOTH, step=2e-3), base=base, tolerance=1e-9
    )
    assert {"tyre_w_fl.road", "tyre_w_rr.kappa"} <= run.motion.signals.keys()
    flat = assert_same(
        tree, q, qd, Inputs(prescribed=steered), method=replace(SMOOTH, step=2e-3), base=base, tolerance=1e-9
    )
    assert np.abs(flat.base_position - run.base_position).max() > 1e-4


def test_rates_for_integrators_of_scipy():
    """The same motion by DOP853, whose rates are machine code, as by Python's."""
    tree = car()
    inputs = Inputs(prescribed=lambda t: {"s_fl": (0.02, 0.0, 0.0), "s_fr": (0.02, 0.0, 0.0)}, road=Plane(grade=0.02))
    q, qd, base = rolling(tree, 10.0)
    q[[tree.coordinates.index("s_fl"), tree.coordinates.index("s_fr")]] = 0.02
    method = Method("DOP853", rtol=1e-12, atol=1e-13, friction_speed=0.02)
    assert_same(tree, q, qd, inputs, method=method, base=base, tolerance=1e-8, t=TIMES[:4])
    later = Inputs(wrenches=lambda t, q, qd: twisting(t, q, qd) if t > 0.01 else {"q3": np.zeros(6)})
    assert_same(arm(), np.ones(3), np.zeros(3), later, method=method, tolerance=1e-8, t=TIMES[:4])


def test_a_force_at_the_centre_of_mass_is_gravity_that_leans():
    """A pendulum whose centre is pushed by F (ground's axes) moves as one in gravity g + F/m."""
    pin = Placement(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]]).T)
    m, length, F = 0.4, 0.7, np.array([1.0, 0.0, 2.0])
    inertia = {"swing": [0.0, 0.0, 0.0, m * length**2, 0.0, m * length**2, m * length, 0.0, 0.0, m]}
    centre = Marker("swing", (length, 0.0, 0.0))
    pushed = Tree.build([Body("swing", placement=pin)], inertia=inertia, loads=[Force("push", centre, tuple(F))])
    leaning = Tree.build([Body("swing", placement=pin)], inertia=inertia, gravity=np.array([0.0, 0.0, -9.81]) + F / m)
    one, two = (integrate(x, TIMES, [0.4], [1.0], method=SMOOTH) for x in (pushed, leaning))
    assert one.motion.q == pytest.approx(two.motion.q, abs=1e-13)


def test_a_body_under_a_constant_wrench_about_a_principal_axis():
    """ω = M t / J, and the place is a parabola along the axis that the force keeps."""
    stone = Tree.build(
        [Body("stone", None, "fixed")], base="free", inertia={"stone": [0.1, 0, 0, 0.1, 0, 0.2, 0, 0, 0, 2.0]}
    )
    inputs = Inputs(wrenches=lambda t, q, qd: {"stone": np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.3])})
    t = np.linspace(0.0, 1.0, 5)
    found = integrate(stone, t, [], [], inputs, base=BaseState(), method=Method("RK4", step=0.01))
    assert found.motion.base is not None and found.base_position is not None
    assert found.motion.base.omega[:, 2] == pytest.approx(1.5 * t, abs=1e-12)
    assert found.base_position[:, 2] == pytest.approx(0.5 * (5.0 / 2.0 - 9.81) * t * t, abs=1e-12)


def test_a_car_at_rest_carries_its_weight():
    """The legs' springs carry what stands above them, 1200 kg of chassis: k d = m g."""
    tree = car()
    q, qd, base = rolling(tree, 0.0)
    t = np.linspace(0.0, 6.0, 7)  # by then it bounces by less than a micrometre
    still = Inputs(prescribed=lambda t: {"s_fl": (0.0, 0.0, 0.0), "s_fr": (0.0, 0.0, 0.0)})
    run = integrate(tree, t, q, qd, still, base=base, method=Method("RK4", step=2e-3))
    legs = [k for k, name in enumerate(tree.coordinates) if name.startswith("z_")]
    assert -3e4 * run.motion.q[-1, legs].sum() == pytest.approx(-1200.0 * 9.81, rel=1e-7)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_arm_pushed_at_a_link_moves_as_in_mujoco():
    """Steps of order four of the same length, a force and a torque in the ground's axes at a centre of mass."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option timestep="0.001" integrator="RK4" gravity="0 0 -9.81"><flag contact="disable"/></option><worldbody>
      <body><joint axis="0 0 1"/><inertial pos="0.1 0 0.05" mass="2" diaginertia="0.02 0.03 0.04"/>
      <body pos="0.3 0 0.1" quat="0.70710678118654757 -0.70710678118654757 0 0"><joint axis="0 0 1"/>
      <inertial pos="0.1 0.02 0" mass="1" diaginertia="0.01 0.02 0.02"/></body></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (0.2, -0.4), (1.0, -0.5)
    data.xfrc_applied[2] = (1.0, -2.0, 3.0, 0.1, 0.2, -0.1)
    for _ in range(500):
        mujoco.mj_step(model, data)
    inertia = {
        "q1": from_centre(2.0, np.array([0.1, 0.0, 0.05]), np.diag([0.02, 0.03, 0.04])),
        "q2": from_centre(1.0, np.array([0.1, 0.02, 0.0]), np.diag([0.01, 0.02, 0.02])),
    }
    centre = Marker("q2", (0.1, 0.02, 0.0))
    tree = Tree.build(
        [Body("q1"), Body("q2", "q1", placement=Placement(OUT_OF_PLANE, np.array([0.3, 0.0, 0.1])))],
        inertia=inertia, gravity=(0.0, 0.0, -9.81),
        loads=[Force("push", centre, (1.0, -2.0, 3.0)), Torque("turn", "q2", (0.1, 0.2, -0.1))],
    )  # fmt: skip
    found = integrate(tree, [0.0, 0.5], [0.2, -0.4], [1.0, -0.5], method=Method("RK4", step=1e-3))
    assert found.motion.q[-1] == pytest.approx(data.qpos, abs=1e-9)
    assert found.motion.qd[-1] == pytest.approx(data.qvel, abs=1e-9)


def test_bad_input_is_named_with_place_and_time():
    odd = Inputs(wrenches=lambda t, q, qd: {"q3": np.full(6, np.nan if t > 0.05 else 0.0)})
    with pytest.raises(SimulationError, match=r"the wrench on 'q3' is no number at 0\.0"):
        integrate(arm(), TIMES, np.ones(3), np.zeros(3), odd, method=SMOOTH)
    fails = Inputs(wrenches=lambda t, q, qd: {"q3": np.full(6, 1 / (t < 0.05))})
    with pytest.raises(ZeroDivisionError):
        integrate(arm(), TIMES, np.ones(3), np.zeros(3), fails, method=SMOOTH)


def test_what_python_steps_is_named():
    base = replace(SMOOTH, friction_speed=0.0)
    run = integrate(arm("free"), TIMES[:2], np.ones(3), np.zeros(3), base=FREE, method=base)
    assert run.stepped_by_python == "dry friction that holds on a free base"
    t, inputs, start = [0.0, 0.01, 0.03], Inputs(wrenches=twisting, prescribed=lambda t: {"q1": sine(t)}), sine(0.0)
    state = (np.array([start[0], 1.0, 0.3]), np.array([start[1], 0.5, 0.0]))
    fast, slow = (
        integrate(arm("free", PUSHES, ["q1"]), t, *state, inputs, base=FREE, method=SMOOTH, engine=engine)
        for engine in ("compiled", "numpy")
    )
    assert fast.stepped_by_python == "samples at unequal intervals"  # with rates that are machine code
    assert fast.motion.q == pytest.approx(slow.motion.q, abs=1e-11)


def test_a_pendulum_on_a_driven_cart_is_stepped_in_machine_code():
    """Its closed form is tested where prescribed coordinates are; here that it is this code which that test tries."""
    first = sine(0.0)
    inputs = Inputs(prescribed=lambda t: {"x": sine(t)})
    assert_same(cart_on_rail(), [first[0], 0.4], [first[1], 0.2], inputs, tolerance=1e-11)
    assert tree_of(cart_on_rail()).held == (0,)
    assert floating().held == ()
