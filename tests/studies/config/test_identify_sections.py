"""Settings of fleet and payload studies: machines by name or by a pattern, and every wrong combination is named."""

from __future__ import annotations

import pytest

from studies.fleet_log import EXAMPLE as FLEET
from studies.payload_log import EXAMPLE as PAYLOAD
from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.identify_sections import FleetFile, PayloadFile
from veridyn.studies.config.study import json_schema, parse_study, settings_class

FLEET_TEXT = FLEET.read_text(encoding="utf-8")
PAYLOAD_TEXT = PAYLOAD.read_text(encoding="utf-8")
LOGS = next(line for line in FLEET_TEXT.splitlines() if line.startswith("  logs:"))


def test_a_section_fleet_makes_a_fleet_study() -> None:
    found = parse_study(plain_yaml(FLEET_TEXT, "fleet.yaml"))
    assert isinstance(found, FleetFile) and found.estimator.covariance == "auto" and not found.checks
    text = FLEET_TEXT.replace(LOGS, "  machines: {a: one.csv, b c: [one.csv, {file: two.csv, share: [0, 0.5]}]}")
    named = parse_study(plain_yaml(text, "fleet.yaml"))
    assert isinstance(named, FleetFile)
    assert [[r.file for r in logs] for logs in named.fleet.machines.values()] == [["one.csv"], ["one.csv", "two.csv"]]
    one = named.of_one(named.fleet.machines["b c"])
    assert one.training[1].share == (0.0, 0.5) and one.executor == "none" and one.estimator == named.estimator


def test_the_schema_has_the_section_with_its_words() -> None:
    own = settings_class("identify", "fleet").model_json_schema()
    keys = own["$defs"]["FleetSettings"]["properties"]
    assert "fleet" in own["required"] and "training" not in own["required"]
    assert all(key["description"] for key in keys.values())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (LOGS, "  significance: 0.01", "either machines, or logs"),
        (LOGS, LOGS + "\n  machines: {a: a.csv}", "either machines, or logs"),
        (LOGS, '  logs: "fleet/*.csv"', "{machine} once in logs"),
        (LOGS, "  machines: {a: []}", "fleet.machines.a"),
        (LOGS, "  machines: {../a: a.csv}", "fleet.machines"),
        (LOGS, LOGS + "\n  significance: 2", "fleet.significance"),
        ("executor: local", "training: [a.csv]\nexecutor: local", "logs under fleet only"),
        ("executor: local", "validation: [a.csv]\nexecutor: local", "logs under fleet only"),
        ("executor: local", "output: {model: false}\nexecutor: local", "no output"),
        ("executor: local", "accept: {suspicions: 0}\nexecutor: local", "there is no key 'suspicions'"),
    ],
)
def test_what_does_not_belong_together_is_refused(old: str, new: str, said: str) -> None:
    assert FLEET_TEXT.count(old) == 1
    with pytest.raises(FileError) as error:
        parse_study(plain_yaml(FLEET_TEXT.replace(old, new), "study.yaml"))
    assert said in str(error.value)


def refused(text: str) -> str:
    with pytest.raises(FileError) as error:
        parse_study(plain_yaml(text, "study.yaml"))
    return str(error.value)


def test_a_section_payload_makes_a_payload_study() -> None:
    found = parse_study(plain_yaml(PAYLOAD_TEXT, "payload.yaml"))
    assert isinstance(found, PayloadFile) and found.estimator.covariance == "auto"
    assert settings_class("identify", "payload") is PayloadFile


def test_a_payload_may_be_weighed_without_validation() -> None:
    text = PAYLOAD_TEXT.replace("accept: {validation_percent: 5, suspicions: 0}\n", "") + "\nvalidation: none\n"
    found = parse_study(plain_yaml(text, "payload.yaml"))
    assert isinstance(found, PayloadFile) and found.validation == "none"


def test_the_schema_has_the_section_payload_with_its_words() -> None:
    own = settings_class("identify", "payload").model_json_schema()
    assert "payload" in own["required"] and own["additionalProperties"] is False
    keys = own["$defs"]["PayloadSettings"]["properties"]
    assert keys["estimate"]["enum"] == ["all", "mass"] and all(key["description"] for key in keys.values())
    kinds = next(k for k in json_schema()["oneOf"] if "oneOf" in k)["oneOf"]
    assert len(kinds) == 6  # machine, car, payload, fleet, flexible, drives


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
def test_payloads_that_do_not_belong_together_are_refused(old: str, new: str, said: str) -> None:
    assert PAYLOAD_TEXT.count(old) == 1
    assert said in refused(PAYLOAD_TEXT.replace(old, new))
