"""A load that is weighed in one call is that of its steps, and its verdict says what it lacks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from identify.test_payload import GAINS, LOAD, driven, unknown
from veridyn.errors import IdentificationError
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.gains import estimated_gains
from veridyn.identify.payload import carrying, load_estimate, with_payload
from veridyn.identify.weighing import (
    OF_A_FIT,
    Payload,
    empty_method,
    gains_in_words,
    weigh,
    with_gain_sigma,
    with_load_sigma,
)
from veridyn.inference.finding import FoundCause

pytestmark = pytest.mark.filterwarnings("ignore::veridyn.errors.IdentificationWarning")


@cache
def weighed() -> Payload:
    """Currents with noise, gains known to 1 %, and other runs that judge."""
    rng = [np.random.default_rng(k) for k in range(3)]
    return weigh(
        unknown(GAINS),
        driven(rng[0], loaded=True),
        "4",
        empty=driven(rng[1]),
        gain_sigma=0.01,
        validation=driven(rng[2], loaded=True),
    )


def test_it_is_that_of_its_steps() -> None:
    found = weighed()
    rng = [np.random.default_rng(k) for k in range(2)]
    empty = identify(with_gain_sigma(unknown(GAINS), 0.01), driven(rng[1]))
    fit = identify(with_payload(empty, "4"), driven(rng[0], loaded=True))
    load = load_estimate(fit, "4", empty=empty)
    np.testing.assert_allclose(found.load.free, load.free, rtol=1e-12)  # of one sum in another order
    np.testing.assert_allclose(found.load.covariance, load.covariance, rtol=1e-9)
    assert abs(found.load.mass - LOAD[9]) < 3.3 * found.load.mass_sigma
    assert found.gains == "given values, each ± 1 %" and found.fit.unseen is not None


def test_a_fit_in_place_of_empty_runs_and_a_mass_alone() -> None:
    found = weigh(weighed().empty, driven(np.random.default_rng(0), loaded=True), "4", centre=LOAD[6:9] / LOAD[9])
    assert found.load.mass_only and found.gains == OF_A_FIT and found.verdict.grade == "not validated"
    with pytest.raises(IdentificationError, match="without its load"):
        weigh(unknown(GAINS), driven(loaded=True), "4")


def test_estimated_gains_call_for_instruments() -> None:
    known, free = unknown(GAINS), unknown()
    assert isinstance(empty_method(free), Instrumental) and not isinstance(empty_method(known), Instrumental)
    assert estimated_gains(free) and with_gain_sigma(free, 0.02) is free
    assert gains_in_words(free, None, [2.0]) == "calibrated from known loads of 2 kg"
    assert "exact" in gains_in_words(known, None)


def test_the_deviation_of_a_known_load_goes_with_every_estimate() -> None:
    runs = [
        driven(np.random.default_rng(3)),
        carrying(unknown(), driven(np.random.default_rng(4), loaded=True), "4", LOAD),
    ]
    fit = identify(unknown(), runs, Instrumental(reference="measured"))
    wider = with_load_sigma(fit, 0.01)
    np.testing.assert_allclose(wider.sigma**2 - fit.sigma**2, (0.01 * fit.values) ** 2, rtol=1e-9)
    with pytest.raises(IdentificationError, match="every force comes through an estimated drive gain"):
        with_load_sigma(weighed().empty, 0.01)


CASES: dict[str, tuple[Any, Any, str, str | None]] = {
    "good": ({}, {}, "good", None),
    "nothing held out": ({"unseen": None}, {}, "not validated", "validation"),
    "half of it was fitted": ({"unseen": 0.5}, {}, "fair", "validation"),
    "exact gains": ({}, {"gains": "taken as exact"}, "fair", "gains"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_speaks_against_it(name: str) -> None:
    of_fit, changes, grade, kind = CASES[name]
    fit = weighed().fit
    if of_fit.get("unseen") is not None:
        assert fit.unseen is not None
        of_fit = {"unseen": replace(fit.unseen, share=of_fit["unseen"])}
    own = replace(weighed(), fit=replace(fit, **of_fit), **changes)
    vars(own)["unexcited"] = ()  # the runs of this arm are short
    assert own.verdict.grade == grade and kind in [None, *(r.kind for r in own.verdict.reasons)]


def test_a_load_that_is_none_vague_or_impossible_or_has_a_finding() -> None:
    found = weighed()
    x, finding = found.load, FoundCause(cause="frozen", place="q1", rank=1, message="it is frozen.")
    none = replace(found, load=replace(x, covariance=x.covariance * (0.5 * x.mass / x.mass_sigma) ** 2))
    vague = replace(found, load=replace(x, covariance=x.covariance * (0.1 * x.mass / x.mass_sigma) ** 2))
    impossible = replace(found, load=replace(x, shift=5.0))
    seen = replace(found, fit=replace(found.fit, findings=(finding,)))
    reasons = [{r.kind: r.grade for r in one.verdict.reasons} for one in (none, vague, impossible, seen)]
    assert reasons[0]["no load"] == "poor" and "none" in none.verdict.headline
    assert reasons[1]["deviation"] == "fair" and reasons[2]["impossible"] == "poor"
    assert reasons[3]["finding"] == "fair" and seen.summary().count("it is frozen") == 1
