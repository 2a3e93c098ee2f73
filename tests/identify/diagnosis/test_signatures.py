"""Small damages of a log are found by their traces, with their sizes; logs in order raise no alarm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import clean, drawn, forces, noisy, path, truth
from strangers import untold_structure as u
from strangers.pinocchio_logs import machine
from veridyn.errors import Fault, IdentificationWarning
from veridyn.identify.diagnosis.causes import KINDS, Cause, Damage, words_of
from veridyn.identify.diagnosis.fit_check import with_traces
from veridyn.identify.diagnosis.questions import Answer, Questions
from veridyn.identify.diagnosis.score_test import MACHINE
from veridyn.identify.diagnosis.signature_samples import samples_of
from veridyn.identify.diagnosis.signatures import deciding_recording, distinct, examine, most_likely, signature_mistakes
from veridyn.identify.regression.sampling import Sampling
from veridyn.inference.finding import UNEXPLAINED, Mistake
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth


def groups(change: u.Change, j: int, size: float, seed: int = 100) -> list[list[Damage]]:
    robot, log = machine(u.four_joints()), u.untold(change, j, size, seed).log
    motion = vd.motion(robot, log, vd.Signals(lowpass=20.0, trim=0.2))
    return examine(vd.identify(robot, motion, diagnose="off"), [motion], Sampling()).found


def test_an_offset_is_named_before_friction_of_which_it_is_a_part() -> None:
    """Dry friction that differs with direction is an offset: where nothing of its viscous part is seen, the offset is the simpler cause."""
    first = groups(u.offset_force, 2, 0.3)[0]
    assert (first[0].kind, first[0].where) == ("force offset", "q3")
    assert abs(first[0].size - 0.3) < 4.0 * first[0].sigma
    assert ("asymmetric friction", "q3") in {(d.kind, d.where) for d in first}


def answer(kind: str, where: str, criterion: float) -> Answer:
    cause = Cause(kind=kind, where=where, columns=np.zeros((1, 1, 1)))
    return cast(Answer, SimpleNamespace(cause=cause, criterion=criterion, evidence=criterion))


def test_an_offset_stands_before_its_own_friction_alone() -> None:
    """A base that leans is a constant force on a rail: other structure that explains nearly as much comes before a sensor as ever."""
    offset, friction = answer("force offset", "q1", 232.0), answer("asymmetric friction", "q1", 224.0)
    gravity, none = answer("gravity direction", "", 222.5), cast(Questions, None)
    assert most_likely([friction, offset], none) is offset
    assert most_likely([friction, offset, gravity], none) is gravity
    assert most_likely([answer("asymmetric friction", "q1", 240.0), offset], none).cause.kind == "asymmetric friction"


@pytest.mark.parametrize("seconds", [0.02, pytest.param(0.05, marks=pytest.mark.slow)])
def test_a_low_pass_is_no_delay_where_the_motion_is_fast_enough(seconds: float) -> None:
    """The quick form has the shorter one, which is nearer to a delay; the longer is slow."""
    first = groups(u.low_passed_force, 2, seconds)[0]
    assert ("low-pass of the force", "q3") in {(d.kind, d.where) for d in first}
    assert {d.kind for d in first} <= {"low-pass of the force", "late force"}


@pytest.mark.parametrize("deflection", [0.002, pytest.param(0.006, marks=pytest.mark.slow)])
def test_bristles_that_yield_are_no_delay(deflection: float) -> None:
    """LuGre friction, integrated by SciPy: its dry friction is that of the arm, to a tenth at the nearest distance of the grid. A second
    distance of the grid is slow."""
    found = groups(u.bristles, 2, deflection, 102)
    assert [(d.kind, d.where) for d in (g[0] for g in found)] == [("friction that yields", "q3")]
    assert abs(found[0][0].size - u.four_joints()[2].coulomb) < 0.1 * u.four_joints()[2].coulomb


@pytest.mark.parametrize("seconds", [0.02, pytest.param(0.05, marks=pytest.mark.slow)])
def test_a_delay_is_no_friction_that_yields(seconds: float) -> None:
    """Its smooth part is late as well; the size is known to a fifth, the grid's deviation. A second delay of the grid is slow."""
    found = groups(u.late_force, 2, seconds, 102)
    assert [(d.kind, d.where) for d in (g[0] for g in found)] == [("late force", "q3")]
    assert abs(found[0][0].size - seconds) < 0.2 * seconds


