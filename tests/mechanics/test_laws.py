"""Laws with constants: closed forms, energies by differences, derivatives at standstill, and constants as inputs of kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import PchipInterpolator

import veridyn as vd
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import ModelError
from veridyn.mechanics.system.integrate import Inputs, integrate
from veridyn.mechanics.tree.dynamics.engine import signature
from veridyn.mechanics.tree.dynamics.forward import inverse_derivatives
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.mechanics.tree.recursion.kinematics import energy
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor

V = np.linspace(-2.0, 2.0, 41)


def one(kind: str, **constants: float) -> Tree:
    """One element of value 3 on a sliding mass."""
    element = Element(kind=kind, on={"x": 1.0}, value=3.0, name="e", constants=constants)
    return Tree.build(
        [Body("x", joint="sliding")], inertia={"x": [0.0] * 9 + [1.0]}, gravity=(0, 0, 0), elements=[element]
    )


def moving(q: np.ndarray, qd: np.ndarray) -> Motion:
    return Motion(np.arange(float(len(q))), q[:, None], qd[:, None], np.zeros((len(q), 1)))


@pytest.mark.parametrize("exponent", [0.7, 1.0, 2.0, 3.5])
def test_stribeck_with_an_exponent(exponent: float) -> None:
    tree = one("stribeck", speed=0.4, exponent=exponent)
    exact = 3.0 * np.sign(V) / (1.0 + np.abs(V / 0.4) ** exponent)
    for engine in ("numpy", "compiled"):
        assert inverse_dynamics(tree, moving(V, V), engine=engine)[:, 0] == pytest.approx(exact, rel=1e-13, abs=1e-15)


def test_tanh_friction_far_beyond_its_speed() -> None:
    """Rates of thousands of times the speed: 1 to the last digit, and derivatives are numbers."""
    tree = one("tanh_friction", speed=1e-3)
    v = np.array([-1e3, -1.0, -1e-3, 0.0, 1e-6, 1e-3, 1.0, 1e3])
    slope = 3.0 / 1e-3 / np.cosh(np.clip(v / 1e-3, -300, 300)) ** 2
    for engine in ("numpy", "compiled"):
        assert inverse_dynamics(tree, moving(v, v), engine=engine)[:, 0] == pytest.approx(
            3.0 * np.tanh(v / 1e-3), abs=1e-14
        )
        got = inverse_derivatives(tree, moving(v, v), engine=engine).by_qd[:, 0, 0]
        assert got == pytest.approx(slope, rel=1e-9, abs=1e-12)


def test_derivatives_at_standstill_are_numbers() -> None:
    for kind, constants in (("stribeck", {"speed": 0.1, "exponent": 1.5}), ("tanh_friction", {"speed": 0.1})):
        for engine in ("numpy", "compiled"):
            found = inverse_derivatives(one(kind, **constants), moving(np.zeros(2), np.zeros(2)), engine=engine)
            assert np.isfinite(found.by_qd).all()


@pytest.mark.parametrize(
    ("kind", "constants"),
    [("spring", {"rest": 0.3}), ("cubic", {"rest": -0.2}), ("bump_stop", {"gap": 0.5}), ("dead_zone", {"gap": 0.5})],
)
def test_elastic_laws_are_slopes_of_their_energy(kind: str, constants: dict[str, float]) -> None:
    tree, h = one(kind, **constants), 1e-6
    motion = moving(V + 0.013, 0.0 * V)
    up, down = (energy(tree, replace(motion, q=motion.q + way * h)).elastic for way in (1.0, -1.0))
    assert inverse_dynamics(tree, motion)[:, 0] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6)


def test_constants_are_inputs_of_one_kernel() -> None:
    """Another value of a constant needs no other kernel, and gives another column."""
    a, b = one("stribeck", speed=0.4), one("stribeck", speed=0.2)
    assert signature(a) == signature(b)
    assert signature(a) != signature(one("stribeck", speed=0.4, exponent=2.0))
    for tree, speed in ((a, 0.4), (b, 0.2), (a.with_constants({"e.speed": 0.2}), 0.2)):
        exact = np.sign(V) / (1.0 + (V / speed) ** 2)
        assert regressor(tree, moving(V, V), engine="compiled")[:, 0, -1] == pytest.approx(exact, rel=1e-13)


def test_constants_are_listed_with_unit_and_bounds() -> None:
    (c,) = one("bump_stop", gap=0.5).constants
    assert (c.name, c.value, c.unit, c.low, c.high) == ("e.gap", 0.5, "m", -np.inf, np.inf)
    (speed,) = one("tanh_friction", speed=0.5).constants
    assert (speed.unit, speed.low) == ("m/s", 0.0)
    with pytest.raises(ModelError, match=r"there is no constant 'e\.spead'"):
        one("tanh_friction", speed=0.5).with_constants({"e.spead": 1.0})
    with pytest.raises(ModelError, match=r"out of bounds"):
        one("tanh_friction", speed=0.5).with_constants({"e.speed": -1.0})


AT, VALUES = (-1.5, -0.4, 0.3, 0.9, 1.6), (2.0, 0.5, -0.3, 1.0, 0.2)


def own_arm(seed: int) -> tuple[Tree, Tree]:
    """A random arm, without and with laws of one's own on a combination, between bodies and by points."""
    rng = np.random.default_rng(seed)
    plain = random_tree(rng, bodies=4, base="fixed", kinds=("turning",))
    a, b, c, d = plain.coordinates
    ends = (Marker(plain.bodies[0].name, (0.1, 0.2, 0.3)), Marker(plain.bodies[-1].name, (0.2, 0.0, 0.1)))
    return plain, plain.with_elements(
        [
            vd.elements.law({a: 1.0, b: -0.5}, f"c**3*exp(-v**2) + {c}*rate({d}) + signal(heat)*tanh(v)", 3.0, "mixed"),
            vd.elements.table(d, AT, VALUES, 2.0, "points", of=f"c + 0.1*rate({a})"),
            Element(kind="law", between=ends, formula="(c - 0.4)**2*sign(v)", value=5.0, name="cable"),
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_laws_of_ones_own_are_torques_added_by_hand(seed: int) -> None:
    """Pinocchio's inverse dynamics, and each law in NumPy on the rows it acts on; the cable by differences of its length."""
    plain, tree = own_arm(seed)
    rng = np.random.default_rng(seed + 50)
    m = replace(random_motion(rng, tree, 30, wrenches=False), signals={"heat": rng.normal(size=30)})
    q, v = m.q, m.qd
    law = np.zeros((30, 4))
    c, cd = q[:, 0] - 0.5 * q[:, 1], v[:, 0] - 0.5 * v[:, 1]
    mixed = 3.0 * (c**3 * np.exp(-(cd**2)) + q[:, 2] * v[:, 3] + m.signals["heat"] * np.tanh(cd))
    law[:, 0] += mixed
    law[:, 1] -= 0.5 * mixed
    law[:, 3] += 2.0 * PchipInterpolator(AT, VALUES)(np.clip(q[:, 3] + 0.1 * v[:, 0], AT[0], AT[-1]))
    oracle = PinModel(plain)
    at = [np.array(x.at) for x in tree.elements[-1].between or ()]

    def length(q: np.ndarray) -> np.ndarray:
        poses = [oracle.frame_pose(q, name) for name in (plain.bodies[0].name, plain.bodies[-1].name)]
        ends = [p + np.einsum("nij,j->ni", R, x) for (R, p), x in zip(poses, at, strict=True)]
        return np.linalg.norm(ends[1] - ends[0], axis=1)

    h = 1e-6
    slope = np.stack([(length(q + h * e) - length(q - h * e)) / (2 * h) for e in np.eye(4)], axis=1)
    rate = np.einsum("nk,nk->n", slope, v)
    law += (5.0 * (length(q) - 0.4) ** 2 * np.sign(rate))[:, None] * slope
    expected = oracle.inverse_dynamics(m) + law
    for engine in ("numpy", "compiled"):
        assert inverse_dynamics(tree, m, engine=engine) == pytest.approx(expected, rel=1e-8, abs=1e-8), engine
    columns = regressor(tree, m) @ tree.parameters.values
    assert columns == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_derivatives_of_laws_of_ones_own() -> None:
    _, tree = own_arm(1)
    rng = np.random.default_rng(9)
    m = replace(random_motion(rng, tree, 12, wrenches=False), signals={"heat": rng.normal(size=12)})
    found, h = inverse_derivatives(tree, m, engine="compiled"), 1e-6
    for k, e in enumerate(np.eye(4)):
        by_q = [inverse_dynamics(tree, replace(m, q=m.q + way * h * e)) for way in (1.0, -1.0)]
        by_qd = [inverse_dynamics(tree, replace(m, qd=m.qd + way * h * e)) for way in (1.0, -1.0)]
        assert found.by_q[:, :, k] == pytest.approx((by_q[0] - by_q[1]) / (2 * h), rel=1e-5, abs=1e-5)
        assert found.by_qd[:, :, k] == pytest.approx((by_qd[0] - by_qd[1]) / (2 * h), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    "element",
    [
        vd.elements.law("x", "c**3 - 0.2*sin(4*c)", 3.0),
        vd.elements.law("x", "max(c - 0.5, 0)*c", 3.0),
        vd.elements.table("x", AT, VALUES, 3.0),
        vd.elements.table("x", AT, VALUES, 3.0, shape="linear", outside="extend", of="2*c"),
    ],
    ids=["smooth", "bent", "table", "table of a formula"],
)
def test_conservative_laws_of_ones_own_are_slopes_of_their_energy(element: Element) -> None:
    bodies, ten = [Body("x", joint="sliding")], {"x": [0.0] * 9 + [1.0]}
    tree = Tree.build(bodies, inertia=ten, gravity=(0, 0, 0), elements=[element])
    motion, h = moving(V + 0.013, 0.0 * V), 1e-4
    up, down = (energy(tree, replace(motion, q=motion.q + way * h)).elastic for way in (1.0, -1.0))
    smooth = element.kind == "law" and element.own_law is not None and element.own_law.smooth
    off = (
        1e-6 if smooth or (element.table is not None and element.table.of == "c") else 2e-2
    )  # 320 places, h across a bend
    assert inverse_dynamics(tree, motion)[:, 0] == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=off)


@pytest.mark.filterwarnings("ignore:.*(reads beside what the model expects|the filter is)")  # without the spring
def test_a_pendulum_with_a_cubic_spring_by_scipy_is_simulated_identified_and_observed() -> None:
    """J q̈ = τ − k sin q − k₃ q³ − b q̇|q̇| s integrated by SciPy; gains within 3 σ, and the observer follows with the identified machine.

    s is a measured signal, an input of the simulation and of the observer.
    """
    J, weight, k3, b, sigma = 0.5, 4.0, 6.0, 0.3, 0.02
    rng = np.random.default_rng(11)

    def torque(t: float) -> float:
        return 4.0 * np.sin(1.7 * t) + 2.5 * np.sin(4.1 * t + 1.0)

    def oil(t: float) -> float:
        return 1.0 + 0.5 * np.sin(0.8 * t)

    def rate(t: float, x: np.ndarray) -> list[float]:
        q, qd = x
        return [qd, (torque(t) - weight * np.sin(q) - k3 * q**3 - b * qd * abs(qd) * oil(t)) / J]

    t = np.arange(0.0, 12.0, 0.01)
    truth = solve_ivp(rate, (0.0, 12.0), [0.2, 0.0], "DOP853", t, rtol=1e-11, atol=1e-11).y.T
    ten = [0.0, 0.0, 0.0, J, 0.0, J, weight / 9.81, 0.0, 0.0, 1.0]
    elements = [vd.elements.law("1", "c**3", k3, "k3"), vd.elements.law("1", "v*abs(v)*signal(oil)", b, "b")]
    encoder = Sensor("encoder", "coordinate", "1", 1e-3)
    tree = Tree.build(
        [Body("1", coordinate="1")], inertia={"1": ten}, gravity=(9.81, 0, 0), elements=elements, sensors=[encoder]
    )
    exact = np.array([[torque(s)] for s in t])
    accelerations = np.array([[rate(s, x)[1]] for s, x in zip(t, truth, strict=True)])
    motion = Motion(
        t,
        truth[:, :1],
        truth[:, 1:],
        accelerations,
        forces=exact + sigma * rng.normal(size=exact.shape),
        signals={"oil": oil(t)},
    )
    assert inverse_dynamics(tree, motion) == pytest.approx(exact, abs=1e-8)
    inputs = Inputs(lambda time, q, qd: np.array([torque(time)]), signals=lambda time, q, qd: {"oil": oil(time)})
    run = integrate(tree, t, [0.2], [0.0], inputs)
    assert run.motion.q == pytest.approx(truth[:, :1], abs=1e-6)
    fit = vd.identify(machine_of_tree(tree.with_parameters(tree.parameters.known(["M1"]))), motion, "wls")
    found = dict(zip(fit.names, zip(fit.values, fit.sigma, strict=True), strict=True))
    for name, true in (("k3", k3), ("b", b), ("ZZ1", J), ("MX1", weight / 9.81)):
        assert abs(found[name][0] - true) < 3.0 * found[name][1] < 0.1 * true, name
    log = Experiment(
        {
            "encoder": Channel("encoder", t, truth[:, 0] + 1e-3 * rng.normal(size=len(t)), "rad"),
            "signal.oil": Channel("signal.oil", t, oil(t), "1"),
            "force.1": Channel("force.1", t, exact[:, 0], "N*m"),
        }
    )
    noise = vd.ProcessNoise(start=2e-3, start_rate=0.02, acceleration=1e-2)
    same = vd.ObserveSettings(model_error="off", process_noise=noise, start={"1": 0.2}, unknown=())
    seen = vd.observe(fit.machine(unexcited=0.1), log, "ekf", same)
    plain = vd.observe(fit.described.without_elements(["k3"]), log, "ekf", same)
    errors = [np.sqrt(np.mean((x.state("1_dot")[100:] - truth[100:, 1]) ** 2)) for x in (seen, plain)]
    assert errors[0] < 0.02 < 10.0 * errors[0] < errors[1]
