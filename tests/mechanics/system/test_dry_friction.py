"""Dry friction that holds: closed forms of a block, SciPy with events, and complementarity of several joints."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import lsq_linear

from veridyn.errors import SimulationError
from veridyn.mechanics.system.dry_friction import HoldingSteps, dry_friction, solve_bounded
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, coulomb, coulomb_along, damper, stribeck
from veridyn.model.graph import Body
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
M, F, FV = 2.0, 3.0, 0.4  # kg, N, N*s/m


def block(*elements: Element) -> Tree:
    inertia = {"1": from_centre(M, np.zeros(3), np.eye(3))}
    return Tree.build([Body("1", joint="sliding")], inertia=inertia, gravity=(0.0, 0.0, 0.0), elements=list(elements))


def test_a_block_stops_where_its_energy_ends_and_does_not_creep() -> None:
    """x = v₀² m/(2 (F + P)) with a push P against the motion; then nothing moves as long as |P| is below F."""
    push, v0 = -0.9 * F, 1.5
    t = np.linspace(0.0, 2.0, 41)
    found = integrate(block(coulomb("q1", F)), t, [0.0], [v0], lambda t, q, qd: [push], method=Method("RK4", 1e-3))
    q, qd, qdd = found.motion.q[:, 0], found.motion.qd[:, 0], found.motion.qdd[:, 0]
    stop = v0 * M / (F - push)
    held = t > stop + 1e-3
    assert q[held][0] == pytest.approx(v0**2 * M / (2.0 * (F - push)), abs=1e-8)
    assert np.ptp(q[held]) < 1e-15 and np.abs(qd[held]).max() < 1e-18
    assert np.abs(qdd[held]).max() < 1e-12
    assert qdd[~held] == pytest.approx((push - F) / M, rel=1e-12)


def test_it_holds_until_the_break_away_and_then_slides() -> None:
    """A push that grows as r t starts the block at t = F/r, and x = r (t − F/r)³/(6 m) afterwards."""
    r, t = 2.0, np.linspace(0.0, 3.0, 301)
    found = integrate(block(coulomb("q1", F)), t, [0.2], [0.0], lambda t, q, qd: [r * t], method=Method("RK4", 1e-3))
    free = np.maximum(t - F / r, 0.0)
    assert found.motion.q[:, 0] == pytest.approx(0.2 + r * free**3 / (6.0 * M), abs=3e-6)
    assert found.motion.qd[:, 0] == pytest.approx(r * free**2 / (2.0 * M), abs=2e-5)


def by_events(push, t: Array, fs: float, speed: float) -> Array:
    """Positions of the block by SciPy: each stretch of sliding ends by an event, each rest by a search for the break-away."""
    limit = F + fs

    def friction(v: float, s: float) -> float:
        return s * (F + fs / (1.0 + (v / speed) ** 2)) + FV * v

    now, x, out = 0.0, 0.0, np.full(len(t), np.nan)
    fine = np.linspace(0.0, t[-1], 400_001)
    while now < t[-1]:
        held = fine[(fine > now) & (np.abs(push(fine)) > limit)]
        start = held[0] if len(held) else t[-1]
        out[(t >= now) & (t <= start)] = x
        if start >= t[-1]:
            break
        s = float(np.sign(push(start)))

        def moving(time: float, y: Array, s: float = s) -> list[float]:
            return [y[1], (push(time) - friction(y[1], s)) / M]

        def stops(time: float, y: Array, start: float = start, s: float = s) -> float:
            return y[1] if time > start + 1e-3 else s

        stops.terminal = True  # type: ignore[attr-defined]
        run = solve_ivp(
            moving, (start, t[-1]), [x, 0.0], "DOP853", events=stops, rtol=1e-11, atol=1e-13, dense_output=True
        )
        inside = (t > start) & (t <= run.t[-1])
        out[inside] = run.sol(t[inside])[0]
        now, x = float(run.t[-1]), float(run.y[0, -1])
        if abs(push(now)) > limit:
            break
    return out


@pytest.mark.parametrize("fs", [0.0, 1.5])
def test_stick_and_slip_as_by_events(fs: float) -> None:
    """A swinging push that moves and rests the block in turns, with and without Stribeck's fall; half the step, at most half the error."""
    elements = [coulomb("q1", F), damper("q1", FV), *([stribeck("q1", 0.1, fs)] if fs else [])]

    def push(time):
        return 5.0 * np.sin(2.0 * time) + 1.2 * np.sin(5.0 * time)

    t = np.linspace(0.0, 10.0, 201)
    expected = by_events(push, t, fs, 0.1)
    assert np.isfinite(expected).all()
    off = []
    for step in (8e-3, 4e-3):
        found = integrate(block(*elements), t, [0.0], [0.0], lambda t, q, qd: [push(t)], method=Method("RK4", step))
        off.append(np.abs(found.motion.q[:, 0] - expected).max())
    print(
        f"fs {fs}: largest error {off[0]:.1e} m with steps of 8 ms, {off[1]:.1e} m with 4 ms, of {np.ptp(expected):.2f} m"
    )
    assert off[1] < off[0] / 3.0 and off[1] < 1e-4


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
@pytest.mark.parametrize("power", [1, 2, 3, 4])
def test_friction_along_the_way_stops_a_block_where_its_work_ends(power: int, engine: Engine) -> None:
    """½ m v₀² = ∫ (F + a u^p − P) dx with u = (x − c)/l and a push P against the motion, which then stays below what holds it there."""
    a, c, l, push, v0 = 1.2, 0.3, 0.8, -1.0, 1.5
    u = Polynomial([-c / l, 1.0 / l])
    work = (F + a * u**power - push).integ(lbnd=0.0) - 0.5 * M * v0**2
    stop = min(x.real for x in work.roots() if abs(x.imag) < 1e-9 and x.real > 0.0)
    tree, t = block(coulomb("q1", F), coulomb_along("q1", c, l, a, power=power)), np.linspace(0.0, 2.0, 41)
    given = Inputs(lambda t, q, qd: [push])
    motion = integrate(tree, t, [0.0], [v0], given, method=Method("RK4", 1e-3), engine=engine).motion
    moving = motion.qd[:, 0] > 1e-9
    x = motion.q[moving, 0]
    assert moving.any() and not moving[-1] and abs(push) < F + a * u(stop) ** power
    assert motion.qd[moving, 0] == pytest.approx(np.sqrt(-2.0 / M * work(x)), abs=1e-9)
    assert motion.q[~moving, 0] == pytest.approx(stop, abs=1e-9)
    assert np.ptp(motion.q[~moving, 0]) < 1e-14 and np.abs(motion.qdd[~moving]).max() < 1e-11


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_friction_of_one_direction_lets_a_block_go_the_other_way(way: float, engine: Engine) -> None:
    """A push P from rest: x = P t²/(2 m) against the direction, none along it below F, and (P − F) t²/(2 m) above."""
    kind = "coulomb_forward" if way > 0.0 else "coulomb_backward"
    tree, t = block(Element(kind=kind, on={"q1": 1.0}, value=F, name="ratchet")), np.linspace(0.0, 1.0, 5)
    for push, left in ((-0.5, -0.5), (-2.0 * F, -2.0 * F), (0.5 * F, 0.0), (2.0 * F, F)):
        given = Inputs(lambda t, q, qd, push=push: [way * push])
        found = integrate(tree, t, [0.0], [0.0], given, method=Method("RK4", 1e-2), engine=engine)
        assert found.motion.q[:, 0] == pytest.approx(way * left * t**2 / (2.0 * M), rel=1e-12, abs=1e-15)
        assert found.motion.qdd[:, 0] == pytest.approx(way * left / M, abs=1e-12)


