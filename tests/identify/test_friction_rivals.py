"""A choice of friction between whole models: what is there is chosen, a larger model is not, and the condition is that of ρ."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from identify.test_friction_ladder import arm, log
from identify.undiagnosed import identify
from veridyn.errors import DataError
from veridyn.estimators import friction_rivals
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.excitation.problem import correlation
from veridyn.identify.friction_rivals import condition
from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings

DRY = [vd.elements.coulomb("q1"), vd.elements.coulomb("q2")]
VISCOUS = [vd.elements.damper("q1"), vd.elements.damper("q2")]
SQUARE = [vd.Element(kind="law", on={"q1": 1.0}, name="hq_q1", formula="v*abs(v)", unit="N*m*s^2/rad^2")]
MODELS = {"dry": arm(*DRY), "both": arm(*DRY, *VISCOUS), "one more": arm(*DRY, *VISCOUS, SQUARE[0])}


def test_the_true_friction_is_chosen() -> None:
    found = friction_rivals(MODELS, log(5, "plain"), rows="joints", standard_errors=3.0)
    assert found.chosen == "both" and found.machine is MODELS["both"]
    assert [one.name for one in found.rivals] == ["dry", "both", "one more"]
    assert found.rivals[1].fall is not None and found.rivals[1].fall.share > 0.5
    assert found.figures["friction_chosen"] == 1.0 and "predicts no better than both" in found.summary()


def test_a_larger_model_is_chosen_where_it_is_true_and_borne() -> None:
    """v |v| lies close to v: the rule reports that it predicts better, and takes it where prediction alone is asked for."""
    m = log(5, "plain quadratic")
    found = friction_rivals(MODELS, m, rows="joints")
    last = found.rivals[-1]
    assert found.chosen == "both" and last.predicts and not last.borne and "does not bear it" in found.summary()
    assert friction_rivals(MODELS, m, rows="joints", price_limit=np.inf).chosen == "one more"


def test_the_condition_is_that_of_the_correlations() -> None:
    m = log(6, "plain")
    machine = MODELS["both"]
    fit = identify(machine, m, "wls", rows="joints", settings=vd.IdentifySettings(covariance="white"))
    found = condition(solve(observation(machine, [m], "joints", IdentifySettings())))
    assert found == pytest.approx(float(np.linalg.cond(correlation(fit.covariance))), rel=1e-6)


def test_one_model_is_no_choice() -> None:
    with pytest.raises(DataError, match="nothing to choose"):
        friction_rivals({"dry": MODELS["dry"]}, log(5, "plain"), rows="joints")
