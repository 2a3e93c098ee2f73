"""Study files of vehicles: what they may say, every default written out and read back, and words about every key."""

from pathlib import Path

import pytest

from veridyn.errors import FileError
from veridyn.files.yaml_plain import plain_yaml
from veridyn.studies.config.reference import reference
from veridyn.studies.config.study import SECTIONS, json_schema, parse_study, settings_class
from veridyn.studies.config.text import study_text
from veridyn.studies.config.vehicle import VehicleIdentifyFile, VehicleObserveFile

STUDIES = Path(__file__).parents[3] / "examples" / "studies"
KINDS = {
    "ferrari": VehicleObserveFile,
    "indy": VehicleObserveFile,
    "rav4": VehicleIdentifyFile,
    "formula": VehicleIdentifyFile,
}


@pytest.mark.parametrize("name", KINDS)
def test_the_examples_are_read_and_written_back(name: str) -> None:
    study = parse_study(plain_yaml((STUDIES / f"{name}.yaml").read_text(encoding="utf-8"), name))
    assert isinstance(study, KINDS[name])
    assert parse_study(plain_yaml(study_text(study, comments=True), name)) == study


def test_words_about_every_key() -> None:
    for kind in SECTIONS["vehicle"]:
        schema = settings_class(kind, "vehicle").model_json_schema()
        for part in (schema, *schema["$defs"].values()):
            missing = [
                key for key, value in part["properties"].items() if not (value.get("description") or "$ref" in value)
            ]
            assert missing == []
    assert "## `kind: observe` of a vehicle" in reference()
    (either,) = [part for part in json_schema()["oneOf"] if part["properties"]["kind"]["const"] == "identify"]
    assert len(either["oneOf"]) == 4  # of a machine, of a vehicle, of a payload, of a fleet


def test_a_log_is_one_file_or_several() -> None:
    text = (STUDIES / "formula.yaml").read_text(encoding="utf-8")
    with pytest.raises(FileError, match="either file or files"):
        parse_study(plain_yaml(text.replace("  file: ", "  files: {a: x.csv}\n  file: "), "formula.yaml"))
