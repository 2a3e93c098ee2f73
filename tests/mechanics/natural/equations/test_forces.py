"""Mass and generalised forces: virtual power, potentials, and exact tangents against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers.graph_machines import seven_joint_arm
from strangers.natural_mechanisms import PLANE_BASES, SPACE_BASES, fourbar, random_body, random_mechanism, unit
from strangers.natural_steps import index3_step, natural_step
from veridyn.errors import DataError, ModelError
from veridyn.files.access import shipped
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.write import model_text
from veridyn.files.machine.write_parts import differences
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.description.of_machine import mechanism_of, mechanism_with
from veridyn.mechanics.natural.equations.dynamics import (
    Stabilisation,
    initial_state,
    natural_energy,
    solve_accelerations,
)
from veridyn.mechanics.natural.equations.forces import forces_of, mass_matrix_of, weight_of
from veridyn.mechanics.natural.equations.geometry import Geometry
from veridyn.mechanics.natural.equations.position import independent, position, start_of, velocity
from veridyn.mechanics.natural.equations.system import system_of, with_parameter_slopes
from veridyn.mechanics.natural.steps.integrate import NaturalMethod
from veridyn.mechanics.natural.steps.minimal import minimal
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import energy
from veridyn.model.elements.element import Element, bump_stop, coulomb, cubic, dead_zone, law, table, tanh_friction
from veridyn.model.load import Torque
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import Uncertainty
from veridyn.model.place import Marker
from veridyn.model.point_parts import Point, RigidBody, Spring, UnitVector, uniform_bar
from veridyn.spatial.inertia import cross_matrix

BASES = [(2, b) for b in PLANE_BASES] + [(3, b) for b in SPACE_BASES]
EVERY_LAW = [
    law("q1", "(c - 0.2)**3*cos(q2) + 0.1*rate(q3)*abs(v)", 3.0, "bend"),
    law({"q1": 1.0, "q2": -0.5}, "sin(2*c) + tanh(v/0.2) + sqrt(1 + c*c)/2 - atan(q3)*exp(-q1*q1)", 1.3, "twist"),
    law("q2", "log(2 + c*c) + max(c, 0.1) - min(v, q1)/(1 + c**2) + abs(c)**1.5", 0.7, "mixed"),
    table({"q3": 2.0}, (-3.0, -0.4, 0.3, 1.1, 4.0), (0.5, 0.1, 0.0, 0.9, 2.0), 1.7, "hose", outside="extend"),
    cubic("q2", 2.0, "hard", rest=0.1),
    tanh_friction("q3", 0.3, 0.4, "dry"),
    bump_stop("q1", 0.4, 30.0, "stop"),
    dead_zone({"q2": 1.0, "q3": 1.0}, 0.05, 9.0, "play"),
    Element(kind="damper_forward", on={"q1": 1.0}, value=0.3, name="forth"),
    Element(kind="damper_backward", on={"q1": 1.0}, value=0.2, name="back"),
]
NATURAL = """
veridyn: 2
formulation: natural
gravity: [0, 0, -9.81]
bodies:
  - name: arm
    antecedent: ground
    joint: turning
    coordinate: q1
    mdh: {alpha: pi/2}
    inertia: {mass: 1, centre: [0.3, 0, 0], about_centre: [0.01, 0, 0, 0.02, 0, 0.02]}
elements:
  - {kind: law, on: q1, formula: c**3, value: 2, name: k3}
