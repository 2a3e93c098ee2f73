"""Questions that find mistakes; the same mistakes through the public door stand in tests/cli/test_damaged.py. Positions
that change places, or their sign, from a moment on are named with that moment, on logs that Pinocchio made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

import veridyn as vd
from strangers import untold_structure as u
from strangers.pinocchio_logs import fourier, machine
from studies.bench_evidence import bench_evidence, permuted
from studies.bench_robot import robot
from studies.closed_bench import MACHINES
from studies.closed_bench import moved as moved_loop
from veridyn.identify.diagnosis.evidence import Evidence, evidence
from veridyn.identify.diagnosis.geometry import other_gearings
from veridyn.identify.diagnosis.replacements import (
    SWAPPED,
    TURNED,
    best_factor,
    exchanged_positions,
    find_mistakes,
    omitted,
)
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import DiagnosisSettings
from veridyn.inference.finding import Mistake
from veridyn.mechanics.tree.elsewhere import ends_of, moved


def test_good_data_raise_no_suspicion() -> None:
    assert find_mistakes(bench_evidence()) == ()
    assert find_mistakes(replace(bench_evidence(), rows=())) == ()


def turned(k: int) -> np.ndarray:
    T = np.eye(3)
    T[k, k] = -1.0
    return T


def joints(e: Evidence, T: np.ndarray) -> vd.Motion | None:
    """Positions and forces both changed by T."""
    return e.replaced("", "", "", "", coordinates=T, forces=T).motion


def causes(found: Sequence[Mistake]) -> list[tuple[str, str]]:
    """Kind and place of all that was named, with what the log does not tell from it."""
    return [x for m in found for x in ((m.kind, m.fault.where), *m.finding(1).alternatives)]


@pytest.mark.parametrize(
    ("kind", "where", "change"),
    [
        ("positions swapped", "positions of 'q1' and 'q2'", lambda e: e.with_coordinates(permuted(0, 1))),
        ("forces swapped", "forces of 'q2' and 'q3'", lambda e: e.with_forces(permuted(1, 2))),
        ("joints swapped", "coordinates 'q1' and 'q3'", lambda e: joints(e, permuted(0, 2))),
        ("position turned round", "position of 'q1'", lambda e: e.with_coordinates(turned(0))),
        ("force turned round", "force of 'q3'", lambda e: e.with_forces(turned(2))),
        ("angle unit", "position of 'q3'", lambda e: e.with_coordinates(np.diag([1.0, 1.0, 180.0 / np.pi]))),
        ("angle unit", "positions of all", lambda e: e.with_coordinates(np.eye(3) * np.pi / 180.0)),
        ("force scale", "force of 'q1'", lambda e: e.with_forces(np.diag([0.02, 1.0, 1.0]))),
    ],
)
def test_a_mistake_is_named(kind: str, where: str, change) -> None:
    e = bench_evidence()
    found = find_mistakes(replace(e, motion=change(e)))
    assert any(k == kind and place.startswith(where) for k, place in causes(found)), [str(s) for s in found]


@pytest.mark.parametrize("factor", [0.01, 0.2, 50.0])
def test_the_factor_of_a_force_is_found_beside_the_others(factor: float) -> None:
    e = bench_evidence()
    changed = replace(e, motion=e.with_forces(np.diag([1.0, factor, 1.0])))
    assert best_factor(changed, 1) == pytest.approx(1.0 / factor, rel=0.1)


def test_progress_is_told() -> None:
    e, told = bench_evidence(), []
    find_mistakes(
        replace(e, motion=e.with_forces(turned(1))), progress=lambda task, done, total: told.append((task, done, total))
    )
    assert told[0][0] == "looking for mistakes" and told[-1][1] == told[-1][2]


def test_a_wrong_length_is_named_and_else_a_contradiction() -> None:
    e = bench_evidence()
    wrong = replace(e, machine=moved(robot(), ends_of(robot())[2], 0, -0.2))
    assert [(s.kind, s.fault.where) for s in find_mistakes(wrong, 2.5)] == [("geometry", "body '3'")]
    assert [s.kind for s in find_mistakes(e, 1.4)] == ["rows contradict"]  # nothing that is tried explains it
    assert find_mistakes(e, 1.2) == ()


def test_what_was_not_looked_for_is_listed() -> None:
    assert omitted(bench_evidence(), delays=True, speeds=True, streamed=False) == ()
    said = omitted(bench_evidence(), delays=False, speeds=False, streamed=True)
    assert [word in text for word, text in zip(("Delays", "Speeds", "first block"), said, strict=True)] == [True] * 3


def test_readings_out_of_reach_are_listed() -> None:
    machine = MACHINES["palletizer"]()
    e = evidence(machine, [moved_loop("palletizer", 1)], machine.actuated_coordinates, Sampling())
    wrong = replace(e, motion=e.with_forces(np.eye(machine.n)[[0, 3, 2, 1, 4]]))
    (said,) = omitted(wrong, delays=True, speeds=True, streamed=False)
    assert "no way to close the loops was found" in said and "positions of 'q2' and 'q4' (positions swapped)" in said
    assert "forces of" not in said  # forces can always be read otherwise


def test_no_forces_no_questions() -> None:
    e = replace(bench_evidence(), rows=())
    assert omitted(e, True, True, False) == ("Everything that needs measured forces: no row measures any.",)


WRIST = Path(__file__).parents[3] / "examples" / "studies" / "wrist_model.yaml"
# Three bodies (mass kg, centre m, principal moments kg*m^2), and friction that is most of what their joints need (N*m, N*m*s/rad).
BODIES = (
    (3.0, (0.02, 0.1, 0.05), (0.03, 0.02, 0.03)),
    (1.2, (0.03, 0.01, 0.05), (0.004, 0.005, 0.003)),
    (0.6, (0.02, 0.01, 0.08), (0.003, 0.003, 0.001)),
)
RUBBING = {"h4": 3.0, "fs4": 8.0, "h5": 1.0, "fs5": 4.0, "h6": 0.6, "fs6": 1.5, "fsm6": 1.0, "off4": 0.1}


def wrist_log(machine: vd.Machine, change: np.ndarray, seed: int) -> vd.Motion:
    """What a log of the wrist looks like through a transmission that is `change` times the right one; the law of its friction, too, is
    not quite that of the model."""
    values = np.zeros(len(machine.parameters.names))
    for k, (mass, centre, moments) in enumerate(BODIES):
        values[10 * k : 10 * k + 10] = vd.spatial.from_centre(mass, centre, np.diag(moments))
    for name, value in RUBBING.items():
        values[machine.parameters.names.index(name)] = value
    rng, t = np.random.default_rng(seed), np.arange(4000) / 200.0
    q, qd, qdd = fourier(rng, 3, t)
    y = vd.inverse_dynamics(machine, vd.Motion(t, q, qd, qdd), "joints", values)
    size = 0.03 * np.sqrt(np.mean(y**2, axis=0))
    y = y + 0.05 * np.array([8.0, 4.0, 1.5]) * np.sign(qd) / (1.0 + (qd / 0.2) ** 2)
    y += size * lfilter([np.sqrt(0.19)], [1.0, -0.9], rng.normal(size=q.shape), axis=0)
    q, qd, qdd = (x @ change.T for x in (q, qd, qdd))
    return vd.Motion(t, q, qd, qdd, forces=y @ np.linalg.inv(change))


@pytest.mark.parametrize(
    ("seed", "step"), [(1, 4), *(pytest.param(seed, 1, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_gears_are_named_where_friction_is_most_of_the_force(seed: int, step: int) -> None:
    """The sign of the first gear changes the error by a tenth of itself alone; that of all gears as they are, nothing is said. Every
    fourth of the mistakes that gears allow is quick, all of them on two logs are slow."""
    machine = vd.load_model(WRIST)
    right = evidence(machine, [wrist_log(machine, np.eye(3), seed)], machine.coordinates, Sampling())
    assert find_mistakes(right) == ()
    for g in list(other_gearings(machine, machine.coordinates))[::step]:
        log = wrist_log(machine, np.linalg.inv(g.change), seed)
        found = find_mistakes(evidence(machine, [log], machine.coordinates, Sampling()))
        assert found[0].kind == g.kind
        alike = found[0].finding(1).alternatives
        assert (g.kind, g.where) in {(m.kind, m.fault.where) for m in found} | set(alike)


ROWS = ("q1", "q2", "q3", "q4")


def found_in(swap: tuple[int, ...], moment: float) -> tuple[list[str], list[str]]:
    """Causes and messages of a log whose positions are exchanged from a moment on; no swap where there are none."""
    robot, made = machine(u.four_joints()), u.untold(u.unchanged, 0, 0.0, 100)
    q = made.measured_q.copy()
    late = made.t >= moment
    if len(swap) == 2:
        q[np.ix_(late, list(swap))] = q[np.ix_(late, list(reversed(swap)))]
    elif swap:
        q[late, swap[0]] *= -1.0
    motion = vd.motion(robot, replace(made, measured_q=q).log, vd.Signals(lowpass=20.0, trim=0.2, inspection="off"))
    fit = vd.identify(robot, motion, diagnose="off")
    found = exchanged_positions(fit, [motion], ROWS, DiagnosisSettings())
    return [m.kind for m in found], [str(m) for m in found]


@pytest.mark.parametrize(("swap", "moment"), [((1, 2), 10.0), ((0, 3), 14.0), ((2,), 6.0)])
def test_it_is_named_with_its_moment(swap: tuple[int, ...], moment: float) -> None:
    kinds, messages = found_in(swap, moment)
    assert kinds == [SWAPPED if len(swap) == 2 else TURNED]
    assert all(f"'q{k + 1}'" in messages[0] for k in swap)
    said = re.search(r"from t = ([\d.]+) s", messages[0])
    assert said is not None
    # the trim of 0.2 s may move the origin of the clock; the filter of 20 Hz spreads a jump over some 50 ms
    assert abs(float(said[1]) - moment) < 0.25


def test_a_log_in_order_has_none() -> None:
    assert found_in((), 0.0) == ([], [])