@pytest.mark.parametrize("seconds", [-0.045, pytest.param(0.02, marks=pytest.mark.slow)])
def test_forces_that_are_late_alike_have_one_delay(seconds: float) -> None:
    """Forces by Pinocchio, as they were some time before: one number stands for all joints, known to a fifth, the grid's deviation. Early
    forces are quick, late ones slow: each joint's own delay is late in the quick tests beside this."""
    robot, log = machine(u.four_joints()), u.untold(u.late_force, 2, 0.0, 102).log
    m = vd.motion(robot, log, vd.Signals(trim=0.2))
    assert m.forces is not None
    before = np.stack([np.interp(m.t - seconds, m.t, y) for y in m.forces.T], axis=1)
    late = replace(m, forces=before)[50:-50]
    found = examine(vd.identify(robot, late, diagnose="off"), [late], Sampling()).found
    assert [(d.kind, d.where) for d in (g[0] for g in found)] == [("late force", MACHINE)]
    assert abs(found[0][0].size - seconds) < 0.2 * abs(seconds)
    assert "all by one delay" in words_of(robot, found[0][0]).what


def test_what_was_found_is_not_named_again() -> None:
    found = groups(u.rotor, 3, 0.2)
    names = [(d.kind, d.where) for group in found for d in group]
    assert names[0] == ("rotor inertia", "q4") and len(set(names)) == len(names)


HOW = Sampling(dead_zone={f"q{k}": 0.05 for k in range(1, 5)})
FILTERED = replace(HOW, filter=Butterworth(8.0), decimate=4)


def damages(motion: Motion, how: Sampling = HOW) -> list[Damage]:
    fit = vd.identify(drawn(), motion, settings=vd.IdentifySettings(sampling=how), diagnose="off")
    return [group[0] for group in examine(fit, [motion], how).found]


def with_force(change: Callable[[np.ndarray, np.ndarray], np.ndarray], k: int = 2) -> Motion:
    m = noisy(np.random.default_rng(11))
    y = forces(m).copy()
    y[:, k] = change(y[:, k], m.t)
    return replace(m, forces=y)


def late(seconds: float) -> Motion:
    """Forces of the third joint as they were some time before, by the exact motion, with their noise."""
    m = noisy(np.random.default_rng(11))
    before = Motion(m.t - seconds, *path().at(m.t - seconds))
    y = forces(m).copy()
    y[:, 2] += (inverse_dynamics(truth(), before) - forces(clean()))[:, 2]
    return replace(m, forces=y)


def turned(offset: float) -> Motion:
    m = noisy(np.random.default_rng(11))
    q = m.q.copy()
    q[:, 2] += offset
    return replace(m, q=q)


CASES = {
    "force scale": (lambda: with_force(lambda y, _: 1.4 * y), 0.4),
    "late force": (lambda: late(0.05), 0.05),
    "force offset": (lambda: with_force(lambda y, _: y + 0.2), 0.2),
    "encoder zero": (lambda: turned(0.3), 0.3),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_damage_is_named_with_its_size(kind: str) -> None:
    """To first order: sizes of up to a half come out within four deviations and a third of themselves."""
    made, size = CASES[kind]
    found = damages(made())
    assert (found[0].kind, found[0].where) == (kind, "q3")
    assert abs(found[0].size - size) < 4.0 * found[0].sigma + 0.35 * size
    assert found[0].shift > 3.0


def test_a_ramp_is_a_drift() -> None:
    """3 N*m at the end of the log, and nothing at its start."""
    (found,) = damages(with_force(lambda y, t: y + 3.0 * t / t[-1]))
    assert (found.kind, found.where) == ("force drift", "q3")
    assert found.size == pytest.approx(3.0, abs=0.2)


def test_an_offset_beside_a_drift_is_found_as_well() -> None:
    """Neither hides the other, though each is far larger than the noise of 0.2 N*m."""
    found = {d.kind: d for d in damages(with_force(lambda y, t: y + 3.0 * t / t[-1] - 1.5))}
    assert {"force offset", "force drift"} <= found.keys()


@pytest.mark.parametrize("seed", [20, 21, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(22, 26))])
def test_logs_in_order_have_none(seed: int) -> None:
    """One log with white noise and one with autocorrelated noise; two more of each are slow."""
    assert damages(noisy(np.random.default_rng(seed), memory=0.5 * (seed % 2))) == []