"""
SEEDS = range(8)


@pytest.mark.parametrize(("dim", "basis"), BASES)
@pytest.mark.parametrize("seed", range(4))
def test_kinetic_energy_of_a_rigid_motion(seed: int, dim: int, basis: tuple[int, int]) -> None:
    rng = np.random.default_rng(10 + seed)
    body, points, vectors, R, p = random_body(rng, "b", dim, basis)
    g = Geometry(Mechanism.build(points, [body], vectors=vectors, gravity=rng.normal(size=dim)))
    M = mass_matrix_of(g)
    omega, v = rng.normal(size=3 if dim == 3 else 1), rng.normal(size=dim)
    W = cross_matrix(omega) if dim == 3 else omega[0] * np.array([[0.0, -1.0], [1.0, 0.0]])
    qd = np.concatenate([v + W @ np.array(k.at) for k in points] + [W @ np.array(k.along) for k in vectors])
    centre = p + R @ np.array(body.centre)
    J = R @ body.inertia @ R.T if dim == 3 else np.array([[float(body.inertia)]])
    expected = 0.5 * body.mass * ((v + W @ centre) ** 2).sum() + 0.5 * omega @ J @ omega
    # Nearly parallel directions carry large coefficients: rounding grows with them.
    assert 0.5 * qd @ M @ qd == pytest.approx(expected, rel=1e-9)
    assert np.array_equal(M, M.T)
    gravity = np.array(g.mechanism.gravity)
    assert weight_of(g) @ np.append(g.guess, 1.0) == pytest.approx(body.mass * gravity @ centre, rel=1e-9, abs=1e-12)
    assert weight_of(g)[:-1] @ qd == pytest.approx(body.mass * gravity @ (v + W @ centre), rel=1e-9, abs=1e-10)


def test_equation_27() -> None:
    m, I1, L, x, y = 3.0, 4.0, 2.0, 0.7, 0.3
    about_centre = I1 - m * (x * x + y * y)
    body = RigidBody("b", {"1": (0, 0), "2": (L, 0)}, mass=m, centre=(x, y), inertia=about_centre)
    M = mass_matrix_of(Geometry(Mechanism.build([Point("1", (0, 0)), Point("2", (L, 0))], [body])))
    a, b, c, d = m - 2 * m * x / L + I1 / L**2, m * x / L - I1 / L**2, m * y / L, I1 / L**2
    expected = np.array([[a, 0, b, -c], [0, a, c, b], [b, c, d, 0], [-c, b, 0, d]])
    assert np.abs(M - expected).max() <= 1e-14


def test_a_rod_a_particle_and_a_lamina_need_no_more_than_they_span() -> None:
    rng = np.random.default_rng(0)
    u = unit(rng, 3)
    rod = Mechanism.build([Point("A", (0, 0, 0)), Point("B", 2 * u)], [uniform_bar("rod", "A", "B", 2.0, 6.0, 3)])
    eye = np.eye(3)
    assert mass_matrix_of(Geometry(rod)) == pytest.approx(np.block([[2 * eye, eye], [eye, 2 * eye]]), abs=1e-14)
    particle = Mechanism.build([Point("A", (0, 0, 0))], [RigidBody("p", {"A": (1, 2, 3)}, mass=2.0, centre=(1, 2, 3))])
    assert mass_matrix_of(Geometry(particle)) == pytest.approx(2 * eye)
    lamina = RigidBody(
        "l",
        {"A": (0, 0, 0), "B": (1, 0, 0), "C": (0, 1, 0)},
        mass=1.0,
        centre=(0.2, 0.3, 0),
        inertia=np.diag([1, 2, 3]),
    )
    points = [Point("A", (0, 0, 0)), Point("B", (1, 0, 0)), Point("C", (0, 1, 0))]
    assert np.linalg.eigvalsh(mass_matrix_of(Geometry(Mechanism.build(points, [lamina]))))[0] > 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (RigidBody("p", {"A": (0, 0, 0)}, mass=1.0, centre=(0.1, 0, 0)), "the point 'A' only"),
        (
            RigidBody("p", {"A": (0, 0, 0), "B": (1, 0, 0)}, mass=1.0, inertia=np.eye(3)),
            r"(?s)mass along A-B.*Add a vector",
        ),
        (
            RigidBody("p", {"A": (0, 0, 0), "B": (1, 0, 0)}, {"u": (0, 1, 0)}, mass=1.0, inertia=np.eye(3)),
            r"(?s)body 'p'.*mass along A-B, u",
        ),
    ],
)
def test_mass_outside_the_span_is_refused(body: RigidBody, message: str) -> None:
    mechanism = Mechanism.build(
        [Point("A", (0, 0, 0)), Point("B", (1, 0, 0))], [body], vectors=[UnitVector("u", (0, 1, 0))]
    )
    with pytest.raises(ModelError, match=message):
        mass_matrix_of(Geometry(mechanism))


def test_mass_outside_the_span_in_the_plane() -> None:
    mechanism = Mechanism.build([Point("A", (0, 0))], [RigidBody("p", {"A": (0, 0)}, mass=1.0, inertia=0.2)])
    with pytest.raises(ModelError, match="the point 'A' only"):
        mass_matrix_of(Geometry(mechanism))


def linkage() -> Machine:
    """The four-bar with every law, and one between places of two of its bars."""
    made = vd.load_model(shipped("veridyn:linkage.yaml"))
    names = made.body_names
    ends = Marker(names[0], (0.05, 0.02, 0.0)), Marker(names[2], (0.04, 0.0, 0.0))
    rope = Element(kind="law", between=ends, value=40.0, name="rope", formula="max(c - 0.3, 0)**2 + 0.1*v*q1")
    return made.without_elements(made.element_names).with_elements([*EVERY_LAW, rope])


def arm() -> Machine:
    return seven_joint_arm().with_elements(EVERY_LAW)


@pytest.mark.parametrize(("made", "held"), [(linkage, ("q1",)), (arm, tuple(f"q{k}" for k in range(1, 8)))])
def test_accelerations_and_energy_are_those_of_the_tree(made, held: tuple[str, ...]) -> None:
    """To 1e-9 of the largest, at poses about where the machine is put together, which is where its points are guessed."""
    machine = made()
    tree, system = tree_of(machine), system_of(mechanism_of(machine))
    home = [machine.assembly.hold[c] for c in held]
    at = [system.mechanism.index(c) for c in tree.coordinates]
    rng = np.random.default_rng(4)
    for _ in range(6):
        given = dict(zip(held, (home + rng.uniform(-0.6, 0.6, len(held))).tolist(), strict=True))
        q, qd = start_of(system, given, dict(zip(held, rng.normal(size=len(held)).tolist(), strict=True)))
        none = np.zeros((1, tree.n))
        expected = forward_dynamics(
            tree, Motion(np.zeros(1), q[None, at], qd[None, at], none, forces=none), engine="numpy"
        )
        found = solve_accelerations(system, q, qd)[0][at]
        assert found == pytest.approx(expected.qdd[0], abs=1e-9 * max(1.0, float(np.abs(found).max())))
        stored = energy(tree, Motion(np.zeros(1), q[None, at], qd[None, at], none))
        assert natural_energy(system, q, qd).elastic == pytest.approx(float(np.ravel(stored.elastic)[0]), rel=1e-9)


def test_tangents_are_differences_of_forces() -> None:
    system = system_of(mechanism_of(linkage()))
    rng, h = np.random.default_rng(2), 1e-6
    for _ in range(4):
        q, qd = system.guess + 0.3 * rng.normal(size=system.n), rng.normal(size=system.n)
        K, C = system.forces.tangents(q, qd, system.forces.values)
        for k, step in enumerate(h * np.eye(system.n)):
            by_q = [system.forces.forces(q + way * step, qd, system.forces.values) for way in (1, -1)]
            by_qd = [system.forces.forces(q, qd + way * step, system.forces.values) for way in (1, -1)]
            assert K[:, k] == pytest.approx((by_q[1] - by_q[0]) / (2 * h), rel=1e-5, abs=1e-6)
            assert C[:, k] == pytest.approx((by_qd[1] - by_qd[0]) / (2 * h), rel=1e-5, abs=1e-6)


def test_compiled_steps_are_those_of_numpy() -> None:
    """Steps of index 3 with the programs of laws as machine code, and with the same programs in NumPy."""
    system = system_of(mechanism_of(linkage()))
    how = Stabilisation()
    by_numpy = by_machine = initial_state(system, {"q1": 0.6}, {"q1": 1.3})
    for _ in range(5):
        by_numpy = index3_step(system, by_numpy, 1e-3, system.forces.values, how)
        by_machine = natural_step(system, by_machine, 1e-3, method=NaturalMethod(stabilisation=how))
    assert by_machine.q == pytest.approx(by_numpy.q, abs=1e-9)
    assert by_machine.qd == pytest.approx(by_numpy.qd, abs=1e-7)


def test_steps_over_independent_coordinates_have_exact_derivatives() -> None:
    """What observers compute: accelerations as above, ∂(z, ż)₁/∂(z, ż)₀ and by parameters of laws against central differences."""
    machine, names = linkage(), ("bend", "hose", "rope", "play")
    known = machine.with_uncertainty(Uncertainty(names, np.eye(4)))
    system = with_parameter_slopes(system_of(mechanism_of(machine)), known)
    q, qd = start_of(system, {"q1": 0.6}, {"q1": 1.3})
    model = minimal(system, q, ("q1",), (), names)
    z, zd, values = q[model.z], qd[model.z], np.array([machine.parameters[n] for n in names])
    at = model.instant(q, z, zd, values, model.loads())
    assert at.qdd == pytest.approx(solve_accelerations(system, q, qd)[0], abs=1e-8)
    after = model.step(q, z, zd, values, 0.005, model.loads())

    def moved(z: np.ndarray, zd: np.ndarray, changed: Machine = machine) -> np.ndarray:
        other = minimal(system_of(mechanism_of(changed)), q, ("q1",), ())
        end = other.step(q, z, zd, np.zeros(0), 0.005, other.loads())
        return np.concatenate([end.q[other.z], end.qd[other.z]])

    h = 1e-5
    assert after.F[:, 0] == pytest.approx((moved(z + h, zd) - moved(z - h, zd)) / (2 * h), rel=1e-5, abs=1e-7)
    assert after.F[:, 1] == pytest.approx((moved(z, zd + h) - moved(z, zd - h)) / (2 * h), rel=1e-5, abs=1e-7)
    for k, name in enumerate(names):
        step = 1e-3 * machine.parameters[name]
        ends = [moved(z, zd, machine.with_parameters({name: machine.parameters[name] + w * step})) for w in (1, -1)]
        expected = (ends[0] - ends[1]) / (2 * step)
        assert after.F[:, 2 + k] == pytest.approx(expected, rel=1e-4, abs=1e-9), name


def test_a_model_file_in_natural_coordinates_has_laws_and_names_what_it_cannot_carry() -> None:
    machine = parse_machine(NATURAL, "arm.yaml")
    assert [e.name for e in mechanism_of(machine).laws] == ["k3"]
    assert differences(machine, parse_machine(model_text(machine), "again.yaml")) == ()
    with pytest.raises(ModelError, match=r"(?s)element 'k3'.*reads the measured signal 'heat'.*formulation: tree"):
        parse_machine(NATURAL.replace("c**3", "c*signal(heat)"), "arm.yaml")
    with pytest.raises(ModelError, match=r"(?s)element 'k3'.*its value is unknown"):
        parse_machine(NATURAL.replace("value: 2, ", ""), "arm.yaml")


def test_laws_that_jump_are_those_of_the_tree_as_they_are_and_rounded_off() -> None:
    """Accelerations with dry and Stribeck friction, a formula with a sign, and offset and inertia on a combination of two joints."""
    both = {"q1": 1.0, "q2": -0.5}
    acting = [
        coulomb("q1", 3.0, "fs"),
        Element(kind="stribeck", on={"q3": 1.0}, value=2.0, name="stick", constants={"speed": 0.1}),
        law("q2", "sign(v)*c", 4.0, "step"),
        Element(kind="coulomb", on=both, value=1.5, name="shared"),
        Element(kind="offset", on=both, value=2.5, name="lean"),
        Element(kind="inertia", on=both, value=0.7, name="motor"),
    ]
    machine = seven_joint_arm().with_elements(acting)
    rng = np.random.default_rng(5)
    q, qd = rng.uniform(-1.0, 1.0, 7), rng.uniform(-0.08, 0.08, 7)
    names = machine.coordinates
    for speed in (0.0, 0.05):
        system = system_of(replace(mechanism_with(machine, "all"), friction_speed=speed))
        x = position(system, dict(zip(names, q.tolist(), strict=True)))
        xd = velocity(system, x, dict(zip(names, qd.tolist(), strict=True)))
        found = solve_accelerations(system, x, xd)[0][[system.mechanism.index(c) for c in names]]
        expected = machine.evaluator(friction_speed=speed).forward_dynamics(q, qd, np.zeros(7))
        assert found == pytest.approx(np.ravel(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_tangents_against_finite_differences(seed: int, dim: int) -> None:
    rng = np.random.default_rng(400 + seed)
    table = forces_of(Geometry(random_mechanism(rng, dim).mechanism))
    n = len(table.weight) - 1
    q, qd = rng.normal(size=n), rng.normal(size=n)
    K, C = table.tangents(q, qd, table.values)
    h, scale = 1e-6, max(np.abs(K).max(), np.abs(C).max(), 1.0)
    for k, e in enumerate(np.eye(n)):
        down, up = (table.forces(q + s * h * e, qd, table.values) for s in (-1, 1))
        assert np.abs(K[:, k] + (up - down) / (2 * h)).max() <= 1e-6 * scale
        down, up = (table.forces(q, qd + s * h * e, table.values) for s in (-1, 1))
        assert np.abs(C[:, k] + (up - down) / (2 * h)).max() <= 1e-6 * scale


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_power_of_everything(seed: int, dim: int) -> None:
    """Q·q̇ = −d(potential)/dt − what dampers take + F·v + τ·ω, along a velocity that the joints allow."""
    rng = np.random.default_rng(500 + seed)
    posed = random_mechanism(rng, dim)
    system = system_of(posed.mechanism)
    m, g, q = posed.mechanism, system.geometry, system.guess
    names = independent(system, q)
    if not names:
        pytest.skip("a structure does not move")
    qd = velocity(system, q, dict(zip(names, rng.normal(size=len(names)), strict=True)))
    rate = {a: qd[m.index(a)] for a in ("theta", "s", "d", "e")}
    h = 1e-6
    slope = (sum(system.forces.potential(q + h * qd)) - sum(system.forces.potential(q - h * qd))) / (2 * h)
    last = m.bodies[-1].name
    push, twist, pair = (np.array(load.value) for load in m.loads[1:])
    omega = np.atleast_1d(g.angular_velocity(last, q, qd))
    omega0 = np.atleast_1d(g.angular_velocity("b0", q, qd))
    tip = g.point(m.loads[1].at)[:, :-1] @ qd
    between = (g.point(m.dampers[0].on[1]) - g.point("O")) @ np.append(q, 1.0)
    along = between / np.linalg.norm(between) @ tip
    taken = 3.0 * along**2 + 0.4 * rate["theta"] ** 2 + 1.0 * rate["s"] ** 2
    given = 2.0 * rate["theta"] + push @ tip + twist @ omega + pair @ (omega - omega0)
    Q = system.forces.forces(q, qd, system.forces.values)
    scale = max(1.0, abs(slope), abs(taken), abs(given), np.abs(qd).max() ** 2)
    assert Q @ qd == pytest.approx(-slope - taken + given, abs=1e-7 * scale)


def test_loads_by_name() -> None:
    table = forces_of(Geometry(fourbar()))
    assert table.load_values() == pytest.approx([-10.0])
    assert table.load_values({"motor": 100.0}) == pytest.approx([100.0])
    with pytest.raises(DataError, match=r"(?s)fourbar: there is no load 'engine'.*Known: motor"):
        table.load_values({"engine": 1.0})
    with pytest.raises(DataError, match=r"(?s)load 'motor'.*1 finite number"):
        table.load_values({"motor": (1.0, 2.0)})
    with pytest.raises(DataError, match="this is no value of this load"):
        table.load_values({"motor": np.nan})


def test_a_strut_without_length_is_refused() -> None:
    points = [Point("A", (0, 0), True), Point("B", (0, 0)), Point("C", (1, 0))]
    mechanism = Mechanism.build(
        points, [uniform_bar("bar", "B", "C", 1, 1)], springs=[Spring("k", ("A", "B"), 1.0, 1.0)]
    )
    table = forces_of(Geometry(mechanism))
    with pytest.raises(DataError, match="force 'k': its two ends are at one place"):
        table.forces(np.array([0.0, 0, 1, 0]), np.zeros(4), table.values)


def test_a_torque_needs_an_orientation() -> None:
    points = [Point("A", (0, 0, 0), True), Point("B", (1, 0, 0))]
    mechanism = Mechanism.build(points, [uniform_bar("bar", "A", "B", 1, 1, 3)], loads=[Torque("t", "bar", (0, 0, 1))])
    with pytest.raises(ModelError, match="force 't', body 'bar': its points and vectors do not fix its orientation"):
        forces_of(Geometry(mechanism))
