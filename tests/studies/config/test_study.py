from pathlib import Path

import jsonschema
import pytest

from studies.bench_robot import STUDY
from veridyn.errors import DataError, FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.study import KINDS, dotted, json_schema, load_study, parse_study, quantity, settings_class

STUDIES = Path(__file__).parents[3] / "examples" / "studies"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def read(text: str):
    return parse_study(plain_yaml(text, "s.yaml"))


def faults(text: str) -> str:
    with pytest.raises(FileError) as caught:
        read(text)
    return str(caught.value)


def test_a_study_is_read_with_its_defaults() -> None:
    study = read(STUDY)
    assert study.name == "bench" and study.seed == 0
    assert study.log.columns["q.q1"].unit == "rad"  # the short form
    assert study.training[0].file == "training.csv" and study.training[0].share == (0.0, 1.0)
    assert study.signals.order == 4 and study.clock.gaps == "cut"


def test_everything_that_is_wrong_comes_at_once_with_its_line() -> None:
    text = STUDY.replace("name: bench", "name: bench\nsead: 3").replace("{lowpass: 8}", "{lowpass: high, order: 40}")
    text = text.replace("{file: model.yaml}", "{priors: keep}").replace("q1 [rad]", "{column: q1, units: rad}")
    said = faults(text)
    assert said.startswith("s.yaml, 5 faults")
    assert "line 4: there is no key 'sead' here." in said and "Did you mean 'seed'?" in said
    assert "model (line 5): the keys of 'model' do not fit together.\nExpected either file or fit" in said
    assert (
        "log.columns.q.q1 (line 9): there is no key 'units' here.\nKnown: column, times, unit. Did you mean 'unit'?"
        in said
    )
    assert "signals.lowpass (line 20)" in said and "'auto' or 'none'" in said
    assert "signals.order (line 20)" in said and "less than or equal to 12" in said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "[training.csv]",
            "[]",
            "training (line 17): 'training' cannot be an empty list.\nExpected at least one entry",
        ),
        ("[training.csv]", "[{file: a, files: {b: c}}]", "either file or files"),
        ("[training.csv]", "[{file: a, share: [0.7, 0.2]}]", "share: two numbers from 0 to 1"),
        ("{file: model.yaml}", "{file: model.yaml, transmission: {motors: [a]}}", "either ratios, or motors"),
        ("{file: model.yaml}", "{file: model.yaml, transmission: {ratios: {q1: 0}}}", "ratios that are not zero"),
        ("name: bench", "name: ../up", "name (line 3)"),
        ("{lowpass: 8}", "{trim: 8 deg}", "signals.trim (line 19): '8 deg' has a unit."),
        ("{lowpass: 8}", "[1]", "signals (line 19): 'signals' is a mapping, such as {rate: auto}; found a list."),
        (
            "{file: model.yaml}",
            "{file: model.yaml, elements: [inertia]}",
            "model.elements[1] (line 4): an element is a mapping, such as {kind: inertia, on: joint1}; found the word 'inertia'.",
        ),
        (
            "{file: model.yaml}",
            "model.yaml",
            "'model' is a mapping, such as {file: FILE}; found the word 'model.yaml'.",
        ),
        ("{lowpass: 8}", "{order: [4]}", "signals.order (line 19): 'order' cannot be a list."),
        ("{lowpass: 8}", "{order: four}", "found the word 'four'. For example order: 4."),
        ("q.q1: q1 [rad]", "q.q1: 7", "log.columns.q.q1 (line 8)"),
    ],
)
def test_values_that_will_not_do(old: str, new: str, said: str) -> None:
    assert old in STUDY
    assert said in faults(STUDY.replace(old, new))


def test_numbers_may_be_formulas() -> None:
    study = read(
        STUDY.replace(
            "{file: model.yaml}", "{file: m.yaml, transmission: {ratios: {q1: 1/101}}, gravity: [0, 9.81*sin(pi/6), 0]}"
        )
    )
    assert study.model.transmission.ratios["q1"] == pytest.approx(1 / 101)
    assert study.model.gravity[1] == pytest.approx(4.905)