def test_the_beginning_of_a_log_is_no_further_evidence() -> None:
    m = clean()
    other = replace(m, q=m.q + 1.0)
    kept = distinct([m[:20], m, other[:20], m])
    assert [len(k) for k in kept] == [len(m), 20]
    assert kept[0] is m


def test_what_one_joint_alone_absorbs_leaves_no_trace() -> None:
    """All parameters of a pendulum act on its one row, so they take a factor of its force along: no test can find it."""
    body = vd.model.Body("1", placement=vd.spatial.MDH(alpha=np.pi / 2))
    inertia = {"1": vd.spatial.from_centre(2.0, [0.3, 0.1, 0.0], np.diag([0.01, 0.1, 0.1]))}
    machine = vd.Machine.of_bodies([body], inertia=inertia, elements=[vd.elements.damper("q1", 0.5)])
    t = 0.01 * np.arange(1000)
    m = Motion(t, *(x[:, :1] for x in path().at(t)))
    y = inverse_dynamics(machine, m) + 0.05 * np.random.default_rng(0).normal(size=(1000, 1))
    right, wrong = (vd.identify(machine, replace(m, forces=f * y), diagnose="off") for f in (1.0, 1.3))
    assert np.allclose(wrong.values, 1.3 * right.values)
    assert np.max(np.abs(wrong.values - right.values) / right.sigma) > 100.0
    assert examine(wrong, [replace(m, forces=1.3 * y)], Sampling()).found == []


def test_equations_without_noise_are_left_alone() -> None:
    assert damages(clean(), Sampling()) == []


def test_filtered_and_decimated_equations_show_the_same() -> None:
    found = damages(with_force(lambda y, _: y + 0.2), FILTERED)
    assert (found[0].kind, found[0].where) == ("force offset", "q3")
    assert found[0].size == pytest.approx(0.2, abs=0.1)
    assert damages(noisy(np.random.default_rng(8)), FILTERED) == []


def test_long_logs_are_looked_at_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veridyn.identify.diagnosis.signature_samples.MAX_ENTRIES", 50_000)
    m = noisy(np.random.default_rng(1))
    fit = vd.identify(drawn(), m, diagnose="off")
    x = samples_of(fit, [m], [r.row for r in fit.rows], Sampling(), window=1)
    assert 300 < len(x.y) < 500
    assert x.share == pytest.approx(len(x.y) / len(m))
    assert np.all(x.clock[0] == 0.0)
    assert np.all(x.clock[-1] == 1.0)


def friction(shift: float, width: float = 0.0) -> Motion:
    """Dry friction of the first joint that turns `shift` seconds after its speed, rounded off below `width` rad/s."""
    m = noisy(np.random.default_rng(11))
    speed = path().at(m.t - shift)[1][:, 0]
    turned = np.sign(speed) if width == 0.0 else np.tanh(speed / width)
    y = forces(m).copy()
    y[:, 0] += turned - np.sign(m.qd[:, 0])  # its friction is 1 N*m
    return replace(m, forces=y)


def test_friction_that_yields_before_it_slides_is_no_late_force() -> None:
    """Only its step is 60 ms late: the smooth part of the force says that the force is not, also where a filter spreads the step."""
    assert [(d.kind, d.where) for d in damages(friction(0.06))] == [("friction that yields", "q1")]
    assert not any(d.kind.startswith("late") for d in damages(friction(0.06), FILTERED))


@pytest.mark.parametrize("seconds", [0.02, pytest.param(0.05, marks=pytest.mark.slow)])
def test_a_late_force_has_its_size_behind_a_filter(seconds: float) -> None:
    """The step of its friction counts once: within a fifth, the grid's deviation, and three deviations. The longer delay is slow."""
    found = damages(late(seconds), FILTERED)
    assert (found[0].kind, found[0].where) == ("late force", "q3")
    assert abs(found[0].size - seconds) < 0.2 * seconds + 3.0 * found[0].sigma


def test_friction_that_is_rounded_off_is_not_late() -> None:
    """It is less on both sides of a reversal alike."""
    assert not any(d.kind.startswith("late") for d in damages(friction(0.0, 0.15), Sampling()))


