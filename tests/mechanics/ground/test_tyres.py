"""Tyres as elements: contact against a search over the rim and finite differences, forces against the published formulas written here again
and against the tyre of the vehicle simulator, motions against closed forms, compiled code against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

from mechanics.ground.wheel_readings import wheel_readings
from strangers.tyre_formulas import combined_forces
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.ground.road import Bump, Plane
from veridyn.mechanics.ground.tyre import forces as simulator_forces
from veridyn.mechanics.ground.tyre_parameters import TyreParameters
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, element_states, integrate
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.elsewhere import on_six_joints
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, Marker, tyre
from veridyn.model.graph import Body
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.rotations import Placement, rotation_to_axis

R0, KZ, CZ, FZ0 = 0.3683, 82.7e3, 500.0, 4000.0
CONTACT = {"UNLOADED_RADIUS": R0, "VERTICAL_STIFFNESS": KZ, "VERTICAL_DAMPING": CZ, "FNOMIN": FZ0, "QSY1": 0.015}
CONTACT |= {"BREFF": 6.1, "DREFF": 0.45, "FREFF": 0.01}
SLIP = {
    "PCX1": 1.839, "PDX1": 1.1387, "PDX2": -0.12, "PEX1": 0.627, "PKX1": 18.886, "PKX2": -3.988, "PKX3": 0.215,
    "PCY1": 1.3223, "PDY1": 1.0141, "PDY2": -0.1227, "PEY1": -0.638, "PKY1": -19.797, "PKY2": 1.7999,
    "RBX1": 5.99, "RBX2": -8.26, "RCX1": 1.078, "RBY1": 6.22, "RBY2": 3.07, "RBY3": 0.016, "RCY1": 1.005,
    "PTX1": 1.85, "PTY1": 1.9, "PTY2": 2.25,
}  # fmt: skip
MAGIC = {**CONTACT, **SLIP, "LMUX": 0.8, "LMUY": 0.8}
LINEAR = {**CONTACT, "C_KAPPA": 55.4e3, "C_ALPHA": 55.5e3, "SIGMA_KAPPA": 0.5, "SIGMA_ALPHA": 0.41}
CENTRE, AXIS = (0.02, -0.03, 0.01), (0.1, 0.95, -0.2)


def wheel(constants: dict[str, float] = MAGIC, kind: str = "tyre") -> Tree:
    """A free body that is a wheel, with centre and axis anywhere in its frame."""
    ten = [0.9, 0.01, 0.02, 1.5, 0.03, 0.8, 0.2, -0.1, 0.3, 34.0]
    law = tyre(Marker("wheel", CENTRE, axis=AXIS), {**constants, "ROAD": 0.05}, kind=kind)
    return Tree.build([Body("wheel", None, "fixed")], base="free", inertia={"wheel": ten}, elements=[law])


def rolling(rng: np.random.Generator, samples: int = 40) -> Motion:
    """Wheels near a sloping road, leaning a little, that roll, slip and spin at random."""
    N = samples
    slopes = 0.1 * rng.normal(size=(N, 2))
    lean = Rotation.from_euler("zxy", np.column_stack([rng.uniform(-3, 3, N), 0.1 * rng.normal(size=(N, 2))]))
    upright = Rotation.align_vectors([[0.0, 1.0, 0.0]], [AXIS])[0]
    R = lean * upright
    normal = np.column_stack([-slopes, np.ones(N)]) / np.sqrt(1.0 + (slopes**2).sum(axis=1))[:, None]
    xy = 5.0 * rng.normal(size=(N, 2))
    base_height = 0.3 * rng.normal(size=N)
    foot = np.column_stack([xy, 0.05 + base_height + (slopes * xy).sum(axis=1)])
    centre = foot + rng.uniform(0.30, 0.38, N)[:, None] * normal
    e = R.as_quat(scalar_first=True)
    zero = np.zeros((N, 0))
    omega = rng.normal(size=(N, 3)) + rng.uniform(-20.0, 30.0, N)[:, None] * np.array(AXIS)
    base = BaseMotion(
        omega, rng.normal(size=(N, 3)), rng.normal(size=(N, 3)), 3.0 * rng.normal(size=(N, 3)),
        position=centre - R.apply(CENTRE), quaternion=e,
    )  # fmt: skip
    signals = {"tyre_wheel.road": base_height, "tyre_wheel.road_x": slopes[:, 0], "tyre_wheel.road_y": slopes[:, 1]}
    signals |= {"tyre_wheel.kappa": 0.2 * rng.normal(size=N), "tyre_wheel.tan_alpha": 0.2 * rng.normal(size=N)}
    return Motion(np.arange(N) * 1.0, zero, zero, zero, base, zero, signals=signals)


def searched_contact(m: Motion, k: int, moved: float = 0.0) -> tuple[float, float, np.ndarray, np.ndarray]:
    """Loaded radius, height along the normal, direction down in the wheel's plane and centre: by a search over the rim, `moved` s later."""
    b = m.base
    assert b is not None and b.velocity is not None and b.position is not None and b.quaternion is not None
    R0_ = Rotation.from_quat(b.quaternion[k], scalar_first=True)
    velocity = R0_.apply(b.velocity[k])
    R = R0_ * Rotation.from_rotvec(moved * b.omega[k])
    centre0 = b.position[k] + moved * velocity
    c = centre0 + R.apply(CENTRE)
    s = R.apply(np.array(AXIS) / np.linalg.norm(AXIS))
    slope = np.array([m.signals["tyre_wheel.road_x"][k], m.signals["tyre_wheel.road_y"][k]])
    offset = 0.05 + m.signals["tyre_wheel.road"][k]
    a = np.cross(s, [0.3, 0.2, 0.9])
    a /= np.linalg.norm(a)
    u = np.cross(s, a)

    def above(angle: float) -> float:
        p = c + R0 * (np.cos(angle) * a + np.sin(angle) * u)
        return float(p[2] - offset - slope @ p[:2])

    angles = np.linspace(0.0, 2.0 * np.pi, 73)
    best = angles[int(np.argmin([above(x) for x in angles]))]
    angle = minimize_scalar(above, bounds=(best - 0.2, best + 0.2), method="bounded", options={"xatol": 1e-11}).x
    down = np.cos(angle) * a + np.sin(angle) * u
    high = c[2] - offset - slope @ c[:2]
    return float(high / (slope @ down[:2] - down[2])), float(high), down, c


