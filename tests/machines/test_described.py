"""Files that come with veridyn are read once, and give what reading them gives.

The machines with loops as files: what they are, and what they do at home. The spatial mechanism against Pinocchio's constrained
dynamics, the crane against a closed form, and filters that know their errors.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from strangers.walks import CRANE, SPATIAL, walked
from veridyn.errors import DataError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.write import model_text
from veridyn.identify.base import base_parameters
from veridyn.machines import crane, delta, described, linkage, palletizer, spatial
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.dynamics import initial_state
from veridyn.mechanics.natural.equations.freedoms import mobility
from veridyn.mechanics.natural.equations.position import position, start_of
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, integrate_natural
from veridyn.mechanics.natural.steps.minimal import minimal
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.observe.consistency.nis import pooled
from veridyn.observe.filters.methods import FILTERS
from veridyn.observe.measurements import measurements_of
from veridyn.observe.noise_choice import tuned
from veridyn.observe.pipeline import observe_with

MACHINES = {"linkage": linkage, "delta": delta, "palletizer": palletizer}
JOINTS = {  # body: parent, a place on its axis and the axis, in the reference pose; the wrist is two of them
    "lower_a": ("universe", "OA", (0.0, 0.0, 1.0)),
    "upper_a": ("lower_a", "PA", (0.8, 0.6, 0.0)),
    "cross": ("upper_a", "TA", (0.0, 0.6, 0.8)),
    "rod": ("cross", "TA", (1.0, 0.0, 0.0)),
    "lower_b": ("universe", "OB", (0.6, 0.0, 0.8)),
    "upper_b": ("lower_b", "PB", (1.0, 0.0, 0.0)),
}
MEASURED = {"shoulder": "lower_a", "elbow": "upper_a", "base_b": "lower_b"}


@pytest.mark.parametrize("file", ["linkage.yaml", "crane.yaml"])
def test_the_machine_is_that_of_the_file_and_made_once(file: str) -> None:
    assert described(file) is described(file)
    assert model_text(described(file)) == model_text(load_model(f"veridyn:{file}"))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(DataError, match="veridyn brings no file"):
        described("no_machine.yaml")


@pytest.mark.parametrize("name", MACHINES)
def test_statics_is_the_slope_of_potential_energy(name: str) -> None:
    """At rest the drives hold the weight: Γ = ∂V/∂q_a, by differences along closed positions."""
    from veridyn.mechanics.tree.loops.closure import close
    from veridyn.mechanics.tree.recursion.kinematics import energy

    machine: Machine = MACHINES[name]()
    own = list(machine.independent)
    home = closed_home(machine)

    def at(q: np.ndarray) -> Motion:
        return Motion(np.arange(float(len(q))), q, 0.0 * q, 0.0 * q)

    held = inverse_dynamics(machine, at(home[None]))[0]
    for k, c in enumerate(own):
        h = 1e-5
        given = np.tile(home[own], (2, 1))
        given[:, k] += [h, -h]
        V = energy(machine, at(close(machine, given, path=False).q)).gravity
        assert held[k] == pytest.approx((V[0] - V[1]) / (2 * h), abs=1e-5 * max(1.0, np.abs(held).max())), c


@pytest.mark.parametrize(("name", "count"), [("linkage", 12), ("delta", 40), ("palletizer", 25)])
def test_base_parameters_with_friction(name: str, count: int) -> None:
    base = base_parameters(MACHINES[name]())
    assert base.count == count and base.gap > 1e6


def test_delta_is_symmetrical_at_home() -> None:
    machine = delta()
    home = closed_home(machine)
    angles = [home[machine.coordinates.index(f"q{k}")] for k in (1, 2, 3)]
    assert np.ptp(angles) < 1e-9
    assert body_pose(machine, home[None], "platform")[1][0] == pytest.approx([0, 0, -0.55])


class Stranger:
    """The same machine as a tree of turning joints in Pinocchio, closed at TB by multipliers."""

    def __init__(self) -> None:
        m = mechanism_of(spatial())
        self.places = {p.name: np.array(p.at) for p in m.points}
        bodies = {b.name: b for b in m.bodies}
        self.model, self.joint, origin = pin.Model(), {"universe": 0}, {"universe": np.zeros(3)}
        self.model.gravity.linear = np.array(m.gravity)
        for name, (parent, at, axis) in JOINTS.items():
            place = self.places[at]
            self.joint[name] = self.model.addJoint(
                self.joint[parent],
                pin.JointModelRevoluteUnaligned(*axis),
                pin.SE3(np.eye(3), place - origin[parent]),
                name,
            )
            origin[name] = place
            if name in bodies:
                b = bodies[name]
                xx, xy, xz, yy, yz, zz = np.asarray(b.inertia)
                about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
                inertia = pin.Inertia(b.mass, np.array(b.centre) - place, about)
                self.model.appendBodyToJoint(self.joint[name], inertia, pin.SE3.Identity())
        self.origin, self.data = origin, self.model.createData()
        self.springs = {s.on: (s.stiffness, s.rest) for s in m.springs}
        self.dampers = {d.on: d.coefficient for d in m.dampers}
        system = natural_system(spatial())
        self.reference = {name: system.guess[m.index(name)] for name in MEASURED}

    def acceleration(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = np.zeros(self.model.nv)
        for angle, body in MEASURED.items():
            k = self.model.joints[self.joint[body]].idx_v
            stiffness, rest = self.springs[angle]
            tau[k] = -stiffness * (q[k] + self.reference[angle] - rest) - self.dampers[angle] * v[k]
        self.rates = v
        pin.forwardKinematics(self.model, self.data, q, v, np.zeros(6))
        (J1, drift1), (J2, drift2) = (self._tip(body, q) for body in ("rod", "upper_b"))
        J, drift = J1 - J2, drift1 - drift2
        M = pin.crba(self.model, self.data, q)
        M = np.triu(M) + np.triu(M, 1).T
        right = np.concatenate([tau - pin.nonLinearEffects(self.model, self.data, q, v), -drift])
        return np.linalg.solve(np.block([[M, J.T], [J, np.zeros((3, 3))]]), right)[:6]

    def _tip(self, body: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Jacobian of TB as this body carries it, and its acceleration without joint accelerations, in the ground's axes."""
        j, p = self.joint[body], self.places["TB"] - self.origin[body]
        R, V, A = self.data.oMi[j].rotation, self.data.v[j], self.data.a[j]
        speed = V.linear + np.cross(V.angular, p)
        drift = R @ (A.linear + np.cross(A.angular, p) + np.cross(V.angular, speed))
        local = pin.computeJointJacobian(self.model, self.data, q, j)
        J = R @ (local[:3] - pin.skew(p) @ local[3:])
        pin.forwardKinematics(self.model, self.data, q, self.rates, np.zeros(6))
        return J, drift

    def index(self, body: str) -> int:
        return self.model.joints[self.joint[body]].idx_v


