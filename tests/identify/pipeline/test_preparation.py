"""What is said of the way from logs to equations, and what is left to the rule of every door."""

from dataclasses import fields

from veridyn.identify.pipeline.preparation import Preparation
from veridyn.identify.regression.sampling_rule import SamplingRule
from veridyn.signals.motion import Signals


def test_what_is_not_said_is_left_to_the_rule() -> None:
    assert Preparation().by_rule
    assert not any(
        how.by_rule for how in (Preparation(filter=None), Preparation(decimate=2), Preparation(dead_zone=0.1))
    )


SHARED = {
    Signals: {"rate", "lowpass", "order", "derivative", "measured_rates", "trim", "interpolation"},
    SamplingRule: {"decimate", "dead_zone"},
}


def test_defaults_are_those_of_what_it_prepares() -> None:
    own = {f.name: f.default for f in fields(Preparation)}
    for kind, names in SHARED.items():
        assert {f.name: f.default for f in fields(kind) if f.name in names} == {n: own[n] for n in names}