def test_contact_is_where_the_rim_is_lowest() -> None:
    m = rolling(np.random.default_rng(1))
    found = wheel_readings(wheel(), m)["tyre_wheel"]
    b = m.base
    assert b is not None and b.velocity is not None and b.quaternion is not None
    for k in range(len(m)):
        radius, _, down, c = searched_contact(m, k)
        assert found.loaded_radius[k] == pytest.approx(radius, abs=1e-9)
        assert found.centre[k] == pytest.approx(c, abs=1e-12)
        h = 1e-5
        rate = -(searched_contact(m, k, h)[0] - searched_contact(m, k, -h)[0]) / (2.0 * h)
        load = max(0.0, KZ * (R0 - radius) + CZ * rate)
        assert found.load[k] == pytest.approx(load, abs=0.05)
        R = Rotation.from_quat(b.quaternion[k], scalar_first=True)
        s, w = R.apply(np.array(AXIS) / np.linalg.norm(AXIS)), R.apply(b.omega[k])
        slope = np.array([m.signals["tyre_wheel.road_x"][k], m.signals["tyre_wheel.road_y"][k], -1.0])
        n = -slope / np.linalg.norm(slope)
        ahead = np.cross(s, n) / np.linalg.norm(np.cross(s, n))
        turning = w - (w @ s) * s  # the wheel without its spin
        speed = R.apply(b.velocity[k]) + np.cross(w, R.apply(CENTRE)) + np.cross(turning, radius * down)
        assert found.vx[k] == pytest.approx(
            speed @ ahead, abs=1e-6
        )  # the search finds a minimum to the root of rounding
        assert found.vy[k] == pytest.approx(speed @ np.cross(n, ahead), abs=1e-6)
        assert found.spin[k] == pytest.approx(w @ s, abs=1e-12)


