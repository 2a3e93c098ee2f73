"""Motions: the four-bar of FACTS 6, a double pendulum as a tree, a spatial mechanism in Pinocchio, energy and constraints."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, rack_and_pinion
from strangers.natural_steps import natural_step
from strangers.pinocchio_natural import Stranger, natural
from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.dynamics import Stabilisation, energies, initial_state
from veridyn.mechanics.natural.equations.position import independent, velocity
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.natural.steps.integrate import (
    NaturalMethod,
    constraint_errors,
    integrate_natural,
)
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.point_parts import Angle, Point, uniform_bar
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

PHI, PHI_DOT = 2.53083926, -2.5638753  # FACTS 6, at 4 s: DOP853 and Pinocchio agree to 1e-10


def four_bar_error(step: float) -> float:
    system = system_of(fourbar())
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    motion = integrate_natural(system, [0.0, 4.0], start, method=NaturalMethod(step=step))
    return float(motion.column("phi")[-1] - PHI)


def test_four_bar_at_five_milliseconds() -> None:
    """Within 1e-3 rad of FACTS 6, constraints closed below 1e-9 throughout, and the power of the motor accounted for."""
    system = system_of(fourbar())
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    t = np.linspace(0.0, 4.0, 801)
    motion = integrate_natural(system, t, start, method=NaturalMethod(step=5e-3))
    assert motion.column("phi")[-1] == pytest.approx(PHI, abs=1e-3)
    assert motion.qd[-1, 4] == pytest.approx(PHI_DOT, abs=3e-3)
    assert (constraint_errors(system, motion) < 1e-9).all()
    total = energies(system, motion.q, motion.qd).sum(axis=1) + 10.0 * motion.column("phi")
    # The trapezoidal rule keeps energy to h²: 0.22 J of about 600 J that move; 25 times less at a fifth of the step (below).
    assert np.ptp(total) < 0.3
    assert len(motion) == 801
    assert motion.state(800).qd[4] == motion.qd[-1, 4]


def test_four_bar_at_one_millisecond_and_its_order() -> None:
    fine, coarse = four_bar_error(1e-3), four_bar_error(5e-3)
    assert abs(fine) <= 5e-5
    assert np.log(coarse / fine) / np.log(5.0) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("formulation", ["penalty", "augmented", "r_matrix"])
def test_the_other_formulations_agree(formulation: str) -> None:
    """Each converges with order two to the same motion: a second of it, against index-3 at a step ten times shorter."""
    system = system_of(fourbar())
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})

    def end(kind: str, step: float) -> float:
        return float(integrate_natural(system, [0.0, 1.0], start, method=NaturalMethod(kind, step)).column("phi")[-1])

    truth = end("index3", 2e-3)
    coarse, fine = (abs(end(formulation, h) - truth) for h in (4e-2, 2e-2))
    assert fine <= 1e-3
    assert np.log2(coarse / fine) == pytest.approx(2.0, abs=0.3)


def test_energy_is_kept_to_the_square_of_the_step() -> None:
    system = system_of(fourbar(torque=0.0))
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    t = np.linspace(0.0, 1.0, 101)
    runs = [integrate_natural(system, t, start, method=NaturalMethod(step=h)) for h in (1e-2, 5e-3)]
    spread = [np.ptp(energies(system, run.q, run.qd).sum(axis=1)) for run in runs]
    assert spread[0] / spread[1] == pytest.approx(4.0, rel=0.1)
    assert spread[1] < 0.1


def test_closed_to_1e9_by_r_matrix() -> None:
    system = system_of(fourbar())
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    motion = integrate_natural(system, np.linspace(0, 0.2, 21), start, method=NaturalMethod("r_matrix", 1e-2))
    assert (constraint_errors(system, motion) < 1e-9).all()


def test_double_pendulum_equals_a_tree() -> None:
    """The relative angle has a moving reference; the tree is integrated by a method of order eight."""
    m, L, g = (1.5, 0.8), (1.0, 0.7), 9.81
    mechanism = Mechanism.build(
        [Point("O", (0, 0), True), Point("P", (1, 0)), Point("R", (1.7, 0))],
        [uniform_bar("1", "O", "P", L[0], m[0]), uniform_bar("2", "P", "R", L[1], m[1])],
        added=[Angle("q1", ("O", "P"), (1.0, 0.0)), Angle("q2", ("P", "R"), ("O", "P"))],
        gravity=(0.0, -g),
    )
    system = system_of(mechanism)
    start = initial_state(system, {"q1": 0.3, "q2": 0.5}, {"q1": 1.0, "q2": -2.0})
    t = np.linspace(0.0, 0.8, 9)

    def bar(mass: float, length: float) -> np.ndarray:
        I = mass * length**2 / 12
        return from_centre(mass, (length / 2, 0, 0), np.diag([0.0, I, I]))

    tree = Tree.build(
        [Body("1"), Body("2", "1", placement=MDH(d=L[0]))],
        gravity=(0.0, -g, 0.0),
        inertia={"1": bar(m[0], L[0]), "2": bar(m[1], L[1])},
    )
    truth = integrate(tree, t, [0.3, 0.5], [1.0, -2.0], method=Method("DOP853"), engine="numpy").motion
    found = []
    for h in (4e-3, 2e-3):
        motion = integrate_natural(system, t, start, method=NaturalMethod(step=h))
        found.append(np.column_stack([motion.column("q1"), motion.column("q2")]))
        assert (constraint_errors(system, motion) < 1e-9).all()
    coarse, fine = (np.abs(x - truth.q).max() for x in found)
    assert fine < 1e-3
    assert coarse / fine == pytest.approx(4.0, rel=0.05)
    # Without the leading h² the two agree a hundred times better still.
    assert np.abs((4.0 * found[1] - found[0]) / 3.0 - truth.q).max() < 1e-5


def test_a_spatial_mechanism_against_pinocchio() -> None:
    """Four degrees of freedom, nothing planar: half a second, order two towards Runge–Kutta of order four."""
    stranger, system = Stranger(), system_of(natural())
    q, v = stranger.start(np.random.default_rng(1), 1.0)
    pose, rate = stranger.integrate(q, v, 1e-3, 500)[-1]
    truth, truth_rate, _ = stranger.natural_state(pose, rate, np.zeros(len(v)))
    x, xd, _ = stranger.natural_state(q, v, np.zeros(len(v)))
    names = independent(system, x)
    assert len(names) == 4
    start = initial_state(system, guess=x, rates=dict(zip(names, xd[system.select(names)], strict=True)))
    assert velocity(system, x, dict(zip(names, xd[system.select(names)], strict=True))) == pytest.approx(xd, abs=1e-10)
    errors = []
    for h in (1e-2, 5e-3):
        motion = integrate_natural(system, np.linspace(0.0, 0.5, 11), start, method=NaturalMethod(step=h))
        assert (constraint_errors(system, motion) < 1e-9).all()
        errors.append([np.abs(motion.q[-1] - truth).max(), np.abs(motion.qd[-1] - truth_rate).max()])
    assert errors[1][0] < 1e-3
    assert errors[1][1] < 1e-2
    assert errors[0][0] / errors[1][0] == pytest.approx(4.0, rel=0.15)


def test_stiff_springs_at_a_long_step() -> None:
    """Explicit rules need h < 2/ω; the index-3 step is implicit in the springs, whose period is a fifth of it here."""
    mechanism = rack_and_pinion()
    stiff = Mechanism.build(
        mechanism.points,
        mechanism.bodies,
        joints=mechanism.joints,
        added=mechanism.added,
        racks=mechanism.racks,
        springs=[type(mechanism.springs[0])("k", "x", 1e6, 0.1)],
    )
    system = system_of(stiff)
    start = initial_state(system, {"theta": -0.25 + 1e-3})
    motion = integrate_natural(system, np.linspace(0, 0.5, 51), start, method=NaturalMethod(step=1e-2))
    assert np.abs(motion.column("theta") + 0.25).max() <= 1.1e-3
    with pytest.raises(SimulationError, match=r"does not converge|do not settle"):
        integrate_natural(system, np.linspace(0, 0.5, 51), start, method=NaturalMethod("augmented", 1e-2))


def test_loads_change_with_time() -> None:
    system = system_of(fourbar())
    start = initial_state(system, {"phi": 1.0}, {"phi": 0.0})
    t = np.linspace(0.0, 0.1, 11)
    quiet = integrate_natural(system, t, start, method=NaturalMethod(step=1e-2))
    pushed = integrate_natural(
        system, t, start, lambda time: {"motor": 100.0 if time > 0.05 else -10.0}, method=NaturalMethod(step=1e-2)
    )
    assert np.array_equal(quiet.q[:6], pushed.q[:6])
    assert pushed.column("phi")[-1] > quiet.column("phi")[-1] + 1e-3
    once = natural_step(system, start, 1e-2, method=NaturalMethod(step=1e-2))
    assert np.array_equal(once.q, quiet.q[1])


def test_progress_is_told() -> None:
    told: list[float] = []
    system = system_of(fourbar())
    start = initial_state(system, {"phi": 1.0}, {"phi": 0.0})
    integrate_natural(
        system,
        [0.0, 1.0, 2.0],
        start,
        method=NaturalMethod(step=1e-3),
        progress=lambda _what, done, total: told.append(done / total),
    )
    assert told == pytest.approx([0.5, 1.0])


def test_bad_requests() -> None:
    system = system_of(fourbar())
    start = initial_state(system, {"phi": 1.0}, {"phi": 0.0})
    with pytest.raises(
        DataError, match=r"(?s)3 faults.*times do not increase.*no formulation 'euler'.*step needs its length"
    ):
        integrate_natural(system, [0.0, 0.0], start, method=NaturalMethod("euler", 0.0))
    motion = integrate_natural(system, [0.0, 0.01], start)
    with pytest.raises(DataError, match="there is no coordinate 'psi'"):
        motion.column("psi")
    with pytest.raises(
        SimulationError, match=r"(?s)the step to 0.01 s does not converge in 1 iterations.*smaller step"
    ):
        integrate_natural(
            system, [0.0, 0.01], start, method=NaturalMethod(step=1e-2, stabilisation=Stabilisation(iterations=1))
        )
