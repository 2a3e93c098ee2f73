"""The hexapod of paper 002: its tables, its Jacobian in closed form, its workspace, and equations written by hand.

Experiments with the hexapod: noise as stated, references that fit, control that works, feed-forward that helps.
"""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.base import base_parameters
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import close, closed_home, closed_motion, loop_jacobian
from veridyn.papers.hexapod.machine import (
    LEADS,
    LEGS,
    POSE,
    RATE,
    RIGID,
    TABLE_II,
    TABLE_NAMES,
    TRUTH,
    SensorNoise,
    along,
    circle,
    controlled,
    hexapod,
    limits,
    machine,
    prior,
    recorded,
    task,
    tracking_error,
    truth,
)
from veridyn.spatial.inertia import INERTIAL, broken_law

# FACTS of the geometry: chosen, scaled to the a-priori values of Table II.
HIPS = np.radians([-12.0, 12.0, 108.0, 132.0, 228.0, 252.0])
FEET = np.radians([-45.0, 45.0, 75.0, 165.0, 195.0, 285.0])


def workspace(samples: int, seed: int = 4) -> np.ndarray:
    """Poses within ±0.12 m and ±0.25 rad of home."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (samples, 6)) * [0.12, 0.12, 0.12, 0.25, 0.25, 0.25] + [0, 0, -0.95, 0, 0, 0]


def test_table_one() -> None:
    """Ten groups with Table I's symmetries, exactly its own, with p5 along z3; 24 of 24 with friction."""
    base = base_parameters(hexapod())
    names = TABLE_NAMES
    assert set(base.names) == set(names)
    groups = {
        names[n]: dict(zip(base.parameters.names, row, strict=True))
        for n, row in zip(base.names, base.matrix, strict=True)
    }
    x, y = 0.09 * np.cos(FEET), 0.09 * np.sin(FEET)
    z = np.full(6, 0.12)
    table = {
        "p1": {"ZZ1": 1, "YY2": 1, "ZZ3": 1},
        "p2": {"XX2": 1, "XX3": 1, "YY2": -1, "ZZ3": -1},
        "p3": {"ZZ2": 1, "YY3": 1},
        "p4": {"MY2": 1},
        "p5": {"MZ3": 1},
        "p6": {"XX_E": 1, "M3": (y**2 + z**2).sum()},
        "p7": {"YY_E": 1, "M3": (x**2 + z**2).sum()},
        "p8": {"ZZ_E": 1, "M3": (x**2 + y**2).sum()},
        "p9": {"MZ_E": 1, "M3": z.sum()},
        "p10": {"M_E": 1, "M3": 6},
    }
    assert base.count == 24 and list(groups)[:10] and set(table) == set(RIGID) and len(LEADS) == 10
    for p, wanted in table.items():
        found = {name: a for name, a in groups[p].items() if a != 0.0}
        assert found == pytest.approx(wanted, abs=1e-10), p
    print("base parameters:", base.count, "of", len(base.parameters), "gap", f"{base.gap:.1e}")


@pytest.mark.parametrize(("ties", "rigid"), [("table", 10), ("legs", 23), ("none", 88)])
def test_counts(ties: str, rigid: int) -> None:
    """FACTS 4.2: 10, 23 and 88 rigid-body groups; friction adds its own, which are 14 where passive joints are alike."""
    machine = hexapod(ties)  # pyright: ignore[reportArgumentType]
    base = base_parameters(machine)
    friction = sum(1 for c in base.columns if not machine.columns[c][0])
    assert friction == (24 if ties == "none" else 14)
    assert base.count - friction == rigid
    assert base.gap > 1e6
    print(f"{ties}: {rigid} rigid-body base parameters, {friction} of friction, gap {base.gap:.1e}")


def test_perturbed_platform_separates_the_mass_of_the_rods() -> None:
    """FACTS 4.2: with feet moved by 2 cm the sums that hide m3 no longer vanish, and one more parameter shows."""
    from veridyn.files.access import shipped
    from veridyn.files.machine.load import parse_machine

    text = shipped("veridyn:hexapod.yaml").read_text(encoding="utf-8")
    moved = text.replace("r*cos(f1), r*sin(f1), h]", "r*cos(f1) + 0.02, r*sin(f1), h - 0.02]")
    assert moved != text
    assert base_parameters(parse_machine(moved)).count == 25