def test_forces_are_those_of_the_published_formulas() -> None:
    found = wheel_readings(wheel(), rolling(np.random.default_rng(2), 200))["tyre_wheel"]
    on = found.load > 0.0
    fx, fy = combined_forces(found.load[on], found.kappa[on], found.alpha[on], MAGIC)
    assert found.fx[on] == pytest.approx(fx, rel=1e-12, abs=1e-9)
    assert found.fy[on] == pytest.approx(fy, rel=1e-12, abs=1e-9)
    assert (found.fx[~on] == 0.0).all() and (found.fy[~on] == 0.0).all() and 0 < on.sum() < len(on)


@pytest.mark.slow
def test_forces_are_those_of_the_vehicle_simulator() -> None:
    """Its tyre is written apart, for numba, whose compiler is what takes the time."""
    found = wheel_readings(wheel(), rolling(np.random.default_rng(2), 200))["tyre_wheel"]
    on = found.load > 0.0
    own = TyreParameters(**{k: v for k, v in MAGIC.items() if k != "SIGMA_MIN"})
    other = simulator_forces(own, found.load[on], found.kappa[on], found.alpha[on])
    assert found.fx[on] == pytest.approx(other[0], rel=1e-12, abs=1e-9)
    assert found.fy[on] == pytest.approx(other[1], rel=1e-12, abs=1e-9)


def test_numbers_of_the_buggys_tyre() -> None:
    """Effective radii, relaxation lengths and stiffnesses at loads of 2937 and 3823 N: FACTS 7."""
    for load, radius, along, across, c_alpha, c_kappa in (
        (2937.0, 0.338, 0.50, 0.41, 55.5e3, 55.4e3),
        (3823.0, 0.337, 0.64, 0.50, 65.6e3, 72.1e3),
    ):
        tree, m = standing(load, vx=10.0, kappa=1e-6, side=1e-6)
        found = wheel_readings(tree, m)["tyre_wheel"]
        assert found.load[0] == pytest.approx(load)
        assert found.rolling_radius[0] == pytest.approx(radius, abs=1e-3)
        assert found.fx[0] / 1e-6 == pytest.approx(c_kappa, rel=2e-3)
        assert -found.fy[0] / 1e-6 == pytest.approx(c_alpha, rel=2e-3)
        rates = rates_of(tree, m)
        slip = found.spin[0] * found.rolling_radius[0] - 10.0
        assert (slip - 10.0 * 1e-6) / rates[0] == pytest.approx(along, abs=1.5e-2)
        assert -10.0 * 1e-6 / rates[1] == pytest.approx(across, abs=1.5e-2)


def standing(load: float, vx: float, kappa: float, side: float) -> tuple[Tree, Motion]:
    """One upright wheel that is pressed on the road by a load and rolls ahead with some spin."""
    law = tyre(Marker("wheel", (0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0)), MAGIC)
    tree = Tree.build([Body("wheel", None, "fixed")], base="free", inertia={"wheel": TEN}, elements=[law])
    zero, none = np.zeros((1, 3)), np.zeros((1, 0))
    base = BaseMotion(
        np.array([[0.0, vx / 0.33, 0.0]]), zero, zero, np.array([[vx, 0.0, 0.0]]),
        position=np.array([[0.0, 0.0, R0 - load / KZ]]), quaternion=np.array([[1.0, 0.0, 0.0, 0.0]]),
    )  # fmt: skip
    signals = {"tyre_wheel.kappa": np.array([kappa]), "tyre_wheel.tan_alpha": np.array([side])}
    return tree, Motion(np.zeros(1), none, none, none, base, none, signals=signals)


TEN = [0.753, 0.0, 0.0, 1.453, 0.0, 0.753, 0.0, 0.0, 0.0, 34.0]


