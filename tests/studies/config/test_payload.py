"""Settings of payload studies: every wrong combination is named."""

from __future__ import annotations

import pytest

from studies.payload_log import EXAMPLE
from veridyn.errors import FileError
from veridyn.files.yaml_plain import plain_yaml
from veridyn.studies.config.payload import PayloadFile
from veridyn.studies.config.study import json_schema, parse_study, settings_class

TEXT = EXAMPLE.read_text(encoding="utf-8")


def refused(text: str) -> str:
    with pytest.raises(FileError) as error:
        parse_study(plain_yaml(text, "study.yaml"))
    return str(error.value)


def test_a_section_payload_makes_a_payload_study() -> None:
    found = parse_study(plain_yaml(TEXT, "payload.yaml"))
    assert isinstance(found, PayloadFile) and found.estimator.covariance == "hac"
    assert settings_class("identify", "payload") is PayloadFile


def test_a_payload_may_be_weighed_without_validation() -> None:
    text = TEXT.replace("accept: {validation_percent: 5, suspicions: 0}\n", "") + "\nvalidation: none\n"
    found = parse_study(plain_yaml(text, "payload.yaml"))
    assert isinstance(found, PayloadFile) and found.validation == "none"


def test_the_schema_has_the_section_with_its_words() -> None:
    own = settings_class("identify", "payload").model_json_schema()
    assert "payload" in own["required"] and own["additionalProperties"] is False
    keys = own["$defs"]["PayloadSettings"]["properties"]
    assert keys["estimate"]["enum"] == ["all", "mass"] and all(key["description"] for key in keys.values())
    assert len(next(k for k in json_schema()["oneOf"] if "oneOf" in k)["oneOf"]) == 4  # machine, car, payload, fleet


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("estimate: all", "estimate: mass", "centre, the known centre of mass"),
        ("estimate: all", "estimate: all\n  centre: [0, 0, 0]", "no centre, since it is estimated"),
        ("estimate: all", "estimate: nine", "'all' or 'mass'"),
        ("largest_sigma: 0.05", "largest_sigma: -1", "payload.largest_sigma"),
        ("largest_sigma: 0.05", "gain_sigma: 1.5", "payload.gain_sigma"),
        ("  body: hand\n", "", "the key 'body' is missing"),
        ("mass: 2.0,", "mass: -2.0,", "load.mass"),
        ("mass: 2.0,", "weight: 2.0,", "there is no key 'weight'"),
        ("model: {file: payload_model.yaml}", "model: {fit: run-001}", "either payload.empty"),
        (
            "training: [payload_loaded.csv]",
            "training: [{file: a.csv, load: {body: hand, mass: 1, centre: [0, 0, 0]}}]",
            "known loads",
        ),
        ("signals: {lowpass: 5}", "signals: {lowpass: 5}\noutput: {model: false}", "no output"),
        ("signals: {lowpass: 5}", "signals: {lowpass: 5}\nestimator: {trust: true}", "without trust"),
    ],
)
def test_what_does_not_belong_together_is_refused(old: str, new: str, said: str) -> None:
    assert TEXT.count(old) == 1
    assert said in refused(TEXT.replace(old, new))