def test_priors_are_those_of_table_two() -> None:
    machine = hexapod()
    base = base_parameters(machine)
    values = base.reduce(np.nan_to_num(machine.parameters.values))
    for name, value in zip(base.names, values, strict=True):
        p = TABLE_NAMES[name]
        if p in RIGID:
            assert value == pytest.approx(TABLE_II[p][2], abs=6e-5), p


def test_two_identified_values_of_table_two_are_those_of_no_body() -> None:
    """p1 = ZZ1 + YY2 + ZZ3, moments of inertia; p3 − p2 = Σ (Iyy + Izz − Ixx) = Σ 2 ∫ x² dm of two bodies. The prior keeps both."""
    identified, prior = ({p: TABLE_II[p][k] for p in ("p1", "p2", "p3")} for k in (0, 2))
    assert prior["p1"] > 0.0 and prior["p3"] > prior["p2"]
    assert identified["p1"] < 0.0 and identified["p3"] < identified["p2"]


def test_truth_is_possible() -> None:
    """Every body of the truth is one that some distribution of mass has, and its groups are near those identified in the paper."""
    machine = truth()
    for body in ("1", "2", "3", "_E", "2_4"):
        ten = np.array([machine.parameters[f"{symbol}{body}"] for symbol in INERTIAL])
        assert not broken_law(ten)
    base = base_parameters(machine)
    found = dict(zip(base.names, base.reduce(machine.parameters.values), strict=True))
    for name, p in TABLE_NAMES.items():
        if p not in ("p1", "p2"):  # the paper's p1 and p2 are those of no body
            assert found[name] == pytest.approx(TABLE_II[p][0], rel=2e-3), p
    assert TRUTH["M3"] == 2.05


def test_jacobian_in_closed_form() -> None:
    """∂l/∂pose is u·(v + ω × R b) for each leg (FACTS 4.3), with ω = H φ̇ of (16) in the order psi, theta, phi."""
    machine = hexapod()
    poses = workspace(50)
    q = close(machine, poses, at=POSE, path=False).q
    own = [machine.coordinates.index(name) for name in LEGS]
    J = loop_jacobian(machine, q, at=POSE)[:, own]
    hips = np.column_stack([0.6 * np.cos(HIPS), 0.6 * np.sin(HIPS), 0 * HIPS])
    feet = np.column_stack([0.09 * np.cos(FEET), 0.09 * np.sin(FEET), 0 * FEET + 0.12])
    worst = 0.0
    for pose, lengths, found in zip(poses, q[:, own], J, strict=True):
        (cx, cy, cz), (sx, sy, sz) = np.cos(pose[3:]), np.sin(pose[3:])
        Rx = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
        Ry = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
        Rz = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
        arms = feet @ (Rx @ Ry @ Rz).T
        legs = pose[:3] + arms - hips
        assert np.abs(np.linalg.norm(legs, axis=1) - lengths).max() < 1e-9
        u = legs / np.linalg.norm(legs, axis=1)[:, None]
        H = np.array([[1, 0, sy], [0, cx, -sx * cy], [0, sx, cx * cy]])
        closed = np.hstack([u, np.cross(arms, u) @ H])
        worst = max(worst, float(np.abs(closed - found).max()))
    assert worst < 1e-8
    print(f"Jacobian against the closed form: {worst:.1e}")


def test_home() -> None:
    """FACTS 4: legs of 0.9831 m at home, and the condition of the inverse Jacobian there, 28.2."""
    machine = hexapod()
    home = closed_home(machine)
    own = [machine.coordinates.index(name) for name in LEGS]
    assert home[own] == pytest.approx(0.9831, abs=5e-5)
    J = loop_jacobian(machine, home[None], at=POSE)[0, own]  # at rest upright, the rates of the angles are ω
    assert np.linalg.cond(J) == pytest.approx(28.2, abs=0.05)


def test_direct_kinematics_over_the_workspace() -> None:
    """From home, by Newton's steps alone: FACTS 4.3 has five."""
    machine = hexapod()
    poses = workspace(800)
    lengths = close(machine, poses, at=POSE, path=False).q[:, [machine.coordinates.index(name) for name in LEGS]]
    found = close(machine, lengths, path=False)
    assert found.iterations.max() <= 6
    assert np.abs(found.q[:, :6] - poses).max() < 1e-8
    print(
        f"direct kinematics: at most {found.iterations.max()} iterations, pose to {np.abs(found.q[:, :6] - poses).max():.1e}"
    )


