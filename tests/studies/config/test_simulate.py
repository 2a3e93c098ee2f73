import pytest
from docs.study_keys import reference

from studies.arm_simulation import FREE, LED, PUSHED, STUDIES
from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.study import json_schema, parse_study
from veridyn.studies.config.text import study_text

SHORTEST = "veridyn: 1\nkind: simulate\nmodel: {file: arm.yaml}\nduration: 2\n"


def read(text: str):
    return parse_study(plain_yaml(text, "s.yaml"), "simulate")


def test_few_keys_are_enough() -> None:
    study = read(SHORTEST)
    assert (study.name, study.rate, study.integrator.name, study.format) == ("simulation", 200.0, "auto", "csv")
    assert study.motion is None and study.controller is None and not study.inputs.formulas and not study.sensors
    assert read(SHORTEST + "sensors: {q.*: }").sensors["q.*"].noise == 0.0
    assert read(SHORTEST + "sensors: {q.*: {quantum: 2*pi/2**20}}").sensors["q.*"].quantum == pytest.approx(
        5.99e-6, 1e-3
    )
    assert read(SHORTEST + "inputs: {formulas: {force.q1: 5, force.q2: 2*sin(t)}}").inputs.formulas["force.q1"] == 5.0


@pytest.mark.parametrize("comments", [False, True])
def test_the_text_with_every_default_is_the_same_study(comments: bool) -> None:
    examples = [p.read_text(encoding="utf-8") for p in sorted(STUDIES.glob("simulate_*.yaml"))]
    for text in (SHORTEST, FREE, LED, PUSHED, *(e for e in examples if "kind: simulate" in e)):
        study = read(text)
        assert read(study_text(study, comments)) == study


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("durations: 3", r"there is no key 'durations' here\.\n.*duration"),
        ("mechanism: crane.yaml", "there is no key 'mechanism' here"),
        ("motion: {}", "either file or fourier"),
        ("motion: {fourier: {}}", "the key 'frequency' is missing"),
        ("controller: {bandwith: 3}", r"controller \(line 5\): there is no key 'bandwith'"),
        ("controller: {}", "a motion for the controller to follow"),
        ("motion: {fourier: {frequency: 1}}\nstart: {rates: {q1: 1}}", "no start where a motion is given"),
        ("inputs: {file: a.csv}", "both or neither"),
        ("inputs: {file: a.csv, columns: {force.q1: a}, formulas: {force.q1: 2}}", "not 'force.q1' as a formula and"),
        ("integrator: {name: euler}", r"integrator.name \(line 5\)"),
        ("integrator: {step: 0}", "greater than 0"),
        ("sensors: {q.*: {noise: -1}}", "greater than or equal to 0"),
        ("sensors: {q.*: {sigma: 1}}", "there is no key 'sigma' here"),
        ("accept: {drift: 1}", "there is no key 'drift' here"),
        ("rate: fast", r"rate \(line 5\)"),
    ],
)
def test_bad_settings_are_refused_with_their_line(more: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        read(SHORTEST + more + "\n")


def test_a_duration_is_needed_unless_a_table_tells_it() -> None:
    with pytest.raises(FileError, match="a duration, which only the table of a motion implies"):
        read(SHORTEST.replace("duration: 2\n", ""))
    assert read(SHORTEST.replace("duration: 2", "motion: {file: trajectory.csv}")).duration is None


def test_it_stands_in_the_reference_and_in_the_schema() -> None:
    text = reference("simulate")
    for words in ("`kind: simulate`", "`motion.fourier`", "`sensors.*`", "`friction_speed`", "`integrator`"):
        assert words in text
    kinds = [part["properties"]["kind"]["const"] for part in json_schema()["oneOf"]]
    assert "simulate" in kinds