def _wrist(system, q: np.ndarray) -> tuple[float, float]:
    """The two angles of the wrist from the rotations of rod and upper arm."""
    R = system.geometry.rotation("upper_a", q).T @ system.geometry.rotation("rod", q)
    w, v = np.array(JOINTS["cross"][2]), np.array(JOINTS["rod"][2])
    turned = R @ v
    first = np.arctan2(np.cross(v, turned) @ w, v @ turned - (v @ w) * (turned @ w))
    back = pin.AngleAxis(-first, w).toRotationMatrix() @ R
    side = np.array([0.0, 1.0, 0.0])
    return first, float(np.arctan2(np.cross(side, back @ side) @ v, side @ back @ side))


def test_it_is_the_machine_of_pinocchio() -> None:
    """Accelerations at a moving pose agree to 1e-9; half a second of motion converges to Pinocchio's by Runge–Kutta with order two."""
    stranger, system = Stranger(), natural_system(spatial())
    q0, _ = start_of(system)
    assert mobility(system, q0).degrees_of_freedom == 3
    k = system.select(SPATIAL.independents)
    z, zd = q0[k] + [0.1, -0.1, 0.15], np.array([0.6, -0.5, 0.8])

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(SPATIAL.independents, values.tolist()))

    at = initial_state(system, named(z), named(zd))

    def pose(q: np.ndarray) -> np.ndarray:
        out = np.zeros(6)
        for angle, body in MEASURED.items():
            out[stranger.index(body)] = q[system.mechanism.index(angle)] - stranger.reference[angle]
        out[stranger.index("cross")], out[stranger.index("rod")] = _wrist(system, q)
        R = system.geometry.rotation("lower_b", q).T @ system.geometry.rotation("upper_b", q)
        b2 = np.array(JOINTS["upper_b"][2])
        side = np.array([0.0, 1.0, 0.0])
        out[stranger.index("upper_b")] = np.arctan2(np.cross(side, R @ side) @ b2, side @ R @ side)
        return out

    h = 1e-6
    ahead, behind = (position(system, named(z + s * h * zd), at.q) for s in (1, -1))
    x, v = pose(at.q), (pose(ahead) - pose(behind)) / (2.0 * h)
    a = stranger.acceleration(x, v)
    for angle, body in MEASURED.items():
        assert at.qdd[system.mechanism.index(angle)] == pytest.approx(a[stranger.index(body)], abs=1e-6)

    step, found = 1e-3, []
    for _ in range(500):
        k1v, k1a = v, stranger.acceleration(x, v)
        k2v, k2a = v + step / 2 * k1a, stranger.acceleration(x + step / 2 * k1v, v + step / 2 * k1a)
        k3v, k3a = v + step / 2 * k2a, stranger.acceleration(x + step / 2 * k2v, v + step / 2 * k2a)
        k4v, k4a = v + step * k3a, stranger.acceleration(x + step * k3v, v + step * k3a)
        x, v = x + step / 6 * (k1v + 2 * k2v + 2 * k3v + k4v), v + step / 6 * (k1a + 2 * k2a + 2 * k3a + k4a)
    truth = np.array([x[stranger.index(b)] + stranger.reference[n] for n, b in MEASURED.items()])
    for size in (1e-2, 5e-3):
        motion = integrate_natural(system, [0.0, 0.5], at, method=NaturalMethod(step=size))
        found.append(np.abs(motion.q[-1, k] - truth).max())
    print(f"\nspatial mechanism against Pinocchio after 0.5 s: {found[0]:.2e} rad at 10 ms, {found[1]:.2e} rad at 5 ms")
    assert found[1] < 1e-3
    assert found[0] / found[1] == pytest.approx(4.0, rel=0.2)