def arm() -> Tree:
    """Two hanging links with friction on the first joint and along its way, on both (a belt), and one direction of the second."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    link = from_centre(0.6, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    elements = [
        coulomb("q1", 0.9),
        Element(kind="coulomb", on={"q1": 1.0, "q2": 1.0}, value=0.3, name="belt"),
        Element(kind="coulomb_forward", on={"q2": 1.0}, value=0.25, name="ahead"),
        Element(kind="coulomb_backward", on={"q2": 1.0}, value=0.1, name="back"),
        Element(kind="coulomb_along", on={"q1": 1.0}, value=0.5, name="along", constants={"middle": 0.2, "half": 1.5}),
        Element(kind="coulomb_along3", on={"q1": 1.0}, value=-0.3, name="cubed", constants={"half": 1.5}),
        damper("q1", 0.02),
        damper("q2", 0.02),
    ]
    return Tree.build(bodies, inertia={"1": link, "2": link}, elements=elements)


def test_friction_of_several_joints_lies_within_its_limits() -> None:
    """At every sample what inverse dynamics without friction is short of is Cᵀf, f at its limit where it slides and within it at rest."""
    tree = arm()
    t = np.linspace(0.0, 4.0, 801)
    path = integrate(tree, t, [0.3, -0.9], [0.0, 3.0], method=Method("RK4", 2.5e-3)).motion
    dry = dry_friction(tree, tree.parameters.values)
    assert dry is not None and len(dry.C) == 3
    missing = -inverse_dynamics(tree, path, parameters=dry.smooth_values)  # no motor acts
    rates = path.qd @ dry.C.T
    moving = np.abs(rates) > 1e-9
    ahead, back = dry.limits(path.q, path.qd)
    slide = np.where(moving, np.where(rates > 0, ahead, -back), 0.0)
    rest = missing - slide @ dry.C  # what the friction that holds does
    assert (~moving).all(axis=1)[-1] and moving.all(axis=1).any()
    for k in range(len(t)):
        held = np.flatnonzero(~moving[k])
        f = np.linalg.lstsq(dry.C[held].T, rest[k], rcond=None)[0] if len(held) else np.zeros(0)
        assert rest[k] == pytest.approx(f @ dry.C[held], abs=2e-8)
        if len(held) < 3:
            assert (f <= ahead[k, held] + 1e-8).all() and (f >= -back[k, held] - 1e-8).all()


def test_the_limit_of_rounding_off() -> None:
    """Rounded off below ever lower speeds, the motion nears the one that holds; the rest is what creeps."""
    tree, t = arm(), np.linspace(0.0, 1.5, 151)
    holds = integrate(tree, t, [0.3, -0.9], [0.0, 3.0], method=Method("RK4", 5e-4)).motion.q
    off = []
    for speed in (1e-2, 1e-3):
        how = Method("LSODA", rtol=1e-8, atol=1e-10, friction_speed=speed)
        off.append(np.abs(integrate(tree, t, [0.3, -0.9], [0.0, 3.0], method=how).motion.q - holds).max())
    print(f"rounded off below 10 and 1 mrad/s: {off[0]:.1e}, {off[1]:.1e} rad")
    assert off[1] < 0.3 * off[0] and off[1] < 3e-3


def test_a_step_that_finds_no_forces_says_so() -> None:
    """A rule that ends with speeds of changing sign whatever acts: no share agrees with the end of the step."""
    tree = block(coulomb("q1", F))
    dry = dry_friction(tree, tree.parameters.values)
    assert dry is not None
    ends = cycle([np.array([[0.0, 1.0]]), np.array([[0.0, -1.0]])])
    steps = HoldingSteps(
        dry,
        lambda t, y, f: np.hstack([y[:, 1:], f]),
        slice(0, 1),
        slice(1, 2),
        1,
        "block",
        lambda rate, t, y, h: next(ends).copy(),
    )
    with pytest.raises(SimulationError, match="no friction forces agree"):
        steps.step(0.0, np.zeros((1, 2)), 1e-3)


@pytest.mark.parametrize("m", [1, 2, 5, 12])
def test_the_same_as_bounded_least_squares(m: int) -> None:
    """½ fᵀH f − bᵀf with H = AᵀA and b = Aᵀd is ½‖A f − d‖² less a constant."""
    rng = np.random.default_rng(m)
    for _ in range(20):
        A, d = rng.normal(size=(m + 2, m)), 3.0 * rng.normal(size=m + 2)
        low, high = -rng.uniform(0.1, 1.0, m), rng.uniform(0.1, 1.0, m)
        expected = lsq_linear(A, d, (low, high), method="bvls", tol=1e-14).x
        assert solve_bounded(A.T @ A, A.T @ d, low, high) == pytest.approx(expected, abs=1e-9)


def test_dependent_directions_share_a_force() -> None:
    """Two frictions on the same coordinate: their forces are not unique, what they do together is."""
    H = np.ones((2, 2))
    f = solve_bounded(H, np.array([0.5, 0.5]), -np.ones(2), np.ones(2))
    assert f.sum() == pytest.approx(0.5, abs=1e-9)
    f = solve_bounded(H, np.array([3.0, 3.0]), -np.ones(2), np.ones(2))
    assert f == pytest.approx([1.0, 1.0])
