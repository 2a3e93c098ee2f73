"""Experiment design: gradients, limits, criteria and faults, on a small arm and on machines with loops."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from identify.smooth_arm import truth
from veridyn.errors import DataError, IdentificationError, ModelError
from veridyn.identify.excitation.design import design_excitation, problem_of
from veridyn.identify.excitation.interior import Barrier
from veridyn.identify.excitation.limits import Clearance, Limits
from veridyn.identify.excitation.plan import Noise
from veridyn.identify.excitation.problem import drawn
from veridyn.identify.excitation.shape import Fourier, Shape, Spline
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import POSE, hexapod, limits
from veridyn.signals.trajectory import JointLimits

ARM = JointLimits(np.full(4, -2.0), np.full(4, 2.0), np.full(4, 2.0), np.full(4, 8.0))
QUICK = Barrier(iterations=40)
EVERYTHING = Limits(
    ARM,
    force=[90.0, 90.0, 30.0, 10.0],
    workspace={"4": ((-0.7, -0.7, -0.6), (0.7, 0.7, 0.6))},
    clearances=(Clearance("4", "1", 0.1, point=(0.0, 0.05, 0.0)),),
)
POSE_BOX = JointLimits(
    [-0.08, -0.08, -1.03, -0.15, -0.15, -0.15], [0.08, 0.08, -0.87, 0.15, 0.15, 0.15], [np.inf] * 6, [np.inf] * 6
)


@pytest.mark.parametrize("criterion", ["d", "a", "e", "condition"])
@pytest.mark.parametrize("shape", [Fourier(3, (0.05, 0.3)), Spline(8, (0.05, 0.3))], ids=repr)
def test_the_gradient_of_the_goal(criterion: str, shape: Shape) -> None:
    """By central differences along random directions, frequency included: truncation is of order 1e-6 of the slope."""
    rng = np.random.default_rng(0)
    problem, place, _ = problem_of(truth(), ARM, shape, rng=rng, criterion=criterion)
    u = drawn(problem, place, rng)
    value, slope = problem.value(u)
    assert value == pytest.approx(problem.goal_alone(u))
    for _ in range(4):
        e, h = rng.normal(size=len(u)), 1e-5
        found = (problem.goal_alone(u + h * e) - problem.goal_alone(u - h * e)) / (2 * h)
        assert slope @ e == pytest.approx(found, rel=1e-4, abs=1e-6)


def test_the_slopes_of_all_limits() -> None:
    rng = np.random.default_rng(1)
    problem, place, _ = problem_of(truth(), EVERYTHING, Fourier(harmonics=2, frequency=(0.05, 0.3)), rng=rng)
    u = drawn(problem, place, rng)
    J = problem.slopes(u)
    for _ in range(3):
        e, h = rng.normal(size=len(u)), 1e-6
        found = (problem.bounded(u + h * e) - problem.bounded(u - h * e)) / (2 * h)
        assert np.abs(J @ e - found).max() < 1e-5 * np.abs(found).max()


def test_gradients_through_closed_loops() -> None:
    """The hexapod in its pose: goal and limits on the legs, exact through the loops."""
    rng = np.random.default_rng(2)
    both = Limits(limits(), POSE_BOX)
    problem, place, _ = problem_of(hexapod(), both, Fourier(harmonics=2, frequency=(0.2, 0.4)), rng=rng, at=POSE)
    u = drawn(problem, place, rng)
    _, slope = problem.value(u)
    J = problem.slopes(u)
    for _ in range(2):
        e, h = rng.normal(size=len(u)), 1e-6
        found = (problem.goal_alone(u + h * e) - problem.goal_alone(u - h * e)) / (2 * h)
        assert slope @ e == pytest.approx(found, rel=1e-4)
        moved = (problem.bounded(u + h * e) - problem.bounded(u - h * e)) / (2 * h)
        assert np.abs(J @ e - moved).max() < 1e-5 * np.abs(moved).max()


def test_a_plan_keeps_its_limits_between_samples_too() -> None:
    """On a grid of 5000 points, twenty times as fine as the search's; and better than where it started."""
    plan = design_excitation(truth(), ARM, Fourier(harmonics=4), starts=2, barrier=QUICK)
    q, qd, qdd = plan.trajectory.at(np.linspace(0.0, plan.trajectory.period, 5000))
    assert (np.abs(q) < 2.0).all() and (np.abs(qd) < 2.0).all() and (np.abs(qdd) < 8.0).all()
    assert max(plan.used.values()) > 0.97
    _, x, xd, xdd = plan.samples()
    assert not xd[0].any() and not xdd[0].any()
    assert (np.abs(x) < 2.0).all() and (np.abs(xd) < 2.0).all() and (np.abs(xdd) < 8.0).all()
    one = round(plan.rate * plan.trajectory.period)
    assert x[plan.skipped : plan.skipped + one] == pytest.approx(x[plan.skipped + one : plan.skipped + 2 * one])
    assert plan.names == plan.base.names and "sigma" in plan.summary()
    rng = np.random.default_rng(0)
    problem, place, _ = problem_of(truth(), ARM, Fourier(harmonics=4), rng=rng)
    random = [problem.goal_alone(drawn(problem, place, rng)) for _ in range(20)]
    assert plan.value < min(random) - 0.3


