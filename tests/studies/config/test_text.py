import pytest

from studies.bench_robot import STUDY
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.study import parse_study
from veridyn.studies.config.text import commented, flow, study_text

RICH = STUDY.replace(
    "{file: model.yaml}", "{file: '${A}/m 1.yaml', elements: [{kind: damper}, {kind: spring, on: {q1: 1, q2: -1}}]}"
).replace("[training.csv]", "[{file: a.csv, share: [0, 0.5], drop: {q1: [[0.5, 1]]}}, {files: {x: y.txt}}]")


@pytest.mark.parametrize("text", [STUDY, RICH])
@pytest.mark.parametrize("comments", [True, False])
def test_what_is_written_reads_back_as_the_same_study(text: str, comments: bool) -> None:
    study = parse_study(plain_yaml(text))
    written = study_text(study, comments)
    again = parse_study(plain_yaml(written))
    assert again == study
    assert study_text(again, comments) == written


def test_every_default_is_written_and_told_about() -> None:
    study = parse_study(plain_yaml(STUDY))
    written = study_text(study, comments=True)
    assert "  order: 4\n" in written
    assert "# Cut-off of the zero-phase low-pass of positions, Hz;" in written
    assert "#" not in study_text(study)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("true", '"true"'),
        ("3", '"3"'),
        ("a: b", '"a: b"'),
        ("q [rad]", '"q [rad]"'),
        (None, "null"),
        (2.0, "2.0"),
        ({"a": [1, "x y"]}, "{a: [1, x y]}"),
    ],
)
def test_values_on_one_line(value: object, text: str) -> None:
    assert flow(value) == text
    assert plain_yaml(f"v: {text}\n").values["v"] == value


def test_long_comments_are_wrapped() -> None:
    lines = commented("word " * 60)
    assert len(lines) > 1 and all(line.startswith("# ") and len(line) <= 110 for line in lines)
