"""Reactions against Pinocchio, Newton's and Euler's laws written out by hand, and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from strangers.natural_mechanisms import fourbar, rack_and_pinion, random_mechanism, unit
from strangers.pinocchio_natural import BODIES, PLACES, Stranger, direction, natural
from veridyn.errors import DataError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.dynamics import solve_accelerations
from veridyn.mechanics.natural.equations.position import independent, position, r_matrix, start_of
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.reaction import Along, Wrench, across_of, owner_of, reaction_of
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.place import GROUND, Marker
from veridyn.model.point_parts import Angle, MechanismJoint, Point, RigidBody, Spring, UnitVector
from veridyn.spatial.inertia import inertia_matrix


def arm(of) -> Mechanism:
    """One body that turns about z on the ground, with an angle of a direction of it."""
    return Mechanism.build(
        [Point("O", (0, 0, 0), True), Point("P", (0.6, 0.2, 0.5))],
        [
            RigidBody(
                "arm",
                {"O": (0, 0, 0), "P": (0.6, 0.2, 0.5)},
                {"z": (0, 0, 1), "n": (0, 1, 0)},
                1.0,
                (0.3, 0.1, 0.2),
                np.diag([0.1, 0.1, 0.1]),
            )
        ],
        vectors=[UnitVector("z", (0, 0, 1), True), UnitVector("n", (0, 1, 0))],
        added=[Angle("phi", of, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))],
    )


def test_it_is_the_moment_of_the_row_less_that_about_the_axis() -> None:
    system, rng = system_of(arm(("O", "P"))), np.random.default_rng(0)
    (part,) = across_of(system, "arm", GROUND, system.geometry.elements["z"])
    q, lam = system.guess, rng.normal(size=system.constraints.m)
    d, phi = q[:3], q[part.place]
    n = np.array([np.sin(phi), -np.cos(phi), 0.0])  # ∂Φ/∂d
    whole = np.cross(d, -lam[part.row] * n)
    moment, by_q, by_lam = part.at(q, lam)
    assert moment == pytest.approx([*whole[:2], 0.0], abs=1e-12)
    assert by_lam * lam[part.row] == pytest.approx(moment)
    for _ in range(3):
        off, h = unit(rng, system.n), 1e-6
        change = (part.at(q + h * off, lam)[0] - part.at(q - h * off, lam)[0]) / (2.0 * h)
        assert by_q @ off == pytest.approx(change, abs=1e-8)
    (back,) = across_of(system, GROUND, "arm", system.geometry.elements["z"])
    assert back.at(q, lam)[0] == pytest.approx(-moment)


def test_a_direction_across_the_axis_has_none_and_other_axes_do_not_count() -> None:
    system = system_of(arm("n"))
    (part,) = across_of(system, "arm", GROUND, system.geometry.elements["z"])
    assert part.at(system.guess, np.ones(system.constraints.m))[0] == pytest.approx(np.zeros(3), abs=1e-15)
    assert across_of(system, "arm", GROUND, system.geometry.elements["n"]) == ()
    assert across_of(system, "arm", "other", system.geometry.elements["z"]) == ()


def test_whose_a_place_or_direction_is() -> None:
    m = arm("n")
    assert owner_of(m, Marker("arm", (0, 0, 0))) == "arm" and owner_of(m, ("O", "P")) == "arm"
    assert owner_of(m, "z") == GROUND and owner_of(m, "O") == GROUND and owner_of(m, (1.0, 0.0, 0.0)) == GROUND
    loose = replace(m, points=(*m.points, Point("Q", (1, 1, 1))))
    assert owner_of(loose, ("P", "Q")) is None


NO = np.zeros(0)


def moving(system: NaturalSystem, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A closed pose, a velocity that keeps it closed, accelerations and multipliers."""
    q = position(system)
    R = r_matrix(system, q, independent(system, q))
    qd = R @ rng.normal(size=R.shape[1])
    return q, qd, *solve_accelerations(system, q, qd)


def value(system: NaturalSystem, on, state) -> np.ndarray:
    q, qd, qdd, lam = state
    return reaction_of(system, on).at(q, qd, qdd, lam, system.forces.load_values(), NO).y