def test_limits_on_force_workspace_and_distance() -> None:
    plan = design_excitation(truth(), EVERYTHING, Fourier(harmonics=3), starts=1, barrier=QUICK)
    assert max(plan.used.values()) <= 1.0
    _, x, _, _ = plan.samples(1)
    p = body_pose(truth(), x, "4")[1]
    assert (np.abs(p[:, :2]) < 0.7).all() and (np.abs(p[:, 2]) < 0.6).all()
    named = " ".join(plan.used)
    assert "force of q1" in named and "workspace of 4, z" in named and "distance 4 to 1" in named


def test_each_criterion_is_best_at_its_own() -> None:
    plans = {
        c: design_excitation(truth(), ARM, Fourier(harmonics=3), starts=2, barrier=QUICK, criterion=c)
        for c in ("d", "condition")
    }
    assert plans["condition"].condition < plans["d"].condition
    assert plans["d"].efficiency(plans["condition"]) > 1.0 > plans["condition"].efficiency(plans["d"])


def test_predicted_deviations_are_those_of_the_formula() -> None:
    """Σ across rows and a memory: the predicted variance of a slow motion grows by (1 + ρ)/(1 − ρ), the factor of slow signals."""
    S = np.array([0.6, 0.5, 0.2, 0.05])
    C = (0.5 * np.eye(4) + 0.5) * np.outer(S, S)
    how = {
        "starts": 1,
        "barrier": Barrier(iterations=5),
        "method": Fourier(harmonics=3, frequency=0.02),
        "rate": 200.0,
        "periods": 4,
    }
    white = design_excitation(truth(), ARM, noise=Noise(C), **how)
    coloured = design_excitation(truth(), ARM, noise=Noise(C, 0.5), **how)
    assert coloured.sigma / white.sigma == pytest.approx(np.full(len(white.sigma), np.sqrt(3.0)), rel=0.02)
    again = design_excitation(truth(), ARM, noise=Noise(4.0 * C), **how)
    assert again.sigma == pytest.approx(2.0 * white.sigma)
    assert design_excitation(truth(), ARM, noise=dict(zip(truth().rows, S)), **how).sigma.shape == white.sigma.shape


def test_the_frequency_is_chosen_where_it_is_free() -> None:
    plan = design_excitation(
        truth(), ARM, Fourier(harmonics=3, frequency=(0.05, 0.4)), starts=1, barrier=QUICK, rate=100.0
    )
    assert 0.05 <= plan.frequency <= 0.4
    count = plan.rate / plan.frequency
    assert count == pytest.approx(round(count))


def test_the_same_with_threads_and_the_same_seed() -> None:
    how = {"method": Fourier(harmonics=2), "starts": 2, "barrier": Barrier(iterations=8)}
    alone = design_excitation(truth(), ARM, rng=np.random.default_rng(5), **how)
    with ThreadPoolExecutor(2) as pool:
        pooled = design_excitation(truth(), ARM, rng=np.random.default_rng(5), executor=pool, **how)
    assert pooled.sigma == pytest.approx(alone.sigma)


def test_the_hexapod_stays_within_its_legs() -> None:
    plan = design_excitation(
        hexapod(),
        Limits(limits(), POSE_BOX),
        Fourier(harmonics=2, frequency=0.32),
        at=POSE,
        rate=160.0,
        starts=1,
        barrier=Barrier(iterations=6),
    )
    assert plan.coordinates == POSE and plan.rows == ("l1", "l2", "l3", "l4", "l5", "l6") and len(plan.names) == 24
    assert max(plan.used.values()) <= 1.0


