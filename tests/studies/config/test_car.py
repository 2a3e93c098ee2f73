"""Study files of cars: what they may say, every default written out and read back, and words about every key."""

from pathlib import Path

import pytest
from docs.study_keys import reference

from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.car import CarIdentifyFile, CarObserveFile
from veridyn.studies.config.study import FORMULATED, json_schema, load_study, parse_study, settings_class
from veridyn.studies.config.text import study_text

STUDIES = Path(__file__).parents[3] / "examples" / "studies"
KINDS = {
    "ferrari": CarObserveFile,
    "indy": CarObserveFile,
    "rav4": CarIdentifyFile,
    "formula": CarIdentifyFile,
}


@pytest.mark.parametrize("name", KINDS)
def test_the_examples_are_read_and_written_back(name: str) -> None:
    study = parse_study(plain_yaml((STUDIES / f"{name}.yaml").read_text(encoding="utf-8"), name))
    assert isinstance(study, KINDS[name])
    assert parse_study(plain_yaml(study_text(study, comments=True), name)) == study


def test_words_about_every_key() -> None:
    for kind in FORMULATED["single_track"]:
        schema = settings_class(kind, formulation="single_track").model_json_schema()
        for part in (schema, *schema["$defs"].values()):
            missing = [
                key for key, value in part["properties"].items() if not (value.get("description") or "$ref" in value)
            ]
            assert missing == []
    assert "## `kind: observe` of a car" in reference()
    (either,) = [part for part in json_schema()["oneOf"] if part["properties"]["kind"]["const"] == "identify"]
    assert len(either["oneOf"]) == 6  # of a machine, a car, a payload, a fleet, flexible joints, drives


def test_a_log_is_one_file_or_several() -> None:
    text = (STUDIES / "formula.yaml").read_text(encoding="utf-8")
    with pytest.raises(FileError, match="either file or files"):
        parse_study(plain_yaml(text.replace("  file: ", "  files: {a: x.csv}\n  file: "), "formula.yaml"))


def test_a_study_with_its_car_inside_is_refused() -> None:
    text = (STUDIES / "formula.yaml").read_text(encoding="utf-8")
    old = text.replace("model: {file: formula_model.yaml, formulation: single_track}", "vehicle: {mass: 250}")
    with pytest.raises(FileError, match=r"stands in a model file now(.|\n)*Write it in a file of its own"):
        parse_study(plain_yaml(old, "formula.yaml"))


def test_the_model_file_makes_a_study_one_of_a_car(tmp_path: Path) -> None:
    text = (STUDIES / "formula.yaml").read_text(encoding="utf-8").replace(", formulation: single_track", "")
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "formula_model.yaml").write_text((STUDIES / "formula_model.yaml").read_text(encoding="utf-8"), "utf-8")
    assert isinstance(load_study(tmp_path / "s.yaml").study, CarIdentifyFile)