def test_a_file_of_another_kind_is_told_what_runs_it(tmp_path: Path) -> None:
    assert "this is no study file" in faults("bodies: []\n")
    assert "'bake' is not the kind of study wanted here" in faults("kind: bake\n")
    assert "'{'a': 1}' is not the kind of study wanted here" in faults("kind: {a: 1}\n")
    assert "'[1]' is not the kind of study wanted here" in faults("kind: [1]\n")
    (tmp_path / "s.yaml").write_text(STUDY)
    assert load_study(tmp_path / "s.yaml").study.kind == "identify"
    with pytest.raises(FileError, match=r"Run it with: veridyn identify s.yaml"):
        parse_study(plain_yaml(STUDY, "s.yaml"), kind="observe")


def test_paths_are_beside_the_file_and_may_name_variables(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    loaded = load_study(tmp_path / "s.yaml", variables={"VERIDYN_DATA": "/logs"})
    assert loaded.path("a/b.csv", ()) == tmp_path / "a" / "b.csv"
    assert loaded.path("${VERIDYN_DATA}/x.csv", ()) == Path("/logs/x.csv")
    with pytest.raises(FileError, match=r"s.yaml, training \(line 17\): the variable NOWHERE is not set"):
        loaded.path("${NOWHERE}/x.csv", ("training",))


@pytest.mark.parametrize(
    "file", [f for f in sorted(STUDIES.glob("*.yaml")) if "\nkind: " in f.read_text()], ids=lambda f: f.stem
)
def test_the_examples_follow_the_schema(file: Path) -> None:
    content = plain_yaml(file.read_text(encoding="utf-8"), file.name).values
    assert [e.message for e in VALIDATOR.iter_errors(content)] == []
    assert not VALIDATOR.is_valid({**content, "modle": 1})
    assert not VALIDATOR.is_valid({**content, "kind": "identfy"})


def test_every_kind_has_a_schema_with_words_about_every_key() -> None:
    schema = json_schema()
    assert len(schema["oneOf"]) == len(KINDS)
    own = settings_class("identify").model_json_schema()
    assert own["additionalProperties"] is False
    for name, part in own["$defs"].items():
        for key, value in part["properties"].items():
            assert value.get("description"), f"{name}.{key}"


def test_places_and_quantities() -> None:
    assert dotted(("training", 0, "file")) == "training[1].file"
    assert quantity("0.07 N*m/A") == (0.07, "N*m/A")
    assert quantity("-1") == (-1.0, "1")
    assert quantity("2e-3 [V]") == (2e-3, "V")
    with pytest.raises(DataError, match="it is no quantity"):
        quantity("much")


def test_a_home_folder_that_nobody_has_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(STUDY)
    loaded = load_study(file)
    with pytest.raises(FileError, match=r"training\[1\](.|\n)*the home folder that '~no such user' means is not known"):
        loaded.path("~no such user/log.csv", ("training", 0))

    def unknown(path: str) -> str:
        return path  # what os.path.expanduser does for a user without an entry and without HOME

    monkeypatch.setattr("os.path.expanduser", unknown)
    with pytest.raises(FileError, match=r"the home folder that '~' means is not known(.|\n)*set HOME"):
        loaded.path("~/log.csv", ("training", 0))


def test_errors_of_lower_floors_become_faults_of_a_place_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(STUDY)
    loaded = load_study(file)
    line = 1 + next(k for k, text in enumerate(STUDY.splitlines()) if text.startswith("model"))
    cause = DataError("it is odd.", expected="even", found="3", hint="Add one.")
    with pytest.raises(FileError) as placed, loaded.placing(("model", "file"), DataError):
        raise cause
    assert placed.value.__cause__ is cause
    told = str(loaded.error_at(("model", "file"), "it is odd.", "even", "3", "Add one."))
    assert str(placed.value) == told and told.startswith(f"s.yaml, model.file (line {line}): it is odd.")
    with pytest.raises(ZeroDivisionError), loaded.placing(("model",), DataError):
        raise ZeroDivisionError
