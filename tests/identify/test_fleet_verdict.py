"""A fleet is good only where every machine has a fit that held-out samples bear out, and none stands apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from studies.small_arm import log_of, small_arm
from veridyn.identify.fleet import Fleet, identify_fleet
from veridyn.identify.fleet_verdict import rows_of_all
from veridyn.identify.result import HeldOutRows
from veridyn.identify.validate import validate
from veridyn.inference.error_measures import RowReport
from veridyn.inference.finding import FoundCause
from veridyn.model.motion import Motion
from veridyn.signals.motion import Signals, motion

COUNT = 5


def runs(seed: int) -> Mapping[str, Motion]:
    rng, machine = np.random.default_rng(seed), small_arm()
    return {f"arm {k}": motion(machine, log_of(machine, rng, "log", 4.0), Signals(lowpass=20.0)) for k in range(COUNT)}


@cache
def fleet() -> Fleet:
    found = identify_fleet(small_arm(), runs(3))
    other = {name: HeldOutRows(rows=validate(found.fits[name], m).rows) for name, m in runs(4).items()}
    return replace(found, fits={name: replace(fit, unseen=other[name]) for name, fit in found.fits.items()})


def test_equal_machines_are_good() -> None:
    assert fleet().verdict.grade == "good" and fleet().summary().endswith("verdict: good")
    assert fleet().verdict.headline == f"{COUNT} of {COUNT} machines are identified, and none stands apart."


def test_a_machine_that_stands_apart_is_named() -> None:
    fit = fleet().fits["arm 2"]
    shifted = replace(fit, values=fit.values + 60.0 * fit.sigma)
    verdict = replace(fleet(), fits={**fleet().fits, "arm 2": shifted}).verdict
    assert verdict.grade == "fair" and {r.kind for r in verdict.reasons} == {"apart"}
    assert verdict.reasons[0].text.startswith("arm 2: ") and "arm 2 stands apart" in verdict.headline


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "few fits": ({"failed": {f"arm {k}": "no log" for k in range(5, 12)}}, "poor"),
    "left out": ({"logs_left_out": {"arm 1": {"b.csv": "torn"}}}, "fair"),
}


@pytest.mark.parametrize("kind", CASES)
def test_what_speaks_against_it(kind: str) -> None:
    changes, grade = CASES[kind]
    verdict = replace(fleet(), **changes).verdict
    assert verdict.grade == grade and kind in [r.kind for r in verdict.reasons]


def test_without_held_out_samples_it_is_not_validated() -> None:
    verdict = replace(fleet(), fits={name: replace(fit, unseen=None) for name, fit in fleet().fits.items()}).verdict
    assert verdict.grade == "not validated" and [r.kind for r in verdict.reasons] == ["validation"]


def test_findings_and_logs_that_disagree_name_their_machine() -> None:
    finding = FoundCause(cause="frozen", place="q1", rank=1, message="it is frozen.")
    fit = replace(fleet().fits["arm 3"], findings=(finding,), disagreement="2 logs disagree.")
    verdict = replace(fleet(), fits={**fleet().fits, "arm 3": fit}).verdict
    assert verdict.grade == "fair"
    assert sorted(r.text for r in verdict.reasons) == ["Logs of arm 3 disagree.", "arm 3: it is frozen."]


def test_rows_of_several_machines_count_by_their_samples() -> None:
    rows = [
        RowReport("q1", n, rms, 2.0, measured_std=2.0, noise=0.1, unit="N*m") for n, rms in ((100, 1.0), (300, 3.0))
    ]
    (both,) = rows_of_all(rows)
    assert both.samples == 400 and both.rms == pytest.approx(math.sqrt((100 + 2700) / 400)) and both.measured_std == 2.0