def test_the_message_says_what_where_how_much_and_what_to_do() -> None:
    m = with_force(lambda y, _: y + 0.2)
    with pytest.warns(IdentificationWarning, match="force of 'q3': it has an offset") as told:
        fit = vd.identify(drawn(), m, settings=vd.IdentifySettings(sampling=HOW))
    (said,) = signature_mistakes(fit, [m], HOW)
    assert len(told) == 1
    assert str(said) == str(told[0].message)
    assert "N*m" in str(said)
    assert "deviations" in str(said)
    assert "Take it out of the channel" in str(said)
    assert any(note.startswith("suspected: force of 'q3'") for note in fit.notes)


@pytest.mark.parametrize(("steps", "named"), [(0.5, False), (0.9, True)])
def test_half_a_step_of_the_clock_is_no_delay(steps: float, named: bool) -> None:
    """A sensor that averages over a step is half of one late; what is clearly longer is reported, on a log of little noise."""
    m = noisy(np.random.default_rng(11), size=0.2)
    before = Motion(m.t - 0.01 * steps, *path().at(m.t - 0.01 * steps))
    y = forces(m).copy()
    y[:, 1] += (inverse_dynamics(truth(), before) - forces(clean()))[:, 1]
    found = [d for d in damages(replace(m, forces=y)) if d.kind == "late force"]
    assert [d.where for d in found] == (["q2"] if named else [])


def test_traces_are_looked_for_beside_wrong_signs_of_parameters() -> None:
    """They leave no residual, and the trace may say where they come from; other mistakes leave more than a trace."""
    m = with_force(lambda y, _: y + 0.2)
    fit, failed, untestable = (
        vd.identify(drawn(), m, settings=vd.IdentifySettings(sampling=HOW), diagnose="off"),
        [],
        [],
    )
    signs, other = (Mistake(kind, Fault("x.", "y")) for kind in ("inertia below zero", "spike"))
    found = with_traces([signs], fit, [m], HOW, failed, untestable=untestable)
    assert [f.kind for f in found] == ["inertia below zero", "force offset"]
    # An axis along gravity, and one that carries nothing but its own body.
    zeros = "zeros of the positions of 'q1', 'q4': the parameters take up whatever is wrong there, so no test of this log can show it."
    assert untestable == [zeros]
    assert with_traces([other], fit, [m], HOW, failed) == [other]
    assert not failed


def test_a_cause_that_explains_most_forces_stands_for_rows_that_nothing_explained() -> None:
    """Signs of parameters follow from it, and as no machine has these, what was unexplained stays behind. Noise stays what it is."""
    m = with_force(lambda y, _: y + 60.0)
    wild = with_force(lambda y, _: y + 60.0 * np.random.default_rng(5).choice([-1.0, 1.0], len(y)))
    signs, rows = (Mistake(kind, Fault("x.", "y")) for kind in ("inertia below zero", UNEXPLAINED))
    answers = []
    for motion in (m, wild):
        fit = vd.identify(drawn(), motion, settings=vd.IdentifySettings(sampling=HOW), diagnose="off")
        answers.append([f.kind for f in with_traces([rows, signs], fit, [motion], HOW, [])])
    assert answers == [["force offset", "inertia below zero", UNEXPLAINED], [UNEXPLAINED, "inertia below zero"]]


def test_a_fast_diagnosis_looks_at_so_many_samples() -> None:
    m = noisy(np.random.default_rng(1))
    fit = vd.identify(drawn(), m, diagnose="off")
    x = samples_of(fit, [m], [r.row for r in fit.rows], Sampling(), window=1, most=900)
    assert len(x.y) == pytest.approx(900, rel=0.02)
    assert np.all(x.clock[0] == 0.0)
    assert np.all(x.clock[-1] == 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_every_cause_has_one(kind: str) -> None:
    assert deciding_recording(kind)
    assert deciding_recording(kind, ["rotor inertia" if kind != "rotor inertia" else "dry friction"])


@pytest.mark.parametrize(
    ("a", "b", "what"),
    [
        ("late force", "viscous friction", "faster reversals"),
        ("load-dependent friction", "dry friction", "payload"),
        ("gravity direction", "encoder zero", "other poses"),
        ("late force", "low-pass of the force", "fast reversals"),
    ],
)
def test_pairs_do_not_depend_on_their_order(a: str, b: str, what: str) -> None:
    assert what in deciding_recording(a, [b]) and deciding_recording(a, [b]) == deciding_recording(b, [a])


def test_one_kind_at_several_places_is_separated_by_motion() -> None:
    assert "rest" in deciding_recording("force offset", ["force offset"])


def test_nothing_is_said_of_kinds_that_no_recording_decides() -> None:
    assert deciding_recording("positions swapped") == ""