def test_a_start_and_half_a_centre() -> None:
    """The reference begins at the pose that is given, at rest, and keeps every limit on its way; NaN in the centre is a default.

    What no limit speaks of is listed; a force without a limit is one of it.
    """
    machine, start = truth(), np.array([1.5, -1.0, 0.5, 0.0])
    allowed = Limits(ARM, force=[80.0, 80.0, np.inf, np.inf])
    plan = design_excitation(
        machine,
        allowed,
        Fourier(harmonics=1),
        starts=1,
        barrier=Barrier(iterations=10),
        centre=[np.nan, 0.4, np.nan, np.nan],
        start=start,
    )
    t, q, qd, qdd = plan.samples(1)
    assert q[0] == pytest.approx(start) and not qd[0].any() and not qdd[0].any()
    assert (
        (q > ARM.low).all()
        and (q < ARM.high).all()
        and (np.abs(qd) < ARM.speed).all()
        and (np.abs(qdd) < ARM.acceleration).all()
    )
    assert np.abs(inverse_dynamics(machine, Motion(t, q, qd, qdd))[:, :2]).max() < 80.0
    assert np.abs(np.diff(q, axis=0) * plan.rate - qd[1:]).max() < 0.5 * np.abs(qdd).max() / plan.rate * 1.2
    assert plan.unchecked == ("force of q3, q4", "collisions within the machine", "collisions with the floor")
    assert plan.noise.assumed and "not checked: force of q3, q4" in plan.summary()
    with pytest.raises(DataError, match="the start is not a place of this machine"):
        design_excitation(machine, allowed, start=[0.0, np.nan, 0.0, 0.0])
    with pytest.raises(IdentificationError, match=r"start, range of q1: the machine does not stand within its limits"):
        design_excitation(machine, allowed, start=[9.0, 0.0, 0.0, 0.0])


def test_faults_by_name() -> None:
    machine = truth()
    with pytest.raises(IdentificationError, match=r"workspace of 4.*no place to stand at"):
        design_excitation(machine, Limits(ARM, workspace={"4": ((3.0, 3.0, 3.0), (4.0, 4.0, 4.0))}))
    narrow = JointLimits([-0.1] * 4, [0.1] * 4, [1.0] * 4, [1.0] * 4)  # stretched out: gravity needs some 20 N*m
    with pytest.raises(IdentificationError, match=r"force of q\d.*no place to stand at"):
        design_excitation(machine, Limits(narrow, force=[2.0] * 4))
    with pytest.raises(IdentificationError, match=r"force of q1: the dry friction of the model alone"):
        design_excitation(machine, Limits(narrow, force=[0.5] * 4))
    with pytest.raises(DataError, match=r"period does not fit the sampling(.|\n)*nearest frequencies that fit are"):
        design_excitation(machine, ARM, Fourier(frequency=0.3), rate=100.0)
    with pytest.raises(DataError, match="sampling is too slow"):
        design_excitation(machine, ARM, Fourier(frequency=1.0), rate=10.0)
    with pytest.raises(DataError, match="not limits of this machine"):
        design_excitation(machine, JointLimits([-1.0], [1.0], [1.0], [1.0]))
    with pytest.raises(DataError, match="nothing bounds the motion"):
        design_excitation(machine, Limits())
    with pytest.raises(DataError, match="no body '9'"):
        design_excitation(machine, Limits(ARM, workspace={"9": ((0, 0, 0), (1, 1, 1))}))
    with pytest.raises(DataError, match="no criterion"):
        design_excitation(machine, ARM, criterion="x")
    with pytest.raises(DataError, match=r"there is no method 'fourir'\.\n.*Did you mean 'fourier'"):
        design_excitation(machine, ARM, "fourir")
    with pytest.raises(DataError, match=r"'all' names rows, not a method\.\n.*rows='all'"):
        design_excitation(machine, ARM, "all")
    with pytest.raises(DataError, match=r"the class Spline is given, not an object of it\.\nExpected Spline\(\)"):
        design_excitation(machine, ARM, Spline)
    with pytest.raises(DataError, match=r"no argument 'harmonics'\.\nThe family of motions is the third argument"):
        design_excitation(machine, ARM, harmonics=5)
    with pytest.raises(DataError, match="no covariance"):
        design_excitation(machine, ARM, noise=-np.eye(4))
    with pytest.raises(DataError, match="not that of this machine's rows"):
        design_excitation(machine, ARM, noise={"q9": 1.0})
    with pytest.raises(DataError, match="not a place"):
        design_excitation(machine, ARM, centre=[0.0])
    with pytest.raises(DataError, match="at least one period"):
        design_excitation(machine, ARM, periods=0)
    with pytest.raises(ModelError, match="base must be held"):
        design_excitation(Machine.of_bodies([Body("b", None, "fixed"), Body("a", "b")], base="free"), ARM)
    with pytest.raises(ModelError, match="no loops"):
        design_excitation(machine, ARM, at=["q1"])
    with pytest.raises(IdentificationError, match="parameters all have a value"):
        design_excitation(hexapod(), Limits(limits(), POSE_BOX, force=[100.0] * 6), at=POSE)
