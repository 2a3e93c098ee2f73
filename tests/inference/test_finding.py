"""A finding in words and numbers, as a fit, its file and `result.json` have it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import veridyn as vd
from strangers import untold_structure as u
from strangers.pinocchio_logs import machine
from veridyn.inference.finding import FoundCause

FOUND = FoundCause(
    cause="late force",
    place="q2",
    rank=1,
    evidence=50.0,
    size=0.01,
    sigma=0.001,
    moves="h_q2",
    shift=4.0,
    alternatives=(("low-pass of the force", "q2"),),
    recording="fast reversals",
    remedy="Look at the clocks.",
    message="force of 'q2': it is late.",
)


def test_the_record_has_all_but_the_message() -> None:
    assert list(FOUND.record)[:6] == ["cause", "place", "evidence", "rank", "size", "sigma"]
    assert FOUND.record["alternatives"] == [{"cause": "low-pass of the force", "place": "q2"}]
    assert "message" not in FOUND.record and FOUND.record["recording"] == "fast reversals"
    json.dumps(FOUND.record)
    assert str(FOUND) == FOUND.message


def test_a_saved_fit_keeps_its_findings(tmp_path: Path) -> None:
    """Numbers that a check does not state stay what they are: no numbers."""
    robot, log = machine(u.four_joints()), u.untold(u.unchanged, 0, 0.0, 100, seconds=4.0).log
    fit = vd.identify(robot, vd.motion(robot, log, vd.Signals(lowpass=20.0, trim=0.2)), diagnose="off")
    bare = FoundCause(cause="rows contradict", place="rows", rank=2)
    vd.save(replace(fit, findings=(FOUND, bare)), tmp_path / "fit.json")
    first, second = vd.load(tmp_path / "fit.json").findings
    assert first == FOUND
    assert (second.cause, second.rank, second.alternatives) == ("rows contradict", 2, ())
    assert np.isnan([second.evidence, second.size, second.sigma, second.shift]).all()