def rates_of(tree: Tree, m: Motion, k: int = 0, engine: str = "numpy") -> np.ndarray:
    b = m.base
    assert b is not None and b.velocity is not None and b.position is not None and b.quaternion is not None
    instant = StateAccelerations(tree, tree.parameters.values, engine=engine)  # pyright: ignore[reportArgumentType]
    pose = np.concatenate([b.position[k], b.quaternion[k]])
    signals = {name: float(x[k]) for name, x in m.signals.items()}
    return instant.state_rates(m.q[k], m.qd[k], signals, b.omega[k], b.velocity[k], pose)


@pytest.mark.parametrize(("kind", "constants"), [("tyre", MAGIC), ("linear_tyre", LINEAR)])
def test_the_wrench_acts_on_the_wheel_in_every_engine(kind: str, constants: dict[str, float]) -> None:
    """m (v̇ − g) and the moment of momentum follow from force, place of the contact and rolling resistance."""
    tree, m = wheel(constants, kind), rolling(np.random.default_rng(3), 130)
    readings = wheel_readings(tree, m)["tyre_wheel"]
    b = m.base
    assert b is not None and b.quaternion is not None
    bare = inverse_dynamics(tree.without_elements(["tyre_wheel"]), m, engine="numpy")
    both = [inverse_dynamics(tree, m, engine=engine) for engine in ("numpy", "compiled")]
    assert both[1] == pytest.approx(both[0], rel=1e-12, abs=1e-7)
    for k in range(0, len(m), 7):
        R = Rotation.from_quat(b.quaternion[k], scalar_first=True)
        slope = np.array([m.signals["tyre_wheel.road_x"][k], m.signals["tyre_wheel.road_y"][k], -1.0])
        n = -slope / np.linalg.norm(slope)
        s = R.apply(np.array(AXIS) / np.linalg.norm(AXIS))
        ahead = np.cross(s, n) / np.linalg.norm(np.cross(s, n))
        force = readings.fx[k] * ahead + readings.fy[k] * np.cross(n, ahead) + readings.load[k] * n
        foot = R.apply(CENTRE) + readings.loaded_radius[k] * np.cross(s, ahead)
        rolling_resistance = -0.015 * readings.load[k] * R0 * np.tanh(readings.spin[k] * R0 / 0.1)
        moment = np.cross(foot, force) + rolling_resistance * s
        expected = np.concatenate([R.inv().apply(force), R.inv().apply(moment)])
        assert bare[k] - both[0][k] == pytest.approx(expected, rel=1e-9, abs=1e-7)
    caused = forward_dynamics(tree, m, engine="compiled")
    assert np.abs(inverse_dynamics(tree, caused, engine="numpy")).max() < 1e-6
    assert rates_of(tree, m, 5, "compiled") == pytest.approx(rates_of(tree, m, 5), rel=1e-12, abs=1e-12)


def rig(kind: str = "linear_tyre", constants: dict[str, float] = LINEAR) -> Tree:
    """A wheel of a test rig: it is driven along x and across y (prescribed), free to move up and down and to spin."""
    along, across, up = (Placement(rotation_to_axis(np.eye(3)[k])) for k in range(3))
    bodies = [
        Body("x", "ground", "sliding", along, real=False),
        Body("y", "x", "sliding", Placement(along.rotation.T @ across.rotation), real=False),
        Body("z", "y", "sliding", Placement(across.rotation.T @ up.rotation), actuated=False, real=False),
        Body("wheel", "z", "turning", Placement(up.rotation.T @ across.rotation), actuated=False),
    ]
    # the spin joint turns about the wheel's z
    ten = [0.753, 0.0, 0.0, 0.753, 0.0, 1.453, 0.0, 0.0, 0.0, 300.0]
    law = tyre(Marker("wheel", (0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0)), constants, kind=kind)
    return Tree.build(bodies, inertia={"wheel": ten}, elements=[law], prescribed=["x", "y"])


