"""Settings of fleet studies: machines by name or by a pattern, and every wrong combination is named."""

from __future__ import annotations

import pytest

from studies.fleet_log import EXAMPLE
from veridyn.errors import FileError
from veridyn.files.yaml_plain import plain_yaml
from veridyn.studies.config.fleet import FleetFile
from veridyn.studies.config.study import parse_study, settings_class

TEXT = EXAMPLE.read_text(encoding="utf-8")
LOGS = next(line for line in TEXT.splitlines() if line.startswith("  logs:"))


def test_a_section_fleet_makes_a_fleet_study() -> None:
    found = parse_study(plain_yaml(TEXT, "fleet.yaml"))
    assert isinstance(found, FleetFile) and found.estimator.covariance == "hac" and not found.checks
    text = TEXT.replace(LOGS, "  machines: {a: one.csv, b c: [one.csv, {file: two.csv, share: [0, 0.5]}]}")
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
    assert TEXT.count(old) == 1
    with pytest.raises(FileError) as error:
        parse_study(plain_yaml(TEXT.replace(old, new), "study.yaml"))
    assert said in str(error.value)
