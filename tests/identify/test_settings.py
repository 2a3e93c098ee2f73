"""The settings of identification: checked when they are made, refused by name, the same object for every verb."""

from __future__ import annotations

import inspect
from dataclasses import fields

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import noisy, truth
from veridyn.errors import IdentificationError
from veridyn.estimators import Acceptance, Hac, Sampling, observation
from veridyn.identify.settings import Auto, IdentifySettings

ONCE = tuple(f.name for f in fields(IdentifySettings))


def test_defaults_are_the_settings_of_a_call_without_any() -> None:
    motion = noisy(np.random.default_rng(0))
    plain, stated = vd.identify(truth(), motion), vd.identify(truth(), motion, "wls", IdentifySettings())
    assert plain.values.tolist() == stated.values.tolist() and plain.sigma.tolist() == stated.sigma.tolist()
    assert repr(IdentifySettings()) == "IdentifySettings()"
    assert (
        repr(IdentifySettings(engine="numpy", covariance="hac")) == "IdentifySettings(covariance='hac', engine='numpy')"
    )


def test_words_for_the_covariance() -> None:
    assert IdentifySettings().correlated == Auto()
    assert IdentifySettings(covariance="white").correlated is None
    assert IdentifySettings(covariance="hac").correlated == Hac()
    assert IdentifySettings(covariance=Hac(20)).correlated == Hac(20)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"covariance": "grey"},
            r"covariance: the value is not valid\.\nExpected 'auto' or 'white' or 'hac' or Hac\(…\) or Auto\(…\), found 'grey'",
        ),
        ({"sampling": 10}, r"sampling: .*\nExpected Sampling\(…\) or None, found 10"),
        ({"sigma": {"q1": 0.0}}, r"sigma\.q1: .*\nExpected a number above 0, found 0\.0"),
        ({"acceptance": 10.0}, r"acceptance: .*\nExpected Acceptance\(…\), found 10\.0"),
        ({"tolerance": 2.0}, r"tolerance: .*\nExpected a number above 0 and below 1, found 2\.0"),
        ({"engine": "fast"}, r"engine: .*\nExpected 'auto' or 'compiled' or 'numpy', found 'fast'"),
        ({"device": "gpu"}, r"device: .*\nExpected 'cpu' or 'cuda', found 'gpu'"),
        ({"covarianc": "hac"}, r"covarianc: IdentifySettings has no setting 'covarianc'\.\n.*Did you mean 'covariance'\?"),
    ],
)  # fmt: skip
def test_what_is_no_setting_is_refused_when_the_object_is_made(given: dict[str, object], said: str) -> None:
    with pytest.raises(IdentificationError, match=rf"IdentifySettings[. ]{said}"):
        IdentifySettings(**given)  # pyright: ignore[reportArgumentType]


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(IdentificationError, match="2 faults") as caught:
        IdentifySettings(engine="fast", tolerance=0.0)  # pyright: ignore[reportArgumentType]
    assert [fault.at for fault in caught.value.faults] == [("tolerance",), ("engine",)]


@pytest.mark.parametrize("name", ONCE)
@pytest.mark.parametrize("verb", [vd.identify, vd.validate, observation, vd.estimators.identify_fleet])
def test_a_setting_is_no_keyword_of_a_verb(verb: object, name: str) -> None:
    """Python's own error, with the words that help; neither data nor value is looked at."""
    assert name not in inspect.signature(verb).parameters  # pyright: ignore[reportArgumentType]
    own = verb.__name__  # pyright: ignore[reportAttributeAccessIssue]
    said = rf"{own}\(\) got an unexpected keyword argument '{name}'.*{own}\(…, settings=IdentifySettings\({name}=…\)\)"
    data = {"1": noisy(np.random.default_rng(0))} if own == "identify_fleet" else noisy(np.random.default_rng(0))
    with pytest.raises(TypeError, match=said):
        verb(truth(), data, **{name: None})  # pyright: ignore[reportCallIssue]


def test_the_same_object_serves_the_fit_and_its_validation() -> None:
    """Every second sample of each of four rows counts, in both."""
    motion = noisy(np.random.default_rng(0))
    how = IdentifySettings(
        sampling=Sampling(decimate=2), acceptance=Acceptance(5.0), covariance=Hac(0), sigma={"q1": 1.0}
    )
    fit, count = vd.identify(truth(), motion, "wls", how), (len(motion) + 1) // 2
    assert fit.acceptance == Acceptance(5.0)
    assert [r.samples for r in fit.rows] == [count] * 4 == [r.samples for r in vd.validate(fit, motion, how).rows]
    assert [f.samples for f in observation(truth(), motion, "all", how).rows] == [count] * 4
