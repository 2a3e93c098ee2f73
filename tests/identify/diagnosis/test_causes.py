"""Structure that a model lacks, and damage of sensors, are named with their size on logs that Pinocchio made."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import pytest

import veridyn as vd
from strangers import untold_structure as u
from strangers.pinocchio_logs import machine
from veridyn.errors import IdentificationError
from veridyn.identify.diagnosis.causes import STRUCTURE, Damage, words_of
from veridyn.identify.diagnosis.signatures import examine
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import DiagnosisSettings

# Change, joint, size; the sizes move some parameter by more than five deviations.
CASES: Mapping[str, tuple[u.Change, int, float]] = {
    "rotor inertia": (u.rotor, 3, 0.05),
    "load-dependent friction": (u.load_friction, 1, 0.05),
    "flexible joint": (u.flexible, 1, 3e-4),
    "friction that warms up": (u.warm_up, 1, 0.3),
    "Stribeck friction": (u.stribeck, 1, 0.3),
    "gravity direction": (u.leaning, 0, 0.03),
    "load taken up or set down": (u.load, 0, 0.1),
    "encoder drift": (u.drifting_encoder, 1, 0.02),
    "force scale": (u.scaled_force, 1, 0.03),
    "low-pass of the force": (u.low_passed_force, 2, 0.03),
    "asymmetric friction": (u.asymmetric, 1, 0.2),
}
OF_MACHINE = ("gravity direction", "load taken up or set down")
# Of sizes: to first order, at the nearest of a grid of speeds and times; the cold friction is that of the law times 1.2 N*m
TOLERANCE = {"friction that warms up": 0.4, "Stribeck friction": 0.25, "low-pass of the force": 0.35}


def found_in(change: u.Change, j: int, size: float, seed: int, memory: float = 0.0) -> list[Damage]:
    arm = u.four_joints()
    robot, log = machine(arm), u.untold(change, j, size, seed, memory=memory).log
    motion = vd.motion(robot, log, vd.Signals(lowpass=20.0, trim=0.2))
    fit = vd.identify(robot, motion, diagnose="off")
    return [group[0] for group in examine(fit, [motion], Sampling()).found]


@pytest.mark.parametrize("kind", CASES)
def test_it_is_first_with_its_size(kind: str) -> None:
    change, j, size = CASES[kind]
    first = found_in(change, j, size, 100)[0]
    assert (first.kind, first.where) == (kind, "" if kind in OF_MACHINE else f"q{j + 1}")
    laws = u.four_joints()[j]
    true = size * {"friction that warms up": laws.coulomb, "asymmetric friction": laws.viscous}.get(kind, 1.0)
    assert abs(first.size - true) < 4.0 * first.sigma + TOLERANCE.get(kind, 0.1) * true
    assert first.evidence > 50.0
    assert first.structural == (kind in STRUCTURE)


def test_rotors_of_several_joints_are_all_named() -> None:
    """Those of the first two joints are one parameter with the moments of their links; no log separates them."""

    def rotors(x: u.Machinery, _j: int, size: float) -> None:
        for j in range(4):
            u.rotor(x, j, size)

    found = found_in(rotors, 0, 0.2, 101, memory=0.9)
    assert {(d.kind, d.where) for d in found} == {("rotor inertia", "q3"), ("rotor inertia", "q4")}
    for d in found:
        assert abs(d.size - 0.2) < 4.0 * d.sigma + 0.02


@pytest.mark.parametrize("memory", [0.0, 0.9, 0.98])
def test_correct_logs_have_none(memory: float) -> None:
    for seed in (500, 501):
        assert found_in(u.unchanged, 0, 0.0, seed, memory) == []


def test_every_cause_has_words() -> None:
    robot = machine(u.four_joints())
    for kind in (*STRUCTURE, *CASES, "late force", "force in steps", "force drift", "force offset", "encoder zero"):
        where = "" if kind in OF_MACHINE else "q2"
        d = Damage(kind=kind, where=where, size=0.1, sigma=0.01, z=10.0, shift=5.0, moved="M4")
        words = words_of(robot, d)
        assert words.what.endswith(".") and words.hint.endswith(".")
        assert "±" in words.found


def test_the_fit_has_findings_and_a_message_says_what_to_write() -> None:
    arm = u.four_joints()
    robot, log = machine(arm), u.untold(u.rotor, 3, 0.05, 100).log
    motion = vd.motion(robot, log, vd.Signals(lowpass=20.0, trim=0.2))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit = vd.identify(robot, motion, "robust")
    first = fit.findings[0]
    assert (first.cause, first.place, first.rank) == ("rotor inertia", "q4", 1)
    assert first.moves == "ZZ_link4" and "another pose" in first.recording
    assert first.remedy in str(first)
    assert first.shift > 3.0
    assert "{kind: inertia, on: q4}" in str(first)
    assert str(first) in [str(w.message) for w in told]
    assert [f.rank for f in fit.findings] == list(range(1, len(fit.findings) + 1))


def test_settings_choose_rate_and_questions() -> None:
    """A force scale of 3 % is not asked about, and a cause without a name is refused."""
    robot, log = machine(u.four_joints()), u.untold(u.scaled_force, 1, 0.03, 100).log
    motion = vd.motion(robot, log, vd.Signals(lowpass=20.0, trim=0.2))
    fit = vd.identify(robot, motion, diagnose="off")

    def found(**how: Any) -> list[str]:
        return [g[0].kind for g in examine(fit, [motion], Sampling(), settings=DiagnosisSettings(**how)).found]

    assert found() == ["force scale"]
    assert "force scale" not in found(causes=("rotor inertia",))
    assert found(min_shift=1e6) == []
    with pytest.raises(IdentificationError, match="there is no cause 'rust'"):
        found(causes=("rust",))


@pytest.mark.parametrize("change", [u.rotor, u.unchanged])
def test_instruments_get_findings_where_the_noise_of_the_motion_is_known(change: u.Change) -> None:
    """A log states how noisy its accelerations are; what that makes of a trace is taken off."""
    robot, log = machine(u.four_joints()), u.untold(change, 3, 0.05, 100).log
    motion = vd.motion(robot, log, vd.Signals(lowpass=20.0, trim=0.2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = vd.identify(robot, motion, vd.estimators.Instrumental(reference="measured"))
    named = [(f.cause, f.place) for f in fit.findings]
    assert named == ([("rotor inertia", "q4")] if change is u.rotor else [])
