import csv
import io
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import veridyn
from studies.small_arm import small_study
from veridyn.errors import DataWarning, Fault, warn
from veridyn.model.experiment import Experiment
from veridyn.studies.result import ParameterRow, Result, collected_warnings, fingerprint
from veridyn.studies.run.folder import new_run

KEYS = ["veridyn", "study", "seed", "quick", "inputs", "figures", "parameters", "validation", "warnings"]
PARAMETER = ["name", "unit", "value", "sigma", "sigma_percent", "prior", "truth"]


def result() -> Result:
    rows = (
        ParameterRow("ZZ1R", "kg*m^2", 2.0, 0.1, 5.0, float("nan"), 2.1),
        ParameterRow("h", "N", 0.0, 1.0, float("inf")),
    )
    return Result("demo", 3, True, {"log": "00"}, {"condition": 7.5}, rows, {"q1": {"rms": 0.5}}, ("careful",))


def test_result_json_has_exactly_the_keys_of_the_schema(tmp_path: Path) -> None:
    run = new_run(tmp_path, "demo")
    run.write_result(result())
    content = json.loads((run.folder / "result.json").read_text(encoding="utf-8"))
    assert list(content) == KEYS
    assert content["veridyn"] == veridyn.__version__
    assert (content["study"], content["seed"], content["quick"]) == ("demo", 3, True)
    assert [list(p) for p in content["parameters"]] == [PARAMETER, PARAMETER]
    assert content["parameters"][0]["prior"] is None
    assert content["parameters"][1]["sigma_percent"] is None
    assert content["warnings"] == ["careful"]


def test_a_study_fills_the_schema_with_numbers(tmp_path: Path) -> None:
    made = small_study().result("small", seed=7, quick=False, inputs={"log": fingerprint("x")})
    run = new_run(tmp_path, "small")
    run.write_result(made)
    content = json.loads((run.folder / "result.json").read_text(encoding="utf-8"))
    assert all(isinstance(v, float) for v in content["figures"].values())
    assert all(isinstance(p["truth"], float) for p in content["parameters"])
    assert set(content["validation"]) == {"q1", "q2"}
    assert set(content["validation"]["q1"]) == {
        "samples",
        "rms",
        "measured_rms",
        "measured_std",
        "measured_noise",
        "error_percent",
        "error_std_percent",
        "judged",
    }


def test_the_table_holds_the_same_parameters_with_empty_cells_for_what_is_not_known() -> None:
    rows = list(csv.reader(io.StringIO(result().parameter_table())))
    assert rows[0] == PARAMETER
    assert rows[1] == ["ZZ1R", "kg*m^2", "2.0", "0.1", "5.0", "", "2.1"]
    assert rows[2] == ["h", "N", "0.0", "1.0", "", "", ""]


def test_inside_is_two_sigma_and_unknown_without_a_truth() -> None:
    assert ParameterRow("a", "1", 1.0, 0.1, 10.0, truth=1.19).inside is True
    assert ParameterRow("a", "1", 1.0, 0.1, 10.0, truth=1.21).inside is False
    assert ParameterRow("a", "1", 1.0, 0.1, 10.0).inside is None


def test_a_fingerprint_changes_with_every_part_of_a_log() -> None:
    t = np.arange(4.0)

    def log(values: object = (1.0, 2.0, 3.0, 4.0), unit: str = "N", name: str = "f", at: object = t) -> Experiment:
        return Experiment.from_arrays(at, {name: values}, {name: unit})

    every = [log(), log((1.0, 2.0, 3.0, 5.0)), log(unit="N*m"), log(name="g"), log(at=t + 1e-9)]
    assert len({fingerprint(e) for e in every}) == len(every)
    assert fingerprint(log()) == fingerprint(log())
    # FIPS 180-2, appendix B.1: the digest of "abc"
    assert (
        fingerprint("abc") == fingerprint(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_warnings_of_veridyn_are_collected_once_each_and_others_pass() -> None:
    with collected_warnings() as texts:
        for _ in range(2):
            warn(DataWarning, Fault("the clock is odd.", "log"))
    assert texts == ["log: the clock is odd."]
    with pytest.warns(UserWarning, match="from elsewhere"), collected_warnings() as texts:
        warnings.warn("from elsewhere", UserWarning, stacklevel=1)
    assert texts == []


def test_warnings_are_kept_when_the_study_fails() -> None:
    found: list[str] = []

    def study() -> None:
        with collected_warnings(found):
            warn(DataWarning, Fault("odd.", "log"))
            raise ValueError("later")

    with pytest.raises(ValueError, match="later"):
        study()
    assert found == ["log: odd."]
