"""What a paper shows and a study does not is a reason of its verdict, beside those of the common rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from identify.smooth_arm import clean, noisy, truth
from identify.undiagnosed import identify
from veridyn.identify.validate import validate
from veridyn.inference.verdict import Verdict
from veridyn.papers.requirements import Requirement, at_least, at_most, held_out_reasons, reasons_of


def test_the_verdict_is_at_best_what_an_unmet_requirement_leaves() -> None:
    met, fair, poor = Requirement(True, "one"), Requirement(False, "two"), Requirement(False, "three", "poor")
    assert reasons_of([met]) == []
    found = Verdict("good", "headline").with_reasons(reasons_of([met, fair, poor]))
    assert found.grade == "poor" and [(r.grade, r.kind, r.text) for r in found.reasons] == [
        ("poor", "paper", "three"),
        ("fair", "paper", "two"),
    ]
    assert Verdict("good", "headline").with_reasons(reasons_of([fair])).grade == "fair"


def test_limits_are_kept_at_their_ends() -> None:
    assert at_least("share", 0.9, 0.9).met and at_most("error", 3.0, 3.0).met
    low, high = at_least("Share", 0.85, 0.9), at_most("Error, N", 3.1, 3.0)
    assert [r.text for r in reasons_of([low, high])] == ["Share: 0.85, less than 0.9.", "Error, N: 3.1, more than 3."]


def test_a_fit_is_held_against_motion_that_it_did_not_use() -> None:
    """Noise of the forces is no error; a force sensor that reads a fifth too much on the other motion is one."""
    rng = np.random.default_rng(0)
    fit, other = identify(truth(), noisy(rng)), noisy(rng, clean(seed=1))
    assert held_out_reasons(fit, validate(fit, other)) == []
    assert other.forces is not None
    (reason,) = held_out_reasons(fit, validate(fit, replace(other, forces=1.2 * other.forces)))
    assert (reason.grade, reason.kind) == ("poor", "error")