def test_the_crane_accelerates_as_its_equations_say() -> None:
    """(M + m_r + m) ẍ + (m + m_r/2) L θ̈ cos θ − … = F at θ = 0 and rest: two masses on one rail, in closed form."""
    system = natural_system(crane())
    q, _ = start_of(system)
    model = minimal(system, q, CRANE.independents)
    at = model.instant(q, q[model.z], np.zeros(2), np.zeros(0), model.loads({"motor": 100.0}))
    M, rope, load, L = 80.0, 3.0, 250.0, 6.0
    mass = np.array([[M + rope + load, (load + rope / 2) * L], [(load + rope / 2) * L, (load + rope / 3) * L**2]])
    assert at.qdd[model.z] == pytest.approx(np.linalg.solve(mass, [100.0, 0.0]), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spatial", "crane"])
def test_filters_know_their_errors_on_twenty_seeds(name: str) -> None:
    """NEES inside its own 95 % band on at least 18 of 20 logs, and over all of them together; every filter, with `pytest -s`.

    Two are not asked: the errorEKF takes forces as known that are not (its white acceleration is the most likely one on another log), and
    the linear filter is for machines that move little, so not for the arms.
    """
    machine, walk = (spatial(), SPATIAL) if name == "spatial" else (crane(), CRANE)
    logs = [walked(machine, walk, np.random.default_rng([11, k])) for k in range(20)]
    not_asked = ("error_ekf", "linear") if name == "spatial" else ("error_ekf",)
    failed = []
    print(f"\n{name:<18} NEES   inside  band of one log   band of all 20   NIS")
    for kind in FILTERS:
        how = walk.setup(kind)
        if kind == "error_ekf":
            other = measurements_of(how.system(machine)[0], walked(machine, walk, np.random.default_rng([7, 0]))[1])
            how = how.replaced(process_noise=tuned(how, machine, [other])[0])
        seen = [observe_with(how, machine, log) for _, log in logs]
        judged = [o.nees(motion.q, motion.qd, 10) for o, (motion, _) in zip(seen, logs)]
        inside, together = np.mean([j.consistent for j in judged]), pooled(judged)
        low, high = np.mean([j.band for j in judged], axis=0)
        print(
            f"{kind:<18}{together.mean:5.3f} {100 * inside:6.0f} %  {low:5.2f} to {high:5.2f}    {together.band[0]:5.3f} to "
            f"{together.band[1]:5.3f}   {np.mean([o.nis(10).mean for o in seen]):5.3f}"
        )
        if kind not in not_asked and not (inside >= 0.9 and together.consistent):
            failed.append(kind)
    assert not failed