def test_a_rolling_wheel_settles_and_lags_as_closed_forms_say() -> None:
    """d = m g/K_z; −F_x ρ = M_y of a wheel that nothing drives; F_y rises as 1 − e^(−V t/σ) after a step aside."""
    tree, vx, vy = rig(), 8.0, 0.2

    def path(t: float) -> dict[str, tuple[float, float, float]]:
        return {"x": (vx * t, vx, 0.0), "y": (vy * t, vy, 0.0)}

    t = np.linspace(0.0, 1.6, 81)
    q0 = np.array([0.0, 0.0, R0 - 300.0 * 9.81 / KZ, 0.0])
    spin = vx / 0.338
    run = integrate(
        tree, t, q0, [vx, vy, 0.0, spin], Inputs(prescribed=path), method=Method("RK4", step=4e-3), engine="numpy"
    )
    found = wheel_readings(tree, run.motion)["tyre_wheel"]
    assert found.load[-1] == pytest.approx(300.0 * 9.81, rel=1e-6)
    assert found.deflection[-1] == pytest.approx(300.0 * 9.81 / KZ, rel=1e-6)
    resisting = 0.015 * 300.0 * 9.81 * R0
    assert found.fx[-1] * found.loaded_radius[-1] == pytest.approx(-resisting, rel=1e-5)
    expected = -LINEAR["C_ALPHA"] * vy / vx * (1.0 - np.exp(-vx * t / LINEAR["SIGMA_ALPHA"]))
    assert found.fy == pytest.approx(expected, abs=2e-2)  # RK4 of 4 ms at 8/.41 Hz
    assert run.motion.forces is not None
    assert run.motion.forces[-1, 1] == pytest.approx(-found.fy[-1], rel=1e-9)  # what the rig holds it with


def test_a_road_is_read_below_each_wheel() -> None:
    """A wheel of a rig on a ramp and over a bump: the height is that of the road's own functions."""
    tree = rig()
    road = Plane(grade=0.05, bank=0.02) + Bump(at=2.0, length=3.0, rise=0.04)

    def path(t: float) -> dict[str, tuple[float, float, float]]:
        return {"x": (6.0 * t, 6.0, 0.0), "y": (0.3, 0.0, 0.0)}

    t = np.linspace(0.0, 1.0, 21)
    q0 = np.array([0.0, 0.3, 0.02 * 0.3 + R0 - 300.0 * 9.81 / KZ, 0.0])
    inputs = Inputs(prescribed=path, road=road)
    runs = [
        integrate(tree, t, q0, [6.0, 0.0, 0.3, 18.0], inputs, method=Method("RK4", step=1e-2), engine=engine).motion
        for engine in ("numpy", "compiled")
    ]
    assert runs[1].q == pytest.approx(runs[0].q, abs=1e-9)
    m = runs[0]
    x, y = m.q[:, 0], m.q[:, 1]
    slopes = road.slope(x, y)
    plane = m.signals["tyre_wheel.road"] + slopes[0] * x + slopes[1] * y
    assert plane == pytest.approx(road.height(x, y), abs=1e-12)
    assert m.signals["tyre_wheel.road_x"] == pytest.approx(slopes[0], abs=1e-12)
    found = wheel_readings(tree, m)["tyre_wheel"]
    # an upright wheel on a slope sx, sy: the foot in the wheel's plane is straight below along −r, ρ = h/√(1 + sx²)
    height = (m.q[:, 2] - road.height(x, y)) / np.sqrt(1.0 + slopes[0] ** 2)
    assert found.loaded_radius == pytest.approx(height, abs=1e-12)
    assert np.ptp(m.q[:, 2] - 0.05 * x) > 0.02  # it went over the bump