class Joints(Stranger):
    """Pinocchio's wrenches in the joints of the tree, with the force that closes the loop outside of it."""

    def wrenches(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Accelerations, and what is done to each body in its joint to its parent, force and moment about the joint's place."""
        model, data = self.model, self.data
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        b = pin.nonLinearEffects(model, data, q, v)
        J = self.closure(q)
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        drift = self._motion("rod", "TB")[2] - self._motion("upper_b", "TB")[2]
        KKT = np.block([[M, J.T], [J, np.zeros((3, 3))]])
        found = np.linalg.solve(KKT, np.concatenate([tau - b, -drift]))
        a, closing = found[: model.nv], -found[model.nv :]  # on the rod, in the ground's axes
        outside = pin.StdVec_Force()
        for j in range(model.njoints):
            f = pin.Force.Zero()
            for body, sign in (("rod", 1.0), ("upper_b", -1.0)):
                if j == self.joint[body]:
                    local = sign * data.oMi[j].rotation.T @ closing
                    f = pin.Force(local, np.cross(np.array(PLACES["TB"]) - self.origin[body], local))
            outside.append(f)
        assert pin.rnea(model, data, q, v, a, outside) == pytest.approx(tau, abs=1e-8)
        told = {"TB": closing}
        for body, j in self.joint.items():
            if j:
                R = data.oMi[j].rotation
                told[body] = np.concatenate([R @ data.f[j].linear, R @ data.f[j].angular])
        return a, told


@pytest.mark.parametrize("seed", range(3))
def test_every_joint_of_a_closed_spatial_machine_against_pinocchio(seed: int) -> None:
    """Turning joints on shared points and vectors, to the ground and between bodies, spherical ones on shared points."""
    stranger, rng = Joints(), np.random.default_rng(seed)
    q, v = stranger.closed(rng, 1.0)
    a, told = stranger.wrenches(q, v, np.zeros(stranger.model.nv))
    x, xd, xdd = stranger.natural_state(q, v, a)
    system = system_of(natural())
    mine, lam = solve_accelerations(system, x, xd)
    assert mine == pytest.approx(xdd, abs=1e-8)
    state = (x, xd, mine, lam)
    for body, (_, _, _, place, axis) in BODIES.items():
        found = value(system, (body, place), state)
        assert len(found) == (6 if axis else 3)
        assert found == pytest.approx(told[body][: len(found)], abs=1e-8)
        if not axis:
            assert told[body][3:] == pytest.approx(np.zeros(3), abs=1e-9)
    assert value(system, ("rod", "TB"), state) == pytest.approx(told["TB"], abs=1e-8)
    # what a body does to the other is the opposite of what that does to it
    for one, other, place in (("lower_a", "upper_a", "PA"), ("rod", "upper_b", "TB"), ("upper_a", "rod", "TA")):
        assert value(system, (one, place), state) == pytest.approx(-value(system, (other, place), state), abs=1e-8)


def motored(named: bool = False) -> Mechanism:
    """The same machine with a motor on the elbow, whose angle is of a direction that is not across the axis.

    `named`: the elbow is a joint of the description, between points and vectors that the two bodies do not share.
    """
    m = natural()
    u, e = direction("a2"), np.cross(direction("a2"), [0.3, 0.1, 1.0])
    e /= np.linalg.norm(e)
    on = Marker("lower_a", (0, 0, 0), e), Marker("lower_a", (0, 0, 0), np.cross(u, e))
    if named:
        upper = m.body("upper_a")
        own = RigidBody(
            "upper_a",
            {"PU": PLACES["PA"], "TA": PLACES["TA"]},
            {"au": direction("a2"), "a3": direction("a3")},
            upper.mass,
            upper.centre,
            upper.inertia,
        )
        m = replace(
            m,
            points=(*m.points, Point("PU", PLACES["PA"])),
            vectors=(*m.vectors, UnitVector("au", u)),
            bodies=tuple(own if b.name == "upper_a" else b for b in m.bodies),
            joints=(
                MechanismJoint("elbow_joint", "turning", *(Marker(b, PLACES["PA"], u) for b in ("lower_a", "upper_a"))),
            ),
        )
    of = "PU" if named else "PA"
    return replace(m, added=(Angle("elbow", (of, "TA"), *on),), loads=(Drive("motor", "elbow", 7.0),))


def test_a_joint_by_its_equations_and_one_by_what_is_shared() -> None:
    """Two descriptions of one machine: the elbow's reaction from multipliers, and from equilibrium."""
    one, other, rng = system_of(motored()), system_of(motored(named=True)), np.random.default_rng(3)
    q, qd, *rest = moving(one, rng)

    def carried(x: np.ndarray) -> np.ndarray:
        twin = {"PU": "PA", "au": "a2"}
        names = [".".join([twin.get(e, e), *axis]) for e, *axis in (c.split(".") for c in other.coordinates)]
        return x[one.select(names)]

    there = carried(q), carried(qd)
    state = (*there, *solve_accelerations(other, *there))
    shared = value(one, ("upper_a", "PA"), (q, qd, *rest))
    assert value(other, "elbow_joint", state) == pytest.approx(shared, abs=1e-8)
    turned = replace(other.mechanism, joints=tuple(replace(j, a=j.b, b=j.a) for j in other.mechanism.joints))
    back = system_of(turned)
    state = (*there, *solve_accelerations(back, *there))
    assert value(back, "elbow_joint", state) == pytest.approx(-shared, abs=1e-8)


def test_a_motor_turns_its_body_and_is_no_part_of_the_reaction() -> None:
    """Pinocchio's wrench in a joint holds the torque about its axis; the reaction of the bearing is the rest."""
    stranger, rng = Joints(), np.random.default_rng(5)
    q, v = stranger.closed(rng, 1.0)
    machine, u = motored(), direction("a2")
    tau = np.zeros(stranger.model.nv)
    tau[stranger.model.joints[stranger.joint["upper_a"]].idx_v] = 7.0
    a, told = stranger.wrenches(q, v, tau)
    x, xd, _ = stranger.natural_state(q, v, a)
    system = system_of(machine)
    d, along, beside = (A @ np.array([*x, 0.0, 1.0]) for A in system.geometry.angle(machine.added[0]))
    x, names = np.append(x, np.arctan2(d @ beside, d @ along)), independent(system_of(natural()), x)
    xd = r_matrix(system, x, names) @ np.array([xd[system.mechanism.index(n)] for n in names])
    state = (x, xd, *solve_accelerations(system, x, xd))
    axis = stranger.data.oMi[stranger.joint["lower_a"]].rotation @ u
    found = value(system, ("upper_a", "PA"), state)
    assert found == pytest.approx(told["upper_a"] - np.concatenate([np.zeros(3), 7.0 * axis]), abs=1e-7)
    assert value(system, ("lower_a", "OA"), state) == pytest.approx(told["lower_a"], abs=1e-7)


def acted(rng: np.random.Generator, dim: int) -> Mechanism:
    """A random chain with what can be written out by hand: forces, torques, springs and dampers between places."""
    m = random_mechanism(rng, dim).mechanism
    return replace(
        m,
        springs=tuple(s for s in m.springs if not isinstance(s.on, str)),
        dampers=tuple(d for d in m.dampers if not isinstance(d.on, str)),
        loads=tuple(f for f in m.loads if isinstance(f, (Force, Torque))),
    )


def needed(system: NaturalSystem, body: RigidBody, about: np.ndarray, state) -> tuple[np.ndarray, np.ndarray]:
    """Newton and Euler: the force, and the moment about a place, that a body needs besides what acts on it from outside its joints."""
    q, qd, qdd, _ = state
    g, m, y = system.geometry, system.mechanism, np.append(q, 1.0)
    dim = m.dimension
    C = g.on_body(body.name, body.centre)
    c, acceleration = C @ y, C[:, :-1] @ qdd
    F = body.mass * (acceleration - np.array(m.gravity))
    # α = ½ Σ dⁱ × d̈ᵢ: the form of ω, because Σ ḋⁱ × ḋᵢ vanishes by symmetry
    w, alpha = g.angular_velocity(body.name, q, qd), g.angular_velocity(body.name, q, qdd)
    if dim == 2:
        M = np.atleast_1d(float(np.asarray(body.inertia)) * alpha)
    else:
        R, inertia = g.rotation(body.name, q), np.asarray(body.inertia)
        J = R @ (np.array(inertia_matrix(inertia)) if inertia.shape == (6,) else inertia) @ R.T
        M = J @ alpha + np.cross(w, J @ w)
    M = M + _turn(c - about, F)
    for place, force in _pushes(system, body.name, q, qd):
        F, M = F - force, M - _turn(place - about, force)
    for load in m.loads:
        if isinstance(load, Torque):
            M = M - np.array(load.value) * ((load.body == body.name) - float(load.against == body.name))
    return F, M


def _turn(arm: np.ndarray, force: np.ndarray) -> np.ndarray:
    return np.atleast_1d(arm[0] * force[1] - arm[1] * force[0]) if len(arm) == 2 else np.cross(arm, force)


def _pushes(system: NaturalSystem, body: str, q: np.ndarray, qd: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    m, g, y = system.mechanism, system.geometry, np.append(q, 1.0)
    out = [
        (g.point(f.at) @ y, np.array(f.value))
        for f in m.loads
        if isinstance(f, Force) and isinstance(f.at, Marker) and f.at.body == body
    ]
    for s in (*m.springs, *m.dampers):
        assert isinstance(s.on, tuple)
        ends = [g.point(e) for e in s.on]
        r, v = (ends[1] - ends[0]) @ y, (ends[1] - ends[0])[:, :-1] @ qd
        u = r / np.linalg.norm(r)
        pull = s.stiffness * (np.linalg.norm(r) - s.rest) if isinstance(s, Spring) else s.coefficient * (u @ v)
        for e, A, sign in zip(s.on, ends, (1.0, -1.0)):
            if isinstance(e, Marker) and e.body == body:
                out.append((A @ y, sign * pull * u))
    return out


@pytest.mark.parametrize("seed", range(16))
def test_every_kind_of_joint_obeys_newton_and_euler(seed: int) -> None:
    """In a chain, what a joint does to its far side is what the bodies beyond it need."""
    rng = np.random.default_rng(seed)
    system = system_of(acted(rng, 2 + seed % 2))
    state = moving(system, rng)
    y, dim = np.append(state[0], 1.0), system.mechanism.dimension
    for k, j in enumerate(system.mechanism.joints):
        about = system.geometry.point(j.b) @ y
        parts = [needed(system, b, about, state) for b in system.mechanism.bodies[k:]]
        F, M = sum(p[0] for p in parts), sum(p[1] for p in parts)
        found, size = value(system, j.name, state), 1.0 + np.abs(F).max() + np.abs(M).max()
        if j.kind == "distance":
            way = about - system.geometry.point(j.a) @ y
            assert found == pytest.approx([-(F @ way) / np.linalg.norm(way)], abs=1e-8 * size)
            continue
        assert found[:dim] == pytest.approx(F, abs=1e-8 * size), j.kind
        rest = found[dim:] if len(found) > dim else np.zeros(len(M))
        assert rest == pytest.approx(M, abs=1e-8 * size), j.kind
        names = reaction_of(system, j.name)
        assert len(names.components) == len(names.units) == len(found)
        turned = replace(j, a=j.b, b=j.a)  # seen from the other end: the opposite, about the other place
        if j.kind not in ("sliding", "cylindrical"):
            other = replace(system.mechanism, joints=tuple(turned if x is j else x for x in system.mechanism.joints))
            back = system_of(other)
            assert value(back, j.name, (*state[:2], *solve_accelerations(back, *state[:2]))) == pytest.approx(
                -found, abs=1e-8 * size
            )


def test_the_kinds_that_were_met() -> None:
    """The sixteen chains above hold every kind, in the plane and in space."""
    kinds = {
        (j.kind, 2 + seed % 2) for seed in range(16) for j in acted(np.random.default_rng(seed), 2 + seed % 2).joints
    }
    assert {k for k, dim in kinds if dim == 3} == {
        "spherical", "turning", "sliding", "cylindrical", "universal", "distance",
    }  # fmt: skip
    assert {k for k, dim in kinds if dim == 2} == {"spherical", "turning", "sliding", "cylindrical", "distance"}


def test_the_four_bar_written_out_by_hand() -> None:
    """Three bodies, nine equations of Newton and Euler for eight forces and one acceleration, from closed-form kinematics."""
    system = system_of(fourbar())
    q, qd = start_of(system, {"phi": 0.8}, {"phi": 2.0})
    qdd, lam = solve_accelerations(system, q, qd)
    A, B, phi, w1, g = np.zeros(2), np.array([10.0, 0.0]), 0.8, 2.0, np.array([0.0, -9.806])
    side = np.array([[0.0, -1.0], [1.0, 0.0]])
    e1 = np.array([np.cos(phi), np.sin(phi)])
    p1 = 2.0 * e1
    d = B - p1
    L = np.linalg.norm(d)
    x = (64.0 - 25.0 + L**2) / (2.0 * L)
    p2 = p1 + (x * d + np.sqrt(64.0 - x**2) * side @ d) / L
    r1, r2, r3 = p1 - A, p2 - p1, p2 - B
    # p1' + ω2 × r2 = ω3 × r3, and its derivative, affine in φ''
    S = np.column_stack([side @ r2, -side @ r3])
    w2, w3 = np.linalg.solve(S, -w1 * side @ r1)
    known = w1**2 * r1 + w2**2 * r2 - w3**2 * r3
    free = np.linalg.solve(S, known)
    per = np.linalg.solve(S, -side @ r1)

    def centres(a1: float) -> tuple[np.ndarray, np.ndarray]:
        a2, a3 = free + per * a1
        at_1 = a1 * side @ r1 - w1**2 * r1
        return np.array(
            [0.5 * at_1, at_1 + 0.5 * (a2 * side @ r2 - w2**2 * r2), 0.5 * (a3 * side @ r3 - w3**2 * r3)]
        ), (np.array([a1, a2, a3]))

    masses, J = (2.0, 8.0, 5.0), (2.0 * 4.0 / 12.0, 8.0 * 64.0 / 12.0, 5.0 * 25.0 / 12.0)
    arms = [(A - 0.5 * (A + p1), p1 - 0.5 * (A + p1)), (p1 - 0.5 * (p1 + p2), p2 - 0.5 * (p1 + p2)),
            (p2 - 0.5 * (p2 + B), B - 0.5 * (p2 + B))]  # fmt: skip
    # unknowns: force on crank at A, on rod at 1, on rocker at 2, on rocker at B, φ''
    where = [((0, 1.0), (1, -1.0)), ((1, 1.0), (2, -1.0)), ((2, 1.0), (3, 1.0))]
    K, right = np.zeros((9, 9)), np.zeros(9)
    (c0, w0), (c1, w1_) = centres(0.0), centres(1.0)
    for k in range(3):
        for (pin_, sign), arm in zip(where[k], arms[k]):
            K[3 * k : 3 * k + 2, 2 * pin_ : 2 * pin_ + 2] += sign * np.eye(2)
            K[3 * k + 2, 2 * pin_ : 2 * pin_ + 2] += sign * np.array([-arm[1], arm[0]])
        K[3 * k : 3 * k + 2, 8] = -masses[k] * (c1 - c0)[k]
        K[3 * k + 2, 8] = -J[k] * (w1_ - w0)[k]
        right[3 * k : 3 * k + 2] = masses[k] * (c0[k] - g)
        right[3 * k + 2] = J[k] * w0[k] - (-10.0 if k == 0 else 0.0)
    told = np.linalg.solve(K, right)
    state = (q, qd, qdd, lam)
    assert qdd[system.mechanism.index("phi")] == pytest.approx(told[8], abs=1e-9)
    for on, at in ((("crank", "A"), 0), (("rod", "1"), 2), (("rocker", "2"), 4), (("rocker", "B"), 6)):
        assert value(system, on, state) == pytest.approx(told[at : at + 2], abs=1e-8), on
    assert value(system, ("crank", "1"), state) == pytest.approx(-told[2:4], abs=1e-8)


@pytest.mark.parametrize("dim", [2, 3])
def test_bodies_that_share_two_points(dim: int) -> None:
    """A weld in the plane, a hinge in space: how the points share the load is open, what they carry together is not."""
    rng = np.random.default_rng(dim)
    zero, rest = (0.0,) * dim, (0.0,) * (dim - 2)
    places = {"P": (0.6, 0.3, *rest), "Q": (1.0, -0.2, *rest), "R": (0.3, 0.9, 0.5)[:dim], "S": (1.4, 0.4, -0.6)[:dim]}
    inertia = 0.2 if dim == 2 else np.diag([0.2, 0.25, 0.3])
    first = RigidBody("first", {"O": zero, **{k: places[k] for k in "PQR"}}, {}, 2.0, (0.5, 0.1, 0.2)[:dim], inertia)
    more = ("P", "Q", "S") if dim == 2 else ("P", "Q", "S", "T")
    places["T"] = (0.9, 0.2, 0.7)[:dim]
    second = RigidBody("second", {k: places[k] for k in more}, {}, 1.5, (1.1, 0.3, -0.2)[:dim], inertia)
    m = Mechanism.build(
        [Point("O", zero, True), *(Point(k, places[k]) for k in ("P", "Q", "R", *more[2:]))],
        [first, second],
        gravity=rng.normal(size=dim),
    )
    system = system_of(m)
    state = moving(system, rng)
    about = system.geometry.elements["P"] @ np.append(state[0], 1.0)
    F, M = needed(system, second, about, state)
    found = value(system, ("second", "P"), state)
    assert found == pytest.approx([*F, *M], abs=1e-9)
    assert value(system, ("first", "P"), state) == pytest.approx(-found, abs=1e-9)
    whole = [needed(system, b, np.zeros(dim), state)[0] for b in (first, second)]
    assert value(system, ("first", "O"), state) == pytest.approx(sum(whole), abs=1e-9)


def test_a_rack_carries_what_the_slide_needs() -> None:
    system = system_of(rack_and_pinion())
    q, qd = start_of(system, {"theta": 0.4}, {"theta": 1.5})
    qdd, lam = solve_accelerations(system, q, qd)
    x = system.mechanism.index("x")
    force = 2.0 * qdd[x] + 50.0 * (q[x] - 0.1)
    assert value(system, "rack", (q, qd, qdd, lam)) == pytest.approx([force], abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_by_finite_differences(seed: int) -> None:
    """Each of q, q̇, q̈, λ and u on its own, as if they were independent; joints and shared points."""
    rng = np.random.default_rng(100 + seed)
    if seed < 4:
        m = random_mechanism(rng, 2 + seed % 2).mechanism
        unknown = ("motor",)
        asked: list = [j.name for j in m.joints]
    elif seed > 5:
        m, unknown = motored(named=seed == 7), ("motor",)
        asked = ["elbow_joint"] if seed == 7 else [("upper_a", "PA"), ("lower_a", "PA"), ("lower_a", "OA")]
    else:
        m = natural() if seed == 4 else fourbar()
        unknown = ("TA.x", "TB.z") if seed == 4 else ("phi",)
        asked = [("rod", "TB"), ("upper_a", "PA"), ("lower_b", "OB")] if seed == 4 else [("rod", "1"), ("crank", "A")]
    system = system_of(m)
    state = [*moving(system, rng), rng.normal(size=len(unknown))]
    values = system.forces.load_values()
    for on in asked:
        made = reaction_of(system, on, unknown)
        assert isinstance(made, (Along, Wrench))

        def at(parts, made=made):
            return made.at(*parts[:4], values, parts[4])

        s = at(state)
        for k, slope in enumerate((s.by_q, s.by_qd, s.by_qdd, s.by_lam, s.by_u)):
            off = rng.normal(size=len(state[k]))
            h = 1e-6
            ends = [at([x + sign * h * off if i == k else x for i, x in enumerate(state)]).y for sign in (1.0, -1.0)]
            size = 1.0 + np.abs(slope).max(initial=0.0) * np.abs(off).max()
            assert slope @ off == pytest.approx((ends[0] - ends[1]) / (2.0 * h), abs=2e-6 * size), (on, k)


def test_unknown_forces_on_a_shared_point_belong_to_its_first_body() -> None:
    """So that what two bodies do to each other stays opposite."""
    system, rng = system_of(natural()), np.random.default_rng(1)
    q, qd, *_ = moving(system, rng)
    push = np.zeros(system.n)
    push[[system.mechanism.index("TA.x"), system.mechanism.index("TB.z")]] = 30.0, -20.0
    M, J = system.mass, system.constraints.jacobian(q)
    right = np.concatenate(
        [system.forces.forces(q, qd, system.forces.load_values()) + push, -system.constraints.jacobian_rate(q, qd) @ qd]
    )
    found = np.linalg.lstsq(np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]]), right, rcond=None)[0]
    args = (q, qd, found[: system.n], found[system.n :], system.forces.load_values(), np.array([30.0, -20.0]))
    for one, other, place in (("upper_a", "rod", "TA"), ("rod", "upper_b", "TB")):
        here = reaction_of(system, (one, place), ("TA.x", "TB.z")).at(*args).y
        there = reaction_of(system, (other, place), ("TA.x", "TB.z")).at(*args).y
        assert here == pytest.approx(-there, abs=1e-8)


def test_what_is_refused() -> None:
    system = system_of(fourbar())
    with pytest.raises(DataError, match=r"(?s)there is no joint 'hinge'.*\[body, point\]"):
        reaction_of(system, "hinge")
    with pytest.raises(
        DataError, match=r"(?s)'B' is no point of it, so nothing is joined there.*one that it shares: 1, 2"
    ):
        reaction_of(system, ("rod", "B"))
    lone = Mechanism.build(
        [Point("O", (0, 0), True), Point("P", (1, 0))],
        [RigidBody("bob", {"P": (0, 0)}, mass=1.0)],
        joints=[MechanismJoint("rope", "distance", "O", "P", 1.0)],
    )
    with pytest.raises(DataError, match="no other body has its point 'P'"):
        reaction_of(system_of(lone), ("bob", "P"))