def test_forces_by_hand() -> None:
    """Friction included: Newton's and Lagrange's equations written out for this machine."""
    true = truth()
    rng = np.random.default_rng(8)
    x, xd, xdd = workspace(60), rng.normal(size=(60, 6)), 10.0 * rng.normal(size=(60, 6))
    m = closed_motion(true, np.arange(60.0), x, xd, xdd, at=POSE, path=False)
    theirs = machine(friction_speed=1e-9).forces(x, xd, xdd)
    ours = inverse_dynamics(true, m)
    assert np.abs(ours - theirs).max() < 1e-8 * np.abs(theirs).max()


def test_limits() -> None:
    assert limits().low == pytest.approx(0.8) and limits().high == pytest.approx(1.17)


def test_noise_is_what_it_says() -> None:
    """Deviation, memory of one sample of the log at either rate, and correlation across drives, over 40 000 samples."""
    noise = SensorNoise()
    for faster in (1, 3):
        e = noise.draw(40_000 * faster, 2.0, np.random.default_rng(1), faster)[::faster]
        assert e.std(axis=0) == pytest.approx(2.0, rel=0.03)
        assert np.mean(e[1:] * e[:-1]) / np.mean(e * e) == pytest.approx(0.5, abs=0.02)
        assert np.corrcoef(e.T)[np.triu_indices(6, 1)] == pytest.approx(0.5, abs=0.03)
    assert noise.force_covariance[0] == pytest.approx([4, 2, 2, 2, 2, 2])


def test_the_machine_by_hand_has_the_geometry_of_the_file() -> None:
    described = hexapod()
    t = np.linspace(0.0, 2.0, 30)
    m = along(described, circle(0.5), t)
    own = [described.coordinates.index(leg) for leg in LEGS]
    assert np.abs(machine().lengths(circle(0.5)(t)[0]) - m.q[:, own]).max() < 1e-12


def test_a_perfect_model_leaves_little_to_control() -> None:
    """With the truth as feed-forward the drives do what the reference asks, but for reversals."""
    made, wanted = controlled(task(circle(1.2), 1.0 / 1.2, truth()), 2)
    asked = machine().forces(*circle(1.2)(made.t))
    second = slice(800, None)
    assert np.abs(made.lengths - wanted)[second].max() < 5e-5
    assert np.sqrt(np.mean((made.forces - asked)[second] ** 2)) < 1.0
    with pytest.raises(DataError, match=r"the period does not fit the sampling(.|\n)*1066.67 samples"):
        task(circle(0.9), 1.0 / 0.9)


def test_logs() -> None:
    noise, rng = SensorNoise(), np.random.default_rng(2)
    made = controlled(task(circle(1.2), 1.0 / 1.2, prior()), 3, noise, rng)[0]
    log = recorded(made, noise, rng, skip=0.5, fresh=False)
    assert log.lengths.shape == log.forces.shape == (640, 6) and log.t[1] == 1.0 / RATE
    assert np.array_equal(log.lengths, made.measured[480::3])
    fresh = recorded(made, noise, rng, skip=0.5)
    assert np.std(fresh.lengths - made.lengths[480::3]) == pytest.approx(noise.length, rel=0.1)
    assert np.std(log.forces - made.forces[480::3]) == pytest.approx(noise.force, rel=0.1)


@pytest.mark.slow
def test_a_true_model_tracks_best() -> None:
    """At the highest speed: at least five times better than control alone, twice better than the a-priori model.

    The quick form is test_feedforward of papers/hexapod/test_control.py, with the identified model.
    """
    error = {
        name: np.sqrt(np.mean(tracking_error(model, 1.2, SensorNoise(), np.random.default_rng(3)) ** 2))
        for name, model in (("none", None), ("prior", prior()), ("truth", truth()))
    }
    print({name: f"{1e6 * e:.1f} µm" for name, e in error.items()})
    assert error["truth"] < 0.2 * error["none"] and error["truth"] < 0.5 * error["prior"]