def test_a_free_wheel_is_the_same_wheel_on_six_joints() -> None:
    """A free base with its pose as input, and six virtual joints whose positions make the pose: one motion."""
    law = tyre(Marker("wheel", (0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0)), MAGIC)
    free = Tree.build([Body("wheel", None, "fixed")], base="free", inertia={"wheel": TEN}, elements=[law])
    fixed = on_six_joints(free)
    t = np.linspace(0.0, 0.3, 7)
    how = Method("RK4", step=1e-3)
    none = np.zeros(0)
    base = BaseState((0.0, 0.0, 0.366), (np.cos(0.2), 0.0, 0.0, np.sin(0.2)), (3.0, 1.3, 0.0), (0.02, 9.0, 0.1))
    one = integrate(free, t, none, none, base=base, method=how)
    R = Rotation.from_euler("z", 0.4)
    rates = [3.0, 1.3, 0.0, 0.1, 9.0, 0.02]  # at yaw alone the rates of yaw, pitch and roll are ω_z, ω_y and ω_x
    two = integrate(fixed, t, [0.0, 0.0, 0.366, 0.4, 0.0, 0.0], rates, method=Method("RK4", step=1e-3))
    assert one.base_position is not None and one.base_rotation is not None
    assert one.base_position[:4] == pytest.approx(two.motion.q[:4, :3], abs=1e-8)
    assert one.states["tyre_wheel.kappa"][:4] == pytest.approx(two.states["tyre_wheel.kappa"][:4], abs=1e-8)
    ahead = R.apply([1.0, 0.0, 0.0])
    assert np.abs(one.states["tyre_wheel.tan_alpha"]).max() < 1.0 and one.base_position[-1] @ ahead > 0.5
    # along the motion the states are found again from it
    again = element_states(free, replace(one.motion, signals={}), engine="numpy")
    assert again.signals["tyre_wheel.kappa"][-1] == pytest.approx(one.states["tyre_wheel.kappa"][-1], abs=0.02)


def test_what_a_tyre_needs_is_named() -> None:
    tree, m = wheel(), rolling(np.random.default_rng(4), 3)
    assert m.base is not None
    with pytest.raises(DataError, match=r"tyre 'tyre_wheel' needs the position of the base"):
        inverse_dynamics(tree, replace(m, base=replace(m.base, position=None)))
    with pytest.raises(DataError, match=r"follows a state of its own, 'tyre_wheel.kappa'"):
        inverse_dynamics(tree, replace(m, signals={}))
    body = [Body("wheel", None, "fixed")]
    for law, said in (
        (Element(kind="tyre", value=1.0, constants=MAGIC), "it needs a wheel"),
        (tyre(Marker("weel", (0, 0, 0), axis=(0, 1, 0)), MAGIC), r"no body 'weel'[\s\S]*Did you mean 'wheel'"),
        (tyre(Marker("wheel", (0, 0, 0)), MAGIC), "its axis is not given by three numbers"),
        (tyre(Marker("wheel", (0, 0, 0), axis=(0, 1, 0)), CONTACT), r"needs the constant 'PCX1'"),
        (Element(kind="spring", value=1.0, wheel=Marker("wheel", (0, 0, 0))), "of kind spring cannot act on a wheel"),
    ):
        with pytest.raises(ModelError, match=said):
            Tree.build(body, base="free", elements=[law])


def test_stiffness_and_resistance_are_constants_and_the_share_is_known() -> None:
    tree = wheel()
    named = {c.name: c for c in tree.constants}
    assert named["tyre_wheel.PKY1"].value == -19.797 and named["tyre_wheel.VERTICAL_STIFFNESS"].unit == "N/m"
    assert [tree.parameters.names[k] for k in tree.parameters.select("known")] == ["tyre_wheel"]
    softer = tree.with_constants({"tyre_wheel.VERTICAL_STIFFNESS": 7e4, "tyre_wheel.QSY1": 0.03})
    m = rolling(np.random.default_rng(5), 70)
    one, two = (wheel_readings(x, m)["tyre_wheel"] for x in (tree, softer))
    assert (two.load[one.load > 500.0] < one.load[one.load > 500.0]).all()
    both = [inverse_dynamics(softer, m, engine=engine) for engine in ("numpy", "compiled")]
    assert both[1] == pytest.approx(both[0], rel=1e-12, abs=1e-7)
