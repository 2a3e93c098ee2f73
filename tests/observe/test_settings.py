"""One object holds the settings of an observation: it is checked when it is made, and both verbs take it."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from veridyn.model.single_track import CarNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.settings import names

ENCODER = vd.Sensor("encoder", "coordinate", "q1", 1e-3)
INERTIA = {"1": vd.spatial.from_centre(1.0, [0.5, 0.0, 0.0], np.diag([1e-3, 0.08, 0.08]))}
ROD = vd.model.Body("1", placement=vd.spatial.MDH(alpha=-np.pi / 2))
PENDULUM = vd.Machine.of_bodies([ROD], inertia=INERTIA, sensors=[ENCODER])
NOISE = vd.ProcessNoise(force=1e-4)


def test_no_setting_is_one_of_the_verbs_too() -> None:
    """Each setting stands once: in the object, which both verbs take by one name."""
    for verb in (vd.observe, vd.Observer.__init__):
        parameters = inspect.signature(verb).parameters
        assert "settings" in parameters and not set(parameters) & set(names(ObserveSettings))


def test_every_setting_is_documented() -> None:
    text = inspect.getdoc(ObserveSettings) or ""
    documented = {n for line in text.splitlines() if " : " in line for n in line.partition(" : ")[0].split(", ")}
    assert documented == {f.name for f in fields(ObserveSettings)}


def test_it_is_frozen_and_lists_become_tuples() -> None:
    names = ["motor"]
    made = ObserveSettings(unknown=names, inputs=(n for n in ("force.q1",)), parameters=["fv"])  # pyright: ignore[reportArgumentType]
    names.append("other")
    assert (made.unknown, made.inputs, made.parameters) == (("motor",), ("force.q1",), ("fv",))
    with pytest.raises(FrozenInstanceError):
        made.step = 0.1  # pyright: ignore[reportAttributeAccessIssue]
    assert made == ObserveSettings(unknown=("motor",), inputs=("force.q1",), parameters=("fv",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"process_noise": 1.0}, r"process_noise: .*\nExpected ProcessNoise\(…\) or CarNoise\(…\) or None, found 1\.0"),
        ({"start": "first"}, r"start: .*\nExpected .*'readings' or None, found 'first'"),
        ({"start": {"q1": "up"}}, r"ObserveSettings\.start\.q1: .*\nExpected a number, found 'up'"),
        ({"rates": {"q1": np.nan}}, r"ObserveSettings\.rates\.q1: .*\nExpected a number, found nan"),
        ({"unknown": "motor"}, r"unknown: .*\nExpected a list of names or None, found 'motor'"),
        ({"frozen_after": 0}, r"frozen_after: .*\nExpected a whole number of at least 1 or .*None, found 0"),
        ({"step": 0.0}, r"step: .*\nExpected a number above 0 or None, found 0\.0"),
        ({"input_hold": "cubic"}, r"input_hold: .*\nExpected 'zero' or 'linear', found 'cubic'"),
        ({"friction_speed": 0.0}, r"friction_speed: .*\nExpected a number above 0, found 0\.0"),
        ({"sensors": [1.0]}, r"sensors: .*\nExpected a list of sensors or names"),
        ({"sensors": "encoder"}, r"sensors: .*\nExpected a list of sensors or names"),
        ({"parameters": "fv"}, r"parameters: .*\nExpected a list of names, or a mapping"),
        ({"parameters": {"fv": (1.0, 0.0, 2.0, 1.0)}}, r"parameters, 'fv'"),
        ({"consider": 1}, r"consider: .*\nExpected True or False, found 1"),
        ({"stepp": 0.1}, r"ObserveSettings has no setting 'stepp'\.\n.*Did you mean 'step'\?"),
    ],
)
def test_what_is_not_valid_is_refused_when_it_is_made(given: dict[str, Any], message: str) -> None:
    with pytest.raises(vd.errors.ModelError, match=message):
        ObserveSettings(**given)


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(vd.errors.ModelError) as caught:
        ObserveSettings(step=-1.0, friction_speed=0.0, start={"a": "x", "b": "y"})  # pyright: ignore[reportArgumentType]
    assert [f.at for f in caught.value.faults] == [("start", "a"), ("start", "b"), ("step",), ("friction_speed",)]


@pytest.mark.parametrize("name", names(ObserveSettings))
def test_an_old_keyword_is_answered_with_the_new_call(name: str) -> None:
    log = vd.Experiment.from_arrays([0.0, 0.1], {"encoder": [0.0, 0.0]}, {"encoder": "rad"})
    for verb, call in (
        ("observe", lambda: vd.observe(PENDULUM, log, "ekf", **{name: None})),
        ("Observer", lambda: vd.Observer(PENDULUM, "ekf", **{name: None})),
    ):
        new = rf"It is a setting: {verb}\(…, settings=ObserveSettings\({name}=…\)\)\."
        with pytest.raises(TypeError, match=rf"^{verb}\(\) got an unexpected keyword argument '{name}'\. {new}$"):
            call()
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        vd.observe(PENDULUM, log, nonsense=1)  # pyright: ignore[reportCallIssue]


def test_an_observer_refuses_what_only_a_log_gives_all_at_once() -> None:
    with pytest.raises(vd.errors.ModelError) as caught:
        vd.Observer(PENDULUM, "ekf", ObserveSettings(start="readings", input_hold="linear"))
    places = ["settings.process_noise", "settings.start", "settings.input_hold"]
    assert [f.where for f in caught.value.faults] == [f"Observer, {place}" for place in places]
    with pytest.raises(vd.errors.ModelError, match="there is no log to choose it from"):
        vd.Observer(PENDULUM)


def test_the_noise_of_a_car_is_refused_for_other_machines() -> None:
    with pytest.raises(vd.errors.ModelError, match=r"ObserveSettings\.process_noise: this noise is that of a car"):
        vd.Observer(PENDULUM, "ekf", ObserveSettings(process_noise=CarNoise()))


def test_both_verbs_give_the_same_states_with_the_same_object() -> None:
    released = vd.manoeuvres.Driven(0.2, 100.0, [0.3], [0.0])
    log = vd.simulate(PENDULUM, released, rng=np.random.default_rng(0))
    error = vd.ProcessNoise(acceleration=1e-3)  # what is learned on a log is not known beside a program
    settings = ObserveSettings(process_noise=NOISE, model_error=error, start={"q1": 0.0}, inputs=(), step=0.01)
    along = vd.observe(PENDULUM, log, "ekf", settings)
    beside = vd.Observer(PENDULUM, "ekf", replace(settings))
    steps = [beside.step(float(t), {"encoder": float(y)}) for t, y in zip(log["encoder"].t, log["encoder"].values)]
    assert steps[-1].values["q1"] == pytest.approx(along.reduced[-1, 0], abs=1e-12)
